/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of settings give the steps of the rows whose source they are. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/from/pairs/pairs.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

typedef struct step {
    uint64_t allocated, parameters, states, host;
} step;

static step look(const ms_result *result)
{
    const ms_rank_report *rank =
        &result->report->ranks[result->report->n_ranks - 1];
    return (step){rank->peak.allocated_bytes, result->graph->parameters,
                  rank->parameters_bytes + rank->gradients_bytes +
                      rank->optimizer_state_bytes,
                  result->report->host_peak_bytes};
}

/* The command of a row; a file that it begins with lies here. */
static const ms_result *run(const char *words, const char *file)
{
    char path[TESTS_PATH], relative[TESTS_PATH];
    size_t length = *words != '-' ? strcspn(words, " ") : 0;
    if (memchr(words, '.', length) == NULL)
        length = 0; /* a built-in model */
    snprintf(relative, sizeof relative, "tests/truth/%.*s", (int)length, words);
    tests_source(relative, path);
    return truth_run("%s%s%s%s", length > 0 ? path : "", words + length,
                     file != NULL ? " --from " : "", file != NULL ? file : "");
}

static void compare(const char *file, const step *row, const step *from)
{
    truth_compare("fromfiles", file, "allocated bytes", row->allocated,
                  from->allocated);
    truth_compare("fromfiles", file, "parameters", row->parameters,
                  from->parameters);
    truth_compare("fromfiles", file, "bytes of states", row->states,
                  from->states);
    truth_compare("fromfiles", file, "bytes of the host", row->host,
                  from->host);
}

START_TEST(as_their_rows)
{
    truth_table table;
    char path[TESTS_PATH], relative[96];
    truth_begin();
    truth_read_here("fromfiles.tsv", &table);
    for (uint32_t i = 0; i < table.n_rows; i++) {
        const char *file = truth_cell(&table, i, "file");
        if (strstr(file, ".yaml") != NULL && !ms_yamlpairs_is_there())
            continue;
        snprintf(relative, sizeof relative, "tests/truth/from/%s", file);
        tests_source(relative, path);
        step row = look(run(truth_cell(&table, i, "row"), NULL));
        step from = look(run(truth_cell(&table, i, "typed"), path));
        compare(file, &row, &from);
    }
    truth_end();
}
END_TEST

Suite *suite_fromfiles(void)
{
    Suite *suite = suite_create("fromfiles");
    TCase *cases = tcase_create("fromfiles");
    tcase_add_test(cases, as_their_rows);
    tcase_set_timeout(cases, 120);
    suite_add_tcase(suite, cases);
    return suite;
}
