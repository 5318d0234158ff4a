/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/pages/typedkeys.h"

#include "graphs/json/fields.h"

#include <string.h>

#define MOST_WORDS 32u
#define MOST_WORD 31u /* bytes */

/* Members of a key, and its types; the rows of type are in the order of
 * types[] below. */
enum { TYPE, REQUIRED, LOW, HIGH, WORDS, HELP, N_MEMBERS };
static const ms_field members[N_MEMBERS] = {
    {.name = "type",
     .type = MS_WORD,
     .words = "integer|number|boolean|word",
     .help = "what values it takes"},
    {.name = "required", .type = MS_BOOL, .help = "a model must give it"},
    {.name = "low", .type = MS_INT, .help = "the least value"},
    {.name = "high", .type = MS_INT, .help = "the greatest value"},
    {.name = "words", .type = MS_TEXT, .help = "the words it can be: a|b|c"},
    {.name = "help", .type = MS_TEXT, .help = "one line"}};
static const ms_value_type types[] = {MS_INT, MS_FLOAT, MS_BOOL, MS_WORD};

/* The rows under way. */
typedef struct table {
    ms_page *page;
    ms_field *rows;
    uint32_t n;
    bool typed[MS_TYPEDKEYS_MOST];
    /* Where a row and its default stand; the default may be MS_NONE. */
    const ms_json *json[MS_TYPEDKEYS_MOST], *default_json[MS_TYPEDKEYS_MOST];
    uint32_t at[MS_TYPEDKEYS_MOST], default_at[MS_TYPEDKEYS_MOST];
} table;

/* ---- reading ------------------------------------------------------------- */

static ms_err add_row(table *t, const ms_json *json, uint32_t entry,
                      uint32_t *row)
{
    static const char *const taken[] = {"name", "page", "i"};
    const char *name = json->nodes[entry].key;
    ms_fault *fault = t->page->fault;
    bool free = ms_numbers_is_name(name);
    *row = ms_fields_find(t->rows, t->n, name);
    if (*row != MS_NONE)
        return MS_OK;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        free &= strcmp(name, taken[i]) != 0;
    if (!free)
        return ms_json_fail_key(json, entry, fault,
                                "letters, digits and _, not a digit first; "
                                "not name, page or i",
                                "\"%s\" cannot be the name of a key", name);
    if (t->n == MS_TYPEDKEYS_MOST)
        return ms_json_fail_key(json, entry, fault, NULL, "more than %u keys",
                                MS_TYPEDKEYS_MOST);
    *row = t->n++;
    t->rows[*row] = (ms_field){.name = name};
    t->default_at[*row] = MS_NONE;
    return MS_OK;
}

/* What the page says of a key stands over what it is like says. */
static ms_err read_entry(table *t, const ms_json *json, uint32_t entry)
{
    static const char *const also[] = {"default"};
    static const ms_fields keys = {.rows = members,
                                   .n = N_MEMBERS,
                                   .extra = also,
                                   .n_extra = 1,
                                   .owner = "a key"};
    ms_value values[N_MEMBERS];
    ms_fields_values out = {.values = values};
    uint32_t row;
    ms_page *page = t->page;
    if (json->nodes[entry].kind != MS_JSON_OBJECT)
        return ms_json_fail(json, entry, page->fault,
                            "{\"type\": \"integer\", \"low\": 1, ...}",
                            "a key must be an object, not %s",
                            ms_json_kind_name(json, entry));
    MS_TRY(add_row(t, json, entry, &row));
    MS_TRY(ms_fields_read_object(json, entry, &keys, page->arena, &out,
                                 page->fault));
    ms_field *field = &t->rows[row];
    t->json[row] = json;
    t->at[row] = entry;
    if ((out.given >> TYPE & 1) != 0)
        field->type = types[values[TYPE].i];
    t->typed[row] |= (out.given >> TYPE & 1) != 0;
    if ((out.given >> REQUIRED & 1) != 0)
        field->required = values[REQUIRED].b;
    if ((out.given >> LOW & 1) != 0)
        field->low = values[LOW].i;
    if ((out.given >> HIGH & 1) != 0)
        field->high = values[HIGH].i;
    if ((out.given >> WORDS & 1) != 0)
        field->words = values[WORDS].s;
    if ((out.given >> HELP & 1) != 0)
        field->help = values[HELP].s;
    uint32_t fallback = ms_json_find(json, entry, "default");
    if (fallback != MS_NONE) {
        t->default_json[row] = json;
        t->default_at[row] = fallback;
    }
    return MS_OK;
}

/* ---- whether a row is whole ---------------------------------------------- */

