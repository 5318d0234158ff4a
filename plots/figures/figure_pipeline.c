/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The turns of pipelines: a lane for each rank, a cell for each turn, what is
 * idle stays white; under them the memory of each rank, all on one axis of
 * time.  Of a cell what runs again is its left part, and of the rest the
 * gradients of weights are its lower part, so that area is time. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "plots/record/works.h"
#include "sim/report.h"
#include "sim/timeline.h"

#define LANES_PX 260.0   /* of all lanes of a run, at most; */
#define LANE_PX 30.0     /* of one, at most, */
#define LEAST_PX 5.0     /* and at least */
#define LOW_LANE_PX 27.0 /* of several runs */
#define LOW_STRIP_PX 28.0
#define STRIPS_PX 420.0
#define STRIP_PX 48.0
#define FILL 0.84         /* of a lane or strip */
#define RIGHT_PX 112.0    /* numbers beside the lanes */
#define GAP_PX 12.0       /* between names, lanes and numbers */
#define HEAD_PX 28.0      /* above lanes, and above strips */
#define PANEL_GAP_PX 22.0 /* between runs */
#define AXIS_PX 66.0      /* below */
#define NUMBER_PX 22.0    /* a lower cell has no number */
#define DOT_PX 4.5        /* of a peak: half its diagonal */
#define COLUMNS 350.0     /* of a level: about 2 px each */
#define FLAT 0.5          /* a larger part that never changes is cut off */
#define FAR_CAPACITY 1.7  /* times the highest level: only named */
#define SHADES 3u         /* of chunks */
#define SHADE 0.3         /* how much darker the last one is */
#define LINE "#2F62A8"
#define AREA "#C9D8E8"
#define DIM "#D0D0D0"

enum { FORWARD, INPUT, WEIGHT, AGAIN, STEP, N_INKS };
static const ms_look inks[N_INKS] = {
    [FORWARD] = {"forward", "#6FA3D8"},
    [INPUT] = {"gradients of inputs", "#B9481F"},
    [WEIGHT] = {"gradients of weights", "#5B3A80"},
    [AGAIN] = {"recompute", "#F6BE5C"},
    [STEP] = {"optimizer", "#2F9C8B"},
};

typedef struct scene {
    const ms_piped *runs;
    uint32_t n;
    ms_frame frame;
    ms_scale x;
    uint64_t end_ns, highest_bytes, lowest_bytes, usable_bytes;
    uint64_t capacity_bytes; /* of all runs; 0: they differ */
    double base_bytes, top_bytes;
    bool shows_capacity;
    ms_text cells[N_INKS][SHADES], areas, dots;
    bool has_recompute, has_chunks;
    double lane_px, strip_px;
} scene;

/* ---- what is drawn ------------------------------------------------------- */

static ms_err check(const ms_record *run, ms_fault *fault)
{
    MS_TRY(ms_record_check(run, fault));
    for (uint32_t r = 0; r < run->report.n_ranks; r++)
        if (run->ranks[r].n_turns == 0)
            return ms_fail(fault, MS_EINPUT, "figure pipeline",
                           "add a pipeline that takes time, as -p pipeline:4",
                           "the step of %s has no stages that take turns",
                           run->model);
    return MS_OK;
}

/* From 0: how many stages of its rank come before the turn's. */
static uint32_t chunk_of(const ms_record_rank *rank, uint64_t stage)
{
    uint64_t below[SHADES] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank->n_turns && n + 1 < SHADES; i++) {
        uint64_t other = rank->turns[i].stage;
        bool known = rank->turns[i].kind == MS_TURNTIMES_STEP || other >= stage;
        for (uint32_t k = 0; k < n; k++)
            known |= below[k] == other;
        if (!known)
            below[n++] = other;
    }
    return n;
}

