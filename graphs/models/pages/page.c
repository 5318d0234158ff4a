/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/pages/page.h"

#include "graphs/json/fields.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "graphs/models/pages/pagefile.h"
#include "graphs/models/pages/typedkeys.h"
#include "sim/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_DEPTH 32u                 /* of lets that need lets */
#define MOST_NUMBER (INT64_C(1) << 31) /* in a configuration */
#define MOST_PAGES 64u

/* ---- opening ------------------------------------------------------------- */

void ms_page_types(char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "supported:");
    for (uint32_t n = 0; n < ms_pages_n && used < size; n++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 ms_pages_all[n].name);
}

static ms_err fail_type(const ms_page *page, const ms_known *type)
{
    const char *names[MOST_PAGES] = {NULL};
    char hint[512];
    uint32_t n = 0;
    for (; n < ms_pages_n && n < MOST_PAGES; n++)
        names[n] = ms_pages_all[n].name;
    ms_page_types(hint, sizeof hint);
    size_t used = strlen(hint);
    const char *near = ms_names_nearest(type->is.s, names, n);
    if (near != NULL && used < sizeof hint)
        snprintf(hint + used, sizeof hint - used, "; did you mean \"%s\"?",
                 near);
    else if (used < sizeof hint)
        snprintf(hint + used, sizeof hint - used,
                 "; other models as layers: memsim help files");
    return ms_known_fail(type, page->fault, hint,
                         "unknown \"model_type\" \"%s\"", type->is.s);
}

uint32_t ms_page_entry(const ms_page *page, const char *key,
                       const ms_json **json)
{
    for (uint32_t p = 0; p < page->n_pages; p++) {
        uint32_t row = ms_json_find(&page->pages[p], 0, key);
        *json = &page->pages[p];
        if (row != MS_NONE)
            return row;
    }
    return MS_NONE;
}

/* Members that a type must have on its own page or on one of those that it is
 * like. */
static ms_err check_needed(const ms_page *page)
{
    static const char *const needed[] = {"class", "heads", "layers"};
    const ms_json *json;
    uint32_t row;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (ms_page_entry(page, needed[i], &json) == MS_NONE)
            return ms_json_fail(
                &page->pages[0], 0, page->fault, "see memsim help huggingface",
                "the page of \"%s\" needs \"%s\"", page->type, needed[i]);
    row = ms_page_entry(page, "heads", &json);
    if (ms_json_find(json, row, "absent") != MS_NONE)
        return MS_OK;
    return ms_json_fail(json, row, page->fault, NULL,
                        "\"heads\" needs \"absent\": the head where a "
                        "configuration names no architecture");
}

/* The page of that name, and those that it is like. */
static ms_err open_chain(ms_page *page, const ms_known *type, ms_known *missing)
{
    ms_known name = *type;
    page->type = type->is.s;
    for (;;) {
        ms_json *json = &page->pages[page->n_pages];
        bool found;
        MS_TRY(ms_pagefile_find(page, name.is.s, json, &found));
        *missing = name;
        if (!found)
            return MS_OK;
        page->n_pages++;
        uint32_t like = ms_json_find(json, 0, "like");
        missing->kind = MS_KIND_NULL;
        if (like == MS_NONE || page->n_pages == MS_PAGE_LIKE)
            return MS_OK;
        ms_known_node(json, like, &name);
    }
}

ms_err ms_page_open(ms_page *page, const ms_known *type)
{
    ms_known missing;
    page->kind = MS_PAGE_MODEL_TYPE;
    MS_TRY(open_chain(page, type, &missing));
    return missing.kind != MS_KIND_NULL ? fail_type(page, &missing)
                                        : check_needed(page);
}

