/* SPDX-License-Identifier: GPL-3.0-or-later */
/* replay: the clock, then the books.
 *
 * Streams are FIFO, so at most one op per stream runs and the event queue is
 * an array: the next instant is the minimum over the streams' ends.  At one
 * instant all completions come first, in stream order, then starts. */
#include "sim/sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the clock ----------------------------------------------------------- */

typedef struct clock_state {
    const ms_plan *plan;
    const ms_machine *machine;
    ms_timeline *line;
    uint32_t n_streams;
    uint32_t *head;     /* next op of each stream, MS_NONE: none left */
    uint32_t *running;  /* MS_NONE: idle */
    uint64_t *end_ns;   /* of the running op, UINT64_MAX: idle */
    uint64_t *free_ns;  /* end of the last op */
    uint32_t *next;     /* per op: the op behind it on its stream */
    uint32_t *launches; /* per op: kernels that the host issues before it */
    bool *done;         /* per op; NULL with one stream */
    uint32_t sync;      /* syncs passed */
    uint64_t host_ns;   /* when the host could issue op host_op */
    uint32_t host_op;
    uint32_t n_done;
} clock_state;

static uint32_t stream_of(const ms_plan *plan, uint32_t op)
{
    return plan->op[op].rank * (uint32_t)MS_N_STREAMS + plan->op[op].stream;
}

/* An op of no length is bookkeeping of the host: it launches no kernel. */
static bool launched(const ms_plan *plan, uint32_t op)
{
    return plan->op[op].ns > 0;
}

static ms_err clock_open(clock_state *clock, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = clock->plan;
    uint32_t n = plan->n_ranks * (uint32_t)MS_N_STREAMS;

    clock->n_streams = n;
    clock->head = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    clock->running = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    clock->end_ns = ms_arena_take_raw(arena, n, sizeof(uint64_t));
    clock->free_ns = ms_arena_take(arena, n, sizeof(uint64_t));
    clock->next = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    clock->launches =
        ms_arena_take_raw(arena, plan->n_ops + 1u, sizeof(uint32_t));
    clock->done = ms_arena_take(arena, plan->n_ops, sizeof(bool));
    if (!clock->head || !clock->running || !clock->end_ns || !clock->free_ns ||
        !clock->next || !clock->launches || !clock->done)
        return ms_fail_nomem(fault);
    memset(clock->head, 0xff, n * sizeof(uint32_t));
    memset(clock->running, 0xff, n * sizeof(uint32_t));
    memset(clock->end_ns, 0xff, n * sizeof(uint64_t));
    for (uint32_t op = plan->n_ops; op-- > 0;) {
        uint32_t s = stream_of(plan, op);
        clock->next[op] = clock->head[s];
        clock->head[s] = op;
    }
    clock->launches[0] = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++)
        clock->launches[op + 1] = clock->launches[op] + launched(plan, op);
    return MS_OK;
}

/* Has the host passed every sync before op? */
static bool issued(const clock_state *clock, uint32_t op)
{
    return clock->sync == clock->plan->n_sync ||
           op < clock->plan->sync[clock->sync];
}

static uint64_t issue_ns(const clock_state *clock, uint32_t op)
{
    return clock->host_ns +
           (uint64_t)(clock->launches[op] - clock->launches[clock->host_op]) *
               clock->machine->launch_ns;
}

/* The latest end among what op waits for; false while one is still open.
 * *last becomes that op (MS_NONE: nothing waited for). */
static bool waits_over(const clock_state *clock, uint32_t op, uint64_t *t_ns,
                       uint32_t *last)
{
    const ms_plan *plan = clock->plan;

    *t_ns = 0;
    *last = MS_NONE;
    if (!plan->wait_at)
        return true;
    for (uint32_t i = plan->wait_at[op]; i < plan->wait_at[op + 1]; i++) {
        uint32_t other = plan->wait[i];
        if (!clock->done[other])
            return false;
        if (clock->line->end_ns[other] >= *t_ns) {
            *t_ns = clock->line->end_ns[other];
            *last = other;
        }
    }
    return true;
}

ms_gap ms_replay_gap_of(uint8_t stream)
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

static uint8_t wait_cause(const ms_plan *plan, uint32_t op, uint32_t other)
{
    if (plan->op[other].rank != plan->op[op].rank)
        return MS_GAP_BUBBLE;
    return (uint8_t)ms_replay_gap_of(plan->op[other].stream);
}

