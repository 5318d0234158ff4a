/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_STRIPS_H
#define MS_PLOTS_STRIPS_H

/* Level stacked bars over one axis, with numbers in the parts that are wide
 * enough: what bars and ranks share.  Private to plots/.  Where the capacity
 * and what comes near it would be squeezed by bars far beyond, the axis ends
 * before these do: they are broken.
 *
 *     strips = (ms_strips){.script = &script, .block = "memory", ...};
 *     ms_strips_open(&strips, parts, n);
 *     ms_strips_place(&strips, &frame, &area);
 *     ms_strips_axis(&strips, "peak device memory");
 *     ms_strips_bar(&strips, parts[i], y, pitch, true);     of each
 *     ms_strips_blocks(&strips, parts, n, y, pitch);
 *     ms_frame_open_plot(&frame);
 *     ms_strips_plot(&strips);
 */

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/record/works.h"
#include "sim/report.h"

/* Parts of a bar from the left, as the stacked areas from the bottom; the last
 * is what the pool reserves and has not allocated. */
#define MS_STRIPS_MEMORY (MS_N_CATEGORIES + 1)
#define MS_STRIPS_MOST MS_N_WORKS /* parts of a bar */
void ms_strips_memory_looks(ms_look looks[MS_STRIPS_MEMORY]);
/* reserved_bytes below the sum of by_category: there is no last part. */
void ms_strips_memory_parts(const uint64_t by_category[MS_N_CATEGORIES],
                            uint64_t reserved_bytes,
                            uint64_t parts[MS_STRIPS_MOST]);
/* The parts of a rank's step, by ms_work; they sum to step_ns. */
void ms_strips_time_parts(const ms_rank_report *rank,
                          uint64_t parts[MS_STRIPS_MOST]);
uint64_t ms_strips_sum(const uint64_t parts[MS_STRIPS_MOST]);

/* What a limit gets so that the text it was taken from is not cut. */
#define MS_STRIPS_ROUNDED_PX 0.5

/* The caller fills the first part, open the second, place the rest. */
typedef struct ms_strips {
    ms_text *script;
    const char *block; /* the first part of the names of its data blocks */
    const ms_look *looks;
    uint32_t n_looks;
    bool is_time;                          /* in ns; else bytes */
    uint64_t capacity_bytes, usable_bytes; /* 0: no line */
    bool differ; /* usable_bytes is the highest of several; each bar has its
                    own line: ms_strips_limit before ms_strips_bar */

    bool shown[MS_STRIPS_MOST]; /* of looks: what is wide enough in a bar */
    uint64_t highest;           /* of all bars */
    uint64_t top;               /* of what is drawn, the capacity line too */
    const ms_unit *unit;
    bool shows_line;  /* else the capacity, where there is one, is far */
    double totals_px; /* the widest total, beside its bar */
    double most;      /* what of a bar is drawn; the rest is broken off */

    ms_frame frame; /* with the area of this axis */
    ms_scale scale; /* from 0 */
    double wall_x;  /* of the capacity line, which texts avoid; 0: none */
} ms_strips;

/* The color of a part: pale where its look has none. */
const char *ms_strips_color(const ms_look *look);
/* MS_INK or white, whichever is easier to read on this color ("#RRGGBB"). */
const char *ms_strips_ink(const char *color);

/* Words and colours in rows, of those that are shown, below what the frame has
 * so far. */
void ms_strips_legend(ms_frame *frame, const ms_look *looks, uint32_t n,
                      const bool *shown);
void ms_strips_open(ms_strips *strips, const uint64_t (*parts)[MS_STRIPS_MOST],
                    uint32_t n);
void ms_strips_place(ms_strips *strips, const ms_frame *frame,
                     const ms_box *area);
#define MS_STRIPS_HEAD_PX 30.0 /* above the area: the capacity's label */
#define MS_STRIPS_EDGE_PX 4.0  /* within it, above and below the rows */
#define MS_STRIPS_FILL 0.76    /* of a row: its bar */
/* The axis, whose unit is added to its name, and the capacity with its label,
 * which does not reach out of [from_x, area.x1]. */
void ms_strips_axis(const ms_strips *strips, const char *name, double from_x);
/* The line of what comes next. */
void ms_strips_limit(ms_strips *strips, uint64_t usable_bytes);
/* The numbers in the parts of a bar around y, the sign of a broken one and, of
 * bytes, the total beside it. */
void ms_strips_bar(const ms_strips *strips,
                   const uint64_t parts[MS_STRIPS_MOST], double y, double pitch,
                   bool fits);
/* The piece of the capacity line along a row, but for what would strike a text
 * from from_x to to_x in it; ms_strips_bar draws that of its row. */
void ms_strips_wall(const ms_strips *strips, double y, double pitch,
                    double from_x, double to_x);
/* A data block for each part that is shown: of each of n bars where it begins
 * and ends; the first bar around y, the others pitch further down. */
void ms_strips_blocks(const ms_strips *strips,
                      const uint64_t (*parts)[MS_STRIPS_MOST], uint32_t n,
                      double y, double pitch);
/* Continues a plot command with all of them. */
void ms_strips_plot(const ms_strips *strips);

#endif
