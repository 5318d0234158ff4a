/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/blocks/blockplan.h"
#include "sim/base/size.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define NEVER (UINT64_MAX / 4) /* three of them can be added */

typedef struct solver {
    const ms_nodedag *dag;
    const ms_dagblocks *blocks;
    const ms_blockmenus *menus;
    ms_arena *arena, scratch;
    ms_fault *fault;
    uint32_t n;
    uint64_t unit, room;
    uint64_t *output, *handed; /* units per block; in its menu's units below */
    uint32_t *twin, *alike;    /* as in optimum.c */
    uint32_t *row;             /* per pair: its row of the table */
    uint32_t n_rows;
    uint64_t *table, *again; /* again: of PASS of s..k-1, by units */
    uint32_t n_made, made_capacity, *made; /* nodes, in their order */
} solver;

static uint64_t units(const solver *p, uint64_t bytes)
{
    return bytes / p->unit + (bytes % p->unit > 0);
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static const ms_blockmenu *menu_of(const solver *p, uint32_t block)
{
    return &p->menus->menus[p->menus->of[block]];
}

static uint64_t *row_of(const solver *p, uint32_t s, uint32_t t)
{
    uint32_t row = p->row[(size_t)s * p->n + t];
    return p->table + (size_t)row * (p->room + 1);
}

/* ---- sizes --------------------------------------------------------------- */

static uint64_t bytes_of(const solver *p, const uint32_t *at,
                         const uint32_t *nodes, uint32_t block)
{
    uint64_t bytes = 0;
    for (uint32_t i = at[block]; i < at[block + 1]; i++)
        bytes += p->dag->bytes[nodes[i]];
    return bytes;
}

static void set_units(solver *p, uint64_t budget_bytes, uint64_t unit)
{
    const ms_dagblocks *k = p->blocks;
    p->unit = unit;
    p->room = budget_bytes / unit;
    for (uint32_t b = 0; b < p->n; b++) {
        uint32_t last = k->forward_at[b + 1];
        p->output[b] =
            last > 0 ? units(p, p->dag->bytes[k->forward[last - 1]]) : 0;
        p->handed[b] = units(p, bytes_of(p, k->handed_at, k->handed, b));
    }
}

static uint64_t common_divisor(const ms_nodedag *dag)
{
    uint64_t a = 0;
    for (uint32_t v = 0; v < dag->n; v++)
        for (uint64_t b = dag->bytes[v]; b > 0;) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
    return a > 0 ? a : 1;
}

/* ---- blocks that are the same -------------------------------------------- */

static ms_err find_rows(solver *p)
{
    uint32_t n = p->n;
    const uint32_t *of = p->menus->of;
    uint32_t *same = ms_arena_take(&p->scratch, n + 2u, sizeof *same);
    if (same == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t s = n; s-- > 0;)
        for (uint32_t k = s + 1; k < n; k++) {
            same[k] = of[s] == of[k] ? same[k + 1] + 1 : 0;
            if (same[k] > p->alike[s]) {
                p->alike[s] = same[k];
                p->twin[s] = k;
            }
        }
    for (uint32_t s = n; s-- > 0;)
        for (uint32_t t = s; t < n; t++) {
            uint32_t by = p->twin[s] - s;
            p->row[(size_t)s * n + t] =
                t - s < p->alike[s] ? p->row[(size_t)(s + by) * n + t + by]
                                    : p->n_rows++;
        }
    return MS_OK;
}

static bool has_twin(const solver *p, uint32_t s, uint32_t t)
{
    return t - s < p->alike[s];
}

/* ---- the table ----------------------------------------------------------- */

static void fill_turn(const solver *p, uint32_t s, uint64_t *best)
{
    const ms_blockmenu *menu = menu_of(p, s);
    for (uint32_t i = 0; i < menu->n[MS_BLOCK_TURN]; i++) {
        const ms_blockoption *option = &menu->options[MS_BLOCK_TURN][i];
        for (uint64_t m = units(p, option->turn_bytes); m <= p->room; m++)
            best[m] = option->time_ns < best[m] ? option->time_ns : best[m];
    }
}

/* The units from which on the option can be taken. */
static uint64_t least_with(const solver *p, uint32_t t,
                           const ms_blockoption *option)
{
    return more(
        units(p, option->forward_bytes) + p->handed[t],
        more(units(p, option->turn_bytes), units(p, option->held_bytes)));
}

static void take_both(const solver *p, uint32_t s, uint32_t t, uint64_t *best)
{
    const ms_blockmenu *menu = menu_of(p, s);
    const uint64_t *behind = row_of(p, s + 1, t);
    for (uint32_t i = 0; i < menu->n[MS_BLOCK_BOTH]; i++) {
        const ms_blockoption *option = &menu->options[MS_BLOCK_BOTH][i];
        uint64_t held = units(p, option->held_bytes);
        for (uint64_t m = least_with(p, t, option); m <= p->room; m++) {
            uint64_t ns = option->time_ns + behind[m - held];
            best[m] = ns < best[m] ? ns : best[m];
        }
    }
}

/* The fastest PASS of a block in m units; NULL: none. */
static const ms_blockoption *pass_in(const solver *p, uint32_t block,
                                     uint64_t m)
{
    const ms_blockmenu *menu = menu_of(p, block);
    const ms_blockoption *best = NULL;
    for (uint32_t i = 0; i < menu->n[MS_BLOCK_PASS]; i++) {
        const ms_blockoption *option = &menu->options[MS_BLOCK_PASS][i];
        if (units(p, option->forward_bytes) <= m &&
            (best == NULL || option->time_ns < best->time_ns))
            best = option;
    }
    return best;
}

/* What is there while a block from s on passes, before t: beside s's input. */
static uint64_t beside(const solver *p, uint32_t s, uint32_t block, uint32_t t)
{
    return p->handed[t] + (block > s ? p->output[block - 1] : 0);
}

/* One block more passes. */
static void add_pass(const solver *p, uint32_t s, uint32_t block, uint32_t t)
{
    const ms_blockmenu *menu = menu_of(p, block);
    uint64_t there = beside(p, s, block, t), end = p->room + 1;
    for (uint64_t m = 0; m < there && m < end; m++)
        p->again[m] = NEVER;
    if (menu->n[MS_BLOCK_PASS] == 1) {
        const ms_blockoption *only = menu->options[MS_BLOCK_PASS];
        uint64_t from = there + units(p, only->forward_bytes);
        for (uint64_t m = there; m < from && m < end; m++)
            p->again[m] = NEVER;
        for (uint64_t m = from; m < end; m++)
            p->again[m] += only->time_ns;
        return;
    }
    for (uint64_t m = there; m < end; m++) {
        const ms_blockoption *option = pass_in(p, block, m - there);
        if (option == NULL || p->again[m] >= NEVER)
            p->again[m] = NEVER;
        else
            p->again[m] += option->time_ns;
    }
}

static void take_sums(uint64_t *restrict best, const uint64_t *restrict again,
                      const uint64_t *restrict behind,
                      const uint64_t *restrict before, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t ns = again[i] + behind[i] + before[i];
        best[i] = ns < best[i] ? ns : best[i];
    }
}

