/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TRUTH_H
#define MS_TRUTH_H

/* What the truth suites share: a run by the words a user would type, small
 * tables of numbers from outside, and one comparison that both asserts and
 * writes the table of tests/truth/table.sh.
 *
 *     START_TEST(gpt2_has_124_million)
 *     {
 *         truth_begin();
 *         const ms_result *result = truth_run("gpt2 --batch %d", 4);
 *         truth_compare("counts", "gpt2", "parameters", 124439808,
 *                       result->graph.parameters);
 *         truth_end();
 *     }
 *     END_TEST
 *
 * A difference that is understood stands in differences.tsv, to the last
 * byte and with its mechanism; any other difference fails the test. */

#include "tools/job/job.h"
#include "tools/job/result.h"

/* Every test is between these two; end fails where a comparison did. */
void truth_begin(void);
void truth_end(void);

/* Runs "MODEL [options]" as `memsim run` would.  The result lives until the
 * next run; a fault fails the test. */
const ms_result *truth_run(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* The same for a model given as JSON; MODEL only names it. */
const ms_result *truth_run_json(const char *json, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A row of times.tsv or peaks.tsv: a model that is a file lies here; a timed
 * step goes through no pool. */
const ms_result *truth_timed(const char *options);
const ms_result *truth_peak(const char *options);
/* The job of the last run. */
const ms_job *truth_job(void);
/* The one rank's part of the report. */
const ms_rank_report *truth_rank(const ms_result *result);
/* The step of the rank that takes longest. */
double truth_step_us(const ms_result *result);

uint64_t truth_larger(uint64_t a, uint64_t b);
/* Compares memsim's number with the truth; quantity names it with its unit. */
void truth_compare(const char *group, const char *name, const char *quantity,
                   uint64_t truth, uint64_t memsim);
/* The same for words: 1 where they are equal, else 0. */
void truth_compare_words(const char *group, const char *name,
                         const char *quantity, const char *truth,
                         const char *memsim);

/* The errors of n kernels of one kind on one device, "device, kind" (shares of
 * what was measured, in any order): the median and that of 95 of 100 are
 * compared in whole percent with what must hold.  They are a line of the file
 * that MEMSIM_KERNELS names, too (kernels.sh). */
void truth_errors(const char *group, const char *name, double *error,
                  uint32_t n, uint64_t median, uint64_t most);

/* A table with one line of column names, separated by tabs (.csv: commas);
 * lines that begin with # say where it is from. */
typedef struct truth_table {
    uint32_t n_columns, n_rows;
    char **cell; /* the column names, then the rows */
} truth_table;
/* Lives until truth_end. */
void truth_read(const char *path, truth_table *table);
/* The same for a file of this folder. */
void truth_read_here(const char *name, truth_table *table);
const char *truth_cell(const truth_table *table, uint32_t row,
                       const char *column);
uint64_t truth_number(const truth_table *table, uint32_t row,
                      const char *column);

/* The line of a file of this folder that is the op graph of a case; the copy is
 * the caller's to free. */
char *truth_graph(const char *file, const char *name);

/* Is op of the plan made after the loss by no op of the graph: the random state
 * that a replay sets aside? */
bool truth_is_state(const ms_plan *plan, uint32_t op);

/* steps.c: every quantity of one row of nets.tsv or its like. */
void truth_step(const char *group, const truth_table *table, uint32_t row,
                const ms_result *result);

/* steps.c: a built-in network as PyTorch ran it; "resnet34_b2" is resnet34 at
 * batch 2. */
const ms_result *truth_builtin(const char *name);

/* torch.c: every quantity of one row of the measured PyTorch steps. */
void truth_torch(const truth_table *table, uint32_t row);

#endif
