/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/paging.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/replay/clock.h"
#include "sim/timeline.h"

#include <stdio.h>
#include <string.h>

enum { NOWHERE, HERE, AWAY };

typedef struct page_row {
    uint32_t older, newer; /* of those that are here */
    uint32_t touched;      /* by op touched - 1 last; 0: by none */
    uint8_t state;
    bool dirty; /* the host has no copy, or an old one */
} page_row;

/* What one op makes move. */
typedef struct migration {
    uint64_t in_bytes, in_pages, out_bytes;
    bool after_last; /* takes the place of what the op before it touched */
} migration;

typedef struct pager {
    const ms_plan *plan;
    const ms_machine *machine;
    ms_timeline *line;
    ms_arena *arena;
    ms_fault *fault;
    page_row *row;
    uint32_t oldest, newest;
    uint64_t limit_bytes, level_bytes;
    uint64_t host_bytes, host_by_category[MS_N_CATEGORIES];
    uint64_t *wait_ns;              /* per op: until its pages are there */
    uint32_t last_op[MS_N_STREAMS]; /* per stream: the op before */
    ms_wall_instant *list;          /* turn: see note; t_ns: still to come */
    uint32_t n_list, list_capacity;
} pager;

/* Of the device's memory. */
static uint64_t bytes_of(const pager *p, uint32_t row)
{
    const ms_row *it = &p->plan->row[row];
    return it->pool == MS_DEVICE_POOL ? it->bytes : 0;
}

/* What the books say of an instant: pages go before op (GO), they come or are
 * made for it (COME), or the host drops them after it (DROP). */
enum { GO, COME, DROP };

static ms_err note(pager *p, uint32_t row, uint32_t op, uint8_t turn)
{
    p->list = ms_arena_grow(p->arena, p->list, &p->list_capacity, p->n_list + 1,
                            sizeof *p->list);
    if (!p->list)
        return ms_fail_nomem(p->fault);
    p->list[p->n_list++] = (ms_wall_instant){0, row, op, turn};
    return MS_OK;
}

/* A library's workspace is not unified memory, nor need other categories be,
 * nor is what the program itself keeps in another memory: such a row is where
 * it is for as long as it lives. */
static bool is_plain(const pager *p, uint32_t row)
{
    const ms_row *it = &p->plan->row[row];
    uint32_t managed = p->machine->paging.managed;
    bool workspace =
        row < p->plan->op[1].alloc_at && it->category == MS_WORKSPACE;
    return workspace || it->pool != MS_DEVICE_POOL ||
           (managed != 0 && !(managed >> it->category & 1));
}

/* ---- what is here, oldest use first -------------------------------------- */

static void unlink_row(pager *p, uint32_t row)
{
    page_row *it = &p->row[row];
    *(it->older == MS_NONE ? &p->oldest : &p->row[it->older].newer) = it->newer;
    *(it->newer == MS_NONE ? &p->newest : &p->row[it->newer].older) = it->older;
}

static void link_newest(pager *p, uint32_t row)
{
    p->row[row].older = p->newest;
    p->row[row].newer = MS_NONE;
    *(p->newest == MS_NONE ? &p->oldest : &p->row[p->newest].newer) = row;
    p->newest = row;
}

static void set_away(pager *p, uint32_t row, uint8_t state)
{
    ms_pages *pages = &p->line->pages;
    uint64_t *of_its = &p->host_by_category[p->plan->row[row].category];
    uint64_t was = p->row[row].state == AWAY ? bytes_of(p, row) : 0;
    uint64_t is = state == AWAY ? bytes_of(p, row) : 0;
    p->host_bytes += is - was;
    *of_its += is - was;
    p->row[row].state = state;
    if (p->host_bytes <= pages->host_peak_bytes)
        return;
    pages->host_peak_bytes = p->host_bytes;
    memcpy(pages->host_by_category, p->host_by_category,
           sizeof pages->host_by_category);
}

static ms_err enter(pager *p, uint32_t row, uint32_t op)
{
    set_away(p, row, HERE);
    if (!is_plain(p, row))
        link_newest(p, row);
    p->level_bytes += bytes_of(p, row);
    return note(p, row, op, COME);
}

static ms_err leave(pager *p, uint32_t row, uint32_t op, uint8_t state)
{
    if (!is_plain(p, row))
        unlink_row(p, row);
    p->level_bytes -= bytes_of(p, row);
    p->row[row].dirty = false;
    set_away(p, row, state);
    return note(p, row, op, state == AWAY ? GO : DROP);
}

/* ---- an op --------------------------------------------------------------- */

static bool changes(const ms_plan *plan, uint32_t op, uint32_t row)
{
    uint32_t maker = plan->row[row].op;
    uint8_t pass = plan->op[op].pass;
    return maker == op || pass == MS_STEP || pass == MS_ACCUMULATE;
}

/* What op touches becomes the newest; *more: of that the bytes that are not
 * here. */
