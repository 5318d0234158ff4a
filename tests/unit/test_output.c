/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files are written whole or not at all. */
#include "plots/plots.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static ms_fault fault;
static const char *folder;

static void setup(void)
{
    fault = (ms_fault){0};
    folder = folder_open();
}

static void teardown(void)
{
    folder_close();
}

static void check_content(const char *path, const char *expected)
{
    char bytes[256];
    folder_read(path, bytes, sizeof bytes);
    ck_assert_str_eq(bytes, expected);
}

START_TEST(writes_and_replaces)
{
    struct stat now;
    const char *path = folder_path("a");
    ck_assert_int_eq(ms_output_write(path, "one", 3, &fault), MS_OK);
    check_content(path, "one");
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(ms_output_write(path, "second", 6, &fault), MS_OK);
    check_content(path, "second");
    ck_assert_int_eq(ms_output_write(path, NULL, 0, &fault), MS_OK);
    check_content(path, "");
    ck_assert_int_eq(stat(path, &now), 0);
    ck_assert_uint_eq(now.st_mode & 0777u, 0640u);
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

START_TEST(follows_links)
{
    char link[256];
    struct stat now;
    strcpy(link, folder_path("link"));
    ck_assert_int_eq(symlink("target", link), 0);
    ck_assert_int_eq(ms_output_write(link, "x", 1, &fault), MS_ESYSTEM);
    ck_assert_ptr_nonnull(strstr(fault.what, "leads nowhere"));
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_output_write(folder_path("target"), "old", 3, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_output_write(link, "new", 3, &fault), MS_OK);
    check_content(folder_path("target"), "new");
    ck_assert_int_eq(lstat(link, &now), 0);
    ck_assert(S_ISLNK(now.st_mode));
}
END_TEST

static void check_refused(const char *path, const char *what)
{
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_output_write(path, "text", 4, &fault), MS_ESYSTEM);
    ck_assert_msg(strstr(fault.what, what) != NULL, "%s", fault.what);
}

START_TEST(refuses)
{
    char name[6000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    check_refused(folder, "is a directory");
    check_refused("", "is empty");
    check_refused("/dev/full", "No space left on device");
    check_refused(folder_path("none/a"), "No such file");
    check_refused("/proc/memsim", "cannot write");
    check_refused(name, "File name too long");
    ck_assert_int_eq(folder_entries(), 0);
}
END_TEST

START_TEST(into_read_only_folder)
{
    ck_assert_int_eq(ms_output_write(folder_path("a"), "old", 3, &fault),
                     MS_OK);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    tests_become_nobody();
    check_refused(folder_path("a"), "Permission denied");
    check_refused(folder_path("b"), "Permission denied");
    tests_become_self();
    check_content(folder_path("a"), "old");
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

/* A write that fails in the middle leaves the old file and nothing else. */
START_TEST(stops_in_the_middle)
{
    static char bytes[100000];
    struct rlimit before, small;
    const char *path = folder_path("a");
    ck_assert_int_eq(ms_output_write(path, "old", 3, &fault), MS_OK);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ms_err err = ms_output_write(path, bytes, sizeof bytes, &fault);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    ck_assert_int_eq(err, MS_ESYSTEM);
    ck_assert_ptr_nonnull(strstr(fault.what, "File too large"));
    check_content(path, "old");
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

START_TEST(to_standard_output)
{
    int saved = dup(STDOUT_FILENO);
    int file = open(folder_path("a"), O_WRONLY | O_CREAT, 0600);
    fflush(stdout);
    ck_assert_int_ge(dup2(file, STDOUT_FILENO), 0);
    ms_err err = ms_output_write("-", "text", 4, &fault);
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    close(saved);
    close(file);
    ck_assert_int_eq(err, MS_OK);
    check_content(folder_path("a"), "text");
}
END_TEST

/* ---- piece by piece ------------------------------------------------------ */

struct pieces {
    int n, signal_at; /* 0: never */
};

static bool next_piece(void *of, const char **bytes, size_t *length)
{
    struct pieces *pieces = of;
    *bytes = "piece\n";
    *length = pieces->n > 0 ? 6 : 0;
    if (pieces->signal_at != 0 && pieces->n == pieces->signal_at)
        kill(getpid(), SIGINT);
    pieces->n--;
    return true;
}

static bool next_fails(void *of, const char **bytes, size_t *length)
{
    (void)of;
    (void)bytes;
    (void)length;
    errno = ENOMEM;
    return false;
}

START_TEST(writes_pieces)
{
    struct pieces pieces = {.n = 3};
    const char *path = folder_path("a");
    ck_assert_int_eq(ms_output_stream(path, next_piece, &pieces, &fault),
                     MS_OK);
    check_content(path, "piece\npiece\npiece\n");
    ck_assert_int_eq(ms_output_stream(path, next_fails, NULL, &fault),
                     MS_ESYSTEM);
    ck_assert_ptr_nonnull(strstr(fault.what, "Cannot allocate memory"));
    check_content(path, "piece\npiece\npiece\n");
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
    interrupted = number;
}

/* An interrupt ends a long output, of which nothing stays; an ignored one does
 * not. */
START_TEST(interrupts_pieces)
{
    struct pieces pieces = {.n = 1000, .signal_at = 500};
    const char *path = folder_path("a");
    signal(SIGINT, note_interrupt);
    ck_assert_int_eq(ms_output_stream(path, next_piece, &pieces, &fault),
                     MS_ESYSTEM);
    ck_assert_int_eq(interrupted, SIGINT);
    ck_assert_int_eq(pieces.n, 499);
    ck_assert_int_eq(folder_entries(), 0);
    signal(SIGINT, SIG_IGN);
    pieces = (struct pieces){.n = 1000, .signal_at = 500};
    ck_assert_int_eq(ms_output_stream(path, next_piece, &pieces, &fault),
                     MS_OK);
    signal(SIGINT, SIG_DFL);
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

Suite *suite_output(void)
{
    Suite *suite = suite_create("output");
    TCase *tcase = tcase_create("output");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, writes_and_replaces);
    tcase_add_test(tcase, follows_links);
    tcase_add_test(tcase, refuses);
    tcase_add_test(tcase, into_read_only_folder);
    tcase_add_test(tcase, stops_in_the_middle);
    tcase_add_test(tcase, to_standard_output);
    tcase_add_test(tcase, writes_pieces);
    tcase_add_test(tcase, interrupts_pieces);
    suite_add_tcase(suite, tcase);
    return suite;
}
