/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_REPEAT_H
#define MS_SIM_REPEAT_H

/* A step of a million micro-batches from one of eight (run-length).
 * In the middle of an accumulation each micro-batch does what the one
 * before it did.  Where the plan and the times of three in a row differ in
 * nothing but a constant, the next is like them, too, and so is each that is
 * put between the last of the three and the rest:
 *
 *     ops     0 1 2 3 4 5 | 6 7 step       eight micro-batches, replayed
 *     ops     0 1 2 3 4 5 (5) (5) ... | 6 7 step        as many as wanted
 *
 * An op starts when what it waits for has ended and the host has issued it.
 * If all that it waits for is one period later, so is its start, but for the
 * host, which issues a period's ops in host_ns and is never the last where
 * host_ns <= period_ns.  Levels repeat with the rows.
 *
 * plan.repeated is such a micro-batch, plan.repeats says how many are left out:
 * they are counted (sums of the report), have no ops and events, and the times
 * of what comes behind them are those of the whole step. */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct ms_repeat {
    uint32_t first, end; /* ops of the micro-batch that repeats */
    uint32_t micro_batch;
    uint64_t period_ns;
} ms_repeat;

/* Is the micro-batch before the last two like the two before it?  false: it
 * is not, there are fewer than eight, or what is asked of the machine does not
 * repeat (a wall, pages, books by device time, several ranks). */
bool ms_repeat_find(const ms_timeline *line, const ms_machine *machine,
                    ms_repeat *repeat);
/* Puts `times` more of it into the report of the step; fewer: the report of the
 * same step with one micro-batch less.  false: what is no sum differs between
 * the two, or a sum is too large. */
bool ms_repeat_report(const ms_repeat *repeat, const ms_report *fewer,
                      uint64_t times, ms_report *report);
/* Moves what follows it to its new place: times and numbers of micro-batches.
 */
void ms_repeat_move(const ms_repeat *repeat, uint32_t times, ms_plan *plan,
                    ms_timeline *line);

#endif
