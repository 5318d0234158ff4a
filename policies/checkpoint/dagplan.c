/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/dagplan.h"
#include "policies/solve/nodecalls.h"
#include "sim/graph.h"
#include "sim/program.h"

ms_err ms_dagplan_place(const ms_policy_context *context, uint64_t budget_bytes,
                        ms_program *program, ms_fault *fault)
{
    ms_nodedag dag;
    ms_pebble pebble;
    ms_arena *arena = context->arena;
    MS_TRY(ms_nodedag_find(context->graph, arena, &dag, fault));
    MS_TRY(ms_pebble_find(&dag, budget_bytes, arena, &pebble, fault));
    if (!pebble.ended)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:optimal",
                       "write dtr:budget=SIZE",
                       "the DAG is too large for a search of all its orders");
    program->told = "the least time of all orders, gradients made again too "
                    "(pebbling)";
    return ms_nodecalls_write(context->graph, &pebble.plan, arena, program,
                              fault);
}
