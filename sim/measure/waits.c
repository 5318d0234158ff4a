/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/waits.h"
#include "sim/graph.h"
#include "sim/plan.h"

#include <string.h>

const char *const ms_waits_names[MS_N_CAUSES] = {
    [MS_CAUSE_HOST] = "host",
    [MS_CAUSE_GATHER] = "gather",
    [MS_CAUSE_REDUCE] = "reduce",
    [MS_CAUSE_MEETING] = "activations",
    [MS_CAUSE_TO_DEVICE] = "copy_to_device",
    [MS_CAUSE_TO_HOST] = "copy_to_host",
    [MS_CAUSE_DISK] = "disk",
    [MS_CAUSE_HOST_WORK] = "host_work",
    [MS_CAUSE_PACK] = "pack",
    [MS_CAUSE_RANK] = "bubble",
    [MS_CAUSE_PAGES] = "pages",
    [MS_CAUSE_MEMORY] = "memory",
    [MS_CAUSE_IDLE] = "idle",
};
const char *const ms_waits_links[MS_N_LINKS] = {
    [MS_LINK_COMM] = "comm",
    [MS_LINK_OUTER] = "outer",
    [MS_LINK_H2D] = "h2d",
    [MS_LINK_D2H] = "d2h",
    [MS_LINK_NVME_READ] = "nvme_read",
    [MS_LINK_NVME_WRITE] = "nvme_write",
    [MS_LINK_HOST] = "host",
};

static const uint8_t cause_of_kind[MS_N_TRANSFERS] = {
    [MS_TRANSFER_H2D] = MS_CAUSE_TO_DEVICE,
    [MS_TRANSFER_D2H] = MS_CAUSE_TO_HOST,
    [MS_TRANSFER_NVME_READ] = MS_CAUSE_DISK,
    [MS_TRANSFER_NVME_WRITE] = MS_CAUSE_DISK,
    [MS_TRANSFER_GATHER] = MS_CAUSE_GATHER,
    [MS_TRANSFER_SCATTER] = MS_CAUSE_REDUCE,
    [MS_TRANSFER_REDUCE] = MS_CAUSE_REDUCE,
    [MS_TRANSFER_OUTER] = MS_CAUSE_REDUCE,
    [MS_TRANSFER_EXCHANGE] = MS_CAUSE_REDUCE,
    [MS_TRANSFER_MEETING] = MS_CAUSE_MEETING,
    [MS_TRANSFER_SEND] = MS_CAUSE_RANK,
};
static const uint8_t link_of_kind[MS_N_TRANSFERS] = {
    [MS_TRANSFER_H2D] = MS_LINK_H2D,
    [MS_TRANSFER_D2H] = MS_LINK_D2H,
    [MS_TRANSFER_NVME_READ] = MS_LINK_NVME_READ,
    [MS_TRANSFER_NVME_WRITE] = MS_LINK_NVME_WRITE,
    [MS_TRANSFER_GATHER] = MS_LINK_COMM,
    [MS_TRANSFER_SCATTER] = MS_LINK_COMM,
    [MS_TRANSFER_REDUCE] = MS_LINK_COMM,
    [MS_TRANSFER_OUTER] = MS_LINK_OUTER,
    [MS_TRANSFER_EXCHANGE] = MS_LINK_COMM,
    [MS_TRANSFER_MEETING] = MS_LINK_OUTER,
    [MS_TRANSFER_SEND] = MS_LINK_COMM,
};

static ms_err list_before(ms_waits *waits, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = waits->line->plan;
    uint32_t n_streams = plan->n_ranks * (uint32_t)MS_N_STREAMS;
    uint32_t *last = ms_arena_take_raw(arena, n_streams, sizeof *last);
    uint32_t *before = ms_arena_take_raw(arena, plan->n_ops, sizeof *before);
    if (!last || !before)
        return ms_fail_nomem(fault);
    memset(last, 0xff, n_streams * sizeof *last);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t stream =
            plan->op[op].rank * (uint32_t)MS_N_STREAMS + plan->op[op].stream;
        before[op] = last[stream];
        last[stream] = op;
    }
    waits->before = before;
    return MS_OK;
}

