/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory of one rank over the step, as stacked areas in painter's
 * order.  The capacity line lies at capacity less context: what the pool may
 * reach, so that the areas cross it exactly when the step does not fit. */

#include <assert.h>
#include <math.h>

#include "plots/figure.h"

#define MOST_POINTS 2500u /* about four per px */
#define HEAD_ROOM 0.16    /* of the height, above all data: for labels */
#define FAR_CAPACITY 3.0  /* times the peak: beyond it only a note */
#define SLACK 1.1         /* where another font is wider than Helvetica */
#define LABEL_PX 18.0     /* height of a label */
#define MOST_WALLS 6u     /* bands whose borders are drawn */

#define INK "#1A1A1A"
#define GREY "#5A5A5A"
#define RED "#B3261E"
#define AXIS "#4A4A4A"

static const ms_box area = {70.0, 90.0, 680.0, 387.0};
static const ms_box strip = {70.0, 68.0, 680.0, 87.0};
static const double legend_x0 = 699.0, legend_x1 = 884.0;

/* From the bottom: what stays put, then what a policy changes. */
static const ms_category order[MS_N_CATEGORIES] = {
    MS_PARAMETERS, MS_OPTIMIZER_STATE, MS_WORKSPACE,     MS_INPUTS,
    MS_GRADIENTS,  MS_ACTIVATIONS,     MS_COMMUNICATION, MS_TEMPORARIES,
};

struct scene {
    const ms_timeline *line;
    const ms_figure *figure;
    const ms_rank_report *rank;
    ms_text *script;
    ms_arena *arena;
    ms_stack stack;
    ms_room room;
    bool has_time; /* false: the step takes none, x counts the events */
    double peak_x, peak_y;
    uint64_t peak_bytes, capacity_bytes, context_bytes;
    uint64_t usable_bytes; /* capacity less context */
    bool shows_line;
    bool shows[MS_N_CATEGORIES];
    ms_band *bands;
    uint32_t n_bands;
    double walls[MOST_WALLS];
};

static const ms_type plain = {.size_px = 14.0, .color = INK};

/* ---- what there is to draw ----------------------------------------------- */

static const ms_rank_report *find_rank(const ms_report *report, uint8_t rank)
{
    uint8_t i = 0;
    while (i + 1 < report->n_ranks && report->ranks[i].rank != rank)
        i++;
    assert(report->ranks[i].rank == rank);
    return &report->ranks[i];
}

static ms_err load_points(struct scene *scene, ms_fault *fault)
{
    ms_stack *stack = &scene->stack;
    ms_point *points;
    MS_TRY(ms_timeline_points(scene->line, scene->figure->rank, MOST_POINTS,
                              scene->arena, &points, &stack->n, fault));
    stack->end_ns = scene->line->step_ns;
    if (stack->n > 0 && points[stack->n - 1].t_ns > stack->end_ns)
        stack->end_ns = points[stack->n - 1].t_ns;
    scene->has_time = stack->end_ns > 0;
    stack->n = ms_stack_thicken(points, stack->n, stack->end_ns,
                                (uint32_t)(area.x1 - area.x0));
    for (uint32_t i = 0; i < stack->n && !scene->has_time; i++)
        points[i].t_ns = i;
    if (!scene->has_time)
        stack->end_ns = stack->n > 0 ? stack->n : 1;
    stack->points = points;
    return MS_OK;
}

static void load_levels(struct scene *scene)
{
    const ms_stack *stack = &scene->stack;
    uint32_t peak = 0;
    for (uint32_t i = 0; i < stack->n; i++) {
        if (stack->points[i].total_bytes > stack->points[peak].total_bytes)
            peak = i;
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            scene->shows[c] |= stack->points[i].bytes[c] > 0;
    }
    if (stack->n == 0)
        return;
    scene->peak_bytes = stack->points[peak].total_bytes;
    scene->peak_x = (double)stack->points[peak].t_ns;
}

