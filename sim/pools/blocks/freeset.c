/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Idle blocks in order of (size, address).  A set is cut into classes of sizes,
 * eight per power of two, so that most searches touch a bit map and a tree of a
 * few blocks; a class is a treap whose priorities are a hash of the row, so no
 * order of requests makes it deep.  Measured by memsim-bench (torch_*). */
#include "sim/pools/torch/torchpool.h"

#include <assert.h>
#include <string.h>

#define STEPS 3 /* 2^STEPS classes per power of two */
#define CLASS_MASK (FREESET_CLASSES - 1)

static uint32_t class_of(uint64_t bytes)
{
    if (bytes < 1u << STEPS)
        return (uint32_t)bytes;
    uint32_t log = 63 - (uint32_t)__builtin_clzll(bytes);
    uint32_t step = (uint32_t)(bytes >> (log - STEPS)) & ((1u << STEPS) - 1);
    return (log << STEPS | step) & CLASS_MASK;
}

/* 2^32 by the golden ratio spreads neighbouring rows (Knuth, The Art of
 * Computer Programming, 6.4); treaps are Seidel's and Aragon's (1996). */
static uint32_t priority(uint32_t row)
{
    return row * UINT32_C(2654435769);
}

/* ---- one tree ------------------------------------------------------------ */

/* The row breaks ties, which occur only where a recorded history gives one
 * address twice. */
typedef struct key {
    uint64_t bytes, address;
    uint32_t row;
} key;

static inline bool before(key a, key b)
{
    if (a.bytes != b.bytes)
        return a.bytes < b.bytes;
    if (a.address != b.address)
        return a.address < b.address;
    return a.row < b.row;
}

/* by_address: of a tree without sizes. */
static inline key key_of(const torch_block *blocks, uint32_t row,
                         bool by_address)
{
    return (key){by_address ? 0 : blocks[row].bytes, blocks[row].address, row};
}

static void tree_insert(uint32_t *root, torch_block *blocks, uint32_t row,
                        bool by_address)
{
    key mine = key_of(blocks, row, by_address);
    uint32_t *link = root, at = *root, rank = priority(row);
    while (at != MS_NONE && priority(at) > rank) {
        link = before(mine, key_of(blocks, at, by_address)) ? &blocks[at].left
                                                            : &blocks[at].right;
        at = *link;
    }
    *link = row;
    /* The subtree that was here is cut in two: what is before the row becomes
     * its left side, the rest its right side. */
    uint32_t *low = &blocks[row].left, *high = &blocks[row].right;
    while (at != MS_NONE)
        if (before(mine, key_of(blocks, at, by_address))) {
            *high = at;
            high = &blocks[at].left;
            at = *high;
        } else {
            *low = at;
            low = &blocks[at].right;
            at = *low;
        }
    *low = *high = MS_NONE;
}

static void tree_remove(uint32_t *root, torch_block *blocks, uint32_t row,
                        bool by_address)
{
    key mine = key_of(blocks, row, by_address);
    uint32_t *link = root;
    while (*link != row) {
        assert(*link != MS_NONE);
        link = before(mine, key_of(blocks, *link, by_address))
                   ? &blocks[*link].left
                   : &blocks[*link].right;
    }
    /* Its two sides become one tree, the higher priority on top. */
    uint32_t low = blocks[row].left, high = blocks[row].right;
    while (low != MS_NONE && high != MS_NONE)
        if (priority(low) > priority(high)) {
            *link = low;
            link = &blocks[low].right;
            low = *link;
        } else {
            *link = high;
            link = &blocks[high].left;
            high = *link;
        }
    *link = low != MS_NONE ? low : high;
}

/* The first whose key is not before `from`, or MS_NONE. */
static uint32_t tree_from(uint32_t root, const torch_block *blocks, key from,
                          bool by_address)
{
    uint32_t found = MS_NONE;
    while (root != MS_NONE)
        if (before(key_of(blocks, root, by_address), from)) {
            root = blocks[root].right;
        } else {
            found = root;
            root = blocks[root].left;
        }
    return found;
}

