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

/* "+1.50 GiB", "-", in the unit of `like`. */
static ms_label difference(int64_t bytes)
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

/* "12 of 48.00 MiB", "3, together 2.00 MiB" */
static void put_count(const ms_pairings_group *group, int s, ms_text *text)
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

static void put_name(const ms_pairings_group *group, ms_text *text)
{
    if (group->name[0] == '\0')
        ms_text_add(text, "allocations without a stack");
    else
        ms_text_put(text, group->name, strlen(group->name));
}

static void put_group(const ms_pairings_group *group, ms_text *text)
{
    for (int s = 0; s < 2; s++) {
        if (group->count[s] == 0)
            continue;
        ms_text_add(text, "%s%s: ", s == 1 && group->count[0] > 0 ? "; " : "",
                    s == 0 ? "A" : "B");
        put_count(group, s, text);
    }
    ms_text_add(text, ", ");
    put_category(group->category, text);
    ms_text_add(text, ", of ");
    put_name(group, text);
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
                difference(pairs->groups[0].gap).s);
    put_group(&pairs->groups[0], text);
}

const char *ms_diff_text_cause(const ms_diff *diff, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    put_cause(diff, &text);
    return text.failed ? NULL : text.bytes;
}

/* ---- the table ----------------------------------------------------------- */

static void put_row(const char *label, const uint64_t bytes[2], bool in_a,
                    bool in_b, ms_text *text)
{
    bool both = in_a && in_b;
    ms_text_add(text, "%-*s", (int)LABEL_COLUMNS, label);
    ms_screen_right(text, CELL_COLUMNS,
                    in_a ? ms_quantity_size(bytes[0]).s : "-");
    ms_screen_right(text, CELL_COLUMNS,
                    in_b ? ms_quantity_size(bytes[1]).s : "-");
    ms_screen_right(text, CELL_COLUMNS,
                    both ? difference((int64_t)(bytes[1] - bytes[0])).s : "");
    ms_text_add(text, "\n");
}

static void put_categories(const ms_diff *diff, ms_text *text)
{
    for (uint32_t c = 0; c < MS_PAGE_CATEGORIES; c++) {
        const uint64_t bytes[2] = {diff->sides[0].by_category[c],
                                   diff->sides[1].by_category[c]};
        ms_text label = {.arena = text->arena};
        ms_text_add(&label, "  ");
        put_category((uint8_t)c, &label);
        text->failed |= label.failed;
        if (bytes[0] + bytes[1] > 0 && !label.failed)
            put_row(label.bytes, bytes, true, true, text);
    }
}

static void put_phases(const ms_diff *diff, ms_text *text)
{
    for (int p = 0; p < MS_N_PHASES; p++) {
        const ms_side_phase *a = &diff->sides[0].phase[p];
        const ms_side_phase *b = &diff->sides[1].phase[p];
        const uint64_t bytes[2] = {a->peak_bytes, b->peak_bytes};
        char label[32];
        snprintf(label, sizeof label, "peak of %s", ms_diff_keys_phases[p]);
        if (a->is_there || b->is_there)
            put_row(label, bytes, a->is_there, b->is_there, text);
    }
}

static void put_table(const ms_diff *diff, const ms_style *style, ms_text *text)
{
    const ms_side *a = &diff->sides[0], *b = &diff->sides[1];
    const uint64_t peaks[2] = {a->peak_bytes, b->peak_bytes};
    size_t from = text->length;
    ms_text_add(text, "%s%-*s", style->strong, (int)LABEL_COLUMNS, "");
    ms_screen_right(text, CELL_COLUMNS, "A");
    ms_screen_right(text, CELL_COLUMNS, "B");
    ms_screen_right(text, CELL_COLUMNS, "B less A");
    ms_text_add(text, "%s\n", style->plain);
    put_row("peak allocated", peaks, true, true, text);
    put_categories(diff, text);
    ms_text_add(text, "%-*s", (int)LABEL_COLUMNS, "  in the phase");
    ms_screen_right(text, CELL_COLUMNS, ms_diff_keys_phases[a->peak_phase]);
    ms_screen_right(text, CELL_COLUMNS, ms_diff_keys_phases[b->peak_phase]);
    ms_text_add(text, "\n");
    put_phases(diff, text);
    ms_narrow_table(text, from);
}

/* ---- all ----------------------------------------------------------------- */

static void put_side(const ms_side *side, const char *letter, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_text_put(&words, side->name, strlen(side->name));
    ms_text_add(&words, ", %s", kind_words[side->kind]);
    if (side->lives != NULL)
        ms_text_add(&words, ", %s allocations", ms_quantity_count(side->n).s);
    if (side->n_steps > 1)
        ms_text_add(&words,
                    " in %s steps, of which the one with the peak is "
                    "looked at",
                    ms_quantity_count(side->n_steps).s);
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
        snprintf(label, sizeof label, "%s", difference(pairs->groups[i].gap).s);
        put_group(&pairs->groups[i], &words);
        ms_textlines_put(label, NAME_INDENT, &words, text);
    }
    if (n < pairs->n)
        ms_text_add(text, "%u more: --top 0\n", pairs->n - n);
}

/* What was paired, and how. */
static void put_same(const ms_diff *diff, ms_text *text)
{
    const ms_pairings *pairs = &diff->pairs;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words,
                "%s allocations, %s, at the peaks; of the whole step "
                "%s of A's %s and B's %s",
                ms_quantity_count(pairs->same_count).s,
                ms_quantity_size(pairs->same_bytes).s,
                ms_quantity_count(pairs->step_same).s,
                ms_quantity_count(pairs->step_count[0]).s,
                ms_quantity_count(pairs->step_count[1]).s);
    if (!pairs->by_name)
        ms_text_add(&words, "; paired by phase and size");
    ms_textlines_put("the same:", MS_TEXTLINES_INDENT, &words, text);
}

static void put_why_not(const ms_diff *diff, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "which allocations differ is not known: ");
    ms_text_put(&words, diff->why_not, strlen(diff->why_not));
    ms_text_add(&words, "; memsim run --snapshot FILE saves them");
    ms_textlines_put("note:", MS_TEXTLINES_INDENT, &words, text);
}

void ms_diff_text_write(const ms_diff *diff, const ms_style *style,
                        ms_text *text)
{
    ms_text cause = {.arena = text->arena};
    put_side(&diff->sides[0], "A:", text);
    put_side(&diff->sides[1], "B:", text);
    ms_text_add(text, "\n");
    put_table(diff, style, text);
    if (diff->has_pairs) {
        put_groups(diff, text);
        ms_text_add(text, "\n");
        put_same(diff, text);
    } else if (diff->why_not != NULL) {
        ms_text_add(text, "\n");
        put_why_not(diff, text);
    }
    ms_text_put(&cause, diff->cause, strlen(diff->cause));
    ms_textlines_put("verdict:", MS_TEXTLINES_INDENT, &cause, text);
    ms_narrow_lines(text);
}
