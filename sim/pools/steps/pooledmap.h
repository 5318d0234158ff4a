/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_POOLEDMAP_H
#define MS_SIM_POOLEDMAP_H

/* Private to pooled.c: where the rows of the last step lie, on every rank.
 * Where no maps are asked for, these functions do nothing. */

#include "sim/nouns.h"
#include "sim/pools/torch/addressmap.h"

typedef struct ms_pooledmap {
    ms_addressmap *maps; /* per rank; NULL: not asked for */
    uint32_t n;
    bool takes_time; /* else instants count allocations and frees */
    bool is_last;    /* the present step is the one that is reported */
} ms_pooledmap;

/* Sets the pool's log. */
void ms_pooledmap_listen(ms_pooledmap *map, uint32_t rank,
                         ms_torch_setup *setup);
/* The last step begins; the rank's pool is as it was left. */
ms_err ms_pooledmap_start(ms_pooledmap *map, uint32_t rank,
                          const ms_torch *pool, ms_arena *scratch,
                          ms_arena *arena, ms_fault *fault);
/* What follows is booked when op starts, or when it ends; but no earlier than
 * the instant that the rank has reached. */
void ms_pooledmap_time(ms_pooledmap *map, const ms_timeline *line, uint32_t op,
                       bool starts);
/* The row has this block; MS_NONE: there was none. */
void ms_pooledmap_take(ms_pooledmap *map, uint32_t rank, const ms_torch *pool,
                       uint32_t block, uint32_t row);
/* A block was freed. */
void ms_pooledmap_free(ms_pooledmap *map, uint32_t rank);
ms_err ms_pooledmap_end(ms_pooledmap *map, ms_fault *fault);

#endif
