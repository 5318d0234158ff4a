/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/flights/flights.h"
#include "policies/solve/chaintable.h"

#include <math.h>
#include <string.h>

/* Into how many parts the sum of all sets is cut when fronts are merged. */
#define GRID 1024u
/* Units of a budget are no finer. */
#define MOST_UNITS 2048u
/* Divisions of the budget that are tried: over all of it, then between the
 * neighbours of the best; FINER times as many where none is found. */
#define BOUNDS 16u
#define ROUNDS 2u
#define FINER 8u
/* States whose sets are tried as weights, of those with the most bytes. */
#define MOST_WEIGHTS 8u
#define PARTS 4096u

struct ms_flights_table {
    const ms_flights *of;
    uint64_t unit_bytes, most_bytes;
    ms_chainunits **stage; /* per chain [0 .. n] */
    ms_chaintable *table;  /* per chain */
};

/* A plan of a chain: so many units of a set, so much time again. */
typedef struct point {
    uint64_t units;
    double ns;
} point;

/* A chain under one bound on what its acts take besides its set. */
typedef struct front {
    uint64_t room; /* units of a set, beside the chain's input, at most, */
    uint64_t most; /* and under this bound */
    double *ns;    /* per stage s [1 .. n] and units [0 .. room]: the least
                      again of stages s to n */
    uint32_t n;
    point *points; /* falling in time */
} front;

/* A state in units. */
typedef struct instant {
    uint64_t others, forward; /* forward: what its chain's forward takes */
} instant;

/* Where sets are as large as they can be, or their inputs alone. */
typedef enum extreme { WIDE, NARROW, EXTREMES } extreme;

typedef struct merged {
    double *ns;      /* per chain and part of the grid */
    uint32_t *taken; /* the point of the chain */
    uint32_t *pick;  /* per chain */
} merged;

typedef struct finder {
    const ms_flights_table *table;
    const ms_flights *of;
    uint64_t budget; /* units */
    ms_arena *scratch;
    ms_fault *fault;
    front *fronts;
    merged merge;
    instant *instants; /* per state */
    uint64_t *share;   /* per extreme and chain, of PARTS: how much there is of
                          sets where it runs backward, beside the most */
    uint64_t *bound;   /* per chain: of P - S, at hand */
    uint32_t *weight;  /* per chain, at hand */
    /* The best so far. */
    double best_ns;
    uint64_t best_sum;
    extreme best_at;
    uint64_t *best_units; /* per chain */
} finder;

/* ---- the tables ---------------------------------------------------------- */

ms_err ms_flights_open(const ms_flights *flights, uint64_t most_bytes,
                       uint32_t slots, ms_arena *arena,
                       ms_flights_table **table, ms_fault *fault)
{
    ms_flights_table *p = ms_arena_take(arena, 1, sizeof *p);
    *table = p;
    if (p == NULL)
        return ms_fail_nomem(fault);
    *p = (ms_flights_table){.of = flights, .most_bytes = most_bytes};
    p->stage = ms_arena_take(arena, flights->n, sizeof(ms_chainunits *));
    p->table = ms_arena_take(arena, flights->n, sizeof *p->table);
    if (p->stage == NULL || p->table == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < flights->n; k++) {
        const ms_chain *chain = &flights->chains[k];
        bool exact;
        MS_TRY(ms_chaintable_open(chain, arena, &p->table[k], fault));
        uint64_t unit =
            ms_optimum_unit(&p->table[k], most_bytes, slots, &exact);
        p->unit_bytes = ms_chainunits_more(p->unit_bytes, unit);
    }
    p->unit_bytes =
        ms_chainunits_more(p->unit_bytes, most_bytes / MOST_UNITS + 1);
    for (uint32_t k = 0; k < flights->n; k++) {
        const ms_chain *chain = &flights->chains[k];
        p->stage[k] = ms_arena_take(arena, chain->n + 1u, sizeof **p->stage);
        if (p->stage[k] == NULL)
            return ms_fail_nomem(fault);
        ms_optimum_units(chain, p->unit_bytes, p->stage[k]);
        MS_TRY(ms_chaintable_fill(&p->table[k], p->stage[k],
                                  most_bytes / p->unit_bytes, arena, fault));
    }
    return MS_OK;
}

