/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_INTERN_H
#define MS_SIM_INTERN_H

/* Private to sim/fold: lists of words, each known by a number: equal lists have
 * the same number, other lists another one (they are compared word by word, the
 * hash only says where to look).
 *
 *     MS_TRY(ms_intern_add(&table, words, 3, &id, fault));      0
 *     MS_TRY(ms_intern_add(&table, others, 2, &id, fault));     1
 *     MS_TRY(ms_intern_add(&table, words, 3, &id, fault));      0 again */

#include "sim/base/base.h"

typedef struct ms_intern {
    ms_arena *arena;
    uint32_t n;          /* lists */
    uint32_t *at, *word; /* n + 1 offsets, and the words */
    uint64_t *hash;      /* per list */
    uint32_t *slot;      /* id + 1, or 0: free */
    uint32_t n_slots;    /* a power of two */
    uint32_t at_capacity, hash_capacity, word_capacity;
} ms_intern;

ms_err ms_intern_open(ms_intern *table, ms_arena *arena, ms_fault *fault);
/* Its number, or MS_NONE. */
uint32_t ms_intern_find(const ms_intern *table, const uint32_t *words,
                        uint32_t n);
/* The same; a list that is new gets the next number. */
ms_err ms_intern_add(ms_intern *table, const uint32_t *words, uint32_t n,
                     uint32_t *id, ms_fault *fault);

static inline const uint32_t *ms_intern_words(const ms_intern *table,
                                              uint32_t id)
{
    return table->word + table->at[id];
}

#endif
