/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_HOSTBLOCKS_H
#define MS_HOSTBLOCKS_H

/* Which memory on the host a code takes for the states that it offloads
 * (graphs/states.md 5): PyTorch's pinned blocks, one for each or one for
 * many, or pageable memory.
 *
 *     code              weights   gradients     masters  moments
 *     the papers        own memory, of just their bytes
 *     FSDP2             each      as they come  (weights) pageable
 *     DeepSpeed 1, 2    -         one, sums of  one      pageable
 *                                 micro-batches
 *                                 each
 *     its ZenFlow apart -         sums of       pageable pageable
 *                                 micro-batches
 *                                 each
 *     DeepSpeed 3       one       16 bits one,  pageable pageable
 *                                 fp32 a sub-group
 *     Megatron, torchao -         each          each     pageable
 *
 * Weights on the disk pass through one block of DeepSpeed's swapper.  pin=0:
 * all of it is pageable.  Sources: PyTorch _fsdp_param.py and
 * _fsdp_collectives.py; DeepSpeed stage_1_and_2.py, stage3.py and its memory
 * notes (pinned are 6 bytes per parameter with params offloaded, else 4);
 * Megatron-Core hybrid_optimizer.py; torchao optim/cpu_offload.py. */

#include "graphs/optimizer/optimizer.h"

typedef enum ms_host_role {
    MS_HOST_WEIGHT,
    MS_HOST_GRADIENT,
    MS_HOST_MASTER,
    MS_HOST_MOMENT,
    MS_HOST_GRADIENT_COPY, /* Megatron's; DeepSpeed's sums */
    MS_N_HOST_ROLES
} ms_host_role;

/* ms_parts_home of what has this role: elements that take so many bytes on the
 * host. */
void ms_hostblocks_home(ms_trace *trace, ms_host_role role, const ms_home *home,
                        uint64_t elements, uint64_t bytes);
/* The buffers of tiles that come from the disk, each of so many states: of
 * DeepSpeed's swapper a block a state, else the code's own. */
void ms_hostblocks_slot(ms_trace *trace, uint32_t storage, uint64_t bytes,
                        uint32_t states);
/* Ends the flat buffers; to be called when all parameters have homes. */
void ms_hostblocks_close(ms_trace *trace);

#endif
