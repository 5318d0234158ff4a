/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PACE_H
#define MS_SIM_PACE_H

/* Private to clock.c: when ops end that slow each other.  What is left of each
 * is counted again whenever an op on its rank starts or ends; an op that starts
 * later than it is scheduled has an instant of its own for its start.
 *
 * A worked example: an op of 100 ns runs alone for 40 ns, then beside another
 * at half speed: 60 ns of work are left, so it ends at 40 + 120 ns. */

#include "sim/base/base.h"
#include "sim/names.h"
#include "sim/nouns.h"
#include "sim/replay/streams/speed.h"

/* The longest op whose work can be counted; longer ones are not slowed. */
#define MS_PACE_LONGEST_NS (UINT64_MAX / MS_SPEED_WHOLE)

/* The op of a stream. */
typedef struct ms_pace_progress {
    uint64_t work;     /* left at since_ns, in 1/MS_SPEED_WHOLE ns */
    uint64_t since_ns; /* since then at this speed */
    uint32_t speed;    /* 0: it has not begun */
} ms_pace_progress;

#define MS_PACE_SETS (1u << MS_N_STREAMS)

typedef struct ms_pace {
    const ms_machine *machine;
    ms_pace_progress *of; /* per stream */
    ms_streams *busy;     /* per rank: those whose op runs */
    uint16_t *counted;    /* per rank: the streams that ran when last counted */
    bool known[MS_PACE_SETS];
    uint16_t speed[MS_PACE_SETS][MS_N_STREAMS];
} ms_pace;

ms_err ms_pace_open(const ms_machine *machine, uint32_t n_ranks,
                    ms_arena *arena, ms_pace **pace, ms_fault *fault);
/* An op of ns starts on stream s (of all ranks' streams) at t_ns.  Its end at
 * full speed; or, where that is later than now, t_ns: it begins then. */
uint64_t ms_pace_start(ms_pace *pace, uint32_t s, uint64_t ns, uint64_t t_ns,
                       uint64_t now_ns);
static inline bool ms_pace_has_begun(const ms_pace *pace, uint32_t s)
{
    return pace->of[s].speed > 0;
}
uint64_t ms_pace_begin(ms_pace *pace, uint32_t s, uint64_t ns, uint64_t now_ns);
/* The op of the stream has ended. */
static inline void ms_pace_leave(ms_pace *pace, uint32_t s)
{
    pace->busy[s / MS_N_STREAMS] &= (ms_streams) ~(1u << s % MS_N_STREAMS);
}
/* The speeds of the streams in busy, while just these run; the first time. */
const uint16_t *ms_pace_find_speeds(ms_pace *pace, ms_streams busy);
static inline const uint16_t *ms_pace_speeds(ms_pace *pace, ms_streams busy)
{
    return pace->known[busy] ? pace->speed[busy]
                             : ms_pace_find_speeds(pace, busy);
}
/* The op goes on at this speed from now on: when it ends. */
static inline uint64_t ms_pace_change(ms_pace_progress *of, uint32_t speed,
                                      uint64_t now_ns)
{
    of->work -= (now_ns - of->since_ns) * of->speed;
    of->since_ns = now_ns;
    of->speed = speed;
    return now_ns + of->work / speed + (of->work % speed > 0);
}
/* Ops of the rank may have started or ended: those that run go on at new
 * speeds, and end_ns (per stream of all ranks) follows. */
void ms_pace_rank(ms_pace *pace, uint32_t rank, uint64_t now_ns,
                  uint64_t *end_ns);

#endif
