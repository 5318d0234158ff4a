/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads "35.6" as 356; *unit is the number of bytes that a step of the last
 * digit stands for. */
static uint64_t printed(const char *text, uint64_t *unit)
{
    uint64_t digits = 0;
    bool after = false;
    *unit = 1000000000;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '.') {
            after = true;
            continue;
        }
        digits = 10 * digits + (uint64_t)(*c - '0');
        *unit /= after ? 10 : 1;
    }
    return digits;
}

/* Rounds to the digits that the paper prints, or truncates where the paper
 * did. */
static uint64_t as_printed(uint64_t bytes, uint64_t unit, uint64_t truth)
{
    return bytes / unit == truth ? truth : (bytes + unit / 2) / unit;
}

START_TEST(table_1)
{
    truth_table table;
    truth_begin();
    truth_read_here("zero.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *parameters = truth_cell(&table, row, "parameters");
        const char *stage = truth_cell(&table, row, "stage");
        const char *ranks = truth_cell(&table, row, "ranks");
        char json[128], name[96];
        uint64_t unit;
        snprintf(json, sizeof json,
                 "{\"memsim\": 1, \"family\": \"parameters\", \"count\": %s}",
                 parameters);
        snprintf(name, sizeof name, "%s, stage %s, %s ranks", parameters, stage,
                 ranks);
        const ms_rank_report *rank = truth_rank(
            truth_run_json(json,
                           "states --precision fp16-mixed --optimizer adam "
                           "-p zero:%s,dp=%s,impl=ideal",
                           stage, ranks));
        uint64_t digits = printed(truth_cell(&table, row, "gigabytes"), &unit);
        truth_compare("zero", name, "last printed digit", digits,
                      as_printed(rank->parameters_bytes +
                                     rank->gradients_bytes +
                                     rank->optimizer_state_bytes,
                                 unit, digits));
    }
    truth_end();
}
END_TEST

/* Section 7 of the paper: what each rank sends per step, in 16-bit elements of
 * the model; 2 without sharing, with stages 1 and 2, at most 3 with stage 3
 * (the last unit's weights are still there when its backward begins). */
START_TEST(communication_volume)
{
    const uint64_t ranks = 8;
    truth_begin();
    for (unsigned stage = 0; stage <= 3; stage++) {
        char name[32];
        const ms_result *result = truth_run(
            "llama-2-7b --precision bf16-mixed -p zero:%u,dp=%" PRIu64, stage,
            ranks);
        uint64_t sent = truth_rank(result)->comm_bytes * ranks / (ranks - 1);
        uint64_t model_bytes = 2 * result->graph->parameters;
        snprintf(name, sizeof name, "stage %u", stage);
        truth_compare("zero", name, "times the model, sent", stage < 3 ? 2 : 3,
                      (sent + model_bytes / 2) / model_bytes);
        ck_assert_uint_le(sent, (stage < 3 ? 2 : 3) * model_bytes + 4096);
    }
    truth_end();
}
END_TEST

/* Gradients that are reduced when backward has ended are as many bytes, in the
 * same memory; nothing hides them, and the step is the longer for it. */
START_TEST(reduced_last)
{
    static const char *const stages[] = {"", "+microbatch:2", "+pipeline:2"};
    uint64_t bytes[2], peak[2], step[2], exposed[2];
    truth_begin();
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        for (int overlap = 0; overlap < 2; overlap++) {
            const ms_result *result = truth_run(
                "gpt2 --batch 4 --gpus 8 --allocator exact "
                "-p zero:1,dp=%d,impl=megatron,overlap_grad_reduce=%d%s",
                strstr(stages[i], "pipeline") ? 4 : 8, overlap, stages[i]);
            const ms_rank_report *rank = &result->report->ranks[0];
            bytes[overlap] = rank->comm_bytes;
            peak[overlap] = rank->peak.allocated_bytes;
            step[overlap] = rank->time.step_ns;
            exposed[overlap] = rank->time.exposed_comm_ns;
        }
        ck_assert_uint_eq(bytes[0], bytes[1]);
        ck_assert_uint_eq(peak[0], peak[1]);
        ck_assert_uint_gt(step[0], step[1]);
        ck_assert_uint_gt(exposed[0], exposed[1]);
    }
    truth_end();
}
END_TEST

/* Megatron-LM's distributed optimizer on 8 GPUs, 12 layers of 512 with the
 * vocabulary padded to 50304: bytes at the end of a step, as its CI measured
 * them (gpt3_mcore_te_tp1_pp1_dist_optimizer, A100), without the two cuBLAS
 * workspaces of 32 MiB and Transformer Engine's of 4 MiB. */
START_TEST(megatron)
{
    const uint64_t measured = 552128512, workspaces = (uint64_t)68 << 20;
    truth_begin();
    const ms_rank_report *rank = truth_rank(truth_run_json(
        "{\"memsim\": 1, \"family\": \"decoder\", \"config\": "
        "{\"layers\": 12, \"hidden\": 512, \"heads\": 8, \"vocab\": 50304, "
        "\"positions\": 1024}}",
        "mcore --precision bf16-mixed --optimizer adam "
        "-p zero:1,dp=8,impl=megatron"));
    truth_compare("zero", "megatron", "end of step, bytes",
                  measured - workspaces,
                  rank->parameters_bytes + rank->gradients_bytes +
                      rank->optimizer_state_bytes);
    truth_end();
}
END_TEST

Suite *suite_zero(void)
{
    Suite *suite = suite_create("zero");
    TCase *tcase = tcase_create("zero");
    tcase_add_test(tcase, table_1);
    tcase_add_test(tcase, communication_volume);
    tcase_add_test(tcase, reduced_last);
    tcase_add_test(tcase, megatron);
    suite_add_tcase(suite, tcase);
    return suite;
}
