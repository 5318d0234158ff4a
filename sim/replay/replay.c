/* SPDX-License-Identifier: GPL-3.0-or-later */
/* replay: the clock (clock.c), then the books. */
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/replay/active.h"
#include "sim/replay/clock.h"
#include "sim/replay/paging.h"
#include "sim/replay/streams/rankheap.h"
#include "sim/timeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the books ----------------------------------------------------------- */

/* What booking an event touches, in values of its own: a store of an event
 * could otherwise alias what the plan and the timeline point to. */
typedef struct book_state {
    const ms_plan *plan;
    ms_timeline *line;
    const ms_row *row;
    ms_event *events; /* n of them so far; NULL: they are only counted */
    uint32_t n;
    uint64_t now_ns;
} book_state;

static void open_books(book_state *books)
{
    books->row = books->plan->row;
    books->events = books->line->events;
}

/* A host drops references behind an op of its own rank (rankdrops.c). */
static inline uint16_t rank_of(const ms_plan *plan, uint32_t row)
{
    return plan->op[plan->row[row].op].rank;
}

/* Books go in the order of the list: an event that is earlier than the one
 * booked before it gets that one's time, so that times never fall. */
static inline void note(book_state *books, uint32_t row, uint32_t op,
                        bool alloc, uint64_t t_ns, bool listed)
{
    assert(rank_of(books->plan, row) == books->plan->op[op].rank);
    assert(listed || t_ns >= books->now_ns);
    books->now_ns = t_ns > books->now_ns ? t_ns : books->now_ns;
    if (listed)
        books->events[books->n] = (ms_event){
            .t_ns = books->now_ns, .row = row, .op_act = op << 1 | alloc};
    books->n++;
}

/* levels: of the pools of op's rank. */
static inline void book_alloc(book_state *books, ms_level *levels, uint32_t row,
                              uint32_t op, uint64_t t_ns, bool listed)
{
    const ms_row *it = &books->row[row];
    ms_level *level = &levels[it->pool];
    note(books, row, op, true, t_ns, listed);
    level->now_bytes += it->bytes;
    if (level->now_bytes > level->peak_bytes) {
        level->peak_bytes = level->now_bytes;
        level->peak_event = books->n - 1;
    }
}

static inline void book_release(book_state *books, ms_level *levels,
                                uint32_t row, uint32_t op, uint64_t t_ns,
                                bool listed)
{
    const ms_row *it = &books->row[row];
    note(books, row, op, false, t_ns, listed);
    assert(levels[it->pool].now_bytes >= it->bytes);
    levels[it->pool].now_bytes -= it->bytes;
}

static ms_level *levels_of(const book_state *books, uint32_t op)
{
    return books->line->ranks[books->plan->op[op].rank].pool;
}

