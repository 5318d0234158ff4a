/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One row for each rank: its peak by category and, beside it, the time of its
 * step by kind of work.  A single rank has a table of the numbers below. */

#include <math.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/works.h"
#include "sim/report.h"

#define MOST_ROWS 64u
#define ROW_PX 36.0 /* from a bar to the next, where there are few */
#define CLOSE_ROW_PX 28.0
#define FEW_ROWS 12u
#define ALONE_PX 62.0 /* height of the row where there is only one */
#define NAME_GAP_PX 10.0
#define GAP_PX 42.0   /* between memory and time */
#define TABLE_Y 88.0  /* below the area: the first row */
#define SHARE_PX 64.0 /* the column of shares */
#define RULE_PX 7.0   /* extra distance before the row of sums */
#define SWATCH_PX 18.0

enum { MEMORY, TIME, N_SIDES };

struct side {
    ms_strips strips;
    ms_look looks[MS_STRIPS_MOST];
    uint64_t (*parts)[MS_STRIPS_MOST];
    const char *name;
};

struct scene {
    ms_frame frame;
    struct side sides[N_SIDES];
    const ms_report *report;
    uint32_t data_ranks;
    uint32_t n;        /* rows */
    uint16_t *rank_of; /* of a row: an index into the report's ranks */
    double names_px, pitch;
};

static const char *text_of(const struct scene *scene, const ms_text *text)
{
    return ms_frame_bytes_of(&scene->frame, text);
}

/* ---- which ranks --------------------------------------------------------- */

static uint32_t per_row(const ms_report *report)
{
    return (report->n_ranks + MOST_ROWS - 1) / MOST_ROWS;
}

static uint64_t peak_of(const ms_report *report, uint32_t rank)
{
    return report->ranks[rank].peak.allocated_bytes;
}

/* A report with too many ranks shows one of each few neighbours: the one with
 * the highest peak, since that rank decides whether they fit. */
static void choose(struct scene *scene)
{
    const ms_report *report = scene->report;
    uint32_t each = per_row(report);
    for (uint32_t rank = 0; rank < report->n_ranks; rank++) {
        uint16_t *chosen = &scene->rank_of[rank / each];
        if (rank % each == 0 ||
            peak_of(report, rank) > peak_of(report, *chosen))
            *chosen = (uint16_t)rank;
    }
    scene->n = (report->n_ranks + each - 1) / each;
}

static const ms_rank_report *rank_at(const struct scene *scene, uint32_t row)
{
    return &scene->report->ranks[scene->rank_of[row]];
}

static void fill_parts(struct scene *scene)
{
    for (uint32_t row = 0; row < scene->n; row++) {
        const ms_rank_report *rank = rank_at(scene, row);
        ms_strips_memory_parts(rank->peak.by_category,
                               rank->peak.reserved_bytes,
                               scene->sides[MEMORY].parts[row]);
        ms_strips_time_parts(rank, scene->sides[TIME].parts[row]);
    }
}

static const uint64_t (*parts_of(const struct side *side))[MS_STRIPS_MOST]
{
    return (const uint64_t(*)[MS_STRIPS_MOST])side->parts;
}

static void open_sides(struct scene *scene, ms_text *script)
{
    const ms_report *report = scene->report;
    uint64_t capacity = report->capacity_bytes, context = report->context_bytes;
    struct side *memory = &scene->sides[MEMORY], *time = &scene->sides[TIME];
    ms_strips_memory_looks(memory->looks);
    memory->name = "peak device memory";
    memory->strips = (ms_strips){
        .block = "memory",
        .n_looks = MS_STRIPS_MEMORY,
        .capacity_bytes = capacity,
        .usable_bytes = capacity > context ? capacity - context : 0};
    for (int work = 0; work < MS_N_WORKS; work++)
        time->looks[work] = ms_works_look[work];
    time->name = "time of the step";
    time->strips =
        (ms_strips){.block = "time", .n_looks = MS_N_WORKS, .is_time = true};
    for (int s = 0; s < N_SIDES; s++) {
        struct side *side = &scene->sides[s];
        side->strips.script = script;
        side->strips.looks = side->looks;
        ms_strips_open(&side->strips, parts_of(side), scene->n);
    }
}

static ms_err load(struct scene *scene, ms_text *script, ms_fault *fault)
{
    uint32_t most = scene->report->n_ranks;
    scene->rank_of = ms_arena_take(script->arena, most, sizeof *scene->rank_of);
    for (int s = 0; s < N_SIDES; s++) {
        struct side *side = &scene->sides[s];
        side->parts = ms_arena_take(script->arena, most, sizeof *side->parts);
        if (side->parts == NULL)
            return ms_fail_nomem(fault);
    }
    if (scene->rank_of == NULL)
        return ms_fail_nomem(fault);
    choose(scene);
    fill_parts(scene);
    open_sides(scene, script);
    return MS_OK;
}

