/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_INORDER_H
#define MS_SIM_INORDER_H

/* Private to clock.c: the clock where ops neither interfere nor wait for
 * memory, one pass in the order of issue; and what both clocks know of an op.
 */

#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* The cause of a gap in which op waits for other. */
uint8_t ms_inorder_cause(const ms_plan *plan, uint32_t op, uint32_t other);

/* The stream of an op among all of all ranks. */
static inline uint32_t ms_inorder_stream(const ms_plan *plan, uint32_t op)
{
    return plan->op[op].rank * (uint32_t)MS_N_STREAMS + plan->op[op].stream;
}

/* How long the host takes to issue an op.  One of no length is bookkeeping: it
 * launches no kernel, nor does one that a graph holds. */
static inline uint64_t ms_inorder_issue_ns(const ms_machine *machine,
                                           const ms_plan_op *op)
{
    if (op->ns == 0 || (machine->recorded >> op->pass & 1u) != 0)
        return 0;
    return machine->launch_ns + machine->framework_ns[op->pass];
}

/* Is there one stream only, and no sync? */
bool ms_inorder_alone(const ms_plan *plan);
/* As ms_clock_run. */
ms_err ms_inorder_run(const ms_plan *plan, const ms_machine *machine,
                      ms_arena *arena, ms_timeline *line, ms_fault *fault);

#endif
