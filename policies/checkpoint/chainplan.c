/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chainplan.h"
#include "policies/checkpoint/chaincalls.h"
#include "policies/checkpoint/dagplan.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct planner {
    const ms_policy_context *context;
    const ms_chainplan_choice *choice;
    const ms_program *program; /* as it was given */
    ms_fault *fault;
    ms_stages stages;
    ms_arena scratch;     /* of one measurement */
    ms_program best;      /* the fastest that keeps to the budget */
    uint64_t best_ns;     /* UINT64_MAX: there is none yet */
    uint64_t least_bytes; /* of all that were measured */
    uint64_t
        besides_bytes;   /* what the step has at its peak besides the chain */
    uint64_t besides_ns; /* and what it takes */
    uint64_t all_bytes;  /* of the chain, where all is saved */
    uint64_t peak_bytes, step_ns; /* of the last one tried */
    bool foreseen;          /* its peak is the chain's, and what is besides */
    ms_optimum_class class; /* what is claimed of it */
    uint64_t unit_bytes;    /* to which sizes were rounded up; 0: none */
} planner;

static ms_err write_calls(const planner *p, const ms_chain_plan *plan,
                          ms_program *program)
{
    const ms_chaincalls how = {.stages = &p->stages,
                               .plan = plan,
                               .early_stop = p->choice->early_stop};
    *program = *p->program;
    return ms_chaincalls_write(p->context->graph, &how, p->context->arena,
                               program, p->fault);
}

static ms_err measure(planner *p, const ms_program *program)
{
    ms_arena_reset(&p->scratch);
    return ms_profile_measure_in(p->context, program, &p->scratch,
                                 &p->peak_bytes, &p->step_ns, p->fault);
}

/* ---- the optimum --------------------------------------------------------- */

/* What the step has at its peak besides the chain, where all is saved. */
static ms_err find_besides(planner *p)
{
    ms_chain_plan all = {0};
    const ms_chain *chain = &p->stages.chain;
    ms_arena *arena = p->context->arena;
    uint64_t time_ns;
    for (uint32_t l = 1; l <= chain->n; l++)
        MS_TRY(ms_chain_add(&all, MS_CHAIN_SAVE, l, arena, p->fault));
    for (uint32_t l = chain->n; l > 0; l--)
        MS_TRY(ms_chain_add(&all, MS_CHAIN_BACKWARD, l, arena, p->fault));
    MS_TRY(measure(p, p->program));
    MS_TRY(
        ms_chain_cost(chain, &all, arena, &time_ns, &p->all_bytes, p->fault));
    if (p->peak_bytes > p->all_bytes)
        p->besides_bytes = p->peak_bytes - p->all_bytes;
    if (p->step_ns > time_ns)
        p->besides_ns = p->step_ns - time_ns;
    return MS_OK;
}

/* Writes and measures the plan; it may be the best so far. */
static ms_err try_plan(planner *p, const ms_chain_plan *plan)
{
    ms_program program;
    uint64_t time_ns, chain_bytes;
    MS_TRY(write_calls(p, plan, &program));
    MS_TRY(measure(p, &program));
    MS_TRY(ms_chain_cost(&p->stages.chain, plan, p->context->arena, &time_ns,
                         &chain_bytes, p->fault));
    p->foreseen = p->peak_bytes == chain_bytes + p->besides_bytes;
    if (p->peak_bytes < p->least_bytes)
        p->least_bytes = p->peak_bytes;
    if (p->peak_bytes > p->choice->budget_bytes || p->step_ns >= p->best_ns)
        return MS_OK;
    p->best = program;
    p->best.foreseen =
        (ms_foreseen){chain_bytes + p->besides_bytes, time_ns + p->besides_ns,
                      p->class, p->unit_bytes};
    p->best_ns = p->step_ns;
    return MS_OK;
}

/* The plan for so many bytes of the chain. */
static ms_err try_budget(planner *p, uint64_t chain_bytes)
{
    ms_optimum optimum;
    MS_TRY(ms_optimum_find(&p->stages.chain, chain_bytes, p->choice->slots,
                           p->context->arena, &optimum, p->fault));
    p->class = MS_BEST_PERSISTENT;
    p->unit_bytes = optimum.exact ? 0 : optimum.unit_bytes;
    return try_plan(p, &optimum.plan);
}

/* Of a lowered model the least of the chain need not be that of the step: what
 * is besides the chain differs from plan to plan.  Few inputs of stages, or
 * many, are tried, too. */
#define MOST_CHECKPOINTS 16u
static ms_err try_binomial(planner *p)
{
    const ms_chain *chain = &p->stages.chain;
    for (uint32_t slots = 1; slots < chain->n && slots <= MOST_CHECKPOINTS;
         slots++) {
        ms_chain_plan plan;
        MS_TRY(ms_binomial_plan(chain->n, slots, p->context->arena, &plan,
                                p->fault));
        MS_TRY(try_plan(p, &plan));
    }
    return MS_OK;
}

/* Sizes that are rounded up to units may hide the last plans that there are. */
static ms_err try_least(planner *p)
{
    ms_chain_plan plan;
    uint64_t bytes;
    char budget[MS_SIZE_COUNT], hint[128];
    MS_TRY(ms_leastmemory_find(&p->stages.chain, p->context->arena, &bytes,
                               &plan, p->fault));
    p->class = MS_BEST_TRIED;
    p->unit_bytes = 0;
    MS_TRY(try_plan(p, &plan));
    bool is_exact = p->foreseen && p->besides_bytes == 0;
    if (!is_exact)
        MS_TRY(try_binomial(p));
    if (p->best_ns != UINT64_MAX)
        return MS_OK;
    ms_size_count(p->choice->budget_bytes, budget);
    snprintf(hint, sizeof hint, "the least %sis budget=%" PRIu64,
             is_exact ? "" : "of the plans that were tried ", p->least_bytes);
    return ms_fail(p->fault, MS_EINFEASIBLE, "checkpoint:optimal", hint,
                   "no plan keeps the step to %s bytes", budget);
}

