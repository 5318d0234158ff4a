/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help on a word: an option of memsim's own, or what another program calls so,
 * with what memsim has for it. */

#include "graphs/models/files/namewords.h"
#include "graphs/settings/settingwords.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/cli/help/help.h"
#include "tools/options/optionwords.h"
#include "tools/terminal/screen.h"

#include <string.h>

#define OPTION_INDENT 28u
#define WORD_INDENT 12u

/* ---- options ------------------------------------------------------------- */

static const char *field_words(const char *setting)
{
    const char *name = strchr(setting, '.') + 1;
    for (uint32_t i = 0; i < ms_training_n_fields; i++)
        if (strcmp(ms_training_fields[i].name, name) == 0)
            return ms_training_fields[i].words;
    return NULL;
}

void ms_help_words_option(const ms_option *option, const ms_option_use *use,
                          ms_text *words)
{
    const char *values = option->takes == MS_TAKES_VALUE ? use->words : NULL;
    if (option->setting != NULL)
        values = field_words(option->setting);
    ms_text_add(words, "%s", use->help);
    if (values != NULL)
        ms_text_add(words, ": ");
    if (values != NULL)
        ms_options_words(values, words);
}

void ms_help_words_put(const ms_option *option, const ms_option_use *use,
                       ms_text *text)
{
    ms_text label = {.arena = text->arena}, words = {.arena = text->arena};
    if (option->letter != 0)
        ms_text_add(&label, "  -%c, --%s", option->letter, option->name);
    else
        ms_text_add(&label, "      --%s", option->name);
    if (option->takes == MS_TAKES_VALUE)
        ms_text_add(&label, " %s", option->value);
    else if (option->takes == MS_TAKES_OPTIONAL)
        ms_text_add(&label, " [%s]", option->value);
    ms_help_words_option(option, use, &words);
    text->failed |= label.failed || words.failed;
    if (!text->failed)
        ms_screen_fill(text, OPTION_INDENT, label.bytes, words.bytes);
}

/* The option of this name, with all that it means to commands. */
static bool put_option(const char *name, ms_text *text)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *option = &ms_options_table[i];
        if (!ms_words_same(option->name, strlen(option->name), name,
                           strlen(name)))
            continue;
        for (uint32_t k = 0; k < MS_OPTION_USES; k++)
            if (option->uses[k].commands != 0)
                ms_help_words_put(option, &option->uses[k], text);
        return true;
    }
    return false;
}

/* ---- words of other programs --------------------------------------------- */

/* Behind a table's title: what memsim's own word stands behind when typed. */
static const struct {
    const ms_words *table;
    const char *label, *before;
} kinds[MS_OPTIONWORDS_TABLES] = {
    {&ms_policywords_table, "policy:", "-p "},
    {&ms_optionwords_options, "option:", "--"},
    {&ms_settingwords_keys, "setting:", "--set "},
    {&ms_settingwords_values, "value:", "--set "},
    {&ms_namewords_devices, "device:", "--device "},
    {&ms_namewords_models, "model:", "memsim run "},
    {&ms_optionwords_commands, "command:", ""},
    {&ms_optionwords_letters, "letter:", "-"},
};

/* What a row says: what to type, with the policy's arguments that stand where
 * none are given. */
static void put_means(const ms_word *row, const char *before, ms_text *words)
{
    char hint[384];
    const char *unless = row->means != NULL ? strchr(row->means, '?') : NULL;
    if (row->means == NULL) {
        ms_words_hint(row, hint, sizeof hint);
        ms_text_add(words, "%s", hint);
        return;
    }
    ms_text_add(words, "%s", before);
    if (strcmp(before, "--set ") == 0 && row->of != NULL)
        ms_text_add(words, "%.*s=", (int)strcspn(row->of, "|"), row->of);
    ms_text_put(words, row->means, strcspn(row->means, "?"));
    if (unless != NULL)
        ms_text_add(words, "%s", unless + 1);
}

/* The name of the policy that stands in "-p NAME:..." of the words, or NULL. */
static const char *policy_in(const char *words, ms_arena *arena)
{
    const char *at = strstr(words, "-p ");
    return at == NULL ? NULL
                      : ms_arena_text(arena, at + 3, strcspn(at + 3, ":+ "));
}

bool ms_help_words_one(const char *word, bool pages, ms_text *text)
{
    const char *policy = NULL;
    bool any = put_option(word, text), own = any;
    for (size_t i = 0; i < MS_OPTIONWORDS_TABLES; i++) {
        ms_text words = {.arena = text->arena};
        const ms_word *row =
            ms_words_find(kinds[i].table, NULL, word, strlen(word));
        if (row == NULL)
            continue;
        if (!any)
            ms_text_add(text, "What other programs call so is in memsim:\n\n");
        any = true;
        put_means(row, kinds[i].before, &words);
        text->failed |= words.failed;
        if (text->failed)
            return any;
        ms_screen_fill(text, WORD_INDENT, kinds[i].label, words.bytes);
        if (policy == NULL)
            policy = policy_in(words.bytes, text->arena);
        if (row->means != NULL && kinds[i].table == &ms_optionwords_options)
            own |= put_option(row->means, text);
    }
    if (pages && policy != NULL && !own) {
        ms_text_add(text, "\n");
        ms_help_tables_one(policy, text);
    }
    return any;
}
