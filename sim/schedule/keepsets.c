/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/keepsets.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

typedef struct finder {
    const ms_graph *graph;
    const ms_keep *keep;
    const ms_schedule *schedule;
    const uint32_t *stage_of; /* per unit */
    ms_arena *arena;
    ms_program *program;
    ms_fault *fault;
    ms_keepsets *sets;
    uint32_t *held;         /* per storage: a segment of this stage holds it, 1
                               and up; 0: none */
    uint32_t *entered;      /* the same of what replays get from other stages */
    uint8_t *segment_reads; /* per storage: does a segment's backward read it,
                               on its maker's rank?  2: listed */
    uint32_t *list, *other; /* room for n_storages */
} finder;

static bool has_backward(const ms_graph *graph)
{
    return graph->backward_at[0] > graph->backward_at[graph->n_units];
}

static ms_err take_columns(finder *f)
{
    uint32_t units = f->graph->n_units, storages = f->graph->n_storages;
    uint32_t stages = f->schedule->n_stages;
    ms_keepsets *sets = f->sets;
    sets->kept = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->held = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->segment_of = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->segments = ms_arena_take_raw(f->arena, units, sizeof *sets->segments);
    sets->outside = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->outside_drop = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->remade = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->release = ms_arena_take_raw(f->arena, units, sizeof(uint32_t));
    sets->entry = ms_arena_take_raw(f->arena, stages, sizeof(uint32_t));
    sets->between = ms_arena_take_raw(f->arena, stages, sizeof(uint32_t));
    sets->retained = ms_arena_take_raw(f->arena, stages, sizeof(uint32_t));
    sets->outputs = ms_arena_take_raw(f->arena, stages, sizeof(uint32_t));
    f->list = ms_arena_take_raw(f->arena, storages, sizeof(uint32_t));
    f->other = ms_arena_take_raw(f->arena, storages, sizeof(uint32_t));
    f->entered = ms_arena_take(f->arena, storages, sizeof(uint32_t));
    if (!sets->kept || !sets->held || !sets->segment_of || !sets->segments ||
        !sets->outside || !sets->outside_drop || !sets->remade ||
        !sets->release || !sets->entry || !sets->between || !sets->retained ||
        !sets->outputs || !f->list || !f->other || !f->entered)
        return ms_fail_nomem(f->fault);
    return MS_OK;
}

/* What is known of storages where there are segments. */
static ms_err take_readers(finder *f)
{
    uint32_t storages = f->graph->n_storages;
    if (f->sets->n_segments == 0)
        return MS_OK;
    f->sets->open_reader =
        ms_arena_take_raw(f->arena, storages, sizeof(uint32_t));
    f->held = ms_arena_take(f->arena, storages, sizeof(uint32_t));
    f->segment_reads = ms_arena_take(f->arena, storages, 1);
    if (!f->sets->open_reader || !f->held || !f->segment_reads)
        return ms_fail_nomem(f->fault);
    memset(f->sets->open_reader, 0xff, storages * sizeof(uint32_t));
    return MS_OK;
}

/* Whose forward or backward makes it, of what a micro-batch makes. */
static uint32_t stage_of_maker(const finder *f, uint32_t s)
{
    return f->stage_of[f->graph->op_unit[f->graph->storage_maker[s]]];
}

static bool is_own_rank(const finder *f, uint32_t s, uint32_t unit)
{
    const ms_stage *stages = f->schedule->stages;
    return f->schedule->n_ranks == 1 ||
           stages[stage_of_maker(f, s)].rank == stages[f->stage_of[unit]].rank;
}

static ms_err add_set(finder *f, const uint32_t *list, uint32_t n,
                      uint32_t *set)
{
    return ms_program_add_set(f->program, list, n, f->arena, set, f->fault);
}

