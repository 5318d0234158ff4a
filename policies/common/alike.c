/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/alike.h"

#include <string.h>

static uint32_t chains_for(uint32_t n)
{
    uint32_t chains = 1;
    while (chains < n)
        chains *= 2;
    return chains;
}

size_t ms_alike_size(uint32_t n)
{
    return n * (sizeof(ms_alike_item) + sizeof(ms_alike_kind)) +
           ((size_t)n + chains_for(n)) * sizeof(uint32_t);
}

void ms_alike_open(ms_alike *alike, void *memory, uint32_t n)
{
    ms_alike_item *items = memory;
    ms_alike_kind *kinds = (ms_alike_kind *)(items + n);
    uint32_t *in_use = (uint32_t *)(kinds + n);
    *alike = (ms_alike){.items = items,
                        .kinds = kinds,
                        .chains = in_use + n,
                        .n_chains = chains_for(n),
                        .in_use = in_use};
    memset(alike->chains, 0xff, alike->n_chains * sizeof *alike->chains);
    for (uint32_t i = 0; i < n; i++) {
        items[i].kind = MS_NONE;
        in_use[i] = i;
    }
}

/* ---- kinds --------------------------------------------------------------- */

static uint32_t *chain_of(const ms_alike *alike, uint64_t a, uint64_t b)
{
    uint64_t hash = (a * UINT64_C(0x9e3779b97f4a7c15)) ^ b;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return &alike->chains[(hash >> 32) & (alike->n_chains - 1)];
}

static uint32_t find_kind(ms_alike *alike, uint64_t a, uint64_t b)
{
    uint32_t *chain = chain_of(alike, a, b), kind = *chain;
    while (kind != MS_NONE &&
           (alike->kinds[kind].a != a || alike->kinds[kind].b != b))
        kind = alike->kinds[kind].chain;
    if (kind != MS_NONE)
        return kind;
    kind = alike->in_use[alike->n_kinds];
    alike->kinds[kind] = (ms_alike_kind){a, b, MS_NONE, *chain, alike->n_kinds};
    alike->n_kinds++;
    return *chain = kind;
}

static void drop_kind(ms_alike *alike, uint32_t kind)
{
    const ms_alike_kind *gone = &alike->kinds[kind];
    uint32_t *link = chain_of(alike, gone->a, gone->b);
    uint32_t last = alike->in_use[--alike->n_kinds];
    while (*link != kind)
        link = &alike->kinds[*link].chain;
    *link = gone->chain;
    alike->in_use[gone->at] = last;
    alike->kinds[last].at = gone->at;
    alike->in_use[alike->n_kinds] = kind;
}

/* ---- the heap of a kind -------------------------------------------------- */

static bool is_before(const ms_alike_item *a, const ms_alike_item *b)
{
    return a->order_ns < b->order_ns ||
           (a->order_ns == b->order_ns && a->came > b->came);
}

/* Two heaps become one. */
static uint32_t meld(ms_alike_item *items, uint32_t a, uint32_t b)
{
    if (a == MS_NONE || b == MS_NONE)
        return a == MS_NONE ? b : a;
    uint32_t top = is_before(&items[a], &items[b]) ? a : b;
    uint32_t below = top == a ? b : a, other = items[top].child;
    items[below].next = other;
    items[below].before = top;
    if (other != MS_NONE)
        items[other].before = below;
    items[top].child = below;
    return top;
}

/* Siblings two by two, then all of these from the last on. */
static uint32_t meld_all(ms_alike_item *items, uint32_t first)
{
    uint32_t pairs = MS_NONE, heap = MS_NONE;
    while (first != MS_NONE) {
        uint32_t second = items[first].next;
        uint32_t rest = second != MS_NONE ? items[second].next : MS_NONE;
        items[first].next = MS_NONE;
        if (second != MS_NONE)
            items[second].next = MS_NONE;
        uint32_t pair = meld(items, first, second);
        items[pair].next = pairs;
        pairs = pair;
        first = rest;
    }
    while (pairs != MS_NONE) {
        uint32_t rest = items[pairs].next;
        items[pairs].next = MS_NONE;
        heap = meld(items, heap, pairs);
        pairs = rest;
    }
    return heap;
}

/* Out of the list of its siblings. */
static void cut(ms_alike_item *items, uint32_t item)
{
    uint32_t before = items[item].before, next = items[item].next;
    if (items[before].child == item)
        items[before].child = next;
    else
        items[before].next = next;
    if (next != MS_NONE)
        items[next].before = before;
}

void ms_alike_remove(ms_alike *alike, uint32_t item)
{
    ms_alike_item *items = alike->items;
    uint32_t kind = items[item].kind;
    if (kind == MS_NONE)
        return;
    uint32_t *first = &alike->kinds[kind].first;
    uint32_t below = meld_all(items, items[item].child);
    if (*first == item) {
        *first = below;
    } else {
        cut(items, item);
        *first = meld(items, *first, below);
    }
    items[item].kind = MS_NONE;
    if (*first == MS_NONE)
        drop_kind(alike, kind);
}

void ms_alike_set(ms_alike *alike, uint32_t item, uint64_t a, uint64_t b,
                  uint64_t order_ns, uint32_t came)
{
    ms_alike_item *items = alike->items;
    ms_alike_remove(alike, item);
    uint32_t kind = find_kind(alike, a, b);
    items[item] =
        (ms_alike_item){order_ns, came, kind, MS_NONE, MS_NONE, MS_NONE};
    alike->kinds[kind].first = meld(items, alike->kinds[kind].first, item);
}
