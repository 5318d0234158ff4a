/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who is alive, in groups: what counts is layers.*.mlp.up, not
 * layers.17.mlp.up. */

#include "tools/explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- names with a number in them ----------------------------------------- */

/* The first part of a dotted name that is a number: where it begins, and its
 * length; 0: there is none. */
static size_t find_number(const char *name, size_t *length)
{
    for (const char *at = name; *at != '\0';) {
        size_t part = strcspn(at, ".:");
        *length = strspn(at, "0123456789");
        if (*length == part && part > 0 && part < 10)
            return (size_t)(at - name);
        at += part;
        if (*at != '\0')
            at++;
    }
    *length = 0;
    return strlen(name);
}

static const char *numbered(const ms_alive_group *group)
{
    return group->layer != NULL ? group->layer : group->role;
}

static uint32_t number_of(const ms_alive_group *group)
{
    const char *name = numbered(group);
    size_t length, at = find_number(name, &length);
    return length == 0 ? MS_NONE : (uint32_t)strtoul(name + at, NULL, 10);
}

void ms_alive_pattern(const char *name, bool literal, ms_text *text)
{
    size_t length, at = find_number(name, &length);
    if (literal || length == 0) {
        ms_text_put(text, name, strlen(name));
        return;
    }
    ms_text_add(text, "%.*s*%s", (int)at, name, name + at + length);
}

void ms_alive_name(const ms_alive_group *group, ms_text *text)
{
    const char *name = numbered(group);
    size_t length, at = find_number(name, &length);
    if (length == 0 || group->n_spans > MS_ALIVE_SPANS) {
        ms_alive_pattern(name, length == 0, text);
        return;
    }
    ms_text_add(text, "%.*s", (int)at, name);
    for (uint32_t i = 0; i < group->n_spans; i++) {
        ms_text_add(text, "%s%u", i > 0 ? "," : "", group->from[i]);
        if (group->to[i] > group->from[i])
            ms_text_add(text, "-%u", group->to[i]);
    }
    ms_text_add(text, "%s", name + at + length);
}

/* Names are equal when they are equal around their first numbers. */
static int compare_names(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return (a != NULL) - (b != NULL);
    size_t a_length, b_length;
    size_t a_at = find_number(a, &a_length), b_at = find_number(b, &b_length);
    int order = strncmp(a, b, a_at < b_at ? a_at : b_at);
    if (order != 0)
        return order;
    if (a_at != b_at || (a_length == 0) != (b_length == 0))
        return a_at < b_at || (a_at == b_at && a_length == 0) ? -1 : 1;
    return strcmp(a + a_at + a_length, b + b_at + b_length);
}