/* ---- the front of a chain ------------------------------------------------ */

static double *row_of(const front *f, uint32_t s)
{
    return f->ns + (size_t)s * (f->room + 1);
}

/* The least acts of s, beside its input, that save nothing up to the loss. */
static uint64_t passing(const ms_chaintable *table, uint32_t s)
{
    uint64_t pass = 0;
    for (uint32_t l = s; l < table->n; l++)
        pass = ms_chainunits_pass(table->stage, s, l, pass);
    return table->stage[table->n].output + pass;
}

/* A chain under a bound, and where its front is written. */
typedef struct under {
    const front *f;
    const ms_chaintable *table;
    uint64_t besides; /* the bound */
} under;

/* Stage s saves, and those behind it have the rest. */
static double saving_ns(const under *u, uint32_t s, uint64_t x)
{
    const ms_chaintable *table = u->table;
    uint64_t saved = table->stage[s].saved;
    if (x < saved ||
        x + u->besides < ms_chainunits_saved(table->stage, s, table->n))
        return INFINITY;
    return s == table->n ? 0 : row_of(u->f, s + 1)[x - saved];
}

/* The least units with which the input of k is kept, stages s to k - 1 to run
 * again; pass: as passing has it. */
static uint64_t least_again(const under *u, uint32_t s, uint32_t k,
                            uint64_t pass)
{
    const ms_chaintable *table = u->table;
    uint64_t low = ms_chainunits_more(
        pass, table->by_first[(size_t)s * (table->n + 1) + k - 1].low);
    return ms_chainunits_more(table->stage[k - 1].output,
                              low > u->besides ? low - u->besides : 0);
}

static double again_ns(const under *u, uint32_t s, uint32_t k, uint64_t x)
{
    return ms_chaintable_again_ns(u->table, s, k) +
           row_of(u->f, k)[x - u->table->stage[k - 1].output] +
           ms_chaintable_more_ns(u->table, s, k - 1, x + u->besides);
}

/* Times of stages s to n, which fall with x: the choice of k can be better
 * below *end alone. */
static void take_again(const under *u, uint32_t s, uint32_t k, uint64_t pass,
                       uint64_t *end)
{
    double *best = row_of(u->f, s),
           base = ms_chaintable_again_ns(u->table, s, k);
    const ms_chaintable_row *row =
        &u->table->by_first[(size_t)s * (u->table->n + 1) + k - 1];
    const double *behind = row_of(u->f, k);
    uint64_t output = u->table->stage[k - 1].output;
    while (*end > 0 && best[*end - 1] <= base)
        --*end;
    uint64_t x = least_again(u, s, k, pass);
    for (; x < *end && x + u->besides < row->high; x++) {
        double ns = base + behind[x - output] +
                    u->table->table[row->at + x + u->besides - row->low];
        best[x] = ns < best[x] ? ns : best[x];
    }
    for (; x < *end; x++) {
        double ns = base + behind[x - output];
        best[x] = ns < best[x] ? ns : best[x];
    }
}

/* Which choice gave the time: k, or s where A(s) is kept. */
static uint32_t find_choice(const under *u, uint32_t s, uint64_t x)
{
    double ns = row_of(u->f, s)[x];
    uint64_t pass = passing(u->table, s);
    if (saving_ns(u, s, x) <= ns)
        return s;
    uint32_t k = s + 1;
    while (x < least_again(u, s, k, pass) || again_ns(u, s, k, x) > ns)
        k++;
    return k;
}

