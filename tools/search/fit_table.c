/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fit found, as a table for people. */

#include "tools/search/fit.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>

/* rows of equals that are shown where there are other rows, too */
#define MOST_EQUALS 8u

ms_label ms_fit_table_percent(uint64_t value, uint64_t of)
{
    ms_label label = {"-"};
    double part =
        of > 0 ? 100.0 * ((double)value - (double)of) / (double)of : 0;
    if (value != of)
        snprintf(label.s, sizeof label.s, "%+.1f %%", part);
    return label;
}

static const ms_fit_point *point_of(const ms_fit *fit, uint32_t point)
{
    return &fit->all[point];
}

/* The k-th of `rows` rows that stand for n: evenly spread, with both ends. */
static uint32_t row_at(uint32_t n, uint32_t rows, uint32_t k)
{
    return rows > 1 ? (uint32_t)((uint64_t)k * (n - 1) / (rows - 1)) : 0;
}

void ms_fit_table_set_up(const ms_fit *fit, uint32_t i, const bool *skips,
                         ms_text *text)
{
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        if (skips != NULL && skips[a])
            continue;
        const char *key = ms_fitchoices_all[a].key;
        const char *value = ms_fitsetup_value(fit, point_of(fit, i),
                                              (ms_fit_axis_id)a, text->arena);
        if (value != NULL && key != NULL)
            ms_text_add(text, "%s=%s ", strchr(key, '.') + 1, value);
    }
    const char *policy = ms_fitreply_policy(fit, i, text->arena);
    text->failed |= policy == NULL;
    ms_text_add(text, "%s", policy != NULL ? policy : "");
}

static void put_numbers(const ms_fit_point *point, ms_text *text)
{
    uint64_t tokens =
        point->tokens_per_second > 0 ? (uint64_t)point->tokens_per_second : 0;
    uint64_t room =
        point->headroom_bytes > 0 ? (uint64_t)point->headroom_bytes : 0;
    ms_screen_right(text, 11, ms_quantity_size(point->reserved_bytes).s);
    ms_screen_right(text, 12, ms_quantity_size(point->used_bytes).s);
    ms_screen_right(text, 12, ms_quantity_size(room).s);
    ms_screen_right(text, 10, ms_quantity_time(point->step_ns).s);
    ms_screen_right(text, 12, tokens > 0 ? ms_quantity_count(tokens).s : "-");
}

/* "*": the best; "=": as fast, as far as is known. */
static void put_row(const ms_fit *fit, uint32_t i, bool equal, ms_text *text)
{
    const ms_fit_point *point = point_of(fit, i);
    uint64_t least = ms_fitjudge_cost(point_of(fit, fit->fastest));
    ms_text_add(text, "%s", i == fit->best ? "*" : equal ? "=" : " ");
    put_numbers(point, text);
    ms_screen_right(text, 9,
                    ms_fit_table_percent(ms_fitjudge_cost(point), least).s);
    ms_text_add(text, "  ");
    ms_fit_table_set_up(fit, i, NULL, text);
    ms_text_add(text, "\n");
}

static void put_equals(const ms_fit_point *fastest, ms_text *words)
{
    ms_text_add(words, "times within %u %% of the fastest are called equal (=)",
                ms_fitjudge_band(fastest));
    if (fastest->measured_runs > 0)
        ms_text_add(words,
                    ", as on %u measured runs of this kind they were "
                    "within that",
                    (unsigned)fastest->measured_runs);
    else
        ms_text_add(words, ", as they were not held against any run of this "
                           "kind");
    ms_text_add(words, ": these stand by headroom, the others by time");
}

/* One line that says how the rows are ordered and what a row promises. */
static void put_rule(const ms_fit *fit, uint32_t shown, const ms_style *style,
                     ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (fit->goal == MS_FIT_MEMORY)
        ms_text_add(&words, "by what is reserved");
    else
        put_equals(point_of(fit, fit->fastest), &words);
    ms_text_add(&words, "; nothing that fits is both smaller and faster than a "
                        "row");
    if (fit->axes[MS_FIT_PIPELINE].n > 1)
        ms_text_add(&words, ", of pipelines by more than %u %%", MS_FIT_CLOSE);
    if (shown < fit->n_rows)
        ms_text_add(&words, " (%u of %u)", shown, fit->n_rows);
    ms_text_add(text, "%s", style->faint);
    ms_textlines_put("* best:", MS_TEXTLINES_INDENT, &words, text);
    ms_text_add(text, "%s\n", style->plain);
}

void ms_fit_table_write(const ms_fit_reply *reply, const ms_style *style,
                        ms_text *text)
{
    const ms_fit *fit = reply->fit;
    uint32_t others = fit->n_rows - fit->n_equal;
    uint32_t most = others > 0 ? MOST_EQUALS : MS_FIT_ROWS;
    uint32_t first = fit->n_equal < most ? fit->n_equal : most;
    uint32_t last = MS_FIT_ROWS - first < others ? MS_FIT_ROWS - first : others;
    ms_text_add(text, "\n");
    size_t from = text->length;
    ms_text_add(text,
                "%s    reserved  nvidia-smi    headroom      step    tokens/s"
                "     time  set-up%s\n",
                style->strong, style->plain);
    for (uint32_t k = 0; k < first; k++)
        put_row(fit, fit->rows[row_at(fit->n_equal, first, k)],
                fit->goal != MS_FIT_MEMORY, text);
    for (uint32_t k = 0; k < last; k++)
        put_row(fit, fit->rows[fit->n_equal + row_at(others, last, k)], false,
                text);
    ms_narrow_table(text, from);
    put_rule(fit, first + last, style, text);
}

