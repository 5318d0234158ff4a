/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the blocks of a pool lie over time: device addresses without the gaps
 * between what is held, one tile per block. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/legend.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/wrap.h"
#include "plots/plots.h"
#include "plots/record/tiles.h"

#define LEFT_PX 100.0
#define NAME_PX 32.0  /* above each panel of several */
#define LINE_PX 24.0  /* for each further line of a long name */
#define BELOW_PX 74.0 /* for the numbers and the name of the time axis */
#define LEGEND_ROW_PX 29.0
#define BOX_PX 17.0
#define ENTRY_GAP_PX 26.0
#define LEAST_PX 0.6 /* the least width at which a tall tile can be seen */
#define TALL_PX 1.5
#define NUMBERED_PX 185.0 /* of a name with a number beside it */
#define BORDER_PX 3.0     /* smaller tiles have no border */
#define MOST_TICKS 8u
#define HELD "#E2E2E2"
#define EDGE "#B4B4B4"

static const double heights_px[MS_ADDRESS_MOST] = {400.0, 290.0, 220.0, 180.0};

struct address {
    const ms_tiles *const *maps;
    const char *const *names;
    uint32_t n;
    uint64_t end, height_bytes;
    double panel_px, name_px;
    ms_frame frame;
    ms_scale x, y; /* y: of the first panel */
    const ms_unit *bytes;
};

static const char *bytes_of(const struct address *a, const ms_text *text)
{
    return ms_frame_bytes_of(&a->frame, text);
}

static ms_text words_of(const struct address *a)
{
    return (ms_text){.arena = a->frame.script->arena};
}

/* ---- words --------------------------------------------------------------- */

/* Writes how much more is reserved than was ever allocated: "20.9 %". */
static void put_more(const ms_tiles *map, ms_text *text)
{
    uint64_t more = map->reserved_bytes - map->live_bytes;
    double tenths =
        map->live_bytes > 0
            ? floor((double)more / (double)map->live_bytes * 1000.0 + 0.5)
            : 0.0;
    ms_text_u64(text, (uint64_t)tenths / 10);
    ms_text_add(text, ".%u\u00a0%%", (unsigned)((uint64_t)tenths % 10));
}

static void put_peak(const ms_tiles *map, ms_text *text)
{
    ms_text_add(text, "reserved ");
    ms_units_put_bytes(text, map->reserved_bytes,
                       ms_units_bytes(map->reserved_bytes));
    ms_text_add(text, ", ");
    put_more(map, text);
    ms_text_add(text, " over the peak allocated, ");
    ms_units_put_bytes(text, map->live_bytes,
                       ms_units_bytes(map->reserved_bytes));
    if (map->has_time) {
        ms_text_add(text, " at ");
        ms_units_put_time(text, map->live_at);
    }
}

static const char *note_of(const struct address *a)
{
    ms_text text = words_of(a);
    uint64_t merged = 0, all = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        merged += a->maps[i]->n_merged;
        all += a->maps[i]->n_boxes;
    }
    if (a->n == 1) {
        ms_text_put(&text, a->maps[0]->allocator,
                    strlen(a->maps[0]->allocator));
        ms_text_add(&text, ": ");
        put_peak(a->maps[0], &text);
    } else {
        ms_text_add(&text, "black line: what the first reserves");
    }
    if (merged > 0) {
        ms_text_add(&text, "; ");
        ms_text_u64(&text, merged);
        ms_text_add(&text, " of ");
        ms_text_u64(&text, all);
        ms_text_add(&text, " blocks under a pixel, drawn together");
    }
    return bytes_of(a, &text);
}

/* ---- legend -------------------------------------------------------------- */

static bool shows(const struct address *a, uint32_t kind)
{
    bool any = false;
    for (uint32_t i = 0; i < a->n; i++)
        any |= a->maps[i]->kinds[kind].of.n > 0;
    return any;
}

/* The name of a kind for people, "optimizer state". */
static const char *kind_name(const struct address *a, uint32_t kind)
{
    ms_text text = words_of(a);
    const char *name = a->maps[0]->kinds[kind].name;
    if (kind + 1 == a->maps[0]->n_kinds)
        return MS_TILES_WAITING;
    if (kind >= MS_N_CATEGORIES || name != ms_names_category[kind])
        return name;
    for (; *name != '\0'; name++)
        ms_text_put(&text, *name == '_' ? " " : name, 1);
    return bytes_of(a, &text);
}

