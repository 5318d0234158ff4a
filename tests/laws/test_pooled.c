/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps through pools: a pool hands out what the exact pool does, rounded
 * up, and it reserves no less. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/pools/place/placement.h"
#include "sim/pools/steps/pooled.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#include <string.h>

#define N_TRIALS 600u
#define ROOM (UINT64_C(1) << 40)
#define SMALL_MOST (UINT64_C(1) << 20)

typedef struct step {
    ms_graph graph;
    ms_program program;
    ms_plan plan;
    ms_timeline line;
    ms_machine machine;
} step;

static ms_arena arena;

static void open_step(step *of, uint64_t seed)
{
    ms_fault fault = {0};
    laws_random random = {seed};
    ms_keep keep;
    ms_expand_opts opts = {
        .h2d_bytes_per_s = 1e10, .d2h_bytes_per_s = 2e10, .copy_ns = 7};
    laws_seed = seed;
    laws_graph(&random, &arena, &of->graph);
    laws_keep(&random, &of->graph, &arena, &keep);
    MUST(ms_defaultprogram_alone(&of->graph, &keep, 1 + laws_below(&random, 3),
                                 &arena, &of->program, &fault));
    laws_moves(&random, &of->graph, &arena, &of->program);
    of->machine = (ms_machine){.launch_ns = laws_below(&random, 40),
                               .capacity_bytes = ROOM};
    laws_framework(&of->machine);
    MUST(ms_expand(&of->graph, &of->program, &opts, &arena, &of->plan, &fault));
    MUST(ms_replay(&of->plan, &of->machine, &arena, &of->line, &fault));
}

static const ms_heap_options torch;

static const ms_pooled_rank *run_kind(step *of, ms_heap_options heap,
                                      uint32_t steps, uint64_t total_bytes)
{
    ms_fault fault = {0};
    ms_pooled_setup setup = {.heap = heap, .steps = steps};
    ms_torch_setup_init(&setup.torch, total_bytes);
    MUST(ms_pooled_run(&setup, NULL, &of->machine, &arena, &of->line, &fault));
    return &of->line.pooled->ranks[0];
}

static const ms_pooled_rank *run(step *of, uint32_t steps, uint64_t total_bytes)
{
    return run_kind(of, torch, steps, total_bytes);
}

/* The highest level where each row takes whole quanta. *exact: no row is of
 * the large pool, whose blocks may be larger than the request. */
static uint64_t rounded_peak(const step *of, bool *exact)
{
    const ms_timeline *line = &of->line;
    uint64_t level = 0, peak = 0;
    *exact = true;
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_row *row = &of->plan.row[line->events[e].row];
        uint64_t bytes = (row->bytes + 511) / 512 * 512;
        if (row->pool != MS_DEVICE_POOL)
            continue;
        *exact &= row->bytes <= SMALL_MOST;
        level += line->events[e].op_act & 1u ? bytes : 0 - bytes;
        peak = level > peak ? level : peak;
    }
    return peak;
}

static void check_order(const ms_pooled_rank *rank)
{
    const struct ms_pooled_moment *at = &rank->at_peak;
    LAW(rank->reserved_peak_bytes >= rank->active_peak_bytes);
    LAW(rank->active_peak_bytes >= rank->allocated_peak_bytes);
    LAW(rank->active_peak_bytes >= rank->requested_peak_bytes);
    LAW(at->op == MS_NONE || at->allocated_bytes == rank->allocated_peak_bytes);
    LAW(at->reserved_bytes <= rank->reserved_peak_bytes);
    LAW(at->idle_bytes + at->allocated_bytes <= at->reserved_bytes);
    LAW(at->usable_bytes <= at->idle_bytes);
    LAW(at->largest_idle_bytes <= at->idle_bytes);
}

static void check_raises(const ms_timeline *line)
{
    uint64_t last_bytes = 0;
    for (uint32_t i = 0; i < line->n_raises; i++) {
        LAW(line->raises[i].reserved_bytes > last_bytes);
        last_bytes = line->raises[i].reserved_bytes;
    }
    LAW(last_bytes == line->ranks[0].reserved_peak_bytes);
}

