/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/help/candidates.h"
#include "graphs/device.h"
#include "graphs/field.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"

#include "tools/cli/help/help.h"
#include "tools/cli/schema/documents.h"
#include "tools/job/settings_table.h"

#include <string.h>

#define MOST_TOPICS 256u
#define MOST_NAME 64u

/* The word that is being typed. head is the part of it before what is
 * completed: "--precision=" of "--precision=fp", "-p" of "-pcheck". */
typedef struct typing {
    const char *word;
    size_t head;
    const ms_commands *commands;
    ms_text *text;
} typing;

/* ---- candidates ---------------------------------------------------------- */

/* Offers a followed by b, behind the head. */
static void offer(const typing *t, const char *a, const char *b,
                  const char *what)
{
    const char *typed = t->word + t->head;
    size_t length = strlen(typed), first = strlen(a);
    if (length <= first ? strncmp(a, typed, length) != 0
                        : strncmp(a, typed, first) != 0 ||
                              strncmp(b, typed + first, length - first) != 0)
        return;
    ms_text_add(t->text, "%.*s%s%s", (int)t->head, t->word, a, b);
    ms_text_add(t->text, *what != '\0' ? "\t%s\n" : "\n", what);
}

static void offer_words(const typing *t, const char *words)
{
    while (*words != '\0') {
        char word[MOST_NAME];
        size_t length = strcspn(words, "|");
        if (length < sizeof word) {
            memcpy(word, words, length);
            word[length] = '\0';
            offer(t, word, "", "");
        }
        words += length + (words[length] == '|');
    }
}

/* Offers files with one of the endings ".svg|.png"; "": with any. */
static void offer_files(const typing *t, const char *endings)
{
    ms_text_add(t->text, ":files\t%.*s\t", (int)t->head, t->word);
    for (; *endings != '\0'; endings++)
        if (*endings != '.')
            ms_text_put(t->text, *endings == '|' ? " " : endings, 1);
    ms_text_add(t->text, "\n");
}

/* The same word with a head that is longer by length. */
static typing behind(const typing *t, size_t length)
{
    typing deeper = *t;
    deeper.head += length;
    return deeper;
}

/* ---- policies ------------------------------------------------------------ */

/* many: the last word of a list "a/b/" is completed. */
static void offer_words_of(const typing *t, const char *words, bool many)
{
    const char *typed = t->word + t->head, *slash = strrchr(typed, '/');
    const typing last =
        behind(t, many && slash != NULL ? (size_t)(slash + 1 - typed) : 0);
    offer_words(&last, words);
}

/* Offers the words that a parameter can have as its value. */
static void offer_param(const typing *t, const ms_param *param)
{
    bool flag =
        param->type == MS_PARAM_INT && param->low == 0 && param->high == 1;
    bool many = param->type == MS_PARAM_WORDS; /* the value is a list a/b */
    bool words = param->type == MS_PARAM_WORD || many;
    size_t length = strlen(param->name);
    const char *typed = t->word + t->head;
    if (words && param->bare)
        offer_words_of(t, param->words, many);
    if (strncmp(typed, param->name, length) != 0 || typed[length] != '=') {
        offer(t, param->name, param->type == MS_PARAM_FLAG ? "" : "=",
              param->help);
        return;
    }
    const typing value = behind(t, length + 1);
    if (words)
        offer_words_of(&value, param->words, many);
    else if (flag)
        offer_words(&value, "0|1");
}

static bool needs_arguments(const ms_policy *policy)
{
    for (uint32_t i = 0; i < policy->n_params; i++)
        if (policy->params[i].choice)
            return true;
    return false;
}

/* Completes the last policy of "a:x+b:y,z": its name, or one of its arguments.
 */
