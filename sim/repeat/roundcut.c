/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/repeat/rounds.h"

/* Two that are alike, and one for what comes ahead of its turn. */
#define LEAST_BEFORE 3u

/* The turns of one rank, in few and in many. */
typedef struct turns {
    const ms_turn *few, *many;
    uint32_t n_few, n_many;
    uint32_t length; /* turns of a round */
    uint32_t round, before, times;
    uint32_t first, end; /* of many, those that repeat */
} turns;

/* Is b the turn a, so many micro-batches later? */
static bool is_later(const ms_turn *a, const ms_turn *b, uint32_t by)
{
    return a->stage == b->stage && a->kind == b->kind && a->pairs == b->pairs &&
           a->joins == b->joins && a->micro_batch + by == b->micro_batch;
}

/* How many turns are equal from the beginning. */
static uint32_t count_first(const turns *it)
{
    uint32_t n = 0;
    while (n < it->n_few && is_later(&it->few[n], &it->many[n], 0))
        n++;
    return n;
}

/* How many are, at the end, the same so many rounds later. */
static uint32_t count_last(const turns *it)
{
    uint32_t n = 0, more = it->n_many - it->n_few;
    while (n < it->n_few &&
           is_later(&it->few[it->n_few - 1 - n],
                    &it->many[it->n_few - 1 - n + more], it->times * it->round))
        n++;
    return n;
}

/* Is turn i of many the one before it by a round, a round later? */
static bool repeats(const turns *it, uint32_t i)
{
    return i >= it->length && i < it->n_many &&
           is_later(&it->many[i - it->length], &it->many[i], it->round);
}

/* The turns around the middle of many that repeat: what is put in is most of
 * it. */
static void find_run(turns *it)
{
    it->first = it->end = it->n_many / 2;
    while (it->first > 0 && repeats(it, it->first - 1))
        it->first--;
    while (repeats(it, it->end))
        it->end++;
}

/* Can rounds be put before turn q, with rounds around it? */
static bool may_cut(const turns *it, uint32_t q)
{
    uint32_t end = q + (it->times + MS_ROUNDS_BEHIND) * it->length;
    return q >= it->before * it->length && end <= it->end &&
           q - (it->before - 1) * it->length >= it->first;
}

/* From turn q on the first that runs this micro-batch forward; n_few: none
 * does. */
static uint32_t forward_of(const turns *it, uint32_t q, uint32_t micro_batch)
{
    while (q < it->n_few && (it->few[q].kind != MS_TURN_FORWARD ||
                             it->few[q].micro_batch != micro_batch))
        q++;
    return q;
}

static turns turns_of(const ms_schedule *few, const ms_schedule *many,
                      uint32_t rank, const ms_roundcut *cut)
{
    turns it = {.few = few->turns + few->turn_at[rank],
                .many = many->turns + many->turn_at[rank],
                .n_few = few->turn_at[rank + 1] - few->turn_at[rank],
                .n_many = many->turn_at[rank + 1] - many->turn_at[rank],
                .round = cut->round,
                .before = cut->before,
                .times = cut->times};
    if (it.n_many > it.n_few && (it.n_many - it.n_few) % it.times == 0)
        it.length = (it.n_many - it.n_few) / it.times;
    if (it.length > 0)
        find_run(&it);
    return it;
}

/* Before which micro-batches, as bits of bytes, can the rank be cut? */
static void cut_rank(const turns *it, uint32_t n, uint8_t *may)
{
    uint32_t first = count_first(it), last = count_last(it), q = 0;
    for (uint32_t m = 0; m < n; m++) {
        q = forward_of(it, q, m); /* micro-batches begin in their order */
        may[m] =
            may[m] && q <= first && q + last >= it->n_few && may_cut(it, q);
    }
}

uint32_t ms_roundcut_before(const ms_schedule *many, uint32_t round)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < many->n_ranks; r++) {
        uint32_t n = 0; /* forwards whose backward has not ended */
        for (uint32_t i = many->turn_at[r]; i < many->turn_at[r + 1]; i++) {
            uint8_t kind = many->turns[i].kind;
            n += kind == MS_TURN_FORWARD;
            n -= kind == MS_TURN_BACKWARD || kind == MS_TURN_GRAD_WEIGHT;
            most = n > most ? n : most;
        }
    }
    return most / round + LEAST_BEFORE;
}

ms_err ms_roundcut_find(const ms_schedule *few, const ms_schedule *many,
                        ms_arena *arena, ms_roundcut *cut, bool *found,
                        ms_fault *fault)
{
    uint32_t n = few->n_micro_batches, more = many->n_micro_batches - n;
    *found = false;
    if (many->n_micro_batches <= n || more % cut->round != 0)
        return MS_OK;
    uint8_t *may = ms_arena_take(arena, n, 1);
    if (may == NULL)
        return ms_fail_nomem(fault);
    cut->times = more / cut->round;
    /* The round behind the cut ends where the next one's forward begins. */
    for (uint32_t m = 0; m < n; m++)
        may[m] = m + MS_ROUNDS_BEHIND * cut->round < n;
    for (uint32_t r = 0; r < few->n_ranks; r++) {
        turns it = turns_of(few, many, r, cut);
        if (it.length == 0)
            return MS_OK;
        cut_rank(&it, n, may);
    }
    for (uint32_t m = n; m-- > 0 && !*found;) {
        *found = may[m] != 0;
        cut->cut = m;
    }
    return MS_OK;
}
