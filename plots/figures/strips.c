/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/record/record.h"
#include "plots/record/works.h"
#include "sim/measure/waits.h"
#include "sim/report.h"

#define UNALLOCATED "#D9D9D9"
#define PALE "#E9E9E9"
#define SWATCH_PX 18.0
#define SWATCH_ROOM_PX 26.0
#define ENTRY_GAP_PX 24.0  /* between the entries of a legend */
#define LEAST_GAP_PX 12.0  /* the same where it saves a line */
#define NUMBER_ROOM_PX 8.0 /* beside a number within its part */
#define WALL_ROOM_PX 4.0
#define SEAM_PX 1.0      /* the gap between parts */
#define WIDE_PX 4.0      /* a narrower part has no gap */
#define SEEN 0.001       /* of the longest bar: shorter parts cannot be seen */
#define FAR_CAPACITY 3.0 /* times the longest bar: beyond it only a note */
#define TOTAL_GAP_PX 7.0 /* between a bar and its total */
#define BROKEN 2.0 /* times the capacity or the bars near it: the axis ends */
#define BREAK_PX 16.0 /* from the end of a broken bar to its sign */

/* ---- the parts of bars --------------------------------------------------- */

/* The parts from the left: first what stays as it is, then what a policy
 * changes, in the order of the timeline's figure from the bottom. */
static const struct {
    ms_category category;
    const char *words;
} memory[MS_N_CATEGORIES] = {
    {MS_PARAMETERS, "parameters"},
    {MS_OPTIMIZER_STATE, "optimizer state"},
    {MS_WORKSPACE, "workspace"},
    {MS_INPUTS, "inputs"},
    {MS_GRADIENTS, "gradients"},
    {MS_ACTIVATIONS, "activations"},
    {MS_COMMUNICATION, "communication"},
    {MS_TEMPORARIES, "temporaries"},
};

void ms_strips_memory_looks(ms_look looks[MS_STRIPS_MEMORY])
{
    for (int i = 0; i < MS_N_CATEGORIES; i++)
        looks[i] = (ms_look){memory[i].words,
                             ms_canvas_category_color[memory[i].category]};
    looks[MS_N_CATEGORIES] = (ms_look){"reserved, unallocated", UNALLOCATED};
}

void ms_strips_memory_parts(const uint64_t by_category[MS_N_CATEGORIES],
                            uint64_t reserved_bytes,
                            uint64_t parts[MS_STRIPS_MOST])
{
    uint64_t allocated_bytes = 0;
    memset(parts, 0, MS_STRIPS_MOST * sizeof *parts);
    for (int i = 0; i < MS_N_CATEGORIES; i++)
        allocated_bytes += parts[i] = by_category[memory[i].category];
    if (reserved_bytes > allocated_bytes)
        parts[MS_N_CATEGORIES] = reserved_bytes - allocated_bytes;
}

/* Time for which the compute stream waits counts as the wait for its cause;
 * copies that this stream makes itself count as work. */
static ms_work work_of_cause(int cause)
{
    return cause == MS_CAUSE_PACK ? MS_WORK_PACK
                                  : (ms_work)ms_works_wait[cause];
}

void ms_strips_time_parts(const ms_rank_report *rank,
                          uint64_t parts[MS_STRIPS_MOST])
{
    const ms_times *time = &rank->time;
    memset(parts, 0, MS_STRIPS_MOST * sizeof *parts);
    for (int cause = 0; cause < MS_N_CAUSES; cause++)
        parts[work_of_cause(cause)] += rank->stalls_ns[cause];
    parts[MS_WORK_FORWARD] = time->forward_ns;
    parts[MS_WORK_RECOMPUTE] = time->recompute_ns;
    parts[MS_WORK_BACKWARD] = time->backward_ns;
    parts[MS_WORK_OPTIMIZER] = time->optimizer_ns;
    parts[MS_WORK_IDLE] = time->idle_ns;
}

uint64_t ms_strips_sum(const uint64_t parts[MS_STRIPS_MOST])
{
    uint64_t sum = 0;
    for (uint32_t part = 0; part < MS_STRIPS_MOST; part++)
        sum += parts[part];
    return sum;
}

/* ---- colours ------------------------------------------------------------- */

const char *ms_strips_color(const ms_look *look)
{
    return look->color != NULL ? look->color : PALE;
}

/* The relative luminance is that of WCAG 2 (section "relative luminance").
 * White and MS_INK contrast alike with a colour of 0.19. */
