/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The model's states in host memory or on the disk.  impl=ideal is the papers'
 * schedule: ZeRO-Offload (Ren et al. 2021, section 4) sends each gradient as it
 * is reduced, updates tile by tile while the tile before travels back;
 * ZeRO-Infinity (Rajbhandari et al. 2021, section 6) reads weights from the
 * disk, copies and gathers them three deep.  impl=deepspeed is what DeepSpeed's
 * code does, impl=megatron Megatron's HybridDeviceOptimizer
 * (policies/sources.md 6). */
#include "policies/share/offloadcalls.h"
#include "policies/share/sharedstates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHAT,
    TO,
    PARAMS_TO,
    GRADIENTS_TO,
    IMPL,
    PERCENT,
    TILE,
    DELAYED,
    READ_AHEAD,
    COPY_AHEAD,
    GATHER_AHEAD,
    READS,
    WRITES,
    PIN,
    THREADS,
    OVERLAP,
    TOPK,
    OVERLAP_STEP,
    N_PARAMS
};
enum { OPTIMIZER = 1, PARAMETERS = 2, GRADIENTS = 4 };
enum { CPU, NVME };

#define MOST_AHEAD 1000
/* One tile of DeepSpeed's cpu_adam (csrc/includes/simd.h), and its sub-group
 * (runtime/zero/config.py). */
#define TILE_ELEMENTS (INT64_C(128) << 20)
#define SUB_GROUP_ELEMENTS INT64_C(1000000000)

static const ms_param params[N_PARAMS] = {
    [WHAT] = {.name = "what",
              .type = MS_PARAM_WORDS,
              .choice = true,
              .bare = true,
              .words = "optimizer|params|gradients",
              .help = "which states have their home there, joined with /"},
    [TO] = {.name = "to",
            .type = MS_PARAM_WORD,
            .words = "cpu|nvme",
            .help = "host memory, or the node's disk"},
    [PARAMS_TO] = {.name = "params_to",
                   .type = MS_PARAM_WORD,
                   .words = "cpu|nvme",
                   .help = "the same for the parameters alone; default as to"},
    [GRADIENTS_TO] = {.name = "gradients_to",
                      .type = MS_PARAM_WORD,
                      .words = "cpu|nvme",
                      .help =
                          "the same for the gradients alone; default as to"},
    [IMPL] = {.name = "impl",
              .type = MS_PARAM_WORD,
              .words = "ideal|deepspeed|megatron|torchao", /* as ms_engine */
              .help = "whose schedule: the papers', DeepSpeed's code, "
                      "Megatron's (optimizer alone), torchao's (one rank); "
                      "default zero's, where it says one, else ideal"},
    [PERCENT] = {.name = "percent",
                 .type = MS_PARAM_INT,
                 .fallback = 100,
                 .low = 1,
                 .high = 100,
                 .help = "of the parameters, the first ones, that the host "
                         "updates (DeepSpeed's ratio, Megatron's fraction)"},
    [TILE] = {.name = "tile",
              .type = MS_PARAM_INT,
              .low = 1,
              .high = INT64_MAX,
              .help = "elements that are updated together; default 128 Mi, "
                      "with deepspeed its sub_group_size of 1e9"},
    [DELAYED] = {.name = "delayed",
                 .type = MS_PARAM_INT,
                 .low = 0,
                 .high = 1,
                 .help = "the host updates beside the next step's forward and "
                         "backward, which use the old weights (ZeRO-Offload's "
                         "one-step delay); the host holds the step before's "
                         "gradients"},
    [READ_AHEAD] = {.name = "read_ahead",
                    .type = MS_PARAM_INT,
                    .fallback = 2,
                    .low = 0,
                    .high = MOST_AHEAD,
                    .help = "gathers by which parameters are read from the "
                            "disk before their copy to the device"},
    [COPY_AHEAD] = {.name = "copy_ahead",
                    .type = MS_PARAM_INT,
                    .fallback = 1,
                    .low = 0,
                    .high = MOST_AHEAD,
                    .help = "gathers by which they are copied to the device "
                            "before they are gathered"},
    [GATHER_AHEAD] = {.name = "prefetch",
                      .type = MS_PARAM_INT,
                      .fallback = 1,
                      .low = 0,
                      .high = MOST_AHEAD,
                      .help = "without zero:3: units by which they are whole "
                              "before they are read"},
    [READS] = {.name = "pipeline_read",
               .type = MS_PARAM_INT,
               .fallback = 1,
               .low = 0,
               .high = 1,
               .help =
                   "the disk reads the next tile's state beside the update"},
    [WRITES] = {.name = "pipeline_write",
                .type = MS_PARAM_INT,
                .fallback = 1,
                .low = 0,
                .high = 1,
                .help = "the disk writes the last tile's state beside it"},
    [PIN] = {.name = "pin",
             .type = MS_PARAM_INT,
             .fallback = 1,
             .low = 0,
             .high = 1,
             .help = "0: host memory is not pinned: copies are slower and the "
                     "host waits for them"},
    [THREADS] = {.name = "threads",
                 .type = MS_PARAM_INT,
                 .low = 1,
                 .high = 4096,
                 .help = "of each rank's work on the host (OMP_NUM_THREADS); "
                         "default as launchers set it: 1 with megatron and "
                         "fsdp where a node has several ranks, else all"},
    [OVERLAP] = {.name = "overlap",
                 .type = MS_PARAM_INT,
                 .fallback = 1,
                 .low = 0,
                 .high = 1,
                 .help = "with megatron, 0: all gradients come, then the host "
                         "updates, then all weights go "
                         "(overlap_cpu_optimizer_d2h_h2d=False)"},
    [TOPK] = {.name = "topk_ratio",
              .type = MS_PARAM_NUMBERS,
              .help = "DeepSpeed's ZenFlow: of each gradient's columns those "
                      "that the device updates after every micro-batch; the "
                      "host updates after the last (microbatch:M is its "
                      "update_interval)"},
    [OVERLAP_STEP] = {.name = "overlap_step",
                      .type = MS_PARAM_INT,
                      .low = 0,
                      .high = 1,
                      .help = "with topk_ratio, 1: the host updates beside the "
                              "next micro-batches, in another process, whose "
                              "memory is not pinned"},
};

