/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_HOSTCODE_H
#define MS_GRAPHS_HOSTCODE_H

/* How long the code around a kernel keeps the host: the interpreter, modules
 * and their hooks, the dispatcher, autograd's engine, the optimizer's loop.  A
 * step whose kernels are shorter than that waits for its host.
 *
 *     uint32_t framework_ns[MS_N_PASSES];
 *     ms_hostcode_fill(device, training, shape, graph, framework_ns);
 *     framework_ns[MS_FORWARD]        beside the launch of an op of forward
 *
 * Hooks of FSDP and DeepSpeed run once for each unit or parameter; their time
 * is shared among the ops of a pass, so that the pass takes as long.  Modules'
 * own code is part of an op's (torch), or of the rates (Megatron).
 *
 * Loading samples takes no time: a step finds them ready.
 *
 * training.launch: eager mode; code that torch.compile has written, which
 * launches kernel after kernel; or CUDA graphs, which the device runs by
 * itself: a replay is one launch, which is left out beside thousands.  What is
 * recorded keeps its memory: the pool's blocks lie where they lay, so that a
 * step needs what an eager one does. */

#include "graphs/device.h"
#include "sim/names.h"
#include "sim/nouns.h"
#include "sim/shape.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ms_training ms_training;

/* training.launch */
#define MS_HOSTCODE_WORDS "eager|compiled|graph|graph-step"
enum {
    MS_LAUNCH_EAGER,
    MS_LAUNCH_COMPILED,
    MS_LAUNCH_GRAPH,
    MS_LAUNCH_GRAPH_STEP
};

/* Per op of each pass, in ns; of the optimizer's ops the time of all parameters
 * is shared among them, as that of hooks is. */
void ms_hostcode_fill(const ms_device *device, const ms_training *training,
                      const ms_shape *shape, const ms_graph *graph,
                      uint32_t framework_ns[MS_N_PASSES]);
/* Do ranks share states by code that is Python's, for each unit or parameter?
 */
bool ms_hostcode_has_hooks(const ms_shape *shape);
/* A bit per pass whose ops are recorded. */
uint32_t ms_hostcode_recorded(const ms_training *training);
/* MS_EUSAGE: no such code can launch this step. */
ms_err ms_hostcode_check(const ms_training *training, const ms_shape *shape,
                         ms_fault *fault);

#endif
