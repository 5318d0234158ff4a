/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The clock of ops that wait for memory; other plans have clocks of their own
 * in streams/, which say what this one would.  Streams are FIFO, so at most one
 * op per stream runs: the next instant of a rank is the minimum over its
 * streams' ends, that of the job the first of a heap over the ranks.  At one
 * instant all completions come first, in stream order, then starts.
 *
 * A rank is looked at when something of its own happens, and when an op ends
 * for which a head of it waits: such a head is in the list of that op.
 *
 * Where ops interfere, what is left of each is counted again whenever an op on
 * its rank starts or ends; an op that starts later than it is scheduled has an
 * instant of its own for its start. */
#include "sim/replay/clock.h"

#include "sim/graph.h"
#include "sim/replay/streams/aheadclock.h"
#include "sim/replay/streams/hosts.h"
#include "sim/replay/streams/inorder.h"
#include "sim/replay/streams/pace.h"
#include "sim/replay/streams/rankheap.h"
#include "sim/replay/streams/speed.h"
#include "sim/timeline.h"

#include <string.h>

/* What the head of a stream still waits for: its list up to `at` is over. */
typedef struct waiting {
    uint32_t at, last; /* last: the op that ended last, or MS_NONE */
    uint64_t ready_ns; /* when it did */
    bool listed;       /* among those that wait for the op at `at` */
    uint32_t next;     /* stream in that list, or MS_NONE */
} waiting;

/* Ranks that are looked at in this instant: a ring, each at most once. */
typedef struct due_ranks {
    uint32_t first, n;
    uint32_t *ring; /* n_ranks */
    bool *is_due;   /* per rank */
} due_ranks;

typedef struct clock_state {
    const ms_plan *plan;
    const ms_machine *machine;
    ms_timeline *line;
    uint32_t n_streams;
    uint32_t *head;    /* next op of each stream, MS_NONE: none left */
    uint32_t *running; /* MS_NONE: idle */
    uint64_t *end_ns;  /* of the running op, UINT64_MAX: idle; where ops
                          interfere its start until it has begun */
    uint64_t *free_ns; /* end of the last op */
    waiting *waiting;  /* of the head */
    uint32_t *next;    /* per op: the op behind it on its stream */
    bool *done;        /* per op */
    uint32_t n_done;
    ms_hosts hosts;
    due_ranks due;
    ms_rankheap ranks; /* by their next instant; unused where one is alone */
    uint32_t *waiter;  /* per op: a stream of another rank whose head waits for
                          it, or MS_NONE; NULL: no op waits for another rank */
    uint64_t *wake_ns; /* per rank: a head may start then */
    ms_streams *ends;  /* per rank: those whose op ends, or begins, at its next
                          instant */
    bool alone;        /* there is one rank */
    ms_pace *pace;     /* NULL: nothing interferes */
    ms_wall *wall;
    bool *again; /* per stream: a revoked copy comes again */
    uint64_t now_ns;
} clock_state;

/* Stream s has a new head: of the ops that it waits for none is known to have
 * ended. */
static void next_waits(clock_state *clock, uint32_t s)
{
    const ms_plan *plan = clock->plan;
    uint32_t op = clock->head[s];
    if (op != MS_NONE && plan->wait_at)
        clock->waiting[s] = (waiting){.at = plan->wait_at[op], .last = MS_NONE};
    else
        clock->waiting[s] = (waiting){.last = MS_NONE};
}

static bool are_joined(const ms_plan *plan)
{
    if (plan->n_ranks == 1 || !plan->wait_at)
        return false;
    for (uint32_t op = 0; op < plan->n_ops; op++)
        for (uint32_t i = plan->wait_at[op]; i < plan->wait_at[op + 1]; i++)
            if (plan->op[plan->wait[i]].rank != plan->op[op].rank)
                return true;
    return false;
}

static ms_err open_ranks(clock_state *clock, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = clock->plan;
    clock->due.ring = ms_arena_take(arena, plan->n_ranks, sizeof(uint32_t));
    clock->due.is_due = ms_arena_take(arena, plan->n_ranks, sizeof(bool));
    if (!clock->due.ring || !clock->due.is_due)
        return ms_fail_nomem(fault);
    MS_TRY(ms_rankheap_open(&clock->ranks, plan->n_ranks, arena, fault));
    if (!are_joined(plan))
        return MS_OK;
    clock->waiter = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    if (!clock->waiter)
        return ms_fail_nomem(fault);
    memset(clock->waiter, 0xff, plan->n_ops * sizeof(uint32_t));
    return MS_OK;
}

