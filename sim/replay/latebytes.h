/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_LATEBYTES_H
#define MS_SIM_LATEBYTES_H

/* The active bytes of a rank (active.h) without its rows: per op what it takes
 * and what is free behind it, at once or late, when streams have passed that
 * used it.  What comes again and again is run again, later.
 *
 *     MS_TRY(ms_latebytes_open(&late, start_bytes, n_frees, arena, fault));
 *     ms_latebytes_run(&late, ops, n, frees, 0, 0);
 *     use(late.most_bytes); */

#include "sim/base/base.h"
#include "sim/replay/heldfrees.h"

/* What is free behind an op, once the ops issued so far on these streams have
 * ended and the host looks. */
typedef struct ms_latebytes_free {
    uint64_t bytes;
    ms_streams streams; /* not 0 */
} ms_latebytes_free;

/* late_at: of its frees the first; those of the op behind it begin where its
 * own end, so that ops have a closing one.  takes: the host asks for memory,
 * and so looks which frees have completed. */
typedef struct ms_latebytes_op {
    uint64_t host_ns, end_ns; /* when the host turns to it, and its end */
    uint64_t taken_bytes, given_bytes;
    uint32_t late_at;
    uint8_t stream;
    bool takes;
} ms_latebytes_op;

typedef struct ms_latebytes {
    uint64_t now_bytes, most_bytes;
    ms_heldfrees held;
    ms_heldfrees_item *items; /* all that were, in order: bytes */
    uint32_t n_items;
} ms_latebytes;

/* n_frees: as many as will be run. */
ms_err ms_latebytes_open(ms_latebytes *late, uint64_t start_bytes,
                         uint32_t n_frees, ms_arena *arena, ms_fault *fault);
/* n ops, whose host comes so much later than they say, and their ends. */
void ms_latebytes_run(ms_latebytes *late, const ms_latebytes_op *ops,
                      uint32_t n, const ms_latebytes_free *frees,
                      uint64_t host_later_ns, uint64_t later_ns);

#endif