/* Neighbours of one segment, as far as a stage goes. */
static void find_segments(finder *f)
{
    ms_keepsets *sets = f->sets;
    uint32_t before = MS_NONE;
    bool replayed = has_backward(f->graph);
    for (uint32_t u = 0; u < f->graph->n_units; u++) {
        uint32_t id = replayed ? f->keep->segment[u] : MS_NONE;
        bool begins = u > 0 && f->stage_of[u] != f->stage_of[u - 1];
        sets->segment_of[u] = MS_NONE;
        if (id != MS_NONE) {
            if (id != before || begins)
                sets->segments[sets->n_segments++] = (ms_keepspan){.first = u};
            sets->segment_of[u] = sets->n_segments - 1;
            sets->segments[sets->n_segments - 1].last = u;
        }
        before = id;
    }
}

static void find_readers(finder *f)
{
    const ms_graph *graph = f->graph;
    uint32_t *open_reader = f->sets->open_reader;
    for (uint32_t u = 0; u < graph->n_units && f->sets->n_segments > 0; u++) {
        bool open = f->sets->segment_of[u] == MS_NONE;
        uint32_t end = graph->in_at[graph->backward_at[u]];
        for (uint32_t i = graph->in_at[graph->backward_at[u + 1]]; i < end;
             i++) {
            uint32_t s = graph->in[i];
            if (s < graph->n_persistent || !is_own_rank(f, s, u))
                continue;
            bool behind = graph->storage_maker[s] >= graph->forward_at[u + 1];
            if (!open)
                /* a gradient that the loss made is no input of a replay */
                f->segment_reads[s] |= !behind;
            else if (open_reader[s] == MS_NONE)
                open_reader[s] = u;
        }
    }
}

/* Was it made in a segment and saved by a unit in none?  The output of the
 * last segment is: the final norm, which is not replayed, saved it.  It stays
 * until that backward has run; the segment, if it needs it, makes it anew. */
static bool is_outside(const finder *f, uint32_t s)
{
    const ms_graph *graph = f->graph;
    uint32_t maker = graph->storage_maker[s];
    return f->keep->place[s] == MS_GONE && f->sets->open_reader[s] != MS_NONE &&
           s >= graph->n_persistent &&
           maker < graph->forward_at[graph->n_units] &&
           f->sets->segment_of[graph->op_unit[maker]] != MS_NONE;
}

/* A unit in a segment makes such storages, one in none is the last to read
 * them. */
static ms_err find_outside(finder *f, uint32_t unit)
{
    const ms_graph *graph = f->graph;
    ms_keepsets *sets = f->sets;
    bool open = sets->segment_of[unit] == MS_NONE;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]], n = 0;
    sets->outside[unit] = sets->outside_drop[unit] = MS_NOTHING;
    if (sets->n_segments == 0)
        return MS_OK;
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end && !open;
         i++)
        if (is_outside(f, graph->out[i]))
            f->list[n++] = graph->out[i];
    MS_TRY(add_set(f, f->list, n, &sets->outside[unit]));
    n = 0;
    end = graph->in_at[graph->backward_at[unit]];
    for (uint32_t i = graph->in_at[graph->backward_at[unit + 1]];
         i < end && open; i++) {
        uint32_t s = graph->in[i];
        if (sets->open_reader[s] != unit || !is_outside(f, s) ||
            f->segment_reads[s] == 2)
            continue;
        f->segment_reads[s] = 2; /* listed: other ops may read it, too */
        f->list[n++] = s;
    }
    return add_set(f, f->list, n, &sets->outside_drop[unit]);
}

/* What the segment reads from outside and no earlier one of its stage reads:
 * the maker's run holds it or, of what other stages make, the entry to its own
 * stage. */
static ms_err hold_inputs(finder *f, ms_keepspan *segment, uint32_t *n_entry)
{
    const ms_graph *graph = f->graph;
    uint32_t stage = f->stage_of[segment->first];
    uint32_t first = graph->unit_in_at[segment->first];
    uint32_t end = graph->unit_in_at[segment->last + 1], n = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->unit_in[i];
        bool outside = graph->op_unit[graph->storage_maker[s]] < segment->first;
        bool enters = outside && stage_of_maker(f, s) != stage;
        uint32_t *by = enters ? &f->entered[s] : &f->held[s];
        if (!outside || *by == stage + 1)
            continue;
        *by = stage + 1;
        f->list[n++] = s;
        if (enters)
            f->other[(*n_entry)++] = s;
    }
    return add_set(f, f->list, n, &segment->drop);
}

