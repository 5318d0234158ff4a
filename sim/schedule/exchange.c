/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/exchange.h"

#include <stdio.h>

/* What a rank sends and receives together, while this is not over. */
typedef struct together {
    ms_deeds receives, sends;
    uint32_t n_turns; /* that the rank took in this round */
} together;

typedef struct exchange {
    const ms_schedule *schedule;
    const ms_handovers *handovers;
    ms_deeds *deeds;
    uint32_t *next;     /* per rank: the turn that comes next */
    uint8_t *state;     /* per handover and micro-batch: MADE, ROOM */
    together *together; /* per rank; NULL: messages stand alone */
} exchange;

enum { MADE = 1, ROOM = 2 };

static uint8_t *state(const exchange *x, uint32_t handover,
                      uint32_t micro_batch)
{
    return &x->state[(size_t)handover * x->schedule->n_micro_batches +
                     micro_batch];
}

static void put(exchange *x, uint32_t rank, uint8_t kind, uint32_t what,
                uint32_t micro_batch)
{
    ms_deeds *deeds = &x->deeds[rank];
    deeds->all[deeds->n++] = (ms_deed){what, micro_batch, kind};
}

static uint32_t rank_of(const exchange *x, uint32_t stage, uint32_t micro_batch)
{
    return ms_schedule_rank(x->schedule, stage, micro_batch);
}

/* The handover for which a turn still waits, or MS_NONE. */
static uint32_t awaited(const exchange *x, const ms_turn *turn)
{
    const ms_handovers *h = x->handovers;
    for (uint32_t i = h->in_at[turn->stage]; i < h->in_at[turn->stage + 1]; i++)
        if (ms_handover_is_of(&h->all[h->in[i]], turn->kind) &&
            !(*state(x, h->in[i], turn->micro_batch) & MADE))
            return h->in[i];
    return MS_NONE;
}

static void receive(exchange *x, uint32_t rank, uint32_t handover,
                    uint32_t micro_batch)
{
    uint8_t *of = state(x, handover, micro_batch);
    if (!x->handovers->all[handover].local && !(*of & ROOM))
        put(x, rank, MS_DEED_RECEIVE, handover, micro_batch);
    *of |= ROOM;
}

/* Room for what a turn of the rank reads, if it has that turn. */
static void receive_for(exchange *x, uint32_t rank, uint32_t i)
{
    const ms_handovers *h = x->handovers;
    if (i >= x->schedule->turn_at[rank + 1])
        return;
    const ms_turn *turn = &x->schedule->turns[i];
    for (uint32_t k = h->in_at[turn->stage]; k < h->in_at[turn->stage + 1]; k++)
        if (ms_handover_is_of(&h->all[h->in[k]], turn->kind))
            receive(x, rank, h->in[k], turn->micro_batch);
}

static void send(exchange *x, uint32_t rank, const ms_turn *turn)
{
    const ms_handovers *h = x->handovers;
    bool early = x->schedule->receives != MS_RECEIVE_NEXT;
    for (uint32_t i = h->out_at[turn->stage]; i < h->out_at[turn->stage + 1];
         i++) {
        const ms_handover *it = &h->all[h->out[i]];
        if (!ms_handover_is_of(it, turn->kind))
            continue;
        *state(x, h->out[i], turn->micro_batch) |= MADE;
        if (!it->local)
            put(x, rank, MS_DEED_SEND, h->out[i], turn->micro_batch);
        bool skips = it->to != it->from + 1 && it->from != it->to + 1;
        if (early || skips)
            receive(x, rank_of(x, it->to, turn->micro_batch), h->out[i],
                    turn->micro_batch);
    }
}

/* How many turns are one from this on. */
static uint32_t length_of(const exchange *x, uint32_t i)
{
    const ms_turn *turn = &x->schedule->turns[i];
    return turn->pairs || (turn->joins && x->together != NULL) ? 2 : 1;
}

/* The first handover for which turns that are one still wait, or MS_NONE. */
static uint32_t awaited_from(const exchange *x, uint32_t i)
{
    uint32_t first = awaited(x, &x->schedule->turns[i]);
    if (first != MS_NONE || length_of(x, i) == 1)
        return first;
    return awaited(x, &x->schedule->turns[i + 1]);
}

