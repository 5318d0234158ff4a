/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One bar for each run: its peak by category, with the time of its step
 * beside the bar. */

#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/wrap.h"
#include "plots/plots.h"
#include "plots/record/works.h"

#define MOST_ROWS 40u
#define NAMES_PX (0.4 * MS_FIGURE_WIDTH) /* the widest column of names */
#define ROW_PX 36.0 /* from a bar to the next, where there are few */
#define CLOSE_ROW_PX 29.0
#define FEW_ROWS 12u
#define LINE_PX 22.0     /* from one line of a name to its next, */
#define BETWEEN_PX 10.0  /* and from its last line to the next row */
#define NAME_GAP_PX 10.0 /* between a name and its bar */
#define WORD_GAP_PX 7.0  /* before the words that replace a bar */
#define COLUMN_GAP_PX 18.0
/* In lengths of the longest bar.  A capacity farther away than this would
 * squeeze all bars against the left, so a nearer one sets the axis. */
#define NEAR 2.5

struct scene {
    ms_frame frame;
    ms_strips strips;
    ms_look looks[MS_STRIPS_MEMORY];
    const ms_bar *bars;
    uint32_t n, more; /* bars that are drawn, and bars that are not */
    uint64_t (*parts)[MS_STRIPS_MOST];
    uint64_t longest_ns; /* the longest step; 0: no step takes time */
    const ms_unit *time_unit;
    double names_px, times_px; /* widths of the columns */
    double pitch;
    uint32_t most_lines; /* of a name */
};

static double width_of(const char *bytes)
{
    return ms_escape_width(bytes, MS_TEXT_PX, false) * MS_FRAME_SLACK;
}

/* ---- what there is to draw ----------------------------------------------- */

static ms_err load(struct scene *scene, ms_arena *arena, ms_fault *fault)
{
    scene->parts = ms_arena_take(arena, scene->n, sizeof *scene->parts);
    if (scene->parts == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < scene->n; i++) {
        const ms_bar *bar = &scene->bars[i];
        if (bar->step_ns > scene->longest_ns)
            scene->longest_ns = bar->step_ns;
        if (bar->instead == NULL)
            ms_strips_memory_parts(bar->by_category, bar->reserved_bytes,
                                   scene->parts[i]);
    }
    scene->time_unit = ms_units_time(scene->longest_ns);
    ms_strips_memory_looks(scene->looks);
    ms_strips_open(&scene->strips,
                   (const uint64_t(*)[MS_STRIPS_MOST])scene->parts, scene->n);
    return MS_OK;
}

/* ---- capacities ---------------------------------------------------------- */

static bool is_limit(const ms_limit *a, const ms_limit *b)
{
    return a->capacity_bytes == b->capacity_bytes &&
           a->usable_bytes == b->usable_bytes;
}

/* The first of the bars that has this limit. */
static uint32_t first_with(const struct scene *scene, const ms_limit *limit)
{
    uint32_t i = 0;
    while (scene->bars[i].instead != NULL ||
           !is_limit(&scene->bars[i].limit, limit))
        i++;
    return i;
}

/* Where the capacities differ, the axis reaches to the highest one that is not
 * far beyond all bars, or else to the lowest one. */
static bool is_better(const ms_limit *a, const ms_limit *b, double far)
{
    bool near_a = (double)a->usable_bytes <= far;
    bool near_b = (double)b->usable_bytes <= far;
    if (near_a != near_b)
        return near_a;
    return near_a ? a->usable_bytes > b->usable_bytes
                  : a->usable_bytes < b->usable_bytes;
}

static void find_limits(struct scene *scene)
{
    const ms_limit *best = NULL;
    uint64_t highest = 0;
    for (uint32_t i = 0; i < scene->n; i++)
        if (scene->bars[i].reserved_bytes > highest)
            highest = scene->bars[i].reserved_bytes;
    for (uint32_t i = 0; i < scene->n; i++) {
        const ms_limit *limit = &scene->bars[i].limit;
        if (scene->bars[i].instead != NULL)
            continue;
        scene->strips.differ |= best != NULL && first_with(scene, limit) == i;
        if (best == NULL || is_better(limit, best, NEAR * (double)highest))
            best = limit;
    }
    if (best != NULL) {
        scene->strips.capacity_bytes = best->capacity_bytes;
        scene->strips.usable_bytes = best->usable_bytes;
    }
}