/* Has forward dropped it, to be made again alone? */
static bool is_remade(const finder *f, uint32_t s)
{
    const ms_graph *graph = f->graph;
    uint32_t maker = graph->storage_maker[s];
    return s >= graph->n_persistent && f->keep->place[s] == MS_GONE &&
           maker < graph->forward_at[graph->n_units] &&
           f->sets->segment_of[graph->op_unit[maker]] == MS_NONE;
}

static bool has_remade(const finder *f, uint32_t unit)
{
    const ms_graph *graph = f->graph;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end; i++)
        if (is_remade(f, graph->out[i]))
            return true;
    return false;
}

/* The same of a unit in no segment some of whose storages are made again. */
static ms_err hold_unit_inputs(finder *f, uint32_t unit, uint32_t *n_entry)
{
    const ms_graph *graph = f->graph;
    uint32_t stage = f->stage_of[unit], first = *n_entry;
    uint32_t end = has_remade(f, unit) ? graph->unit_in_at[unit + 1] : 0;
    for (uint32_t i = graph->unit_in_at[unit]; i < end; i++) {
        uint32_t s = graph->unit_in[i];
        if (stage_of_maker(f, s) == stage || f->entered[s] == stage + 1)
            continue;
        f->entered[s] = stage + 1;
        f->other[(*n_entry)++] = s;
    }
    return add_set(f, f->other + first, *n_entry - first,
                   &f->sets->release[unit]);
}

static ms_err hold_all_inputs(finder *f)
{
    ms_keepsets *sets = f->sets;
    for (uint32_t k = 0; k < f->schedule->n_stages; k++) {
        const ms_stage *stage = &f->schedule->stages[k];
        uint32_t n_entry = 0;
        for (uint32_t u = stage->first; u <= stage->last; u++) {
            uint32_t id = sets->segment_of[u];
            sets->release[u] = MS_NOTHING;
            if (id == MS_NONE)
                MS_TRY(hold_unit_inputs(f, u, &n_entry));
            else if (sets->segments[id].first == u)
                MS_TRY(hold_inputs(f, &sets->segments[id], &n_entry));
        }
        MS_TRY(add_set(f, f->other, n_entry, &sets->entry[k]));
    }
    return MS_OK;
}

/* Gradients that the segment's backward reads and later units made.  The nested
 * backward of a reentrant checkpoint gets them as arguments of its node, which
 * holds them until it returns (torch/utils/checkpoint.py,
 * CheckpointFunction.backward); others let go of each behind its last use. */
static ms_err find_gradients(finder *f, ms_keepspan *segment)
{
    const ms_graph *graph = f->graph;
    uint32_t stage = f->stage_of[segment->first];
    uint32_t backward = graph->backward_at[graph->n_units];
    uint32_t before = graph->backward_at[segment->last + 1], n = 0;
    uint32_t end = graph->in_at[graph->backward_at[segment->first]];
    segment->grads = MS_NOTHING;
    if (!f->keep->reentrant)
        return MS_OK;
    for (uint32_t i = graph->in_at[before]; i < end; i++) {
        uint32_t s = graph->in[i], maker = graph->storage_maker[s];
        if (s < graph->n_persistent || maker < backward || maker >= before ||
            f->held[s] == stage + 1)
            continue;
        f->held[s] = stage + 1;
        f->list[n++] = s;
    }
    return add_set(f, f->list, n, &segment->grads);
}

