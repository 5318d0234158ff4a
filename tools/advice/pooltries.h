/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_POOLTRIES_H
#define MS_TOOLS_POOLTRIES_H

/* What the options of the memory pool would change of the reserved bytes, found
 * by trying them. */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#define MS_POOLTRIES_MOST 4u

typedef struct ms_pooltries_task {
    const ms_job *job;
    const ms_result *result;
} ms_pooltries_task;

/* The bytes that would be reserved with one more option. */
typedef struct ms_pooltries {
    struct ms_pooltry {
        const char *words; /* "max_split_size_mb=128" */
        uint64_t reserved_bytes;
        bool is_lacking; /* out of memory with the option */
    } of[MS_POOLTRIES_MOST];
    uint32_t n;
} ms_pooltries;

/* There are none for a job without a pool or with another pool than PyTorch's.
 * An option that the job sets is not tried. */
ms_err ms_pooltries_find(const ms_pooltries_task *task, ms_arena *arena,
                         ms_pooltries *tries, ms_fault *fault);
/* The pool in words, and what each option would change. */
void ms_pooltries_put(const ms_pooltries *tries, const ms_report *report,
                      ms_text *words);

#endif
