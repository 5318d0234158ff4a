/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each layer saves for backward and, in a second panel below with the same
 * axis, how long its recomputation takes.  Layers stand in the order of the
 * forward pass. */

#include <math.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/works.h"
#include "sim/measure/bylayer.h"

#define MOST_BARS 300u
#define X0 96.0         /* of both panels */
#define HEIGHT_PX 230.0 /* of the panel of saved bytes, */
#define LOWER_PX 160.0  /* of the panel of recomputation, */
#define NOTHING_PX 40.0 /* of the words in place of an empty panel */
#define PANEL_GAP_PX 30.0
#define LABEL_PX 32.0    /* above the highest bar */
#define NAMES_PX 66.0    /* below the axis: names of layers, of the axis */
#define NAME_PX 200.0    /* the widest name */
#define NAME_GAP_PX 14.0 /* between names */
#define BAR_FILL 0.8     /* share of its slot that a bar fills, */
#define GAPS_FROM_PX 4.0 /* where a slot is at least as wide as this */
#define WIDEST_PX 120.0
#define OVERLAP_PX 0.3 /* of bars in narrower slots: no seams between them */

/* The colour of the forward pass, of which recomputation repeats a part.
 * Recomputation has the same colour as activations elsewhere: then both panels
 * would have one colour. */
#define AGAIN_COLOR ms_works_look[MS_WORK_FORWARD].color

enum { SAVED, AGAIN, N_PANELS };

static const struct {
    const char *block, *axis, *nothing;
} kinds[N_PANELS] = {
    [SAVED] = {"saved", "saved", "nothing is saved for backward"},
    [AGAIN] = {"again", "recompute", "nothing is recomputed"},
};

/* Neighbouring layers that share a bar; it has the name of the first. */
struct bar {
    const char *name;
    uint64_t value[N_PANELS];
};

struct panel {
    ms_frame frame; /* with its area */
    ms_scale scale;
    const ms_unit *unit;
    uint64_t sum, highest;
};

struct scene {
    ms_frame frame;
    ms_look looks[N_PANELS]; /* the legend, with totals */
    struct panel panels[N_PANELS];
    struct bar *bars;
    uint32_t n, each;      /* bars; layers in one */
    const char *most_name; /* of the first layer that saves most */
    uint32_t others;       /* later layers that save as much */
    uint64_t forward_ns;
    double names_y; /* the axis with the names of the layers */
};

static const char *text_of(const struct scene *scene, const ms_text *text)
{
    return ms_frame_bytes_of(&scene->frame, text);
}

/* ---- what there is to draw ----------------------------------------------- */

static void add_layer(struct scene *scene, const ms_layer_use *layer,
                      uint32_t i)
{
    struct bar *bar = &scene->bars[i / scene->each];
    const uint64_t value[N_PANELS] = {
        [SAVED] = layer->saved_bytes, [AGAIN] = layer->recompute_ns};
    if (i % scene->each == 0)
        *bar = (struct bar){.name = layer->name};
    for (int p = 0; p < N_PANELS; p++) {
        struct panel *panel = &scene->panels[p];
        bool is_most = value[p] > panel->highest;
        if (value[p] > bar->value[p])
            bar->value[p] = value[p];
        if (p == SAVED && is_most) {
            scene->most_name = layer->name;
            scene->others = 0;
        } else if (p == SAVED && value[p] == panel->highest) {
            scene->others++;
        }
        if (is_most)
            panel->highest = value[p];
        panel->sum += value[p];
    }
    scene->forward_ns += layer->forward_ns;
}

