/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/classes/classes.h"

#include "sim/graph.h"

#include <string.h>

typedef struct sort_state {
    ms_classes *classes;
    const ms_graph *graph;
    ms_arena *arena, *scratch;
    ms_fault *fault;
    uint32_t *low, *high; /* per storage: units that touch it, or MS_NONE */
    uint32_t *far;        /* per storage: the only one far away, or these: */
    uint32_t *next;       /* per owner: the place of its next storage */
    uint32_t *stamp;      /* per owner: the last class that listed it */
    int32_t *list;        /* the owners of the class under way */
    uint32_t n_list, tick;
    uint32_t *word, n_words, words_capacity;
    ms_intern kinds, ids;
} sort_state;

/* Called for each storage that ops of a side touch, in order. */
typedef void visit_fn(sort_state *sorter, uint32_t unit, uint32_t storage);

void ms_classes_ops(const ms_graph *graph, uint32_t unit, ms_class_side side,
                    uint32_t *first, uint32_t *end)
{
    bool forward = side == MS_CLASS_FORWARD;
    *first = forward ? graph->forward_at[unit] : graph->backward_at[unit + 1];
    *end = forward ? graph->forward_at[unit + 1] : graph->backward_at[unit];
}

static void visit_op(sort_state *sorter, uint32_t unit, uint32_t op,
                     visit_fn *visit)
{
    const ms_graph *graph = sorter->graph;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        visit(sorter, unit, graph->in[i]);
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        visit(sorter, unit, graph->out[i]);
    for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++)
        visit(sorter, unit, MS_DROP_STORAGE(graph->drop[i]));
}

static void visit_side(sort_state *sorter, uint32_t unit, ms_class_side side,
                       visit_fn *visit)
{
    uint32_t first, end;
    ms_classes_ops(sorter->graph, unit, side, &first, &end);
    for (uint32_t op = first; op < end; op++)
        visit_op(sorter, unit, op, visit);
}

static void visit_units(sort_state *sorter, visit_fn *visit)
{
    const ms_graph *graph = sorter->graph;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        visit_side(sorter, u, MS_CLASS_FORWARD, visit);
        visit_side(sorter, u, MS_CLASS_BACKWARD, visit);
        if (graph->unit_state != NULL)
            visit(sorter, u, graph->unit_state[u]);
    }
}

/* ---- owners -------------------------------------------------------------- */

static void note_reach(sort_state *sorter, uint32_t unit, uint32_t storage)
{
    if (sorter->low[storage] == MS_NONE)
        sorter->low[storage] = unit;
    sorter->high[storage] = unit;
}

#define NO_FAR MS_NONE
#define MANY_FAR (MS_NONE - 1)

/* The unit that makes a storage, or the first that touches it. */
static uint32_t home_of(const sort_state *sorter, uint32_t s)
{
    uint32_t maker = sorter->graph->storage_maker[s];
    return maker != MS_NONE && maker < sorter->graph->step_first
               ? sorter->graph->op_unit[maker]
               : sorter->low[s];
}

static uint32_t owner_of(const sort_state *sorter, uint32_t s)
{
    const ms_classes *classes = sorter->classes;
    if (sorter->low[s] == MS_NONE)
        return classes->rest;
    uint32_t home = home_of(sorter, s);
    bool near = sorter->low[s] + MS_CLASSES_NEAR >= home &&
                sorter->high[s] <= home + MS_CLASSES_NEAR;
    return near ? home : classes->shared;
}

static void note_far(sort_state *sorter, uint32_t unit, uint32_t storage)
{
    uint32_t home, *far = &sorter->far[storage];
    if (sorter->classes->owner[storage] != sorter->classes->shared)
        return;
    home = home_of(sorter, storage);
    if (unit + MS_CLASSES_NEAR >= home && unit <= home + MS_CLASSES_NEAR)
        return;
    *far = *far == NO_FAR || *far == unit ? unit : MANY_FAR;
}

