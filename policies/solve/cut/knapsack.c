/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/cut/knapsack.h"

#include <stdlib.h>
#include <string.h>

static uint64_t count_units(const ms_knapsack *sack)
{
    uint64_t most = MS_KNAPSACK_BYTES / (sack->n + 1u);
    most = most < MS_KNAPSACK_UNITS ? most : MS_KNAPSACK_UNITS;
    return sack->room < most ? sack->room : most;
}

ms_err ms_knapsack_best(const ms_knapsack *sack, ms_arena *arena,
                        uint8_t *is_saved, ms_fault *fault)
{
    uint64_t room = count_units(sack), size = 1;
    if (room > 0)
        size = sack->room / room + (sack->room % room > 0);
    room = sack->room / size;
    uint64_t *best = ms_arena_take(arena, room + 1, sizeof *best);
    /* per item and room: does the best choice have it? */
    uint8_t *takes = ms_arena_take(arena, sack->n * (room + 1) + 1, 1);
    if (best == NULL || takes == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < sack->n; i++) {
        uint64_t weight = sack->weight[i] / size;
        weight += sack->weight[i] % size > 0;
        for (uint64_t m = room + 1; m-- > weight;)
            if (best[m - weight] + sack->value[i] > best[m]) {
                best[m] = best[m - weight] + sack->value[i];
                takes[i * (room + 1) + m] = 1;
            }
    }
    for (uint64_t i = sack->n, m = room; i-- > 0;) {
        is_saved[i] = takes[i * (room + 1) + m];
        if (is_saved[i])
            m -= sack->weight[i] / size + (sack->weight[i] % size > 0);
    }
    return MS_OK;
}

/* ---- greedily ------------------------------------------------------------ */

typedef struct item {
    uint32_t id;
    double worth;
} item;

static int by_worth(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

ms_err ms_knapsack_greedy(const ms_knapsack *sack, ms_arena *arena,
                          uint8_t *is_saved, ms_fault *fault)
{
    item *items = ms_arena_take(arena, sack->n + 1u, sizeof *items);
    uint64_t room = sack->room;
    if (items == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < sack->n; i++) {
        double weight = (double)sack->weight[i];
        items[i].id = i;
        items[i].worth = (double)sack->value[i] / (weight > 0 ? weight : 1e-9);
    }
    qsort(items, sack->n, sizeof *items, by_worth);
    memset(is_saved, 0, sack->n);
    for (uint32_t i = 0; i < sack->n; i++) {
        uint32_t id = items[i].id;
        if (sack->weight[id] > room)
            continue;
        is_saved[id] = 1;
        room -= sack->weight[id];
    }
    return MS_OK;
}
