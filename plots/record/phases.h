/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_PHASES_H
#define MS_PLOTS_PHASES_H

/* What the step does when.  Private to plots/. */

#include "plots/record/record.h"
#include "sim/nouns.h"

#define MS_PHASE_MIXED MS_N_PHASES /* too many changes to show each */
#define MS_PHASE_WORDS 3
/* A phase's names, from the longest to the shortest; NULL for the loss. */
extern const char *const ms_phases_words[MS_N_PHASES + 1][MS_PHASE_WORDS];

/* The phases of a rank's compute stream in order, without gaps from 0 to
 * end_ns; *n is 0 where no op takes time. */
ms_err ms_phases_bands(const ms_timeline *line, uint16_t rank, uint64_t end_ns,
                       ms_arena *arena, ms_band **bands, uint32_t *n,
                       ms_fault *fault);

#endif
