/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static plans against those of others (truth/placement), and against their
 * laws. */
#include "graphs/json.h"
#include "sim/sim.h"
#include "tests/tests.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static uint64_t offsets[8192];

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    char *bytes = ms_arena_take(&arena, 1u << 20, 1);
    ck_assert_ptr_nonnull(bytes);
    *length = fread(bytes, 1, (1u << 20) - 1, file);
    fclose(file);
    return bytes;
}

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

static ms_placement_list read_minimalloc(const char *name)
{
    char path[TESTS_PATH], relative[128];
    ms_placement_list list;
    ms_fault fault = {0};
    size_t length;
    snprintf(relative, sizeof relative, "placement/minimalloc/%s", name);
    ck_assert(tests_truth(relative, path));
    char *bytes = read_file(path, &length);
    ck_assert_int_eq(
        ms_placecsv_read(name, bytes, length, &arena, &list, &fault), MS_OK);
    return list;
}

/* ---- the files of minimalloc --------------------------------------------- */

static const char *const baselines[MS_PLACEMENT_N_RULES] = {
    "size_firstfit",  "size_bestfit",  "span_bestfit", "area_firstfit",
    "start_firstfit", "start_bestfit", "xla_spatial",  "xla_temporal"};

static uint64_t number(const ms_json *json, uint32_t row, const char *key)
{
    uint32_t at = ms_json_find(json, row, key);
    ck_assert_msg(at != MS_NONE, "no %s", key);
    ck_assert_int_eq(json->nodes[at].kind, MS_JSON_INT);
    return (uint64_t)json->nodes[at].value.i;
}

START_TEST(greedy_rules_as_recorded)
{
    char path[TESTS_PATH], name[8 + 16];
    ms_json json;
    ms_fault fault = {0};
    size_t length;
    if (!tests_truth("placement/minimalloc/baselines.json", path))
        return;
    char *bytes = read_file(path, &length);
    ck_assert_int_eq(
        ms_json_read("baselines", bytes, length, &arena, &json, &fault), MS_OK);
    for (char letter = 'A'; letter <= 'K'; letter++) {
        uint64_t height;
        snprintf(name, sizeof name, "%c.1048576.csv", letter);
        ms_placement_list list = read_minimalloc(name);
        uint32_t row = ms_json_find(&json, 0, name);
        ck_assert_uint_eq(list.n, number(&json, row, "n"));
        ck_assert_int_eq(
            ms_placement_bound(list.buffers, list.n, &arena, &height, &fault),
            MS_OK);
        ck_assert_uint_eq(height, number(&json, row, "lower_bound"));
        for (int rule = 0; rule < MS_PLACEMENT_N_RULES; rule++) {
            ck_assert_int_eq(ms_placement_greedy(
                                 list.buffers, list.n, (ms_placement_rule)rule,
                                 &arena, offsets, &height, &fault),
                             MS_OK);
            ck_assert_msg(height == number(&json, row, baselines[rule]),
                          "%s %s", name, baselines[rule]);
            no_overlap(list.buffers, list.n, height);
        }
    }
    ms_arena_free(&arena);
}
END_TEST

/* All eleven, each within the steps that a user gets who names none. */
START_TEST(plans_within_the_capacity)
{
    const ms_placeexact_limits limits = {.most_steps = 1000000};
    char path[TESTS_PATH], name[8 + 16];
    if (!tests_truth("placement/minimalloc/A.1048576.csv", path))
        return;
    for (char letter = 'A'; letter <= 'K'; letter++) {
        ms_placeexact_result result;
        ms_fault fault = {0};
        snprintf(name, sizeof name, "%c.1048576.csv", letter);
        ms_placement_list list = read_minimalloc(name);
        ck_assert_int_eq(ms_placeexact_search(list.buffers, list.n, 1048576,
                                              &limits, &arena, offsets,
                                              &result, &fault),
                         MS_OK);
        ck_assert_msg(result.answer == MS_PLACEEXACT_FOUND, "%s", name);
        no_overlap(list.buffers, list.n, 1048576);
    }
    ms_arena_free(&arena);
}
END_TEST

/* ---- TensorFlow Lite's objects ------------------------------------------- */

START_TEST(objects_as_in_tflite) /* placement/tflite.json, greedy */
{
    static const ms_placement_buffer chain[] = {{0, 2, 16, 1},
                                                {1, 3, 8, 1},
                                                {2, 4, 64, 1},
                                                {3, 5, 32, 1},
                                                {4, 6, 8, 1}};
    static const ms_placement_buffer complex[] = {
        {0, 2, 32, 1}, {1, 5, 32, 1}, {2, 6, 8, 1}, {3, 6, 16, 1}, {4, 6, 8, 1},
        {5, 8, 64, 1}, {6, 9, 8, 1},  {7, 9, 8, 1}, {8, 10, 16, 1}};
    static const uint32_t chain_ids[] = {0, 1, 0, 1, 0};
    static const uint32_t complex_ids[] = {0, 1, 0, 2, 3, 1, 3, 2, 0};
    static const uint64_t chain_bytes[] = {64, 32};
    static const uint64_t complex_bytes[] = {32, 64, 16, 8};
    uint32_t ids[9], n;
    uint64_t bytes[9];
    ms_fault fault = {0};
    ck_assert_int_eq(
        ms_placeobjects_greedy(chain, 5, &arena, ids, bytes, &n, &fault),
        MS_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_mem_eq(ids, chain_ids, sizeof chain_ids);
    ck_assert_mem_eq(bytes, chain_bytes, sizeof chain_bytes);
    ck_assert_int_eq(
        ms_placeobjects_greedy(complex, 9, &arena, ids, bytes, &n, &fault),
        MS_OK);
    ck_assert_uint_eq(n, 4);
    ck_assert_mem_eq(ids, complex_ids, sizeof complex_ids);
    ck_assert_mem_eq(bytes, complex_bytes, sizeof complex_bytes);
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

/* The lowest of all plans: each order of placing, each at its lowest gap above
 * all that it meets and that was placed before. */
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
        }
        uint64_t best = lowest(b, (1u << N_SMALL) - 1, at, 0, UINT64_MAX);
        ck_assert_int_eq(ask(b, best), MS_PLACEEXACT_FOUND);
        no_overlap(b, N_SMALL, best);
        ck_assert_int_eq(ask(b, best - 1), MS_PLACEEXACT_NONE);
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
