/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A comparison for people: a column per variant, the values first, then what
 * differs from the first variant; at last, when asked, which tensors. */

#include "tools/compare.h"

#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 15u
#define CELL_WIDTH 13u
#define MAX_COLUMNS 5u   /* what 80 columns hold */
#define LEAST_PART 5000u /* of the peak or the step: less is left out */

/* As many columns as fit beside each other. */
typedef struct block {
    const ms_comparison *c;
    const ms_style *style;
    uint32_t from, to;
} block;

/* A cell of row (an ms_compare_rows index, or the caller's), "" for none. */
typedef ms_label cell_of(const ms_comparison *c, uint32_t variant,
                         uint32_t row);

/* ---- heading ------------------------------------------------------------- */

static void put_setup(const ms_variant *variant, ms_text *words)
{
    ms_summary_setup(&variant->result, "x", words);
}

/* The setup is told again where it is not the first's. */
static void variant_line(const ms_comparison *c, uint32_t i, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_text first = {.arena = text->arena}, own = {.arena = text->arena};
    char label[16];
    put_setup(&c->variants[0], &first);
    put_setup(&c->variants[i], &own);
    ms_text_add(&words, "%s", c->variants[i].policy);
    if (first.failed || own.failed)
        text->failed = true;
    else if (strcmp(first.bytes, own.bytes) != 0)
        ms_text_add(&words, ": %s", own.bytes);
    snprintf(label, sizeof label, "%u:", i + 1);
    ms_tell_words(label, MS_TELL_INDENT, &words, text);
}

static void heading(const ms_comparison *c, const ms_style *style,
                    ms_text *text)
{
    const ms_variant *first = &c->variants[0];
    const ms_report *report = &first->result.report;
    ms_text model = {.arena = text->arena}, device = {.arena = text->arena};
    ms_text defaults = {.arena = text->arena};
    ms_text_add(&model, "%s, %s parameters, ", first->result.model.name,
                ms_quantity_count(first->result.graph.parameters).s);
    put_setup(first, &model);
    ms_text_add(text, "%s", style->strong);
    ms_tell_words("model:", MS_TELL_INDENT, &model, text);
    ms_text_add(text, "%s", style->plain);
    ms_summary_device(&first->job, report, &device);
    ms_tell_words("device:", MS_TELL_INDENT, &device, text);
    ms_settings_defaults(&first->job, &first->result.training, &defaults);
    ms_text_add(text, "%s", style->faint);
    ms_tell_words("defaults:", MS_TELL_INDENT, &defaults, text);
    ms_text_add(text, "%s", style->plain);
    ms_tell_unknown(&first->result.graph, text);
    for (uint32_t i = 0; i < c->n; i++)
        variant_line(c, i, text);
}

/* ---- rows ---------------------------------------------------------------- */

static void put_row(const block *b, const char *label, cell_of *cell,
                    uint32_t row, ms_text *text)
{
    ms_text_add(text, "%-*s", (int)LABEL_WIDTH, label);
    for (uint32_t i = b->from; i < b->to; i++)
        ms_screen_right(text, CELL_WIDTH, cell(b->c, i, row).s);
    ms_text_add(text, "\n");
}

static ms_label number_cell(const ms_comparison *c, uint32_t variant,
                            uint32_t row)
{
    ms_label cell;
    (void)c, (void)row;
    snprintf(cell.s, sizeof cell.s, "%u", variant + 1);
    return cell;
}

/* The largest peak or step: its unit is everyone's, so that columns and rows
 * compare, and what is far less is left out. */
static uint64_t scale_of(const ms_comparison *c, uint32_t row)
{
    uint32_t total =
        ms_compare_rows[row].is_time ? MS_COMPARE_STEP : MS_COMPARE_PEAK;
    uint64_t scale = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t value = ms_compare_value(&c->variants[i], total);
        scale = value > scale ? value : scale;
    }
    return scale;
}

static ms_label value_cell(const ms_comparison *c, uint32_t variant,
                           uint32_t row)
{
    uint64_t value = ms_compare_value(&c->variants[variant], row);
    uint64_t scale = scale_of(c, row);
    if (value == 0)
        return (ms_label){"-"};
    return ms_compare_rows[row].is_time ? ms_quantity_time_as(value, scale)
                                        : ms_quantity_size_as(value, scale);
}

static ms_label phase_cell(const ms_comparison *c, uint32_t variant,
                           uint32_t row)
{
    const ms_peak *peak = &ms_compare_rank(&c->variants[variant])->peak;
    ms_label cell = {""};
    (void)row;
    if (peak->event != MS_NONE)
        snprintf(cell.s, sizeof cell.s, "%s",
                 peak->pass == MS_RECOMPUTE ? ms_names_pass[MS_RECOMPUTE]
                                            : ms_names_phase[peak->phase]);
    return cell;
}

