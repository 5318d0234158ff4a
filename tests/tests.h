/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_H
#define MS_TESTS_H

/* What every suite may use.  A suite is one file, test_NAME.c:
 *
 *     START_TEST(sum_of_two)
 *     {
 *         ck_assert_uint_eq(1 + 1, 2);
 *     }
 *     END_TEST
 *
 *     Suite *suite_NAME(void)
 *     {
 *         Suite *suite = suite_create("NAME");
 *         TCase *tcase = tcase_create("NAME");
 *         tcase_add_test(tcase, sum_of_two);
 *         suite_add_tcase(suite, tcase);
 *         return suite;
 *     }
 *
 * The name of the suite must be NAME: CTest selects by it.  A suite that
 * reads licence-bound files calls tests_truth first and returns where it says
 * false; CTest then shows the suite as skipped, with the missing files. */

#include "tests/differ.h"

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

#define SUITE(name) Suite *suite_##name(void);
#include "suites.inc"
#undef SUITE

/* Check's own prints both texts whole; this one where they part. */
#undef ck_assert_str_eq
#define ck_assert_str_eq(got, expected)                                        \
    do {                                                                       \
        const char *why_ = differ_texts(#got, got, expected);                  \
        ck_assert_msg(why_ == NULL, "%s", why_);                               \
    } while (0)

#define TESTS_PATH 4096

/* The path of a file of the source tree. */
void tests_source(const char *relative, char path[TESTS_PATH]);
/* The path of a file below MEMSIM_TRUTH; false, and counted as skipped, where
 * it cannot be read. */
bool tests_truth(const char *relative, char path[TESTS_PATH]);
/* Becomes the user nobody, because the superuser may read and write every file.
 */
void tests_become_nobody(void);
void tests_become_self(void);
/* The path of the memsim binary under test. */
const char *tests_memsim(void);

#endif
