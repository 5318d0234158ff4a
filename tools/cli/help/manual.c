/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/help/manual.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"

#include "tools/cli/help/help.h"
#include "tools/cli/schema/documents.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 78u
#define MOST_NAME 64u
#define MOST_COMMANDS 32u

typedef struct manual {
    const ms_commands *commands;
    const char *name; /* of the template */
    uint32_t line;
    /* by row of the table: the option is on the page already */
    bool told_options[MS_OPTIONS_MOST];
    bool told_commands[MOST_COMMANDS];
    ms_text *page;
    ms_fault *fault;
} manual;

/* ---- text ---------------------------------------------------------------- */

/* Adds a word. A minus sign stays a plain one (not a hyphen), so that options
 * can be copied and searched for; a list that is longer than a line may break;
 * and "e.g." ends no sentence. */
static void put_word(const char *word, size_t length, ms_text *page)
{
    bool begins = true, is_long = length > COLUMNS / 2;
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '\\')
            ms_text_add(page, "\\e");
        else if (word[i] == '-' && begins)
            ms_text_add(page, "\\-");
        else
            ms_text_put(page, word + i, 1);
        begins = begins && strchr("-'(\"", word[i]) != NULL;
        if (is_long && word[i] == '|')
            ms_text_add(page, "\\:");
    }
    if (length == 4 && strncmp(word, "e.g.", length) == 0)
        ms_text_add(page, "\\&");
}

/* Adds text in which no word at the start of a line is taken for a request of
 * mdoc. */
static void put_words(const char *words, ms_text *page)
{
    size_t column = 0;
    for (words += strspn(words, " "); *words != '\0';
         words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        bool fresh = column == 0 || column + 1 + length > COLUMNS;
        if (column > 0)
            ms_text_add(page, fresh ? "\n" : " ");
        if (fresh && (*words == '.' || *words == '\''))
            ms_text_add(page, "\\&");
        put_word(words, length, page);
        column = fresh ? length : column + 1 + length;
        words += length;
    }
    ms_text_add(page, "\n");
}

/* Adds the words as a sentence. */
static void put_sentence(const char *words, ms_text *page)
{
    size_t length = strlen(words);
    bool ends = length > 0 && words[length - 1] == '.';
    const char *sentence =
        ms_arena_format(page->arena, "%s%s", words, ends ? "" : ".");
    page->failed |= sentence == NULL;
    if (sentence != NULL)
        put_words(sentence, page);
}

static void put_item(const char *name, const char *words, ms_text *page)
{
    ms_text_add(page, ".It Cm %s\n", name);
    put_sentence(words, page);
}

/* ---- commands ------------------------------------------------------------ */

/* ".Ar RESULT ..." for "RESULT...", ".Op Ar TOPIC" for "[TOPIC]". */
static void put_operands(const char *operands, ms_text *page)
{
    bool optional = *operands == '[';
    size_t length = strcspn(operands + optional, "].");
    ms_text_add(page, optional ? "Op Ar " : "Ar ");
    ms_text_put(page, operands + optional, length);
    if (strstr(operands, "...") != NULL)
        ms_text_add(page, " ...");
}

static void put_synopsis(const manual *m)
{
    for (uint32_t i = 0; i < m->commands->n; i++) {
        const ms_command *command = &m->commands->rows[i];
        ms_text_add(m->page, ".Nm\n.Cm %s\n.", command->name);
        put_operands(command->operands, m->page);
        ms_text_add(m->page, "\n.Op Ar option ...\n");
    }
    ms_text_add(m->page, ".Nm\n.Fl -version\n");
}

static bool put_command(manual *m, const char *name)
{
    for (uint32_t i = 0; i < m->commands->n; i++) {
        const ms_command *command = &m->commands->rows[i];
        if (strcmp(command->name, name) != 0)
            continue;
        m->told_commands[i] = true;
        ms_text_add(m->page, ".It Cm %s ", name);
        put_operands(command->operands, m->page);
        ms_text_add(m->page, "\n");
        put_sentence(command->summary, m->page);
        return true;
    }
    return false;
}

/* ---- options ------------------------------------------------------------- */

/* "run, compare:" */
static void put_commands_of(const manual *m, uint16_t commands)
{
    const char *before = ".Cm ";
    bool every = true;
    for (uint32_t i = 0; i < m->commands->n; i++)
        every = every && (m->commands->rows[i].bit & commands) != 0;
    for (uint32_t i = 0; i < m->commands->n && !every; i++)
        if ((m->commands->rows[i].bit & commands) != 0) {
            ms_text_add(m->page, "%s%s", before, m->commands->rows[i].name);
            before = " , ";
        }
    if (before[0] == ' ')
        ms_text_add(m->page, " :\n");
}

