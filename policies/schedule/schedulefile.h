/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SCHEDULEFILE_H
#define MS_SCHEDULEFILE_H

/* Schedules as PyTorch writes them (torch/distributed/pipelining/schedules.py,
 * _dump_csv and _load_csv): row i is rank i's, a cell is a turn: stage, letter,
 * micro-batch; an empty one is idle.
 *
 *     0F0,0F1,,0I0,0W0,0B1
 *     ,1F0,1B0,1F1,1I1,1W1
 *
 * Stages are numbered through the model; whose they are, the rows say in which
 * their cells stand.  (0F7;7B3)OVERLAP_F_B is a pair.  Files of PyTorch 2.5
 * and the nightly versions after it say B for the half of the inputs (I since
 * 2.6) and BW for a whole backward (B): a file with a BW, or with W and no I,
 * is such a one.
 *
 * Cells of messages, gathers and reductions (format compute_comms, which is
 * what PyTorch dumps by default) must fit the turns (messagecells.h); when
 * messages go and weights are gathered is not theirs to say here.
 *
 * A stage may have copies: then its cells stand in several rows, those of one
 * micro-batch in one (PyTorch has no such schedule; DualPipe is one). */

#include "sim/schedule/schedule.h"

/* All of the schedule but the units of its stages.  A mark of UTF-8, quoted
 * cells and any ends of lines are read.  MS_EINPUT, at path:row:column (counted
 * in cells): what is no cell, or names what cannot be; turns that are missing,
 * doubled or out of order ms_schedule_check finds, and says where in the
 * file. */
ms_err ms_schedulefile_read(const char *path, ms_arena *arena,
                            ms_schedule *schedule, ms_fault *fault);

/* Does it run halves of backward apart? */
ms_err ms_schedulefile_splits(const char *path, bool *splits, ms_fault *fault);

#endif
