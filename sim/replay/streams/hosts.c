/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/hosts.h"

#include "sim/graph.h"
#include "sim/replay/streams/inorder.h"

typedef struct ms_hosts_sync sync_state;

/* The next sync of the host is k. */
static void wait_at(ms_hosts *hosts, struct ms_hosts_host *host, uint32_t k)
{
    host->sync = k;
    host->end_op = UINT32_MAX;
    if (k == MS_NONE)
        return;
    host->end_op = hosts->plan->sync[k].op;
    host->until = hosts->plan->sync[k].until;
    host->n_ops = hosts->sync[k].n_ops;
}

/* n: what each rank has issued before sync k. */
static void link_sync(ms_hosts *hosts, uint32_t k, sync_state *n)
{
    uint16_t rank = hosts->plan->sync[k].rank;
    hosts->sync[k] = n[rank];
    if (n[rank].before == MS_NONE)
        wait_at(hosts, &hosts->of[rank], k);
    else
        hosts->sync[n[rank].before].next = k;
    n[rank].before = k;
}

/* Ops [first, end), before which no sync lies but at first. */
static void count_ops(ms_hosts *hosts, uint32_t first, uint32_t end,
                      sync_state *n)
{
    const ms_plan *plan = hosts->plan;
    uint64_t issue_ns = n[0].issue_ns;
    /* Most plans have one rank; its sum then stays in a register. */
    if (plan->n_ranks == 1) {
        for (uint32_t op = first; op < end; op++) {
            issue_ns += ms_inorder_issue_ns(hosts->machine, &plan->op[op]);
            hosts->issue_ns[op] = issue_ns;
        }
        n[0].n_ops += end - first;
        n[0].issue_ns = issue_ns;
        return;
    }
    for (uint32_t op = first; op < end; op++) {
        sync_state *so_far = &n[plan->op[op].rank];
        so_far->n_ops++;
        so_far->issue_ns += ms_inorder_issue_ns(hosts->machine, &plan->op[op]);
        hosts->issue_ns[op] = so_far->issue_ns;
    }
}

/* n: per rank, room. */
static void count_issues(ms_hosts *hosts, sync_state *n)
{
    const ms_plan *plan = hosts->plan;
    uint32_t op = 0;
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        hosts->of[r] = (struct ms_hosts_host){
            .sync = MS_NONE, .passed = MS_NONE, .end_op = UINT32_MAX};
        n[r] = (sync_state){MS_NONE, MS_NONE, 0, 0};
    }
    for (uint32_t k = 0; k < plan->n_sync; k++) {
        count_ops(hosts, op, plan->sync[k].op, n);
        op = plan->sync[k].op;
        link_sync(hosts, k, n);
    }
    count_ops(hosts, op, plan->n_ops, n);
}

ms_err ms_hosts_open(ms_hosts *hosts, const ms_plan *plan,
                     const ms_machine *machine, ms_arena *arena,
                     ms_fault *fault)
{
    sync_state *n = ms_arena_take_raw(arena, plan->n_ranks, sizeof *n);
    *hosts = (ms_hosts){.plan = plan, .machine = machine};
    hosts->issue_ns = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint64_t));
    hosts->of = ms_arena_take_raw(arena, plan->n_ranks, sizeof *hosts->of);
    hosts->sync = ms_arena_take_raw(arena, plan->n_sync, sizeof *hosts->sync);
    hosts->passed_ns =
        ms_arena_take(arena, plan->n_sync + 1u, sizeof(uint64_t));
    if (!n || !hosts->issue_ns || !hosts->of || !hosts->sync ||
        !hosts->passed_ns)
        return ms_fail_nomem(fault);
    count_issues(hosts, n);
    return MS_OK;
}

/* When a host that passed sync k last has issued what takes issue_ns in all. */
static uint64_t host_ns(const ms_hosts *hosts, uint32_t k, uint64_t issue_ns)
{
    uint64_t from_ns = k == MS_NONE ? 0 : hosts->passed_ns[k + 1];
    uint64_t before_ns = k == MS_NONE ? 0 : hosts->sync[k].issue_ns;
    return from_ns + issue_ns - before_ns;
}

uint64_t ms_hosts_issued_ns(const ms_hosts *hosts, uint32_t op)
{
    uint32_t k = hosts->of[hosts->plan->op[op].rank].passed;
    while (k != MS_NONE && hosts->plan->sync[k].op > op)
        k = hosts->sync[k].before;
    return host_ns(hosts, k, hosts->issue_ns[op]);
}

static void pass(ms_hosts *hosts, struct ms_hosts_host *host, uint64_t over_ns)
{
    const sync_state *it = &hosts->sync[host->sync];
    uint64_t t_ns = host_ns(hosts, host->passed, it->issue_ns);
    host->from_ns = t_ns > over_ns ? t_ns : over_ns;
    hosts->passed_ns[host->sync + 1] = host->from_ns;
    host->first_op = host->end_op;
    host->issue_ns = it->issue_ns;
    host->passed = host->sync;
    wait_at(hosts, host, it->next);
}

void ms_hosts_pass(ms_hosts *hosts, uint32_t rank, const bool *done,
                   const uint64_t *end_ns, uint64_t now_ns)
{
    struct ms_hosts_host *host = &hosts->of[rank];
    while (host->sync != MS_NONE && ms_hosts_is_over(host, done))
        pass(hosts, host,
             host->until == MS_NONE ? now_ns : end_ns[host->until]);
}

ms_err ms_hosts_stuck(const ms_plan *plan, uint32_t n_done, ms_fault *fault)
{
    return ms_fail(fault, MS_EINPUT, plan->graph->name,
                   "look for a cycle among moves and syncs in the program",
                   "the step stops after %u of %u ops: each stream waits for "
                   "another",
                   n_done, plan->n_ops);
}
