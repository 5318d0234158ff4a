/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/terminal/narrow.h"
#include "tools/terminal/screen.h"

#include <string.h>
#include <unistd.h>

#define MOST_COLUMNS 512u /* of a table; what is beyond is not cut */
#define HANG 2u

/* ---- lines --------------------------------------------------------------- */

typedef struct span {
    const char *at, *end;
} span;

/* The line at `at`, without its newline. */
static span line_at(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return (span){at, newline != NULL ? newline : end};
}

static uint32_t width_of(span line)
{
    return ms_screen_width(line.at, (size_t)(line.end - line.at));
}

static size_t blanks_at(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && at[n] == ' ')
        n++;
    return n;
}

/* The columns from `from` to before `to`, and every colour. */
static void put_columns(span line, uint32_t from, uint32_t to, ms_text *text)
{
    uint32_t column = 0, width, blanks = 0;
    while (line.at < line.end) {
        size_t n = ms_screen_step(line.at, line.end, &width);
        bool shown = width == 0 || (column >= from && column < to);
        if (shown && width > 0 && *line.at == ' ') {
            blanks++;
        } else if (shown) {
            if (width > 0 && blanks > 0)
                ms_text_add(text, "%*s", (int)blanks, "");
            if (width > 0)
                blanks = 0;
            ms_text_put(text, line.at, n);
        }
        column += width;
        line.at += n;
    }
}

/* ---- tables -------------------------------------------------------------- */

typedef struct table {
    const char *at, *end;
    /* by any row: by any character; by one that is no digit */
    bool taken[MOST_COLUMNS], word[MOST_COLUMNS];
    uint32_t width, keep;
} table;

static bool is_row(span line)
{
    const char *at = line.at + blanks_at(line.at, line.end);
    for (; at + 1 < line.end; at++)
        if (at[0] == ' ' && at[1] == ' ')
            return true;
    return line.at < line.end && *line.at == ' ';
}

static void take_columns(table *t, span line)
{
    uint32_t column = 0, width;
    for (; line.at < line.end && column < MOST_COLUMNS; column += width) {
        size_t n = ms_screen_step(line.at, line.end, &width);
        t->taken[column] |= width > 0 && *line.at != ' ';
        t->word[column] |=
            width > 0 && *line.at != ' ' && (*line.at < '0' || *line.at > '9');
        line.at += n;
    }
}

/* One blank is a gap behind a word, but not between a number and its unit. */
static bool is_gap(const table *t, uint32_t column)
{
    return column > 0 && column + 1 < t->width && !t->taken[column] &&
           (!t->taken[column + 1] || t->word[column - 1]);
}

/* Where the column of the table that begins at `at` ends: before the next
 * gap. */
static uint32_t column_end(const table *t, uint32_t at)
{
    while (at < t->width && !t->taken[at])
        at++;
    while (at < t->width && !is_gap(t, at))
        at++;
    return at;
}

/* Adds the line's columns of a panel, behind its first column where that is not
 * one of them. */
static void put_row(const table *t, span line, uint32_t from, uint32_t to,
                    ms_text *text)
{
    ms_text cells = {.arena = text->arena}, label = cells;
    uint32_t taken = 0;
    put_columns(line, from, to, &cells);
    if (from > 0)
        put_columns(line, 0, t->keep, &label);
    text->failed |= cells.failed || label.failed;
    if (text->failed || cells.length == 0)
        return;
    if (label.length > 0) {
        taken = ms_screen_width(label.bytes, label.length);
        ms_text_put(text, label.bytes, label.length);
    }
    if (from > 0)
        ms_text_add(text, "%*s", (int)(t->keep - taken), "");
    ms_text_put(text, cells.bytes, cells.length);
}

static void put_panel(const table *t, uint32_t from, uint32_t to, ms_text *text)
{
    if (from > 0)
        ms_text_put(text, "\n", 1);
    for (const char *at = t->at; at < t->end;) {
        span line = line_at(at, t->end);
        if (is_row(line))
            put_row(t, line, from, to, text);
        else
            ms_text_put(text, line.at, (size_t)(line.end - line.at));
        ms_text_put(text, "\n", 1);
        at = line.end + 1;
    }
}

/* The end of the panel that begins at `from`: as many columns as fit, one at
 * least. */
static uint32_t panel_end(const table *t, uint32_t from, uint32_t columns)
{
    uint32_t to = column_end(t, from);
    uint32_t room = from == 0 ? columns : columns - t->keep;
    while (to < t->width && column_end(t, to) - from <= room)
        to = column_end(t, to);
    return to;
}

