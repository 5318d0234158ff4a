/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOMES_H
#define MS_SIM_HOMES_H

/* Private to sim/fold: runs of units that are like runs before them.
 *
 * A worked example, units of the classes A B B B C: home 0 1 1 1 4.  The unit 3
 * is like the unit 2, since 2 to 3 are like 1 to 2, and so like the unit 1. */

#include "sim/fold/classes/classes.h"

/* Per unit: home, the first of the units before it (or itself) from which on
 * units are like those from it on, and alike, so many.  first: room for a word of each class.
 */
void ms_homes_find(const ms_classes *classes, uint32_t n_units, uint32_t *first,
                   uint32_t *home, uint32_t *alike);

#endif