/* Second owners, where more than every other unit could have one. */
static void find_second(sort_state *sorter)
{
    ms_classes *classes = sorter->classes;
    uint32_t n_units = sorter->graph->n_units, n = 0;
    uint32_t n_storages = sorter->graph->n_storages;
    visit_units(sorter, note_far);
    for (uint32_t s = 0; s < n_storages; s++)
        n += sorter->far[s] < MANY_FAR;
    if (n <= n_units / 2)
        return;
    classes->n_owners += n_units;
    for (uint32_t s = 0; s < n_storages; s++)
        if (sorter->far[s] < MANY_FAR)
            classes->owner[s] = classes->rest + 1 + home_of(sorter, s);
}

/* Indices in the order in which units touch them, so that equal units give
 * equal ones. */
static void give_index(sort_state *sorter, uint32_t unit, uint32_t storage)
{
    ms_classes *classes = sorter->classes;
    uint32_t owner = classes->owner[storage];
    (void)unit;
    if (classes->index[storage] != MS_NONE)
        return;
    uint32_t at = sorter->next[owner]++;
    classes->index[storage] = at - classes->cell_at[owner];
    classes->cell[at] = storage;
}

static void find_owners(sort_state *sorter)
{
    ms_classes *classes = sorter->classes;
    uint32_t n_storages = sorter->graph->n_storages;
    memset(sorter->low, 0xff, n_storages * sizeof(uint32_t));
    memset(sorter->far, 0xff, n_storages * sizeof(uint32_t));
    visit_units(sorter, note_reach);
    for (uint32_t s = 0; s < n_storages; s++)
        classes->owner[s] = owner_of(sorter, s);
    find_second(sorter);
    for (uint32_t s = 0; s < n_storages; s++)
        classes->cell_at[classes->owner[s] + 1]++;
    for (uint32_t owner = 0; owner < classes->n_owners; owner++) {
        classes->cell_at[owner + 1] += classes->cell_at[owner];
        sorter->next[owner] = classes->cell_at[owner];
    }
    memset(classes->index, 0xff, n_storages * sizeof(uint32_t));
    visit_units(sorter, give_index);
    for (uint32_t s = 0; s < n_storages; s++)
        give_index(sorter, 0, s);
}

/* An op that makes nothing finishes its first input in place (bind.c). */
static void find_writers(sort_state *sorter)
{
    const ms_graph *graph = sorter->graph;
    ms_classes *classes = sorter->classes;
    uint32_t end = graph->forward_at[graph->n_units];
    memset(classes->writer, 0xff, graph->n_storages * sizeof(uint32_t));
    for (uint32_t op = 0; op < end; op++) {
        uint32_t first = graph->in_at[op];
        if (graph->out_at[op] < graph->out_at[op + 1] ||
            first == graph->in_at[op + 1])
            continue;
        classes->writer_before[op] = classes->writer[graph->in[first]];
        classes->writer[graph->in[first]] = op;
    }
}

/* Of a storage that unit's forward makes or finishes. */
static void note_saved(sort_state *sorter, uint32_t unit, uint32_t storage)
{
    const ms_graph *graph = sorter->graph;
    uint32_t *behind = &sorter->classes->read_behind[unit];
    uint32_t end = graph->storage_saved_end[storage];
    if (end == MS_NONE || end < graph->backward_at[graph->n_units] ||
        end >= graph->step_first)
        return;
    uint32_t at = graph->op_unit[end];
    if (at > unit && at - unit > *behind)
        *behind = at - unit;
}

static void note_finished(sort_state *sorter, uint32_t unit, uint32_t storage)
{
    const ms_graph *graph = sorter->graph;
    uint32_t *before = &sorter->classes->made_before[unit];
    uint32_t maker = graph->storage_maker[storage];
    note_saved(sorter, unit, storage);
    if (maker >= graph->forward_at[graph->n_units]) /* MS_NONE is, too */
        return;
    uint32_t at = graph->op_unit[maker];
    if (at < unit && unit - at > *before)
        *before = unit - at;
}

static void find_reach(sort_state *sorter)
{
    const ms_graph *graph = sorter->graph;
    for (uint32_t u = 0; u < graph->n_units; u++)
        for (uint32_t op = graph->forward_at[u]; op < graph->forward_at[u + 1];
             op++) {
            uint32_t first = graph->out_at[op], end = graph->out_at[op + 1];
            for (uint32_t i = first; i < end; i++)
                note_saved(sorter, u, graph->out[i]);
            if (first == end && graph->in_at[op] < graph->in_at[op + 1])
                note_finished(sorter, u, graph->in[graph->in_at[op]]);
        }
}

