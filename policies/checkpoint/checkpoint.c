/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation checkpointing: a segment of blocks saves nothing but its inputs
 * in forward and runs again before its backward. */
#include "policies/checkpoint/chainplan.h"
#include "policies/checkpoint/cuts.h"
#include "policies/checkpoint/sac.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NONE,
    FULL,
    SQRT,
    SELECTIVE,
    SAC,
    EVERY,
    FIRST,
    PARTIAL,
    SEQUENTIAL,
    BLOCKS,
    OPTIMAL,
    REVOLVE,
    AUTO,
    BY,
    VARIANT,
    EARLY_STOP,
    PRODUCTS,
    SLOTS,
    BUDGET,
    N_PARAMS
};
enum { REENTRANT, NONREENTRANT };

#define MOST 1000000
#define SEGMENTED "full|sqrt|every|first|sequential|blocks"

static const ms_param params[N_PARAMS] = {
    [NONE] = {.name = "none",
              .type = MS_PARAM_FLAG,
              .choice = true,
              .help = "checkpoint nothing"},
    [FULL] = {.name = "full",
              .type = MS_PARAM_FLAG,
              .choice = true,
              .help = "each block is a segment"},
    [SQRT] = {.name = "sqrt",
              .type = MS_PARAM_FLAG,
              .choice = true,
              .help = "round(sqrt L) segments of the L blocks (of each stage); "
                      "the last is not checkpointed"},
    [SELECTIVE] = {.name = "selective",
                   .type = MS_PARAM_FLAG,
                   .choice = true,
                   .help = "recompute the attention core only"},
    [SAC] = {.name = "sac",
             .type = MS_PARAM_FLAG,
             .choice = true,
             .help = "each block is a segment that keeps the outputs of "
                     "attention and of every second aten::mm, as torchtitan's "
                     "selective op"},
    [EVERY] = {.name = "every",
               .type = MS_PARAM_INT,
               .choice = true,
               .low = 1,
               .high = MOST,
               .help = "segments of N blocks, all checkpointed"},
    [FIRST] = {.name = "first",
               .type = MS_PARAM_INTS,
               .choice = true,
               .low = 0,
               .high = MOST,
               .help = "each of the first N blocks (of each stage) is a "
                       "segment, the others save all (Megatron's "
                       "recompute_method=block); of a pipeline also a number "
                       "for each stage in the model's order, as 9/4/0/0"},
    [PARTIAL] = {.name = "partial",
                 .type = MS_PARAM_INT,
                 .low = 0,
                 .high = MOST,
                 .with = "first",
                 .help = "so many of the micro-batches in flight on a rank are "
                         "checkpointed as first says, the others in full "
                         "(Megatron's num_microbatches_with_partial_activation_"
                         "checkpoints)"},
    [SEQUENTIAL] = {.name = "sequential",
                    .type = MS_PARAM_INT,
                    .choice = true,
                    .low = 1,
                    .high = MOST,
                    .help =
                        "N segments as torch's checkpoint_sequential: the last "
                        "is not checkpointed"},
    [BLOCKS] = {.name = "blocks",
                .type = MS_PARAM_NAMES,
                .choice = true,
                .help = "segments begin at these blocks; what comes before is "
                        "not checkpointed"},
    [AUTO] = {.name = "auto",
              .type = MS_PARAM_FLAG,
              .choice = true,
              .help = "beside swap:auto, which then recomputes a tensor where "
                      "that takes less than moving it"},
    [BY] = {.name = "by",
            .type = MS_PARAM_WORD,
            .words = "count|bytes",
            .with = "sqrt",
            .help = "segments of equal block count or equal saved bytes"},
    [VARIANT] = {.name = "variant",
                 .type = MS_PARAM_WORD,
                 .fallback = NONREENTRANT,
                 .words = "reentrant|nonreentrant",
                 .with = SEGMENTED,
                 .help = "torch's use_reentrant; default as the framework: "
                         "torch-1.13 reentrant, torch-2 nonreentrant"},
    [EARLY_STOP] = {.name = "early_stop",
                    .type = MS_PARAM_INT,
                    .fallback = 1,
                    .low = 0,
                    .high = 1,
                    .with = SEGMENTED "|optimal|revolve",
                    .help =
                        "end a replay with the last tensor needed; default 1, "
                        "torch-1.13: 0; reentrant replays all"},
    [PRODUCTS] = {.name = "products",
                  .type = MS_PARAM_WORD,
                  .words = "half|all",
                  .with = "sac",
                  .help = "all: the outputs of all aten::mm are kept, as "
                          "torchtitan's graph_trainer does"},
    [OPTIMAL] = {.name = "optimal",
                 .type = MS_PARAM_FLAG,
                 .choice = true,
                 .help = "the least time in budget=: blocks are saved, made "
                         "again once or several times (rotor's persistent "
                         "plans; of a measured DAG all orders)"},
    [REVOLVE] = {.name = "revolve",
                 .type = MS_PARAM_INT,
                 .choice = true,
                 .low = 1,
                 .high = MOST,
                 .help = "at most N inputs of blocks are kept at a time, with "
                         "the fewest forwards again (binomial checkpointing)"},
    [SLOTS] = {.name = "slots",
               .type = MS_PARAM_INT,
               .fallback = 0,
               .low = 10,
               .high = 100000,
               .with = "optimal",
               .help = "units into which the budget is cut, where sizes have "
                       "more; default: 500 to 8192, by the model"},
    [BUDGET] = {.name = "budget",
                .type = MS_PARAM_SIZE,
                .promise = true,
                .low = 1,
                .high = INT64_C(1) << 50,
                .with = "auto|optimal",
                .help = "the peak that swap:auto or optimal keeps to"},
};