static void measure(table *t)
{
    for (const char *at = t->at; at < t->end;) {
        span line = line_at(at, t->end);
        at = line.end + 1;
        if (!is_row(line))
            continue;
        take_columns(t, line);
        t->width = width_of(line) > t->width ? width_of(line) : t->width;
    }
    if (t->width > MOST_COLUMNS)
        t->width = MOST_COLUMNS;
    t->keep = column_end(t, 0);
}

void ms_narrow_table(ms_text *text, size_t from)
{
    uint32_t columns = ms_screen_columns(STDOUT_FILENO);
    ms_text cut = {.arena = text->arena};
    table t = {0};
    if (!ms_screen_is_terminal(STDOUT_FILENO) || text->failed ||
        from == text->length)
        return;
    t.at = text->bytes + from;
    t.end = text->bytes + text->length;
    measure(&t);
    if (t.width <= columns || 4 * t.keep > 3 * columns)
        return;
    for (uint32_t at = 0, to; at < t.width; at = to) {
        to = panel_end(&t, at, columns);
        put_panel(&t, at, to, &cut);
    }
    text->failed |= cut.failed;
    text->length = (uint32_t)from;
    if (!cut.failed)
        ms_text_put(text, cut.bytes, cut.length);
}

/* ---- lines that are still too wide --------------------------------------- */

/* A command, or arguments of one, to copy: "next:     memsim run gpt2",
 * "          --tensor-model-parallel-size 4". */
static bool is_command(span line)
{
    const char *at = line.at + blanks_at(line.at, line.end);
    const char *colon = memchr(at, ':', (size_t)(line.end - at));
    if (colon != NULL && memchr(at, ' ', (size_t)(colon - at)) == NULL)
        at = colon + 1 + blanks_at(colon + 1, line.end);
    size_t length = (size_t)(line.end - at);
    return (length > 7 && memcmp(at, "memsim ", 7) == 0) ||
           (length > 2 && memcmp(at, "--", 2) == 0);
}

/* The column in which a line goes on: where its words begin beside a label,
 * else a little further in than it begins. */
static uint32_t hang_of(span line, uint32_t columns)
{
    size_t indent = blanks_at(line.at, line.end);
    const char *at = line.at + indent;
    while (at + 1 < line.end && (at[0] != ' ' || at[1] != ' '))
        at++;
    uint32_t hang = ms_screen_width(line.at, (size_t)(at - line.at)) +
                    (uint32_t)blanks_at(at, line.end);
    if (at + 1 < line.end && 2 * hang <= columns)
        return hang;
    return 2 * indent <= columns ? (uint32_t)indent + HANG : HANG;
}

/* The part of the line that fits: up to a blank, or all where there is none. */
static span part_of(span line, uint32_t columns)
{
    const char *at = line.at + blanks_at(line.at, line.end), *cut = NULL;
    uint32_t column = (uint32_t)(at - line.at), width;
    while (at < line.end && (column <= columns || cut == NULL)) {
        if (*at == ' ')
            cut = at;
        size_t n = ms_screen_step(at, line.end, &width);
        column += width;
        at += n;
    }
    if (column > columns && cut != NULL)
        line.end = cut;
    return line;
}

static void put_folded(span line, uint32_t columns, ms_text *text)
{
    uint32_t hang = hang_of(line, columns), room = columns;
    while (width_of(line) > room) {
        span part = part_of(line, room);
        put_columns(part, 0, UINT32_MAX, text);
        line.at = part.end + blanks_at(part.end, line.end);
        if (line.at == line.end)
            return;
        ms_text_add(text, "\n%*s", (int)hang, "");
        room = columns - hang;
    }
    ms_text_put(text, line.at, (size_t)(line.end - line.at));
}

void ms_narrow_lines(ms_text *text)
{
    uint32_t columns = ms_screen_columns(STDOUT_FILENO);
    ms_text lines = {.arena = text->arena};
    if (!ms_screen_is_terminal(STDOUT_FILENO) || text->failed ||
        text->length == 0)
        return;
    const char *end = text->bytes + text->length;
    for (const char *at = text->bytes; at < end;) {
        span line = line_at(at, end);
        if (width_of(line) <= columns || is_command(line))
            ms_text_put(&lines, line.at, (size_t)(line.end - line.at));
        else
            put_folded(line, columns, &lines);
        ms_text_put(&lines, "\n", line.end < end);
        at = line.end + 1;
    }
    *text = lines;
}
