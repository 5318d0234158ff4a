/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/pages/template.h"

#include <inttypes.h>
#include <string.h>

#define MOST_BLOCKS 100000   /* of one repeat */
#define MOST_BODIES 1000000u /* of all, where blocks differ */

/* What is being written. */
typedef struct writer {
    ms_page *page;
    ms_names names;
    const ms_json *json; /* the page */
    ms_text *text;
} writer;

static ms_err put_list(writer *w, uint32_t row);
static ms_err put_node(writer *w, uint32_t row, const char *key, bool *first);

/* ---- values -------------------------------------------------------------- */

static void put(const writer *w, const char *words)
{
    ms_text_put(w->text, words, strlen(words));
}

/* Each layer has a line. */
static void put_separator(const writer *w, const char *key, bool layer,
                          bool *first)
{
    if (!*first)
        put(w, layer ? ",\n  " : ", ");
    *first = false;
    if (key == NULL)
        return;
    ms_text_json(w->text, key);
    put(w, ": ");
}

static ms_err put_known(const writer *w, const ms_known *value)
{
    switch (value->kind) {
    case MS_KIND_BOOL:
        put(w, value->is.b ? "true" : "false");
        break;
    case MS_KIND_INT:
        ms_text_i64(w->text, value->is.i);
        break;
    case MS_KIND_FLOAT:
        ms_text_exact(w->text, value->is.f);
        break;
    case MS_KIND_TEXT:
        ms_text_json(w->text, value->is.s);
        break;
    case MS_KIND_NULL:
    case MS_KIND_LIST:
        return ms_known_fail(value, w->page->fault, NULL,
                             "\"%s\" must be a number or a word",
                             value->name == NULL ? "" : value->name);
    }
    return MS_OK;
}

/* "=expression", or a text of its own; null: nothing. */
static ms_err put_text(writer *w, const char *text, const char *key,
                       bool *first)
{
    ms_known value = {.kind = MS_KIND_TEXT, .is.s = text};
    if (*text == '=')
        MS_TRY(ms_expression_value(text + 1, &w->names, &value));
    if (value.kind == MS_KIND_NULL)
        return MS_OK;
    put_separator(w, key, false, first);
    return put_known(w, &value);
}

static ms_err put_object(writer *w, uint32_t row, const char *key, bool *first)
{
    const ms_json *json = w->json;
    uint32_t condition = ms_json_find(json, row, "if");
    bool there = true, none = true;
    if (condition != MS_NONE)
        MS_TRY(
            ms_known_place(ms_expression_truth(json->nodes[condition].value.s,
                                               &w->names, &there),
                           json, condition, w->page->fault));
    if (!there)
        return MS_OK;
    put_separator(w, key, key == NULL, first);
    put(w, "{");
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        if (i != condition)
            MS_TRY(put_node(w, i, json->nodes[i].key, &none));
    put(w, "}");
    return MS_OK;
}

/* ---- blocks -------------------------------------------------------------- */

/* What a group says besides, as it stands: how it counts, whether it is
 * blocks. */
static ms_err put_manner(writer *w, uint32_t row)
{
    static const char *const manner[] = {"index", "block"};
    bool first = false;
    for (size_t i = 0; i < sizeof manner / sizeof *manner; i++) {
        uint32_t node = ms_json_find(w->json, row, manner[i]);
        if (node != MS_NONE)
            MS_TRY(put_node(w, node, manner[i], &first));
    }
    return MS_OK;
}

static ms_err put_repeat(writer *w, uint32_t row, int64_t from, int64_t n,
                         const ms_text *body, bool *first)
{
    uint32_t name = ms_json_find(w->json, row, "name");
    put_separator(w, NULL, true, first);
    ms_text_add(w->text, "{\"repeat\": %" PRId64, n);
    if (from > 0)
        ms_text_add(w->text, ", \"first\": %" PRId64, from);
    if (name != MS_NONE) {
        put(w, ", \"name\": ");
        ms_text_json(w->text, w->json->nodes[name].value.s);
    }
    MS_TRY(put_manner(w, row));
    put(w, ",\n   \"layers\": [");
    ms_text_put(w->text, body->bytes, body->length);
    put(w, "]}");
    return MS_OK;
}

