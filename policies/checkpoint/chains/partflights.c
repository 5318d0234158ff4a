/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/partflights.h"
#include "sim/schedule/schedule.h"

#include <string.h>

/* No more states in which a part begins to run either way: those of the fewest
 * sets are left out. */
#define MOST_STATES 8u

typedef struct finder {
    const ms_schedule *schedule;
    const ms_chainparts *parts;
    ms_partflights *inflight;
    ms_arena *arena;
    ms_fault *fault;
    uint32_t *place;     /* per part: in its group */
    uint32_t *now;       /* per part of a group: the state at hand, */
    uint32_t *half;      /* of them between the halves of their backward */
    uint32_t most;       /* sets of a part at a time */
    uint64_t left_bytes; /* what the parts have left that ran backward once */
    uint8_t *ran;        /* per part of a group: it did */
    ms_flights_state *states; /* of the group at hand */
} finder;

/* ---- groups -------------------------------------------------------------- */

static void join(finder *f, uint32_t a, uint32_t b)
{
    uint32_t *of = f->inflight->group_of;
    uint32_t low = of[a] < of[b] ? of[a] : of[b], high = of[a] + of[b] - low;
    for (uint32_t r = 0; r < f->schedule->n_ranks; r++)
        of[r] = of[r] == high ? low : of[r];
}

/* Numbered from 0 up, in the order of their first ranks. */
static ms_err find_groups(finder *f)
{
    const ms_schedule *schedule = f->schedule;
    uint32_t n = schedule->n_ranks;
    uint32_t *of = ms_arena_take_raw(f->arena, n, sizeof *of);
    uint32_t *number = ms_arena_take_raw(f->arena, n, sizeof *number);
    if (of == NULL || number == NULL)
        return ms_fail_nomem(f->fault);
    f->inflight->group_of = of;
    for (uint32_t r = 0; r < n; r++)
        of[r] = r;
    for (uint32_t r = 0; r < n && schedule->rank_of != NULL; r++)
        for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1];
             i++)
            join(f, r, schedule->stages[schedule->turns[i].stage].rank);
    for (uint32_t r = 0; r < n; r++) {
        if (of[r] == r)
            number[r] = f->inflight->n++;
        of[r] = number[of[r]];
    }
    return MS_OK;
}

/* ---- chains -------------------------------------------------------------- */

/* A copy without what this memory does not see. */
static ms_err copy_chain(finder *f, bool alone, bool tails, ms_chain *chain)
{
    ms_chain_stage *stages =
        ms_arena_take_raw(f->arena, chain->n + 1u, sizeof *stages);
    if (stages == NULL)
        return ms_fail_nomem(f->fault);
    memcpy(stages, chain->stages, (chain->n + 1u) * sizeof *stages);
    for (uint32_t l = 0; l <= chain->n; l++) {
        stages[l].left_bytes = alone ? stages[l].left_bytes : 0;
        stages[l].tail_ns = tails ? stages[l].tail_ns : 0;
    }
    chain->stages = stages;
    return MS_OK;
}

static ms_err list_parts(finder *f)
{
    ms_partflights *all = f->inflight;
    const ms_schedule *schedule = f->schedule;
    all->groups = ms_arena_take(f->arena, all->n, sizeof *all->groups);
    f->place = ms_arena_take(f->arena, f->parts->n, sizeof *f->place);
    f->now = ms_arena_take(f->arena, f->parts->n, sizeof *f->now);
    f->half = ms_arena_take(f->arena, f->parts->n, sizeof *f->half);
    f->ran = ms_arena_take(f->arena, f->parts->n, 1);
    if (all->groups == NULL || f->place == NULL || f->now == NULL ||
        f->half == NULL || f->ran == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t k = 0; k < f->parts->n; k++) {
        uint32_t g = all->group_of[schedule->stages[k].rank];
        f->place[k] = all->groups[g].flights.n++;
    }
    for (uint32_t g = 0; g < all->n; g++) {
        ms_partflights_group *own = &all->groups[g];
        own->part = ms_arena_take(f->arena, own->flights.n, sizeof *own->part);
        if (own->part == NULL)
            return ms_fail_nomem(f->fault);
    }
    for (uint32_t k = 0; k < f->parts->n; k++)
        all->groups[all->group_of[schedule->stages[k].rank]].part[f->place[k]] =
            k;
    return MS_OK;
}

/* ---- states -------------------------------------------------------------- */

static bool is_within(const ms_flights_state *a, const ms_flights_state *b,
                      uint32_t n)
{
    if (a->chain != b->chain || a->back != b->back ||
        a->others_bytes > b->others_bytes)
        return false;
    for (uint32_t k = 0; k < n; k++)
        if (a->sets[k] > b->sets[k])
            return false;
    return true;
}

/* Where all is saved. */
static uint64_t bytes_of(const ms_flights *flights, const ms_flights_state *a)
{
    uint64_t bytes = a->others_bytes;
    for (uint32_t k = 0; k < flights->n; k++)
        bytes += a->sets[k] * ms_flights_all(&flights->chains[k]);
    return bytes;
}

