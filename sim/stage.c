/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/stage.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/shape.h"

#include <string.h>

ms_err ms_stage_add(ms_program *program, ms_stage stage, ms_arena *arena,
                    ms_fault *fault)
{
    ms_stage *stages =
        ms_arena_grow(arena, program->stages, &program->stages_capacity,
                      program->n_stages + 1, sizeof *stages);
    if (stages == NULL)
        return ms_fail_nomem(fault);
    program->stages = stages;
    program->holds = NULL;
    stages[program->n_stages++] = stage;
    return MS_OK;
}

bool ms_stage_has(const ms_program *program, uint16_t rank, uint32_t unit)
{
    for (uint32_t i = 0; i < program->n_stages; i++) {
        const ms_stage *stage = &program->stages[i];
        if (stage->rank == rank && stage->first <= unit && unit <= stage->last)
            return true;
    }
    return program->n_stages == 0;
}

void ms_stage_units(const ms_program *program, uint16_t rank, uint32_t n_units,
                    uint32_t *own)
{
    for (uint32_t u = 0; u < n_units; u++)
        own[u] = program->n_stages == 0;
    for (uint32_t i = 0; i < program->n_stages; i++) {
        const ms_stage *stage = &program->stages[i];
        for (uint32_t u = stage->first; stage->rank == rank && u <= stage->last;
             u++)
            own[u] = i + 1;
    }
}

bool ms_stage_copies(const ms_graph *graph, const ms_program *program)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < program->n_stages; i++)
        units += program->stages[i].last - program->stages[i].first + 1;
    return units > graph->n_units;
}

/* ---- what makes a table wrong -------------------------------------------- */

static ms_err check_range(const ms_graph *graph, const ms_program *program,
                          uint32_t i, ms_fault *fault)
{
    const ms_stage *stage = &program->stages[i];
    if (stage->rank >= program->n_ranks)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "stage %u is of rank %u; the ranks are 0 to %u", i,
                       (unsigned)stage->rank, program->n_ranks - 1u);
    if (stage->first > stage->last || stage->last >= graph->n_units)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "stage %u: there are no units %u-%u; the graph has %u",
                       i, stage->first, stage->last, graph->n_units);
    return MS_OK;
}

/* owner: per unit, the last rank seen with it + 1.  The ranges of one rank are
 * looked at together, so that the column need not be cleared. */
static ms_err check_rank(const ms_graph *graph, const ms_program *program,
                         uint16_t rank, uint32_t *owner, ms_fault *fault)
{
    bool any = false;
    for (uint32_t i = 0; i < program->n_stages; i++) {
        const ms_stage *stage = &program->stages[i];
        if (stage->rank != rank)
            continue;
        any = true;
        for (uint32_t u = stage->first; u <= stage->last; u++) {
            if (owner[u] == rank + 1u)
                return ms_fail(fault, MS_EINPUT, NULL,
                               "let the stages of a rank not overlap",
                               "unit %u (%s) is in two stages of rank %u", u,
                               graph->unit_name[u], (unsigned)rank);
            owner[u] = rank + 1u;
        }
    }
    if (any)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL,
                   "write a stage for each rank, or none at all",
                   "rank %u has no stage", (unsigned)rank);
}

