/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_FIGURE_H
#define MS_PLOTS_FIGURE_H

/* What the figures share, private to plots/.  A figure is 900 units ("px")
 * wide and as high as it needs, x to the right and y down, whatever the format:
 * SVG draws 1, PNG 2 pixels per px, PDF 0.54 pt.  Everything but the data is
 * placed in px, so that the three look the same and every text is known to fit.
 * At half the width of a page (3.375 in) one px is 0.27 pt: no text is smaller
 * than MS_TEXT_PX, 5.4 pt there. */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "sim/timeline.h"

#define MS_FIGURE_WIDTH 900.0
#define MS_TEXT_PX 20.0 /* labels, numbers, legends */
#define MS_TITLE_PX 25.0

#define MS_INK "#1A1A1A"
#define MS_GREY "#5A5A5A"

/* ---- widths.c ------------------------------------------------------------ */

/* Advance width of a code point in 1/1000 em; 0: not to be drawn (cairo draws
 * what no font has as a box hundreds of px high). */
uint32_t ms_widths_of(uint32_t code, bool is_bold);

/* ---- escape.c: text of others in scripts --------------------------------- */

/* Appends bytes as a gnuplot literal that is at most limit_px wide at
 * size_px, cut with an ellipsis.  Whatever bytes hold, the result is one
 * single-quoted string of drawable characters: control characters become
 * spaces, quotes that would end it the apostrophe U+2019 (gnuplot 5.4 does not
 * read a doubled quote at the start of a string), other code points without a
 * width and invalid UTF-8 become "?".  Bold text is markup of the enhanced
 * mode, with its signs escaped; other text is to be drawn noenhanced. */
void ms_escape_literal(ms_text *text, const char *bytes, double size_px,
                       bool is_bold, double limit_px);
/* The width of the text as it would be drawn, uncut. */
double ms_escape_width(const char *bytes, double size_px, bool is_bold);
/* How many bytes of the text are at most limit_px wide: whole characters. */
size_t ms_escape_fits(const char *bytes, double size_px, bool is_bold,
                      double limit_px);

/* ---- wrap.c: text that is too wide for one line -------------------------- */

/* The length of the first line: up to a blank, or behind what joins the parts
 * of a policy (+ , / ;), and only where there is neither within a word.  Not 0
 * but of nothing. */
size_t ms_wrap_first(const char *words, double size_px, bool is_bold,
                     double limit_px);
/* The width that breaks no word. */
double ms_wrap_least(const char *words, double size_px, bool is_bold,
                     ms_arena *arena);
/* All lines, without the blanks between them; *n is 0 for an empty text.  Of
 * what is longer than any policy (a name may have a million characters) the
 * last line is too wide: what draws it cuts it.  NULL: no memory. */
#define MS_WRAP_MOST 12u
const char **ms_wrap_lines(const char *words, double size_px, bool is_bold,
                           double limit_px, ms_arena *arena, uint32_t *n);
/* The width of the widest of the lines, uncut. */
double ms_wrap_width(const char *const *lines, uint32_t n, double size_px,
                     bool is_bold);

/* ---- units.c ------------------------------------------------------------- */

typedef struct ms_unit {
    const char *name;
    uint64_t size; /* in bytes or ns */
    uint64_t from; /* the least value it is chosen for */
} ms_unit;

const ms_unit *ms_units_bytes(uint64_t bytes);
const ms_unit *ms_units_time(uint64_t t_ns);
/* A number of the unit with two decimals, without the unit's name. */
void ms_units_put_number(ms_text *text, uint64_t bytes, const ms_unit *unit);
/* Without the unit's name, in the decimals that tell numbers up to `highest`
 * apart: of up to 8 GiB "7.94", of up to 80 "7.9", of up to 8000 "8". */
void ms_units_put_decimals(ms_text *text, uint64_t value, const ms_unit *unit,
                           uint64_t highest);
/* With the unit's name and no more decimals than needed: "79.65 GiB",
 * "80 GiB". */
void ms_units_put_bytes(ms_text *text, uint64_t bytes, const ms_unit *unit);
/* With the unit that suits it, in three or four digits: "174.0 ms". */
void ms_units_put_time(ms_text *text, uint64_t t_ns);
/* The least of 1, 2, 5 times a power of ten that cuts span into at most
 * `most` parts. */
