/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/hostcode.h"
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"

#define US 1000.0

/* Microseconds beside the launch: of an op of forward, of one of backward, and
 * of the step for each parameter.
 *
 * PyTorch's eager mode: the forward of a Linear of torch takes the host 13.48
 * us on a DGX H100 (Xeon 8480C, TransformerEngine issue 2053), of which 5 are
 * the launch; backward, without an interpreter, and the fused step of a
 * parameter are assumptions.
 *
 * Inductor's code: CachingAutotuner.run takes 6.8 to 9.1 us a kernel on a
 * GB200's Grace, of which the bare launch is 3.0 to 3.3 (meta-pytorch/
 * tritonbench pull request 1017); Grace takes 2.5 times as long as that Xeon
 * for a Linear (TransformerEngine issue 2053): (8 - 3.2) / 2.5.
 *
 * Megatron-LM as vTrain ran it (with checkpoints: their random state is in
 * these times) and Megatron-Core with Transformer Engine: rates fitted on the
 * half of vTrain's single-node steps (MICRO 2024) and of NVIDIA's regression
 * runs of a model of 64 M parameters (Megatron-LM d98e8a64) that
 * tests/truth/times.tsv calls "fit"; all of these steps wait for the host. */
static const struct code {
    double forward, backward, parameter;
} torch_code = {8.5, 4, 10}, megatron_code = {42, 33, 15},
  mcore_code = {145, 65, 150}, compiled_code = {1.9, 1.9, 1.9};

static const struct code *code_of(const ms_training *training)
{
    if (training->launch == MS_LAUNCH_COMPILED)
        return &compiled_code;
    if (training->kernels == MS_MEGATRON)
        return &mcore_code;
    return training->kernels == MS_KORTHIKANTI ? &megatron_code : &torch_code;
}

static uint32_t n_weights(const ms_graph *graph)
{
    uint32_t n = 0;
    if (graph->storage_refs != NULL) /* prepared: they were counted */
        return graph->n_weights;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        n += ms_graph_is_weight(graph, s);
    return n;
}

void ms_hostcode_fill(const ms_device *device, const ms_training *training,
                      const ms_graph *graph, uint32_t framework_ns[MS_N_PASSES])
{
    const struct code *code = code_of(training);
    double scale = US * device->host_share;
    uint32_t n_step = graph->n_ops - graph->step_first;
    uint32_t forward_ns = (uint32_t)(code->forward * scale);
    uint32_t backward_ns = (uint32_t)(code->backward * scale);
    framework_ns[MS_FORWARD] = framework_ns[MS_LOSS] = forward_ns;
    framework_ns[MS_RECOMPUTE] = forward_ns;
    framework_ns[MS_GRAD_INPUT] = framework_ns[MS_GRAD_WEIGHT] = backward_ns;
    framework_ns[MS_ACCUMULATE] = backward_ns;
    if (n_step > 0)
        framework_ns[MS_STEP] =
            (uint32_t)(code->parameter * scale * n_weights(graph) / n_step);
}

uint32_t ms_hostcode_recorded(const ms_training *training)
{
    uint32_t step = 1u << MS_STEP, all = (1u << MS_N_PASSES) - 1;
    if (training->launch < MS_LAUNCH_GRAPH)
        return 0;
    return training->launch == MS_LAUNCH_GRAPH ? all & ~step : all;
}

ms_err ms_hostcode_check(const ms_training *training, const ms_shape *shape,
                         ms_fault *fault)
{
    const char *hint = "leave training.launch out";
    if (training->launch != MS_LAUNCH_EAGER && training->device == 1)
        return ms_fail(fault, MS_EUSAGE, "training.launch", hint,
                       "nothing is launched where a CPU runs the ops");
    if (training->launch < MS_LAUNCH_GRAPH)
        return MS_OK;
    if (shape->offload.optimizer != MS_DEVICE_POOL)
        return ms_fail(fault, MS_EUSAGE, "training.launch", hint,
                       "a recorded step has no work of the host's, but the "
                       "host updates weights (offload)");
    if (shape->paging.page_bytes > 0)
        return ms_fail(fault, MS_EUSAGE, "training.launch", hint,
                       "a recorded step has its memory, but pages come and go "
                       "(uvm)");
    return MS_OK;
}
