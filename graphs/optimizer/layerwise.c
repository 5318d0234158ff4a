/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whole matrices on ranks, for updates that need them whole: Megatron's layer-
 * wise distributed optimizer (megatron/core/optimizer/layer_wise_optimizer.py).
 * In descending order of size each matrix goes to the rank with the fewest
 * elements so far; the rank that is simulated is the one that gets the most.
 * Other parameters are divided by elements, as in the distributed optimizer. */
#include "graphs/optimizer/optimizer.h"
#include "graphs/optimizer/optimtable.h"
#include "graphs/trace/trace.h"

#include <stdlib.h>
#include <string.h>

typedef struct matrix {
    uint64_t elements;
    uint32_t parameter, rank;
} matrix;

typedef struct load {
    uint64_t elements;
    uint32_t rank;
} load;

static int by_size(const void *a, const void *b)
{
    const matrix *x = a, *y = b;
    if (x->elements != y->elements)
        return x->elements < y->elements ? 1 : -1;
    return (x->parameter > y->parameter) - (x->parameter < y->parameter);
}

static bool is_less(const load *a, const load *b)
{
    return a->elements != b->elements ? a->elements < b->elements
                                      : a->rank < b->rank;
}

/* Restores the heap after its first entry has grown. */
static void sink(load *heap, uint32_t n)
{
    for (uint32_t at = 0, child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &heap[at]))
            return;
        load was = heap[at];
        heap[at] = heap[child];
        heap[child] = was;
    }
}

/* Deals the matrices out and returns the rank that has most, of several the
 * lowest.  ranks is at most n, so that none is without a matrix. */
static uint32_t deal(matrix *matrices, uint32_t n, load *heap, uint32_t ranks)
{
    const load *most = heap;
    for (uint32_t r = 0; r < ranks; r++)
        heap[r] = (load){0, r};
    for (uint32_t i = 0; i < n; i++) {
        matrices[i].rank = heap[0].rank;
        heap[0].elements += matrices[i].elements;
        sink(heap, ranks);
    }
    for (uint32_t r = 0; r < ranks; r++)
        if (heap[r].elements > most->elements ||
            (heap[r].elements == most->elements && heap[r].rank < most->rank))
            most = &heap[r];
    return most->rank;
}

static uint32_t list_matrices(const ms_trace *trace, matrix *matrices)
{
    const ms_optimizer_row *row = ms_updates_of(trace->settings->training);
    uint32_t n = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (it->uses > 0 && ms_updates_is_chosen(trace, row, it))
            matrices[n++] = (matrix){it->elements, p, 0};
    }
    qsort(matrices, n, sizeof *matrices, by_size);
    return n;
}

bool ms_layerwise_is(const ms_step_settings *settings)
{
    const ms_optimizer_row *row = ms_updates_of(settings->training);
    return row != NULL && row->update->gathers &&
           settings->shape->engine == MS_ENGINE_MEGATRON &&
           settings->shape->shared == MS_SHARED_OPTIMIZER;
}

void ms_layerwise_split(ms_trace *trace)
{
    uint32_t ranks = ms_shape_parts(trace->settings->shape);
    matrix *matrices = ms_arena_take_raw(trace->scratch, trace->n_parameters,
                                         sizeof *matrices);
    uint32_t n = matrices == NULL ? 0 : list_matrices(trace, matrices);
    uint32_t some = n < ranks ? n : ranks;
    load *heap = ms_arena_take_raw(trace->scratch, some + 1u, sizeof *heap);
    if (matrices == NULL || heap == NULL) {
        trace->err = ms_fail_nomem(trace->fault);
        return;
    }
    uint32_t mine = some == 0 ? 0 : deal(matrices, n, heap, some);
    for (uint32_t i = 0; i < n; i++) {
        ms_parameter *it = &trace->parameters[matrices[i].parameter];
        it->part = matrices[i].rank == mine ? it->elements : 0;
        it->owned = it->part;
    }
}
