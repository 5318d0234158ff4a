/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_COMPARE_ROWS_H
#define MS_TOOLS_COMPARE_ROWS_H

/* What memsim compare shows side by side: members of ms_rank_report. */

#include "sim/names.h"
#include "sim/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ms_compare_row {
    const char *label; /* as people read it */
    const char *key;   /* "peak_allocated_bytes", "step_ns" */
    size_t offset;     /* the offset of a uint64_t in ms_rank_report */
    bool is_time;      /* the value is in ns, else in bytes */
} ms_compare_row;
/* The rows that begin the parts of the table: sizes, the phases' peaks, the
 * categories at the peak, times, the traffic of links, and the categories at
 * each phase's peak. */
enum {
    MS_COMPARE_PEAK = 0,
    MS_COMPARE_RESERVED = 1,
    MS_COMPARE_PHASES = 2,
    MS_COMPARE_HELD = MS_COMPARE_PHASES + MS_N_PHASES,
    MS_COMPARE_STEP = MS_COMPARE_HELD + MS_N_CATEGORIES,
    MS_COMPARE_MOVED = MS_COMPARE_STEP + 12,
    MS_COMPARE_IN_TIME = MS_COMPARE_MOVED + 7,
    MS_COMPARE_N_ROWS = MS_COMPARE_IN_TIME + MS_N_PHASES * MS_N_CATEGORIES
};
extern const ms_compare_row ms_compare_rows[MS_COMPARE_N_ROWS];

#endif