/* A pair begins when what its second turn reads has come, too. */
static void wait_for(exchange *x, uint32_t rank, const ms_turn *turn)
{
    const ms_handovers *h = x->handovers;
    for (uint32_t k = h->in_at[turn->stage]; k < h->in_at[turn->stage + 1]; k++)
        if (ms_handover_is_of(&h->all[h->in[k]], turn->kind) &&
            !h->all[h->in[k]].local)
            put(x, rank, MS_DEED_WAIT, h->in[k], turn->micro_batch);
}

/* Room for what comes with turn i, before its sender comes to it. */
static void receive_behind(exchange *x, uint32_t rank, uint32_t i)
{
    if (x->schedule->receives == MS_RECEIVE_IN_LINE)
        return;
    receive_for(x, rank, i);
    if (i < x->schedule->turn_at[rank + 1] && length_of(x, i) == 2)
        receive_for(x, rank, i + 1);
}

/* The host waits for what the turn i reads, and for what was sent. */
static void wait_behind(exchange *x, uint32_t rank, uint32_t i, bool sent)
{
    uint32_t before = x->deeds[rank].n;
    if (i < x->schedule->turn_at[rank + 1])
        wait_for(x, rank, &x->schedule->turns[i]);
    if (sent || x->deeds[rank].n > before)
        put(x, rank, MS_DEED_SYNC, 0,
            x->deeds[rank].all[x->deeds[rank].n - 1].micro_batch);
}

/* Do these turns send what the rank is handed again for the turn behind them?
 * It has no room for that before it has sent it. */
static bool comes_back(const exchange *x, uint32_t rank, uint32_t i, uint32_t n)
{
    const ms_handovers *h = x->handovers;
    uint32_t end = x->schedule->turn_at[rank + 1];
    const ms_turn *turns = x->schedule->turns, *behind = &turns[i + n];
    for (const ms_turn *it = &turns[i]; i + n < end && it < behind; it++)
        for (uint32_t k = h->out_at[it->stage]; k < h->out_at[it->stage + 1];
             k++)
            if (h->all[h->out[k]].returns &&
                (it->micro_batch == behind->micro_batch ||
                 (behind->pairs && it->micro_batch == behind[1].micro_batch)))
                return true;
    return false;
}

/* The rank's next turn, or pair, if all that it reads is made; returns how many
 * turns that is. */
static uint32_t take_turn(exchange *x, uint32_t rank)
{
    uint32_t i = x->next[rank];
    if (i == x->schedule->turn_at[rank + 1] || awaited_from(x, i) != MS_NONE)
        return 0;
    const ms_turn *turn = &x->schedule->turns[i];
    uint32_t n = length_of(x, i);
    bool early = x->schedule->receives != MS_RECEIVE_NEXT;
    bool late = early && comes_back(x, rank, i, n);
    if (early && !late)
        receive_behind(x, rank, i + n);
    if (n == 2 && x->schedule->sides) /* either may be issued first */
        wait_for(x, rank, turn);
    if (n == 2)
        wait_for(x, rank, turn + 1);
    for (uint32_t k = 0; k < n; k++)
        put(x, rank, MS_DEED_TURN, i + k, turn[k].micro_batch);
    x->next[rank] += n;
    if (!early)
        receive_behind(x, rank, i + n);
    uint32_t before = x->deeds[rank].n;
    for (uint32_t k = 0; k < n; k++)
        send(x, rank, &turn[k]);
    if (late)
        receive_behind(x, rank, i + n);
    if (x->schedule->waits)
        wait_behind(x, rank, i + n, x->deeds[rank].n > before);
    return n;
}

/* ---- messages that are exchanged together -------------------------------- */

static void append(ms_deeds *to, uint8_t kind, const ms_deed *deed)
{
    to->all[to->n++] = (ms_deed){deed->what, deed->micro_batch, kind};
}

/* The exchange of a rank is over: room for all that comes in it is made first,
 * as of one batch of calls, and all of it is waited for. */