/* The saved storages of a unit that stay: all, nothing or a set. */
static ms_err find_kept(finder *f, uint32_t unit)
{
    const ms_graph *graph = f->graph;
    uint32_t first = graph->out_at[graph->forward_at[unit]];
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    uint32_t saved = 0, here = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->out[i];
        if (graph->storage_saved_end[s] == MS_NONE)
            continue;
        saved++;
        /* A storage that only segments read is held for them and not saved. */
        bool held = f->segment_reads && f->segment_reads[s] &&
                    f->sets->open_reader[s] == MS_NONE &&
                    f->sets->segment_of[unit] == MS_NONE;
        if (f->keep->place[s] != MS_GONE && !held)
            f->list[here++] = s;
    }
    f->sets->kept[unit] = MS_ALL;
    return here == saved ? MS_OK
                         : add_set(f, f->list, here, &f->sets->kept[unit]);
}

static ms_err find_held(finder *f, uint32_t unit)
{
    const ms_graph *graph = f->graph;
    uint32_t first = graph->out_at[graph->forward_at[unit]];
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]], n = 0;
    for (uint32_t i = first; i < end && f->held; i++)
        if (f->held[graph->out[i]])
            f->list[n++] = graph->out[i];
    return add_set(f, f->list, n, &f->sets->held[unit]);
}

static ms_err find_outputs(finder *f)
{
    const ms_graph *graph = f->graph;
    for (uint32_t k = 0; k < f->schedule->n_stages; k++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < graph->n_kept; i++)
            if (stage_of_maker(f, graph->kept[i]) == k)
                f->list[n++] = graph->kept[i];
        MS_TRY(add_set(f, f->list, n, &f->sets->outputs[k]));
    }
    return MS_OK;
}

static ms_err find_retained(finder *f)
{
    const ms_graph *graph = f->graph;
    bool retains = f->schedule->keeps.graphs && ms_schedule_splits(f->schedule);
    for (uint32_t k = 0; k < f->schedule->n_stages; k++) {
        const ms_stage *stage = &f->schedule->stages[k];
        uint32_t first = graph->out_at[graph->forward_at[stage->first]];
        uint32_t end = graph->out_at[graph->forward_at[stage->last + 1]], n = 0;
        for (uint32_t i = first; i < end && retains; i++) {
            uint32_t s = graph->out[i];
            uint32_t unit = graph->op_unit[graph->storage_maker[s]];
            if (graph->storage_saved_end[s] != MS_NONE &&
                s >= graph->n_persistent && f->keep->place[s] != MS_GONE &&
                f->sets->segment_of[unit] == MS_NONE)
                f->list[n++] = s;
        }
        MS_TRY(add_set(f, f->list, n, &f->sets->retained[k]));
    }
    return MS_OK;
}

/* Appends the items of the set to the list. */
static uint32_t append_set(finder *f, uint32_t set, uint32_t n)
{
    const ms_program *program = f->program;
    if (set == MS_NOTHING)
        return n;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        f->list[n++] = program->set_item[i];
    return n;
}

/* listed: per storage, unit + 1 where the unit has it already. */
static ms_err find_unit_remade(finder *f, const uint8_t *second,
                               uint32_t *listed, uint32_t unit)
{
    const ms_graph *graph = f->graph;
    uint32_t n = 0;
    for (uint32_t op = graph->backward_at[unit + 1];
         op < graph->backward_at[unit]; op++)
        for (uint32_t i = graph->in_at[op];
             second[op] && i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            if (listed[s] == unit + 1 || !is_remade(f, s))
                continue;
            listed[s] = unit + 1;
            f->list[n++] = s;
        }
    MS_TRY(add_set(f, f->list, n, &f->sets->remade[unit]));
    n = append_set(f, f->sets->release[unit], n);
    return add_set(f, f->list, n, &f->sets->release[unit]);
}

static ms_err find_remade(finder *f, const uint8_t *second)
{
    uint32_t *listed =
        ms_arena_take(f->arena, f->graph->n_storages, sizeof *listed);
    if (listed == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t u = 0; u < f->graph->n_units; u++)
        MS_TRY(find_unit_remade(f, second, listed, u));
    return MS_OK;
}

/* f->entered: rank + 1 where a stage of the rank that is before the one at hand
 * touches a storage in backward. */