double ms_units_step(double span, uint32_t most);

/* ---- canvas.c: the house style, in px ------------------------------------ */

typedef struct ms_box {
    double x0, y0, x1, y1; /* x0 <= x1, y0 <= y1 */
} ms_box;

typedef enum ms_align { MS_LEFT, MS_CENTER, MS_RIGHT } ms_align;

typedef struct ms_type {
    double size_px;
    const char *color;
    ms_align align;
    bool is_bold, is_upright; /* upright: read from below */
} ms_type;

/* Terminal, encoding and plot area of a figure that is height_px (a whole
 * number) high, which the script calls H; no title, key, border or tics. */
void ms_canvas_begin(ms_text *script, ms_format format, const ms_box *area,
                     double height_px);
/* y: the middle of the line. */
void ms_canvas_text(ms_text *script, const char *bytes, double x, double y,
                    const ms_type *type, double limit_px);
/* Behind the data, or in front of it; lines that are not in front lie behind
 * the data too, but before the boxes. */
void ms_canvas_box(ms_text *script, const ms_box *box, const char *color,
                   bool in_front);
void ms_canvas_line(ms_text *script, const ms_box *ends, double width,
                    const char *color, bool in_front);
/* From (x0, y0) to its head in (x1, y1), whatever their order. */
void ms_canvas_arrow(ms_text *script, const ms_box *ends, const char *color);
/* A point of a data block, y counted downwards. */
void ms_canvas_point(ms_text *script, double x, double y);
extern const char *const ms_canvas_category_color[MS_N_CATEGORIES];

/* ---- works.c: what a stream works on, in colours and words --------------- */

typedef struct ms_look {
    const char *words, *color; /* color NULL: nothing is drawn */
} ms_look;
extern const ms_look ms_works_look[MS_N_WORKS];
/* As what waiting counts, by its cause; a ms_work. */
extern const uint8_t ms_works_wait[MS_N_CAUSES];

/* ---- phases.c: what the step does when ----------------------------------- */

#define MS_PHASE_MIXED MS_N_PHASES /* too many changes to show each */
#define MS_PHASE_WORDS 3
/* A phase's names, from the longest to the shortest; NULL for the loss. */
extern const char *const ms_phases_words[MS_N_PHASES + 1][MS_PHASE_WORDS];

/* The phases of a rank's compute stream in order, without gaps from 0 to
 * end_ns; *n is 0 where no op takes time. */
ms_err ms_phases_bands(const ms_timeline *line, uint8_t rank, uint64_t end_ns,
                       ms_arena *arena, ms_band **bands, uint32_t *n,
                       ms_fault *fault);

/* ---- stack.c: the data of the stacked areas ------------------------------ */

/* A step function of the levels, and how it lies in the plot area. */
typedef struct ms_stack {
    ms_box area;
    const ms_point *points;
    const uint64_t *reserved_bytes; /* while each point lasts */
    uint32_t n;
    uint64_t end_ns;   /* right border, > 0 */
    double top_bytes;  /* upper border, > 0 */
    double base_bytes; /* lower border: 0 unless the axis is cut */
    const ms_unit *bytes_unit, *time_unit;
} ms_stack;

/* Merges points until each lasts at least end_ns / columns, the highest of
 * what is merged staying: what is thinner than a px would not be drawn, or only
 * faintly.  In place; returns how many are left. */
uint32_t ms_stack_thicken(ms_point *points, uint32_t n, uint64_t end_ns,
                          uint32_t columns);
double ms_stack_x(const ms_stack *stack, double t_ns);
double ms_stack_y(const ms_stack *stack, double bytes);
/* The data block $name: the outline of the sum of categories order[0..n). */
void ms_stack_write(const ms_stack *stack, const char *name,
                    const ms_category *order, uint32_t n, ms_text *script);
/* The data block $over: diagonal strokes over what exceeds line_bytes. */
void ms_stack_write_hatch(const ms_stack *stack, double line_bytes,
                          ms_text *script);
