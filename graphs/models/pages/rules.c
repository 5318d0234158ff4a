/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/pages/rules.h"

#include <inttypes.h>

typedef struct rule {
    const ms_json *json;
    uint32_t row, keys; /* keys: an array of key names */
    const char *why;    /* or NULL */
} rule;

static ms_err check_positive(ms_page *page, const rule *r)
{
    const ms_json *json = r->json;
    for (uint32_t i = ms_json_first(json, r->keys); i != MS_NONE;
         i = json->nodes[i].next) {
        ms_known value;
        bool known;
        MS_TRY(ms_page_key(page, json->nodes[i].value.s, &value, &known));
        if (known && value.kind == MS_KIND_INT && value.is.i == 0)
            return ms_known_fail(&value, page->fault, r->why,
                                 "\"%s\" must be at least 1", value.name);
        if (known && value.kind == MS_KIND_NULL)
            return ms_known_fail(&value, page->fault, r->why,
                                 "\"%s\" must be an integer, not null",
                                 value.name);
    }
    return MS_OK;
}

/* A key that a rule names. */
static ms_err known_key(ms_page *page, const ms_json *json, uint32_t row,
                        ms_known *value)
{
    bool known;
    MS_TRY(ms_page_key(page, json->nodes[row].value.s, value, &known));
    return known
               ? MS_OK
               : ms_json_fail(json, row, page->fault, NULL,
                              "no page knows \"%s\"", json->nodes[row].value.s);
}

/* The two keys of a rule; the fault stands at one that the user gave. */
static ms_err two_keys(ms_page *page, const rule *r, ms_known values[2],
                       const ms_known **at)
{
    uint32_t row = ms_json_first(r->json, r->keys);
    for (uint32_t k = 0; k < 2; k++, row = r->json->nodes[row].next)
        MS_TRY(known_key(page, r->json, row, &values[k]));
    bool second = values[0].json == NULL && values[1].json != NULL;
    *at = &values[second ? 1 : 0];
    return MS_OK;
}

static ms_err check_divides(ms_page *page, const rule *r)
{
    ms_known v[2];
    const ms_known *at;
    MS_TRY(two_keys(page, r, v, &at));
    if (v[0].kind != MS_KIND_INT || v[1].kind != MS_KIND_INT)
        return MS_OK;
    if (v[0].is.i > 0 && v[1].is.i % v[0].is.i == 0)
        return MS_OK;
    return ms_known_fail(at, page->fault, r->why,
                         "\"%s\" (%" PRId64 ") is no multiple of \"%s\" "
                         "(%" PRId64 ")",
                         v[1].name, v[1].is.i, v[0].name, v[0].is.i);
}

static const char *text_at(const rule *r, const char *key)
{
    uint32_t row = ms_json_find(r->json, r->row, key);
    return row == MS_NONE ? NULL : r->json->nodes[row].value.s;
}

static ms_err check_that(ms_page *page, const rule *r, const char *that)
{
    const ms_names names = ms_page_names(page);
    char first[80], second[80];
    const ms_known *at;
    ms_known v[2];
    bool holds;
    MS_TRY(ms_expression_truth(that, &names, &holds));
    if (holds)
        return MS_OK;
    if (r->keys == MS_NONE)
        return ms_known_fail(
            &(ms_known){.json = page->config, .row = page->config_row},
            page->fault, r->why, "%s", text_at(r, "else"));
    MS_TRY(two_keys(page, r, v, &at));
    ms_page_show(&v[0], first, sizeof first);
    ms_page_show(&v[1], second, sizeof second);
    return ms_known_fail(at, page->fault, r->why,
                         "\"%s\" (%s) contradicts \"%s\" (%s)", v[0].name,
                         first, v[1].name, second);
}

/* A value that the page has no layers for ("if" said so). */
static ms_err fail_unsupported(ms_page *page, const rule *r)
{
    char text[80];
    ms_known value;
    MS_TRY(known_key(page, r->json, ms_json_first(r->json, r->keys), &value));
    ms_page_show(&value, text, sizeof text);
    return ms_known_fail(&value, page->fault, r->why,
                         "\"%s\" %s is not supported for model_type "
                         "\"%s\"",
                         value.name, text, page->type);
}

/* A list has an element for each layer, or is null. */
static ms_err check_list(ms_page *page, const rule *r)
{
    const ms_known *at;
    ms_known v[2];
    MS_TRY(two_keys(page, r, v, &at));
    if (v[0].kind != MS_KIND_LIST || v[1].kind != MS_KIND_INT)
        return MS_OK;
    uint32_t n = v[0].json->nodes[v[0].row].value.n;
    if (n == v[1].is.i)
        return MS_OK;
    return ms_known_fail(&v[0], page->fault,
                         "it needs an element for each layer",
                         "\"%s\" (%u elements) contradicts \"%s\" "
                         "(%" PRId64 ")",
                         v[0].name, n, v[1].name, v[1].is.i);
}

static ms_err check_rule(ms_page *page, rule r)
{
    const ms_names names = ms_page_names(page);
    const char *condition = text_at(&r, "if"), *that = text_at(&r, "that");
    bool holds = true;
    r.why = text_at(&r, "why");
    if (condition != NULL)
        MS_TRY(ms_expression_truth(condition, &names, &holds));
    if (!holds)
        return MS_OK;
    if ((r.keys = ms_json_find(r.json, r.row, "positive")) != MS_NONE)
        return check_positive(page, &r);
    if ((r.keys = ms_json_find(r.json, r.row, "divides")) != MS_NONE)
        return check_divides(page, &r);
    if ((r.keys = ms_json_find(r.json, r.row, "unsupported")) != MS_NONE)
        return fail_unsupported(page, &r);
    if ((r.keys = ms_json_find(r.json, r.row, "list")) != MS_NONE)
        return check_list(page, &r);
    r.keys = ms_json_find(r.json, r.row, "keys");
    return check_that(page, &r, that);
}

ms_err ms_rules_check(ms_page *page)
{
    for (uint32_t p = page->n_pages; p-- > 0;) {
        const ms_json *json = &page->pages[p];
        uint32_t list = ms_json_find(json, 0, "check");
        uint32_t row = list == MS_NONE ? MS_NONE : ms_json_first(json, list);
        for (; row != MS_NONE; row = json->nodes[row].next)
            MS_TRY(ms_known_place(
                check_rule(page, (rule){.json = json, .row = row}), json, row,
                page->fault));
    }
    return MS_OK;
}
