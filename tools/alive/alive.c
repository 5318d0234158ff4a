/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds which tensors are alive at an instant of a run. */

#include "tools/alive/alive.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <string.h>

/* ---- names of the plan --------------------------------------------------- */

const char *ms_alive_layer(const ms_graph *graph, uint32_t storage)
{
    if (storage == MS_NONE || graph->storage_layer == NULL ||
        graph->storage_layer[storage] == MS_NONE)
        return NULL;
    const char *name = graph->layer_name[graph->storage_layer[storage]];
    /* the outermost module of an op graph has no name */
    return *name != '\0' ? name : NULL;
}

/* ---- an instant ---------------------------------------------------------- */

ms_err ms_alive_find(const ms_result *result, const char *at, ms_arena *arena,
                     ms_alive *alive, ms_fault *fault)
{
    *alive = (ms_alive){.result = result};
    MS_TRY(ms_instant_find(result, at, arena, &alive->instant, fault));
    if (alive->instant.event != MS_NONE)
        MS_TRY(ms_timeline_alive(result->line, alive->instant.event,
                                 result->report->told, arena, &alive->rows,
                                 &alive->n, fault));
    return ms_why_find(result, &alive->instant, alive->rows, alive->n, arena,
                       &alive->fates, fault);
}

ms_group_side ms_alive_side(const ms_plan *plan, ms_fate fate, uint64_t bytes)
{
    ms_group_side side = {.bytes = bytes, .why = fate.why};
    if (!ms_why_lasts(fate.why))
        side.each_bytes = bytes;
    if (fate.reader != MS_NONE) {
        side.reader = ms_instant_op(plan, fate.reader);
        side.reader_layer = ms_instant_op_layer(plan, fate.reader);
    }
    return side;
}

ms_alike ms_alive_one(const ms_alive *alive, uint32_t i)
{
    const ms_plan *plan = alive->result->plan;
    const ms_row *row = &plan->row[alive->rows[i]];
    uint8_t pass = plan->op[row->op].pass;
    ms_alike group = {.layer = ms_alive_layer(plan->graph, row->storage),
                      .role = row->storage == MS_NONE
                                  ? "copy"
                                  : plan->graph->storage_name[row->storage],
                      .category = row->category,
                      .member = i};
    group.side[0] = ms_alive_side(plan, alive->fates[i], row->bytes);
    if (pass != MS_START && pass != MS_COPY)
        group.op = ms_instant_op(plan, row->op);
    return group;
}

/* ---- the line of the summary --------------------------------------------- */

static ms_alike one(const ms_plan *plan, uint32_t row, uint32_t member)
{
    const ms_row *it = &plan->row[row];
    ms_alike group = {.layer = ms_alive_layer(plan->graph, it->storage),
                      .category = it->category,
                      .side = {{.bytes = it->bytes}},
                      .member = member};
    if (group.layer == NULL)
        group.role = it->storage == MS_NONE
                         ? "copies"
                         : plan->graph->storage_name[it->storage];
    return group;
}

static ms_err put_groups(const ms_alike *groups, uint32_t n, ms_text *text)
{
    for (uint32_t i = 0; i < n; i++) {
        char safe[64];
        ms_text name = {.arena = text->arena};
        if (i > 0 && groups[i].side[0].bytes < groups[0].side[0].bytes / 1000)
            break;
        ms_groups_pattern(ms_groups_numbered(&groups[i]), false, &name);
        if (name.failed)
            return MS_ENOMEM;
        ms_text_add(text, "%s%s ", i > 0 ? ", " : "",
                    ms_screen_safe(name.bytes, safe, sizeof safe));
        ms_textlines_category(groups[i].category, text);
        ms_text_add(text, " %s",
                    ms_quantity_size_as(groups[i].side[0].bytes,
                                        groups[0].side[0].bytes)
                        .s);
    }
    return MS_OK;
}

ms_err ms_alive_words(const ms_result *result, uint32_t n_groups,
                      ms_arena *arena, ms_text *text, ms_fault *fault)
{
    const ms_plan *plan = result->plan;
    const ms_report *report = result->report;
    uint32_t *rows, n, event = report->ranks[report->told].peak.event;
    if (event == MS_NONE)
        return MS_OK;
    MS_TRY(ms_timeline_alive(result->line, event, report->told, arena, &rows,
                             &n, fault));
    ms_alike *groups = ms_arena_take(arena, n + 1, sizeof *groups);
    if (groups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        groups[i] = one(plan, rows[i], i);
    uint32_t kept = ms_groups_merge(groups, n, NULL);
    if (put_groups(groups, kept < n_groups ? kept : n_groups, text) != MS_OK)
        return ms_fail_nomem(fault);
    return MS_OK;
}

ms_err ms_alive_groups(const ms_alive *alive, ms_arena *arena,
                       ms_alike **groups, uint32_t **group_of,
                       uint32_t *n_groups, ms_fault *fault)
{
    uint32_t n = alive->n;
    uint32_t *leader = ms_arena_take(arena, n + 1, sizeof *leader);
    uint32_t *index = ms_arena_take(arena, n + 1, sizeof *index);
    *group_of = ms_arena_take(arena, n + 1, sizeof **group_of);
    *groups = ms_arena_take(arena, n + 1, sizeof **groups);
    if (leader == NULL || index == NULL || *group_of == NULL || *groups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        (*groups)[i] = ms_alive_one(alive, i);
    *n_groups = ms_groups_merge(*groups, n, leader);
    for (uint32_t g = 0; g < *n_groups; g++)
        index[(*groups)[g].member] = g;
    for (uint32_t i = 0; i < n; i++)
        (*group_of)[i] = index[leader[i]];
    return MS_OK;
}
