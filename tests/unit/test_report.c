/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/tests.h"

#include <stdio.h>
#include <string.h>

#include "sim/graph.h"
#include "sim/report.h"
#include "tools/results/sheet.h"

/* A report by hand: only what the text shows. */
static const char *print_report(ms_arena *arena, ms_report *report)
{
    static const ms_graph graph = {.parameters = 174604259328};
    ms_report_names names = {.model = "a \"b\"",
                             .device = "h100",
                             .policy = "none",
                             .settings_json = "{\"training.batch\": 1}"};
    ms_text text = {.arena = arena};
    ms_sheet_json(report, &graph, &names, NULL, &text);
    ck_assert(!text.failed);
    return text.bytes;
}

static ms_report one_rank(ms_rank_report *rank)
{
    return (ms_report){.n_ranks = 1,
                       .ranks = rank,
                       .status = MS_OVER,
                       .headroom_bytes = -7,
                       .forward_flops = 1234567890123.0,
                       .tokens_per_second = -1,
                       .mfu = 0.5};
}

static void check_has(const char *json, const char *part)
{
    ck_assert_msg(strstr(json, part) != NULL, "no %s in %s", part, json);
}

START_TEST(names_are_those_of_the_design)
{
    static const char *const keys[] = {"schema_version",
                                       "memsim",
                                       "status",
                                       "model",
                                       "device",
                                       "policy",
                                       "settings",
                                       "parameters",
                                       "unknown_ops",
                                       "fits",
                                       "capacity_bytes",
                                       "headroom_bytes",
                                       "peak",
                                       "allocated_bytes",
                                       "active_bytes",
                                       "requested_bytes",
                                       "reserved_bytes",
                                       "time_ns",
                                       "event",
                                       "phase",
                                       "pass",
                                       "op",
                                       "layer",
                                       "micro_batch",
                                       "rank",
                                       "by_category",
                                       "optimizer_state",
                                       "gradients",
                                       "inputs",
                                       "activations",
                                       "temporaries",
                                       "workspace",
                                       "communication",
                                       "category_peaks",
                                       "model_states",
                                       "parameters_bytes",
                                       "gradients_bytes",
                                       "optimizer_state_bytes",
                                       "total_bytes",
                                       "levels",
                                       "start_bytes",
                                       "before_loss_bytes",
                                       "after_forward_bytes",
                                       "after_backward_bytes",
                                       "end_bytes",
                                       "phase_peaks",
                                       "forward_bytes",
                                       "loss_bytes",
                                       "backward_bytes",
                                       "optimizer_bytes",
                                       "optimizer_scratch_bytes",
                                       "phase_peaks_with_workspace",
                                       "phase_peaks_by_category",
                                       "saved_for_backward_bytes",
                                       "host_peak_bytes",
                                       "nvme_peak_bytes",
                                       "time",
                                       "step_ns",
                                       "forward_ns",
                                       "backward_ns",
                                       "recompute_ns",
                                       "optimizer_ns",
                                       "exposed_comm_ns",
                                       "stall_ns",
                                       "bubble_ns",
                                       "host_bound_ns",
                                       "idle_ns",
                                       "stalls",
                                       "flops",
                                       "forward",
                                       "backward",
                                       "recompute",
                                       "optimizer",
                                       "total",
                                       "traffic",
                                       "h2d_bytes",
                                       "d2h_bytes",
                                       "comm_bytes",
                                       "nvme_bytes",
                                       "tokens_per_second",
                                       "mfu",
                                       "events",
                                       "ranks",
                                       "stage",
                                       "in_flight_micro_batches"};
    ms_arena arena = {0};
    ms_rank_report rank = {0};
    ms_report report = one_rank(&rank);
    const char *json = print_report(&arena, &report);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s\": ", keys[i]);
        check_has(json, key);
    }
    ms_arena_free(&arena);
}
END_TEST

