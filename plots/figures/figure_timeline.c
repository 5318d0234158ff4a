/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory of one rank over the step, as stacked areas in painter's
 * order, with the breakdown at the peak beside it. */

#include <math.h>

#include "plots/axes/axes.h"
#include "plots/axes/cutaxis.h"
#include "plots/axes/frame.h"
#include "plots/axes/legend.h"
#include "plots/axes/panel.h"
#include "plots/axes/recomputeaxis.h"
#include "plots/axes/withoutpolicies.h"
#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/report.h"

#define AREA_PX 340.0 /* height of the data */

struct scene {
    ms_panel panel;
    bool shows[MS_N_CATEGORIES];
};

static uint32_t find_shown(struct scene *scene)
{
    const ms_stack *stack = &scene->panel.stack;
    uint32_t n = 0;
    for (uint32_t i = 0; i < stack->n; i++)
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            scene->shows[c] |= stack->points[i].bytes[c] > 0;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        n += scene->shows[c];
    return n + ms_panel_is_over(&scene->panel);
}

/* ---- legend -------------------------------------------------------------- */

/* "optimizer state" */
static const char *name_of(const ms_panel *panel, ms_category category)
{
    ms_text text = {.arena = panel->arena};
    for (const char *c = ms_names_category[category]; *c != '\0'; c++)
        ms_text_put(&text, *c == '_' ? " " : c, 1);
    return ms_axes_words(panel, &text);
}

/* In the order of the stack, from the top. */
static uint32_t list_shown(const struct scene *scene,
                           ms_legend_entry entries[MS_N_CATEGORIES + 1])
{
    const ms_peak *peak = &scene->panel.rank->peak;
    uint32_t n = 0;
    for (int k = MS_N_CATEGORIES; k-- > 0;)
        if (scene->shows[ms_stack_order[k]])
            entries[n++] = (ms_legend_entry){
                .name = name_of(&scene->panel, ms_stack_order[k]),
                .value = peak->by_category[ms_stack_order[k]],
                .color = ms_canvas_category_color[ms_stack_order[k]]};
    return n + ms_legend_over(&scene->panel, &entries[n]);
}

static void put_legend(const struct scene *scene, double y)
{
    const ms_peak *peak = &scene->panel.rank->peak;
    const ms_legend_entry sums[] = {
        {.name = "allocated", .value = peak->allocated_bytes},
        {.name = "reserved, max",
         .value = peak->reserved_bytes,
         .color = "#000000",
         .is_line = true}};
    ms_legend_entry entries[MS_N_CATEGORIES + 1];
    uint32_t n = list_shown(scene, entries);
    ms_legend_put(&scene->panel, y, "at the peak",
                  scene->panel.stack.bytes_unit, sums, 2, entries, n);
}

/* ---- data ---------------------------------------------------------------- */

static void put_plot(struct scene *scene)
{
    const ms_panel *panel = &scene->panel;
    ms_text *script = panel->script;
    for (uint32_t k = 0; k < MS_N_CATEGORIES; k++)
        if (scene->shows[ms_stack_order[k]])
            ms_stack_write(&panel->stack, ms_names_category[ms_stack_order[k]],
                           ms_stack_order, k + 1, script);
    ms_stack_write_reserved(&panel->stack, script);
    ms_recomputeaxis_write(panel);
    ms_cutaxis_write(panel);
    ms_withoutpolicies_write(panel);
    ms_panel_open_plot(panel);
    for (uint32_t k = MS_N_CATEGORIES; k-- > 0;)
        if (scene->shows[ms_stack_order[k]])
            ms_text_add(script,
                        ", \\\n  $%s using 1:2 with filledcurves y1=base "
                        "linecolor rgb '%s' notitle",
                        ms_names_category[ms_stack_order[k]],
                        ms_canvas_category_color[ms_stack_order[k]]);
    ms_cutaxis_plot(panel);
    ms_text_add(script, ", \\\n  $reserved using 1:2 with lines linewidth 1.2 "
                        "linecolor rgb '#000000' notitle");
    ms_recomputeaxis_plot(panel);
    ms_withoutpolicies_plot(panel);
    ms_panel_close_plot(panel);
}

ms_err ms_figure_timeline(const ms_record *record, uint32_t rank,
                          const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    ms_frame frame = ms_frame_of(drawing, &script);
    ms_frame_heading(&frame, NULL);
    struct scene scene = {.panel = ms_panel_of(record, rank, &frame)};
    ms_panel *panel = &scene.panel;
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    MS_TRY(ms_record_check(record, fault));
    panel->area.y1 = panel->area.y0 + AREA_PX;
    panel->may_cut = true;
    ms_withoutpolicies_open(panel);
    ms_panel_open(panel);
    panel->bottom_y =
        panel->area.y1 +
        ms_cutaxis_height(panel, ms_stack_order, MS_N_CATEGORIES) +
        ms_recomputeaxis_height(panel);
    uint32_t n = find_shown(&scene);
    double y = panel->bottom_y + MS_PANEL_AXIS_PX;
    double end_y = y + ms_legend_height(n);
    frame.area = panel->area;
    frame.area.y1 = panel->bottom_y;
    ms_frame_begin(&frame, format,
                   ceil(end_y + ms_withoutpolicies_height(panel) + 8.0));
    ms_panel_draw(panel);
    ms_cutaxis_draw(panel, ms_stack_order, MS_N_CATEGORIES);
    ms_recomputeaxis_draw(panel);
    put_legend(&scene, y);
    ms_withoutpolicies_legend(panel, end_y);
    put_plot(&scene);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