static uint32_t list_between(finder *f, const uint8_t *second, uint32_t k)
{
    const ms_graph *graph = f->graph;
    const ms_stage *stage = &f->schedule->stages[k];
    uint32_t mark = stage->rank + 1u, n = 0;
    uint32_t first = graph->backward_at[stage->last + 1];
    uint32_t end = graph->backward_at[stage->first];
    for (uint32_t op = first; op < end; op++)
        for (uint32_t i = graph->in_at[op];
             second[op] && i < graph->in_at[op + 1]; i++)
            if (f->entered[graph->in[i]] == mark &&
                graph->in[i] >= graph->n_persistent) {
                f->entered[graph->in[i]] = 0; /* listed once; marked below */
                f->list[n++] = graph->in[i];
            }
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        f->entered[graph->in[i]] = mark;
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++)
        f->entered[graph->out[i]] = mark;
    for (uint32_t i = 0; i < n; i++)
        f->entered[f->list[i]] = mark;
    return n;
}

static ms_err find_between(finder *f, const uint8_t *second)
{
    uint32_t stages = f->schedule->n_stages;
    if (stages == f->schedule->n_ranks)
        return MS_OK;
    memset(f->entered, 0, f->graph->n_storages * sizeof *f->entered);
    for (uint32_t r = 0; r < f->schedule->n_ranks; r++)
        for (uint32_t k = 0; k < stages; k++)
            if (f->schedule->stages[k].rank == r)
                MS_TRY(add_set(f, f->list, list_between(f, second, k),
                               &f->sets->between[k]));
    return MS_OK;
}

/* What the halves of backward need. */
static ms_err find_halves(finder *f)
{
    for (uint32_t k = 0; k < f->schedule->n_stages; k++)
        f->sets->between[k] = MS_NOTHING;
    for (uint32_t u = 0; u < f->graph->n_units; u++)
        f->sets->remade[u] = MS_NOTHING;
    if (!ms_schedule_splits(f->schedule))
        return MS_OK;
    uint8_t *second = ms_arena_take_raw(f->arena, f->graph->n_ops, 1);
    if (second == NULL)
        return ms_fail_nomem(f->fault);
    ms_stage_halves(f->graph, second);
    MS_TRY(find_between(f, second));
    return find_remade(f, second);
}

ms_err ms_keepsets_find(const ms_graph *graph, const ms_keep *keep,
                        const ms_schedule *schedule, const uint32_t *stage_of,
                        ms_arena *arena, ms_program *program, ms_keepsets *sets,
                        ms_fault *fault)
{
    finder f = {.graph = graph,
                .keep = keep,
                .schedule = schedule,
                .stage_of = stage_of,
                .arena = arena,
                .program = program,
                .fault = fault,
                .sets = sets};
    *sets = (ms_keepsets){0};
    MS_TRY(take_columns(&f));
    find_segments(&f);
    MS_TRY(take_readers(&f));
    find_readers(&f);
    MS_TRY(hold_all_inputs(&f));
    for (uint32_t i = 0; i < sets->n_segments; i++)
        MS_TRY(find_gradients(&f, &sets->segments[i]));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        MS_TRY(find_kept(&f, u));
        MS_TRY(find_held(&f, u));
    }
    for (uint32_t u = 0; u < graph->n_units; u++)
        MS_TRY(find_outside(&f, u));
    MS_TRY(find_halves(&f));
    MS_TRY(find_retained(&f));
    return find_outputs(&f);
}

void ms_keepsets_drop(ms_keepsets *sets, ms_arena *arena)
{
    ms_arena_drop(arena, sets->kept);
    ms_arena_drop(arena, sets->held);
    ms_arena_drop(arena, sets->segment_of);
    ms_arena_drop(arena, sets->segments);
    ms_arena_drop(arena, sets->outside);
    ms_arena_drop(arena, sets->outside_drop);
    ms_arena_drop(arena, sets->remade);
    ms_arena_drop(arena, sets->release);
    ms_arena_drop(arena, sets->open_reader);
    *sets = (ms_keepsets){0};
}
