/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CUDNN_H
#define MS_CUDNN_H

/* What cuDNN takes through PyTorch's allocator (training.cudnn), and when the
 * allocator's cache is emptied for it.
 *
 * With torch.backends.cudnn.benchmark, the first call of each convolution (its
 * sizes and direction) is tried out with several of cuDNN's kernels
 * (ATen/native/cudnn/Conv_v8.cpp, run_single_conv): a workspace for the
 * greediest is allocated, freed, and the cache emptied, so that nothing of the
 * trial is left but the cuts it made in the pool.  The fastest kernel then has
 * its workspace at each call (run_conv_plan), freed when the call returns.
 *
 * Which kernel wins is measured by cuDNN, not derived by anyone.  Its
 * workspace is a rate of the device: in the gradient of a weight wider than
 * 1 x 1, "cudnn_share" of what input and output take, where they take
 * "cudnn_from_mib" or more (kernels that want other layouts copy both); none
 * in forward, in the gradient of the input, and below.  VGG-19 at batch 128,
 * 3 x 3 over [64, 224, 224] on an A100: 1568 MiB each way, so 6272 MiB; at
 * batch 16, 392 MiB together, none.
 *
 * Left out: 16-bit and channels_last convolutions (no measurement), depthwise
 * ones (PyTorch's own kernels in fp32, ATen/native/Convolution.cpp), and the
 * trial itself, which nvidia-smi only sees if it looks just then. */

#include "graphs/trace/tensors.h"
#include "sim/graph.h"

/* The open op runs this convolution in the trace's pass, for an output of
 * these sizes: is it tried out first? */
void ms_cudnn_search(ms_trace *trace, uint32_t x, uint32_t weight,
                     const int64_t *y_sizes);
/* What the gradient of weight takes while the open op makes it; y: of the
 * output's sizes. */
void ms_cudnn_workspace(ms_trace *trace, uint32_t x, uint32_t weight,
                        uint32_t y);

/* Has it convolutions? */
bool ms_cudnn_convolves(const ms_graph *graph);

#endif