static void fill_front(finder *all, uint32_t k)
{
    const ms_chaintable *table = &all->table->table[k];
    front *f = &all->fronts[k];
    const under u = {f, table, all->bound[k]};
    uint64_t sum = all->budget - all->bound[k];
    f->most = sum < f->room ? sum : f->room;
    for (uint32_t s = table->n; s > 0; s--) {
        uint64_t pass = passing(table, s), end = f->most + 1;
        for (uint64_t x = 0; x <= f->most; x++)
            row_of(f, s)[x] = saving_ns(&u, s, x);
        for (uint32_t c = s + 1; c <= table->n; c++)
            take_again(&u, s, c, pass, &end);
    }
    f->n = 0;
    for (uint64_t x = 0; x <= f->most; x++) {
        double ns = row_of(f, 1)[x];
        if (ns < (f->n == 0 ? INFINITY : f->points[f->n - 1].ns))
            f->points[f->n++] = (point){x + table->stage[0].output, ns};
    }
}

/* Room for as many units as one set may have. */
static ms_err open_front(finder *f, uint32_t k)
{
    const ms_chaintable *table = &f->table->table[k];
    front *own = &f->fronts[k];
    uint64_t all = 0;
    for (uint32_t l = 1; l <= table->n; l++)
        all += table->stage[l].saved;
    own->room = all < f->budget ? all : f->budget;
    own->ns = ms_arena_take_raw(
        f->scratch, (table->n + 1u) * (size_t)(own->room + 1), sizeof(double));
    own->points =
        ms_arena_take_raw(f->scratch, own->room + 1, sizeof *own->points);
    return own->ns == NULL || own->points == NULL ? ms_fail_nomem(f->fault)
                                                  : MS_OK;
}

/* ---- all fronts ---------------------------------------------------------- */

static double *merged_of(const finder *f, uint32_t k)
{
    return f->merge.ns + (size_t)k * (GRID + 1);
}

/* How many parts of the grid a point takes, rounded up. */
static uint64_t parts_of(const finder *f, uint32_t k, uint32_t i, uint64_t sum)
{
    uint64_t units = f->weight[k] * f->fronts[k].points[i].units * GRID;
    return sum == 0 ? GRID + 1 : units / sum + (units % sum > 0);
}

/* The least time of chains 0 to k for each part of `sum` units of sets. */
static void merge_front(finder *f, uint32_t k, uint64_t sum)
{
    double *to = merged_of(f, k);
    const double *from = k > 0 ? merged_of(f, k - 1) : NULL;
    uint32_t *taken = f->merge.taken + (size_t)k * (GRID + 1);
    for (uint32_t g = 0; g <= GRID; g++)
        to[g] = INFINITY;
    for (uint32_t i = 0; i < f->fronts[k].n; i++) {
        uint64_t own = parts_of(f, k, i, sum);
        double ns = f->fronts[k].points[i].ns;
        for (uint64_t g = own; g <= GRID; g++) {
            double all = ns + (from == NULL ? 0 : from[g - own]);
            if (all < to[g]) {
                to[g] = all;
                taken[g] = i;
            }
        }
    }
}

/* What a state leaves of the budget for sets; 0: nothing. */
static uint64_t room_of(const finder *f, uint32_t c)
{
    const ms_flights_state *state = &f->of->states[c];
    const instant *at = &f->instants[c];
    uint64_t besides =
        at->others + (state->back ? f->bound[state->chain] : at->forward);
    return f->budget - (besides < f->budget ? besides : f->budget);
}

/* Do the points at hand keep to the budget in all states? */
static bool fit(const finder *f)
{
    for (uint32_t c = 0; c < f->of->n_states; c++) {
        uint64_t units = 0;
        for (uint32_t k = 0; k < f->of->n; k++)
            units += f->of->states[c].sets[k] *
                     f->fronts[k].points[f->merge.pick[k]].units;
        if (units > room_of(f, c))
            return false;
    }
    return true;
}

