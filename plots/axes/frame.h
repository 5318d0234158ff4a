/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_FRAME_H
#define MS_PLOTS_FRAME_H

/* What the figures share that set numbers of several runs against each other:
 * pareto and curve.  Private to plots/.  Everything is placed in px; the
 * script's own axes are px, too, y from the top down as negative numbers:
 *
 *     frame = ms_frame_of(drawing, &script);
 *     ms_frame_heading(&frame, note);
 *     ms_frame_legend(&frame, entries, n);
 *     frame.area = (ms_box){..., frame.y, ...};
 *     ms_frame_begin(&frame, format, height_px);
 *     ... canvas, ms_scale_px, ms_marks_write ...
 *     ms_frame_open_plot(&frame);
 *     ... more of the same plot command ...
 */

#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"

#define MS_FRAME_LEFT 14.0 /* where headings begin */
#define MS_FRAME_RIGHT (MS_FIGURE_WIDTH - MS_FRAME_LEFT)
#define MS_FRAME_LINE_PX 26.0 /* from a line of text to the next */
#define MS_FRAME_SLACK 1.08   /* where another font is wider than Helvetica */
#define MS_FRAME_RED "#B3261E"
#define MS_FRAME_GRID "#DCDCDC"
#define MS_FRAME_AXIS "#4A4A4A"

/* ---- scale.c: numbers along an axis -------------------------------------- */

#define MS_SCALE_TICKS 64u

/* from < to; is_log: from > 0, equal ratios are equally long. */
typedef struct ms_scale {
    double from, to;
    double px_from, px_to;
    bool is_log;
} ms_scale;

/* Holds low to high, in spans of these with room before and behind; from 0
 * where that is near, logarithmic where the ratio is large. */
ms_scale ms_scale_around(double low, double high, double px_from, double px_to,
                         double before, double behind);
double ms_scale_px(const ms_scale *scale, double value);
/* Round numbers of the unit within the scale, in its base, at most `most` of
 * them (at least 2): returns how many. */
uint32_t ms_scale_ticks(const ms_scale *scale, double unit, uint32_t most,
                        double ticks[MS_SCALE_TICKS]);

/* ---- marks.c: signs told apart by shape and by colour -------------------- */

#define MS_MARKS_HUES 8u
#define MS_MARKS_SHADES 3u
#define MS_MARKS_DASHES 4u
#define MS_MARKS_MOST 32u /* in a figure */
#define MS_MARKS_STAR 7u  /* a shape */

/* shape: the outline; dash: how many of the family come before it. */
typedef struct ms_sign {
    uint8_t hue, shade, shape, dash;
} ms_sign;

/* The name that a sign stands for: any bytes. */
typedef struct ms_sign_name {
    const char *family; /* "checkpoint": says the hue */
    const char *name;   /* "checkpoint:sqrt": within it shade, shape and dash */
} ms_sign_name;

/* A hue depends on what its family is called, not on where it stands: the same
 * in each figure, unless two would have one.  n <= MS_MARKS_MOST. */
void ms_marks_assign(const ms_sign_name *names, uint32_t n, ms_sign *marks);
const char *ms_marks_color(const ms_sign *mark);
/* The darkest legible of its hue: of texts. */
const char *ms_marks_hue(const ms_sign *mark);
/* gnuplot's dash type; 1: none. */
uint32_t ms_marks_dash(const ms_sign *mark);
/* Appends the outline around (x, y) to a data block. */
void ms_marks_write(ms_text *script, const ms_sign *mark, double x, double y,
                    double radius);
/* The same, filled, as an object: of a legend, outside the plot's area. */
void ms_marks_object(ms_text *script, const ms_sign *mark, double x, double y,
                     double radius);
/* Continues a plot command with such a block: filled, or hollow; pale: what
 * stands back. */
void ms_marks_plot(ms_text *script, const char *block, const ms_sign *mark,
                   bool is_filled, bool is_pale);

/* ---- labelplaces.c: where the names of points find room ------------------ */

