/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/aheadclock.h"

#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/replay/streams/hosts.h"
#include "sim/replay/streams/inorder.h"
#include "sim/replay/streams/pace.h"
#include "sim/replay/streams/rankheap.h"
#include "sim/timeline.h"

#include <string.h>

/* A stream: its next op, of whose waits those up to `at` are over, and the op
 * that runs, or is to start at end_ns (speed 0), if it is one of `taken`. */
typedef struct stream_state {
    uint32_t head, at, end, last; /* end: of the waits; last: that ended last */
    uint64_t ready_ns;            /* when it did */
    uint32_t running;
    uint64_t end_ns, free_ns;
    ms_pace_progress of;
    ms_streams held;  /* streams whose head waits for an op of this one, */
    uint32_t by;      /* the first such op */
    uint32_t awaited; /* the first op for which heads of other ranks wait; */
    uint32_t waiter;  /* streams of all ranks, a list of those that wait for */
    uint32_t also;    /* any: the first, and the next behind this one */
} stream_state;

/* The clock of one rank, with all that it asks.  Sets of streams are bits. */
typedef struct rank_clock {
    struct ahead_clock *all;
    const ms_plan *plan;
    ms_timeline *line;
    ms_hosts *hosts;
    struct ms_hosts_host *host; /* the rank's */
    ms_pace *pace;
    const uint32_t *next; /* per op: the op behind it on its stream */
    bool *done;           /* per op */
    uint64_t *end_ns;     /* the timeline's */
    uint32_t rank;
    uint32_t taken; /* streams with an op */
    uint32_t busy;  /* of these, those that run at some speed */
    uint32_t look;  /* whose head may start */
    uint32_t apart; /* whose head waits for an op of another rank that has not
                       ended, as far as is known */
    bool counts;    /* speeds may have changed */
    bool listed;    /* among those that may go on */
    uint64_t now_ns;
    uint64_t until_ns, apart_ns; /* how far it may go; and while heads of its
                                    wait for other ranks */
    stream_state streams[MS_N_STREAMS];
} rank_clock;

typedef struct ahead_clock {
    const ms_plan *plan;
    ms_hosts hosts;
    rank_clock *ranks;
    uint32_t *going; /* ranks that may go on, n_going */
    uint32_t n_going;
    ms_rankheap heap; /* of ranks by what happens next */
} ahead_clock;

static inline void set_head(const rank_clock *rank, stream_state *it,
                            uint32_t op)
{
    const uint32_t *wait_at = rank->plan->wait_at;
    it->head = op;
    it->last = MS_NONE;
    it->ready_ns = 0;
    it->at = it->end = 0;
    if (op == MS_NONE || wait_at == NULL)
        return;
    it->at = wait_at[op];
    it->end = wait_at[op + 1];
}

static void go_on_later(ahead_clock *all, uint32_t r)
{
    if (all->ranks[r].listed)
        return;
    all->ranks[r].listed = true;
    all->going[all->n_going++] = r;
}

/* ---- ends ---------------------------------------------------------------- */

static inline void begin(rank_clock *rank, stream_state *it, uint32_t s)
{
    uint64_t ns = rank->plan->op[it->running].ns;
    it->of =
        (ms_pace_progress){ns * MS_SPEED_WHOLE, rank->now_ns, MS_SPEED_WHOLE};
    it->end_ns = rank->now_ns + ns;
    rank->counts = true;
    if (ns > 0 && ns <= MS_PACE_LONGEST_NS)
        rank->busy |= 1u << s;
}

/* The op for which the head of a stream of all ranks waits. */
static stream_state *waiting(const ahead_clock *all, uint32_t s, uint32_t *op)
{
    rank_clock *rank = &all->ranks[s / MS_N_STREAMS];
    stream_state *it = &rank->streams[s % MS_N_STREAMS];
    *op = rank->plan->wait[it->at];
    return it;
}

static void wake(ahead_clock *all, uint32_t s)
{
    rank_clock *rank = &all->ranks[s / MS_N_STREAMS];
    rank->look |= 1u << s % MS_N_STREAMS;
    rank->apart &= ~(1u << s % MS_N_STREAMS);
    go_on_later(all, s / MS_N_STREAMS);
}