static void offer_spec(const typing *t)
{
    const char *typed = t->word + t->head, *plus = strrchr(typed, '+');
    const typing last =
        behind(t, plus != NULL ? (size_t)(plus + 1 - typed) : 0);
    typed = last.word + last.head;
    size_t length = strcspn(typed, ":");
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        const ms_policy *policy = ms_registry_row(i);
        if (typed[length] == '\0') {
            offer(&last, policy->name, needs_arguments(policy) ? ":" : "",
                  policy->summary);
        } else if (strlen(policy->name) == length &&
                   strncmp(policy->name, typed, length) == 0) {
            const char *comma = strrchr(typed, ',');
            const typing argument =
                behind(&last, comma != NULL ? (size_t)(comma + 1 - typed)
                                            : length + 1);
            const char *arguments = typed + length + 1;
            policy = ms_registry_variant(policy, arguments, strlen(arguments));
            for (uint32_t k = 0; k < policy->n_params; k++)
                offer_param(&argument, &policy->params[k]);
        }
    }
}

/* ---- settings ------------------------------------------------------------ */

static void offer_value(const typing *t, const ms_field *field)
{
    if (field->type == MS_WORD)
        offer_words(t, field->words);
    else if (field->type == MS_BOOL)
        offer_words(t, "true|false");
}

/* Offers "training.batch=", or its values once that is typed. */
static void offer_field(const typing *t, const char *group,
                        const ms_field *field, const char *end)
{
    char key[MOST_NAME];
    const char *typed = t->word + t->head;
    size_t dot = strlen(group), length = dot + 1 + strlen(field->name);
    if (length >= sizeof key)
        return;
    memcpy(key, group, dot);
    key[dot] = '.';
    strcpy(key + dot + 1, field->name);
    if (*end == '=' && strncmp(typed, key, length) == 0 &&
        typed[length] == '=') {
        const typing value = behind(t, length + 1);
        offer_value(&value, field);
        return;
    }
    offer(t, key, end, field->help);
}

/* The same for the key without "training.". */
static void offer_short(const typing *t, const ms_field *field)
{
    size_t length = strlen(field->name);
    const char *typed = t->word + t->head;
    if (strncmp(typed, field->name, length) != 0 || typed[length] != '=')
        return;
    const typing value = behind(t, length + 1);
    offer_value(&value, field);
}

/* Do two families share the key? Each key is offered once. */
static bool is_repeated(const ms_family *families, uint32_t family,
                        const char *name)
{
    for (uint32_t i = 0; i < family; i++)
        for (uint32_t k = 0; k < families[i].n_fields; k++)
            if (strcmp(families[i].fields[k].name, name) == 0)
                return true;
    return false;
}

static void offer_fields(const typing *t, const char *end)
{
    uint32_t n;
    const ms_family *families = ms_familypage_all(t->text->arena, &n);
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        if (ms_training_fields[row].group == NULL)
            offer_short(t, &ms_training_fields[row]);
        offer_field(t, ms_training_group(row), &ms_training_fields[row], end);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < families[i].n_fields; k++)
            if (!is_repeated(families, i, families[i].fields[k].name))
                offer_field(t, "model", &families[i].fields[k], end);
}

static void offer_setting(const typing *t, const char *setting)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (strcmp(ms_training_fields[row].name, strchr(setting, '.') + 1) == 0)
            offer_value(t, &ms_training_fields[row]);
}

/* ---- what help calls a value --------------------------------------------- */

static void offer_assignments(const typing *t)
{
    offer_fields(t, "=");
}

static void offer_keys(const typing *t)
{
    offer_fields(t, "");
}

static void offer_devices(const typing *t)
{
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        offer(t, ms_devices[i].name, "", "");
        if (*ms_devices[i].alias != '\0')
            offer(t, ms_devices[i].alias, "", ms_devices[i].name);
    }
}

static void offer_allocators(const typing *t)
{
    static const char *const words[MS_POOL_N_TYPES + 1] = {
        "PyTorch's caching allocator", "TensorFlow's allocator",
        "powers of two, halved and joined",
        "DeepSpeed's buffer that is defragmented", "planned ahead"};
    for (uint32_t i = 0; i <= MS_POOL_N_TYPES; i++)
        offer(t, ms_pool_types[i], "", words[i]);
}

/* The last item of "a,b" or "a;b". */
static typing behind_list(const typing *t)
{
    const char *typed = t->word + t->head;
    size_t last = strlen(typed);
    while (last > 0 && strchr(",;", typed[last - 1]) == NULL)
        last--;
    return behind(t, last);
}

