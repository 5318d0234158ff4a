/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The streams of one rank under its device memory, with the same time axis.
 * A slice that several works share is divided between them by height, so that
 * area is time even where single ops are too short to be drawn. */

#include <math.h>

#include "plots/axes/axes.h"
#include "plots/axes/frame.h"
#include "plots/axes/legend.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "plots/record/works.h"
#include "sim/report.h"

#define AREA_PX 230.0     /* height of the device memory, */
#define HOST_PX 76.0      /* of the host memory, */
#define HOST_TEXT_PX 30.0 /* of its name, above the highest level, */
#define LANE_PX 36.0      /* and of a stream */
#define LANE_FILL 0.76    /* share of it that the slices fill */
#define GAP_PX 10.0       /* above and below the streams */
#define ALLOCATED "#2F62A8"
#define RESERVED "#8A8A8A"
#define TABLE_GAP_PX 8.0 /* between the legend's tables */

static const struct {
    ms_stream_kind stream;
    const char *name, *words; /* beside the lane; in the legend */
    uint8_t work;             /* the only kind of work of the stream */
} streams[] = {
    {MS_STREAM_COMPUTE, "compute", NULL, MS_WORK_IDLE},
    {MS_STREAM_COMM, "comm", "collectives", MS_WORK_COMM},
    {MS_STREAM_OUTER, "outer", "between groups", MS_WORK_COMM},
    {MS_STREAM_NEXT, "to next", "to the next stage", MS_WORK_COMM},
    {MS_STREAM_BEFORE, "to before", "to the stage before", MS_WORK_COMM},
    {MS_STREAM_H2D, "H2D", "copies H2D", MS_WORK_H2D},
    {MS_STREAM_D2H, "D2H", "copies D2H", MS_WORK_D2H},
    {MS_STREAM_HOST, "host", "host cores", MS_WORK_HOST},
    {MS_STREAM_NVME_READ, "disk read", "disk reads", MS_WORK_NVME},
    {MS_STREAM_NVME_WRITE, "disk write", "disk writes", MS_WORK_NVME},
};
#define N_STREAMS (sizeof streams / sizeof streams[0])

struct lane {
    const char *name, *words;
    uint8_t work;
    const ms_record_lane *saw;
    double y0, y1;
};

struct scene {
    ms_panel panel;
    struct lane lanes[N_STREAMS];
    uint32_t n_lanes;    /* the first is the compute stream's */
    uint64_t host_bytes; /* the highest level of the host's memory; 0: none */
    double host_y;       /* where the area of the host memory has its base */
};

/* ---- lanes --------------------------------------------------------------- */

/* The compute stream of a step that takes no time. */
static const ms_record_lane no_slices = {.stream = MS_STREAM_COMPUTE};

static void load_lane(struct scene *scene, size_t row)
{
    const ms_record_rank *saw = scene->panel.saw;
    struct lane lane = {.name = streams[row].name,
                        .words = streams[row].words,
                        .work = streams[row].work,
                        .saw = row == 0 ? &no_slices : NULL};
    for (uint32_t i = 0; i < saw->n_lanes; i++)
        if (saw->lanes[i].stream == streams[row].stream)
            lane.saw = &saw->lanes[i];
    if (lane.saw != NULL)
        scene->lanes[scene->n_lanes++] = lane;
}

/* Places the areas and the lanes, from the device memory down. */
static void place(struct scene *scene)
{
    ms_panel *panel = &scene->panel;
    double y = panel->area.y1 = panel->area.y0 + AREA_PX;
    if (scene->host_bytes > 0)
        y += HOST_PX;
    scene->host_y = y;
    y += GAP_PX;
    for (uint32_t i = 0; i < scene->n_lanes; i++, y += LANE_PX) {
        scene->lanes[i].y0 = y + LANE_PX * (1.0 - LANE_FILL) / 2;
        scene->lanes[i].y1 = scene->lanes[i].y0 + LANE_PX * LANE_FILL;
    }
    panel->bottom_y = y + GAP_PX;
}

static void put_lane_names(struct scene *scene)
{
    ms_panel *panel = &scene->panel;
    ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK, .align = MS_RIGHT};
    for (uint32_t i = 0; i < scene->n_lanes; i++) {
        const struct lane *lane = &scene->lanes[i];
        ms_canvas_text(panel->script, lane->name, panel->area.x0 - 8.0,
                       (lane->y0 + lane->y1) / 2, &type, 90.0);
    }
}

/* ---- the host's memory --------------------------------------------------- */

static void load_host(struct scene *scene)
{
    const ms_record_rank *saw = scene->panel.saw;
    for (uint32_t i = 0; i < saw->n_far; i++)
        if (saw->far[i] > scene->host_bytes)
            scene->host_bytes = saw->far[i];
}

