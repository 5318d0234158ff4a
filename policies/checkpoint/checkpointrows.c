/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/checkpointrows.h"

#define MOST 1000000
/* Segments that the default program replays, or what bind makes again; and
 * plans that are written as calls (chaincalls.h). */
#define SEGMENTED "full|sqrt|every|each|first|sequential|blocks|layers"
#define KEEPS SEGMENTED "|selective|modules"
#define REPLAYED SEGMENTED "|nested|recursive|chen|optimal|revolve"

const ms_param ms_checkpointrows_params[MS_CHECKPOINT_N] = {
    [MS_CHECKPOINT_NONE] = {.name = "none",
                            .type = MS_PARAM_FLAG,
                            .choice = true,
                            .help = "checkpoint nothing"},
    [MS_CHECKPOINT_FULL] = {.name = "full",
                            .type = MS_PARAM_FLAG,
                            .choice = true,
                            .help = "each block is a segment"},
    [MS_CHECKPOINT_SQRT] =
        {.name = "sqrt",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "round(sqrt L) segments of the L blocks (of each stage); "
                 "the last is not checkpointed"},
    [MS_CHECKPOINT_SELECTIVE] = {.name = "selective",
                                 .type = MS_PARAM_FLAG,
                                 .choice = true,
                                 .help = "recompute the attention core only"},
    [MS_CHECKPOINT_SAC] =
        {.name = "sac",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "each block is a segment that keeps the outputs of "
                 "attention and of every second aten::mm, as torchtitan's "
                 "selective op"},
    [MS_CHECKPOINT_EVERY] = {.name = "every",
                             .type = MS_PARAM_INTS,
                             .choice = true,
                             .low = 1,
                             .high = MOST,
                             .help =
                                 "segments of N blocks, all checkpointed "
                                 "(Megatron's recompute_method=uniform); of a "
                                 "pipeline also a number for each stage"},
    [MS_CHECKPOINT_EACH] =
        {.name = "each",
         .type = MS_PARAM_INTS,
         .choice = true,
         .low = 1,
         .high = MOST,
         .help = "every Nth block is a segment by itself, the others save all "
                 "(torchtitan's selective_ac_option); of a pipeline also a "
                 "number for each stage"},
    [MS_CHECKPOINT_FIRST] =
        {.name = "first",
         .type = MS_PARAM_INTS,
         .choice = true,
         .low = 0,
         .high = MOST,
         .help = "each of the first N blocks (of each stage) is a "
                 "segment, the others save all (Megatron's "
                 "recompute_method=block); of a pipeline also a number "
                 "for each stage in the model's order, as 9/4/0/0"},
    [MS_CHECKPOINT_PARTIAL] =
        {.name = "partial",
         .type = MS_PARAM_INT,
         .low = 0,
         .high = MOST,
         .with = "first",
         .help = "so many of the micro-batches in flight on a rank are "
                 "checkpointed as first says, the others in full "
                 "(Megatron's num_microbatches_with_partial_activation_"
                 "checkpoints)"},
    [MS_CHECKPOINT_SEQUENTIAL] =
        {.name = "sequential",
         .type = MS_PARAM_INTS,
         .choice = true,
         .low = 1,
         .high = MOST,
         .help = "N segments as torch's checkpoint_sequential: the last "
                 "is not checkpointed"},
    [MS_CHECKPOINT_BLOCKS] =
        {.name = "blocks",
         .type = MS_PARAM_NAMES,
         .choice = true,
         .help = "segments begin at these blocks; what comes before is "
                 "not checkpointed"},
    [MS_CHECKPOINT_LAYERS] = {.name = "layers",
                              .type = MS_PARAM_NAMES,
                              .choice = true,
                              .help =
                                  "each of these blocks is a segment, by its "
                                  "number from 0 up in the model: 0-11/23"},
    [MS_CHECKPOINT_NESTED] =
        {.name = "nested",
         .type = MS_PARAM_INTS,
         .choice = true,
         .low = 1,
         .high = MOST,
         .help = "segments of 12/4/1 blocks: one of 12 is replayed as segments "
                 "of 4, each of these as segments of 1"},
    [MS_CHECKPOINT_RECURSIVE] =
        {.name = "recursive",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "the blocks (of each stage) are cut into parts=, each part "
                 "again, down to single blocks: memory grows as log L"},
    [MS_CHECKPOINT_CHEN] =
        {.name = "chen",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "a segment ends with the block that takes it over so many "
                 "saved bytes; of all such sizes that cut differently the "
                 "fastest in budget=, or without one that of the least peak "
                 "(Chen et al. 2016, algorithm 3)"},
    [MS_CHECKPOINT_SAVE] =
        {.name = "save",
         .type = MS_PARAM_NAMES,
         .choice = true,
         .help = "each block is a segment that keeps the outputs of these ops, "
                 "aten.mm/aten.bmm, and computes the rest again (torch's "
                 "create_selective_checkpoint_contexts: MUST_SAVE, the rest "
                 "PREFER_RECOMPUTE, which eager runs take as MUST_RECOMPUTE)"},
    [MS_CHECKPOINT_RECOMPUTE] =
        {.name = "recompute",
         .type = MS_PARAM_NAMES,
         .choice = true,
         .help = "each block is a segment that computes these ops again and "
                 "keeps the outputs of all others, also of those that no node "
                 "saves (MUST_RECOMPUTE, the rest PREFER_SAVE)"},
    [MS_CHECKPOINT_MODULES] =
        {.name = "modules",
         .type = MS_PARAM_WORDS,
         .choice = true,
         .words =
             "core_attn|mlp|moe|layernorm|mla_up_proj|moe_act|shared_experts",
         .help = "Megatron's recompute_modules: these parts of each block are "
                 "recomputed; of layernorm, moe_act and mla_up_proj the "
                 "output goes, too, until its reader's backward"},
    [MS_CHECKPOINT_AUTO] =
        {.name = "auto",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "beside swap:auto, which then recomputes a tensor where "
                 "that takes less than moving it"},
    [MS_CHECKPOINT_BY] =
        {.name = "by",
         .type = MS_PARAM_WORD,
         .words = "count|bytes",
         .with = "sqrt",
         .help = "segments of equal block count or equal saved bytes"},
    [MS_CHECKPOINT_LAST] =
        {.name = "last",
         .type = MS_PARAM_WORD,
         .fallback = MS_CHECKPOINT_CLOSED,
         .words = "open|closed",
         .with = "full|sqrt|every|sequential|blocks|nested|chen",
         .help = "is the last segment (of each stage) checkpointed? its "
                 "backward comes first; default: sqrt, sequential and chen "
                 "open, the others closed"},
    [MS_CHECKPOINT_MICRO_BATCHES] =
        {.name = "micro_batches",
         .type = MS_PARAM_NAMES,
         .with = KEEPS,
         .help = "only these micro-batches are checkpointed, the others save "
                 "all: 0-3/7"},
    [MS_CHECKPOINT_PARTS] = {.name = "parts",
                             .type = MS_PARAM_INT,
                             .fallback = 2,
                             .low = 2,
                             .high = MOST,
                             .with = "recursive",
                             .help = "into how many parts each level is cut"},
    [MS_CHECKPOINT_SEGMENT] = {.name = "segment",
                               .type = MS_PARAM_SIZE,
                               .low = 0,
                               .high = INT64_C(1) << 50,
                               .with = "chen",
                               .help = "chen's one size instead of the best"},
    [MS_CHECKPOINT_VARIANT] =
        {.name = "variant",
         .type = MS_PARAM_WORD,
         .fallback = MS_CHECKPOINT_NONREENTRANT,
         .words = "reentrant|nonreentrant",
         .with = SEGMENTED,
         .help = "torch's use_reentrant; default as the framework: "
                 "torch-1.13 reentrant, torch-2 nonreentrant"},
    [MS_CHECKPOINT_EARLY_STOP] =
        {.name = "early_stop",
         .type = MS_PARAM_INT,
         .fallback = 1,
         .low = 0,
         .high = 1,
         .with = REPLAYED,
         .help = "end a replay with the last tensor needed; default 1, "
                 "torch-1.13: 0; reentrant replays all"},
    [MS_CHECKPOINT_OPTIMAL] =
        {.name = "optimal",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "the least time in budget=: blocks are saved, made "
                 "again once or several times (rotor's persistent "
                 "plans; of a measured DAG all orders)"},
    [MS_CHECKPOINT_REVOLVE] =
        {.name = "revolve",
         .type = MS_PARAM_INT,
         .choice = true,
         .low = 1,
         .high = MOST,
         .help = "at most N inputs of blocks are kept at a time, with "
                 "the fewest forwards again (binomial checkpointing)"},
    [MS_CHECKPOINT_MINCUT] =
        {.name = "mincut",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "of the whole forward the least bytes that spare backward "
                 "products, attention and random ops (a minimum cut, as "
                 "torch.compile's partitioner)"},
    [MS_CHECKPOINT_KNAPSACK] =
        {.name = "knapsack",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "the same in less memory: of products, attention and random "
                 "ops those are saved that take longest in so many bytes"},
    [MS_CHECKPOINT_PRODUCTS] =
        {.name = "products",
         .type = MS_PARAM_WORD,
         .words = "half|all",
         .with = "sac",
         .help = "all: the outputs of all aten::mm are kept, as torchtitan's "
                 "graph_trainer does"},
    [MS_CHECKPOINT_SLOTS] =
        {.name = "slots",
         .type = MS_PARAM_INT,
         .fallback = 0,
         .low = 10,
         .high = 100000,
         .with = "optimal",
         .help = "units into which the budget is cut, where sizes have "
                 "more; default: 500 to 8192, by the model"},
    [MS_CHECKPOINT_SHARE] = {.name = "share",
                             .type = MS_PARAM_INT,
                             .low = 0,
                             .high = 100,
                             .with = "knapsack",
                             .help = "percent of what mincut saves (torch's "
                                     "activation_memory_budget)"},
    [MS_CHECKPOINT_BUDGET] = {.name = "budget",
                              .type = MS_PARAM_SIZE,
                              .promise = true,
                              .low = 1,
                              .high = INT64_MAX,
                              .with = "auto|optimal|chen|knapsack",
                              .help =
                                  "the peak that swap:auto, optimal, chen or "
                                  "knapsack keeps to, on each rank"},
};
