/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/chaintable.h"
#include "sim/base/size.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct solver {
    const ms_chain *chain;
    ms_arena *arena, scratch;
    ms_fault *fault;
    uint32_t n;
    ms_chainunits *stage; /* [0 .. n] */
    uint64_t room;        /* units beside the chain's input */
    ms_chaintable table;
} solver;

/* ---- units --------------------------------------------------------------- */

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t common_divisor(const ms_chain *chain)
{
    uint64_t unit = chain->input_bytes;
    for (uint32_t l = 1; l <= chain->n; l++) {
        const ms_chain_stage *stage = &chain->stages[l];
        unit = divisor(unit, stage->output_bytes);
        unit = divisor(unit, stage->saved_bytes);
        unit = divisor(unit, stage->forward_extra_bytes);
        unit = divisor(unit, stage->backward_extra_bytes);
        unit = divisor(unit, stage->left_bytes);
    }
    return unit > 0 ? unit : 1;
}

static uint64_t count_units(uint64_t bytes, uint64_t unit)
{
    return bytes / unit + (bytes % unit > 0);
}

/* False: the chain's input alone is more than the budget. */
static bool set_units(solver *p, uint64_t budget_bytes, uint64_t unit)
{
    uint64_t input = count_units(p->chain->input_bytes, unit);
    p->stage[0] = (ms_chainunits){.output = input};
    for (uint32_t l = 1; l <= p->n; l++) {
        const ms_chain_stage *stage = &p->chain->stages[l];
        p->stage[l] = (ms_chainunits){
            .output = count_units(stage->output_bytes, unit),
            .saved = count_units(stage->saved_bytes, unit),
            .forward_extra = count_units(stage->forward_extra_bytes, unit),
            .backward_extra = count_units(stage->backward_extra_bytes, unit),
            .left =
                p->stage[l - 1].left + count_units(stage->left_bytes, unit)};
    }
    p->room = budget_bytes / unit - (budget_bytes / unit < input ? 0 : input);
    return budget_bytes / unit >= input;
}

/* ---- the plan ------------------------------------------------------------ */

typedef struct part {
    uint32_t s, t;
    uint64_t m;
    bool back; /* the backward of s alone is left */
} part;

/* Does the checkpoint at the input of k give the value? */
static bool is_choice(const solver *p, const part *at, uint32_t k)
{
    uint64_t bytes = p->stage[k - 1].output;
    uint64_t left = ms_chainunits_left(p->stage, k, at->t);
    return at->m >= ms_chainunits_more(bytes, left) &&
           ms_chaintable_more_ns(&p->table, at->s, at->t, at->m) >=
               ms_chaintable_span_ns(&p->table, at->s, k) +
                   ms_chaintable_more_ns(&p->table, k, at->t, at->m - bytes) +
                   ms_chaintable_more_ns(&p->table, at->s, k - 1, at->m - left);
}

/* Which choice gave the value: k, or s where A(s) is kept. */
static uint32_t find_choice(const solver *p, const part *at)
{
    uint32_t s = at->s, t = at->t;
    uint64_t m = at->m, pass = 0, saved = p->stage[s].saved;
    double value = ms_chaintable_more_ns(&p->table, s, t, m);
    if (m >= ms_chainunits_more(ms_chainunits_saved(p->stage, s, t), saved) &&
        value >= ms_chaintable_more_ns(&p->table, s + 1, t, m - saved))
        return s;
    for (uint32_t l = s; l < t; l++)
        pass = ms_chainunits_pass(p->stage, s, l, pass);
    assert(m >= p->stage[t].output + pass);
    uint32_t k = s;
    for (bool found = false; !found; found = is_choice(p, at, k))
        k++;
    assert(k <= t);
    return k;
}

static ms_err add(const solver *p, ms_chain_plan *plan, ms_chain_verb verb,
                  uint32_t stage)
{
    return ms_chain_add(plan, verb, stage, p->arena, p->fault);
}

