/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the JSON Schema of what memsim reads or prints. */

#include "tools/results/schema/schema.h"

#include <string.h>

#define DIALECT "https://json-schema.org/draft/2020-12/schema"
#define DOCUMENT_VERSION 1
#define MOST_OBJECTS 64u

/* Every object that a document can contain, for "$defs". */
typedef struct objects {
    const ms_keys *keys[MOST_OBJECTS];
    uint32_t n;
} objects;

static void collect(const ms_keys *keys, objects *all)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->keys[i] == keys)
            return;
    if (all->n < MOST_OBJECTS)
        all->keys[all->n++] = keys;
    ms_key key;
    for (uint32_t i = 0; i < keys->n; i++)
        if (ms_keys_order(keys, i, NULL, &key) && key.of != NULL)
            collect(key.of, all);
    for (uint32_t i = 0; i < keys->n; i++)
        if (keys->rows[i].or_of != NULL)
            collect(keys->rows[i].or_of, all);
}

/* ---- one key ------------------------------------------------------------- */

static const char *const type_names[] = {
    [MS_KEY_COUNT] = "integer",   [MS_KEY_INTEGER] = "integer",
    [MS_KEY_NUMBER] = "number",   [MS_KEY_BOOL] = "boolean",
    [MS_KEY_TEXT] = "string",     [MS_KEY_WORD] = "string",
    [MS_KEY_VERSION] = "integer", [MS_KEY_TEXTS] = "array",
    [MS_KEY_OBJECT] = "object",   [MS_KEY_OBJECTS] = "array",
    [MS_KEY_COUNTS] = "object",   [MS_KEY_NAMED] = "object",
    [MS_KEY_LEVELS] = "array",    [MS_KEY_SOME] = "object",
    [MS_KEY_TABLE] = "object"};

static void put_type(ms_indent *json, const ms_key *key)
{
    const char *name = type_names[key->type];
    const char *both = ms_arena_format(json->text->arena, "%s|null", name);
    json->text->failed |= both == NULL;
    if (!key->null)
        ms_indent_string(json, "type", name);
    else if (both != NULL)
        ms_indent_words(json, "type", both);
}

/* The words, and null where the value may be null. */
static void put_enum(ms_indent *json, const ms_key *key)
{
    ms_indent_open(json, "enum", '[');
    for (uint32_t i = 0; i < key->n_names; i++)
        if (key->names[i] != NULL)
            ms_indent_string(json, NULL, key->names[i]);
    for (const char *word = key->words; word != NULL && *word != '\0';) {
        size_t length = strcspn(word, "|");
        const char *one = ms_arena_text(json->text->arena, word, length);
        json->text->failed |= one == NULL;
        if (one != NULL)
            ms_indent_string(json, NULL, one);
        word += length + (word[length] == '|');
    }
    if (key->null)
        ms_indent_word(json, NULL, "null");
    ms_indent_close(json, ']');
}

static void put_members(ms_indent *json, const ms_key *key)
{
    ms_indent_open(json, "properties", '{');
    for (uint32_t i = 0; i < key->n_names; i++) {
        if (key->type == MS_KEY_NAMED) {
            ms_indent_ref(json, key->names[i], key->of->name);
            continue;
        }
        ms_indent_open(json, key->names[i], '{');
        ms_indent_string(json, "type", "integer");
        ms_indent_integer(json, "minimum", 0);
        ms_indent_close(json, '}');
    }
    ms_indent_close(json, '}');
    if (key->type == MS_KEY_SOME)
        return;
    ms_indent_open(json, "required", '[');
    for (uint32_t i = 0; i < key->n_names; i++)
        ms_indent_string(json, NULL, key->names[i]);
    ms_indent_close(json, ']');
}

static void put_object_or_null(ms_indent *json, const ms_key *key)
{
    ms_indent_open(json, "anyOf", '[');
    ms_indent_ref(json, NULL, key->of->name);
    ms_indent_open(json, NULL, '{');
    ms_indent_string(json, "type", "null");
    ms_indent_close(json, '}');
    ms_indent_close(json, ']');
}