static ms_label fits_cell(const ms_comparison *c, uint32_t variant,
                          uint32_t row)
{
    (void)row;
    return c->variants[variant].result.report.fits ? (ms_label){"yes"}
                                                   : (ms_label){"no"};
}

static ms_label signed_label(bool negative, const char *sign, ms_label size)
{
    ms_label label;
    snprintf(label.s, sizeof label.s, "%s%.30s", negative ? "-" : sign, size.s);
    return label;
}

static ms_label headroom_cell(const ms_comparison *c, uint32_t variant,
                              uint32_t row)
{
    int64_t bytes = c->variants[variant].result.report.headroom_bytes;
    (void)row;
    return signed_label(
        bytes < 0, "",
        ms_quantity_size(bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes));
}

static ms_label tokens_cell(const ms_comparison *c, uint32_t variant,
                            uint32_t row)
{
    double rate = c->variants[variant].result.report.tokens_per_second;
    (void)row;
    return rate < 0 ? (ms_label){"-"} : ms_quantity_count((uint64_t)rate);
}

static uint64_t host_bytes(const ms_comparison *c, uint32_t variant)
{
    return c->variants[variant].result.report.host_peak_bytes;
}

/* At its peak, of this rank. */
static ms_label host_cell(const ms_comparison *c, uint32_t variant,
                          uint32_t row)
{
    uint64_t bytes = host_bytes(c, variant);
    (void)row;
    return bytes == 0 ? (ms_label){"-"}
                      : ms_quantity_size_as(bytes, scale_of(c, 0));
}

static bool uses_host(const block *b)
{
    bool uses = false;
    for (uint32_t i = b->from; i < b->to; i++)
        uses |= host_bytes(b->c, i) > 0;
    return uses;
}

/* ---- differences --------------------------------------------------------- */

static uint64_t gap_of(const ms_comparison *c, uint32_t variant, uint32_t row,
                       bool *less)
{
    uint64_t first = ms_compare_value(&c->variants[0], row);
    uint64_t value = ms_compare_value(&c->variants[variant], row);
    *less = value < first;
    return *less ? first - value : value - first;
}

static ms_label difference_cell(const ms_comparison *c, uint32_t variant,
                                uint32_t row)
{
    bool less;
    uint64_t gap = gap_of(c, variant, row, &less);
    if (variant == 0)
        return (ms_label){""};
    if (gap == 0)
        return (ms_label){"="};
    return signed_label(less, "+",
                        ms_compare_rows[row].is_time ? ms_quantity_time(gap)
                                                     : ms_quantity_size(gap));
}

static ms_label percent_cell(const ms_comparison *c, uint32_t variant,
                             uint32_t row)
{
    bool less;
    uint64_t first = ms_compare_value(&c->variants[0], row);
    uint64_t gap = gap_of(c, variant, row, &less);
    ms_label cell = {""};
    if (variant > 0 && gap > 0 && first > 0)
        snprintf(cell.s, sizeof cell.s, "%s%.1f %%", less ? "-" : "+",
                 100.0 * (double)gap / (double)first);
    return cell;
}

/* Is the row worth a line: its values, or its differences? */
static bool counts(const block *b, uint32_t row, bool difference)
{
    bool less;
    for (uint32_t i = b->from; i < b->to; i++) {
        uint64_t bytes = difference ? gap_of(b->c, i, row, &less)
                                    : ms_compare_value(&b->c->variants[i], row);
        if (bytes > scale_of(b->c, row) / LEAST_PART)
            return true;
    }
    return false;
}

static bool is_total(uint32_t row)
{
    return row == MS_COMPARE_PEAK || row == MS_COMPARE_STEP;
}

/* ---- the table ----------------------------------------------------------- */

/* What ends the times, and begins what links move, if there is any. */
static void put_tail(const block *b, ms_text *text)
{
    bool any = uses_host(b);
    put_row(b, "tokens/s", tokens_cell, 0, text);
    for (uint32_t row = MS_COMPARE_MOVED; row < ms_compare_n_rows; row++)
        any |= counts(b, row, false);
    if (any)
        ms_text_add(text, "\nmoved:\n");
    if (uses_host(b))
        put_row(b, "host memory", host_cell, 0, text);
}

