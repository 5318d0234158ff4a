/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory of several runs over time: one line for each run over its own
 * step, with a mark at its peak. */

#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/report.h"
#include "sim/timeline.h"

#define AREA_PX 380.0
#define BELOW_PX 76.0
#define LEFT_PX 84.0
#define RADIUS_PX 8.0
#define HEAD_ROOM 1.06
#define TAIL_ROOM 1.02
#define COLUMNS 370.0 /* about 2 px each: more would blur a line */
/* Times the highest level: beyond it the capacity is only named. */
#define FAR_CAPACITY 1.7

struct totals {
    const ms_total *totals;
    uint32_t n;
    ms_sign marks[MS_TOTALS_MOST];
    uint64_t highest_bytes, end_ns;
    uint64_t capacity_bytes, usable_bytes; /* 0 where the runs differ */
    bool differ, shows_capacity;
    ms_frame frame;
    ms_scale x, y;
};

static const ms_record_rank *rank_of(const ms_record *run)
{
    return &run->ranks[run->report.told];
}

static const ms_peak *peak_of(const ms_record *run)
{
    return &run->report.ranks[run->report.told].peak;
}

static ms_err load(struct totals *t, ms_fault *fault)
{
    const ms_report *first = &t->totals[0].run->report;
    ms_sign_name names[MS_TOTALS_MOST];
    t->capacity_bytes = first->capacity_bytes;
    t->usable_bytes = ms_capacity_usable(first);
    for (uint32_t i = 0; i < t->n; i++) {
        const ms_record *run = t->totals[i].run;
        const ms_report *report = &run->report;
        names[i] = (ms_sign_name){t->totals[i].family, t->totals[i].name};
        MS_TRY(ms_record_check(run, fault));
        if (!rank_of(run)->has_time)
            return ms_fail(fault, MS_EINPUT, NULL, "draw --figure bars",
                           "a step that takes no time has no line over it");
        if (report->capacity_bytes != first->capacity_bytes ||
            report->context_bytes != first->context_bytes)
            t->differ = true;
        if (rank_of(run)->end_ns > t->end_ns)
            t->end_ns = rank_of(run)->end_ns;
        if (peak_of(run)->allocated_bytes > t->highest_bytes)
            t->highest_bytes = peak_of(run)->allocated_bytes;
    }
    if (t->differ)
        t->capacity_bytes = t->usable_bytes = 0;
    ms_marks_assign(names, t->n, t->marks);
    return MS_OK;
}

/* ---- headings ------------------------------------------------------------ */

/* "none: 2.84 GiB"; where devices differ, "..., of 79.18 GiB less 0.49 GiB". */
static const char *entry_of(const struct totals *t, uint32_t i)
{
    ms_text text = {.arena = t->frame.script->arena};
    const ms_total *total = &t->totals[i];
    const ms_report *report = &total->run->report;
    ms_text_put(&text, total->name, strlen(total->name));
    ms_text_add(&text, ": ");
    ms_units_put_bytes(&text, peak_of(total->run)->allocated_bytes,
                       ms_units_bytes(t->highest_bytes));
    if (t->differ) {
        ms_text_add(&text, ", ");
        ms_frame_capacity(&text, report->capacity_bytes,
                          ms_capacity_usable(report));
    }
    return ms_frame_bytes_of(&t->frame, &text);
}

static void set_scales(struct totals *t)
{
    const ms_box *area = &t->frame.area;
    double highest = fmax((double)t->highest_bytes, 1.0);
    if (t->shows_capacity)
        highest = fmax(highest, (double)t->usable_bytes);
    t->x = (ms_scale){0.0, (double)t->end_ns * TAIL_ROOM, area->x0, area->x1,
                      false};
    t->y = (ms_scale){0.0, highest * HEAD_ROOM, area->y1, area->y0, false};
}

static void place(struct totals *t)
{
    ms_frame *frame = &t->frame;
    ms_frame_entry entries[MS_TOTALS_MOST];
    double usable = (double)t->usable_bytes;
    t->shows_capacity =
        usable > 0.0 && usable <= (double)t->highest_bytes * FAR_CAPACITY;
    bool all_fit = true;
    for (uint32_t i = 0; i < t->n; i++)
        all_fit &= t->totals[i].run->report.fits;
    ms_text note = {.arena = frame->script->arena};
    ms_text_add(&note, "each over its own step, its peak marked%s%s",
                all_fit ? "" : "; hollow: does not fit",
                t->differ ? "; level: its capacity less context" : "");
    ms_frame_heading(frame, ms_frame_bytes_of(frame, &note));
    for (uint32_t i = 0; i < t->n; i++)
        entries[i] = (ms_frame_entry){entry_of(t, i), t->marks[i]};
    ms_frame_legend(frame, entries, t->n);
    double top =
        ceil(frame->y + (t->usable_bytes > 0 ? MS_FRAME_LINE_PX : 0.0) + 8.0);
    frame->area = (ms_box){LEFT_PX, top, MS_FRAME_RIGHT - 14.0, top + AREA_PX};
    set_scales(t);
}

/* ---- the plot ------------------------------------------------------------ */

