/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/json.h"

#include "graphs/json/index.h"
#include "graphs/json/scan.h"
#include "graphs/json/spelling.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FEW_KEYS 8u /* compared pairwise; more go through an index */
#define WHOLE UINT32_MAX

/* A text that becomes rows. */
typedef struct parser {
    ms_scan at;
    ms_json *json;
    ms_arena *rows, *keep; /* keep: of texts */
    ms_spelling *keys;
    uint32_t capacity, depth;
    uint32_t fold; /* arrays and objects in so many others are left folded */
    ms_fault late; /* the first of what is legal as a text, but refused: told
                      where the rest of the text is legal, too */
} parser;

/* ---- keys ---------------------------------------------------------------- */

static void refuse_duplicate(parser *p, uint32_t first, uint32_t second)
{
    if (first > second) {
        uint32_t swap = first;
        first = second;
        second = swap;
    }
    ms_json_fail_key(p->json, second, &p->late, "keep one of the two",
                     "duplicate key \"%s\" (first in line %u)",
                     p->json->nodes[second].key, p->json->nodes[first].line);
}

static void check_few_keys(parser *p, uint32_t object)
{
    const ms_json_node *nodes = p->json->nodes;
    for (uint32_t i = object + 1; i != MS_NONE; i = nodes[i].next)
        for (uint32_t j = nodes[i].next; j != MS_NONE; j = nodes[j].next)
            if (nodes[i].key == nodes[j].key) {
                refuse_duplicate(p, i, j);
                return;
            }
}

static ms_err check_many_keys(parser *p, uint32_t object)
{
    const ms_json_node *nodes = p->json->nodes;
    ms_arena scratch = {.limit_bytes = p->rows->limit_bytes};
    ms_index index;
    ms_err err =
        ms_index_make(&index, nodes[object].value.n, &scratch, p->at.fault);
    for (uint32_t i = object + 1; err == MS_OK && i != MS_NONE;
         i = nodes[i].next) {
        uint32_t first = ms_index_add(&index, nodes[i].key, i);
        if (first == i)
            continue;
        refuse_duplicate(p, first, i);
        break;
    }
    ms_arena_free(&scratch);
    return err;
}

static ms_err check_keys(parser *p, uint32_t object)
{
    uint32_t n = p->json->nodes[object].value.n;
    if (n < 2 || p->late.err != MS_OK)
        return MS_OK;
    if (n > FEW_KEYS)
        return check_many_keys(p, object);
    check_few_keys(p, object);
    return MS_OK;
}

/* ---- values -------------------------------------------------------------- */

/* What stands before a value of an object. */
typedef struct label {
    const char *key; /* NULL: none */
    uint32_t at;
} label;

static ms_err add_row(parser *p, const label *of, uint32_t *row)
{
    ms_json *json = p->json;
    if (json->n == p->capacity)
        json->nodes = ms_arena_grow(p->rows, json->nodes, &p->capacity,
                                    json->n + 1, sizeof *json->nodes);
    if (json->nodes == NULL)
        return ms_fail_nomem(p->at.fault);
    *row = json->n++;
    json->nodes[*row] = (ms_json_node){.key = of->key,
                                       .at = (uint32_t)(p->at.at - p->at.start),
                                       .key_at = of->at,
                                       .line = p->at.line,
                                       .column = ms_scan_column(&p->at),
                                       .next = MS_NONE,
                                       .kind = MS_JSON_NULL};
    return MS_OK;
}

static ms_err read_string(parser *p, uint32_t row)
{
    ms_scan_text text;
    ms_json_node *node = &p->json->nodes[row];
    MS_TRY(ms_scan_string(&p->at, &text));
    node->kind = MS_JSON_STRING;
    node->value.s = NULL;
    if (p->depth > p->fold) /* the row is about to go */
        return MS_OK;
    node->value.s = ms_spelling_text(&text, p->keep);
    return node->value.s == NULL ? ms_fail_nomem(p->at.fault) : MS_OK;
}

static ms_err read_number(parser *p, uint32_t row)
{
    ms_scan_number number;
    ms_json_node *node = &p->json->nodes[row];
    MS_TRY(ms_scan_digits(&p->at, &number));
    node->kind = number.integer ? MS_JSON_INT : MS_JSON_FLOAT;
    if (number.integer) {
        node->value.i = number.value.i;
        return MS_OK;
    }
    node->value.f = number.value.f;
    if (!isfinite(number.value.f))
        ms_json_fail(p->json, row, &p->late, NULL,
                     "the number is beyond the range of a double");
    return MS_OK;
}

static ms_err read_word(parser *p, uint32_t row)
{
    unsigned char first;
    ms_json_node *node = &p->json->nodes[row];
    MS_TRY(ms_scan_word(&p->at, &first));
    if (first == 'n')
        return MS_OK;
    node->kind = MS_JSON_BOOL;
    node->value.b = first == 't';
    return MS_OK;
}

