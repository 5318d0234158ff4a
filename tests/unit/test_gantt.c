/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The Gantt chart and the trace of a step by hand. */
#include "graphs/json/json.h"
#include "plots/plots.h"
#include "plots/record/lanes.h"
#include "plots/record/record.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "lay\"er\\\n\xff'`touch PWNED`"

static ms_arena arena;
static ms_fault fault;

/* Forward of 10 us from 2 us on (the host was late), a copy of its 2 MiB to
 * the host beside the backward of 10 us, and the copy back, which the step of
 * 5.001 us waits for: it ends at 36.001 us. */
static const char *op_name[] = {"addmm", NAME, "adam"};
static uint32_t op_layer[] = {0, 0, MS_NONE};
static uint32_t op_unit[] = {MS_NONE, MS_NONE, MS_NONE};
static const char *layer_name[] = {NAME};
static const char *storage_name[] = {"x", "y"};
static double op_flops[] = {3e9, 0.0, 0.0};
static uint64_t op_bytes[] = {64, 0, 32};
static ms_graph graph = {.op_name = op_name,
                         .op_layer = op_layer,
                         .op_unit = op_unit,
                         .n_layers = 1,
                         .layer_name = layer_name,
                         .op_flops = op_flops,
                         .op_read_bytes = op_bytes,
                         .op_write_bytes = op_bytes,
                         .storage_name = storage_name};
static ms_plan_op op[] = {
    {.of = MS_NONE, .pass = MS_START, .micro_batch = MS_NONE},
    {.of = 0, .pass = MS_FORWARD},
    {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_D2H, .alloc_at = 1},
    {.of = 1, .pass = MS_GRAD_INPUT, .alloc_at = 2},
    {.of = MS_NONE, .pass = MS_COPY, .stream = MS_STREAM_H2D, .alloc_at = 3},
    {.of = 2, .pass = MS_STEP, .micro_batch = MS_NONE, .alloc_at = 4},
    {.alloc_at = 4},
};
static ms_row row[] = {
    {.bytes = 2u << 20, .storage = 0, .op = 1, .category = MS_ACTIVATIONS},
    {.bytes = 2u << 20, .storage = 0, .op = 2, .pool = MS_HOST_POOL},
    {.bytes = 1u << 20, .storage = 1, .op = 3, .category = MS_TEMPORARIES},
    {.bytes = 2u << 20, .storage = 0, .op = 4, .category = MS_ACTIVATIONS},
};
static uint32_t wait_at[] = {0, 0, 0, 1, 2, 3, 4};
static uint32_t wait_for[] = {1, 1, 3, 4};
static struct ms_transfer moved[] = {
    {.op = 2, .kind = MS_TRANSFER_D2H, .bytes = 2u << 20},
    {.op = 4, .kind = MS_TRANSFER_H2D, .bytes = 2u << 20},
};
static ms_plan plan = {.graph = &graph,
                       .wait_at = wait_at,
                       .wait = wait_for,
                       .n_transfers = 2,
                       .transfers = moved,
                       .n_ops = 6,
                       .op = op,
                       .n_rows = 4,
                       .row = row,
                       .n_ranks = 1,
                       .n_micro_batches = 1};
/* The temporary comes and goes at one instant. */
static ms_event events[] = {
    {2000, 0, 3},  {12000, 1, 5}, {22000, 2, 7},  {22000, 2, 6},
    {22000, 0, 4}, {23000, 3, 9}, {36001, 3, 10},
};
static uint64_t start_ns[] = {0, 2000, 12000, 12000, 23000, 31000};
static uint64_t end_ns[] = {0, 12000, 20000, 22000, 31000, 36001};
static uint8_t gap_cause[] = {0, MS_GAP_HOST, 0, 0, 0, MS_GAP_COPY};
static const ms_timeline line = {.plan = &plan,
                                 .n_events = 7,
                                 .events = events,
                                 .start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .gap_cause = gap_cause,
                                 .step_ns = 36001};
static ms_rank_report rank = {
    .peak = {.allocated_bytes = 3u << 20, .t_ns = 22000}};
static const ms_report report = {.capacity_bytes = 4u << 20,
                                 .host_peak_bytes = 2u << 20,
                                 .n_ranks = 1,
                                 .ranks = &rank};

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    folder_open();
}

static void teardown(void)
{
    folder_close();
    ms_arena_free(&arena);
}

