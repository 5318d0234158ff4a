/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/explain/schedulepicture.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "tools/terminal/textlines.h"

#include <string.h>

/* A sweep: a sign per column, '.' where nothing of it runs. */
typedef struct sweep {
    char *signs;
    uint32_t again, alone; /* columns made again; and gone back at once */
    bool goes_back;
} sweep;

typedef struct painter {
    const ms_result *result;
    ms_arena *arena;
    ms_fault *fault;
    uint32_t *column_of; /* per unit */
    const char **names;
    uint32_t n;
    uint16_t rank;
    sweep *sweeps; /* the first is forward */
    uint32_t n_sweeps, capacity;
} painter;

/* ---- columns ------------------------------------------------------------- */

static ms_err find_columns(painter *p)
{
    const ms_graph *graph = p->result->graph;
    p->column_of =
        ms_arena_take_raw(p->arena, graph->n_units, sizeof *p->column_of);
    p->names = ms_arena_take_raw(p->arena, graph->n_units, sizeof *p->names);
    if (p->column_of == NULL || p->names == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = graph->unit_block[u];
        bool goes_on =
            u > graph->loss_unit ||
            (u > 0 && block != MS_NONE && block == graph->unit_block[u - 1]);
        if (!goes_on || p->n == 0)
            p->names[p->n++] = block == MS_NONE ? graph->unit_name[u]
                                                : graph->block_name[block];
        p->column_of[u] = p->n - 1;
    }
    return MS_OK;
}

/* ---- sweeps -------------------------------------------------------------- */

static ms_err add_sweep(painter *p)
{
    if (p->n_sweeps == p->capacity) {
        sweep *sweeps = ms_arena_grow(p->arena, p->sweeps, &p->capacity,
                                      p->n_sweeps + 1, sizeof *sweeps);
        if (sweeps == NULL)
            return ms_fail_nomem(p->fault);
        p->sweeps = sweeps;
    }
    sweep own = {.signs = ms_arena_take(p->arena, p->n + 1u, 1)};
    if (own.signs == NULL)
        return ms_fail_nomem(p->fault);
    memset(own.signs, '.', p->n);
    p->sweeps[p->n_sweeps++] = own;
    return MS_OK;
}

static sweep *now(const painter *p)
{
    return &p->sweeps[p->n_sweeps - 1];
}

/* The column runs forward again: in a new sweep, once there was a backward. */
static ms_err run_again(painter *p, uint32_t column)
{
    if (p->n_sweeps == 1 || now(p)->goes_back)
        MS_TRY(add_sweep(p));
    sweep *own = now(p);
    own->again += own->signs[column] == '.';
    own->signs[column] = 'r';
    return MS_OK;
}

static ms_err run_back(painter *p, uint32_t column)
{
    if (p->n_sweeps == 1)
        MS_TRY(add_sweep(p));
    sweep *own = now(p);
    own->goes_back = true;
    if (own->signs[column] == 'r') {
        own->signs[column] = 'R';
        own->alone++;
    } else if (own->signs[column] == '.') {
        own->signs[column] = 'b';
    }
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

/* Sweeps of one block each, made again just before its backward, are one. */
static void merge(painter *p)
{
    uint32_t n = p->n_sweeps > 1 ? 2 : p->n_sweeps;
    for (uint32_t i = 2; i < p->n_sweeps; i++) {
        sweep *before = &p->sweeps[n - 1], *own = &p->sweeps[i];
        bool single = before->again == before->alone &&
                      (before->again <= 1 || before->alone == UINT32_MAX) &&
                      own->again == 1 && own->alone == 1;
        if (!single) {
            p->sweeps[n++] = *own;
            continue;
        }
        for (uint32_t c = 0; c < p->n; c++)
            if (own->signs[c] != '.')
                before->signs[c] = own->signs[c];
        before->again = before->alone = UINT32_MAX; /* of many */
    }
    p->n_sweeps = n;
}

/* ---- forward ------------------------------------------------------------- */

/* The first sweep that makes a column again begins there: its input was kept.
 */
static bool begins(const painter *p, uint32_t column)
{
    for (uint32_t i = 1; i < p->n_sweeps; i++) {
        const char *signs = p->sweeps[i].signs;
        if (signs[column] == 'r' || signs[column] == 'R')
            return column == 0 ||
                   (signs[column - 1] != 'r' && signs[column - 1] != 'R');
    }
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
    char *signs = p->sweeps[0].signs;
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
    for (uint32_t c = 0; c < p->n; c++)
        if (signs[c] == '>' && begins(p, c))
            signs[c] = 'i';
    return MS_OK;
}

/* ---- the picture --------------------------------------------------------- */

/* Of several columns in a sign those that differ are a star. */
static void squeeze(const painter *p, uint32_t each, char *signs)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < p->n; c += each) {
        char sign = signs[c];
        for (uint32_t k = c; k < p->n && k < c + each; k++)
            sign = signs[k] == sign ? sign : '*';
        signs[n++] = sign;
    }
    signs[n] = '\0';
}

ms_err ms_schedulepicture_find(const ms_result *result, ms_arena *arena,
                               ms_schedulepicture *picture, ms_fault *fault)
{
    const ms_report *report = result->report;
    painter p = {.result = result,
                 .arena = arena,
                 .fault = fault,
                 .rank = report->ranks[report->told].rank};
    *picture = (ms_schedulepicture){0};
    if (report->ranks[report->told].time.recompute_ns == 0)
        return MS_OK;
    MS_TRY(find_columns(&p));
    MS_TRY(add_sweep(&p));
    MS_TRY(walk(&p));
    /* before single blocks are put together: each begins by itself */
    MS_TRY(paint_forward(&p));
    merge(&p);
    uint32_t each = (p.n - 1) / MS_SCHEDULEPICTURE_SIGNS + 1;
    picture->lines = ms_arena_take(arena, p.n_sweeps, sizeof(const char *));
    if (picture->lines == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p.n_sweeps && i < MS_SCHEDULEPICTURE_LINES; i++) {
        squeeze(&p, each, p.sweeps[i].signs);
        picture->lines[picture->n_lines++] = p.sweeps[i].signs;
    }
    picture->n_left = p.n_sweeps - picture->n_lines;
    picture->n_columns = p.n;
    picture->each = each;
    picture->names = p.names;
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
    ms_text_add(&words, "of a micro-batch, from ");
    ms_text_put(&words, picture->names[0], strlen(picture->names[0]));
    const char *last = picture->names[picture->n_columns - 1];
    ms_text_add(&words, " to %s", last[0] != '\0' ? last : "the end");
    if (picture->each > 1)
        ms_text_add(&words, ", a sign for %u (* they differ)", picture->each);
    ms_text_add(&words,
                ": S saves all, p a part, i nothing but its input, > nothing; "
                "r runs forward again, R again and then back, b back");
    ms_textlines_put("schedule:", MS_TEXTLINES_INDENT, &words, text);
    for (uint32_t i = 0; i < picture->n_lines; i++)
        put_signs(i == 0   ? "forward"
                  : i == 1 ? "backward"
                           : "",
                  picture->lines[i], text);
    if (picture->n_left > 0)
        ms_text_add(text, "%*s%u more such lines\n",
                    (int)MS_TEXTLINES_INDENT + 10, "", picture->n_left);
}
