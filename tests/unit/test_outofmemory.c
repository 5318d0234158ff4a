/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A law over every command: wherever host memory runs out, the answer is
 * MS_ENOMEM, or every byte is that of a run with enough memory. Nothing is left
 * out silently, and no other answer is given. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/from/from.h"
#include "tools/options/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_WORDS 14
#define ATTEMPTS 20 /* of each kind per command line: sanitizers are slow */
#define MANY 1000000000L

/* A command and its words; @ begins a file below tests/golden/files.  One
 * thread: memory fails on the thread that says so. */
static const char *const lines[][MOST_WORDS] = {
    {"run", "@tiny.json", "--memory=60MiB", "--batch=4"},
    {"run", "@tiny.json", "-p", "checkpoint:sqrt"},
    {"run", "@tiny.json", "--allocator=torch", "--lengths=2x8,16"},
    {"run", "@mlp.json", "--json", "--csv=/dev/null", "--trace=/dev/null"},
    {"run", "@unknown.json"},
    {"run", "@unknown.json", "--set=graph.unknown_op=conservative"},
    {"explain", "@tiny.json", "--batch=4"},
    {"explain", "@tiny.json", "--batch=4", "--memory=60MiB", "--json"},
    {"explain", "@tiny.json", "--at=backward", "--allocator=torch"},
    {"compare", "@tiny.json", "-p", "none", "-p", "checkpoint:full",
     "--explain", "--jobs=1"},
    {"compare", "@mlp.json", "--grid=batch=1,2", "--json", "--jobs=1"},
    {"sweep", "@tiny.json", "--grid=batch=1..4",
     "--grid=policy=none;checkpoint:full", "--filter=batch*2<6", "--jobs=1"},
    {"sweep", "@mlp.json", "--grid=batch=1,2", "--grid=memory=1GiB,2GiB",
     "--json", "--jobs=1"},
    {"fit", "@tiny.json", "--memory=1GiB", "--jobs=1"},
    {"fit", "@tiny.json", "--memory=600MiB", "--batch=8", "--json", "--jobs=1",
     "-p", "checkpoint:full"},
    {"fit", "@tiny.json", "--memory=600MiB", "--max=batch", "--jobs=1"},
    {"inspect", "@moe.json", "--wide"},
    {"inspect", "@hf-llama.json", "--json"},
    {"inspect", "@skip.json", "--dot"},
    {"alloc", "@alloc.txt", "--allocator=torch", "--allocator",
     "torch,expandable_segments=True"},
    {"alloc", "@recorded.json", "--json", "--leaks"},
    {"alloc", "@stacks.pickle", "@stacks-keeps.pickle", "@alloc.txt",
     "--allocator=torch,va=bump", "--leaks"},
    {"alloc", "@stacks.pickle", "@stacks-keeps.pickle", "--json"},
    {"alloc", "@buffers.csv", "--allocator=arena,order=exact", "--csv=-"},
    {"calibrate", "@rates.csv", "-o", "/tmp/memsim-calibrated.json"},
    {"calibrate", "@kineto.json.gz", "--check", "--json"},
    {"calibrate", "@kineto.json", "--check"},
    {"plot", "@swept.csv", "--x=batch", "-o", "/tmp/memsim-swept.svg"},
    {"report", "@tiny.json", "--batch=4", "-p", "none", "-p", "checkpoint:full",
     "-o", "-"},
    {"diff", "@stacks.pickle", "@tiny.json", "--batch=4"},
    {"diff", "@stacks.pickle", "@tiny.json", "--batch=4", "-o", "-"},
    {"diff", "@stacks.pickle", "@stacks-keeps.pickle", "--json"},
    {"check", "@cases.json", "--json"},
    {"run", "@tiny.json", "--from=@from/ds_config.json", "--gpus=2"},
    {"inspect", "@from/config.json", "--from=@from/titan2024.toml", "--json"},
    {"inspect", "--from=@from/foundry.yaml", "--json"},
    {"run", "@tiny.json", "--from=@from/pretrain.bash", "--gpus=16",
     "--batch=2", "-p", "tensor:1", "-p", "pipeline:1", "-p", "microbatch:2"},
    {"schema", "model"},
    {"schema", "result"},
    {"schema", "fit"},
    {"compare", "@mlp.json", "--grid=batch=1,2", "--csv=-", "--jobs=1"},
    {"inspect", "@tiny.json", "--gpus=2", "-p", "ddp", "--csv=-"},
    {"run", "@tiny.json", "--from=@from/odd/megatron-if.bash", "--gpus=16",
     "-p", "tensor:1", "-p", "microbatch:1"},
    {"help", "huggingface"},
    {"help", "checkpoint"},
    {"completion", "bash"},
    {"completion", "words", "--", "run", "gpt2", "--precision", "b"},
};
#define N_LINES ((int)(sizeof lines / sizeof lines[0]))

/* What a user sees of a command. */
typedef struct seen {
    ms_err err;
    int status;
    char what[TESTS_PATH]; /* the fault */
    char *bytes;           /* of both outputs, malloc */
    size_t length;
} seen;