static ms_err clock_open(clock_state *clock, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = clock->plan;
    uint32_t n = plan->n_ranks * (uint32_t)MS_N_STREAMS;
    clock->n_streams = n;
    clock->alone = plan->n_ranks == 1;
    MS_TRY(ms_hosts_open(&clock->hosts, plan, clock->machine, arena, fault));
    MS_TRY(open_ranks(clock, arena, fault));
    clock->wake_ns = ms_arena_take(arena, plan->n_ranks, sizeof(uint64_t));
    clock->ends = ms_arena_take(arena, plan->n_ranks, sizeof *clock->ends);
    clock->head = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    clock->running = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    clock->end_ns = ms_arena_take_raw(arena, n, sizeof(uint64_t));
    clock->free_ns = ms_arena_take(arena, n, sizeof(uint64_t));
    clock->waiting = ms_arena_take(arena, n, sizeof *clock->waiting);
    clock->next = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    clock->done = ms_arena_take(arena, plan->n_ops, sizeof(bool));
    if (!clock->head || !clock->running || !clock->end_ns || !clock->free_ns ||
        !clock->next || !clock->done || !clock->waiting || !clock->wake_ns ||
        !clock->ends)
        return ms_fail_nomem(fault);
    memset(clock->head, 0xff, n * sizeof(uint32_t));
    memset(clock->running, 0xff, n * sizeof(uint32_t));
    memset(clock->end_ns, 0xff, n * sizeof(uint64_t));
    for (uint32_t op = plan->n_ops; op-- > 0;) {
        uint32_t s = ms_inorder_stream(plan, op);
        clock->next[op] = clock->head[s];
        clock->head[s] = op;
    }
    for (uint32_t s = 0; s < n; s++)
        next_waits(clock, s);
    if (ms_speed_varies(clock->machine))
        MS_TRY(ms_pace_open(clock->machine, plan->n_ranks, arena, &clock->pace,
                            fault));
    clock->again = ms_arena_take(arena, n, sizeof(bool));
    return clock->again != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* The latest end among what the head of stream s, op, waits for; false while
 * one is still open. */
static bool waits_over(clock_state *clock, uint32_t s, uint32_t op)
{
    const ms_plan *plan = clock->plan;
    waiting *now = &clock->waiting[s];
    if (!plan->wait_at)
        return true;
    for (; now->at < plan->wait_at[op + 1]; now->at++) {
        uint32_t other = plan->wait[now->at];
        if (!clock->done[other])
            return false;
        if (clock->line->end_ns[other] >= now->ready_ns) {
            now->ready_ns = clock->line->end_ns[other];
            now->last = other;
        }
    }
    return true;
}

/* ---- which ranks are looked at ------------------------------------------- */

static void add_due(clock_state *clock, uint32_t rank)
{
    due_ranks *due = &clock->due;
    if (due->is_due[rank])
        return;
    due->is_due[rank] = true;
    due->ring[(due->first + due->n++) % clock->plan->n_ranks] = rank;
}

static uint32_t next_due(clock_state *clock)
{
    due_ranks *due = &clock->due;
    uint32_t rank = due->ring[due->first];
    due->first = (due->first + 1) % clock->plan->n_ranks;
    due->n--;
    due->is_due[rank] = false;
    return rank;
}

/* The head of stream s waits for an op that has not ended. */
static void list_waiter(clock_state *clock, uint32_t s)
{
    const ms_plan *plan = clock->plan;
    waiting *now = &clock->waiting[s];
    uint32_t other = plan->wait[now->at];
    if (now->listed || plan->op[other].rank == s / MS_N_STREAMS)
        return;
    now->listed = true;
    now->next = clock->waiter[other];
    clock->waiter[other] = s;
}

static void wake_waiters(clock_state *clock, uint32_t op)
{
    for (uint32_t s = clock->waiter[op]; s != MS_NONE;
         s = clock->waiting[s].next) {
        clock->waiting[s].listed = false;
        add_due(clock, s / MS_N_STREAMS);
    }
    clock->waiter[op] = MS_NONE;
}

/* ---- from instant to instant --------------------------------------------- */

static void start_op(clock_state *clock, uint32_t s, uint32_t op, uint64_t t_ns)
{
    clock->running[s] = op;
    uint64_t ns = clock->plan->op[op].ns;
    clock->end_ns[s] =
        clock->pace ? ms_pace_start(clock->pace, s, ns, t_ns, clock->now_ns)
                    : t_ns + ns;
}

/* When the head of stream s could start but for memory, and why not before. */
static uint64_t ready_ns(const clock_state *clock,
                         const struct ms_hosts_host *host, uint32_t s,
                         uint8_t *cause)
{
    uint32_t op = clock->head[s];
    uint64_t issued_ns = ms_hosts_issue_ns(&clock->hosts, host, op);
    uint64_t t_ns = clock->free_ns[s];
    *cause = MS_GAP_NONE;
    if (clock->waiting[s].ready_ns > t_ns) {
        t_ns = clock->waiting[s].ready_ns;
        *cause = ms_inorder_cause(clock->plan, op, clock->waiting[s].last);
    }
    if (issued_ns > t_ns) {
        t_ns = issued_ns;
        *cause = MS_GAP_HOST;
    }
    return t_ns;
}

/* A revoked copy comes again if its stream is idle, before the head. */
static ms_err start_again(clock_state *clock, uint32_t op, uint32_t user)
{
    uint32_t s = ms_inorder_stream(clock->plan, op);
    bool may;
    if (clock->running[s] != MS_NONE)
        return MS_OK;
    MS_TRY(ms_wall_fetch(clock->wall, op, user, &may));
    if (!may)
        return MS_OK;
    clock->again[s] = true;
    start_op(clock, s, op, clock->now_ns);
    return MS_OK;
}

/* Is there room for op now?  An op that is not ready yet is asked about when it
 * is.  LATER: what was taken and let go in this instant counts until the next
 * nanosecond (wall.h), so that its rank wakes then. */
static ms_err pass_wall(clock_state *clock, uint32_t op, uint64_t *t_ns,
                        uint8_t *cause, bool *may)
{
    uint64_t now_ns = clock->now_ns, wake_ns = *t_ns;
    ms_wall_answer answer;
    uint32_t again;
    *may = false;
    if (*t_ns <= now_ns) {
        MS_TRY(ms_wall_ask(clock->wall, op, &answer, &again));
        if (answer == MS_WALL_FETCH)
            MS_TRY(start_again(clock, again, op));
        *may = answer == MS_WALL_PASS;
        wake_ns = answer == MS_WALL_LATER ? now_ns + 1 : UINT64_MAX;
    }
    uint64_t *wakes_ns = &clock->wake_ns[clock->plan->op[op].rank];
    if (wake_ns < *wakes_ns)
        *wakes_ns = wake_ns;
    if (*may && *t_ns < now_ns) {
        *t_ns = now_ns;
        *cause = MS_GAP_MEMORY;
    }
    return MS_OK;
}

/* Starts the head of stream s if nothing is in its way. */
static ms_err start_head(clock_state *clock, const struct ms_hosts_host *host,
                         uint32_t s)
{
    uint32_t op = clock->head[s];
    uint8_t cause;
    bool may;
    if (op == MS_NONE || clock->running[s] != MS_NONE ||
        !ms_hosts_issued(host, op))
        return MS_OK;
    if (!waits_over(clock, s, op)) {
        list_waiter(clock, s);
        return MS_OK;
    }
    uint64_t t_ns = ready_ns(clock, host, s, &cause);
    MS_TRY(pass_wall(clock, op, &t_ns, &cause, &may));
    if (!may)
        return MS_OK;
    clock->line->start_ns[op] = t_ns;
    clock->line->gap_cause[op] = cause;
    clock->head[s] = clock->next[op];
    next_waits(clock, s);
    start_op(clock, s, op, t_ns);
    return MS_OK;
}

static void leave(clock_state *clock, uint32_t s)
{
    clock->free_ns[s] = clock->end_ns[s];
    clock->running[s] = MS_NONE;
    clock->end_ns[s] = UINT64_MAX;
    if (clock->pace)
        ms_pace_leave(clock->pace, s);
}

static void end_op(clock_state *clock, uint32_t s, uint32_t op)
{
    uint32_t rank = s / (uint32_t)MS_N_STREAMS;
    clock->done[op] = true;
    clock->n_done++;
    clock->hosts.of[rank].n_done++;
    if (clock->waiter)
        wake_waiters(clock, op);
}

static ms_err complete(clock_state *clock, uint32_t s)
{
    uint32_t op = clock->running[s];
    uint64_t end_ns = clock->end_ns[s];
    leave(clock, s);
    if (clock->again[s]) {
        clock->again[s] = false;
        return ms_wall_arrive(clock->wall, op);
    }
    clock->line->end_ns[op] = end_ns;
    end_op(clock, s, op);
    return ms_wall_end(clock->wall, op);
}

static void pass_syncs(clock_state *clock, uint32_t rank)
{
    const struct ms_hosts_host *host = &clock->hosts.of[rank];
    if (host->sync == MS_NONE || !ms_hosts_is_over(host, clock->done))
        return;
    ms_hosts_pass(&clock->hosts, rank, clock->done, clock->line->end_ns,
                  clock->now_ns);
}

/* When something happens on the rank next, and on which streams. */
static uint64_t find_next(clock_state *clock, uint32_t rank)
{
    const uint64_t *end_ns = clock->end_ns + rank * (size_t)MS_N_STREAMS;
    uint64_t t_ns = clock->wake_ns[rank];
    uint32_t ends = 0;
    for (uint32_t i = 0; i < MS_N_STREAMS; i++) {
        if (end_ns[i] > t_ns)
            continue;
        ends = end_ns[i] < t_ns ? 1u << i : ends | 1u << i;
        t_ns = end_ns[i];
    }
    clock->ends[rank] = (ms_streams)ends;
    return t_ns;
}

static ms_err complete_rank(clock_state *clock, uint32_t rank, uint64_t now_ns)
{
    uint32_t first = rank * (uint32_t)MS_N_STREAMS;
    for (uint32_t left = clock->ends[rank]; left != 0; left &= left - 1) {
        uint32_t s = first + (uint32_t)__builtin_ctz(left);
        if (clock->pace && !ms_pace_has_begun(clock->pace, s)) /* its start */
            clock->end_ns[s] = ms_pace_begin(
                clock->pace, s, clock->plan->op[clock->running[s]].ns, now_ns);
        else
            MS_TRY(complete(clock, s));
    }
    pass_syncs(clock, rank);
    return MS_OK;
}

static ms_err pass_rank(clock_state *clock, uint32_t rank, uint64_t now_ns)
{
    ms_wall_round(clock->wall, rank, now_ns);
    return complete_rank(clock, rank, now_ns);
}

/* Ranks of which nothing ends now are looked at only if they wait for an op of
 * another that does. */
static ms_err pass_ranks(clock_state *clock, uint64_t now_ns)
{
    while (ms_rankheap_first_ns(&clock->ranks) == now_ns) {
        uint32_t rank = ms_rankheap_first(&clock->ranks);
        add_due(clock, rank);
        MS_TRY(pass_rank(clock, rank, now_ns));
        ms_rankheap_set(&clock->ranks, rank,
                        (ms_rankkey){MS_RANKHEAP_NEVER, 0});
    }
    return MS_OK;
}

static ms_err pass_instant(clock_state *clock, uint64_t now_ns)
{
    clock->now_ns = now_ns;
    clock->line->step_ns = now_ns;
    return clock->alone ? pass_rank(clock, 0, now_ns)
                        : pass_ranks(clock, now_ns);
}

/* Of all streams, because any op may have made room. */
static ms_err start_heads(clock_state *clock, uint32_t rank)
{
    uint32_t first = rank * (uint32_t)MS_N_STREAMS;
    clock->wake_ns[rank] = UINT64_MAX;
    for (uint32_t s = first; s < first + MS_N_STREAMS; s++)
        MS_TRY(start_head(clock, &clock->hosts.of[rank], s));
    return MS_OK;
}

/* The head of a stream is over without having run. */
static ms_err put_off(clock_state *clock, uint32_t op)
{
    uint32_t s = ms_inorder_stream(clock->plan, op);
    clock->line->start_ns[op] = clock->line->end_ns[op] = clock->now_ns;
    clock->line->gap_cause[op] = MS_GAP_MEMORY;
    clock->free_ns[s] = clock->now_ns;
    clock->head[s] = clock->next[op];
    next_waits(clock, s);
    end_op(clock, s, op);
    MS_TRY(ms_wall_put_off(clock->wall, op));
    pass_syncs(clock, clock->plan->op[op].rank);
    return MS_OK;
}

/* Does another rank hold up the head of one of this rank's streams? */
static bool waits_for_others(const clock_state *clock, uint32_t rank)
{
    const ms_plan *plan = clock->plan;
    uint32_t first = rank * (uint32_t)MS_N_STREAMS;
    for (uint32_t s = first; clock->waiter && s < first + MS_N_STREAMS; s++) {
        uint32_t op = clock->head[s], at = clock->waiting[s].at;
        if (op != MS_NONE && at < plan->wait_at[op + 1] &&
            plan->op[plan->wait[at]].rank != rank)
            return true;
    }
    return false;
}

/* Ops of the rank wait for memory; idle: and nothing else will happen there.
 * *more: some can start now. */
static ms_err make_room(clock_state *clock, uint32_t rank, bool idle,
                        bool *more)
{
    uint32_t prefetch;
    MS_TRY(ms_wall_give_way(clock->wall, rank, clock->running, idle, more,
                            &prefetch));
    if (prefetch != MS_NONE) {
        *more = true;
        return put_off(clock, prefetch);
    }
    if (!*more && idle)
        *more = ms_wall_fall(clock->wall, rank);
    return MS_OK;
}

/* Ops that wait for memory may get some, and start. */
static ms_err start_behind_wall(clock_state *clock, uint32_t rank)
{
    bool more = true;
    while (more && clock->wake_ns[rank] == UINT64_MAX) {
        bool idle = find_next(clock, rank) == UINT64_MAX &&
                    !waits_for_others(clock, rank);
        MS_TRY(make_room(clock, rank, idle, &more));
        if (!more)
            break;
        ms_wall_round(clock->wall, rank, clock->now_ns);
        MS_TRY(start_heads(clock, rank));
    }
    return MS_OK;
}

/* Starts what can start. */
static ms_err start_rank(clock_state *clock, uint32_t rank)
{
    MS_TRY(start_heads(clock, rank));
    MS_TRY(start_behind_wall(clock, rank));
    if (clock->pace)
        ms_pace_rank(clock->pace, rank, clock->now_ns, clock->end_ns);
    return MS_OK;
}

static ms_err start_due(clock_state *clock)
{
    if (clock->alone)
        return start_rank(clock, 0);
    while (clock->due.n > 0) {
        uint32_t rank = next_due(clock);
        ms_wall_round(clock->wall, rank, clock->now_ns);
        MS_TRY(start_rank(clock, rank));
        ms_rankheap_set(&clock->ranks, rank,
                        (ms_rankkey){find_next(clock, rank), 0});
    }
    return MS_OK;
}

static uint64_t earliest(clock_state *clock)
{
    return clock->alone ? find_next(clock, 0)
                        : ms_rankheap_first_ns(&clock->ranks);
}

static void open_hosts(clock_state *clock)
{
    clock->line->passed_ns = clock->hosts.passed_ns;
    for (uint32_t r = 0; r < clock->plan->n_ranks; r++) {
        add_due(clock, r);
        ms_wall_round(clock->wall, r, 0);
        pass_syncs(clock, r);
    }
}

static ms_err run_clock(clock_state *clock, ms_fault *fault)
{
    uint64_t now_ns;
    open_hosts(clock);
    MS_TRY(start_due(clock));
    while ((now_ns = earliest(clock)) != UINT64_MAX) {
        MS_TRY(pass_instant(clock, now_ns));
        MS_TRY(start_due(clock));
    }
    if (clock->n_done == clock->plan->n_ops)
        return MS_OK;
    return ms_hosts_stuck(clock->plan, clock->n_done, fault);
}

ms_err ms_clock_run(const ms_plan *plan, const ms_machine *machine,
                    ms_wall *wall, ms_arena *arena, ms_timeline *line,
                    ms_fault *fault)
{
    clock_state clock = {
        .plan = plan, .machine = machine, .line = line, .wall = wall};
    if (wall == NULL)
        return ms_speed_varies(machine) && !ms_inorder_alone(plan)
                   ? ms_aheadclock_run(plan, machine, arena, line, fault)
                   : ms_inorder_run(plan, machine, arena, line, fault);
    MS_TRY(clock_open(&clock, arena, fault));
    return run_clock(&clock, fault);
}
