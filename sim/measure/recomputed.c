/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/recomputed.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/timeline.h"

static bool runs_again(const ms_recomputed *so_far, uint32_t op)
{
    const ms_plan_op *it = &so_far->line->plan->op[op];
    return it->rank == so_far->rank && it->pass == MS_RECOMPUTE &&
           it->stream == MS_STREAM_COMPUTE;
}

static double flops_of(const ms_plan *plan, uint32_t op)
{
    uint32_t of = plan->op[op].of;
    return of == MS_NONE ? 0.0 : plan->graph->op_flops[of];
}

/* How often the op ran: it and those that are left out for it. */
static uint64_t times_of(const ms_plan *plan, uint32_t op)
{
    bool repeats =
        plan->repeats > 0 && plan->op[op].micro_batch == plan->repeated;
    return 1 + (repeats ? plan->repeats : 0);
}

static uint64_t whole(double flops)
{
    return flops < 0x1p63 ? (uint64_t)flops : INT64_MAX;
}

/* A compute stream runs its ops in the order of the plan. */
void ms_recomputed_until(ms_recomputed *so_far, uint64_t t_ns, uint64_t *ns,
                         uint64_t *flops)
{
    const ms_timeline *line = so_far->line;
    uint64_t part_ns = 0;
    double part_flops = 0.0;
    for (; so_far->op < line->plan->n_ops; so_far->op++) {
        uint32_t op = so_far->op;
        if (!runs_again(so_far, op))
            continue;
        uint64_t op_ns = line->end_ns[op] - line->start_ns[op];
        if (line->end_ns[op] > t_ns) {
            part_ns = t_ns > line->start_ns[op] ? t_ns - line->start_ns[op] : 0;
            part_flops = flops_of(line->plan, op) * (double)part_ns /
                         (double)(op_ns > 0 ? op_ns : 1);
            break;
        }
        uint64_t times = times_of(line->plan, op);
        so_far->done_ns += times * op_ns;
        so_far->done_flops += (double)times * flops_of(line->plan, op);
    }
    *ns = so_far->done_ns + part_ns;
    *flops = whole(so_far->done_flops + part_flops);
}