static void fill_row(const solver *p, uint32_t s, uint32_t t)
{
    uint64_t *best = row_of(p, s, t);
    for (uint64_t m = 0; m <= p->room; m++)
        best[m] = NEVER;
    if (s == t) {
        fill_turn(p, s, best);
        return;
    }
    take_both(p, s, t, best);
    for (uint64_t m = 0; m <= p->room; m++)
        p->again[m] = 0;
    for (uint32_t k = s + 1; k <= t; k++) {
        uint64_t by = p->output[k - 1];
        add_pass(p, s, k - 1, t);
        if (by <= p->room)
            take_sums(best + by, p->again + by, row_of(p, k, t),
                      row_of(p, s, k - 1) + by, p->room + 1 - by);
    }
    for (uint64_t m = 0; m <= p->room; m++)
        best[m] = best[m] < NEVER ? best[m] : NEVER;
}

static ms_err fill(solver *p, uint64_t *time_ns)
{
    size_t n = p->n_rows;
    p->table =
        ms_arena_take_raw(&p->scratch, n * (p->room + 1), sizeof *p->table);
    p->again = ms_arena_take_raw(&p->scratch, p->room + 1, sizeof *p->again);
    if (p->table == NULL || p->again == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t s = p->n; s-- > 0;)
        for (uint32_t t = s; t < p->n; t++)
            if (!has_twin(p, s, t))
                fill_row(p, s, t);
    *time_ns = row_of(p, 0, p->n - 1)[p->room];
    return MS_OK;
}

static void forget(solver *p)
{
    ms_arena_drop(&p->scratch, p->table);
    ms_arena_drop(&p->scratch, p->again);
}

/* ---- the plan ------------------------------------------------------------ */