/* ---- what a class says --------------------------------------------------- */

static ms_err put(sort_state *sorter, uint32_t word)
{
    if (sorter->n_words == sorter->words_capacity) {
        uint32_t *grown = ms_arena_grow(sorter->scratch, sorter->word,
                                        &sorter->words_capacity,
                                        sorter->n_words + 1, sizeof *grown);
        if (grown == NULL)
            return ms_fail_nomem(sorter->fault);
        sorter->word = grown;
    }
    sorter->word[sorter->n_words++] = word;
    return MS_OK;
}

static ms_err put_long(sort_state *sorter, uint64_t value)
{
    MS_TRY(put(sorter, (uint32_t)value));
    return put(sorter, (uint32_t)(value >> 32));
}

/* An op's place as unit sees it: places that are equal so compare alike. */
static ms_err put_place(sort_state *sorter, uint32_t unit, uint32_t op)
{
    const ms_graph *graph = sorter->graph;
    uint32_t backward = graph->backward_at[graph->n_units];
    if (op == MS_NONE)
        return put(sorter, 0);
    if (op >= graph->step_first) {
        MS_TRY(put(sorter, 3));
        return put(sorter, op - graph->step_first);
    }
    uint32_t in = graph->op_unit[op];
    uint32_t first =
        op < backward ? graph->forward_at[in] : graph->backward_at[in + 1];
    MS_TRY(put(sorter, op < backward ? 1 : 2));
    MS_TRY(put(sorter, in - unit));
    return put(sorter, op - first);
}

/* What it asks of one that ranks share, or that has its home elsewhere. */
static ms_err put_home(sort_state *sorter, uint32_t s)
{
    const ms_graph *graph = sorter->graph;
    uint32_t flags = graph->storage_category[s];
    if (graph->storage_pool != NULL)
        flags |= (uint32_t)graph->storage_pool[s] << 8;
    if (s >= graph->n_persistent)
        return put(sorter, flags);
    if (graph->storage_shard_group != NULL)
        flags |= (uint32_t)graph->storage_shard_group[s] << 16;
    if (graph->storage_whole != NULL)
        flags |= (uint32_t)graph->storage_whole[s] << 24;
    MS_TRY(put(sorter, flags));
    if (graph->storage_shard_bytes != NULL)
        MS_TRY(put_long(sorter, graph->storage_shard_bytes[s]));
    return graph->storage_far_bytes != NULL
               ? put_long(sorter, graph->storage_far_bytes[s])
               : MS_OK;
}

/* What expand asks of a storage.  Those of shared and rest are the same for
 * every unit and need not be told. */
static ms_err put_storage(sort_state *sorter, uint32_t unit, uint32_t s)
{
    const ms_graph *graph = sorter->graph;
    uint32_t flags = graph->storage_refs[s];
    if (s < graph->n_persistent)
        flags |= 0x100u | (uint32_t)graph->storage_at_start[s] << 9;
    MS_TRY(put_long(sorter, graph->storage_bytes[s]));
    MS_TRY(put(sorter, flags));
    MS_TRY(put_home(sorter, s));
    MS_TRY(put_place(sorter, unit, graph->storage_maker[s]));
    MS_TRY(put_place(sorter, unit, graph->storage_local_end[s]));
    MS_TRY(put_place(sorter, unit, graph->storage_saved_end[s]));
    for (uint32_t op = sorter->classes->writer[s]; op != MS_NONE;
         op = sorter->classes->writer_before[op])
        MS_TRY(put_place(sorter, unit, op));
    return put(sorter, MS_NONE);
}

static ms_err find_kinds(sort_state *sorter)
{
    ms_classes *classes = sorter->classes;
    for (uint32_t owner = 0; owner < classes->n_owners; owner++) {
        bool all = owner == classes->shared || owner == classes->rest;
        uint32_t unit =
            owner > classes->rest ? owner - classes->rest - 1 : owner;
        sorter->n_words = 0;
        MS_TRY(put(sorter, all ? owner : 0));
        for (uint32_t i = classes->cell_at[owner];
             i < classes->cell_at[owner + 1] && !all; i++)
            MS_TRY(put_storage(sorter, unit, classes->cell[i]));
        uint32_t known = sorter->kinds.n;
        MS_TRY(ms_intern_add(&sorter->kinds, sorter->word, sorter->n_words,
                             &classes->kind[owner], sorter->fault));
        if (classes->kind[owner] == known)
            classes->kind_first[known] = owner;
    }
    return MS_OK;
}