/* Starts the head of stream s if nothing is in its way. */
static void start_head(clock_state *clock, uint32_t s)
{
    uint32_t op = clock->head[s], last;
    uint64_t ready_ns, free_ns = clock->free_ns[s];

    if (op == MS_NONE || clock->running[s] != MS_NONE || !issued(clock, op) ||
        !waits_over(clock, op, &ready_ns, &last))
        return;
    uint64_t host_ns = issue_ns(clock, op), t_ns = free_ns;
    uint8_t cause = MS_GAP_NONE;
    if (ready_ns > t_ns) {
        t_ns = ready_ns;
        cause = wait_cause(clock->plan, op, last);
    }
    if (host_ns > t_ns) {
        t_ns = host_ns;
        cause = MS_GAP_HOST;
    }
    clock->line->start_ns[op] = t_ns;
    clock->line->gap_cause[op] = cause;
    clock->running[s] = op;
    clock->head[s] = clock->next[op];
    clock->end_ns[s] = t_ns + clock->plan->op[op].ns;
}

static void complete(clock_state *clock, uint32_t s)
{
    uint32_t op = clock->running[s];

    clock->line->end_ns[op] = clock->end_ns[s];
    clock->free_ns[s] = clock->end_ns[s];
    clock->done[op] = true;
    clock->running[s] = MS_NONE;
    clock->end_ns[s] = UINT64_MAX;
    clock->n_done++;
}

/* The host passes a sync when all ops before it have ended. */
static void pass_syncs(clock_state *clock, uint64_t now_ns)
{
    const ms_plan *plan = clock->plan;

    while (clock->sync < plan->n_sync &&
           clock->n_done == plan->sync[clock->sync]) {
        uint32_t op = plan->sync[clock->sync++];
        uint64_t t_ns = issue_ns(clock, op);
        clock->host_ns = t_ns > now_ns ? t_ns : now_ns;
        clock->host_op = op;
    }
}

static uint64_t earliest(const clock_state *clock)
{
    uint64_t t_ns = UINT64_MAX;

    for (uint32_t s = 0; s < clock->n_streams; s++)
        if (clock->end_ns[s] < t_ns)
            t_ns = clock->end_ns[s];
    return t_ns;
}

static ms_err run_clock(clock_state *clock, ms_fault *fault)
{
    const ms_plan *plan = clock->plan;

    pass_syncs(clock, 0);
    for (;;) {
        for (uint32_t s = 0; s < clock->n_streams; s++)
            start_head(clock, s);
        uint64_t now_ns = earliest(clock);
        if (now_ns == UINT64_MAX)
            break;
        for (uint32_t s = 0; s < clock->n_streams; s++)
            if (clock->end_ns[s] == now_ns)
                complete(clock, s);
        pass_syncs(clock, now_ns);
        clock->line->step_ns = now_ns;
    }
    if (clock->n_done == plan->n_ops)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, plan->graph->name,
                   "look for a cycle among moves and syncs in the program",
                   "the step stops after %u of %u ops: each stream waits for "
                   "another",
                   clock->n_done, plan->n_ops);
}

/* With one stream and no sync the clock is a running sum. */
static bool one_stream(const ms_plan *plan)
{
    return !plan->wait_at && plan->n_ranks == 1 && plan->n_sync == 0;
}

static void run_one_stream(const ms_plan *plan, const ms_machine *machine,
                           ms_timeline *line)
{
    uint64_t now_ns = 0, host_ns = 0;

    for (uint32_t op = 0; op < plan->n_ops; op++) {
        line->gap_cause[op] = MS_GAP_NONE;
        if (host_ns > now_ns) {
            now_ns = host_ns;
            line->gap_cause[op] = MS_GAP_HOST;
        }
        line->start_ns[op] = now_ns;
        now_ns += plan->op[op].ns;
        line->end_ns[op] = now_ns;
        host_ns += launched(plan, op) ? machine->launch_ns : 0;
    }
    line->step_ns = now_ns;
}

/* ---- the books ----------------------------------------------------------- */

typedef struct book_state {
    const ms_plan *plan;
    ms_timeline *line;
    uint64_t now_ns;
} book_state;

static void book(book_state *books, uint32_t row, uint32_t op, bool alloc,
                 uint64_t t_ns)
{
    const ms_plan *plan = books->plan;
    ms_timeline *line = books->line;
    ms_level *level = &line->ranks[plan->op[op].rank].pool[plan->row[row].pool];
    uint32_t e = line->n_events++;

    if (t_ns > books->now_ns)
        books->now_ns = t_ns;
    line->events[e] = (ms_event){
        .t_ns = books->now_ns, .row = row, .op_act = op << 1 | alloc};
    if (!alloc) {
        assert(level->now_bytes >= plan->row[row].bytes);
        level->now_bytes -= plan->row[row].bytes;
        return;
    }
    level->now_bytes += plan->row[row].bytes;
    if (level->now_bytes > level->peak_bytes) {
        level->peak_bytes = level->now_bytes;
        level->peak_event = e;
    }
}

