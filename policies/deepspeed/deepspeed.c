/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSpeed's ZeRO: the policy, its parameters by the names of its
 * configuration, and what they mean in which stage (deepspeed.h says what the
 * stages do). */
#include "policies/deepspeed/deepspeed.h"
#include "policies/share/sharedstates.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/program.h"

#include <stdio.h>
#include <string.h>

enum {
    STAGE,
    RANKS,
    CONTIGUOUS,
    SCATTER,
    BUCKET,
    MULTI_RANK,
    ALL_GATHER,
    OVERLAP,
    ROUND_ROBIN,
    SUB_GROUP,
    PREFETCH_BUCKET,
    PERSISTENT,
    PERSISTENT_ALL,
    MAX_LIVE,
    MAX_REUSE,
    QUANTIZED,
    HPZ,
    QUANTIZED_GRADIENTS,
    LINEAR,
    N_PARAMS
};

#define MOST_RANKS 65536
#define MOST_ELEMENTS INT64_C(1000000000000000000)

#define SWITCH(key, value, text)                                               \
    {                                                                          \
        .name = (key), .type = MS_PARAM_INT, .fallback = (value), .high = 1,   \
        .help = (text)                                                         \
    }
#define ELEMENTS(key, value, least, text)                                      \
    {                                                                          \
        .name = (key), .type = MS_PARAM_INT, .fallback = (value),              \
        .low = (least), .high = MOST_ELEMENTS, .help = (text)                  \
    }

static const ms_param params[N_PARAMS] = {
    [STAGE] = {.name = "stage",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 0,
               .high = 3,
               .help = "what is shared: 0 nothing, 1 optimizer state, 2 and "
                       "gradients, 3 and parameters (stage 1 with "
                       "training.gradients=fp32: BF16_Optimizer)"},
    [RANKS] = {.name = "dp",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = MOST_RANKS,
               .help = "data-parallel ranks; default --gpus"},
    [CONTIGUOUS] = SWITCH("contiguous_gradients", 1,
                          "gradients are copied into a bucket; default 1"),
    [SCATTER] = SWITCH("reduce_scatter", 1,
                       "reduce to the owners; 0: all-reduce the "
                       "bucket in place; default 1"),
    [BUCKET] = ELEMENTS("reduce_bucket_size", 500000000, 1,
                        "elements of a bucket of gradients; default 5e8"),
    [MULTI_RANK] = SWITCH("use_multi_rank_bucket_allreduce", 1,
                          "stages 1 and 2: all-reduce a flat copy "
                          "of the bucket; 0: reduce each owner's slice to it; "
                          "default 1"),
    [ALL_GATHER] = ELEMENTS("allgather_bucket_size", 500000000, 1,
                            "stages 1 and 2: DeepSpeed ignores it "
                            "where it gathers the flat group in place"),
    [OVERLAP] = SWITCH("overlap_comm", 0,
                       "collectives run beside the backward; stages "
                       "1 and 2 have two buckets then; default 1 in stage 3"),
    [ROUND_ROBIN] =
        SWITCH("round_robin_gradients", 0, "stages 1 and 2: owners take turns"),
    [SUB_GROUP] = ELEMENTS("sub_group_size", 1000000000, 1,
                           "stage 3: elements of the part that are "
                           "updated together; default 1e9"),
    [PREFETCH_BUCKET] = ELEMENTS("prefetch_bucket_size", 50000000, 0,
                                 "stage 3: elements gathered ahead; "
                                 "default 5e7"),
    [PERSISTENT] = ELEMENTS("param_persistence_threshold", 100000, 0,
                            "stage 3: parameters of at most so many "
                            "elements stay whole; default 1e5"),
    [PERSISTENT_ALL] = ELEMENTS("model_persistence_threshold", MOST_ELEMENTS, 1,
                                "stage 3: as long as they all have "
                                "no more; default no limit"),
    [MAX_LIVE] = ELEMENTS("max_live_parameters", 1000000000, 0,
                          "stage 3: whole elements up to which it "
                          "prefetches; default 1e9"),
    [MAX_REUSE] = ELEMENTS("max_reuse_distance", 1000000000, 0,
                           "stage 3: what is read again within so "
                           "many elements stays whole; default 1e9"),
    [QUANTIZED] = SWITCH("zero_quantized_weights", 0,
                         "stage 3: weights are gathered as int8 "
                         "with scales (ZeRO++)"),
    [HPZ] = {.name = "zero_hpz_partition_size",
             .type = MS_PARAM_INT,
             .fallback = 1,
             .low = 1,
             .high = MOST_RANKS,
             .help = "stage 3: so many neighbours keep secondary "
                     "parts, from which weights are gathered after the first "
                     "time (ZeRO++)"},
    [QUANTIZED_GRADIENTS] =
        SWITCH("zero_quantized_gradients", 0,
               "stage 3: between nodes gradients are summed by two "
               "all-to-alls of int4 (ZeRO++)"),
    [LINEAR] = SWITCH("mem_efficient_linear", 1,
                      "stage 3: the model is built under zero.Init, "
                      "which replaces torch's linear; 0: it is not, and views "
                      "of their weights that linear layers save for backward "
                      "keep what was gathered for forward; default 1"),
};

