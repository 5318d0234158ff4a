/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/chen.h"
#include "policies/checkpoint/chains/chaincalls.h"
#include "policies/checkpoint/chains/segmentplan.h"
#include "policies/checkpoint/checkpointrows.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A size that a segment may have, and what its plan costs. */
typedef struct candidate {
    uint64_t size_bytes, time_ns, peak_bytes;
} candidate;

/* The sizes that the parts of a rank may have; none: it has none of its own. */
typedef struct candidates {
    candidate *list;
    uint32_t n, capacity;
} candidates;

typedef struct chooser {
    const ms_policy_context *context;
    const ms_program *program; /* as it was given */
    bool early_stop;
    ms_fault *fault;
    ms_arena calls;   /* of one plan */
    ms_arena scratch; /* of one replay */
    ms_chainparts parts;
    ms_chain_plan *plans;   /* per part */
    uint32_t **segment;     /* per part and stage, of the plan at hand */
    candidates *of;         /* per rank */
    uint64_t *size_bytes;   /* per rank, of the plan at hand */
    ms_profile_rank *costs; /* per rank, of the plan at hand */
} chooser;

/* ---- the plans ----------------------------------------------------------- */

static uint32_t rank_of(const chooser *c, uint32_t k)
{
    return c->context->schedule->stages[k].rank;
}

/* Without last=, where its backward follows at once. */
static bool opens_last(const chooser *c, uint32_t k)
{
    const ms_policy_value *last = &c->context->values[MS_CHECKPOINT_LAST];
    return last->given ? last->number == MS_CHECKPOINT_OPEN
                       : k + 1 == c->parts.n;
}

/* Cuts a part by the size; returns the next one that cuts differently, or 0. */
static uint64_t cut(chooser *c, uint32_t k, uint64_t size_bytes)
{
    const ms_chain *chain = &c->parts.of[k].chain;
    const uint32_t *block = c->parts.block[k];
    uint32_t *segment = c->segment[k];
    uint64_t sum = 0, next = 0;
    uint32_t id = 0, last = MS_NONE;
    for (uint32_t l = 1; l <= chain->n; l++) {
        segment[l] = MS_NONE;
        if (block[l] == MS_NONE)
            continue;
        segment[l] = last = id;
        sum += chain->stages[l].saved_bytes;
        if (sum <= size_bytes)
            continue;
        bool ends_all = block[l] + 1 == c->parts.n_blocks[k];
        if (!ends_all && (next == 0 || sum < next))
            next = sum;
        sum = 0;
        id++;
    }
    for (uint32_t l = chain->n; l > 0; l--)
        if (segment[l] == last && opens_last(c, k))
            segment[l] = MS_NONE;
    return next;
}

static ms_err plan_for(chooser *c, uint32_t k, uint64_t size_bytes,
                       ms_arena *arena, uint64_t *next)
{
    *next = cut(c, k, size_bytes);
    return ms_segmentplan_write(&c->parts.of[k].chain,
                                &(ms_segmentplan){.segment = c->segment[k]},
                                arena, &c->plans[k], c->fault);
}

static ms_err write_calls(chooser *c, ms_arena *arena, ms_program *program)
{
    uint64_t next;
    for (uint32_t k = 0; k < c->parts.n; k++)
        MS_TRY(plan_for(c, k, c->size_bytes[rank_of(c, k)], arena, &next));
    *program = *c->program;
    return ms_chaincalls_write(c->context,
                               &(ms_chaincalls){.parts = &c->parts,
                                                .plans = c->plans,
                                                .early_stop = c->early_stop},
                               arena, program, c->fault);
}

/* What the size costs the rank, and the next one. */
static ms_err cost_of(chooser *c, uint32_t rank, candidate *at, uint64_t *next)
{
    *next = 0;
    for (uint32_t k = 0; k < c->parts.n; k++) {
        uint64_t time_ns, peak_bytes, own;
        if (rank_of(c, k) != rank)
            continue;
        MS_TRY(plan_for(c, k, at->size_bytes, &c->calls, &own));
        MS_TRY(ms_chain_cost(&c->parts.of[k].chain, &c->plans[k], &c->calls,
                             &time_ns, &peak_bytes, c->fault));
        at->time_ns += time_ns;
        at->peak_bytes += peak_bytes;
        if (own > 0 && (*next == 0 || own < *next))
            *next = own;
    }
    return MS_OK;
}

static bool has_parts(const chooser *c, uint32_t rank)
{
    for (uint32_t k = 0; k < c->parts.n; k++)
        if (rank_of(c, k) == rank)
            return true;
    return false;
}

