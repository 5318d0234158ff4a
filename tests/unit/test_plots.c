/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables, charts, figures and the files they are written to. */
#include "plots/axes/units.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_OPS 4u
#define N_ROWS 4u
#define N_EVENTS 7u

static ms_arena arena;
static ms_fault fault;
static const char *folder;

/* ---- a step by hand ------------------------------------------------------ */

/* Start, forward, backward, optimizer; 10 us each.  Weights of 4 MiB stay, the
 * activation of 2 MiB lives from forward to backward, where the gradient of
 * 4 MiB comes; the optimizer has a list of 1 MiB. */
static const char *op_name[] = {"addmm", "addmm_backward", "adam"};
static uint32_t op_layer[] = {0, 0, MS_NONE};
static uint32_t op_unit[] = {MS_NONE, MS_NONE, MS_NONE};
static const char *layer_name[] = {"layers.0.\"mlp\", first"};
static const char *storage_name[] = {"weight", "x", "weight.grad",
                                     "list\r\nof all"};
static ms_graph graph = {.op_name = op_name,
                         .op_layer = op_layer,
                         .op_unit = op_unit,
                         .n_layers = 1,
                         .layer_name = layer_name,
                         .storage_name = storage_name};

static ms_plan_op op[N_OPS + 1] = {
    {.of = MS_NONE, .pass = MS_START, .micro_batch = MS_NONE},
    {.of = 0, .pass = MS_FORWARD},
    {.of = 1, .pass = MS_GRAD_INPUT},
    {.of = 2, .pass = MS_STEP, .micro_batch = MS_NONE},
};
static ms_row row[N_ROWS] = {
    {.bytes = 4u << 20, .storage = 0, .op = 0, .category = MS_PARAMETERS},
    {.bytes = 2u << 20, .storage = 1, .op = 1, .category = MS_ACTIVATIONS},
    {.bytes = 4u << 20, .storage = 2, .op = 2, .category = MS_GRADIENTS},
    {.bytes = 1u << 20, .storage = 3, .op = 3, .category = MS_TEMPORARIES},
};
static ms_plan plan = {.graph = &graph,
                       .n_ops = N_OPS,
                       .op = op,
                       .n_rows = N_ROWS,
                       .row = row,
                       .n_ranks = 1,
                       .n_micro_batches = 1};

#define ALLOCATES(op) ((uint32_t)(op) << 1 | 1u)
#define FREES(op) ((uint32_t)(op) << 1)
static ms_event events[N_EVENTS] = {
    {0, 0, ALLOCATES(0)}, {0, 1, ALLOCATES(1)},     {10000, 2, ALLOCATES(2)},
    {20000, 1, FREES(2)}, {20000, 3, ALLOCATES(3)}, {30000, 3, FREES(3)},
    {30000, 2, FREES(3)},
};
static uint64_t start_ns[N_OPS] = {0, 0, 10000, 20000};
static uint64_t end_ns[N_OPS] = {0, 10000, 20000, 30000};
static uint8_t gap_cause[N_OPS];
static const ms_timeline line = {.plan = &plan,
                                 .n_events = N_EVENTS,
                                 .events = events,
                                 .start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .gap_cause = gap_cause,
                                 .step_ns = 30000};

static ms_rank_report rank = {
    .peak = {.allocated_bytes = 10u << 20,
             .reserved_bytes = 10u << 20,
             .t_ns = 10000,
             .by_category = {[MS_PARAMETERS] = 4u << 20,
                             [MS_ACTIVATIONS] = 2u << 20,
                             [MS_GRADIENTS] = 4u << 20}}};
static const ms_report report = {
    .capacity_bytes = 9u << 20, .n_ranks = 1, .ranks = &rank};

/* ---- the folder of the test ---------------------------------------------- */

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    folder = folder_open();
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

static ms_err (*const kinds[])(const ms_record *record, uint32_t rank,
                               const ms_drawing *drawing, ms_fault *fault) = {
    ms_figure_timeline, ms_figure_gantt};
#define N_KINDS 2

