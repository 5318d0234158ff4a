/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pipeline parallelism: each rank has a part of the model's layers and hands
 * what it computes to the next.  The orders are of orders.h; which layers a
 * stage has is decided here. */
#include "policies/common/policy.h"
#include "policies/schedule/orders.h"
#include "policies/schedule/schedulefile.h"
#include "sim/graph.h"
#include "sim/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS, SCHEDULE, CHUNKS, LAYERS, OVERLAP, GROUP, N_PARAMS };

#define MOST_RANKS 1024

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "ranks",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = MOST_RANKS,
               .help = "ranks that share the layers"},
    [SCHEDULE] = {.name = "schedule",
                  .type = MS_PARAM_WORD,
                  .file = true,
                  .words = "1f1b|gpipe|interleaved|looped-bfs|zb-h1|zb-h2|zb-v|"
                           "v-half|v-min|dualpipev|dualpipe",
                  .help = "the order of their forwards and backwards; with "
                          "chunks interleaved; or a file as ./FILE, PyTorch's "
                          "CSV of schedules"},
    [CHUNKS] = {.name = "chunks",
                .type = MS_PARAM_INT,
                .fallback = 1,
                .low = 1,
                .high = MOST_RANKS,
                .help = "stages per rank; zb-v, v-half, v-min and dualpipev "
                        "have 2"},
    [LAYERS] = {.name = "layers",
                .type = MS_PARAM_NAMES,
                .help = "layers (blocks) of each stage in the model's order, "
                        "as 11/13; default: all the same, one more on the "
                        "first ones where they do not divide"},
    [OVERLAP] = {.name = "overlap",
                 .type = MS_PARAM_INT,
                 .low = 0,
                 .high = 1,
                 .help = "1: messages come beside the turn before the one that "
                         "reads them; default 0 where a rank has one stage "
                         "that goes back whole and receives when its turn is "
                         "over (gpipe, 1f1b), else 1"},
    [GROUP] = {.name = "group",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = 1048576,
               .help = "interleaved: micro-batches that go through a chunk one "
                       "after the other; default: as many as ranks"},
};

static ms_order order_of(const ms_policy_value *values)
{
    if (values[SCHEDULE].given || values[CHUNKS].number == 1)
        return (ms_order)values[SCHEDULE].number;
    return MS_ORDER_INTERLEAVED;
}

/* ---- shape --------------------------------------------------------------- */

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    shape->splits_backward = ms_orders_splits(order_of(values));
    if (values[SCHEDULE].text != NULL)
        MS_TRY(ms_schedulefile_splits(values[SCHEDULE].text,
                                      &shape->splits_backward, fault));
    return ms_policy_share_layers("pipeline", (uint32_t)values[RANKS].number,
                                  shape, fault);
}

/* ---- stages -------------------------------------------------------------- */

/* The first units of the blocks, in the order of the model; where there are
 * none each unit counts. */
static ms_err list_blocks(const ms_policy_context *context, uint32_t **first,
                          uint32_t *n, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    uint32_t before = MS_NONE;
    *n = 0;
    *first = ms_arena_take_raw(context->arena, graph->n_units, sizeof **first);
    if (*first == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = graph->n_blocks > 0 ? graph->unit_block[u] : u;
        if (block != MS_NONE && block != before)
            (*first)[(*n)++] = u;
        before = block;
    }
    return MS_OK;
}

static ms_err fail_layers(uint32_t blocks, uint64_t said, const char *what,
                          ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, "pipeline:layers",
                   "give each stage a number of layers, as layers=11/13",
                   "the model has %u layers, %llu %s", blocks,
                   (unsigned long long)said, what);
}

/* layers=: so many numbers as there are stages, which sum to the blocks. */
static ms_err read_layers(const char *text, uint32_t blocks, uint32_t n,
                          uint32_t *layers, ms_fault *fault)
{
    uint32_t k = 0;
    uint64_t sum = 0;
    for (const char *at = text; *at != '\0'; k++) {
        char *end;
        unsigned long value =
            *at < '0' || *at > '9' ? 0 : strtoul(at, &end, 10);
        if (value == 0 || value > blocks || (*end != '/' && *end != '\0'))
            return ms_fail(fault, MS_EUSAGE, "pipeline:layers",
                           "write whole numbers from 1 up, as layers=11/13",
                           "\"%s\" has no number of layers at character %d",
                           text, (int)(at - text) + 1);
        if (k < n)
            layers[k] = (uint32_t)value;
        sum += value;
        at = *end == '/' ? end + 1 : end;
    }
    if (k != n)
        return ms_fail(fault, MS_EUSAGE, "pipeline:layers",
                       "give one number for each stage",
                       "there are %u stages, layers= has %u numbers", n, k);
    return sum == blocks ? MS_OK : fail_layers(blocks, sum, "are given", fault);
}

static ms_err divide(const ms_policy_context *context, uint32_t blocks,
                     uint32_t n, uint32_t *layers, ms_fault *fault)
{
    const ms_policy_value *given = &context->values[LAYERS];
    if (blocks < n)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "take fewer ranks or chunks",
                       "%u layers do not divide into %u stages", blocks, n);
    if (given->given)
        return read_layers(given->text, blocks, n, layers, fault);
    for (uint32_t k = 0; k < n; k++)
        layers[k] = blocks / n + (k < blocks % n);
    return MS_OK;
}

/* What stands before the first block is the first stage's, what stands behind a
 * block is the stage's that has it.  The stages' ranks are there. */