/* The order in which other figures stack the categories, from the top. */
static uint32_t in_order(const struct address *a, uint32_t i)
{
    static const uint8_t order[MS_N_CATEGORIES] = {
        MS_TEMPORARIES, MS_COMMUNICATION, MS_ACTIVATIONS,     MS_GRADIENTS,
        MS_INPUTS,      MS_WORKSPACE,     MS_OPTIMIZER_STATE, MS_PARAMETERS,
    };
    const char *first = a->maps[0]->kinds[0].name;
    return i < MS_N_CATEGORIES && first == ms_names_category[0] ? order[i] : i;
}

static uint32_t list_entries(const struct address *a,
                             ms_legend_entry entries[MS_TILES_KINDS + 1])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->maps[0]->n_kinds; i++) {
        uint32_t k = in_order(a, i);
        if (shows(a, k))
            entries[n++] =
                (ms_legend_entry){.name = kind_name(a, k),
                                  .value = a->maps[0]->kinds[k].peak_bytes,
                                  .color = a->maps[0]->kinds[k].color};
    }
    entries[n++] = (ms_legend_entry){.name = "reserved, idle",
                                     .value = a->maps[0]->idle_bytes,
                                     .color = HELD};
    return n;
}

static void put_numbers(struct address *a, double y,
                        const ms_legend_entry *entries, uint32_t n)
{
    const ms_panel panel = {.script = a->frame.script,
                            .arena = a->frame.script->arena};
    const ms_legend_entry sums[] = {
        {.name = "allocated", .value = a->maps[0]->live_bytes},
        {.name = "reserved, max", .value = a->maps[0]->reserved_bytes}};
    ms_legend_put(&panel, y, "at the peak", a->bytes, sums, 2, entries, n);
}

/* Are there numbers beside the names?  Names from code are long and leave no
 * room. */
static bool has_numbers(const struct address *a, const ms_legend_entry *entries,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (ms_escape_width(entries[i].name, MS_TEXT_PX, false) > NUMBERED_PX)
            return false;
    return a->n == 1;
}

/* Puts colours and names in lines and returns their height.  With script NULL
 * it only measures. */
static double put_names(double y, ms_text *script,
                        const ms_legend_entry *entries, uint32_t n)
{
    const ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK};
    double x = MS_FRAME_LEFT, top = y, half = BOX_PX / 2;
    y += LEGEND_ROW_PX / 2;
    for (uint32_t i = 0; i < n; i++) {
        double width = ms_escape_width(entries[i].name, MS_TEXT_PX, false) *
                           MS_FRAME_SLACK +
                       BOX_PX + 8.0;
        width = fmin(width, MS_FRAME_RIGHT - MS_FRAME_LEFT);
        if (x > MS_FRAME_LEFT && x + width > MS_FRAME_RIGHT) {
            x = MS_FRAME_LEFT;
            y += LEGEND_ROW_PX;
        }
        if (script != NULL) {
            ms_canvas_box(script, &(ms_box){x, y - half, x + BOX_PX, y + half},
                          entries[i].color, false);
            ms_canvas_text(script, entries[i].name, x + BOX_PX + 8.0, y, &type,
                           width - BOX_PX - 8.0);
        }
        x += width + ENTRY_GAP_PX;
    }
    return y + LEGEND_ROW_PX / 2 - top;
}

/* ---- axes ---------------------------------------------------------------- */

static ms_box panel_of(const struct address *a, uint32_t i)
{
    double name = a->n > 1 ? a->name_px : 0.0;
    double y = a->frame.area.y0 + i * (a->panel_px + a->name_px) + name;
    return (ms_box){a->frame.area.x0, y, a->frame.area.x1, y + a->panel_px};
}

static ms_unit time_unit(const ms_tiles *map, uint64_t end)
{
    static const ms_unit thousands = {"thousands", 1000, 0};
    static const ms_unit ones = {"", 1, 0};
    if (map->has_time)
        return *ms_units_time(end);
    return end >= 20000 ? thousands : ones;
}

static const char *time_name(const struct address *a, const ms_unit *unit)
{
    ms_text text = words_of(a);
    const ms_tiles *map = a->maps[0];
    if (map->has_time)
        ms_text_add(&text, "time in step (%s)", unit->name);
    else if (map->counted == NULL)
        ms_text_add(&text, "events in order (the step takes no time)");
    else if (unit->size > 1)
        ms_text_add(&text, "%s (%s)", map->counted, unit->name);
    else
        ms_text_add(&text, "%s", map->counted);
    return bytes_of(a, &text);
}

/* Puts the time axis without grid lines, because no one reads times off this
 * figure. */