static void list_owner(sort_state *sorter, uint32_t unit, uint32_t storage)
{
    uint32_t owner = sorter->classes->owner[storage];
    if (sorter->stamp[owner] == sorter->tick)
        return;
    sorter->stamp[owner] = sorter->tick;
    sorter->list[sorter->n_list++] =
        ms_classes_seen(sorter->classes, unit, owner);
}

static ms_err put_name(sort_state *sorter, uint32_t unit, uint32_t storage,
                       uint32_t more)
{
    const ms_classes *classes = sorter->classes;
    uint32_t owner = classes->owner[storage];
    MS_TRY(put(sorter, (uint32_t)ms_classes_seen(classes, unit, owner)));
    return put(sorter, classes->index[storage] << 1 | more);
}

static ms_err put_list(sort_state *sorter, uint32_t unit, const uint32_t *at,
                       const uint32_t *list, bool drops)
{
    MS_TRY(put(sorter, at[1] - at[0]));
    for (uint32_t i = at[0]; i < at[1]; i++)
        MS_TRY(put_name(sorter, unit,
                        drops ? MS_DROP_STORAGE(list[i]) : list[i],
                        drops ? list[i] & MS_DROP_SAVED : 0));
    return MS_OK;
}

static ms_err put_op(sort_state *sorter, uint32_t unit, uint32_t op)
{
    const ms_graph *graph = sorter->graph;
    MS_TRY(put(sorter, graph->op_pass[op] | (uint32_t)graph->op_flags[op] << 8 |
                           (uint32_t)graph->op_stream[op] << 16));
    MS_TRY(put_long(sorter, graph->op_ns[op]));
    if (graph->op_stream[op] != MS_STREAM_COMPUTE)
        MS_TRY(put_long(sorter, graph->op_write_bytes[op]));
    if (graph->op_meets != NULL)
        MS_TRY(put(sorter, graph->op_meets[op]));
    if (graph->op_group != NULL)
        MS_TRY(put(sorter, graph->op_group[op]));
    MS_TRY(put_list(sorter, unit, graph->in_at + op, graph->in, false));
    MS_TRY(put_list(sorter, unit, graph->out_at + op, graph->out, false));
    return put_list(sorter, unit, graph->drop_at + op, graph->drop, true);
}

static ms_err put_side(sort_state *sorter, uint32_t unit, ms_class_side side)
{
    const ms_graph *graph = sorter->graph;
    const ms_classes *classes = sorter->classes;
    uint32_t first, end;
    ms_classes_ops(graph, unit, side, &first, &end);
    sorter->n_words = sorter->n_list = 0;
    sorter->tick++;
    MS_TRY(put(sorter, side));
    MS_TRY(put(sorter, end - first));
    for (uint32_t op = first; op < end; op++)
        MS_TRY(put_op(sorter, unit, op));
    /* Which of its ops a replay in parts will run is a state of the unit. */
    sorter->stamp[unit] = sorter->tick;
    sorter->list[sorter->n_list++] = 0;
    visit_side(sorter, unit, side, list_owner);
    if (graph->unit_state != NULL) {
        MS_TRY(put_name(sorter, unit, graph->unit_state[unit], 0));
        list_owner(sorter, unit, graph->unit_state[unit]);
    }
    for (uint32_t i = 0; i < sorter->n_list; i++) {
        uint32_t owner = ms_classes_owner(classes, unit, sorter->list[i]);
        MS_TRY(put(sorter, (uint32_t)sorter->list[i]));
        MS_TRY(put(sorter, classes->kind[owner]));
    }
    return MS_OK;
}