static ms_err list_kinds(ms_waits *waits, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = waits->line->plan;
    uint8_t *kind = ms_arena_take_raw(arena, plan->n_ops, 1);
    if (!kind)
        return ms_fail_nomem(fault);
    memset(kind, MS_N_TRANSFERS, plan->n_ops);
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        kind[plan->transfers[i].op] = plan->transfers[i].kind;
    waits->kind = kind;
    return MS_OK;
}

/* A host was held at a sync if it passed when what it waits for ended; last:
 * the op of each rank that ends last so far. */
static void find_held(ms_waits *waits, uint32_t *last)
{
    const ms_timeline *line = waits->line;
    const ms_plan *plan = line->plan;
    uint32_t op = 0;
    for (uint32_t k = 0; k < plan->n_sync; k++) {
        for (; op < plan->sync[k].op; op++) {
            uint32_t *of_rank = &last[plan->op[op].rank];
            *of_rank = ms_waits_later(line, op, *of_rank);
        }
        uint32_t until = plan->sync[k].until;
        uint32_t by = until == MS_NONE ? last[plan->sync[k].rank] : until;
        bool held = by != MS_NONE && line->end_ns[by] == line->passed_ns[k + 1];
        waits->held[k] = held ? by : MS_NONE;
    }
}

static ms_err list_held(ms_waits *waits, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = waits->line->plan;
    uint32_t *last = ms_arena_take_raw(arena, plan->n_ranks, sizeof *last);
    waits->held = ms_arena_take_raw(arena, plan->n_sync, sizeof(uint32_t));
    if (!waits->held || !last)
        return ms_fail_nomem(fault);
    memset(last, 0xff, plan->n_ranks * sizeof *last);
    find_held(waits, last);
    return MS_OK;
}

ms_err ms_waits_open(ms_waits *waits, const ms_timeline *line, ms_arena *arena,
                     ms_fault *fault)
{
    *waits = (ms_waits){.line = line};
    if (line->plan->n_transfers > 0)
        MS_TRY(list_kinds(waits, arena, fault));
    if (line->plan->wait_at)
        MS_TRY(list_before(waits, arena, fault));
    if (line->plan->n_sync > 0 && line->passed_ns)
        MS_TRY(list_held(waits, arena, fault));
    return MS_OK;
}

/* ---- what an op is ------------------------------------------------------- */

uint8_t ms_waits_kind(const ms_waits *waits, uint32_t op)
{
    return waits->kind && op != MS_NONE ? waits->kind[op] : MS_N_TRANSFERS;
}

ms_link ms_waits_link(const ms_waits *waits, uint32_t op)
{
    uint8_t kind = ms_waits_kind(waits, op);
    if (kind < MS_N_TRANSFERS)
        return (ms_link)link_of_kind[kind];
    bool host_works =
        op != MS_NONE && waits->line->plan->op[op].stream == MS_STREAM_HOST;
    return host_works ? MS_LINK_HOST : MS_N_LINKS;
}

bool ms_waits_is_update(const ms_waits *waits, uint32_t op)
{
    const ms_plan *plan = waits->line->plan;
    const ms_plan_op *it = &plan->op[op == MS_NONE ? 0 : op];
    return op != MS_NONE && it->stream == MS_STREAM_COMM &&
           it->pass == MS_STEP && it->of != MS_NONE &&
           !(plan->graph->op_flags[it->of] & MS_OP_GATHERS);
}

ms_cause ms_waits_cause(const ms_waits *waits, uint32_t op)
{
    const ms_plan_op *row = &waits->line->plan->op[op];
    uint8_t kind = ms_waits_kind(waits, op);
    if (kind < MS_N_TRANSFERS)
        return (ms_cause)cause_of_kind[kind];
    if (row->stream == MS_STREAM_HOST)
        return MS_CAUSE_HOST_WORK;
    return row->pass == MS_COPY ? MS_CAUSE_PACK : MS_CAUSE_IDLE;
}

/* ---- the walk ------------------------------------------------------------ */

