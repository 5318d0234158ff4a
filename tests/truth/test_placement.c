/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static plans against those of other programs (truth/placement), and laws
 * that all plans obey. */
#include "policies/common/policy.h"
#include "sim/pools/place/placesearch.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static uint64_t offsets[8192];

static void no_overlap(const ms_placement_buffer *b, uint32_t n,
                       uint64_t height)
{
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_le(offsets[i] + b[i].bytes, height);
        ck_assert_uint_eq(offsets[i] % (b[i].align > 0 ? b[i].align : 1), 0);
        for (uint32_t j = 0; j < i; j++)
            ck_assert(b[i].upper <= b[j].lower || b[j].upper <= b[i].lower ||
                      offsets[i] >= offsets[j] + b[j].bytes ||
                      offsets[j] >= offsets[i] + b[i].bytes);
    }
}

/* ---- the benchmarks of minimalloc ---------------------------------------- */

#define N_CASES 11

/* Reads the buffers of one case from the file that the table was made of. */
static ms_placement_list read_minimalloc(const truth_table *all,
                                         const char *name)
{
    ms_placement_list list;
    ms_fault fault = {0};
    ms_text csv = {.arena = &arena};
    ms_text_add(&csv, "id,lower,upper,size\n");
    for (uint32_t r = 0; r < all->n_rows; r++)
        if (strcmp(truth_cell(all, r, "case"), name) == 0)
            ms_text_add(&csv, "%s,%s,%s,%s\n", truth_cell(all, r, "id"),
                        truth_cell(all, r, "lower"),
                        truth_cell(all, r, "upper"),
                        truth_cell(all, r, "size"));
    ck_assert(!csv.failed);
    ck_assert_int_eq(
        ms_placecsv_read(name, csv.bytes, csv.length, &arena, &list, &fault),
        MS_OK);
    return list;
}

static const char *const rules[MS_PLACEMENT_N_RULES] = {
    "size_firstfit",  "size_bestfit",  "span_bestfit", "area_firstfit",
    "start_firstfit", "start_bestfit", "xla_spatial",  "xla_temporal"};

static void check_rules(differ_table *told, const truth_table *heights,
                        uint32_t row, const ms_placement_list *list)
{
    uint64_t height;
    ms_fault fault = {0};
    const char *name = truth_cell(heights, row, "case");
    differ_number(told, name, "n", truth_number(heights, row, "n"), list->n,
                  NULL);
    ck_assert_int_eq(
        ms_placement_bound(list->buffers, list->n, &arena, &height, &fault),
        MS_OK);
    differ_number(told, name, "lower_bound",
                  truth_number(heights, row, "lower_bound"), height, NULL);
    for (int rule = 0; rule < MS_PLACEMENT_N_RULES; rule++) {
        ck_assert_int_eq(ms_placement_greedy(list->buffers, list->n,
                                             (ms_placement_rule)rule, offsets,
                                             &height, &fault),
                         MS_OK);
        differ_number(told, name, rules[rule],
                      truth_number(heights, row, rules[rule]), height,
                      "sim/pools/place/placement.c");
        no_overlap(list->buffers, list->n, height);
    }
}

/* Every case and every rule; the last is the example of minimalloc's README. */
START_TEST(greedy_rules_as_recorded)
{
    static ms_placement_buffer example[] = {
        {0, 3, 4, 1}, {3, 9, 4, 1}, {0, 9, 4, 1}, {9, 21, 4, 1}, {0, 21, 4, 1}};
    truth_table all, heights;
    differ_table told = {.name = "placement/heights.tsv"};
    truth_begin();
    truth_read_here("placement/minimalloc.tsv", &all);
    truth_read_here("placement/heights.tsv", &heights);
    ck_assert_uint_eq(heights.n_rows, N_CASES + 1);
    for (uint32_t row = 0; row < N_CASES; row++) {
        ms_placement_list list =
            read_minimalloc(&all, truth_cell(&heights, row, "case"));
        check_rules(&told, &heights, row, &list);
    }
    check_rules(&told, &heights, N_CASES,
                &(ms_placement_list){.buffers = example, .n = 5});
    ck_assert_msg(told.different == 0, "%s", differ_told(&told));
    truth_end();
    ms_arena_free(&arena);
}
END_TEST