static ms_err draw_with(int kind, const char *title, const char *name,
                        const char *script)
{
    ms_record record;
    ms_report_names names = {.model = "a model"};
    ms_drawing drawing = {title,  title,  folder_path(name),
                          script, &arena, false};
    MS_TRY(ms_record_of(&line, &report, &names, &arena, &record, &fault));
    return kinds[kind](&record, 0, &drawing, &fault);
}

static ms_err draw(int kind, const char *title, const char *name)
{
    return draw_with(kind, title, name, NULL);
}

/* ---- table and chart ----------------------------------------------------- */

START_TEST(csv)
{
    ms_text text = {.arena = &arena};
    ck_assert_int_eq(ms_table_csv(&line, &text, &fault), MS_OK);
    ck_assert_str_eq(
        text.bytes,
        "event,t_ns,op,pass,layer,micro_batch,action,storage,category,bytes,"
        "allocated_bytes,recompute_ns,recompute_flops\n"
        "0,0,start,start,,,alloc,weight,parameters,4194304,4194304,0,0\n"
        "1,0,addmm,forward,\"layers.0.\"\"mlp\"\", first\",0,alloc,x,"
        "activations,2097152,6291456,0,0\n"
        "2,10000,addmm_backward,grad_input,\"layers.0.\"\"mlp\"\", first\",0,"
        "alloc,weight.grad,gradients,4194304,10485760,0,0\n"
        "3,20000,addmm_backward,grad_input,\"layers.0.\"\"mlp\"\", first\",0,"
        "free,x,activations,2097152,8388608,0,0\n"
        "4,20000,adam,step,,,alloc,\"list\r\nof all\",temporaries,1048576,"
        "9437184,0,0\n"
        "5,30000,adam,step,,,free,\"list\r\nof all\",temporaries,1048576,"
        "8388608,0,0\n"
        "6,30000,adam,step,,,free,weight.grad,gradients,4194304,4194304,0,0\n");
}
END_TEST

static void check_chart(const ms_timeline *drawn, uint32_t width,
                        const char *expected)
{
    ms_text text = {.arena = &arena};
    ck_assert_int_eq(ms_chart_line(drawn, 0, width, &arena, &text, &fault),
                     MS_OK);
    ck_assert_str_eq(text.bytes == NULL ? "" : text.bytes, expected);
}

static void check_phases(const ms_timeline *drawn, uint32_t width,
                         const char *expected)
{
    ms_text text = {.arena = &arena};
    ck_assert_int_eq(ms_chart_phases(drawn, 0, width, &arena, &text, &fault),
                     MS_OK);
    ck_assert_str_eq(text.bytes == NULL ? "" : text.bytes, expected);
}

START_TEST(chart_phases)
{
    check_phases(&line, 0, "");
    check_phases(&line, 3, "FBO");
    check_phases(&line, 6, "|F|B|O");
    check_phases(&line, 15, "|fwd |bwd |opt.");
    check_phases(&line, 30, "|forward  |backward |optimizer");
}
END_TEST

START_TEST(chart)
{
    ms_timeline changed = line;
    check_chart(&line, 0, "");
    check_chart(&line, 1, "█");
    check_chart(&line, 3, "▅██"); /* the third begins at 10 of 10 MiB */
    check_chart(&line, 6, "▅▅███▇");
    changed.step_ns = 0;
    check_chart(&changed, 7, "▃▅██▇▇▆");
    changed.n_events = 0;
    check_chart(&changed, 3, "   ");
}
END_TEST

/* ---- escaping ------------------------------------------------------------ */

static void check_literal(const char *bytes, bool is_bold, double limit_px,
                          const char *expected)
{
    ms_text text = {.arena = &arena};
    ms_escape_literal(&text, bytes, 10.0, is_bold, limit_px);
    ck_assert_str_eq(text.bytes, expected);
}

