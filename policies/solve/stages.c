/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/stages.h"
#include "sim/graph.h"

#include <string.h>

typedef struct finder {
    const ms_graph *graph;
    ms_stage part; /* units [first, last] */
    ms_arena *arena;
    ms_stages *stages;
    ms_fault *fault;
    uint32_t *stage_of; /* per unit of the part; 0 of others before it, MS_NONE
                           of those behind it */
    uint8_t *is_out;    /* per storage: the stage behind its maker's reads it */
    uint8_t *refs;      /* per storage, while a pass is walked */
} finder;

#define REF_LOCAL 1u
#define REF_SAVED 2u

/* ---- the stages ---------------------------------------------------------- */

static ms_err number_stages(finder *f)
{
    const ms_graph *graph = f->graph;
    ms_stages *stages = f->stages;
    uint32_t n = 0, units = f->part.last + 1 - f->part.first;
    stages->first =
        ms_arena_take_raw(f->arena, units + 3u, sizeof *stages->first);
    stages->last =
        ms_arena_take_raw(f->arena, units + 3u, sizeof *stages->last);
    f->stage_of =
        ms_arena_take(f->arena, graph->n_units + 1u, sizeof *f->stage_of);
    if (stages->first == NULL || stages->last == NULL || f->stage_of == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t u = f->part.first; u <= f->part.last; u++) {
        uint32_t block = graph->unit_block[u];
        bool goes_on = u > f->part.first && block != MS_NONE &&
                       block == graph->unit_block[u - 1];
        if (u <= graph->loss_unit && !goes_on)
            stages->first[++n] = u;
        if (n > 0)
            stages->last[n] = u;
        f->stage_of[u] = n;
    }
    for (uint32_t u = f->part.last + 1; u < graph->n_units; u++)
        f->stage_of[u] = MS_NONE;
    if (f->part.last < graph->loss_unit) {
        stages->first[++n] = f->part.last + 1;
        stages->last[n] = f->part.last;
    }
    stages->chain.n = n;
    return MS_OK;
}

/* 0: none of the part. */
static uint32_t maker_stage(const finder *f, uint32_t storage)
{
    uint32_t op = f->graph->storage_maker[storage];
    uint32_t unit = op == MS_NONE ? MS_NONE : f->graph->op_unit[op];
    return unit == MS_NONE ? 0 : f->stage_of[unit];
}

/* Is the unit another part's, or what it reads? */
static bool is_others(const finder *f, uint32_t unit, uint32_t storage)
{
    uint32_t op = f->graph->storage_maker[storage];
    uint32_t by = op == MS_NONE ? f->part.first : f->graph->op_unit[op];
    return unit < f->part.first || unit > f->part.last || by < f->part.first;
}

/* What parts behind this one read is the output of its last stage, as far as
 * that makes it. */
static void find_handed(finder *f)
{
    const ms_graph *graph = f->graph;
    uint32_t last = f->stages->chain.n - 1;
    for (uint32_t u = f->part.last + 1; u < graph->n_units; u++)
        for (uint32_t i = graph->unit_in_at[u]; i < graph->unit_in_at[u + 1];
             i++)
            if (maker_stage(f, graph->unit_in[i]) == last && last > 0)
                f->is_out[graph->unit_in[i]] = 1;
}

/* Who reads what an earlier stage has made: the next one, or others too. */
static void find_readers(finder *f)
{
    const ms_graph *graph = f->graph;
    for (uint32_t u = 0; u < graph->n_units; u++)
        for (uint32_t i = graph->unit_in_at[u]; i < graph->unit_in_at[u + 1];
             i++) {
            uint32_t s = graph->unit_in[i], from = maker_stage(f, s);
            uint32_t *first = &f->stages->first_reader[s];
            if (from >= f->stage_of[u] || is_others(f, u, s))
                continue;
            if (from + 1 == f->stage_of[u])
                f->is_out[s] = 1;
            else
                f->stages->is_kept[s] = 1;
            *first = *first == 0 ? f->stage_of[u] : *first; /* in order */
        }
    find_handed(f);
    /* The training loop's own variables hold these. */
    for (uint32_t i = 0; i < graph->n_kept; i++) {
        f->stages->is_kept[graph->kept[i]] = 1;
        f->stages->first_reader[graph->kept[i]] = 0;
    }
}

static bool is_output(const finder *f, uint32_t storage)
{
    return f->is_out[storage] && !f->stages->is_kept[storage];
}

/* ---- what a pass of a stage does to memory ------------------------------- */

typedef struct level {
    int64_t bytes, peak_bytes;
} level;

