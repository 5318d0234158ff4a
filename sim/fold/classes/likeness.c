/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/classes/likeness.h"

#include "sim/graph.h"

#include <stddef.h>
#include <string.h>

bool ms_likeness_is_plain(const ms_graph *graph)
{
    return graph->storage_refs != NULL &&
           graph->op_meets == NULL; /* what they move, their group says */
}

/* ---- columns ------------------------------------------------------------- */

/* How many entries a column has. */
typedef enum column_rows {
    STORAGES,
    PERSISTENT,
    OPS,
    UNITS,
    OP_ENDS, /* one more than ops */
    UNIT_ENDS,
    READS,
    OUTS,
    DROPS,
    UNIT_READS,
    BACK_READS,
    STEP_READS,
    KEPT
} column_rows;

/* What expand and the default program read of a graph that is no number; the
 * offsets of a list come before it. */
static const struct column {
    size_t at; /* of the pointer to it */
    uint8_t size, rows;
} columns[] = {
#define COLUMN(name, rows)                                                     \
    {                                                                          \
        offsetof(ms_graph, name), sizeof *((ms_graph *)NULL)->name, rows       \
    }
    COLUMN(storage_category, STORAGES),
    COLUMN(storage_maker, STORAGES),
    COLUMN(storage_local_end, STORAGES),
    COLUMN(storage_saved_end, STORAGES),
    COLUMN(storage_grad, STORAGES),
    COLUMN(storage_refs, STORAGES),
    COLUMN(storage_pool, STORAGES),
    COLUMN(storage_whole, PERSISTENT),
    COLUMN(storage_shard_group, PERSISTENT),
    COLUMN(due_first, PERSISTENT),
    COLUMN(due_end, PERSISTENT),
    COLUMN(op_pass, OPS),
    COLUMN(op_flags, OPS),
    COLUMN(op_stream, OPS),
    COLUMN(op_group, OPS),
    COLUMN(op_unit, OPS),
    COLUMN(in_at, OP_ENDS),
    COLUMN(in, READS),
    COLUMN(out_at, OP_ENDS),
    COLUMN(out, OUTS),
    COLUMN(drop_at, OP_ENDS),
    COLUMN(drop, DROPS),
    COLUMN(forward_at, UNIT_ENDS),
    COLUMN(backward_at, UNIT_ENDS),
    COLUMN(unit_in_at, UNIT_ENDS),
    COLUMN(unit_in, UNIT_READS),
    COLUMN(back_in_at, UNIT_ENDS),
    COLUMN(back_in, BACK_READS),
    COLUMN(unit_state, UNITS),
    COLUMN(step_in, STEP_READS),
    COLUMN(kept, KEPT),
#undef COLUMN
};
#define N_COLUMNS (sizeof columns / sizeof columns[0])

static size_t count_rows(const ms_graph *graph, column_rows rows)
{
    switch (rows) {
    case STORAGES:
        return graph->n_storages;
    case PERSISTENT:
        return graph->n_persistent;
    case OPS:
        return graph->n_ops;
    case UNITS:
        return graph->n_units;
    case OP_ENDS:
        return (size_t)graph->n_ops + 1;
    case UNIT_ENDS:
        return (size_t)graph->n_units + 1;
    case READS:
        return graph->in_at[graph->n_ops];
    case OUTS:
        return graph->out_at[graph->n_ops];
    case DROPS:
        return graph->drop_at[graph->n_ops];
    case UNIT_READS:
        return graph->unit_in_at[graph->n_units];
    case BACK_READS:
        return graph->back_in_at[graph->n_units];
    case STEP_READS:
        return graph->n_step_in;
    case KEPT:
        return graph->n_kept;
    }
    return 0;
}

static const void *column_of(const ms_graph *graph, const struct column *column)
{
    const void *it;
    memcpy(&it, (const char *)graph + column->at, sizeof it);
    return it;
}

static bool is_same_column(const ms_graph *a, const ms_graph *b,
                           const struct column *column)
{
    const void *left = column_of(a, column), *right = column_of(b, column);
    size_t bytes = count_rows(a, (column_rows)column->rows) * column->size;
    if (left == NULL || right == NULL || bytes == 0)
        return bytes == 0 || left == right;
    return memcmp(left, right, bytes) == 0;
}