/* ---- words --------------------------------------------------------------- */

static const char *name_of(const struct scene *scene, uint32_t row)
{
    ms_text text = {.arena = scene->frame.script->arena};
    ms_text_add(&text, "rank %u", rank_at(scene, row)->rank);
    return text_of(scene, &text);
}

/* NULL: there is nothing to say. */
static const char *note_of(const struct scene *scene)
{
    ms_text text = {.arena = scene->frame.script->arena};
    uint32_t each = per_row(scene->report);
    if (scene->n == 1 && scene->data_ranks > 1)
        ms_text_add(&text, "%s (the same on all %u)", name_of(scene, 0),
                    scene->data_ranks);
    else if (scene->data_ranks > 1)
        ms_text_add(&text, "each the same on %u devices", scene->data_ranks);
    if (each > 1)
        ms_text_add(&text,
                    "%sof each %u neighbouring ranks the one with the highest "
                    "peak",
                    text.length > 0 ? "; " : "", each);
    return text.length > 0 || text.failed ? text_of(scene, &text) : NULL;
}

/* ---- places -------------------------------------------------------------- */

static void place_sides(struct scene *scene, double x0, double y0, double y1)
{
    double half = (MS_FRAME_RIGHT - x0 - GAP_PX) / 2;
    const ms_box areas[N_SIDES] = {
        [MEMORY] = {x0, y0, x0 + half, y1},
        [TIME] = {MS_FRAME_RIGHT - half, y0, MS_FRAME_RIGHT, y1}};
    scene->frame.area = (ms_box){x0, y0, MS_FRAME_RIGHT, y1};
    for (int s = 0; s < N_SIDES; s++)
        ms_strips_place(&scene->sides[s].strips, &scene->frame, &areas[s]);
}

static void place(struct scene *scene)
{
    ms_frame *frame = &scene->frame;
    bool alone = scene->n == 1;
    ms_frame_heading(frame, note_of(scene));
    for (int s = 0; s < N_SIDES && !alone; s++) {
        const struct side *side = &scene->sides[s];
        ms_strips_legend(frame, side->looks, side->strips.n_looks,
                         side->strips.shown);
    }
    for (uint32_t row = 0; row < scene->n && !alone; row++)
        scene->names_px =
            fmax(scene->names_px,
                 ms_escape_width(name_of(scene, row), MS_TEXT_PX, false) *
                     MS_FRAME_SLACK);
    scene->pitch = alone                 ? ALONE_PX
                   : scene->n > FEW_ROWS ? CLOSE_ROW_PX
                                         : ROW_PX;
    double y0 = frame->y + 4.0 + MS_STRIPS_HEAD_PX;
    place_sides(scene,
                MS_FRAME_LEFT + (alone ? 0.0 : scene->names_px + NAME_GAP_PX),
                y0, y0 + scene->pitch * scene->n + 2 * MS_STRIPS_EDGE_PX);
}

static double row_y(const struct scene *scene, uint32_t row)
{
    return scene->frame.area.y0 + MS_STRIPS_EDGE_PX +
           scene->pitch * (row + 0.5);
}

/* ---- the table of one rank ----------------------------------------------- */

static void put_share(const struct scene *scene, uint64_t value, uint64_t sum,
                      double x, double y)
{
    static const ms_unit percent = {"%", 1, 0};
    ms_text text = {.arena = scene->frame.script->arena};
    double share = sum > 0 ? 100.0 * (double)value / (double)sum : 0.0;
    if (share > 0.0 && share < 0.5)
        ms_text_add(&text, "<1 %%");
    else {
        ms_units_put_decimals(&text, (uint64_t)(share + 0.5), &percent, 100);
        ms_text_add(&text, " %%");
    }
    ms_frame_text(&scene->frame, text_of(scene, &text), x, y, MS_RIGHT, MS_GREY,
                  SHARE_PX);
}

static void put_value(const struct scene *scene, const struct side *side,
                      uint64_t value, double y, bool is_bold)
{
    const ms_type type = {.size_px = MS_TEXT_PX,
                          .color = MS_INK,
                          .align = MS_RIGHT,
                          .is_bold = is_bold};
    ms_text text = {.arena = scene->frame.script->arena};
    ms_units_put_number(&text, value, side->strips.unit);
    ms_canvas_text(scene->frame.script, text_of(scene, &text),
                   side->strips.frame.area.x1 - SHARE_PX, y, &type, 150.0);
}

