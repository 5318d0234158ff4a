/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parser of the command line, and the laws of its table. */
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"

#include <ctype.h>
#include <string.h>

#define MAX_WORDS 16u

static ms_arena arena;
static ms_fault fault;
static ms_arguments arguments;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* Words are separated by single blanks. */
static ms_err parse(uint16_t command, const char *line)
{
    const char *words[MAX_WORDS];
    uint32_t n = 0;
    char *word = ms_arena_text(&arena, line, strlen(line));
    while (*word != '\0') {
        words[n++] = word;
        word += strcspn(word, " ");
        if (*word != '\0')
            *word++ = '\0';
    }
    return ms_options_parse(command, words, n, &arena, &arguments, &fault);
}

static void check_fails(const char *line, const char *what, const char *hint)
{
    fault = (ms_fault){0};
    ck_assert_int_eq(parse(MS_FOR_RUN, line), MS_EUSAGE);
    ck_assert_str_eq(fault.what, what);
    ck_assert_ptr_nonnull(strstr(fault.hint, hint));
}

START_TEST(any_order)
{
    ck_assert_int_eq(parse(MS_FOR_RUN, "--json gpt2 -p none --csv=out.csv"),
                     MS_OK);
    ck_assert_uint_eq(arguments.n_operands, 1);
    ck_assert_str_eq(arguments.operands[0], "gpt2");
    ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_JSON), "");
    ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_POLICY), "none");
    ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_CSV), "out.csv");
    ck_assert_ptr_null(ms_options_value(&arguments, MS_OPTION_PLOT));
}
END_TEST

START_TEST(spellings_of_a_value)
{
    static const char *const lines[] = {"-p none",       "-pnone",
                                        "-p=none",       "--policy none",
                                        "--policy=none", "-qpnone"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_int_eq(parse(MS_FOR_RUN, lines[i]), MS_OK);
        ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_POLICY),
                         "none");
        ck_assert_uint_eq(arguments.n_operands, 0);
    }
}
END_TEST

START_TEST(last_wins_and_all_are_kept)
{
    ck_assert_int_eq(parse(MS_FOR_RUN, "-p none --batch 2 -p checkpoint:sqrt"),
                     MS_OK);
    ck_assert_uint_eq(arguments.n_given, 3);
    ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_POLICY),
                     "checkpoint:sqrt");
    ck_assert_str_eq(arguments.given[1].option->setting, "training.batch");
}
END_TEST

START_TEST(double_dash_ends_options)
{
    ck_assert_int_eq(parse(MS_FOR_RUN, "-- --json -p"), MS_OK);
    ck_assert_uint_eq(arguments.n_given, 0);
    ck_assert_uint_eq(arguments.n_operands, 2);
    ck_assert_str_eq(arguments.operands[0], "--json");
}
END_TEST

START_TEST(dash_is_an_operand_and_a_value)
{
    ck_assert_int_eq(parse(MS_FOR_RUN, "- --csv - --batch -1"), MS_OK);
    ck_assert_str_eq(arguments.operands[0], "-");
    ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_CSV), "-");
    ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_SETTING), "-1");
}
END_TEST

/* The next word is the figure only where it looks like one. */
START_TEST(optional_value)
{
    static const struct {
        const char *line, *plot;
        uint32_t n_operands;
    } rows[] = {{"--plot gpt2", "memsim.svg", 1},
                {"--plot a.svg gpt2", "a.svg", 1},
                {"gpt2 --plot", "memsim.svg", 1},
                {"--plot=odd gpt2", "odd", 1},
                {"--plot .svg", "memsim.svg", 1},
                {"--plot --json gpt2.pdf", "memsim.svg", 1},
                {"gpt2.json --plot b.pdf", "b.pdf", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(parse(MS_FOR_RUN, rows[i].line), MS_OK);
        ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_PLOT),
                         rows[i].plot);
        ck_assert_uint_eq(arguments.n_operands, rows[i].n_operands);
    }
}
END_TEST

