/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints objects as JSON, and as rows of CSV, from the rows of their keys. */

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

/* Writes a number; the one that stands for null is written as null. */
static void put_count(ms_text *text, uint64_t number, uint64_t null)
{
    if (number == null)
        put(text, "null");
    else
        ms_text_u64(text, number);
}

/* FLOPs are whole numbers, so that all digits are written as long as they
 * fit. */
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

/* The name of a value that is an index into the key's names. */
static const char *name_at(const ms_key *key, const void *at)
{
    uint32_t which =
        key->held == MS_HELD_U8 ? *(const uint8_t *)at : load_u32(at);
    assert(which < key->n_names);
    return key->names[which];
}

static void put_name(ms_text *text, const ms_key *key, const void *at)
{
    ms_text_json(text, name_at(key, at));
}

static void put_held(ms_text *text, const ms_key *key, const void *at)
{
    uint16_t narrow;
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
    case MS_HELD_U16:
        memcpy(&narrow, at, sizeof narrow);
        ms_text_u64(text, narrow);
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
    case MS_HELD_CHARS:
        ms_text_json(text, at);
        return;
    }
}

/* Writes the value that the key's function computes. */
static void put_made(ms_text *text, const ms_key *key, const void *of)
{
    uint64_t number = key->make(of);
    if (key->type == MS_KEY_INTEGER)
        ms_text_i64(text, (int64_t)number);
    else
        put_count(text, number, MS_NO_LEVEL);
}

/* ---- arrays and objects -------------------------------------------------- */

static void put_name_of(ms_text *text, const char *name)
{
    put(text, "\"");
    put(text, name); /* memsim's own: nothing to escape */
    put(text, "\": ");
}

/* Writes what is between two members or elements: a comma, and a new line. */
static void put_between(ms_text *text, bool is_first, uint8_t line)
{
    if (line == 0)
        put(text, is_first ? "" : ", ");
    else
        ms_text_add(text, "%s\n%*s", is_first ? "" : ",", line, "");
}

/* Writes an element of an array of objects; some were printed before. */
static void put_element(ms_text *text, const ms_key *key, const void *at)
{
    const ms_key_printed *printed =
        key->printed != NULL ? key->printed(at) : NULL;
    if (printed == NULL)
        ms_keys_write(key->of, at, text);
    else if (printed->json == NULL)
        ms_keys_write(key->or_of, at, text);
    else
        ms_text_put(text, printed->json, printed->length);
}

static void put_list(ms_text *text, const ms_key *key, const void *of)
{
    ms_key_list list = key->list(of);
    const char *at = list.first;
    put(text, "[");
    for (uint32_t i = 0; i < list.n; i++, at += list.stride) {
        put_between(text, i == 0, key->element_line);
        if (key->type == MS_KEY_OBJECTS)
            put_element(text, key, at);
        else if (key->type == MS_KEY_TEXTS)
            put_words(text, MS_HELD_TEXT, at);
        else
            ms_text_u64(text, load_u64(at));
    }
    if (key->end_line > 0)
        put_between(text, true, key->end_line);
    put(text, "]");
}

/* Writes members whose names come from the user. */
static void put_map(ms_text *text, const ms_key *key, const void *of)
{
    ms_key_list list = key->list(of);
    const char *at = list.first, *name;
    put(text, "{");
    for (uint32_t i = 0; i < list.n; i++, at += list.stride) {
        memcpy(&name, at, sizeof name);
        put_between(text, i == 0, 0);
        ms_text_json(text, name);
        put(text, ": ");
        put_held(text, key, at + key->at);
    }
    put(text, "}");
}

