/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The orders of pipelines: rows that the papers' code writes, and what they say
 * of memory. */
#include "policies/schedule/orders.h"
#include "tests/tests.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;

static ms_schedule empty_schedule(ms_order order, const ms_orders_size *size)
{
    uint32_t p = size->ranks, v = size->chunks;
    ms_stage *stages = ms_arena_take(&arena, p * v, sizeof *stages);
    for (uint32_t k = 0; k < p * v; k++)
        stages[k].rank = ms_orders_rank(order, size, k);
    return (ms_schedule){
        .n_stages = p * v,
        .stages = stages,
        .n_ranks = (uint16_t)p,
        .n_micro_batches = size->micro_batches,
        .turn_at = ms_arena_take(&arena, p + 1, sizeof(uint32_t)),
        .turns = ms_arena_take(&arena, ms_orders_room(size), sizeof(ms_turn))};
}

static ms_schedule grouped_schedule(ms_order order, uint32_t p, uint32_t v,
                                    uint32_t m, uint32_t group)
{
    const ms_orders_size size = {p, v, m, group};
    ms_schedule schedule = empty_schedule(order, &size);
    ck_assert_msg(ms_orders_write(order, &size, &arena, &schedule, &fault) ==
                      MS_OK,
                  "%s", fault.what);
    return schedule;
}

static ms_schedule planned(ms_order order, uint32_t p, uint32_t m,
                           const ms_orders_costs *costs)
{
    const ms_orders_size size = {p, 1, m, 0};
    ms_schedule schedule = empty_schedule(order, &size);
    ck_assert_msg(
        ms_orders_plan(order, &size, costs, &arena, &schedule, &fault) == MS_OK,
        "%s", fault.what);
    return schedule;
}

static ms_schedule schedule_of(ms_order order, uint32_t p, uint32_t v,
                               uint32_t m)
{
    return grouped_schedule(order, p, v, m, 0);
}

/* A rank's row as specs and papers print it: small letters are chunk 1's. */
static char *row_of(const ms_schedule *schedule, uint32_t rank)
{
    ms_text text = {.arena = &arena};
    for (uint32_t i = schedule->turn_at[rank]; i < schedule->turn_at[rank + 1];
         i++) {
        const ms_turn *turn = &schedule->turns[i];
        bool second = turn->stage >= schedule->n_ranks;
        char letter = ms_schedule_letters[turn->kind];
        bool first = i == schedule->turn_at[rank];
        bool pairs = !first && turn[-1].pairs;
        ms_text_add(&text, "%s%c%u",
                    first   ? ""
                    : pairs ? "+"
                            : " ",
                    second ? letter + 'a' - 'A' : letter, turn->micro_batch);
    }
    return text.bytes;
}

static void expect_rows(ms_order order, uint32_t chunks, const char *const *row)
{
    ms_schedule schedule = schedule_of(order, 4, chunks, 8);
    for (uint32_t r = 0; r < 4; r++)
        ck_assert_str_eq(row_of(&schedule, r), row[r]);
    ms_arena_free(&arena);
}

/* Four ranks, eight micro-batches: Megatron-LM core_v0.11
 * (pipeline_parallel/schedules.py), sail-sg/zero-bubble@39f2c186 and PyTorch
 * (test/distributed/pipelining/artifacts). */