/* The blocks in unit order. */
typedef struct block_list {
    uint32_t n;
    uint32_t *of_unit; /* block of a unit, or MS_NONE */
    const char **name;
    uint32_t *segment; /* of a block, MS_NONE: open */
    const char *of;    /* "the model" */
    bool last;         /* their backward follows at once */
    uint32_t first;    /* number of the first one, which of_unit has */
    uint32_t stage;    /* whose they are */
} block_list;

/* Numbers the graph's blocks as they first appear; where it has none, each
 * unit before the loss is one. */
static void number_blocks(const ms_graph *graph, uint32_t *seen,
                          block_list *blocks)
{
    for (uint32_t i = 0; i < graph->n_blocks; i++)
        seen[i] = MS_NONE;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = graph->unit_block[u];
        blocks->of_unit[u] = MS_NONE;
        if (graph->n_blocks == 0 && u < graph->loss_unit) {
            blocks->of_unit[u] = blocks->n;
            blocks->name[blocks->n++] = graph->unit_name[u];
        } else if (graph->n_blocks > 0 && block != MS_NONE) {
            if (seen[block] == MS_NONE) {
                seen[block] = blocks->n;
                blocks->name[blocks->n++] = graph->block_name[block];
            }
            blocks->of_unit[u] = seen[block];
        }
    }
}

static ms_err find_blocks(const ms_policy_context *context, block_list *blocks,
                          ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    size_t most =
        graph->n_units > graph->n_blocks ? graph->n_units : graph->n_blocks;
    uint32_t *seen = ms_arena_take_raw(context->arena, most, sizeof *seen);
    blocks->of_unit =
        ms_arena_take_raw(context->arena, most, sizeof *blocks->of_unit);
    blocks->name =
        ms_arena_take_raw(context->arena, most, sizeof *blocks->name);
    blocks->segment =
        ms_arena_take_raw(context->arena, most, sizeof *blocks->segment);
    if (seen == NULL || blocks->of_unit == NULL || blocks->name == NULL ||
        blocks->segment == NULL)
        return ms_fail_nomem(fault);
    number_blocks(graph, seen, blocks);
    for (uint32_t b = 0; b < blocks->n; b++)
        blocks->segment[b] = MS_NONE;
    return MS_OK;
}

/* ---- the cuts ------------------------------------------------------------ */

static ms_err cut_weighted(const ms_policy_context *context, uint32_t count,
                           block_list *blocks, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    uint64_t *bytes = ms_arena_take(context->arena, blocks->n, sizeof *bytes);
    if (bytes == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = blocks->of_unit[u] - blocks->first;
        if (blocks->of_unit[u] == MS_NONE || block >= blocks->n)
            continue;
        uint32_t end = graph->out_at[graph->forward_at[u + 1]];
        for (uint32_t i = graph->out_at[graph->forward_at[u]]; i < end; i++)
            if (graph->storage_saved_end[graph->out[i]] != MS_NONE)
                bytes[block] += graph->storage_bytes[graph->out[i]];
    }
    return ms_cuts_weighted(blocks->n, count, bytes, context->arena,
                            blocks->segment, fault);
}

