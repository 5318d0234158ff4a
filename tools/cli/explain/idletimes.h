/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_IDLETIMES_H
#define MS_TOOLS_IDLETIMES_H

/* Sorts what is saved for backward by how long it waits there
 * (sim/measure/idle.h). Whether swapping or recomputing pays depends on this
 * time. It is a part of memsim explain.
 *
 *     saved:    26.41 GiB in 290 tensors wait for backward, half of the bytes
 *               for 120.4 ms or longer; ...
 *               waiting for          bytes      share  tensors  reads ...
 *               0 to 50 ms        4.10 GiB     15.5 %       40    2.0 ... */

#include "policies/common/policy.h"
#include "sim/measure/idle.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* The tensors that wait for [from_ns, to_ns). uses: of all of them together.
 * alone, hidden: the bytes that the link can copy out and back while they
 * wait, if it has each tensor to itself, or all of them together. */
typedef struct ms_idletimes_class {
    uint64_t from_ns, to_ns, bytes, uses, alone_bytes, hidden_bytes;
    uint32_t tensors;
} ms_idletimes_class;

typedef struct ms_idletimes {
    bool is_marked;         /* the program says when the forward pass ends */
    ms_idletimes_class all; /* all tensors; its times are not set */
    uint64_t half_ns;       /* half of the bytes wait for so long or longer */
    /* the classes from 0 on, without gaps, empty ones included; what nothing
     * reads again may be in the last one */
    ms_idletimes_class *of;
    uint32_t n;
    ms_idle_links links; /* all members are 0 where there is no link */
} ms_idletimes;

/* Of the rank with the highest peak. It needs plan.use. */
ms_err ms_idletimes_find(const ms_job *job, const ms_result *result,
                         ms_arena *arena, ms_idletimes *saved, ms_fault *fault);
/* Fills the members all, half_ns, of and n of saved. */
ms_err ms_idletimes_sort(const ms_idle_tensor *list, uint32_t n,
                         ms_arena *arena, ms_idletimes *saved, ms_fault *fault);
void ms_idletimes_put(const ms_idletimes *saved, ms_text *text);

#endif