/* Heads of other ranks may start behind the op of the stream.  Where its rank
 * waits for others, too, they go on first. */
static void wake_waiters(rank_clock *rank, stream_state *of, uint32_t op)
{
    uint32_t *link = &of->waiter, other;
    of->awaited = MS_NONE;
    while (*link != MS_NONE) {
        uint32_t s = *link;
        stream_state *it = waiting(rank->all, s, &other);
        if (other == op) {
            *link = it->also;
            wake(rank->all, s);
            continue;
        }
        of->awaited = other < of->awaited ? other : of->awaited;
        link = &it->also;
    }
    rank->apart_ns = 0;
    if (rank->apart != 0)
        rank->until_ns = 0;
}

static inline void note_end(rank_clock *rank, stream_state *it, uint32_t op,
                            uint64_t end_ns)
{
    it->free_ns = end_ns;
    rank->end_ns[op] = end_ns;
    rank->done[op] = true;
    rank->host->n_done++;
    if (op == it->awaited)
        wake_waiters(rank, it, op);
}

static inline void complete(rank_clock *rank, stream_state *it, uint32_t s)
{
    note_end(rank, it, it->running, it->end_ns);
    rank->counts |= (rank->busy >> s & 1u) != 0;
    rank->taken &= ~(1u << s);
    rank->busy &= ~(1u << s);
    rank->look |= it->held | 1u << s;
    it->held = 0;
    it->by = MS_NONE;
}

static void pass_syncs(rank_clock *rank)
{
    const struct ms_hosts_host *host = rank->host;
    if (host->sync == MS_NONE || !ms_hosts_is_over(host, rank->done))
        return;
    ms_hosts_pass(rank->hosts, rank->rank, rank->done, rank->end_ns,
                  rank->now_ns);
    rank->look = MS_ALL_STREAMS;
}

/* When something happens on the rank next, and on which streams. */
static inline uint64_t find_next(const rank_clock *rank, uint32_t *ends)
{
    uint64_t next_ns = UINT64_MAX;
    *ends = 0;
    for (uint32_t left = rank->taken; left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        uint64_t end_ns = rank->streams[s].end_ns;
        if (end_ns < next_ns)
            *ends = 0;
        if (end_ns <= next_ns) {
            *ends |= 1u << s;
            next_ns = end_ns;
        }
    }
    return next_ns;
}

/* What happens next, all of it. */
static void pass_instant(rank_clock *rank, uint64_t now_ns, uint32_t ends)
{
    rank->now_ns = now_ns;
    for (; ends != 0; ends &= ends - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(ends);
        stream_state *it = &rank->streams[s];
        if (it->of.speed == 0)
            begin(rank, it, s);
        else
            complete(rank, it, s);
    }
    pass_syncs(rank);
}

/* ---- starts -------------------------------------------------------------- */

/* The head of stream s waits for the op. */
static void wait_for(rank_clock *rank, uint32_t s, uint32_t op)
{
    const ms_plan_op *it = &rank->plan->op[op];
    stream_state *of = &rank->all->ranks[it->rank].streams[it->stream];
    if (it->rank == rank->rank) {
        of->held |= (ms_streams)(1u << s);
        of->by = op < of->by ? op : of->by;
        return;
    }
    if (rank->apart >> s & 1u)
        return;
    rank->apart |= 1u << s;
    rank->until_ns = rank->apart_ns;
    of->awaited = op < of->awaited ? op : of->awaited;
    rank->streams[s].also = of->waiter;
    of->waiter = rank->rank * (uint32_t)MS_N_STREAMS + s;
}

/* Has all ended that the head of stream s waits for, or is known when it will?
 */
static inline bool is_ready(rank_clock *rank, stream_state *it, uint32_t s)
{
    const uint64_t *end_ns = rank->end_ns;
    for (; it->at < it->end; it->at++) {
        uint32_t other = rank->plan->wait[it->at];
        if (!rank->done[other]) {
            wait_for(rank, s, other);
            return false;
        }
        if (end_ns[other] >= it->ready_ns) {
            it->ready_ns = end_ns[other];
            it->last = other;
        }
    }
    return true;
}

