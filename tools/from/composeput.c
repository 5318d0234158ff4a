/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/training.h"
#include "tools/from/compose.h"

#include <stdio.h>
#include <string.h>

static const ms_option *find(const char *name)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (strcmp(ms_options_table[i].name, name) == 0)
            return &ms_options_table[i];
    return NULL;
}

ms_err ms_composeput_option(ms_compose *c, const char *name, const char *value,
                            ms_fault *fault)
{
    const ms_option *option = find(name);
    const char *copy = ms_arena_text(c->arena, value, strlen(value));
    if (copy == NULL)
        return ms_fail_nomem(fault);
    if (option == NULL || ms_optionuses_of(option, c->command) == NULL)
        return MS_OK;
    c->out->given[c->out->n_given++] =
        (ms_given){.option = option, .value = copy};
    return MS_OK;
}

/* Do the two keys name one setting? */
static bool is_same(const char *a, size_t length, const char *b)
{
    char key[96];
    if (length >= sizeof key)
        return false;
    memcpy(key, a, length);
    key[length] = '\0';
    if (strcmp(key, b) == 0)
        return true;
    uint32_t row = ms_training_row(key);
    return row != MS_NONE && row == ms_training_row(b);
}

const char *ms_composeput_typed(const ms_compose *c, const char *key)
{
    for (uint32_t i = c->typed->n_given; i-- > 0;) {
        const ms_given *given = &c->typed->given[i];
        const ms_option *option = given->option;
        const char *equals = strchr(given->value, '=');
        if (option->id == MS_OPTION_SETTING &&
            is_same(option->setting, strlen(option->setting), key))
            return given->value;
        if (option->id == MS_OPTION_SET && equals != NULL &&
            is_same(given->value, (size_t)(equals - given->value), key))
            return equals + 1;
        if (option->id != MS_OPTION_SETTING && strcmp(option->name, key) == 0)
            return given->value;
    }
    return NULL;
}

ms_err ms_composeput_wins(ms_compose *c, const char *option, const char *typed,
                          const ms_fact *fact, ms_fault *fault)
{
    if (!ms_facts_is_said(fact))
        return MS_OK;
    return ms_facts_say(c->facts, &c->facts->told, fault,
                        "%s %.80s, which you typed, stands over %s (%s=%.60s)",
                        option, typed, ms_facts_place(c->facts, fact),
                        ms_pairs_name(fact->pair), ms_pairs_value(fact->pair));
}

ms_err ms_composeput_setting(ms_compose *c, const char *key, const char *value,
                             ms_fault *fault)
{
    const char *typed = ms_composeput_typed(c, key);
    char set[160];
    if (typed != NULL)
        return ms_composeput_wins(c, key, typed, ms_facts_find(c->facts, key),
                                  fault);
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *row = &ms_options_table[i];
        if (row->id == MS_OPTION_SETTING && strcmp(row->setting, key) == 0)
            return ms_composeput_option(c, row->name, value, fault);
    }
    snprintf(set, sizeof set, "%s=%.100s",
             strncmp(key, "training.", 9) == 0 ? key + 9 : key, value);
    return ms_composeput_option(c, "set", set, fault);
}
