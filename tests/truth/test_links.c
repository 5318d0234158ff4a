/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collectives on real nodes (links.tsv): bus bandwidth by size. */
#include "graphs/machines/communicators.h"
#include "sim/replay/collective.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/jobprogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ms_collective kind_of(const char *name)
{
    static const char *const names[] = {"all-gather", "reduce-scatter",
                                        "all-reduce", "broadcast",
                                        "all-to-all", "send"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (ms_collective)i;
    ck_abort_msg("no collective \"%s\"", name);
}

static ms_arena arena;

/* By name, or a file that lies here. */
static const ms_device *device_of(const truth_table *table, uint32_t row)
{
    const char *name = truth_cell(table, row, "device");
    const ms_device *device = NULL;
    ms_fault fault = {0};
    char path[TESTS_PATH], relative[TESTS_PATH];
    snprintf(relative, sizeof relative, "tests/truth/%s", name);
    tests_source(relative, path);
    ck_assert_int_eq(ms_device_read(strchr(name, '/') != NULL ? path : name,
                                    &arena, &device, &fault),
                     MS_OK);
    return device;
}

/* The ring of the device's links, without those that the row excludes. */
static ms_group ring_of(const truth_table *table, uint32_t row)
{
    const char *by = truth_cell(table, row, "by");
    ms_group ring =
        ms_communicators_row(device_of(table, row), MS_GROUP_DATA,
                             (uint32_t)truth_number(table, row, "ranks"), 1);
    if (strcmp(by, "curve") != 0)
        ring.links.n_curves = 0;
    if (strcmp(by, "ring") == 0)
        ring.links.nvls_share = 0;
    return ring;
}

START_TEST(bus_bandwidth)
{
    truth_table table;
    truth_begin();
    truth_read_here("links.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        char name[96], quantity[96];
        const char *collective = truth_cell(&table, row, "collective");
        ms_group ring = ring_of(&table, row);
        ms_collective kind = kind_of(collective);
        uint64_t kib = truth_number(&table, row, "kib");
        double sent = (double)ms_collective_sent_bytes(&ring, kind, kib << 10);
        double ns = (double)ms_collective_ns(&ring, kind, kib << 10);
        snprintf(name, sizeof name, "%u x %s by %s", ring.ranks,
                 truth_cell(&table, row, "device"),
                 truth_cell(&table, row, "by"));
        snprintf(quantity, sizeof quantity, "%s of %llu KiB, 0.01 GB/s",
                 collective, (unsigned long long)kib);
        truth_compare("links", name, quantity,
                      truth_number(&table, row, "busbw"),
                      (uint64_t)(1e2 * sent / ns + 0.5));
    }
    truth_end();
    ms_arena_free(&arena);
}
END_TEST

/* ---- curves of collectives (collectives.tsv) ----------------------------- */

#define MOST_ROWS 1024u
#define EXACT 0.002 /* four digits of a rate, and whole ns */

typedef struct errors {
    double of[MOST_ROWS];
    uint32_t n;
} errors;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* memsim's time over the measured one, less 1. */
static double error_of(const truth_table *table, uint32_t row)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(
        ms_device_find(truth_cell(table, row, "device"), &device, &fault),
        MS_OK);
    ms_group group = ms_communicators_row(
        device, MS_GROUP_DATA, (uint32_t)truth_number(table, row, "ranks"), 1);
    double ns = (double)ms_collective_ns(
        &group, kind_of(truth_cell(table, row, "collective")),
        truth_number(table, row, "bytes"));
    return ns / (double)truth_number(table, row, "ns") - 1;
}

static bool is(const truth_table *table, uint32_t row, const char *column,
               const char *word)
{
    return strcmp(truth_cell(table, row, column), word) == 0;
}

START_TEST(curves_are_exact_at_their_points)
{
    truth_table table;
    truth_begin();
    truth_read_here("collectives.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        if (!is(&table, row, "point", "yes"))
            continue;
        double error = error_of(&table, row);
        ck_assert_msg(error < EXACT && error > -EXACT, "%s, %s, %s: %.4f",
                      truth_cell(&table, row, "device"),
                      truth_cell(&table, row, "collective"),
                      truth_cell(&table, row, "bytes"), error);
    }
    truth_end();
}
END_TEST

static void within(const char *name, const char *quantity, double share,
                   uint64_t most, errors *all)
{
    qsort(all->of, all->n, sizeof *all->of, ascending);
    double is = 1000 * all->of[(uint32_t)(share * (all->n - 1) + 0.5)];
    uint64_t rounded = (uint64_t)ceil(is - 1e-9);
    truth_compare("links", name, quantity, most,
                  rounded > most ? rounded : most);
}

/* Sizes that no curve has: in tenths of a percent, as they are; a better curve
 * lowers them. */
static const struct {
    const char *collective;
    uint64_t median, most;
} between[] = {{"all-gather", 20, 208},
               {"reduce-scatter", 32, 155},
               {"all-to-all", 16, 151}};

START_TEST(sizes_between)
{
    truth_table table;
    static errors all;
    const char *name = between[_i].collective;
    truth_begin();
    truth_read_here("collectives.tsv", &table);
    all.n = 0;
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (is(&table, row, "half", "report") &&
            is(&table, row, "collective", name)) {
            ck_assert_uint_lt(all.n, MOST_ROWS);
            all.of[all.n++] = fabs(error_of(&table, row));
        }
    ck_assert_uint_ge(all.n, 70);
    within(name, "held back, median error, 0.1 %", 0.5, between[_i].median,
           &all);
    within(name, "held back, error of 95 of 100, 0.1 %", 0.95, between[_i].most,
           &all);
    truth_end();
}
END_TEST

static const char *const measured[] = {"a100-80gb-sxm", "h100-80gb-sxm",
                                       "h200-141gb-sxm", "b200-180gb-sxm",
                                       "gb200-186gb"};
#define N_MEASURED (sizeof measured / sizeof *measured)

/* The same by device, of all three. */
START_TEST(devices_between)
{
    truth_table table;
    static errors all;
    char name[64];
    truth_begin();
    truth_read_here("collectives.tsv", &table);
    all.n = 0;
    for (uint32_t row = 0; row < table.n_rows; row++)
        if (is(&table, row, "half", "report") &&
            is(&table, row, "device", measured[_i])) {
            ck_assert_uint_lt(all.n, MOST_ROWS);
            all.of[all.n++] = fabs(error_of(&table, row));
        }
    snprintf(name, sizeof name, "%s, collectives", measured[_i]);
    truth_errors("links", name, all.of, all.n, 4, 30);
    truth_end();
}
END_TEST

Suite *suite_links(void)
{
    Suite *suite = suite_create("links");
    TCase *tcase = tcase_create("links");
    tcase_add_test(tcase, bus_bandwidth);
    tcase_add_test(tcase, curves_are_exact_at_their_points);
    tcase_add_loop_test(tcase, sizes_between, 0,
                        sizeof between / sizeof *between);
    tcase_add_loop_test(tcase, devices_between, 0, (int)N_MEASURED);
    suite_add_tcase(suite, tcase);
    return suite;
}
