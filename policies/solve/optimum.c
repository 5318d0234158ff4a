/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The dynamic program of the paper (theorem 1): of stages s to t in m units,
 * beside the input of s, with the gradient of t's output inside,
 *
 *     Opt(s, s, m) = forward + backward of s                  if m >= saved(s,
 * s) Opt(s, t, m) = min( forward of s..k-1 + Opt(k, t, m - a(k-1)) + Opt(s,
 * k-1, m) for s < k <= t     if m >= none(s, t) forward + backward of s +
 * Opt(s+1, t, m - A(s))     if m >= saved(s, t)
 *     )
 *
 * the first with the input of k as a checkpoint, the second with A(s) kept.
 * What the backwards of stages leave is there when those before them run:
 * Opt(s, k-1, m) has as much less room.
 *
 * The table has what a plan takes beyond running each stage once, W = Opt minus
 * the sum of all times.  Two bounds leave out sums that cannot change it:
 *
 *     W(s, t, m) is nothing from the memory on in which all of s to t is saved,
 *     and infinite below the least in which there is a plan: a row ends there;
 *     the checkpoint at k costs the forwards of s..k-1 again at least, which
 *     grow with k, and W falls with m: where it is as little already, that k
 *     and all behind it are done. */
#include "policies/solve/chainunits.h"
#include "sim/base/size.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* A row of the table, of units in [low, high): W is infinite below and nothing
 * from high on, or as far as there is room. */
typedef struct extent {
    uint64_t at; /* its first W in the table */
    uint32_t low, high;
} extent;

typedef struct solver {
    const ms_chain *chain;
    ms_arena *arena, scratch;
    ms_fault *fault;
    uint32_t n;
    ms_chainunits *stage;   /* [0 .. n] */
    double *forward_ns;     /* of stages 1 to l */
    uint64_t room;          /* units beside the chain's input */
    uint32_t *twin, *alike; /* of a stage: a later one from which on the most
                               stages are the same, and how many; 0: none */
    uint32_t n_rows;
    uint64_t n_sums;            /* per unit: choices of all rows */
    extent *by_first, *by_last; /* per pair (s, t), and (t, s): so that
                                           both of a choice lie next to those
                                           of the next choice */
    double *table;
} solver;

/* ---- pieces -------------------------------------------------------------- */

static size_t pair(const solver *p, uint32_t s, uint32_t t)
{
    return (size_t)s * (p->n + 1) + t;
}

static const extent *extent_of(const solver *p, uint32_t s, uint32_t t)
{
    return &p->by_first[pair(p, s, t)];
}

/* W(s, t, m). */
static double more_ns(const solver *p, uint32_t s, uint32_t t, uint64_t m)
{
    const extent *row = extent_of(p, s, t);
    if (m < row->low)
        return INFINITY;
    return m < row->high ? p->table[row->at + m - row->low] : 0;
}

static double span_ns(const solver *p, uint32_t s, uint32_t end)
{
    return p->forward_ns[end - 1] - p->forward_ns[s - 1];
}

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

/* ---- stages that are the same -------------------------------------------- */

static bool is_like(const ms_chain_stage *a, const ms_chain_stage *b)
{
    return a->forward_ns == b->forward_ns && a->backward_ns == b->backward_ns &&
           a->output_bytes == b->output_bytes &&
           a->saved_bytes == b->saved_bytes &&
           a->forward_extra_bytes == b->forward_extra_bytes &&
           a->backward_extra_bytes == b->backward_extra_bytes &&
           a->left_bytes == b->left_bytes;
}

/* Of each stage the later one from which on as many stages as possible are the
 * same as from it on. */
static ms_err find_twins(solver *p)
{
    uint32_t n = p->n;
    p->twin = ms_arena_take(&p->scratch, n + 2u, sizeof *p->twin);
    p->alike = ms_arena_take(&p->scratch, n + 2u, sizeof *p->alike);
    /* of the stage at hand and the one before: by the other stage */
    uint32_t *same = ms_arena_take(&p->scratch, n + 2u, sizeof *same);
    if (p->twin == NULL || p->alike == NULL || same == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t s = n; s > 0; s--)
        for (uint32_t k = s + 1; k <= n; k++) {
            bool like = is_like(&p->chain->stages[s], &p->chain->stages[k]);
            same[k] = like ? same[k + 1] + 1 : 0;
            if (same[k] > p->alike[s]) {
                p->alike[s] = same[k];
                p->twin[s] = k;
            }
        }
    return MS_OK;
}

/* Pairs (s, t) between which the stages are the same share a row. */
static void count_rows(solver *p)
{
    for (uint32_t s = p->n; s > 0; s--)
        for (uint32_t t = s; t <= p->n; t++) {
            bool known = t - s < p->alike[s];
            p->n_rows += known ? 0 : 1;
            p->n_sums += known ? 0 : t - s + 1;
        }
}

