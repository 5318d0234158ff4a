/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED_STATUS 77 /* what CTest takes for "skipped" */
#define NOBODY 65534

/* Suites run in child processes; the names of files that they skip come back
 * through a file whose offset parent and children share. */
static FILE *skipped;

void tests_source(const char *relative, char path[TESTS_PATH])
{
    snprintf(path, TESTS_PATH, "%s/%s", MEMSIM_SOURCE_DIR, relative);
}

/* Why a clone does not have these files. */
static const char *licence_of(const char *relative)
{
    static const struct {
        const char *folder, *why;
    } licences[] = {
        {"allocator/", "recordings of others' runs, without a licence"},
        {"huggingface/", "published files, each under its model's licence"},
        {"published/", "result sets of others, without a licence"},
        {"published3/", "result sets of others, without a licence"},
    };
    for (size_t i = 0; i < sizeof licences / sizeof *licences; i++)
        if (strncmp(relative, licences[i].folder, strlen(licences[i].folder)) ==
            0)
            return licences[i].why;
    ck_abort_msg("%s: no licence keeps it out of the tree", relative);
}

bool tests_truth(const char *relative, char path[TESTS_PATH])
{
    const char *root = getenv("MEMSIM_TRUTH");
    if (root == NULL)
        root = MEMSIM_SOURCE_DIR "/../shared/truth";
    snprintf(path, TESTS_PATH, "%s/%s", root, relative);
    if (access(path, R_OK) == 0)
        return true;
    fprintf(skipped, "%s: %s\n", path, licence_of(relative));
    fflush(skipped);
    return false;
}

void tests_become_nobody(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
}

void tests_become_self(void)
{
    ck_assert_int_eq(seteuid(getuid()), 0);
}

const char *tests_memsim(void)
{
    const char *binary = getenv("MEMSIM_BINARY");
    return binary != NULL ? binary : "memsim";
}

static int print_skipped(void)
{
    char line[TESTS_PATH + 80];
    int n = 0;
    rewind(skipped);
    for (; fgets(line, sizeof line, skipped) != NULL; n++)
        printf("skipped, no such file: %s", line);
    if (n > 0)
        printf("%d skipped\n", n);
    return n;
}

int main(void)
{
    SRunner *runner = srunner_create(NULL);
#define SUITE(name) srunner_add_suite(runner, suite_##name());
#include "suites.inc"
#undef SUITE
    skipped = tmpfile();
    if (skipped == NULL) {
        perror("tmpfile");
        return EXIT_FAILURE;
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    if (run == 0)
        printf("no test ran: is the suite named as its file?\n");
    if (failed > 0 || run == 0)
        return EXIT_FAILURE;
    return print_skipped() > 0 ? SKIPPED_STATUS : EXIT_SUCCESS;
}
