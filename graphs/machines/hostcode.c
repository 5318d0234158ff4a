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

/* Microseconds of the hooks by which ranks share states, beside the collectives
 * and copies that they launch: of each unit and each of its parameters, where
 * weights become whole and are let go again, and where gradients are summed.
 *
 * FSDP2: its hooks make 18 calls for a unit that gathers and 11 for one that
 * reduces, and 5 for each parameter (views, resizes, attributes, a DTensor;
 * PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py,
 * foreach_all_gather, foreach_all_gather_copy_out, foreach_reduce, and
 * _fsdp_param.py, to_unsharded, to_sharded), each as long as the code around
 * an op of forward.  An estimate, within a factor of two: a profiler saw 1 ms
 * for such a hook of a block of unknown size (PyTorch issue 173680).  A forward
 * that backward runs again has none (_fsdp_state.py, _pre_forward).
 *
 * FSDP1, counted alike with 16-bit parameters: 25 calls for a unit that gathers
 * and lets go again (_runtime_utils.py, _pre_forward to _post_forward, and
 * _pre_backward_hook; flat_param.py, pre_unshard to post_reshard: streams,
 * events, resizes, the cast of the shard, views of the whole), 16 for one that
 * reduces (_post_backward_hook, _finalize_params), and 2 for each parameter in
 * forward alone (_use_unsharded_views: a view, an attribute), 1 a pass.  No
 * measured step waits for them.
 *
 * What DTensors inside of layers take (torch's tensor parallelism) is left out:
 * 90 us an op in 2.9 (PyTorch pull request 159699), 25 from 2.10 on; no
 * measured step says how many of a layer's ops go through them.
 *
 * DeepSpeed, stages 1 and 2: each gradient goes through Python, in a hook or
 * when backward has ended.  24 layers of 147 parameters took 50.5 ms a step on
 * 8 H100 (DeepSpeed pull request 7886), of which 15 to 27 are of what is around
 * them: 160 to 240.  Stage 3 also fetches and lets go of each module's
 * parameters: 148 of them took 104 ms a step on one GPU (DeepSpeedExamples
 * training/bf16_master_weight, whose clock does not wait for the device), 10 of
 * them not in hooks. */
static const struct hooks {
    double unit_whole, whole, unit_sum, sum;
    bool again; /* when forward runs again */
} no_hooks, fsdp_hooks = {153, 42, 94, 42, false},
            fsdp1_hooks = {213, 8.5, 136, 0, false},
            deepspeed_hooks = {0, 0, 0, 200, false},
            deepspeed3_hooks = {0, 220, 0, 200, true};

static bool is_fsdp2(const ms_shape *shape)
{
    return shape->copies_parts && shape->part == MS_PART_ROWS;
}

static const struct hooks *hooks_of(const ms_shape *shape)
{
    if (is_fsdp2(shape))
        return &fsdp_hooks;
    if (shape->part == MS_PART_BLOCKS)
        return &fsdp1_hooks;
    if (shape->engine != MS_ENGINE_DEEPSPEED ||
        shape->shared == MS_SHARED_NOTHING)
        return &no_hooks;
    return shape->shared == MS_SHARED_PARAMETERS ? &deepspeed3_hooks
                                                 : &deepspeed_hooks;
}

bool ms_hostcode_has_hooks(const ms_shape *shape)
{
    return hooks_of(shape) != &no_hooks;
}

/* Of the step for each parameter that is a DTensor, as FSDP2's are: 43 ms for
 * 150 in one fused kernel, 138 ms in 6 lists (microsoft/dion pull request 63);
 * an op by itself 133 (aten::detach less its 4.8 for a plain tensor, PyTorch
 * pull request 160580).  From PyTorch 2.10 on an op takes 25 (pull request
 * 166371), which is not in here. */
#define DTENSOR_FUSED_US 287
#define DTENSOR_LISTS_US 920
#define DTENSOR_OP_US 128

static double dtensors_us(const ms_training *training, uint32_t n,
                          uint32_t n_ops)
{
    bool fused = training->optimizer_impl == MS_IMPL_FUSED ||
                 (training->optimizer_impl == MS_IMPL_AUTO &&
                  training->optimizer == MS_ADAMW);
    if (training->optimizer_impl == MS_IMPL_LOOP)
        return (double)DTENSOR_OP_US * n_ops;
    return (double)(fused ? DTENSOR_FUSED_US : DTENSOR_LISTS_US) * n;
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

/* Weights that have a gradient. */
static uint32_t n_trained(const ms_graph *graph)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        n += ms_graph_is_weight(graph, s) && graph->storage_grad[s] != MS_NONE;
    return n;
}

/* Ops of forward and of backward that the host issues. */
static void count_issued(const ms_graph *graph, uint32_t *n_forward,
                         uint32_t *n_backward)
{
    *n_forward = *n_backward = 0;
    for (uint32_t op = 0; op < graph->step_first; op++) {
        uint8_t pass = graph->op_pass[op];
        bool issued = graph->op_ns[op] > 0;
        *n_forward += issued && pass == MS_FORWARD;
        *n_backward +=
            issued && (pass == MS_GRAD_INPUT || pass == MS_GRAD_WEIGHT);
    }
}

/* Shares what the hooks of a pass take among its ops. */
static uint32_t shared_ns(double us, double scale, uint32_t n_ops)
{
    return n_ops > 0 ? (uint32_t)(us * scale / n_ops) : 0;
}

static void add_hooks(const struct hooks *hooks, const ms_graph *graph,
                      uint32_t trained, double scale,
                      uint32_t framework_ns[MS_N_PASSES])
{
    double units = graph->n_blocks + 1.0;
    double whole = units * hooks->unit_whole + n_weights(graph) * hooks->whole;
    double sum = units * hooks->unit_sum + trained * hooks->sum;
    uint32_t n_forward, n_backward;
    count_issued(graph, &n_forward, &n_backward);
    uint32_t forward_ns = shared_ns(whole, scale, n_forward);
    uint32_t backward_ns = shared_ns(whole + sum, scale, n_backward);
    framework_ns[MS_FORWARD] += forward_ns;
    framework_ns[MS_RECOMPUTE] += hooks->again ? forward_ns : 0;
    framework_ns[MS_GRAD_INPUT] += backward_ns;
    framework_ns[MS_GRAD_WEIGHT] += backward_ns;
}

void ms_hostcode_fill(const ms_device *device, const ms_training *training,
                      const ms_shape *shape, const ms_graph *graph,
                      uint32_t framework_ns[MS_N_PASSES])
{
    const struct code *code = code_of(training);
    double scale = US * device->host_share;
    double step_us = code->parameter * n_weights(graph);
    uint32_t n_step = graph->n_ops - graph->step_first;
    uint32_t forward_ns = (uint32_t)(code->forward * scale);
    uint32_t backward_ns = (uint32_t)(code->backward * scale);
    framework_ns[MS_FORWARD] = framework_ns[MS_LOSS] = forward_ns;
    framework_ns[MS_RECOMPUTE] = forward_ns;
    framework_ns[MS_GRAD_INPUT] = framework_ns[MS_GRAD_WEIGHT] = backward_ns;
    framework_ns[MS_ACCUMULATE] = backward_ns;
    if (ms_hostcode_has_hooks(shape)) {
        uint32_t trained = n_trained(graph);
        add_hooks(hooks_of(shape), graph, trained, scale, framework_ns);
        if (is_fsdp2(shape))
            step_us += dtensors_us(training, trained, n_step);
    }
    framework_ns[MS_STEP] = shared_ns(step_us, scale, n_step);
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