/* When the head starts, which is ready. */
static inline uint64_t start_head(const rank_clock *rank, stream_state *it,
                                  uint32_t op, uint64_t issued_ns)
{
    uint64_t t_ns = it->free_ns;
    uint8_t cause = MS_GAP_NONE;
    if (it->ready_ns > t_ns) {
        t_ns = it->ready_ns;
        cause = ms_inorder_cause(rank->plan, op, it->last);
    }
    if (issued_ns > t_ns) {
        t_ns = issued_ns;
        cause = MS_GAP_HOST;
    }
    rank->line->start_ns[op] = t_ns;
    rank->line->gap_cause[op] = cause;
    set_head(rank, it, rank->next[op]);
    return t_ns;
}

static inline void start(rank_clock *rank, stream_state *it, uint32_t s,
                         uint64_t issued_ns)
{
    uint32_t op = it->head;
    uint64_t t_ns = start_head(rank, it, op, issued_ns);
    rank->taken |= 1u << s;
    it->running = op;
    if (t_ns <= rank->now_ns) {
        begin(rank, it, s);
    } else {
        it->of.speed = 0;
        it->end_ns = t_ns;
    }
}

static void start_heads(rank_clock *rank)
{
    const struct ms_hosts_host *host = rank->host;
    uint32_t look = rank->look & ~rank->taken;
    rank->look = 0;
    for (; look != 0; look &= look - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(look);
        stream_state *it = &rank->streams[s];
        if (it->head == MS_NONE || !ms_hosts_issued(host, it->head) ||
            !is_ready(rank, it, s))
            continue;
        start(rank, it, s, ms_hosts_issue_ns(rank->hosts, host, it->head));
    }
}

/* Those that run go on at new speeds. */
static void count_speeds(rank_clock *rank)
{
    uint32_t left = rank->busy;
    rank->counts = false;
    const uint16_t *speed = ms_pace_speeds(rank->pace, (ms_streams)left);
    for (; left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        stream_state *it = &rank->streams[s];
        if (it->of.speed != speed[s])
            it->end_ns = ms_pace_change(&it->of, speed[s], rank->now_ns);
    }
}

/* ---- one stream alone ---------------------------------------------------- */

/* Does nobody of the rank wait for the op? */
static inline bool ends_unseen(const struct ms_hosts_host *host,
                               const stream_state *it, uint32_t op)
{
    return op < it->by &&
           (host->sync == MS_NONE ||
            (host->until == MS_NONE ? host->n_done + 1 < host->n_ops
                                    : host->until != op));
}

/* While one stream has an op and no other may start one, its ops run one after
 * the other at full speed, up to one that somebody waits for. */
static void run_alone(rank_clock *rank, uint32_t s)
{
    const struct ms_hosts_host *host = rank->host;
    stream_state *it = &rank->streams[s];
    uint32_t op = it->running;
    uint64_t end_ns = it->end_ns;
    if (it->of.speed == 0)
        end_ns += rank->plan->op[op].ns;
    if (ms_pace_speeds(rank->pace, (ms_streams)(1u << s))[s] !=
            MS_SPEED_WHOLE ||
        end_ns > rank->until_ns || !ends_unseen(host, it, op))
        return;
    for (;;) {
        note_end(rank, it, op, end_ns);
        rank->now_ns = end_ns;
        op = it->head;
        if (op == MS_NONE || !ends_unseen(host, it, op) ||
            !ms_hosts_issued(host, op) || !is_ready(rank, it, s))
            break;
        end_ns =
            start_head(rank, it, op, ms_hosts_issue_ns(rank->hosts, host, op));
        if (end_ns + rank->plan->op[op].ns > rank->until_ns) {
            it->running = op;
            it->of.speed = 0;
            it->end_ns = end_ns;
            rank->busy = 0;
            return;
        }
        end_ns += rank->plan->op[op].ns;
    }
    rank->taken = rank->busy = 0;
    rank->look = 1u << s;
}

/* ---- how far ------------------------------------------------------------- */

/* As far as the rank may go. */
static void run_rank(rank_clock *rank)
{
    uint32_t ends;
    for (;;) {
        start_heads(rank);
        if (rank->counts)
            count_speeds(rank);
        if (rank->taken == 0)
            return;
        if ((rank->taken & (rank->taken - 1)) == 0)
            run_alone(rank, (uint32_t)__builtin_ctz(rank->taken));
        if (rank->taken == 0)
            continue;
        uint64_t next_ns = find_next(rank, &ends);
        if (next_ns > rank->until_ns)
            return;
        pass_instant(rank, next_ns, ends);
    }
}

