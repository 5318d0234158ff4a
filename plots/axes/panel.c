/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory of one rank over the step, in its axes: what the figures over
 * time have in common.  The capacity line lies at capacity less context: what
 * the pool may reach, so that the level crosses it exactly when the step does
 * not fit. */

#include <assert.h>
#include <math.h>

#include "plots/axes/axes.h"
#include "plots/axes/cutaxis.h"
#include "plots/axes/frame.h"
#include "plots/axes/labels.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/record/phases.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/report.h"

#define FAR_CAPACITY 3.0 /* times the peak: beyond it only a note */
#define LABEL_PX 25.0    /* height of a label */
#define STRIP_PX 27.0    /* of the phases */
#define GAP_PX 4.0       /* below it */
#define HEAD_PX 62.0     /* above the data, for the label of the peak */

static const ms_type plain = {.size_px = MS_TEXT_PX, .color = MS_INK};

/* ---- what there is to draw ----------------------------------------------- */

static void load_points(ms_panel *panel)
{
    const ms_record_rank *saw = panel->saw;
    panel->stack = (ms_stack){.points = saw->points,
                              .reserved_bytes = saw->reserved_bytes,
                              .n = saw->n_points,
                              .end_ns = saw->end_ns};
}

static void load_levels(ms_panel *panel)
{
    const ms_stack *stack = &panel->stack;
    uint32_t peak = 0;
    for (uint32_t i = 0; i < stack->n; i++)
        if (stack->points[i].total_bytes > stack->points[peak].total_bytes)
            peak = i;
    if (stack->n == 0)
        return;
    panel->peak_bytes = stack->points[peak].total_bytes;
    panel->peak_x = (double)stack->points[peak].t_ns;
}

/* What is reserved at most, which is not less than what is allocated, or what
 * else the figure shows. */
static uint64_t top_of(const ms_panel *panel)
{
    uint64_t top = panel->peak_bytes > panel->least_bytes ? panel->peak_bytes
                                                          : panel->least_bytes;
    for (uint32_t i = 0; i < panel->stack.n; i++)
        if (panel->stack.reserved_bytes[i] > top)
            top = panel->stack.reserved_bytes[i];
    return top;
}

static void set_scale(ms_panel *panel)
{
    const ms_report *report = &panel->record->report;
    ms_stack *stack = &panel->stack;
    double highest = (double)top_of(panel);
    panel->capacity_bytes = report->capacity_bytes;
    panel->context_bytes = report->context_bytes;
    panel->usable_bytes = ms_capacity_usable(report);
    double usable = (double)panel->usable_bytes;
    panel->shows_line = panel->capacity_bytes > 0 && highest > 0.0 &&
                        usable <= highest * FAR_CAPACITY;
    if (panel->shows_line && usable > highest)
        highest = usable;
    stack->bytes_unit = ms_units_bytes((uint64_t)highest);
    stack->time_unit = ms_units_time(panel->saw->has_time ? stack->end_ns : 0);
    if (panel->may_cut && ms_cutaxis_find(panel, highest))
        panel->is_below = panel->shows_line && usable < stack->base_bytes;
    panel->shows_line &= !panel->is_below;
    stack->top_bytes = highest > 0.0
                           ? ms_cutaxis_top(panel, stack->base_bytes, highest)
                           : 1024.0;
    if (stack->base_bytes <= 0.0)
        panel->step = ms_axes_step(panel, stack->top_bytes);
    stack->area = panel->area;
    panel->peak_x = ms_stack_x(stack, panel->peak_x);
    panel->peak_y = ms_stack_y(stack, (double)panel->peak_bytes);
    panel->room = (ms_room){.area = panel->area,
                            .line_y = -1.0,
                            .stack = stack,
                            .without = panel->without};
    if (panel->shows_line)
        panel->room.line_y = ms_stack_y(stack, usable);
}

/* ---- axes ---------------------------------------------------------------- */

static void put_tick_word(ms_panel *panel, double value, double x, double y,
                          ms_align align)
{
    ms_text text = {.arena = panel->arena};
    ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK, .align = align};
    ms_text_double(&text, value);
    ms_canvas_text(panel->script, ms_axes_words(panel, &text), x, y, &type,
                   70.0);
}

static void put_y_axis(ms_panel *panel)
{
    const ms_stack *stack = &panel->stack;
    const ms_box *area = &panel->area;
    double unit = (double)stack->bytes_unit->size;
    double step = panel->step, first = round(stack->base_bytes / unit / step);
    panel->room.grid_px =
        area->y1 - ms_stack_y(stack, (first + 1) * step * unit);
    for (int i = 0; (first + i) * step * unit <= stack->top_bytes; i++) {
        double y = ms_stack_y(stack, (first + i) * step * unit);
        if (i > 0)
            ms_axes_line(panel, area->x0, y, area->x1, y, MS_FRAME_GRID, false);
        ms_axes_line(panel, area->x0 - 6.0, y, area->x0, y, MS_FRAME_AXIS,
                     true);
        put_tick_word(panel, (first + i) * step, area->x0 - 10.0, y, MS_RIGHT);
    }
}