static ms_err cut_sqrt(const ms_policy_context *context, block_list *blocks,
                       ms_fault *fault)
{
    uint32_t count = ms_cuts_root(blocks->n);
    if (context->values[BY].number == 1)
        MS_TRY(cut_weighted(context, count, blocks, fault));
    else
        ms_cuts_even(blocks->n, count, blocks->segment);
    if (blocks->last)
        ms_cuts_open_last(blocks->n, blocks->segment);
    return MS_OK;
}

static ms_err check_count(const block_list *blocks, uint32_t row, int64_t value,
                          ms_fault *fault)
{
    char where[64];
    if (value <= blocks->n)
        return MS_OK;
    snprintf(where, sizeof where, "checkpoint:%s=%" PRId64, params[row].name,
             value);
    return ms_fail(fault, MS_EUSAGE, where, NULL,
                   "%s has %u blocks: %s is from %d to %u", blocks->of,
                   blocks->n, params[row].name, (int)params[row].low,
                   blocks->n);
}

static ms_err find_name(const block_list *blocks, const char *name,
                        uint32_t *found, ms_fault *fault)
{
    char hint[192];
    for (*found = 0; *found < blocks->n; (*found)++)
        if (strcmp(blocks->name[*found], name) == 0)
            return MS_OK;
    const char *nearest = ms_names_nearest(name, blocks->name, blocks->n);
    if (nearest != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%.60s\"?", nearest);
    else
        snprintf(hint, sizeof hint, "blocks go from \"%.60s\" to \"%.60s\"",
                 blocks->name[0], blocks->name[blocks->n - 1]);
    return ms_fail(fault, MS_EUSAGE, "checkpoint:blocks", hint,
                   "the model has no block \"%.60s\"", name);
}

/* Each named block begins a segment; what is before the first is open. */
static ms_err cut_named(const ms_policy_context *context, block_list *blocks,
                        ms_fault *fault)
{
    const char *list = context->values[BLOCKS].text;
    bool *begins = ms_arena_take(context->arena, blocks->n, sizeof *begins);
    if (begins == NULL)
        return ms_fail_nomem(fault);
    for (bool more = true; more;) {
        uint32_t found;
        size_t length = strcspn(list, "/");
        char *name = ms_arena_text(context->arena, list, length);
        if (name == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(find_name(blocks, name, &found, fault));
        begins[found] = true;
        more = list[length] != '\0';
        list += length + more;
    }
    uint32_t id = MS_NONE; /* + 1 is 0 */
    for (uint32_t b = 0; b < blocks->n; b++) {
        id += begins[b];
        blocks->segment[b] = id;
    }
    return MS_OK;
}

/* The number of a stage in a list that has one for all or one for each. */
static int64_t number_of(const ms_policy_value *list, uint32_t stage)
{
    const char *at = list->given ? list->text : "0";
    for (; stage > 0 && strchr(at, '/') != NULL; stage--)
        at = strchr(at, '/') + 1;
    return strtoll(at, NULL, 10);
}

static ms_err check_list(const ms_policy_context *context, ms_fault *fault)
{
    const ms_policy_value *list = &context->values[FIRST];
    uint32_t stages = context->schedule->n_stages, n = 1;
    for (const char *at = list->text; list->given && *at != '\0'; at++)
        n += *at == '/';
    if (n == 1 || n == stages)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "checkpoint:first",
                   stages == 1 ? "give one number, or add pipeline:N"
                               : "give one number for all of them, or one each",
                   "there %s %u stage%s, first= has %u numbers",
                   stages == 1 ? "is" : "are", stages, stages == 1 ? "" : "s",
                   n);
}