/* The last whose key is before `to`, or MS_NONE. */
static uint32_t tree_below(uint32_t root, const torch_block *blocks, key to)
{
    uint32_t found = MS_NONE;
    while (root != MS_NONE)
        if (before(key_of(blocks, root, false), to)) {
            found = root;
            root = blocks[root].right;
        } else {
            root = blocks[root].left;
        }
    return found;
}

void ms_freeset_tree_insert(uint32_t *root, torch_block *blocks, uint32_t row)
{
    tree_insert(root, blocks, row, true);
}

void ms_freeset_tree_remove(uint32_t *root, torch_block *blocks, uint32_t row)
{
    tree_remove(root, blocks, row, true);
}

uint32_t ms_freeset_tree_after(uint32_t root, const torch_block *blocks,
                               uint64_t address)
{
    return tree_from(root, blocks, (key){0, address, 0}, true);
}

/* ---- the set ------------------------------------------------------------- */

void ms_freeset_init(torch_freeset *set)
{
    memset(set->used, 0, sizeof set->used);
    for (uint32_t c = 0; c < FREESET_CLASSES; c++)
        set->root[c] = MS_NONE;
}

void ms_freeset_insert(torch_freeset *set, torch_block *blocks, uint32_t row)
{
    uint32_t c = class_of(blocks[row].bytes);
    tree_insert(&set->root[c], blocks, row, false);
    set->used[c / 64] |= UINT64_C(1) << c % 64;
}

void ms_freeset_remove(torch_freeset *set, torch_block *blocks, uint32_t row)
{
    uint32_t c = class_of(blocks[row].bytes);
    tree_remove(&set->root[c], blocks, row, false);
    if (set->root[c] == MS_NONE)
        set->used[c / 64] &= ~(UINT64_C(1) << c % 64);
}

/* The first class from c on that is not empty, or MS_NONE. */
static uint32_t class_from(const torch_freeset *set, uint32_t c)
{
    if (c >= FREESET_CLASSES)
        return MS_NONE;
    uint64_t bits = set->used[c / 64] & UINT64_MAX << c % 64;
    for (uint32_t word = c / 64;; bits = set->used[word]) {
        if (bits != 0)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
        if (++word == FREESET_CLASSES / 64)
            return MS_NONE;
    }
}

/* The last class below c that is not empty, or MS_NONE. */
static uint32_t class_below(const torch_freeset *set, uint32_t c)
{
    while (c-- > 0) {
        uint64_t bits = set->used[c / 64] & UINT64_MAX >> (63 - c % 64);
        if (bits != 0)
            return c / 64 * 64 + 63 - (uint32_t)__builtin_clzll(bits);
        c = c / 64 * 64;
    }
    return MS_NONE;
}

static uint32_t from(const torch_freeset *set, const torch_block *blocks,
                     key at)
{
    uint32_t c = class_of(at.bytes);
    uint32_t found = tree_from(set->root[c], blocks, at, false);
    if (found != MS_NONE)
        return found;
    c = class_from(set, c + 1);
    return c == MS_NONE
               ? MS_NONE
               : tree_from(set->root[c], blocks, (key){0, 0, 0}, false);
}

uint32_t ms_freeset_least(const torch_freeset *set, const torch_block *blocks,
                          uint64_t bytes)
{
    return from(set, blocks, (key){bytes, 0, 0});
}

uint32_t ms_freeset_next(const torch_freeset *set, const torch_block *blocks,
                         uint32_t row)
{
    key at = key_of(blocks, row, false);
    at.row++;
    return from(set, blocks, at);
}

uint32_t ms_freeset_last_below(const torch_freeset *set,
                               const torch_block *blocks, uint64_t bytes,
                               uint64_t address)
{
    key to = {bytes, address, 0};
    uint32_t c = class_of(bytes);
    uint32_t found = tree_below(set->root[c], blocks, to);
    if (found != MS_NONE)
        return found;
    c = class_below(set, c);
    to = (key){UINT64_MAX, UINT64_MAX, MS_NONE};
    return c == MS_NONE ? MS_NONE : tree_below(set->root[c], blocks, to);
}
