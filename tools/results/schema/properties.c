/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of a table of fields, as JSON Schema. */

#include "graphs/field.h"
#include "graphs/model.h"
#include "tools/results/schema/schema.h"

static void put_bounds(ms_indent *json, const ms_field *field)
{
    if (field->low == field->high)
        return;
    ms_indent_integer(json, "minimum", field->low);
    if (field->high != INT64_MAX)
        ms_indent_integer(json, "maximum", field->high);
}

/* A number; with or_text also an expression for one. */
static void put_number_type(ms_indent *json, const char *type, bool or_text)
{
    const char *both =
        or_text ? ms_arena_format(json->text->arena, "%s|string", type) : type;
    json->text->failed |= both == NULL;
    if (or_text && both != NULL)
        ms_indent_words(json, "type", both);
    else
        ms_indent_string(json, "type", type);
}

/* most: length of a list of integers; 0: no limit. */
static void put_ints(ms_indent *json, const ms_field *field, uint32_t most,
                     bool or_text)
{
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "items", '{');
    put_number_type(json, "integer", or_text);
    put_bounds(json, field);
    if (field->low == field->high)
        ms_indent_integer(json, "minimum", 0);
    ms_indent_close(json, '}');
    if (most > 0)
        ms_indent_integer(json, "maxItems", most);
}

static void put_default(ms_indent *json, const ms_field *field)
{
    if (field->required)
        return;
    if (field->type == MS_INT && field->low != field->high)
        ms_indent_integer(json, "default", field->fallback.i);
    else if (field->type == MS_BOOL)
        ms_indent_word(json, "default", field->fallback.b ? "true" : "false");
}

static void put_type(ms_indent *json, const ms_field *field, uint32_t most,
                     bool or_text)
{
    static const char *const types[] = {
        [MS_INT] = "integer", [MS_FLOAT] = "number", [MS_BOOL] = "boolean",
        [MS_WORD] = "string", [MS_NAME] = "string",  [MS_TEXT] = "string"};
    if (field->type == MS_INTS) {
        put_ints(json, field, most, or_text);
        return;
    }
    or_text &= field->type == MS_INT || field->type == MS_FLOAT ||
               field->type == MS_BOOL;
    put_number_type(json, types[field->type], or_text);
    if (field->type == MS_WORD)
        ms_indent_words(json, "enum", field->words);
    else if (field->type == MS_INT || field->type == MS_FLOAT)
        put_bounds(json, field);
}

void ms_properties_field_or(ms_indent *json, const char *key,
                            const ms_field *field, uint32_t most, bool or_text)
{
    ms_indent_open(json, key, '{');
    ms_indent_string(json, "description", field->help);
    put_type(json, field, most, or_text);
    put_default(json, field);
    ms_indent_close(json, '}');
}

void ms_properties_field(ms_indent *json, const char *key,
                         const ms_field *field, uint32_t most)
{
    ms_properties_field_or(json, key, field, most, false);
}

void ms_properties_fields(ms_indent *json, const ms_field *fields, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ms_properties_field(json, fields[i].name, &fields[i], MS_MAX_DIMS);
}

void ms_properties_list_fields(ms_indent *json, const ms_field *fields,
                               uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ms_properties_field_or(json, fields[i].name, &fields[i], MS_MAX_DIMS,
                               true);
}

void ms_properties_required(ms_indent *json, const ms_field *fields, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (fields[i].required)
            ms_indent_string(json, NULL, fields[i].name);
}

void ms_properties_const(ms_indent *json, const char *key, const char *value)
{
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, key, '{');
    ms_indent_string(json, "const", value);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
}

void ms_properties_close(ms_indent *json)
{
    ms_indent_word(json, "additionalProperties", "false");
}

void ms_properties_head(ms_indent *json)
{
    ms_indent_open(json, "memsim", '{');
    ms_indent_string(json, "description", "version of the format");
    ms_indent_integer(json, "const", 1);
    ms_indent_close(json, '}');
    ms_indent_ref(json, "name", "text");
    ms_indent_ref(json, "summary", "text");
}
