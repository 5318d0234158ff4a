/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of memsim explain: instants, reasons, groups, changes. */
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tools/advice/remedy.h"
#include "tools/alive/alive.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/terminal/quantity.h"

#include <string.h>

typedef struct fixture {
    ms_arena keep, trial;
    ms_job job;
    ms_result result;
    ms_fault fault;
    ms_alive alive;
} fixture;

static fixture f;

static void setup(void)
{
    f = (fixture){0};
    ms_settings_init(&f.job);
    f.job.model = "gpt2";
    f.job.uses = true;
}

static void teardown(void)
{
    ms_arena_free(&f.trial);
    ms_arena_free(&f.keep);
}

static void use(const char *policy, const char *key, const char *value)
{
    if (policy != NULL)
        ck_assert_int_eq(ms_spec_parse(policy, &f.keep, &f.job.spec, &f.fault),
                         MS_OK);
    if (key != NULL)
        ck_assert_int_eq(ms_training_set(&f.job.training, key, value, &f.fault),
                         MS_OK);
}

static void simulate(void)
{
    ck_assert_int_eq(
        ms_jobway_run(&f.job, &f.keep, &f.trial, &f.result, &f.fault), MS_OK);
}

static void look(const char *at)
{
    ck_assert_int_eq(ms_alive_find(&f.result, at, &f.trial, &f.alive, &f.fault),
                     MS_OK);
}

static const char *name_of(uint32_t i, char buffer[MS_STORAGE_NAME])
{
    uint32_t storage = f.result.plan->row[f.alive.rows[i]].storage;
    return ms_graph_storage_name(f.result.graph, storage, buffer);
}

/* The first alive row of a name; it must be there. */
static uint32_t find(const char *name)
{
    char buffer[MS_STORAGE_NAME];
    for (uint32_t i = 0; i < f.alive.n; i++)
        if (strcmp(name_of(i, buffer), name) == 0)
            return i;
    ck_abort_msg("%s is not alive", name);
    return 0;
}

static const char *reader_of(uint32_t i)
{
    uint32_t op = f.alive.fates[i].reader;
    ck_assert_uint_ne(op, MS_NONE);
    return f.result.graph->op_name[f.result.plan->op[op].of];
}

START_TEST(times_have_units)
{
    static const struct {
        const char *text;
        uint64_t t_ns;
    } rows[] = {{"0s", 0},     {"12.5ms", 12500000},
                {"3us", 3000}, {"1.2s", 1200000000},
                {"7ns", 7},    {"1.5ns", 1}};
    uint64_t t_ns;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(ms_quantity_ns(rows[i].text, NULL, &t_ns, &f.fault),
                         MS_OK);
        ck_assert_uint_eq(t_ns, rows[i].t_ns);
    }
    static const char *const bad[] = {"",     "5",  "ms",   "1,5ms",
                                      "1.ms", "3m", "3 ms", "99999999999s"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(ms_quantity_ns(bad[i], NULL, &t_ns, &f.fault),
                         MS_EUSAGE);
}
END_TEST

/* Two ways to the same number: measure.c folds, instant.c searches. */
START_TEST(phases_agree_with_the_report)
{
    static const char *const policies[] = {"none", "checkpoint:sqrt",
                                           "microbatch:2"};
    f.job.book_device = _i % 2;
    use(policies[_i / 2], "batch", "2");
    simulate();
    for (uint32_t p = 0; p < MS_N_PHASES; p++) {
        const uint64_t *peaks =
            f.result.report->ranks[0].phase_peaks_with_workspace;
        look(ms_names_phase[p]);
        ck_assert_uint_eq(f.alive.instant.bytes, peaks[p]);
    }
    look(NULL);
    ck_assert_uint_eq(f.alive.instant.event,
                      f.result.report->ranks[0].peak.event);
}
END_TEST

/* All that is alive is what the level says, at any time. */
START_TEST(alive_adds_up_at_any_time)
{
    use("checkpoint:sqrt", NULL, NULL);
    simulate();
    for (uint32_t i = 0; i <= 10; i++) {
        uint64_t bytes = 0;
        const char *at = ms_arena_format(
            &f.trial, "%lluns",
            (unsigned long long)(f.result.line->step_ns * i / 10));
        look(at);
        for (uint32_t r = 0; r < f.alive.n; r++) {
            bytes += f.result.plan->row[f.alive.rows[r]].bytes;
            ck_assert_uint_lt(f.alive.fates[r].why, MS_N_WHYS);
            ck_assert(!ms_why_reads(f.alive.fates[r].why) ||
                      f.alive.fates[r].reader >= f.alive.instant.now);
        }
        ck_assert_uint_eq(bytes, f.alive.instant.bytes);
    }
}
END_TEST