/* ---- the ends of rows ---------------------------------------------------- */

/* The least units that a choice takes, the checkpoint at the input of k; pass:
 * of the forwards that save nothing, with t's output. */
static uint64_t least_with(const solver *p, uint32_t s, uint32_t t, uint32_t k,
                           uint64_t pass)
{
    uint64_t behind = p->stage[k - 1].output + p->by_last[pair(p, t, k)].low;
    uint64_t before =
        ms_chainunits_left(p->stage, k, t) + p->by_first[pair(p, s, k - 1)].low;
    return ms_chainunits_more(pass, ms_chainunits_more(behind, before));
}

static void end_row(const solver *p, uint32_t s, uint32_t t, uint64_t pass)
{
    extent *row = &p->by_first[pair(p, s, t)];
    uint64_t saved = ms_chainunits_saved(p->stage, s, t), none = p->room + 1;
    uint64_t low = saved, high = saved;
    if (s < t) {
        const extent *rest = extent_of(p, s + 1, t);
        low = ms_chainunits_more(saved, p->stage[s].saved + rest->low);
        high = ms_chainunits_more(saved, p->stage[s].saved + rest->high);
    }
    for (uint32_t k = s + 1; k <= t; k++) {
        uint64_t least = least_with(p, s, t, k, pass);
        low = least < low ? least : low;
    }
    row->low = (uint32_t)(low < none ? low : none);
    row->high = (uint32_t)(high < none ? high : none);
}

/* ---- the table ----------------------------------------------------------- */

/* best[m] of the row at hand, where it is less than `again_ns`: m below *end.
 */
static void find_end(const double *best, uint64_t low, double again_ns,
                     uint64_t *end)
{
    while (*end > low && best[*end - 1 - low] <= again_ns)
        --*end;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* best = the lesser of it and base + a + b, where both rows have numbers, or
 * base + a, block by block: as all of them fall, a block whose last sum is no
 * less than its first best value has nothing to give.  Blocks are of one length
 * so that the compiler makes vectors of them. */
#define BLOCK 16u

static inline void take_sums(double *restrict best, const double *restrict a,
                             const double *restrict b, double base, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double ns = base + a[i] + b[i];
        best[i] = ns < best[i] ? ns : best[i];
    }
}

static inline void take_row(double *restrict best, const double *restrict a,
                            double base, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double ns = base + a[i];
        best[i] = ns < best[i] ? ns : best[i];
    }
}

static void take_both(double *best, const double *a, const double *b,
                      double base, uint64_t n)
{
    uint64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        if (base + a[i + BLOCK - 1] + b[i + BLOCK - 1] < best[i])
            take_sums(best + i, a + i, b + i, base, BLOCK);
    if (i < n && base + a[n - 1] + b[n - 1] < best[i])
        take_sums(best + i, a + i, b + i, base, n - i);
}

static void take_one(double *best, const double *a, double base, uint64_t n)
{
    uint64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        if (base + a[i + BLOCK - 1] < best[i])
            take_row(best + i, a + i, base, BLOCK);
    if (i < n && base + a[n - 1] < best[i])
        take_row(best + i, a + i, base, n - i);
}

/* A row as a choice reads it: so many units less room. */
typedef struct shifted {
    const double *ns;  /* of m = 0; only [from, to) may be read */
    uint64_t from, to; /* numbers; nothing from `to` on */
} shifted;

static shifted shift(const solver *p, const extent *row, uint64_t by)
{
    return (shifted){p->table + row->at - row->low - by, row->low + by,
                     row->high + by};
}

/* Values [from, end) of a choice that takes base, and what the two rows say. */
static void take(const shifted *a, const shifted *b, double base, uint64_t from,
                 uint64_t end, double *best)
{
    uint64_t both = least_of(end, least_of(a->to, b->to));
    const shifted *longer = a->to > b->to ? a : b;
    uint64_t one = least_of(end, longer->to);
    if (from < both)
        take_both(best + from, a->ns + from, b->ns + from, base, both - from);
    from = ms_chainunits_more(from, both);
    if (from < one)
        take_one(best + from, longer->ns + from, base, one - from);
    for (from = ms_chainunits_more(from, one); from < end && best[from] > base;
         from++)
        best[from] = base;
}