static void put_option(manual *m, uint32_t row)
{
    const ms_option *option = &ms_options_table[row];
    ms_text *page = m->page;
    m->told_options[row] = true;
    ms_text_add(page, ".It ");
    if (option->letter != 0)
        ms_text_add(page, "Fl %c , ", option->letter);
    ms_text_add(page, "Fl -%s", option->name);
    if (option->takes == MS_TAKES_VALUE)
        ms_text_add(page, " Ar %s", option->value);
    else if (option->takes == MS_TAKES_OPTIONAL)
        ms_text_add(page, " Op Ar %s", option->value);
    ms_text_add(page, "\n");
    for (uint32_t i = 0; i < MS_OPTION_USES; i++) {
        const ms_option_use *use = &option->uses[i];
        ms_text words = {.arena = page->arena};
        if (use->commands == 0)
            continue;
        ms_help_words_option(option, use, &words);
        page->failed |= words.failed;
        put_commands_of(m, use->commands);
        put_sentence(words.failed ? "" : words.bytes, page);
    }
}

static bool put_option_of(manual *m, const char *name)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (strcmp(ms_options_table[i].name, name) == 0) {
            put_option(m, i);
            return true;
        }
    return false;
}

/* ---- policies, topics, documents, statuses ------------------------------- */

/* "every=N", or "all" for a flag. */
static void put_param(const ms_param *param, ms_text *page)
{
    ms_text words = {.arena = page->arena};
    const char *values = ms_help_tables_param(param, &words);
    ms_text_add(page, ".It Cm %s", param->name);
    if (*values != '\0')
        ms_text_add(page, " Ns = Ns Ar ");
    put_word(values, strlen(values), page);
    ms_text_add(page, "\n");
    page->failed |= words.failed;
    put_sentence(words.failed ? "" : words.bytes, page);
}

static void put_policies(ms_text *page)
{
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        const ms_policy *policy = ms_registry_row(i);
        put_item(policy->name, policy->summary, page);
        if (policy->example != NULL)
            ms_text_add(page, "E.g.\\&\n.Ql \\-\\-policy %s .\n",
                        policy->example);
        if (policy->n_params > 0)
            ms_text_add(page, ".Bl -tag -width Ds -compact\n");
        for (uint32_t k = 0; k < policy->n_params; k++)
            put_param(&policy->params[k], page);
        if (policy->n_params > 0)
            ms_text_add(page, ".El\n");
    }
}

static void put_topics(ms_text *page)
{
    const char *summary, *name;
    for (uint32_t i = 0; (name = ms_help_summary(i, &summary)) != NULL; i++)
        put_item(name, summary, page);
}

static void put_documents(ms_text *page)
{
    for (uint32_t i = 0; i < ms_documents_n; i++)
        put_item(ms_documents[i].name, ms_documents[i].what, page);
}

static void put_exits(ms_text *page)
{
    for (uint32_t i = 0; i < ms_help_texts_n_exits; i++) {
        ms_text_add(page, ".It %d\n", ms_help_texts_exits[i].status);
        put_words(ms_help_texts_exits[i].meaning, page);
    }
}

/* ---- lines --------------------------------------------------------------- */

static void put_rest(manual *m)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (!m->told_options[i])
            put_option(m, i);
}

/* Carries out an @ line; false: there is no such directive or no such name. */
static bool put_directive(manual *m, const char *what, const char *name)
{
    if (strcmp(what, "command") == 0)
        return put_command(m, name);
    if (strcmp(what, "option") == 0)
        return put_option_of(m, name);
    if (*name != '\0')
        return false;
    if (strcmp(what, "synopsis") == 0)
        put_synopsis(m);
    else if (strcmp(what, "options") == 0)
        put_rest(m);
    else if (strcmp(what, "topics") == 0)
        put_topics(m->page);
    else if (strcmp(what, "documents") == 0)
        put_documents(m->page);
    else if (strcmp(what, "policies") == 0)
        put_policies(m->page);
    else if (strcmp(what, "exits") == 0)
        put_exits(m->page);
    else
        return false;
    return true;
}

static ms_err put_line(manual *m, const char *line, size_t length)
{
    char what[MOST_NAME] = "", name[MOST_NAME] = "", all[2 * MOST_NAME] = "";
    if (*line != '@') {
        ms_text_put(m->page, line, length);
        ms_text_add(m->page, "\n");
        return MS_OK;
    }
    if (length < sizeof all)
        memcpy(all, line, length);
    if (sscanf(all, "@%63s %63s", what, name) >= 1 &&
        put_directive(m, what, name))
        return MS_OK;
    return ms_fail(m->fault, MS_EINPUT, m->name, NULL,
                   "line %u: no table has \"%s\"", m->line, all);
}

static ms_err check_all(const manual *m)
{
    const char *left = NULL;
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (!m->told_options[i])
            left = ms_options_table[i].name;
    for (uint32_t i = 0; i < m->commands->n; i++)
        if (!m->told_commands[i])
            left = m->commands->rows[i].name;
    return left == NULL ? MS_OK
                        : ms_fail(m->fault, MS_EINPUT, m->name, NULL,
                                  "\"%s\" is nowhere on the page", left);
}

ms_err ms_manual_write(const ms_commands *commands, const char *name,
                       const char *template, ms_text *page, ms_fault *fault)
{
    manual m = {
        .commands = commands, .name = name, .page = page, .fault = fault};
    while (*template != '\0') {
        size_t length = strcspn(template, "\n");
        m.line++;
        MS_TRY(put_line(&m, template, length));
        template += length + (template[length] == '\n');
    }
    MS_TRY(check_all(&m));
    return page->failed ? ms_fail_nomem(fault) : MS_OK;
}
