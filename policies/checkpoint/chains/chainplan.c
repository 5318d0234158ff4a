/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/chainplan.h"
#include "policies/checkpoint/chains/chaincalls.h"
#include "policies/checkpoint/chains/dagplan.h"
#include "policies/checkpoint/chains/partflights.h"
#include "policies/checkpoint/chains/segmentplan.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct bracket {
    uint64_t low, high;  /* the most that kept to the budget, the least that did
                            not */
    uint64_t peak_bytes; /* of the plan before */
} bracket;

/* A rank, or ranks whose parts are planned together (partflights.h). */
typedef struct ranked {
    ms_profile_rank cost; /* of what was measured last */
    uint64_t best_ns;     /* of the fastest that keeps to the budget;
                             UINT64_MAX: there is none yet */
    uint64_t least_bytes; /* of all that were measured */
    uint64_t
        besides_bytes;   /* what the step has at its peak besides the chains */
    uint64_t besides_ns; /* and what it takes */
    bracket at;
    uint64_t left_bytes; /* the budget of a chain to try next; 0: there is no
                            better plan */
    uint32_t tries;
    bool tried;              /* in the replay at hand */
    bool foreseen;           /* its peak is the chain's, and what is besides */
    bool searches, is_exact; /* the least; it is that of all plans */
    uint64_t all_bytes;      /* of its chains, where all is saved */
    uint64_t close_bytes;    /* next to nothing */
    /* Of the plans at hand: what they cost by their chains, what is claimed of
     * them, and to which unit sizes were rounded up (0: none). */
    uint64_t chain_bytes, chain_ns, unit_bytes;
    ms_optimum_class class;
    ms_foreseen best;
    /* Plans in budgets of up to so many bytes are read from one table. */
    ms_arena tables;
    uint64_t most_bytes;
    ms_optimum_table *alone;
    ms_flights_table *together;
} ranked;

typedef struct planner {
    const ms_policy_context *context;
    const ms_chainplan_choice *choice;
    const ms_program *program; /* as it was given */
    ms_fault *fault;
    ms_chainparts parts;
    ms_partflights inflight;
    uint32_t n_ranks; /* groups of ranks */
    ranked *ranks;
    ms_profile_rank *costs;      /* per rank of the schedule */
    ms_chain_plan *plans, *best; /* per part: at hand, the fastest */
    ms_chain_plan *own;          /* of the parts of one rank */
    ms_arena calls;              /* of one program */
    ms_arena scratch;            /* of one measurement */
} planner;

static ms_err write_calls(const planner *p, const ms_chain_plan *plans,
                          ms_arena *arena, ms_program *program)
{
    const ms_chaincalls how = {.parts = &p->parts,
                               .plans = plans,
                               .early_stop = p->choice->early_stop};
    *program = *p->program;
    return ms_chaincalls_write(p->context, &how, arena, program, p->fault);
}

static const ms_partflights_group *group_of(const planner *p, uint32_t rank)
{
    return &p->inflight.groups[rank];
}

/* ---- a replay of all ranks ----------------------------------------------- */

/* What the plans of a rank cost by their chains. */
static ms_err cost_rank(planner *p, uint32_t rank, uint64_t *bytes,
                        uint64_t *ns)
{
    const ms_partflights_group *group = group_of(p, rank);
    for (uint32_t k = 0; k < group->flights.n; k++)
        p->own[k] = p->plans[group->part[k]];
    return group->alone ? ms_chain_cost(group->flights.chains, p->own,
                                        &p->scratch, ns, bytes, p->fault)
                        : ms_flights_cost(&group->flights, p->own, &p->scratch,
                                          bytes, ns, p->fault);
}

/* Measures a program: what a rank's memory comes to is not changed by what
 * others replay. */
