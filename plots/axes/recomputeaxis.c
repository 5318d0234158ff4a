/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/axes/recomputeaxis.h"
#include "plots/axes/axes.h"
#include "plots/axes/frame.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/record/record.h"
#include "plots/record/works.h"

#define GAP_PX 16.0   /* below the memory */
#define WORDS_PX 28.0 /* above the curves */
#define CURVE_PX 84.0
#define SLACK 1.06 /* above the end of a curve */
#define PAUSES 150 /* a pause of less than this part of the step is short */

static const ms_unit of_flops[] = {
    {"FLOP", 1, 0},
    {"kFLOP", UINT64_C(1000), UINT64_C(1000)},
    {"MFLOP", UINT64_C(1000000), UINT64_C(1000000)},
    {"GFLOP", UINT64_C(1000000000), UINT64_C(1000000000)},
    {"TFLOP", UINT64_C(1000000000000), UINT64_C(1000000000000)},
    {"PFLOP", UINT64_C(1000000000000000), UINT64_C(1000000000000000)},
    {"EFLOP", UINT64_C(1000000000000000000), UINT64_C(1000000000000000000)},
};

static const ms_unit *unit_of(uint64_t flops)
{
    size_t i = sizeof of_flops / sizeof of_flops[0] - 1;
    while (i > 0 && flops < of_flops[i].from)
        i--;
    return &of_flops[i];
}

double ms_recomputeaxis_height(const ms_panel *panel)
{
    const ms_record_rank *saw = panel->saw;
    return saw != NULL && saw->again_ns > 0 ? GAP_PX + WORDS_PX + CURVE_PX
                                            : 0.0;
}

/* ---- axes ---------------------------------------------------------------- */

static double y_of(const ms_panel *panel, uint64_t value, uint64_t all)
{
    return panel->bottom_y - (double)value / ((double)all * SLACK) * CURVE_PX;
}

/* Ticks of the unit up to `all`, beside the area. */
static void put_ticks(ms_panel *panel, uint64_t all, const ms_unit *unit,
                      bool on_left)
{
    double side = on_left ? -1.0 : 1.0;
    double x = on_left ? panel->area.x0 : panel->area.x1;
    ms_type type = {.size_px = MS_TEXT_PX,
                    .color = MS_INK,
                    .align = on_left ? MS_RIGHT : MS_LEFT};
    double most = (double)all / (double)unit->size;
    double step = ms_units_step(most, 2);
    for (int i = 0; i * step <= most * SLACK; i++) {
        ms_text words = {.arena = panel->arena};
        double y = panel->bottom_y - i * step / (most * SLACK) * CURVE_PX;
        ms_text_double(&words, i * step);
        ms_axes_line(panel, x, y, x + side * 6.0, y, MS_FRAME_AXIS, true);
        ms_canvas_text(panel->script, ms_axes_words(panel, &words),
                       x + side * 10.0, y, &type, 70.0);
    }
    ms_axes_line(panel, x, panel->bottom_y - CURVE_PX, x, panel->bottom_y,
                 MS_FRAME_AXIS, true);
}

static void put_words(ms_panel *panel)
{
    const ms_record_rank *saw = panel->saw;
    ms_text words = {.arena = panel->arena};
    ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK, .align = MS_LEFT};
    ms_text_add(&words, "recomputed so far: ");
    ms_units_put_time(&words, saw->again_ns);
    if (saw->again_flops > 0) {
        const ms_unit *unit = unit_of(saw->again_flops);
        ms_text_add(&words, ", dashed: ");
        ms_units_put_number(&words, saw->again_flops, unit);
        ms_text_add(&words, " %s", unit->name);
    }
    ms_text_add(&words, "; shaded: while it runs");
    ms_canvas_text(panel->script, ms_axes_words(panel, &words),
                   panel->area.x0 + 6.0,
                   panel->bottom_y - CURVE_PX - WORDS_PX / 2, &type,
                   panel->area.x1 - panel->area.x0 - 12.0);
}

void ms_recomputeaxis_draw(ms_panel *panel)
{
    const ms_record_rank *saw = panel->saw;
    if (ms_recomputeaxis_height(panel) <= 0.0)
        return;
    put_words(panel);
    put_ticks(panel, saw->again_ns, ms_units_time(saw->again_ns), true);
    if (saw->again_flops > 0)
        put_ticks(panel, saw->again_flops, unit_of(saw->again_flops), false);
}

/* ---- data ---------------------------------------------------------------- */

static void put_corner(const ms_panel *panel, double t_ns, double y)
{
    ms_text_double(panel->script, t_ns / (double)panel->stack.time_unit->size);
    ms_text_put(panel->script, " ", 1);
    ms_text_double(panel->script, -y);
    ms_text_put(panel->script, "\n", 1);
}

