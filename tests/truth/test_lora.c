/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Low-rank adapters of Llama-3.2-3B: the number of their parameters, the
 * bytes of each, and what frozen weights in 4 bits save. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

typedef struct seen {
    uint64_t gradients, states, active;
} seen;

/* options: "lora.rank=8 lora.base=nf4". */
static seen run(const char *options)
{
    char path[TESTS_PATH], words[256] = "", copy[128], *rest = copy;
    size_t used = 0;
    tests_source("tests/truth/llama-3.2-3b.json", path);
    snprintf(copy, sizeof copy, "%s", options);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
        used += (size_t)snprintf(words + used, sizeof words - used, " --set %s",
                                 word);
    const ms_result *result =
        truth_run("%s --precision bf16 --batch 2 --sequence 512 -p "
                  "checkpoint:full --set model.loss=liger_linear%s",
                  path, words);
    const ms_rank_report *rank = truth_rank(result);
    return (seen){.gradients = rank->gradients_bytes,
                  .states = rank->parameters_bytes + rank->gradients_bytes +
                            rank->optimizer_state_bytes,
                  .active = rank->peak.active_bytes};
}

static bool is_within(double truth, double memsim, double share)
{
    double off = memsim / truth - 1;
    return off <= share && off >= -share;
}

static void compare(const truth_table *table, uint32_t row)
{
    const char *name = truth_cell(table, row, "name");
    const char *quantity = truth_cell(table, row, "quantity");
    const char *less = truth_cell(table, row, "less");
    uint64_t truth = truth_number(table, row, "value");
    seen more = run(truth_cell(table, row, "options"));
    seen base = {0};
    if (*less != '-')
        base = run(less);
    if (strcmp(quantity, "trainable") == 0)
        truth_compare("lora", name, "trainable parameters", truth,
                      more.gradients / 4);
    else if (strcmp(quantity, "states") == 0)
        truth_compare("lora", name, "states, within 1 %: 1", 1,
                      is_within((double)truth,
                                (double)(more.states - base.states), 0.01));
    else
        truth_compare("lora", name, "active, within 5 %: 1", 1,
                      is_within((double)truth,
                                (double)(more.active - base.active), 0.05));
}

START_TEST(adapters)
{
    truth_table table;
    truth_begin();
    truth_read_here("lora.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

Suite *suite_lora(void)
{
    Suite *suite = suite_create("lora");
    TCase *tcase = tcase_create("lora");
    tcase_add_test(tcase, adapters);
    suite_add_tcase(suite, tcase);
    return suite;
}
