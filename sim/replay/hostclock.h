/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOSTCLOCK_H
#define MS_SIM_HOSTCLOCK_H

/* Private to active.c, pooled.c and sim/repeat: replays the clock of a rank's
 * host over a plan whose ops already have their times.  For each op of the rank
 * in order: syncs, then what is done at host_ns, then issue. */

#include "sim/replay/streams/inorder.h"

typedef struct ms_hostclock {
    const ms_plan *plan;
    const ms_timeline *line;
    const ms_machine *machine;
    uint64_t host_ns; /* when the host turns to the op at hand */
    uint64_t all_ns;  /* end of everything issued */
    uint32_t sync;    /* the first of the plan's syncs not looked at */
    uint16_t rank;
} ms_hostclock;

static inline ms_hostclock ms_hostclock_open(const ms_timeline *line,
                                             const ms_machine *machine,
                                             uint32_t rank)
{
    return (ms_hostclock){.plan = line->plan,
                          .line = line,
                          .machine = machine,
                          .rank = (uint16_t)rank};
}

static inline void ms_hostclock_sync(ms_hostclock *clock, uint32_t op)
{
    const ms_plan *plan = clock->plan;
    for (; clock->sync < plan->n_sync && plan->sync[clock->sync].op <= op;
         clock->sync++) {
        uint32_t until = plan->sync[clock->sync].until;
        if (plan->sync[clock->sync].rank != clock->rank)
            continue;
        uint64_t t_ns =
            until == MS_NONE ? clock->all_ns : clock->line->end_ns[until];
        if (t_ns > clock->host_ns)
            clock->host_ns = t_ns;
    }
}

static inline void ms_hostclock_issue(ms_hostclock *clock, uint32_t op)
{
    uint64_t end_ns = clock->line->end_ns[op];
    if (end_ns > clock->all_ns)
        clock->all_ns = end_ns;
    clock->host_ns += ms_inorder_issue_ns(clock->machine, &clock->plan->op[op]);
}

#endif