static void put_line(const struct scene *scene, const struct side *side,
                     uint32_t part, double y)
{
    const ms_box *area = &side->strips.frame.area;
    const ms_look *look = &side->looks[part];
    uint64_t value = side->parts[0][part];
    ms_canvas_box(scene->frame.script,
                  &(ms_box){area->x0, y - SWATCH_PX / 2, area->x0 + SWATCH_PX,
                            y + SWATCH_PX / 2},
                  ms_strips_color(look), false);
    ms_frame_text(&scene->frame, look->words, area->x0 + 26.0, y, MS_LEFT,
                  MS_INK, 220.0);
    put_value(scene, side, value, y, false);
    put_share(scene, value, ms_strips_sum(side->parts[0]), area->x1, y);
}

static void put_table(const struct scene *scene, const struct side *side,
                      const char *total)
{
    const ms_box *area = &side->strips.frame.area;
    double y = area->y1 + TABLE_Y;
    for (uint32_t part = 0; part < side->strips.n_looks; part++)
        if (side->parts[0][part] > 0) {
            put_line(scene, side, part, y);
            y += MS_FRAME_LINE_PX;
        }
    y += RULE_PX;
    ms_frame_line(&scene->frame, area->x0, y - 15.0, area->x1, y - 15.0,
                  MS_FRAME_AXIS, true);
    ms_frame_text(&scene->frame, total, area->x0 + 26.0, y, MS_LEFT, MS_INK,
                  220.0);
    put_value(scene, side, ms_strips_sum(side->parts[0]), y, true);
}

static uint32_t table_rows(const struct scene *scene)
{
    uint32_t most = 0;
    for (int s = 0; s < N_SIDES; s++) {
        uint32_t rows = 1;
        for (uint32_t part = 0; part < scene->sides[s].strips.n_looks; part++)
            rows += scene->sides[s].parts[0][part] > 0;
        if (rows > most)
            most = rows;
    }
    return most;
}

/* ---- drawing ------------------------------------------------------------- */

static void put_rows(const struct scene *scene)
{
    const ms_strips *memory = &scene->sides[MEMORY].strips;
    for (uint32_t row = 0; row < scene->n; row++) {
        const ms_rank_report *rank = rank_at(scene, row);
        double y = row_y(scene, row);
        bool fits = memory->usable_bytes == 0 ||
                    rank->peak.reserved_bytes <= memory->usable_bytes;
        if (scene->n > 1)
            ms_frame_text(&scene->frame, name_of(scene, row),
                          scene->frame.area.x0 - NAME_GAP_PX, y, MS_RIGHT,
                          MS_INK, scene->names_px);
        for (int s = 0; s < N_SIDES; s++)
            ms_strips_bar(&scene->sides[s].strips, scene->sides[s].parts[row],
                          y, scene->pitch, fits);
    }
}

static void draw(struct scene *scene, ms_format format)
{
    ms_frame *frame = &scene->frame;
    double height = frame->area.y1 + 70.0;
    if (scene->n == 1)
        height +=
            TABLE_Y - 70.0 + RULE_PX + MS_FRAME_LINE_PX * table_rows(scene);
    ms_frame_begin(frame, format, ceil(height));
    for (int s = 0; s < N_SIDES; s++) {
        const struct side *side = &scene->sides[s];
        const ms_strips *strips = &side->strips;
        ms_strips_axis(strips, side->name,
                       s == MEMORY ? MS_FRAME_LEFT : strips->frame.area.x0);
    }
    put_rows(scene);
    if (scene->n == 1) {
        put_table(scene, &scene->sides[MEMORY], "in all");
        put_table(scene, &scene->sides[TIME], "step");
    }
    for (int s = 0; s < N_SIDES; s++)
        ms_strips_blocks(&scene->sides[s].strips, parts_of(&scene->sides[s]),
                         scene->n, row_y(scene, 0), scene->pitch);
    ms_frame_open_plot(frame);
    for (int s = 0; s < N_SIDES; s++)
        ms_strips_plot(&scene->sides[s].strips);
    ms_text_add(frame->script, "\n");
}

ms_err ms_figure_ranks(const ms_report *report, uint32_t data_ranks,
                       const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct scene scene = {.frame = ms_frame_of(drawing, &script),
                          .report = report,
                          .data_ranks = data_ranks};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (report->n_ranks == 0)
        return ms_fail(fault, MS_EINPUT, "figure ranks",
                       "give it the report of a run", "there are no ranks");
    MS_TRY(load(&scene, &script, fault));
    place(&scene);
    draw(&scene, format);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
