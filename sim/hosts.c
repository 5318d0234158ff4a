/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/hosts.h"

#include "sim/inorder.h"

typedef struct ms_hosts_sync sync_state;

/* The syncs before op k are in; n: what each rank has issued so far. */
static uint32_t link_syncs(ms_hosts *hosts, uint32_t k, uint32_t op,
                           sync_state *n)
{
    const ms_plan *plan = hosts->plan;

    for (; k < plan->n_sync && plan->sync[k].op == op; k++) {
        uint8_t rank = plan->sync[k].rank;
        hosts->sync[k] = n[rank];
        if (n[rank].before == MS_NONE)
            hosts->of[rank].sync = k;
        else
            hosts->sync[n[rank].before].next = k;
        n[rank].before = k;
    }
    return k;
}

static void count_issues(ms_hosts *hosts, sync_state *n)
{
    const ms_plan *plan = hosts->plan;
    uint32_t k = 0;

    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        hosts->of[r] = (struct ms_hosts_host){MS_NONE, MS_NONE, 0};
        n[r] = (sync_state){MS_NONE, MS_NONE, 0, 0};
    }
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        sync_state *so_far = &n[plan->op[op].rank];
        k = link_syncs(hosts, k, op, n);
        hosts->launches[op] = so_far->launches;
        so_far->n_ops++;
        so_far->launches += ms_inorder_launches(plan, op);
    }
    link_syncs(hosts, k, plan->n_ops, n);
}

ms_err ms_hosts_open(ms_hosts *hosts, const ms_plan *plan, uint64_t launch_ns,
                     ms_arena *arena, ms_fault *fault)
{
    sync_state *n = ms_arena_take_raw(arena, plan->n_ranks, sizeof *n);

    *hosts = (ms_hosts){.plan = plan, .launch_ns = launch_ns};
    hosts->launches = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    hosts->of = ms_arena_take_raw(arena, plan->n_ranks, sizeof *hosts->of);
    hosts->sync = ms_arena_take_raw(arena, plan->n_sync, sizeof *hosts->sync);
    hosts->passed_ns =
        ms_arena_take(arena, plan->n_sync + 1u, sizeof(uint64_t));
    if (!n || !hosts->launches || !hosts->of || !hosts->sync ||
        !hosts->passed_ns)
        return ms_fail_nomem(fault);
    count_issues(hosts, n);
    return MS_OK;
}

bool ms_hosts_issued(const ms_hosts *hosts, uint32_t op)
{
    uint32_t sync = hosts->of[hosts->plan->op[op].rank].sync;

    return sync == MS_NONE || op < hosts->plan->sync[sync].op;
}

/* When a host that passed sync k last has issued so many kernels in all. */
static uint64_t host_ns(const ms_hosts *hosts, uint32_t k, uint32_t launches)
{
    uint64_t from_ns = k == MS_NONE ? 0 : hosts->passed_ns[k + 1];
    uint32_t before = k == MS_NONE ? 0 : hosts->sync[k].launches;

    return from_ns + (uint64_t)(launches - before) * hosts->launch_ns;
}

uint64_t ms_hosts_issue_ns(const ms_hosts *hosts, uint32_t op)
{
    uint32_t k = hosts->of[hosts->plan->op[op].rank].passed;

    while (k != MS_NONE && hosts->plan->sync[k].op > op)
        k = hosts->sync[k].before;
    return host_ns(hosts, k, hosts->launches[op]);
}

void ms_hosts_pass(ms_hosts *hosts, uint32_t rank, const bool *done,
                   const uint64_t *end_ns, uint64_t now_ns)
{
    struct ms_hosts_host *host = &hosts->of[rank];

    while (host->sync != MS_NONE) {
        const sync_state *it = &hosts->sync[host->sync];
        uint32_t until = hosts->plan->sync[host->sync].until;
        bool all = until == MS_NONE;
        if (all ? host->n_done < it->n_ops : !done[until])
            return;
        uint64_t over_ns = all ? now_ns : end_ns[until];
        uint64_t t_ns = host_ns(hosts, host->passed, it->launches);
        hosts->passed_ns[host->sync + 1] = t_ns > over_ns ? t_ns : over_ns;
        host->passed = host->sync;
        host->sync = it->next;
    }
}