static const ms_command *command_of(const char *name)
{
    for (uint32_t i = 0; i < ms_commands_all.n; i++)
        if (strcmp(ms_commands_all.rows[i].name, name) == 0)
            return &ms_commands_all.rows[i];
    ck_abort_msg("no command %s", name);
}

static ms_err run_line(const char *const *line, ms_hall *hall, int *status,
                       ms_fault *fault)
{
    char paths[MOST_WORDS][TESTS_PATH], folder[TESTS_PATH];
    char settings[2 * TESTS_PATH];
    ms_from from;
    const char *words[MOST_WORDS];
    const ms_command *command = command_of(line[0]);
    uint32_t n = 0;
    tests_source("tests/golden/files/", folder);
    for (; n + 1 < MOST_WORDS && line[n + 1] != NULL; n++)
        words[n] = line[n + 1];
    for (uint32_t i = 0; i < n; i++)
        if (words[i][0] == '@')
            words[i] = strcat(strcpy(paths[i], folder), words[i] + 1);
    for (uint32_t i = 0; i < n; i++)
        if (strncmp(words[i], "--from=@", 8) == 0)
            words[i] = strcat(strcat(strcpy(settings, "--from="), folder),
                              words[i] + 8);
    MS_TRY(ms_options_parse(command->bit, words, n, hall->keep, hall->arguments,
                            fault));
    MS_TRY(ms_from_expand(line[0], command->bit, hall->keep, hall->arguments,
                          &from, fault));
    return command->call(hall, status, fault);
}

static void read_all(int file, seen *what)
{
    off_t length = lseek(file, 0, SEEK_END);
    ck_assert_int_ge(length, 0);
    what->length = (size_t)length;
    what->bytes = malloc(what->length + 1);
    ck_assert_ptr_nonnull(what->bytes);
    ck_assert_int_eq(pread(file, what->bytes, what->length, 0), length);
    what->bytes[what->length] = '\0';
    close(file);
}

/* One run in fresh arenas, both outputs in a file of its own. */
static seen look(const char *const *line)
{
    seen what = {.status = 0};
    ms_arena keep = {0}, trial = {0};
    ms_arguments arguments = {0};
    ms_hall hall = {&arguments, &keep, &trial, &ms_commands_all};
    ms_fault fault = {.caret = -1};
    char name[] = "/tmp/memsim-outofmemory-XXXXXX";
    int file = mkstemp(name), out = dup(STDOUT_FILENO);
    int err = dup(STDERR_FILENO);
    ck_assert(file >= 0 && out >= 0 && err >= 0 && unlink(name) == 0);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    what.err = run_line(line, &hall, &what.status, &fault);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    read_all(file, &what);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    ck_assert_int_eq(what.err, fault.err);
    snprintf(what.what, sizeof what.what, "%s", fault.what);
    return what;
}

static void expect_same(const seen *is, const seen *expected, long n)
{
    if (is->err != MS_ENOMEM) {
        ck_assert_msg(is->err == expected->err &&
                          is->status == expected->status,
                      "%ld: error %d, status %d\n%s %s", n, is->err, is->status,
                      is->what, is->bytes);
        size_t at = 0;
        while (at < is->length && is->bytes[at] == expected->bytes[at])
            at++;
        ck_assert_msg(is->length == expected->length && at == is->length,
                      "%ld failed, from byte %zu on the output is\n%.200s", n,
                      at, is->bytes + at);
    }
    free(is->bytes);
}

/* The n-th of which memory fails. */
typedef long fail_after(long n);

/* Every failure, or ATTEMPTS of them, other ones for each line. */
static void try_failures(int which, fail_after *fails)
{
    fails(MANY);
    seen expected = look(lines[which]);
    long n = MANY - fails(0), step = n / ATTEMPTS + 1, failed = 0;
    for (long k = 1 + which % step; k <= n; k += step) {
        fails(k);
        seen is = look(lines[which]);
        fails(0);
        expect_same(&is, &expected, k);
        failed += is.err == MS_ENOMEM;
    }
    ck_assert_int_gt(failed, 0);
    free(expected.bytes);
}

START_TEST(no_malloc_that_fails_changes_the_output)
{
    try_failures(_i, ms_arena_fail_after);
}
END_TEST

START_TEST(no_taking_that_fails_changes_the_output)
{
    try_failures(_i, ms_arena_fail_take_after);
}
END_TEST

START_TEST(every_command_is_tried)
{
    for (uint32_t i = 0; i < ms_commands_all.n; i++) {
        int n = 0;
        for (int k = 0; k < N_LINES; k++)
            n += strcmp(lines[k][0], ms_commands_all.rows[i].name) == 0;
        ck_assert_msg(n > 0, "memsim %s has no line",
                      ms_commands_all.rows[i].name);
    }
}
END_TEST

Suite *suite_outofmemory(void)
{
    Suite *suite = suite_create("outofmemory");
    TCase *tcase = tcase_create("outofmemory");
    tcase_add_loop_test(tcase, no_malloc_that_fails_changes_the_output, 0,
                        N_LINES);
    tcase_add_loop_test(tcase, no_taking_that_fails_changes_the_output, 0,
                        N_LINES);
    tcase_add_test(tcase, every_command_is_tried);
    suite_add_tcase(suite, tcase);
    return suite;
}