static ms_err measure(planner *p, const ms_program *program)
{
    MS_TRY(ms_profile_ranks_in(p->context, program, &p->scratch, p->costs,
                               p->fault));
    for (uint32_t g = 0; g < p->n_ranks; g++)
        p->ranks[g].cost = (ms_profile_rank){0};
    for (uint32_t r = 0; r < p->context->schedule->n_ranks; r++) {
        ms_profile_rank *cost = &p->ranks[p->inflight.group_of[r]].cost;
        if (p->costs[r].peak_bytes > cost->peak_bytes)
            cost->peak_bytes = p->costs[r].peak_bytes;
        if (p->costs[r].work_ns > cost->work_ns)
            cost->work_ns = p->costs[r].work_ns;
    }
    return MS_OK;
}

/* The plans that were tried may be the best so far. */
static void judge(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    const ms_partflights_group *group = group_of(p, rank);
    const ms_profile_rank *cost = &r->cost;
    r->foreseen = cost->peak_bytes == r->chain_bytes + r->besides_bytes;
    if (cost->peak_bytes < r->least_bytes)
        r->least_bytes = cost->peak_bytes;
    if (cost->peak_bytes > p->choice->budget_bytes ||
        cost->work_ns >= r->best_ns)
        return;
    r->best =
        (ms_foreseen){r->chain_bytes + r->besides_bytes,
                      r->chain_ns + r->besides_ns, r->class, r->unit_bytes};
    r->best_ns = cost->work_ns;
    for (uint32_t k = 0; k < group->flights.n; k++)
        p->best[group->part[k]] = p->plans[group->part[k]];
}

/* Writes and measures the plans at hand. */
static ms_err measure_tried(planner *p)
{
    ms_program program;
    ms_arena_reset(&p->calls);
    MS_TRY(write_calls(p, p->plans, &p->calls, &program));
    MS_TRY(measure(p, &program));
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        if (!p->ranks[r].tried)
            continue;
        MS_TRY(
            cost_rank(p, r, &p->ranks[r].chain_bytes, &p->ranks[r].chain_ns));
        judge(p, r);
    }
    return MS_OK;
}

static uint32_t longest(const planner *p, uint32_t rank)
{
    const ms_flights *flights = &group_of(p, rank)->flights;
    uint32_t n = 0;
    for (uint32_t k = 0; k < flights->n; k++)
        n = flights->chains[k].n > n ? flights->chains[k].n : n;
    return n;
}

static bool is_any_tried(const planner *p)
{
    for (uint32_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].tried)
            return true;
    return false;
}

/* ---- equal segments ------------------------------------------------------ */

/* Of the part with the loss, whose backward follows at once, the last segment
 * is open. */
static ms_err plan_segments(planner *p, uint32_t rank, uint32_t blocks)
{
    const ms_partflights_group *group = group_of(p, rank);
    for (uint32_t i = 0; i < group->flights.n; i++) {
        uint32_t k = group->part[i];
        MS_TRY(ms_segmentplan_equal(&p->parts, k, blocks, k + 1 == p->parts.n,
                                    p->context->arena, &p->plans[k], p->fault));
    }
    return MS_OK;
}

/* What ranks share is close in their states, not exact: where the optimum is
 * missed by little it may be one of these. */
#define MOST_BLOCKS 8u
static ms_err try_segments(planner *p)
{
    for (uint32_t blocks = 1; blocks <= MOST_BLOCKS; blocks++) {
        for (uint32_t r = 0; r < p->n_ranks; r++) {
            ranked *own = &p->ranks[r];
            own->tried = own->best_ns == UINT64_MAX || own->tries > 0;
            own->tried =
                own->tried && !group_of(p, r)->alone && blocks < longest(p, r);
            own->class = MS_BEST_TRIED;
            own->unit_bytes = 0;
            if (own->tried)
                MS_TRY(plan_segments(p, r, blocks));
        }
        if (is_any_tried(p))
            MS_TRY(measure_tried(p));
    }
    return MS_OK;
}

/* ---- the optimum --------------------------------------------------------- */