/* "red lines: capacity less context, 78.69 GiB of h100-80gb-sxm, ..." */
static const char *note_of(const struct scene *scene)
{
    ms_text note = {.arena = scene->frame.script->arena};
    const char *before = "red lines: capacity less context, ";
    if (!scene->strips.differ)
        return NULL;
    for (uint32_t i = 0; i < scene->n; i++) {
        const ms_limit *limit = &scene->bars[i].limit;
        if (scene->bars[i].instead != NULL || limit->usable_bytes == 0 ||
            first_with(scene, limit) != i)
            continue;
        ms_text_add(&note, "%s", before);
        ms_units_put_bytes(&note, limit->usable_bytes,
                           ms_units_bytes(limit->usable_bytes));
        ms_text_add(&note, " of ");
        ms_text_put(&note, limit->device, strlen(limit->device));
        before = ", ";
    }
    return ms_frame_bytes_of(&scene->frame, &note);
}

/* ---- texts --------------------------------------------------------------- */

static const char *time_of(const struct scene *scene, uint32_t row)
{
    ms_text text = {.arena = scene->frame.script->arena};
    if (scene->bars[row].step_ns == 0)
        return "";
    ms_units_put_decimals(&text, scene->bars[row].step_ns, scene->time_unit,
                          scene->longest_ns);
    return ms_frame_bytes_of(&scene->frame, &text);
}

static const char *times_heading(const struct scene *scene)
{
    ms_text text = {.arena = scene->frame.script->arena};
    ms_text_add(&text, "step (%s)", scene->time_unit->name);
    return ms_frame_bytes_of(&scene->frame, &text);
}

/* ---- places -------------------------------------------------------------- */

/* The lines of a row's name; returns how many. */
static uint32_t lines_of(const struct scene *scene, uint32_t row,
                         const char *const **lines)
{
    uint32_t n;
    *lines = ms_wrap_lines(scene->bars[row].name, MS_TEXT_PX, false,
                           NAMES_PX / MS_FRAME_SLACK,
                           scene->frame.script->arena, &n);
    scene->frame.script->failed |= *lines == NULL;
    return *lines != NULL ? n : 0;
}

static void find_columns(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->n; i++) {
        const char *const *lines;
        uint32_t n_lines = lines_of(scene, i, &lines);
        if (n_lines > scene->most_lines)
            scene->most_lines = n_lines;
        for (uint32_t k = 0; k < n_lines; k++)
            scene->names_px = fmax(scene->names_px, width_of(lines[k]));
        scene->times_px = fmax(scene->times_px, width_of(time_of(scene, i)));
    }
    scene->names_px = fmin(scene->names_px, NAMES_PX);
    if (scene->longest_ns > 0)
        scene->times_px = COLUMN_GAP_PX +
                          fmax(scene->times_px, width_of(times_heading(scene)));
}

static void place(struct scene *scene)
{
    ms_frame *frame = &scene->frame;
    ms_strips *strips = &scene->strips;
    find_columns(scene);
    ms_strips_legend(frame, scene->looks, MS_STRIPS_MEMORY, strips->shown);
    double y0 = frame->y + 4.0;
    if ((strips->usable_bytes > 0 && !strips->differ) || scene->longest_ns > 0)
        y0 += MS_STRIPS_HEAD_PX;
    uint32_t rows = scene->n + (scene->more > 0);
    scene->pitch = scene->n > FEW_ROWS ? CLOSE_ROW_PX : ROW_PX;
    if (scene->most_lines > 1)
        scene->pitch = BETWEEN_PX + LINE_PX * scene->most_lines;
    frame->area = (ms_box){MS_FRAME_LEFT + scene->names_px + NAME_GAP_PX, y0,
                           MS_FRAME_RIGHT - scene->times_px,
                           y0 + scene->pitch * rows + 2 * MS_STRIPS_EDGE_PX};
    ms_strips_place(strips, frame, &frame->area);
}

static double row_y(const struct scene *scene, uint32_t row)
{
    return scene->frame.area.y0 + MS_STRIPS_EDGE_PX +
           scene->pitch * (row + 0.5);
}

/* ---- drawing ------------------------------------------------------------- */