static void see_rank(scene *s, const ms_record_rank *rank)
{
    if (rank->end_ns > s->end_ns)
        s->end_ns = rank->end_ns;
    for (uint32_t i = 0; i < rank->n_points; i++) {
        uint64_t bytes = rank->points[i].total_bytes;
        s->highest_bytes = bytes > s->highest_bytes ? bytes : s->highest_bytes;
        s->lowest_bytes = bytes < s->lowest_bytes ? bytes : s->lowest_bytes;
    }
    for (uint32_t i = 0; i < rank->n_turns; i++) {
        s->has_recompute |= rank->turns[i].again_ns > 0;
        s->has_chunks |= rank->turns[i].kind != MS_TURNTIMES_STEP &&
                         rank->turns[i].stage != rank->turns[0].stage;
    }
}

static void scale_memory(scene *s)
{
    double highest = fmax((double)s->highest_bytes, 1.0);
    double lowest = (double)s->lowest_bytes;
    double usable = (double)s->usable_bytes;
    s->base_bytes = 0;
    if (lowest > FLAT * highest) {
        double unit = (double)ms_units_bytes(s->highest_bytes)->size;
        double round =
            unit * pow(10.0, floor(log10((highest - lowest) / unit)));
        s->base_bytes = fmax(
            0.0, round * floor((lowest - 0.1 * (highest - lowest)) / round));
    }
    s->shows_capacity = s->capacity_bytes > 0 && usable > s->base_bytes &&
                        usable < FAR_CAPACITY * highest;
    s->top_bytes = s->shows_capacity ? fmax(highest, usable) : highest;
    s->top_bytes += 0.08 * (s->top_bytes - s->base_bytes);
}

static ms_err load(scene *s, ms_fault *fault)
{
    const ms_report *first = &s->runs[0].run->report;
    s->capacity_bytes = first->capacity_bytes;
    s->usable_bytes = ms_capacity_usable(first);
    s->lowest_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < s->n; i++) {
        const ms_record *run = s->runs[i].run;
        MS_TRY(check(run, fault));
        for (uint32_t r = 0; r < run->report.n_ranks; r++)
            see_rank(s, &run->ranks[r]);
        if (ms_capacity_usable(&run->report) != s->usable_bytes)
            s->capacity_bytes = 0;
    }
    scale_memory(s);
    return MS_OK;
}

/* ---- places -------------------------------------------------------------- */

static uint32_t most_ranks(const scene *s)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->runs[i].run->report.n_ranks > most)
            most = s->runs[i].run->report.n_ranks;
    return most;
}

static double pitch(double all_px, double most_px, uint32_t n)
{
    return fmax(LEAST_PX, fmin(most_px, floor(all_px / n)));
}

/* Of low rows the first name reaches beyond its row. */
static double head_of(double row_px)
{
    return HEAD_PX + fmax(0.0, (MS_FRAME_LINE_PX - row_px) / 2);
}

static double height_of(const scene *s, uint32_t i)
{
    double n = s->runs[i].run->report.n_ranks;
    return (s->n > 1 ? MS_FRAME_LINE_PX : 0.0) + head_of(s->lane_px) +
           n * s->lane_px + head_of(s->strip_px) + n * s->strip_px;
}

static const char *name_of(const scene *s, uint32_t rank)
{
    ms_text text = {.arena = s->frame.script->arena};
    ms_text_add(&text, "rank %u", rank);
    return ms_frame_bytes_of(&s->frame, &text);
}

static double place(scene *s)
{
    bool shown[N_INKS] = {[FORWARD] = true,
                          [INPUT] = true,
                          [WEIGHT] = true,
                          [AGAIN] = s->has_recompute,
                          [STEP] = true};
    ms_frame *frame = &s->frame;
    ms_text note = {.arena = frame->script->arena};
    uint32_t most = most_ranks(s);
    ms_text_add(&note, "a cell: a turn on the micro-batch whose number it has; "
                       "white: idle");
    if (s->has_chunks)
        ms_text_add(&note, "; darker: later stages of a rank");
    ms_frame_heading(frame, ms_frame_bytes_of(frame, &note));
    ms_strips_legend(frame, inks, N_INKS, shown);
    s->lane_px = pitch(LANES_PX, s->n > 1 ? LOW_LANE_PX : LANE_PX, most);
    s->strip_px = pitch(STRIPS_PX, s->n > 1 ? LOW_STRIP_PX : STRIP_PX, most);
    double x0 =
        MS_FRAME_LEFT + GAP_PX +
        ms_escape_width(name_of(s, most > 100 ? 888 : 88), MS_TEXT_PX, false) *
            MS_FRAME_SLACK;
    double y = frame->y + 4.0;
    frame->area = (ms_box){x0, y, MS_FRAME_RIGHT - RIGHT_PX, y};
    for (uint32_t i = 0; i < s->n; i++)
        frame->area.y1 += height_of(s, i) + (i > 0 ? PANEL_GAP_PX : 0.0);
    s->x = (ms_scale){0.0, (double)s->end_ns, x0, frame->area.x1, false};
    return frame->area.y1 + AXIS_PX;
}