static void put_time_axis(const struct address *a, const ms_unit *unit)
{
    double ticks[MS_SCALE_TICKS];
    uint32_t n = ms_scale_ticks(&a->x, (double)unit->size, MOST_TICKS, ticks);
    for (uint32_t i = 0; i < n; i++) {
        ms_text text = words_of(a);
        ms_text_double(&text, ticks[i] / (double)unit->size);
        ms_frame_x_tick(&a->frame, ms_scale_px(&a->x, ticks[i]),
                        bytes_of(a, &text), 90.0, false);
    }
    ms_frame_x_name(&a->frame, time_name(a, unit), a->frame.area.y1 + 50.0);
}

/* Puts a panel's axes.  The area of the frame is that of the panel for as long
 * as they are drawn. */
static void put_axes(struct address *a, uint32_t i)
{
    ms_unit time = time_unit(a->maps[0], a->end);
    ms_box all = a->frame.area, panel = panel_of(a, i);
    ms_scale y = a->y;
    y.px_from = panel.y1;
    y.px_to = panel.y0;
    a->frame.area = panel;
    ms_frame_y_axis(&a->frame, &y, (double)a->bytes->size, "");
    if (i + 1 == a->n)
        put_time_axis(a, &time);
    else
        ms_frame_line(&a->frame, panel.x0, panel.y1, panel.x1, panel.y1,
                      MS_FRAME_AXIS, true);
    a->frame.area = all;
}

static void put_axis_name(const struct address *a)
{
    ms_text text = words_of(a);
    const ms_type upright = {.size_px = MS_TEXT_PX,
                             .color = MS_INK,
                             .align = MS_CENTER,
                             .is_upright = true};
    ms_text_add(&text, "device address (%s, gaps left out)", a->bytes->name);
    ms_canvas_text(a->frame.script, bytes_of(a, &text), 16.0,
                   (a->frame.area.y0 + a->frame.area.y1) / 2, &upright,
                   a->frame.area.y1 - a->frame.area.y0);
}

static const char *numbers_of(const struct address *a, uint32_t i)
{
    ms_text text = words_of(a);
    ms_text_add(&text, "reserved ");
    ms_units_put_bytes(&text, a->maps[i]->reserved_bytes,
                       ms_units_bytes(a->maps[0]->reserved_bytes));
    ms_text_add(&text, ", ");
    put_more(a->maps[i], &text);
    ms_text_add(&text, " over allocated");
    return bytes_of(a, &text);
}

/* Breaks a panel's name into lines, of which the last one has room for the
 * numbers. */
static const char **lines_of(const struct address *a, uint32_t i, uint32_t *n)
{
    double all = (MS_FRAME_RIGHT - 14.0 - LEFT_PX) / MS_FRAME_SLACK;
    double beside = ms_escape_width(numbers_of(a, i), MS_TEXT_PX, false) + 16.0;
    const char **lines = ms_wrap_lines(a->names[i], MS_TEXT_PX, false, all,
                                       a->frame.script->arena, n);
    a->frame.script->failed |= lines == NULL;
    if (lines != NULL && *n > 0 &&
        ms_escape_width(lines[*n - 1], MS_TEXT_PX, false) > all - beside)
        lines = ms_wrap_lines(a->names[i], MS_TEXT_PX, false, all - beside,
                              a->frame.script->arena, n);
    a->frame.script->failed |= lines == NULL;
    return lines;
}

static void find_name_height(struct address *a)
{
    uint32_t most = 1, n;
    for (uint32_t i = 0; i < a->n && a->n > 1; i++)
        if (lines_of(a, i, &n) != NULL && n > most)
            most = n;
    a->name_px = NAME_PX + LINE_PX * (most - 1.0);
}

/* Writes the heading of a panel, "torch,expandable_segments=True      reserved
 * 2.84 GiB, overhead 0.1 %". */
static void put_heading(const struct address *a, uint32_t i)
{
    ms_box panel = panel_of(a, i);
    uint32_t n = 0;
    const char **lines = a->n > 1 ? lines_of(a, i, &n) : NULL;
    double y = panel.y0 - NAME_PX / 2;
    if (lines == NULL)
        return;
    for (uint32_t k = 0; k < n; k++)
        ms_frame_text(&a->frame, lines[k], panel.x0,
                      y - LINE_PX * (n - 1.0 - k), MS_LEFT, "#000000",
                      panel.x1 - panel.x0);
    ms_frame_text(&a->frame, numbers_of(a, i), panel.x1, y, MS_RIGHT, MS_INK,
                  panel.x1 - panel.x0);
}