/* From point to point; flat parts are told by their ends. */
static void write_curve(const ms_panel *panel, const char *name,
                        const uint64_t *values, uint64_t all, bool is_closed)
{
    const ms_record_rank *saw = panel->saw;
    double end = (double)saw->end_ns;
    ms_text_add(panel->script, "$%s << EOD\n", name);
    if (is_closed)
        put_corner(panel, 0.0, panel->bottom_y);
    for (uint32_t i = 0; i < saw->n_points; i++) {
        bool is_flat = i > 0 && i + 1 < saw->n_points &&
                       values[i] == values[i - 1] && values[i] == values[i + 1];
        if (!is_flat)
            put_corner(panel, (double)saw->points[i].t_ns,
                       y_of(panel, values[i], all));
    }
    put_corner(panel, end, y_of(panel, all, all));
    if (is_closed)
        put_corner(panel, end, panel->bottom_y);
    ms_text_add(panel->script, "EOD\n");
}

/* 0: no replay runs; 1, 2: less than half, or more of the compute stream. */
static int shade_of(const ms_slice *slice)
{
    uint64_t all_ns = 0, again_ns = slice->work_ns[MS_WORK_RECOMPUTE];
    for (int work = 0; work < MS_N_WORKS; work++)
        all_ns += slice->work_ns[work];
    return again_ns == 0 ? 0 : again_ns >= all_ns - again_ns ? 2 : 1;
}

static void put_box(const ms_panel *panel, uint64_t from_ns, uint64_t to_ns)
{
    const double at[] = {(double)from_ns / (double)panel->stack.time_unit->size,
                         (double)to_ns / (double)panel->stack.time_unit->size,
                         -panel->bottom_y, -panel->area.y0};
    for (int i = 0; i < 4; i++) {
        ms_text_double(panel->script, at[i]);
        ms_text_put(panel->script, i < 3 ? " " : "\n", 1);
    }
}

/* Neighbours of one shade are one box, a short pause between them is told by no
 * gap; a box out of sight comes first, so that none is missed. */
static void write_shades(const ms_panel *panel, const char *name, int shade)
{
    const ms_record_lane *lane = &panel->saw->lanes[0];
    uint64_t from_ns = 0, to_ns = 0, pause_ns = panel->saw->end_ns / PAUSES;
    ms_text_add(panel->script, "$%s << EOD\n-2 -1 0 0\n", name);
    for (uint32_t i = 0; panel->saw->n_lanes > 0 && i < lane->n; i++) {
        const ms_slice *slice = &lane->slices[i];
        if (shade_of(slice) != shade)
            continue;
        if (to_ns == 0 || slice->from_ns > to_ns + pause_ns) {
            if (to_ns > from_ns)
                put_box(panel, from_ns, to_ns);
            from_ns = slice->from_ns;
        }
        to_ns = slice->to_ns;
    }
    if (to_ns > from_ns)
        put_box(panel, from_ns, to_ns);
    ms_text_add(panel->script, "EOD\n");
}

void ms_recomputeaxis_write(const ms_panel *panel)
{
    const ms_record_rank *saw = panel->saw;
    if (ms_recomputeaxis_height(panel) <= 0.0)
        return;
    write_shades(panel, "partly", 1);
    write_shades(panel, "replays", 2);
    write_curve(panel, "again", saw->recompute_ns, saw->again_ns, true);
    if (saw->again_flops > 0)
        write_curve(panel, "flops", saw->recompute_flops, saw->again_flops,
                    false);
    ms_text_add(panel->script, "set y2range [");
    ms_text_double(panel->script, -panel->bottom_y);
    ms_text_add(panel->script, ":");
    ms_text_double(panel->script, -panel->area.y0);
    ms_text_add(panel->script, "]\n");
}

void ms_recomputeaxis_plot(const ms_panel *panel)
{
    static const char *const colors[] = {"#EC000000", "#DC000000"};
    static const char *const names[] = {"partly", "replays"};
    if (ms_recomputeaxis_height(panel) <= 0.0)
        return;
    ms_text_add(panel->script,
                ", \\\n  $again using 1:2 axes x1y2 with filledcurves closed "
                "linecolor rgb '%s' notitle",
                ms_works_look[MS_WORK_RECOMPUTE].color);
    for (int i = 0; i < 2; i++)
        ms_text_add(panel->script,
                    ", \\\n  $%s using 1:3:1:2:3:4 axes x1y2 with boxxyerror "
                    "linecolor rgb '%s' notitle",
                    names[i], colors[i]);
    if (panel->saw->again_flops > 0)
        ms_text_add(panel->script,
                    ", \\\n  $flops using 1:2 axes x1y2 with lines linewidth "
                    "1.6 dashtype (6,4) linecolor rgb '#1A1A1A' notitle");
}