/* ---- cells --------------------------------------------------------------- */

static const char *color_of(uint32_t ink, uint32_t shade, char color[8])
{
    static const char digits[] = "0123456789ABCDEF";
    const char *from = inks[ink].color;
    memcpy(color, from, 8);
    for (uint32_t i = 1; i < 7; i += 2) {
        double value = (double)((strchr(digits, from[i]) - digits) * 16 +
                                (strchr(digits, from[i + 1]) - digits));
        uint32_t part = (uint32_t)(value * (1 - SHADE * shade / (SHADES - 1)));
        color[i] = digits[part / 16];
        color[i + 1] = digits[part % 16];
    }
    return color;
}

static void put_box(ms_text *block, double x0, double x1, double y0, double y1)
{
    const double at[] = {x0, x1, -y1, -y0};
    for (int i = 0; i < 4 && x1 > x0 && y1 > y0; i++) {
        ms_text_double(block, at[i]);
        ms_text_put(block, i < 3 ? " " : "\n", 1);
    }
}

static void put_number(const scene *s, const ms_turn_time *turn, double x0,
                       double x1, double y, const char *color)
{
    ms_text text = {.arena = s->frame.script->arena};
    if (turn->kind == MS_TURNTIMES_STEP || s->lane_px * FILL < NUMBER_PX)
        return;
    ms_text_u64(&text, turn->micro_batch);
    const char *number = ms_frame_bytes_of(&s->frame, &text);
    double width = ms_escape_width(number, MS_TEXT_PX, false) * MS_FRAME_SLACK;
    if (width <= x1 - x0)
        ms_frame_text(&s->frame, number, (x0 + x1) / 2, y, MS_CENTER,
                      ms_strips_ink(color), x1 - x0);
}

/* The part of a turn that is not run again, from x0 on: y0 to y1. */
static void put_turn(scene *s, const ms_turn_time *turn, uint32_t shade,
                     double x0, double x1, double y0, double y1)
{
    char color[8];
    uint32_t ink = INPUT;
    double own_ns = (double)(turn->to_ns - turn->from_ns - turn->again_ns);
    double split = y1;
    if (turn->kind == MS_TURN_FORWARD)
        ink = FORWARD;
    else if (turn->kind == MS_TURNTIMES_STEP)
        ink = STEP;
    else if (turn->kind == MS_TURN_GRAD_WEIGHT)
        ink = WEIGHT;
    else if (turn->kind == MS_TURN_BACKWARD && own_ns > 0)
        split -= (y1 - y0) * (double)turn->weight_ns / own_ns;
    put_box(&s->cells[ink][shade], x0, x1, y0, split);
    put_box(&s->cells[WEIGHT][shade], x0, x1, split, y1);
    put_number(s, turn, x0, x1, (y0 + y1) / 2, color_of(ink, shade, color));
}

/* Cells of at least 3 px are a little apart. */
static void put_cells(scene *s, const ms_record_rank *rank, double y)
{
    double y0 = y + s->lane_px * (1 - FILL) / 2, y1 = y0 + s->lane_px * FILL;
    for (uint32_t i = 0; i < rank->n_turns; i++) {
        const ms_turn_time *turn = &rank->turns[i];
        double x0 = ms_scale_px(&s->x, (double)turn->from_ns);
        double x1 = ms_scale_px(&s->x, (double)turn->to_ns);
        double again = (x1 - x0) * (double)turn->again_ns /
                       (double)(turn->to_ns - turn->from_ns);
        uint32_t shade =
            turn->kind == MS_TURNTIMES_STEP ? 0 : chunk_of(rank, turn->stage);
        if (x1 - x0 >= 3.0)
            x1 -= 0.7;
        put_box(&s->cells[AGAIN][shade], x0, x0 + again, y0, y1);
        put_turn(s, turn, shade, x0 + again, x1, y0, y1);
    }
}

