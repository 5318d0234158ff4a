/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_EFFECT_H
#define MS_SIM_EFFECT_H

/* Private to sim/fold: what calls do to the level and to the clock, as a value
 * that can be put behind another one, and repeated, without their rows.
 *
 * The level changes by level_bytes in all and rises by at most most_bytes on
 * the way.  On one stream an op starts when the op before it has ended and the
 * host, which takes host_ns for them, has issued it, so that calls take the
 * clock (now, host) to
 *
 *     now'  = max(now + device_ns, host + behind_ns)
 *     host' = host + host_ns
 *
 * where behind_ns is how long host and device go on where the device waited:
 * (max, +) algebra (Baccelli et al., Synchronization and Linearity, 1992).
 *
 * A worked example, an op of 20 ns that takes 8 bytes and another of 30 ns that
 * gives back 6 of them, at 5 ns a launch: level +2, most 8, device 50, behind
 * max(25 + 30, 5 + 35) = 55, host 10.  A thousand times: level +2,000, most
 * 999 x 2 + 8, device 50,000, behind 55 + 999 x 50, host 10,000. */

#include <stdbool.h>
#include <stdint.h>

typedef struct ms_effect {
    int64_t level_bytes, most_bytes; /* most_bytes is at least 0 */
    uint64_t device_ns, behind_ns, host_ns;
    uint64_t recompute_ns; /* of device_ns, what runs again */
    bool runs;             /* there is an op: behind_ns counts */
} ms_effect;

static inline uint64_t ms_effect_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* b behind a. */
static inline ms_effect ms_effect_then(ms_effect a, ms_effect b)
{
    int64_t most_bytes = a.level_bytes + b.most_bytes;
    if (a.most_bytes > most_bytes)
        most_bytes = a.most_bytes;
    uint64_t behind_ns = a.runs ? a.behind_ns + b.device_ns : 0;
    if (b.runs)
        behind_ns = ms_effect_later(behind_ns, a.host_ns + b.behind_ns);
    return (ms_effect){.level_bytes = a.level_bytes + b.level_bytes,
                       .most_bytes = most_bytes,
                       .device_ns = a.device_ns + b.device_ns,
                       .behind_ns = behind_ns,
                       .host_ns = a.host_ns + b.host_ns,
                       .recompute_ns = a.recompute_ns + b.recompute_ns,
                       .runs = a.runs || b.runs};
}

/* a, n times in a row; n is at least 1.  The device waits for the host at the
 * beginning of one of them: then those before it cost what the host takes, and
 * those behind it what the device does. */
static inline ms_effect ms_effect_times(ms_effect a, uint64_t n)
{
    uint64_t more = n - 1;
    int64_t rise_bytes = a.level_bytes > 0 ? (int64_t)more * a.level_bytes : 0;
    uint64_t slower_ns = ms_effect_later(a.device_ns, a.host_ns);
    return (ms_effect){.level_bytes = (int64_t)n * a.level_bytes,
                       .most_bytes = a.most_bytes + rise_bytes,
                       .device_ns = n * a.device_ns,
                       .behind_ns = a.runs ? a.behind_ns + more * slower_ns : 0,
                       .host_ns = n * a.host_ns,
                       .recompute_ns = n * a.recompute_ns,
                       .runs = a.runs};
}

#endif
