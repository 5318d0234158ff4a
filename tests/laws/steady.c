/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step in its steady state leaves what it found: the next forward begins with
 * the same bytes in each memory. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "tests/laws/laws.h"

#include <check.h>
#include <string.h>

/* The bytes that a rank has when its forward begins, less those that its step
 * leaves. */
typedef struct difference {
    const ms_plan *plan;
    uint16_t rank;
    int64_t *of;   /* by persistent storage and then by buffer, for each pool */
    bool *is_grad; /* by persistent storage */
    uint32_t n, n_persistent;
} difference;

static uint32_t buffers_of(const ms_plan *plan)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++)
        if (plan->row[r].storage == MS_NONE && plan->row[r].buffer >= n)
            n = plan->row[r].buffer + 1;
    return n;
}

/* The storage that a row counts for: a gradient's buffer that has become .grad
 * counts for .grad. */
static uint32_t lasts_as(const difference *d, const ms_row *row)
{
    const ms_graph *graph = d->plan->graph;
    uint32_t s = row->storage;
    if (s == MS_NONE)
        return d->n_persistent + row->buffer;
    return s >= d->n_persistent && graph->storage_category[s] == MS_BECOMES_GRAD
               ? graph->storage_grad[s]
               : s;
}

/* Adds `sign` times the rows of ops [0, ops) that none of the first `releases`
 * frees. */
static void count(difference *d, uint32_t ops, uint32_t releases, int sign)
{
    ms_arena arena = {0};
    const ms_plan *plan = d->plan;
    uint8_t *freed = laws_take(&arena, plan->n_rows + 1, 1);
    for (uint32_t i = 0; i < releases; i++)
        freed[plan->release[i]] = 1;
    for (uint32_t r = 0; r < plan->op[ops].alloc_at; r++) {
        const ms_row *row = &plan->row[r];
        char name[MS_STORAGE_NAME];
        uint32_t s = lasts_as(d, row);
        if (freed[r] || plan->op[row->op].rank != d->rank)
            continue;
        ck_assert_msg(row->storage == MS_NONE || s < d->n_persistent,
                      "case %llu: %s is of one micro-batch and there between "
                      "the steps",
                      (unsigned long long)laws_seed,
                      ms_graph_storage_name(plan->graph, row->storage, name));
        d->of[row->pool * d->n + s] += sign * (int64_t)row->bytes;
    }
    ms_arena_free(&arena);
}

static void check(const difference *d, bool clears_grads)
{
    const ms_graph *graph = d->plan->graph;
    for (uint32_t i = 0; i < MS_N_POOLS * d->n; i++) {
        uint32_t s = i % d->n;
        char name[MS_STORAGE_NAME];
        bool is_storage = s < d->n_persistent;
        uint8_t home = is_storage && graph->storage_pool != NULL
                           ? graph->storage_pool[s]
                           : MS_DEVICE_POOL;
        bool cleared = is_storage && d->is_grad[s] && clears_grads &&
                       !graph->storage_at_start[s] && i / d->n == home;
        ck_assert_msg(cleared || d->of[i] == 0,
                      "case %llu: rank %u: %s in the memory of the %s: the "
                      "step begins with %lld bytes more than it leaves",
                      (unsigned long long)laws_seed, d->rank,
                      is_storage ? ms_graph_storage_name(graph, s, name)
                                 : d->plan->buffers[s - d->n_persistent].name,
                      ms_names_pool[i / d->n], (long long)d->of[i]);
    }
}

static const struct ms_plan_mark *start_of(const ms_plan *plan, uint16_t rank)
{
    for (uint32_t i = 0; i < plan->n_marks; i++)
        if (plan->marks[i].mark == MS_MARK_START && plan->marks[i].rank == rank)
            return &plan->marks[i];
    return NULL;
}

void laws_check_steady(const ms_plan *plan, bool clears_grads)
{
    ms_arena arena = {0};
    const ms_graph *graph = plan->graph;
    difference d = {.plan = plan, .n_persistent = graph->n_persistent};
    d.n = d.n_persistent + buffers_of(plan);
    d.is_grad = laws_take(&arena, d.n_persistent + 1u, sizeof *d.is_grad);
    for (uint32_t s = 0; s < d.n_persistent; s++)
        if (ms_graph_is_weight(graph, s) && graph->storage_grad[s] != MS_NONE)
            d.is_grad[graph->storage_grad[s]] = true;
    for (; d.rank < plan->n_ranks; d.rank++) {
        const struct ms_plan_mark *start = start_of(plan, d.rank);
        ck_assert_ptr_nonnull(start);
        d.of = laws_take(&arena, (size_t)MS_N_POOLS * d.n + 1, sizeof *d.of);
        count(&d, start->op + 1, start->releases, 1);
        count(&d, plan->n_ops, plan->op[plan->n_ops].release_at, -1);
        check(&d, clears_grads);
    }
    ms_arena_free(&arena);
}
