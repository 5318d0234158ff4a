/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/pace.h"
#include "sim/machine.h"

#define UNCOUNTED MS_PACE_SETS /* no set of streams */

ms_err ms_pace_open(const ms_machine *machine, uint32_t n_ranks,
                    ms_arena *arena, ms_pace **pace, ms_fault *fault)
{
    ms_pace *it = ms_arena_take(arena, 1, sizeof *it);
    if (!it)
        return ms_fail_nomem(fault);
    it->machine = machine;
    it->of =
        ms_arena_take(arena, n_ranks * (size_t)MS_N_STREAMS, sizeof *it->of);
    it->busy = ms_arena_take(arena, n_ranks, sizeof *it->busy);
    it->counted = ms_arena_take(arena, n_ranks, sizeof *it->counted);
    if (!it->of || !it->busy || !it->counted)
        return ms_fail_nomem(fault);
    *pace = it;
    return MS_OK;
}

uint64_t ms_pace_begin(ms_pace *pace, uint32_t s, uint64_t ns, uint64_t now_ns)
{
    pace->of[s] =
        (ms_pace_progress){ns * MS_SPEED_WHOLE, now_ns, MS_SPEED_WHOLE};
    pace->counted[s / MS_N_STREAMS] = UNCOUNTED; /* a new op: count again */
    if (ns > 0 && ns <= MS_PACE_LONGEST_NS)
        pace->busy[s / MS_N_STREAMS] |= (ms_streams)(1u << s % MS_N_STREAMS);
    return now_ns + ns;
}

uint64_t ms_pace_start(ms_pace *pace, uint32_t s, uint64_t ns, uint64_t t_ns,
                       uint64_t now_ns)
{
    if (t_ns <= now_ns)
        return ms_pace_begin(pace, s, ns, now_ns);
    pace->of[s].speed = 0;
    return t_ns;
}

const uint16_t *ms_pace_find_speeds(ms_pace *pace, ms_streams busy)
{
    for (uint32_t i = 0; i < MS_N_STREAMS; i++)
        if (busy & 1u << i)
            pace->speed[busy][i] =
                (uint16_t)ms_speed_of(pace->machine, busy, i);
    pace->known[busy] = true;
    return pace->speed[busy];
}

void ms_pace_rank(ms_pace *pace, uint32_t rank, uint64_t now_ns,
                  uint64_t *end_ns)
{
    ms_streams busy = pace->busy[rank];
    if (busy == pace->counted[rank])
        return;
    pace->counted[rank] = busy;
    const uint16_t *speed = ms_pace_speeds(pace, busy);
    for (uint32_t i = 0; i < MS_N_STREAMS; i++) {
        uint32_t s = rank * (uint32_t)MS_N_STREAMS + i;
        if (busy & 1u << i && pace->of[s].speed != speed[i])
            end_ns[s] = ms_pace_change(&pace->of[s], speed[i], now_ns);
    }
}
