/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim sweep: the same bytes whatever the threads, the shards and the
 * interruptions; variants that share models and graphs are those that do not.
 */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/cli/commands.h"
#include "tools/cli/sweep/sweep.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/results/sheet.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WORDS 24
#define ROOM 262144
#define MOST_MALLOCS 1000

static ms_fault fault;
static int status;
static char whole[ROOM], part[ROOM], changed[ROOM];

static const char *model(const char *name)
{
    static char path[TESTS_PATH];
    char below[128];
    snprintf(below, sizeof below, "tests/golden/files/%s", name);
    tests_source(below, path);
    return path;
}

/* Words are ended by NULL; -q and the model are added. */
static ms_err sweep(const char *const *words)
{
    const char *all[MAX_WORDS] = {model("tiny.json"), "-q"};
    ms_arena keep = {0}, trial = {0};
    ms_arguments arguments;
    const ms_hall hall = {
        .arguments = &arguments, .keep = &keep, .trial = &trial};
    uint32_t n = 2;
    for (; words[n - 2] != NULL; n++)
        all[n] = words[n - 2];
    fault = (ms_fault){.caret = -1};
    status = -1;
    ms_err err =
        ms_options_parse(MS_FOR_SWEEP, all, n, &keep, &arguments, &fault);
    if (err == MS_OK)
        err = ms_sweep_command(&hall, &status, &fault);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    return err;
}

#define GRID                                                                   \
    "--grid", "batch=1,2,4", "--grid",                                         \
        "policy=none;zero:3;checkpoint:full;microbatch:2"

static void sweep_well(const char *const *words)
{
    ms_err err = sweep(words);
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
    ck_assert_int_eq(status, 0);
}

/* ---- the same bytes ------------------------------------------------------ */

static const char *const jobs[] = {"-j1", "-j2", "-j3", "-j16"};

START_TEST(any_number_of_threads)
{
    char path[TESTS_PATH];
    folder_open();
    snprintf(path, sizeof path, "-o%s", folder_path("a"));
    for (int i = 0; i < 4; i++) {
        const char *const words[] = {
            "--grid", "sequence=1..60",          GRID, path,
            jobs[i],  _i == 1 ? "--json" : NULL, NULL};
        unlink(folder_path("a"));
        sweep_well(words);
        folder_read(folder_path("a"), i == 0 ? whole : part, ROOM);
        if (i > 0)
            ck_assert_str_eq(part, whole);
    }
    folder_close();
}
END_TEST

/* Rows of all parts; CSV has a header in each. */
START_TEST(shards_make_the_whole)
{
    static const char *const shards[] = {"1/5", "2/5", "3/5", "4/5", "5/5"};
    char to_a[TESTS_PATH], to_b[TESTS_PATH];
    const char *json = _i == 1 ? "--json" : NULL;
    size_t header = 0;
    folder_open();
    snprintf(to_a, sizeof to_a, "-o%s", folder_path("a"));
    const char *const all[] = {GRID, "--filter", "batch*2>2", to_a, json, NULL};
    sweep_well(all);
    folder_read(folder_path("a"), whole, ROOM);
    if (json == NULL)
        header = (size_t)(strchr(whole, '\n') - whole) + 1;
    size_t at = header;
    for (int i = 0; i < 5; i++) {
        snprintf(to_b, sizeof to_b, "-o%s", folder_path("b"));
        const char *const words[] = {GRID,      "--filter", "batch*2>2", to_b,
                                     "--shard", shards[i],  json,        NULL};
        sweep_well(words);
        size_t length = folder_read(folder_path("b"), part, ROOM);
        ck_assert_uint_ge(length, header);
        ck_assert(strncmp(part, whole, header) == 0);
        ck_assert(strncmp(part + header, whole + at, length - header) == 0);
        at += length - header;
        unlink(folder_path("b"));
    }
    ck_assert_uint_eq(at, strlen(whole));
    folder_close();
}
END_TEST