/* A plan within its capacity is found for all eleven cases, within the
 * default number of steps. */
START_TEST(plans_within_the_capacity)
{
    const ms_placeexact_limits limits = {.most_steps = 1000000};
    truth_table all, heights;
    truth_begin();
    truth_read_here("placement/minimalloc.tsv", &all);
    truth_read_here("placement/heights.tsv", &heights);
    for (uint32_t row = 0; row < N_CASES; row++) {
        ms_placeexact_result result;
        ms_fault fault = {0};
        const char *name = truth_cell(&heights, row, "case");
        ms_placement_list list = read_minimalloc(&all, name);
        ck_assert_int_eq(ms_placeexact_search(list.buffers, list.n, 1048576,
                                              &limits, &arena, offsets, &result,
                                              &fault),
                         MS_OK);
        ck_assert_msg(result.answer == MS_PLACEEXACT_FOUND, "%s", name);
        no_overlap(list.buffers, list.n, 1048576);
    }
    truth_end();
    ms_arena_free(&arena);
}
END_TEST

/* ---- TensorFlow Lite's objects ------------------------------------------- */

#define MOST_RECORDS 16u

typedef ms_err share_objects(const ms_placement_buffer *buffers, uint32_t n,
                             ms_arena *arena, uint32_t *objects,
                             uint64_t *object_bytes, uint32_t *n_objects,
                             ms_fault *fault);

/* The records are rows first to first + n of the table. */
static void check_objects(differ_table *told, const truth_table *records,
                          uint32_t first, const char *way, share_objects *share,
                          const ms_placement_buffer *b, uint32_t n)
{
    uint64_t bytes[MOST_RECORDS], height, sum = 0;
    uint32_t ids[MOST_RECORDS], n_objects;
    ms_fault fault = {0};
    char row[32], column[32];
    snprintf(column, sizeof column, "%s_bytes", way);
    ck_assert_int_eq(share(b, n, &arena, ids, bytes, &n_objects, &fault),
                     MS_OK);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(row, sizeof row, "%s %u", truth_cell(records, first, "case"),
                 i);
        ck_assert_uint_lt(ids[i], n_objects);
        differ_number(told, row, way, truth_number(records, first + i, way),
                      ids[i], NULL);
        differ_number(told, row, column,
                      truth_number(records, first + i, column), bytes[ids[i]],
                      NULL);
    }
    for (uint32_t k = 0; k < n_objects; k++)
        sum += bytes[k];
    ms_placeobjects_offsets(b, n, ids, n_objects, offsets, &height);
    ck_assert_uint_eq(height, sum);
    no_overlap(b, n, height);
}

/* Reads the records of the case that begins at row first. The last task of a
 * record is part of its life. */
static uint32_t read_records(const truth_table *records, uint32_t first,
                             ms_placement_buffer *buffers)
{
    const char *name = truth_cell(records, first, "case");
    uint32_t n = 0, r = first;
    for (; r < records->n_rows &&
           strcmp(truth_cell(records, r, "case"), name) == 0;
         r++) {
        ck_assert_uint_lt(n, MOST_RECORDS);
        buffers[n++] =
            (ms_placement_buffer){truth_number(records, r, "first"),
                                  truth_number(records, r, "last") + 1,
                                  truth_number(records, r, "size"), 1};
    }
    return n;
}

START_TEST(objects_as_in_tflite)
{
    truth_table records;
    differ_table told = {.name = "placement/tflite.tsv"};
    truth_begin();
    truth_read_here("placement/tflite.tsv", &records);
    for (uint32_t first = 0, n; first < records.n_rows; first += n) {
        ms_placement_buffer b[MOST_RECORDS];
        n = read_records(&records, first, b);
        check_objects(&told, &records, first, "greedy", ms_placeobjects_greedy,
                      b, n);
        check_objects(&told, &records, first, "flow", ms_placeobjects_flow, b,
                      n);
    }
    /* both cases, each in two ways */
    ck_assert_uint_eq(told.compared, 4 * (5 + 9));
    ck_assert_msg(told.different == 0, "%s", differ_told(&told));
    truth_end();
    ms_arena_free(&arena);
}
END_TEST

/* ---- laws ---------------------------------------------------------------- */

#define N_SMALL 7u

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random % below;
}

