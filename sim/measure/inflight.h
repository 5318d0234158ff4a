/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_INFLIGHT_H
#define MS_SIM_INFLIGHT_H

/* Private to measure.c: the highest number of micro-batches that lie between
 * their first forward and their last backward, of each rank of the report. */

#include "sim/base/base.h"
#include "sim/nouns.h"

ms_err ms_inflight_measure(const ms_plan *plan, ms_arena *arena,
                           ms_report *report, ms_fault *fault);

#endif