static ms_err cut(const ms_policy_context *context, block_list *blocks,
                  ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    uint32_t size = (uint32_t)values[EVERY].number;
    int64_t first = number_of(&values[FIRST], blocks->stage);
    uint32_t count = (uint32_t)values[SEQUENTIAL].number;
    if (values[SQRT].given)
        return cut_sqrt(context, blocks, fault);
    if (values[FULL].given || values[SAC].given)
        ms_cuts_every(blocks->n, 1, blocks->segment);
    if (values[EVERY].given) {
        MS_TRY(check_count(blocks, EVERY, size, fault));
        ms_cuts_every(blocks->n, size, blocks->segment);
    }
    if (values[FIRST].given) {
        MS_TRY(check_count(blocks, FIRST, first, fault));
        ms_cuts_every((uint32_t)first, 1, blocks->segment);
    }
    if (values[SEQUENTIAL].given) {
        MS_TRY(check_count(blocks, SEQUENTIAL, count, fault));
        ms_cuts_sequential(blocks->n, count, blocks->segment);
        ms_cuts_open_last(blocks->n, blocks->segment);
    }
    return MS_OK;
}

/* Each stage of a pipeline is cut by itself, as frameworks do that checkpoint a
 * stage's module (Megatron-LM, core/transformer/transformer_block.py,
 * _checkpointed_forward); block names are the model's. */
static ms_err cut_stages(const ms_policy_context *context, block_list *blocks,
                         ms_fault *fault)
{
    const ms_schedule *schedule = context->schedule;
    uint32_t ids = 0;
    if (context->values[BLOCKS].given)
        return cut_named(context, blocks, fault);
    MS_TRY(check_list(context, fault));
    for (uint32_t k = 0, u = 0; k < schedule->n_stages; k++) {
        block_list own = {
            .of_unit = blocks->of_unit, .first = MS_NONE, .stage = k};
        for (; u <= schedule->stages[k].last; u++) {
            uint32_t block = blocks->of_unit[u];
            if (block == MS_NONE)
                continue;
            own.first = own.first == MS_NONE ? block : own.first;
            own.n = block + 1 - own.first;
        }
        if (own.n == 0)
            continue;
        own.last = k + 1 == schedule->n_stages;
        own.of = schedule->n_stages > 1 ? "a stage" : "the model";
        own.name = blocks->name + own.first;
        own.segment = blocks->segment + own.first;
        MS_TRY(cut(context, &own, fault));
        for (uint32_t b = 0; b < own.n; b++)
            own.segment[b] += own.segment[b] == MS_NONE ? 0 : ids;
        ids += own.n;
    }
    return MS_OK;
}

/* ---- the choices --------------------------------------------------------- */

static void drop_unit(const ms_graph *graph, uint32_t unit, ms_keep *keep)
{
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end; i++)
        keep->place[graph->out[i]] = MS_GONE;
}

static void drop_core(const ms_graph *graph, ms_keep *keep)
{
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++) {
        if (!(graph->op_flags[op] & MS_OP_CORE))
            continue;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            keep->place[graph->out[i]] = MS_GONE;
    }
}

/* Where a unit of no block lies within a segment that is two segments: what is
 * replayed together are neighbours (ms_defaultprogram). */
static void drop_segments(const ms_graph *graph, const block_list *blocks,
                          ms_keep *keep)
{
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = blocks->of_unit[u];
        if (block == MS_NONE || blocks->segment[block] == MS_NONE)
            continue;
        keep->segment[u] = blocks->segment[block];
        drop_unit(graph, u, keep);
    }
}

/* swap:auto chooses which tensors are made again, because it has measured the
 * step. */
static ms_err check_auto(const ms_policy_context *context, ms_fault *fault)
{
    if (ms_policy_given(context->spec, "swap", "auto") != NULL)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "checkpoint:auto",
                   "write swap:auto+checkpoint:auto,budget=40GiB",
                   "checkpoint:auto goes with swap:auto only");
}

/* Of the rank's turns [from, end): how many go forward before the first goes
 * back? */
static uint32_t window_of(const ms_schedule *schedule, uint32_t from,
                          uint32_t end)
{
    uint32_t n = 0;
    while (from + n < end && schedule->turns[from + n].kind == MS_TURN_FORWARD)
        n++;
    return n > 0 ? n : 1;
}

/* The second choice: all blocks, for the micro-batches beyond so many of those
 * in flight (Megatron-LM, core/pipeline_parallel/schedules.py,
 * max_outstanding_backprops). */
