/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_FARLEVELS_H
#define MS_SIM_FARLEVELS_H

/* Private to sim/measure: what lies outside the device, of all ranks of the
 * plan together and of each, while their events are folded.
 *
 *     MS_TRY(ms_farlevels_open(&levels, report, arena, fault));
 *     ms_farlevels_add(&levels, rank, row, bytes);
 *     ms_farlevels_add(&levels, rank, row, 0 - bytes);  it is given back
 *     use(report->ranks[rank].far[MS_HOST_POOL].peak_bytes); */

#include "sim/nouns.h"
#include "sim/plan.h"
#include "sim/report.h"

typedef struct ms_farlevels {
    ms_report *report;
    struct ms_farlevels_all {
        uint64_t now_bytes, by_category[MS_N_CATEGORIES];
    } all[MS_N_POOLS];
    uint64_t *now_bytes; /* per rank and pool */
} ms_farlevels;

/* The report's ranks are there. */
ms_err ms_farlevels_open(ms_farlevels *levels, ms_report *report,
                         ms_arena *arena, ms_fault *fault);
void ms_farlevels_add(ms_farlevels *levels, uint16_t rank, const ms_row *row,
                      uint64_t bytes);

#endif