static void put_x_axis(ms_panel *panel)
{
    const ms_stack *stack = &panel->stack;
    double unit = (double)stack->time_unit->size;
    double end = (double)stack->end_ns;
    double step = ms_units_step(end / unit, 7);
    if (stack->time_unit->size == 1 && step < 1.0)
        step = 1.0;
    for (int i = 0; i * step * unit <= end; i++) {
        double x = ms_stack_x(stack, i * step * unit);
        ms_axes_line(panel, x, panel->bottom_y, x, panel->bottom_y + 6.0,
                     MS_FRAME_AXIS, true);
        put_tick_word(panel, i * step, x, panel->bottom_y + 20.0, MS_CENTER);
    }
}

static void put_axes(ms_panel *panel)
{
    const ms_box *area = &panel->area;
    double bottom = panel->bottom_y;
    put_y_axis(panel);
    put_x_axis(panel);
    ms_axes_line(panel, area->x0, area->y0, area->x0, area->y1, MS_FRAME_AXIS,
                 true);
    if (panel->stack.base_bytes <= 0.0)
        ms_axes_line(panel, area->x0, area->y1, area->x1, area->y1,
                     MS_FRAME_AXIS, true);
    if (bottom > area->y1)
        ms_axes_line(panel, area->x0, bottom, area->x1, bottom, MS_FRAME_AXIS,
                     true);
}

/* "of rank 3", where there are several, stays whatever the height. */
static void name_memory(const ms_panel *panel, const char *words, ms_text *text)
{
    ms_text_add(text, "%s", words);
    if (panel->record->report.n_ranks > 1)
        ms_text_add(text, " of rank %u", (unsigned)panel->rank->rank);
    ms_text_add(text, " (%s)", panel->stack.bytes_unit->name);
}

static void put_axis_titles(ms_panel *panel)
{
    ms_text text = {.arena = panel->arena}, full = text, shorter = text;
    ms_type type = plain;
    const ms_box *area = &panel->area;
    double height = area->y1 - area->y0;
    type.align = MS_CENTER;
    if (panel->saw->has_time)
        ms_text_add(&text, "time in step (%s)", panel->stack.time_unit->name);
    else
        ms_text_add(&text, "events in order (the step takes no time)");
    ms_canvas_text(panel->script, ms_axes_words(panel, &text),
                   (area->x0 + area->x1) / 2, panel->bottom_y + 47.0, &type,
                   area->x1 - area->x0);
    name_memory(panel, "device memory", &full);
    name_memory(panel, "memory", &shorter);
    const char *name = ms_axes_words(panel, &full);
    if (ms_escape_width(name, type.size_px, false) * MS_FRAME_SLACK > height)
        name = ms_axes_words(panel, &shorter);
    type.is_upright = true;
    ms_canvas_text(panel->script, name, 16.0, (area->y0 + area->y1) / 2, &type,
                   height);
}

/* ---- phases -------------------------------------------------------------- */

const ms_panel_phase ms_panel_phases[MS_N_PHASES + 1] = {
    [MS_PHASE_FORWARD] = {"#C9D8E8", "#F3F6FA"},
    [MS_PHASE_BACKWARD] = {"#F0DDBB", "#FCF7EF"},
    [MS_PHASE_OPTIMIZER] = {"#C7E2D4", "#F1F8F4"},
    [MS_PHASE_MIXED] = {"#DEDBD4", "#F8F7F4"},
};

/* The first word that fits is written; the last band has room beside it, in
 * front of the legend. */
static void put_band_word(ms_panel *panel, const ms_band *band, double x0,
                          double x1)
{
    ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK, .align = MS_CENTER};
    const char *const *words = ms_phases_words[band->phase];
    double middle = (panel->strip.y0 + panel->strip.y1) / 2;
    bool is_last = band == &panel->saw->bands[panel->saw->n_bands - 1] &&
                   x0 > panel->area.x0;
    for (int i = 0; i < MS_PHASE_WORDS - is_last; i++) {
        double width = ms_escape_width(words[i], type.size_px, false) + 3.0;
        if (width > x1 - x0)
            continue;
        ms_canvas_text(panel->script, words[i], (x0 + x1) / 2, middle, &type,
                       width);
        return;
    }
    if (is_last) {
        type.align = MS_LEFT;
        ms_canvas_text(panel->script, words[1], x1 + 5.0, middle, &type,
                       MS_FRAME_RIGHT - x1);
    }
}

