/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_RANKS_H
#define MS_BENCH_RANKS_H

/* A plan of many ranks that wait for each other: each micro-batch goes down the
 * ranks and back, a compute op and a message for each chunk of a rank. */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct bench_ranks_size {
    uint32_t ranks, micro_batches, chunks;
} bench_ranks_size;

/* ranks * micro_batches * chunks * 4 ops; false: no memory. */
bool bench_ranks_plan(bench_ranks_size size, const ms_graph *graph,
                      ms_arena *arena, ms_plan *plan);

#endif
