/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the nodes of whole networks save, save by save, as the hooks of PyTorch
 * see it (saves_torch.py). */
#include "sim/graph.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdlib.h>
#include <string.h>

static void compare(const truth_table *table, uint32_t row,
                    const ms_graph *graph)
{
    const char *name = truth_cell(table, row, "case");
    uint64_t bytes = 0, own = 0, own_bytes = 0;
    for (uint32_t i = 0; i < graph->n_saves; i++) {
        const ms_save *save = &graph->saves[i];
        bytes += save->bytes;
        own += save->is_parameter;
        own_bytes += save->is_parameter ? save->bytes : 0;
    }
    truth_compare("saves", name, "saves", truth_number(table, row, "saves"),
                  graph->n_saves);
    truth_compare("saves", name, "bytes saved, each save",
                  truth_number(table, row, "bytes"), bytes);
    truth_compare("saves", name, "saves of parameters",
                  truth_number(table, row, "parameters"), own);
    truth_compare("saves", name, "bytes of parameters saved",
                  truth_number(table, row, "parameter_bytes"), own_bytes);
}

START_TEST(measured_saves)
{
    truth_table table;
    truth_begin();
    truth_read_here("saves.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        if (strcmp(truth_cell(&table, row, "kind"), "builtin") == 0) {
            compare(&table, row, truth_builtin(name)->graph);
            continue;
        }
        char *json = truth_graph("nets.jsonl", name);
        compare(&table, row,
                truth_run_json(json, "net --optimizer sgd --framework "
                                     "torch-1.13 --set training.device=cpu")
                    ->graph);
        free(json);
    }
    truth_end();
}
END_TEST

Suite *suite_saves(void)
{
    Suite *suite = suite_create("saves");
    TCase *tcase = tcase_create("saves");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, measured_saves);
    suite_add_tcase(suite, tcase);
    return suite;
}
