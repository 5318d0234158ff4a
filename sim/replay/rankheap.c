/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/rankheap.h"

ms_err ms_rankheap_open(ms_rankheap *heap, uint32_t n, ms_arena *arena,
                        ms_fault *fault)
{
    *heap = (ms_rankheap){.n = n};
    heap->key = ms_arena_take_raw(arena, n, sizeof *heap->key);
    heap->at = ms_arena_take_raw(arena, n, sizeof *heap->at);
    heap->order = ms_arena_take_raw(arena, n, sizeof *heap->order);
    if (!heap->key || !heap->at || !heap->order)
        return ms_fail_nomem(fault);
    for (uint32_t rank = 0; rank < n; rank++) {
        heap->key[rank] = (ms_rankkey){MS_RANKHEAP_NEVER, 0};
        heap->at[rank] = heap->order[rank] = rank;
    }
    return MS_OK;
}

static bool is_before(const ms_rankheap *heap, uint32_t a, uint32_t b)
{
    const ms_rankkey *x = &heap->key[a], *y = &heap->key[b];
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns;
    return x->turn != y->turn ? x->turn < y->turn : a < b;
}

static void put(ms_rankheap *heap, uint32_t at, uint32_t rank)
{
    heap->order[at] = rank;
    heap->at[rank] = at;
}

static void rise(ms_rankheap *heap, uint32_t at, uint32_t rank)
{
    for (; at > 0; at = (at - 1) / 2) {
        uint32_t above = heap->order[(at - 1) / 2];
        if (!is_before(heap, rank, above))
            break;
        put(heap, at, above);
    }
    put(heap, at, rank);
}

static void sink(ms_rankheap *heap, uint32_t at, uint32_t rank)
{
    for (uint32_t next; (next = 2 * at + 1) < heap->n; at = next) {
        if (next + 1 < heap->n &&
            is_before(heap, heap->order[next + 1], heap->order[next]))
            next++;
        if (!is_before(heap, heap->order[next], rank))
            break;
        put(heap, at, heap->order[next]);
    }
    put(heap, at, rank);
}

void ms_rankheap_set(ms_rankheap *heap, uint32_t rank, ms_rankkey key)
{
    bool earlier =
        key.t_ns < heap->key[rank].t_ns ||
        (key.t_ns == heap->key[rank].t_ns && key.turn < heap->key[rank].turn);
    heap->key[rank] = key;
    if (earlier)
        rise(heap, heap->at[rank], rank);
    else
        sink(heap, heap->at[rank], rank);
}
