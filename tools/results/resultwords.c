/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the texts of a saved result: its settings and what it says in words. */

#include "graphs/json/json.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "tools/results/results.h"

#include <string.h>

/* The offset just behind the object or array that begins at `at`. The text
 * is known to be valid JSON, so that it is enough to count brackets. */
static size_t end_of(const ms_quote *source, size_t at)
{
    uint32_t depth = 0;
    bool in_string = false;
    for (; at < source->length; at++) {
        char c = source->bytes[at];
        if (in_string && c == '\\')
            at++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']') && --depth == 0)
            return at + 1;
    }
    return at;
}

/* Copies a number or a boolean as it is spelled. */
static const char *copy_word(const ms_values *values, uint32_t at)
{
    const ms_quote *source = &values->json->source;
    return ms_arena_text(values->arena, source->bytes + at,
                         strcspn(source->bytes + at, ",} \t\r\n"));
}

static ms_err read_setting(const ms_values *values, uint32_t row,
                           ms_record_setting *setting)
{
    const ms_json_node *node = &values->json->nodes[row];
    const char *words = node->value.s;
    setting->key = ms_arena_text(values->arena, node->key, strlen(node->key));
    setting->value = node->kind == MS_JSON_STRING
                         ? ms_arena_text(values->arena, words, strlen(words))
                         : copy_word(values, node->at);
    return setting->key == NULL || setting->value == NULL
               ? ms_fail_nomem(values->fault)
               : MS_OK;
}

/* Reads the settings that are single words; "defaults", a list, is passed
 * over. */
static ms_err read_settings(const ms_values *values, uint32_t object,
                            ms_record *record)
{
    const ms_json *json = values->json;
    uint32_t list;
    MS_TRY(
        ms_values_optional(values, object, "settings", MS_JSON_OBJECT, &list));
    if (list == MS_NONE)
        return MS_OK;
    record->settings = ms_arena_take(
        values->arena, json->nodes[list].value.n + 1, sizeof *record->settings);
    if (record->settings == NULL)
        return ms_fail_nomem(values->fault);
    for (uint32_t row = ms_json_first(json, list); row != MS_NONE;
         row = json->nodes[row].next)
        if (json->nodes[row].kind != MS_JSON_ARRAY &&
            json->nodes[row].kind != MS_JSON_OBJECT)
            MS_TRY(read_setting(values, row,
                                &record->settings[record->n_settings++]));
    return MS_OK;
}

ms_err ms_resultwords_read(const ms_values *values, uint32_t object,
                           ms_record *record)
{
    const ms_quote *source = &values->json->source;
    size_t at = values->json->nodes[object].at;
    record->json = source->bytes + at;
    record->json_length = end_of(source, at) - at;
    return read_settings(values, object, record);
}

const char *ms_resultwords_setting(const ms_record *record, const char *key)
{
    for (uint32_t i = 0; i < record->n_settings; i++)
        if (strcmp(record->settings[i].key, key) == 0)
            return record->settings[i].value;
    return NULL;
}
