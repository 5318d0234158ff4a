/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/classes/intern.h"

#include <string.h>

#define FIRST_SLOTS 256u

/* Multiplication by 2^64 / golden ratio (Knuth, The Art of Computer
 * Programming 3, 6.4) spreads to the high bits, which are folded back. */
static inline uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Two words at a time. */
static uint64_t hash_of(const uint32_t *words, uint32_t n)
{
    uint64_t hash = n, pair;
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        memcpy(&pair, words + i, sizeof pair);
        hash = mix(hash, pair);
    }
    return n % 2 > 0 ? mix(hash, words[n - 1]) : hash;
}

ms_err ms_intern_open(ms_intern *table, ms_arena *arena, ms_fault *fault)
{
    *table = (ms_intern){.arena = arena, .n_slots = FIRST_SLOTS};
    table->slot = ms_arena_take(arena, FIRST_SLOTS, sizeof *table->slot);
    table->at =
        ms_arena_grow(arena, NULL, &table->at_capacity, 1, sizeof *table->at);
    if (table->slot == NULL || table->at == NULL)
        return ms_fail_nomem(fault);
    table->at[0] = 0;
    return MS_OK;
}

static bool is_list(const ms_intern *table, uint32_t id, uint64_t hash,
                    const uint32_t *words, uint32_t n)
{
    return table->hash[id] == hash && table->at[id + 1] - table->at[id] == n &&
           (n == 0 ||
            memcmp(table->word + table->at[id], words, n * sizeof *words) == 0);
}

/* The slot of the list, or the free one in which it would be. */
static uint32_t slot_of(const ms_intern *table, uint64_t hash,
                        const uint32_t *words, uint32_t n)
{
    uint32_t mask = table->n_slots - 1, i = (uint32_t)hash & mask;
    while (table->slot[i] != 0 &&
           !is_list(table, table->slot[i] - 1, hash, words, n))
        i = (i + 1) & mask;
    return i;
}

uint32_t ms_intern_find(const ms_intern *table, const uint32_t *words,
                        uint32_t n)
{
    uint32_t at = table->slot[slot_of(table, hash_of(words, n), words, n)];
    return at > 0 ? at - 1 : MS_NONE;
}

/* Twice as many slots: half of them stay free. */
static ms_err widen(ms_intern *table, ms_fault *fault)
{
    uint32_t n_slots = 2 * table->n_slots;
    uint32_t *slot = ms_arena_take(table->arena, n_slots, sizeof *slot);
    if (slot == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t id = 0; id < table->n; id++) {
        uint32_t i = (uint32_t)table->hash[id] & (n_slots - 1);
        while (slot[i] != 0)
            i = (i + 1) & (n_slots - 1);
        slot[i] = id + 1;
    }
    table->slot = slot;
    table->n_slots = n_slots;
    return MS_OK;
}

static ms_err grow(ms_intern *table, uint32_t n, ms_fault *fault)
{
    ms_arena *arena = table->arena;
    uint32_t *at = ms_arena_grow(arena, table->at, &table->at_capacity,
                                 table->n + 2, sizeof *at);
    if (at == NULL)
        return ms_fail_nomem(fault);
    table->at = at;
    uint64_t *hash = ms_arena_grow(arena, table->hash, &table->hash_capacity,
                                   table->n + 1, sizeof *hash);
    uint32_t *word = ms_arena_grow(arena, table->word, &table->word_capacity,
                                   at[table->n] + n + 1, sizeof *word);
    if (hash == NULL || word == NULL)
        return ms_fail_nomem(fault);
    table->hash = hash;
    table->word = word;
    return 2 * (table->n + 1) > table->n_slots ? widen(table, fault) : MS_OK;
}

ms_err ms_intern_add(ms_intern *table, const uint32_t *words, uint32_t n,
                     uint32_t *id, ms_fault *fault)
{
    uint64_t hash = hash_of(words, n);
    uint32_t i = slot_of(table, hash, words, n);
    if (table->slot[i] > 0) {
        *id = table->slot[i] - 1;
        return MS_OK;
    }
    MS_TRY(grow(table, n, fault));
    *id = table->n++;
    if (n > 0)
        memcpy(table->word + table->at[*id], words, n * sizeof *words);
    table->at[*id + 1] = table->at[*id] + n;
    table->hash[*id] = hash;
    table->slot[slot_of(table, hash, words, n)] = *id + 1;
    return MS_OK;
}
