/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_LABELS_H
#define MS_PLOTS_LABELS_H

/* Where the labels over the data find room.  Private to plots/. */

#include "plots/gnuplot/canvas.h"
#include "plots/record/stack.h"

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

#endif
