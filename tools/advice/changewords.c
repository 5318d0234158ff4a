/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes as people type them. */

#include "policies/common/policy.h"
#include "tools/advice/changes.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/options/options.h"

#include <string.h>

const char *ms_changewords_key(const char *key)
{
    return strncmp(key, "training.", 9) == 0 ? key + 9 : key;
}

const char *ms_changewords_name(ms_change_use use, const ms_job *job,
                                const ms_result *now, ms_arena *arena)
{
    const struct ms_change_setting *set = use.row->set;
    if (use.row->policy != NULL)
        return ms_changes_policy(use, job, now, arena);
    if (set[1].key != NULL)
        return ms_arena_format(arena, "%s=%s %s=%s",
                               ms_changewords_key(set[0].key), set[0].value,
                               ms_changewords_key(set[1].key), set[1].value);
    return ms_arena_format(arena, "%s=%s", ms_changewords_key(set[0].key),
                           set[0].value);
}

/* ---- options ------------------------------------------------------------- */

/* The option that is a short form of a setting, or NULL. */
static const ms_option *option_of(const char *key)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *row = &ms_options_table[i];
        if (row->id == MS_OPTION_SETTING && strcmp(row->setting, key) == 0)
            return row;
    }
    return NULL;
}

static void put_setting(const struct ms_change_setting *set, const ms_job *job,
                        ms_text *text)
{
    const char *value = ms_changes_value(set, job, text->arena);
    const ms_option *option = option_of(set->key);
    const ms_setting *row = ms_settings_table_find(set->key);
    const char *between = text->length > 0 ? " " : "";
    text->failed |= value == NULL;
    if (value == NULL)
        return;
    if (row != NULL)
        ms_text_add(text, "%s%s %s", between, row->flag, value);
    else if (option != NULL)
        ms_text_add(text, "%s--%s %s", between, option->name, value);
    else
        ms_text_add(text, "%s--set %s=%s", between,
                    ms_changewords_key(set->key), value);
}

static void put_settings(const ms_changes *set, const ms_job *job,
                         ms_text *text)
{
    for (uint32_t i = 0; i < set->n; i++)
        for (uint32_t k = 0; k < MS_CHANGE_SETTINGS; k++)
            if (set->use[i].row->set[k].key != NULL)
                put_setting(&set->use[i].row->set[k], job, text);
}

ms_err ms_changewords_put(const ms_changes *set, const ms_job *job,
                          const ms_result *now, ms_text *text, ms_fault *fault)
{
    ms_text words = {.arena = text->arena};
    put_settings(set, job, &words);
    for (uint32_t i = 0; i < set->n; i++) {
        const ms_change *row = set->use[i].row;
        ms_spec before = {0};
        if (row->policy == NULL)
            continue;
        uint32_t at = ms_changes_replaced(row, &job->spec);
        const char *policy =
            ms_changes_policy(set->use[i], job, now, text->arena);
        if (policy == NULL)
            return ms_fail_nomem(fault);
        ms_text_add(&words, "%s-p %s", words.length > 0 ? " " : "", policy);
        if (at == MS_NONE)
            continue;
        before.items[before.n++] = job->spec.items[at];
        const char *old = ms_spec_print(&before, text->arena);
        if (old == NULL)
            return ms_fail_nomem(fault);
        ms_text_add(&words, " instead of %s", old);
    }
    if (words.failed)
        return ms_fail_nomem(fault);
    ms_text_add(text, "%s", words.length > 0 ? words.bytes : "");
    return MS_OK;
}

void ms_changewords_prices(const ms_changes *set, ms_text *text)
{
    const char *between = "";
    for (uint32_t i = 0; i < set->n; i++)
        if (set->use[i].row->price != NULL) {
            ms_text_add(text, "%s%s", between, set->use[i].row->price);
            between = ", ";
        }
}

/* ---- the command --------------------------------------------------------- */

/* Is KEY of "--set KEY=VALUE" this key, with or without its group? */
static bool says(const char *setting, const char *key)
{
    size_t length = strcspn(setting, "=");
    const char *names[2] = {key, ms_changewords_key(key)};
    for (int i = 0; i < 2; i++)
        if (strlen(names[i]) == length &&
            strncmp(setting, names[i], length) == 0)
            return true;
    return false;
}

/* Does the set replace this argument? */
static bool is_replaced(const ms_changes *set, const ms_given *given)
{
    for (uint32_t i = 0; i < set->n; i++)
        for (uint32_t k = 0; k < MS_CHANGE_SETTINGS; k++) {
            const char *key = set->use[i].row->set[k].key;
            if (key == NULL)
                continue;
            const ms_setting *row = ms_settings_table_find(key);
            if ((row != NULL && given->option->id == row->option) ||
                (given->option->id == MS_OPTION_SETTING &&
                 strcmp(given->option->setting, key) == 0) ||
                (given->option->id == MS_OPTION_SET && says(given->value, key)))
                return true;
        }
    return false;
}

/* The policies to add, or (with *all) the whole list that replaces the job's;
 * "": none. */
static ms_err find_policies(const ms_changes *set, const ms_job *job,
                            const ms_result *now, ms_arena *arena, bool *all,
                            const char **policies, ms_fault *fault)
{
    ms_job changed, bare = *job;
    ms_changes added = {0};
    *all = false;
    for (uint32_t i = 0; i < set->n; i++) {
        const ms_change *row = set->use[i].row;
        if (row->policy == NULL)
            continue;
        ms_changes_add(&added, set->use[i]);
        *all |= ms_changes_replaced(row, &job->spec) != MS_NONE;
    }
    *policies = "";
    if (added.n == 0)
        return MS_OK;
    if (!*all)
        bare.spec = (ms_spec){0};
    MS_TRY(ms_changes_job(&added, &bare, now, arena, &changed, fault));
    *policies = ms_spec_print(&changed.spec, arena);
    return *policies != NULL ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_changewords_command(const ms_changes *set,
                              const ms_arguments *arguments, const ms_job *job,
                              const ms_result *now, ms_text *text,
                              ms_fault *fault)
{
    ms_text words = {.arena = text->arena};
    ms_arguments line = *arguments;
    const char *policies;
    bool all;
    MS_TRY(find_policies(set, job, now, text->arena, &all, &policies, fault));
    line.given =
        ms_arena_take(text->arena, arguments->n_given + 1, sizeof *line.given);
    if (line.given == NULL)
        return ms_fail_nomem(fault);
    line.n_given = 0;
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        if (!is_replaced(set, given) &&
            !(all && given->option->id == MS_OPTION_POLICY))
            line.given[line.n_given++] = *given;
    }
    put_settings(set, job, &words);
    if (*policies != '\0')
        ms_text_add(&words, "%s-p %s", words.length > 0 ? " " : "", policies);
    if (words.failed)
        return ms_fail_nomem(fault);
    ms_settings_command(&line, words.length > 0 ? words.bytes : "", text);
    return MS_OK;
}