static void walk_out(finder *f, uint32_t storage, bool saves, level *at)
{
    const ms_graph *graph = f->graph;
    uint8_t refs = 0;
    if (storage < graph->n_persistent)
        return;
    if (graph->storage_local_end[storage] != MS_NONE)
        refs |= REF_LOCAL;
    if (saves && graph->storage_saved_end[storage] != MS_NONE)
        refs |= REF_SAVED;
    f->refs[storage] = refs;
    at->bytes += (int64_t)graph->storage_bytes[storage];
}

static void walk_drop(finder *f, uint32_t drop, level *at)
{
    uint32_t storage = MS_DROP_STORAGE(drop);
    uint8_t bit = drop & MS_DROP_SAVED ? REF_SAVED : REF_LOCAL;
    uint8_t before = f->refs[storage];
    f->refs[storage] = before & (uint8_t)~bit;
    if (before != 0 && f->refs[storage] == 0)
        at->bytes -= (int64_t)f->graph->storage_bytes[storage];
}

/* Is output i of the op one that it makes only where a node saves it? */
static bool is_spared(const ms_graph *graph, uint32_t op, uint32_t i)
{
    return graph->op_flags[op] & MS_OP_SPARES && i > graph->out_at[op] &&
           graph->storage_saved_end[graph->out[i]] != MS_NONE;
}

/* Ops [first, end) from level 0 on: what they do not make stays. */
static level walk(finder *f, uint32_t first, uint32_t end, bool saves)
{
    const ms_graph *graph = f->graph;
    level at = {0, 0};
    for (uint32_t op = first; op < end; op++) {
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            if (saves || !is_spared(graph, op, i))
                walk_out(f, graph->out[i], saves, &at);
        if (at.bytes > at.peak_bytes)
            at.peak_bytes = at.bytes;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            if (graph->out[i] >= graph->n_persistent &&
                f->refs[graph->out[i]] == 0 &&
                (saves || !is_spared(graph, op, i)))
                at.bytes -= (int64_t)graph->storage_bytes[graph->out[i]];
        for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++)
            walk_drop(f, graph->drop[i], &at);
    }
    return at;
}

static void forget(finder *f, uint32_t first, uint32_t end)
{
    for (uint32_t i = f->graph->out_at[first]; i < f->graph->out_at[end]; i++)
        f->refs[f->graph->out[i]] = 0;
}

/* What a pass over ops [first, end) takes at most, from level 0 on. */
static uint64_t highest(finder *f, uint32_t first, uint32_t end, bool saves)
{
    level at = walk(f, first, end, saves);
    forget(f, first, end);
    return (uint64_t)at.peak_bytes;
}

static uint64_t beyond(uint64_t peak_bytes, uint64_t bytes)
{
    return peak_bytes > bytes ? peak_bytes - bytes : 0;
}

static uint64_t sum_ns(const ms_graph *graph, uint32_t first, uint32_t end)
{
    uint64_t ns = 0;
    for (uint32_t op = first; op < end; op++)
        ns += graph->op_ns[op];
    return ns;
}

/* Gradients of weights that do not exist before the step. */
static uint64_t left_bytes(const ms_graph *graph, uint32_t first, uint32_t end)
{
    uint64_t bytes = 0;
    for (uint32_t op = first; op < end; op++) {
        if (graph->op_pass[op] != MS_ACCUMULATE)
            continue;
        uint32_t grad = graph->out[graph->out_at[op]];
        bytes += graph->storage_at_start[grad] ? 0 : graph->storage_bytes[grad];
    }
    return bytes;
}

/* Ops that lead to nothing that the backwards of ops [first, end) need, which
 * begin with op `back`: a replay that ends here leaves them out. */
static uint64_t tail_ns(finder *f, uint32_t first, uint32_t end, uint32_t back)
{
    const ms_graph *graph = f->graph;
    uint64_t ns = 0;
    for (uint32_t op = end; op-- > first;) {
        bool wanted = false;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
            uint32_t s = graph->out[i], saved = graph->storage_saved_end[s];
            wanted |= f->refs[s] || (saved != MS_NONE && saved >= back &&
                                     !f->stages->is_kept[s]);
        }
        ns += wanted ? 0 : graph->op_ns[op];
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            f->refs[graph->in[i]] |= wanted;
    }
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        f->refs[graph->in[i]] = 0;
    return ns;
}

/* ---- all of it ----------------------------------------------------------- */

static void list_outputs(finder *f, uint32_t l, uint32_t first, uint32_t end,
                         ms_chain_stage *stage)
{
    const ms_graph *graph = f->graph;
    uint32_t *n = &f->stages->out_at[l + 1];
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++) {
        uint32_t s = graph->out[i];
        bool output = is_output(f, s);
        if (output)
            f->stages->out[(*n)++] = s;
        stage->output_bytes += output ? graph->storage_bytes[s] : 0;
        if (output ||
            (graph->storage_saved_end[s] != MS_NONE && !f->stages->is_kept[s]))
            stage->saved_bytes += graph->storage_bytes[s];
    }
}