static ms_err read_key(parser *p, label *of)
{
    ms_scan *at = &p->at;
    ms_scan_text text;
    if (at->at == at->end || *at->at != '"')
        return ms_scan_unexpected(at, "a key in double quotes");
    of->at = (uint32_t)(at->at - at->start);
    MS_TRY(ms_scan_string(at, &text));
    of->key = ms_spelling_of_key(p->keys, &text);
    if (of->key == NULL)
        return ms_fail_nomem(at->fault);
    ms_scan_blanks(at);
    if (at->at == at->end || *at->at != ':')
        return ms_scan_unexpected(at, "':' after the key");
    at->at++;
    ms_scan_blanks(at);
    return MS_OK;
}

static ms_err read_value(parser *p, const label *of);

/* The members of a parent, as they come. */
typedef struct members {
    uint32_t parent, last;      /* last: MS_NONE where there is none */
    const unsigned char *comma; /* the one before, or NULL */
    unsigned char close;
} members;

/* Is the end of the array or object here?  It is passed then. */
static bool closes(parser *p, const members *in)
{
    ms_scan_blanks(&p->at);
    if (p->at.at == p->at.end || *p->at.at != in->close)
        return false;
    p->at.at++;
    return true;
}

static ms_err read_member(parser *p, members *in)
{
    bool object = in->close == '}';
    label of = {NULL, MS_NONE};
    uint32_t row = p->json->n;
    if (object)
        MS_TRY(read_key(p, &of));
    MS_TRY(read_value(p, &of));
    if (in->last != MS_NONE)
        p->json->nodes[in->last].next = row;
    in->last = row;
    p->json->nodes[in->parent].value.n++;
    return MS_OK;
}

static ms_err read_members(parser *p, members *in)
{
    if (closes(p, in))
        return MS_OK;
    for (;;) {
        MS_TRY(read_member(p, in));
        if (closes(p, in))
            return MS_OK;
        if (p->at.at == p->at.end || *p->at.at != ',')
            return ms_scan_unexpected(&p->at, in->close == '}' ? "',' or '}'"
                                                               : "',' or ']'");
        in->comma = p->at.at++;
        if (closes(p, in))
            return ms_scan_fail(&p->at, in->comma, "remove it",
                                "a comma before the closing '%c'", in->close);
    }
}

/* What is folded is read all the same, as far as it may be wrong. */
static ms_err read_parent(parser *p, uint32_t row, unsigned char open)
{
    bool object = open == '{';
    members in = {row, MS_NONE, NULL, object ? '}' : ']'};
    ms_json_node *node = &p->json->nodes[row];
    if (p->depth == MS_JSON_DEPTH)
        return ms_scan_fail(&p->at, p->at.at, NULL,
                            "nested deeper than %u levels", MS_JSON_DEPTH);
    node->kind = object ? MS_JSON_OBJECT : MS_JSON_ARRAY;
    node->value.n = 0;
    node->folded = p->depth >= p->fold;
    p->at.at++;
    p->depth++;
    MS_TRY(read_members(p, &in));
    p->depth--;
    if (object)
        MS_TRY(check_keys(p, row));
    if (p->depth >= p->fold)
        p->json->n = row + 1;
    return MS_OK;
}

static ms_err read_value(parser *p, const label *of)
{
    uint32_t row = 0;
    if (p->at.at == p->at.end)
        return ms_scan_unexpected(&p->at, "a value");
    MS_TRY(add_row(p, of, &row));
    unsigned char c = *p->at.at;
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(p, row);
    if (c == '"')
        return read_string(p, row);
    if (c == '{' || c == '[')
        return read_parent(p, row, c);
    return read_word(p, row);
}

/* ---- texts --------------------------------------------------------------- */

static ms_err check_length(const ms_quote *source, ms_fault *fault)
{
    if (source->length <= MS_JSON_MAX_BYTES)
        return MS_OK;
    return ms_fail(
        fault, MS_EINPUT, source->name, "write repeated layers with \"repeat\"",
        "the text is larger than %u MiB", (unsigned)(MS_JSON_MAX_BYTES >> 20));
}

static ms_err open_keys(ms_json *json, ms_arena *arena, ms_fault *fault)
{
    json->keys = ms_arena_take(arena, 1, sizeof *json->keys);
    if (json->keys == NULL)
        return ms_fail_nomem(fault);
    json->keys->arena = arena;
    return MS_OK;
}

/* The value at the offset of rest, in the given line; both are moved behind it
 * and the blanks there. */