static void book_list(book_state *books, const ms_wall_instant *list,
                      uint32_t n)
{
    open_books(books);
    for (const ms_wall_instant *it = list; it < list + n; it++) {
        ms_level *levels = levels_of(books, it->op);
        if (it->turn == 1)
            book_alloc(books, levels, it->row, it->op, it->t_ns, true);
        else
            book_release(books, levels, it->row, it->op, it->t_ns, true);
    }
    books->line->n_events = books->n;
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

static inline void book_ops(book_state *state, bool listed)
{
    book_state books = *state; /* in registers */
    const ms_plan *plan = books.plan;
    const ms_timeline *line = books.line;
    const ms_plan_op *it = plan->op;
    const uint32_t *list = plan->release;
    ms_level levels[MS_N_POOLS] = {{0}};
    for (uint32_t op = 0; op < plan->n_ops; op++, it++) {
        uint64_t start_ns = ms_timeline_booked(line, op, line->start_ns[op]);
        uint64_t end_ns = ms_timeline_booked(line, op, line->end_ns[op]);
        uint32_t row = it[0].alloc_at, last = it[1].alloc_at;
        uint32_t i = it[0].release_at, end = it[1].release_at;
        for (; row < last; row++)
            book_alloc(&books, levels, row, op, start_ns, listed);
        for (; i < end; i++)
            book_release(&books, levels, list[i], op, end_ns, listed);
    }
    memcpy(line->ranks[0].pool, levels, sizeof levels);
    *state = books;
}

/* The levels of several ranks, each in the order of the plan, which is its own:
 * events are counted as ms_timeline_walk_plan makes them. */
static void book_ranks(book_state *state)
{
    book_state books = *state; /* in registers */
    const ms_plan *plan = books.plan;
    const ms_plan_op *it = plan->op;
    for (uint32_t op = 0; op < plan->n_ops; op++, it++) {
        ms_level *levels = books.line->ranks[it->rank].pool;
        uint32_t row = it[0].alloc_at, last = it[1].alloc_at;
        uint32_t i = it[0].release_at, end = it[1].release_at;
        for (; row < last; row++)
            book_alloc(&books, levels, row, op, 0, false);
        for (; i < end; i++)
            book_release(&books, levels, plan->release[i], op, 0, false);
    }
    *state = books;
}

/* The hosts of several ranks: each in its own order, and all by time; at one
 * time the first of each rank's comes before the second of any. */
typedef struct host_cursor {
    uint32_t op;       /* of the rank, or MS_NONE: it has no more */
    uint32_t row, end; /* rows that op allocates, from the next one on */
    uint32_t release;  /* the next entry of release, once these are through */
    uint64_t t_ns;     /* of the last event */
    uint32_t turn;     /* which of the rank's at that time it is */
    ms_level *levels;  /* of the rank's pools */
} host_cursor;

/* Per op the next one of its rank; each cursor gets the first. */
static ms_err link_ranks(const ms_plan *plan, ms_arena *arena,
                         host_cursor *cursors, uint32_t **next, ms_fault *fault)
{
    *next = ms_arena_take_raw(arena, plan->n_ops, sizeof **next);
    if (!*next)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        cursors[r].op = MS_NONE;
    for (uint32_t op = plan->n_ops; op-- > 0;) {
        host_cursor *own = &cursors[plan->op[op].rank];
        (*next)[op] = own->op;
        own->op = op;
    }
    return MS_OK;
}

static void enter_op(const ms_plan *plan, host_cursor *at, uint32_t op)
{
    at->op = op;
    if (op == MS_NONE)
        return;
    at->row = plan->op[op].alloc_at;
    at->end = plan->op[op + 1].alloc_at;
    at->release = plan->op[op].release_at;
}

/* Leaves ops behind that have no event left; the key of the rank's next. */
static ms_rankkey next_event(const ms_timeline *line, host_cursor *at,
                             const uint32_t *next)
{
    const ms_plan *plan = line->plan;
    while (at->op != MS_NONE && at->row == at->end &&
           at->release == plan->op[at->op + 1].release_at)
        enter_op(plan, at, next[at->op]);
    if (at->op == MS_NONE)
        return (ms_rankkey){MS_RANKHEAP_NEVER, 0};
    uint64_t own_ns =
        at->row < at->end ? line->start_ns[at->op] : line->end_ns[at->op];
    uint64_t t_ns = ms_timeline_booked(line, at->op, own_ns);
    at->turn = t_ns > at->t_ns ? 0 : at->turn + 1;
    at->t_ns = t_ns > at->t_ns ? t_ns : at->t_ns;
    return (ms_rankkey){at->t_ns, at->turn};
}

/* The next event of the rank; all: that of its op which come at the same time
 * are next, too. */
static inline void book_next(book_state *books, host_cursor *at, bool all)
{
    const uint32_t *list = books->plan->release;
    if (at->row < at->end) {
        uint32_t end = all ? at->end : at->row + 1;
        while (at->row < end)
            book_alloc(books, at->levels, at->row++, at->op, at->t_ns, true);
        return;
    }
    uint32_t last = books->plan->op[at->op + 1].release_at;
    uint32_t end = all ? last : at->release + 1;
    while (at->release < end)
        book_release(books, at->levels, list[at->release++], at->op, at->t_ns,
                     true);
}

/* Those of all ranks, merged by time. */
static void merge_hosts(book_state *state, host_cursor *cursors,
                        const uint32_t *next, ms_rankheap *heap)
{
    book_state books = *state; /* in registers */
    while (ms_rankheap_first_ns(heap) != MS_RANKHEAP_NEVER) {
        uint32_t r = ms_rankheap_first(heap);
        uint64_t until_ns = ms_rankheap_others_ns(heap, r);
        ms_rankkey key;
        do {
            book_next(&books, &cursors[r], cursors[r].t_ns < until_ns);
            key = next_event(books.line, &cursors[r], next);
        } while (key.t_ns < until_ns);
        ms_rankheap_set(heap, r, key);
    }
    *state = books;
}

static ms_err book_hosts(book_state *books, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = books->plan;
    host_cursor *cursors = ms_arena_take(arena, plan->n_ranks, sizeof *cursors);
    uint32_t *next;
    ms_rankheap heap;
    if (!cursors)
        return ms_fail_nomem(fault);
    MS_TRY(link_ranks(plan, arena, cursors, &next, fault));
    MS_TRY(ms_rankheap_open(&heap, plan->n_ranks, arena, fault));
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        cursors[r].levels = books->line->ranks[r].pool;
        enter_op(plan, &cursors[r], cursors[r].op);
        ms_rankheap_set(&heap, r, next_event(books->line, &cursors[r], next));
    }
    merge_hosts(books, cursors, next, &heap);
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
    book_list(books, list, n);
    return MS_OK;
}