static void put_axes(const struct totals *t)
{
    const ms_unit *bytes = ms_units_bytes((uint64_t)t->y.to);
    const ms_unit *time = ms_units_time(t->end_ns);
    ms_text x = {.arena = t->frame.script->arena}, y = x;
    ms_text_add(&x, "time (%s)", time->name);
    ms_text_add(&y, "device memory%s (%s)",
                t->frame.drawing->per_gpu ? " per GPU" : "", bytes->name);
    ms_frame_x_axis(&t->frame, &t->x, (double)time->size,
                    ms_frame_bytes_of(&t->frame, &x));
    ms_frame_y_axis(&t->frame, &t->y, (double)bytes->size,
                    ms_frame_bytes_of(&t->frame, &y));
}

/* Where devices differ, each limit is a line in the colour of its run. */
static void put_limits(const struct totals *t)
{
    const ms_box *area = &t->frame.area;
    for (uint32_t i = 0; i < t->n && t->differ; i++) {
        uint64_t usable = ms_capacity_usable(&t->totals[i].run->report);
        double y = ms_scale_px(&t->y, (double)usable);
        if (usable > 0 && y >= area->y0)
            ms_canvas_line(t->frame.script, &(ms_box){area->x0, y, area->x1, y},
                           1.2, ms_marks_color(&t->marks[i]), false);
    }
}

/* Its words stand above the area, where no line is. */
static void put_capacity(const struct totals *t)
{
    const ms_box *area = &t->frame.area;
    ms_text text = {.arena = t->frame.script->arena};
    if (t->usable_bytes == 0)
        return;
    if (!t->shows_capacity)
        ms_text_add(&text, "all below ");
    ms_frame_capacity(&text, t->capacity_bytes, t->usable_bytes);
    ms_frame_text(&t->frame, ms_frame_bytes_of(&t->frame, &text), area->x1,
                  area->y0 - MS_FRAME_LINE_PX / 2 - 2.0, MS_RIGHT, MS_FRAME_RED,
                  area->x1 - area->x0);
    if (!t->shows_capacity)
        return;
    double y = ms_scale_px(&t->y, (double)t->usable_bytes);
    ms_canvas_line(t->frame.script, &(ms_box){area->x0, y, area->x1, y}, 1.6,
                   MS_FRAME_RED, false);
}

/* A level lasts until the next. */
static ms_err put_line(const struct totals *t, uint32_t i, ms_fault *fault)
{
    const ms_record_rank *saw = rank_of(t->totals[i].run);
    ms_text *script = t->frame.script;
    ms_point *points =
        ms_arena_take_raw(script->arena, saw->n_points + 1, sizeof *points);
    if (points == NULL)
        return ms_fail_nomem(fault);
    memcpy(points, saw->points, saw->n_points * sizeof *points);
    uint32_t n = ms_stack_thicken(points, saw->n_points, saw->end_ns, COLUMNS);
    ms_text_add(script, "$l%u << EOD\n", i);
    for (uint32_t p = 0; p < n; p++) {
        double y = ms_scale_px(&t->y, (double)points[p].total_bytes);
        uint64_t to_ns = p + 1 < n ? points[p + 1].t_ns : saw->end_ns;
        ms_canvas_point(script, ms_scale_px(&t->x, (double)points[p].t_ns), y);
        ms_canvas_point(script, ms_scale_px(&t->x, (double)to_ns), y);
    }
    ms_text_add(script, "EOD\n$p%u << EOD\n", i);
    ms_marks_write(
        script, &t->marks[i],
        ms_scale_px(&t->x, (double)peak_of(t->totals[i].run)->t_ns),
        ms_scale_px(&t->y, (double)peak_of(t->totals[i].run)->allocated_bytes),
        RADIUS_PX);
    ms_text_add(script, "EOD\n");
    return MS_OK;
}

static ms_err put_plot(struct totals *t, ms_fault *fault)
{
    ms_text *script = t->frame.script;
    char block[16];
    for (uint32_t i = 0; i < t->n; i++)
        MS_TRY(put_line(t, i, fault));
    ms_frame_open_plot(&t->frame);
    for (uint32_t i = 0; i < t->n; i++)
        ms_text_add(script,
                    ", \\\n  $l%u using 1:2 with lines linewidth 1.8 "
                    "dashtype %u linecolor rgb '%s' notitle",
                    i, ms_marks_dash(&t->marks[i]),
                    ms_marks_color(&t->marks[i]));
    for (uint32_t i = 0; i < t->n; i++) {
        strcpy(block, "p0");
        block[1] = (char)('0' + i);
        ms_marks_plot(script, block, &t->marks[i],
                      t->totals[i].run->report.fits, false);
    }
    ms_text_add(script, "\n");
    return MS_OK;
}

ms_err ms_figure_totals(const ms_total *totals, uint32_t n,
                        const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct totals t = {
        .totals = totals, .n = n, .frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (n == 0 || n > MS_TOTALS_MOST)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "leave some out, or draw --figure bars",
                       "%u lines over time are too many for one figure (at "
                       "most %u)",
                       n, MS_TOTALS_MOST);
    MS_TRY(load(&t, fault));
    place(&t);
    ms_frame_begin(&t.frame, format, ceil(t.frame.area.y1 + BELOW_PX));
    put_axes(&t);
    put_capacity(&t);
    put_limits(&t);
    MS_TRY(put_plot(&t, fault));
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