/* What the step has at its peak besides the chains, where all is saved. */
static ms_err find_besides(planner *p)
{
    ms_arena *arena = p->context->arena;
    for (uint32_t k = 0; k < p->parts.n; k++) {
        ms_chain_plan *all = &p->plans[k];
        *all = (ms_chain_plan){0};
        for (uint32_t l = 1; l <= p->parts.of[k].chain.n; l++)
            MS_TRY(ms_chain_add(all, MS_CHAIN_SAVE, l, arena, p->fault));
        for (uint32_t l = p->parts.of[k].chain.n; l > 0; l--)
            MS_TRY(ms_chain_add(all, MS_CHAIN_BACKWARD, l, arena, p->fault));
    }
    MS_TRY(measure(p, p->program));
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        ranked *own = &p->ranks[r];
        uint64_t ns;
        MS_TRY(cost_rank(p, r, &own->all_bytes, &ns));
        if (own->cost.peak_bytes > own->all_bytes)
            own->besides_bytes = own->cost.peak_bytes - own->all_bytes;
        if (own->cost.work_ns > ns)
            own->besides_ns = own->cost.work_ns - ns;
    }
    for (uint32_t k = 0; k < p->parts.n; k++)
        p->plans[k] = p->best[k] = (ms_chain_plan){0};
    return MS_OK;
}

/* What rounding may take of a budget that chains share, at first. */
#define ROUNDED 64u
/* Of a rank whose step is measured: what a replay takes besides its forwards,
 * as the gathering of weights, where each block is replayed by itself.  It is
 * the same for a longer one: what follows is gathered meanwhile. */
static ms_err price_replays(planner *p)
{
    ranked *r = &p->ranks[0];
    const ms_partflights_group *group = group_of(p, 0);
    uint32_t n = p->parts.n_blocks[0];
    uint64_t bytes, ns;
    ms_program program;
    if (p->context->schedule->n_ranks > 1 || !group->alone || n < 2)
        return MS_OK;
    MS_TRY(plan_segments(p, 0, 1));
    ms_arena_reset(&p->calls);
    MS_TRY(write_calls(p, p->plans, &p->calls, &program));
    MS_TRY(measure(p, &program));
    MS_TRY(cost_rank(p, 0, &bytes, &ns));
    if (r->cost.work_ns > ns + r->besides_ns)
        group->chains[0].replay_ns =
            (r->cost.work_ns - ns - r->besides_ns) / (n - 1);
    p->plans[0] = (ms_chain_plan){0};
    return MS_OK;
}

/* How often a rank's budget of a chain is moved, by what its peak was beside
 * the given one, or half the way between one that was enough and one that was
 * not. */
#define MOST_TRIES 8u

/* A table for budgets from half of so many bytes up to some more, in which the
 * next ones will lie. */
static ms_err open_tables(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    const ms_flights *flights = &group_of(p, rank)->flights;
    if (r->left_bytes <= r->most_bytes && r->left_bytes > r->most_bytes / 2)
        return MS_OK;
    ms_arena_reset(&r->tables);
    r->most_bytes = r->left_bytes + r->left_bytes / 16;
    if (!group_of(p, rank)->alone)
        return ms_flights_open(flights, r->most_bytes, p->choice->slots,
                               &r->tables, &r->together, p->fault);
    MS_TRY(ms_optimum_open(flights->chains, r->most_bytes, p->choice->slots,
                           &r->tables, &r->alone, p->fault));
    if (ms_optimum_is_long(r->alone) && r->at.high > r->most_bytes)
        r->at.high = r->most_bytes;
    return MS_OK;
}