typedef struct part {
    uint32_t s, t;
    uint64_t m;
    const ms_blockoption *rest; /* of s, what it makes in backward; or NULL */
} part;

static ms_err make(solver *p, uint32_t block, const ms_blockoption *option,
                   uint32_t from, uint32_t end)
{
    const ms_dagblocks *blocks = p->blocks;
    uint32_t hand = blocks->forward_at[block + 1] - blocks->forward_at[block] +
                    blocks->handed_at[block + 1] - blocks->handed_at[block];
    p->made = ms_arena_grow(&p->scratch, p->made, &p->made_capacity,
                            p->n_made + end - from, sizeof *p->made);
    if (p->made == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t i = from; i < end; i++)
        if (option->made[i] != hand)
            p->made[p->n_made++] =
                ms_blockmenu_node(blocks, block, option->made[i]);
    return MS_OK;
}

static ms_err make_turn(solver *p, const part *at)
{
    const ms_blockmenu *menu = menu_of(p, at->s);
    const ms_blockoption *best = NULL;
    for (uint32_t i = 0; i < menu->n[MS_BLOCK_TURN]; i++) {
        const ms_blockoption *option = &menu->options[MS_BLOCK_TURN][i];
        if (units(p, option->turn_bytes) <= at->m &&
            (best == NULL || option->time_ns < best->time_ns))
            best = option;
    }
    assert(best != NULL);
    return make(p, at->s, best, 0, best->n);
}

/* The option of BOTH that gives the value, or NULL. */
static const ms_blockoption *both_with(const solver *p, const part *at)
{
    const ms_blockmenu *menu = menu_of(p, at->s);
    uint64_t value = row_of(p, at->s, at->t)[at->m];
    for (uint32_t i = 0; i < menu->n[MS_BLOCK_BOTH]; i++) {
        const ms_blockoption *option = &menu->options[MS_BLOCK_BOTH][i];
        uint64_t held = units(p, option->held_bytes);
        if (least_with(p, at->t, option) <= at->m &&
            option->time_ns + row_of(p, at->s + 1, at->t)[at->m - held] ==
                value)
            return option;
    }
    return NULL;
}

/* The first checkpoint that gives the value. */
static uint32_t find_checkpoint(const solver *p, const part *at)
{
    uint64_t value = row_of(p, at->s, at->t)[at->m], again = 0;
    for (uint32_t k = at->s + 1;; k++) {
        uint64_t there = beside(p, at->s, k - 1, at->t);
        uint64_t by = p->output[k - 1];
        assert(k <= at->t && there <= at->m);
        again += pass_in(p, k - 1, at->m - there)->time_ns;
        if (by <= at->m && again + row_of(p, k, at->t)[at->m - by] +
                                   row_of(p, at->s, k - 1)[at->m] ==
                               value)
            return k;
    }
}

static ms_err write_part(solver *p, const part *at, part *left, uint32_t *n)
{
    if (at->rest != NULL)
        return make(p, at->s, at->rest, at->rest->split, at->rest->n);
    if (at->s == at->t)
        return make_turn(p, at);
    const ms_blockoption *both = both_with(p, at);
    if (both != NULL) {
        MS_TRY(make(p, at->s, both, 0, both->split));
        left[(*n)++] = (part){at->s, at->s, 0, both};
        left[(*n)++] =
            (part){at->s + 1, at->t, at->m - units(p, both->held_bytes), NULL};
        return MS_OK;
    }
    uint32_t k = find_checkpoint(p, at);
    for (uint32_t b = at->s; b < k; b++) {
        const ms_blockoption *pass =
            pass_in(p, b, at->m - beside(p, at->s, b, at->t));
        MS_TRY(make(p, b, pass, 0, pass->n));
    }
    left[(*n)++] = (part){at->s, k - 1, at->m, NULL};
    left[(*n)++] = (part){k, at->t, at->m - p->output[k - 1], NULL};
    return MS_OK;
}