static ms_err fail_family(ms_page *page, const ms_known *family)
{
    const char *names[MOST_PAGES] = {NULL};
    char hint[384] = "families:";
    uint32_t n = ms_pagefile_families(page, names, MOST_PAGES - 2);
    names[n++] = MS_CHAINFILE_FAMILY; /* they have no pages */
    names[n++] = MS_DAGFILE_FAMILY;
    size_t used = strlen(hint);
    for (uint32_t i = 0; i < n && used < sizeof hint; i++)
        used +=
            (size_t)snprintf(hint + used, sizeof hint - used, " %s", names[i]);
    const char *near = ms_names_nearest(family->is.s, names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_known_fail(family, page->fault, hint, "unknown family \"%s\"",
                         family->is.s);
}

ms_err ms_page_open_family(ms_page *page, const ms_known *family)
{
    ms_known missing;
    const ms_json *json;
    page->kind = MS_PAGE_FAMILY;
    MS_TRY(open_chain(page, family, &missing));
    if (missing.kind != MS_KIND_NULL)
        return fail_family(page, &missing);
    if (ms_page_entry(page, "layers", &json) != MS_NONE)
        return ms_typedkeys_read(page);
    return ms_json_fail(
        &page->pages[0], 0, page->fault, "see memsim help families",
        "the page of family \"%s\" needs \"layers\"", page->type);
}

/* An entry of an object that pages have, the first that has it. */
static uint32_t inner_entry(const ms_page *page, const char *object,
                            const char *key, const ms_json **json)
{
    for (uint32_t p = 0; p < page->n_pages; p++) {
        uint32_t outer = ms_json_find(&page->pages[p], 0, object);
        uint32_t row = outer == MS_NONE
                           ? MS_NONE
                           : ms_json_find(&page->pages[p], outer, key);
        *json = &page->pages[p];
        if (row != MS_NONE)
            return row;
    }
    return MS_NONE;
}

/* ---- keys ---------------------------------------------------------------- */

/* The object of "within", where there is one, or the whole. */
static uint32_t home_of(const ms_page *page, const char *key)
{
    const ms_json *json;
    uint32_t within = ms_page_entry(page, "within", &json);
    if (within == MS_NONE || strchr(key, '.') != NULL)
        return 0;
    uint32_t inner = ms_json_find(page->config, 0, json->nodes[within].value.s);
    bool there =
        inner != MS_NONE && page->config->nodes[inner].kind == MS_JSON_OBJECT;
    return there ? inner : 0;
}

/* "vision_config.hidden_size" below a row, or MS_NONE. */
static uint32_t find_dotted(const ms_json *json, uint32_t row, const char *key)
{
    char word[MS_MAX_NAME];
    const char *dot;
    while (row != MS_NONE && (dot = strchr(key, '.')) != NULL) {
        snprintf(word, sizeof word, "%.*s", (int)(dot - key), key);
        row = ms_json_find(json, row, word);
        key = dot + 1;
        if (row != MS_NONE && json->nodes[row].kind != MS_JSON_OBJECT)
            return MS_NONE;
    }
    return row == MS_NONE ? MS_NONE : ms_json_find(json, row, key);
}

const ms_override *ms_page_override(const ms_page *page, const char *key)
{
    for (uint32_t i = page->n_overrides; i-- > 0;)
        if (strcmp(page->overrides[i].key, key) == 0)
            return &page->overrides[i];
    return NULL;
}

/* What the text of a setting means as JSON, or else it is a string. */
static ms_err read_override(ms_page *page, const ms_override *set,
                            ms_known *value)
{
    ms_fault unread = {0};
    ms_json *json = ms_arena_take(page->arena, 1, sizeof *json);
    const char *where =
        ms_arena_format(page->arena, "--set model.%s=%s", set->key, set->value);
    if (json == NULL || where == NULL)
        return ms_fail_nomem(page->fault);
    ms_err err = ms_json_read(where, set->value, strlen(set->value),
                              page->arena, json, &unread);
    if (err == MS_ENOMEM)
        return ms_fail_nomem(page->fault);
    if (err == MS_OK)
        ms_known_node(json, 0, value);
    else
        *value = (ms_known){.kind = MS_KIND_TEXT, .is.s = set->value};
    value->name = set->key;
    value->where = where;
    if (value->kind != MS_KIND_LIST)
        value->json = NULL;
    return MS_OK;
}

/* A key by one of its names. */
static ms_err given_as(ms_page *page, const char *key, ms_known *value,
                       bool *given)
{
    const ms_override *set = ms_page_override(page, key);
    uint32_t home = home_of(page, key);
    *given = set != NULL;
    if (set != NULL)
        return read_override(page, set, value);
    uint32_t row =
        home == MS_NONE ? MS_NONE : find_dotted(page->config, home, key);
    if (row == MS_NONE)
        return MS_OK;
    *given = true;
    ms_known_node(page->config, row, value);
    value->name = key;
    return MS_OK;
}

/* Both names of one key: the same, or one of them from --set. */
static ms_err merge(ms_page *page, ms_known *value, const ms_known *other)
{
    if (ms_known_equal(value, other) || value->where != NULL)
        return MS_OK;
    if (other->where != NULL) {
        *value = *other;
        return MS_OK;
    }
    return ms_known_fail(other, page->fault, "keep one of the two",
                         "\"%s\" and \"%s\" are one setting, but differ",
                         value->name, other->name);
}

ms_err ms_page_given(ms_page *page, const char *key, ms_known *value,
                     bool *given)
{
    MS_TRY(given_as(page, key, value, given));
    for (uint32_t p = 0; p < page->n_pages; p++) {
        const ms_json *json = &page->pages[p];
        uint32_t also = ms_json_find(json, 0, "also");
        uint32_t row = also == MS_NONE ? MS_NONE : ms_json_first(json, also);
        for (; row != MS_NONE; row = json->nodes[row].next) {
            ms_known other;
            bool too;
            if (strcmp(json->nodes[row].value.s, key) != 0)
                continue;
            MS_TRY(given_as(page, json->nodes[row].key, &other, &too));
            if (too && *given)
                MS_TRY(merge(page, value, &other));
            else if (too)
                *value = other;
            *given |= too;
        }
    }
    return MS_OK;
}

/* A key has the type of its class default, or is null. */
static ms_err check_type(const ms_page *page, const ms_known *value,
                         const ms_known *fallback)
{
    static const char *const types[] = {"null",       "true or false",
                                        "an integer", "a number",
                                        "a string",   "a list"};
    ms_kind want = fallback->kind, have = value->kind;
    bool fits = have == want || have == MS_KIND_NULL || want == MS_KIND_NULL ||
                (want == MS_KIND_FLOAT && have == MS_KIND_INT);
    if (!fits)
        return ms_known_fail(value, page->fault, NULL,
                             "\"%s\" must be %s, not %s", value->name,
                             types[want], types[have]);
    if (have == MS_KIND_INT && (value->is.i < 0 || value->is.i > MOST_NUMBER))
        return ms_known_fail(value, page->fault,
                             "memsim help huggingface lists the keys of "
                             "the type and their defaults",
                             "\"%s\" must be between 0 and %" PRId64
                             ", not %" PRId64,
                             value->name, MOST_NUMBER, value->is.i);
    return MS_OK;
}

void ms_page_show(const ms_known *value, char *text, size_t size)
{
    if (value->kind == MS_KIND_INT)
        snprintf(text, size, "%" PRId64, value->is.i);
    else if (value->kind == MS_KIND_BOOL)
        snprintf(text, size, "%s", value->is.b ? "true" : "false");
    else if (value->kind == MS_KIND_TEXT)
        snprintf(text, size, "\"%.60s\"", value->is.s);
    else if (value->kind == MS_KIND_FLOAT)
        snprintf(text, size, "%g", value->is.f);
    else
        snprintf(text, size, "%s",
                 value->kind == MS_KIND_NULL ? "null" : "a list");
}

/* Notes a class default that was used, once for each key; null and lists are
 * not noted. */
static void note_assumed(ms_page *page, const char *key, const ms_known *value)
{
    char word[MS_MAX_NAME], text[80];
    if (value->kind == MS_KIND_NULL || value->kind == MS_KIND_LIST)
        return;
    ms_page_show(value, text, sizeof text);
    if (value->kind == MS_KIND_TEXT)
        snprintf(text, sizeof text, "%s", value->is.s);
    snprintf(word, sizeof word, ", %s=%s", key, text);
    if (page->assumed.bytes == NULL ||
        strstr(page->assumed.bytes, word) == NULL)
        ms_text_add(&page->assumed, "%s", word);
}

/* A name for which transformers has no key: --set gives it, or the page's own
 * value. */
static ms_err find_setting(ms_page *page, const char *key, ms_known *value,
                           bool *known)
{
    const ms_override *set = ms_page_override(page, key);
    const ms_json *json;
    ms_known fallback;
    uint32_t row = inner_entry(page, "settings", key, &json);
    *known = row != MS_NONE;
    if (row == MS_NONE)
        return MS_OK;
    ms_known_node(json, row, &fallback);
    *value = fallback;
    value->name = key;
    if (set == NULL)
        return MS_OK;
    MS_TRY(read_override(page, set, value));
    return check_type(page, value, &fallback);
}

ms_err ms_page_key(ms_page *page, const char *key, ms_known *value, bool *known)
{
    const ms_json *json = NULL;
    uint32_t row = MS_NONE;
    ms_known fallback;
    bool given;
    if (page->kind == MS_PAGE_FAMILY)
        return ms_typedkeys_find(page, key, value, known);
    for (uint32_t p = 0; p < page->n_pages && row == MS_NONE; p++) {
        json = &page->pages[p];
        uint32_t defaults = ms_json_find(json, 0, "defaults");
        if (defaults != MS_NONE)
            row = find_dotted(json, defaults, key);
    }
    *known = row != MS_NONE;
    if (row == MS_NONE)
        return find_setting(page, key, value, known);
    ms_known_node(json, row, &fallback);
    MS_TRY(ms_page_given(page, key, value, &given));
    if (given)
        return check_type(page, value, &fallback);
    *value = fallback;
    if (value->kind != MS_KIND_LIST)
        value->json = NULL;
    value->name = key;
    value->where = page->config->source.name;
    note_assumed(page, key, &fallback);
    return MS_OK;
}

static uint32_t add_keys(const ms_json *json, uint32_t object,
                         const char **keys, uint32_t n, uint32_t room)
{
    for (uint32_t i = object == MS_NONE ? MS_NONE : ms_json_first(json, object);
         i != MS_NONE && n < room; i = json->nodes[i].next)
        keys[n++] = json->nodes[i].key;
    return n;
}

uint32_t ms_page_keys(const ms_page *page, const char **keys, uint32_t room)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < page->n_pages; p++) {
        const ms_json *json = &page->pages[p];
        n = add_keys(json, ms_json_find(json, 0, "defaults"), keys, n, room);
        n = add_keys(json, ms_json_find(json, 0, "also"), keys, n, room);
        n = add_keys(json, ms_json_find(json, 0, "settings"), keys, n, room);
    }
    return n;
}