/* Writes words in the place of a bar. */
static void put_words(const struct scene *scene, const char *words,
                      uint32_t row)
{
    const ms_box *area = &scene->frame.area;
    double y = row_y(scene, row), x = area->x0 + WORD_GAP_PX;
    double width = fmin(width_of(words), area->x1 - x);
    ms_frame_text(&scene->frame, words, x, y, MS_LEFT, MS_GREY, width);
    if (!scene->strips.differ)
        ms_strips_wall(&scene->strips, y, scene->pitch, x, x + width);
}

static void put_name(const struct scene *scene, uint32_t row)
{
    const ms_frame *frame = &scene->frame;
    const char *const *lines;
    uint32_t n = lines_of(scene, row, &lines);
    double y = row_y(scene, row) - LINE_PX * (n - 1.0) / 2;
    for (uint32_t k = 0; k < n; k++)
        ms_frame_text(frame, lines[k], frame->area.x0 - NAME_GAP_PX,
                      y + LINE_PX * k, MS_RIGHT, MS_INK,
                      scene->names_px / MS_FRAME_SLACK + MS_STRIPS_ROUNDED_PX);
}

static void put_row(const struct scene *scene, uint32_t row)
{
    const ms_frame *frame = &scene->frame;
    const ms_bar *bar = &scene->bars[row];
    double y = row_y(scene, row);
    put_name(scene, row);
    ms_frame_text(frame, time_of(scene, row), MS_FRAME_RIGHT, y, MS_RIGHT,
                  MS_INK, scene->times_px);
    if (bar->instead != NULL) {
        put_words(scene, bar->instead, row);
        return;
    }
    ms_strips own = scene->strips;
    if (own.differ)
        ms_strips_limit(&own, bar->limit.usable_bytes);
    ms_strips_bar(&own, scene->parts[row], y, scene->pitch, bar->fits);
}

static void put_more(const struct scene *scene)
{
    ms_text text = {.arena = scene->frame.script->arena};
    if (scene->more == 0)
        return;
    ms_text_add(&text, "and %u more, not drawn", scene->more);
    put_words(scene, ms_frame_bytes_of(&scene->frame, &text), scene->n);
}

static void put_times_heading(const struct scene *scene)
{
    if (scene->longest_ns > 0)
        ms_frame_text(&scene->frame, times_heading(scene), MS_FRAME_RIGHT,
                      scene->frame.area.y0 - 18.0, MS_RIGHT, MS_GREY,
                      scene->times_px);
}

static void draw(struct scene *scene, ms_format format)
{
    ms_frame_begin(&scene->frame, format, ceil(scene->frame.area.y1 + 70.0));
    ms_strips_axis(&scene->strips,
                   scene->frame.drawing->per_gpu ? "peak device memory per GPU"
                                                 : "peak device memory",
                   MS_FRAME_LEFT);
    put_times_heading(scene);
    for (uint32_t row = 0; row < scene->n; row++)
        put_row(scene, row);
    put_more(scene);
    ms_strips_blocks(&scene->strips,
                     (const uint64_t(*)[MS_STRIPS_MOST])scene->parts, scene->n,
                     row_y(scene, 0), scene->pitch);
    ms_frame_open_plot(&scene->frame);
    ms_strips_plot(&scene->strips);
    ms_text_add(scene->frame.script, "\n");
}

ms_err ms_figure_bars(const ms_bar *bars, uint32_t n, const ms_drawing *drawing,
                      ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct scene scene = {.frame = ms_frame_of(drawing, &script),
                          .bars = bars,
                          .n = n < MOST_ROWS ? n : MOST_ROWS,
                          .more = n < MOST_ROWS ? 0 : n - MOST_ROWS};
    scene.strips = (ms_strips){.script = &script,
                               .block = "memory",
                               .looks = scene.looks,
                               .n_looks = MS_STRIPS_MEMORY};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (n == 0)
        return ms_fail(fault, MS_EINPUT, "figure bars",
                       "give it at least one run",
                       "no run has numbers: there is nothing to draw");
    find_limits(&scene);
    MS_TRY(load(&scene, drawing->arena, fault));
    ms_frame_heading(&scene.frame, note_of(&scene));
    place(&scene);
    draw(&scene, format);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
