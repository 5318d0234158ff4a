/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts tensors in groups: people think of layers.*.mlp.up, not of
 * layers.17.mlp.up. */

#include "tools/alive/alive.h"

#include <stdlib.h>
#include <string.h>

/* ---- names with a number in them ----------------------------------------- */

/* The offset of the first part of a dotted name that is a number, and its
 * length; length 0: there is none. */
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

const char *ms_groups_numbered(const ms_alike *group)
{
    return group->layer != NULL ? group->layer : group->role;
}

static uint32_t number_of(const ms_alike *group)
{
    const char *name = ms_groups_numbered(group);
    size_t length, at = find_number(name, &length);
    return length == 0 ? MS_NONE : (uint32_t)strtoul(name + at, NULL, 10);
}

void ms_groups_pattern(const char *name, bool literal, ms_text *text)
{
    size_t length, at = find_number(name, &length);
    if (literal || length == 0) {
        ms_text_put(text, name, strlen(name));
        return;
    }
    ms_text_add(text, "%.*s*%s", (int)at, name, name + at + length);
}

void ms_groups_name(const ms_alike *group, ms_text *text)
{
    const char *name = ms_groups_numbered(group);
    size_t length, at = find_number(name, &length);
    if (length == 0 || group->n_spans > MS_GROUP_SPANS) {
        ms_groups_pattern(name, length == 0, text);
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

/* Orders names without their first numbers. */
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

static int compare_sides(const ms_group_side *x, const ms_group_side *y)
{
    int order = (int)x->why - (int)y->why;
    if (order == 0)
        order = compare_texts(x->reader, y->reader);
    if (order == 0)
        order = compare_names(x->reader_layer, y->reader_layer);
    if (order == 0 && x->each_bytes != y->each_bytes)
        order = x->each_bytes < y->each_bytes ? 1 : -1;
    return order;
}

static int compare_keys(const ms_alike *x, const ms_alike *y)
{
    int order = compare_names(ms_groups_numbered(x), ms_groups_numbered(y));
    if (order == 0)
        order = (x->layer != NULL) - (y->layer != NULL);
    if (order == 0 && x->layer != NULL)
        order = compare_texts(x->role, y->role);
    if (order == 0)
        order = (int)x->category - (int)y->category;
    if (order == 0)
        order = compare_texts(x->op, y->op);
    for (int s = 0; s < 2 && order == 0; s++)
        order = compare_sides(&x->side[s], &y->side[s]);
    return order;
}

static int by_key(const void *a, const void *b)
{
    const ms_alike *x = a, *y = b;
    int order = compare_keys(x, y);
    uint32_t from = number_of(x), to = number_of(y);
    if (order == 0)
        order = (from > to) - (from < to);
    return order != 0 ? order
                      : (x->member > y->member) - (x->member < y->member);
}

uint64_t ms_groups_gap(const ms_alike *group)
{
    uint64_t a = group->side[0].bytes, b = group->side[1].bytes;
    return a > b ? a - b : b - a;
}

static int by_gap(const void *a, const void *b)
{
    uint64_t x = ms_groups_gap(a), y = ms_groups_gap(b);
    if (x != y)
        return x < y ? 1 : -1;
    return by_key(a, b);
}

static void add_number(ms_alike *group, uint32_t number)
{
    uint32_t last = group->n_spans - 1;
    if (group->n_spans > MS_GROUP_SPANS || number == group->to[last])
        return;
    if (number == group->to[last] + 1) {
        group->to[last] = number;
    } else if (++group->n_spans <= MS_GROUP_SPANS) {
        group->from[last + 1] = number;
        group->to[last + 1] = number;
    }
}

static void join(ms_alike *group, const ms_alike *more)
{
    group->count++;
    for (int s = 0; s < 2; s++) {
        ms_group_side *side = &group->side[s];
        side->bytes += more->side[s].bytes;
        side->one_reader =
            side->one_reader &&
            compare_texts(side->reader_layer, more->side[s].reader_layer) == 0;
    }
    add_number(group, number_of(more));
}

static void begin(ms_alike *group, const ms_alike *first)
{
    *group = *first;
    group->count = 1;
    group->n_spans = 1;
    group->from[0] = group->to[0] = number_of(first);
    group->side[0].one_reader = group->side[1].one_reader = true;
}

uint32_t ms_groups_merge(ms_alike *groups, uint32_t n, uint32_t *leader)
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
    qsort(groups, kept, sizeof *groups, by_gap);
    return kept;
}
