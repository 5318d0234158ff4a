/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/segments.h"
#include "policies/checkpoint/blocklists.h"
#include "policies/checkpoint/chains/cuts.h"
#include "policies/checkpoint/checkpointrows.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the blocks ---------------------------------------------------------- */

static void number_blocks(const ms_graph *graph, uint32_t *seen,
                          ms_segments *blocks)
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

ms_err ms_segments_find(const ms_policy_context *context, ms_segments *blocks,
                        ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    size_t most =
        graph->n_units > graph->n_blocks ? graph->n_units : graph->n_blocks;
    uint32_t *seen = ms_arena_take_raw(context->arena, most, sizeof *seen);
    *blocks = (ms_segments){0};
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
    if (blocks->n == 0)
        return ms_cuts_fail_none(fault);
    return MS_OK;
}

void ms_segments_all(ms_segments *blocks)
{
    ms_cuts_every(blocks->n, 1, blocks->segment);
}

/* ---- the cuts ------------------------------------------------------------ */

/* The blocks of a stage of a pipeline, or of the model. */
typedef struct part {
    uint32_t n, first; /* numbers in the model */
    const uint32_t *of_unit;
    uint32_t *segment;
    uint32_t stage;
    bool alone; /* it is the model */
    bool last;  /* their backward follows at once */
} part;

static ms_err cut_weighted(const ms_policy_context *context, uint32_t count,
                           const part *blocks, ms_fault *fault)
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

static ms_err cut_sqrt(const ms_policy_context *context, const part *blocks,
                       ms_fault *fault)
{
    uint32_t count = ms_cuts_root(blocks->n);
    if (context->values[MS_CHECKPOINT_BY].number == 1)
        MS_TRY(cut_weighted(context, count, blocks, fault));
    else
        ms_cuts_even(blocks->n, count, blocks->segment);
    return MS_OK;
}

/* The stage's number of a list; at most as many as it has blocks. */
static ms_err read_count(const ms_policy_context *context, uint32_t row,
                         const part *blocks, uint32_t *count, ms_fault *fault)
{
    const ms_param *param = &ms_checkpointrows_params[row];
    int64_t value =
        ms_blocklists_number(context->values[row].text, blocks->stage);
    char where[64], hint[64];
    *count = (uint32_t)value;
    if (value <= blocks->n)
        return MS_OK;
    snprintf(where, sizeof where, "checkpoint:%s=%" PRId64, param->name, value);
    snprintf(hint, sizeof hint, "type %s=%u or less", param->name, blocks->n);
    return ms_fail(
        fault, MS_EUSAGE, where, hint, "%s has %u block%s: %s is from %d to %u",
        blocks->alone ? "the model" : "a stage", blocks->n,
        blocks->n == 1 ? "" : "s", param->name, (int)param->low, blocks->n);
}

static ms_err cut_counted(const ms_policy_context *context, uint32_t row,
                          const part *blocks, ms_fault *fault)
{
    uint32_t count;
    MS_TRY(read_count(context, row, blocks, &count, fault));
    if (row == MS_CHECKPOINT_EVERY)
        ms_cuts_every(blocks->n, count, blocks->segment);
    else if (row == MS_CHECKPOINT_EACH)
        ms_cuts_each(blocks->n, count, blocks->segment);
    else if (row == MS_CHECKPOINT_FIRST)
        ms_cuts_every(count, 1, blocks->segment);
    else
        ms_cuts_sequential(blocks->n, count, blocks->segment);
    return MS_OK;
}

/* Those that have a number for each stage. */
static const uint32_t counted[] = {MS_CHECKPOINT_EVERY, MS_CHECKPOINT_EACH,
                                   MS_CHECKPOINT_FIRST,
                                   MS_CHECKPOINT_SEQUENTIAL};
#define N_COUNTED (sizeof counted / sizeof *counted)

/* Torch's checkpoint_sequential leaves the last one open, whatever follows. */
static bool opens_last(const ms_policy_value *values, bool last)
{
    if (values[MS_CHECKPOINT_LAST].given)
        return values[MS_CHECKPOINT_LAST].number == MS_CHECKPOINT_OPEN;
    return values[MS_CHECKPOINT_SEQUENTIAL].given ||
           (values[MS_CHECKPOINT_SQRT].given && last);
}