static ms_err make_stages(const ms_policy_context *context, ms_stage *stages,
                          ms_schedule *schedule, ms_fault *fault)
{
    uint32_t n = schedule->n_stages, blocks, block = 0, *first;
    uint32_t *layers = ms_arena_take(context->arena, n, sizeof *layers);
    if (layers == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(list_blocks(context, &first, &blocks, fault));
    MS_TRY(divide(context, blocks, n, layers, fault));
    for (uint32_t k = 0; k < n; k++) {
        stages[k].first = k == 0 ? 0 : first[block];
        block += layers[k];
        stages[k].last =
            (k + 1 == n ? context->graph->n_units : first[block]) - 1;
    }
    schedule->stages = stages;
    return MS_OK;
}

/* ---- schedule ------------------------------------------------------------ */

/* With one stage a rank, that goes back whole, frameworks receive when a turn
 * is over: what comes is for the turn that is next. */
static uint8_t receives(const ms_policy_value *values,
                        const ms_schedule *schedule)
{
    bool simple = schedule->n_stages == schedule->n_ranks &&
                  schedule->rank_of == NULL && !ms_schedule_splits(schedule);
    for (uint32_t i = 0; i < schedule->turn_at[schedule->n_ranks]; i++)
        simple &= !schedule->turns[i].pairs;
    bool early = values[OVERLAP].given ? values[OVERLAP].number : !simple;
    return early ? MS_RECEIVE_AHEAD : MS_RECEIVE_NEXT;
}

/* A file says its ranks, chunks and micro-batches itself. */
static ms_err check_file(const ms_policy_value *values, uint32_t micro_batches,
                         const ms_schedule *schedule, ms_fault *fault)
{
    uint32_t ranks = schedule->n_ranks, n = schedule->n_stages;
    char hint[64];
    if (ranks != (uint32_t)values[RANKS].number) {
        snprintf(hint, sizeof hint, "write pipeline:%u", ranks);
        return ms_fail(fault, MS_EUSAGE, schedule->name, hint,
                       "a schedule of %u ranks; the pipeline has %u", ranks,
                       (unsigned)values[RANKS].number);
    }
    if (n % ranks != 0 ||
        (values[CHUNKS].given && n != ranks * values[CHUNKS].number))
        return ms_fail(fault, MS_EUSAGE, schedule->name,
                       "each rank has as many chunks",
                       "%u stages do not divide into %s chunks on %u ranks", n,
                       values[CHUNKS].given ? "that many" : "whole", ranks);
    if (schedule->n_micro_batches == micro_batches)
        return MS_OK;
    snprintf(hint, sizeof hint, "add microbatch:%u", schedule->n_micro_batches);
    return ms_fail(fault, MS_EUSAGE, schedule->name, hint,
                   "a schedule of %u micro-batches; the step has %u",
                   schedule->n_micro_batches, micro_batches);
}

static ms_err read_schedule(const ms_policy_context *context,
                            uint32_t micro_batches, ms_schedule *schedule,
                            ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    MS_TRY(ms_schedulefile_read(values[SCHEDULE].text, context->arena, schedule,
                                fault));
    MS_TRY(check_file(values, micro_batches, schedule, fault));
    uint32_t n = schedule->n_stages;
    ms_stage *stages = ms_arena_take(context->arena, n, sizeof *stages);
    if (stages == NULL)
        return ms_fail_nomem(fault);
    memcpy(stages, schedule->stages, n * sizeof *stages);
    MS_TRY(make_stages(context, stages, schedule, fault));
    schedule->receives = receives(values, schedule);
    return MS_OK;
}

static ms_err write_order(const ms_policy_context *context,
                          uint32_t micro_batches, ms_schedule *schedule,
                          ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_order order = order_of(values);
    uint32_t chunks =
        values[CHUNKS].given ? (uint32_t)values[CHUNKS].number : 0;
    ms_orders_size size = {(uint32_t)values[RANKS].number,
                           ms_orders_chunks(order, chunks), micro_batches,
                           (uint32_t)values[GROUP].number};
    uint32_t n = size.ranks * size.chunks;
    ms_stage *stages = ms_arena_take(context->arena, n, sizeof *stages);
    *schedule = (ms_schedule){
        .n_stages = n,
        .n_ranks = (uint16_t)size.ranks,
        .n_micro_batches = micro_batches,
        .turn_at = ms_arena_take(context->arena, size.ranks + 1u,
                                 sizeof *schedule->turn_at),
        .turns = ms_arena_take_raw(context->arena, ms_orders_room(&size),
                                   sizeof *schedule->turns)};
    if (!stages || !schedule->turn_at || !schedule->turns)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < n; k++)
        stages[k].rank = ms_orders_rank(order, &size, k);
    MS_TRY(make_stages(context, stages, schedule, fault));
    MS_TRY(ms_orders_write(order, &size, context->arena, schedule, fault));
    schedule->receives = receives(values, schedule);
    return MS_OK;
}

static ms_err write_schedule(const ms_policy_context *context,
                             uint32_t micro_batches, ms_schedule *schedule,
                             ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool interleaved = values[SCHEDULE].text == NULL &&
                       order_of(values) == MS_ORDER_INTERLEAVED;
    if (values[GROUP].given && !interleaved)
        return ms_fail(fault, MS_EUSAGE, "pipeline:group",
                       "add schedule=interleaved, or leave group= out",
                       "only an interleaved schedule has groups");
    if (values[SCHEDULE].text != NULL)
        return read_schedule(context, micro_batches, schedule, fault);
    return write_order(context, micro_batches, schedule, fault);
}

const ms_policy ms_policy_pipeline = {
    .name = "pipeline",
    .summary = "ranks share the layers and hand on what they compute",
    .example = "pipeline:4,schedule=1f1b",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .schedule = write_schedule,
};
