/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/results/schema/schema.h"

#include <string.h>

static void new_line(const ms_indent *json)
{
    ms_text_add(json->text, "\n%*s", (int)(2 * json->depth), "");
}

static void begin(ms_indent *json, const char *key)
{
    if (json->some)
        ms_text_add(json->text, ",");
    if (json->depth > 0)
        new_line(json);
    json->some = true;
    if (key == NULL)
        return;
    ms_text_json(json->text, key);
    ms_text_add(json->text, ": ");
}

void ms_indent_open(ms_indent *json, const char *key, char bracket)
{
    begin(json, key);
    ms_text_put(json->text, &bracket, 1);
    json->depth++;
    json->some = false;
}

void ms_indent_close(ms_indent *json, char bracket)
{
    json->depth--;
    if (json->some)
        new_line(json);
    ms_text_put(json->text, &bracket, 1);
    json->some = true;
}

void ms_indent_string(ms_indent *json, const char *key, const char *value)
{
    begin(json, key);
    ms_text_json(json->text, value);
}

void ms_indent_integer(ms_indent *json, const char *key, int64_t value)
{
    begin(json, key);
    ms_text_i64(json->text, value);
}

void ms_indent_word(ms_indent *json, const char *key, const char *word)
{
    begin(json, key);
    ms_text_add(json->text, "%s", word);
}

void ms_indent_words(ms_indent *json, const char *key, const char *words)
{
    begin(json, key);
    ms_text_add(json->text, "[");
    while (*words != '\0') {
        size_t length = strcspn(words, "|");
        ms_text_add(json->text, "\"%.*s\"", (int)length, words);
        words += length;
        if (*words == '|')
            ms_text_add(json->text, ", ");
        words += *words == '|';
    }
    ms_text_add(json->text, "]");
}

void ms_indent_ref(ms_indent *json, const char *key, const char *name)
{
    begin(json, key);
    ms_text_add(json->text, "{\"$ref\": \"#/$defs/%s\"}", name);
}
