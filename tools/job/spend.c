/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stddef.h>
#include <string.h>

#define LARGE_OPS 1000000u /* of a graph that is worth it */

/* Columns of ms_graph, by where the pointer is. */
static const size_t early[] = {offsetof(ms_graph, op_node)};
static const size_t moved[] = {offsetof(ms_graph, op_read_bytes),
                               offsetof(ms_graph, op_write_bytes)};
static const size_t late[] = {
    offsetof(ms_graph, in_at),
    offsetof(ms_graph, in),
    offsetof(ms_graph, out_at),
    offsetof(ms_graph, out),
    offsetof(ms_graph, drop_at),
    offsetof(ms_graph, drop),
    offsetof(ms_graph, storage_local_end),
    offsetof(ms_graph, storage_saved_end),
    offsetof(ms_graph, storage_grad),
    offsetof(ms_graph, storage_refs),
    offsetof(ms_graph, op_read_bytes),
    offsetof(ms_graph, op_write_bytes),
    offsetof(ms_graph, op_ns),
    offsetof(ms_graph, back_in_at),
    offsetof(ms_graph, back_in),
    offsetof(ms_graph, unit_in_at),
    offsetof(ms_graph, unit_in),
};

bool ms_spend_pays(const ms_job *job, const ms_result *result)
{
    return job->spends && job->spec.n == 0 && job->program == NULL &&
           result->graph->n_ops > LARGE_OPS;
}

static void drop(ms_arena *keep, ms_graph *graph, const size_t *columns,
                 size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *column = (char *)graph + columns[i];
        void *items, *none = NULL;
        memcpy(&items, column, sizeof items);
        ms_arena_drop(keep, items);
        memcpy(column, &none, sizeof none);
    }
}

/* The result's own copy, whose columns may become NULL. */
static ms_graph *own_graph(ms_arena *trial, ms_result *result)
{
    ms_graph *own = ms_arena_take(trial, 1, sizeof *own);
    if (own != NULL) {
        *own = *result->graph;
        result->graph = own;
    }
    return own;
}

/* Do ops move bytes, which expand notes? */
static bool moves_any(const ms_graph *graph)
{
    for (uint32_t op = 0; op < graph->n_ops; op++)
        if (graph->op_stream[op] != MS_STREAM_COMPUTE ||
            (graph->op_flags[op] & MS_OP_GATHERS) != 0)
            return true;
    return graph->op_meets != NULL;
}

ms_err ms_spend_early(const ms_job *job, ms_arena *keep, ms_arena *trial,
                      ms_result *result, ms_fault *fault)
{
    ms_graph *graph = own_graph(trial, result);
    if (graph == NULL)
        return ms_fail_nomem(fault);
    drop(keep, graph, early, sizeof early / sizeof *early);
    if (!moves_any(graph))
        drop(keep, graph, moved, sizeof moved / sizeof *moved);
    if (job->lengths == NULL && result->shape.expert_split == 0) {
        ms_arena_drop(keep, result->model.layers); /* lowered once */
        result->model.layers = NULL;
    }
    if (result->program->hooks.used)
        return MS_OK;
    ms_arena_drop(keep, graph->saves);
    graph->saves = NULL;
    graph->n_saves = 0;
    return MS_OK;
}

ms_err ms_spend_late(ms_arena *keep, ms_arena *trial, ms_result *result,
                     ms_fault *fault)
{
    ms_program *program = result->program;
    ms_graph *graph = own_graph(trial, result);
    if (graph == NULL)
        return ms_fail_nomem(fault);
    ms_arena_drop(trial, program->calls);
    program->calls = NULL;
    program->n_calls = program->calls_capacity = 0;
    drop(keep, graph, late, sizeof late / sizeof *late);
    result->plan->graph = graph;
    return MS_OK;
}