START_TEST(published_rows)
{
    static const char *const interleaved[] = {
        "F0 F1 F2 F3 f0 f1 f2 f3 F4 F5 F6 b0 F7 b1 f4 b2 f5 b3 f6 B0 f7 B1 B2 "
        "B3 b4 b5 b6 b7 B4 B5 B6 B7",
        "F0 F1 F2 F3 f0 f1 f2 f3 F4 b0 F5 b1 F6 b2 F7 b3 f4 B0 f5 B1 f6 B2 f7 "
        "B3 b4 b5 b6 b7 B4 B5 B6 B7",
        "F0 F1 F2 F3 f0 f1 f2 b0 f3 b1 F4 b2 F5 b3 F6 B0 F7 B1 f4 B2 f5 B3 f6 "
        "b4 f7 b5 b6 b7 B4 B5 B6 B7",
        "F0 F1 F2 F3 f0 b0 f1 b1 f2 b2 f3 b3 F4 B0 F5 B1 F6 B2 F7 B3 f4 b4 f5 "
        "b5 f6 b6 f7 b7 B4 B5 B6 B7"};
    static const char *const h1[] = {
        "F0 F1 F2 F3 I0 W0 F4 I1 W1 F5 I2 W2 F6 I3 W3 F7 I4 W4 I5 W5 I6 W6 I7 "
        "W7",
        "F0 F1 F2 I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 F6 I4 W3 F7 I5 W4 I6 W5 I7 W6 "
        "W7",
        "F0 F1 I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 F6 I5 W3 F7 I6 W4 I7 W5 W6 "
        "W7",
        "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 F6 I6 W3 F7 I7 W4 W5 W6 "
        "W7"};
    static const char *const v[] = {
        "F0 F1 F2 F3 F4 F5 F6 f0 i0 w0 f1 i1 w1 f2 i2 w2 f3 i3 w3 F7 I0 W0 f4 "
        "i4 w4 I1 W1 f5 i5 w5 I2 W2 f6 i6 w6 I3 W3 f7 i7 w7 I4 W4 I5 W5 I6 W6 "
        "I7 W7",
        "F0 F1 F2 F3 F4 f0 F5 f1 i0 w0 f2 i1 w1 f3 i2 w2 F6 I0 W0 f4 i3 w3 F7 "
        "I1 W1 f5 i4 w4 I2 W2 f6 i5 w5 I3 W3 f7 i6 w6 I4 i7 I5 W4 I6 W5 I7 W6 "
        "w7 W7",
        "F0 F1 F2 f0 F3 f1 F4 f2 i0 w0 f3 i1 w1 F5 I0 W0 f4 i2 w2 F6 I1 W1 f5 "
        "i3 w3 F7 I2 W2 f6 i4 w4 I3 W3 f7 i5 w5 I4 i6 I5 i7 I6 W4 I7 W5 w6 w7 "
        "W6 W7",
        "F0 f0 F1 f1 F2 f2 F3 f3 i0 w0 F4 I0 W0 f4 i1 w1 F5 I1 W1 f5 i2 w2 F6 "
        "I2 W2 f6 i3 w3 F7 I3 W3 f7 i4 w4 I4 i5 I5 i6 I6 i7 I7 W4 w5 w6 w7 W5 "
        "W6 W7"};
    static const char *const dual[] = {
        "F0 F1 F2 F3 F4 F5 F6 f0 i0 w0 f1 i1 w1 f2 i2 w2 f3 F7+b3 f4+B0 b4 "
        "f5+B1 b5 f6+B2 b6 f7+B3 b7 I4 W4 I5 W5 I6 W6 I7 W7",
        "F0 F1 F2 F3 F4 f0 F5 f1 i0 w0 f2 i1 w1 f3 F6+b2 f4+B0 F7+b3 f5+B1 b4 "
        "f6+B2 b5 f7+B3 b6 B4 i7 I5 w7 I6 W5 I7 W6 W7",
        "F0 F1 F2 f0 F3 f1 F4 f2 i0 w0 f3 F5+b1 f4+B0 F6+b2 f5+B1 F7+b3 f6+B2 "
        "b4 f7+B3 b5 B4 b6 I5 i7 I6 W5 I7 w7 W6 W7",
        "F0 f0 F1 f1 F2 f2 F3 f3 F4 b0 f4+B0 F5+b1 f5+B1 F6+b2 f6+B2 F7+b3 "
        "f7+B3 b4 B4 b5 B5 i6 I6 i7 I7 w6 W6 w7 W7"};
    expect_rows(MS_ORDER_DUALPIPEV, 2, dual);
    expect_rows(MS_ORDER_INTERLEAVED, 2, interleaved);
    expect_rows(MS_ORDER_ZB_H1, 1, h1);
    expect_rows(MS_ORDER_ZB_V, 2, v);
}
END_TEST

/* The authors' planner, told nothing of times and with room for p sets, finds
 * ZB-H1: "ZB-H1" of their paper's figure 3, and their fixed plan for the first
 * iterations. */
START_TEST(planned_of_even_halves)
{
    for (uint32_t p = 2; p <= 12; p++)
        for (uint32_t m = 2 * p; m <= 4 * p; m += 3) {
            ms_schedule h1 = schedule_of(MS_ORDER_ZB_H1, p, 1, m);
            ms_schedule plan = schedule_of(MS_ORDER_ZB_1P, p, 1, m);
            for (uint32_t r = 0; r < p; r++)
                ck_assert_str_eq(row_of(&plan, r), row_of(&h1, r));
            ms_arena_free(&arena);
        }
}
END_TEST

