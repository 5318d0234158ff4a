/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOSTS_H
#define MS_SIM_HOSTS_H

/* Private to clock.c: the hosts of the ranks, each a process of its own.  A
 * host issues its rank's ops in the order of the plan, each for as long as its
 * issue takes, and stops at a sync until what it waits for has ended. */

#include "sim/base/base.h"
#include "sim/machine.h"
#include "sim/nouns.h"

typedef struct ms_hosts {
    const ms_plan *plan;
    const ms_machine *machine;
    uint64_t *issue_ns; /* per op: what its host takes to issue it and all
                           before it */
    struct ms_hosts_sync {
        uint32_t before, next; /* of the same rank, or MS_NONE */
        uint64_t issue_ns;     /* of the rank's ops before it, */
        uint32_t n_ops;        /* so many */
    } * sync;                  /* per sync of the plan */
    struct ms_hosts_host {
        uint32_t sync;   /* the next of its syncs, or MS_NONE */
        uint32_t passed; /* the last that it passed, or MS_NONE */
        uint32_t n_done; /* ops of the rank that have ended */
        /* What it issues between these two: ops [first, end), at from_ns and
         * behind issue_ns of others. */
        uint32_t first_op, end_op;
        uint64_t issue_ns, from_ns;
        /* What the next sync waits for: an op, or MS_NONE and n_ops. */
        uint32_t until, n_ops;
    } * of;              /* per rank */
    uint64_t *passed_ns; /* as in ms_timeline */
} ms_hosts;

ms_err ms_hosts_open(ms_hosts *hosts, const ms_plan *plan,
                     const ms_machine *machine, ms_arena *arena,
                     ms_fault *fault);
/* Has its host passed every sync before op? */
static inline bool ms_hosts_issued(const struct ms_hosts_host *host,
                                   uint32_t op)
{
    return op < host->end_op;
}

/* The same of an op before which the host passed syncs that it did not wait
 * for. */
uint64_t ms_hosts_issued_ns(const ms_hosts *hosts, uint32_t op);

/* When its host issued op. */
static inline uint64_t ms_hosts_issue_ns(const ms_hosts *hosts,
                                         const struct ms_hosts_host *host,
                                         uint32_t op)
{
    if (op < host->first_op)
        return ms_hosts_issued_ns(hosts, op);
    return host->from_ns + hosts->issue_ns[op] - host->issue_ns;
}

/* Is the next sync of the host, which there is, over?  done: per op. */
static inline bool ms_hosts_is_over(const struct ms_hosts_host *host,
                                    const bool *done)
{
    return host->until == MS_NONE ? host->n_done == host->n_ops
                                  : done[host->until];
}

/* The fault of streams and hosts that wait for each other for ever. */
ms_err ms_hosts_stuck(const ms_plan *plan, uint32_t n_done, ms_fault *fault);
/* The host passes the syncs that are over; end_ns: per op. */
void ms_hosts_pass(ms_hosts *hosts, uint32_t rank, const bool *done,
                   const uint64_t *end_ns, uint64_t now_ns);

#endif