/* ---- resuming ------------------------------------------------------------ */

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(resumes_after_a_cut_at_every_byte)
{
    char to[TESTS_PATH];
    const char *json = _i == 1 ? "--json" : NULL;
    folder_open();
    snprintf(to, sizeof to, "-o%s", folder_path("a"));
    const char *const words[] = {"--grid", "policy=none;zero:3;checkpoint:full",
                                 to,       "--resume",
                                 "-j1",    json,
                                 NULL};
    sweep_well(words); /* a missing file is begun */
    size_t length = folder_read(folder_path("a"), whole, ROOM);
    for (size_t cut = 0; cut <= length; cut++) {
        write_file(folder_path("a"), whole, cut);
        sweep_well(words);
        folder_read(folder_path("a"), part, ROOM);
        ck_assert_str_eq(part, whole);
    }
    folder_close();
}
END_TEST

/* One byte other than it was, wherever: nothing of the file is lost. */
START_TEST(refuses_what_is_not_its_own)
{
    char to[TESTS_PATH];
    const char *json = _i == 1 ? "--json" : NULL;
    folder_open();
    snprintf(to, sizeof to, "-o%s", folder_path("a"));
    const char *const words[] = {"--grid",      "batch=1", "--grid",
                                 "policy=none", to,        "--resume",
                                 "-j1",         json,      NULL};
    sweep_well(words);
    size_t length = folder_read(folder_path("a"), whole, ROOM);
    for (size_t i = 0; i < length; i++) {
        memcpy(changed, whole, length + 1);
        changed[i] = changed[i] == '%' ? '&' : '%';
        write_file(folder_path("a"), changed, length);
        ms_err err = sweep(words);
        folder_read(folder_path("a"), part, ROOM);
        if (i == length - 1) { /* a torn line, made again */
            ck_assert_int_eq(err, MS_OK);
            ck_assert_str_eq(part, whole);
            continue;
        }
        ck_assert_msg(err == MS_EINPUT, "byte %zu", i);
        ck_assert(strncmp(fault.where, folder_path("a"),
                          strlen(folder_path("a"))) == 0);
        ck_assert_str_eq(part, changed);
    }
    folder_close();
}
END_TEST

/* ---- shared models and graphs -------------------------------------------- */

static const char *const variants[][6] = {
    {"--batch=2"},
    {"--batch=2", "-p", "checkpoint:full"},
    {"--batch=2", "-p", "microbatch:2"},
    {"--batch=2", "-p", "zero:3,dp=2"},
    {"--batch=2", "-p", "zero:1,dp=2"},
    {"--batch=2", "-p", "uvm", "--memory=4GiB"},
    {"--batch=2", "--device=a100"},
    {"--batch=2", "--precision=fp32"},
    {"--batch=2", "--set=model.layers=3"},
    {"--batch=2", "--set=model.layers=3", "-p", "checkpoint:full"},
    {"--batch=4"},
    {"--sequence=7"},
    {"-p", "offload:optimizer"},
};
#define N_VARIANTS (sizeof variants / sizeof variants[0])

static void read_job(size_t which, ms_arena *arena, ms_job *job)
{
    const char *words[8] = {model("tiny.json")};
    ms_arguments arguments;
    uint32_t n = 1;
    for (; n < 7 && variants[which][n - 1] != NULL; n++)
        words[n] = variants[which][n - 1];
    ck_assert_int_eq(
        ms_options_parse(MS_FOR_RUN, words, n, arena, &arguments, &fault),
        MS_OK);
    ck_assert_int_eq(ms_settings_read(&arguments, arena, job, &fault), MS_OK);
}

static const char *report_of(const ms_result *result, ms_arena *arena)
{
    const ms_report_names names = {
        .model = "m", .device = "d", .policy = "p", .settings_json = "{}"};
    ms_text text = {.arena = arena};
    ms_sheet_json(result->report, result->graph, &names, NULL, &text);
    return text.bytes;
}

