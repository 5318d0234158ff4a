/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/inorder.h"
#include "sim/timeline.h"

/* The cause of a gap where a stream of this kind is waited for. */
static const uint8_t gap_of[MS_N_STREAMS] = {
    [MS_STREAM_COMPUTE] = MS_GAP_IDLE,   [MS_STREAM_H2D] = MS_GAP_COPY,
    [MS_STREAM_D2H] = MS_GAP_COPY,       [MS_STREAM_COMM] = MS_GAP_COMM,
    [MS_STREAM_OUTER] = MS_GAP_COMM,     [MS_STREAM_HOST] = MS_GAP_COPY,
    [MS_STREAM_NVME_READ] = MS_GAP_COPY, [MS_STREAM_NVME_WRITE] = MS_GAP_COPY,
    [MS_STREAM_NEXT] = MS_GAP_COMM,      [MS_STREAM_BEFORE] = MS_GAP_COMM,
};

uint8_t ms_inorder_cause(const ms_plan *plan, uint32_t op, uint32_t other)
{
    if (plan->op[other].rank != plan->op[op].rank)
        return MS_GAP_BUBBLE;
    return gap_of[plan->op[other].stream];
}

/* With one stream and no sync the clock is a running sum. */
bool ms_inorder_alone(const ms_plan *plan)
{
    return !plan->wait_at && plan->n_ranks == 1 && plan->n_sync == 0;
}

static void run_one_stream(const ms_plan *plan, const ms_machine *machine,
                           ms_timeline *line)
{
    uint64_t now_ns = 0, host_ns = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        line->gap_cause[op] = MS_GAP_NONE;
        host_ns += ms_inorder_issue_ns(machine, &plan->op[op]);
        if (host_ns > now_ns) {
            now_ns = host_ns;
            line->gap_cause[op] = MS_GAP_HOST;
        }
        line->start_ns[op] = now_ns;
        now_ns += plan->op[op].ns;
        line->end_ns[op] = now_ns;
    }
    line->step_ns = now_ns;
}

/* ---- several streams, nothing interferes --------------------------------- */

typedef struct rank_order {
    uint64_t free_ns[MS_N_STREAMS]; /* end of the last op */
    uint64_t host_ns;               /* when the host issues its next op */
    uint64_t all_ns;                /* end of all ops of the rank so far */
} rank_order;

static void pass_syncs(rank_order *ranks, uint32_t *sync, const ms_plan *plan,
                       const ms_timeline *line, uint32_t op)
{
    for (; *sync < plan->n_sync && plan->sync[*sync].op == op; ++*sync) {
        rank_order *rank = &ranks[plan->sync[*sync].rank];
        uint32_t until = plan->sync[*sync].until;
        uint64_t t_ns = until == MS_NONE ? rank->all_ns : line->end_ns[until];
        rank->host_ns = t_ns > rank->host_ns ? t_ns : rank->host_ns;
        line->passed_ns[*sync + 1] = rank->host_ns;
    }
}

/* When the ops in a list have ended, and the last of them: of those that end at
 * once the one that is listed last is the cause, as in clock.c. */
static inline uint64_t waits_end(const uint32_t *wait, const uint32_t *end,
                                 const uint64_t *end_ns, uint32_t *last)
{
    uint64_t ready_ns = 0;
    for (; wait < end; wait++)
        if (end_ns[*wait] >= ready_ns) {
            *last = *wait;
            ready_ns = end_ns[*wait];
        }
    return ready_ns;
}

static inline uint64_t start_in_order(const rank_order *rank,
                                      const ms_plan *plan,
                                      const uint64_t *end_ns, uint32_t op,
                                      uint8_t *cause)
{
    uint64_t t_ns = rank->free_ns[plan->op[op].stream], ready_ns = 0;
    uint32_t last = MS_NONE;
    *cause = MS_GAP_NONE;
    if (plan->wait_at)
        ready_ns = waits_end(plan->wait + plan->wait_at[op],
                             plan->wait + plan->wait_at[op + 1], end_ns, &last);
    if (ready_ns > t_ns) {
        t_ns = ready_ns;
        *cause = ms_inorder_cause(plan, op, last);
    }
    if (rank->host_ns > t_ns) {
        t_ns = rank->host_ns;
        *cause = MS_GAP_HOST;
    }
    return t_ns;
}

/* Ops wait only for ops before them, and streams are FIFO: one pass in the
 * order of issue finds every start. */
static ms_err run_streams(const ms_plan *plan, const ms_machine *machine,
                          ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    rank_order *ranks = ms_arena_take(arena, plan->n_ranks, sizeof *ranks);
    const ms_plan_op *it = plan->op;
    uint64_t *end_ns = line->end_ns;
    uint32_t sync = 0;
    line->passed_ns = ms_arena_take(arena, plan->n_sync + 1u, sizeof(uint64_t));
    if (!ranks || !line->passed_ns)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < plan->n_ops; op++, it++) {
        rank_order *rank = &ranks[it->rank];
        pass_syncs(ranks, &sync, plan, line, op);
        rank->host_ns += ms_inorder_issue_ns(machine, it);
        uint64_t t_ns =
            start_in_order(rank, plan, end_ns, op, &line->gap_cause[op]);
        line->start_ns[op] = t_ns;
        end_ns[op] = t_ns += it->ns;
        rank->free_ns[it->stream] = t_ns;
        rank->all_ns = t_ns > rank->all_ns ? t_ns : rank->all_ns;
    }
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        if (ranks[r].all_ns > line->step_ns)
            line->step_ns = ranks[r].all_ns;
    return MS_OK;
}

ms_err ms_inorder_run(const ms_plan *plan, const ms_machine *machine,
                      ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    if (!ms_inorder_alone(plan))
        return run_streams(plan, machine, arena, line, fault);
    run_one_stream(plan, machine, line);
    return MS_OK;
}
