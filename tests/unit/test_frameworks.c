/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of differences between frameworks against what the code does. */
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

static ms_arena keep;

static void set_up(void)
{
    keep = (ms_arena){0};
}

static void tear_down(void)
{
    ms_arena_free(&keep);
}

/* settings: "key=value key=value". */
static ms_result simulate(const char *model, const char *policy,
                          const char *settings, int64_t framework)
{
    ms_job job;
    ms_result result;
    ms_fault fault = {0};
    char words[128], *rest = words;
    ms_settings_init(&job);
    job.model = model;
    job.training.framework = framework;
    snprintf(words, sizeof words, "%s", settings);
    ck_assert_int_eq(ms_spec_parse(policy, &keep, &job.spec, &fault), MS_OK);
    for (char *key; (key = strtok_r(rest, " =", &rest)) != NULL;)
        ck_assert_int_eq(ms_training_set(&job.training, key,
                                         strtok_r(rest, " =", &rest), &fault),
                         MS_OK);
    ck_assert_msg(ms_jobway_run(&job, &keep, &keep, &result, &fault) == MS_OK,
                  "%s", fault.what);
    return result;
}

static uint64_t count_ops(const ms_graph *graph, const char *name, int pass)
{
    uint64_t n = 0;
    for (uint32_t op = 0; op < graph->n_ops; op++)
        n += strcmp(graph->op_name[op], name) == 0 &&
             (pass < 0 || graph->op_pass[op] == pass);
    return n;
}

static uint64_t second_gradient(int64_t framework)
{
    ms_result r = simulate("gpt2", "none", "sequence=16", framework);
    return count_ops(r.graph, "aten::add", MS_GRAD_INPUT);
}

static uint64_t mean(int64_t framework)
{
    ms_result r =
        simulate("llama-3.2-1b", "none",
                 "sequence=16 kernels=eager optimizer=none", framework);
    return r.report->ranks[0].saved_for_backward_bytes;
}

static uint64_t addmm(int64_t framework)
{
    ms_result r = simulate("gpt2", "none", "sequence=16", framework);
    uint64_t n = 0;
    for (uint32_t row = 0; row < r.plan->n_rows; row++)
        n += r.plan->row[row].category == MS_WORKSPACE &&
             r.plan->row[row].bytes == 1u << 20;
    return n;
}

/* Before the loss nothing else is left but the output. */
static uint64_t autocast(int64_t framework)
{
    char path[TESTS_PATH];
    tests_source("tests/truth/graphs/mlp8x1024_b64_drop.graph.json", path);
    ms_result r = simulate(path, "none",
                           "precision=autocast-bf16 mode=inference", framework);
    return r.report->ranks[0].levels[MS_MARK_BEFORE_LOSS];
}

static uint64_t optimizer(int64_t framework)
{
    ms_result r = simulate("gpt2", "none", "sequence=16", framework);
    return count_ops(r.graph, "aten::_foreach_sqrt", -1);
}

static uint64_t foreach (int64_t framework)
{
    ms_result r = simulate("gpt2", "none", "sequence=16 optimizer_impl=foreach",
                           framework);
    return r.report->ranks[0].optimizer_scratch_bytes;
}

/* Whether gradients are copied, and the copies live to the end. */
static uint64_t decay(int64_t framework)
{
    ms_result r = simulate("gpt2", "none",
                           "sequence=16 optimizer=adam weight_decay=yes "
                           "optimizer_impl=foreach",
                           framework);
    return count_ops(r.graph, "aten::_foreach_add", -1) +
           r.report->ranks[0].optimizer_scratch_bytes;
}

/* Tensors that the norms of all gradients are in. */
static uint64_t clip(int64_t framework)
{
    ms_result r =
        simulate("gpt2", "none", "sequence=16 clip_norm=1", framework);
    uint64_t n = count_ops(r.graph, "aten::linalg_vector_norm", MS_STEP);
    for (uint32_t op = 0; op < r.graph->n_ops; op++)
        if (strcmp(r.graph->op_name[op], "aten::_foreach_norm") == 0)
            n += 1000 + r.graph->out_at[op + 1] - r.graph->out_at[op];
    return n;
}

static uint64_t record(int64_t framework)
{
    ms_result r = simulate("gpt2", "none", "sequence=16 device=cpu", framework);
    return count_ops(r.graph, "profiler::_record_function_enter", -1);
}

static uint64_t variant(int64_t framework)
{
    ms_result r = simulate("gpt2", "checkpoint:full", "sequence=16", framework);
    ms_result reentrant = simulate("gpt2", "checkpoint:full,variant=reentrant",
                                   "sequence=16", framework);
    return r.plan->n_ops == reentrant.plan->n_ops &&
           r.plan->n_rows == reentrant.plan->n_rows;
}

static uint64_t early_stop(int64_t framework)
{
    ms_result r = simulate("gpt2", "checkpoint:full,variant=nonreentrant",
                           "sequence=16", framework);
    return r.plan->recomputed_ops;
}

/* In the order of the table; what is counted changes where the rule does. */
static uint64_t (*const probes[])(int64_t framework) = {
    second_gradient, mean, addmm,  autocast, optimizer,  foreach,
    decay,           clip, record, variant,  early_stop,
};

START_TEST(the_table_is_what_the_code_does)
{
    const ms_framework_row *row = &ms_frameworks_rows[_i];
    uint64_t before = probes[_i](MS_TORCH_1_13);
    ck_assert_ptr_nonnull(row->rule[0]);
    for (int64_t f = MS_TORCH_2_0; f <= MS_TORCH_2; f++) {
        uint64_t now = probes[_i](f);
        ck_assert_msg((now == before) == (row->rule[f] == NULL), "%s: %s",
                      row->what, row->rule[f] != NULL ? row->rule[f] : "same");
        before = now;
    }
}
END_TEST

START_TEST(each_row_has_a_probe)
{
    ck_assert_uint_eq(sizeof probes / sizeof *probes, ms_frameworks_n);
}
END_TEST

Suite *suite_frameworks(void)
{
    Suite *suite = suite_create("frameworks");
    TCase *tcase = tcase_create("frameworks");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, each_row_has_a_probe);
    tcase_add_loop_test(tcase, the_table_is_what_the_code_does, 0,
                        (int)(sizeof probes / sizeof *probes));
    suite_add_tcase(suite, tcase);
    return suite;
}