/* In an order in which each meets the graphs of the others. */
START_TEST(shared_as_alone)
{
    ms_points points;
    ms_points_seat seat = {0};
    ck_assert_int_eq(ms_points_open(&points, &fault), MS_OK);
    for (size_t i = 0; i < 3 * N_VARIANTS; i++) {
        size_t which = i * 5 % N_VARIANTS;
        ms_arena keep = {0}, trial = {0};
        ms_job job;
        ms_result alone, shared;
        read_job(which, &keep, &job);
        ck_assert_int_eq(ms_jobway_run(&job, &keep, &trial, &alone, &fault),
                         MS_OK);
        ck_assert_int_eq(ms_points_step(&points, &seat, &job, &shared, &fault),
                         MS_OK);
        ck_assert_str_eq(report_of(&shared, &trial), report_of(&alone, &trial));
        ms_arena_free(&trial);
        ms_arena_free(&keep);
    }
    ms_points_leave(&points, &seat);
    ms_points_close(&points);
}
END_TEST

static const char *const folded[] = {"none",
                                     "checkpoint:full",
                                     "checkpoint:sqrt",
                                     "checkpoint:every=2",
                                     "checkpoint:first=1",
                                     "checkpoint:first=2,partial=0",
                                     "zero:1,dp=2",
                                     "checkpoint:full,variant=reentrant",
                                     "swap:save_on_cpu",
                                     "checkpoint:full,early_stop=0",
                                     "checkpoint:selective",
                                     "uvm",
                                     "pipeline:2",
                                     "checkpoint:sequential=2"};
#define N_FOLDED (sizeof folded / sizeof folded[0])

static void read_folded(const char *policy, bool more, ms_arena *arena,
                        ms_job *job)
{
    const char *words[] = {model("tiny.json"), "--batch=4",
                           more ? "-pmicrobatch:4" : "-pmicrobatch:2", "-p",
                           policy};
    ms_arguments arguments;
    ck_assert_int_eq(
        ms_options_parse(MS_FOR_RUN, words, 5, arena, &arguments, &fault),
        MS_OK);
    ck_assert_int_eq(ms_settings_read(&arguments, arena, job, &fault), MS_OK);
    job->brief = true;
}

static void expect_row(const char *policy, const ms_report *shared,
                       const ms_report *alone)
{
    const ms_rank_report *a = &shared->ranks[shared->worst];
    const ms_rank_report *b = &alone->ranks[alone->worst];
    ck_assert_msg(a->peak.allocated_bytes == b->peak.allocated_bytes &&
                      a->peak.reserved_bytes == b->peak.reserved_bytes &&
                      a->time.step_ns == b->time.step_ns &&
                      a->time.recompute_ns == b->time.recompute_ns &&
                      a->time.stall_ns == b->time.stall_ns &&
                      a->time.exposed_comm_ns == b->time.exposed_comm_ns &&
                      shared->fits == alone->fits &&
                      shared->status == alone->status &&
                      shared->headroom_bytes == alone->headroom_bytes &&
                      shared->host_peak_bytes == alone->host_peak_bytes &&
                      memcmp(&shared->tokens_per_second,
                             &alone->tokens_per_second, sizeof(double)) == 0 &&
                      memcmp(&shared->mfu, &alone->mfu, sizeof(double)) == 0,
                  "%s", policy);
}