static ms_err list_sizes(chooser *c, uint32_t rank)
{
    candidates *own = &c->of[rank];
    uint64_t size_bytes = 0, next;
    if (!has_parts(c, rank))
        return MS_OK;
    do {
        candidate at = {.size_bytes = size_bytes};
        ms_arena_reset(&c->calls);
        MS_TRY(cost_of(c, rank, &at, &next));
        if (own->n == own->capacity) {
            candidate *list =
                ms_arena_grow(c->context->arena, own->list, &own->capacity,
                              own->n + 1, sizeof *list);
            if (list == NULL)
                return ms_fail_nomem(c->fault);
            own->list = list;
        }
        own->list[own->n++] = at;
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
static void leave_best(candidates *own)
{
    uint32_t n = 0;
    if (own->n <= MS_CHEN_REPLAYS)
        return;
    qsort(own->list, own->n, sizeof *own->list, by_time);
    for (uint32_t i = 0; i < own->n; i++)
        if (n == 0 || own->list[i].peak_bytes < own->list[n - 1].peak_bytes)
            own->list[n++] = own->list[i];
    own->n = n;
}

/* The plans of number i of all ranks, in one replay: of those that have fewer,
 * their last. */
static ms_err replay(chooser *c, uint32_t i)
{
    uint32_t n_ranks = c->context->schedule->n_ranks;
    ms_program program;
    ms_arena_reset(&c->calls);
    for (uint32_t r = 0; r < n_ranks; r++)
        if (i < c->of[r].n)
            c->size_bytes[r] = c->of[r].list[i].size_bytes;
    MS_TRY(write_calls(c, &c->calls, &program));
    MS_TRY(ms_profile_ranks_in(c->context, &program, &c->scratch, c->costs,
                               c->fault));
    for (uint32_t r = 0; r < n_ranks; r++)
        if (i < c->of[r].n) {
            c->of[r].list[i].peak_bytes = c->costs[r].peak_bytes;
            c->of[r].list[i].time_ns = c->costs[r].work_ns;
        }
    return MS_OK;
}

static ms_err refuse(const chooser *c, const candidates *of, uint64_t budget,
                     uint64_t least_bytes)
{
    char given[MS_SIZE_COUNT], hint[96];
    ms_size_count(budget, given);
    snprintf(hint, sizeof hint,
             "the least of its %" PRIu32 " plans is budget="
             "%" PRIu64,
             of->n, least_bytes);
    return ms_fail(c->fault, MS_EINFEASIBLE, "checkpoint:chen", hint,
                   "no segments of equal bytes keep the step to %s bytes",
                   given);
}

static uint64_t least_of(const candidates *own)
{
    uint64_t least = own->n > 0 ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < own->n; i++)
        if (own->list[i].peak_bytes < least)
            least = own->list[i].peak_bytes;
    return least;
}

/* The fastest in the budget; without one, that of the least peak. */
static void choose_best(chooser *c, uint32_t rank, uint64_t budget)
{
    const candidates *own = &c->of[rank];
    const candidate *best = NULL;
    for (uint32_t i = 0; i < own->n; i++)
        if (own->list[i].peak_bytes <= budget &&
            (best == NULL || own->list[i].time_ns < best->time_ns))
            best = &own->list[i];
    if (best != NULL)
        c->size_bytes[rank] = best->size_bytes;
}

/* Each rank chooses for its own parts. */
static ms_err choose(chooser *c)
{
    const ms_policy_value *value = &c->context->values[MS_CHECKPOINT_BUDGET];
    uint64_t budget = (uint64_t)value->number;
    uint32_t n_ranks = c->context->schedule->n_ranks, most = 0, worst = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        MS_TRY(list_sizes(c, r));
        leave_best(&c->of[r]);
        most = c->of[r].n > most ? c->of[r].n : most;
    }
    for (uint32_t i = 0; i < most; i++)
        MS_TRY(replay(c, i));
    for (uint32_t r = 1; r < n_ranks; r++)
        if (least_of(&c->of[r]) > least_of(&c->of[worst]))
            worst = r;
    if (value->given && least_of(&c->of[worst]) > budget)
        return refuse(c, &c->of[worst], budget, least_of(&c->of[worst]));
    for (uint32_t r = 0; r < n_ranks; r++)
        choose_best(c, r, value->given ? budget : least_of(&c->of[r]));
    return MS_OK;
}

static ms_err take_columns(chooser *c)
{
    ms_arena *arena = c->context->arena;
    uint32_t n = c->parts.n, n_ranks = c->context->schedule->n_ranks;
    c->plans = ms_arena_take(arena, n, sizeof *c->plans);
    c->segment = ms_arena_take(arena, n, sizeof *c->segment);
    c->of = ms_arena_take(arena, n_ranks, sizeof *c->of);
    c->size_bytes = ms_arena_take(arena, n_ranks, sizeof *c->size_bytes);
    c->costs = ms_arena_take(arena, n_ranks, sizeof *c->costs);
    if (c->plans == NULL || c->segment == NULL || c->of == NULL ||
        c->size_bytes == NULL || c->costs == NULL)
        return ms_fail_nomem(c->fault);
    for (uint32_t k = 0; k < n; k++) {
        c->segment[k] = ms_arena_take_raw(arena, c->parts.of[k].chain.n + 1u,
                                          sizeof **c->segment);
        if (c->segment[k] == NULL)
            return ms_fail_nomem(c->fault);
    }
    return MS_OK;
}

static ms_err place(chooser *c, ms_program *program)
{
    const ms_policy_value *given = &c->context->values[MS_CHECKPOINT_SEGMENT];
    uint32_t most;
    MS_TRY(ms_chainparts_find(c->context, &c->parts, c->fault));
    MS_TRY(ms_chainparts_blocks(&c->parts, &most, c->fault));
    MS_TRY(take_columns(c));
    for (uint32_t r = 0; r < c->context->schedule->n_ranks; r++)
        c->size_bytes[r] = (uint64_t)given->number;
    if (!given->given)
        MS_TRY(choose(c));
    return write_calls(c, c->context->arena, program);
}

ms_err ms_chen_place(const ms_policy_context *context, bool early_stop,
                     ms_program *program, ms_fault *fault)
{
    ms_program given = *program;
    chooser c = {.context = context,
                 .program = &given,
                 .early_stop = early_stop,
                 .fault = fault};
    c.calls.limit_bytes = context->arena->limit_bytes;
    c.scratch.limit_bytes = context->arena->limit_bytes;
    ms_err err = place(&c, program);
    ms_arena_free(&c.calls);
    ms_arena_free(&c.scratch);
    return err;
}