const char *ms_strips_ink(const char *color)
{
    static const double weights[] = {0.0722, 0.7152, 0.2126};
    unsigned long rgb = strtoul(color + 1, NULL, 16);
    double luminance = 0.0;
    for (int i = 0; i < 3; i++, rgb >>= 8)
        luminance += weights[i] * pow((double)(rgb & 0xff) / 255.0, 2.2);
    return luminance > 0.19 ? MS_INK : "#FFFFFF";
}

static double width_of(const char *bytes, bool is_bold)
{
    return ms_escape_width(bytes, MS_TEXT_PX, is_bold) * MS_FRAME_SLACK;
}

/* ---- legend -------------------------------------------------------------- */

static double entry_px(const ms_look *look)
{
    return SWATCH_ROOM_PX + width_of(look->words, false);
}

/* The gap between entries: the smaller one where all of them fit into one line
 * then. */
static double entry_gap(const ms_look *looks, uint32_t n, const bool *shown)
{
    double room = MS_FRAME_RIGHT - MS_FRAME_LEFT, entries = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        room -= shown[i] ? entry_px(&looks[i]) : 0.0;
        entries += shown[i];
    }
    double gap = entries > 1.0 ? floor(room / (entries - 1.0)) : ENTRY_GAP_PX;
    return gap >= LEAST_GAP_PX && gap < ENTRY_GAP_PX ? gap : ENTRY_GAP_PX;
}

static void put_entry(ms_frame *frame, const ms_look *look, double x)
{
    const ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK};
    double y = frame->y + 12.0, half = SWATCH_PX / 2;
    ms_canvas_box(&frame->late, &(ms_box){x, y - half, x + SWATCH_PX, y + half},
                  ms_strips_color(look), false);
    ms_canvas_text(&frame->late, look->words, x + SWATCH_ROOM_PX, y, &type,
                   MS_FRAME_RIGHT - x);
}

void ms_strips_legend(ms_frame *frame, const ms_look *looks, uint32_t n,
                      const bool *shown)
{
    double x = MS_FRAME_LEFT, gap = entry_gap(looks, n, shown);
    frame->y += 6.0;
    for (uint32_t i = 0; i < n; i++) {
        double width = entry_px(&looks[i]);
        if (!shown[i])
            continue;
        if (x > MS_FRAME_LEFT && x + width > MS_FRAME_RIGHT) {
            x = MS_FRAME_LEFT;
            frame->y += MS_FRAME_LINE_PX;
        }
        put_entry(frame, &looks[i], x);
        x += width + gap;
    }
    frame->y += MS_FRAME_LINE_PX;
}

/* ---- the axis ------------------------------------------------------------ */

static const char *bytes_of(const ms_strips *strips, const ms_text *text)
{
    if (!text->failed)
        return text->bytes;
    strips->script->failed = true;
    return "";
}

static const char *number_of(const ms_strips *strips, uint64_t value)
{
    ms_text text = {.arena = strips->script->arena};
    ms_units_put_decimals(&text, value, strips->unit, strips->top);
    return bytes_of(strips, &text);
}

static void find_shown(ms_strips *strips,
                       const uint64_t (*parts)[MS_STRIPS_MOST], uint32_t n)
{
    double least = strips->most * SEEN;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t part = 0; part < strips->n_looks; part++)
            strips->shown[part] |=
                parts[i][part] > 0 && (double)parts[i][part] >= least;
}

/* Finds where the axis ends.  If the capacity is near one bar and others are
 * far longer, these are broken soon beyond it. */
static double most_of(const ms_strips *strips,
                      const uint64_t (*parts)[MS_STRIPS_MOST], uint32_t n)
{
    double far = (double)strips->usable_bytes * FAR_CAPACITY, near = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double sum = (double)ms_strips_sum(parts[i]);
        if (sum <= far)
            near = fmax(near, sum);
    }
    double most = BROKEN * fmax(near, (double)strips->usable_bytes);
    return near > 0.0 && (double)strips->highest > far
               ? most
               : (double)strips->highest;
}

void ms_strips_open(ms_strips *strips, const uint64_t (*parts)[MS_STRIPS_MOST],
                    uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t sum = ms_strips_sum(parts[i]);
        if (sum > strips->highest)
            strips->highest = sum;
    }
    strips->most = most_of(strips, parts, n);
    find_shown(strips, parts, n);
    uint64_t top = strips->highest, usable = strips->usable_bytes;
    if (strips->most < (double)top)
        top = (uint64_t)strips->most;
    strips->shows_line =
        usable > 0 && (double)usable <= (double)top * FAR_CAPACITY;
    if (strips->shows_line && usable > top)
        top = usable;
    strips->unit = (strips->is_time ? ms_units_time : ms_units_bytes)(top);
    strips->top = top;
    for (uint32_t i = 0; i < n && !strips->is_time; i++)
        strips->totals_px =
            fmax(strips->totals_px,
                 width_of(number_of(strips, ms_strips_sum(parts[i])), true));
}

