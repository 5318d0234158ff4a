/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/names.h"
#include "tools/cli/diff/diff.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>

#define LABEL_COLUMNS 22u
#define CELL_COLUMNS 15u
#define NAME_INDENT 14u

static const char *const kind_words[MS_SIDE_N_KINDS] = {
    [MS_SIDE_RECORDED] = "recorded",
    [MS_SIDE_SIMULATED] = "simulated",
    [MS_SIDE_SAVED] = "a saved result",
};

/* "+1.50 GiB"; "-": no difference. */
ms_label ms_diff_text_gap(int64_t bytes)
{
    ms_label label = {"-"};
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    if (bytes != 0)
        snprintf(label.s, sizeof label.s, "%c%.30s", bytes < 0 ? '-' : '+',
                 ms_quantity_size(size).s);
    return label;
}

static uint64_t size_of(int64_t bytes)
{
    return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

static void put_category(uint8_t category, ms_text *text)
{
    if (category == MS_N_CATEGORIES)
        ms_text_add(text, "%s", ms_diff_keys_categories[category]);
    else
        ms_textlines_category(category, text);
}

/* ---- the cause ----------------------------------------------------------- */

void ms_diff_text_count(const ms_pairings_group *group, int s, ms_text *text)
{
    if (group->count[s] == 1)
        ms_text_add(text, "%s", ms_quantity_size(group->bytes[s]).s);
    else if (group->each[s] > 0)
        ms_text_add(text, "%s x %s", ms_quantity_count(group->count[s]).s,
                    ms_quantity_size(group->each[s]).s);
    else
        ms_text_add(text, "%s of %s", ms_quantity_size(group->bytes[s]).s,
                    ms_quantity_count(group->count[s]).s);
}

const char *ms_diff_text_name(const ms_pairings_group *group)
{
    return group->name[0] != '\0' ? group->name : "allocations without a stack";
}

static void put_group(const ms_pairings_group *group, ms_text *text)
{
    for (int s = 0; s < 2; s++) {
        if (group->count[s] == 0)
            continue;
        ms_text_add(text, "%s%s: ", s == 1 && group->count[0] > 0 ? "; " : "",
                    s == 0 ? "A" : "B");
        ms_diff_text_count(group, s, text);
    }
    ms_text_add(text, ", ");
    put_category(group->category, text);
    ms_text_add(text, ", of ");
    ms_text_put(text, ms_diff_text_name(group),
                strlen(ms_diff_text_name(group)));
}

static void put_cause(const ms_diff *diff, ms_text *text)
{
    const ms_pairings *pairs = &diff->pairs;
    const char *more = diff->gap > 0 ? "B" : "A";
    if (diff->gap == 0)
        ms_text_add(text, "the peaks are equal");
    else
        ms_text_add(text, "the peak of %s is %s higher", more,
                    ms_quantity_size(size_of(diff->gap)).s);
    if (!diff->has_pairs) {
        ms_text_add(text, "; a saved result has no allocations to compare");
        return;
    }
    if (pairs->n == 0) {
        ms_text_add(text, ", and both hold the same there");
        return;
    }
    ms_text_add(text, "; the largest difference is %s, ",
                ms_diff_text_gap(pairs->groups[0].gap).s);
    put_group(&pairs->groups[0], text);
}

const char *ms_diff_text_cause(const ms_diff *diff, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    put_cause(diff, &text);
    return text.failed ? NULL : text.bytes;
}

/* ---- the table ----------------------------------------------------------- */

static void add_row(ms_diff_rows *rows, const char *label, const char *a,
                    const char *b, const char *gap)
{
    ms_diff_row *row = &rows->rows[rows->n++];
    snprintf(row->label.s, sizeof row->label.s, "%.31s", label);
    snprintf(row->cells[0].s, sizeof row->cells[0].s, "%.31s", a);
    snprintf(row->cells[1].s, sizeof row->cells[1].s, "%.31s", b);
    snprintf(row->cells[2].s, sizeof row->cells[2].s, "%.31s", gap);
}

static void add_bytes(ms_diff_rows *rows, const char *label, uint64_t a,
                      uint64_t b)
{
    add_row(rows, label, ms_quantity_size(a).s, ms_quantity_size(b).s,
            ms_diff_text_gap((int64_t)(b - a)).s);
}

/* What one side does not have is not 0 bytes. */
static void add_phase(ms_diff_rows *rows, const ms_side_phase *a,
                      const ms_side_phase *b, const char *label)
{
    if (a->is_there && b->is_there)
        add_bytes(rows, label, a->peak_bytes, b->peak_bytes);
    else if (a->is_there)
        add_row(rows, label, ms_quantity_size(a->peak_bytes).s, "-", "");
    else if (b->is_there)
        add_row(rows, label, "-", ms_quantity_size(b->peak_bytes).s, "");
}

ms_diff_rows ms_diff_text_rows(const ms_diff *diff)
{
    const ms_side *a = &diff->sides[0], *b = &diff->sides[1];
    ms_diff_rows rows = {.n = 0};
    char label[32];
    add_bytes(&rows, "peak allocated", a->peak_bytes, b->peak_bytes);
    for (uint32_t c = 0; c < MS_PAGE_CATEGORIES; c++) {
        snprintf(label, sizeof label, "  %s", ms_diff_keys_categories[c]);
        for (char *at = label; *at != '\0'; at++)
            *at = *at == '_' ? ' ' : *at;
        if (a->by_category[c] + b->by_category[c] > 0)
            add_bytes(&rows, label, a->by_category[c], b->by_category[c]);
    }
    add_row(&rows, "  in the phase", ms_diff_keys_phases[a->peak_phase],
            ms_diff_keys_phases[b->peak_phase], "");
    for (int p = 0; p < MS_N_PHASES; p++) {
        snprintf(label, sizeof label, "peak of %s", ms_diff_keys_phases[p]);
        add_phase(&rows, &a->phase[p], &b->phase[p], label);
    }
    return rows;
}

static void put_table(const ms_diff *diff, const ms_style *style, ms_text *text)
{
    const ms_diff_rows rows = ms_diff_text_rows(diff);
    size_t from = text->length;
    ms_text_add(text, "%s%-*s", style->strong, (int)LABEL_COLUMNS, "");
    ms_screen_right(text, CELL_COLUMNS, "A");
    ms_screen_right(text, CELL_COLUMNS, "B");
    ms_screen_right(text, CELL_COLUMNS, "B less A");
    ms_text_add(text, "%s\n", style->plain);
    for (uint32_t i = 0; i < rows.n; i++) {
        ms_text_add(text, "%-*s", (int)LABEL_COLUMNS, rows.rows[i].label.s);
        for (int c = 0; c < 3; c++)
            if (c < 2 || rows.rows[i].cells[c].s[0] != '\0')
                ms_screen_right(text, CELL_COLUMNS, rows.rows[i].cells[c].s);
        ms_text_add(text, "\n");
    }
    ms_narrow_table(text, from);
}

/* ---- all ----------------------------------------------------------------- */

void ms_diff_text_side(const ms_side *side, ms_text *words)
{
    ms_text_put(words, side->name, strlen(side->name));
    ms_text_add(words, ", %s", kind_words[side->kind]);
    if (side->lives != NULL)
        ms_text_add(words, ", %s allocations", ms_quantity_count(side->n).s);
    if (side->n_steps > 1)
        ms_text_add(words,
                    " in %s steps, of which the one with the peak is "
                    "looked at",
                    ms_quantity_count(side->n_steps).s);
}

static void put_side(const ms_side *side, const char *letter, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_diff_text_side(side, &words);
    ms_textlines_put(letter, MS_TEXTLINES_INDENT, &words, text);
}

static void put_groups(const ms_diff *diff, ms_text *text)
{
    const ms_pairings *pairs = &diff->pairs;
    uint32_t n = pairs->n < diff->top ? pairs->n : diff->top;
    if (n > 0)
        ms_text_add(text, "\nwhat one holds at its peak and the other lacks, "
                          "B less A:\n");
    for (uint32_t i = 0; i < n; i++) {
        ms_text words = {.arena = text->arena};
        char label[48];
        snprintf(label, sizeof label, "%s",
                 ms_diff_text_gap(pairs->groups[i].gap).s);
        put_group(&pairs->groups[i], &words);
        ms_textlines_put(label, NAME_INDENT, &words, text);
    }
    if (n < pairs->n)
        ms_text_add(text, "%u more: --top 0\n", pairs->n - n);
}

void ms_diff_text_same(const ms_diff *diff, ms_text *words)
{
    const ms_pairings *pairs = &diff->pairs;
    ms_text_add(words,
                "%s allocations, %s, at the peaks; of the whole step "
                "%s of A's %s and B's %s",
                ms_quantity_count(pairs->same_count).s,
                ms_quantity_size(pairs->same_bytes).s,
                ms_quantity_count(pairs->step_same).s,
                ms_quantity_count(pairs->step_count[0]).s,
                ms_quantity_count(pairs->step_count[1]).s);
    if (!pairs->by_name)
        ms_text_add(words, "; paired by phase and size");
}

void ms_diff_text_why_not(const ms_diff *diff, ms_text *words)
{
    ms_text_add(words, "which allocations differ is not known: ");
    ms_text_put(words, diff->why_not, strlen(diff->why_not));
    ms_text_add(words, "; memsim run --snapshot FILE saves them");
}

void ms_diff_text_write(const ms_diff *diff, const ms_style *style,
                        ms_text *text)
{
    ms_text cause = {.arena = text->arena}, words = cause;
    put_side(&diff->sides[0], "A:", text);
    put_side(&diff->sides[1], "B:", text);
    ms_text_add(text, "\n");
    put_table(diff, style, text);
    if (diff->has_pairs) {
        put_groups(diff, text);
        ms_text_add(text, "\n");
        ms_diff_text_same(diff, &words);
        ms_textlines_put("the same:", MS_TEXTLINES_INDENT, &words, text);
    } else if (diff->why_not != NULL) {
        ms_text_add(text, "\n");
        ms_diff_text_why_not(diff, &words);
        ms_textlines_put("note:", MS_TEXTLINES_INDENT, &words, text);
    }
    ms_text_put(&cause, diff->cause, strlen(diff->cause));
    ms_textlines_put("verdict:", MS_TEXTLINES_INDENT, &cause, text);
    ms_narrow_lines(text);
}
