/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/chainplan.h"
#include "policies/checkpoint/chains/chaincalls.h"
#include "policies/checkpoint/chains/dagplan.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>

/* A rank of several parts divides its budget among them in so many shares; what
 * a share is worth is found in so many units. */
#define SHARES 16u
#define SHARE_SLOTS 500u

typedef struct bracket {
    uint64_t low, high;  /* the most that kept to the budget, the least that did
                            not */
    uint64_t peak_bytes; /* of the plan before */
} bracket;

/* A rank, whose parts have shares of its budget. */
typedef struct ranked {
    uint32_t n;           /* parts */
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
} ranked;

typedef struct planner {
    const ms_policy_context *context;
    const ms_chainplan_choice *choice;
    const ms_program *program; /* as it was given */
    ms_fault *fault;
    ms_chainparts parts;
    ms_chain *chains;              /* per part, as its rank's memory sees it */
    uint64_t *part_bytes;          /* per part: its share of what is left, */
    uint32_t (*share)[SHARES + 1]; /* of so many of both */
    uint32_t n_ranks;
    ranked *ranks;
    ms_profile_rank *costs;      /* per rank, of what was measured last */
    ms_chain_plan *plans, *best; /* per part: at hand, the fastest */
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

static bool has_part(const planner *p, uint32_t rank, uint32_t k)
{
    return p->context->schedule->stages[k].rank == rank;
}

/* ---- a replay of all ranks ----------------------------------------------- */

/* What the plans of a rank cost by their chains. */
static ms_err cost_rank(planner *p, uint32_t rank, const ms_chain_plan *plans,
                        uint64_t *bytes, uint64_t *ns)
{
    *bytes = *ns = 0;
    for (uint32_t k = 0; k < p->parts.n; k++) {
        uint64_t own_ns, own_bytes;
        if (!has_part(p, rank, k) || plans[k].n == 0)
            continue;
        MS_TRY(ms_chain_cost(&p->chains[k], &plans[k], p->context->arena,
                             &own_ns, &own_bytes, p->fault));
        *bytes += own_bytes;
        *ns += own_ns;
    }
    return MS_OK;
}

/* The plans that were tried may be the best so far. */
static void judge(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    const ms_profile_rank *cost = &p->costs[rank];
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
    for (uint32_t k = 0; k < p->parts.n; k++)
        if (has_part(p, rank, k))
            p->best[k] = p->plans[k];
}

/* Writes and measures the plans at hand.  What a rank's memory comes to is not
 * changed by what others replay. */
static ms_err measure_tried(planner *p)
{
    ms_program program;
    ms_arena_reset(&p->calls);
    MS_TRY(write_calls(p, p->plans, &p->calls, &program));
    MS_TRY(ms_profile_ranks_in(p->context, &program, &p->scratch, p->costs,
                               p->fault));
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        if (!p->ranks[r].tried)
            continue;
        MS_TRY(cost_rank(p, r, p->plans, &p->ranks[r].chain_bytes,
                         &p->ranks[r].chain_ns));
        judge(p, r);
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
    MS_TRY(ms_profile_ranks_in(p->context, p->program, &p->scratch, p->costs,
                               p->fault));
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        ranked *own = &p->ranks[r];
        uint64_t ns;
        MS_TRY(cost_rank(p, r, p->plans, &own->all_bytes, &ns));
        if (p->costs[r].peak_bytes > own->all_bytes)
            own->besides_bytes = p->costs[r].peak_bytes - own->all_bytes;
        if (p->costs[r].work_ns > ns)
            own->besides_ns = p->costs[r].work_ns - ns;
    }
    for (uint32_t k = 0; k < p->parts.n; k++)
        p->plans[k] = p->best[k] = (ms_chain_plan){0};
    return MS_OK;
}

/* How often a rank's budget of a chain is moved, by what its peak was beside
 * the given one, or half the way between one that was enough and one that was
 * not. */
#define MOST_TRIES 8u

/* The least time of part k with each number of shares; UINT64_MAX: there is no
 * plan. */