/* The points that gave the time of g. */
static void pick(finder *f, uint64_t g, uint64_t sum)
{
    for (uint32_t k = f->of->n; k-- > 0;) {
        f->merge.pick[k] = f->merge.taken[(size_t)k * (GRID + 1) + g];
        g -= parts_of(f, k, f->merge.pick[k], sum);
    }
}

/* With these weights the sets of other states may be more: then fewer parts.
 * all: of sets at the most, for this division of the budget. */
static void try_weights(finder *f, uint64_t sum, uint64_t all, extreme at)
{
    for (uint32_t k = 0; k < f->of->n; k++)
        merge_front(f, k, sum);
    const double *ns = merged_of(f, f->of->n - 1);
    for (uint64_t g = GRID + 1; g-- > 0 && ns[g] < f->best_ns;) {
        pick(f, g, sum);
        if (!fit(f))
            continue;
        f->best_ns = ns[g];
        f->best_sum = all;
        f->best_at = at;
        for (uint32_t k = 0; k < f->of->n; k++)
            f->best_units[k] = f->fronts[k].points[f->merge.pick[k]].units;
    }
}

static void divide(finder *f, uint64_t sum, extreme at)
{
    for (uint32_t k = 0; k < f->of->n; k++) {
        uint64_t share = f->share[at * f->of->n + k];
        uint64_t own = sum / PARTS * share + sum % PARTS * share / PARTS;
        f->bound[k] = f->budget - own;
        fill_front(f, k);
    }
}

/* Has an earlier state the same sets? */
static bool is_known(const finder *f, uint32_t c)
{
    size_t size = f->of->n * sizeof *f->of->states[c].sets;
    for (uint32_t d = 0; d < c; d++)
        if (memcmp(f->of->states[d].sets, f->of->states[c].sets, size) == 0)
            return true;
    return false;
}

/* As weights: sets of states, and the most of each chain. */
static void try_sum(finder *f, uint64_t sum, extreme at)
{
    uint32_t n = f->of->n, tried = 0;
    divide(f, sum, at);
    for (uint32_t c = 0; c < f->of->n_states && tried < MOST_WEIGHTS; c++) {
        if (is_known(f, c))
            continue;
        memcpy(f->weight, f->of->states[c].sets, n * sizeof *f->weight);
        try_weights(f, room_of(f, c), sum, at);
        tried++;
    }
    for (uint32_t c = 0; c < f->of->n_states && tried > 1; c++)
        for (uint32_t k = 0; k < n; k++)
            if (f->of->states[c].sets[k] > f->weight[k])
                f->weight[k] = f->of->states[c].sets[k];
    if (tried > 1)
        try_weights(f, sum, sum, at);
}

static void try_between(finder *f, uint64_t low, uint64_t high, uint64_t by)
{
    for (uint64_t sum = low + by; sum < high; sum += by)
        for (uint32_t at = 0; at < (f->of->n > 1 ? EXTREMES : 1); at++)
            try_sum(f, sum, at);
}

/* Close to the least budget few divisions do. */
static void search(finder *f)
{
    uint64_t low = 0, high = f->budget;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t by = (high - low) / BOUNDS + 1;
        try_between(f, low, high, by);
        if (f->best_ns == INFINITY) {
            by = by / FINER + 1;
            try_between(f, low, high, by);
        }
        if (f->best_ns == INFINITY)
            return;
        low = f->best_sum > by ? f->best_sum - by : 0;
        high = f->best_sum + by < f->budget ? f->best_sum + by : f->budget;
    }
}

/* ---- plans --------------------------------------------------------------- */

/* What waits for its backward. */
typedef struct waiting {
    uint32_t s, k; /* k is s: A(s) is kept */
    uint64_t m;    /* else in so many units s to k - 1 run again */
} waiting;