/* The plans for so many bytes of a rank's chains. */
static ms_err plan_rank(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    const ms_partflights_group *group = group_of(p, rank);
    ms_arena *arena = p->context->arena;
    ms_optimum optimum;
    MS_TRY(open_tables(p, rank));
    r->class = MS_BEST_PERSISTENT;
    r->unit_bytes = 0;
    if (group->alone) {
        MS_TRY(ms_optimum_read(r->alone, r->left_bytes, arena, &optimum,
                               p->fault));
        p->own[0] = optimum.plan;
        r->unit_bytes = optimum.exact ? 0 : optimum.unit_bytes;
    } else
        MS_TRY(ms_flights_read(r->together, r->left_bytes, arena, p->own,
                               &r->unit_bytes, p->fault));
    for (uint32_t k = 0; k < group->flights.n; k++)
        p->plans[group->part[k]] = p->own[k];
    return MS_OK;
}

/* Does the last plan leave next to nothing of the budget? */
static bool is_filled(const planner *p, uint32_t rank)
{
    uint64_t budget = p->choice->budget_bytes;
    uint64_t peak_bytes = p->ranks[rank].cost.peak_bytes;
    return p->ranks[rank].tries > 0 && peak_bytes <= budget &&
           budget - peak_bytes <= p->ranks[rank].close_bytes;
}

/* Readies the next plans of a rank, where there may be better ones. */
static ms_err ready(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    ms_fault *told = p->fault;
    r->tried = false;
    while (!r->tried && r->tries < MOST_TRIES && r->left_bytes > 0 &&
           r->at.high - r->at.low > r->close_bytes && !is_filled(p, rank)) {
        ms_fault fault = {.caret = -1};
        r->tries++;
        p->fault = &fault;
        ms_err err = plan_rank(p, rank);
        p->fault = told;
        if (err != MS_OK && err != MS_EINFEASIBLE) {
            *told = fault;
            return err;
        }
        r->tried = err == MS_OK;
        if (r->tried)
            continue;
        r->at.low = r->left_bytes;
        r->left_bytes += (r->at.high - r->at.low) / 2;
    }
    return MS_OK;
}

/* The next budget of a chain to try behind this one. */
static void move_budget(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    bracket *b = &r->at;
    uint64_t peak_bytes = r->cost.peak_bytes, next = r->left_bytes;
    uint64_t budget = p->choice->budget_bytes;
    bool keeps = peak_bytes <= budget;
    if (r->tries == 1 && r->foreseen && r->unit_bytes == 0 && keeps) {
        r->left_bytes = 0;
        return;
    }
    if (keeps)
        b->low = next;
    else
        b->high = next;
    bool same = b->peak_bytes == peak_bytes;
    b->peak_bytes = peak_bytes;
    next += budget - peak_bytes; /* it may be less */
    r->left_bytes = !same && next > b->low && next < b->high
                        ? next
                        : b->low + (b->high - b->low) / 2;
}

static ms_err try_budgets(planner *p)
{
    for (;;) {
        for (uint32_t r = 0; r < p->n_ranks; r++)
            MS_TRY(ready(p, r));
        if (!is_any_tried(p))
            return MS_OK;
        MS_TRY(measure_tried(p));
        for (uint32_t r = 0; r < p->n_ranks; r++)
            if (p->ranks[r].tried)
                move_budget(p, r);
    }
}

/* ---- the least ----------------------------------------------------------- */

/* Of a lowered model the least of the chain need not be that of the step: what
 * is besides the chain differs from plan to plan.  Few inputs of stages, or
 * many, are tried, too; 0: the chain's least. */
#define MOST_CHECKPOINTS 16u
static ms_err plan_least(planner *p, uint32_t rank, uint32_t slots)
{
    const ms_partflights_group *group = group_of(p, rank);
    for (uint32_t k = 0; k < group->flights.n; k++) {
        const ms_chain *chain = &group->flights.chains[k];
        uint32_t most = chain->n > 1 ? chain->n - 1 : 1;
        ms_chain_plan *plan = &p->plans[group->part[k]];
        uint64_t bytes;
        MS_TRY(slots == 0
                   ? ms_leastmemory_find(chain, p->context->arena, &bytes, plan,
                                         p->fault)
                   : ms_binomial_plan(chain->n, slots < most ? slots : most,
                                      p->context->arena, plan, p->fault));
    }
    return MS_OK;
}