START_TEST(hands_out_what_is_asked_for)
{
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        step of = {0};
        bool exact;
        open_step(&of, seed);
        uint64_t rounded_bytes = rounded_peak(&of, &exact);
        uint64_t active_bytes = of.line.ranks[0].active_peak_bytes;
        const ms_pooled_rank *rank = run(&of, 1, ROOM);
        LAW(!of.line.pooled->oom);
        LAW(rank->requested_peak_bytes == active_bytes);
        LAW(rank->allocated_peak_bytes >= rounded_bytes);
        LAW(!exact || rank->allocated_peak_bytes == rounded_bytes);
        check_order(rank);
        check_raises(&of.line);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* From the second step on nothing new is needed: the third step equals the
 * second and asks the device for no memory. */
START_TEST(steady_steps_are_steady)
{
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        step of = {0};
        bool exact;
        open_step(&of, seed);
        uint64_t rounded_bytes = rounded_peak(&of, &exact);
        ms_pooled_rank one = *run(&of, 1, ROOM);
        ms_pooled_rank four = *run(&of, 4, ROOM);
        LAW(four.reserved_peak_bytes >= one.reserved_peak_bytes);
        LAW(!exact || four.allocated_peak_bytes == rounded_bytes);
        check_order(&four);
        check_raises(&of.line);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* A course whose steps are all equal gives the same as no course; each step
 * tells what its ranks do. */
START_TEST(a_course_is_its_steps)
{
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        step of = {0};
        ms_fault fault = {0};
        open_step(&of, seed);
        ms_pooled_setup setup = {.steps = 3};
        const ms_pooled_kind kinds[] = {{.line = &of.line}, {.line = &of.line}};
        const ms_pooled_course course = {.kinds = kinds, .n = 2};
        ms_torch_setup_init(&setup.torch, ROOM);
        ms_pooled_rank plain = *run(&of, 3, ROOM);
        MUST(ms_pooled_run(&setup, &course, &of.machine, &arena, &of.line,
                           &fault));
        const ms_pooled *pooled = of.line.pooled;
        LAW(memcmp(&plain, &pooled->ranks[0], sizeof plain) == 0);
        uint64_t most_bytes = 0, calls = 0;
        for (uint32_t k = 0; k < 3; k++) {
            const ms_pooled_step *it = &pooled->steps[k * pooled->n_ranks];
            LAW(it->reserved_peak_bytes >= it->allocated_peak_bytes);
            LAW(it->reserved_peak_bytes >= it->reserved_bytes);
            LAW(it->retries == 0 && it->device_frees == 0);
            LAW(it->reserved_bytes >= most_bytes);
            most_bytes = it->reserved_peak_bytes;
            calls += it->device_allocs;
        }
        LAW(most_bytes == plain.reserved_most_bytes);
        LAW(calls == plain.segments);
        setup.brief = true;
        MUST(ms_pooled_run(&setup, &course, &of.machine, &arena, &of.line,
                           &fault));
        LAW(of.line.pooled->ranks[0].reserved_peak_bytes ==
            plain.reserved_peak_bytes);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

/* On a device with just what was reserved the same happens. On a smaller one
 * memory runs out or the cache is emptied, and all else stays as on a large
 * one. */
START_TEST(a_small_device_runs_out)
{
    uint32_t n_out = 0;
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        step of = {0};
        open_step(&of, seed);
        ms_pooled_rank room = *run(&of, 2, ROOM);
        ms_pooled_rank same = *run(&of, 2, room.reserved_peak_bytes);
        LAW(memcmp(&room, &same, sizeof room) == 0);
        LAW(!of.line.pooled->oom && of.line.lack.missing_bytes == 0);
        ms_pooled_rank less = *run(&of, 2, room.reserved_peak_bytes / 2);
        const ms_pooled *pooled = of.line.pooled;
        LAW(pooled->oom || less.reserved_peak_bytes < room.reserved_peak_bytes);
        LAW(!pooled->oom || memcmp(&room, &less, sizeof room) == 0);
        LAW(!pooled->oom || pooled->lack.requested_bytes > 0);
        LAW(!pooled->oom || of.line.lack.op < of.plan.n_ops);
        n_out += pooled->oom;
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(n_out, N_TRIALS / 2);
    ms_arena_free(&arena);
}
END_TEST

/* Other kinds of pools: contiguous takes what is requested; buddy at most
 * doubles it, or takes its smallest block; an arena has a place for all that
 * is live. */
static const ms_heap_options kinds[] = {
    {.kind = MS_POOL_BFC, .allow_growth = true},
    {.kind = MS_POOL_BUDDY, .least_bytes = 1},
    {.kind = MS_POOL_CONTIGUOUS},
    {.kind = MS_POOL_ARENA, .order = MS_PLACEMENT_START},
    {.kind = MS_POOL_ARENA, .order = MS_PLACEMENT_N_RULES}};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static void check_kind(const step *of, uint8_t kind, const ms_pooled_rank *rank)
{
    uint64_t asked = of->line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes;
    LAW(!of->line.pooled->oom);
    LAW(rank->allocated_peak_bytes >= asked);
    LAW(kind != MS_POOL_CONTIGUOUS || rank->allocated_peak_bytes == asked);
    LAW(kind != MS_POOL_BUDDY || rank->allocated_peak_bytes <= 2 * asked);
    LAW(kind != MS_POOL_CONTIGUOUS ||
        rank->reserved_peak_bytes - rank->active_peak_bytes < 2 * SMALL_MOST);
    check_order(rank);
    check_raises(&of->line);
}

START_TEST(other_kinds)
{
    ms_heap_options heap = kinds[_i];
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        step of = {0};
        open_step(&of, seed);
        uint64_t active_bytes = of.line.ranks[0].active_peak_bytes;
        uint64_t asked_bytes = of.line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes;
        uint32_t steps =
            heap.kind == MS_POOL_ARENA ? 1 : 1 + (uint32_t)seed % 3;
        ms_pooled_rank room = *run_kind(&of, heap, steps, ROOM);
        check_kind(&of, heap.kind, &room);
        LAW(steps > 1 || room.requested_peak_bytes == active_bytes);
        const ms_pooled_rank *same =
            run_kind(&of, heap, steps, room.reserved_peak_bytes);
        LAW(of.line.pooled->oom ||
            same->allocated_peak_bytes == room.allocated_peak_bytes);
        LAW(!of.line.pooled->oom || heap.kind == MS_POOL_BFC);
        run_kind(&of, heap, steps, asked_bytes - 1);
        LAW(of.line.pooled->oom && of.line.lack.op < of.plan.n_ops);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_pooled(void)
{
    Suite *suite = suite_create("pooled");
    TCase *tcase = tcase_create("pooled");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, hands_out_what_is_asked_for);
    tcase_add_test(tcase, steady_steps_are_steady);
    tcase_add_test(tcase, a_course_is_its_steps);
    tcase_add_test(tcase, a_small_device_runs_out);
    tcase_add_loop_test(tcase, other_kinds, 0, N_KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