/* ---- shape --------------------------------------------------------------- */

static uint8_t pool_of(const ms_policy_value *values, uint32_t own)
{
    int64_t to =
        own != TO && values[own].given ? values[own].number : values[TO].number;
    return to == NVME ? MS_NVME_POOL : MS_HOST_POOL;
}

static ms_err refuse(const char *what, const char *hint, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, "offload", hint, "%s", what);
}

/* One system's code runs the whole step: the one that shares the states also
 * offloads them. */
static ms_err find_engine(const ms_policy_value *values, const ms_shape *shape,
                          ms_engine *engine, ms_fault *fault)
{
    static const char *const names[] = {"", "ideal", "deepspeed", "megatron",
                                        "torchao"};
    ms_engine own = MS_ENGINE_IDEAL + (ms_engine)values[IMPL].number;
    char hint[80];
    *engine = own;
    if (shape->engine == MS_ENGINE_ANY || shape->engine == own)
        return MS_OK;
    *engine = shape->engine;
    if (!values[IMPL].given)
        return MS_OK;
    snprintf(hint, sizeof hint,
             "leave impl out of offload, or type impl=%s in both", names[own]);
    return ms_fail(fault, MS_EUSAGE, "offload", hint,
                   "impl=%s contradicts zero's impl=%s: one code runs a step",
                   names[own], names[shape->engine]);
}