/* What ranks share, and each of its own. */
static void open_rank(const ahead_clock *all, const rank_clock *shared,
                      uint32_t r)
{
    rank_clock *rank = &all->ranks[r];
    *rank = *shared;
    rank->rank = r;
    rank->host = &all->hosts.of[r];
    rank->look = MS_ALL_STREAMS;
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        rank->streams[s] = (stream_state){.head = MS_NONE,
                                          .by = MS_NONE,
                                          .awaited = MS_NONE,
                                          .waiter = MS_NONE,
                                          .also = MS_NONE};
}

static ms_err open_ranks(ahead_clock *all, const ms_machine *machine,
                         ms_timeline *line, ms_arena *arena, uint32_t **next,
                         ms_fault *fault)
{
    const ms_plan *plan = all->plan;
    rank_clock shared = {.all = all,
                         .plan = plan,
                         .line = line,
                         .hosts = &all->hosts,
                         .end_ns = line->end_ns};
    MS_TRY(ms_hosts_open(&all->hosts, plan, machine, arena, fault));
    MS_TRY(ms_pace_open(machine, 1, arena, &shared.pace, fault));
    MS_TRY(ms_rankheap_open(&all->heap, plan->n_ranks, arena, fault));
    *next = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    shared.next = *next;
    shared.done = ms_arena_take(arena, plan->n_ops, sizeof(bool));
    all->ranks = ms_arena_take(arena, plan->n_ranks, sizeof *all->ranks);
    all->going = ms_arena_take_raw(arena, plan->n_ranks, sizeof(uint32_t));
    if (!shared.next || !shared.done || !all->ranks || !all->going)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        open_rank(all, &shared, r);
    line->passed_ns = all->hosts.passed_ns;
    return MS_OK;
}

static void open_heads(ahead_clock *all, uint32_t *next)
{
    const ms_plan *plan = all->plan;
    for (uint32_t op = plan->n_ops; op-- > 0;) {
        const ms_plan_op *it = &plan->op[op];
        stream_state *stream = &all->ranks[it->rank].streams[it->stream];
        next[op] = stream->head;
        stream->head = op;
    }
    for (uint32_t r = plan->n_ranks; r-- > 0;) {
        rank_clock *rank = &all->ranks[r];
        for (uint32_t s = 0; s < MS_N_STREAMS; s++)
            set_head(rank, &rank->streams[s], rank->streams[s].head);
        pass_syncs(rank);
        go_on_later(all, r);
    }
}

/* waits: for another rank, which none of them knows yet when it goes on. */
static void go_on(ahead_clock *all, uint32_t r, bool waits)
{
    rank_clock *rank = &all->ranks[r];
    uint32_t ends;
    rank->apart_ns = waits ? ms_rankheap_others_ns(&all->heap, r) : 0;
    rank->until_ns = rank->apart != 0 ? rank->apart_ns : UINT64_MAX;
    run_rank(rank);
    ms_rankheap_set(&all->heap, r, (ms_rankkey){find_next(rank, &ends), 0});
}

ms_err ms_aheadclock_run(const ms_plan *plan, const ms_machine *machine,
                         ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    ahead_clock all = {.plan = plan};
    uint32_t *next, n_done = 0;
    MS_TRY(open_ranks(&all, machine, line, arena, &next, fault));
    open_heads(&all, next);
    while (all.n_going > 0 ||
           ms_rankheap_first_ns(&all.heap) != MS_RANKHEAP_NEVER) {
        bool waits = all.n_going == 0;
        uint32_t r =
            waits ? ms_rankheap_first(&all.heap) : all.going[--all.n_going];
        all.ranks[r].listed = false;
        go_on(&all, r, waits);
    }
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        uint64_t now_ns = all.ranks[r].now_ns;
        line->step_ns = now_ns > line->step_ns ? now_ns : line->step_ns;
        n_done += all.hosts.of[r].n_done;
    }
    return n_done == plan->n_ops ? MS_OK : ms_hosts_stuck(plan, n_done, fault);
}
