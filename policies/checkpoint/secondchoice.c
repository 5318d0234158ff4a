/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/secondchoice.h"
#include "policies/checkpoint/blocklists.h"
#include "policies/checkpoint/checkpointrows.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

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

/* Those beyond so many of the micro-batches in flight (Megatron-LM,
 * core/pipeline_parallel/schedules.py, max_outstanding_backprops). */
static void choose_beyond(const ms_schedule *schedule, uint32_t partial,
                          uint8_t *turns)
{
    for (uint32_t r = 0; r < schedule->n_ranks; r++) {
        uint32_t from = schedule->turn_at[r], end = schedule->turn_at[r + 1];
        uint32_t window = window_of(schedule, from, end), forward = 0;
        for (uint32_t i = from; i < end; i++) {
            const ms_turn *turn = &schedule->turns[i];
            size_t at = (size_t)turn->stage * schedule->n_micro_batches +
                        turn->micro_batch;
            if (turn->kind == MS_TURN_FORWARD)
                turns[at] = forward++ % window >= partial;
        }
    }
}

static ms_err choose_others(const ms_policy_context *context, uint8_t *turns,
                            ms_fault *fault)
{
    const ms_schedule *schedule = context->schedule;
    uint32_t n = schedule->n_micro_batches;
    bool *listed = ms_arena_take(context->arena, n, sizeof *listed);
    if (listed == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_blocklists_numbers(
        context->values[MS_CHECKPOINT_MICRO_BATCHES].text,
        "checkpoint:micro_batches", "micro-batches", n, listed, fault));
    for (size_t i = 0; i < (size_t)schedule->n_stages * n; i++)
        turns[i] = !listed[i % n];
    return MS_OK;
}

static void drop_all(const ms_policy_context *context, ms_segments *blocks,
                     ms_keep *keep)
{
    ms_segments_all(blocks);
    ms_segments_drop(context->graph, blocks, keep);
    for (uint32_t b = 0; b < blocks->n; b++)
        blocks->segment[b] = MS_NONE;
}

ms_err ms_secondchoice_add(const ms_policy_context *context,
                           ms_segments *blocks, ms_keep *keep, ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    const ms_schedule *schedule = context->schedule;
    bool partial = values[MS_CHECKPOINT_PARTIAL].given;
    if (!partial && !values[MS_CHECKPOINT_MICRO_BATCHES].given)
        return MS_OK;
    if (partial && values[MS_CHECKPOINT_MICRO_BATCHES].given)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:micro_batches",
                       "leave one of the two out",
                       "partial= already says which micro-batches");
    ms_keep *other = ms_arena_take(context->arena, 1, sizeof *other);
    keep->turns = ms_arena_take(
        context->arena, (size_t)schedule->n_stages * schedule->n_micro_batches,
        1);
    if (other == NULL || keep->turns == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_program_keep_all(context->graph, context->arena, other, fault));
    other->reentrant = keep->reentrant;
    other->early_stop = keep->early_stop;
    keep->other = other;
    if (!partial)
        return choose_others(context, keep->turns, fault);
    drop_all(context, blocks, other);
    choose_beyond(schedule, (uint32_t)values[MS_CHECKPOINT_PARTIAL].number,
                  keep->turns);
    return MS_OK;
}