START_TEST(escaping)
{
    check_literal("plain", false, 1e3, "'plain'");
    check_literal("it's `id`", false, 1e3, "'it\xe2\x80\x99s `id`'");
    check_literal("a\nEOD\n!touch x\r\t\x01\x7f", false, 1e3,
                  "'a EOD !touch x    '");
    check_literal("\\^_@&~{}'", true, 1e3,
                  "'{/:Bold \\\\\\^\\_\\@\\&\\~\\{\\}\xe2\x80\x99}'");
    check_literal("\xc2\xb5s \xe2\x86\x91 \xd0\x96", false, 1e3,
                  "'\xc2\xb5s \xe2\x86\x91 \xd0\x96'");
    check_literal("\xe4\xbd\xa0\xf0\x9f\x98\x80\xd7\x90", false, 1e3,
                  "'?"
                  "?"
                  "?'");
    check_literal("\xe2\x80\xae"
                  "e\xcc\x81",
                  false, 1e3, "'e'");
    check_literal("", false, 1e3, "''");
}
END_TEST

/* Overlong, surrogate, too large, truncated, stray: one "?" per byte. */
START_TEST(escaping_of_bad_utf8)
{
    check_literal("\xc0\x80", false, 1e3,
                  "'?"
                  "?'");
    check_literal("\xe0\x80\xa7", false, 1e3,
                  "'?"
                  "?"
                  "?'");
    check_literal("\xed\xa0\x80", false, 1e3,
                  "'?"
                  "?"
                  "?'");
    check_literal("\xf4\x90\x80\x80", false, 1e3,
                  "'?"
                  "?"
                  "?"
                  "?'");
    check_literal("\xff\x80"
                  "a\xe2\x82",
                  false, 1e3,
                  "'?"
                  "?a?"
                  "?'");
}
END_TEST

START_TEST(cutting)
{
    double width = ms_escape_width("mmmm", 10.0, false);
    ck_assert_double_eq_tol(width, 4 * 8.33, 1e-9);
    check_literal("mmmm", false, width, "'mmmm'");
    check_literal("mmmmm", false, width, "'mm\xe2\x80\xa6'");
    check_literal("mmmmm", true, 0.0, "'{/:Bold \xe2\x80\xa6}'");
}
END_TEST

/* ---- stack --------------------------------------------------------------- */

START_TEST(thickness_keeps_the_peak)
{
    enum { N = 1000 };
    static ms_point points[N];
    for (uint32_t peak = 0; peak < N; peak += 37) {
        uint32_t found = 0;
        for (uint32_t i = 0; i < N; i++)
            points[i] = (ms_point){.t_ns = i, .total_bytes = i % 7};
        points[peak].total_bytes = 100;
        uint32_t n = ms_stack_thicken(points, N, N, 30);
        ck_assert_uint_ge(n, 20);
        ck_assert_uint_le(n, 31);
        for (uint32_t i = 0; i + 2 < n; i++)
            ck_assert_uint_ge(points[i + 1].t_ns, points[i].t_ns + 33);
        for (uint32_t i = 0; i < n; i++)
            found += points[i].total_bytes == 100;
        ck_assert_uint_eq(found, 1);
    }
}
END_TEST

START_TEST(steps_of_axes)
{
    ck_assert_double_eq_tol(ms_units_step(100.0, 9), 20.0, 1e-9);
    ck_assert_double_eq_tol(ms_units_step(90.0, 9), 10.0, 1e-9);
    ck_assert_double_eq_tol(ms_units_step(1.3, 7), 0.2, 1e-9);
    ck_assert_str_eq(ms_units_bytes(UINT64_C(2800) << 30)->name, "GiB");
    ck_assert_str_eq(ms_units_bytes(UINT64_MAX)->name, "EiB");
    ck_assert_str_eq(ms_units_bytes(1023)->name, "B");
    ck_assert_str_eq(ms_units_time(1999999999)->name, "ms");
}
END_TEST

/* ---- gnuplot and figures ------------------------------------------------- */

START_TEST(formats)
{
    ms_format format;
    ck_assert_int_eq(ms_gnuplot_format("a.b/c.svg", &format, &fault), MS_OK);
    ck_assert_int_eq(format, MS_SVG);
    ck_assert_int_eq(ms_gnuplot_format("x.PNG", &format, &fault), MS_OK);
    ck_assert_int_eq(format, MS_PNG);
    ck_assert_int_eq(ms_gnuplot_format("x.pdf", &format, &fault), MS_OK);
    ck_assert_int_eq(format, MS_PDF);
    ck_assert_int_eq(ms_gnuplot_format("-", &format, &fault), MS_OK);
    ck_assert_int_eq(format, MS_SVG);
    ck_assert_int_eq(ms_gnuplot_format(".svg", &format, &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.hint, ".svg, .png or .pdf"));
}
END_TEST

