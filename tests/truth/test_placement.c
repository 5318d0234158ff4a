/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static plans against those of others (truth/placement), and against their
 * laws. */
#include "graphs/graphs.h"
#include "graphs/json/json.h"
#include "policies/common/policy.h"
#include "sim/pools/place/placesearch.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void read_json(const char *relative, ms_json *json)
{
    char path[TESTS_PATH];
    ms_fault fault = {0};
    size_t length;
    ck_assert(tests_truth(relative, path));
    char *bytes = read_file(path, &length);
    ck_assert_int_eq(
        ms_json_read(relative, bytes, length, &arena, json, &fault), MS_OK);
}

static uint64_t number(const ms_json *json, uint32_t row, const char *key)
{
    uint32_t at = ms_json_find(json, row, key);
    ck_assert_msg(at != MS_NONE, "no %s", key);
    ck_assert_int_eq(json->nodes[at].kind, MS_JSON_INT);
    return (uint64_t)json->nodes[at].value.i;
}

static void check_rules(const ms_json *json, const char *name,
                        const ms_placement_list *list)
{
    uint64_t height;
    ms_fault fault = {0};
    uint32_t row = ms_json_find(json, 0, name);
    ck_assert_msg(row != MS_NONE, "no %s", name);
    ck_assert_uint_eq(list->n, number(json, row, "n"));
    ck_assert_int_eq(
        ms_placement_bound(list->buffers, list->n, &arena, &height, &fault),
        MS_OK);
    ck_assert_uint_eq(height, number(json, row, "lower_bound"));
    for (int rule = 0; rule < MS_PLACEMENT_N_RULES; rule++) {
        ck_assert_int_eq(ms_placement_greedy(list->buffers, list->n,
                                             (ms_placement_rule)rule, &arena,
                                             offsets, &height, &fault),
                         MS_OK);
        ck_assert_msg(height == number(json, row, baselines[rule]), "%s %s",
                      name, baselines[rule]);
        no_overlap(list->buffers, list->n, height);
    }
}

/* Every file and every rule; input.12.csv, which the files lack, is the
 * example of minimalloc's README. */
START_TEST(greedy_rules_as_recorded)
{
    static ms_placement_buffer example[] = {
        {0, 3, 4, 1}, {3, 9, 4, 1}, {0, 9, 4, 1}, {9, 21, 4, 1}, {0, 21, 4, 1}};
    char path[TESTS_PATH], name[8 + 16];
    ms_json json;
    if (!tests_truth("placement/minimalloc/baselines.json", path))
        return;
    read_json("placement/minimalloc/baselines.json", &json);
    for (char letter = 'A'; letter <= 'K'; letter++) {
        snprintf(name, sizeof name, "%c.1048576.csv", letter);
        ms_placement_list list = read_minimalloc(name);
        check_rules(&json, name, &list);
    }
    check_rules(&json, "input.12.csv",
                &(ms_placement_list){.buffers = example, .n = 5});
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
                                              &limits, &arena, offsets, &result,
                                              &fault),
                         MS_OK);
        ck_assert_msg(result.answer == MS_PLACEEXACT_FOUND, "%s", name);
        no_overlap(list.buffers, list.n, 1048576);
    }
    ms_arena_free(&arena);
}
END_TEST

/* ---- TensorFlow Lite's objects ------------------------------------------- */

#define MOST_RECORDS 16u

static uint32_t member(const ms_json *json, uint32_t row, const char *key)
{
    uint32_t at = ms_json_find(json, row, key);
    ck_assert_msg(at != MS_NONE, "no %s", key);
    return at;
}

/* The integers of a list, at most MOST_RECORDS of them. */
static uint32_t integers(const ms_json *json, uint32_t row, uint64_t *numbers)
{
    uint32_t n = 0;
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next) {
        ck_assert_uint_lt(n, MOST_RECORDS);
        numbers[n++] = (uint64_t)json->nodes[i].value.i;
    }
    return n;
}

/* [size, first task, last task], the last one included. */
static uint32_t read_records(const ms_json *json, uint32_t row,
                             ms_placement_buffer *buffers)
{
    uint32_t n = 0;
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next) {
        uint64_t of[MOST_RECORDS];
        ck_assert_uint_lt(n, MOST_RECORDS);
        ck_assert_uint_eq(integers(json, i, of), 3);
        buffers[n++] = (ms_placement_buffer){of[1], of[2] + 1, of[0], 1};
    }
    return n;
}

typedef ms_err share_objects(const ms_placement_buffer *buffers, uint32_t n,
                             ms_arena *arena, uint32_t *objects,
                             uint64_t *object_bytes, uint32_t *n_objects,
                             ms_fault *fault);

static void check_objects(const ms_json *json, uint32_t row,
                          share_objects *share, const ms_placement_buffer *b,
                          uint32_t n)
{
    uint64_t bytes[MOST_RECORDS], expected[MOST_RECORDS], height, sum = 0;
    uint32_t ids[MOST_RECORDS], n_objects;
    ms_fault fault = {0};
    ck_assert_int_eq(share(b, n, &arena, ids, bytes, &n_objects, &fault),
                     MS_OK);
    ck_assert_uint_eq(
        integers(json, member(json, row, "object_sizes"), expected), n_objects);
    for (uint32_t k = 0; k < n_objects; k++) {
        ck_assert_uint_eq(bytes[k], expected[k]);
        sum += bytes[k];
    }
    ck_assert_uint_eq(integers(json, member(json, row, "object_ids"), expected),
                      n);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_uint_eq(ids[i], expected[i]);
    ms_placeobjects_offsets(b, n, ids, n_objects, offsets, &height);
    ck_assert_uint_eq(height, sum);
    no_overlap(b, n, height);
}