static bool has_gnuplot(void)
{
    return system("command -v gnuplot > /dev/null") == 0;
}

/* ---- the figure ---------------------------------------------------------- */

static const char *draw_script(const ms_timeline *drawn)
{
    static char bytes[1 << 17];
    char script[256];
    ms_record record;
    ms_drawing drawing = {.title = NAME,
                          .subtitle = "a step",
                          .script_path = script,
                          .arena = &arena};
    rank.time.step_ns = drawn->step_ns;
    strcpy(script, folder_path("a.gp"));
    drawing.path = folder_path("a.svg");
    ck_assert_int_eq(ms_record_of(drawn, &report,
                                  &(ms_report_names){.model = NAME}, &arena,
                                  &record, &fault),
                     MS_OK);
    ck_assert_msg(ms_figure_gantt(&record, 0, &drawing, &fault) == MS_OK, "%s",
                  fault.what);
    folder_read(script, bytes, sizeof bytes);
    return bytes;
}

static void check_has(const char *bytes, const char *words)
{
    ck_assert_msg(strstr(bytes, words) != NULL, "no %s", words);
}

/* How far below the top the label lies. */
static const char *find_label(const char *bytes, const char *words)
{
    char start[128];
    snprintf(start, sizeof start, "set label '%s' at screen ", words);
    check_has(bytes, start);
    return strstr(strstr(bytes, start), ",1-") + 3;
}

START_TEST(gantt_shows_streams_and_waits)
{
    if (!has_gnuplot())
        return;
    const char *bytes = draw_script(&line);
    check_has(bytes, "'compute stream (µs)'");
    check_has(bytes, "'wait: host'");
    check_has(bytes, "'2.00'");
    check_has(bytes, "'wait: copies'");
    check_has(bytes, "'36.00'");
    check_has(bytes, "'copies H2D'");
    check_has(bytes, "$forward << EOD\n2 12 ");
    check_has(bytes, "$wait_copy << EOD\n23 31 ");
    check_has(bytes, "$d2h << EOD\n12 20 ");
    check_has(bytes, "$h2d << EOD\n23 31 ");
    ck_assert_ptr_null(strstr(bytes, "$comm"));
    ck_assert_int_eq(access("PWNED", F_OK), -1);
}
END_TEST

/* By hand, from the top down, in px: 8, the title's 36, a line of 26, 6, the
 * phases' 27, 4; the memory's 230, the host's 76, 10; three streams of 36, of
 * which the slices fill 0.76; 10, 64 for the axis; the legend's tables, 8
 * apart, with rows of 29 and a rule of 5, the first without entries.  The
 * capacity lies at 168 of the 230, the rest is for the peak's label; a label's
 * height is 25. */
START_TEST(what_lies_at_which_height)
{
    static const struct {
        const char *words, *y;
    } labels[] = {
        {"device memory (MiB)", "222"}, /* the middle of 107 to 337 */
        {"capacity 4 MiB", "155.5"},    /* its lower edge 1 above 337 - 168 */
        {"peak 3.00 MiB at 22.00 µs", "186.5"}, /* 12 above 337 - 3/4 168 */
        {"host memory, at most 2 MiB", "352"},  /* 15 below 337 */
        {"compute", "441"},                     /* 337 + 76 + 10 + 36 / 2 */
        {"H2D", "477"},
        {"D2H", "513"},
        {"30", "561"}, /* 20 below 337 + 76 + 10 + 3 36 + 10 */
        {"time in step (µs)", "588"},
        {"at the peak (MiB)", "619.5"}, /* 29 / 2 below 541 + 64 */
        {"allocated", "619.5"},
        {"compute stream (µs)", "661.5"}, /* 29 + 5 + 8 below */
        {"step", "661.5"},
        {"wait: copies", "695.5"}, /* 3/2 29 + 5 below */
        {"wait: host", "724.5"},
        {"beside it (µs)", "761.5"}, /* 647 + 3 29 + 5 + 8 + 29 / 2 */
        {"copies H2D", "795.5"},
        {"copies D2H", "795.5"},
    };
    if (!has_gnuplot())
        return;
    const char *bytes = draw_script(&line);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        const char *at = find_label(bytes, labels[i].words);
        ck_assert_msg(strncmp(at, labels[i].y, strlen(labels[i].y)) == 0 &&
                          at[strlen(labels[i].y)] == '/',
                      "%s: %.10s", labels[i].words, at);
    }
    check_has(bytes, "H = 818.0\n"); /* 647 + 92 + 8 + 63 + 8 */
    check_has(bytes, "set tmargin at screen 1-107/H\n");
    check_has(bytes, "set bmargin at screen 1-541/H\n");
    check_has(bytes, "set y2range [-541:-107]\n");
    check_has(bytes, "$forward << EOD\n2 12 -454.68 -427.32\n");
    check_has(bytes, "$h2d << EOD\n23 31 -490.68 -463.32\n");
    check_has(bytes, "$d2h << EOD\n12 20 -526.68 -499.32\n");
    check_has(bytes, "$far << EOD\n0 -413\n0 -413\n");
    check_has(bytes, " -367\n"); /* all of 76, less 30 for its name */
}
END_TEST