static ms_err write_plan(solver *p, ms_blockplan *plan)
{
    uint32_t n = 0;
    part *left = ms_arena_take(&p->scratch, 2 * (p->n + 1u), sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(p->fault);
    left[n++] = (part){0, p->n - 1, p->room, NULL};
    while (n > 0) {
        part at = left[--n];
        MS_TRY(write_part(p, &at, left, &n));
    }
    return ms_dagcost_plan(p->dag, p->made, p->n_made, p->arena, &plan->plan,
                           p->fault);
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err open(solver *p)
{
    uint32_t n = p->n;
    p->output = ms_arena_take(&p->scratch, n, sizeof *p->output);
    p->handed = ms_arena_take(&p->scratch, n, sizeof *p->handed);
    p->twin = ms_arena_take(&p->scratch, n, sizeof *p->twin);
    p->alike = ms_arena_take(&p->scratch, n, sizeof *p->alike);
    p->row = ms_arena_take_raw(&p->scratch, (size_t)n * n, sizeof *p->row);
    if (p->output == NULL || p->handed == NULL || p->twin == NULL ||
        p->alike == NULL || p->row == NULL)
        return ms_fail_nomem(p->fault);
    return find_rows(p);
}

/* Into how many units a budget is cut at most. */
static uint64_t most_units(const solver *p)
{
    uint64_t by_time = MS_BLOCKPLAN_STEPS / p->n_rows / p->n;
    uint64_t by_table = MS_BLOCKPLAN_TABLE / sizeof *p->table / p->n_rows;
    by_time = more(by_time, 64);
    uint64_t least = by_time < by_table ? by_time : by_table;
    return least < MS_BLOCKPLAN_EXACT ? least : MS_BLOCKPLAN_EXACT;
}

/* The time in the budget; NEVER: there is none. */
static ms_err solve(solver *p, uint64_t budget_bytes, ms_blockplan *plan)
{
    uint64_t unit = common_divisor(p->dag), most = most_units(p);
    plan->exact = budget_bytes / unit <= most;
    if (!plan->exact)
        unit = budget_bytes / most + (budget_bytes % most > 0);
    plan->unit_bytes = unit;
    set_units(p, budget_bytes, unit);
    return fill(p, &plan->time_ns);
}

/* Narrows a budget in which there is no plan and one in which there is. */
static ms_err narrow(solver *p, uint64_t middle, uint64_t *low, uint64_t *high)
{
    ms_blockplan plan;
    MS_TRY(solve(p, middle, &plan));
    forget(p);
    *(plan.time_ns < NEVER ? high : low) = middle;
    return MS_OK;
}

/* The least budget in which there is a plan.  These plans may need more than
 * the order in which nothing is made again: all bytes are enough. */
static ms_err refuse(solver *p, uint64_t budget_bytes)
{
    char budget[MS_SIZE_COUNT], hint[80];
    uint64_t low = budget_bytes, high = 0;
    uint64_t step = common_divisor(p->dag);
    for (uint32_t v = 0; v < p->dag->n; v++)
        high += p->dag->bytes[v];
    high = more(high, low + 1);
    uint64_t kept = ms_dagcost_all(p->dag, &p->scratch);
    if (kept > low && kept < high)
        MS_TRY(narrow(p, kept, &low, &high));
    while (high - low > more(step, high / 512))
        MS_TRY(narrow(p, low + (high - low) / 2, &low, &high));
    if (step > high / 512)
        high -= high % step;
    ms_size_count(budget_bytes, budget);
    snprintf(hint, sizeof hint, "the least budget of such plans is %" PRIu64,
             high);
    return ms_fail(p->fault, MS_EINFEASIBLE, "budget", hint,
                   "no plan that keeps what is at its cut points runs the DAG "
                   "in %s bytes",
                   budget);
}

static ms_err find(solver *p, uint64_t budget_bytes, ms_blockplan *plan)
{
    MS_TRY(open(p));
    if (most_units(p) < 64)
        return ms_fail(
            p->fault, MS_EUSAGE, "checkpoint:optimal", "write dtr:budget=SIZE",
            "the DAG has %" PRIu32 " blocks, too many for a table of them",
            p->n);
    MS_TRY(solve(p, budget_bytes, plan));
    if (plan->time_ns < NEVER)
        return write_plan(p, plan);
    forget(p);
    return refuse(p, budget_bytes);
}

ms_err ms_blockplan_find(const ms_nodedag *dag, const ms_dagblocks *blocks,
                         const ms_blockmenus *menus, uint64_t budget_bytes,
                         ms_arena *arena, ms_blockplan *plan, ms_fault *fault)
{
    solver p = {.dag = dag,
                .blocks = blocks,
                .menus = menus,
                .arena = arena,
                .fault = fault,
                .n = blocks->n};
    *plan = (ms_blockplan){0};
    p.scratch.limit_bytes = arena->limit_bytes;
    ms_err err = find(&p, budget_bytes, plan);
    ms_arena_free(&p.scratch);
    return err;
}
