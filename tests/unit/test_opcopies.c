/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of what is equal one copy is kept. */
#include "graphs/opgraph/opcopies.h"
#include "tests/tests.h"

#include <string.h>

START_TEST(equal_runs_are_one)
{
    enum { RUNS = 1000 };
    ms_arena keep = {0}, scratch = {0};
    ms_opcopies all = {.keep = &keep, .scratch = &scratch};
    const void *copies[RUNS];
    uint64_t words[2];
    for (uint64_t i = 0; i < RUNS; i++) {
        words[0] = i;
        words[1] = i / 2;
        copies[i] = ms_opcopies_of(&all, words, sizeof words);
        ck_assert_ptr_nonnull(copies[i]);
        ck_assert_mem_eq(copies[i], words, sizeof words);
    }
    for (uint64_t i = 0; i < RUNS; i++) {
        words[0] = i;
        words[1] = i / 2;
        ck_assert_ptr_eq(ms_opcopies_of(&all, words, sizeof words), copies[i]);
    }
    ck_assert_uint_eq(all.n, RUNS);
    ms_arena_free(&keep);
    ms_arena_free(&scratch);
}
END_TEST

START_TEST(a_longer_run_is_another)
{
    ms_arena keep = {0}, scratch = {0};
    ms_opcopies all = {.keep = &keep, .scratch = &scratch};
    const uint64_t words[2] = {0, 0};
    const void *none = ms_opcopies_of(&all, words, 0);
    const void *one = ms_opcopies_of(&all, words, sizeof *words);
    const void *two = ms_opcopies_of(&all, words, sizeof words);
    ck_assert(none != NULL && one != NULL && two != NULL);
    ck_assert(none != one && one != two && none != two);
    ck_assert_ptr_eq(ms_opcopies_of(&all, words, 0), none);
    ms_arena_free(&keep);
    ms_arena_free(&scratch);
}
END_TEST

Suite *suite_opcopies(void)
{
    Suite *suite = suite_create("opcopies");
    TCase *tcase = tcase_create("opcopies");
    tcase_add_test(tcase, equal_runs_are_one);
    tcase_add_test(tcase, a_longer_run_is_another);
    suite_add_tcase(suite, tcase);
    return suite;
}