/* ---- memory -------------------------------------------------------------- */

/* y: where its strip begins. */
static double level_y(const scene *s, double y, double bytes)
{
    double part =
        (bytes - s->base_bytes) / fmax(s->top_bytes - s->base_bytes, 1.0);
    double fill = s->strip_px * FILL;
    return y + (s->strip_px + fill) / 2 - fill * fmin(fmax(part, 0.0), 1.0);
}

/* A polygon, then the sign of its peak; blank lines part them from others. */
static ms_err put_level(scene *s, const ms_record_rank *rank, double y,
                        ms_fault *fault)
{
    ms_point *points =
        ms_arena_take_raw(s->areas.arena, rank->n_points + 1, sizeof *points);
    if (points == NULL)
        return ms_fail_nomem(fault);
    memcpy(points, rank->points, rank->n_points * sizeof *points);
    uint32_t n =
        ms_stack_thicken(points, rank->n_points, rank->end_ns, COLUMNS);
    double base = level_y(s, y, s->base_bytes);
    ms_canvas_point(&s->areas, s->x.px_from, base);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t to_ns = i + 1 < n ? points[i + 1].t_ns : rank->end_ns;
        double at = level_y(s, y, (double)points[i].total_bytes);
        ms_canvas_point(&s->areas, ms_scale_px(&s->x, (double)points[i].t_ns),
                        at);
        ms_canvas_point(&s->areas, ms_scale_px(&s->x, (double)to_ns), at);
    }
    ms_canvas_point(&s->areas, ms_scale_px(&s->x, (double)rank->end_ns), base);
    ms_canvas_point(&s->areas, s->x.px_from, base);
    ms_text_add(&s->areas, "\n");
    const ms_peak *peak = &rank->report->peak;
    double px = ms_scale_px(&s->x, (double)peak->t_ns);
    double py = level_y(s, y, (double)peak->allocated_bytes);
    double dot = fmin(DOT_PX, s->strip_px / 4);
    for (int i = 0; i < 5; i++)
        ms_canvas_point(&s->dots, px + dot * (i % 2 == 0 ? 0 : 2 - i),
                        py + dot * (i % 2 == 1 ? 0 : i % 4 - 1));
    ms_text_add(&s->dots, "\n");
    return MS_OK;
}

/* ---- words beside them --------------------------------------------------- */

/* Has the row a name?  Where rows are low, one of a few. */
static bool is_named(double row_px, uint32_t rank)
{
    return rank % (uint32_t)ceil(MS_TEXT_PX / row_px) == 0;
}

static void put_beside(const scene *s, const ms_record_rank *rank, double y,
                       const ms_text *number, bool is_red)
{
    const ms_box *area = &s->frame.area;
    ms_frame_text(&s->frame, name_of(s, rank->report->rank), area->x0 - GAP_PX,
                  y, MS_RIGHT, MS_INK, area->x0 - GAP_PX - 4.0);
    ms_frame_text(&s->frame, ms_frame_bytes_of(&s->frame, number),
                  MS_FRAME_RIGHT, y, MS_RIGHT, is_red ? MS_FRAME_RED : MS_INK,
                  RIGHT_PX - 4.0);
}

static void put_idle(const scene *s, const ms_record_rank *rank, double y)
{
    ms_text text = {.arena = s->frame.script->arena};
    double idle_ns = (double)ms_times_idle(rank->report).idle_ns;
    ms_text_add(&text, "%.1f %%",
                100 * idle_ns / (double)rank->report->time.step_ns);
    if (is_named(s->lane_px, rank->report->rank))
        put_beside(s, rank, y + s->lane_px / 2, &text, false);
    ms_frame_line(&s->frame, s->frame.area.x0, y + s->lane_px, s->frame.area.x1,
                  y + s->lane_px, DIM, false);
}

