/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "settings" of a result: what every number of it depends on. */

#include "graphs/field.h"
#include "graphs/training.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/terminal/quantity.h"

#include <string.h>

static void json_value(const ms_field *field, const char *value, ms_text *text)
{
    if (field->type == MS_INT || field->type == MS_FLOAT ||
        field->type == MS_BOOL)
        ms_text_add(text, "%s", value);
    else
        ms_text_json(text, value);
}

static void json_defaults(const ms_job *job, ms_text *text)
{
    const char *between = "";
    ms_text_add(text, "\"defaults\": [");
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        if (!ms_settings_is_default(job, row))
            continue;
        ms_text_add(text, "%s\"%s.%s\"", between, ms_training_group(row),
                    ms_training_fields[row].name);
        between = ", ";
    }
    for (uint32_t i = 0; i < ms_settings_table_n; i++) {
        const ms_setting *row = &ms_settings_table[i];
        bool given;
        if (row->given_at == 0)
            continue;
        memcpy(&given, (const char *)job + row->given_at, sizeof given);
        if (given)
            continue;
        ms_text_add(text, "%s\"%s\"", between, row->key);
        between = ", ";
    }
    ms_text_add(text, "]");
}

static void json_setting(const ms_setting *row, const ms_job *job,
                         ms_text *text)
{
    if (row->json == MS_SETTING_UNTOLD)
        return;
    const char *value = row->write(row, job, text->arena);
    if (value == NULL && row->json != MS_SETTING_OR_NULL)
        return;
    ms_text_add(text, "\"%s\": ", row->key);
    if (value == NULL)
        ms_text_add(text, "null");
    else if (row->type == MS_SETTING_TEXT || row->type == MS_SETTING_WORD)
        ms_text_json(text, value);
    else
        ms_text_add(text, "%s", value);
    ms_text_add(text, ", ");
}

static void json_fields(const ms_job *job, const ms_training *training,
                        ms_text *text)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        const ms_field *field = &ms_training_fields[row];
        ms_label value = {""};
        ms_text_add(text, "\"%s.%s\": ", ms_training_group(row), field->name);
        ms_training_value(training, row, value.s, sizeof value.s);
        json_value(field, value.s, text);
        ms_text_add(text, ", ");
    }
    for (uint32_t i = 0; i < job->n_overrides; i++) {
        const char *key =
            ms_arena_format(text->arena, "model.%s", job->overrides[i].key);
        ms_text_json(text, key != NULL ? key : "");
        text->failed |= key == NULL;
        ms_text_add(text, ": ");
        ms_text_json(text, job->overrides[i].value);
        ms_text_add(text, ", ");
    }
}

void ms_settings_json(const ms_job *job, const ms_training *training,
                      ms_text *text)
{
    ms_text_add(text, "{");
    json_fields(job, training, text);
    for (uint32_t i = 0; i < ms_settings_table_n; i++)
        json_setting(&ms_settings_table[i], job, text);
    json_defaults(job, text);
    ms_text_add(text, "}");
}
