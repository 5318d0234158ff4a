/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_HOSTCODE_H
#define MS_GRAPHS_HOSTCODE_H

/* How long the code around a kernel keeps the host: the interpreter, modules
 * and their hooks, the dispatcher, autograd's engine, the optimizer's loop.  A
 * step whose kernels are shorter than that waits for its host.
 *
 *     uint32_t framework_ns[MS_N_PASSES];
 *     ms_hostcode_fill(device, training, graph, framework_ns);
 *     framework_ns[MS_FORWARD]        beside the launch of an op of forward
 *
 * Loading samples takes no time: a step finds them ready. */

#include "graphs/device.h"
#include "sim/names.h"
#include "sim/nouns.h"

#include <stdint.h>

typedef struct ms_training ms_training;

/* Per op of each pass, in ns; of the optimizer's ops the time of all parameters
 * is shared among them. */
void ms_hostcode_fill(const ms_device *device, const ms_training *training,
                      const ms_graph *graph,
                      uint32_t framework_ns[MS_N_PASSES]);

#endif