static void put_peak(const scene *s, const ms_report *report,
                     const ms_record_rank *rank, double y)
{
    ms_text text = {.arena = s->frame.script->arena};
    const ms_peak *peak = &rank->report->peak;
    uint64_t usable = ms_capacity_usable(report);
    ms_units_put_bytes(&text, peak->allocated_bytes,
                       ms_units_bytes(s->highest_bytes));
    if (is_named(s->strip_px, rank->report->rank))
        put_beside(s, rank, y + s->strip_px / 2, &text,
                   usable > 0 && peak->reserved_bytes > usable);
    if (!s->shows_capacity)
        return;
    double at = level_y(s, y, (double)s->usable_bytes);
    ms_canvas_line(s->frame.script,
                   &(ms_box){s->frame.area.x0, at, s->frame.area.x1, at},
                   s->strip_px < NUMBER_PX ? 0.5 : 1.2, MS_FRAME_RED, true);
}

/* "memory from 250 GiB up; red: capacity less context, 419.51 GiB" */
static void put_memory_head(const scene *s, double y)
{
    ms_text text = {.arena = s->frame.script->arena};
    const ms_unit *unit = ms_units_bytes(s->highest_bytes);
    ms_text_add(&text, "memory");
    if (s->base_bytes > 0) {
        ms_text_add(&text, " from ");
        ms_units_put_bytes(&text, (uint64_t)s->base_bytes, unit);
        ms_text_add(&text, " up");
    }
    if (s->capacity_bytes > 0) {
        ms_text_add(&text, "%s capacity less context, ",
                    s->shows_capacity                        ? "; red:"
                    : (double)s->usable_bytes > s->top_bytes ? ", all below"
                                                             : ", all above");
        ms_units_put_bytes(&text, s->usable_bytes,
                           ms_units_bytes(s->usable_bytes));
    }
    ms_frame_text(&s->frame, ms_frame_bytes_of(&s->frame, &text),
                  s->frame.area.x0, y, MS_LEFT, MS_GREY,
                  s->frame.area.x1 - s->frame.area.x0);
    ms_frame_text(&s->frame, "peak", MS_FRAME_RIGHT, y, MS_RIGHT, MS_GREY,
                  RIGHT_PX);
}

/* Of one of several: its name, step and peak. */
static void put_name(const scene *s, uint32_t i, double y)
{
    const ms_record *run = s->runs[i].run;
    const ms_rank_report *told = &run->report.ranks[run->report.told];
    ms_text text = {.arena = s->frame.script->arena};
    const ms_type bold = {
        .size_px = MS_TEXT_PX, .color = MS_INK, .is_bold = true};
    ms_text_put(&text, s->runs[i].name, strlen(s->runs[i].name));
    ms_text_add(&text, ": step ");
    ms_units_put_bytes(&text, told->time.step_ns, ms_units_time(s->end_ns));
    ms_canvas_text(s->frame.script, ms_frame_bytes_of(&s->frame, &text),
                   MS_FRAME_LEFT, y, &bold, MS_FRAME_RIGHT - MS_FRAME_LEFT);
}

/* ---- the whole ----------------------------------------------------------- */

static void put_grid(const scene *s, double y0, double y1)
{
    double ticks[MS_SCALE_TICKS];
    const ms_unit *unit = ms_units_time(s->end_ns);
    uint32_t n = ms_scale_ticks(&s->x, (double)unit->size, 9, ticks);
    for (uint32_t i = 0; i < n; i++) {
        double x = ms_scale_px(&s->x, ticks[i]);
        ms_frame_line(&s->frame, x, y0, x, y1, MS_FRAME_GRID, false);
    }
}