/* Host issue order: what PyTorch's counters count. */
static void book_host(book_state *books)
{
    const ms_plan *plan = books->plan;
    const ms_timeline *line = books->line;

    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            book(books, r, op, true, line->start_ns[op]);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            book(books, plan->release[i], op, false, line->end_ns[op]);
    }
}

/* Device time: from the start of the op that allocates to the end of the
 * last op that uses, once the host has dropped it.  Freeing by last use in
 * program order would be wrong as soon as streams overlap. */
typedef struct instant {
    uint64_t t_ns;
    uint32_t row, op;
    uint8_t turn; /* at one time: 0 frees, 1 allocations, 2 frees of rows that
                     were allocated at that very time */
} instant;

static int by_time(const void *a, const void *b)
{
    const instant *x = a, *y = b;

    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The op in whose end each row's last use lies. */
static void last_uses(const ms_plan *plan, const ms_timeline *line,
                      uint32_t *last)
{
    for (uint32_t r = 0; r < plan->n_rows; r++)
        last[r] = plan->row[r].op;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            if (line->end_ns[op] >= line->end_ns[last[plan->use[i]]])
                last[plan->use[i]] = op;
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            if (line->end_ns[op] >= line->end_ns[last[plan->release[i]]])
                last[plan->release[i]] = op;
    }
}

static ms_err book_device(book_state *books, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = books->plan;
    const ms_timeline *line = books->line;
    uint32_t n = 0, n_release = plan->op[plan->n_ops].release_at;
    instant *list = ms_arena_take_raw(arena, (size_t)plan->n_rows + n_release,
                                      sizeof *list);
    uint32_t *last = ms_arena_take_raw(arena, plan->n_rows, sizeof *last);

    if (!list || !last)
        return ms_fail_nomem(fault);
    last_uses(plan, line, last);
    for (uint32_t r = 0; r < plan->n_rows; r++)
        list[n++] =
            (instant){line->start_ns[plan->row[r].op], r, plan->row[r].op, 1};
    for (uint32_t i = 0; i < n_release; i++) {
        uint32_t r = plan->release[i], op = last[r];
        uint64_t t_ns = line->end_ns[op];
        bool at_once = t_ns == line->start_ns[plan->row[r].op];
        list[n++] = (instant){t_ns, r, op, at_once ? 2 : 0};
    }
    qsort(list, n, sizeof *list, by_time);
    for (uint32_t i = 0; i < n; i++)
        book(books, list[i].row, list[i].op, list[i].turn == 1, list[i].t_ns);
    return MS_OK;
}

static ms_err open_line(const ms_plan *plan, ms_arena *arena, ms_timeline *line,
                        ms_fault *fault)
{
    size_t n_events = (size_t)plan->n_rows + plan->op[plan->n_ops].release_at;

    *line = (ms_timeline){.plan = plan};
    line->events = ms_arena_take_raw(arena, n_events, sizeof *line->events);
    line->start_ns =
        ms_arena_take_raw(arena, plan->n_ops, sizeof *line->start_ns);
    line->end_ns = ms_arena_take_raw(arena, plan->n_ops, sizeof *line->end_ns);
    line->gap_cause = ms_arena_take_raw(arena, plan->n_ops, 1);
    line->ranks = ms_arena_take(arena, plan->n_ranks, sizeof *line->ranks);
    if (!line->events || !line->start_ns || !line->end_ns || !line->gap_cause ||
        !line->ranks)
        return ms_fail_nomem(fault);
    return MS_OK;
}

/* The exact pool hands out what is asked for: requested, active and reserved
 * are the allocated bytes, reserved never shrinks. */
static void close_ranks(const ms_plan *plan, ms_timeline *line)
{
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        ms_rank_levels *levels = &line->ranks[r];
        uint64_t peak_bytes = levels->pool[MS_DEVICE_POOL].peak_bytes;
        levels->active_peak_bytes = peak_bytes;
        levels->requested_peak_bytes = peak_bytes;
        levels->reserved_peak_bytes = peak_bytes;
    }
}

ms_err ms_replay(const ms_plan *plan, const ms_machine *machine,
                 ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    book_state books = {.plan = plan, .line = line};

    MS_TRY(open_line(plan, arena, line, fault));
    if (one_stream(plan)) {
        run_one_stream(plan, machine, line);
    } else {
        clock_state clock = {.plan = plan, .machine = machine, .line = line};
        MS_TRY(clock_open(&clock, arena, fault));
        MS_TRY(run_clock(&clock, fault));
    }
    if (machine->book_device)
        MS_TRY(book_device(&books, arena, fault));
    else
        book_host(&books);
    close_ranks(plan, line);
    return MS_OK;
}
