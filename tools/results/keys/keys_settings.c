/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "settings". */

#include "graphs/field.h"
#include "graphs/training.h"
#include "tools/job/settings_table.h"
#include "tools/results/keys/keys.h"

/* What ms_training_fields gives to "settings". */
/* Row i of those settings that "settings" of a result lists, or NULL. */
static const ms_setting *told_setting(uint32_t i)
{
    for (uint32_t row = 0; row < ms_settings_table_n; row++)
        if (ms_settings_table[row].json != MS_SETTING_UNTOLD && i-- == 0)
            return &ms_settings_table[row];
    return NULL;
}

static ms_key setting_key(const ms_setting *row)
{
    static const ms_key_type types[] = {[MS_SETTING_TEXT] = MS_KEY_TEXT,
                                        [MS_SETTING_COUNT] = MS_KEY_COUNT,
                                        [MS_SETTING_BYTES] = MS_KEY_COUNT,
                                        [MS_SETTING_WORD] = MS_KEY_WORD,
                                        [MS_SETTING_BOOL] = MS_KEY_BOOL};
    return (ms_key){.name = row->key,
                    .type = types[row->type],
                    .words = row->words,
                    .null = row->json == MS_SETTING_OR_NULL,
                    .optional =
                        row->json == MS_SETTING_IF_SAID || row->before != NULL};
}

static bool training_key(uint32_t i, ms_arena *arena, ms_key *key)
{
    static const ms_key_type types[] = {
        [MS_INT] = MS_KEY_INTEGER, [MS_FLOAT] = MS_KEY_NUMBER,
        [MS_BOOL] = MS_KEY_BOOL,   [MS_WORD] = MS_KEY_WORD,
        [MS_NAME] = MS_KEY_TEXT,   [MS_INTS] = MS_KEY_TEXT,
        [MS_TEXT] = MS_KEY_TEXT};
    if (i >= ms_training_n_fields)
        return false;
    const ms_field *field = &ms_training_fields[i];
    *key = (ms_key){.name = ms_arena_format(arena, "%s.%s",
                                            ms_training_group(i), field->name),
                    .type = types[field->type],
                    .words = field->words,
                    .help = field->help};
    return key->name != NULL;
}

/* The settings of the job come first, then the list of those that the user
 * did not give, then the settings of the training. */
static bool setting(uint32_t i, ms_arena *arena, ms_key *key)
{
    const ms_setting *row = told_setting(i);
    uint32_t n = 0;
    while (told_setting(n) != NULL)
        n++;
    if (i > n)
        return training_key(i - n - 1, arena, key);
    *key = row != NULL ? setting_key(row)
                       : (ms_key){.name = "defaults", .type = MS_KEY_TEXTS};
    return true;
}

const ms_keys ms_keys_settings = {
    .name = "settings", .more = setting, .any = "^model\\."};
