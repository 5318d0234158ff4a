/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every count of trust A and every measured bound of the collection has a
 * row in published.tsv or fits.tsv, or in uncounted.tsv with the reason. */
#include "sim/base/files.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static bool names(const truth_table *table, const char *id)
{
    for (uint32_t row = 0; row < table->n_rows; row++)
        if (fnmatch(truth_cell(table, row, "id"), id, 0) == 0)
            return true;
    return false;
}

/* Reads the value of a key of a case, which must be on one line. */
static bool value_of(const char *line, const char *key, char *value,
                     size_t size)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"%s\":\"", key);
    const char *at = strstr(line, wanted);
    const char *end = strchr(line, '\n');
    if (at == NULL || (end != NULL && at > end))
        return false;
    at += strlen(wanted);
    snprintf(value, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

static bool is_wanted(const char *line, char *id, size_t size)
{
    char kind[64], trust[4];
    return value_of(line, "id", id, size) &&
           value_of(line, "kind", kind, sizeof kind) &&
           value_of(line, "trust", trust, sizeof trust) &&
           (strcmp(kind, "measured_bound") == 0 ||
            (strcmp(kind, "config_count") == 0 && strcmp(trust, "A") == 0));
}

static uint32_t find_all(const char *path)
{
    static const char *const files[] = {"published.tsv", "fits.tsv",
                                        "uncounted.tsv"};
    ms_arena arena = {0};
    ms_fault fault = {0};
    truth_table tables[3];
    char *bytes, id[96];
    size_t length;
    uint32_t n = 0;
    for (size_t i = 0; i < 3; i++)
        truth_read_here(files[i], &tables[i]);
    ck_assert_int_eq(
        ms_files_read(path, 1 << 26, &arena, &bytes, &length, &fault), MS_OK);
    for (const char *line = bytes; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!is_wanted(line, id, sizeof id))
            continue;
        n++;
        ck_assert_msg(names(&tables[0], id) || names(&tables[1], id) ||
                          names(&tables[2], id),
                      "%s is nowhere", id);
    }
    ms_arena_free(&arena);
    return n;
}

/* Every row of the collection is accounted for. */
START_TEST(all_of_them)
{
    char path[TESTS_PATH];
    truth_begin();
    if (tests_truth("published/cases.json", path))
        ck_assert_uint_gt(find_all(path), 0);
    if (tests_truth("published/cases2.json", path))
        ck_assert_uint_gt(find_all(path), 0);
    truth_end();
}
END_TEST

Suite *suite_published_all(void)
{
    Suite *suite = suite_create("published_all");
    TCase *tcase = tcase_create("published_all");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, all_of_them);
    suite_add_tcase(suite, tcase);
    return suite;
}
