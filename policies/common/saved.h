/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SAVED_H
#define MS_POLICIES_SAVED_H

/* What a program keeps for backward, by the unit and the block whose forward
 * reads it last: sets for policies that move it.
 *
 *     unit 3 (norm) saves x, made by unit 2: x is in unit_set[3] and in
 *     input_set[3]; y, which unit 3 makes and the next unit reads, is not. */

#include "policies/common/policy.h"

typedef struct ms_saved {
    const ms_graph *graph;
    uint32_t *unit_set;  /* per unit: all of it; MS_NOTHING: none */
    uint32_t *input_set; /* per unit: what earlier units made of it */
    uint32_t n_blocks;   /* in the order of their units; where the graph has
                            none, each unit before the loss is one */
    uint32_t *block_of;  /* per unit, or MS_NONE */
    uint32_t *block_first, *block_last; /* units */
    uint32_t *block_set;
    uint8_t *kept;         /* per storage: in a set */
    uint32_t *last_reader; /* per storage: unit of forward, or MS_NONE */
} ms_saved;

/* Of storages of at least min_bytes that calls of program keep or hold; the
 * sets are added to into. */
ms_err ms_saved_find(const ms_graph *graph, const ms_program *program,
                     uint64_t min_bytes, ms_arena *arena, ms_program *into,
                     ms_saved *saved, ms_fault *fault);
/* The same but for storages that stay (a flag each), and of what a stage's
 * replays read of other stages, too, which the stage holds itself. */
ms_err ms_saved_find_others(const ms_graph *graph, const ms_program *program,
                            uint64_t min_bytes, const uint8_t *stays,
                            const uint8_t *replayed, ms_arena *arena,
                            ms_program *into, ms_saved *saved, ms_fault *fault);
/* Flags the storages that units of replays read. */
void ms_saved_replayed(const ms_graph *graph, const ms_program *program,
                       uint8_t *replayed);

/* A product with a weight, by the names that torch gives linear layers' ops. */
bool ms_saved_is_linear(const ms_graph *graph, uint32_t op);

#endif