static ms_err add_class(sort_state *sorter, uint32_t unit, ms_class_side side)
{
    ms_classes *classes = sorter->classes;
    uint32_t id;
    MS_TRY(put_side(sorter, unit, side));
    MS_TRY(ms_intern_add(&sorter->ids, sorter->word, sorter->n_words, &id,
                         sorter->fault));
    classes->of[side][unit] = id;
    if (id < classes->n_classes)
        return MS_OK;
    uint32_t n = sorter->n_list;
    ms_class *class = &classes->classes[classes->n_classes++];
    class->n_owners = n;
    class->first_unit = unit;
    class->owner = ms_arena_take_raw(sorter->arena, n, sizeof *class->owner);
    if (class->owner == NULL)
        return ms_fail_nomem(sorter->fault);
    if (n > 0)
        memcpy(class->owner, sorter->list, n * sizeof *class->owner);
    return MS_OK;
}

static ms_err find_classes(sort_state *sorter)
{
    MS_TRY(find_kinds(sorter));
    for (uint32_t u = 0; u < sorter->graph->n_units; u++) {
        MS_TRY(add_class(sorter, u, MS_CLASS_FORWARD));
        MS_TRY(add_class(sorter, u, MS_CLASS_BACKWARD));
    }
    return MS_OK;
}

/* ---- memory -------------------------------------------------------------- */

static ms_err take(sort_state *sorter, ms_arena *arena, size_t n,
                   uint32_t **column)
{
    *column = ms_arena_take(arena, n, sizeof **column);
    return *column != NULL ? MS_OK : ms_fail_nomem(sorter->fault);
}

static ms_err take_columns(sort_state *sorter)
{
    ms_classes *classes = sorter->classes;
    ms_arena *arena = sorter->arena, *scratch = sorter->scratch;
    size_t storages = sorter->graph->n_storages;
    size_t units = sorter->graph->n_units, owners = 2 * units + 2;
    MS_TRY(take(sorter, arena, storages, &classes->owner));
    MS_TRY(take(sorter, arena, storages, &classes->index));
    MS_TRY(take(sorter, arena, owners + 1, &classes->cell_at));
    MS_TRY(take(sorter, arena, storages, &classes->cell));
    MS_TRY(take(sorter, arena, owners, &classes->kind));
    MS_TRY(take(sorter, arena, owners, &classes->kind_first));
    MS_TRY(take(sorter, arena, storages, &classes->writer));
    MS_TRY(take(sorter, arena, sorter->graph->n_ops, &classes->writer_before));
    MS_TRY(take(sorter, arena, units, &classes->of[MS_CLASS_FORWARD]));
    MS_TRY(take(sorter, arena, units, &classes->of[MS_CLASS_BACKWARD]));
    MS_TRY(take(sorter, arena, units, &classes->read_behind));
    MS_TRY(take(sorter, arena, units, &classes->made_before));
    MS_TRY(take(sorter, scratch, storages, &sorter->low));
    MS_TRY(take(sorter, scratch, storages, &sorter->high));
    MS_TRY(take(sorter, scratch, storages, &sorter->far));
    MS_TRY(take(sorter, scratch, owners, &sorter->stamp));
    MS_TRY(take(sorter, scratch, owners, &sorter->next));
    classes->classes =
        ms_arena_take(arena, 2 * units, sizeof *classes->classes);
    sorter->list = ms_arena_take(scratch, owners, sizeof *sorter->list);
    if (classes->classes == NULL || sorter->list == NULL)
        return ms_fail_nomem(sorter->fault);
    MS_TRY(ms_intern_open(&sorter->kinds, scratch, sorter->fault));
    return ms_intern_open(&sorter->ids, scratch, sorter->fault);
}

static ms_err sort(sort_state *sorter)
{
    MS_TRY(take_columns(sorter));
    find_owners(sorter);
    find_writers(sorter);
    find_reach(sorter);
    return find_classes(sorter);
}

ms_err ms_classes_open(ms_classes *classes, const ms_graph *graph,
                       ms_arena *arena, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    sort_state sorter = {.classes = classes,
                         .graph = graph,
                         .arena = arena,
                         .scratch = &scratch,
                         .fault = fault};
    *classes = (ms_classes){.graph = graph,
                            .n_owners = graph->n_units + 2,
                            .shared = graph->n_units,
                            .rest = graph->n_units + 1};
    ms_err err = sort(&sorter);
    ms_arena_free(&scratch);
    return err;
}