static void put_host_name(struct scene *scene)
{
    ms_panel *panel = &scene->panel;
    ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK, .align = MS_LEFT};
    ms_text words = {.arena = panel->arena};
    if (scene->host_bytes == 0)
        return;
    ms_text_add(&words, "host memory, at most ");
    ms_units_put_bytes(&words, scene->host_bytes,
                       ms_units_bytes(scene->host_bytes));
    ms_canvas_text(panel->script, ms_axes_words(panel, &words),
                   panel->area.x0 + 6.0, scene->host_y - HOST_PX + 15.0, &type,
                   panel->area.x1 - panel->area.x0);
    ms_axes_line(panel, panel->area.x0, scene->host_y, panel->area.x1,
                 scene->host_y, "#8A8A8A", true);
}

static void put_corner(const ms_panel *panel, double x, double y)
{
    ms_text_double(panel->script, x);
    ms_text_put(panel->script, " ", 1);
    ms_text_double(panel->script, y);
    ms_text_put(panel->script, "\n", 1);
}

/* A polygon on the lanes' axis, a step per px. */
static void put_host(const struct scene *scene)
{
    const ms_panel *panel = &scene->panel;
    const ms_record_rank *saw = panel->saw;
    double end = (double)saw->end_ns / (double)panel->stack.time_unit->size;
    if (scene->host_bytes == 0)
        return;
    ms_text_add(panel->script, "$far << EOD\n");
    put_corner(panel, 0.0, -scene->host_y);
    for (uint32_t i = 0; i < saw->n_far; i++) {
        double part = (double)saw->far[i] / (double)scene->host_bytes;
        double y = -scene->host_y + part * (HOST_PX - HOST_TEXT_PX);
        put_corner(panel, end * i / saw->n_far, y);
        put_corner(panel, end * (i + 1) / saw->n_far, y);
    }
    put_corner(panel, end, -scene->host_y);
    ms_text_add(panel->script, "EOD\n");
}

/* ---- data ---------------------------------------------------------------- */

static void put_box(const ms_panel *panel, const ms_slice *slice, double y0,
                    double y1)
{
    const double at[] = {
        (double)slice->from_ns / (double)panel->stack.time_unit->size,
        (double)slice->to_ns / (double)panel->stack.time_unit->size, y0, y1};
    for (int i = 0; i < 4; i++) {
        ms_text_double(panel->script, at[i]);
        ms_text_put(panel->script, i < 3 ? " " : "\n", 1);
    }
}

/* The part of each slice that is this work, from the bottom up in the order
 * of the works; y in px of the figure, upwards. */
static void put_work(const ms_panel *panel, const struct lane *lane,
                     uint32_t work)
{
    double height = lane->y1 - lane->y0;
    for (uint32_t i = 0; i < lane->saw->n; i++) {
        const ms_slice *slice = &lane->saw->slices[i];
        uint64_t below_ns = 0, all_ns = 0;
        if (slice->work_ns[work] == 0)
            continue;
        for (uint32_t w = 0; w < MS_N_WORKS; w++) {
            all_ns += slice->work_ns[w];
            below_ns += w < work ? slice->work_ns[w] : 0;
        }
        double y0 = (double)below_ns / (double)all_ns;
        double y1 = (double)(below_ns + slice->work_ns[work]) / (double)all_ns;
        put_box(panel, slice, -lane->y1 + y0 * height, -lane->y1 + y1 * height);
    }
}

static bool is_drawn(const struct scene *scene, uint32_t work)
{
    bool drawn = false;
    for (uint32_t i = 0; i < scene->n_lanes; i++)
        drawn |= scene->lanes[i].saw->work_ns[work] > 0;
    return drawn && ms_works_look[work].color != NULL;
}

static void put_blocks(const struct scene *scene)
{
    const ms_panel *panel = &scene->panel;
    ms_category all[MS_N_CATEGORIES];
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        all[c] = (ms_category)c;
    ms_stack_write(&panel->stack, "memory", all, MS_N_CATEGORIES,
                   panel->script);
    for (uint32_t work = 0; work < MS_N_WORKS; work++) {
        if (!is_drawn(scene, work))
            continue;
        ms_text_add(panel->script, "$%s << EOD\n", ms_record_works[work]);
        for (uint32_t i = 0; i < scene->n_lanes; i++)
            put_work(panel, &scene->lanes[i], work);
        ms_text_add(panel->script, "EOD\n");
    }
}

/* The lanes lie on the second y axis, in px. */
static void put_plot(const struct scene *scene)
{
    const ms_panel *panel = &scene->panel;
    ms_text *script = panel->script;
    put_blocks(scene);
    put_host(scene);
    ms_text_add(script, "set y2range [");
    ms_text_double(script, -panel->bottom_y);
    ms_text_add(script, ":");
    ms_text_double(script, -panel->area.y0);
    ms_text_add(script, "]\n");
    ms_stack_write_reserved(&panel->stack, script);
    ms_panel_open_plot(panel);
    ms_text_add(script, ", \\\n  $memory using 1:2 with filledcurves y1=0 "
                        "linecolor rgb '#C9D8E8' notitle, \\\n  $reserved "
                        "using 1:2 with lines linewidth 1 linecolor rgb "
                        "'" RESERVED "' notitle, \\\n  $memory using "
                        "1:2 with lines linewidth 1.2 linecolor rgb '" ALLOCATED
                        "' notitle");
    for (uint32_t work = 0; work < MS_N_WORKS; work++)
        if (is_drawn(scene, work))
            ms_text_add(script,
                        ", \\\n  $%s using 1:3:1:2:3:4 axes x1y2 with "
                        "boxxyerror linecolor rgb '%s' notitle",
                        ms_record_works[work], ms_works_look[work].color);
    if (scene->host_bytes > 0)
        ms_text_add(script, ", \\\n  $far using 1:2 axes x1y2 with "
                            "filledcurves closed linecolor rgb '#B9CDEB' "
                            "notitle");
    ms_panel_close_plot(panel);
}