/* The last item of "a;b". */
static void offer_pools(const typing *t)
{
    const char *last = strrchr(t->word + t->head, ';');
    const typing value =
        behind(t, last == NULL ? 0 : (size_t)(last + 1 - t->word) - t->head);
    offer_allocators(&value);
}

static void offer_named(const typing *t, const char *names);

/* What a grid can vary: keys of --set, "training." left out or not, and what
 * has options of its own. */
static void offer_grid(const typing *t)
{
    const char *typed = t->word + t->head;
    for (uint32_t i = 0; i < ms_settings_table_n; i++) {
        const ms_setting *row = &ms_settings_table[i];
        size_t length = strlen(row->key);
        bool has_value =
            strncmp(typed, row->key, length) == 0 && typed[length] == '=';
        if (row->in_grid && !has_value)
            offer(t, row->key, "=", row->help);
        else if (row->in_grid && row->value != NULL) {
            const typing values = behind(t, length + 1);
            const typing value = behind_list(&values);
            offer_named(&value, row->value);
        }
    }
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (ms_training_fields[row].group == NULL &&
            ms_settings_table_find(ms_training_fields[row].name) == NULL)
            offer(t, ms_training_fields[row].name, "=",
                  ms_training_fields[row].help);
    for (uint32_t row = 0; row < ms_registry_n(); row++)
        if (ms_registry_row(row)->n_params > 0 &&
            ms_registry_row(row)->variant_of == NULL)
            offer(t, ms_registry_row(row)->name, "=",
                  ms_registry_row(row)->summary);
    offer_fields(t, "=");
}

static void offer_any_file(const typing *t)
{
    offer_files(t, "");
}

static void offer_json_files(const typing *t)
{
    offer_files(t, ".json|.jsonl|.csv");
}

static void offer_models(const typing *t)
{
    for (uint32_t i = 0; i < ms_builtin_n_models; i++)
        offer(t, ms_builtin_models[i].name, "", ms_builtin_models[i].summary);
    offer_files(t, ".json");
}

static void offer_topics(const typing *t)
{
    const char *names[MOST_TOPICS];
    uint32_t n = ms_help_names(t->commands, names, MOST_TOPICS);
    for (uint32_t i = 0; i < n; i++)
        offer(t, names[i], "", "");
}

static void offer_documents(const typing *t)
{
    for (uint32_t i = 0; i < ms_documents_n; i++)
        offer(t, ms_documents[i].name, "", ms_documents[i].what);
}

static void offer_shells(const typing *t)
{
    for (uint32_t i = 0; i < MS_SHELLSCRIPTS; i++)
        offer(t, ms_shellscripts[i].shell, "", "");
}

/* What is offered for a value, by the name that stands for it in the help. */
static const struct {
    const char *name;
    void (*offer)(const typing *t);
} sources[] = {
    {"SPEC", offer_spec},
    {"KEY=VALUE", offer_assignments},
    {"KEY=LIST", offer_grid},
    {"KEY", offer_keys},
    {"FILE", offer_any_file},
    {"NAME", offer_devices},
    {"MODEL", offer_models},
    {"RESULT", offer_json_files},
    {"TOPIC", offer_topics},
    {"DOCUMENT", offer_documents},
    {"SHELL", offer_shells},
    {"TRACE", offer_any_file},
    {"ALLOCATOR", offer_allocators},
    {"ALLOCATORS", offer_pools},
};

/* Offers for one of "NAME|FILE", "[TOPIC]", "RESULT...". */
static void offer_named(const typing *t, const char *names)
{
    while (*names != '\0') {
        names += strspn(names, "[|]., ");
        size_t length = strcspn(names, "[|]., ");
        char name[MOST_NAME] = "";
        if (length < sizeof name)
            memcpy(name, names, length);
        for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
            if (strcmp(sources[i].name, name) == 0)
                sources[i].offer(t);
        names += length;
    }
}

