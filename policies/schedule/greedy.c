/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/greedy.h"
#include "policies/schedule/orderrow.h"

#include <string.h>

enum { F, I, W, N_KINDS };

/* Without costs: a thousandth of a half, and sets of one byte. */
#define EVEN_NS 1000
#define EVEN_MESSAGE_NS 1

/* A rank of the plan under way. */
typedef struct lane {
    int64_t ns[N_KINDS];    /* of a turn */
    int64_t bytes[N_KINDS]; /* that a turn adds; less than 0: frees */
    int64_t limit, held;
    int64_t now, wait;     /* its clock; how long it has waited */
    uint32_t n[N_KINDS];   /* turns that have run */
    int64_t *end[N_KINDS]; /* per micro-batch */
    uint8_t *row;          /* kinds, in their order */
    uint32_t length, asked;
} lane;

typedef struct plan {
    uint32_t p, m;
    int64_t message_ns, most_wait; /* of any lane */
    lane *lanes;
    bool eager, back_first, fills; /* the variant */
} plan;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When what a turn of the lane reads has come; 0: it is the lane's own. */
static int64_t comes(const plan *it, uint32_t j, uint32_t kind)
{
    uint32_t k = it->lanes[j].n[kind];
    if (kind == F && j > 0)
        return it->lanes[j - 1].end[F][k] + it->message_ns;
    if (kind == I && j + 1 < it->p)
        return it->lanes[j + 1].end[I][k] + it->message_ns;
    return 0;
}

static void put(plan *it, uint32_t j, uint32_t kind)
{
    lane *on = &it->lanes[j];
    int64_t from = later(on->now, comes(it, j, kind));
    if (on->n[F] > 0)
        on->wait += from - on->now;
    it->most_wait = later(it->most_wait, on->wait);
    on->now = from + on->ns[kind];
    on->held += on->bytes[kind];
    on->end[kind][on->n[kind]++] = on->now;
    on->row[on->length++] = (uint8_t)kind;
}

static bool has_weights(const lane *on)
{
    return on->n[W] < on->n[I];
}

/* Halves of weights until a turn's bytes are free. */
static void make_room(plan *it, uint32_t j, uint32_t kind)
{
    lane *on = &it->lanes[j];
    while (on->held + on->bytes[kind] > on->limit && has_weights(on))
        put(it, j, W);
}

/* Halves of weights until what the next turn reads has come. */
static void fill(plan *it, uint32_t j, uint32_t kind)
{
    lane *on = &it->lanes[j];
    int64_t when = comes(it, j, kind);
    while (has_weights(on) && on->now + on->ns[W] <= when)
        put(it, j, W);
    if (has_weights(on) && on->now < when &&
        (it->fills || when - on->now > it->most_wait - on->wait))
        put(it, j, W);
}

/* ---- the first backward -------------------------------------------------- */

/* How many forwards more a lane has time and room for before `back`. */
static uint32_t forwards_until(const plan *it, uint32_t j, int64_t back,
                               int64_t *now)
{
    const lane *on = &it->lanes[j];
    int64_t held = on->held;
    uint32_t n = 0;
    *now = on->now;
    while (on->n[F] + n < it->m && held + on->bytes[F] <= on->limit &&
           (it->eager ? *now + on->ns[F] <= back : *now < back)) {
        held += on->bytes[F];
        *now += on->ns[F];
        n++;
    }
    return n;
}

static void warm_up(plan *it)
{
    lane *lanes = it->lanes;
    uint32_t last = it->p - 1;
    for (uint32_t j = 0; j < it->p; j++)
        put(it, j, F);
    int64_t back = lanes[last].now + lanes[last].ns[I], now;
    lanes[last].asked = 0;
    for (uint32_t j = last; j-- > 0;) {
        lanes[j].asked = forwards_until(it, j, back + it->message_ns, &now);
        back = later(now, back + it->message_ns) + lanes[j].ns[I];
    }
    for (uint32_t j = 1; j < it->p; j++) {
        uint32_t before = lanes[j - 1].asked;
        while (lanes[j].asked > 0 && lanes[j].asked >= before &&
               lanes[j].n[F] + lanes[j].asked < it->m)
            lanes[j].asked--;
        if (lanes[j].asked > before) /* they have to come from there */
            lanes[j].asked = before;
    }
    for (uint32_t j = 0; j < it->p; j++)
        for (uint32_t n = 0; n < lanes[j].asked; n++)
            put(it, j, F);
    for (uint32_t j = it->p; j-- > 0;)
        put(it, j, I);
}

/* ---- the others ---------------------------------------------------------- */

/* Would a forward of lane j hold up the backward of the next one? */
static bool holds_up(const plan *it, uint32_t j)
{
    const lane *on = &it->lanes[j], *next = on + 1;
    if (j + 1 == it->p || !it->back_first || on->n[F] < next->n[F] + 2)
        return false;
    int64_t back = next->now + next->ns[F] + next->ns[I] + it->message_ns;
    int64_t held = on->held + on->bytes[F], now = on->now + on->ns[F];
    if (on->now >= back)
        return true;
    for (uint32_t w = on->n[W]; held > on->limit && w < on->n[I]; w++) {
        held += on->bytes[W];
        now += on->ns[W];
    }
    return now > back && back - on->now <= it->most_wait - on->wait;
}

