/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_OVERHEADS_H
#define MS_OVERHEADS_H

/* Fixed overheads of a process: what its device file and settings make of
 * sim/outside.h, and the size of a cuBLAS workspace.
 *
 * Context and kernels are measured per device and build of CUDA ("context_mib"
 * with lazy loading, "context_eager_mib" with CUDA_MODULE_LOADING=EAGER; of
 * other builds "context_11_3_mib" and the like, training.cuda); nobody here
 * can derive them.  481, 922, 942, 1429 and 1823 MiB have been seen on A100s.
 *
 * NCCL takes "nccl_mib" once per process (kernels, proxies; the 1 to 2 GiB
 * that initialization takes according to stas00/ml-engineering
 * training/performance, less buffers), and for each communicator buffers:
 *
 *   channels x neighbours x (receive + send)
 *
 * neighbours: rings receive from one rank, trees within a node (chains in the
 * order of the rings) from both, so min(2, ranks - 1), however many ranks
 * there are.  receive: LL (8 steps of 512 threads x 8 lines x 16 B), LL128 (8
 * steps of 640 threads x 120 words x 8 B) and Simple (NCCL_BUFFSIZE, 4 MiB),
 * NVIDIA/nccl src/init.cc, computeBuffSizes, in whole pages of 2 MiB: 10 MiB;
 * send: one page (both sizes as the log in nccl issue 1685 has them).
 * Switches that reduce (NVLS) take more, which depends on the version: it is
 * left out.
 *
 * Communicators are those that the step's collectives go over: one where all
 * ranks share, two where groups do and meet (HSDP), or where weights stay
 * divided among neighbours after forward. */

#include "graphs/device.h"
#include "graphs/training.h"
#include "sim/nouns.h"
#include "sim/outside.h"

/* training.cuda */
enum { MS_CUDA_DEVICE, MS_CUDA_11_3, MS_CUDA_11_7, MS_CUDA_STATION };

/* graph: of the step, for what it has convolutions for.  MS_EUSAGE where the
 * device's file lacks what a setting asks for. */
ms_err ms_overheads_find(const ms_device *device, const ms_training *training,
                         const ms_shape *shape, const ms_graph *graph,
                         ms_outside *outside, ms_fault *fault);
/* Bytes of one cuBLAS workspace: training's, else the device's. */
uint64_t ms_overheads_workspace(const ms_device *device,
                                const ms_training *training);
/* ":4096:2:16:8", as CUBLAS_WORKSPACE_CONFIG has it (KiB and how many, once or
 * more), in bytes; false: it is no such text, or too large. */
bool ms_overheads_read_workspace(const char *text, int64_t *bytes);

#endif
