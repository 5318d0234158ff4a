/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOMES_H
#define MS_SIM_HOMES_H

/* Private to sim/fold: runs of units that are like runs before them.
 *
 * A worked example, units of the classes A B B B C: home 0 1 1 1 4.  The unit 3
 * is like the unit 2, since 2 to 3 are like 1 to 2, and so like the unit 1. */

#include "sim/fold/classes/classes.h"

/* Per unit: home, the first of the units before it (or itself) from which on
 * units are like those from it on, and alike, so many. */
typedef struct ms_homes {
    uint32_t *home, *alike;
} ms_homes;

ms_err ms_homes_find(ms_homes *homes, const ms_classes *classes,
                     uint32_t n_units, ms_arena *arena, ms_fault *fault);

/* A number for units [first, end): the same for units that are alike. */
static inline uint32_t ms_homes_shape(const ms_homes *homes, uint32_t first,
                                      uint32_t end)
{
    return homes->alike[first] >= end - first ? homes->home[first] : first;
}

#endif
