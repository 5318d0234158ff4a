/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/oneclock.h"

#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/replay/streams/hosts.h"
#include "sim/replay/streams/inorder.h"
#include "sim/replay/streams/pace.h"
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
    ms_streams held; /* streams whose head waits for an op of this one, */
    uint32_t by;     /* the first such op */
} stream_state;

/* Sets of streams are bits. */
typedef struct one_clock {
    const ms_plan *plan;
    ms_timeline *line;
    ms_hosts hosts;
    ms_pace *pace;
    uint32_t *next; /* per op: the op behind it on its stream */
    bool *done;     /* per op */
    stream_state streams[MS_N_STREAMS];
    uint32_t taken; /* streams with an op */
    uint32_t busy;  /* of these, those that run at some speed */
    uint32_t look;  /* whose head may start */
    bool counts;    /* speeds may have changed */
    uint64_t now_ns;
} one_clock;

static inline void set_head(one_clock *clock, stream_state *it, uint32_t op)
{
    const uint32_t *wait_at = clock->plan->wait_at;
    it->head = op;
    it->last = MS_NONE;
    it->ready_ns = 0;
    it->at = it->end = 0;
    if (op == MS_NONE || wait_at == NULL)
        return;
    it->at = wait_at[op];
    it->end = wait_at[op + 1];
}

static ms_err open_clock(one_clock *clock, const ms_machine *machine,
                         ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = clock->plan;
    uint32_t head[MS_N_STREAMS];
    MS_TRY(ms_hosts_open(&clock->hosts, plan, machine, arena, fault));
    MS_TRY(ms_pace_open(machine, 1, arena, &clock->pace, fault));
    clock->next = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    clock->done = ms_arena_take(arena, plan->n_ops, sizeof(bool));
    if (clock->next == NULL || clock->done == NULL)
        return ms_fail_nomem(fault);
    memset(head, 0xff, sizeof head);
    for (uint32_t op = plan->n_ops; op-- > 0;) {
        uint8_t s = plan->op[op].stream;
        clock->next[op] = head[s];
        head[s] = op;
    }
    for (uint32_t s = 0; s < MS_N_STREAMS; s++) {
        set_head(clock, &clock->streams[s], head[s]);
        clock->streams[s].by = MS_NONE;
    }
    clock->line->passed_ns = clock->hosts.passed_ns;
    return MS_OK;
}

/* ---- ends ---------------------------------------------------------------- */

static inline void begin(one_clock *clock, stream_state *it, uint32_t s)
{
    uint64_t ns = clock->plan->op[it->running].ns;
    it->of =
        (ms_pace_progress){ns * MS_SPEED_WHOLE, clock->now_ns, MS_SPEED_WHOLE};
    it->end_ns = clock->now_ns + ns;
    clock->counts = true;
    if (ns > 0 && ns <= MS_PACE_LONGEST_NS)
        clock->busy |= 1u << s;
}

static inline void note_end(one_clock *clock, stream_state *it, uint32_t op,
                            uint64_t end_ns)
{
    it->free_ns = end_ns;
    clock->line->end_ns[op] = end_ns;
    clock->done[op] = true;
    clock->hosts.of[0].n_done++;
}

static inline void complete(one_clock *clock, stream_state *it, uint32_t s)
{
    note_end(clock, it, it->running, it->end_ns);
    clock->counts |= (clock->busy >> s & 1u) != 0;
    clock->taken &= ~(1u << s);
    clock->busy &= ~(1u << s);
    clock->look |= it->held | 1u << s;
    it->held = 0;
    it->by = MS_NONE;
}

static void pass_syncs(one_clock *clock)
{
    const struct ms_hosts_host *host = &clock->hosts.of[0];
    if (host->sync == MS_NONE || !ms_hosts_is_over(host, clock->done))
        return;
    ms_hosts_pass(&clock->hosts, 0, clock->done, clock->line->end_ns,
                  clock->now_ns);
    clock->look = MS_ALL_STREAMS;
}

/* What happens next, all of it. */
static void pass_instant(one_clock *clock)
{
    uint64_t now_ns = UINT64_MAX;
    uint32_t ends = 0;
    for (uint32_t left = clock->taken; left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        uint64_t end_ns = clock->streams[s].end_ns;
        if (end_ns < now_ns)
            ends = 0;
        if (end_ns <= now_ns) {
            ends |= 1u << s;
            now_ns = end_ns;
        }
    }
    clock->now_ns = now_ns;
    for (; ends != 0; ends &= ends - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(ends);
        stream_state *it = &clock->streams[s];
        if (it->of.speed == 0)
            begin(clock, it, s);
        else
            complete(clock, it, s);
    }
    pass_syncs(clock);
}

/* ---- starts -------------------------------------------------------------- */