/* What a rank holds of activations, as the planner counts it, at most. */
static uint64_t most_bytes(const ms_schedule *schedule, uint32_t rank,
                           const struct ms_orders_stage *cost)
{
    uint64_t held = 0, most = 0;
    for (uint32_t i = schedule->turn_at[rank]; i < schedule->turn_at[rank + 1];
         i++) {
        uint8_t kind = schedule->turns[i].kind;
        held += kind == MS_TURN_FORWARD      ? cost->bytes
                : kind == MS_TURN_GRAD_INPUT ? cost->wait_bytes
                                             : 0;
        held -= kind == MS_TURN_GRAD_INPUT    ? cost->bytes
                : kind == MS_TURN_GRAD_WEIGHT ? cost->wait_bytes
                                              : 0;
        most = held > most ? held : most;
    }
    return most;
}

/* Whatever the times, no rank holds more than p, or 2p, sets; and each turn is
 * there once. */
START_TEST(planned_within_the_limit)
{
    uint32_t seed = 1;
    for (uint32_t trial = 0; trial < 400; trial++) {
        uint32_t drawn[64];
        for (size_t i = 0; i < 64; i++)
            drawn[i] = (seed = seed * 1664525u + 1013904223u) >> 16;
        uint32_t p = 1 + drawn[0] % 9, m = 1 + drawn[1] % 40;
        struct ms_orders_stage stages[9];
        const ms_orders_costs costs = {drawn[63] % 50, stages};
        for (uint32_t k = 0; k < p; k++) {
            const uint32_t *of = &drawn[2 + 5 * k];
            stages[k] = (struct ms_orders_stage){of[0] % 500, of[1] % 500,
                                                 of[2] % 500, of[3] % 100, 0};
            stages[k].wait_bytes = of[4] % (stages[k].bytes + 1);
        }
        for (uint32_t twice = 0; twice < 2; twice++) {
            ms_order order = twice ? MS_ORDER_ZB_2P : MS_ORDER_ZB_1P;
            ms_schedule plan = planned(order, p, m, &costs);
            for (uint32_t r = 0; r < p; r++) {
                ck_assert_uint_eq(plan.turn_at[r + 1] - plan.turn_at[r], 3 * m);
                ck_assert_uint_le(most_bytes(&plan, r, &stages[r]),
                                  (1 + twice) * p * stages[r].bytes);
            }
            ms_arena_free(&arena);
        }
    }
}
END_TEST

typedef struct most {
    uint32_t forward; /* chunks that wait for backward, or its first half */
    uint32_t weights; /* between the two halves */
    uint32_t both;
} most;