static void set_scale(struct scene *scene, const ms_report *report)
{
    ms_stack *stack = &scene->stack;
    double highest = (double)scene->peak_bytes;
    scene->capacity_bytes = report->capacity_bytes;
    scene->context_bytes = report->context_bytes;
    if (scene->capacity_bytes > scene->context_bytes)
        scene->usable_bytes = scene->capacity_bytes - scene->context_bytes;
    double usable = (double)scene->usable_bytes;
    scene->shows_line = scene->capacity_bytes > 0 && highest > 0.0 &&
                        usable <= highest * FAR_CAPACITY;
    if (scene->shows_line && usable > highest)
        highest = usable;
    stack->bytes_unit = ms_units_bytes((uint64_t)highest);
    stack->time_unit = ms_units_time(scene->has_time ? stack->end_ns : 0);
    stack->top_bytes = highest > 0.0 ? highest / (1.0 - HEAD_ROOM) : 1024.0;
    stack->area = area;
    scene->peak_x = ms_stack_x(stack, scene->peak_x);
    scene->peak_y = ms_stack_y(stack, (double)scene->peak_bytes);
    scene->room = (ms_room){.area = area, .line_y = -1.0};
    if (scene->shows_line)
        scene->room.line_y = ms_stack_y(stack, usable);
}

/* The bytes of a text; running out of memory for it fails the script. */
static const char *bytes_of(const struct scene *scene, const ms_text *text)
{
    if (!text->failed)
        return text->bytes;
    scene->script->failed = true;
    return "";
}

/* ---- axes ---------------------------------------------------------------- */

static void put_line(struct scene *scene, double x0, double y0, double x1,
                     double y1, const char *color, bool in_front)
{
    double width = in_front ? 1.0 : 0.7;
    ms_canvas_line(scene->script, &(ms_box){x0, y0, x1, y1}, width, color,
                   in_front);
}

static void put_tick_word(struct scene *scene, double value, double x, double y,
                          ms_align align)
{
    ms_text text = {.arena = scene->arena};
    ms_type type = {.size_px = 13.0, .color = INK, .align = align};
    ms_text_double(&text, value);
    ms_canvas_text(scene->script, bytes_of(scene, &text), x, y, &type, 60.0);
}

static void put_y_axis(struct scene *scene)
{
    const ms_stack *stack = &scene->stack;
    double unit = (double)stack->bytes_unit->size;
    double step = ms_units_step(stack->top_bytes / unit, 9);
    if (stack->bytes_unit->size == 1 && step < 1.0)
        step = 1.0;
    scene->room.grid_px = area.y1 - ms_stack_y(stack, step * unit);
    for (int i = 0; i * step * unit <= stack->top_bytes; i++) {
        double y = ms_stack_y(stack, i * step * unit);
        if (i > 0)
            put_line(scene, area.x0, y, area.x1, y, "#CFCFCF", false);
        put_line(scene, area.x0 - 5.0, y, area.x0, y, AXIS, true);
        put_tick_word(scene, i * step, area.x0 - 10.0, y, MS_RIGHT);
    }
}

static void put_x_axis(struct scene *scene)
{
    const ms_stack *stack = &scene->stack;
    double unit = (double)stack->time_unit->size;
    double end = (double)stack->end_ns;
    double step = ms_units_step(end / unit, 7);
    if (stack->time_unit->size == 1 && step < 1.0)
        step = 1.0;
    for (int i = 0; i * step * unit <= end; i++) {
        double x = ms_stack_x(stack, i * step * unit);
        put_line(scene, x, area.y1, x, area.y1 + 5.0, AXIS, true);
        put_tick_word(scene, i * step, x, area.y1 + 16.0, MS_CENTER);
    }
}

static void put_axes(struct scene *scene)
{
    put_y_axis(scene);
    put_x_axis(scene);
    put_line(scene, area.x0, area.y0, area.x0, area.y1, AXIS, true);
    put_line(scene, area.x0, area.y1, area.x1, area.y1, AXIS, true);
}