/* The height of the lowest plan there is: all orders are tried, each buffer
 * in the lowest gap above those that it overlaps in time and that were
 * placed before it. */
static uint64_t lowest(const ms_placement_buffer *b, uint32_t left,
                       uint64_t *at, uint64_t height, uint64_t best)
{
    if (left == 0 || height >= best)
        return height < best ? height : best;
    for (uint32_t i = 0; i < N_SMALL; i++) {
        uint64_t low = 0;
        if ((left >> i & 1) == 0)
            continue;
        for (uint32_t j = 0; j < N_SMALL; j++)
            if ((left >> j & 1) == 0 && b[i].lower < b[j].upper &&
                b[j].lower < b[i].upper && at[j] + b[j].bytes > low)
                low = at[j] + b[j].bytes;
        low = (low + b[i].align - 1) / b[i].align * b[i].align;
        at[i] = low;
        uint64_t end = low + b[i].bytes;
        best =
            lowest(b, left & ~(1u << i), at, end > height ? end : height, best);
    }
    return best;
}

/* Runs one rule of the search alone, until it ends. */
static bool ask_rule(const ms_placement_buffer *b, uint64_t capacity,
                     ms_placesearch_rule rule)
{
    const ms_placeexact_limits limits = {.most_steps = UINT64_MAX};
    ms_placesearch s = {.capacity = capacity,
                        .limit = UINT64_MAX,
                        .rule = rule,
                        .limits = &limits,
                        .arena = &arena};
    ms_fault fault = {0};
    uint32_t n_sections;
    ck_assert_int_eq(ms_placeexact_items(&s, b, N_SMALL, &n_sections, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_placesearch_begin(&s, N_SMALL, n_sections, &fault),
                     MS_OK);
    s.failures =
        ms_arena_take(&arena, (size_t)n_sections + 1, sizeof *s.failures);
    ck_assert_ptr_nonnull(s.failures);
    bool found = ms_placesearch_run(&s);
    ck_assert(!s.stopped && !s.failed);
    for (uint32_t i = 0; i < N_SMALL && found; i++)
        offsets[s.items[i].id] = s.lows[i];
    return found;
}

static ms_placeexact_answer ask(const ms_placement_buffer *b, uint64_t capacity)
{
    const ms_placeexact_limits limits = {.most_steps = 1000000};
    ms_placeexact_result result;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_placeexact_search(b, N_SMALL, capacity, &limits, &arena,
                                          offsets, &result, &fault),
                     MS_OK);
    return result.answer;
}

START_TEST(exact_is_the_lowest_of_all)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(_i + 1);
    for (int round = 0; round < 20; round++) {
        ms_placement_buffer b[N_SMALL];
        uint64_t at[N_SMALL];
        for (uint32_t i = 0; i < N_SMALL; i++) {
            uint64_t lower = draw(&random, 6);
            b[i] = (ms_placement_buffer){lower, lower + 1 + draw(&random, 4),
                                         1 + draw(&random, 9),
                                         1 + draw(&random, 2) * 3};
            /* a buffer equal to the one before it */
            if (i > 0 && draw(&random, 4) == 0)
                b[i] = b[i - 1];
        }
        uint64_t best = lowest(b, (1u << N_SMALL) - 1, at, 0, UINT64_MAX);
        ck_assert_int_eq(ask(b, best), MS_PLACEEXACT_FOUND);
        no_overlap(b, N_SMALL, best);
        ck_assert_int_eq(ask(b, best - 1), MS_PLACEEXACT_NONE);
        for (int rule = 0; rule <= MS_PLACESEARCH_TIGHT; rule++) {
            ck_assert(ask_rule(b, best, (ms_placesearch_rule)rule));
            no_overlap(b, N_SMALL, best);
            ck_assert(!ask_rule(b, best - 1, (ms_placesearch_rule)rule));
        }
        ms_arena_free(&arena);
    }
}
END_TEST

Suite *suite_placement(void)
{
    Suite *suite = suite_create("placement");
    TCase *tcase = tcase_create("placement");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, greedy_rules_as_recorded);
    tcase_add_test(tcase, plans_within_the_capacity);
    tcase_add_test(tcase, objects_as_in_tflite);
    tcase_add_loop_test(tcase, exact_is_the_lowest_of_all, 0, 10);
    suite_add_tcase(suite, tcase);
    return suite;
}
