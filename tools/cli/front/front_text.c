/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/front/front.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"

#include <stdio.h>
#include <string.h>

#define INDENT 10u
#define NAME 36
enum { PEAK, STEP, RECOMPUTE, ABOVE, N_COLUMNS };
static const uint32_t columns[N_COLUMNS] = {12, 10, 11, 11};

static const char *short_name(const char *name)
{
    static const char prefix[] = "checkpoint:";
    return strncmp(name, prefix, sizeof prefix - 1) == 0
               ? name + sizeof prefix - 1
               : name;
}

static void put_cells(const char *name, const ms_label *cells, ms_text *text)
{
    ms_text_add(text, "%-*s", NAME, name);
    for (int c = 0; c < N_COLUMNS; c++)
        ms_screen_right(text, columns[c], cells[c].s);
    ms_text_add(text, "\n");
}

static void put_heading(const char *name, const char *last,
                        const ms_style *style, ms_text *text)
{
    ms_label cells[N_COLUMNS] = {{"peak"}, {"step"}, {"recompute"}, {""}};
    snprintf(cells[ABOVE].s, sizeof cells[ABOVE].s, "%s", last);
    ms_text_add(text, "%s", style->faint);
    put_cells(name, cells, text);
    ms_text_add(text, "%s", style->plain);
}

static void fill_cells(const ms_front_row *row, uint64_t like_ns,
                       ms_label *cells)
{
    cells[PEAK] = ms_quantity_size(row->peak_bytes);
    cells[STEP] = ms_quantity_time_as(row->step_ns, like_ns);
    cells[RECOMPUTE] = (ms_label){"-"};
    if (row->recompute_ns > 0)
        cells[RECOMPUTE] = ms_quantity_time_as(row->recompute_ns, like_ns);
    cells[ABOVE] = (ms_label){"-"};
}

/* Points without numbers lie behind those with. */
static bool has_curve(const ms_front *front)
{
    return front->n_curve > 0 && front->rows[front->n_ways].message == NULL;
}

static void put_ways(const ms_front *front, const ms_style *style,
                     ms_text *text)
{
    put_heading("", has_curve(front) ? "to optimum" : "", style, text);
    for (uint32_t i = 0; i < front->n_ways; i++) {
        const ms_front_row *row = &front->rows[i];
        ms_label cells[N_COLUMNS];
        if (row->message != NULL)
            continue;
        fill_cells(row, front->rows[0].step_ns, cells);
        if (row->is_above)
            snprintf(cells[ABOVE].s, sizeof cells[ABOVE].s, "%+.1f %%",
                     row->more_percent);
        put_cells(short_name(row->name), cells, text);
    }
}

/* By how much the final program differs from what the solver foresaw. */
static void put_gap(const ms_front_row *row, ms_label *cell)
{
    if (row->foreseen_ns > 0)
        snprintf(cell->s, sizeof cell->s, "%+.1f %%",
                 100 * ((double)row->step_ns / (double)row->foreseen_ns - 1));
}

static void put_curve(const ms_front *front, const ms_style *style,
                      ms_text *text)
{
    put_heading("optimal, budget=", "to solver", style, text);
    for (uint32_t i = front->n_ways; i < front->n; i++) {
        const ms_front_row *row = &front->rows[i];
        ms_label cells[N_COLUMNS];
        if (row->message != NULL)
            continue;
        fill_cells(row, front->rows[0].step_ns, cells);
        put_gap(row, &cells[ABOVE]);
        put_cells(ms_quantity_size(row->budget_bytes).s, cells, text);
    }
}

static void put_words(const char *label, const ms_text *words, ms_text *text)
{
    text->failed |= words->failed;
    if (!words->failed && words->length > 0)
        ms_screen_fill(text, INDENT, label, words->bytes);
}

/* Ways that are left out, each reason once. */
static void put_refused(const ms_front *front, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t i = 0; i < front->n; i++) {
        const ms_front_row *row = &front->rows[i];
        bool known = row->message == NULL;
        for (uint32_t k = 0; k < i && !known; k++)
            known = front->rows[k].message != NULL &&
                    strcmp(front->rows[k].message, row->message) == 0;
        if (known)
            continue;
        ms_text_add(&words, "%s%s", words.length > 0 ? "; " : "",
                    row->is_curve ? "optimal" : short_name(row->name));
        for (uint32_t k = i + 1; k < front->n; k++)
            if (front->rows[k].message != NULL && !front->rows[k].is_curve &&
                strcmp(front->rows[k].message, row->message) == 0)
                ms_text_add(&words, ", %s", short_name(front->rows[k].name));
        ms_text_add(&words, ": %s", row->message);
    }
    put_words("left out:", &words, text);
}

static void put_judgement(const ms_front *front, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    const ms_front_row *best = NULL, *worst = NULL;
    uint32_t below = 0;
    for (uint32_t i = 1; i < front->n_ways; i++) {
        const ms_front_row *row = &front->rows[i];
        if (!row->is_above)
            continue;
        below += row->more_percent <= -0.05;
        if (row->recompute_ns > 0 && row->more_percent > -0.05 &&
            (best == NULL || row->more_percent < best->more_percent))
            best = row;
        if (worst == NULL || row->more_percent > worst->more_percent)
            worst = row;
    }
    if (best == NULL || worst == NULL)
        best = worst;
    if (best == NULL)
        return;
    ms_text_add(&words,
                "nearest to the optimum is %s (%+.1f %%), farthest %s "
                "(%+.1f %%)",
                short_name(best->name), best->more_percent,
                short_name(worst->name), worst->more_percent);
    if (below > 0)
        ms_text_add(&words,
                    "; %u beat%s it: it is the best of plans that save blocks "
                    "whole or run them again whole, by the model as a chain "
                    "(to solver: how much longer the program takes), not of "
                    "what keeps parts of a block",
                    below, below == 1 ? "s" : "");
    put_words("front:", &words, text);
}

void ms_front_text_write(const ms_front *front, const ms_style *style,
                         ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "%s, %s parameters, ", front->model,
                ms_quantity_count(front->parameters).s);
    ms_text_add(&words, "%s", front->setup);
    put_words("model:", &words, text);
    words = (ms_text){.arena = text->arena};
    ms_text_add(&words, "%s, beside it ", front->policy);
    if (front->n_blocks > 0)
        ms_text_add(&words, "each way to checkpoint %u blocks, on ",
                    front->n_blocks);
    else
        ms_text_add(&words, "what DTR makes of the nodes, on ");
    ms_text_add(&words, "%s; peaks are what tensors take, without a pool",
                front->device_words);
    put_words("policy:", &words, text);
    size_t from = text->length;
    put_ways(front, style, text);
    if (has_curve(front))
        put_curve(front, style, text);
    ms_narrow_table(text, from);
    put_judgement(front, text);
    put_refused(front, text);
    ms_narrow_lines(text);
}