START_TEST(reasons)
{
    simulate();
    look("loss");
    uint32_t up = find("layers.3.mlp.up:out");
    ck_assert_int_eq(f.alive.fates[up].why, MS_WHY_SAVED);
    ck_assert_str_eq(reader_of(up), "aten::gelu_backward");
    ck_assert_int_eq(f.alive.fates[find("head:out")].why, MS_WHY_OUTPUT);
    ck_assert_int_eq(f.alive.fates[find("layers.3.mlp.up:weight")].why,
                     MS_WHY_PARAMETER);
    look("backward");
    ck_assert_int_eq(f.alive.fates[find("loss:loss")].why, MS_WHY_LOSS);
    look("optimizer");
    ck_assert_int_eq(f.alive.fates[find("layers.3.mlp.up:exp_avg")].why,
                     MS_WHY_STATE);
    ck_assert_int_eq(f.alive.fates[find("input")].why, MS_WHY_INPUT);
}
END_TEST

START_TEST(reasons_of_a_checkpoint)
{
    use("checkpoint:full", NULL, NULL);
    simulate();
    look("loss");
    uint32_t input = find("layers.3.residual2:out");
    ck_assert_int_eq(f.alive.fates[input].why, MS_WHY_HELD);
    ck_assert_int_eq(f.result.plan->op[f.alive.fates[input].reader].pass,
                     MS_RECOMPUTE);
    char buffer[MS_STORAGE_NAME];
    for (uint32_t i = 0; i < f.alive.n; i++)
        ck_assert_str_ne(name_of(i, buffer), "layers.3.mlp.up:out");
}
END_TEST

START_TEST(groups_list_their_numbers)
{
    static const char *const layers[] = {"a.2.b", "a.0.b", "a.1.b",
                                         "a.5.b", "a.1.c", "a"};
    ms_alike groups[6] = {0};
    ms_text text = {.arena = &f.trial};
    for (uint32_t i = 0; i < 6; i++)
        groups[i] = (ms_alike){.layer = layers[i],
                               .role = "x",
                               .side = {{.bytes = 8, .each_bytes = 8}},
                               .member = i};
    ck_assert_uint_eq(ms_groups_merge(groups, 6, NULL), 3);
    ck_assert_uint_eq(groups[0].side[0].bytes, 32);
    ck_assert_uint_eq(groups[0].count, 4);
    ms_groups_name(&groups[0], &text);
    ms_groups_pattern("a.2.b", false, &text);
    ms_groups_pattern("a.2.b", true, &text);
    ck_assert_str_eq(text.bytes, "a.0-2,5.ba.*.ba.2.b");
}
END_TEST

/* Does a change of the table help the first alive row of a name?  Each row is
 * a group of its own here. */
static bool helps(const char *words, const char *name)
{
    uint32_t n,
        *group_of = ms_arena_take(&f.trial, f.alive.n, sizeof *group_of);
    ms_alike *groups = ms_arena_take(&f.trial, f.alive.n, sizeof *groups);
    ms_remedy *remedies;
    for (uint32_t i = 0; i < f.alive.n; i++) {
        group_of[i] = i;
        groups[i].side[0].bytes = f.result.plan->row[f.alive.rows[i]].bytes;
    }
    ms_remedy_task task = {.job = &f.job,
                           .alive = &f.alive,
                           .group_of = group_of,
                           .n_groups = f.alive.n,
                           .groups = groups};
    ck_assert_int_eq(ms_remedy_find(&task, &f.trial, &remedies, &n, &f.fault),
                     MS_OK);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(remedies[i].words, words) == 0)
            return remedies[i].helps[find(name)];
    return false;
}

START_TEST(changes_that_help)
{
    use(NULL, "kernels", "eager");
    use(NULL, "batch", "6");
    use(NULL, "optimizer_impl", "foreach");
    simulate();
    look("loss");
    ck_assert(helps("checkpoint:full", "layers.3.mlp.up:out"));
    ck_assert(!helps("checkpoint:selective", "layers.3.mlp.up:out"));
    ck_assert(!helps("checkpoint:full", "layers.3.residual2:out"));
    ck_assert(helps("microbatch:2", "layers.3.residual2:out"));
    ck_assert(helps("checkpoint:selective", "layers.3.attention:mask"));
    ck_assert(helps("kernels=flash", "layers.3.attention:mask"));
    ck_assert(!helps("optimizer_impl=fused", "layers.3.mlp.up:out"));
    look("optimizer");
    ck_assert(helps("optimizer_impl=fused", "layers.3.mlp.up:sqrt"));
    ck_assert(helps("precision=bf16", "layers.3.mlp.up:exp_avg"));
    look("backward");
    ck_assert(helps("hold_output=none", "head:out"));
}
END_TEST