static ms_err write_plan(finder *f, uint32_t k, ms_arena *arena,
                         ms_chain_plan *plan)
{
    const ms_chaintable *table = &f->table->table[k];
    const under u = {&f->fronts[k], table, f->bound[k]};
    uint64_t x = f->best_units[k] - table->stage[0].output;
    uint32_t n = 0, end;
    waiting *wait = ms_arena_take_raw(f->scratch, table->n, sizeof *wait);
    if (wait == NULL)
        return ms_fail_nomem(f->fault);
    *plan = (ms_chain_plan){0};
    for (uint32_t s = 1; s <= table->n; s = end) {
        uint32_t c = find_choice(&u, s, x);
        wait[n++] = (waiting){s, c, x + u.besides};
        end = c == s ? s + 1 : c;
        if (c == s)
            MS_TRY(ms_chain_add(plan, MS_CHAIN_SAVE, s, arena, f->fault));
        else
            MS_TRY(ms_chain_advance(plan, s, c, arena, f->fault));
        x -= c == s ? table->stage[s].saved : table->stage[c - 1].output;
    }
    while (n-- > 0)
        if (wait[n].k == wait[n].s)
            MS_TRY(ms_chain_add(plan, MS_CHAIN_BACKWARD, wait[n].s, arena,
                                f->fault));
        else
            MS_TRY(ms_optimum_write(table, wait[n].s, wait[n].k - 1, wait[n].m,
                                    arena, plan, f->fault));
    return MS_OK;
}

/* What a stage of the chain's forward takes besides the set, at most. */
static uint64_t forward_units(const ms_chainunits *stage, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t l = 1; l <= n; l++)
        most = ms_chainunits_more(most, (l > 1 ? stage[l - 1].output : 0) +
                                            stage[l].output +
                                            stage[l].forward_extra);
    return most;
}

static void find_shares(finder *f, extreme at)
{
    const ms_flights *of = f->of;
    uint64_t *share = f->share + at * of->n, most = 1;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t c = 0; c < of->n_states; c++) {
            const ms_flights_state *state = &of->states[c];
            uint64_t all = state->others_bytes;
            for (uint32_t k = 0; k < of->n; k++)
                all += state->sets[k] * (at == WIDE
                                             ? ms_flights_all(&of->chains[k])
                                             : of->chains[k].input_bytes);
            if (pass == 0)
                most = ms_chainunits_more(most, all);
            else if (state->back)
                share[state->chain] = ms_chainunits_more(
                    share[state->chain],
                    (uint64_t)((double)all / (double)most * PARTS));
        }
}

static void find_instants(finder *f)
{
    const ms_flights *of = f->of;
    for (uint32_t c = 0; c < of->n_states; c++) {
        uint32_t k = of->states[c].chain;
        f->instants[c] = (instant){
            .others = of->states[c].others_bytes / f->table->unit_bytes,
            .forward = forward_units(f->table->stage[k], of->chains[k].n)};
    }
    find_shares(f, WIDE);
    find_shares(f, NARROW);
}

static ms_err take_columns(finder *f)
{
    uint32_t n = f->of->n;
    size_t cells = (size_t)n * (GRID + 1);
    f->fronts = ms_arena_take(f->scratch, n, sizeof *f->fronts);
    f->weight = ms_arena_take(f->scratch, n, sizeof *f->weight);
    f->bound = ms_arena_take(f->scratch, n, sizeof *f->bound);
    f->share = ms_arena_take(f->scratch, EXTREMES * n, sizeof *f->share);
    f->instants =
        ms_arena_take(f->scratch, f->of->n_states, sizeof *f->instants);
    f->best_units = ms_arena_take(f->scratch, n, sizeof *f->best_units);
    f->merge.pick = ms_arena_take(f->scratch, n, sizeof *f->merge.pick);
    f->merge.ns = ms_arena_take_raw(f->scratch, cells, sizeof(double));
    f->merge.taken = ms_arena_take(f->scratch, cells, sizeof(uint32_t));
    if (f->fronts == NULL || f->weight == NULL || f->best_units == NULL ||
        f->bound == NULL || f->share == NULL || f->instants == NULL ||
        f->merge.pick == NULL || f->merge.ns == NULL || f->merge.taken == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t k = 0; k < n; k++)
        MS_TRY(open_front(f, k));
    return MS_OK;
}