static void touch(pager *p, uint32_t op, uint64_t *more)
{
    const ms_plan *plan = p->plan;
    *more = 0;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t row = plan->use[i];
        page_row *it = &p->row[row];
        if (it->touched == op + 1)
            continue;
        it->touched = op + 1;
        if (it->state != HERE) {
            *more += bytes_of(p, row);
            continue;
        }
        if (is_plain(p, row))
            continue;
        unlink_row(p, row);
        link_newest(p, row);
    }
}

/* Makes room.  What op touches is the newest, and fits (check_room), so that
 * only rows that it does not touch go. */
static ms_err evict(pager *p, uint32_t op, uint64_t more, migration *moved)
{
    uint32_t before = p->last_op[p->plan->op[op].stream];
    while (p->level_bytes + more > p->limit_bytes) {
        uint32_t row = p->oldest;
        if (p->row[row].dirty)
            moved->out_bytes += bytes_of(p, row);
        moved->after_last |= p->row[row].touched == before + 1;
        MS_TRY(leave(p, row, op, AWAY));
    }
    return MS_OK;
}

static ms_err bring(pager *p, uint32_t op, migration *moved)
{
    const ms_plan *plan = p->plan;
    uint64_t page_bytes = p->machine->paging.page_bytes;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t row = plan->use[i];
        uint64_t bytes = bytes_of(p, row);
        if (p->row[row].state == AWAY) {
            moved->in_bytes += bytes;
            moved->in_pages += bytes / page_bytes + (bytes % page_bytes > 0);
        }
        if (p->row[row].state != HERE)
            MS_TRY(enter(p, row, op));
        p->row[row].dirty |= changes(plan, op, row);
    }
    return MS_OK;
}

static uint64_t copy_ns(uint64_t bytes, double rate)
{
    return rate > 0 ? (uint64_t)((double)bytes / rate * 1e9 + 0.5) : 0;
}

/* How long op waits.  By faults, one thing after the other; with hints both
 * ways at once, beside the op before unless its pages must go. */
static uint64_t wait_ns(const pager *p, const migration *moved, uint64_t last)
{
    const ms_paging *paging = &p->machine->paging;
    double share = paging->hints ? 1 : paging->fault_percent / 100.0;
    uint64_t in_ns =
        copy_ns(moved->in_bytes, p->machine->h2d_bytes_per_s * share);
    uint64_t out_ns =
        copy_ns(moved->out_bytes, p->machine->d2h_bytes_per_s * share);
    if (!paging->hints)
        return moved->in_pages * paging->fault_ns + in_ns + out_ns;
    uint64_t both_ns = in_ns > out_ns ? in_ns : out_ns;
    uint64_t beside_ns = moved->after_last ? 0 : last;
    return both_ns > beside_ns ? both_ns - beside_ns : 0;
}

static ms_err run_op(pager *p, uint32_t op)
{
    const ms_plan *plan = p->plan;
    uint32_t *before = &p->last_op[plan->op[op].stream];
    ms_pages *pages = &p->line->pages;
    migration moved = {0};
    uint64_t more;
    touch(p, op, &more);
    MS_TRY(evict(p, op, more, &moved));
    MS_TRY(bring(p, op, &moved));
    p->wait_ns[op] = wait_ns(p, &moved, plan->op[*before].ns);
    *before = op;
    pages->h2d_bytes += moved.in_bytes;
    pages->d2h_bytes += moved.out_bytes;
    if (!p->machine->paging.hints && p->machine->paging.fault_ns > 0)
        pages->faults += moved.in_pages;
    return MS_OK;
}

static ms_err drop(pager *p, uint32_t op)
{
    const ms_plan *plan = p->plan;
    for (uint32_t i = plan->op[op].release_at; i < plan->op[op + 1].release_at;
         i++) {
        uint32_t row = plan->release[i];
        if (p->row[row].state == HERE)
            MS_TRY(leave(p, row, op, NOWHERE));
        else
            set_away(p, row, NOWHERE);
    }
    return MS_OK;
}

/* ---- a step -------------------------------------------------------------- */

/* Of the rows that exist at its start, a step finds those on the device that
 * the step before left there. */
static ms_err begin_row(pager *p, uint32_t row, bool at_start)
{
    bool here = p->row[row].state == HERE;
    p->row[row].touched = 0;
    if (!at_start && here)
        return leave(p, row, 0, NOWHERE);
    if (at_start && !here && is_plain(p, row))
        return enter(p, row, 0);
    if (!here)
        set_away(p, row, at_start ? AWAY : NOWHERE);
    return MS_OK;
}

static ms_err begin_step(pager *p)
{
    const ms_plan *plan = p->plan;
    uint32_t n_start = plan->op[1].alloc_at;
    memset(p->last_op, 0, sizeof p->last_op);
    p->line->pages = (ms_pages){0};
    for (uint32_t r = 0; r < plan->n_rows; r++)
        MS_TRY(begin_row(p, r, r < n_start));
    p->n_list = 0;
    for (uint32_t r = 0; r < n_start; r++)
        if (is_plain(p, r))
            MS_TRY(note(p, r, 0, COME));
    for (uint32_t r = p->oldest; r != MS_NONE; r = p->row[r].newer)
        MS_TRY(note(p, r, 0, COME));
    return drop(p, 0);
}

