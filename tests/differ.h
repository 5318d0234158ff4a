/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_DIFFER_H
#define MS_TESTS_DIFFER_H

/* What a failing comparison says: the first difference, and what to look at
 * next.  Texts, in the words of tests/golden/run_golden.sh:
 *
 *     text.bytes:3: the first difference, in column 19
 *         expected: step 100 ns
 *         got:      step 101 ns
 *
 * Tables of numbers, row by row, told together at their end:
 *
 *     differ_table table = {.name = "vision.tsv"};
 *     differ_number(&table, "resnet50", "peak, bytes", 1024, peak_bytes,
 *                   "memsim run resnet50 --batch 2");
 *     ck_assert_msg(table.different == 0, "%s", differ_told(&table));
 *
 *     vision.tsv: 2 of 135 differ; the first:
 *         row:      resnet50
 *         column:   peak, bytes
 *         expected: 1024
 *         got:      1032 (+8, +0.781 %)
 *         look at:  memsim run resnet50 --batch 2
 *     and resnet18, peak, bytes: expected 512, got 514
 */

#include <stdbool.h>
#include <stdint.h>

#define DIFFER_TOLD 3000 /* bytes: of others as many as there is room for */

typedef struct differ_table {
    const char *name;
    uint32_t compared, different;
    char told[DIFFER_TOLD];
} differ_table;

/* True where they are equal; at: what to look at next, or NULL. */
bool differ_number(differ_table *table, const char *row, const char *column,
                   uint64_t expected, uint64_t got, const char *at);
bool differ_words(differ_table *table, const char *row, const char *column,
                  const char *expected, const char *got, const char *at);
/* What to say at the end. */
const char *differ_told(differ_table *table);

/* NULL where two texts are equal, else what to say, until the next call; what:
 * which text it is. */
const char *differ_texts(const char *what, const char *got,
                         const char *expected);

#endif