ms_err ms_stage_check(const ms_graph *graph, const ms_program *program,
                      ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_err err = MS_OK;
    if (program->n_stages == 0)
        return MS_OK;
    for (uint32_t i = 0; i < program->n_stages; i++)
        MS_TRY(check_range(graph, program, i, fault));
    uint32_t *owner = ms_arena_take(&scratch, graph->n_units, sizeof *owner);
    if (owner == NULL)
        err = ms_fail_nomem(fault);
    for (uint32_t r = 0; r < program->n_ranks && err == MS_OK; r++)
        err = check_rank(graph, program, (uint16_t)r, owner, fault);
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_stage_check_call(const ms_graph *graph, const ms_program *program,
                           const ms_call *call, ms_fault *fault)
{
    bool runs = call->verb == MS_RUN || call->verb == MS_STATE;
    bool runs_again = call->verb == MS_RERUN;
    uint32_t last = runs_again ? call->last : call->unit;
    if (program->n_stages == 0 || (!runs && !runs_again))
        return MS_OK;
    for (uint32_t u = call->unit; u <= last; u++)
        if (!ms_stage_has(program, call->rank, u))
            return ms_fail(fault, MS_EINPUT, NULL,
                           "run it on a rank with a stage that has it",
                           "unit %u (%s) is in no stage of rank %u", u,
                           graph->unit_name[u], (unsigned)call->rank);
    return MS_OK;
}

/* ---- what a rank holds --------------------------------------------------- */

/* Columns while they are filled: touched says which storages any unit touches;
 * layer, which layers the rank at work has a part of; weighted, which layers
 * have weights: only those of its weights, or copies of weights that products
 * read instead, make them the rank's (others may read a buffer of the layer,
 * such as the angles of rotary embeddings). */
typedef struct finder {
    const ms_graph *graph;
    const ms_program *program;
    uint8_t *touched, *layer, *weighted;
    uint8_t *held; /* of the rank at work */
} finder;

static void touch(const finder *find, uint8_t *marks, uint32_t s)
{
    if (s >= find->graph->n_persistent)
        return;
    marks[s] = 1;
    if (ms_graph_is_weight(find->graph, s) &&
        find->graph->storage_grad[s] != MS_NONE)
        marks[find->graph->storage_grad[s]] = 1;
}

static void touch_ops(const finder *find, uint8_t *marks, uint32_t first,
                      uint32_t end)
{
    const ms_graph *graph = find->graph;
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        touch(find, marks, graph->in[i]);
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++)
        touch(find, marks, graph->out[i]);
}

static void touch_unit(const finder *find, uint8_t *marks, uint32_t u)
{
    const ms_graph *graph = find->graph;
    touch_ops(find, marks, graph->forward_at[u], graph->forward_at[u + 1]);
    touch_ops(find, marks, graph->backward_at[u + 1], graph->backward_at[u]);
    if (graph->unit_state != NULL && graph->unit_state[u] != MS_NONE)
        touch(find, marks, graph->unit_state[u]);
}

static uint32_t layer_of(const ms_graph *graph, uint32_t s)
{
    return graph->storage_layer != NULL ? graph->storage_layer[s] : MS_NONE;
}

/* Does the step make it, or was it there before? */
static bool is_asked(const ms_graph *graph, uint32_t s)
{
    uint32_t maker = graph->storage_maker[s];
    return s < graph->n_persistent ||
           (maker != MS_NONE && maker >= graph->step_first);
}

static bool is_of_weight(const ms_graph *graph, uint32_t s)
{
    return ms_graph_is_weight(graph, s) ||
           graph->storage_buffer[s] == MS_COPY_OF_WEIGHTS;
}

/* What a unit or a layer says.  held has the storages of the rank's units. */
static void hold_owned(const finder *find)
{
    const ms_graph *graph = find->graph;
    for (uint32_t l = 0; l < graph->n_layers; l++)
        find->layer[l] = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        uint32_t layer = layer_of(graph, s);
        if (find->held[s] && layer != MS_NONE &&
            (is_of_weight(graph, s) || !find->weighted[layer]))
            find->layer[layer] = 1;
    }
    for (uint32_t s = 0; s < graph->n_storages; s++) {
        uint32_t layer = layer_of(graph, s);
        if (!is_asked(graph, s))
            continue;
        if (find->touched[s])
            find->held[s] |= MS_STAGE_OWNED;
        else if (layer != MS_NONE)
            find->held[s] = MS_STAGE_OWNED | find->layer[layer];
    }
}

static void hold_named(const finder *find, uint8_t *named, uint32_t s,
                       uint8_t runs)
{
    named[s] = 1;
    if (!(find->held[s] & MS_STAGE_OWNED))
        find->held[s] |= runs;
}

/* What only an op says: held where the rank runs it.  What the step makes for
 * itself is held where it is made. */
static void hold_by_op(const finder *find, uint8_t *named)
{
    const ms_graph *graph = find->graph;
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++) {
        uint8_t runs = ms_stage_share_of(graph, find->held, op).part > 0;
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            if (graph->in[i] < graph->n_persistent)
                hold_named(find, named, graph->in[i], runs);
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            hold_named(find, named, graph->out[i], runs);
    }
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (!named[s] && !(find->held[s] & MS_STAGE_OWNED))
            find->held[s] = MS_STAGE_HELD;
}

