/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/wrap.h"
#include "plots/plots.h"

#define TITLE_LEAST_PX 21.0
#define TITLE_LINE_PX 30.0
#define SIGN_PX 8.0 /* radius in a legend */
#define SIGN_ROOM_PX 24.0
#define ENTRY_GAP_PX 26.0
#define X_TICK_PX 84.0 /* about the least distance of ticks */
#define Y_TICK_PX 46.0

const char *ms_frame_bytes_of(const ms_frame *frame, const ms_text *text)
{
    if (!text->failed && text->bytes != NULL)
        return text->bytes;
    frame->script->failed |= text->failed;
    return "";
}

ms_frame ms_frame_of(const ms_drawing *drawing, ms_text *script)
{
    return (ms_frame){.drawing = drawing,
                      .script = script,
                      .late = {.arena = script->arena},
                      .y = 8.0};
}

/* ---- headings ------------------------------------------------------------ */

static double width_of(const char *bytes, double size_px, bool is_bold)
{
    return ms_escape_width(bytes, size_px, is_bold) * MS_FRAME_SLACK;
}

/* The length of the first line.  It ends after a semicolon if the rest then
 * fits on one more line: a line break there separates two statements. */
static size_t first_line(const char *words, double limit_px)
{
    size_t fits = ms_wrap_first(words, MS_TEXT_PX, false, limit_px);
    for (size_t at = fits; words[fits] != '\0' && at > 1; at--)
        if (words[at - 1] == ';' &&
            ms_escape_width(words + at, MS_TEXT_PX, false) <= limit_px)
            return at;
    return fits;
}

/* A title slightly too long for one line is set in smaller type before it is
 * broken into two. */
static void put_title(ms_frame *frame, const char *title)
{
    ms_type type = {
        .size_px = MS_TITLE_PX, .color = "#000000", .is_bold = true};
    double limit = (MS_FRAME_RIGHT - MS_FRAME_LEFT) / MS_FRAME_SLACK;
    uint32_t n;
    if (title == NULL || title[0] == '\0')
        return;
    while (type.size_px > TITLE_LEAST_PX &&
           ms_escape_width(title, type.size_px, true) > limit)
        type.size_px -= 1.0;
    const char **lines = ms_wrap_lines(title, type.size_px, true, limit,
                                       frame->script->arena, &n);
    frame->script->failed |= lines == NULL;
    for (uint32_t i = 0; lines != NULL && i < n; i++) {
        ms_canvas_text(&frame->late, lines[i], MS_FRAME_LEFT, frame->y + 16.0,
                       &type, limit + 1.0);
        frame->y += TITLE_LINE_PX;
    }
    frame->y += 36.0 - TITLE_LINE_PX;
}

static void put_lines(ms_frame *frame, const char *words)
{
    const ms_type type = {.size_px = MS_TEXT_PX, .color = MS_GREY};
    double limit = (MS_FRAME_RIGHT - MS_FRAME_LEFT) / MS_FRAME_SLACK;
    for (uint32_t i = 0; words != NULL && *words != '\0' && i < MS_WRAP_MOST;
         i++) {
        size_t length =
            i + 1 < MS_WRAP_MOST ? first_line(words, limit) : strlen(words);
        const char *line = ms_arena_text(frame->script->arena, words, length);
        frame->script->failed |= line == NULL;
        ms_canvas_text(&frame->late, line != NULL ? line : "", MS_FRAME_LEFT,
                       frame->y + 12.0, &type, limit + 1.0);
        frame->y += MS_FRAME_LINE_PX;
        words += length;
        words += strspn(words, " ");
    }
}

void ms_frame_heading(ms_frame *frame, const char *note)
{
    put_title(frame, frame->drawing->title);
    put_lines(frame, frame->drawing->subtitle);
    put_lines(frame, note);
}

/* ---- legend -------------------------------------------------------------- */

/* A name that is wider than the figure takes several lines. */
static void put_entry(ms_frame *frame, const ms_frame_entry *entry, double x)
{
    const ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK};
    double limit =
        (MS_FRAME_RIGHT - MS_FRAME_LEFT - SIGN_ROOM_PX) / MS_FRAME_SLACK;
    uint32_t n;
    const char **lines = ms_wrap_lines(entry->name, MS_TEXT_PX, false, limit,
                                       frame->script->arena, &n);
    ms_marks_object(&frame->late, &entry->mark, x + SIGN_PX + 2.0,
                    frame->y + 12.0, SIGN_PX);
    frame->script->failed |= lines == NULL;
    for (uint32_t i = 0; lines != NULL && i < n; i++) {
        frame->y += i > 0 ? MS_FRAME_LINE_PX : 0.0;
        ms_canvas_text(&frame->late, lines[i], x + SIGN_ROOM_PX,
                       frame->y + 12.0, &type, limit + 1.0);
    }
}

void ms_frame_legend(ms_frame *frame, const ms_frame_entry *entries, uint32_t n)
{
    double x = MS_FRAME_LEFT;
    frame->y += 6.0;
    for (uint32_t i = 0; i < n; i++) {
        double width =
            SIGN_ROOM_PX + width_of(entries[i].name, MS_TEXT_PX, false);
        if (x > MS_FRAME_LEFT && x + width > MS_FRAME_RIGHT) {
            x = MS_FRAME_LEFT;
            frame->y += MS_FRAME_LINE_PX;
        }
        put_entry(frame, &entries[i], x);
        x += width + ENTRY_GAP_PX;
    }
    if (n > 0)
        frame->y += MS_FRAME_LINE_PX;
}

/* ---- the script ---------------------------------------------------------- */

