/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/laws/turns.h"

#include <string.h>

typedef struct maker {
    laws_random *random;
    ms_schedule *schedule;
    uint8_t *ran;    /* per stage and micro-batch, bits of ms_turn_kind */
    bool *halves;    /* the same: it goes back in halves */
    ms_turn **row;   /* per rank */
    uint32_t *n_row; /* turns of it */
} maker;

static size_t cell(const maker *m, uint32_t k, uint32_t micro_batch)
{
    return (size_t)k * m->schedule->n_micro_batches + micro_batch;
}

static bool has_run(const maker *m, uint32_t k, uint32_t micro_batch,
                    ms_turn_kind kind)
{
    return m->ran[cell(m, k, micro_batch)] >> kind & 1;
}

static bool went_back(const maker *m, uint32_t k, uint32_t micro_batch)
{
    return has_run(m, k, micro_batch, MS_TURN_BACKWARD) ||
           has_run(m, k, micro_batch, MS_TURN_GRAD_INPUT);
}

static bool is_ready(const maker *m, const ms_turn *t)
{
    uint32_t k = t->stage, n = m->schedule->n_stages;
    bool halves = m->halves[cell(m, k, t->micro_batch)];
    if (has_run(m, k, t->micro_batch, (ms_turn_kind)t->kind))
        return false;
    switch (t->kind) {
    case MS_TURN_FORWARD:
        return k == 0 || has_run(m, k - 1, t->micro_batch, MS_TURN_FORWARD);
    case MS_TURN_GRAD_WEIGHT:
        return has_run(m, k, t->micro_batch, MS_TURN_GRAD_INPUT);
    default:
        return halves == (t->kind == MS_TURN_GRAD_INPUT) &&
               has_run(m, k, t->micro_batch, MS_TURN_FORWARD) &&
               (k + 1 == n || went_back(m, k + 1, t->micro_batch));
    }
}

/* A turn that can run; with rank, a whole backward on it. */
static bool pick(const maker *m, const uint32_t *rank, ms_turn *turn)
{
    const ms_schedule *s = m->schedule;
    uint32_t n = s->n_stages * s->n_micro_batches * MS_N_TURNS;
    uint32_t first = laws_below(m->random, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (first + i) % n, c = at / MS_N_TURNS;
        *turn = (ms_turn){.stage = c / s->n_micro_batches,
                          .micro_batch = c % s->n_micro_batches,
                          .kind = (uint8_t)(at % MS_N_TURNS)};
        if (rank != NULL &&
            (turn->kind != MS_TURN_BACKWARD ||
             *rank != ms_schedule_rank(s, turn->stage, turn->micro_batch)))
            continue;
        if (is_ready(m, turn))
            return true;
    }
    return false;
}

static void put(const maker *m, ms_turn turn)
{
    uint32_t rank = ms_schedule_rank(m->schedule, turn.stage, turn.micro_batch);
    m->row[rank][m->n_row[rank]++] = turn;
    m->ran[cell(m, turn.stage, turn.micro_batch)] |= (uint8_t)(1u << turn.kind);
}

static void permute(laws_random *random, uint16_t *of, uint32_t n)
{
    for (uint32_t r = n; r-- > 1;) {
        uint32_t other = laws_below(random, r + 1);
        uint16_t was = of[r];
        of[r] = of[other];
        of[other] = was;
    }
}

/* Each micro-batch has ranks of its own, the first one the stages'. */
static void add_copies(laws_random *random, ms_arena *arena, ms_schedule *s)
{
    uint32_t n = s->n_micro_batches;
    uint16_t *of = ms_arena_take(arena, s->n_ranks, sizeof *of);
    uint16_t *rank_of =
        ms_arena_take(arena, (size_t)s->n_stages * n, sizeof *rank_of);
    for (uint16_t r = 0; r < s->n_ranks; r++)
        of[r] = r;
    for (uint32_t m = 0; m < n; m++) {
        permute(random, of, m > 0 ? s->n_ranks : 0);
        for (uint32_t k = 0; k < s->n_stages; k++)
            rank_of[k * n + m] = of[s->stages[k].rank];
    }
    s->rank_of = rank_of;
}

static void join(const maker *m, ms_arena *arena)
{
    ms_schedule *s = m->schedule;
    uint32_t n = 0;
    s->turn_at = ms_arena_take(arena, s->n_ranks + 1u, sizeof *s->turn_at);
    s->turns = ms_arena_take(
        arena, 3 * (size_t)s->n_stages * s->n_micro_batches, sizeof *s->turns);
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        memcpy(s->turns + n, m->row[r], m->n_row[r] * sizeof *s->turns);
        s->turn_at[r + 1] = n += m->n_row[r];
    }
}

void laws_turns(laws_random *random, ms_arena *arena, ms_schedule *schedule)
{
    size_t cells = (size_t)schedule->n_stages * schedule->n_micro_batches;
    uint32_t halves = laws_below(random, 101);
    ms_turn turn, other;
    maker m = {random,
               schedule,
               ms_arena_take(arena, cells, 1),
               ms_arena_take(arena, cells, sizeof(bool)),
               ms_arena_take(arena, schedule->n_ranks, sizeof *m.row),
               ms_arena_take(arena, schedule->n_ranks, sizeof *m.n_row)};
    if (laws_chance(random, 30))
        add_copies(random, arena, schedule);
    for (size_t i = 0; i < cells; i++)
        m.halves[i] = laws_chance(random, halves);
    for (uint32_t r = 0; r < schedule->n_ranks; r++)
        m.row[r] = ms_arena_take(arena, 3 * cells, sizeof **m.row);
    while (pick(&m, NULL, &turn)) {
        uint32_t rank =
            ms_schedule_rank(schedule, turn.stage, turn.micro_batch);
        turn.pairs = turn.kind == MS_TURN_FORWARD && laws_chance(random, 50) &&
                     pick(&m, &rank, &other);
        put(&m, turn);
        if (turn.pairs)
            put(&m, other);
    }
    join(&m, arena);
}
