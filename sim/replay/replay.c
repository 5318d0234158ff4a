/* SPDX-License-Identifier: GPL-3.0-or-later */
/* replay: the clock (clock.c), then the books. */
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/replay/active.h"
#include "sim/replay/clock.h"
#include "sim/replay/paging.h"
#include "sim/timeline.h"

#include <assert.h>
#include <stdlib.h>

/* ---- the books ----------------------------------------------------------- */

typedef struct book_state {
    const ms_plan *plan;
    ms_timeline *line;
    uint64_t now_ns;
} book_state;

/* A host drops references behind an op of its own rank (rankdrops.c). */
static inline uint8_t rank_of(const ms_plan *plan, uint32_t row)
{
    return plan->op[plan->row[row].op].rank;
}

/* Books go in the order of the list: an event that is earlier than the one
 * booked before it gets that one's time, so that times never fall. */
static void book(book_state *books, uint32_t row, uint32_t op, bool alloc,
                 uint64_t t_ns)
{
    const ms_plan *plan = books->plan;
    ms_timeline *line = books->line;
    ms_level *level = &line->ranks[plan->op[op].rank].pool[plan->row[row].pool];
    uint32_t e = line->n_events++;
    assert(rank_of(plan, row) == plan->op[op].rank);
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

/* Host issue order is what PyTorch's counters count; its instants lie on the
 * time of the device.  An op of the compute stream books when it starts and
 * when it ends, any other (a copy, a collective) so, too, but not before what
 * was issued before it, and not after the compute stream goes on with what was
 * issued behind it: a copy that comes late moves no other op's time. */
static ms_err find_until(book_state *books, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = books->plan;
    uint64_t *next_ns;
    if (!plan->wait_at)
        return MS_OK; /* one stream */
    books->line->until_ns =
        ms_arena_take_raw(arena, plan->n_ops, sizeof *next_ns);
    next_ns = ms_arena_take_raw(arena, plan->n_ranks, sizeof *next_ns);
    if (!books->line->until_ns || !next_ns)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        next_ns[r] = UINT64_MAX;
    for (uint32_t op = plan->n_ops; op-- > 0;) {
        uint64_t *next = &next_ns[plan->op[op].rank];
        books->line->until_ns[op] = *next;
        if (plan->op[op].stream == MS_STREAM_COMPUTE)
            *next = books->line->start_ns[op];
    }
    return MS_OK;
}

static void book_host(book_state *books)
{
    const ms_plan *plan = books->plan;
    const ms_timeline *line = books->line;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint64_t start_ns = ms_timeline_booked(line, op, line->start_ns[op]);
        uint64_t end_ns = ms_timeline_booked(line, op, line->end_ns[op]);
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            book(books, r, op, true, start_ns);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            book(books, plan->release[i], op, false, end_ns);
    }
}

/* The hosts of several ranks: each in its own order, and all by time. */
typedef struct host_event {
    uint64_t t_ns;
    uint32_t turn; /* which of its rank's at that time it is */
    uint32_t row, op;
    uint8_t rank;
    bool alloc;
} host_event;

static int by_host_time(const void *a, const void *b)
{
    const host_event *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* last: the last event of its rank so far.  Sorting by time alone would change
 * the order within a rank; turn keeps it among events of one instant. */
static void list_event(host_event *last, host_event *list, uint64_t t_ns,
                       uint32_t row, uint32_t op, bool alloc)
{
    last->turn = t_ns > last->t_ns ? 0 : last->turn + 1;
    last->t_ns = t_ns > last->t_ns ? t_ns : last->t_ns;
    last->row = row;
    last->op = op;
    last->alloc = alloc;
    *list = *last;
}

static void list_host_events(const book_state *books, host_event *last,
                             host_event *list)
{
    const ms_plan *plan = books->plan;
    const ms_timeline *line = books->line;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        host_event *own = &last[plan->op[op].rank];
        uint64_t start_ns = ms_timeline_booked(line, op, line->start_ns[op]);
        uint64_t end_ns = ms_timeline_booked(line, op, line->end_ns[op]);
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            list_event(own, list++, start_ns, r, op, true);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            list_event(own, list++, end_ns, plan->release[i], op, false);
    }
}

static ms_err book_hosts(book_state *books, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = books->plan;
    uint32_t n = plan->n_rows + plan->op[plan->n_ops].release_at;
    host_event *last = ms_arena_take(arena, plan->n_ranks, sizeof *last);
    host_event *list = ms_arena_take_raw(arena, n, sizeof *list);
    if (!last || !list)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        last[r].rank = (uint8_t)r;
    list_host_events(books, last, list);
    if (n > 0)
        qsort(list, n, sizeof *list, by_host_time);
    for (uint32_t i = 0; i < n; i++)
        book(books, list[i].row, list[i].op, list[i].alloc, list[i].t_ns);
    return MS_OK;
}