/* Acts of one part, and the parts that are left of it. */
static ms_err write_part(const solver *p, const part *at, part *left,
                         uint32_t *n, ms_chain_plan *plan)
{
    uint32_t s = at->s;
    if (at->back)
        return add(p, plan, MS_CHAIN_BACKWARD, s);
    uint32_t k = s == at->t ? s : find_choice(p, at);
    if (k == s) {
        MS_TRY(add(p, plan, MS_CHAIN_SAVE, s));
        left[(*n)++] = (part){.s = s, .back = true};
        if (s < at->t)
            left[(*n)++] =
                (part){s + 1, at->t, at->m - p->stage[s].saved, false};
        return MS_OK;
    }
    MS_TRY(ms_chain_advance(plan, s, k, p->arena, p->fault));
    left[(*n)++] =
        (part){s, k - 1, at->m - ms_chainunits_left(p->stage, k, at->t), false};
    left[(*n)++] = (part){k, at->t, at->m - p->stage[k - 1].output, false};
    return MS_OK;
}

static ms_err write_plan(const solver *p, ms_chain_plan *plan)
{
    uint32_t n = 0;
    part *left = ms_arena_take_raw(p->arena, 2 * (p->n + 1u), sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(p->fault);
    left[n++] = (part){1, p->n, p->room, false};
    while (n > 0) {
        part at = left[--n];
        MS_TRY(write_part(p, &at, left, &n, plan));
    }
    return MS_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err refuse(solver *p, uint64_t budget_bytes)
{
    char budget[MS_SIZE_COUNT], least[MS_SIZE_COUNT], hint[64];
    uint64_t bytes;
    MS_TRY(ms_leastmemory_find(p->chain, &p->scratch, &bytes, NULL, p->fault));
    ms_size_count(budget_bytes, budget);
    ms_size_count(bytes, least);
    if (bytes <= budget_bytes)
        snprintf(hint, sizeof hint, "give it more slots than the budget has");
    else
        snprintf(hint, sizeof hint, "the least budget is %" PRIu64, bytes);
    return ms_fail(p->fault, MS_EINFEASIBLE, "budget", hint,
                   "no persistent plan runs the chain in %s bytes", budget);
}

/* Into how many units the budget is cut. */
static uint64_t count_slots(const solver *p, uint32_t slots, uint64_t most)
{
    uint64_t n = slots;
    if (n == 0)
        n = MS_OPTIMUM_STEPS / p->table.n_sums;
    if (slots == 0 && n < MS_OPTIMUM_LOW)
        n = MS_OPTIMUM_LOW;
    if (slots == 0 && n > MS_OPTIMUM_HIGH)
        n = MS_OPTIMUM_HIGH;
    return n < most ? n : most;
}

static ms_err solve(solver *p, uint64_t budget_bytes, uint32_t slots,
                    ms_optimum *optimum)
{
    uint64_t unit = common_divisor(p->chain);
    p->stage = ms_arena_take(&p->scratch, p->n + 1u, sizeof *p->stage);
    if (p->stage == NULL)
        return ms_fail_nomem(p->fault);
    MS_TRY(ms_chaintable_open(p->chain, &p->scratch, &p->table, p->fault));
    uint64_t most = MS_OPTIMUM_TABLE / sizeof *p->table.table /
                        ms_chainunits_more(p->table.n_rows, 1) -
                    1;
    optimum->exact =
        budget_bytes / unit <= MS_OPTIMUM_EXACT && budget_bytes / unit <= most;
    if (!optimum->exact)
        unit = count_units(budget_bytes, count_slots(p, slots, most));
    optimum->unit_bytes = unit;
    if (!set_units(p, budget_bytes, unit))
        return refuse(p, budget_bytes);
    MS_TRY(ms_chaintable_fill(&p->table, p->stage, p->room, &p->scratch,
                              p->fault));
    double ns = ms_chaintable_more_ns(&p->table, 1, p->n, p->room);
    if (ns == INFINITY)
        return refuse(p, budget_bytes);
    optimum->time_ns = (uint64_t)ns;
    for (uint32_t l = 1; l <= p->n; l++)
        optimum->time_ns +=
            p->chain->stages[l].forward_ns + p->chain->stages[l].backward_ns;
    return write_plan(p, &optimum->plan);
}

ms_err ms_optimum_find(const ms_chain *chain, uint64_t budget_bytes,
                       uint32_t slots, ms_arena *arena, ms_optimum *optimum,
                       ms_fault *fault)
{
    solver p = {.chain = chain, .arena = arena, .fault = fault, .n = chain->n};
    assert(chain->n > 0);
    *optimum = (ms_optimum){0};
    p.scratch.limit_bytes = arena->limit_bytes;
    ms_err err = solve(&p, budget_bytes, slots, optimum);
    ms_arena_free(&p.scratch);
    return err;
}
