/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/chen.h"
#include "policies/checkpoint/chains/chaincalls.h"
#include "policies/checkpoint/checkpointrows.h"
#include "policies/checkpoint/chains/segmentplan.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A size that a segment may have, and what its plan costs. */
typedef struct candidate {
    uint64_t size_bytes, time_ns, peak_bytes;
} candidate;

typedef struct chooser {
    const ms_policy_context *context;
    const ms_program *program; /* as it was given */
    bool early_stop, opens_last;
    ms_fault *fault;
    ms_arena calls;   /* of one plan */
    ms_arena scratch; /* of one replay */
    ms_stages stages;
    uint32_t *block, n_blocks; /* per stage its number */
    uint32_t *segment;         /* per stage, of the plan at hand */
    candidate *list;
    uint32_t n, capacity;
} chooser;

/* ---- the plans ----------------------------------------------------------- */

/* Cuts by the size; returns the next one that cuts differently, or 0. */
static uint64_t cut(chooser *c, uint64_t size_bytes)
{
    const ms_chain *chain = &c->stages.chain;
    uint64_t sum = 0, next = 0;
    uint32_t id = 0, last = MS_NONE;
    for (uint32_t l = 1; l <= chain->n; l++) {
        c->segment[l] = MS_NONE;
        if (c->block[l] == MS_NONE)
            continue;
        c->segment[l] = last = id;
        sum += chain->stages[l].saved_bytes;
        if (sum <= size_bytes)
            continue;
        bool ends_all = c->block[l] + 1 == c->n_blocks;
        if (!ends_all && (next == 0 || sum < next))
            next = sum;
        sum = 0;
        id++;
    }
    for (uint32_t l = chain->n; l > 0 && c->opens_last; l--)
        if (c->segment[l] == last)
            c->segment[l] = MS_NONE;
    return next;
}

static ms_err plan_for(chooser *c, uint64_t size_bytes, ms_arena *arena,
                       ms_chain_plan *plan, uint64_t *next)
{
    *next = cut(c, size_bytes);
    return ms_segmentplan_write(&c->stages.chain,
                                &(ms_segmentplan){.segment = c->segment}, arena,
                                plan, c->fault);
}

static ms_err write_calls(chooser *c, uint64_t size_bytes, ms_arena *arena,
                          ms_program *program)
{
    ms_chain_plan plan;
    uint64_t next;
    MS_TRY(plan_for(c, size_bytes, arena, &plan, &next));
    *program = *c->program;
    return ms_chaincalls_write(c->context->graph,
                               &(ms_chaincalls){.stages = &c->stages,
                                                .plan = &plan,
                                                .early_stop = c->early_stop},
                               arena, program, c->fault);
}

static ms_err list_plans(chooser *c)
{
    ms_chain_plan plan;
    uint64_t size_bytes = 0, next;
    do {
        candidate at = {.size_bytes = size_bytes};
        ms_arena_reset(&c->calls);
        MS_TRY(plan_for(c, size_bytes, &c->calls, &plan, &next));
        MS_TRY(ms_chain_cost(&c->stages.chain, &plan, &c->calls, &at.time_ns,
                             &at.peak_bytes, c->fault));
        if (c->n == c->capacity) {
            candidate *list =
                ms_arena_grow(c->context->arena, c->list, &c->capacity,
                              c->n + 1, sizeof *list);
            if (list == NULL)
                return ms_fail_nomem(c->fault);
            c->list = list;
        }
        c->list[c->n++] = at;
        size_bytes = next;
    } while (next > 0);
    return MS_OK;
}

/* ---- the choice ---------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? -1 : 1;
    return (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
}

/* Leaves those that no other one beats in time and peak. */
static void leave_best(chooser *c)
{
    uint32_t n = 0;
    if (c->n <= MS_CHEN_REPLAYS)
        return;
    qsort(c->list, c->n, sizeof *c->list, by_time);
    for (uint32_t i = 0; i < c->n; i++)
        if (n == 0 || c->list[i].peak_bytes < c->list[n - 1].peak_bytes)
            c->list[n++] = c->list[i];
    c->n = n;
}

static ms_err replay(chooser *c, candidate *at)
{
    ms_program program;
    ms_arena_reset(&c->calls);
    MS_TRY(write_calls(c, at->size_bytes, &c->calls, &program));
    return ms_profile_measure_in(c->context, &program, &c->scratch,
                                 &at->peak_bytes, &at->time_ns, c->fault);
}

static ms_err refuse(const chooser *c, uint64_t budget, uint64_t least_bytes)
{
    char given[MS_SIZE_COUNT], hint[96];
    ms_size_count(budget, given);
    snprintf(hint, sizeof hint,
             "the least of its %" PRIu32 " plans is budget="
             "%" PRIu64,
             c->n, least_bytes);
    return ms_fail(c->fault, MS_EINFEASIBLE, "checkpoint:chen", hint,
                   "no segments of equal bytes keep the step to %s bytes",
                   given);
}

/* The fastest in the budget; without one, that of the least peak. */
static ms_err choose(chooser *c, uint64_t *size_bytes)
{
    const ms_policy_value *value = &c->context->values[MS_CHECKPOINT_BUDGET];
    uint64_t budget = (uint64_t)value->number;
    const candidate *best = NULL;
    MS_TRY(list_plans(c));
    leave_best(c);
    for (uint32_t i = 0; i < c->n; i++)
        MS_TRY(replay(c, &c->list[i]));
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->list[i].peak_bytes < least)
            least = c->list[i].peak_bytes;
    if (value->given && least > budget)
        return refuse(c, budget, least);
    for (uint32_t i = 0; i < c->n; i++) {
        const candidate *at = &c->list[i];
        if (at->peak_bytes <= (value->given ? budget : least) &&
            (best == NULL || at->time_ns < best->time_ns))
            best = at;
    }
    *size_bytes = best->size_bytes;
    return MS_OK;
}

static ms_err place(chooser *c, ms_program *program)
{
    const ms_policy_value *values = c->context->values;
    const ms_policy_value *given = &values[MS_CHECKPOINT_SEGMENT];
    uint64_t size_bytes = (uint64_t)given->number;
    ms_arena *arena = c->context->arena;
    MS_TRY(ms_stages_find(c->context->graph, arena, &c->stages, c->fault));
    MS_TRY(ms_segmentplan_blocks(c->context->graph, &c->stages, arena,
                                 &c->block, &c->n_blocks, c->fault));
    c->segment =
        ms_arena_take_raw(arena, c->stages.chain.n + 1u, sizeof *c->segment);
    if (c->segment == NULL)
        return ms_fail_nomem(c->fault);
    if (!given->given)
        MS_TRY(choose(c, &size_bytes));
    return write_calls(c, size_bytes, arena, program);
}

ms_err ms_chen_place(const ms_policy_context *context, bool early_stop,
                     ms_program *program, ms_fault *fault)
{
    const ms_policy_value *last = &context->values[MS_CHECKPOINT_LAST];
    ms_program given = *program;
    chooser c = {.context = context,
                 .program = &given,
                 .early_stop = early_stop,
                 .opens_last =
                     !last->given || last->number == MS_CHECKPOINT_OPEN,
                 .fault = fault};
    c.calls.limit_bytes = context->arena->limit_bytes;
    c.scratch.limit_bytes = context->arena->limit_bytes;
    ms_err err = place(&c, program);
    ms_arena_free(&c.calls);
    ms_arena_free(&c.scratch);
    return err;
}