static ms_err price_shares(planner *p, uint32_t k, uint64_t left_bytes,
                           uint64_t *time_ns)
{
    uint32_t slots = p->choice->slots > 0 ? p->choice->slots : SHARE_SLOTS;
    for (uint32_t i = 0; i <= SHARES; i++) {
        ms_optimum optimum;
        ms_fault fault = {.caret = -1};
        ms_arena_reset(&p->scratch);
        time_ns[i] = UINT64_MAX;
        if (left_bytes / SHARES * i == 0)
            continue;
        ms_err err = ms_optimum_find(&p->chains[k], left_bytes / SHARES * i,
                                     slots, &p->scratch, &optimum, &fault);
        if (err == MS_OK)
            time_ns[i] = optimum.time_ns;
        else if (err != MS_EINFEASIBLE)
            return ms_fail_nomem(p->fault);
    }
    return MS_OK;
}

/* The shares of all parts of a rank that together take the least time: the best
 * of the parts up to each one in so many shares. */
static ms_err divide_budget(planner *p, uint32_t rank)
{
    uint64_t best[SHARES + 1] = {0}, time_ns[SHARES + 1];
    uint64_t left_bytes = p->ranks[rank].left_bytes;
    uint32_t rest = SHARES;
    for (uint32_t k = 0; k < p->parts.n; k++) {
        if (!has_part(p, rank, k))
            continue;
        MS_TRY(price_shares(p, k, left_bytes, time_ns));
        for (uint32_t j = SHARES + 1; j-- > 0;) {
            uint64_t least = UINT64_MAX;
            for (uint32_t i = 0; i <= j; i++)
                if (time_ns[i] < UINT64_MAX && best[j - i] < UINT64_MAX &&
                    time_ns[i] + best[j - i] < least) {
                    least = time_ns[i] + best[j - i];
                    p->share[k][j] = i;
                }
            best[j] = least;
        }
    }
    if (best[SHARES] == UINT64_MAX)
        return ms_fail(p->fault, MS_EINFEASIBLE, "checkpoint:optimal", NULL,
                       "no shares of the budget are enough for all stages");
    for (uint32_t k = p->parts.n; k-- > 0;)
        if (has_part(p, rank, k)) {
            p->part_bytes[k] = left_bytes / SHARES * p->share[k][rest];
            rest -= p->share[k][rest];
        }
    return MS_OK;
}

/* The plans for so many bytes of a rank's chains. */
static ms_err plan_rank(planner *p, uint32_t rank)
{
    ranked *r = &p->ranks[rank];
    r->class = MS_BEST_PERSISTENT;
    r->unit_bytes = 0;
    if (r->n > 1)
        MS_TRY(divide_budget(p, rank));
    for (uint32_t k = 0; k < p->parts.n; k++) {
        ms_optimum optimum;
        if (!has_part(p, rank, k))
            continue;
        MS_TRY(ms_optimum_find(
            &p->chains[k], r->n > 1 ? p->part_bytes[k] : r->left_bytes,
            p->choice->slots, p->context->arena, &optimum, p->fault));
        p->plans[k] = optimum.plan;
        r->unit_bytes = optimum.exact ? r->unit_bytes : optimum.unit_bytes;
    }
    return MS_OK;
}

/* Does the last plan leave next to nothing of the budget? */
static bool is_filled(const planner *p, uint32_t rank)
{
    uint64_t budget = p->choice->budget_bytes;
    uint64_t peak_bytes = p->costs[rank].peak_bytes;
    return peak_bytes <= budget &&
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
    uint64_t peak_bytes = p->costs[rank].peak_bytes, next = r->left_bytes;
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

static bool is_any_tried(const planner *p)
{
    for (uint32_t r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].tried)
            return true;
    return false;
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
    for (uint32_t k = 0; k < p->parts.n; k++) {
        const ms_chain *chain = &p->chains[k];
        uint32_t most = chain->n > 1 ? chain->n - 1 : 1;
        uint64_t bytes;
        if (!has_part(p, rank, k))
            continue;
        MS_TRY(slots == 0 ? ms_leastmemory_find(chain, p->context->arena,
                                                &bytes, &p->plans[k], p->fault)
                          : ms_binomial_plan(
                                chain->n, slots < most ? slots : most,
                                p->context->arena, &p->plans[k], p->fault));
    }
    return MS_OK;
}

static uint32_t longest(const planner *p, uint32_t rank)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->parts.n; k++)
        if (has_part(p, rank, k) && p->parts.of[k].chain.n > n)
            n = p->parts.of[k].chain.n;
    return n;
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

