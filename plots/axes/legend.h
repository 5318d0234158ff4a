/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_LEGEND_H
#define MS_PLOTS_LEGEND_H

/* Colours, names and numbers below the data.  Private to plots/. */

#include "plots/axes/panel.h"
#include "plots/axes/units.h"

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

#endif