/* Another run of the fixture's model, with a policy, at its peak. */
static void look_again(const char *policy, ms_result *result, ms_alive *alive)
{
    f.job.spec = (ms_spec){0};
    use(policy, NULL, NULL);
    ck_assert_int_eq(ms_jobway_run(&f.job, &f.keep, &f.trial, result, &f.fault),
                     MS_OK);
    ck_assert_int_eq(ms_alive_find(result, NULL, &f.trial, alive, &f.fault),
                     MS_OK);
}

/* The differences of groups sum to that of the levels, in either order. */
START_TEST(differences_add_up)
{
    static const char *const policies[] = {"none", "checkpoint:sqrt",
                                           "checkpoint:full", "microbatch:4",
                                           "checkpoint:selective"};
    use("none", "batch", "8");
    use(NULL, "kernels", _i < 5 ? "eager" : "flash");
    simulate();
    look(NULL);
    ms_result other;
    ms_alive runs[2] = {f.alive};
    look_again(policies[_i % 5], &other, &runs[1]);
    for (int turn = 0; turn < 2; turn++) {
        ms_alike *groups;
        uint32_t n;
        uint64_t sum = 0;
        ck_assert_int_eq(ms_differ_find(runs, &f.trial, &groups, &n, &f.fault),
                         MS_OK);
        ck_assert(_i % 5 > 0 || n == 0);
        for (uint32_t g = 0; g < n; g++) {
            ck_assert_uint_gt(ms_groups_gap(&groups[g]), 0);
            ck_assert(g == 0 || ms_groups_gap(&groups[g - 1]) >=
                                    ms_groups_gap(&groups[g]));
            sum += groups[g].side[1].bytes - groups[g].side[0].bytes;
        }
        ck_assert_uint_eq(sum, runs[1].instant.bytes - runs[0].instant.bytes);
        ms_alive first = runs[0];
        runs[0] = runs[1];
        runs[1] = first;
    }
}
END_TEST

static const ms_alike *group_named(const ms_alike *groups, uint32_t n,
                                   const char *role, const char *op)
{
    for (uint32_t g = 0; g < n; g++)
        if (groups[g].layer != NULL && strcmp(groups[g].role, role) == 0 &&
            groups[g].op != NULL && strcmp(groups[g].op, op) == 0)
            return &groups[g];
    ck_abort_msg("no group %s made by %s", role, op);
    return NULL;
}

/* A peak in backward against one in the optimizer step. */
START_TEST(where_it_has_gone)
{
    ms_alike *groups;
    uint32_t n;
    ms_result other;
    ms_alive runs[2];
    use("none", "batch", "4");
    use(NULL, "optimizer_impl", "foreach");
    simulate();
    look("backward");
    runs[0] = f.alive;
    look_again("checkpoint:full", &other, &runs[1]);
    ck_assert_int_eq(ms_differ_find(runs, &f.trial, &groups, &n, &f.fault),
                     MS_OK);
    ck_assert_int_eq(group_named(groups, n, "out", "aten::gelu")->side[1].why,
                     other.report->ranks[0].peak.phase == MS_PHASE_BACKWARD
                         ? MS_WHY_FREED_AGAIN
                         : MS_WHY_FREED);
    ck_assert_int_eq(
        ms_alive_find(&other, "optimizer", &f.trial, &runs[1], &f.fault),
        MS_OK);
    ck_assert_int_eq(ms_differ_find(runs, &f.trial, &groups, &n, &f.fault),
                     MS_OK);
    const ms_alike *list =
        group_named(groups, n, "sqrt", "aten::_foreach_sqrt");
    ck_assert_int_eq(list->side[0].why, MS_WHY_NOT_YET);
    ck_assert_uint_eq(list->side[0].bytes, 0);
    ck_assert_int_eq(group_named(groups, n, "out", "aten::gelu")->side[1].why,
                     MS_WHY_FREED);
}
END_TEST

Suite *suite_explain(void)
{
    Suite *suite = suite_create("explain");
    TCase *tcase = tcase_create("explain");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, times_have_units);
    tcase_add_loop_test(tcase, phases_agree_with_the_report, 0, 6);
    tcase_add_test(tcase, alive_adds_up_at_any_time);
    tcase_add_test(tcase, reasons);
    tcase_add_test(tcase, reasons_of_a_checkpoint);
    tcase_add_test(tcase, groups_list_their_numbers);
    tcase_add_test(tcase, changes_that_help);
    tcase_add_loop_test(tcase, differences_add_up, 0, 10);
    tcase_add_test(tcase, where_it_has_gone);
    suite_add_tcase(suite, tcase);
    return suite;
}
