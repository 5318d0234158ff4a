/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/classes/homes.h"

#include <string.h>

static bool are_alike(const ms_classes *classes, uint32_t a, uint32_t b)
{
    return classes->kind[a] == classes->kind[b] &&
           classes->of[MS_CLASS_FORWARD][a] ==
               classes->of[MS_CLASS_FORWARD][b] &&
           classes->of[MS_CLASS_BACKWARD][a] ==
               classes->of[MS_CLASS_BACKWARD][b];
}

/* From unit u on, units are like those from home on, so many. */
static uint32_t count_alike(const ms_classes *classes, uint32_t n_units,
                            uint32_t home, uint32_t u)
{
    uint32_t n = 0;
    while (u + n < n_units && are_alike(classes, home + n, u + n))
        n++;
    return n;
}

/* What a unit is like may be like one before it, as far: that is taken then. */
static uint32_t find_first(const uint32_t *home, const uint32_t *alike,
                           uint32_t like, uint32_t n)
{
    while (home[like] < like && alike[like] >= n)
        like = home[like];
    return like;
}

/* As far as a unit is like one before it, it goes on being like the units
 * behind that one; where this ends, its first like is taken.  first: per class
 * its first unit so far, or MS_NONE. */
static void find_homes(ms_homes *homes, const ms_classes *classes,
                       uint32_t n_units, uint32_t *first)
{
    uint32_t *home = homes->home, *alike = homes->alike;
    for (uint32_t u = 0; u < n_units; u++) {
        uint32_t class = classes->of[MS_CLASS_FORWARD][u];
        if (first[class] == MS_NONE)
            first[class] = u;
        if (u > 0 && home[u - 1] < u - 1 && alike[u - 1] > 1) {
            alike[u] = alike[u - 1] - 1;
            home[u] = find_first(home, alike, home[u - 1] + 1, alike[u]);
            continue;
        }
        home[u] = first[class];
        alike[u] = home[u] < u ? count_alike(classes, n_units, home[u], u) : 0;
        if (alike[u] == 0)
            home[u] = u;
    }
}

ms_err ms_homes_find(ms_homes *homes, const ms_classes *classes,
                     uint32_t n_units, ms_arena *arena, ms_fault *fault)
{
    uint32_t *first =
        ms_arena_take_raw(arena, classes->n_classes, sizeof *first);
    homes->home = ms_arena_take(arena, n_units, sizeof *homes->home);
    homes->alike = ms_arena_take(arena, n_units, sizeof *homes->alike);
    if (first == NULL || homes->home == NULL || homes->alike == NULL)
        return ms_fail_nomem(fault);
    memset(first, 0xff, classes->n_classes * sizeof *first);
    find_homes(homes, classes, n_units, first);
    return MS_OK;
}