static void put_items(ms_indent *json, const ms_key *key)
{
    if (key->or_of != NULL) {
        ms_indent_open(json, "items", '{');
        ms_indent_open(json, "anyOf", '[');
        ms_indent_ref(json, NULL, key->of->name);
        ms_indent_ref(json, NULL, key->or_of->name);
        ms_indent_close(json, ']');
        ms_indent_close(json, '}');
        return;
    }
    if (key->type == MS_KEY_OBJECTS) {
        ms_indent_ref(json, "items", key->of->name);
        return;
    }
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type",
                     key->type == MS_KEY_TEXTS ? "string" : "integer");
    ms_indent_close(json, '}');
}

static void put_table(ms_indent *json)
{
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, "columns", '{');
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type", "string");
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "rows", '{');
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type", "array");
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_words(json, "required", "columns|rows");
}

static const char *reference(ms_indent *json, const ms_keys *keys)
{
    const char *path =
        ms_arena_format(json->text->arena, "#/$defs/%s", keys->name);
    json->text->failed |= path == NULL;
    return path != NULL ? path : "";
}

static void put_key(ms_indent *json, const ms_key *key)
{
    ms_indent_open(json, key->name, '{');
    if (key->help != NULL && *key->help != '\0')
        ms_indent_string(json, "description", key->help);
    if (key->type == MS_KEY_OBJECT && !key->null)
        ms_indent_string(json, "$ref", reference(json, key->of));
    else if (key->type == MS_KEY_OBJECT)
        put_object_or_null(json, key);
    else
        put_type(json, key);
    if (key->type == MS_KEY_COUNT || key->type == MS_KEY_NUMBER)
        ms_indent_integer(json, "minimum", 0);
    else if (key->type == MS_KEY_VERSION)
        ms_indent_integer(json, "const", DOCUMENT_VERSION);
    else if (key->type == MS_KEY_WORD)
        put_enum(json, key);
    else if (key->type == MS_KEY_COUNTS || key->type == MS_KEY_NAMED ||
             key->type == MS_KEY_SOME)
        put_members(json, key);
    else if (key->type == MS_KEY_OBJECTS || key->type == MS_KEY_TEXTS ||
             key->type == MS_KEY_LEVELS)
        put_items(json, key);
    else if (key->type == MS_KEY_TABLE)
        put_table(json);
    ms_indent_close(json, '}');
}

/* ---- one object ---------------------------------------------------------- */

/* Later versions may add keys, so other keys are allowed. */
static void put_keys(ms_indent *json, const ms_keys *keys)
{
    ms_arena *arena = json->text->arena;
    ms_key key;
    ms_indent_string(json, "type", "object");
    ms_indent_open(json, "properties", '{');
    for (uint32_t i = 0; ms_keys_order(keys, i, arena, &key); i++)
        put_key(json, &key);
    json->text->failed |= key.name == NULL;
    ms_indent_close(json, '}');
    if (keys->any != NULL) {
        ms_indent_open(json, "patternProperties", '{');
        ms_indent_word(json, keys->any, "true");
        ms_indent_close(json, '}');
    }
    ms_indent_open(json, "required", '[');
    for (uint32_t i = 0; ms_keys_order(keys, i, arena, &key); i++)
        if (!key.optional)
            ms_indent_string(json, NULL, key.name);
    json->text->failed |= key.name == NULL;
    ms_indent_close(json, ']');
}

static void put_result(ms_indent *json, const ms_keys *keys)
{
    objects all = {.n = 0};
    collect(keys, &all);
    put_keys(json, keys);
    ms_indent_open(json, "$defs", '{');
    for (uint32_t i = 1; i < all.n; i++) {
        ms_indent_open(json, all.keys[i]->name, '{');
        put_keys(json, all.keys[i]);
        ms_indent_close(json, '}');
    }
    ms_indent_close(json, '}');
}

/* ---- the document -------------------------------------------------------- */

void ms_schema_write(const ms_schema_document *document, ms_text *text)
{
    ms_indent json = {.text = text};
    const char *id = ms_arena_format(text->arena, "urn:memsim:schema:%s:%d",
                                     document->name, DOCUMENT_VERSION);
    text->failed |= id == NULL;
    ms_indent_open(&json, NULL, '{');
    ms_indent_string(&json, "$schema", DIALECT);
    ms_indent_string(&json, "$id", id != NULL ? id : "");
    ms_indent_string(&json, "title", document->what);
    if (document->keys != NULL)
        put_result(&json, document->keys);
    else
        ms_schema_model_write(&json);
    ms_indent_close(&json, '}');
    ms_text_add(text, "\n");
}
