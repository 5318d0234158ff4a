/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_POOLS_H
#define MS_BENCH_POOLS_H

/* Times traces through a pool, without the reading of their text. */

#include "sim/pools/history/alloctrace.h"
#include "tools/cli/commands.h"

typedef struct bench_pools_trace {
    uint32_t n_ops, n_ids;
    ms_alloctext_op *ops; /* ids are rows of the table of blocks */
    ms_pool_setup setup;  /* of torch */
} bench_pools_trace;

/* Reads a trace of tests/truth/allocator, or one by its path; false: it
 * cannot be read. */
bool bench_pools_read(const char *path, ms_arena *arena,
                      bench_pools_trace *trace);
/* Replays the trace once, through a new pool. */
ms_err bench_pools_replay(const bench_pools_trace *trace, ms_arena *arena,
                          ms_fault *fault);

#endif
