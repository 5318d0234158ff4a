/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of measured steps (times.tsv), a source at a time: how far memsim's are
 * off at the median and for 95 of 100 steps, and whether it orders those steps
 * as they were measured.  timebounds.tsv has what must hold. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_GROUPS 30 /* rows of timebounds.tsv */
#define MOST_STEPS 512u
/* Steps whose measured times differ by less are in no order. */
#define CLEAR 1.1

typedef struct timed {
    double measured, told; /* of a sample of the batch, us */
} timed;

typedef struct group {
    timed step[MOST_STEPS];
    double error[MOST_STEPS];
    uint32_t n;
} group;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(group *all, const truth_table *table, uint32_t row)
{
    const ms_result *result = truth_timed(truth_cell(table, row, "options"));
    double samples = (double)result->training.batch;
    double us = (double)truth_number(table, row, "microseconds");
    double told = truth_step_us(result);
    ck_assert_uint_lt(all->n, MOST_STEPS);
    all->error[all->n] = fabs(told / us - 1);
    all->step[all->n++] = (timed){us / samples, told / samples};
}

/* Of all pairs in a clear order, those that memsim has the other way round. */
static uint64_t misordered(const group *all)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        for (uint32_t k = 0; k < all->n; k++)
            n += all->step[i].measured > CLEAR * all->step[k].measured &&
                 all->step[i].told < all->step[k].told;
    return n;
}

static void within(const char *name, const char *quantity, uint64_t most,
                   double is)
{
    uint64_t rounded = (uint64_t)ceil(is - 1e-9);
    truth_compare("times", name, quantity, most,
                  rounded > most ? rounded : most);
}

/* The errors in tenths of a percent. */
static void check(group *all, const truth_table *bounds, uint32_t row,
                  const char *name)
{
    qsort(all->error, all->n, sizeof *all->error, ascending);
    uint32_t last = (uint32_t)(0.95 * (all->n - 1) + 0.5);
    within(name, "median error, 0.1 %", truth_number(bounds, row, "median"),
           1e3 * all->error[all->n / 2]);
    within(name, "error of 95 of 100, 0.1 %", truth_number(bounds, row, "most"),
           1e3 * all->error[last]);
    within(name, "pairs in the wrong order",
           truth_number(bounds, row, "misordered"), (double)misordered(all));
}

START_TEST(steps)
{
    truth_table table, bounds;
    static group all;
    truth_begin();
    truth_read_here("times.tsv", &table);
    truth_read_here("timebounds.tsv", &bounds);
    ck_assert_int_lt(_i, (int)bounds.n_rows);
    const char *name = truth_cell(&bounds, (uint32_t)_i, "group");
    const char *half = truth_cell(&bounds, (uint32_t)_i, "half");
    char title[64];
    snprintf(title, sizeof title, "%s, %s", name, half);
    all.n = 0;
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (strcmp(truth_cell(&table, row, "group"), name) == 0 &&
            strcmp(truth_cell(&table, row, "half"), half) == 0)
            add(&all, &table, row);
    ck_assert_uint_eq(all.n, truth_number(&bounds, (uint32_t)_i, "steps"));
    check(&all, &bounds, (uint32_t)_i, title);
    truth_end();
}
END_TEST

/* The step of a row by its id. */
static timed step_of(const truth_table *table, const char *id)
{
    for (uint32_t row = 0; row < table->n_rows; row++) {
        if (strcmp(truth_cell(table, row, "id"), id) != 0)
            continue;
        const ms_result *result =
            truth_timed(truth_cell(table, row, "options"));
        double samples = (double)result->training.batch;
        double us = (double)truth_number(table, row, "microseconds");
        double told = truth_step_us(result);
        return (timed){us / samples, told / samples};
    }
    ck_abort_msg("%s", id);
    return (timed){0};
}

START_TEST(ratios)
{
    truth_table table, pairs;
    truth_begin();
    truth_read_here("times.tsv", &table);
    truth_read_here("ratios.tsv", &pairs);
    for (uint32_t row = 0; row < pairs.n_rows; row++) {
        const char *id = truth_cell(&pairs, row, "over");
        timed over = step_of(&table, id);
        timed under = step_of(&table, truth_cell(&pairs, row, "under"));
        double told = over.told / under.told;
        double measured = over.measured / under.measured;
        within(id, "error of a ratio, 0.1 %",
               truth_number(&pairs, row, "within"),
               1e3 * fabs(told / measured - 1));
    }
    truth_end();
}
END_TEST

/* Every step of the table belongs to a group with bounds. */
START_TEST(all_are_counted)
{
    truth_table table, bounds;
    uint64_t n = 0;
    truth_begin();
    truth_read_here("times.tsv", &table);
    truth_read_here("timebounds.tsv", &bounds);
    ck_assert_uint_eq(bounds.n_rows, N_GROUPS);
    for (uint32_t row = 0; row < bounds.n_rows; row++)
        n += truth_number(&bounds, row, "steps");
    ck_assert_uint_eq(n, table.n_rows);
    truth_end();
}
END_TEST

Suite *suite_times(void)
{
    Suite *suite = suite_create("times");
    TCase *tcase = tcase_create("times");
    tcase_set_timeout(tcase, 240);
    tcase_add_loop_test(tcase, steps, 0, N_GROUPS);
    tcase_add_test(tcase, all_are_counted);
    tcase_add_test(tcase, ratios);
    suite_add_tcase(suite, tcase);
    return suite;
}