/* Sizes that are rounded up to units may hide the last plans that there are:
 * of ranks that have none yet. */
static ms_err try_least(planner *p)
{
    for (uint32_t slots = 0; slots <= MOST_CHECKPOINTS; slots++) {
        for (uint32_t r = 0; r < p->n_ranks; r++) {
            ranked *own = &p->ranks[r];
            own->searches = slots == 0 ? own->best_ns == UINT64_MAX
                                       : own->searches && !own->is_exact;
            own->tried = own->searches && (slots == 0 || slots < longest(p, r));
            own->class = MS_BEST_TRIED;
            own->unit_bytes = 0;
            if (own->tried)
                MS_TRY(plan_least(p, r, slots));
        }
        if (is_any_tried(p))
            MS_TRY(measure_tried(p));
        for (uint32_t r = 0; r < p->n_ranks && slots == 0; r++)
            p->ranks[r].is_exact =
                p->ranks[r].foreseen && p->ranks[r].besides_bytes == 0;
    }
    return MS_OK;
}

static ms_err check_best(planner *p)
{
    const ranked *worst = NULL;
    char budget[MS_SIZE_COUNT], hint[128];
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        const ranked *own = &p->ranks[r];
        if (own->best_ns == UINT64_MAX &&
            (worst == NULL || own->least_bytes > worst->least_bytes))
            worst = own;
    }
    if (worst == NULL)
        return MS_OK;
    ms_size_count(p->choice->budget_bytes, budget);
    snprintf(hint, sizeof hint, "the least %sis budget=%" PRIu64,
             worst->is_exact ? "" : "of the plans that were tried ",
             worst->least_bytes);
    return ms_fail(p->fault, MS_EINFEASIBLE, "checkpoint:optimal", hint,
                   "no plan keeps the step to %s bytes", budget);
}

/* What is kept over stages is in no plan's hand: said where it is much beside
 * the largest output of a stage, as in U-Net, whose skips leave no cut point
 * between. */
static ms_err tell_skips(const planner *p, ms_program *program)
{
    const ms_graph *graph = p->context->graph;
    uint64_t bytes = 0, largest = 0;
    uint32_t n = 0;
    char size[MS_SIZE_COUNT];
    for (uint32_t k = 0; k < p->parts.n; k++) {
        const ms_stages *stages = &p->parts.of[k];
        for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
            if (stages->is_kept[s] && stages->first_reader[s] > 0) {
                bytes += graph->storage_bytes[s];
                n++;
            }
        for (uint32_t l = 1; l < stages->chain.n; l++)
            if (stages->chain.stages[l].output_bytes > largest)
                largest = stages->chain.stages[l].output_bytes;
    }
    if (bytes <= largest / 4)
        return MS_OK;
    ms_size_count(bytes, size);
    program->told = ms_arena_format(
        p->context->arena,
        "%" PRIu32 " tensors of together %s bytes are read over stages, so "
        "that no cut point lies there: each plan of the chain keeps them. As "
        "a DAG they may go, too: dtr:budget=SIZE, or a file with \"family\": "
        "\"dag\" and checkpoint:optimal",
        n, size);
    return program->told == NULL ? ms_fail_nomem(p->fault) : MS_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err open_ranks(planner *p)
{
    ms_arena *arena = p->context->arena;
    MS_TRY(ms_chainparts_find(p->context, &p->parts, p->fault));
    MS_TRY(ms_partflights_find(p->context, &p->parts, p->choice->early_stop,
                               &p->inflight, p->fault));
    p->n_ranks = p->inflight.n;
    p->ranks = ms_arena_take(arena, p->n_ranks, sizeof *p->ranks);
    p->costs =
        ms_arena_take(arena, p->context->schedule->n_ranks, sizeof *p->costs);
    p->plans = ms_arena_take(arena, p->parts.n, sizeof *p->plans);
    p->best = ms_arena_take(arena, p->parts.n, sizeof *p->best);
    p->own = ms_arena_take(arena, p->parts.n, sizeof *p->own);
    if (p->ranks == NULL || p->costs == NULL || p->plans == NULL ||
        p->best == NULL || p->own == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t r = 0; r < p->n_ranks; r++)
        p->ranks[r] = (ranked){.best_ns = UINT64_MAX,
                               .least_bytes = UINT64_MAX,
                               .tables.limit_bytes = arena->limit_bytes};
    return MS_OK;
}

static void close_ranks(planner *p)
{
    for (uint32_t r = 0; p->ranks != NULL && r < p->n_ranks; r++)
        ms_arena_free(&p->ranks[r].tables);
    ms_arena_free(&p->calls);
    ms_arena_free(&p->scratch);
}

/* A rank on which all may be saved has its plan. */
static bool open_budgets(planner *p)
{
    uint64_t budget = p->choice->budget_bytes;
    bool all = true;
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        ranked *own = &p->ranks[r];
        if (own->cost.peak_bytes <= budget) {
            own->best_ns = own->cost.work_ns;
            continue;
        }
        all = false;
        own->at.high = 2 * own->all_bytes; /* rounded sizes may double */
        own->left_bytes = budget;
        if (budget > own->besides_bytes)
            own->left_bytes = budget - own->besides_bytes;
        if (!group_of(p, r)->alone) /* sizes that are rounded up */
            own->left_bytes += own->left_bytes / ROUNDED;
        own->close_bytes = own->left_bytes / MS_OPTIMUM_LOW;
    }
    return all;
}

