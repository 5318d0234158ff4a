/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOSTPLACE_H
#define MS_SIM_HOSTPLACE_H

/* Whose host memory a copy lies in. */

#include "sim/pools/hostpool.h"

typedef enum ms_host_memory {
    MS_HOSTED_OWN,      /* the code's own, of just its bytes (cudaMallocHost) */
    MS_HOSTED_PINNED,   /* PyTorch's pinned allocator: a block each */
    MS_HOSTED_KEYED,    /* a pool of such blocks by their bytes (Megatron) */
    MS_HOSTED_PAGEABLE, /* malloc */
    MS_HOSTED_FLAT,     /* in blocks of the graph, which are there anyway */
    MS_N_HOSTED
} ms_host_memory;

/* Of a graph: where its persistent storages' copies lie (ms_host_memory; NULL:
 * OWN), and what is asked of PyTorch's allocator once, for all steps. */
typedef struct ms_hostplace {
    uint8_t *of;
    uint32_t n_blocks;
    uint64_t *block_bytes;
} ms_hostplace;

/* Of a step: where what is saved for backward lies, and the allocator's
 * options. */
typedef struct ms_host_pools {
    uint8_t saves; /* ms_host_memory */
    ms_hostpool_options pinned;
} ms_host_pools;

#endif