static bool has_same_counts(const ms_graph *a, const ms_graph *b)
{
    return a->n_storages == b->n_storages &&
           a->n_persistent == b->n_persistent && a->n_ops == b->n_ops &&
           a->n_units == b->n_units && a->n_kept == b->n_kept &&
           a->n_step_in == b->n_step_in && a->n_start == b->n_start &&
           a->step_first == b->step_first && a->step_all == b->step_all &&
           a->loss_unit == b->loss_unit && a->keep_to_step == b->keep_to_step &&
           a->grads_whole == b->grads_whole &&
           a->stage_inputs == b->stage_inputs &&
           (a->storage_shard_bytes == NULL) ==
               (b->storage_shard_bytes == NULL) &&
           (a->storage_far_bytes == NULL) == (b->storage_far_bytes == NULL) &&
           (a->step == NULL) == (b->step == NULL);
}

/* Which of the bytes that a storage may have in a row are equal. */
static uint32_t pattern_of(const ms_graph *graph, uint32_t storage)
{
    uint64_t own = graph->storage_bytes[storage], part = MS_UNSHARED, far = 0;
    if (graph->storage_shard_bytes != NULL)
        part = graph->storage_shard_bytes[storage];
    if (graph->storage_far_bytes != NULL)
        far = graph->storage_far_bytes[storage];
    return (uint32_t)(part == MS_UNSHARED) | (uint32_t)(far == 0) << 1 |
           (uint32_t)(own == part) << 2 | (uint32_t)(own == far) << 3 |
           (uint32_t)(part == far) << 4;
}

static bool has_same_patterns(const ms_graph *a, const ms_graph *b)
{
    bool same = true;
    if (a->storage_shard_bytes != NULL || a->storage_far_bytes != NULL)
        for (uint32_t s = 0; s < a->n_persistent; s++)
            same &= pattern_of(a, s) == pattern_of(b, s);
    return same;
}

bool ms_likeness_graphs(const ms_graph *a, const ms_graph *b)
{
    if (!has_same_counts(a, b) ||
        memcmp(a->storage_at_start, b->storage_at_start, a->n_persistent) != 0)
        return false;
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (!is_same_column(a, b, &columns[i]))
            return false;
    return has_same_patterns(a, b);
}

/* ---- classes ------------------------------------------------------------- */

/* bytes: (optional) of the first n_rows storages. */
static bool has_same_bytes(const ms_classes *classes, const uint64_t *bytes,
                           uint32_t n_rows, uint32_t owner, uint32_t other)
{
    const uint32_t *mine = classes->cell + classes->cell_at[owner];
    const uint32_t *its = classes->cell + classes->cell_at[other];
    uint32_t n = classes->cell_at[owner + 1] - classes->cell_at[owner];
    bool same = true;
    for (uint32_t i = 0; bytes != NULL && i < n; i++)
        same &= mine[i] >= n_rows || bytes[mine[i]] == bytes[its[i]];
    return same;
}

static bool is_like(const ms_classes *classes, const ms_graph *graph,
                    uint32_t owner, uint32_t other)
{
    return has_same_bytes(classes, graph->storage_bytes, graph->n_storages,
                          owner, other) &&
           has_same_bytes(classes, graph->storage_shard_bytes,
                          graph->n_persistent, owner, other) &&
           has_same_bytes(classes, graph->storage_far_bytes,
                          graph->n_persistent, owner, other);
}

static bool has_same_times(const ms_classes *classes, const ms_graph *graph,
                           uint32_t unit, ms_class_side side)
{
    uint32_t first, end, other, other_end;
    const ms_class *class = &classes->classes[classes->of[side][unit]];
    ms_classes_ops(graph, unit, side, &first, &end);
    ms_classes_ops(graph, class->first_unit, side, &other, &other_end);
    return first == other || memcmp(graph->op_ns + first, graph->op_ns + other,
                                    (end - first) * sizeof *graph->op_ns) == 0;
}

bool ms_likeness_units(const ms_classes *classes, const ms_graph *graph)
{
    for (uint32_t owner = 0; owner < classes->n_owners; owner++) {
        uint32_t other = classes->kind_first[classes->kind[owner]];
        if (other != owner && !is_like(classes, graph, owner, other))
            return false;
    }
    for (uint32_t u = 0; u < graph->n_units; u++)
        if (!has_same_times(classes, graph, u, MS_CLASS_FORWARD) ||
            !has_same_times(classes, graph, u, MS_CLASS_BACKWARD))
            return false;
    return true;
}
