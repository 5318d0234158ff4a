/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded over predicted.  Kernels are far shorter than a px: each column of
 * the figure shows what its time went to. */

#include <math.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"

#define X0 120.0      /* right of the lanes' names */
#define LANE_PX 96.0  /* of a lane */
#define LANE_GAP 18.0 /* between lanes */
#define AXIS_PX 66.0  /* below them */
#define COLUMNS 766u
#define OVERLAP_PX 0.3 /* of columns: no seams between them */

/* Neighbours in the order differ in grey. */
static const char *const colors[MS_RECORDED_KINDS] = {
    "#2F62A8", "#F9C768", "#2F9C8B", "#B7A3D0",
    "#A63D14", "#7FA9DA", "#4A4A4A", "#C4C4C4"};

typedef struct column {
    double ns[MS_RECORDED_KINDS];
} column;

typedef struct scene {
    ms_frame frame;
    const ms_recorded_lanes *of;
    column *columns; /* of each lane COLUMNS */
    double end_ns;
    ms_look looks[MS_RECORDED_KINDS];
} scene;

static double top_of(const scene *s, uint32_t lane)
{
    return s->frame.area.y0 + lane * (LANE_PX + LANE_GAP);
}

/* ---- columns ------------------------------------------------------------- */

/* Shares a slice among the columns that it lies in. */
static void add_slice(scene *s, const ms_recorded_slice *slice)
{
    column *lane = &s->columns[slice->lane * COLUMNS];
    double each_ns = s->end_ns / COLUMNS;
    double from = slice->from_ns / each_ns, to = slice->to_ns / each_ns;
    for (uint32_t i = (uint32_t)from; i < COLUMNS && i < to; i++) {
        double part = fmin(to, i + 1.0) - fmax(from, i);
        if (part > 0)
            lane[i].ns[slice->kind] += part * each_ns;
    }
}

static ms_err load(scene *s, ms_arena *arena, ms_fault *fault)
{
    const ms_recorded_lanes *of = s->of;
    for (uint32_t i = 0; i < of->n; i++)
        s->end_ns = fmax(s->end_ns, of->slices[i].to_ns);
    if (s->end_ns <= 0)
        return ms_fail(fault, MS_EINPUT, "figure recorded",
                       "give it a trace with kernels", "nothing takes time");
    s->columns = ms_arena_take(arena, (size_t)MS_RECORDED_LANES * COLUMNS,
                               sizeof *s->columns);
    if (s->columns == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < of->n; i++)
        add_slice(s, &of->slices[i]);
    return MS_OK;
}

/* ---- what is drawn ------------------------------------------------------- */

static double place(scene *s)
{
    bool shown[MS_RECORDED_KINDS];
    ms_frame *frame = &s->frame;
    ms_frame_heading(frame, NULL);
    for (uint32_t i = 0; i < MS_RECORDED_KINDS; i++) {
        s->looks[i] = (ms_look){s->of->kinds[i].name, colors[i]};
        shown[i] = s->of->kinds[i].is_shown;
    }
    ms_strips_legend(frame, s->looks, MS_RECORDED_KINDS, shown);
    frame->y += 10.0;
    double height =
        MS_RECORDED_LANES * LANE_PX + (MS_RECORDED_LANES - 1) * LANE_GAP;
    frame->area = (ms_box){X0, frame->y, MS_FRAME_RIGHT, frame->y + height};
    return frame->y + height + AXIS_PX;
}

static void put_axis(const scene *s)
{
    const ms_frame *frame = &s->frame;
    const ms_unit *unit = ms_units_time((uint64_t)s->end_ns);
    const ms_scale scale = {.from = 0,
                            .to = s->end_ns,
                            .px_from = frame->area.x0,
                            .px_to = frame->area.x1};
    ms_text name = {.arena = frame->script->arena};
    ms_text_add(&name, "time (%s)", unit->name);
    ms_frame_x_axis(frame, &scale, (double)unit->size,
                    ms_frame_bytes_of(frame, &name));
    for (uint32_t i = 0; i < MS_RECORDED_LANES; i++)
        ms_frame_text(frame, s->of->lanes[i], X0 - 10.0,
                      top_of(s, i) + LANE_PX / 2, MS_RIGHT, MS_INK, X0 - 14.0);
}

/* The part of a column that is of the kind, from the bottom up. */
static void put_part(const scene *s, uint32_t lane, uint32_t i, uint32_t kind)
{
    const column *at = &s->columns[lane * COLUMNS + i];
    double each_ns = s->end_ns / COLUMNS, below = 0;
    double width = (s->frame.area.x1 - s->frame.area.x0) / COLUMNS;
    double base = top_of(s, lane) + LANE_PX;
    if (at->ns[kind] <= 0)
        return;
    for (uint32_t k = 0; k < kind; k++)
        below += at->ns[k];
    double y0 = fmin(below / each_ns, 1) * LANE_PX;
    double y1 = fmin((below + at->ns[kind]) / each_ns, 1) * LANE_PX;
    double x0 = s->frame.area.x0 + i * width;
    const double corners[] = {x0, x0 + width + OVERLAP_PX, y0 - base,
                              y1 - base};
    for (int k = 0; k < 4; k++) {
        ms_text_double(s->frame.script, corners[k]);
        ms_text_put(s->frame.script, k < 3 ? " " : "\n", 1);
    }
}

static void put_plot(scene *s)
{
    ms_text *script = s->frame.script;
    for (uint32_t kind = 0; kind < MS_RECORDED_KINDS; kind++) {
        if (!s->of->kinds[kind].is_shown)
            continue;
        ms_text_add(script, "$kind%u << EOD\n", kind);
        for (uint32_t i = 0; i < MS_RECORDED_LANES * COLUMNS; i++)
            put_part(s, i / COLUMNS, i % COLUMNS, kind);
        ms_text_add(script, "EOD\n");
    }
    ms_frame_open_plot(&s->frame);
    for (uint32_t kind = 0; kind < MS_RECORDED_KINDS; kind++)
        if (s->of->kinds[kind].is_shown)
            ms_text_add(script,
                        ", \\\n  $kind%u using 1:3:1:2:3:4 with boxxyerror "
                        "linecolor rgb '%s' notitle",
                        kind, colors[kind]);
    ms_text_add(script, "\n");
}

ms_err ms_figure_recorded(const ms_recorded_lanes *of,
                          const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    scene s = {.frame = ms_frame_of(drawing, &script), .of = of};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    MS_TRY(load(&s, drawing->arena, fault));
    double height = place(&s);
    ms_frame_begin(&s.frame, format, ceil(height));
    put_axis(&s);
    put_plot(&s);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
