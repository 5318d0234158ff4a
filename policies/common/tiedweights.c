/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/tiedweights.h"
#include "sim/graph.h"
#include "sim/program.h"

typedef struct writer {
    const ms_graph *graph;
    ms_arena *arena;
    ms_program *program;
    ms_program sums; /* calls alone */
    ms_fault *fault;
    uint32_t *tag;    /* per weight that others are copies of: 0, none sums */
    uint32_t *summed; /* per tag: the last rank that sums + 1 */
} writer;

static uint32_t original_of(const ms_graph *graph, uint32_t weight)
{
    uint32_t of = graph->storage_copy_of != NULL
                      ? graph->storage_copy_of[weight]
                      : MS_NONE;
    return of != MS_NONE ? of : weight;
}

static bool has_gradient(const ms_graph *graph, uint32_t weight)
{
    uint32_t grad = graph->storage_grad[weight];
    return ms_graph_is_weight(graph, weight) && grad != MS_NONE &&
           graph->storage_maker[grad] != MS_NONE;
}

static bool is_held(const writer *w, uint16_t rank, uint32_t storage)
{
    size_t first = (size_t)rank * w->graph->n_storages;
    return w->program->holds[first + storage] & MS_STAGE_HELD;
}

/* Weights that two ranks hold are numbered. */
static void number(writer *w, uint16_t n_ranks, uint32_t *ranks)
{
    const ms_graph *graph = w->graph;
    uint32_t n = 0;
    for (uint16_t r = 0; r < n_ranks; r++)
        for (uint32_t s = 0; s < graph->n_persistent; s++) {
            uint32_t of = original_of(graph, s);
            if (!has_gradient(graph, s) || !is_held(w, r, s))
                continue;
            if (ranks[of] > 0 && ranks[of] != r + 1u && w->tag[of] == 0)
                w->tag[of] = ++n;
            ranks[of] = r + 1u;
        }
}

static ms_err sum(writer *w, const ms_call *step)
{
    const ms_graph *graph = w->graph;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        uint32_t tag = w->tag[original_of(graph, s)];
        if (tag == 0 || !has_gradient(graph, s) || !is_held(w, step->rank, s) ||
            w->summed[tag] == step->rank + 1u)
            continue;
        ms_reduce_call how = {.group = MS_GROUP_PIPELINE, .tag = tag};
        ms_call call = ms_program_reduce(step, MS_NOTHING, how);
        w->summed[tag] = step->rank + 1u;
        MS_TRY(ms_program_add_set(w->program, &graph->storage_grad[s], 1,
                                  w->arena, &call.set, w->fault));
        MS_TRY(ms_program_add(&w->sums, call, w->arena, w->fault));
    }
    return MS_OK;
}

static bool is_step(const ms_call *call)
{
    return call->verb == MS_STEP_SET && call->set == MS_ALL;
}

/* From the back, each call moves behind those that come in front of it.  The
 * sums are in the order of the steps, some of each rank. */
static void insert(writer *w)
{
    ms_call *calls = w->program->calls;
    const ms_call *sums = w->sums.calls;
    uint32_t i = w->program->n_calls, k = w->sums.n_calls;
    w->program->n_calls += k;
    while (k > 0) {
        const ms_call *call = &calls[--i];
        uint16_t rank = call->rank;
        bool steps = is_step(call);
        calls[i + k] = *call;
        for (; steps && k > 0 && sums[k - 1].rank == rank; k--)
            calls[i + k - 1] = sums[k - 1];
    }
}

ms_err ms_tiedweights_write(const ms_policy_context *context,
                            ms_program *program, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    uint32_t n = graph->n_persistent;
    writer w = {.graph = graph,
                .arena = context->arena,
                .program = program,
                .fault = fault};
    if (program->n_stages == 0 ||
        (graph->storage_copy_of == NULL && !ms_stage_copies(graph, program)))
        return MS_OK;
    MS_TRY(ms_stage_find(graph, program, w.arena, fault));
    uint32_t *ranks = ms_arena_take(w.arena, n, sizeof *ranks);
    w.tag = ms_arena_take(w.arena, n, sizeof *w.tag);
    w.summed = ms_arena_take(w.arena, n + 1u, sizeof *w.summed);
    if (!ranks || !w.tag || !w.summed)
        return ms_fail_nomem(fault);
    number(&w, program->n_ranks, ranks);
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (is_step(&program->calls[i]))
            MS_TRY(sum(&w, &program->calls[i]));
    MS_TRY(ms_program_reserve(program, w.sums.n_calls, w.arena, fault));
    insert(&w);
    return MS_OK;
}