/* What a row of a sweep has, from summaries where they serve. */
START_TEST(folded_as_alone)
{
    ms_points points;
    ms_points_seat seat = {0};
    uint32_t n = 0;
    ck_assert_int_eq(ms_points_open(&points, &fault), MS_OK);
    for (size_t i = 0; i < 6 * N_FOLDED; i++) {
        ms_arena keep = {0}, trial = {0};
        ms_job job;
        ms_result alone, shared;
        bool is_folded;
        const char *policy = folded[i * 5 % N_FOLDED];
        read_folded(policy, i >= 3 * N_FOLDED, &keep, &job);
        ck_assert_int_eq(ms_jobway_run(&job, &keep, &trial, &alone, &fault),
                         MS_OK);
        ck_assert_int_eq(
            ms_points_fold(&points, &seat, &job, &shared, &is_folded, &fault),
            MS_OK);
        n += is_folded;
        expect_row(policy, shared.report, alone.report);
        ms_arena_free(&trial);
        ms_arena_free(&keep);
    }
    ck_assert_uint_gt(n, 5);
    ms_points_leave(&points, &seat);
    ms_points_close(&points);
}
END_TEST

/* Of policies that take turns with two graphs, in a grid whose last key is
 * policy: those of a graph follow each other, and it is known how many come;
 * behind them come those of graphs that differ in numbers alone. */
START_TEST(graphs_in_a_row)
{
    const char *const words[] = {
        model("tiny.json"), "--grid", "batch=2,4", "--grid",
        "policy=none;zero:1,dp=2;checkpoint:full;zero:1,dp=2+checkpoint:full;"
        "swap:vdnn=all;microbatch:2"};
    static const uint32_t items[] = {0, 2, 4, 6, 8, 10, 1, 3, 7, 9, 5, 11},
                          firsts[] = {0, 2, 3, 5, 6, 8, 10, 11},
                          comings[] = {3, 1, 3, 1, 2, 2, 1, 1};
    ms_arena arena = {0};
    ms_arguments arguments;
    ms_job base;
    ms_grid grid;
    ms_sweep_order order;
    ms_sweep_shapes shapes = {0};
    uint32_t shape[6];
    ck_assert_int_eq(
        ms_options_parse(MS_FOR_SWEEP, words, 5, &arena, &arguments, &fault),
        MS_OK);
    ck_assert_int_eq(ms_settings_read(&arguments, &arena, &base, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_grid_read(&arguments, &base, &arena, &grid, &fault),
                     MS_OK);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_int_eq(ms_sweep_order_policy(&base, &grid.axes[1].specs[i],
                                               &arena, &shapes, &shape[i],
                                               &fault),
                         MS_OK);
    const ms_sweep sweep = {.grid = &grid, .base = &base, .shapes = shape};
    ck_assert_int_eq(
        ms_sweep_order_find(&sweep, 0, 12, 2, &arena, &order, &fault), MS_OK);
    ck_assert_uint_eq(order.n, 8);
    for (uint32_t i = 0; i < 12; i++)
        ck_assert_uint_eq(order.item[i], items[i]);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(order.batches[i].first, firsts[i]);
        ck_assert_uint_eq(order.batches[i].coming, comings[i]);
    }
    ms_arena_free(&arena);
}
END_TEST

/* Many points of a graph are folded from the first on, of which one is also
 * replayed; few are not, nor are the first two of a graph, where the number was
 * wrong.  Two graphs by turns each keep what is known of them. */
START_TEST(folded_where_many_come)
{
    static const char expected[] = "-+++++++------+-+-++";
    ms_points points;
    ms_points_seat seat = {0};
    ck_assert_int_eq(ms_points_open(&points, &fault), MS_OK);
    for (uint32_t i = 0; i < 20; i++) {
        ms_arena keep = {0};
        ms_job job;
        ms_result result;
        bool is_folded;
        uint32_t graph = i < 8 ? 0 : i < 12 ? 1 : 2 + i % 2;
        static const char *const optimizers[] = {"adamw", "sgd", "adafactor",
                                                 "lion"};
        read_folded(i % 3 > 0 ? "none" : "checkpoint:full", false, &keep, &job);
        ck_assert_int_eq(ms_settings_put(&job, "training.optimizer",
                                         optimizers[graph], &keep, &fault),
                         MS_OK);
        seat.coming = i < 8 ? 8 - i : i < 12 ? 12 - i : 20 - i;
        ck_assert_int_eq(
            ms_points_fold(&points, &seat, &job, &result, &is_folded, &fault),
            MS_OK);
        ck_assert_msg(is_folded == (expected[i] == '+'), "%u", i);
        ms_arena_free(&keep);
    }
    ms_points_leave(&points, &seat);
    ms_points_close(&points);
}
END_TEST

