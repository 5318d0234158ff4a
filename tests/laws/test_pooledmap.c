/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the rows of a step lie: every one of them, for as long as the timeline
 * says, in memory that is held, and no two in one place. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#define N_TRIALS 200u
#define ROOM (UINT64_C(1) << 40)

static ms_arena arena;
static ms_graph graph;
static ms_program program;
static ms_plan plan;
static ms_timeline line;

static void open_step(uint64_t seed, bool expandable)
{
    ms_fault fault = {0};
    laws_random random = {seed};
    ms_keep keep;
    ms_expand_opts opts = {
        .h2d_bytes_per_s = 1e10, .d2h_bytes_per_s = 2e10, .copy_ns = 7};
    laws_seed = seed;
    laws_graph(&random, &arena, &graph);
    laws_keep(&random, &graph, &arena, &keep);
    MUST(ms_defaultprogram_alone(&graph, &keep, 1 + laws_below(&random, 3),
                                 &arena, &program, &fault));
    laws_moves(&random, &graph, &arena, &program);
    ms_machine machine = {.launch_ns = laws_below(&random, 40),
                          .capacity_bytes = ROOM};
    laws_framework(&machine);
    MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
    MUST(ms_replay(&plan, &machine, &arena, &line, &fault));
    ms_pooled_setup setup = {.steps = 1 + laws_below(&random, 3),
                             .addresses = true};
    ms_torch_setup_init(&setup.torch, ROOM);
    setup.torch.options.expandable = expandable;
    MUST(ms_pooled_run(&setup, NULL, &machine, &arena, &line, &fault));
}

/* ---- laws ---------------------------------------------------------------- */

static bool overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
    return a < b_end && b < a_end;
}

static void check_boxes(const ms_addressmap *map)
{
    for (uint32_t i = 0; i < map->n_boxes; i++) {
        const ms_address_box *a = &map->boxes[i];
        LAW(a->begin < a->end && a->of < plan.n_rows);
        LAW(a->bytes >= plan.row[a->of].bytes);
        for (uint32_t j = 0; j < i; j++) {
            const ms_address_box *b = &map->boxes[j];
            LAW(!(overlap(a->begin, a->end, b->begin, b->end) &&
                  overlap(a->address, a->address + a->bytes, b->address,
                          b->address + b->bytes)));
        }
    }
}

/* Nothing is given back in a step that has room: what is held when the box
 * begins is there to its end. */
static void check_held(const ms_addressmap *map)
{
    for (uint32_t i = 0; i < map->n_boxes; i++) {
        const ms_address_box *box = &map->boxes[i];
        uint64_t held_bytes = 0;
        for (uint32_t s = 0; s < map->n_spans; s++) {
            const ms_address_span *span = &map->spans[s];
            uint64_t from =
                span->address > box->address ? span->address : box->address;
            uint64_t span_end = span->address + span->bytes;
            uint64_t box_end = box->address + box->bytes;
            uint64_t to = span_end < box_end ? span_end : box_end;
            if (span->begin <= box->begin && span->end >= box->end && from < to)
                held_bytes += to - from;
        }
        LAW(held_bytes == box->bytes);
    }
}

/* The timeline's events are the boxes' ends, but for what has no duration. */
static void check_times(const ms_addressmap *map)
{
    uint64_t *begin = ms_arena_take(&arena, plan.n_rows, sizeof *begin);
    uint64_t *end = ms_arena_take(&arena, plan.n_rows, sizeof *end);
    bool *met = ms_arena_take(&arena, plan.n_rows, sizeof *met);
    for (uint32_t r = 0; r < plan.n_rows; r++)
        end[r] = UINT64_MAX;
    for (uint32_t e = 0; e < line.n_events; e++)
        *(line.events[e].op_act & 1u ? &begin[line.events[e].row]
                                     : &end[line.events[e].row]) =
            line.events[e].t_ns;
    for (uint32_t i = 0; i < map->n_boxes; i++) {
        const ms_address_box *box = &map->boxes[i];
        LAW(box->waits ? box->begin == end[box->of]
                       : box->begin == begin[box->of]);
        LAW(box->waits || box->end == end[box->of]);
        met[box->of] |= !box->waits;
    }
    for (uint32_t r = 0; r < plan.n_rows; r++)
        LAW(met[r] || plan.row[r].pool != MS_DEVICE_POOL ||
            plan.row[r].bytes == 0 || begin[r] == end[r]);
}

START_TEST(rows_lie_where_they_are)
{
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        open_step(seed, _i > 0);
        const ms_pooled *pooled = line.pooled;
        const ms_addressmap *map = &pooled->maps[0];
        LAW(!pooled->oom && line.step_ns > 0);
        check_boxes(map);
        check_held(map);
        check_times(map);
        LAW(map->peak.live_bytes == pooled->ranks[0].allocated_peak_bytes);
        LAW(map->reserved_peak_bytes == pooled->ranks[0].reserved_peak_bytes);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_pooledmap(void)
{
    Suite *suite = suite_create("pooledmap");
    TCase *tcase = tcase_create("pooledmap");
    tcase_add_loop_test(tcase, rows_lie_where_they_are, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
