/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/explain/schedulepicture.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tools/systems/sweeps.h"
#include "tools/terminal/textlines.h"

#include <string.h>

/* Sweeps of one block each, made again just before its backward, are one: does
 * the sweep go on with that? */
static bool is_single(const ms_sweeps *sweeps, uint32_t i)
{
    uint32_t again = 0, alone = 0;
    for (uint32_t c = 0; c < sweeps->n_columns; c++) {
        again += ms_sweeps_again(sweeps, i, c);
        alone += sweeps->signs[i][c] == 'R';
    }
    return again == 1 && alone == 1;
}

static bool is_back(const ms_sweeps *sweeps, uint32_t i)
{
    for (uint32_t c = 0; c < sweeps->n_columns; c++)
        if (ms_sweeps_again(sweeps, i, c))
            return false;
    return true;
}

static void merge(ms_sweeps *sweeps)
{
    uint32_t n = sweeps->n > 1 ? 2 : sweeps->n;
    bool goes_on = n > 1 && (is_single(sweeps, 1) || is_back(sweeps, 1));
    for (uint32_t i = 2; i < sweeps->n; i++) {
        bool single = is_single(sweeps, i);
        if (!goes_on || !single) {
            sweeps->signs[n++] = sweeps->signs[i];
            goes_on = single;
            continue;
        }
        for (uint32_t c = 0; c < sweeps->n_columns; c++)
            if (sweeps->signs[i][c] != '.')
                sweeps->signs[n - 1][c] = sweeps->signs[i][c];
    }
    sweeps->n = n;
}

/* Of several columns in a sign those that differ are a star. */
static void squeeze(uint32_t n_columns, uint32_t each, char *signs)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < n_columns; c += each) {
        char sign = signs[c];
        for (uint32_t k = c; k < n_columns && k < c + each; k++)
            sign = signs[k] == sign ? sign : '*';
        signs[n++] = sign;
    }
    signs[n] = '\0';
}

/* ---- nodes --------------------------------------------------------------- */

typedef struct painter {
    ms_arena *arena;
    ms_fault *fault;
    ms_sweeps *sweeps;
    uint32_t capacity;
    uint32_t next; /* where the line goes on */
} painter;

static ms_err put_node(painter *p, uint32_t column, char sign)
{
    ms_sweeps *sweeps = p->sweeps;
    if (sweeps->n == 0 || column < p->next) {
        char *line = ms_arena_take(p->arena, sweeps->n_columns + 1u, 1);
        sweeps->signs = ms_arena_grow(p->arena, sweeps->signs, &p->capacity,
                                      sweeps->n + 1, sizeof *sweeps->signs);
        if (line == NULL || sweeps->signs == NULL)
            return ms_fail_nomem(p->fault);
        memset(line, '.', sweeps->n_columns);
        sweeps->signs[sweeps->n++] = line;
    }
    sweeps->signs[sweeps->n - 1][column] = sign;
    p->next = column + 1;
    return MS_OK;
}

/* Each node in the order in which they run, again ones too. */
static ms_err find_nodes(const ms_result *result, ms_arena *arena,
                         ms_sweeps *sweeps, ms_fault *fault)
{
    const ms_graph *graph = result->graph;
    const ms_plan *plan = result->plan;
    painter p = {.arena = arena, .fault = fault, .sweeps = sweeps};
    uint8_t *made = ms_arena_take(arena, graph->n_units + 1u, 1);
    if (made == NULL)
        return ms_fail_nomem(fault);
    *sweeps =
        (ms_sweeps){.n_columns = graph->n_units, .names = graph->unit_name};
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        uint32_t op = plan->op[i].of;
        if (op == MS_NONE || graph->op_unit[op] == MS_NONE)
            continue;
        uint32_t unit = graph->op_unit[op];
        bool backward = graph->op_pass[op] != MS_FORWARD;
        MS_TRY(put_node(&p, unit, made[unit] ? 'r' : backward ? 'b' : '>'));
        made[unit] = 1;
    }
    return MS_OK;
}

/* ---- all of it ----------------------------------------------------------- */

ms_err ms_schedulepicture_find(const ms_result *result, ms_arena *arena,
                               ms_schedulepicture *picture, ms_fault *fault)
{
    const ms_report *report = result->report;
    ms_sweeps sweeps;
    *picture = (ms_schedulepicture){0};
    if (report->ranks[report->told].time.recompute_ns == 0)
        return MS_OK;
    picture->has_nodes = result->graph->nodes;
    if (picture->has_nodes) {
        MS_TRY(find_nodes(result, arena, &sweeps, fault));
    } else {
        MS_TRY(ms_sweeps_find(result, arena, &sweeps, fault));
        merge(&sweeps);
    }
    uint32_t each = (sweeps.n_columns - 1) / MS_SCHEDULEPICTURE_SIGNS + 1;
    picture->lines = ms_arena_take(arena, sweeps.n, sizeof(const char *));
    if (picture->lines == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < sweeps.n && i < MS_SCHEDULEPICTURE_LINES; i++) {
        squeeze(sweeps.n_columns, each, sweeps.signs[i]);
        picture->lines[picture->n_lines++] = sweeps.signs[i];
    }
    picture->n_left = sweeps.n - picture->n_lines;
    picture->n_columns = sweeps.n_columns;
    picture->each = each;
    picture->names = sweeps.names;
    return MS_OK;
}

static void put_signs(const char *label, const char *signs, ms_text *text)
{
    ms_text_add(text, "%*s%-10s%s\n", (int)MS_TEXTLINES_INDENT, "", label,
                signs);
}

void ms_schedulepicture_put(const ms_schedulepicture *picture, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (picture->n_lines == 0)
        return;
    ms_text_add(&words, picture->has_nodes ? "of nodes, from "
                                           : "of a micro-batch, from ");
    ms_text_put(&words, picture->names[0], strlen(picture->names[0]));
    const char *last = picture->names[picture->n_columns - 1];
    ms_text_add(&words, " to %s", last[0] != '\0' ? last : "the end");
    if (picture->each > 1)
        ms_text_add(&words, ", a sign for %u (* they differ)", picture->each);
    ms_text_add(&words, "%s",
                picture->has_nodes
                    ? ": > runs, b of backward, r again; a line goes on as "
                      "long as it is their order"
                    : ": S saves all, p a part, i nothing but its input, > "
                      "nothing; r runs forward again, R again and then back, "
                      "b back");
    ms_textlines_put("schedule:", MS_TEXTLINES_INDENT, &words, text);
    for (uint32_t i = 0; i < picture->n_lines; i++)
        put_signs(picture->has_nodes ? (i == 0 ? "order" : "")
                  : i == 0           ? "forward"
                  : i == 1           ? "backward"
                                     : "",
                  picture->lines[i], text);
    if (picture->n_left > 0)
        ms_text_add(text, "%*s%u more such lines\n",
                    (int)MS_TEXTLINES_INDENT + 10, "", picture->n_left);
}