static void put_axis_titles(struct scene *scene)
{
    ms_text text = {.arena = scene->arena};
    ms_type type = plain;
    type.align = MS_CENTER;
    if (scene->has_time)
        ms_text_add(&text, "time in step (%s)", scene->stack.time_unit->name);
    else
        ms_text_add(&text, "events in order (the step takes no time)");
    ms_canvas_text(scene->script, bytes_of(scene, &text),
                   (area.x0 + area.x1) / 2, 425.0, &type, area.x1 - area.x0);
    text = (ms_text){.arena = scene->arena};
    ms_text_add(&text, "device memory");
    if (scene->line->plan->n_ranks > 1)
        ms_text_add(&text, " of rank %u", (unsigned)scene->figure->rank);
    ms_text_add(&text, " (%s)", scene->stack.bytes_unit->name);
    type.is_upright = true;
    ms_canvas_text(scene->script, bytes_of(scene, &text), 15.0,
                   (area.y0 + area.y1) / 2, &type, area.y1 - area.y0);
}

/* ---- title --------------------------------------------------------------- */

/* Shrinks the text to at most 4 px less before it is cut. */
static void put_heading(struct scene *scene, const char *bytes, double y,
                        ms_type type)
{
    double limit = (legend_x1 - area.x0) / SLACK;
    if (bytes == NULL || bytes[0] == '\0')
        return;
    for (int i = 0; i < 4; i++)
        if (ms_escape_width(bytes, type.size_px, type.is_bold) > limit)
            type.size_px -= 1.0;
    ms_canvas_text(scene->script, bytes, area.x0, y, &type, limit);
}

static void put_headings(struct scene *scene)
{
    static const ms_type title = {
        .size_px = 19.0, .color = "#000000", .is_bold = true};
    static const ms_type subtitle = {.size_px = 14.0, .color = GREY};
    put_heading(scene, scene->figure->title, 22.0, title);
    put_heading(scene, scene->figure->subtitle, 48.0, subtitle);
}

/* ---- phases -------------------------------------------------------------- */

static const struct {
    const char *strip, *tint;
} phases[] = {
    [MS_PHASE_FORWARD] = {"#C9D8E8", "#F3F6FA"},
    [MS_PHASE_BACKWARD] = {"#F0DDBB", "#FCF7EF"},
    [MS_PHASE_OPTIMIZER] = {"#C7E2D4", "#F1F8F4"},
    [MS_PHASE_MIXED] = {"#DEDBD4", "#F8F7F4"},
};

/* The first word that fits is written; the last band has room beside it, in
 * front of the legend. */
static void put_band_word(struct scene *scene, const ms_band *band, double x0,
                          double x1)
{
    ms_type type = {.size_px = 13.0, .color = INK, .align = MS_CENTER};
    const char *const *words = ms_phases_words[band->phase];
    double middle = (strip.y0 + strip.y1) / 2;
    bool is_last = band == &scene->bands[scene->n_bands - 1] && x0 > area.x0;
    for (int i = 0; i < MS_PHASE_WORDS - is_last; i++) {
        double width = ms_escape_width(words[i], type.size_px, false) + 3.0;
        if (width > x1 - x0)
            continue;
        ms_canvas_text(scene->script, words[i], (x0 + x1) / 2, middle, &type,
                       width);
        return;
    }
    if (is_last) {
        type.align = MS_LEFT;
        ms_canvas_text(scene->script, words[1], x1 + 4.0, middle, &type,
                       legend_x1 - x1);
    }
}

