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
    uint8_t held; /* streams whose head waits for an op of this one */
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
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        set_head(clock, &clock->streams[s], head[s]);
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

static inline void complete(one_clock *clock, stream_state *it, uint32_t s)
{
    uint32_t op = it->running;
    it->free_ns = it->end_ns;
    clock->line->end_ns[op] = it->end_ns;
    clock->done[op] = true;
    clock->hosts.of[0].n_done++;
    clock->counts |= (clock->busy >> s & 1u) != 0;
    clock->taken &= ~(1u << s);
    clock->busy &= ~(1u << s);
    clock->look |= it->held | 1u << s;
    it->held = 0;
}

static void pass_syncs(one_clock *clock)
{
    const struct ms_hosts_host *host = &clock->hosts.of[0];
    if (host->sync == MS_NONE || !ms_hosts_is_over(host, clock->done))
        return;
    ms_hosts_pass(&clock->hosts, 0, clock->done, clock->line->end_ns,
                  clock->now_ns);
    clock->look = UINT8_MAX;
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
            clock->streams[clock->plan->op[other].stream].held |=
                (uint8_t)(1u << s);
            return false;
        }
        if (end_ns[other] >= it->ready_ns) {
            it->ready_ns = end_ns[other];
            it->last = other;
        }
    }
    return true;
}

static inline void start(one_clock *clock, stream_state *it, uint32_t s,
                         uint64_t issued_ns)
{
    uint32_t op = it->head;
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
    clock->taken |= 1u << s;
    it->running = op;
    if (t_ns <= clock->now_ns) {
        begin(clock, it, s);
    } else {
        it->of.speed = 0;
        it->end_ns = t_ns;
    }
    set_head(clock, it, clock->next[op]);
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
    const uint16_t *speed = ms_pace_speeds(clock->pace, (uint8_t)left);
    for (; left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        stream_state *it = &clock->streams[s];
        if (it->of.speed != speed[s])
            it->end_ns = ms_pace_change(&it->of, speed[s], clock->now_ns);
    }
}

ms_err ms_oneclock_run(const ms_plan *plan, const ms_machine *machine,
                       ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    one_clock clock = {.plan = plan, .line = line, .look = UINT8_MAX};
    MS_TRY(open_clock(&clock, machine, arena, fault));
    pass_syncs(&clock);
    for (;;) {
        start_heads(&clock);
        if (clock.counts)
            count_speeds(&clock);
        if (clock.taken == 0)
            break;
        pass_instant(&clock);
    }
    line->step_ns = clock.now_ns;
    return clock.hosts.of[0].n_done == plan->n_ops
               ? MS_OK
               : ms_hosts_stuck(plan, clock.hosts.of[0].n_done, fault);
}