static void put_bands(ms_panel *panel)
{
    panel->room.walls = panel->walls;
    for (uint32_t i = 0; i < panel->saw->n_bands; i++) {
        const ms_band *band = &panel->saw->bands[i];
        double x0 = ms_stack_x(&panel->stack, (double)band->from_ns);
        double x1 = ms_stack_x(&panel->stack, (double)band->to_ns);
        ms_box on_strip = {x0, panel->strip.y0, x1, panel->strip.y1};
        ms_box on_area = {x0, panel->area.y0, x1, panel->bottom_y};
        ms_canvas_box(panel->script, &on_strip,
                      ms_panel_phases[band->phase].strip, false);
        ms_canvas_box(panel->script, &on_area,
                      ms_panel_phases[band->phase].tint, false);
        if (i > 0 && panel->saw->n_bands <= MS_PANEL_MOST_WALLS) {
            ms_axes_line(panel, x0, panel->area.y0, x0, panel->bottom_y,
                         "#B4B4B4", false);
            panel->walls[panel->room.n_walls++] = x0;
        }
        put_band_word(panel, band, x0, x1);
    }
}

/* ---- capacity and peak --------------------------------------------------- */

/* With a background where the box lies on something. */
static void put_boxed(ms_panel *panel, const char *bytes, const ms_box *box,
                      const ms_type *type, bool covers)
{
    double aside = (box->x1 - box->x0) * (1.0 - 1.0 / MS_FRAME_SLACK) - 6.0;
    ms_box tight = *box;
    if (type->align != MS_LEFT)
        tight.x0 += type->align == MS_CENTER ? aside / 2 : aside;
    if (type->align != MS_RIGHT)
        tight.x1 -= type->align == MS_CENTER ? aside / 2 : aside;
    if (covers)
        ms_canvas_box(panel->script, &tight, "#FFFFFF", true);
    double x = type->align == MS_LEFT    ? box->x0
               : type->align == MS_RIGHT ? box->x1
                                         : (box->x0 + box->x1) / 2;
    ms_canvas_text(panel->script, bytes, x, (box->y0 + box->y1) / 2, type,
                   box->x1 - box->x0);
}

/* is_short: without the context. */
static const char *name_capacity(const ms_panel *panel, bool is_short)
{
    ms_text text = {.arena = panel->arena};
    const ms_unit *unit = ms_units_bytes(panel->capacity_bytes);
    ms_text_add(&text, panel->shows_line ? "capacity " : "↑ capacity ");
    ms_units_put_bytes(&text, panel->capacity_bytes, unit);
    if (panel->context_bytes > 0 && panel->shows_line && !is_short) {
        ms_text_add(&text, " less context%s ",
                    panel->record->report.outside.nccl_bytes > 0 ? ", NCCL"
                                                                 : "");
        ms_units_put_bytes(&text, panel->context_bytes, unit);
    }
    return ms_axes_words(panel, &text);
}

static const char *name_peak(ms_panel *panel)
{
    ms_text text = {.arena = panel->arena};
    ms_text_add(&text, "peak ");
    ms_units_put_number(&text, panel->peak_bytes, panel->stack.bytes_unit);
    ms_text_add(&text, " %s", panel->stack.bytes_unit->name);
    if (panel->saw->has_time) {
        ms_text_add(&text, " at ");
        ms_units_put_time(&text, panel->rank->peak.t_ns);
    }
    return ms_axes_words(panel, &text);
}

/* A capacity that lies far above the axis is only named. */
static bool place_capacity(const ms_panel *panel, double width, ms_box *box)
{
    return (panel->shows_line ? ms_labels_line : ms_labels_top)(
        &panel->room, &panel->stack, panel->peak_x, width, LABEL_PX, box);
}

static void put_capacity(ms_panel *panel, const char *bytes, const ms_box *box,
                         bool on_areas)
{
    double y = panel->room.line_y;
    ms_type type = {
        .size_px = MS_TEXT_PX, .color = MS_FRAME_RED, .align = MS_CENTER};
    if (panel->shows_line)
        ms_canvas_line(panel->script,
                       &(ms_box){panel->area.x0, y, panel->area.x1, y}, 1.6,
                       MS_FRAME_RED, true);
    put_boxed(panel, bytes, box, &type,
              on_areas || ms_labels_on_lines(&panel->room, box));
}