/* The data block $reserved: the outline of what is reserved. */
void ms_stack_write_reserved(const ms_stack *stack, ms_text *script);
/* The data block $name: the outline of another step's level, which at the upper
 * border stays in sight. */
void ms_stack_write_level(const ms_stack *stack, const char *name,
                          const ms_record_without *without, ms_text *script);
/* Does it go through the box? */
bool ms_stack_level_crosses(const ms_stack *stack,
                            const ms_record_without *without,
                            const ms_box *box);
/* The highest level while x0 <= x < x1. */
uint64_t ms_stack_highest(const ms_stack *stack, double x0, double x1);
/* Does the line of what is reserved go through the box? */
bool ms_stack_crosses(const ms_stack *stack, const ms_box *box);

/* ---- labels.c: where text finds room ------------------------------------- */

typedef struct ms_room {
    ms_box area;
    double grid_px; /* distance of the grid lines, from the bottom up; > 0 */
    const double *walls; /* upright lines, x */
    uint32_t n_walls;
    double line_y;         /* capacity line; outside the area: none */
    const ms_stack *stack; /* whose line of what is reserved no label of the
                              peak may cross; NULL: there is none */
    const ms_record_without *without; /* whose line labels lie on last; NULL:
                                         there is none */
    ms_box taken[2]; /* by the other label and its arrow; empty: nothing */
} ms_room;

/* The box of a label of the given size for a peak at (x, y): above it, to one
 * side, clear of the line, and off the background's lines if there is such a
 * place near. */
ms_box ms_labels_peak(const ms_room *room, double x, double y, double width,
                      double height, bool left_first);
/* Does the label lie on a line of the background? */
bool ms_labels_on_lines(const ms_room *room, const ms_box *box);
/* Finds the box of the capacity line's label: on the line where the areas
 * stay below it, as far from the peak as can be; false where there is no such
 * place: box lies on the areas then and needs a background. */
bool ms_labels_line(const ms_room *room, const ms_stack *stack, double peak_x,
                    double width, double height, ms_box *box);
/* Finds the box of a label in the head room, away from the peak. */
bool ms_labels_top(const ms_room *room, const ms_stack *stack, double peak_x,
                   double width, double height, ms_box *box);

/* ---- panel.c: device memory over time, in its axes ----------------------- */

/* Where the figures over time have their data. */
#define MS_PANEL_X0 100.0
#define MS_PANEL_X1 846.0
#define MS_PANEL_AXIS_PX                                                       \
    64.0                       /* numbers and name of the time axis, below it  \
                                */
#define MS_PANEL_MOST_WALLS 6u /* bands whose borders are drawn */

/* ms_panel_of fills the first part; a figure sets area.y1 and may_cut before
 * ms_panel_open finds the rest, and bottom_y before ms_panel_draw. */
typedef struct ms_panel {
    const ms_record *record;
    const ms_rank_report *rank;
    const ms_record_rank *saw; /* NULL: the result has no timeline */
    ms_text *script;
    ms_arena *arena;
    ms_box strip;     /* of the phases */
    ms_box area;      /* of the memory */
    double bottom_y;  /* of the time axis: what lies between shares it */
    double head_room; /* px above all data: for labels */
    bool may_cut;     /* cutaxis.h: the axis may begin above zero */
    const ms_record_without *without; /* whose line is drawn; NULL: none */
    uint64_t least_bytes;             /* what the axis holds at least */

    ms_stack stack;
    ms_room room;
    double peak_x, peak_y;
    uint64_t peak_bytes, capacity_bytes, context_bytes;
    uint64_t usable_bytes;     /* capacity less context */
    bool shows_line, is_below; /* the capacity: a line, or below a cut axis */
    double step;               /* of the ticks, in the unit */
    double walls[MS_PANEL_MOST_WALLS];
} ms_panel;

struct ms_frame; /* frame.h */

/* rank: an index into the report's ranks; the frame has its headings. */
ms_panel ms_panel_of(const ms_record *record, uint32_t rank,
                     const struct ms_frame *frame);