static ms_err cut(const ms_policy_context *context, const part *blocks,
                  ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    if (values[MS_CHECKPOINT_SQRT].given)
        MS_TRY(cut_sqrt(context, blocks, fault));
    else
        ms_cuts_every(blocks->n, 1, blocks->segment);
    for (size_t i = 0; i < N_COUNTED; i++)
        if (values[counted[i]].given) {
            for (uint32_t b = 0; b < blocks->n; b++)
                blocks->segment[b] = MS_NONE;
            MS_TRY(cut_counted(context, counted[i], blocks, fault));
        }
    if (opens_last(values, blocks->last))
        ms_cuts_open_last(blocks->n, blocks->segment);
    return MS_OK;
}

/* Each stage of a pipeline is cut by itself, as frameworks do that checkpoint a
 * stage's module (Megatron-LM, core/transformer/transformer_block.py,
 * _checkpointed_forward). */
static ms_err cut_stages(const ms_policy_context *context, ms_segments *blocks,
                         ms_fault *fault)
{
    const ms_schedule *schedule = context->schedule;
    uint32_t ids = 0;
    for (uint32_t k = 0, u = 0; k < schedule->n_stages; k++) {
        part own = {.of_unit = blocks->of_unit, .first = MS_NONE, .stage = k};
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
        own.alone = schedule->n_stages == 1;
        own.segment = blocks->segment + own.first;
        MS_TRY(cut(context, &own, fault));
        for (uint32_t b = 0; b < own.n; b++)
            own.segment[b] += own.segment[b] == MS_NONE ? 0 : ids;
        ids += own.n;
    }
    return MS_OK;
}

/* Each named block begins a segment; what is before the first is open. */
static ms_err cut_named(const ms_policy_context *context, ms_segments *blocks,
                        ms_fault *fault)
{
    bool *begins = ms_arena_take(context->arena, blocks->n, sizeof *begins);
    uint32_t id = MS_NONE; /* + 1 is 0 */
    if (begins == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_blocklists_names(context->values[MS_CHECKPOINT_BLOCKS].text,
                               "checkpoint:blocks", blocks->name, blocks->n,
                               context->arena, begins, fault));
    for (uint32_t b = 0; b < blocks->n; b++) {
        id += begins[b];
        blocks->segment[b] = id;
    }
    if (opens_last(context->values, true))
        ms_cuts_open_last(blocks->n, blocks->segment);
    return MS_OK;
}

static ms_err cut_numbered(const ms_policy_context *context,
                           ms_segments *blocks, ms_fault *fault)
{
    bool *wanted = ms_arena_take(context->arena, blocks->n, sizeof *wanted);
    if (wanted == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_blocklists_numbers(context->values[MS_CHECKPOINT_LAYERS].text,
                                 "checkpoint:layers", "blocks", blocks->n,
                                 wanted, fault));
    for (uint32_t b = 0; b < blocks->n; b++)
        blocks->segment[b] = wanted[b] ? b : MS_NONE;
    return MS_OK;
}

/* Names and numbers of blocks are the model's, all else is by stage. */
ms_err ms_segments_cut(const ms_policy_context *context, ms_segments *blocks,
                       ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    char where[64];
    if (values[MS_CHECKPOINT_BLOCKS].given)
        return cut_named(context, blocks, fault);
    if (values[MS_CHECKPOINT_LAYERS].given)
        return cut_numbered(context, blocks, fault);
    for (size_t i = 0; i < N_COUNTED; i++) {
        snprintf(where, sizeof where, "checkpoint:%s",
                 ms_checkpointrows_params[counted[i]].name);
        if (values[counted[i]].given)
            MS_TRY(ms_blocklists_check(values[counted[i]].text, where,
                                       context->schedule->n_stages, fault));
    }
    return cut_stages(context, blocks, fault);
}

/* ---- what goes ----------------------------------------------------------- */

static void drop_unit(const ms_graph *graph, uint32_t unit, ms_keep *keep)
{
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end; i++)
        keep->place[graph->out[i]] = MS_GONE;
}

void ms_segments_drop(const ms_graph *graph, const ms_segments *blocks,
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