static void find_rank(finder *find, uint16_t rank, uint8_t *named)
{
    for (uint32_t i = 0; i < find->program->n_stages; i++) {
        const ms_stage *stage = &find->program->stages[i];
        if (stage->rank == rank)
            for (uint32_t u = stage->first; u <= stage->last; u++)
                touch_unit(find, find->held, u);
    }
    hold_owned(find);
    hold_by_op(find, named);
}

ms_err ms_stage_find(const ms_graph *graph, ms_program *program,
                     ms_arena *arena, ms_fault *fault)
{
    size_t n = graph->n_storages;
    finder find = {.graph = graph, .program = program};
    if (program->n_stages == 0 || program->holds != NULL)
        return MS_OK;
    uint8_t *holds = ms_arena_take(arena, n * program->n_ranks, 1);
    find.touched = ms_arena_take(arena, n, 1);
    find.layer = ms_arena_take(arena, (size_t)graph->n_layers + 1, 1);
    find.weighted = ms_arena_take(arena, (size_t)graph->n_layers + 1, 1);
    uint8_t *named = ms_arena_take(arena, n, 1);
    if (!holds || !find.touched || !find.layer || !find.weighted || !named)
        return ms_fail_nomem(fault);
    for (uint32_t u = 0; u < graph->n_units; u++)
        touch_unit(&find, find.touched, u);
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (layer_of(graph, s) != MS_NONE && ms_graph_is_weight(graph, s))
            find.weighted[layer_of(graph, s)] = 1;
    for (uint32_t r = 0; r < program->n_ranks; r++) {
        find.held = holds + r * n;
        find_rank(&find, (uint16_t)r, named);
    }
    program->holds = holds;
    return MS_OK;
}

/* ---- halves of backward ---------------------------------------------------
 */

static bool is_product(const ms_graph *graph, uint32_t op)
{
    return graph->op_pass[op] == MS_GRAD_WEIGHT &&
           (graph->op_flags[op] & MS_OP_MATRIX);
}

static bool reads_second(const ms_graph *graph, const uint8_t *second,
                         uint32_t op)
{
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i], maker = graph->storage_maker[s];
        if (s >= graph->n_persistent && maker != MS_NONE && second[maker])
            return true;
    }
    return false;
}

void ms_stage_halves(const ms_graph *graph, uint8_t *second)
{
    memset(second, 0, graph->n_ops);
    for (uint32_t op = graph->forward_at[graph->n_units];
         op < graph->step_first; op++)
        second[op] = is_product(graph, op) || reads_second(graph, second, op);
}

/* ---- the share of an op -------------------------------------------------- */

typedef struct weighing {
    ms_stage_share share;
    bool owned, held; /* something owned is touched, and is the rank's */
} weighing;

static void weigh(weighing *so_far, const ms_graph *graph, const uint8_t *held,
                  uint32_t s)
{
    uint64_t bytes = graph->storage_bytes[s] > 0 ? graph->storage_bytes[s] : 1;
    so_far->share.whole += bytes;
    if (held[s] & MS_STAGE_HELD)
        so_far->share.part += bytes;
    if (held[s] & MS_STAGE_OWNED) {
        so_far->owned = true;
        so_far->held |= held[s] & MS_STAGE_HELD;
    }
}

/* Does it read what an earlier op of the step makes, on other ranks alone?
 * Such is a buffer in which gradients lie that this rank has none of. */
static bool lacks_input(const ms_graph *graph, const uint8_t *held, uint32_t op)
{
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i], maker = graph->storage_maker[s];
        if (s >= graph->n_persistent && maker != MS_NONE &&
            maker >= graph->step_first && maker < op &&
            !(held[s] & MS_STAGE_HELD))
            return true;
    }
    return false;
}

bool ms_stage_comes(const ms_graph *graph, const uint8_t *held,
                    uint32_t storage)
{
    uint32_t maker = graph->storage_maker[storage];
    bool of_step = storage >= graph->n_persistent && maker != MS_NONE &&
                   maker >= graph->step_first;
    return !of_step || (held[storage] & MS_STAGE_HELD);
}

ms_stage_share ms_stage_share_of(const ms_graph *graph, const uint8_t *held,
                                 uint32_t op)
{
    weighing sum = {.share = {0, 0}};
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        weigh(&sum, graph, held, graph->in[i]);
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        weigh(&sum, graph, held, graph->out[i]);
    if (!sum.owned)
        return (ms_stage_share){!lacks_input(graph, held, op), 1};
    if (!sum.held)
        sum.share.part = 0;
    return sum.share;
}
