/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/evictorcalls.h"
#include "policies/solve/nodecalls.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <inttypes.h>
#include <stdio.h>

static ms_err refuse(const ms_graph *graph, const ms_evictor_setup *setup,
                     const ms_evictor_run *run, ms_fault *fault)
{
    char budget[MS_SIZE_COUNT], needed[MS_SIZE_COUNT], hint[96];
    ms_size_count(setup->budget_bytes, budget);
    ms_size_count(run->needed_bytes, needed);
    if (run->status == MS_EVICTOR_THRASHES)
        return ms_fail(
            fault, MS_EINFEASIBLE, "dtr", "give it more memory, or most=",
            "it thrashes: at %s (op %" PRIu32 ") recomputing has taken "
            "%" PRIu64 " ns, more than %" PRIu64 ", in %" PRIu32 " evictions",
            graph->op_name[run->op], run->op, run->again_ns,
            setup->most_again_ns, run->n_evictions);
    snprintf(hint, sizeof hint, "try budget=%" PRIu64 " and more",
             run->needed_bytes);
    return ms_fail(fault, MS_EINFEASIBLE, "dtr", hint,
                   "%s (op %" PRIu32 ") needs %s bytes with nothing left that "
                   "may go, and the budget is %s",
                   graph->op_name[run->op], run->op, needed, budget);
}

ms_err ms_evictorcalls_write(const ms_policy_context *context,
                             const ms_evictor_setup *setup, ms_program *program,
                             ms_fault *fault)
{
    ms_evictor_run run;
    ms_arena scratch = {.limit_bytes = context->arena->limit_bytes};
    ms_err err = ms_evictor_find(context->graph, setup, &scratch, &run, fault);
    if (err == MS_OK && run.status != MS_EVICTOR_OK)
        err = refuse(context->graph, setup, &run, fault);
    if (err == MS_OK)
        err = ms_nodecalls_write(context->graph, &run.plan, context->arena,
                                 program, fault);
    ms_arena_free(&scratch);
    return err;
}