/* The states of the most bytes first. */
static void insert(finder *f, ms_flights *flights, const ms_flights_state *add)
{
    uint32_t at = flights->n_states, alike = 0;
    for (uint32_t c = 0; c < flights->n_states; c++)
        alike +=
            f->states[c].chain == add->chain && f->states[c].back == add->back;
    for (uint32_t c = flights->n_states; c-- > 0 && alike == MOST_STATES;)
        if (f->states[c].chain == add->chain &&
            f->states[c].back == add->back) {
            if (bytes_of(flights, &f->states[c]) >= bytes_of(flights, add))
                return;
            memmove(f->states + c, f->states + c + 1,
                    (flights->n_states - c - 1) * sizeof *f->states);
            at = --flights->n_states;
            alike--;
        }
    while (at > 0 &&
           bytes_of(flights, &f->states[at - 1]) < bytes_of(flights, add)) {
        f->states[at] = f->states[at - 1];
        at--;
    }
    f->states[at] = *add;
    flights->n_states++;
}

static ms_err note_state(finder *f, ms_flights *flights, uint32_t place,
                         bool back)
{
    uint32_t n = flights->n, kept = 0;
    uint32_t *sets = ms_arena_take_raw(f->arena, n, sizeof *sets);
    ms_flights_state own = {sets, place, back, f->left_bytes};
    if (sets == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t k = 0; k < n; k++) {
        sets[k] = f->now[k] - f->half[k];
        own.others_bytes += f->half[k] * ms_flights_all(&flights->chains[k]);
    }
    for (uint32_t c = 0; c < flights->n_states; c++)
        if (is_within(&own, &f->states[c], n))
            return MS_OK;
    for (uint32_t c = 0; c < flights->n_states; c++)
        if (!is_within(&f->states[c], &own, n))
            f->states[kept++] = f->states[c];
    flights->n_states = kept;
    insert(f, flights, &own);
    return MS_OK;
}

/* Gradients of weights are there from the first backward on. */
static void end_backward(finder *f, const ms_flights *flights, uint32_t place)
{
    const ms_chain *chain = &flights->chains[place];
    f->now[place]--;
    for (uint32_t l = 1; l <= chain->n && !f->ran[place]; l++)
        f->left_bytes += chain->stages[l].left_bytes;
    f->ran[place] = 1;
}

/* Of the turns of a rank, in the states of its group. */
static ms_err walk_rank(finder *f, uint32_t r, ms_flights *flights)
{
    const ms_schedule *schedule = f->schedule;
    memset(f->now, 0, flights->n * sizeof *f->now);
    memset(f->half, 0, flights->n * sizeof *f->half);
    memset(f->ran, 0, flights->n);
    f->left_bytes = 0;
    for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1]; i++) {
        uint8_t kind = schedule->turns[i].kind;
        uint32_t place = f->place[schedule->turns[i].stage];
        f->now[place] += kind == MS_TURN_FORWARD;
        f->most = f->now[place] > f->most ? f->now[place] : f->most;
        if (kind != MS_TURN_GRAD_WEIGHT)
            MS_TRY(note_state(f, flights, place, kind != MS_TURN_FORWARD));
        f->half[place] += kind == MS_TURN_GRAD_INPUT;
        f->half[place] -= kind == MS_TURN_GRAD_WEIGHT;
        if (kind == MS_TURN_BACKWARD || kind == MS_TURN_GRAD_WEIGHT)
            end_backward(f, flights, place);
    }
    return MS_OK;
}

static ms_err find_states(finder *f, uint32_t g, bool tails)
{
    ms_partflights_group *own = &f->inflight->groups[g];
    ms_flights *flights = &own->flights;
    uint32_t n = flights->n;
    ms_chain *chains = ms_arena_take(f->arena, n, sizeof *chains);
    f->states = ms_arena_take(f->arena, 2 * (size_t)n * MOST_STATES + 1,
                              sizeof *f->states);
    if (f->states == NULL || chains == NULL)
        return ms_fail_nomem(f->fault);
    f->most = 0;
    flights->states = f->states;
    flights->chains = own->chains = chains;
    for (uint32_t k = 0; k < n; k++)
        chains[k] = f->parts->of[own->part[k]].chain;
    for (uint32_t r = 0; r < f->schedule->n_ranks; r++)
        if (f->inflight->group_of[r] == g)
            MS_TRY(walk_rank(f, r, flights));
    own->alone = n == 1 && f->most <= 1;
    for (uint32_t k = 0; k < n; k++)
        MS_TRY(copy_chain(f, own->alone, tails, &chains[k]));
    return MS_OK;
}

ms_err ms_partflights_find(const ms_policy_context *context,
                           const ms_chainparts *parts, bool tails,
                           ms_partflights *inflight, ms_fault *fault)
{
    finder f = {.schedule = context->schedule,
                .parts = parts,
                .inflight = inflight,
                .arena = context->arena,
                .fault = fault};
    *inflight = (ms_partflights){0};
    MS_TRY(find_groups(&f));
    MS_TRY(list_parts(&f));
    for (uint32_t g = 0; g < inflight->n; g++)
        MS_TRY(find_states(&f, g, tails));
    return MS_OK;
}
