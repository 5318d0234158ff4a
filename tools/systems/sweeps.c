/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/systems/sweeps.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"

#include <string.h>

typedef struct painter {
    const ms_result *result;
    ms_arena *arena;
    ms_fault *fault;
    ms_sweeps *made;
    uint32_t *column_of; /* per unit */
    uint32_t capacity;
    uint16_t rank;
    bool goes_back; /* the last sweep does */
} painter;

/* ---- columns ------------------------------------------------------------- */

static ms_err find_columns(painter *p)
{
    const ms_graph *graph = p->result->graph;
    p->column_of =
        ms_arena_take_raw(p->arena, graph->n_units, sizeof *p->column_of);
    p->made->names =
        ms_arena_take_raw(p->arena, graph->n_units, sizeof(const char *));
    p->made->is_block = ms_arena_take(p->arena, graph->n_units, 1);
    if (p->column_of == NULL || p->made->names == NULL ||
        p->made->is_block == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = graph->unit_block[u];
        bool goes_on =
            u > graph->loss_unit ||
            (u > 0 && block != MS_NONE && block == graph->unit_block[u - 1]);
        uint32_t *n = &p->made->n_columns;
        if (!goes_on || *n == 0) {
            p->made->is_block[*n] =
                graph->n_blocks == 0 ? u < graph->loss_unit : block != MS_NONE;
            p->made->names[(*n)++] = block == MS_NONE
                                         ? graph->unit_name[u]
                                         : graph->block_name[block];
        }
        p->column_of[u] = *n - 1;
    }
    return MS_OK;
}

/* ---- sweeps -------------------------------------------------------------- */

static ms_err add_sweep(painter *p)
{
    ms_sweeps *made = p->made;
    if (made->n == p->capacity) {
        char **signs = ms_arena_grow(p->arena, made->signs, &p->capacity,
                                     made->n + 1, sizeof(char *));
        if (signs == NULL)
            return ms_fail_nomem(p->fault);
        made->signs = signs;
    }
    char *own = ms_arena_take(p->arena, made->n_columns + 1u, 1);
    if (own == NULL)
        return ms_fail_nomem(p->fault);
    memset(own, '.', made->n_columns);
    made->signs[made->n++] = own;
    p->goes_back = false;
    return MS_OK;
}

/* The column runs forward again: in a new sweep, once there was a backward. */
static ms_err run_again(painter *p, uint32_t column)
{
    if (p->made->n == 1 || p->goes_back)
        MS_TRY(add_sweep(p));
    p->made->signs[p->made->n - 1][column] = 'r';
    return MS_OK;
}

static ms_err run_back(painter *p, uint32_t column)
{
    if (p->made->n == 1)
        MS_TRY(add_sweep(p));
    char *sign = &p->made->signs[p->made->n - 1][column];
    p->goes_back = true;
    *sign = *sign == 'r' ? 'R' : *sign == '.' ? 'b' : *sign;
    return MS_OK;
}

static bool is_back(uint8_t pass)
{
    return pass == MS_GRAD_INPUT || pass == MS_GRAD_WEIGHT;
}

static ms_err walk(painter *p)
{
    const ms_plan *plan = p->result->plan;
    const ms_graph *graph = p->result->graph;
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const ms_plan_op *op = &plan->op[i];
        if (op->of == MS_NONE || op->rank != p->rank || op->micro_batch != 0 ||
            graph->op_unit[op->of] == MS_NONE)
            continue;
        uint32_t column = p->column_of[graph->op_unit[op->of]];
        if (op->pass == MS_RECOMPUTE)
            MS_TRY(run_again(p, column));
        else if (is_back(op->pass))
            MS_TRY(run_back(p, column));
    }
    return MS_OK;
}

/* ---- forward ------------------------------------------------------------- */

/* The first sweep that makes a column again begins there: its input was kept.
 */
static bool begins(const painter *p, uint32_t column)
{
    for (uint32_t i = 1; i < p->made->n; i++)
        if (ms_sweeps_again(p->made, i, column))
            return column == 0 || !ms_sweeps_again(p->made, i, column - 1);
    return false;
}

static void mark_set(const ms_program *program, uint32_t set, uint32_t *stamps,
                     uint32_t stamp)
{
    if (set >= program->n_sets)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        stamps[program->set_item[i]] = stamp;
}

/* What the unit saves and its sets have, of all that it saves; stamp:
 * the mark of the call. */
static char sign_of(const painter *p, const ms_call *call, uint32_t *stamps,
                    uint32_t stamp)
{
    const ms_graph *graph = p->result->graph;
    const ms_program *program = p->result->program;
    uint32_t set = call->run.keep, all = 0, kept = 0, held = 0;
    uint32_t end = graph->out_at[graph->forward_at[call->unit + 1]];
    if (set == MS_ALL)
        return 'S';
    /* What is held for a segment behind it is no part of it, but may be what
     * is missing of all. */
    mark_set(program, call->set, stamps, 2 * stamp + 1);
    mark_set(program, set, stamps, 2 * stamp);
    for (uint32_t i = graph->out_at[graph->forward_at[call->unit]]; i < end;
         i++) {
        uint32_t s = graph->out[i];
        bool saved = graph->storage_saved_end[s] != MS_NONE;
        all += saved;
        kept += saved && stamps[s] == 2 * stamp;
        held += saved && stamps[s] == 2 * stamp + 1;
    }
    if (kept > 0)
        return kept + held == all ? 'S' : 'p';
    return '>';
}

static ms_err paint_forward(painter *p)
{
    const ms_program *program = p->result->program;
    char *signs = p->made->signs[0];
    uint32_t *stamps =
        ms_arena_take(p->arena, p->result->graph->n_storages, sizeof *stamps);
    if (stamps == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN || call->run.pass != MS_FORWARD ||
            call->micro_batch != 0 || call->rank != p->rank)
            continue;
        char *sign = &signs[p->column_of[call->unit]];
        char own = sign_of(p, call, stamps, i + 1);
        *sign = *sign == '.' || *sign == own ? own : 'p';
    }
    for (uint32_t c = 0; c < p->made->n_columns; c++)
        if (signs[c] == '>' && begins(p, c))
            signs[c] = 'i';
    return MS_OK;
}

/* ---- all of it ----------------------------------------------------------- */

bool ms_sweeps_again(const ms_sweeps *sweeps, uint32_t sweep, uint32_t column)
{
    char sign = sweeps->signs[sweep][column];
    return sign == 'r' || sign == 'R';
}

ms_err ms_sweeps_find(const ms_result *result, ms_arena *arena,
                      ms_sweeps *sweeps, ms_fault *fault)
{
    const ms_report *report = result->report;
    painter p = {.result = result,
                 .arena = arena,
                 .fault = fault,
                 .made = sweeps,
                 .rank = report->ranks[report->told].rank};
    *sweeps = (ms_sweeps){0};
    MS_TRY(find_columns(&p));
    MS_TRY(add_sweep(&p));
    MS_TRY(walk(&p));
    return paint_forward(&p);
}