static ms_err open_line(const ms_plan *plan, ms_arena *arena, ms_timeline *line,
                        ms_fault *fault)
{
    *line = (ms_timeline){.plan = plan};
    line->start_ns =
        ms_arena_take_raw(arena, plan->n_ops, sizeof *line->start_ns);
    line->end_ns = ms_arena_take_raw(arena, plan->n_ops, sizeof *line->end_ns);
    line->gap_cause = ms_arena_take_raw(arena, plan->n_ops, 1);
    line->ranks = ms_arena_take(arena, plan->n_ranks, sizeof *line->ranks);
    if (!line->start_ns || !line->end_ns || !line->gap_cause || !line->ranks)
        return ms_fail_nomem(fault);
    return MS_OK;
}

/* Host memory and disk are those of all ranks. */
static bool is_far(const ms_plan *plan)
{
    for (uint32_t r = 0; r < plan->n_rows; r++)
        if (plan->row[r].pool != MS_DEVICE_POOL)
            return true;
    return false;
}

/* Where they follow from the ops, a list of few is read faster than made. */
static ms_err open_events(const ms_plan *plan, const ms_machine *machine,
                          ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    size_t n = (size_t)plan->n_rows + plan->op[plan->n_ops].release_at;
    if (n > MS_EVENTWALK_LISTED && plan->n_ranks == 1 && !plan->wait_at &&
        !machine->book_device)
        return MS_OK;
    if (plan->n_ranks > 1 && machine->unmerged && !machine->book_device &&
        !is_far(plan))
        return MS_OK;
    line->events = ms_arena_take_raw(arena, n, sizeof *line->events);
    return line->events ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_replay_clock(const ms_plan *plan, const ms_machine *machine,
                       ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    assert(!machine->wall && machine->paging.page_bytes == 0);
    MS_TRY(open_line(plan, arena, line, fault));
    return ms_clock_run(plan, machine, NULL, arena, line, fault);
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
    book_list(books, list, n);
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
    MS_TRY(open_events(plan, machine, arena, line, fault));
    if (machine->wall)
        MS_TRY(ms_wall_open(plan, machine, arena, line, &wall, fault));
    MS_TRY(ms_clock_run(plan, machine, wall, arena, line, fault));
    if (machine->book_device) {
        MS_TRY(book_device(&books, wall, arena, fault));
    } else {
        MS_TRY(find_until(&books, arena, fault));
        open_books(&books);
        if (plan->n_ranks > 1 && line->events == NULL)
            book_ranks(&books);
        else if (plan->n_ranks > 1)
            MS_TRY(book_hosts(&books, arena, fault));
        else if (line->events)
            book_ops(&books, true);
        else
            book_ops(&books, false);
        line->n_events = books.n;
        MS_TRY(ms_active_book(plan, machine, arena, line, fault));
    }
    close_ranks(plan, line);
    return MS_OK;
}