/* The scale is as long as all bars with their totals and the capacity line
 * allow. */
void ms_strips_place(ms_strips *strips, const ms_frame *frame,
                     const ms_box *area)
{
    double room = area->x1 - area->x0, beside = strips->totals_px;
    double usable = strips->shows_line ? (double)strips->usable_bytes : 0.0;
    if (beside > 0.0)
        beside += TOTAL_GAP_PX;
    double top = strips->most * room / (room - beside);
    strips->scale = (ms_scale){.from = 0.0,
                               .to = fmax(fmax(top, usable * 1.02), 1.0),
                               .px_from = area->x0,
                               .px_to = area->x1};
    strips->frame = *frame;
    strips->frame.area = *area;
    if (strips->shows_line)
        strips->wall_x = ms_scale_px(&strips->scale, usable);
}

void ms_strips_limit(ms_strips *strips, uint64_t usable_bytes)
{
    double usable = (double)usable_bytes;
    strips->shows_line = usable_bytes > 0 && usable <= strips->scale.to;
    strips->wall_x =
        strips->shows_line ? ms_scale_px(&strips->scale, usable) : 0.0;
}

static void put_wall(const ms_strips *strips, double from_y, double to_y)
{
    ms_canvas_line(
        strips->script,
        &(ms_box){strips->wall_x, from_y, strips->wall_x, to_y + 0.5}, 1.8,
        MS_FRAME_RED, true);
}

void ms_strips_wall(const ms_strips *strips, double y, double pitch,
                    double from_x, double to_x)
{
    double top = y - pitch / 2, bottom = y + pitch / 2;
    bool strikes = strips->wall_x > from_x - 3.0 && strips->wall_x < to_x + 3.0;
    if (!strips->shows_line)
        return;
    put_wall(strips, top, strikes ? y - MS_TEXT_PX / 2 - 1.0 : bottom);
    if (strikes)
        put_wall(strips, y + MS_TEXT_PX / 2 + 0.5, bottom);
}

/* Writes the capacity on its line, or beside it where the edge of the area is
 * near. */
static void put_capacity(const ms_strips *strips, double from_x)
{
    const ms_box *area = &strips->frame.area;
    ms_text text = {.arena = strips->script->arena};
    if (strips->usable_bytes == 0 || strips->differ)
        return;
    ms_frame_capacity(&text, strips->capacity_bytes, strips->usable_bytes);
    ms_text_add(&text, "%s", strips->shows_line ? "" : " →");
    const char *bytes = bytes_of(strips, &text);
    double half = width_of(bytes, false) / 2, x = strips->wall_x;
    if (!strips->shows_line) {
        x = area->x1;
    } else {
        put_wall(strips, area->y0 - 4.0, area->y0 + MS_STRIPS_EDGE_PX);
        put_wall(strips, area->y1 - MS_STRIPS_EDGE_PX, area->y1 - 0.5);
    }
    x = fmax(fmin(x, area->x1 - half), from_x + half);
    ms_frame_text(&strips->frame, bytes, x, area->y0 - 18.0, MS_CENTER,
                  MS_FRAME_RED, area->x1 - from_x);
}

void ms_strips_axis(const ms_strips *strips, const char *name, double from_x)
{
    const ms_frame *frame = &strips->frame;
    const ms_box *area = &frame->area;
    ms_text text = {.arena = strips->script->arena};
    ms_text_add(&text, "%s (%s)", name, strips->unit->name);
    ms_frame_x_axis(frame, &strips->scale, (double)strips->unit->size,
                    bytes_of(strips, &text));
    ms_frame_line(frame, area->x0, area->y0, area->x0, area->y1, MS_FRAME_AXIS,
                  true);
    put_capacity(strips, from_x);
}

/* ---- bars ---------------------------------------------------------------- */

/* Puts the number in the middle of the part, or where the capacity line runs
 * through the part in the middle of its longer side. */