/* Refuses a parameter that would change nothing. */
static ms_err check_idle(const ms_policy_value *values, ms_engine engine,
                         ms_fault *fault)
{
    int64_t what = values[WHAT].number;
    bool disk = what & OPTIMIZER && values[TO].number == NVME;
    bool ideal = engine == MS_ENGINE_IDEAL;
    const struct {
        uint32_t row;
        bool idle;
        const char *needs;
    } rows[] = {
        {PARAMS_TO, !(what & PARAMETERS), "params offloaded"},
        {GRADIENTS_TO, !(what & GRADIENTS), "gradients offloaded"},
        {DELAYED,
         !ideal || disk || pool_of(values, GRADIENTS_TO) == MS_NVME_POOL,
         "impl=ideal and the optimizer and the gradients in host memory"},
        {READ_AHEAD,
         !(what & PARAMETERS) || pool_of(values, PARAMS_TO) != MS_NVME_POOL,
         "params on the disk"},
        {COPY_AHEAD, !(what & PARAMETERS), "params offloaded"},
        {GATHER_AHEAD, !(what & PARAMETERS), "params offloaded"},
        {READS, !disk, "the optimizer on the disk"},
        {WRITES, !disk, "the optimizer on the disk"},
        {OVERLAP, engine != MS_ENGINE_MEGATRON, "impl=megatron"},
        {OVERLAP_STEP, !values[TOPK].given, "topk_ratio"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (values[rows[i].row].given && rows[i].idle)
            return ms_fail(fault, MS_EUSAGE, "offload", "leave it out",
                           "%s means nothing without %s",
                           params[rows[i].row].name, rows[i].needs);
    return MS_OK;
}

static bool all_on_disk(const ms_policy_value *values)
{
    return pool_of(values, TO) == MS_NVME_POOL &&
           pool_of(values, PARAMS_TO) == MS_NVME_POOL &&
           pool_of(values, GRADIENTS_TO) == MS_NVME_POOL;
}

/* optim/cpu_offload.py: parameters stay on the one device. */
static ms_err check_torchao(const ms_policy_value *values,
                            const ms_shape *shape, ms_engine engine,
                            ms_fault *fault)
{
    if (engine != MS_ENGINE_TORCHAO)
        return MS_OK;
    if (values[WHAT].number & PARAMETERS || values[TO].number == NVME ||
        (values[GRADIENTS_TO].given && values[GRADIENTS_TO].number == NVME))
        return refuse("torchao's optimizer lies in host memory, the parameters "
                      "on the device",
                      "type offload:optimizer/gradients,impl=torchao", fault);
    if (ms_shape_model_ranks(shape) * shape->data_ranks > 1)
        return refuse("torchao's CPUOffloadOptimizer is for one rank",
                      "leave the policy that shares the states, or "
                      "impl=torchao, out",
                      fault);
    return MS_OK;
}

/* runtime/zenflow/zenflow_config.py and zenflow_stage_1_and_2.py,
 * _configure_zenflow. */
static ms_err check_zenflow(const ms_policy_value *values,
                            const ms_shape *shape, ms_engine engine,
                            ms_fault *fault)
{
    if (!values[TOPK].given)
        return MS_OK;
    double share = strtod(values[TOPK].text, NULL);
    if (strchr(values[TOPK].text, '/') != NULL || share <= 0 || share >= 1)
        return ms_fail(fault, MS_EUSAGE, "offload:topk_ratio",
                       "type topk_ratio=0.1, DeepSpeed's default",
                       "%s is no share between 0 and 1", values[TOPK].text);
    if (engine != MS_ENGINE_DEEPSPEED)
        return refuse("topk_ratio is of DeepSpeed's ZenFlow",
                      "type deepspeed:2 beside it, or impl=deepspeed", fault);
    if (shape->shared != MS_SHARED_GRADIENTS && shape->is_shared)
        return refuse("ZenFlow is simulated in DeepSpeed's stage 2",
                      "type deepspeed:2, or leave topk_ratio out", fault);
    if (values[WHAT].number & PARAMETERS ||
        pool_of(values, TO) != MS_HOST_POOL ||
        pool_of(values, GRADIENTS_TO) != MS_HOST_POOL)
        return refuse("ZenFlow has the optimizer and the gradients in host "
                      "memory, the parameters on the device",
                      "type offload:optimizer/gradients", fault);
    return MS_OK;
}

static ms_err check(const ms_policy_value *values, const ms_shape *shape,
                    ms_engine engine, ms_fault *fault)
{
    int64_t what = values[WHAT].number;
    if (!all_on_disk(values))
        MS_TRY(ms_sharedstates_two_memories("offload", shape, fault));
    if (!(what & OPTIMIZER))
        return refuse("the update reads gradients and writes weights where "
                      "the optimizer's state lies",
                      "offload the optimizer too, e.g. "
                      "offload:optimizer/params/gradients",
                      fault);
    if (engine == MS_ENGINE_MEGATRON && what != OPTIMIZER)
        return refuse("Megatron's optimizer takes gradients from the device "
                      "and leaves weights there",
                      values[IMPL].given
                          ? "type offload:optimizer,impl=megatron"
                          : "type offload:optimizer beside it",
                      fault);
    MS_TRY(check_torchao(values, shape, engine, fault));
    MS_TRY(check_zenflow(values, shape, engine, fault));
    if (what & PARAMETERS && shape->data_ranks > 1 &&
        shape->shared != MS_SHARED_PARAMETERS)
        return refuse("parameters leave the device where the ranks share them",
                      "type zero:3 beside it, or offload:optimizer/gradients",
                      fault);
    if (shape->pipeline_ranks > 1 && values[PERCENT].number < 100)
        return refuse("percent is of each rank's parameters, memsim's of the "
                      "model's first ones, which are one stage's",
                      "leave percent or pipeline out", fault);
    if (what & PARAMETERS && values[PERCENT].number < 100)
        return refuse("the device's update would write weights that lie "
                      "elsewhere",
                      "leave percent or params out", fault);
    if (values[PERCENT].number < 100 && engine == MS_ENGINE_DEEPSPEED &&
        shape->shared != MS_SHARED_PARAMETERS)
        return refuse("only DeepSpeed's stage 3 updates a share of the "
                      "parameters on the host (Twin-Flow)",
                      "leave percent out, or type zero:3", fault);
    if (what & PARAMETERS && shape->flat_step.used && shape->reshard_ranks > 0)
        return refuse("the secondary parts of zero_hpz_partition_size lie on "
                      "the device",
                      "leave params or zero_hpz_partition_size out", fault);
    return check_idle(values, engine, fault);
}

static ms_host_step step_of(const ms_policy_value *values, ms_engine engine,
                            const ms_shape *shape)
{
    switch (engine) {
    case MS_ENGINE_DEEPSPEED:
        return shape->shared == MS_SHARED_PARAMETERS ? MS_HOST_GROUPS
                                                     : MS_HOST_WHOLE;
    case MS_ENGINE_MEGATRON:
        return values[OVERLAP].number ? MS_HOST_PARAMETERS : MS_HOST_TURNS;
    case MS_ENGINE_TORCHAO:
        return MS_HOST_ARRIVALS;
    default:
        return MS_HOST_TILES;
    }
}

/* DeepSpeed has fp32 gradients on the host, in stage 3 beside 16-bit ones
 * (stage_1_and_2.py, stage3.py: partition_grads). */
static uint32_t gradient_bytes(ms_engine engine, const ms_shape *shape)
{
    if (engine != MS_ENGINE_DEEPSPEED)
        return 0;
    return shape->shared == MS_SHARED_PARAMETERS ? 6 : 4;
}

/* torchrun, which starts Megatron and FSDP, sets OMP_NUM_THREADS to 1 where a
 * node has several ranks (torch/distributed/run.py); DeepSpeed's launcher
 * leaves it, or gives each rank its cores (launcher/launch.py). */
static uint32_t threads_of(const ms_policy_value *values, ms_engine engine,
                           const ms_shape *shape)
{
    bool torchrun = engine == MS_ENGINE_MEGATRON || shape->copies_parts;
    if (values[THREADS].given)
        return (uint32_t)values[THREADS].number;
    return torchrun && ms_shape_ranks(shape) > 1 ? 1 : 0;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    int64_t what = values[WHAT].number;
    ms_engine engine;
    MS_TRY(find_engine(values, shape, &engine, fault));
    bool deepspeed = engine == MS_ENGINE_DEEPSPEED;
    int64_t tile = deepspeed ? SUB_GROUP_ELEMENTS : TILE_ELEMENTS;
    MS_TRY(check(values, shape, engine, fault));
    if (deepspeed && shape->flat_step.tile_elements > 0) /* zero's sub-group */
        tile = (int64_t)shape->flat_step.tile_elements;
    if (values[TILE].given)
        tile = values[TILE].number;
    shape->offload = (ms_offload){
        .optimizer = pool_of(values, TO),
        .engine = (uint8_t)engine,
        .step = step_of(values, engine, shape),
        .host_share = (double)values[PERCENT].number / 100,
        .tile_elements = (uint64_t)tile,
        .gradient_bytes = gradient_bytes(engine, shape),
        .threads = threads_of(values, engine, shape),
        .pageable = !values[PIN].number,
        .delayed = values[DELAYED].number || values[OVERLAP_STEP].number,
        .selected = values[TOPK].given ? strtod(values[TOPK].text, NULL) : 0,
        .reads_ahead = values[READS].number,
        .writes_behind = values[WRITES].number,
    };
    if (what & PARAMETERS)
        shape->offload.parameters = pool_of(values, PARAMS_TO);
    if (what & GRADIENTS || deepspeed)
        shape->offload.gradients = pool_of(values, GRADIENTS_TO);
    return MS_OK;
}

/* ---- place --------------------------------------------------------------- */

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_offloadcalls how = {.read_ahead = (uint32_t)values[READ_AHEAD].number,
                           .copy_ahead = (uint32_t)values[COPY_AHEAD].number,
                           .units_ahead =
                               (uint32_t)values[GATHER_AHEAD].number};
    return ms_offloadcalls_write(context, &how, program, fault);
}

/* The step alone fetches gradients and sends weights; other states would move
 * in the order of one rank's calls. */
static bool serves_ranks(const ms_policy_value *values)
{
    return values[WHAT].number == OPTIMIZER && !values[DELAYED].number &&
           !values[TOPK].given;
}

const ms_policy ms_policy_offload = {
    .name = "offload",
    .summary = "optimizer state, parameters, gradients live in host memory or "
               "on the disk",
    .example = "offload:optimizer/gradients",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
    .serves_ranks = serves_ranks,
};
