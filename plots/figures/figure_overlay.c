/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The allocated memory of two steps on one axis, phase by phase. */

#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"
#include "plots/record/phases.h"

#define AREA_PX 380.0
#define BELOW_PX 76.0
#define LEFT_PX 84.0
#define STRIP_PX 27.0
#define RADIUS_PX 8.0
#define HEAD_ROOM 1.06

typedef struct scene {
    const ms_overlay *of;
    ms_sign marks[2];
    uint64_t highest_bytes;
    uint32_t peaks[2]; /* the point that is the highest */
    double strip_y;
    ms_frame frame;
    ms_scale x, y;
} scene;

static ms_err load(scene *s, ms_fault *fault)
{
    static const ms_sign_name names[2] = {{"first", "first"},
                                          {"second", "second"}};
    for (int i = 0; i < 2; i++) {
        const ms_overlay_line *line = &s->of->lines[i];
        if (line->n == 0)
            return ms_fail(fault, MS_EINPUT, "figure overlay", NULL,
                           "there is no level to draw");
        for (uint32_t p = 0; p < line->n; p++)
            if (line->points[p].bytes > line->points[s->peaks[i]].bytes)
                s->peaks[i] = p;
        if (line->points[s->peaks[i]].bytes > s->highest_bytes)
            s->highest_bytes = line->points[s->peaks[i]].bytes;
    }
    ms_marks_assign(names, 2, s->marks);
    return MS_OK;
}

static const char *entry_of(const scene *s, int i)
{
    const ms_overlay_line *line = &s->of->lines[i];
    ms_text text = {.arena = s->frame.script->arena};
    ms_text_put(&text, line->name, strlen(line->name));
    ms_text_add(&text, ", ");
    ms_units_put_bytes(&text, line->points[s->peaks[i]].bytes,
                       ms_units_bytes(s->highest_bytes));
    return ms_frame_bytes_of(&s->frame, &text);
}

static void place(scene *s)
{
    ms_frame *frame = &s->frame;
    ms_frame_entry entries[2];
    ms_frame_heading(frame, NULL);
    for (int i = 0; i < 2; i++)
        entries[i] = (ms_frame_entry){entry_of(s, i), s->marks[i]};
    ms_frame_legend(frame, entries, 2);
    bool has_phases = s->of->edges[MS_N_PHASES - 1] > 0;
    s->strip_y = ceil(frame->y + 8.0);
    double top = s->strip_y + (has_phases ? STRIP_PX + 4.0 : 0);
    frame->area = (ms_box){LEFT_PX, top, MS_FRAME_RIGHT - 14.0, top + AREA_PX};
    s->x = (ms_scale){0, 1, frame->area.x0, frame->area.x1, false};
    s->y = (ms_scale){0, fmax((double)s->highest_bytes, 1.0) * HEAD_ROOM,
                      frame->area.y1, frame->area.y0, false};
}

static void put_phases(const scene *s)
{
    const ms_type type = {
        .size_px = MS_TEXT_PX, .color = MS_INK, .align = MS_CENTER};
    double from = 0;
    for (int p = 0; p < MS_N_PHASES; p++) {
        double to = s->of->edges[p];
        if (to <= from || ms_panel_phases[p].strip == NULL)
            continue;
        double x0 = ms_scale_px(&s->x, from), x1 = ms_scale_px(&s->x, to);
        const ms_box strip = {x0, s->strip_y, x1, s->strip_y + STRIP_PX};
        const ms_box behind = {x0, s->frame.area.y0, x1, s->frame.area.y1};
        ms_canvas_box(s->frame.script, &strip, ms_panel_phases[p].strip, false);
        ms_canvas_box(s->frame.script, &behind, ms_panel_phases[p].tint, false);
        ms_canvas_text(s->frame.script, ms_phases_words[p][0], (x0 + x1) / 2,
                       s->strip_y + STRIP_PX / 2, &type, x1 - x0);
        from = to;
    }
}

static void put_axes(const scene *s)
{
    const ms_unit *unit = ms_units_bytes((uint64_t)s->y.to);
    ms_text name = {.arena = s->frame.script->arena};
    ms_text_add(&name, "allocated (%s)", unit->name);
    ms_frame_y_axis(&s->frame, &s->y, (double)unit->size,
                    ms_frame_bytes_of(&s->frame, &name));
    ms_frame_x_name(&s->frame,
                    "the step, event by event, each phase equally "
                    "long in both",
                    s->frame.area.y1 + 30.0);
}

static void put_line(const scene *s, int i)
{
    const ms_overlay_line *line = &s->of->lines[i];
    const ms_overlay_point *peak = &line->points[s->peaks[i]];
    ms_text *script = s->frame.script;
    ms_text_add(script, "$l%d << EOD\n", i);
    for (uint32_t p = 0; p < line->n; p++) {
        double y = ms_scale_px(&s->y, (double)line->points[p].bytes);
        double to = p + 1 < line->n ? line->points[p + 1].at : 1;
        ms_canvas_point(script, ms_scale_px(&s->x, line->points[p].at), y);
        ms_canvas_point(script, ms_scale_px(&s->x, to), y);
    }
    ms_text_add(script, "EOD\n$p%d << EOD\n", i);
    ms_marks_write(script, &s->marks[i], ms_scale_px(&s->x, peak->at),
                   ms_scale_px(&s->y, (double)peak->bytes), RADIUS_PX);
    ms_text_add(script, "EOD\n");
}

static void put_plot(scene *s)
{
    ms_text *script = s->frame.script;
    for (int i = 0; i < 2; i++)
        put_line(s, i);
    ms_frame_open_plot(&s->frame);
    for (int i = 0; i < 2; i++)
        ms_text_add(script,
                    ", \\\n  $l%d using 1:2 with lines linewidth 1.8 "
                    "dashtype %u linecolor rgb '%s' notitle",
                    i, (unsigned)i + 1, ms_marks_color(&s->marks[i]));
    ms_marks_plot(script, "p0", &s->marks[0], true, false);
    ms_marks_plot(script, "p1", &s->marks[1], true, false);
    ms_text_add(script, "\n");
}

ms_err ms_figure_overlay(const ms_overlay *of, const ms_drawing *drawing,
                         ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    scene s = {.of = of, .frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    MS_TRY(load(&s, fault));
    place(&s);
    ms_frame_begin(&s.frame, format, ceil(s.frame.area.y1 + BELOW_PX));
    put_phases(&s);
    put_axes(&s);
    put_plot(&s);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