static void offer_option_value(const typing *t, const ms_option *option,
                               uint16_t command)
{
    const char *words = ms_optionuses_of(option, command)->words;
    if (option->setting != NULL)
        offer_setting(t, option->setting);
    else if (option->takes == MS_TAKES_OPTIONAL)
        offer_files(t, words);
    else if (words != NULL)
        offer_words(t, words);
    else
        offer_named(t, option->value);
}

/* ---- the command line ---------------------------------------------------- */

static void offer_options(const typing *t, uint16_t command)
{
    const ms_option *list[MS_OPTIONS_MOST];
    uint32_t n = ms_optionuses_list(command, list);
    for (uint32_t i = 0; i < n; i++) {
        char letter[] = {'-', list[i]->letter, '\0'};
        const char *help = ms_optionuses_of(list[i], command)->help;
        offer(t, "--", list[i]->name, help);
        if (list[i]->letter != 0)
            offer(t, letter, "", help);
    }
}

/* The option that a word names. *at is where its value begins in the word; 0:
 * the value would be the next word. */
static const ms_option *find_option(uint16_t command, const char *word,
                                    size_t *value)
{
    bool is_long = word[1] == '-';
    size_t length = strcspn(word, "=");
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *option = &ms_options_table[i];
        bool same = is_long
                        ? strlen(option->name) == length - 2 &&
                              strncmp(option->name, word + 2, length - 2) == 0
                        : word[1] != '\0' && option->letter == word[1];
        if (!same || ms_optionuses_of(option, command) == NULL)
            continue;
        *value = is_long ? length + 1 : 2u + (word[2] == '=');
        if (word[is_long ? length : 2] == '\0')
            *value = 0;
        return option;
    }
    return NULL;
}

/* What the parser would expect at the last word. */
typedef struct place {
    const ms_option *waits; /* the option that waits for a value, or NULL */
    uint32_t n_operands;
    bool closed; /* by "--" */
} place;

static void pass(place *at, uint16_t command, const char *word)
{
    size_t value = 0;
    const ms_option *waits = at->waits;
    at->waits = NULL;
    if (waits != NULL &&
        (waits->takes == MS_TAKES_VALUE ||
         ms_options_ends_in(ms_optionuses_of(waits, command)->words, word)))
        return;
    if (!at->closed && strcmp(word, "--") == 0) {
        at->closed = true;
    } else if (at->closed || word[0] != '-' || word[1] == '\0') {
        at->n_operands++;
    } else {
        const ms_option *option = find_option(command, word, &value);
        if (option != NULL && value == 0 && option->takes != MS_TAKES_NOTHING)
            at->waits = option;
    }
}

static void offer_at(typing *t, const place *at, const ms_command *command)
{
    size_t value = 0;
    if (at->waits != NULL && t->word[0] != '-')
        offer_option_value(t, at->waits, command->bit);
    if (at->waits != NULL && at->waits->takes == MS_TAKES_VALUE)
        return;
    if (!at->closed && t->word[0] == '-') {
        const ms_option *option = find_option(command->bit, t->word, &value);
        t->head = value;
        if (option == NULL || value == 0)
            offer_options(t, command->bit);
        else if (option->takes != MS_TAKES_NOTHING)
            offer_option_value(t, option, command->bit);
    } else if (at->n_operands < command->max_operands) {
        offer_named(t, command->operands);
    }
}

static void offer_commands(const typing *t)
{
    if (t->word[0] == '-')
        offer_options(t, MS_FOR_TOP);
    for (uint32_t i = 0; i < t->commands->n; i++)
        offer(t, t->commands->rows[i].name, "", t->commands->rows[i].summary);
}

void ms_candidates_write(const ms_commands *commands, const char *const *words,
                         uint32_t n, ms_text *text)
{
    typing t = {.word = words[n - 1], .commands = commands, .text = text};
    if (n == 1)
        offer_commands(&t);
    for (uint32_t c = 0; c < commands->n && n > 1; c++) {
        const ms_command *command = &commands->rows[c];
        place at = {0};
        if (strcmp(command->name, words[0]) != 0)
            continue;
        for (uint32_t i = 1; i < n - 1; i++)
            pass(&at, command->bit, words[i]);
        offer_at(&t, &at, command);
    }
}