static void put_values(const block *b, ms_text *text)
{
    ms_text_add(text, "%s", b->style->strong);
    put_row(b, "", number_cell, 0, text);
    ms_text_add(text, "%s", b->style->plain);
    for (uint32_t row = 0; row < ms_compare_n_rows; row++) {
        if (row == MS_COMPARE_HELD)
            ms_text_add(text, "\nat the peak:\n");
        if (row == MS_COMPARE_STEP)
            ms_text_add(text, "\n");
        if (row == MS_COMPARE_MOVED)
            put_tail(b, text);
        if (!is_total(row) && !counts(b, row, false))
            continue;
        ms_text_add(text, "%s", is_total(row) ? b->style->strong : "");
        put_row(b, ms_compare_rows[row].label, value_cell, row, text);
        ms_text_add(text, "%s", is_total(row) ? b->style->plain : "");
        if (row != MS_COMPARE_PEAK)
            continue;
        put_row(b, "in", phase_cell, 0, text);
        put_row(b, "fits", fits_cell, 0, text);
        put_row(b, "headroom", headroom_cell, 0, text);
    }
}

static void put_differences(const block *b, ms_text *text)
{
    bool any = false;
    for (uint32_t row = 0; row < ms_compare_n_rows; row++) {
        if (!counts(b, row, true))
            continue;
        if (!any)
            ms_text_add(text, "\nagainst 1:\n");
        any = true;
        put_row(b, ms_compare_rows[row].label, difference_cell, row, text);
        if (is_total(row))
            put_row(b, "", percent_cell, row, text);
    }
    if (!any)
        ms_text_add(text, "\nno difference from 1\n");
}

/* ---- which tensors ------------------------------------------------------- */

static void side_line(const ms_comparison *c, const ms_group *group, int s,
                      ms_text *text)
{
    const ms_group_side *side = &group->side[s];
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "%d: ", s + 1);
    if (side->bytes > 0)
        ms_text_add(&words, "%s, ", ms_quantity_size(side->bytes).s);
    ms_tell_why(&c->variants[s].result, side, &words);
    ms_tell_words("", MS_TELL_GROUP_INDENT, &words, text);
}

static void put_group(const ms_comparison *c, uint32_t g, const ms_style *style,
                      ms_text *text)
{
    const ms_group *group = &c->groups[g];
    bool less = group->side[1].bytes < group->side[0].bytes;
    ms_text maker = {.arena = text->arena};
    ms_tell_name(
        group,
        signed_label(less, "+", ms_quantity_size(ms_groups_gap(group))).s,
        text);
    ms_text_add(text, "%s", style->faint);
    ms_tell_maker(group, &maker);
    ms_tell_words("", MS_TELL_GROUP_INDENT, &maker, text);
    side_line(c, group, 0, text);
    side_line(c, group, 1, text);
    ms_text_add(text, "%s", style->plain);
}

static void instant_line(const ms_comparison *c, int s, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    char label[16];
    ms_tell_instant(&c->variants[s].result, &c->alive[s].instant, &words);
    ms_text_add(&words, "%s: %s alive", c->at == NULL ? " (the peak)" : "",
                ms_quantity_size(c->alive[s].instant.bytes).s);
    snprintf(label, sizeof label, "%d at:", s + 1);
    ms_tell_words(label, MS_TELL_INDENT, &words, text);
}

static void rest_line(const ms_comparison *c, ms_text *text)
{
    uint64_t a = 0, b = 0;
    if (c->top >= c->n_groups)
        return;
    for (uint32_t g = c->top; g < c->n_groups; g++) {
        a += c->groups[g].side[0].bytes;
        b += c->groups[g].side[1].bytes;
    }
    ms_text_add(
        text, "%11s  in %u more groups (--top 0 lists all)\n",
        signed_label(b < a, "+", ms_quantity_size(b < a ? a - b : b - a)).s,
        c->n_groups - c->top);
}

static void put_tensors(const ms_comparison *c, const ms_style *style,
                        ms_text *text)
{
    ms_text_add(text, "\n");
    instant_line(c, 0, text);
    instant_line(c, 1, text);
    ms_text_add(text, "%s\n", c->n_groups == 0 ? "\nthe same tensors" : "");
    for (uint32_t g = 0; g < c->n_groups && g < c->top; g++)
        put_group(c, g, style, text);
    rest_line(c, text);
}

void ms_compare_text_write(const ms_comparison *c, const ms_style *style,
                           ms_text *text)
{
    heading(c, style, text);
    for (uint32_t from = 0; from < c->n; from += MAX_COLUMNS) {
        uint32_t to = c->n - from > MAX_COLUMNS ? from + MAX_COLUMNS : c->n;
        block b = {.c = c, .style = style, .from = from, .to = to};
        ms_text_add(text, "\n");
        put_values(&b, text);
        put_differences(&b, text);
    }
    if (c->explain)
        put_tensors(c, style, text);
}
