/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ATPEAK_H
#define MS_SIM_ATPEAK_H

/* Private to sim/fold: of which categories a choice's peak is.  The turn at
 * which the level is highest is known from the effects; the turns before it,
 * and within it the calls before the one, are added up by category.
 *
 * A row that is there may change its category by a later call (a HOLD of what a
 * RUN has made makes it an activation), and then counts as that from the start,
 * as in a report.  Where a call behind the peak does so, nothing is told. */

#include "sim/fold/pieces/pieces.h"

/* Of the choice that was folded last.  false: it cannot be told. */
bool ms_atpeak_find(ms_pieces *pieces, uint64_t by_category[MS_N_CATEGORIES]);

#endif