/* A name never covers what is taken; it crosses lines only where it must. */
typedef struct ms_labelplaces {
    ms_box area;
    ms_box *taken;
    uint32_t n_taken, taken_capacity;
    ms_box *lines; /* upright or level, of no width */
    uint32_t n_lines, lines_capacity;
    double off_middle; /* how much less gladly above or below a sign */
    bool leans_up;     /* best names rather above than below */
    ms_arena *arena;
    bool failed; /* out of memory */
} ms_labelplaces;

typedef struct ms_label_place {
    ms_box box;
    ms_align align;
    bool has_leader; /* a line from the sign to the box */
    ms_box leader;
} ms_label_place;

void ms_labelplaces_take(ms_labelplaces *places, const ms_box *box);
void ms_labelplaces_add_line(ms_labelplaces *places, double x0, double y0,
                             double x1, double y1);
/* The best place of a name for the sign at (x, y), which is then taken; below:
 * rather on the lower (leans_up: upper) left than to the right.  false: there
 * is none. */
bool ms_labelplaces_find(ms_labelplaces *places, double x, double y,
                         double radius, double width, double height, bool below,
                         ms_label_place *place);

/* ---- frame.c ------------------------------------------------------------- */

typedef struct ms_frame {
    const ms_drawing *drawing;
    ms_text *script;
    ms_text late; /* what was placed before ms_frame_begin */
    double y;     /* below what stands above the area so far */
    ms_box area;
} ms_frame;

typedef struct ms_frame_entry {
    const char *name; /* any bytes */
    ms_sign mark;
} ms_frame_entry;

ms_frame ms_frame_of(const ms_drawing *drawing, ms_text *script);
/* Title and subtitle of the drawing, then the note (NULL: none), broken into
 * lines. */
void ms_frame_heading(ms_frame *frame, const char *note);
void ms_frame_legend(ms_frame *frame, const ms_frame_entry *entries,
                     uint32_t n);
/* Starts the script; the area is final. */
void ms_frame_begin(ms_frame *frame, ms_format format, double height_px);
/* The bytes of a text; running out of memory for it fails the script. */
const char *ms_frame_bytes_of(const ms_frame *frame, const ms_text *text);
void ms_frame_line(const ms_frame *frame, double x0, double y0, double x1,
                   double y1, const char *color, bool in_front);
/* Grid lines, ticks and their numbers of the x or the y axis, its name in
 * the unit's (NULL: it has none), and its line. */
void ms_frame_x_axis(const ms_frame *frame, const ms_scale *scale, double unit,
                     const char *name);
void ms_frame_y_axis(const ms_frame *frame, const ms_scale *scale, double unit,
                     const char *name);
/* One tick of the x axis with its word, of at most limit_px. */
void ms_frame_x_tick(const ms_frame *frame, double x, const char *word,
                     double limit_px, bool is_upright);
void ms_frame_x_name(const ms_frame *frame, const char *name, double y);
/* Text with the look of the figure's labels. */
void ms_frame_text(const ms_frame *frame, const char *bytes, double x, double y,
                   ms_align align, const char *color, double limit_px);
void ms_frame_open_plot(ms_frame *frame);
/* "capacity 79.65 GiB less context 0.49 GiB" */
void ms_frame_capacity(ms_text *text, uint64_t capacity_bytes,
                       uint64_t usable_bytes);

/* ---- callouts.c: names of points, in as many lines as they need ---------- */

typedef struct ms_callout {
    const char *name;    /* any bytes */
    double x, y, radius; /* of the sign */

    const char *const *lines;
    uint32_t n_lines;
    double width; /* of the widest one */
    bool is_placed;
    ms_label_place place;
} ms_callout;

/* How wide it is if it is broken only where it is long.  The places must have
 * their arena and area; running out of memory fails them. */
double ms_callouts_width(ms_callout *callout, ms_labelplaces *places);
/* Places as many as find room, the first n_best before the others and rather
 * to the lower left of their signs; returns how many. */
uint32_t ms_callouts_find(ms_labelplaces *places, ms_callout *callouts,
                          uint32_t n_best, uint32_t n);
/* Nothing where it has no place. */
void ms_callouts_put(const ms_frame *frame, const ms_callout *callout,
                     const char *color);

#endif