static ms_err read_next(ms_quote *rest, uint32_t *line, uint32_t fold,
                        ms_arena *rows, ms_arena *arena, ms_json *json,
                        ms_fault *fault)
{
    static const unsigned char mark[] = {0xEF, 0xBB, 0xBF};
    parser p = {.json = json, .rows = rows, .keep = arena, .fold = fold};
    MS_TRY(check_length(rest, fault));
    MS_TRY(open_keys(json, arena, fault));
    p.keys = json->keys;
    ms_scan *at = &p.at;
    ms_scan_open(at, rest, *line, fault);
    if (rest->offset == 0 && rest->length >= sizeof mark &&
        memcmp(at->start, mark, sizeof mark) == 0)
        return ms_scan_fail(at, at->at, "save the file as UTF-8 without it",
                            "the file begins with a byte order mark");
    ms_scan_blanks(at);
    if (at->at == at->end)
        return ms_scan_fail(at, at->start, NULL, "the file is empty");
    MS_TRY(read_value(&p, &(label){NULL, MS_NONE}));
    ms_scan_blanks(at);
    *line = at->line;
    rest->offset = (size_t)(at->at - at->start);
    if (p.late.err == MS_OK)
        return MS_OK;
    *fault = p.late;
    return p.late.err;
}

/* The whole of json->source. */
static ms_err read_all(uint32_t fold, ms_arena *rows, ms_arena *arena,
                       ms_json *json, ms_fault *fault)
{
    ms_quote rest = json->source;
    ms_fault late = {0};
    uint32_t line = 1;
    ms_err err = read_next(&rest, &line, fold, rows, arena, json, &late);
    /* What follows goes before what is legal as a text, but refused. */
    if (rest.offset > 0 && rest.offset < rest.length)
        return ms_fail_at(fault, MS_EINPUT, &rest,
                          "a file holds one JSON value",
                          "text after the end of the value");
    if (err != MS_OK && fault != NULL && fault->err == MS_OK)
        *fault = late;
    return err;
}

ms_err ms_json_outline(const char *name, const char *bytes, size_t length,
                       uint32_t fold, ms_arena *arena, ms_json *json,
                       ms_fault *fault)
{
    *json = (ms_json){.source = {name, bytes, length, 0}};
    return read_all(fold, arena, arena, json, fault);
}

ms_err ms_json_read_apart(const char *name, const char *bytes, size_t length,
                          ms_arena *rows, ms_arena *arena, ms_json *json,
                          ms_fault *fault)
{
    *json = (ms_json){.source = {name, bytes, length, 0}};
    return read_all(WHOLE, rows, arena, json, fault);
}

ms_err ms_json_read(const char *name, const char *bytes, size_t length,
                    ms_arena *arena, ms_json *json, ms_fault *fault)
{
    return ms_json_read_apart(name, bytes, length, arena, arena, json, fault);
}

ms_err ms_json_next(ms_quote *source, uint32_t *line, ms_arena *arena,
                    ms_json *json, ms_fault *fault)
{
    *json = (ms_json){.source = *source};
    return read_next(source, line, WHOLE, arena, arena, json, fault);
}

ms_err ms_json_unfold(const ms_json *json, uint32_t *row, ms_arena *arena,
                      ms_json *part, ms_fault *fault)
{
    const ms_json_node *node = &json->nodes[*row];
    parser p = {.json = part,
                .rows = arena,
                .keep = arena,
                .keys = json->keys,
                .fold = WHOLE};
    ms_quote from = json->source;
    if (!node->folded) {
        *part = *json;
        return MS_OK;
    }
    *part = (ms_json){.source = json->source, .keys = json->keys};
    from.offset = 0;
    ms_scan_open(&p.at, &from, node->line, fault);
    p.at.at += node->at;
    p.at.line_start = p.at.at - (node->column - 1);
    *row = 0;
    return read_value(&p, &(label){node->key, node->key_at});
}

uint32_t ms_json_first(const ms_json *json, uint32_t row)
{
    const ms_json_node *node = &json->nodes[row];
    bool parent = node->kind == MS_JSON_ARRAY || node->kind == MS_JSON_OBJECT;
    return parent && !node->folded && node->value.n > 0 ? row + 1 : MS_NONE;
}

uint32_t ms_json_find(const ms_json *json, uint32_t row, const char *key)
{
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        if (*json->nodes[i].key == *key && strcmp(json->nodes[i].key, key) == 0)
            return i;
    return MS_NONE;
}

const char *ms_json_kind_name(const ms_json *json, uint32_t row)
{
    static const char *const names[] = {
        "null",     "true or false", "an integer", "a number with a fraction",
        "a string", "an array",      "an object"};
    return names[json->nodes[row].kind];
}

static ms_err fail_at(const ms_json *json, uint32_t offset, ms_fault *fault,
                      const char *hint, const char *format, va_list args)
{
    char what[512]; /* as long as the fault's */
    ms_quote at = json->source;
    at.offset = offset;
    vsnprintf(what, sizeof what, format, args);
    return ms_fail_at(fault, MS_EINPUT, &at, hint, "%s", what);
}

ms_err ms_json_fail(const ms_json *json, uint32_t row, ms_fault *fault,
                    const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ms_err err = fail_at(json, json->nodes[row].at, fault, hint, format, args);
    va_end(args);
    return err;
}

ms_err ms_json_fail_key(const ms_json *json, uint32_t row, ms_fault *fault,
                        const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ms_err err =
        fail_at(json, json->nodes[row].key_at, fault, hint, format, args);
    va_end(args);
    return err;
}
