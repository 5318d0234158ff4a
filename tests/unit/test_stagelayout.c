/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which layers a stage has, by each way to say it: the stages of frameworks'
 * rules, worked out by hand, and the same step as with the numbers alone. */
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/advice/evenout.h"

#include <stdio.h>
#include <string.h>

/* Of gpt2's 12 layers; chunks: of the numbers' pipeline. */
static const struct {
    const char *said, *ranks, *numbers;
} rows[] = {
    /* Megatron-LM's layouts */
    {"4,layers=Et*3|t*3|t*5|tL", "4", "3/3/5/1"},
    {"4,layers=E|t*6|t*6|L", "4", "0/6/6/0"},
    {"2,layers=Ettt|(ttt|)*2tttL", "2,chunks=2", "3/3/3/3"},
    {"3,layers=Et|(t*2|)*4tttL", "3,chunks=2", "1/2/2/2/2/3"},
    {"2,layers=E|*1t*12L", "2", "0/12"},
    /* stages without layers */
    {"4,layers=Et*3||t*8|tL", "4", "3/0/8/1"},
    {"3,layers=E||t*6|||t*6L", "3,chunks=2", "0/0/6/0/0/6"},
    /* its embedding and loss in the split, and its first and last rank */
    {"2,account=embedding/loss", "2", "6/6"},
    {"7,account=embedding/loss", "7", "1/2/2/2/2/2/1"},
    {"13,account=loss", "13", "1/1/1/1/1/1/1/1/1/1/1/1/0"},
    {"4,first=2,last=2", "4", "2/4/4/2"},
    {"3,last=4", "3", "4/4/4"},
    {"2,chunks=2,first=4,last=8", "2,chunks=2", "2/4/2/4"},
    /* torchtitan's, with remainders on the earliest stages */
    {"4,less=1/1", "4", "3/4/3/2"},
    {"4,per_stage=4", "4", "3/4/3/2"},
    {"2,per_stage=4", "2,chunks=2", "3/4/3/2"},
    {"4,less=0/2", "4", "4/4/3/1"},
    {"2,per_stage=8,less=2/0", "2", "5/7"},
};

static void list(const ms_result *result, char *text, size_t size)
{
    size_t length = 0;
    for (uint32_t k = 0; k < result->program->n_stages && length < size; k++)
        length += (size_t)snprintf(
            text + length, size - length, "%s%u", k > 0 ? "/" : "",
            ms_evenout_layers(result->graph, &result->program->stages[k]));
}

START_TEST(layouts_are_numbers)
{
    char layers[64];
    truth_begin();
    const ms_result *result =
        truth_run("gpt2 --sequence 64 --batch 12 -p microbatch:12+pipeline:%s",
                  rows[_i].said);
    list(result, layers, sizeof layers);
    ck_assert_str_eq(layers, rows[_i].numbers);
    const ms_report *report = result->report;
    const ms_rank_report said = report->ranks[report->worst];
    report = truth_run("gpt2 --sequence 64 --batch 12 -p "
                       "microbatch:12+pipeline:%s,layers=%s",
                       rows[_i].ranks, rows[_i].numbers)
                 ->report;
    const ms_rank_report numbered = report->ranks[report->worst];
    ck_assert_uint_eq(said.rank, numbered.rank);
    ck_assert_uint_eq(said.peak.allocated_bytes, numbered.peak.allocated_bytes);
    ck_assert_uint_eq(said.time.step_ns, numbered.time.step_ns);
    truth_end();
}
END_TEST

/* Stages without layers have the embedding or the loss alone; whatever the
 * layout, the weights are the model's, and a copy of the tied one. */
START_TEST(ends_may_stand_alone)
{
    uint64_t bytes[2];
    static const char *const layouts[] = {"0/6/6/0", "3/3/3/3"};
    truth_begin();
    for (int i = 0; i < 2; i++) {
        const ms_report *report =
            truth_run("gpt2 --sequence 64 --batch 4 -p microbatch:4+"
                      "pipeline:4,layers=%s",
                      layouts[i])
                ->report;
        bytes[i] = 0;
        for (uint32_t r = 0; r < report->n_ranks; r++)
            bytes[i] += report->ranks[r].parameters_bytes;
        if (i > 0)
            continue;
        ck_assert_uint_eq(report->ranks[0].parameters_bytes,
                          (50257 + 1024) * 768 * 2);
        ck_assert_uint_eq(report->ranks[3].parameters_bytes,
                          (50257 + 2) * 768 * 2);
    }
    ck_assert_uint_eq(bytes[0], bytes[1]);
    truth_end();
}
END_TEST

/* A stage without norms takes no part in the sum of their gradients. */
START_TEST(stages_without_norms_sum_none)
{
    truth_begin();
    const ms_report *report =
        truth_run("gpt2 --sequence 64 --batch 4 --kernels megatron --gpus 8 -p "
                  "tensor:2,sp+microbatch:4+pipeline:4,layers=0/6/6/0 --set "
                  "model.positions_type=rotary")
            ->report;
    ck_assert_uint_eq(report->n_ranks, 4);
    truth_end();
}
END_TEST

Suite *suite_stagelayout(void)
{
    Suite *suite = suite_create("stagelayout");
    TCase *tcase = tcase_create("stagelayout");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, layouts_are_numbers, 0,
                        sizeof rows / sizeof *rows);
    tcase_add_test(tcase, ends_may_stand_alone);
    tcase_add_test(tcase, stages_without_norms_sum_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