/* Writes a member for each name. */
static void put_named(ms_text *text, const ms_key *key, const void *at)
{
    bool is_first = true, objects = key->type == MS_KEY_NAMED;
    size_t stride = objects ? key->of->size : sizeof(uint64_t);
    put(text, "{");
    for (uint32_t i = 0; i < key->n_names; i++) {
        const char *member = (const char *)at + i * stride;
        if (key->type == MS_KEY_SOME && load_u64(member) == 0)
            continue;
        put_between(text, is_first, 0);
        put_name_of(text, key->names[i]);
        if (objects)
            ms_keys_write(key->of, member, text);
        else
            put_count(text, load_u64(member), MS_NO_LEVEL);
        is_first = false;
    }
    put(text, "}");
}

static const char *place_of(const ms_key *key, const void *of)
{
    const char *at = of;
    if (key->via > 0)
        memcpy(&at, at + key->via - 1, sizeof at);
    return at != NULL ? at + key->at : NULL;
}

/* Writes the value that lies at a place. */
static void put_placed(ms_text *text, const ms_key *key, const void *of,
                       const char *at)
{
    if (at == NULL)
        put(text, "null");
    else if (key->type == MS_KEY_OBJECT && key->held == MS_HELD_NOT)
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

static void put_value(ms_text *text, const ms_key *key, const void *of)
{
    if (key->there != NULL && !key->there(of))
        put(text, "null");
    else if (key->make != NULL)
        put_made(text, key, of);
    else if (key->list != NULL && key->type == MS_KEY_OBJECT)
        put_map(text, key, of);
    else if (key->list != NULL)
        put_list(text, key, of);
    else
        put_placed(text, key, of, place_of(key, of));
}

static bool is_left_out(const ms_key *key, const void *of)
{
    if (key->left_out != NULL && key->left_out(of))
        return true;
    return !key->null && key->there != NULL && !key->there(of);
}

/* Writes a member, unless it is left out. */
static void put_member(const ms_key *key, const void *of, bool *is_first,
                       ms_text *text)
{
    if (is_left_out(key, of))
        return;
    put_between(text, *is_first, key->line);
    put_name_of(text, key->name);
    put_value(text, key, of);
    *is_first = false;
}

static void put_more(const ms_keys *keys, const void *of, bool *is_first,
                     ms_text *text)
{
    ms_key key = {.name = ""};
    for (uint32_t i = 0; keys->more(i, text->arena, &key); i++)
        put_member(&key, of, is_first, text);
    text->failed |= key.name == NULL;
}

/* The members from row i on. */
static void put_members(const ms_keys *keys, uint32_t i, const void *of,
                        bool is_first, ms_text *text)
{
    for (; i < keys->n; i++) {
        if (keys->more_before != NULL &&
            strcmp(keys->rows[i].name, keys->more_before) == 0)
            put_more(keys, of, &is_first, text);
        put_member(&keys->rows[i], of, &is_first, text);
    }
    if (keys->more != NULL && keys->more_before == NULL)
        put_more(keys, of, &is_first, text);
}

void ms_keys_write(const ms_keys *keys, const void *of, ms_text *text)
{
    put(text, "{");
    put_members(keys, 0, of, true, text);
    put(text, keys->last_line ? "\n}" : "}");
}

static uint32_t row_of(const ms_keys *keys, const char *name)
{
    uint32_t i = 0;
    while (strcmp(keys->rows[i].name, name) != 0)
        i++;
    return i;
}

void ms_keys_write_from(const ms_keys *keys, const char *first, const void *of,
                        ms_text *text)
{
    put_members(keys, row_of(keys, first), of, false, text);
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

/* The text of a cell that has one, else NULL. A WORD that is an index has a
 * name. */
static const char *cell_words(const ms_key *key, const void *of)
{
    const char *at = place_of(key, of), *words;
    if (key->held == MS_HELD_CHARS)
        return at;
    if (key->held != MS_HELD_TEXT)
        return name_at(key, at);
    memcpy(&words, at, sizeof words);
    return words;
}

/* What is null in JSON is nothing here.  The cell is written in place: a sweep
 * of a million rows has but one text. */
static void put_cell(ms_text *text, const ms_key *key, const void *of)
{
    uint32_t before = text->length;
    if (key->there != NULL && !key->there(of))
        return;
    if (key->held == MS_HELD_TEXT || key->held == MS_HELD_CHARS ||
        key->type == MS_KEY_WORD) {
        const char *words = cell_words(key, of);
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
    uint32_t end = row_of(keys, last) + 1;
    for (uint32_t i = row_of(keys, first); i < end; i++) {
        put(text, ",");
        put_cell(text, &keys->rows[i], of);
    }
}

/* ---- tables of CSV ------------------------------------------------------- */

/* How a cell is written.  A table may have a line for each of millions of
 * operations, and nearly all of its cells are plain numbers: these do not go
 * through all that a key can say. */
typedef enum cell_kind {
    CELL_NUMBER, /* a uint64_t that lies in the line itself, never null */
    CELL_WORDS,  /* a char[] that lies there */
    CELL_KEY     /* anything else, as its key says */
} cell_kind;

struct ms_keys_cell {
    cell_kind kind;
    size_t at;
    const ms_key *key;
};

static cell_kind kind_of(const ms_key *key)
{
    if (key->via > 0 || key->null || key->make != NULL)
        return CELL_KEY;
    if (key->held == MS_HELD_CHARS)
        return CELL_WORDS;
    return key->held == MS_HELD_U64 ? CELL_NUMBER : CELL_KEY;
}

static void plan_column(ms_keys_plan *plan, const ms_key *key, const void *of)
{
    if (key->left_out == NULL || !key->left_out(of))
        plan->cells[plan->n++] =
            (struct ms_keys_cell){kind_of(key), key->at, key};
}

/* How many keys come from another table; false: out of memory. */
static bool count_more(const ms_keys *keys, ms_arena *arena, uint32_t *n)
{
    ms_key key = {.name = ""};
    *n = 0;
    while (keys->more != NULL && keys->more(*n, arena, &key))
        ++*n;
    return key.name != NULL;
}

bool ms_keys_write_plan(const ms_keys *keys, const void *of, ms_arena *arena,
                        ms_keys_plan *plan)
{
    uint32_t n_more, more_at = keys->n;
    if (!count_more(keys, arena, &n_more))
        return false;
    ms_key *more = ms_arena_take(arena, n_more + 1, sizeof *more);
    *plan = (ms_keys_plan){
        .cells = ms_arena_take(arena, keys->n + n_more, sizeof *plan->cells)};
    if (more == NULL || plan->cells == NULL)
        return false;
    if (keys->more_before != NULL)
        more_at = row_of(keys, keys->more_before);
    for (uint32_t i = 0; i < n_more; i++)
        if (!keys->more(i, arena, &more[i]))
            return false;
    for (uint32_t i = 0; i < more_at; i++)
        plan_column(plan, &keys->rows[i], of);
    for (uint32_t i = 0; i < n_more; i++)
        plan_column(plan, &more[i], of);
    for (uint32_t i = more_at; i < keys->n; i++)
        plan_column(plan, &keys->rows[i], of);
    return true;
}

void ms_keys_write_header(const ms_keys_plan *plan, ms_text *text)
{
    for (uint32_t i = 0; i < plan->n; i++) {
        put(text, i > 0 ? "," : "");
        put(text, plan->cells[i].key->name);
    }
    put(text, "\n");
}

void ms_keys_write_line(const ms_keys_plan *plan, const void *of, ms_text *text)
{
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct ms_keys_cell *cell = &plan->cells[i];
        const char *at = (const char *)of + cell->at;
        if (i > 0)
            ms_text_put(text, ",", 1);
        if (cell->key->there != NULL && !cell->key->there(of))
            put(text, cell->key->absent != NULL ? cell->key->absent : "");
        else if (cell->kind == CELL_NUMBER)
            ms_text_u64(text, load_u64(at));
        else if (cell->kind == CELL_WORDS)
            ms_table_field(text, at);
        else
            put_cell(text, cell->key, of);
    }
    ms_text_put(text, "\n", 1);
}
