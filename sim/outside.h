/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_OUTSIDE_H
#define MS_SIM_OUTSIDE_H

/* What a process holds of the device's memory outside the caching allocator:
 * nvidia-smi counts it, torch.cuda.memory_reserved does not.  Memory that
 * libraries take through the allocator (cuBLAS workspaces) is not part of it
 * but a row of the plan.
 *
 *   device used = reserved + context_bytes of ms_machine,
 *   context_bytes = kernels_bytes + nccl_bytes + deepep_bytes +
 *                   userbuffers_bytes
 *
 * Eight A100 with NVLink under ZeRO-2: 481 MiB of context and kernels; NCCL has
 * 1 communicator of 24 channels, each connected to the rank before and the one
 * after: 1024 MiB + 24 x 2 x 12 MiB (graphs/machines/overheads.h). */

#include <stdint.h>

typedef struct ms_outside {
    uint64_t kernels_bytes; /* CUDA context, kernels of PyTorch and cuBLAS */
    uint64_t nccl_bytes;    /* its kernels and buffers; 0: one rank */
    uint64_t deepep_bytes;  /* buffers of DeepEP; 0: not used */
    uint64_t userbuffers_bytes;    /* what exchanges beside products go through
                                      (tensor:T,sp,overlap) */
    const char *exchanged_through; /* "userbuffers", "symmetric memory" */
    uint32_t communicators, channels; /* NCCL's; channels of each */
} ms_outside;

#endif
