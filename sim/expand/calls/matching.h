/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_MATCHING_H
#define MS_SIM_MATCHING_H

/* Private to sim/expand: which SEND_SET and which RECV_SET of a program are one
 * message.
 *
 * A worked example: rank 0 sends set 3 to rank 1 with tag 7 in calls 10 and 20,
 * rank 1 receives that from rank 0 with tag 7 in calls 40 and 50.  Calls 10 and
 * 40 are message 0, calls 20 and 50 are message 1. */

#include "sim/program.h"

typedef struct ms_matched {
    uint32_t send, receive; /* its calls */
} ms_matched;

typedef struct ms_matching {
    ms_matched *all;
    uint32_t n;
    uint32_t *of_call; /* per call of a message: its row */
} ms_matching;

/* MS_EINPUT: a call without another, or two of other storages; the fault names
 * ranks and calls. */
ms_err ms_matching_find(const ms_graph *graph, const ms_program *program,
                        ms_arena *arena, ms_matching *matching,
                        ms_fault *fault);
/* How many storages the call of a message names; and, of one of nothing but a
 * buffer, its bytes. */
uint32_t ms_matching_length(const ms_program *program, const ms_call *call);
uint64_t ms_matching_bytes(const ms_program *program, const ms_call *call);

static inline bool ms_matching_has(const ms_call *call)
{
    return call->verb == MS_SEND_SET || call->verb == MS_RECV_SET;
}

#endif