static void close_exchange(exchange *x, uint32_t rank)
{
    together *it = &x->together[rank];
    ms_deeds *deeds = &x->deeds[rank];
    for (uint32_t i = 0; i < it->receives.n; i++)
        append(deeds, MS_DEED_RECEIVE, &it->receives.all[i]);
    for (uint32_t i = 0; i < it->sends.n; i++)
        append(deeds, MS_DEED_SEND, &it->sends.all[i]);
    for (uint32_t i = 0; i < it->receives.n; i++)
        append(deeds, MS_DEED_WAIT, &it->receives.all[i]);
    if (it->receives.n + it->sends.n > 0)
        append(deeds, MS_DEED_SYNC, &deeds->all[deeds->n - 1]);
    it->receives.n = it->sends.n = 0;
}

/* The rank that reads it takes it in the exchange that it is in. */
static void send_together(exchange *x, uint32_t rank, const ms_turn *turn)
{
    const ms_handovers *h = x->handovers;
    for (uint32_t i = h->out_at[turn->stage]; i < h->out_at[turn->stage + 1];
         i++) {
        const ms_handover *it = &h->all[h->out[i]];
        const ms_deed deed = {h->out[i], turn->micro_batch, MS_DEED_SEND};
        if (!ms_handover_is_of(it, turn->kind))
            continue;
        *state(x, deed.what, deed.micro_batch) |= MADE;
        if (it->local)
            continue;
        uint32_t to = rank_of(x, it->to, turn->micro_batch);
        append(&x->together[rank].sends, MS_DEED_SEND, &deed);
        append(&x->together[to].receives, MS_DEED_RECEIVE, &deed);
    }
}

/* Does the rank send what it is handed again?  That comes in another exchange,
 * since it has no room for it before it has sent it. */
static bool is_returned(const exchange *x, uint32_t rank)
{
    const together *it = &x->together[rank];
    for (uint32_t i = 0; i < it->sends.n; i++)
        if (x->handovers->all[it->sends.all[i].what].returns)
            return true;
    return false;
}

/* The rank's next turns, if all that they read has come in exchanges before:
 * the one that it is in is over. */
static uint32_t take_joined(exchange *x, uint32_t rank)
{
    uint32_t i = x->next[rank];
    together *it = &x->together[rank];
    it->n_turns = 0;
    if (i == x->schedule->turn_at[rank + 1] || awaited_from(x, i) != MS_NONE)
        return 0;
    close_exchange(x, rank);
    it->n_turns = length_of(x, i);
    for (uint32_t k = i; k < i + it->n_turns; k++)
        put(x, rank, MS_DEED_TURN, k, x->schedule->turns[k].micro_batch);
    x->next[rank] += it->n_turns;
    return it->n_turns;
}

/* All ranks take their turns, then they exchange, those that wait as well:
 * both ends of a message are in exchanges that are open in the same round, so
 * that none waits for another for ever.  Returns how many turns these are. */
static uint32_t take_round(exchange *x)
{
    uint32_t n = 0, ranks = x->schedule->n_ranks;
    for (uint32_t r = 0; r < ranks; r++)
        n += take_joined(x, r);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t k = x->together[r].n_turns; k > 0; k--)
            send_together(x, r, &x->schedule->turns[x->next[r] - k]);
    for (uint32_t r = 0; r < ranks; r++)
        if (is_returned(x, r))
            close_exchange(x, r);
    return n;
}

/* ---- all of them --------------------------------------------------------- */

static void tell(const exchange *x, uint32_t rank, char *words, size_t size)
{
    const ms_turn *turn = &x->schedule->turns[x->next[rank]];
    snprintf(words, size, "rank %u at %u%c%u", rank, turn->stage,
             ms_schedule_letters[turn->kind], turn->micro_batch);
}

/* From any rank that is left the way leads into a circle, or to a turn that
 * comes later on the same rank. */