static void put_bands(struct scene *scene)
{
    scene->room.walls = scene->walls;
    for (uint32_t i = 0; i < scene->n_bands; i++) {
        const ms_band *band = &scene->bands[i];
        double x0 = ms_stack_x(&scene->stack, (double)band->from_ns);
        double x1 = ms_stack_x(&scene->stack, (double)band->to_ns);
        ms_box on_strip = {x0, strip.y0, x1, strip.y1};
        ms_box on_area = {x0, area.y0, x1, area.y1};
        ms_canvas_box(scene->script, &on_strip, phases[band->phase].strip,
                      false);
        ms_canvas_box(scene->script, &on_area, phases[band->phase].tint, false);
        if (i > 0 && scene->n_bands <= MOST_WALLS) {
            put_line(scene, x0, area.y0, x0, area.y1, "#B4B4B4", false);
            scene->walls[scene->room.n_walls++] = x0;
        }
        put_band_word(scene, band, x0, x1);
    }
}

/* ---- capacity and peak --------------------------------------------------- */

/* With a background where the box lies on something. */
static void put_boxed(struct scene *scene, const char *bytes, const ms_box *box,
                      const ms_type *type, bool covers)
{
    double aside = (box->x1 - box->x0) * (1.0 - 1.0 / SLACK) - 6.0;
    ms_box tight = *box;
    if (type->align != MS_LEFT)
        tight.x0 += type->align == MS_CENTER ? aside / 2 : aside;
    if (type->align != MS_RIGHT)
        tight.x1 -= type->align == MS_CENTER ? aside / 2 : aside;
    if (covers)
        ms_canvas_box(scene->script, &tight, "#FFFFFF", true);
    double x = type->align == MS_LEFT    ? box->x0
               : type->align == MS_RIGHT ? box->x1
                                         : (box->x0 + box->x1) / 2;
    ms_canvas_text(scene->script, bytes, x, (box->y0 + box->y1) / 2, type,
                   box->x1 - box->x0);
}

static const char *name_capacity(struct scene *scene)
{
    ms_text text = {.arena = scene->arena};
    const ms_unit *unit = ms_units_bytes(scene->capacity_bytes);
    ms_text_add(&text, scene->shows_line ? "capacity " : "↑ capacity ");
    ms_units_put_bytes(&text, scene->capacity_bytes, unit);
    if (scene->context_bytes > 0 && scene->shows_line) {
        ms_text_add(&text, " less context ");
        ms_units_put_bytes(&text, scene->context_bytes, unit);
    }
    return bytes_of(scene, &text);
}

static const char *name_peak(struct scene *scene)
{
    ms_text text = {.arena = scene->arena};
    ms_text_add(&text, "peak ");
    ms_units_put_number(&text, scene->peak_bytes, scene->stack.bytes_unit);
    ms_text_add(&text, " %s", scene->stack.bytes_unit->name);
    if (scene->has_time) {
        ms_text_add(&text, " at ");
        ms_units_put_time(&text, scene->rank->peak.t_ns);
    }
    return bytes_of(scene, &text);
}

/* What lies far above the axis is only named. */
static bool place_capacity(const struct scene *scene, double width, ms_box *box)
{
    return (scene->shows_line ? ms_labels_line : ms_labels_top)(
        &scene->room, &scene->stack, scene->peak_x, width, LABEL_PX, box);
}

static void put_capacity(struct scene *scene, const char *bytes,
                         const ms_box *box, bool on_areas)
{
    double y = scene->room.line_y;
    ms_type type = {.size_px = 14.0, .color = RED, .align = MS_CENTER};
    if (scene->shows_line)
        ms_canvas_line(scene->script, &(ms_box){area.x0, y, area.x1, y}, 1.6,
                       RED, true);
    put_boxed(scene, bytes, box, &type,
              on_areas || ms_labels_on_lines(&scene->room, box));
}