static ms_err load(struct scene *scene, const ms_layer_use *layers, uint32_t n,
                   ms_arena *arena, ms_fault *fault)
{
    scene->each = (n + MOST_BARS - 1) / MOST_BARS;
    scene->n = (n + scene->each - 1) / scene->each;
    scene->bars = ms_arena_take_raw(arena, scene->n, sizeof *scene->bars);
    if (scene->bars == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        add_layer(scene, &layers[i], i);
    scene->panels[SAVED].unit = ms_units_bytes(scene->panels[SAVED].highest);
    scene->panels[AGAIN].unit = ms_units_time(scene->panels[AGAIN].highest);
    return MS_OK;
}

/* ---- above the panels ---------------------------------------------------- */

static const char *note_of(const struct scene *scene)
{
    ms_text text = {.arena = scene->frame.script->arena};
    if (scene->each == 1)
        return NULL;
    ms_text_add(&text, "each bar: the most of %u neighbouring layers",
                scene->each);
    return text_of(scene, &text);
}

static void put_legend(struct scene *scene)
{
    ms_text saved = {.arena = scene->frame.script->arena}, again = saved;
    const struct panel *panels = scene->panels;
    bool shown[N_PANELS];
    ms_text_add(&saved, "saved for backward, in all ");
    ms_units_put_bytes(&saved, panels[SAVED].sum,
                       ms_units_bytes(panels[SAVED].sum));
    ms_text_add(&again, "recomputed, in all ");
    ms_units_put_time(&again, panels[AGAIN].sum);
    if (scene->forward_ns > 0)
        ms_text_add(&again, " (%u %% of forward)",
                    (unsigned)(100.0 * (double)panels[AGAIN].sum /
                                   (double)scene->forward_ns +
                               0.5));
    scene->looks[SAVED] = (ms_look){text_of(scene, &saved),
                                    ms_canvas_category_color[MS_ACTIVATIONS]};
    scene->looks[AGAIN] = (ms_look){text_of(scene, &again), AGAIN_COLOR};
    for (int p = 0; p < N_PANELS; p++)
        shown[p] = panels[p].highest > 0;
    ms_strips_legend(&scene->frame, scene->looks, N_PANELS, shown);
}

/* ---- places -------------------------------------------------------------- */

static void place_panel(struct scene *scene, int p, double height, double top)
{
    struct panel *panel = &scene->panels[p];
    ms_box *area = &scene->frame.area;
    double y = scene->frame.y;
    panel->frame = scene->frame;
    panel->frame.area = (ms_box){area->x0, y, area->x1, y + height};
    panel->scale = (ms_scale){
        .from = 0.0, .to = fmax(top, 1.0), .px_from = y + height, .px_to = y};
    scene->frame.y = y + height;
}

/* Words take less room than bars, and stand below the names. */
static double place(struct scene *scene)
{
    ms_frame *frame = &scene->frame;
    struct panel *panels = scene->panels;
    bool has_saved = panels[SAVED].highest > 0;
    bool has_again = panels[AGAIN].highest > 0;
    double most = (double)panels[SAVED].highest;
    ms_frame_heading(frame, note_of(scene));
    put_legend(scene);
    frame->y += 8.0;
    frame->area = (ms_box){X0, frame->y, MS_FRAME_RIGHT, 0.0};
    place_panel(scene, SAVED, has_saved ? HEIGHT_PX : NOTHING_PX,
                most * HEIGHT_PX / (HEIGHT_PX - LABEL_PX));
    scene->names_y = frame->y;
    if (!has_again)
        frame->y += NAMES_PX;
    frame->y += has_again ? PANEL_GAP_PX : 0.0;
    place_panel(scene, AGAIN, has_again ? LOWER_PX : NOTHING_PX,
                (double)panels[AGAIN].highest * 1.05);
    if (has_again) {
        scene->names_y = frame->y;
        frame->y += NAMES_PX;
    }
    frame->area.y1 = panels[AGAIN].frame.area.y1;
    return frame->y + 6.0;
}

static double slot_px(const struct scene *scene)
{
    return (scene->frame.area.x1 - scene->frame.area.x0) / scene->n;
}

static double middle_of(const struct scene *scene, uint32_t bar)
{
    return scene->frame.area.x0 + slot_px(scene) * (bar + 0.5);
}

/* ---- names --------------------------------------------------------------- */

static double name_px(const struct scene *scene, uint32_t bar)
{
    double width = ms_escape_width(scene->bars[bar].name, MS_TEXT_PX, false);
    return fmin(width * MS_FRAME_SLACK, NAME_PX);
}

/* Where a text in the middle of a bar begins so that it stays in the figure. */
static double begin_of(const struct scene *scene, uint32_t bar, double width)
{
    double x = middle_of(scene, bar) - width / 2;
    return fmax(fmin(x, MS_FRAME_RIGHT - width), MS_FRAME_LEFT);
}

static bool fits(const struct scene *scene, uint32_t step)
{
    double free_x = 0.0;
    for (uint32_t i = 0; i < scene->n; i += step) {
        double width = name_px(scene, i), x = begin_of(scene, i, width);
        if (x < free_x)
            return false;
        free_x = x + width + NAME_GAP_PX;
    }
    return true;
}

/* Every how many bars have a name: the least of 1, 2, 5, 10... that fits. */
static uint32_t find_step(const struct scene *scene)
{
    for (uint32_t power = 1; power < scene->n; power *= 10) {
        static const uint32_t steps[] = {1, 2, 5};
        for (int i = 0; i < 3; i++)
            if (fits(scene, steps[i] * power))
                return steps[i] * power;
    }
    return scene->n;
}

static void put_names(const struct scene *scene)
{
    const ms_frame *frame = &scene->frame;
    uint32_t step = find_step(scene);
    double y = scene->names_y;
    for (uint32_t i = 0; i < scene->n; i += step) {
        double x = middle_of(scene, i), width = name_px(scene, i);
        ms_frame_line(frame, x, y, x, y + 6.0, MS_FRAME_AXIS, true);
        ms_frame_text(frame, scene->bars[i].name,
                      begin_of(scene, i, width) + width / 2, y + 20.0,
                      MS_CENTER, MS_INK,
                      width / MS_FRAME_SLACK + MS_STRIPS_ROUNDED_PX);
    }
    ms_frame_text(frame, "layers in the order of the forward pass",
                  (frame->area.x0 + frame->area.x1) / 2, y + 50.0, MS_CENTER,
                  MS_INK, 600.0);
}

/* ---- panels -------------------------------------------------------------- */

static void put_panel(const struct scene *scene, int p)
{
    const struct panel *panel = &scene->panels[p];
    const ms_frame *frame = &panel->frame;
    const ms_box *area = &frame->area;
    ms_text name = {.arena = frame->script->arena};
    if (panel->highest == 0) {
        ms_frame_text(frame, kinds[p].nothing, (area->x0 + area->x1) / 2,
                      (area->y0 + area->y1) / 2, MS_CENTER, MS_GREY, 700.0);
        return;
    }
    ms_text_add(&name, "%s (%s)", kinds[p].axis, panel->unit->name);
    ms_frame_y_axis(frame, &panel->scale, (double)panel->unit->size,
                    text_of(scene, &name));
}

static void put_base(const struct scene *scene, int p)
{
    const ms_box *area = &scene->panels[p].frame.area;
    if (scene->panels[p].highest > 0 || area->y1 == scene->names_y)
        ms_frame_line(&scene->frame, area->x0, area->y1, area->x1, area->y1,
                      MS_FRAME_AXIS, true);
}

/* "layers.0 and 31 others: 1.12 GiB each", above the first of them. */
static void put_most(const struct scene *scene)
{
    const struct panel *panel = &scene->panels[SAVED];
    ms_text text = {.arena = scene->frame.script->arena};
    uint32_t bar = 0;
    if (panel->highest == 0)
        return;
    while (scene->bars[bar].value[SAVED] < panel->highest)
        bar++;
    if (scene->others > 0)
        ms_text_add(&text, " and %u other%s", scene->others,
                    scene->others > 1 ? "s" : "");
    ms_text_add(&text, ": ");
    ms_units_put_bytes(&text, panel->highest, panel->unit);
    ms_text_add(&text, "%s", scene->others > 0 ? " each" : "");
    const char *rest = text_of(scene, &text);
    double rest_px = ms_escape_width(rest, MS_TEXT_PX, false) * MS_FRAME_SLACK;
    double first_px =
        ms_escape_width(scene->most_name, MS_TEXT_PX, false) * MS_FRAME_SLACK;
    first_px = fmin(first_px, MS_FRAME_RIGHT - X0 - rest_px);
    double x = fmax(begin_of(scene, bar, first_px + rest_px), X0 + 4.0);
    double y = ms_scale_px(&panel->scale, (double)panel->highest) - 15.0;
    ms_frame_text(&scene->frame, scene->most_name, x + first_px, y, MS_RIGHT,
                  MS_INK, first_px / MS_FRAME_SLACK + MS_STRIPS_ROUNDED_PX);
    ms_frame_text(&scene->frame, rest, x + first_px, y, MS_LEFT, MS_INK,
                  rest_px);
}

/* ---- data ---------------------------------------------------------------- */

static void put_block(const struct scene *scene, int p)
{
    const struct panel *panel = &scene->panels[p];
    ms_text *script = scene->frame.script;
    double slot = slot_px(scene);
    double half =
        slot >= GAPS_FROM_PX ? slot / 2 * BAR_FILL : slot / 2 + OVERLAP_PX;
    half = fmin(half, WIDEST_PX / 2);
    ms_text_add(script, "$%s << EOD\n", kinds[p].block);
    for (uint32_t i = 0; i < scene->n; i++) {
        double x = middle_of(scene, i);
        double top =
            ms_scale_px(&panel->scale, (double)scene->bars[i].value[p]);
        const double at[] = {x - half, x + half, -panel->frame.area.y1, -top};
        if (scene->bars[i].value[p] == 0)
            continue;
        for (int k = 0; k < 4; k++) {
            ms_text_double(script, at[k]);
            ms_text_put(script, k < 3 ? " " : "\n", 1);
        }
    }
    ms_text_add(script, "EOD\n");
}

static void put_plot(struct scene *scene)
{
    for (int p = 0; p < N_PANELS; p++)
        if (scene->panels[p].highest > 0)
            put_block(scene, p);
    ms_frame_open_plot(&scene->frame);
    for (int p = 0; p < N_PANELS; p++)
        if (scene->panels[p].highest > 0)
            ms_text_add(scene->frame.script,
                        ", \\\n  $%s using 1:3:1:2:3:4 with boxxyerror "
                        "linecolor rgb '%s' notitle",
                        kinds[p].block, scene->looks[p].color);
    ms_text_add(scene->frame.script, "\n");
}

ms_err ms_figure_layers(const ms_layer_use *layers, uint32_t n,
                        const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct scene scene = {.frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (n == 0)
        return ms_fail(fault, MS_EINPUT, "figure layers",
                       "give it the layers of a run", "there are no layers");
    MS_TRY(load(&scene, layers, n, drawing->arena, fault));
    double height = place(&scene);
    ms_frame_begin(&scene.frame, format, ceil(height));
    for (int p = 0; p < N_PANELS; p++) {
        put_panel(&scene, p);
        put_base(&scene, p);
    }
    put_names(&scene);
    put_most(&scene);
    put_plot(&scene);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