static ms_err fail_circle(const exchange *x, ms_fault *fault)
{
    char one[48], other[48];
    uint32_t rank = 0, then = 0;
    while (x->next[rank] == x->schedule->turn_at[rank + 1])
        rank++;
    for (uint32_t i = 0; i <= x->schedule->n_ranks; i++) {
        uint32_t next = x->next[rank], row = awaited_from(x, next);
        const ms_turn *turn = &x->schedule->turns[next];
        turn += awaited(x, turn) == MS_NONE;
        then = rank;
        rank = rank_of(x, x->handovers->all[row].from, turn->micro_batch);
    }
    tell(x, then, one, sizeof one);
    tell(x, rank, other, sizeof other);
    const char *name = x->schedule->name;
    return ms_fail(fault, MS_EINPUT, name != NULL ? name : "schedule",
                   "let one of the two run first what the other waits for",
                   "a deadlock: %s waits for %s, which waits for it in turn",
                   one, other);
}

/* Each exchange ends with one deed more than its messages. */
static ms_err take_together(exchange *x, size_t *room, ms_arena *arena,
                            ms_fault *fault)
{
    uint32_t n = x->schedule->n_ranks;
    if (x->schedule->receives != MS_RECEIVE_TOGETHER)
        return MS_OK;
    x->together = ms_arena_take(arena, n, sizeof *x->together);
    if (x->together == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < n; r++) {
        together *it = &x->together[r];
        it->receives.all = ms_arena_take_raw(arena, room[r], sizeof(ms_deed));
        it->sends.all = ms_arena_take_raw(arena, room[r], sizeof(ms_deed));
        if (!it->receives.all || !it->sends.all)
            return ms_fail_nomem(fault);
        room[r] *= 2;
    }
    return MS_OK;
}

static ms_err take_rooms(exchange *x, ms_arena *arena, ms_fault *fault)
{
    const ms_schedule *schedule = x->schedule;
    const ms_handovers *h = x->handovers;
    uint32_t n = schedule->n_ranks;
    x->deeds = ms_arena_take(arena, n, sizeof *x->deeds);
    x->next = ms_arena_take(arena, n, sizeof *x->next);
    x->state =
        ms_arena_take(arena, (size_t)h->n * schedule->n_micro_batches + 1, 1);
    size_t *room = ms_arena_take(arena, n, sizeof *room);
    if (!x->deeds || !x->next || !x->state || !room)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < h->n; i++)
        for (uint32_t m = 0; m < schedule->n_micro_batches; m++) {
            room[rank_of(x, h->all[i].from, m)]++;
            room[rank_of(x, h->all[i].to, m)] += 2; /* and a wait */
        }
    MS_TRY(take_together(x, room, arena, fault));
    for (uint32_t r = 0; r < n; r++) {
        x->next[r] = schedule->turn_at[r];
        uint32_t n_turns = schedule->turn_at[r + 1] - schedule->turn_at[r];
        room[r] += schedule->waits ? 2 * n_turns + 1 : n_turns;
        x->deeds[r].all =
            ms_arena_take_raw(arena, room[r], sizeof *x->deeds[r].all);
        if (x->deeds[r].all == NULL)
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

/* Ranks take turns in rounds, as they would if each turn took as long. */
ms_err ms_exchange_write(const ms_schedule *schedule,
                         const ms_handovers *handovers, ms_arena *arena,
                         ms_deeds **deeds, ms_fault *fault)
{
    exchange x = {.schedule = schedule, .handovers = handovers};
    uint32_t left = schedule->turn_at[schedule->n_ranks];
    MS_TRY(take_rooms(&x, arena, fault));
    for (uint32_t r = 0; r < schedule->n_ranks && x.together == NULL; r++) {
        receive_behind(&x, r, schedule->turn_at[r]);
        if (schedule->waits)
            wait_behind(&x, r, schedule->turn_at[r], false);
    }
    while (left > 0) {
        uint32_t before = left;
        if (x.together != NULL)
            left -= take_round(&x);
        for (uint32_t r = 0; r < schedule->n_ranks && x.together == NULL; r++)
            left -= take_turn(&x, r);
        if (left == before)
            return fail_circle(&x, fault);
    }
    for (uint32_t r = 0; r < schedule->n_ranks && x.together != NULL; r++)
        close_exchange(&x, r);
    *deeds = x.deeds;
    return MS_OK;
}