static void put_peak(struct scene *scene, const char *bytes, const ms_box *box)
{
    bool on_left = box->x1 < scene->peak_x;
    ms_box arrow = {on_left ? box->x1 + 3.0 : box->x0 - 3.0,
                    (box->y0 + box->y1) / 2, scene->peak_x, scene->peak_y};
    ms_type type = {.size_px = 14.0,
                    .color = "#000000",
                    .align = on_left ? MS_RIGHT : MS_LEFT};
    ms_canvas_arrow(scene->script, &arrow, type.color);
    put_boxed(scene, bytes, box, &type, ms_labels_on_lines(&scene->room, box));
}

/* The peak's label goes to its right, or to its left if only so the
 * capacity's label finds room. */
static void put_labels(struct scene *scene)
{
    ms_box peak = {0}, capacity = {0};
    bool has_room = false, has_peak = scene->peak_bytes > 0;
    const char *of_peak = name_peak(scene);
    const char *of_capacity = name_capacity(scene);
    double peak_px = ms_escape_width(of_peak, 14.0, false) * SLACK;
    double capacity_px = ms_escape_width(of_capacity, 14.0, false) * SLACK;
    double x = scene->peak_x, y = scene->peak_y;
    for (int side = 0; side < 2 && !has_room; side++) {
        if (has_peak) {
            peak =
                ms_labels_peak(&scene->room, x, y, peak_px, LABEL_PX, side > 0);
            double end = peak.x1 < x ? peak.x1 : peak.x0; /* of the arrow */
            scene->room.taken[0] = peak;
            scene->room.taken[1] =
                (ms_box){fmin(end, x) - 5.0, peak.y0, fmax(end, x) + 5.0, y};
        }
        has_room = place_capacity(scene, capacity_px, &capacity);
    }
    if (scene->capacity_bytes > 0)
        put_capacity(scene, of_capacity, &capacity,
                     scene->shows_line && !has_room);
    if (has_peak)
        put_peak(scene, of_peak, &peak);
}

/* ---- legend -------------------------------------------------------------- */

struct legend {
    struct scene *scene;
    double y, pitch;
};

static void put_legend_row(struct legend *legend, const char *name,
                           uint64_t bytes, const char *color)
{
    struct scene *scene = legend->scene;
    ms_text value = {.arena = scene->arena};
    ms_type left = {.size_px = 14.0, .color = color};
    ms_type right = {.size_px = 14.0, .color = color, .align = MS_RIGHT};
    ms_units_put_number(&value, bytes, scene->stack.bytes_unit);
    ms_canvas_text(scene->script, name, legend_x0 + 23.0, legend->y, &left,
                   110.0);
    ms_canvas_text(scene->script, bytes_of(scene, &value), legend_x1, legend->y,
                   &right, 90.0);
    legend->y += legend->pitch;
}

static void put_category(struct legend *legend, ms_category category)
{
    char name[32];
    double y = legend->y;
    size_t i = 0;
    for (; ms_names_category[category][i] != '\0' && i < sizeof name - 1; i++) {
        char letter = ms_names_category[category][i];
        name[i] = letter == '_' ? ' ' : letter;
    }
    name[i] = '\0';
    ms_canvas_box(legend->scene->script,
                  &(ms_box){legend_x0, y - 7.5, legend_x0 + 15.0, y + 7.5},
                  ms_canvas_category_color[category], false);
    uint64_t bytes = legend->scene->rank->peak.by_category[category];
    put_legend_row(legend, name, bytes, bytes > 0 ? INK : GREY);
}

static void put_sums(struct legend *legend)
{
    const struct scene *scene = legend->scene;
    const ms_peak *peak = &scene->rank->peak;
    uint64_t reserved = peak->reserved_bytes > peak->allocated_bytes
                            ? peak->reserved_bytes
                            : peak->allocated_bytes;
    double y = legend->y - legend->pitch / 2;
    put_line(legend->scene, legend_x0, y, legend_x1, y, "#8A8A8A", true);
    put_legend_row(legend, "total allocated", peak->allocated_bytes, INK);
    if (reserved > peak->allocated_bytes)
        put_legend_row(legend, "reserved, max", reserved, INK);
}

