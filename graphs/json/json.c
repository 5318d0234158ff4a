/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/json.h"

#include "graphs/json/index.h"
#include "graphs/json/scan.h"
#include "graphs/model.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FEW_KEYS 8u    /* compared pairwise; more go through an index */
#define KIND_MASK 0xff /* of cJSON's type; the rest are flags */

/* cJSON takes its memory from the arena of the read that this thread is in;
 * what it frees goes with the arena. */
static _Thread_local ms_arena *cjson_arena;

static void *cjson_take(size_t size)
{
    return ms_arena_take_raw(cjson_arena, 1, size);
}

static void cjson_drop(void *memory)
{
    (void)memory;
}

/* The walk that turns cJSON's tree into rows. */
typedef struct walk {
    ms_json *json;
    const ms_scan_value *values; /* of the scan, in the same order */
    uint32_t row;                /* the next free one */
    ms_arena *keep, *scratch;
    ms_fault *fault;
} walk;

static ms_err fail_duplicate(const walk *w, uint32_t first, uint32_t second)
{
    if (first > second) {
        uint32_t swap = first;
        first = second;
        second = swap;
    }
    return ms_json_fail_key(w->json, second, w->fault, "keep one of the two",
                            "duplicate key \"%s\" (first in line %u)",
                            w->json->nodes[second].key,
                            w->json->nodes[first].line);
}

static ms_err check_few_keys(const walk *w, uint32_t object)
{
    const ms_json_node *nodes = w->json->nodes;
    for (uint32_t i = object + 1; i != MS_NONE; i = nodes[i].next)
        for (uint32_t j = nodes[i].next; j != MS_NONE; j = nodes[j].next)
            if (strcmp(nodes[i].key, nodes[j].key) == 0)
                return fail_duplicate(w, i, j);
    return MS_OK;
}

static ms_err check_many_keys(const walk *w, uint32_t object)
{
    const ms_json_node *nodes = w->json->nodes;
    ms_index index;
    MS_TRY(ms_index_make(&index, nodes[object].value.n, w->scratch, w->fault));
    for (uint32_t i = object + 1; i != MS_NONE; i = nodes[i].next) {
        uint32_t first = ms_index_add(&index, nodes[i].key, i);
        if (first != i)
            return fail_duplicate(w, first, i);
    }
    return MS_OK;
}

static char *keep_text(const walk *w, const char *text)
{
    return ms_arena_text(w->keep, text, strlen(text));
}

/* An integer as the text spells it, or false for a number that is none; the
 * scan has checked the range.  The source need not end with a NUL. */
static bool exact_integer(const ms_quote *source, uint32_t at, int64_t *integer)
{
    const char *c = source->bytes + at, *end = source->bytes + source->length;
    bool negative = *c == '-';
    uint64_t value = 0;
    for (c += negative; c < end && *c >= '0' && *c <= '9'; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    *integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    return c == end || (*c != '.' && *c != 'e' && *c != 'E');
}

static ms_err walk_number(const walk *w, const cJSON *item, uint32_t row)
{
    ms_json_node *node = &w->json->nodes[row];
    if (exact_integer(&w->json->source, node->at, &node->value.i)) {
        node->kind = MS_JSON_INT;
        return MS_OK;
    }
    node->kind = MS_JSON_FLOAT;
    node->value.f = item->valuedouble;
    if (isfinite(item->valuedouble))
        return MS_OK;
    return ms_json_fail(w->json, row, w->fault, NULL,
                        "the number is beyond the range of a double");
}

static ms_err walk_value(walk *w, const cJSON *item);

/* The members of an array or object, in order (cJSON_GetArrayItem would walk
 * the list for each). */
static ms_err walk_members(walk *w, const cJSON *item, uint32_t row)
{
    ms_json_node *nodes = w->json->nodes;
    uint32_t n = 0, last = MS_NONE;
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        if (last != MS_NONE)
            nodes[last].next = w->row;
        last = w->row;
        n++;
        MS_TRY(walk_value(w, child));
    }
    nodes[row].kind = cJSON_IsArray(item) ? MS_JSON_ARRAY : MS_JSON_OBJECT;
    nodes[row].value.n = n;
    if (n < 2 || cJSON_IsArray(item))
        return MS_OK;
    return n <= FEW_KEYS ? check_few_keys(w, row) : check_many_keys(w, row);
}