static void put_peak(ms_panel *panel, const char *bytes, const ms_box *box)
{
    bool on_left = box->x1 < panel->peak_x;
    ms_box arrow = {on_left ? box->x1 + 3.0 : box->x0 - 3.0,
                    (box->y0 + box->y1) / 2, panel->peak_x, panel->peak_y};
    if (!on_left && box->x0 < panel->peak_x) /* right above it */
        arrow.x0 = panel->peak_x, arrow.y0 = box->y1;
    ms_type type = {.size_px = MS_TEXT_PX,
                    .color = "#000000",
                    .align = on_left ? MS_RIGHT : MS_LEFT};
    ms_canvas_arrow(panel->script, &arrow, type.color);
    put_boxed(panel, bytes, box, &type, ms_labels_on_lines(&panel->room, box));
}

static double width_of(const char *bytes)
{
    return ms_escape_width(bytes, MS_TEXT_PX, false) * MS_FRAME_SLACK;
}

static ms_box place_peak(ms_panel *panel, const char *bytes, bool left_first)
{
    double x = panel->peak_x, y = panel->peak_y;
    ms_box box = ms_labels_peak(&panel->room, x, y, width_of(bytes), LABEL_PX,
                                left_first);
    double end = box.x1 < x ? box.x1 : box.x0; /* of the arrow */
    panel->room.taken[0] = box;
    panel->room.taken[1] =
        (ms_box){fmin(end, x) - 5.0, box.y0, fmax(end, x) + 5.0, y};
    return box;
}

/* The peak's label goes to its right, or to its left if only so the
 * capacity's label finds room; that says less if only so it does. */
static void put_labels(ms_panel *panel)
{
    ms_box peak = {0}, capacity = {0};
    bool has_room = false, has_peak = panel->peak_bytes > 0;
    const char *of_peak = name_peak(panel), *of_capacity = "";
    for (int try = 0; try < 4 && !has_room; try++) {
        of_capacity = name_capacity(panel, try >= 2);
        if (has_peak)
            peak = place_peak(panel, of_peak, try % 2 > 0);
        has_room = panel->is_below ||
                   place_capacity(panel, width_of(of_capacity), &capacity);
    }
    if (panel->capacity_bytes > 0 && !panel->is_below)
        put_capacity(panel, of_capacity, &capacity,
                     panel->shows_line && !has_room);
    if (has_peak)
        put_peak(panel, of_peak, &peak);
}

ms_panel ms_panel_of(const ms_record *record, uint32_t rank,
                     const ms_frame *frame)
{
    double y = frame->y + 6.0;
    assert(rank < record->report.n_ranks);
    return (ms_panel){
        .record = record,
        .rank = &record->report.ranks[rank],
        .saw = record->ranks != NULL ? &record->ranks[rank] : NULL,
        .script = frame->script,
        .arena = frame->script->arena,
        .strip = {MS_PANEL_X0, y, MS_PANEL_X1, y + STRIP_PX},
        .area = {MS_PANEL_X0, y + STRIP_PX + GAP_PX, MS_PANEL_X1, 0.0},
        .head_room = HEAD_PX};
}

void ms_panel_open(ms_panel *panel)
{
    load_points(panel);
    load_levels(panel);
    set_scale(panel);
}

/* Boxes behind the data are drawn in the order written: tints, then grid. */
void ms_panel_draw(ms_panel *panel)
{
    put_bands(panel);
    put_axes(panel);
    put_axis_titles(panel);
    put_labels(panel);
}

bool ms_panel_is_over(const ms_panel *panel)
{
    return panel->shows_line && panel->peak_bytes > panel->usable_bytes;
}

static void put_range(ms_text *script, char axis, double from, double to)
{
    ms_text_add(script, "set %crange [", axis);
    ms_text_double(script, from);
    ms_text_add(script, ":");
    ms_text_double(script, to);
    ms_text_add(script, "]\n");
}

/* What is out of sight comes first, so that the plot is never empty. */
void ms_panel_open_plot(const ms_panel *panel)
{
    const ms_box *area = &panel->area;
    const ms_stack *stack = &panel->stack;
    double base = stack->base_bytes / (double)stack->bytes_unit->size;
    double top = stack->top_bytes / (double)stack->bytes_unit->size;
    double below = (panel->bottom_y - area->y1) / (area->y1 - area->y0);
    if (ms_panel_is_over(panel))
        ms_stack_write_hatch(stack, (double)panel->usable_bytes, panel->script);
    put_range(panel->script, 'x', 0.0,
              (double)stack->end_ns / (double)stack->time_unit->size);
    put_range(panel->script, 'y', base - below * (top - base), top);
    ms_text_add(panel->script, "plot -1e300 notitle");
}

void ms_panel_close_plot(const ms_panel *panel)
{
    if (ms_panel_is_over(panel))
        ms_text_add(panel->script,
                    ", \\\n  $over using 1:2 with lines linewidth 0.7 "
                    "linecolor rgb '" MS_PANEL_HATCH "' notitle");
    ms_text_add(panel->script, "\n");
}
