/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory of one rank over the step, as stacked areas in painter's
 * order, with the breakdown at the peak beside it. */

#include "plots/figure.h"

/* From the bottom: what stays put, then what a policy changes. */
static const ms_category order[MS_N_CATEGORIES] = {
    MS_PARAMETERS, MS_OPTIMIZER_STATE, MS_WORKSPACE,     MS_INPUTS,
    MS_GRADIENTS,  MS_ACTIVATIONS,     MS_COMMUNICATION, MS_TEMPORARIES,
};

struct scene {
    ms_panel panel;
    bool shows[MS_N_CATEGORIES];
};

static void find_shown(struct scene *scene)
{
    const ms_stack *stack = &scene->panel.stack;
    for (uint32_t i = 0; i < stack->n; i++)
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            scene->shows[c] |= stack->points[i].bytes[c] > 0;
}

/* ---- legend -------------------------------------------------------------- */

static void put_category(ms_legend *legend, ms_category category)
{
    char name[32];
    size_t i = 0;
    for (; ms_names_category[category][i] != '\0' && i < sizeof name - 1; i++) {
        char letter = ms_names_category[category][i];
        name[i] = letter == '_' ? ' ' : letter;
    }
    name[i] = '\0';
    ms_legend_row(legend, name, legend->panel->rank->peak.by_category[category],
                  ms_canvas_category_color[category]);
}

static void put_sums(ms_legend *legend)
{
    const ms_peak *peak = &legend->panel->rank->peak;
    ms_legend_rule(legend);
    ms_legend_row(legend, "total allocated", peak->allocated_bytes, NULL);
    if (peak->reserved_bytes > peak->allocated_bytes)
        ms_legend_row(legend, "reserved, max", peak->reserved_bytes, NULL);
}

static void put_legend(struct scene *scene)
{
    int rows = 2;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        rows += scene->shows[c];
    ms_legend legend = {
        .panel = &scene->panel, .y = 104.0, .pitch = rows > 9 ? 25.0 : 27.0};
    ms_legend_heading(&legend, "at the peak", scene->panel.stack.bytes_unit);
    for (int k = MS_N_CATEGORIES; k-- > 0;)
        if (scene->shows[order[k]])
            put_category(&legend, order[k]);
    put_sums(&legend);
}

/* ---- data ---------------------------------------------------------------- */

static void put_plot(struct scene *scene)
{
    const ms_panel *panel = &scene->panel;
    ms_text *script = panel->script;
    for (uint32_t k = 0; k < MS_N_CATEGORIES; k++)
        if (scene->shows[order[k]])
            ms_stack_write(&panel->stack, ms_names_category[order[k]], order,
                           k + 1, script);
    ms_panel_open_plot(panel);
    for (uint32_t k = MS_N_CATEGORIES; k-- > 0;)
        if (scene->shows[order[k]])
            ms_text_add(script,
                        ", \\\n  $%s using 1:2 with filledcurves y1=0 "
                        "linecolor rgb '%s' notitle",
                        ms_names_category[order[k]],
                        ms_canvas_category_color[order[k]]);
    ms_panel_close_plot(panel);
}

ms_err ms_figure_timeline(const ms_record *record, uint32_t rank,
                          const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct scene scene = {
        .panel = ms_panel_of(record, rank, drawing, &script, 0.16)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    MS_TRY(ms_panel_check(&scene.panel, fault));
    MS_TRY(ms_panel_open(&scene.panel, fault));
    find_shown(&scene);
    ms_panel_draw(&scene.panel, format);
    put_legend(&scene);
    put_plot(&scene);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