static void put_legend(struct scene *scene)
{
    static const ms_type heading = {.size_px = 14.0, .color = GREY};
    ms_text text = {.arena = scene->arena};
    int rows = 2;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        rows += scene->shows[c];
    struct legend legend = {scene, 104.0, rows > 9 ? 25.0 : 27.0};
    ms_text_add(&text, "at the peak (%s)", scene->stack.bytes_unit->name);
    ms_canvas_text(scene->script, bytes_of(scene, &text), legend_x0, legend.y,
                   &heading, legend_x1 - legend_x0);
    legend.y += legend.pitch;
    for (int k = MS_N_CATEGORIES; k-- > 0;)
        if (scene->shows[order[k]])
            put_category(&legend, order[k]);
    put_sums(&legend);
}

/* ---- data ---------------------------------------------------------------- */

static void put_plot(struct scene *scene)
{
    ms_text *script = scene->script;
    bool over = scene->shows_line && scene->peak_bytes > scene->usable_bytes;
    for (uint32_t k = 0; k < MS_N_CATEGORIES; k++)
        if (scene->shows[order[k]])
            ms_stack_write(&scene->stack, order, k + 1, script);
    if (over)
        ms_stack_write_hatch(&scene->stack, (double)scene->usable_bytes,
                             script);
    ms_text_add(script, "set xrange [0:");
    ms_text_double(script, (double)scene->stack.end_ns /
                               (double)scene->stack.time_unit->size);
    ms_text_add(script, "]\nset yrange [0:");
    ms_text_double(script, scene->stack.top_bytes /
                               (double)scene->stack.bytes_unit->size);
    ms_text_add(script, "]\nplot -1 notitle"); /* out of sight: never empty */
    for (uint32_t k = MS_N_CATEGORIES; k-- > 0;)
        if (scene->shows[order[k]])
            ms_text_add(script,
                        ", \\\n  $%s using 1:2 with filledcurves y1=0 "
                        "linecolor rgb '%s' notitle",
                        ms_names_category[order[k]],
                        ms_canvas_category_color[order[k]]);
    if (over)
        ms_text_add(script, ", \\\n  $over using 1:2 with lines linewidth 0.7 "
                            "linecolor rgb '#50B3261E' notitle");
    ms_text_add(script, "\n");
}

/* Boxes behind the data are drawn in the order written: tints, then grid. */
static ms_err write_script(struct scene *scene, ms_format format,
                           ms_fault *fault)
{
    ms_text_add(scene->script, "# gnuplot -d THIS_FILE > PICTURE\n");
    ms_canvas_begin(scene->script, format, &area);
    put_headings(scene);
    put_bands(scene);
    put_axes(scene);
    put_axis_titles(scene);
    put_labels(scene);
    put_legend(scene);
    put_plot(scene);
    return scene->script->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_figure_timeline(const ms_timeline *line, const ms_report *report,
                          const ms_figure *figure, const char *path,
                          const char *script_path, ms_arena *arena,
                          ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = arena};
    struct scene scene = {.line = line,
                          .figure = figure,
                          .script = &script,
                          .arena = arena,
                          .rank = find_rank(report, figure->rank)};
    char *picture;
    size_t length;
    MS_TRY(ms_gnuplot_format(path, &format, fault));
    MS_TRY(load_points(&scene, fault));
    load_levels(&scene);
    set_scale(&scene, report);
    MS_TRY(ms_phases_bands(line, figure->rank, scene.stack.end_ns, arena,
                           &scene.bands, &scene.n_bands, fault));
    MS_TRY(write_script(&scene, format, fault));
    if (script_path != NULL)
        MS_TRY(
            ms_output_write(script_path, script.bytes, script.length, fault));
    MS_TRY(ms_gnuplot_run(script.bytes, script.length, format, arena, &picture,
                          &length, fault));
    return ms_output_write(path, picture, length, fault);
}
