/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/rankheap.h"

ms_err ms_rankheap_open(ms_rankheap *heap, uint32_t n, ms_arena *arena,
                        ms_fault *fault)
{
    *heap = (ms_rankheap){.n_leaves = 1};
    while (heap->n_leaves < n)
        heap->n_leaves *= 2;
    uint32_t leaves = heap->n_leaves;
    heap->key = ms_arena_take_raw(arena, leaves, sizeof *heap->key);
    heap->winner =
        ms_arena_take_raw(arena, 2 * (size_t)leaves, sizeof *heap->winner);
    if (!heap->key || !heap->winner)
        return ms_fail_nomem(fault);
    for (uint32_t rank = 0; rank < leaves; rank++) {
        heap->key[rank] = (ms_rankkey){MS_RANKHEAP_NEVER, 0};
        heap->winner[leaves + rank] = rank;
    }
    for (uint32_t i = leaves; i-- > 1;)
        heap->winner[i] = heap->winner[2 * i];
    return MS_OK;
}

static inline bool is_before(const ms_rankheap *heap, uint32_t a, uint32_t b)
{
    const ms_rankkey *x = &heap->key[a], *y = &heap->key[b];
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns;
    return x->turn != y->turn ? x->turn < y->turn : a < b;
}

void ms_rankheap_set(ms_rankheap *heap, uint32_t rank, ms_rankkey key)
{
    uint32_t first = rank;
    heap->key[rank] = key;
    for (uint32_t i = heap->n_leaves + rank; i > 1; i /= 2) {
        uint32_t other = heap->winner[i ^ 1u];
        first = is_before(heap, other, first) ? other : first;
        heap->winner[i / 2] = first;
    }
}

uint64_t ms_rankheap_others_ns(const ms_rankheap *heap, uint32_t rank)
{
    uint64_t t_ns = MS_RANKHEAP_NEVER;
    for (uint32_t i = heap->n_leaves + rank; i > 1; i /= 2) {
        uint64_t other_ns = heap->key[heap->winner[i ^ 1u]].t_ns;
        t_ns = other_ns < t_ns ? other_ns : t_ns;
    }
    return t_ns;
}