START_TEST(gnuplot_is_missing)
{
    char before[4096];
    const char *path = getenv("PATH");
    snprintf(before, sizeof before, "%s", path != NULL ? path : "");
    setenv("PATH", "/nonexistent", 1);
    ms_err err = draw(_i, "title", "a.svg");
    setenv("PATH", before, 1);
    ck_assert_int_eq(err, MS_EPROGRAM);
    ck_assert_ptr_nonnull(strstr(fault.what, "gnuplot was not found"));
    ck_assert_ptr_nonnull(strstr(fault.hint, "apt install gnuplot-nox"));
    ck_assert_int_eq(folder_entries(), 0);
}
END_TEST

static ms_err run_script(const char *script)
{
    char *picture;
    size_t length;
    fault = (ms_fault){0};
    return ms_gnuplot_run(script, strlen(script), MS_SVG, &arena, &picture,
                          &length, &fault);
}

START_TEST(gnuplot_fails)
{
    if (!has_gnuplot())
        return;
    ck_assert_int_eq(run_script("set terminal svg\nplot nonsense\n"),
                     MS_EPROGRAM);
    ck_assert_ptr_nonnull(strstr(fault.what, "undefined variable: nonsense"));
    ck_assert_int_eq(run_script(""), MS_EPROGRAM);
    ck_assert_ptr_nonnull(strstr(fault.what, "no whole picture"));
    ck_assert_int_eq(run_script("set terminal png\nplot x\n"), MS_EPROGRAM);
}
END_TEST

/* gnuplot ends long before it has read the script: no SIGPIPE kills us. */
START_TEST(gnuplot_stops_reading)
{
    size_t n = 4u << 20;
    char *script = ms_arena_take(&arena, n + 1, 1);
    if (!has_gnuplot())
        return;
    memset(script, '\n', n);
    memcpy(script, "exit\n", 5);
    ck_assert_int_eq(run_script(script), MS_EPROGRAM);
}
END_TEST

static const struct {
    const char *name, *first, *last;
} pictures[] = {{"a.svg", "<?xml", "</svg>"},
                {"a.png", "\x89PNG", "IEND"},
                {"a.pdf", "%PDF", "%%EOF"}};

START_TEST(figures_are_the_same_each_time)
{
    enum { SIZE = 1 << 20 };
    int kind = _i % N_KINDS, format = _i / N_KINDS;
    const char *name = pictures[format].name;
    if (!has_gnuplot())
        return;
    char *once = ms_arena_take(&arena, SIZE, 1);
    char *again = ms_arena_take(&arena, SIZE, 1);
    ck_assert_int_eq(draw(kind, "a model", name), MS_OK);
    size_t n = folder_read(folder_path(name), once, SIZE);
    ck_assert_int_eq(
        memcmp(once, pictures[format].first, strlen(pictures[format].first)),
        0);
    if (strcmp(name, "a.pdf") == 0)
        sleep(1); /* its date would differ */
    ck_assert_int_eq(draw(kind, "a model", name), MS_OK);
    ck_assert_uint_eq(folder_read(folder_path(name), again, SIZE), n);
    ck_assert_mem_eq(once, again, n);
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

static const char *const hostile[] = {
    "`touch PWNED`",
    "\"; system('touch PWNED'); \"",
    "'; system('touch PWNED'); '",
    "x'\n!touch PWNED\n",
    "x\nEOD\n!touch PWNED\nEOD\n",
    "\\'\nset output '|touch PWNED'\n",
    "@{system('touch PWNED')} \\",
    "}' ; !touch PWNED #",
    "\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80",
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
    "\xff\xfe\x80 \x1b[31m ^{_a",
    "{/=500 huge} &{x} @y ~a{b}",
};
#define N_HOSTILE ((int)(sizeof hostile / sizeof hostile[0]))

START_TEST(titles_inject_nothing)
{
    char before[4096];
    if (!has_gnuplot())
        return;
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder), 0);
    ms_err err = draw(_i % N_KINDS, hostile[_i / N_KINDS], "a.png");
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_msg(err == MS_OK, "%s", fault.what);
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

