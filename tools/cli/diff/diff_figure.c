/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/plots.h"
#include "tools/cli/diff/diff.h"

#include <string.h>

const char *ms_diff_figure_name(const ms_side *side)
{
    const char *slash = strrchr(side->name, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : side->name;
}

static ms_err fill(const ms_side *side, const char *letter, ms_arena *arena,
                   ms_overlay_line *line, ms_fault *fault)
{
    ms_overlay_point *points =
        ms_arena_take(arena, side->n_line + 1u, sizeof *points);
    const char *file = ms_diff_figure_name(side);
    ms_text name = {.arena = arena};
    ms_text_add(&name, "%s: ", letter);
    ms_text_put(&name, file, strlen(file));
    if (points == NULL || name.failed)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < side->n_line; i++)
        points[i] = (ms_overlay_point){(double)side->line[i].at / MS_SIDE_AXIS,
                                       side->line[i].bytes};
    *line = (ms_overlay_line){name.bytes, points, side->n_line};
    return MS_OK;
}

ms_err ms_diff_figure_draw(const ms_diff *diff, const ms_picture *figure,
                           ms_arena *arena, ms_fault *fault)
{
    ms_overlay overlay = {0};
    for (int s = 0; s < 2; s++)
        MS_TRY(fill(&diff->sides[s], s == 0 ? "A" : "B", arena,
                    &overlay.lines[s], fault));
    for (int p = 0; p < MS_N_PHASES; p++)
        overlay.edges[p] = (double)diff->edges[p] / MS_SIDE_AXIS;
    const ms_drawing drawing = {.title = figure->title != NULL
                                             ? figure->title
                                             : "Two steps on one axis",
                                .subtitle = diff->cause,
                                .path = figure->path,
                                .script_path = figure->script,
                                .arena = arena};
    return ms_figure_overlay(&overlay, &drawing, fault);
}