START_TEST(values_are_exact)
{
    ms_arena arena = {0};
    ms_rank_report rank = {.peak = {.allocated_bytes = 90071992547409931u,
                                    .t_ns = 12,
                                    .event = 3,
                                    .number = 3,
                                    .phase = MS_PHASE_BACKWARD,
                                    .pass = MS_RECOMPUTE,
                                    .op = "aten::addmm",
                                    .layer = "layers.3",
                                    .micro_batch = 2},
                           .parameters_bytes = 1,
                           .gradients_bytes = 20,
                           .optimizer_state_bytes = 300};
    ms_report report = one_rank(&rank);
    const char *json = print_report(&arena, &report);
    check_has(json, "{\"schema_version\": 1, \"memsim\": \"" MS_VERSION "\", "
                    "\"status\": \"over\", \"model\": \"a \\\"b\\\"\", ");
    check_has(json, "\"settings\": {\"training.batch\": 1}, "
                    "\"parameters\": 174604259328, \"unknown_ops\": [], "
                    "\"fits\": false, ");
    check_has(json, "\"headroom_bytes\": -7, ");
    check_has(json, "\"allocated_bytes\": 90071992547409931, ");
    check_has(json, "\"time_ns\": 12, \"event\": 3, \"phase\": \"backward\", "
                    "\"pass\": \"recompute\", \"op\": \"aten::addmm\", "
                    "\"layer\": \"layers.3\", \"micro_batch\": 2, ");
    check_has(json, "\"total_bytes\": 321}");
    check_has(json, "\"forward\": 1234567890123, ");
    check_has(json, "\"mfu\": 0.5, ");
    ms_arena_free(&arena);
}
END_TEST

START_TEST(what_does_not_apply_is_null)
{
    ms_arena arena = {0};
    ms_rank_report rank = {
        .peak = {.event = MS_NONE, .number = MS_NONE, .micro_batch = MS_NONE},
        .saved_for_backward_bytes = MS_NO_LEVEL};
    rank.levels[MS_MARK_BEFORE_LOSS] = MS_NO_LEVEL;
    ms_report report = one_rank(&rank);
    const char *json = print_report(&arena, &report);
    check_has(json, "\"time_ns\": null, \"event\": null, \"phase\": null, "
                    "\"pass\": null, \"op\": null, \"layer\": null, "
                    "\"micro_batch\": null, \"rank\": 0, ");
    check_has(json, "\"before_loss_bytes\": null, ");
    check_has(json, "\"saved_for_backward_bytes\": null, ");
    check_has(json, "\"tokens_per_second\": null, ");
    check_has(json, "\"stage\": null, ");
    ms_arena_free(&arena);
}
END_TEST

START_TEST(top_level_copies_the_worst_rank)
{
    ms_arena arena = {0};
    ms_rank_report ranks[2] = {{.rank = 0}, {.rank = 1}};
    ranks[1].peak.allocated_bytes = 77;
    ms_report report = one_rank(ranks);
    report.n_ranks = 2;
    report.worst = report.told = 1;
    const char *json = print_report(&arena, &report);
    const char *peak = strstr(json, "\"peak\": ");
    ck_assert(peak && !strncmp(peak, "\"peak\": {\"allocated_bytes\": 77", 30));
    const char *list = strstr(json, "\"ranks\": [{\"rank\": 0, ");
    ck_assert_ptr_nonnull(list);
    check_has(list, "}, {\"rank\": 1, \"stage\": null, "
                    "\"peak\": {\"allocated_bytes\": 77, ");
    const char *end = "}], \"timeline\": null}";
    ck_assert_str_eq(json + strlen(json) - strlen(end), end);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_report(void)
{
    Suite *suite = suite_create("report");
    TCase *tcase = tcase_create("report");
    tcase_add_test(tcase, names_are_those_of_the_design);
    tcase_add_test(tcase, values_are_exact);
    tcase_add_test(tcase, what_does_not_apply_is_null);
    tcase_add_test(tcase, top_level_copies_the_worst_rank);
    suite_add_tcase(suite, tcase);
    return suite;
}