static ms_err find(finder *f, ms_arena *arena, ms_chain_plan *plans)
{
    MS_TRY(take_columns(f));
    find_instants(f);
    search(f);
    if (f->best_ns == INFINITY)
        return ms_fail(f->fault, MS_EINFEASIBLE, "budget", NULL,
                       "no plans of all chains that share it keep to it");
    divide(f, f->best_sum, f->best_at);
    for (uint32_t k = 0; k < f->of->n; k++)
        MS_TRY(write_plan(f, k, arena, &plans[k]));
    return MS_OK;
}

ms_err ms_flights_read(const ms_flights_table *table, uint64_t budget_bytes,
                       ms_arena *arena, ms_chain_plan *plans,
                       uint64_t *unit_bytes, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    finder f = {.table = table,
                .of = table->of,
                .budget = budget_bytes / table->unit_bytes,
                .scratch = &scratch,
                .fault = fault,
                .best_ns = INFINITY};
    ms_err err = find(&f, arena, plans);
    *unit_bytes = table->unit_bytes;
    ms_arena_free(&scratch);
    return err;
}

/* ---- what plans take ----------------------------------------------------- */

/* S: what the acts before the first backward leave. */
static uint64_t set_bytes(const ms_chain *chain, const ms_chain_plan *plan)
{
    uint64_t bytes = chain->input_bytes;
    for (uint32_t i = 0; plan->acts[i].verb != MS_CHAIN_BACKWARD; i++) {
        const ms_chain_stage *stage = &chain->stages[plan->acts[i].stage];
        if (plan->acts[i].verb == MS_CHAIN_SAVE)
            bytes += stage->saved_bytes;
        else if (plan->acts[i + 1].verb != MS_CHAIN_PASS)
            bytes += stage->output_bytes;
    }
    return bytes;
}

uint64_t ms_flights_all(const ms_chain *chain)
{
    uint64_t bytes = chain->input_bytes;
    for (uint32_t l = 1; l <= chain->n; l++)
        bytes += chain->stages[l].saved_bytes;
    return bytes;
}

static uint64_t forward_bytes(const ms_chain *chain)
{
    uint64_t most = 0;
    for (uint32_t l = 1; l <= chain->n; l++) {
        const ms_chain_stage *stage = &chain->stages[l];
        most = ms_chainunits_more(
            most, (l > 1 ? chain->stages[l - 1].output_bytes : 0) +
                      stage->output_bytes + stage->forward_extra_bytes);
    }
    return most;
}

ms_err ms_flights_cost(const ms_flights *flights, const ms_chain_plan *plans,
                       ms_arena *scratch, uint64_t *bytes, uint64_t *time_ns,
                       ms_fault *fault)
{
    uint64_t *set = ms_arena_take(scratch, flights->n, sizeof *set);
    uint64_t *besides = ms_arena_take(scratch, flights->n, sizeof *besides);
    if (set == NULL || besides == NULL)
        return ms_fail_nomem(fault);
    *bytes = *time_ns = 0;
    for (uint32_t k = 0; k < flights->n; k++) {
        uint64_t own_ns, peak;
        MS_TRY(ms_chain_cost(&flights->chains[k], &plans[k], scratch, &own_ns,
                             &peak, fault));
        set[k] = set_bytes(&flights->chains[k], &plans[k]);
        besides[k] = peak - set[k];
        *time_ns += own_ns;
    }
    for (uint32_t c = 0; c < flights->n_states; c++) {
        const ms_flights_state *state = &flights->states[c];
        uint64_t sum = state->others_bytes;
        sum += state->back ? besides[state->chain]
                           : forward_bytes(&flights->chains[state->chain]);
        for (uint32_t k = 0; k < flights->n; k++)
            sum += state->sets[k] * set[k];
        *bytes = ms_chainunits_more(*bytes, sum);
    }
    return MS_OK;
}