START_TEST(objects_as_in_tflite)
{
    static const char *const names[] = {"chain", "complex"};
    char path[TESTS_PATH];
    ms_json json;
    if (!tests_truth("placement/tflite.json", path))
        return;
    read_json("placement/tflite.json", &json);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ms_placement_buffer b[MOST_RECORDS];
        uint64_t naive = 0;
        uint32_t row = member(&json, 0, names[i]);
        uint32_t n = read_records(&json, member(&json, row, "records"), b);
        for (uint32_t k = 0; k < n; k++)
            naive += b[k].bytes;
        ck_assert_uint_eq(naive, number(&json, row, "naive"));
        check_objects(&json, member(&json, row, "greedy"),
                      ms_placeobjects_greedy, b, n);
        check_objects(&json, member(&json, row, "mincostflow"),
                      ms_placeobjects_flow, b, n);
    }
    ms_arena_free(&arena);
}
END_TEST

/* ---- recorded steps ------------------------------------------------------ */

static uint64_t reserved_by_torch(const ms_recording *recording)
{
    ms_fault fault = {0};
    ms_pool_setup setup = {0};
    ms_torch_setup *torch = &setup.torch;
    ms_allocfollow follow;
    ms_allocplay_row row;
    ms_torch_setup_init(torch, UINT64_C(80) << 30);
    torch->policy = MS_TORCH_GIVEN;
    ck_assert_int_eq(ms_torchconf_parse(recording->conf, "conf", MS_EINPUT,
                                        torch->version, &torch->options,
                                        &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_allocfollow_start(&follow, recording, &setup, false, &arena, &fault),
        MS_OK);
    for (bool more = true; more;)
        ck_assert_int_eq(ms_allocfollow_do(&follow, &row, &more, &fault),
                         MS_OK);
    return ms_torchview_peak(follow.play.pool, MS_TORCH_RESERVED_BYTES);
}

static uint64_t height_by(const ms_placement_list *list, ms_placement_rule rule)
{
    uint64_t height;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_placement_greedy(list->buffers, list->n, rule, &arena,
                                         offsets, &height, &fault),
                     MS_OK);
    return height;
}

static void check_recorded(const ms_json *json, uint32_t row, const char *name,
                           const char *path)
{
    ms_fault fault = {0};
    ms_placement_list list;
    ms_alloc_source source;
    const char *trace;
    uint64_t bound;
    ck_assert_int_eq(ms_alloc_lives_read(path, &arena, &trace, &list, &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_placement_bound(list.buffers, list.n, &arena, &bound, &fault),
        MS_OK);
    truth_compare("plans", name, "buffers", number(json, row, "n"), list.n);
    truth_compare("plans", name, "peak live bytes",
                  number(json, row, "peak_live_rounded"), bound);
    truth_compare("plans", name, "greedy by size, bytes",
                  number(json, row, "size_firstfit"),
                  height_by(&list, MS_PLACEMENT_SIZE));
    truth_compare("plans", name, "online best fit, bytes",
                  number(json, row, "start_bestfit"),
                  height_by(&list, MS_PLACEMENT_START_BEST));
    ck_assert_int_eq(ms_alloc_read_open(&source, path, &arena, &fault), MS_OK);
    truth_compare("plans", name, "torch's peak reserved bytes",
                  number(json, row, "torch_peak_reserved"),
                  reserved_by_torch(&source.recording));
    ms_alloc_read_close(&source);
}

/* Of the seven, those whose histories are at hand. */
static const char *const recorded[] = {"kkaitlyn111__memory_ctx128_fullstep",
                                       "kkaitlyn111__memory_ctx512_fullstep_",
                                       "Constructor-Sun__ms__b5ef67_dev1",
                                       "Maphsge4__snapshot__ec5be1"};

START_TEST(recorded_steps_planned)
{
    char path[TESTS_PATH], relative[128], plain[] = "/tmp/memsim-plan-XXXXXX";
    char command[TESTS_PATH + 64];
    ms_json json;
    if (!tests_truth("placement/recorded_plans.json", path))
        return;
    truth_begin();
    read_json("placement/recorded_plans.json", &json);
    snprintf(relative, sizeof relative, "allocator/recorded/%s.json.gz",
             recorded[_i]);
    ck_assert(tests_truth(relative, path));
    int file = mkstemp(plain);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(command, sizeof command, "gzip -dc '%s' > '%s'", path, plain);
    ck_assert_int_eq(system(command), 0);
    check_recorded(&json, member(&json, 0, recorded[_i]), recorded[_i], plain);
    unlink(plain);
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

/* Each rule alone, to its end. */
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
            if (i > 0 && draw(&random, 4) == 0) /* twins */
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
    tcase_add_loop_test(tcase, recorded_steps_planned, 0,
                        sizeof recorded / sizeof recorded[0]);
    tcase_add_loop_test(tcase, exact_is_the_lowest_of_all, 0, 10);
    suite_add_tcase(suite, tcase);
    return suite;
}