/* ---- what means nothing here --------------------------------------------- */

/* The stages in which DeepSpeed reads a parameter, a bit each. */
static const uint8_t read_in[N_PARAMS] = {
    [CONTIGUOUS] = 0xe,
    [SCATTER] = 0xe,
    [BUCKET] = 0xe,
    [MULTI_RANK] = 0x6,
    [ALL_GATHER] = 0x6,
    [OVERLAP] = 0xe,
    [ROUND_ROBIN] = 0x6,
    [SUB_GROUP] = 0x8,
    [PREFETCH_BUCKET] = 0x8,
    [PERSISTENT] = 0x8,
    [PERSISTENT_ALL] = 0x8,
    [MAX_LIVE] = 0x8,
    [MAX_REUSE] = 0x8,
    [QUANTIZED] = 0x8,
    [HPZ] = 0x8,
    [QUANTIZED_GRADIENTS] = 0x8,
    [LINEAR] = 0x8,
};

static ms_err check_idle(const ms_policy_value *values, const char *where,
                         ms_fault *fault)
{
    char hint[64];
    for (uint32_t i = CONTIGUOUS; i < N_PARAMS; i++) {
        if (!values[i].given || read_in[i] >> values[STAGE].number & 1)
            continue;
        snprintf(hint, sizeof hint, "leave %s out", params[i].name);
        return ms_fail(fault, MS_EUSAGE, where, hint,
                       "%s changes nothing in stage %d", params[i].name,
                       (int)values[STAGE].number);
    }
    if (values[MULTI_RANK].given && !values[SCATTER].number)
        return ms_fail(fault, MS_EUSAGE, where,
                       "leave use_multi_rank_bucket_allreduce out",
                       "without reduce_scatter the bucket is all-reduced");
    if (values[QUANTIZED_GRADIENTS].number && !values[SCATTER].number)
        return ms_fail(fault, MS_EUSAGE, where,
                       "leave zero_quantized_gradients out",
                       "without reduce_scatter the bucket is all-reduced");
    return MS_OK;
}

static ms_err check_secondary(const ms_policy_value *values,
                              const ms_shape *shape, const char *where,
                              ms_fault *fault)
{
    return ms_policy_check_groups(where,
                                  "zero_hpz_partition_size=", shape->data_ranks,
                                  (uint32_t)values[HPZ].number, fault);
}

/* ---- shape --------------------------------------------------------------- */

/* The first setting of the bucket that was given, or NULL. */
static const char *bucket_key(const ms_policy_value *values)
{
    for (uint32_t i = CONTIGUOUS; i <= ROUND_ROBIN; i++)
        if (values[i].given)
            return params[i].name;
    return NULL;
}

static void shape_step(const ms_policy_context *context, ms_shape *shape)
{
    const ms_policy_value *values = context->values;
    int64_t stage = values[STAGE].number;
    shape->holds_gradients = stage == 3;
    shape->part = stage == 3 ? MS_PART_ELEMENTS : MS_PART_FLAT;
    shape->flat_multiple = 2; /* nccl_start_alignment_factor */
    shape->flat_step =
        (ms_flat_step){.used = true,
                       .frees_gradients = stage < 3,
                       .whole = stage == 0,
                       .has_sum = stage == 1,
                       .scatters = values[SCATTER].number,
                       .bucket_key = bucket_key(values),
                       .is_named = strcmp(context->name, "deepspeed") == 0};
    if (stage < 3)
        return;
    shape->flat_step.tile_elements = (uint64_t)values[SUB_GROUP].number;
    shape->whole_elements = (uint64_t)values[PERSISTENT].number;
    shape->whole_in_all = (uint64_t)values[PERSISTENT_ALL].number;
    shape->exchanges = values[QUANTIZED_GRADIENTS].number;
    if (values[HPZ].number > 1)
        shape->reshard_ranks = (uint32_t)values[HPZ].number;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    char where[32];
    snprintf(where, sizeof where, "%s:%d", context->name,
             (int)values[STAGE].number);
    MS_TRY(ms_sharedstates_ranks(&values[RANKS], where, shape, fault));
    shape->shared = (ms_shared)values[STAGE].number;
    shape->engine = MS_ENGINE_DEEPSPEED;
    shape_step(context, shape);
    MS_TRY(check_idle(values, where, fault));
    return check_secondary(values, shape, where, fault);
}

