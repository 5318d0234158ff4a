/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_TURNS_H
#define MS_TESTS_TURNS_H

/* Schedules that nobody has published: turns in any order in which they can
 * run, whole backwards and halves side by side, some forwards paired with a
 * backward, sometimes with copies of the stages.
 *
 *     laws_turns(&random, &arena, &schedule);
 */

#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"

/* schedule: n_stages, stages, n_ranks and n_micro_batches are given. */
void laws_turns(laws_random *random, ms_arena *arena, ms_schedule *schedule);

#endif