static void put_forwards(plan *it)
{
    lane *lanes = it->lanes;
    for (uint32_t j = 0; j < it->p; j++)
        lanes[j].asked = lanes[j].n[F] < it->m && !holds_up(it, j);
    for (uint32_t j = it->p - 1; j-- > 0;)
        lanes[j].asked &= lanes[j + 1].asked;
    for (uint32_t j = 0; j < it->p; j++) {
        if (!lanes[j].asked)
            continue;
        make_room(it, j, F);
        if (j > 0)
            fill(it, j, F);
        put(it, j, F);
    }
}

static void put_backwards(plan *it)
{
    for (uint32_t j = it->p; j-- > 0;) {
        make_room(it, j, I);
        if (j + 1 < it->p)
            fill(it, j, I);
        while (j == 0 && it->lanes[0].n[F] == it->m && has_weights(it->lanes))
            put(it, 0, W);
        put(it, j, I);
    }
}

/* How long the longest rank takes from its first turn to its last. */
static int64_t run(plan *it)
{
    int64_t longest = 0;
    warm_up(it);
    for (uint32_t i = 1; i < it->m; i++) {
        put_forwards(it);
        put_backwards(it);
    }
    for (uint32_t j = 0; j < it->p; j++) {
        lane *on = &it->lanes[j];
        while (on->n[W] < it->m)
            put(it, j, W);
        longest = later(longest, on->now - on->end[F][0] + on->ns[F]);
    }
    return longest;
}

/* ---- variants ------------------------------------------------------------ */

static void begin(plan *it, ms_order order, const ms_orders_costs *costs)
{
    const struct ms_orders_stage even = {EVEN_NS, EVEN_NS, EVEN_NS, 1, 1};
    int64_t sets = order == MS_ORDER_ZB_1P ? it->p : 2 * (int64_t)it->p;
    bool known = costs->stages != NULL;
    it->message_ns = known ? (int64_t)costs->message_ns : EVEN_MESSAGE_NS;
    it->most_wait = 0;
    for (uint32_t j = 0; j < it->p; j++) {
        const struct ms_orders_stage *cost = known ? &costs->stages[j] : &even;
        int64_t bytes = (int64_t)cost->bytes, wait = (int64_t)cost->wait_bytes;
        lane *on = &it->lanes[j];
        on->ns[F] = (int64_t)cost->forward_ns;
        on->ns[I] = (int64_t)cost->input_ns;
        on->ns[W] = (int64_t)cost->weight_ns;
        on->bytes[F] = bytes;
        on->bytes[I] = wait - bytes;
        on->bytes[W] = -wait;
        on->limit = sets * bytes;
        on->held = on->now = on->wait = 0;
        on->length = 0;
        memset(on->n, 0, sizeof on->n);
    }
}

static ms_err take_lanes(plan *it, ms_arena *arena, ms_fault *fault)
{
    it->lanes = ms_arena_take(arena, it->p, sizeof *it->lanes);
    for (uint32_t j = 0; it->lanes != NULL && j < it->p; j++) {
        lane *on = &it->lanes[j];
        on->row = ms_arena_take(arena, (size_t)N_KINDS * it->m, 1);
        for (uint32_t kind = 0; kind < N_KINDS; kind++)
            on->end[kind] = ms_arena_take(arena, it->m, sizeof(int64_t));
        if (!on->row || !on->end[F] || !on->end[I] || !on->end[W])
            return ms_fail_nomem(fault);
    }
    return it->lanes != NULL ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_greedy_write(ms_order order, const ms_orders_size *size,
                       const ms_orders_costs *costs, ms_arena *arena,
                       ms_schedule *schedule, ms_fault *fault)
{
    static const ms_turn_kind kinds[] = {MS_TURN_FORWARD, MS_TURN_GRAD_INPUT,
                                         MS_TURN_GRAD_WEIGHT};
    plan it = {.p = size->ranks, .m = size->micro_batches};
    size_t turns = (size_t)N_KINDS * it.m;
    int64_t best = INT64_MAX;
    MS_TRY(take_lanes(&it, arena, fault));
    uint8_t *rows = ms_arena_take(arena, turns * it.p, 1);
    if (rows == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t variant = 0; variant < 8; variant++) {
        it.eager = !(variant & 4u);
        it.back_first = !(variant & 2u);
        it.fills = !(variant & 1u);
        begin(&it, order, costs);
        int64_t longest = run(&it);
        if (longest >= best)
            continue;
        best = longest;
        for (uint32_t j = 0; j < it.p; j++)
            memcpy(rows + turns * j, it.lanes[j].row, turns);
    }
    for (uint32_t r = 0; r < it.p; r++) {
        ms_orderrow row = {
            .size = size, .order = order, .rank = r, .schedule = schedule};
        schedule->turn_at[r + 1] = schedule->turn_at[r];
        for (size_t i = 0; i < turns; i++)
            ms_orderrow_next(&row, kinds[rows[turns * r + i]], 0);
    }
    return MS_OK;
}