/* ---- place --------------------------------------------------------------- */

/* The number of the job's ranks on one node. */
static uint32_t node_ranks(const ms_policy_context *context)
{
    uint32_t ranks = context->shape->data_ranks;
    uint32_t local = context->opts != NULL
                         ? context->opts->groups[MS_GROUP_DATA].node_ranks
                         : 0;
    return local > 0 && local < ranks ? local : ranks;
}

static ms_err write_program(const ms_policy_context *context,
                            const ms_deepspeed *how, ms_program *program,
                            ms_fault *fault)
{
    const ms_shape *shape = context->shape;
    ms_program old = *program, made;
    ms_deepspeed_writer w = {.context = context,
                             .graph = context->graph,
                             .how = how,
                             .arena = context->arena,
                             .fault = fault,
                             .program = &made,
                             .ranks = shape->data_ranks,
                             .node_ranks = node_ranks(context),
                             .fetches = {.name = "fetch_event"},
                             .reductions = {.name = "reduce_event"},
                             .has_sum =
                                 how->stage == 1 &&
                                 context->graph->storage_shard_bytes == NULL,
                             .far = shape->offload.gradients != MS_DEVICE_POOL,
                             .item_bytes = 1};
    if (how->stage == 3)
        MS_TRY(ms_program_part_replays(w.graph, &old, w.arena, fault));
    MS_TRY(ms_program_fork(&old, w.arena, &made, fault));
    MS_TRY(ms_deepspeedrows_open(&w));
    MS_TRY(how->stage == 3 ? ms_deepspeed3_write(&w, &old)
                           : ms_deepspeedflat_write(&w, &old));
    *program = made;
    return MS_OK;
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    uint32_t stage = (uint32_t)values[STAGE].number;
    ms_deepspeed how = {
        .stage = stage,
        .contiguous = values[CONTIGUOUS].number,
        .scatter = values[SCATTER].number,
        .multi_rank = values[MULTI_RANK].number,
        .overlap = values[OVERLAP].given ? values[OVERLAP].number : stage == 3,
        .round_robin = values[ROUND_ROBIN].number,
        .quantized = values[QUANTIZED].number,
        .quantized_gradients = values[QUANTIZED_GRADIENTS].number,
        .views = !values[LINEAR].number,
        .secondary_ranks = (uint32_t)values[HPZ].number,
        .bucket = (uint64_t)values[BUCKET].number,
        .prefetch = (uint64_t)values[PREFETCH_BUCKET].number,
        .max_live = (uint64_t)values[MAX_LIVE].number,
        .max_reuse = (uint64_t)values[MAX_REUSE].number,
    };
    return write_program(context, &how, program, fault);
}

/* deepspeedai/DeepSpeed@edaa7221, deepspeed/runtime/pipe/engine.py,
 * PipelineEngine.__init__. */
static const char *refuses_ranks(const ms_policy_value *values)
{
    if (values[STAGE].number < 2)
        return NULL;
    return "DeepSpeed does not run ZeRO-2 or ZeRO-3 beside a pipeline: they "
           "reduce gradients to parts in each backward, and a stage runs one "
           "for each micro-batch (PipelineEngine asserts it)";
}

const ms_policy ms_policy_deepspeed = {
    .name = "deepspeed",
    .summary =
        "ZeRO as DeepSpeed has it; zero:STAGE,impl=deepspeed is the same",
    .example = "deepspeed:3,dp=8",
    .params = params,
    .n_params = N_PARAMS,
    .variant_of = "zero",
    .variant_by = "impl=deepspeed",
    .variant_at = CONTIGUOUS,
    .shape = shape,
    .place = place,
    .refuses_ranks = refuses_ranks,
    .serves_instead = "take zero:1 beside pipeline",
};
