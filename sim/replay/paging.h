/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PAGING_H
#define MS_SIM_PAGING_H

/* Private to replay.c: unified memory.  The device's memory is a cache of
 * pages over the host's, the least recently used go when it is full.
 *
 * What moves together is a row: what an op touches must be there whole.  A row
 * that the step makes is made in the device's memory; of those that exist at
 * its start those are there that were there at the end of the step before;
 * workspace is the libraries' own (cudaMalloc) and there throughout, and
 * so is, while it lives, what ms_paging.managed leaves out.  An evicted row is
 * written back if an op has made or changed it since it came. */

#include "sim/replay/wall.h"

/* One rank, whose ops touch pages in the order of issue, whichever stream they
 * are on.  Fills the times of the timeline and line->pages; *list: changes of
 * the books, in order; turn 1: allocated.  plan.use must be there.
 * Faults: MS_EINFEASIBLE where one op touches more than there is. */
ms_err ms_paging_run(const ms_plan *plan, const ms_machine *machine,
                     ms_arena *arena, ms_timeline *line, ms_wall_instant **list,
                     uint32_t *n, ms_fault *fault);

#endif