/* Device time: from the start of the op that allocates to the end of the
 * last op that uses, once the host has dropped it.  Freeing by last use in
 * program order would be wrong as soon as streams overlap. */
static int by_time(const void *a, const void *b)
{
    const ms_wall_instant *x = a, *y = b;
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

static ms_wall_instant *list_instants(const ms_plan *plan,
                                      const ms_timeline *line, ms_arena *arena,
                                      uint32_t *n)
{
    uint32_t n_release = plan->op[plan->n_ops].release_at;
    ms_wall_instant *list = ms_arena_take_raw(
        arena, (size_t)plan->n_rows + n_release, sizeof *list);
    uint32_t *last = ms_arena_take_raw(arena, plan->n_rows, sizeof *last);
    *n = 0;
    if (!list || !last)
        return NULL;
    last_uses(plan, line, last);
    for (uint32_t r = 0; r < plan->n_rows; r++)
        list[(*n)++] = (ms_wall_instant){line->start_ns[plan->row[r].op], r,
                                         plan->row[r].op, 1};
    for (uint32_t i = 0; i < n_release; i++) {
        uint32_t r = plan->release[i], op = last[r];
        uint64_t t_ns = line->end_ns[op];
        /* At one instant what ends (0) comes before what begins (1), but a row
         * that begins and ends there cannot end first (2). */
        bool at_once = t_ns == line->start_ns[plan->row[r].op];
        list[(*n)++] = (ms_wall_instant){t_ns, r, op, at_once ? 2 : 0};
    }
    return list;
}

/* With a wall the instants are its own; it may have added some. */
static ms_err book_device(book_state *books, ms_wall *wall, ms_arena *arena,
                          ms_fault *fault)
{
    ms_timeline *line = books->line;
    uint32_t n;
    ms_wall_instant *list = wall ? ms_wall_instants(wall, &n)
                                 : list_instants(books->plan, line, arena, &n);
    if (wall)
        line->events = ms_arena_take_raw(arena, n, sizeof *line->events);
    if (!line->events || (n > 0 && !list) || (!list && !wall))
        return ms_fail_nomem(fault);
    if (n > 0)
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

/* The exact pool hands out what is asked for, so requested is active, and holds
 * no more than was ever active. */
static void close_ranks(const ms_plan *plan, ms_timeline *line)
{
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        ms_rank_levels *levels = &line->ranks[r];
        uint64_t peak_bytes = levels->pool[MS_DEVICE_POOL].peak_bytes;
        if (levels->active_peak_bytes < peak_bytes)
            levels->active_peak_bytes = peak_bytes;
        levels->requested_peak_bytes = levels->active_peak_bytes;
        levels->reserved_peak_bytes = levels->active_peak_bytes;
    }
}

/* Unified memory has a clock of its own, whose books are in order. */
static ms_err replay_paging(book_state *books, const ms_machine *machine,
                            ms_arena *arena, ms_fault *fault)
{
    ms_timeline *line = books->line;
    ms_wall_instant *list;
    uint32_t n;
    MS_TRY(ms_paging_run(books->plan, machine, arena, line, &list, &n, fault));
    line->events = ms_arena_take_raw(arena, n, sizeof *line->events);
    if (!line->events)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        book(books, list[i].row, list[i].op, list[i].turn == 1, list[i].t_ns);
    close_ranks(books->plan, line);
    return MS_OK;
}

ms_err ms_replay(const ms_plan *plan, const ms_machine *machine,
                 ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    book_state books = {.plan = plan, .line = line};
    ms_wall *wall = NULL;
    assert(machine->book_device || !machine->wall);
    MS_TRY(open_line(plan, arena, line, fault));
    line->by_device = machine->book_device;
    if (machine->paging.page_bytes > 0)
        return replay_paging(&books, machine, arena, fault);
    if (machine->wall)
        MS_TRY(ms_wall_open(plan, machine, arena, line, &wall, fault));
    MS_TRY(ms_clock_run(plan, machine, wall, arena, line, fault));
    if (machine->book_device) {
        MS_TRY(book_device(&books, wall, arena, fault));
    } else {
        MS_TRY(find_until(&books, arena, fault));
        if (plan->n_ranks > 1)
            MS_TRY(book_hosts(&books, arena, fault));
        else
            book_host(&books);
        MS_TRY(ms_active_book(plan, machine, arena, line, fault));
    }
    close_ranks(plan, line);
    return MS_OK;
}
