/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOSTS_H
#define MS_SIM_HOSTS_H

/* Private to clock.c: the hosts of the ranks, each a process of its own.  A
 * host issues its rank's ops in the order of the plan, a kernel each
 * launch_ns, and stops at a sync until what it waits for has ended. */

#include "sim/sim.h"

typedef struct ms_hosts {
    const ms_plan *plan;
    uint64_t launch_ns;
    uint32_t *launches; /* per op: kernels that its host issues before it */
    struct ms_hosts_sync {
        uint32_t before, next;    /* of the same rank, or MS_NONE */
        uint32_t n_ops, launches; /* of the rank, issued before it */
    } * sync;                     /* per sync of the plan */
    struct ms_hosts_host {
        uint32_t sync;   /* the next of its syncs, or MS_NONE */
        uint32_t passed; /* the last that it passed, or MS_NONE */
        uint32_t n_done; /* ops of the rank that have ended */
    } * of;              /* per rank */
    uint64_t *passed_ns; /* as in ms_timeline */
} ms_hosts;

ms_err ms_hosts_open(ms_hosts *hosts, const ms_plan *plan, uint64_t launch_ns,
                     ms_arena *arena, ms_fault *fault);
/* Has its host passed every sync before op? */
bool ms_hosts_issued(const ms_hosts *hosts, uint32_t op);
/* When op is issued, which may start after that though the host has gone on and
 * passed a sync since. */
uint64_t ms_hosts_issue_ns(const ms_hosts *hosts, uint32_t op);
/* The host passes the syncs that are over; done and end_ns: per op. */
void ms_hosts_pass(ms_hosts *hosts, uint32_t rank, const bool *done,
                   const uint64_t *end_ns, uint64_t now_ns);

#endif
