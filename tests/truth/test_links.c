/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collectives on real nodes (links.tsv): bus bandwidth by size. */
#include "graphs/machines/communicators.h"
#include "sim/replay/collective.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/jobprogram.h"

#include <stdio.h>
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

/* The ring of the device's links, without those that the row excludes. */
static ms_group ring_of(const truth_table *table, uint32_t row)
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    const char *by = truth_cell(table, row, "by");
    ck_assert_int_eq(
        ms_device_find(truth_cell(table, row, "device"), &device, &fault),
        MS_OK);
    ms_group ring = ms_communicators_row(
        device, MS_GROUP_DATA, (uint32_t)truth_number(table, row, "ranks"), 1);
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
}
END_TEST

Suite *suite_links(void)
{
    Suite *suite = suite_create("links");
    TCase *tcase = tcase_create("links");
    tcase_add_test(tcase, bus_bandwidth);
    suite_add_tcase(suite, tcase);
    return suite;
}