static void measure_forward(finder *f, uint32_t l, ms_chain_stage *stage)
{
    const ms_graph *graph = f->graph;
    uint32_t first = graph->forward_at[f->stages->first[l]];
    uint32_t end = graph->forward_at[f->stages->last[l] + 1];
    *stage = (ms_chain_stage){.forward_ns = sum_ns(graph, first, end)};
    f->stages->out_at[l + 1] = f->stages->out_at[l];
    list_outputs(f, l, first, end, stage);
    uint64_t plain = beyond(highest(f, first, end, false), stage->output_bytes);
    uint64_t saved = beyond(highest(f, first, end, true), stage->saved_bytes);
    stage->forward_extra_bytes = plain > saved ? plain : saved;
}

/* What the stage has saved ends with its nodes, one by one, and so does the
 * gradient of its output, which the stage behind has made. */
static void measure_backward(finder *f, uint32_t l, ms_chain_stage *stage)
{
    const ms_graph *graph = f->graph;
    const ms_stages *stages = f->stages;
    uint32_t first = graph->backward_at[stages->last[l] + 1];
    uint32_t end = graph->backward_at[stages->first[l]];
    uint32_t from = graph->forward_at[stages->first[l]];
    uint32_t to = graph->forward_at[stages->last[l] + 1];
    stage->tail_ns = tail_ns(f, from, to, first);
    for (uint32_t i = graph->out_at[from]; i < graph->out_at[to]; i++)
        if (graph->storage_saved_end[graph->out[i]] != MS_NONE &&
            !stages->is_kept[graph->out[i]])
            f->refs[graph->out[i]] = REF_SAVED;
    stage->backward_ns = sum_ns(graph, first, end);
    stage->backward_extra_bytes =
        (uint64_t)walk(f, first, end, false).peak_bytes;
    stage->left_bytes = left_bytes(graph, first, end);
    forget(f, from, to);
}

/* The batch, or what other parts hand to this one. */
static uint64_t input_bytes(finder *f)
{
    const ms_graph *graph = f->graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent && f->part.first == 0; s++)
        if (graph->storage_category[s] == MS_INPUTS)
            bytes += graph->storage_bytes[s];
    for (uint32_t i = graph->unit_in_at[f->part.first];
         i < graph->unit_in_at[f->part.last + 1] && f->part.first > 0; i++) {
        uint32_t s = graph->unit_in[i];
        bool counts = s >= graph->n_persistent && f->refs[s] == 0 &&
                      is_others(f, f->part.first, s);
        bytes += counts ? graph->storage_bytes[s] : 0;
        f->refs[s] |= counts ? REF_LOCAL : 0;
    }
    return bytes;
}

ms_err ms_stages_find(const ms_graph *graph, const ms_stage *part,
                      ms_arena *arena, ms_stages *stages, ms_fault *fault)
{
    finder f = {.graph = graph,
                .part = *part,
                .arena = arena,
                .stages = stages,
                .fault = fault};
    *stages = (ms_stages){0};
    MS_TRY(number_stages(&f));
    uint32_t n = stages->chain.n;
    bool is_all = f.part.first == 0 && f.part.last + 1 == graph->n_units;
    if (is_all && (n < 2 || graph->loss_unit >= graph->n_units))
        return ms_fail(fault, MS_EUSAGE, "checkpoint", "leave it out",
                       "the model has no layers before its loss");
    ms_chain_stage *rows = ms_arena_take(arena, n + 1u, sizeof *rows);
    stages->out_at = ms_arena_take(arena, n + 2u, sizeof *stages->out_at);
    stages->out =
        ms_arena_take_raw(arena, graph->n_storages, sizeof *stages->out);
    stages->is_kept = ms_arena_take(arena, graph->n_storages, 1);
    stages->first_reader =
        ms_arena_take(arena, graph->n_storages, sizeof *stages->first_reader);
    f.is_out = ms_arena_take(arena, graph->n_storages, 1);
    f.refs = ms_arena_take(arena, graph->n_storages, 1);
    if (rows == NULL || stages->out_at == NULL || stages->out == NULL ||
        stages->is_kept == NULL || stages->first_reader == NULL ||
        f.is_out == NULL || f.refs == NULL)
        return ms_fail_nomem(fault);
    find_readers(&f);
    for (uint32_t l = 1; l <= n; l++)
        measure_forward(&f, l, &rows[l]);
    for (uint32_t l = n; l > 0; l--)
        measure_backward(&f, l, &rows[l]);
    stages->chain.stages = rows;
    stages->chain.input_bytes = input_bytes(&f);
    return MS_OK;
}