/* What is learnt of one graph is known of others that differ in their numbers
 * alone: a point of the first, second, fourth and eighth is replayed. */
START_TEST(folded_in_families)
{
    ms_points points;
    ms_points_seat seat = {0};
    ck_assert_int_eq(ms_points_open(&points, &fault), MS_OK);
    for (uint32_t i = 0; i < 24; i++) {
        ms_arena keep = {0}, trial = {0};
        ms_job job;
        ms_result shared, alone;
        bool is_folded;
        uint32_t graph = i / 2;
        read_folded(i % 2 ? "checkpoint:sqrt" : "none", graph % 3 == 2, &keep,
                    &job);
        job.training.batch = 4 * (graph + 1);
        job.training.sequence = 32;
        seat.coming = i == 0 ? 8 : 2 - i % 2;
        ck_assert_int_eq(
            ms_points_fold(&points, &seat, &job, &shared, &is_folded, &fault),
            MS_OK);
        ck_assert_msg(is_folded == (i % 2 > 0 || (graph & (graph + 1)) != 0),
                      "%u", i);
        ck_assert_int_eq(ms_jobway_run(&job, &keep, &trial, &alone, &fault),
                         MS_OK);
        expect_row("family", shared.report, alone.report);
        ms_arena_free(&trial);
        ms_arena_free(&keep);
    }
    ms_points_leave(&points, &seat);
    ms_points_close(&points);
}
END_TEST

/* ---- memory that runs out ------------------------------------------------ */

START_TEST(each_malloc_fails)
{
    char to[TESTS_PATH];
    long n = 1;
    folder_open();
    snprintf(to, sizeof to, "-o%s", folder_path("a"));
    const char *const words[] = {
        "--grid",   "batch=1,2", "--grid", "model.layers=1..2",
        "--filter", "batch<9",   to,       "-j1",
        NULL};
    sweep_well(words);
    folder_read(folder_path("a"), whole, ROOM);
    for (; n < MOST_MALLOCS; n++) {
        unlink(folder_path("a"));
        ms_arena_fail_after(n);
        ms_err err = sweep(words);
        size_t length = 0;
        if (access(folder_path("a"), F_OK) == 0)
            length = folder_read(folder_path("a"), part, ROOM);
        ck_assert(strncmp(part, whole, length) == 0);
        ck_assert(length == 0 || part[length - 1] == '\n');
        if (err == MS_OK)
            break;
        ck_assert_int_eq(err, MS_ENOMEM);
    }
    ms_arena_fail_after(0);
    ck_assert_int_gt(n, 3);
    ck_assert_int_lt(n, MOST_MALLOCS);
    folder_close();
}
END_TEST

Suite *suite_sweep(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tcase = tcase_create("sweep");
    tcase_add_loop_test(tcase, any_number_of_threads, 0, 2);
    tcase_add_loop_test(tcase, shards_make_the_whole, 0, 2);
    tcase_add_loop_test(tcase, resumes_after_a_cut_at_every_byte, 0, 2);
    tcase_add_loop_test(tcase, refuses_what_is_not_its_own, 0, 2);
    tcase_add_test(tcase, shared_as_alone);
    tcase_add_test(tcase, folded_as_alone);
    tcase_add_test(tcase, graphs_in_a_row);
    tcase_add_test(tcase, folded_where_many_come);
    tcase_add_test(tcase, folded_in_families);
    tcase_add_test(tcase, each_malloc_fails);
    suite_add_tcase(suite, tcase);
    return suite;
}
