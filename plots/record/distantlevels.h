/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_DISTANTLEVELS_H
#define MS_PLOTS_DISTANTLEVELS_H

/* Levels of memories outside the device.  Private to plots/. */

#include "sim/base/base.h"
#include "sim/names.h"
#include "sim/nouns.h"

/* The highest level of a rank in that pool in each of n equal parts of the
 * step (n > 0). */
ms_err ms_distantlevels_levels(const ms_timeline *line, uint16_t rank,
                               ms_pool_kind pool, uint32_t n, ms_arena *arena,
                               uint64_t **levels, ms_fault *fault);

#endif
