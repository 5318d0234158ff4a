/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects printed as JSON, and as rows of CSV, from the rows of their keys. */

#include "plots/plots.h"
#include "sim/report.h"
#include "tools/results/keys/keys.h"

#include <assert.h>
#include <string.h>

static void put(ms_text *text, const char *words)
{
    ms_text_put(text, words, strlen(words));
}

static uint32_t load_u32(const void *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static uint64_t load_u64(const void *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* A number, or null. */
static void put_count(ms_text *text, uint64_t number, uint64_t null)
{
    if (number == null)
        put(text, "null");
    else
        ms_text_u64(text, number);
}

/* FLOPs are whole numbers: all their digits, as long as they fit. */
static void put_double(ms_text *text, ms_key_held held, const void *at)
{
    double number;
    memcpy(&number, at, sizeof number);
    if (held == MS_HELD_FLOPS && number < 0x1p63)
        ms_text_u64(text, (uint64_t)number);
    else if (held == MS_HELD_RATE && number < 0)
        put(text, "null");
    else
        ms_text_double(text, number);
}

static void put_words(ms_text *text, ms_key_held held, const void *at)
{
    const char *words;
    memcpy(&words, at, sizeof words);
    if (words == NULL)
        put(text, "null");
    else if (held == MS_HELD_JSON)
        put(text, words);
    else
        ms_text_json(text, words);
}

/* The index in a table of names. */
static void put_name(ms_text *text, const ms_key *key, const void *at)
{
    uint32_t which =
        key->held == MS_HELD_U8 ? *(const uint8_t *)at : load_u32(at);
    assert(which < key->n_names);
    ms_text_json(text, key->names[which]);
}

static void put_held(ms_text *text, const ms_key *key, const void *at)
{
    switch (key->held) {
    case MS_HELD_NOT:
        assert(key->type == MS_KEY_VERSION);
        put(text, "1");
        return;
    case MS_HELD_U64:
        put_count(text, load_u64(at), MS_NO_LEVEL);
        return;
    case MS_HELD_SOME:
        put_count(text, load_u64(at), 0);
        return;
    case MS_HELD_U32:
        put_count(text, load_u32(at), MS_NONE);
        return;
    case MS_HELD_U8:
        ms_text_u64(text, *(const uint8_t *)at);
        return;
    case MS_HELD_I64:
        ms_text_i64(text, (int64_t)load_u64(at));
        return;
    case MS_HELD_BOOL:
        put(text, *(const bool *)at ? "true" : "false");
        return;
    case MS_HELD_FLOPS:
    case MS_HELD_RATE:
        put_double(text, key->held, at);
        return;
    case MS_HELD_ENUM:
        put_name(text, key, at);
        return;
    case MS_HELD_TEXT:
    case MS_HELD_JSON:
        put_words(text, key->held, at);
        return;
    }
}

/* What a function makes. */
static void put_made(ms_text *text, const ms_key *key, const void *of)
{
    uint64_t number = key->make(of);
    if (key->type == MS_KEY_INTEGER)
        ms_text_i64(text, (int64_t)number);
    else
        put_count(text, number, MS_NO_LEVEL);
}

/* ---- arrays and objects -------------------------------------------------- */

static void put_key(ms_text *text, const char *between, const char *name)
{
    put(text, between);
    put(text, "\"");
    put(text, name); /* ours: nothing to escape */
    put(text, "\": ");
}

static void put_list(ms_text *text, const ms_key *key, const void *of)
{
    ms_key_list list = key->list(of);
    const char *at = list.first;
    put(text, "[");
    for (uint32_t i = 0; i < list.n; i++, at += list.stride) {
        if (i > 0)
            put(text, ", ");
        if (key->type == MS_KEY_OBJECTS)
            ms_keys_write(key->of, at, text);
        else if (key->type == MS_KEY_TEXTS)
            put_words(text, MS_HELD_TEXT, at);
        else
            ms_text_u64(text, load_u64(at));
    }
    put(text, "]");
}

/* A member for each name. */
static void put_named(ms_text *text, const ms_key *key, const void *at)
{
    const char *between = "";
    bool objects = key->type == MS_KEY_NAMED;
    size_t stride = objects ? key->of->size : sizeof(uint64_t);
    put(text, "{");
    for (uint32_t i = 0; i < key->n_names; i++) {
        const char *member = (const char *)at + i * stride;
        if (key->type == MS_KEY_SOME && load_u64(member) == 0)
            continue;
        put_key(text, between, key->names[i]);
        if (objects)
            ms_keys_write(key->of, member, text);
        else
            put_count(text, load_u64(member), MS_NO_LEVEL);
        between = ", ";
    }
    put(text, "}");
}

static const char *place_of(const ms_key *key, const void *of)
{
    const char *at = of;
    if (key->via > 0)
        memcpy(&at, at + key->via - 1, sizeof at);
    return at + key->at;
}

static void put_value(ms_text *text, const ms_key *key, const void *of)
{
    if (key->there != NULL && !key->there(of)) {
        put(text, "null");
        return;
    }
    if (key->make != NULL) {
        put_made(text, key, of);
        return;
    }
    if (key->list != NULL) {
        put_list(text, key, of);
        return;
    }
    const char *at = place_of(key, of);
    if (key->type == MS_KEY_OBJECT && key->held == MS_HELD_NOT)
        ms_keys_write(key->of, at, text);
    else if (key->type == MS_KEY_NAMED || key->type == MS_KEY_COUNTS ||
             key->type == MS_KEY_SOME)
        put_named(text, key, at);
    else if (key->type == MS_KEY_TABLE)
        ms_keys_table_write(key, of, at, text);
    else if (key->type == MS_KEY_WORD && key->held != MS_HELD_TEXT)
        put_name(text, key, at);
    else
        put_held(text, key, at);
}

/* Members from row i on, the first one behind `between`. */
static void put_members(const ms_keys *keys, uint32_t i, const void *of,
                        const char *between, ms_text *text)
{
    for (; i < keys->n; i++) {
        const ms_key *key = &keys->rows[i];
        if (!key->null && key->there != NULL && !key->there(of))
            continue;
        put_key(text, between, key->name);
        put_value(text, key, of);
        between = ", ";
    }
}

void ms_keys_write(const ms_keys *keys, const void *of, ms_text *text)
{
    put(text, "{");
    put_members(keys, 0, of, "", text);
    put(text, "}");
}

static uint32_t row_of(const ms_keys *keys, const char *name)
{
    uint32_t i = 0;
    while (strcmp(keys->rows[i].name, name) != 0)
        i++;
    return i;
}

void ms_keys_write_one(const ms_keys *keys, const char *name, const void *of,
                       ms_text *text)
{
    put_key(text, ", ", name);
    put_value(text, &keys->rows[row_of(keys, name)], of);
}

void ms_keys_write_from(const ms_keys *keys, const char *first, const void *of,
                        ms_text *text)
{
    put_members(keys, row_of(keys, first), of, ", ", text);
}

/* ---- CSV ----------------------------------------------------------------- */

void ms_keys_write_names(const ms_keys *keys, const char *first,
                         const char *last, ms_text *text)
{
    for (uint32_t i = row_of(keys, first); i <= row_of(keys, last); i++) {
        put(text, ",");
        put(text, keys->rows[i].name);
    }
}

/* What is null in JSON is nothing here.  The cell is written in place: a sweep
 * of a million rows has but one text. */
static void put_cell(ms_text *text, const ms_key *key, const void *of)
{
    uint32_t before = text->length;
    const char *words;
    if (key->there != NULL && !key->there(of))
        return;
    if (key->held == MS_HELD_TEXT) {
        memcpy(&words, place_of(key, of), sizeof words);
        if (words != NULL)
            ms_table_field(text, words);
        return;
    }
    put_value(text, key, of);
    if (!text->failed && strcmp(text->bytes + before, "null") == 0)
        text->bytes[text->length = before] = '\0';
}

void ms_keys_write_cells(const ms_keys *keys, const char *first,
                         const char *last, const void *of, ms_text *text)
{
    for (uint32_t i = row_of(keys, first); i <= row_of(keys, last); i++) {
        put(text, ",");
        put_cell(text, &keys->rows[i], of);
    }
}