void ms_panel_open(ms_panel *panel);
/* After ms_frame_begin: phases, axes, the labels of peak and capacity. */
void ms_panel_draw(ms_panel *panel);
/* Between the two, more of the same plot command is added. */
void ms_panel_open_plot(const ms_panel *panel);
void ms_panel_close_plot(const ms_panel *panel);
/* Is a part of the level above the capacity line, and hatched? */
bool ms_panel_is_over(const ms_panel *panel);
#define MS_PANEL_HATCH "#50B3261E"

/* ---- axes.c: lines, words and ticks within a panel ----------------------- */

void ms_axes_line(const ms_panel *panel, double x0, double y0, double x1,
                  double y1, const char *color, bool in_front);
/* The bytes of a text; running out of memory for it fails the script. */
const char *ms_axes_words(const ms_panel *panel, const ms_text *text);
/* The distance of ticks on an axis of so many bytes, in the unit. */
double ms_axes_step(const ms_panel *panel, double span_bytes);

/* ---- legend.c: colours, names and numbers below the data ----------------- */

/* A table of MS_LEGEND_COLUMNS: a heading with its sums beside it, a rule,
 * then entries in columns from the top down. */
#define MS_LEGEND_COLUMNS 3u
#define MS_LEGEND_ROW_PX 29.0

typedef struct ms_legend_entry {
    const char *name;
    uint64_t value;
    const char *color; /* NULL: no box */
    bool is_line;      /* of that colour, instead of a box */
    bool is_hatched;   /* strokes of that colour */
    bool is_mark;      /* says what a sign means: has no value */
} ms_legend_entry;

/* How high the table is. */
double ms_legend_height(uint32_t n);
/* Adds what hatching means where the panel has it; returns how many it adds. */
uint32_t ms_legend_over(const ms_panel *panel, ms_legend_entry *entry);
/* y: its top.  n_sums < MS_LEGEND_COLUMNS. */
void ms_legend_put(const ms_panel *panel, double y, const char *heading,
                   const ms_unit *unit, const ms_legend_entry *sums,
                   uint32_t n_sums, const ms_legend_entry *entries, uint32_t n);

/* ---- distantlevels.c: levels of memories outside the device -------------- */

/* The highest level of a rank in that pool in each of n equal parts of the
 * step (n > 0). */
ms_err ms_distantlevels_levels(const ms_timeline *line, uint8_t rank,
                               ms_pool_kind pool, uint32_t n, ms_arena *arena,
                               uint64_t **levels, ms_fault *fault);

/* ---- lanes.c: what a stream does when ------------------------------------ */

typedef struct ms_span {
    uint64_t from_ns, to_ns;
    uint8_t work; /* ms_work */
} ms_span;

/* Cuts a lane into slices that are wide enough to be seen: spans of at least
 * least_ns stay; neighbours that are shorter become one slice as soon as they
 * are as long together; what is short and alone is widened into the longer one
 * behind it (or before it, at the end). */
typedef struct ms_slicer {
    ms_arena *arena;
    uint64_t least_ns;
    ms_slice *slices;
    uint32_t n, capacity;
    uint64_t work_ns[MS_N_WORKS]; /* of all slices */
    bool is_open;                 /* the last one is too short yet */
    bool failed;                  /* out of memory */
} ms_slicer;
void ms_lanes_cut(ms_slicer *slicer, const ms_span *span); /* the next one */
void ms_lanes_close(ms_slicer *slicer);

/* The streams of a rank; busy_ns: how long the ops of each take, and the copies
 * that came again for their users. */
typedef struct ms_lanes {
    ms_waits waits;
    ms_wait *parts; /* of one wait */
    uint32_t parts_capacity, n_again;
    const struct ms_revoked **again; /* of all ranks, by their start */
    uint8_t rank;
    uint64_t busy_ns[MS_N_STREAMS];
} ms_lanes;

ms_err ms_lanes_open(ms_lanes *lanes, const ms_timeline *line, uint8_t rank,
                     ms_arena *arena, ms_fault *fault);
/* What a stream of the rank does from 0 to step_ns, without gaps: spans whose
 * neighbours differ, cut.  The times of a compute stream's works are the
 * report's: in-line copies and waits for copies, disk and the host's cores
 * make its stall_ns. */
ms_err ms_lanes_slices(ms_lanes *lanes, ms_stream_kind stream,
                       ms_slicer *slicer, ms_fault *fault);

#endif