static void fill_row(const solver *p, uint32_t s, uint32_t t, uint64_t pass)
{
    const extent *row = extent_of(p, s, t);
    const extent *after = &p->by_last[pair(p, t, 0)];
    const extent *first = &p->by_first[pair(p, s, 0)];
    const shifted nothing = {NULL, 0, 0};
    uint64_t low = row->low, end = row->high;
    double *best = p->table + row->at;
    for (uint64_t m = low; m < end; m++)
        best[m - low] = INFINITY;
    if (s == t || low >= end)
        return;
    shifted behind = shift(p, &after[s + 1], p->stage[s].saved);
    uint64_t from =
        ms_chainunits_more(ms_chainunits_saved(p->stage, s, t), behind.from);
    take(&behind, &nothing, 0, from, end, best - low);
    for (uint32_t k = s + 1; k <= t; k++) {
        double again_ns = span_ns(p, s, k);
        find_end(best, low, again_ns, &end);
        if (end == low)
            return;
        behind = shift(p, &after[k], p->stage[k - 1].output);
        shifted before =
            shift(p, &first[k - 1], ms_chainunits_left(p->stage, k, t));
        from = ms_chainunits_more(pass,
                                  ms_chainunits_more(behind.from, before.from));
        if (from < end)
            take(&behind, &before, again_ns, from, end, best - low);
    }
}

/* Rows that are those of other stages are these. */
static const extent *twin_of(const solver *p, uint32_t s, uint32_t t)
{
    uint32_t by = p->twin[s] - s;
    return t - s < p->alike[s] ? extent_of(p, s + by, t + by) : NULL;
}

/* Where each row is, and room for it; *n: of all. */
static void lay_out(const solver *p, uint64_t *n)
{
    *n = 0;
    for (uint32_t s = p->n; s > 0; s--) {
        uint64_t pass = 0;
        for (uint32_t t = s; t <= p->n; t++) {
            extent *row = &p->by_first[pair(p, s, t)];
            const extent *twin = twin_of(p, s, t);
            if (twin != NULL) {
                *row = *twin;
            } else {
                end_row(p, s, t, p->stage[t].output + pass);
                row->at = *n;
                *n += row->high > row->low ? row->high - row->low : 0;
            }
            p->by_last[pair(p, t, s)] = *row;
            pass = ms_chainunits_pass(p->stage, s, t, pass);
        }
    }
}

static ms_err fill(solver *p)
{
    uint64_t n;
    size_t pairs = (size_t)(p->n + 1u) * (p->n + 1u);
    p->by_first = ms_arena_take_raw(&p->scratch, pairs, sizeof *p->by_first);
    p->by_last = ms_arena_take_raw(&p->scratch, pairs, sizeof *p->by_last);
    if (p->by_first == NULL || p->by_last == NULL)
        return ms_fail_nomem(p->fault);
    lay_out(p, &n);
    p->table = ms_arena_take_raw(&p->scratch, n + 1, sizeof *p->table);
    if (p->table == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t s = p->n; s > 0; s--) {
        uint64_t pass = 0;
        for (uint32_t t = s; t <= p->n; t++) {
            if (twin_of(p, s, t) == NULL)
                fill_row(p, s, t, p->stage[t].output + pass);
            pass = ms_chainunits_pass(p->stage, s, t, pass);
        }
    }
    return MS_OK;
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
           more_ns(p, at->s, at->t, at->m) >=
               span_ns(p, at->s, k) + more_ns(p, k, at->t, at->m - bytes) +
                   more_ns(p, at->s, k - 1, at->m - left);
}

/* Which choice gave the value: k, or s where A(s) is kept. */
static uint32_t find_choice(const solver *p, const part *at)
{
    uint32_t s = at->s, t = at->t;
    uint64_t m = at->m, pass = 0, saved = p->stage[s].saved;
    double value = more_ns(p, s, t, m);
    if (m >= ms_chainunits_more(ms_chainunits_saved(p->stage, s, t), saved) &&
        value >= more_ns(p, s + 1, t, m - saved))
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

static ms_err open(solver *p)
{
    p->stage = ms_arena_take(&p->scratch, p->n + 1u, sizeof *p->stage);
    p->forward_ns =
        ms_arena_take(&p->scratch, p->n + 1u, sizeof *p->forward_ns);
    if (p->stage == NULL || p->forward_ns == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t l = 1; l <= p->n; l++)
        p->forward_ns[l] =
            p->forward_ns[l - 1] + (double)p->chain->stages[l].forward_ns;
    MS_TRY(find_twins(p));
    count_rows(p);
    return MS_OK;
}

/* Into how many units the budget is cut. */
static uint64_t count_slots(const solver *p, uint32_t slots, uint64_t most)
{
    uint64_t n = slots;
    if (n == 0)
        n = MS_OPTIMUM_STEPS / p->n_sums;
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
    MS_TRY(open(p));
    uint64_t most =
        MS_OPTIMUM_TABLE / sizeof *p->table / ms_chainunits_more(p->n_rows, 1) -
        1;
    optimum->exact =
        budget_bytes / unit <= MS_OPTIMUM_EXACT && budget_bytes / unit <= most;
    if (!optimum->exact)
        unit = count_units(budget_bytes, count_slots(p, slots, most));
    optimum->unit_bytes = unit;
    if (!set_units(p, budget_bytes, unit))
        return refuse(p, budget_bytes);
    MS_TRY(fill(p));
    double ns = more_ns(p, 1, p->n, p->room);
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