/* How often the chain's budget is moved, by what the step's peak was beside the
 * given one, or half the way between one that was enough and one that was not.
 */
#define MOST_TRIES 8

typedef struct bracket {
    uint64_t low, high;  /* the most that kept to the budget, the least that did
                            not */
    uint64_t peak_bytes; /* of the plan before */
} bracket;

/* The next budget of the chain to try behind this one. */
static uint64_t next_budget(const planner *p, bracket *b, uint64_t chain_bytes)
{
    uint64_t budget = p->choice->budget_bytes;
    if (p->peak_bytes <= budget)
        b->low = chain_bytes;
    else
        b->high = chain_bytes;
    bool same = b->peak_bytes == p->peak_bytes;
    b->peak_bytes = p->peak_bytes;
    chain_bytes += budget - p->peak_bytes; /* it may be less */
    return !same && chain_bytes > b->low && chain_bytes < b->high
               ? chain_bytes
               : b->low + (b->high - b->low) / 2;
}

/* Tries a budget of the chain, and names the next one; 0: there is no better
 * plan. */
static ms_err try_next(planner *p, bracket *b, bool first,
                       uint64_t *chain_bytes)
{
    ms_fault fault = {.caret = -1}, *told = p->fault;
    p->fault = &fault;
    ms_err err = try_budget(p, *chain_bytes);
    p->fault = told;
    if (err == MS_EINFEASIBLE) {
        b->low = *chain_bytes;
        *chain_bytes += (b->high - b->low) / 2;
        return MS_OK;
    }
    if (err != MS_OK)
        *told = fault;
    else if (first && p->foreseen && p->unit_bytes == 0 &&
             p->peak_bytes <= p->choice->budget_bytes)
        *chain_bytes = 0;
    else
        *chain_bytes = next_budget(p, b, *chain_bytes);
    return err;
}

/* What is kept over stages is in no plan's hand: said where it is much beside
 * the largest output of a stage, as in U-Net, whose skips leave no cut point
 * between. */
static ms_err tell_skips(const planner *p, ms_program *program)
{
    const ms_graph *graph = p->context->graph;
    const ms_chain *chain = &p->stages.chain;
    uint64_t bytes = 0, largest = 0;
    uint32_t n = 0;
    char size[MS_SIZE_COUNT];
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (p->stages.is_kept[s] && p->stages.first_reader[s] > 0) {
            bytes += graph->storage_bytes[s];
            n++;
        }
    for (uint32_t l = 1; l < chain->n; l++)
        if (chain->stages[l].output_bytes > largest)
            largest = chain->stages[l].output_bytes;
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

/* Does the last plan leave next to nothing of the budget? */
static bool is_filled(const planner *p, uint64_t close_bytes)
{
    uint64_t budget = p->choice->budget_bytes;
    return p->peak_bytes <= budget && budget - p->peak_bytes <= close_bytes;
}

static ms_err find_optimum(planner *p, ms_program *program)
{
    uint64_t budget = p->choice->budget_bytes, left = budget;
    bracket b = {.low = 0};
    MS_TRY(find_besides(p));
    b.high = 2 * p->all_bytes;     /* sizes that are rounded up may double */
    if (p->peak_bytes <= budget) { /* all may be saved */
        program->foreseen =
            (ms_foreseen){p->peak_bytes, p->step_ns, MS_BEST_PERSISTENT, 0};
        return MS_OK;
    }
    if (budget > p->besides_bytes)
        left = budget - p->besides_bytes;
    uint64_t close = left / MS_OPTIMUM_LOW;
    for (int i = 0; i < MOST_TRIES && left > 0 && b.high - b.low > close &&
                    !is_filled(p, close);
         i++)
        MS_TRY(try_next(p, &b, i == 0, &left));
    if (p->best_ns == UINT64_MAX)
        MS_TRY(try_least(p));
    *program = p->best;
    return MS_OK;
}

static ms_err find_binomial(planner *p, ms_program *program)
{
    ms_chain_plan plan;
    MS_TRY(ms_binomial_plan(p->stages.chain.n, p->choice->checkpoints,
                            p->context->arena, &plan, p->fault));
    return write_calls(p, &plan, program);
}

ms_err ms_chainplan_place(const ms_policy_context *context,
                          const ms_chainplan_choice *choice,
                          ms_program *program, ms_fault *fault)
{
    ms_program given = *program;
    planner p = {.context = context,
                 .choice = choice,
                 .program = &given,
                 .fault = fault,
                 .best_ns = UINT64_MAX,
                 .least_bytes = UINT64_MAX};
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
    p.scratch.limit_bytes = context->arena->limit_bytes;
    ms_err err =
        ms_stages_find(context->graph, context->arena, &p.stages, fault);
    if (err == MS_OK)
        err = choice->checkpoints > 0 ? find_binomial(&p, program)
                                      : find_optimum(&p, program);
    if (err == MS_OK)
        err = tell_skips(&p, program);
    ms_arena_free(&p.scratch);
    return err;
}