static ms_err run_step(pager *p)
{
    MS_TRY(begin_step(p));
    for (uint32_t op = 1; op < p->plan->n_ops; op++) {
        MS_TRY(run_op(p, op));
        MS_TRY(drop(p, op));
    }
    return MS_OK;
}

/* ---- times --------------------------------------------------------------- */

/* What moves follows from the order of the ops alone.  The clock runs each op
 * behind the wait for its pages, as one; then the two are told apart. */
static ms_err run_clock(pager *p)
{
    const ms_plan *plan = p->plan;
    ms_timeline *line = p->line;
    ms_plan waiting = *plan;
    waiting.op =
        ms_arena_take_raw(p->arena, plan->n_ops + 1u, sizeof *waiting.op);
    if (!waiting.op)
        return ms_fail_nomem(p->fault);
    memcpy(waiting.op, plan->op, (plan->n_ops + 1u) * sizeof *waiting.op);
    for (uint32_t op = 0; op < plan->n_ops; op++)
        waiting.op[op].ns += p->wait_ns[op];
    return ms_clock_run(&waiting, p->machine, NULL, p->arena, line, p->fault);
}

static void book_times(pager *p)
{
    ms_timeline *line = p->line;
    for (uint32_t i = 0; i < p->n_list; i++) {
        ms_wall_instant *it = &p->list[i];
        it->t_ns =
            it->turn == DROP ? line->end_ns[it->op] : line->start_ns[it->op];
    }
    for (uint32_t op = 0; op < p->plan->n_ops; op++) {
        uint64_t took_ns = line->end_ns[op] - line->start_ns[op];
        uint64_t ns = p->plan->op[op].ns;
        if (p->wait_ns[op] == 0)
            continue;
        /* Where other ops slow them, the wait and the op share the time in the
         * proportion that they have without. */
        line->start_ns[op] =
            line->end_ns[op] - (uint64_t)((double)took_ns * (double)ns /
                                              (double)(ns + p->wait_ns[op]) +
                                          0.5);
        line->gap_cause[op] = MS_GAP_PAGES;
    }
}

/* The bytes of unified memory that op touches. */
static uint64_t touched_bytes(pager *p, uint32_t op)
{
    const ms_plan *plan = p->plan;
    uint64_t bytes = 0;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t row = plan->use[i];
        if (is_plain(p, row) || p->row[row].touched == op + 1)
            continue;
        p->row[row].touched = op + 1;
        bytes += bytes_of(p, row);
    }
    return bytes;
}

/* The most that must be here at once: the rows that are no unified memory, and
 * what one op touches of those that are. */
static uint64_t least_bytes(pager *p)
{
    const ms_plan *plan = p->plan;
    uint64_t most = 0, plain = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            plain += is_plain(p, r) ? bytes_of(p, r) : 0;
        uint64_t bytes = plain + (op > 0 ? touched_bytes(p, op) : 0);
        most = bytes > most ? bytes : most;
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            if (is_plain(p, plan->release[i]))
                plain -= bytes_of(p, plan->release[i]);
    }
    return most;
}

static ms_err check_room(pager *p)
{
    uint64_t least = p->machine->context_bytes + least_bytes(p);
    char hint[64];
    if (least <= p->machine->capacity_bytes)
        return MS_OK;
    snprintf(hint, sizeof hint, "give it --memory %llu or more",
             (unsigned long long)least);
    return ms_fail(p->fault, MS_EINFEASIBLE, "uvm", hint,
                   "one op touches more than the device's memory holds: with "
                   "context and what is not paged %llu bytes, there are %llu",
                   (unsigned long long)least,
                   (unsigned long long)p->machine->capacity_bytes);
}

static ms_err check_plan(const ms_plan *plan, ms_fault *fault)
{
    if (plan->n_ranks > 1)
        return ms_fail(fault, MS_EUSAGE, "uvm", "give it a rank's program",
                       "unified memory is simulated for one rank, the program "
                       "has %u",
                       (unsigned)plan->n_ranks);
    return MS_OK;
}

ms_err ms_paging_run(const ms_plan *plan, const ms_machine *machine,
                     ms_arena *arena, ms_timeline *line, ms_wall_instant **list,
                     uint32_t *n, ms_fault *fault)
{
    pager p = {.plan = plan,
               .machine = machine,
               .line = line,
               .arena = arena,
               .fault = fault,
               .oldest = MS_NONE,
               .newest = MS_NONE};
    MS_TRY(check_plan(plan, fault));
    p.row = ms_arena_take(arena, plan->n_rows, sizeof *p.row);
    p.wait_ns = ms_arena_take(arena, plan->n_ops, sizeof *p.wait_ns);
    if (!p.row || !p.wait_ns)
        return ms_fail_nomem(fault);
    MS_TRY(check_room(&p));
    p.limit_bytes = machine->capacity_bytes - machine->context_bytes;
    /* The first step shows where rows lie at the end of a step; the second
     * begins there, is like all that follow, and is the one reported. */
    MS_TRY(run_step(&p));
    MS_TRY(run_step(&p));
    MS_TRY(run_clock(&p));
    book_times(&p);
    *list = p.list;
    *n = p.n_list;
    return MS_OK;
}