/* ---- names --------------------------------------------------------------- */

/* A let is computed once, or, where it asks for i, each time. */
static ms_err find_let(ms_page *page, const char *name, const char *text,
                       ms_known *value)
{
    const ms_names names = ms_page_names(page);
    bool asked = page->i_was_asked;
    for (const ms_page_kept *k = page->kept; k != NULL; k = k->next)
        if (strcmp(k->name, name) == 0) {
            *value = k->value;
            return MS_OK;
        }
    if (page->depth == MOST_DEPTH)
        return ms_fail(page->fault, MS_EINPUT, page->type, NULL,
                       "\"%s\" needs itself", name);
    page->i_was_asked = false;
    page->depth++;
    MS_TRY(ms_expression_value(text, &names, value));
    page->depth--;
    if (page->i_was_asked)
        return MS_OK;
    page->i_was_asked = asked;
    ms_page_kept *kept = ms_arena_take(page->arena, 1, sizeof *kept);
    if (kept == NULL)
        return ms_fail_nomem(page->fault);
    *kept = (ms_page_kept){name, *value, page->kept};
    page->kept = kept;
    return MS_OK;
}

static bool find_own(ms_page *page, const char *name, ms_known *value)
{
    *value = (ms_known){.kind = MS_KIND_INT};
    if (strcmp(name, "i") == 0) {
        page->i_was_asked = true;
        value->is.i = page->i;
    } else if (page->kind == MS_PAGE_FAMILY) {
        return false;
    } else if (strcmp(name, "classes") == 0) {
        value->is.i = page->classes;
    } else if (strcmp(name, "mtp") == 0) {
        value->is.i = page->mtp;
    } else if (strcmp(name, "head") == 0) {
        *value = (ms_known){.kind = MS_KIND_TEXT, .is.s = page->head};
    } else {
        return false;
    }
    return true;
}

static ms_err find_name(void *scope, const char *name, ms_known *value)
{
    ms_page *page = scope;
    const ms_json *json;
    bool known;
    if (find_own(page, name, value))
        return MS_OK;
    uint32_t let = inner_entry(page, "let", name, &json);
    if (let != MS_NONE)
        return ms_known_place(find_let(page, json->nodes[let].key,
                                       json->nodes[let].value.s, value),
                              json, let, page->fault);
    const char *key = ms_arena_text(page->arena, name, strlen(name));
    if (key == NULL)
        return ms_fail_nomem(page->fault);
    MS_TRY(ms_page_key(page, key, value, &known));
    return known ? MS_OK
                 : ms_fail(page->fault, MS_EINPUT, NULL, NULL,
                           "no page knows \"%s\"", name);
}

ms_names ms_page_names(ms_page *page)
{
    return (ms_names){find_name, page, page->arena, page->fault};
}