START_TEST(faults)
{
    check_fails("--polcy none", "unknown option \"--polcy\"",
                "did you mean \"--policy\"?");
    check_fails("--pol none", "unknown option \"--pol\"", "memsim help run");
    check_fails("-z", "unknown option \"-z\"", "memsim help run");
    check_fails("--policy", "option \"--policy\" needs a value: --policy SPEC",
                "");
    check_fails("--memory --check",
                "option \"--memory\" needs a value: --memory SIZE", "");
    check_fails("--check=1", "option \"--check\" takes no value", "");
    check_fails("--csv=", "option \"--csv\" has an empty value", "");
    check_fails("--color=blue",
                "option \"--color\": \"blue\" is not one of auto|always|never",
                "");
    check_fails("--dot", "unknown option \"--dot\"", "");
}
END_TEST

/* No prefix of an option is taken for it. */
START_TEST(no_abbreviations)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *option = &ms_options_table[i];
        char word[64] = "--";
        size_t length = strlen(option->name);
        ck_assert_uint_lt(length, sizeof word - 2);
        if (length == 1)
            continue; /* "--" ends the options */
        memcpy(word + 2, option->name, length - 1);
        fault = (ms_fault){0};
        for (unsigned bit = MS_FOR_TOP; bit <= MS_FOR_HELP; bit *= 2)
            ck_assert_int_eq(parse((uint8_t)bit, word), MS_EUSAGE);
    }
}
END_TEST

static bool has_option(uint16_t command, const char *name)
{
    const ms_option *list[MS_OPTIONS_MOST];
    uint32_t n = ms_optionuses_list(command, list);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i]->name, name) == 0)
            return true;
    return false;
}

/* A command has one of them; who stands behind another is in the list. */
static void check_uses(const ms_option *option)
{
    uint16_t before = 0;
    ck_assert_uint_ne(option->uses[0].commands, 0);
    for (uint32_t i = 0; i < MS_OPTION_USES; i++) {
        const ms_option_use *use = &option->uses[i];
        ck_assert_uint_eq(before & use->commands, 0);
        before |= use->commands;
        if (use->commands == 0)
            continue;
        ck_assert_uint_gt(strlen(use->help), 5);
        for (uint32_t bit = 1; bit <= use->commands; bit *= 2)
            if ((bit & use->commands) != 0)
                ck_assert_msg(has_option((uint16_t)bit, option->name), "%s",
                              option->name);
    }
}

static void check_row(const ms_option *option)
{
    check_uses(option);
    for (const char *c = option->name; *c != '\0'; c++)
        ck_assert(islower((unsigned char)*c) || *c == '-');
    ck_assert_int_eq(option->takes != MS_TAKES_NOTHING, option->value != NULL);
    ck_assert_int_eq(option->takes == MS_TAKES_OPTIONAL,
                     option->fallback != NULL);
    ck_assert_int_eq(option->id == MS_OPTION_SETTING, option->setting != NULL);
}

START_TEST(table)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *a = &ms_options_table[i];
        check_row(a);
        for (uint32_t j = 0; j < i; j++) {
            const ms_option *b = &ms_options_table[j];
            ck_assert_str_ne(a->name, b->name);
            ck_assert(a->id != b->id || a->id == MS_OPTION_SETTING);
            ck_assert(a->letter == 0 || a->letter != b->letter);
        }
    }
}
END_TEST

/* Each shorthand names a training field. */
START_TEST(shorthands)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *option = &ms_options_table[i];
        bool found = option->setting == NULL;
        for (uint32_t row = 0; row < ms_training_n_fields && !found; row++)
            found = strcmp(option->setting + strlen("training."),
                           ms_training_fields[row].name) == 0;
        ck_assert_msg(found, "--%s", option->name);
    }
}
END_TEST

Suite *suite_options(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, any_order);
    tcase_add_test(tcase, spellings_of_a_value);
    tcase_add_test(tcase, last_wins_and_all_are_kept);
    tcase_add_test(tcase, double_dash_ends_options);
    tcase_add_test(tcase, dash_is_an_operand_and_a_value);
    tcase_add_test(tcase, optional_value);
    tcase_add_test(tcase, faults);
    tcase_add_test(tcase, no_abbreviations);
    tcase_add_test(tcase, table);
    tcase_add_test(tcase, shorthands);
    suite_add_tcase(suite, tcase);
    return suite;
}