/* Depth is at most MS_SCAN_DEPTH. */
static ms_err walk_value(walk *w, const cJSON *item)
{
    uint32_t row = w->row++;
    assert(row < w->json->n);
    const ms_scan_value *from = &w->values[row];
    ms_json_node *node = &w->json->nodes[row];
    *node = (ms_json_node){.at = from->at,
                           .key_at = from->key_at,
                           .line = from->line,
                           .column = from->column,
                           .next = MS_NONE,
                           .kind = MS_JSON_NULL};
    if (item->string != NULL) {
        node->key = keep_text(w, item->string);
        if (node->key == NULL)
            return ms_fail_nomem(w->fault);
    }
    switch (item->type & KIND_MASK) {
    case cJSON_Array:
    case cJSON_Object:
        return walk_members(w, item, row);
    case cJSON_Number:
        return walk_number(w, item, row);
    case cJSON_True:
    case cJSON_False:
        node->kind = MS_JSON_BOOL;
        node->value.b = (item->type & KIND_MASK) == cJSON_True;
        break;
    case cJSON_String:
        node->kind = MS_JSON_STRING;
        node->value.s = keep_text(w, item->valuestring);
        if (node->value.s == NULL)
            return ms_fail_nomem(w->fault);
        break;
    default: /* null */
        break;
    }
    return MS_OK;
}

/* rest, unless NULL: where in the source the value stands, and what follows;
 * line: in which line. */
static ms_err read_with(ms_arena *keep, ms_arena *scratch, ms_json *json,
                        ms_quote *rest, uint32_t *line, ms_fault *fault)
{
    ms_scan_value *values;
    const ms_quote *source = &json->source;
    size_t at = rest != NULL ? rest->offset : 0;
    MS_TRY(rest != NULL
               ? ms_scan_next(rest, line, scratch, &values, &json->n, fault)
               : ms_scan_values(source, scratch, &values, &json->n, fault));
    json->nodes = ms_arena_take_raw(keep, json->n, sizeof *json->nodes);
    if (json->nodes == NULL)
        return ms_fail_nomem(fault);
    cJSON_Hooks hooks = {cjson_take, cjson_drop};
    cJSON_InitHooks(&hooks);
    cjson_arena = scratch;
    const cJSON *root = cJSON_ParseWithLengthOpts(source->bytes + at,
                                                  source->length - at, NULL, 0);
    cjson_arena = NULL;
    if (root == NULL) /* the scan has accepted the text */
        return ms_fail_nomem(fault);
    walk w = {.json = json,
              .values = values,
              .keep = keep,
              .scratch = scratch,
              .fault = fault};
    MS_TRY(walk_value(&w, root));
    assert(w.row == json->n);
    return MS_OK;
}

static ms_err check_length(const ms_quote *source, ms_fault *fault)
{
    if (source->length <= MS_JSON_MAX_BYTES)
        return MS_OK;
    return ms_fail(
        fault, MS_EINPUT, source->name, "write repeated layers with \"repeat\"",
        "the text is larger than %u MiB", (unsigned)(MS_JSON_MAX_BYTES >> 20));
}

ms_err ms_json_read(const char *name, const char *bytes, size_t length,
                    ms_arena *arena, ms_json *json, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    *json = (ms_json){.source = {name, bytes, length, 0}};
    MS_TRY(check_length(&json->source, fault));
    ms_err err = read_with(arena, &scratch, json, NULL, NULL, fault);
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_json_next(ms_quote *source, uint32_t *line, ms_arena *arena,
                    ms_json *json, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    *json = (ms_json){.source = *source};
    MS_TRY(check_length(source, fault));
    ms_err err = read_with(arena, &scratch, json, source, line, fault);
    ms_arena_free(&scratch);
    return err;
}

uint32_t ms_json_first(const ms_json *json, uint32_t row)
{
    const ms_json_node *node = &json->nodes[row];
    bool parent = node->kind == MS_JSON_ARRAY || node->kind == MS_JSON_OBJECT;
    return parent && node->value.n > 0 ? row + 1 : MS_NONE;
}

uint32_t ms_json_find(const ms_json *json, uint32_t row, const char *key)
{
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        if (strcmp(json->nodes[i].key, key) == 0)
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

const char *ms_json_library(void)
{
    return cJSON_Version();
}
