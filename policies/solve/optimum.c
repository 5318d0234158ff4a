/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/chaintable.h"
#include "sim/base/size.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct ms_optimum_table {
    uint64_t unit_bytes, most_bytes;
    bool exact;
    ms_chainunits *stage; /* [0 .. n] */
    ms_chaintable table;  /* not filled: the chain's input is more than
                             most_bytes */
};

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

uint64_t ms_optimum_divisor(const ms_chain *chain)
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

void ms_optimum_units(const ms_chain *chain, uint64_t unit, ms_chainunits *to)
{
    to[0] = (ms_chainunits){.output = count_units(chain->input_bytes, unit)};
    for (uint32_t l = 1; l <= chain->n; l++) {
        const ms_chain_stage *stage = &chain->stages[l];
        to[l] = (ms_chainunits){
            .output = count_units(stage->output_bytes, unit),
            .saved = count_units(stage->saved_bytes, unit),
            .forward_extra = count_units(stage->forward_extra_bytes, unit),
            .backward_extra = count_units(stage->backward_extra_bytes, unit),
            .left = to[l - 1].left + count_units(stage->left_bytes, unit)};
    }
}

/* ---- the plan ------------------------------------------------------------ */

typedef struct part {
    uint32_t s, t;
    uint64_t m;
    bool back; /* the backward of s alone is left */
} part;

typedef struct writer {
    const ms_chaintable *table;
    const ms_chainunits *stage;
    ms_arena *arena;
    ms_chain_plan *plan;
    ms_fault *fault;
} writer;

/* Does the checkpoint at the input of k give the value? */
static bool is_choice(const writer *w, const part *at, uint32_t k)
{
    uint64_t bytes = w->stage[k - 1].output;
    uint64_t left = ms_chainunits_left(w->stage, k, at->t);
    return at->m >= ms_chainunits_more(bytes, left) &&
           ms_chaintable_more_ns(w->table, at->s, at->t, at->m) >=
               ms_chaintable_again_ns(w->table, at->s, k) +
                   ms_chaintable_more_ns(w->table, k, at->t, at->m - bytes) +
                   ms_chaintable_more_ns(w->table, at->s, k - 1, at->m - left);
}

/* Which choice gave the value: k, or s where A(s) is kept. */
static uint32_t find_choice(const writer *w, const part *at)
{
    uint32_t s = at->s, t = at->t;
    uint64_t m = at->m, pass = 0, saved = w->stage[s].saved;
    double value = ms_chaintable_more_ns(w->table, s, t, m);
    if (m >= ms_chainunits_more(ms_chainunits_saved(w->stage, s, t), saved) &&
        value >= ms_chaintable_more_ns(w->table, s + 1, t, m - saved))
        return s;
    for (uint32_t l = s; l < t; l++)
        pass = ms_chainunits_pass(w->stage, s, l, pass);
    assert(m >= w->stage[t].output + pass);
    uint32_t k = s;
    for (bool found = false; !found; found = is_choice(w, at, k))
        k++;
    assert(k <= t);
    return k;
}

static ms_err add(const writer *w, ms_chain_verb verb, uint32_t stage)
{
    return ms_chain_add(w->plan, verb, stage, w->arena, w->fault);
}

/* Acts of one part, and the parts that are left of it. */
static ms_err write_part(const writer *w, const part *at, part *left,
                         uint32_t *n)
{
    uint32_t s = at->s;
    if (at->back)
        return add(w, MS_CHAIN_BACKWARD, s);
    uint32_t k = s == at->t ? s : find_choice(w, at);
    if (k == s) {
        MS_TRY(add(w, MS_CHAIN_SAVE, s));
        left[(*n)++] = (part){.s = s, .back = true};
        if (s < at->t)
            left[(*n)++] =
                (part){s + 1, at->t, at->m - w->stage[s].saved, false};
        return MS_OK;
    }
    MS_TRY(ms_chain_advance(w->plan, s, k, w->arena, w->fault));
    left[(*n)++] =
        (part){s, k - 1, at->m - ms_chainunits_left(w->stage, k, at->t), false};
    left[(*n)++] = (part){k, at->t, at->m - w->stage[k - 1].output, false};
    return MS_OK;
}