static uint32_t cut(const ms_span *spans, uint32_t n, uint64_t least_ns,
                    const ms_slice **slices)
{
    ms_slicer slicer = {.arena = &arena, .least_ns = least_ns};
    for (uint32_t i = 0; i < n; i++)
        ms_lanes_cut(&slicer, &spans[i]);
    ms_lanes_close(&slicer);
    *slices = slicer.slices;
    return slicer.n;
}

/* Slices shorter than a px share one; each keeps its part of the height. */
START_TEST(thin_slices_share_by_time)
{
    static const ms_span spans[] = {
        {0, 100, MS_WORK_FORWARD},   {100, 103, MS_WORK_WAIT_HOST},
        {103, 112, MS_WORK_FORWARD}, {112, 200, MS_WORK_BACKWARD},
        {200, 201, MS_WORK_IDLE},
    };
    const ms_slice *slices;
    ck_assert_uint_eq(cut(spans, 5, 10, &slices), 4);
    ck_assert_uint_eq(slices[1].from_ns, 100);
    ck_assert_uint_eq(slices[1].to_ns, 112);
    ck_assert_uint_eq(slices[1].work_ns[MS_WORK_WAIT_HOST], 3);
    ck_assert_uint_eq(slices[1].work_ns[MS_WORK_FORWARD], 9);
    ck_assert_uint_eq(slices[2].to_ns, 191); /* the last one gets its px */
    ck_assert_uint_eq(slices[3].work_ns[MS_WORK_IDLE], 1);
    ck_assert_uint_eq(cut(spans, 5, 1000, &slices), 1);
    ck_assert_uint_eq(slices[0].work_ns[MS_WORK_BACKWARD], 88);
}
END_TEST

START_TEST(a_step_without_time_has_a_figure)
{
    static const uint64_t never[6];
    static ms_event at_once[7];
    ms_timeline still = line;
    if (!has_gnuplot())
        return;
    memcpy(at_once, events, sizeof events);
    for (int i = 0; i < 7; i++)
        at_once[i].t_ns = 0;
    still.events = at_once;
    still.start_ns = still.end_ns = (uint64_t *)never;
    still.step_ns = 0;
    check_has(draw_script(&still), "events in order");
}
END_TEST

/* ---- the trace ----------------------------------------------------------- */

static ms_err write_trace(const char *path)
{
    ms_report_names names = {NAME, "h100", "swap:te=1", NULL, NULL, NULL};
    return ms_chrome_trace(&line, &report, &names, path, &arena, &fault);
}

static const char *trace_text(void)
{
    static char bytes[1 << 16];
    char path[256];
    strcpy(path, folder_path("a.json"));
    ck_assert_msg(write_trace(path) == MS_OK, "%s", fault.what);
    folder_read(path, bytes, sizeof bytes);
    return bytes;
}