void ms_frame_begin(ms_frame *frame, ms_format format, double height_px)
{
    ms_text *script = frame->script;
    ms_text_add(script, "# gnuplot -d THIS_FILE > PICTURE\n");
    ms_canvas_begin(script, format, &frame->area, height_px);
    script->failed |= frame->late.failed;
    if (frame->late.length > 0)
        ms_text_put(script, frame->late.bytes, frame->late.length);
}

static void put_range(const ms_frame *frame, char axis, double from, double to)
{
    ms_text_add(frame->script, "set %crange [", axis);
    ms_text_double(frame->script, from);
    ms_text_add(frame->script, ":");
    ms_text_double(frame->script, to);
    ms_text_add(frame->script, "]\n");
}

/* gnuplot refuses a plot command with nothing to plot, so the first item is a
 * constant far outside the range. */
void ms_frame_open_plot(ms_frame *frame)
{
    put_range(frame, 'x', frame->area.x0, frame->area.x1);
    put_range(frame, 'y', -frame->area.y1, -frame->area.y0);
    ms_text_add(frame->script, "plot -1e300 notitle");
}

void ms_frame_line(const ms_frame *frame, double x0, double y0, double x1,
                   double y1, const char *color, bool in_front)
{
    ms_canvas_line(frame->script, &(ms_box){x0, y0, x1, y1},
                   in_front ? 1.0 : 0.7, color, in_front);
}

void ms_frame_text(const ms_frame *frame, const char *bytes, double x, double y,
                   ms_align align, const char *color, double limit_px)
{
    const ms_type type = {
        .size_px = MS_TEXT_PX, .color = color, .align = align};
    ms_canvas_text(frame->script, bytes, x, y, &type, limit_px);
}

/* ---- axes ---------------------------------------------------------------- */

static uint32_t find_ticks(const ms_scale *scale, double unit, double pitch_px,
                           double ticks[MS_SCALE_TICKS])
{
    double most = floor(fabs(scale->px_to - scale->px_from) / pitch_px) + 1.0;
    return ms_scale_ticks(scale, unit, most > 2.0 ? (uint32_t)most : 2, ticks);
}

static const char *number_of(const ms_frame *frame, double value)
{
    ms_text text = {.arena = frame->script->arena};
    ms_text_double(&text, fabs(value) < 1e-12 ? 0.0 : value);
    return ms_frame_bytes_of(frame, &text);
}

void ms_frame_x_tick(const ms_frame *frame, double x, const char *word,
                     double limit_px, bool is_upright)
{
    double y = frame->area.y1;
    const ms_type type = {.size_px = MS_TEXT_PX,
                          .color = MS_INK,
                          .align = is_upright ? MS_RIGHT : MS_CENTER,
                          .is_upright = is_upright};
    ms_frame_line(frame, x, y, x, y + 6.0, MS_FRAME_AXIS, true);
    ms_canvas_text(frame->script, word, x, y + (is_upright ? 10.0 : 20.0),
                   &type, limit_px);
}

void ms_frame_x_name(const ms_frame *frame, const char *name, double y)
{
    const ms_box *area = &frame->area;
    ms_frame_line(frame, area->x0, area->y1, area->x1, area->y1, MS_FRAME_AXIS,
                  true);
    ms_frame_text(frame, name, (area->x0 + area->x1) / 2, y, MS_CENTER, MS_INK,
                  area->x1 - area->x0);
}

void ms_frame_x_axis(const ms_frame *frame, const ms_scale *scale, double unit,
                     const char *name)
{
    double ticks[MS_SCALE_TICKS];
    uint32_t n = find_ticks(scale, unit, X_TICK_PX, ticks);
    for (uint32_t i = 0; i < n; i++) {
        double x = ms_scale_px(scale, ticks[i]);
        ms_frame_line(frame, x, frame->area.y0, x, frame->area.y1,
                      MS_FRAME_GRID, false);
        ms_frame_x_tick(frame, x, number_of(frame, ticks[i] / unit), X_TICK_PX,
                        false);
    }
    ms_frame_x_name(frame, name, frame->area.y1 + 50.0);
}

void ms_frame_y_axis(const ms_frame *frame, const ms_scale *scale, double unit,
                     const char *name)
{
    const ms_box *area = &frame->area;
    const ms_type upright = {.size_px = MS_TEXT_PX,
                             .color = MS_INK,
                             .align = MS_CENTER,
                             .is_upright = true};
    double ticks[MS_SCALE_TICKS];
    uint32_t n = find_ticks(scale, unit, Y_TICK_PX, ticks);
    for (uint32_t i = 0; i < n; i++) {
        double y = ms_scale_px(scale, ticks[i]);
        if (y < area->y1 - 0.5)
            ms_frame_line(frame, area->x0, y, area->x1, y, MS_FRAME_GRID,
                          false);
        ms_frame_line(frame, area->x0 - 6.0, y, area->x0, y, MS_FRAME_AXIS,
                      true);
        ms_frame_text(frame, number_of(frame, ticks[i] / unit), area->x0 - 10.0,
                      y, MS_RIGHT, MS_INK, 80.0);
    }
    ms_frame_line(frame, area->x0, area->y0, area->x0, area->y1, MS_FRAME_AXIS,
                  true);
    ms_canvas_text(frame->script, name, 16.0, (area->y0 + area->y1) / 2,
                   &upright, area->y1 - area->y0);
}

void ms_frame_capacity(ms_text *text, uint64_t capacity_bytes,
                       uint64_t usable_bytes)
{
    const ms_unit *unit = ms_units_bytes(capacity_bytes);
    ms_text_add(text, "capacity ");
    ms_units_put_bytes(text, capacity_bytes, unit);
    if (usable_bytes < capacity_bytes) {
        ms_text_add(text, " less context ");
        ms_units_put_bytes(text, capacity_bytes - usable_bytes, unit);
    }
}