/* ---- data ---------------------------------------------------------------- */

static ms_box place_tile(const struct address *a, uint32_t i,
                         const ms_tile *tile)
{
    ms_box panel = panel_of(a, i);
    double per_byte = a->panel_px / (a->y.to - a->y.from);
    ms_box box = {ms_scale_px(&a->x, (double)tile->from),
                  panel.y1 - (double)(tile->at_bytes + tile->bytes) * per_byte,
                  ms_scale_px(&a->x, (double)tile->to),
                  panel.y1 - (double)tile->at_bytes * per_byte};
    if (box.y1 - box.y0 >= TALL_PX && box.x1 - box.x0 < LEAST_PX)
        box.x1 = fmin(box.x0 + LEAST_PX, panel.x1);
    return box;
}

static bool has_border(const ms_box *box)
{
    return box->x1 - box->x0 >= BORDER_PX && box->y1 - box->y0 >= BORDER_PX;
}

/* Puts the middle and half the sides of each tile that has a border, or of each
 * that has none, as a data block of gnuplot. */
static uint32_t put_block(const struct address *a, const char *name, uint32_t i,
                          const ms_tiles_layer *layer, bool bordered)
{
    ms_text *script = a->frame.script;
    uint32_t n = 0;
    for (uint32_t t = 0; t < layer->n; t++) {
        ms_box box = place_tile(a, i, &layer->tiles[t]);
        if (has_border(&box) != bordered)
            continue;
        if (n++ == 0)
            ms_text_add(script, "$%s%u << EOD\n", name, i);
        ms_text_double(script, (box.x0 + box.x1) / 2);
        ms_text_put(script, " ", 1);
        ms_text_double(script, -(box.y0 + box.y1) / 2);
        ms_text_put(script, " ", 1);
        ms_text_double(script, (box.x1 - box.x0) / 2);
        ms_text_put(script, " ", 1);
        ms_text_double(script, (box.y1 - box.y0) / 2);
        ms_text_put(script, "\n", 1);
    }
    if (n > 0)
        ms_text_add(script, "EOD\n");
    return n;
}

/* Continues the plot command. color NULL means only the border, border NULL no
 * border. */
static void put_boxes(ms_text *plot, const char *name, uint32_t i,
                      const char *color, const char *border)
{
    ms_text_add(plot,
                ", \\\n  $%s%u using 1:2:3:4 with boxxyerror linewidth 0.35 ",
                name, i);
    if (color == NULL)
        ms_text_add(plot, "linecolor rgb '%s' fillstyle empty border", border);
    else if (border != NULL)
        ms_text_add(plot,
                    "fillcolor rgb '%s' fillstyle solid 1 border linecolor "
                    "rgb '%s'",
                    color, border);
    else
        ms_text_add(plot, "fillcolor rgb '%s' fillstyle solid 1 noborder",
                    color);
    ms_text_add(plot, " notitle");
}

static int by_life(const void *a, const void *b)
{
    const ms_tile *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return (x->at_bytes > y->at_bytes) - (x->at_bytes < y->at_bytes);
}

/* Joins neighbours of what is held and has the same life to one tile: many that
 * are thin would let the background through. */
static ms_tiles_layer join_held(const struct address *a, uint32_t i)
{
    const ms_tiles *map = a->maps[i];
    ms_tiles_layer all = {0};
    uint32_t n = map->segments.n + map->pages.n;
    all.tiles = ms_arena_take_raw(a->frame.script->arena, n, sizeof *all.tiles);
    a->frame.script->failed |= all.tiles == NULL;
    if (all.tiles == NULL || n == 0)
        return all;
    if (map->segments.n > 0)
        memcpy(all.tiles, map->segments.tiles,
               map->segments.n * sizeof *all.tiles);
    if (map->pages.n > 0)
        memcpy(all.tiles + map->segments.n, map->pages.tiles,
               map->pages.n * sizeof *all.tiles);
    qsort(all.tiles, n, sizeof *all.tiles, by_life);
    for (uint32_t t = 0; t < n; t++) {
        ms_tile tile = all.tiles[t], *last = &all.tiles[all.n - (all.n > 0)];
        if (all.n > 0 && last->from == tile.from && last->to == tile.to &&
            last->at_bytes + last->bytes == tile.at_bytes)
            last->bytes += tile.bytes;
        else
            all.tiles[all.n++] = tile;
    }
    return all;
}

