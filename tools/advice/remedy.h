/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_REMEDY_H
#define MS_TOOLS_REMEDY_H

/* What would make a group of tensors smaller, found by trying it. */

#include "policies/common/policy.h"
#include "tools/advice/changes.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"

/* A change of the job that makes groups smaller: "checkpoint:full" (a policy)
 * or "kernels=flash" (a setting). */
typedef struct ms_remedy {
    ms_change_use use;
    const char *words, *slot; /* of changes.h */
    ms_costs costs;
    bool *helps; /* by group: at most half of its bytes are left */
} ms_remedy;

typedef struct ms_remedy_task {
    const ms_job *job;
    const ms_alive *alive;
    const uint32_t *group_of; /* by row alive */
    uint32_t n_groups;
    const ms_alike *groups;
} ms_remedy_task;

/* Replays the step with each change of the table and compares what is alive at
 * the same instant. *n is 0 where changes cannot be tried: for a program in
 * text form and for a model that is too large. */
ms_err ms_remedy_find(const ms_remedy_task *task, ms_arena *arena,
                      ms_remedy **remedies, uint32_t *n, ms_fault *fault);
/* Does a remedy before remedy i, of the same slot and costs, help the group as
 * well, so that one of the two is enough? */
bool ms_remedy_is_told(const ms_remedy *remedies, uint32_t i, uint32_t group);

#endif