static ms_err put_run(scene *s, uint32_t i, double y, ms_fault *fault)
{
    const ms_record *run = s->runs[i].run;
    uint32_t n = run->report.n_ranks;
    if (s->n > 1) {
        put_name(s, i, y + MS_FRAME_LINE_PX / 2);
        y += MS_FRAME_LINE_PX;
    }
    ms_frame_text(&s->frame, "idle", MS_FRAME_RIGHT, y + HEAD_PX / 2, MS_RIGHT,
                  MS_GREY, RIGHT_PX);
    y += head_of(s->lane_px);
    put_grid(s, y, y + n * s->lane_px);
    for (uint32_t r = 0; r < n; r++, y += s->lane_px) {
        put_cells(s, &run->ranks[r], y);
        put_idle(s, &run->ranks[r], y);
    }
    put_memory_head(s, y + HEAD_PX / 2);
    y += head_of(s->strip_px);
    put_grid(s, y, y + n * s->strip_px);
    for (uint32_t r = 0; r < n; r++, y += s->strip_px) {
        MS_TRY(put_level(s, &run->ranks[r], y, fault));
        put_peak(s, &run->report, &run->ranks[r], y);
    }
    return MS_OK;
}

static void put_block(const scene *s, const char *name, const ms_text *block)
{
    ms_text_add(s->frame.script, "$%s << EOD\n", name);
    s->frame.script->failed |= block->failed;
    if (block->length > 0)
        ms_text_put(s->frame.script, block->bytes, block->length);
    ms_text_add(s->frame.script, "EOD\n");
}

static void put_plot(scene *s)
{
    ms_text *script = s->frame.script;
    char name[16], color[8];
    put_block(s, "areas", &s->areas);
    put_block(s, "dots", &s->dots);
    for (uint32_t k = 0; k < N_INKS * SHADES; k++)
        if (s->cells[k / SHADES][k % SHADES].length > 0) {
            snprintf(name, sizeof name, "cells%u", k);
            put_block(s, name, &s->cells[k / SHADES][k % SHADES]);
        }
    ms_frame_open_plot(&s->frame);
    ms_text_add(script,
                ", \\\n  $areas using 1:2 with filledcurves closed linecolor "
                "rgb '" AREA "' notitle, \\\n  $areas using 1:2 with lines "
                "linewidth 1 linecolor rgb '" LINE "' notitle, \\\n  $dots "
                "using 1:2 with filledcurves closed linecolor rgb '" MS_INK
                "' notitle");
    for (uint32_t k = 0; k < N_INKS * SHADES; k++)
        if (s->cells[k / SHADES][k % SHADES].length > 0)
            ms_text_add(script,
                        ", \\\n  $cells%u using 1:3:1:2:3:4 with boxxyerror "
                        "linecolor rgb '%s' notitle",
                        k, color_of(k / SHADES, k % SHADES, color));
    ms_text_add(script, "\n");
}

static void put_axis(const scene *s)
{
    const ms_unit *unit = ms_units_time(s->end_ns);
    ms_frame bottom = s->frame;
    ms_text name = {.arena = s->frame.script->arena};
    bottom.area.y0 = bottom.area.y1;
    ms_text_add(&name, "time (%s)", unit->name);
    ms_frame_x_axis(&bottom, &s->x, (double)unit->size,
                    ms_frame_bytes_of(&s->frame, &name));
}

ms_err ms_figure_pipeline(const ms_piped *runs, uint32_t n,
                          const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    scene s = {.runs = runs,
               .n = n,
               .frame = ms_frame_of(drawing, &script),
               .areas = {.arena = drawing->arena},
               .dots = {.arena = drawing->arena}};
    for (uint32_t k = 0; k < N_INKS * SHADES; k++)
        s.cells[k / SHADES][k % SHADES].arena = drawing->arena;
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (n == 0 || n > MS_PIPED_MOST)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave some out",
                       "%u pipelines are too many for one figure (at most %u)",
                       n, MS_PIPED_MOST);
    MS_TRY(load(&s, fault));
    double height = place(&s), y = s.frame.area.y0;
    ms_frame_begin(&s.frame, format, ceil(height));
    for (uint32_t i = 0; i < n; i++) {
        MS_TRY(put_run(&s, i, y, fault));
        y += height_of(&s, i) + PANEL_GAP_PX;
    }
    put_axis(&s);
    put_plot(&s);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