ms_err ms_optimum_write(const ms_chaintable *table, uint32_t s, uint32_t t,
                        uint64_t m, ms_arena *arena, ms_chain_plan *plan,
                        ms_fault *fault)
{
    const writer w = {table, table->stage, arena, plan, fault};
    uint32_t n = 0;
    part *left = ms_arena_take_raw(arena, 2 * (table->n + 1u), sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(fault);
    left[n++] = (part){s, t, m, false};
    while (n > 0) {
        part at = left[--n];
        MS_TRY(write_part(&w, &at, left, &n));
    }
    return MS_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err refuse(const ms_chain *chain, uint64_t budget_bytes,
                     ms_arena *arena, ms_fault *fault)
{
    char budget[MS_SIZE_COUNT], least[MS_SIZE_COUNT], hint[64];
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    uint64_t bytes;
    ms_err err = ms_leastmemory_find(chain, &scratch, &bytes, NULL, fault);
    ms_arena_free(&scratch);
    if (err != MS_OK)
        return err;
    ms_size_count(budget_bytes, budget);
    ms_size_count(bytes, least);
    if (bytes <= budget_bytes)
        snprintf(hint, sizeof hint, "give it more slots than the budget has");
    else
        snprintf(hint, sizeof hint, "the least budget is %" PRIu64, bytes);
    return ms_fail(fault, MS_EINFEASIBLE, "budget", hint,
                   "no persistent plan runs the chain in %s bytes", budget);
}

/* Into how many units the budget is cut. */
static uint64_t count_slots(const ms_chaintable *table, uint32_t slots,
                            uint64_t most)
{
    uint64_t n = slots;
    if (n == 0)
        n = MS_OPTIMUM_STEPS / table->n_sums;
    if (slots == 0 && n < MS_OPTIMUM_LOW)
        n = MS_OPTIMUM_LOW;
    if (slots == 0 && n > MS_OPTIMUM_HIGH)
        n = MS_OPTIMUM_HIGH;
    return n < most ? n : most;
}

uint64_t ms_optimum_unit(const ms_chaintable *table, uint64_t most_bytes,
                         uint32_t slots, bool *exact)
{
    uint64_t unit = ms_optimum_divisor(table->chain);
    uint64_t most = MS_OPTIMUM_TABLE / sizeof *table->table /
                        ms_chainunits_more(table->n_rows, 1) -
                    1;
    *exact = most_bytes / unit <= MS_OPTIMUM_EXACT && most_bytes / unit <= most;
    return *exact ? unit
                  : count_units(most_bytes, count_slots(table, slots, most));
}

ms_err ms_optimum_open(const ms_chain *chain, uint64_t most_bytes,
                       uint32_t slots, ms_arena *arena,
                       ms_optimum_table **table, ms_fault *fault)
{
    ms_optimum_table *p = ms_arena_take(arena, 1, sizeof *p);
    assert(chain->n > 0);
    *table = p;
    if (p == NULL)
        return ms_fail_nomem(fault);
    p->most_bytes = most_bytes;
    p->stage = ms_arena_take(arena, chain->n + 1u, sizeof *p->stage);
    if (p->stage == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_chaintable_open(chain, arena, &p->table, fault));
    p->unit_bytes = ms_optimum_unit(&p->table, most_bytes, slots, &p->exact);
    ms_optimum_units(chain, p->unit_bytes, p->stage);
    uint64_t units = most_bytes / p->unit_bytes;
    if (units < p->stage[0].output)
        return MS_OK;
    return ms_chaintable_fill(&p->table, p->stage, units - p->stage[0].output,
                              arena, fault);
}

bool ms_optimum_is_long(const ms_optimum_table *p)
{
    uint64_t units = p->most_bytes / p->unit_bytes;
    return p->table.n_sums > MS_OPTIMUM_LONG / (units + 1);
}

ms_err ms_optimum_read(const ms_optimum_table *p, uint64_t budget_bytes,
                       ms_arena *arena, ms_optimum *optimum, ms_fault *fault)
{
    const ms_chain *chain = p->table.chain;
    uint64_t units = budget_bytes / p->unit_bytes, input = p->stage[0].output;
    assert(budget_bytes <= p->most_bytes);
    *optimum = (ms_optimum){.unit_bytes = p->unit_bytes, .exact = p->exact};
    double ns = units < input ? INFINITY
                              : ms_chaintable_more_ns(&p->table, 1, chain->n,
                                                      units - input);
    if (ns == INFINITY)
        return refuse(chain, budget_bytes, arena, fault);
    optimum->time_ns = (uint64_t)ns;
    for (uint32_t l = 1; l <= chain->n; l++)
        optimum->time_ns +=
            chain->stages[l].forward_ns + chain->stages[l].backward_ns;
    return ms_optimum_write(&p->table, 1, chain->n, units - input, arena,
                            &optimum->plan, fault);
}

ms_err ms_optimum_find(const ms_chain *chain, uint64_t budget_bytes,
                       uint32_t slots, ms_arena *arena, ms_optimum *optimum,
                       ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_optimum_table *table;
    ms_err err =
        ms_optimum_open(chain, budget_bytes, slots, &scratch, &table, fault);
    *optimum = (ms_optimum){0};
    if (err == MS_OK)
        err = ms_optimum_read(table, budget_bytes, arena, optimum, fault);
    ms_arena_free(&scratch);
    return err;
}
