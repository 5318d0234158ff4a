/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_PANEL_H
#define MS_PLOTS_PANEL_H

/* Device memory over time, in its axes.  Private to plots/. */

#include "plots/axes/labels.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"

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
/* Colours of a phase: of its strip, and behind the data; none of the loss. */
typedef struct ms_panel_phase {
    const char *strip, *tint;
} ms_panel_phase;
extern const ms_panel_phase ms_panel_phases[MS_N_PHASES + 1];

#endif
