/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/inorder.h"
#include "sim/timeline.h"

/* The cause of a gap where a stream of this kind is waited for. */
static ms_gap gap_of(uint8_t stream)
{
    switch (stream) {
    case MS_STREAM_COMM:
    case MS_STREAM_OUTER:
        return MS_GAP_COMM;
    case MS_STREAM_H2D:
    case MS_STREAM_D2H:
    case MS_STREAM_HOST:
    case MS_STREAM_NVME_READ:
    case MS_STREAM_NVME_WRITE:
        return MS_GAP_COPY;
    default:
        return MS_GAP_IDLE;
    }
}

uint8_t ms_inorder_cause(const ms_plan *plan, uint32_t op, uint32_t other)
{
    if (plan->op[other].rank != plan->op[op].rank)
        return MS_GAP_BUBBLE;
    return (uint8_t)gap_of(plan->op[other].stream);
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

typedef struct host_state {
    uint64_t host_ns; /* when the host issues its next op */
    uint64_t all_ns;  /* end of all ops of the rank so far */
} host_state;

typedef struct order_state {
    uint64_t *free_ns; /* per stream: end of the last op */
    host_state *hosts; /* per rank */
    uint32_t sync;
} order_state;

static void pass_sync(order_state *state, const ms_plan *plan,
                      const ms_timeline *line, uint32_t op)
{
    for (; state->sync < plan->n_sync && plan->sync[state->sync].op == op;
         state->sync++) {
        host_state *host = &state->hosts[plan->sync[state->sync].rank];
        uint32_t until = plan->sync[state->sync].until;
        uint64_t t_ns = until == MS_NONE ? host->all_ns : line->end_ns[until];
        host->host_ns = t_ns > host->host_ns ? t_ns : host->host_ns;
        line->passed_ns[state->sync + 1] = host->host_ns;
    }
}

static void start_in_order(const order_state *state, const ms_plan *plan,
                           ms_timeline *line, uint32_t op)
{
    uint64_t t_ns = state->free_ns[ms_inorder_stream(plan, op)], ready_ns = 0;
    uint64_t host_ns = state->hosts[plan->op[op].rank].host_ns;
    uint32_t last = MS_NONE;
    line->gap_cause[op] = MS_GAP_NONE;
    /* Of ops that end at once the one that is listed last is the cause, as in
     * clock.c. */
    for (uint32_t i = plan->wait_at ? plan->wait_at[op] : 0;
         plan->wait_at && i < plan->wait_at[op + 1]; i++)
        if (line->end_ns[plan->wait[i]] >= ready_ns) {
            last = plan->wait[i];
            ready_ns = line->end_ns[last];
        }
    if (ready_ns > t_ns) {
        t_ns = ready_ns;
        line->gap_cause[op] = ms_inorder_cause(plan, op, last);
    }
    if (host_ns > t_ns) {
        t_ns = host_ns;
        line->gap_cause[op] = MS_GAP_HOST;
    }
    line->start_ns[op] = t_ns;
}

/* Ops wait only for ops before them, and streams are FIFO: one pass in the
 * order of issue finds every start. */
static ms_err run_streams(const ms_plan *plan, const ms_machine *machine,
                          ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    order_state state = {0};
    state.free_ns = ms_arena_take(arena, plan->n_ranks * (size_t)MS_N_STREAMS,
                                  sizeof(uint64_t));
    state.hosts = ms_arena_take(arena, plan->n_ranks, sizeof *state.hosts);
    line->passed_ns = ms_arena_take(arena, plan->n_sync + 1u, sizeof(uint64_t));
    if (!state.free_ns || !state.hosts || !line->passed_ns)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        host_state *host = &state.hosts[plan->op[op].rank];
        pass_sync(&state, plan, line, op);
        host->host_ns += ms_inorder_issue_ns(machine, &plan->op[op]);
        start_in_order(&state, plan, line, op);
        uint64_t end_ns = line->start_ns[op] + plan->op[op].ns;
        line->end_ns[op] = end_ns;
        state.free_ns[ms_inorder_stream(plan, op)] = end_ns;
        host->all_ns = end_ns > host->all_ns ? end_ns : host->all_ns;
    }
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        if (state.hosts[r].all_ns > line->step_ns)
            line->step_ns = state.hosts[r].all_ns;
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
