/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/saved.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

#include <string.h>

typedef struct finder {
    const ms_graph *graph;
    ms_arena *arena;
    ms_program *into;
    ms_saved *saved;
    ms_fault *fault;
    uint8_t *kept;         /* per storage: does it wait for backward? */
    uint32_t *last_reader; /* per storage: the last unit that touches it */
    uint32_t *at, *list;   /* CSR: kept storages by unit */
    uint32_t *inputs;      /* room for the inputs of a unit */
} finder;

static ms_err take_columns(finder *f)
{
    uint32_t units = f->graph->n_units, storages = f->graph->n_storages;
    ms_saved *saved = f->saved;
    uint32_t **const columns[] = {&saved->unit_set,   &saved->input_set,
                                  &saved->block_of,   &saved->block_first,
                                  &saved->block_last, &saved->block_set};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        *columns[i] = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
        if (*columns[i] == NULL)
            return ms_fail_nomem(f->fault);
    }
    f->kept = ms_arena_take(f->arena, storages, 1);
    f->last_reader = ms_arena_take_raw(f->arena, storages, sizeof(uint32_t));
    f->at = ms_arena_take(f->arena, (size_t)units + 1, sizeof(uint32_t));
    f->list = ms_arena_take_raw(f->arena, storages, sizeof(uint32_t));
    f->inputs = ms_arena_take_raw(f->arena, storages, sizeof(uint32_t));
    if (f->kept == NULL || f->last_reader == NULL || f->at == NULL ||
        f->list == NULL || f->inputs == NULL)
        return ms_fail_nomem(f->fault);
    memset(f->last_reader, 0xff, storages * sizeof(uint32_t));
    return MS_OK;
}

static void mark_set(finder *f, const ms_program *program, uint32_t set)
{
    if (set == MS_ALL || set == MS_NOTHING)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        f->kept[program->set_item[i]] = 1;
}

void ms_saved_replayed(const ms_graph *graph, const ms_program *program,
                       uint8_t *replayed)
{
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RERUN)
            continue;
        for (uint32_t k = graph->unit_in_at[call->unit];
             k < graph->unit_in_at[call->last + 1]; k++)
            replayed[graph->unit_in[k]] = 1;
    }
}

/* What a stage of a pipeline is handed for its replays it holds from then on.
 */
static void mark_held(finder *f, const ms_program *program, const ms_call *call,
                      const uint8_t *replayed)
{
    if (call->set == MS_ALL || call->set == MS_NOTHING)
        return;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++)
        f->kept[program->set_item[i]] |= replayed[program->set_item[i]];
}

/* Marks what a forward leaves behind: saved tensors that it keeps, and inputs
 * of checkpoints that it holds. */
static void mark_kept(finder *f, const ms_program *program, const ms_call *call)
{
    const ms_graph *graph = f->graph;
    uint32_t end = graph->out_at[graph->forward_at[call->unit + 1]];
    mark_set(f, program, call->run.keep);
    mark_set(f, program, call->set);
    if (call->run.keep != MS_ALL)
        return;
    for (uint32_t i = graph->out_at[graph->forward_at[call->unit]]; i < end;
         i++)
        f->kept[graph->out[i]] |=
            graph->storage_saved_end[graph->out[i]] != MS_NONE;
}

/* Units are visited in ascending order, so that the last one to touch a storage
 * is what stays. */
static void find_readers(finder *f)
{
    const ms_graph *graph = f->graph;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t first = graph->forward_at[u], end = graph->forward_at[u + 1];
        for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
            f->last_reader[graph->in[i]] = u;
        for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++)
            f->last_reader[graph->out[i]] = u;
    }
}

static void find_blocks(finder *f)
{
    const ms_graph *graph = f->graph;
    ms_saved *saved = f->saved;
    uint32_t before = MS_NONE;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = graph->n_blocks > 0    ? graph->unit_block[u]
                         : u < graph->loss_unit ? u
                                                : MS_NONE;
        saved->block_of[u] = MS_NONE;
        if (block == MS_NONE) {
            before = block;
            continue;
        }
        if (block != before)
            saved->block_first[saved->n_blocks++] = u;
        saved->block_of[u] = saved->n_blocks - 1;
        saved->block_last[saved->n_blocks - 1] = u;
        before = block;
    }
}