/* ---- what was searched --------------------------------------------------- */

static void put_count(const ms_fit *fit, ms_fit_state state, const char *what,
                      ms_text *words)
{
    if (fit->count[state] > 0)
        ms_text_add(words, "; %s %s", ms_quantity_count(fit->count[state]).s,
                    what);
}

/* "5 of sharing x 4 of batch": the sizes of the dimensions that are multiplied.
 */
static void put_product(const ms_fit *fit, ms_text *words)
{
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        const ms_fit_axis *axis = &fit->axes[a];
        uint32_t n = 0;
        for (uint32_t i = 0; i < axis->n; i++)
            n += axis->dropped == 0 || (axis->dropped >> i & 1) == 0;
        if (!axis->fixed && (n > 1 || axis->dropped == 0))
            ms_text_add(words, "%s%u of %s", words->length > 0 ? " x " : "", n,
                        ms_fitchoices_all[a].name);
    }
}

/* Names the dimensions that a few replays decided for all set-ups. */
static void put_decided(const ms_fit *fit, ms_text *words)
{
    const char *between = ":";
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        if (fit->axes[a].dropped == 0)
            continue;
        if (*between == ':')
            ms_text_add(words, "; decided once, by %u replays", fit->n_decided);
        ms_text_add(words, "%s %s", between, ms_fitchoices_all[a].name);
        between = ",";
    }
}

void ms_fit_table_searched(const ms_fit_reply *reply, const ms_style *style,
                           ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text words = {.arena = text->arena}, rest = {.arena = text->arena};
    const char *what;
    put_product(fit, &words);
    ms_text_add(&words, "%s%s set-up%s; %s replayed",
                words.length > 0 ? ": " : "", ms_quantity_count(fit->n_all).s,
                fit->n_all == 1 ? "" : "s",
                ms_quantity_count(fit->count[MS_FIT_REPLAYED]).s);
    put_count(fit, MS_FIT_REFUSED, "refused by a policy", &words);
    put_count(fit, MS_FIT_TOO_BIG, "provably do not fit", &words);
    put_count(fit, MS_FIT_BEATEN, "provably beaten", &words);
    put_count(fit, MS_FIT_TOO_SLOW,
              fit->goal == MS_FIT_MEMORY ? "provably over 1.5 times the least"
                                         : "provably over 1.5 times the "
                                           "fastest",
              &words);
    put_decided(fit, &words);
    if (fit->n_failed > 0 && fit->proof != NULL)
        ms_text_add(&words, "; %u fit by their lifetimes, not through %s",
                    fit->n_failed, fit->proof->spec);
    ms_text_add(text, "%s", style->faint);
    ms_textlines_put("searched:", MS_TEXTLINES_INDENT, &words, text);
    for (uint32_t i = 0;
         (what = ms_fitreply_not_searched(reply->fit, i)) != NULL; i++)
        ms_text_add(&rest, "%s%s", i > 0 ? "; " : "", what);
    ms_textlines_put("not:", MS_TEXTLINES_INDENT, &rest, text);
    ms_text_add(text, "%s", style->plain);
}

/* ---- several numbers of GPUs --------------------------------------------- */

static void put_gpus_row(const ms_fit_reply *reply, const char *which,
                         uint32_t i, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    char number[16];
    snprintf(number, sizeof number, "%u", fit->job->gpus);
    ms_screen_right(text, 6, number);
    ms_screen_right(text, 9, which);
    put_numbers(point_of(fit, i), text);
    ms_text_add(text, "  ");
    ms_fit_table_set_up(fit, i, NULL, text);
    ms_text_add(text, "\n");
}

/* A row for the best set-up, and one for the fastest where that is another. */
static void put_gpus_rows(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    bool fits = fit->best != MS_NONE;
    put_gpus_row(reply, fits ? "best" : "too big", reply->chosen, text);
    if (fits && fit->fastest != fit->best)
        put_gpus_row(reply, "fastest", fit->fastest, text);
}

static void put_gpus_commands(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text_add(text, "run:      %s\n", reply->command);
    if (fit->best == MS_NONE || fit->fastest == fit->best)
        return;
    const char *command = ms_fitreply_command(reply, fit->fastest);
    text->failed |= command == NULL;
    ms_text_add(text, "fastest:  %s\n", command != NULL ? command : "");
}

void ms_fit_table_gpus(const ms_fit_reply *replies, uint32_t n,
                       const ms_style *style, ms_text *text)
{
    size_t from = text->length;
    ms_text_add(text,
                "%s  GPUs            reserved  nvidia-smi    headroom      step"
                "    tokens/s  set-up%s\n",
                style->strong, style->plain);
    for (uint32_t i = 0; i < n; i++)
        put_gpus_rows(&replies[i], text);
    ms_narrow_table(text, from);
    put_rule(replies->fit, replies->fit->n_rows, style, text);
    for (uint32_t i = 0; i < n; i++)
        put_gpus_commands(&replies[i], text);
}
