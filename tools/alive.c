/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who is alive at the peak.  Rows are added up over the blocks: what counts
 * is layers.*.mlp.up, not layers.17.mlp.up. */

#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

typedef struct group {
    const char *role;
    uint8_t category;
    uint64_t bytes;
} group;

/* "layers.17.mlp.up" -> "layers.*.mlp.up". */
static char *role_of(const char *name, ms_arena *arena)
{
    static const char digits[] = "0123456789";
    char *role = ms_arena_text(arena, name, strlen(name)), *to = role;
    if (role == NULL)
        return NULL;
    for (const char *at = role; *at != '\0';) {
        size_t length = strcspn(at, "."), number = strspn(at, digits);
        if (number == length && length > 0)
            *to++ = '*';
        else
            memmove(to, at, length), to += length;
        at += length;
        if (*at == '.')
            *to++ = *at++;
    }
    *to = '\0';
    return role;
}

static const char *name_of(const ms_graph *graph, uint32_t storage)
{
    if (storage == MS_NONE)
        return "copies";
    if (graph->storage_layer[storage] != MS_NONE)
        return graph->layer_name[graph->storage_layer[storage]];
    return graph->storage_name[storage];
}

static int by_role(const void *a, const void *b)
{
    const group *x = a, *y = b;
    int order = strcmp(x->role, y->role);
    return order != 0 ? order : (int)x->category - (int)y->category;
}

static int by_bytes(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return by_role(a, b);
}

static uint32_t merge(group *groups, uint32_t n)
{
    uint32_t kept = 0;
    qsort(groups, n, sizeof *groups, by_role);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && by_role(&groups[kept - 1], &groups[i]) == 0)
            groups[kept - 1].bytes += groups[i].bytes;
        else
            groups[kept++] = groups[i];
    }
    qsort(groups, kept, sizeof *groups, by_bytes);
    return kept;
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
    group *groups = ms_arena_take(arena, n + 1, sizeof *groups);
    if (groups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        groups[i].role =
            role_of(name_of(plan->graph, plan->row[rows[i]].storage), arena);
        groups[i].category = plan->row[rows[i]].category;
        groups[i].bytes = plan->row[rows[i]].bytes;
        if (groups[i].role == NULL)
            return ms_fail_nomem(fault);
    }
    uint32_t kept = merge(groups, n);
    for (uint32_t i = 0; i < kept && i < n_groups; i++) {
        char safe[64];
        if (i > 0 && groups[i].bytes < groups[0].bytes / 1000)
            break;
        ms_text_add(text, "%s%s ", i > 0 ? ", " : "",
                    ms_screen_safe(groups[i].role, safe, sizeof safe));
        ms_summary_category(groups[i].category, text);
        ms_text_add(text, " %s",
                    ms_quantity_size_as(groups[i].bytes, groups[0].bytes).s);
    }
    return MS_OK;
}