static void put_layer(const struct address *a, const char *name, uint32_t i,
                      const ms_tiles_layer *layer, const char *color,
                      const char *border, ms_text *plot)
{
    if (put_block(a, name, i, layer, border != NULL) > 0)
        put_boxes(plot, name, i, color, border);
}

static void put_map(const struct address *a, uint32_t i, ms_text *plot)
{
    const ms_tiles *map = a->maps[i];
    char name[16];
    ms_tiles_layer held = join_held(a, i);
    put_layer(a, "held", i, &held, HELD, HELD, plot);
    put_layer(a, "thin", i, &held, HELD, NULL, plot);
    put_layer(a, "segments", i, &map->segments, NULL, EDGE, plot);
    for (int small = 0; small < 2; small++)
        for (uint32_t k = 0; k < map->n_kinds; k++) {
            strcpy(name, small ? "smallA_" : "largeA_");
            name[5] = (char)('A' + k);
            put_layer(a, name, i, &map->kinds[k].of, map->kinds[k].color,
                      small ? NULL : "#FFFFFF", plot);
        }
}

static void put_plot(struct address *a)
{
    ms_text *script = a->frame.script, plot = words_of(a);
    for (uint32_t i = 0; i < a->n; i++)
        put_map(a, i, &plot);
    for (uint32_t i = 1; i < a->n; i++) {
        ms_box panel = panel_of(a, i);
        double y = panel.y1 - (double)a->maps[0]->reserved_bytes * a->panel_px /
                                  (a->y.to - a->y.from);
        ms_frame_line(&a->frame, panel.x0, y, panel.x1, y, "#000000", true);
    }
    ms_frame_open_plot(&a->frame);
    ms_text_put(script, bytes_of(a, &plot), plot.length);
    ms_text_add(script, "\n");
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err load(struct address *a, ms_fault *fault)
{
    if (a->n == 0 || a->n > MS_ADDRESS_MOST)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "leave some out, or draw --figure bars",
                       "%u address maps are too many for one figure (at most "
                       "%u)",
                       a->n, MS_ADDRESS_MOST);
    for (uint32_t i = 0; i < a->n; i++) {
        const ms_tiles *map = a->maps[i];
        if (map->has_time != a->maps[0]->has_time)
            return ms_fail(fault, MS_EINPUT, NULL, "draw each alone",
                           "some steps take time and others do not: there is "
                           "no common axis");
        if (map->end > a->end)
            a->end = map->end;
        if (map->height_bytes > a->height_bytes)
            a->height_bytes = map->height_bytes;
    }
    a->bytes = ms_units_bytes(a->height_bytes);
    return MS_OK;
}

/* Places the panels and returns where the legend begins. */
static double place(struct address *a)
{
    ms_frame *frame = &a->frame;
    ms_frame_heading(frame, note_of(a));
    double top = ceil(frame->y) + (a->n == 1 ? 8.0 : 0.0);
    a->panel_px = heights_px[a->n - 1];
    find_name_height(a);
    double all = a->n * (a->panel_px + (a->n == 1 ? 0.0 : a->name_px));
    frame->area = (ms_box){LEFT_PX, top, MS_FRAME_RIGHT - 14.0, top + all};
    ms_box first = panel_of(a, 0);
    a->x = (ms_scale){0.0, (double)a->end, first.x0, first.x1, false};
    a->y = (ms_scale){0.0, fmax((double)a->height_bytes * 1.02, 1.0), first.y1,
                      first.y0, false};
    return frame->area.y1 + BELOW_PX;
}

/* The legend is measured before the frame begins, because the height of the
 * picture depends on its lines. */
ms_err ms_figure_address(const ms_tiles *const *maps, const char *const *names,
                         uint32_t n, const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    ms_legend_entry entries[MS_TILES_KINDS + 1];
    struct address a = {.maps = maps,
                        .names = names,
                        .n = n,
                        .frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    MS_TRY(load(&a, fault));
    double y = place(&a);
    uint32_t n_entries = list_entries(&a, entries);
    bool numbers = has_numbers(&a, entries, n_entries);
    double height = numbers ? ms_legend_height(n_entries)
                            : put_names(y, NULL, entries, n_entries);
    ms_frame_begin(&a.frame, format, ceil(y + height + 8.0));
    for (uint32_t i = 0; i < n; i++) {
        put_axes(&a, i);
        put_heading(&a, i);
    }
    put_axis_name(&a);
    if (numbers)
        put_numbers(&a, y, entries, n_entries);
    else
        put_names(y, &script, entries, n_entries);
    put_plot(&a);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