/* The optimum is a claim about one chain in one budget. */
static ms_err find_optimum(planner *p, ms_program *program)
{
    MS_TRY(find_besides(p));
    bool alone = p->context->schedule->n_ranks == 1;
    if (open_budgets(p)) {
        if (alone)
            program->foreseen =
                (ms_foreseen){p->costs[0].peak_bytes, p->costs[0].work_ns,
                              MS_BEST_PERSISTENT, 0};
        return MS_OK;
    }
    MS_TRY(price_replays(p));
    MS_TRY(try_budgets(p));
    MS_TRY(try_segments(p));
    MS_TRY(try_least(p));
    MS_TRY(check_best(p));
    MS_TRY(write_calls(p, p->best, p->context->arena, program));
    if (alone)
        program->foreseen = p->ranks[0].best;
    return MS_OK;
}

static ms_err find_binomial(planner *p, ms_program *program)
{
    for (uint32_t k = 0; k < p->parts.n; k++)
        MS_TRY(ms_binomial_plan(p->parts.of[k].chain.n, p->choice->checkpoints,
                                p->context->arena, &p->plans[k], p->fault));
    return write_calls(p, p->plans, p->context->arena, program);
}

ms_err ms_chainplan_place(const ms_policy_context *context,
                          const ms_chainplan_choice *choice,
                          ms_program *program, ms_fault *fault)
{
    ms_program given = *program;
    planner p = {.context = context,
                 .choice = choice,
                 .program = &given,
                 .fault = fault};
    if (choice->checkpoints == 0 && choice->budget_bytes == 0)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:optimal",
                       "write checkpoint:optimal,budget=40GiB",
                       "the best plan is one for a budget");
    if (context->graph->nodes && choice->checkpoints > 0)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:revolve",
                       "write checkpoint:optimal,budget=SIZE",
                       "it is for stages in a row: a measured DAG has nodes");
    if (context->graph->nodes)
        return ms_dagplan_place(context, choice->budget_bytes, program, fault);
    p.calls.limit_bytes = p.scratch.limit_bytes = context->arena->limit_bytes;
    ms_err err = open_ranks(&p);
    if (err == MS_OK)
        err = choice->checkpoints > 0 ? find_binomial(&p, program)
                                      : find_optimum(&p, program);
    if (err == MS_OK)
        err = tell_skips(&p, program);
    close_ranks(&p);
    return err;
}