/* Has all ended that the head of stream s waits for? */
static inline bool is_ready(one_clock *clock, stream_state *it, uint32_t s)
{
    const uint64_t *end_ns = clock->line->end_ns;
    for (; it->at < it->end; it->at++) {
        uint32_t other = clock->plan->wait[it->at];
        if (!clock->done[other]) {
            stream_state *by = &clock->streams[clock->plan->op[other].stream];
            by->held |= (ms_streams)(1u << s);
            by->by = other < by->by ? other : by->by;
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
static inline uint64_t start_head(one_clock *clock, stream_state *it,
                                  uint32_t op, uint64_t issued_ns)
{
    uint64_t t_ns = it->free_ns;
    uint8_t cause = MS_GAP_NONE;
    if (it->ready_ns > t_ns) {
        t_ns = it->ready_ns;
        cause = ms_inorder_cause(clock->plan, op, it->last);
    }
    if (issued_ns > t_ns) {
        t_ns = issued_ns;
        cause = MS_GAP_HOST;
    }
    clock->line->start_ns[op] = t_ns;
    clock->line->gap_cause[op] = cause;
    set_head(clock, it, clock->next[op]);
    return t_ns;
}

static inline void start(one_clock *clock, stream_state *it, uint32_t s,
                         uint64_t issued_ns)
{
    uint32_t op = it->head;
    uint64_t t_ns = start_head(clock, it, op, issued_ns);
    clock->taken |= 1u << s;
    it->running = op;
    if (t_ns <= clock->now_ns) {
        begin(clock, it, s);
    } else {
        it->of.speed = 0;
        it->end_ns = t_ns;
    }
}

static void start_heads(one_clock *clock)
{
    const struct ms_hosts_host *host = &clock->hosts.of[0];
    uint32_t look = clock->look & ~clock->taken;
    clock->look = 0;
    for (; look != 0; look &= look - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(look);
        stream_state *it = &clock->streams[s];
        if (it->head == MS_NONE || !ms_hosts_issued(host, it->head) ||
            !is_ready(clock, it, s))
            continue;
        start(clock, it, s, ms_hosts_issue_ns(&clock->hosts, host, it->head));
    }
}

/* Those that run go on at new speeds. */
static void count_speeds(one_clock *clock)
{
    uint32_t left = clock->busy;
    clock->counts = false;
    const uint16_t *speed = ms_pace_speeds(clock->pace, (ms_streams)left);
    for (; left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        stream_state *it = &clock->streams[s];
        if (it->of.speed != speed[s])
            it->end_ns = ms_pace_change(&it->of, speed[s], clock->now_ns);
    }
}

/* ---- one stream alone ---------------------------------------------------- */

/* Does nobody wait for the op? */
static inline bool ends_unseen(const one_clock *clock, const stream_state *it,
                               uint32_t op)
{
    const struct ms_hosts_host *host = &clock->hosts.of[0];
    return op < it->by &&
           (host->sync == MS_NONE ||
            (host->until == MS_NONE ? host->n_done + 1 < host->n_ops
                                    : host->until != op));
}

/* While one stream has an op and no other may start one, its ops run one after
 * the other at full speed, up to one that somebody waits for. */
static void run_alone(one_clock *clock, uint32_t s)
{
    const struct ms_hosts_host *host = &clock->hosts.of[0];
    stream_state *it = &clock->streams[s];
    uint32_t op = it->running;
    uint64_t end_ns = it->end_ns;
    if (it->of.speed == 0)
        end_ns += clock->plan->op[op].ns;
    if (ms_pace_speeds(clock->pace, (ms_streams)(1u << s))[s] !=
            MS_SPEED_WHOLE ||
        !ends_unseen(clock, it, op))
        return;
    for (;;) {
        note_end(clock, it, op, end_ns);
        clock->now_ns = end_ns;
        op = it->head;
        if (op == MS_NONE || !ends_unseen(clock, it, op) ||
            !ms_hosts_issued(host, op) || !is_ready(clock, it, s))
            break;
        end_ns = start_head(clock, it, op,
                            ms_hosts_issue_ns(&clock->hosts, host, op)) +
                 clock->plan->op[op].ns;
    }
    clock->taken = clock->busy = 0;
    clock->look = 1u << s;
}

ms_err ms_oneclock_run(const ms_plan *plan, const ms_machine *machine,
                       ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    one_clock clock = {.plan = plan, .line = line, .look = MS_ALL_STREAMS};
    MS_TRY(open_clock(&clock, machine, arena, fault));
    pass_syncs(&clock);
    for (;;) {
        start_heads(&clock);
        if (clock.counts)
            count_speeds(&clock);
        if (clock.taken == 0)
            break;
        if ((clock.taken & (clock.taken - 1)) == 0)
            run_alone(&clock, (uint32_t)__builtin_ctz(clock.taken));
        if (clock.taken != 0)
            pass_instant(&clock);
    }
    line->step_ns = clock.now_ns;
    return clock.hosts.of[0].n_done == plan->n_ops
               ? MS_OK
               : ms_hosts_stuck(plan, clock.hosts.of[0].n_done, fault);
}
