/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_IDLETIMES_H
#define MS_TOOLS_IDLETIMES_H

/* What is saved for backward, by how long it waits there (sim/measure/idle.h):
 * the number that swapping and recomputing live on.  Part of memsim explain.
 *
 *     saved:    26.41 GiB in 290 tensors wait for backward, half of the bytes
 *               for 120.4 ms or longer; ...
 *               waiting for          bytes      share  tensors  reads ...
 *               0 to 50 ms        4.10 GiB     15.5 %       40    2.0 ...
 */

#include "policies/common/policy.h"
#include "sim/measure/idle.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* [from_ns, to_ns); uses: of all its tensors together.  alone, hidden: what the
 * link takes out and brings back while it waits, with it for each alone, or
 * together. */
typedef struct ms_idletimes_class {
    uint64_t from_ns, to_ns, bytes, uses, alone_bytes, hidden_bytes;
    uint32_t tensors;
} ms_idletimes_class;

typedef struct ms_idletimes {
    bool is_marked;         /* the program tells when forward ends */
    ms_idletimes_class all; /* without times */
    uint64_t half_ns;       /* half of the bytes wait for as long, or longer */
    ms_idletimes_class *of; /* from 0 on, without gaps; empty ones included;
                              what nothing reads may be in the last */
    uint32_t n;
    ms_idle_links links; /* all 0: there is none */
} ms_idletimes;

/* Of the rank with the highest peak.  Needs plan.use. */
ms_err ms_idletimes_find(const ms_job *job, const ms_result *result,
                         ms_arena *arena, ms_idletimes *saved, ms_fault *fault);
/* Fills all, half_ns, of and n of saved. */
ms_err ms_idletimes_sort(const ms_idle_tensor *list, uint32_t n,
                         ms_arena *arena, ms_idletimes *saved, ms_fault *fault);
void ms_idletimes_put(const ms_idletimes *saved, ms_text *text);

#endif