static most most_of(const ms_schedule *schedule, uint32_t rank)
{
    most now = {0}, out = {0};
    for (uint32_t i = schedule->turn_at[rank]; i < schedule->turn_at[rank + 1];
         i++) {
        uint8_t kind = schedule->turns[i].kind;
        now.forward += kind == MS_TURN_FORWARD;
        now.forward -= kind == MS_TURN_BACKWARD || kind == MS_TURN_GRAD_INPUT;
        now.weights += kind == MS_TURN_GRAD_INPUT;
        now.weights -= kind == MS_TURN_GRAD_WEIGHT;
        now.both = now.forward + now.weights;
        out.forward = now.forward > out.forward ? now.forward : out.forward;
        out.weights = now.weights > out.weights ? now.weights : out.weights;
        out.both = now.both > out.both ? now.both : out.both;
    }
    return out;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void expect_most(const char *name, const ms_schedule *schedule,
                        uint32_t rank, most law)
{
    most got = most_of(schedule, rank);
    ck_assert_msg(got.forward == law.forward && got.weights == law.weights &&
                      got.both == law.both,
                  "%s, rank %u of %u, %u micro-batches: %u, %u, %u; not %u, "
                  "%u, %u",
                  name, rank, (unsigned)schedule->n_ranks,
                  schedule->n_micro_batches, got.forward, got.weights, got.both,
                  law.forward, law.weights, law.both);
}

/* How many activation sets of a chunk a rank holds, and weight gradients wait
 * (Narayanan et al. 2021; Qi et al. 2024, table 2 and figure 5), for twice as
 * many micro-batches as ranks and more. */
START_TEST(sets_in_flight)
{
    for (uint32_t p = 1; p <= 16; p++)
        for (uint32_t m = 2 * p; m <= 6 * p; m += p)
            for (uint32_t r = 0; r < p; r++) {
                uint32_t v = 3, warm = (v - 1) * p + 2 * (p - 1 - r) + 1;
                ms_schedule s = schedule_of(MS_ORDER_GPIPE, p, 1, m);
                expect_most("gpipe", &s, r, (most){m, 0, m});
                s = schedule_of(MS_ORDER_1F1B, p, 1, m);
                expect_most("1f1b", &s, r, (most){p - r, 0, p - r});
                s = schedule_of(MS_ORDER_INTERLEAVED, p, v, m);
                warm = least(m * v, warm);
                expect_most("interleaved", &s, r, (most){warm, 0, warm});
                s = schedule_of(MS_ORDER_LOOPED_BFS, p, v, m);
                expect_most("looped-bfs", &s, r, (most){m * v, 0, m * v});
                s = schedule_of(MS_ORDER_ZB_H1, p, 1, m);
                expect_most("zb-h1", &s, r, (most){p - r, r + 1, p});
                s = schedule_of(MS_ORDER_ZB_H1, p, v, m);
                expect_most("zb-h1, chunks", &s, r,
                            (most){v * p - r, r + 1, v * p});
                s = schedule_of(MS_ORDER_ZB_H2, p, 1, m);
                uint32_t both = 2 * p - 1;
                expect_most("zb-h2", &s, r,
                            (most){2 * (p - r) - 1, 2 * r + 1, both});
                s = schedule_of(MS_ORDER_ZB_V, p, 2, m);
                most got = most_of(&s, r);
                ck_assert_uint_eq(got.forward, 2 * p);
                ck_assert_uint_eq(got.both, 2 * p);
                ms_arena_reset(&arena);
            }
    ms_arena_free(&arena);
}
END_TEST

/* The highest of all ranks. */
static most most_of_all(const ms_schedule *schedule)
{
    most all = {0};
    for (uint32_t r = 0; r < schedule->n_ranks; r++) {
        most of = most_of(schedule, r);
        all.forward = of.forward > all.forward ? of.forward : all.forward;
        all.both = of.both > all.both ? of.both : all.both;
    }
    return all;
}

/* V-half and V-min (sail-sg/zero-bubble@39f2c186, (p + 2) / 2 and (p + 4) / 3
 * micro-batches: a chunk is half of one), DualPipe and DualPipeV (p + 1
 * micro-batches; a pair has its forward's set before its backward's goes). */
START_TEST(sets_in_flight_of_v)
{
    for (uint32_t p = 1; p <= 16; p++)
        for (uint32_t m = 2 * p; m <= 6 * p; m += p) {
            ms_schedule s = schedule_of(MS_ORDER_V_HALF, p, 2, m);
            if (p > 2) {
                ck_assert_uint_eq(most_of_all(&s).both, p + 1 + (p % 2 == 0));
                s = schedule_of(MS_ORDER_V_MIN, p, 2, m);
                ck_assert_uint_eq(most_of_all(&s).both,
                                  (2 * p / 3 + 3) / 2 * 2);
            }
            s = schedule_of(MS_ORDER_DUALPIPEV, p, 2, m);
            for (uint32_t r = 0; r < p; r++)
                expect_most("dualpipev", &s, r,
                            (most){2 * p + 1, r + 1, 2 * p + 1});
            if (p % 2 == 0 && m % 2 == 0) {
                s = schedule_of(MS_ORDER_DUALPIPE, p, 1, m);
                for (uint32_t r = 0; r < p; r++)
                    expect_most("dualpipe", &s, r,
                                (most){p + 1, least(r, p - 1 - r) + 1, p + 1});
            }
            ms_arena_reset(&arena);
        }
    ms_arena_free(&arena);
}
END_TEST

/* Groups of g micro-batches (Megatron-LM's
 * microbatch_group_size_per_virtual_pipeline_stage): (v - 1) g + 2 (p - 1 - r)
 * + 1 sets, and each chunk runs all micro-batches in their order. */
START_TEST(groups)
{
    for (uint32_t p = 2; p <= 6; p++)
        for (uint32_t g = p; g <= 3 * p; g++)
            for (uint32_t m = g; m <= 4 * p; m++) {
                if (m % g != 0 && m % g < p)
                    continue;
                ms_schedule s =
                    grouped_schedule(MS_ORDER_INTERLEAVED, p, 3, m, g);
                for (uint32_t r = 0; r < p; r++) {
                    uint32_t warm = 2 * g + 2 * (p - 1 - r) + 1;
                    warm = least(3 * m, warm);
                    expect_most("groups", &s, r, (most){warm, 0, warm});
                }
                ms_arena_reset(&arena);
            }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_orders(void)
{
    Suite *suite = suite_create("orders");
    TCase *tcase = tcase_create("orders");
    tcase_add_test(tcase, published_rows);
    tcase_add_test(tcase, planned_of_even_halves);
    tcase_add_test(tcase, planned_within_the_limit);
    tcase_add_test(tcase, sets_in_flight);
    tcase_add_test(tcase, sets_in_flight_of_v);
    tcase_add_test(tcase, groups);
    suite_add_tcase(suite, tcase);
    return suite;
}