/* "a|b|c": words that there are, none too long. */
static bool are_words(const char *words)
{
    for (uint32_t n = 1; n <= MOST_WORDS; n++) {
        size_t length = strcspn(words, "|");
        if (length == 0 || length > MOST_WORD)
            return false;
        if (words[length] == '\0')
            return true;
        words += length + 1;
    }
    return false;
}

static bool is_counted(const ms_field *field)
{
    return field->type == MS_INT || field->type == MS_FLOAT;
}

/* What is wrong with a row, or NULL. */
static const char *wrong_with(const table *t, uint32_t row)
{
    const ms_field *field = &t->rows[row];
    bool tells = field->required || t->default_at[row] != MS_NONE;
    if (!t->typed[row])
        return "a key needs \"type\"";
    if (field->help == NULL)
        return "a key needs \"help\"";
    if (is_counted(field) &&
        (field->low >= field->high || field->low == INT64_MIN))
        return "an integer or number needs \"low\" and \"high\", the greater";
    if (field->type == MS_WORD &&
        (field->words == NULL || !are_words(field->words)))
        return "a word needs \"words\": up to 32, \"a|b|c\", of at most 31 "
               "bytes each";
    if (is_counted(field) && !tells && strstr(field->help, "; default") == NULL)
        return "a key needs \"required\", \"default\", or a help that says "
               "\"; default ...\"";
    return NULL;
}

/* Below the range: not given. */
static void set_absent(ms_field *field)
{
    if (field->type == MS_INT)
        field->fallback.i = field->low - 1;
    else if (field->type == MS_FLOAT)
        field->fallback.f = (double)field->low - 1;
}

static ms_err finish_row(const table *t, uint32_t row)
{
    ms_field *field = &t->rows[row];
    ms_fault *fault = t->page->fault;
    const ms_fields keys = {.rows = field, .n = 1, .owner = "a key"};
    const char *wrong = wrong_with(t, row);
    if (wrong != NULL)
        return ms_json_fail(t->json[row], t->at[row], fault, NULL, "\"%s\": %s",
                            field->name, wrong);
    set_absent(field);
    if (t->default_at[row] == MS_NONE)
        return MS_OK;
    return ms_fields_evaluate(t->default_json[row], t->default_at[row], &keys,
                              0, &field->fallback, fault);
}

ms_err ms_typedkeys_read(ms_page *page)
{
    table t = {.page = page};
    t.rows = ms_arena_take(page->arena, MS_TYPEDKEYS_MOST, sizeof *t.rows);
    if (t.rows == NULL)
        return ms_fail_nomem(page->fault);
    for (uint32_t p = page->n_pages; p-- > 0;) {
        const ms_json *json = &page->pages[p];
        uint32_t keys = ms_json_find(json, 0, "keys");
        uint32_t i = keys == MS_NONE ? MS_NONE : ms_json_first(json, keys);
        for (; i != MS_NONE; i = json->nodes[i].next)
            MS_TRY(read_entry(&t, json, i));
    }
    for (uint32_t row = 0; row < t.n; row++)
        MS_TRY(finish_row(&t, row));
    page->keys = t.rows;
    page->n_keys = t.n;
    return MS_OK;
}

/* ---- values -------------------------------------------------------------- */

/* The word of that number, or NULL: out of memory. */
static const char *word_at(const char *words, int64_t index, ms_arena *arena)
{
    for (; index > 0; index--)
        words = strchr(words, '|') + 1;
    return ms_arena_text(arena, words, strcspn(words, "|"));
}

ms_err ms_typedkeys_find(const ms_page *page, const char *key, ms_known *value,
                         bool *known)
{
    uint32_t row = ms_fields_find(page->keys, page->n_keys, key);
    *known = row != MS_NONE;
    if (row == MS_NONE)
        return MS_OK;
    const ms_field *field = &page->keys[row];
    const ms_value *given = &page->values[row];
    *value = (ms_known){.kind = MS_KIND_NULL,
                        .name = field->name,
                        .json = page->config,
                        .row = page->config_row};
    if (field->type == MS_BOOL) {
        value->kind = MS_KIND_BOOL;
        value->is.b = given->b;
    } else if (field->type == MS_WORD) {
        value->kind = MS_KIND_TEXT;
        value->is.s = word_at(field->words, given->i, page->arena);
        return value->is.s == NULL ? ms_fail_nomem(page->fault) : MS_OK;
    } else if (field->type == MS_INT && given->i >= field->low) {
        value->kind = MS_KIND_INT;
        value->is.i = given->i;
    } else if (field->type == MS_FLOAT && given->f >= (double)field->low) {
        value->kind = MS_KIND_FLOAT;
        value->is.f = given->f;
    }
    return MS_OK;
}