static ms_err add_full(const ms_policy_context *context,
                       const block_list *blocks, ms_keep *keep, ms_fault *fault)
{
    const ms_schedule *schedule = context->schedule;
    uint32_t partial = (uint32_t)context->values[PARTIAL].number;
    size_t turns = (size_t)schedule->n_stages * schedule->n_micro_batches;
    ms_keep *full = ms_arena_take(context->arena, 1, sizeof *full);
    keep->turns = ms_arena_take(context->arena, turns, 1);
    if (full == NULL || keep->turns == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_program_keep_all(context->graph, context->arena, full, fault));
    full->reentrant = keep->reentrant;
    full->early_stop = keep->early_stop;
    ms_cuts_every(blocks->n, 1, blocks->segment);
    drop_segments(context->graph, blocks, full);
    for (uint32_t b = 0; b < blocks->n; b++)
        blocks->segment[b] = MS_NONE;
    keep->other = full;
    for (uint32_t r = 0; r < schedule->n_ranks; r++) {
        uint32_t from = schedule->turn_at[r], end = schedule->turn_at[r + 1];
        uint32_t window = window_of(schedule, from, end), forward = 0;
        for (uint32_t i = from; i < end; i++) {
            const ms_turn *turn = &schedule->turns[i];
            size_t at = (size_t)turn->stage * schedule->n_micro_batches +
                        turn->micro_batch;
            if (turn->kind == MS_TURN_FORWARD)
                keep->turns[at] = forward++ % window >= partial;
        }
    }
    return MS_OK;
}

/* A cache of ops needs torch's newer checkpoint. */
static bool is_torch_1(const ms_policy_context *context)
{
    return context->torch_1 && !context->values[SAC].given;
}

static bool stops_early(const ms_policy_context *context)
{
    const ms_policy_value *value = &context->values[EARLY_STOP];
    return value->given ? value->number == 1 : !is_torch_1(context);
}

static bool plans(const ms_policy_value *values)
{
    return values[OPTIMAL].given || values[REVOLVE].given;
}

static ms_err keep(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    block_list blocks = {0};
    keep->reentrant = values[VARIANT].given
                          ? values[VARIANT].number == REENTRANT
                          : is_torch_1(context);
    keep->early_stop = stops_early(context);
    if (values[AUTO].given)
        return check_auto(context, fault);
    if (context->graph->nodes && !plans(values) && !values[NONE].given)
        return ms_fail(fault, MS_EUSAGE, "checkpoint",
                       "write checkpoint:optimal,budget=SIZE",
                       "it is about layers in a row: what was measured node by "
                       "node has none");
    if (values[SELECTIVE].given)
        drop_core(context->graph, keep);
    if (values[NONE].given || values[SELECTIVE].given || plans(values))
        return MS_OK;
    MS_TRY(find_blocks(context, &blocks, fault));
    if (blocks.n == 0)
        return ms_fail(fault, MS_EUSAGE, "checkpoint", NULL,
                       "the model has no blocks to checkpoint");
    if (values[PARTIAL].given)
        MS_TRY(add_full(context, &blocks, keep, fault));
    MS_TRY(cut_stages(context, &blocks, fault));
    drop_segments(context->graph, &blocks, keep);
    if (values[SAC].given)
        ms_sac_keep(context->graph, values[PRODUCTS].number != 0, keep);
    return MS_OK;
}

static bool places(const ms_policy_value *values)
{
    return values[SAC].given || plans(values);
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_chainplan_choice choice = {.slots = (uint32_t)values[SLOTS].number,
                                  .early_stop = stops_early(context)};
    if (values[SAC].given)
        return ms_sac_place(context, values[PRODUCTS].number != 0, program,
                            fault);
    if (values[REVOLVE].given)
        choice.checkpoints = (uint32_t)values[REVOLVE].number;
    if (values[BUDGET].given)
        choice.budget_bytes = (uint64_t)values[BUDGET].number;
    return plans(values) ? ms_chainplan_place(context, &choice, program, fault)
                         : MS_OK;
}

static bool serves_ranks(const ms_policy_value *values)
{
    return !places(values);
}

/* The plan is for what the step has besides. */
static bool measures(const ms_policy_value *values)
{
    return values[OPTIMAL].given;
}

const ms_policy ms_policy_checkpoint = {
    .name = "checkpoint",
    .summary = "save less in forward, recompute it in backward",
    .example = "checkpoint:sqrt",
    .params = params,
    .n_params = N_PARAMS,
    .saves = true,
    .keep = keep,
    .place = place,
    .places = places,
    .serves_ranks = serves_ranks,
    .measures = measures,
};