START_TEST(figure_to_full_disk)
{
    ck_assert_int_eq(symlink("/dev/full", folder_path("full.svg")), 0);
    if (!has_gnuplot())
        return;
    ck_assert_int_eq(draw(0, "x", "full.svg"), MS_ESYSTEM);
    ck_assert_ptr_nonnull(strstr(fault.what, "No space left"));
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

START_TEST(script_is_kept)
{
    static char bytes[1 << 18];
    char script[256];
    if (!has_gnuplot())
        return;
    strcpy(script, folder_path("a.gp"));
    ck_assert_int_eq(draw_with(0, "x", "a.svg", script), MS_OK);
    folder_read(script, bytes, sizeof bytes);
    ck_assert_ptr_nonnull(strstr(bytes, "peak 10.00 MiB at 10.00 "));
    ck_assert_ptr_nonnull(strstr(bytes, "'capacity 9 MiB'"));
    ck_assert_ptr_nonnull(strstr(bytes, "'reserved, max'"));
    ck_assert_ptr_nonnull(strstr(bytes, "$over << EOD"));
    ck_assert_ptr_null(strstr(bytes, folder));
}
END_TEST

/* Out of host memory at each allocation: an error, no file. */
START_TEST(figure_without_memory)
{
    ms_err err = MS_ENOMEM;
    if (!has_gnuplot())
        return;
    for (long n = 1; err == MS_ENOMEM && n < 100; n++) {
        ms_arena_free(&arena);
        fault = (ms_fault){0};
        ms_arena_fail_after(n);
        err = draw(_i, "x", "a.svg");
        ms_arena_fail_after(0);
        ck_assert_int_eq(folder_entries(), err == MS_OK);
    }
    ck_assert_int_eq(err, MS_OK);
}
END_TEST

#define GIB (UINT64_C(1) << 30)

static void check_decimals(uint64_t value, uint64_t highest,
                           const char *expected)
{
    ms_text text = {.arena = &arena};
    ms_units_put_decimals(&text, value, ms_units_bytes(highest), highest);
    ck_assert_str_eq(text.bytes, expected);
}

START_TEST(decimals_follow_the_highest)
{
    check_decimals(GIB * 3 / 2, 2 * GIB, "1.50");
    check_decimals(GIB * 3 / 2, 20 * GIB, "1.5");
    check_decimals(GIB * 3 / 2, 2000 * GIB, "2");
    check_decimals(GIB / 100, 20 * GIB, "<0.1");
    check_decimals(GIB / 10, 20 * GIB, "0.1");
    check_decimals(GIB / 1000, 2 * GIB, "<0.01");
    check_decimals(1, 2000 * GIB, "<1");
    check_decimals(0, 20 * GIB, "0");
    check_decimals(7, 9, "7");
}
END_TEST

Suite *suite_plots(void)
{
    Suite *suite = suite_create("plots");
    TCase *tcase = tcase_create("plots");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, csv);
    tcase_add_test(tcase, chart);
    tcase_add_test(tcase, chart_phases);
    tcase_add_test(tcase, escaping);
    tcase_add_test(tcase, escaping_of_bad_utf8);
    tcase_add_test(tcase, cutting);
    tcase_add_test(tcase, thickness_keeps_the_peak);
    tcase_add_test(tcase, steps_of_axes);
    tcase_add_test(tcase, formats);
    tcase_add_loop_test(tcase, gnuplot_is_missing, 0, N_KINDS);
    tcase_add_test(tcase, gnuplot_fails);
    tcase_add_test(tcase, gnuplot_stops_reading);
    tcase_add_loop_test(tcase, figures_are_the_same_each_time, 0, 3 * N_KINDS);
    tcase_add_loop_test(tcase, titles_inject_nothing, 0, N_HOSTILE * N_KINDS);
    tcase_add_test(tcase, figure_to_full_disk);
    tcase_add_test(tcase, script_is_kept);
    tcase_add_test(tcase, decimals_follow_the_highest);
    tcase_add_loop_test(tcase, figure_without_memory, 0, N_KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