/* At most so many forwards of part k wait for their backward on a rank. */
static uint32_t find_flight(const ms_schedule *schedule, uint32_t k)
{
    uint32_t most = 1;
    for (uint32_t r = 0; r < schedule->n_ranks; r++)
        for (uint32_t i = schedule->turn_at[r], now = 0;
             i < schedule->turn_at[r + 1]; i++) {
            uint8_t kind = schedule->turns[i].kind;
            if (schedule->turns[i].stage != k)
                continue;
            now += kind == MS_TURN_FORWARD;
            most = now > most ? now : most;
            now -= kind == MS_TURN_BACKWARD || kind == MS_TURN_GRAD_WEIGHT;
        }
    return most;
}

/* In a rank's memory what a part keeps is there for each micro-batch in flight;
 * what an act takes besides is there once (policies/sources.md 1, AdaPipe). */
static ms_err weigh_chain(planner *p, uint32_t k)
{
    const ms_chain *own = &p->parts.of[k].chain;
    uint64_t times = find_flight(p->context->schedule, k);
    ms_chain_stage *stages =
        ms_arena_take_raw(p->context->arena, own->n + 1u, sizeof *stages);
    if (stages == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t l = 0; l <= own->n; l++) {
        stages[l] = own->stages[l];
        stages[l].output_bytes *= times;
        stages[l].saved_bytes *= times;
    }
    p->chains[k] = (ms_chain){own->n, own->input_bytes * times, stages};
    return MS_OK;
}

static ms_err open_ranks(planner *p)
{
    ms_arena *arena = p->context->arena;
    uint32_t n = p->context->schedule->n_ranks;
    MS_TRY(ms_chainparts_find(p->context, &p->parts, p->fault));
    p->n_ranks = n;
    p->ranks = ms_arena_take(arena, n, sizeof *p->ranks);
    p->costs = ms_arena_take(arena, n, sizeof *p->costs);
    p->plans = ms_arena_take(arena, p->parts.n, sizeof *p->plans);
    p->best = ms_arena_take(arena, p->parts.n, sizeof *p->best);
    p->chains = ms_arena_take(arena, p->parts.n, sizeof *p->chains);
    p->part_bytes = ms_arena_take(arena, p->parts.n, sizeof *p->part_bytes);
    p->share = ms_arena_take(arena, p->parts.n, sizeof *p->share);
    if (p->ranks == NULL || p->costs == NULL || p->plans == NULL ||
        p->best == NULL || p->chains == NULL || p->part_bytes == NULL ||
        p->share == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t r = 0; r < n; r++)
        p->ranks[r] =
            (ranked){.best_ns = UINT64_MAX, .least_bytes = UINT64_MAX};
    for (uint32_t k = 0; k < p->parts.n; k++)
        p->ranks[p->context->schedule->stages[k].rank].n++;
    for (uint32_t k = 0; k < p->parts.n; k++)
        MS_TRY(weigh_chain(p, k));
    return MS_OK;
}

/* A rank on which all may be saved has its plan. */
static bool open_budgets(planner *p)
{
    uint64_t budget = p->choice->budget_bytes;
    bool all = true;
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        ranked *own = &p->ranks[r];
        if (p->costs[r].peak_bytes <= budget) {
            own->best_ns = p->costs[r].work_ns;
            continue;
        }
        all = false;
        own->at.high = 2 * own->all_bytes; /* rounded sizes may double */
        own->left_bytes = budget;
        if (budget > own->besides_bytes)
            own->left_bytes = budget - own->besides_bytes;
        own->close_bytes = own->left_bytes / MS_OPTIMUM_LOW;
    }
    return all;
}

/* The optimum is a claim about one chain in one budget. */
static ms_err find_optimum(planner *p, ms_program *program)
{
    MS_TRY(find_besides(p));
    if (open_budgets(p)) {
        if (p->n_ranks == 1)
            program->foreseen =
                (ms_foreseen){p->costs[0].peak_bytes, p->costs[0].work_ns,
                              MS_BEST_PERSISTENT, 0};
        return MS_OK;
    }
    MS_TRY(try_budgets(p));
    MS_TRY(try_least(p));
    MS_TRY(check_best(p));
    MS_TRY(write_calls(p, p->best, p->context->arena, program));
    if (p->n_ranks == 1)
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
    ms_arena_free(&p.calls);
    ms_arena_free(&p.scratch);
    return err;
}