/* The cause of the wait before op where no op caused it; MS_CAUSE_IDLE: an op
 * may have. */
static ms_cause own_cause(const ms_timeline *line, uint32_t op)
{
    switch ((ms_gap)line->gap_cause[op]) {
    case MS_GAP_HOST:
        return MS_CAUSE_HOST;
    case MS_GAP_PAGES:
        return MS_CAUSE_PAGES;
    case MS_GAP_MEMORY:
        return MS_CAUSE_MEMORY;
    default:
        return MS_CAUSE_IDLE;
    }
}

/* The op whose end let this one start, or MS_NONE: the host did, its pages
 * came, or memory got free. */
static uint32_t blocker(const ms_waits *waits, uint32_t op)
{
    const ms_timeline *line = waits->line;
    const ms_plan *plan = line->plan;
    uint64_t start_ns = line->start_ns[op];
    if (own_cause(line, op) != MS_CAUSE_IDLE || !waits->before)
        return MS_NONE;
    uint32_t before = waits->before[op];
    if (before != MS_NONE && line->end_ns[before] == start_ns)
        return before;
    for (uint32_t i = plan->wait_at[op + 1]; i-- > plan->wait_at[op];)
        if (line->end_ns[plan->wait[i]] == start_ns)
            return plan->wait[i];
    return MS_NONE;
}

ms_wait ms_waits_before(const ms_waits *waits, uint32_t op, uint64_t free_ns)
{
    return (ms_wait){.free_ns = free_ns,
                     .from_ns = waits->line->start_ns[op],
                     .last = op,
                     .next = blocker(waits, op)};
}

ms_wait ms_waits_after(const ms_waits *waits, uint32_t last, uint64_t free_ns)
{
    return (ms_wait){.free_ns = free_ns,
                     .from_ns = waits->line->end_ns[last],
                     .last = last,
                     .next = last};
}

/* The number of syncs of the plan up to the last one that op's host passed
 * before it issued op; syncs are in the order of the ops that they precede. */
static uint32_t syncs_before(const ms_plan *plan, uint32_t op)
{
    uint32_t low = 0, high = plan->n_sync;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->sync[middle].op <= op)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && plan->sync[low - 1].rank != plan->op[op].rank)
        low--;
    return low;
}

/* The time before the first op of the chain has no op: it is idle, or a wait
 * for pages or memory, or the host's (where a sync held the host, from the end
 * of that sync on). */
static bool end_chain(const ms_waits *waits, ms_wait *wait)
{
    const ms_timeline *line = waits->line;
    wait->cause = (uint8_t)own_cause(line, wait->last);
    bool late = wait->cause == MS_CAUSE_HOST;
    wait->by = MS_NONE;
    uint32_t k = late && waits->held ? syncs_before(line->plan, wait->last) : 0;
    uint64_t since_ns = k > 0 ? line->passed_ns[k] : 0;
    wait->next = k > 0 ? waits->held[k - 1] : MS_NONE;
    if (wait->next == MS_NONE || since_ns < wait->free_ns)
        since_ns = wait->free_ns;
    wait->from_ns = since_ns;
    return wait->from_ns < wait->to_ns;
}

bool ms_waits_next(const ms_waits *waits, ms_wait *wait)
{
    const ms_timeline *line = waits->line;
    wait->to_ns = wait->from_ns;
    while (wait->from_ns > wait->free_ns) {
        uint32_t op = wait->next;
        if (op == MS_NONE) {
            if (end_chain(waits, wait))
                return true;
            continue;
        }
        if (line->plan->op[op].rank != line->plan->op[wait->last].rank) {
            wait->cause = MS_CAUSE_RANK;
            wait->by = MS_NONE;
            wait->from_ns = wait->free_ns;
            return true;
        }
        uint64_t start_ns = line->start_ns[op];
        wait->from_ns = start_ns > wait->free_ns ? start_ns : wait->free_ns;
        wait->cause = (uint8_t)ms_waits_cause(waits, op);
        wait->by = wait->last = op;
        wait->next = blocker(waits, op);
        if (wait->from_ns < wait->to_ns)
            return true;
    }
    return false;
}