/* Groups the kept storages by unit, each group in order: CSR over f->list. */
static void group_by_unit(finder *f, uint64_t min_bytes)
{
    const ms_graph *graph = f->graph;
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++) {
        f->kept[s] &= graph->storage_bytes[s] >= min_bytes;
        if (f->kept[s])
            f->at[f->last_reader[s] + 1]++;
    }
    for (uint32_t u = 0; u < graph->n_units; u++)
        f->at[u + 1] += f->at[u];
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (f->kept[s])
            f->list[f->at[f->last_reader[s]]++] = s;
    for (uint32_t u = graph->n_units; u > 0; u--)
        f->at[u] = f->at[u - 1];
    f->at[0] = 0;
}

static ms_err add_unit_sets(finder *f, uint32_t unit)
{
    const ms_graph *graph = f->graph;
    const uint32_t *list = f->list + f->at[unit];
    uint32_t n = f->at[unit + 1] - f->at[unit], n_inputs = 0;
    for (uint32_t i = 0; i < n; i++)
        if (graph->op_unit[graph->storage_maker[list[i]]] != unit)
            f->inputs[n_inputs++] = list[i];
    MS_TRY(ms_program_add_set(f->into, list, n, f->arena,
                              &f->saved->unit_set[unit], f->fault));
    return ms_program_add_set(f->into, f->inputs, n_inputs, f->arena,
                              &f->saved->input_set[unit], f->fault);
}

/* The units of a block are neighbours, and so are their storages in the list:
 * the set of a block is one stretch of it. */
static ms_err add_block_set(finder *f, uint32_t block)
{
    uint32_t first = f->at[f->saved->block_first[block]];
    uint32_t end = f->at[f->saved->block_last[block] + 1];
    return ms_program_add_set(f->into, f->list + first, end - first, f->arena,
                              &f->saved->block_set[block], f->fault);
}

/* What stays where it is leaves the set before readers and blocks are sought,
 * so that it is in no group. */
ms_err ms_saved_find_others(const ms_graph *graph, const ms_program *program,
                            uint64_t min_bytes, const uint8_t *stays,
                            const uint8_t *replayed, ms_arena *arena,
                            ms_program *into, ms_saved *saved, ms_fault *fault)
{
    finder f = {.graph = graph,
                .arena = arena,
                .into = into,
                .saved = saved,
                .fault = fault};
    *saved = (ms_saved){.graph = graph};
    MS_TRY(take_columns(&f));
    saved->kept = f.kept;
    saved->last_reader = f.last_reader;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb == MS_RUN && call->run.pass == MS_FORWARD)
            mark_kept(&f, program, call);
        else if (call->verb == MS_HOLD && program->n_stages > 0 &&
                 replayed != NULL)
            mark_held(&f, program, call, replayed);
    }
    for (uint32_t s = 0; stays != NULL && s < graph->n_storages; s++)
        f.kept[s] &= !stays[s];
    find_readers(&f);
    find_blocks(&f);
    group_by_unit(&f, min_bytes);
    for (uint32_t u = 0; u < graph->n_units; u++)
        MS_TRY(add_unit_sets(&f, u));
    for (uint32_t b = 0; b < saved->n_blocks; b++)
        MS_TRY(add_block_set(&f, b));
    return MS_OK;
}

ms_err ms_saved_find(const ms_graph *graph, const ms_program *program,
                     uint64_t min_bytes, ms_arena *arena, ms_program *into,
                     ms_saved *saved, ms_fault *fault)
{
    return ms_saved_find_others(graph, program, min_bytes, NULL, NULL, arena,
                                into, saved, fault);
}

bool ms_saved_is_linear(const ms_graph *graph, uint32_t op)
{
    return graph->op_kind[op] == MS_KIND_MM ||
           graph->op_kind[op] == MS_KIND_ADDMM;
}