static ms_err write_body(const writer *w, uint32_t layers, ms_text *body)
{
    writer inner = *w;
    if (++w->page->n_bodies > MOST_BODIES)
        return ms_json_fail(w->json, layers, w->page->fault, NULL,
                            "more than %u blocks, those in blocks included",
                            MOST_BODIES);
    inner.text = body;
    body->length = 0;
    MS_TRY(put_list(&inner, layers));
    return body->failed ? ms_fail_nomem(w->page->fault) : MS_OK;
}

static bool same_text(const ms_text *a, const ms_text *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static ms_err count_blocks(const writer *w, const char *text, int64_t *n)
{
    ms_known value;
    MS_TRY(ms_expression_integer(text, &w->names, 0, n));
    if (*n <= MOST_BLOCKS)
        return MS_OK;
    MS_TRY(ms_expression_value(text, &w->names, &value));
    return ms_known_fail(&value, w->page->fault, NULL,
                         "%" PRId64 " layers; at most %d", *n, MOST_BLOCKS);
}

/* Blocks alike in a row are one repeat; where the first does not ask for its
 * number, all are. */
static ms_err put_blocks(writer *w, uint32_t row, bool *first)
{
    uint32_t layers = ms_json_find(w->json, row, "layers");
    uint32_t times = ms_json_find(w->json, row, "repeat");
    ms_text bodies[2] = {{.arena = w->page->arena}, {.arena = w->page->arena}};
    uint32_t now = 0;
    int64_t n, from = 0;
    MS_TRY(
        ms_known_place(count_blocks(w, w->json->nodes[times].value.s + 1, &n),
                       w->json, times, w->page->fault));
    for (int64_t i = 0; i < n; i++) {
        w->page->i = i;
        w->page->i_was_asked = false;
        MS_TRY(write_body(w, layers, &bodies[now]));
        if (!w->page->i_was_asked)
            i = n;
        else if (i > 0 && !same_text(&bodies[0], &bodies[1])) {
            MS_TRY(put_repeat(w, row, from, i - from, &bodies[1 - now], first));
            from = i;
        }
        now = 1 - now;
    }
    if (n > 0)
        MS_TRY(put_repeat(w, row, from, n - from, &bodies[1 - now], first));
    return MS_OK;
}

/* ---- the tree ------------------------------------------------------------ */

static ms_err put_node(writer *w, uint32_t row, const char *key, bool *first)
{
    const ms_json_node *node = &w->json->nodes[row];
    ms_known value;
    switch ((ms_json_kind)node->kind) {
    case MS_JSON_STRING:
        return ms_known_place(put_text(w, node->value.s, key, first), w->json,
                              row, w->page->fault);
    case MS_JSON_OBJECT:
        return put_object(w, row, key, first);
    case MS_JSON_ARRAY:
        put_separator(w, key, false, first);
        put(w, "[");
        MS_TRY(put_list(w, row));
        put(w, "]");
        return MS_OK;
    case MS_JSON_NULL:
        return MS_OK;
    case MS_JSON_BOOL:
    case MS_JSON_INT:
    case MS_JSON_FLOAT:
        break;
    }
    ms_known_node(w->json, row, &value);
    put_separator(w, key, false, first);
    return put_known(w, &value);
}

static ms_err put_list(writer *w, uint32_t row)
{
    const ms_json *json = w->json;
    bool first = true;
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next) {
        bool repeat = json->nodes[i].kind == MS_JSON_OBJECT &&
                      ms_json_find(json, i, "repeat") != MS_NONE;
        MS_TRY(repeat ? put_blocks(w, i, &first)
                      : put_node(w, i, NULL, &first));
    }
    return MS_OK;
}

ms_err ms_template_entry(ms_page *page, const char *entry, ms_text *text)
{
    writer w = {.page = page, .names = ms_page_names(page), .text = text};
    bool first = true;
    uint32_t row = ms_page_entry(page, entry, &w.json);
    MS_TRY(put_node(&w, row, NULL, &first));
    return text->failed ? ms_fail_nomem(page->fault) : MS_OK;
}
