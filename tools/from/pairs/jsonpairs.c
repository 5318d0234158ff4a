/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/json.h"
#include "tools/from/pairs/pairs.h"

#include <string.h>

typedef struct reader {
    ms_json json;
    ms_pairs *pairs;
    ms_fault *fault;
} reader;

/* A scalar as text: a number as it is written. */
static const char *scalar(const reader *r, uint32_t row)
{
    const ms_json_node *node = &r->json.nodes[row];
    const char *at = r->pairs->source.bytes + node->at;
    switch ((ms_json_kind)node->kind) {
    case MS_JSON_STRING:
        return node->value.s;
    case MS_JSON_BOOL:
        return node->value.b ? "true" : "false";
    case MS_JSON_NULL:
        return "null";
    default:
        return ms_arena_text(r->pairs->arena, at,
                             strspn(at, "0123456789+-.eE"));
    }
}

static bool is_list(const reader *r, uint32_t row)
{
    uint32_t i = ms_json_first(&r->json, row);
    for (; i != MS_NONE; i = r->json.nodes[i].next)
        if (r->json.nodes[i].kind >= MS_JSON_ARRAY)
            return false;
    return r->json.nodes[row].kind == MS_JSON_ARRAY;
}

static ms_err add_list(const reader *r, const char *key, uint32_t row)
{
    ms_text text = {.arena = r->pairs->arena};
    uint32_t i = ms_json_first(&r->json, row);
    ms_text_add(&text, "%s", "");
    for (const char *comma = ""; i != MS_NONE; i = r->json.nodes[i].next) {
        const char *value = scalar(r, i);
        if (value == NULL)
            return ms_fail_nomem(r->fault);
        ms_text_add(&text, "%s%s", comma, value);
        comma = ",";
    }
    if (text.failed)
        return ms_fail_nomem(r->fault);
    return ms_pairs_add(r->pairs, key, text.bytes == NULL ? "" : text.bytes,
                        r->json.nodes[row].at, false, r->fault);
}

/* The reader of JSON has bounded how deep it goes. */
static ms_err add_value(const reader *r, const char *key, uint32_t row)
{
    const ms_json_node *nodes = r->json.nodes;
    if (nodes[row].kind < MS_JSON_ARRAY)
        return ms_pairs_add(r->pairs, key, scalar(r, row), nodes[row].at, false,
                            r->fault);
    if (is_list(r, row))
        return add_list(r, key, row);
    uint32_t at = 0, i = ms_json_first(&r->json, row);
    for (; i != MS_NONE; i = nodes[i].next, at++) {
        const char *name = nodes[i].key;
        if (name == NULL)
            name = ms_arena_format(r->pairs->arena, "%u", at);
        if (name == NULL)
            return ms_fail_nomem(r->fault);
        const char *inner =
            ms_pairs_key(r->pairs->arena, key, name, strlen(name));
        if (inner == NULL)
            return ms_fail_nomem(r->fault);
        MS_TRY(add_value(r, inner, i));
    }
    return MS_OK;
}

ms_err ms_jsonpairs_read(ms_pairs *pairs, ms_fault *fault)
{
    reader r = {.pairs = pairs, .fault = fault};
    MS_TRY(ms_json_read(pairs->source.name, pairs->source.bytes,
                        pairs->source.length, pairs->arena, &r.json, fault));
    if (r.json.nodes[0].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r.json, 0, fault, NULL,
                            "settings are an object, this is %s",
                            ms_json_kind_name(&r.json, 0));
    return add_value(&r, "", 0);
}
