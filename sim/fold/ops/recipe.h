/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_RECIPE_H
#define MS_SIM_RECIPE_H

/* Private to sim/fold: what a call has done on one stream, by the names of ops
 * and storages instead of by their numbers, so that its effect can be told of
 * a graph with other ones (sim/fold/classes/likeness.h).
 *
 *     MS_TRY(ms_recipe_note(&recipes, &cells, &first, fault));
 *     effect = ms_recipe_effect(&recipes, first, other_graph, machine); */

#include "sim/fold/calls/effect.h"
#include "sim/fold/cells/cells.h"
#include "sim/machine.h"

typedef struct ms_recipes {
    ms_arena *arena;
    /* Of a call: how many rows go before its first op, these; how many change
     * their category, each as it was and as it is; how many ops there are, and
     * of each what it is, its pass with how many rows it takes, how many go
     * behind it, and these. */
    uint32_t *word, n_words, capacity;
    bool fixed; /* one was noted that is of its graph alone */
} ms_recipes;

void ms_recipe_open(ms_recipes *recipes, ms_arena *arena);
/* What the cells' plan has from the call's first op on.  Faults: MS_ENOMEM. */
ms_err ms_recipe_note(ms_recipes *recipes, const ms_cells *cells,
                      uint32_t *first, ms_fault *fault);
ms_effect ms_recipe_effect(const ms_recipes *recipes, uint32_t first,
                           const ms_graph *graph, const ms_machine *machine);

/* Does any row that was there before the call change its category? */
bool ms_recipe_changes(const ms_recipes *recipes, uint32_t first);
/* Adds what a call does to the level of each category, as far as until_bytes,
 * the first time that the level has risen by so many, or to its end (NULL). */
void ms_recipe_add(const ms_recipes *recipes, uint32_t first,
                   const ms_graph *graph, const int64_t *until_bytes,
                   int64_t by_category[MS_N_CATEGORIES]);

/* What an op does that takes so many bytes and behind which so many go. */
ms_effect ms_recipe_op(const ms_machine *machine, uint64_t ns, uint8_t pass,
                       uint64_t taken_bytes, uint64_t given_bytes);

#endif