/* ---- legend -------------------------------------------------------------- */

/* The works of the compute stream add up to the step.  The other streams run
 * beside it, so that their times stand in a second table. */
struct tables {
    ms_legend_entry works[MS_N_WORKS], beside[N_STREAMS + 1];
    uint32_t n_works, n_beside;
};

static void list(const struct scene *scene, struct tables *tables)
{
    const ms_record_lane *compute = scene->lanes[0].saw;
    uint64_t updates_ns = 0;
    for (uint32_t work = 0; work < MS_N_WORKS; work++)
        if (compute->work_ns[work] > 0)
            tables->works[tables->n_works++] =
                (ms_legend_entry){.name = ms_works_look[work].words,
                                  .value = compute->work_ns[work],
                                  .color = ms_works_look[work].color};
    for (uint32_t i = 1; i < scene->n_lanes; i++) {
        const struct lane *lane = &scene->lanes[i];
        tables->beside[tables->n_beside++] =
            (ms_legend_entry){.name = lane->words,
                              .value = lane->saw->work_ns[lane->work],
                              .color = ms_works_look[lane->work].color};
        updates_ns += lane->saw->work_ns[MS_WORK_OPTIMIZER];
    }
    if (updates_ns > 0) /* updates that follow reductions on their stream */
        tables->beside[tables->n_beside++] =
            (ms_legend_entry){.name = ms_works_look[MS_WORK_OPTIMIZER].words,
                              .value = updates_ns,
                              .color = ms_works_look[MS_WORK_OPTIMIZER].color};
}

/* The legend of the lines above the lanes. */
static void put_memory(const struct scene *scene, double y)
{
    const ms_panel *panel = &scene->panel;
    const ms_peak *peak = &panel->rank->peak;
    const ms_legend_entry lines[] = {{.name = "allocated",
                                      .value = peak->allocated_bytes,
                                      .color = ALLOCATED,
                                      .is_line = true},
                                     {.name = "reserved, max",
                                      .value = peak->reserved_bytes,
                                      .color = RESERVED,
                                      .is_line = true}};
    ms_legend_entry over = {0};
    uint32_t n = ms_legend_over(panel, &over);
    ms_legend_put(panel, y, "at the peak", panel->stack.bytes_unit, lines, 2,
                  &over, n);
}

static double height_of(const struct scene *scene, const struct tables *tables)
{
    double height = ms_legend_height(ms_panel_is_over(&scene->panel)) +
                    TABLE_GAP_PX + ms_legend_height(tables->n_works);
    if (tables->n_beside > 0)
        height += TABLE_GAP_PX + ms_legend_height(tables->n_beside);
    return height;
}

static void put_tables(const struct scene *scene, const struct tables *tables,
                       double y)
{
    const ms_panel *panel = &scene->panel;
    const ms_unit *unit = panel->stack.time_unit;
    put_memory(scene, y);
    y += ms_legend_height(ms_panel_is_over(panel)) + TABLE_GAP_PX;
    const ms_legend_entry step = {.name = "step",
                                  .value = panel->rank->time.step_ns};
    ms_legend_put(panel, y, "compute stream", unit, &step, 1, tables->works,
                  tables->n_works);
    y += ms_legend_height(tables->n_works) + TABLE_GAP_PX;
    if (tables->n_beside > 0)
        ms_legend_put(panel, y, "beside it", unit, NULL, 0, tables->beside,
                      tables->n_beside);
}

ms_err ms_figure_gantt(const ms_record *record, uint32_t rank,
                       const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct tables tables = {0};
    ms_frame frame = ms_frame_of(drawing, &script);
    ms_frame_heading(&frame, NULL);
    struct scene scene = {.panel = ms_panel_of(record, rank, &frame)};
    ms_panel *panel = &scene.panel;
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    MS_TRY(ms_record_check(record, fault));
    for (size_t row = 0; row < N_STREAMS; row++)
        load_lane(&scene, row);
    load_host(&scene);
    place(&scene);
    ms_panel_open(panel);
    list(&scene, &tables);
    double y = panel->bottom_y + MS_PANEL_AXIS_PX;
    frame.area = panel->area;
    frame.area.y1 = panel->bottom_y;
    ms_frame_begin(&frame, format, ceil(y + height_of(&scene, &tables) + 8.0));
    ms_panel_draw(panel);
    put_lane_names(&scene);
    put_host_name(&scene);
    put_tables(&scene, &tables, y);
    put_plot(&scene);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