static int compare_texts(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

/* ---- groups -------------------------------------------------------------- */

static int compare_keys(const ms_alive_group *x, const ms_alive_group *y)
{
    int order = compare_names(numbered(x), numbered(y));
    if (order == 0)
        order = (x->layer != NULL) - (y->layer != NULL);
    if (order == 0 && x->layer != NULL)
        order = compare_texts(x->role, y->role);
    if (order == 0)
        order = (int)x->category - (int)y->category;
    if (order == 0)
        order = compare_texts(x->op, y->op);
    if (order == 0)
        order = (int)x->why - (int)y->why;
    if (order == 0)
        order = compare_texts(x->reader, y->reader);
    if (order == 0)
        order = compare_names(x->reader_layer, y->reader_layer);
    if (order == 0 && x->each_bytes != y->each_bytes)
        order = x->each_bytes < y->each_bytes ? 1 : -1;
    return order;
}

static int by_key(const void *a, const void *b)
{
    const ms_alive_group *x = a, *y = b;
    int order = compare_keys(x, y);
    uint32_t from = number_of(x), to = number_of(y);
    if (order == 0)
        order = (from > to) - (from < to);
    return order != 0 ? order
                      : (x->member > y->member) - (x->member < y->member);
}

static int by_bytes(const void *a, const void *b)
{
    const ms_alive_group *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return by_key(a, b);
}

static void add_number(ms_alive_group *group, uint32_t number)
{
    uint32_t last = group->n_spans - 1;
    if (group->n_spans > MS_ALIVE_SPANS || number == group->to[last])
        return;
    if (number == group->to[last] + 1) {
        group->to[last] = number;
    } else if (++group->n_spans <= MS_ALIVE_SPANS) {
        group->from[last + 1] = number;
        group->to[last + 1] = number;
    }
}

static void join(ms_alive_group *group, const ms_alive_group *more)
{
    group->bytes += more->bytes;
    group->count++;
    group->one_reader =
        group->one_reader &&
        compare_texts(group->reader_layer, more->reader_layer) == 0;
    add_number(group, number_of(more));
}

static void begin(ms_alive_group *group, const ms_alive_group *first)
{
    *group = *first;
    group->count = 1;
    group->n_spans = 1;
    group->from[0] = group->to[0] = number_of(first);
    group->one_reader = true;
}

uint32_t ms_alive_merge(ms_alive_group *groups, uint32_t n, uint32_t *leader)
{
    uint32_t kept = 0;
    qsort(groups, n, sizeof *groups, by_key);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t member = groups[i].member;
        if (kept > 0 && compare_keys(&groups[kept - 1], &groups[i]) == 0)
            join(&groups[kept - 1], &groups[i]);
        else
            begin(&groups[kept++], &groups[i]);
        if (leader != NULL)
            leader[member] = groups[kept - 1].member;
    }
    qsort(groups, kept, sizeof *groups, by_bytes);
    return kept;
}

/* ---- the line of the summary --------------------------------------------- */

const char *ms_alive_layer(const ms_graph *graph, uint32_t storage)
{
    if (storage == MS_NONE || graph->storage_layer == NULL ||
        graph->storage_layer[storage] == MS_NONE)
        return NULL;
    const char *name = graph->layer_name[graph->storage_layer[storage]];
    return *name != '\0' ? name : NULL; /* an op graph's outermost module */
}

static ms_alive_group one(const ms_plan *plan, uint32_t row, uint32_t member)
{
    const ms_row *it = &plan->row[row];
    ms_alive_group group = {.layer = ms_alive_layer(plan->graph, it->storage),
                            .category = it->category,
                            .bytes = it->bytes,
                            .member = member};
    if (group.layer == NULL)
        group.role = it->storage == MS_NONE
                         ? "copies"
                         : plan->graph->storage_name[it->storage];
    return group;
}

static ms_err put_groups(const ms_alive_group *groups, uint32_t n,
                         ms_text *text)
{
    for (uint32_t i = 0; i < n; i++) {
        char safe[64];
        ms_text name = {.arena = text->arena};
        if (i > 0 && groups[i].bytes < groups[0].bytes / 1000)
            break;
        ms_alive_pattern(numbered(&groups[i]), false, &name);
        if (name.failed)
            return MS_ENOMEM;
        ms_text_add(text, "%s%s ", i > 0 ? ", " : "",
                    ms_screen_safe(name.bytes, safe, sizeof safe));
        ms_summary_category(groups[i].category, text);
        ms_text_add(text, " %s",
                    ms_quantity_size_as(groups[i].bytes, groups[0].bytes).s);
    }
    return MS_OK;
}

ms_err ms_alive_words(const ms_result *result, uint32_t n_groups,
                      ms_arena *arena, ms_text *text, ms_fault *fault)
{
    const ms_plan *plan = &result->plan;
    const ms_report *report = &result->report;
    uint32_t *rows, n, event = report->ranks[report->worst].peak.event;
    if (event == MS_NONE)
        return MS_OK;
    MS_TRY(ms_timeline_alive(&result->line, event, report->worst, arena, &rows,
                             &n, fault));
    ms_alive_group *groups = ms_arena_take(arena, n + 1, sizeof *groups);
    if (groups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        groups[i] = one(plan, rows[i], i);
    uint32_t kept = ms_alive_merge(groups, n, NULL);
    if (put_groups(groups, kept < n_groups ? kept : n_groups, text) != MS_OK)
        return ms_fail_nomem(fault);
    return MS_OK;
}