static void put_number(const ms_strips *strips, const ms_look *look,
                       uint64_t value, double x0, double x1, double y)
{
    const char *bytes = number_of(strips, value);
    double width = ms_escape_width(bytes, MS_TEXT_PX, false);
    double wall = strips->wall_x, half = width / 2 + WALL_ROOM_PX;
    if (fabs((x0 + x1) / 2 - wall) < half) {
        if (wall - x0 > x1 - wall)
            x1 = wall;
        else
            x0 = wall;
    }
    if (x1 - x0 >= width + NUMBER_ROOM_PX)
        ms_frame_text(&strips->frame, bytes, (x0 + x1) / 2, y, MS_CENTER,
                      ms_strips_ink(ms_strips_color(look)), x1 - x0);
}

/* Puts the total and returns where it ends. */
static double put_total(const ms_strips *strips, uint64_t sum, double x,
                        double y, bool fits)
{
    const ms_type type = {.size_px = MS_TEXT_PX,
                          .color = fits ? "#000000" : MS_FRAME_RED,
                          .is_bold = true};
    const char *bytes = number_of(strips, sum);
    double width = width_of(bytes, true);
    ms_canvas_text(strips->script, bytes, x, y, &type, width);
    return x + width;
}

static void put_break(const ms_strips *strips, double x, double y,
                      double height)
{
    for (int i = 0; i < 2; i++, x += 6.0)
        ms_canvas_line(strips->script,
                       &(ms_box){x - 4.0, y + height / 2 + 1.0, x + 4.0,
                                 y - height / 2 - 1.0},
                       2.0, "#FFFFFF", true);
}

/* The position at which a level is drawn. */
static double level_px(const ms_strips *strips, double level)
{
    return ms_scale_px(&strips->scale, fmin(level, strips->most));
}

void ms_strips_bar(const ms_strips *strips,
                   const uint64_t parts[MS_STRIPS_MOST], double y, double pitch,
                   bool fits)
{
    double from = 0.0, x0 = ms_scale_px(&strips->scale, 0.0);
    bool is_broken = (double)ms_strips_sum(parts) > strips->most;
    for (uint32_t part = 0; part < strips->n_looks; part++) {
        from += (double)parts[part];
        double x1 = level_px(strips, from), end = x1;
        if (is_broken && from >= strips->most)
            end -= BREAK_PX + 6.0;
        if (strips->shown[part] && parts[part] > 0)
            put_number(strips, &strips->looks[part], parts[part], x0, end, y);
        x0 = x1;
    }
    if (is_broken)
        put_break(strips, x0 - BREAK_PX, y, pitch * MS_STRIPS_FILL);
    if (strips->is_time)
        return;
    x0 += TOTAL_GAP_PX;
    ms_strips_wall(strips, y, pitch, x0,
                   put_total(strips, ms_strips_sum(parts), x0, y, fits));
}

/* ---- data ---------------------------------------------------------------- */

static void put_bar(const ms_strips *strips, const uint64_t *parts,
                    uint32_t part, const ms_box *level)
{
    double from = 0.0;
    for (uint32_t i = 0; i < part; i++)
        from += (double)parts[i];
    double x0 = level_px(strips, from);
    double x1 = level_px(strips, from + (double)parts[part]);
    double seam = x1 - x0 >= WIDE_PX ? SEAM_PX : 0.0;
    const double at[] = {x0, x1 - seam, -level->y1, -level->y0};
    for (int i = 0; i < 4; i++) {
        ms_text_double(strips->script, at[i]);
        ms_text_put(strips->script, i < 3 ? " " : "\n", 1);
    }
}

void ms_strips_blocks(const ms_strips *strips,
                      const uint64_t (*parts)[MS_STRIPS_MOST], uint32_t n,
                      double y, double pitch)
{
    ms_text *script = strips->script;
    for (uint32_t part = 0; part < strips->n_looks; part++) {
        if (!strips->shown[part])
            continue;
        ms_text_add(script, "$%s%u << EOD\n", strips->block, part);
        for (uint32_t i = 0; i < n; i++) {
            double middle = y + pitch * i, height = pitch * MS_STRIPS_FILL;
            ms_box level = {0.0, middle - height / 2, 0.0, middle + height / 2};
            if (parts[i][part] > 0)
                put_bar(strips, parts[i], part, &level);
        }
        ms_text_add(script, "EOD\n");
    }
}

void ms_strips_plot(const ms_strips *strips)
{
    for (uint32_t part = 0; part < strips->n_looks; part++)
        if (strips->shown[part])
            ms_text_add(strips->script,
                        ", \\\n  $%s%u using 1:3:1:2:3:4 with boxxyerror "
                        "linecolor rgb '%s' notitle",
                        strips->block, part,
                        ms_strips_color(&strips->looks[part]));
}