START_TEST(trace_has_slices_and_counters)
{
    const char *bytes = trace_text();
    check_has(bytes, "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":2.000,\"dur\":"
                     "10.000,\"name\":\"addmm\",\"cat\":\"forward\",\"args\":"
                     "{\"pass\":\"forward\",\"micro_batch\":0,\"layer\":");
    check_has(bytes, "\"flops\":3000000000,\"read_bytes\":64,"
                     "\"written_bytes\":64,\"allocated_bytes\":2097152,"
                     "\"waited_for_host_ns\":2000}},\n");
    check_has(bytes, "\"tid\":3,\"ts\":12.000,\"dur\":8.000,\"name\":\"copy "
                     "to host\",\"cat\":\"copy\"");
    check_has(
        bytes,
        "\"first_storage\":\"x\",\"storages\":1,\"copied_bytes\":2097152}},\n");
    check_has(bytes, "\"ts\":31.000,\"dur\":5.001,");
    check_has(bytes, "\"waited_for_copy_to_device_ns\":8000,\"idle_ns\":"
                     "1000}},\n");
    check_has(bytes, "\"args\":{\"name\":\"d2h\"}}");
    ck_assert_ptr_null(strstr(bytes, "\"comm\""));
    check_has(bytes, /* highest of the instant, then what stays */
              "\"ts\":22.000,\"name\":\"device bytes\",\"args\":{\"allocated\":"
              "3145728}},\n");
    check_has(bytes, "\"ts\":22.000,\"name\":\"device bytes\",\"args\":"
                     "{\"allocated\":0}},\n");
    check_has(bytes, "\"ts\":12.000,\"name\":\"host bytes\",\"args\":"
                     "{\"allocated\":2097152}}");
}
END_TEST

/* Whatever the names hold, it is JSON, and the names come back. */
START_TEST(trace_escapes_names)
{
    ms_json json;
    const char *bytes = trace_text();
    ck_assert_msg(ms_json_read("trace", bytes, strlen(bytes), &arena, &json,
                               &fault) == MS_OK,
                  "%s: %s", fault.where, fault.what);
    uint32_t other = ms_json_find(&json, 0, "otherData");
    ck_assert_str_eq(json.nodes[ms_json_find(&json, other, "model")].value.s,
                     "lay\"er\\\n\xef\xbf\xbd'`touch PWNED`");
}
END_TEST

/* Backward and what it makes on a rank of its own. */
START_TEST(trace_has_a_process_per_rank)
{
    static ms_rank_report both[2];
    static char bytes[1 << 16];
    ms_plan_op ops[7];
    memcpy(ops, op, sizeof ops);
    ops[3].rank = 1;
    ms_plan two = plan;
    two.op = ops;
    two.n_ranks = 2;
    ms_timeline drawn = line;
    drawn.plan = &two;
    ms_report of_both = {.n_ranks = 2, .ranks = both};
    ms_report_names names = {"m", "d", "p", NULL, NULL, NULL};
    const char *path = folder_path("a.json");
    ck_assert_int_eq(
        ms_chrome_trace(&drawn, &of_both, &names, path, &arena, &fault), MS_OK);
    folder_read(path, bytes, sizeof bytes);
    check_has(bytes, "\"pid\":1,\"name\":\"process_name\",\"args\":"
                     "{\"name\":\"rank 1\"}}");
    check_has(bytes, "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":12.000,");
    check_has(bytes, "{\"ph\":\"C\",\"pid\":1,\"ts\":22.000,\"name\":"
                     "\"device bytes\",\"args\":{\"allocated\":1048576}}");
    check_has(bytes, "\"pid\":0,\"ts\":22.000,\"name\":\"device bytes\","
                     "\"args\":{\"allocated\":0}}");
}
END_TEST

START_TEST(trace_to_full_disk_and_without_memory)
{
    ck_assert_int_eq(write_trace("/dev/full"), MS_ESYSTEM);
    check_has(fault.what, "No space left");
    ms_err err = MS_ENOMEM;
    for (long n = 1; err != MS_OK && n < 100; n++) {
        ms_arena_free(&arena);
        fault = (ms_fault){0};
        ms_arena_fail_after(n);
        err = write_trace(folder_path("a.json"));
        ms_arena_fail_after(0);
        ck_assert_int_eq(folder_entries(), err == MS_OK);
    }
    ck_assert_int_eq(err, MS_OK);
}
END_TEST

Suite *suite_gantt(void)
{
    Suite *suite = suite_create("gantt");
    TCase *tcase = tcase_create("gantt");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, gantt_shows_streams_and_waits);
    tcase_add_test(tcase, what_lies_at_which_height);
    tcase_add_test(tcase, thin_slices_share_by_time);
    tcase_add_test(tcase, a_step_without_time_has_a_figure);
    tcase_add_test(tcase, trace_has_slices_and_counters);
    tcase_add_test(tcase, trace_escapes_names);
    tcase_add_test(tcase, trace_has_a_process_per_rank);
    tcase_add_test(tcase, trace_to_full_disk_and_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
