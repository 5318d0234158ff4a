/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the allocator of one rank is asked for, in order. */

#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/replay/active.h"
#include "sim/timeline.h"

typedef struct requests {
    const ms_timeline *line;
    ms_request *list;
    uint32_t n;
    const ms_active_seen *seen;
    uint32_t n_seen, at_seen;
    uint8_t *late; /* per row: its free is seen later; NULL: none is */
    uint16_t rank;
} requests;

static void add(requests *r, uint64_t t_ns, uint32_t row, ms_request_kind kind)
{
    const ms_plan *plan = r->line->plan;
    const ms_row *it = &plan->row[row];
    if (it->pool == MS_DEVICE_POOL && ms_active_asked(plan, it) > 0 &&
        plan->op[it->op].rank == r->rank)
        r->list[r->n++] = (ms_request){t_ns, row, (uint8_t)kind};
}

/* The allocations of op find what other streams have passed by then. */
static void add_seen(requests *r, uint64_t t_ns, uint32_t op)
{
    for (; r->at_seen < r->n_seen && r->seen[r->at_seen].op <= op; r->at_seen++)
        add(r, t_ns, r->seen[r->at_seen].row, MS_REQUEST_COMPLETED);
}

static void add_event(requests *r, const ms_event *event)
{
    const ms_plan *plan = r->line->plan;
    if (plan->op[event->op_act >> 1].rank != r->rank)
        return;
    bool late = r->late != NULL && r->late[event->row] != 0;
    if ((event->op_act & 1u) == 0) {
        add(r, event->t_ns, event->row,
            late ? MS_REQUEST_FREE_LATER : MS_REQUEST_FREE);
        return;
    }
    add_seen(r, event->t_ns, event->op_act >> 1);
    add(r, event->t_ns, event->row, MS_REQUEST_ALLOC);
}

ms_err ms_requests_list(const ms_timeline *line, const ms_machine *machine,
                        uint16_t rank, ms_arena *arena, ms_request **list,
                        uint32_t *n, ms_fault *fault)
{
    requests r = {.line = line, .rank = rank};
    ms_eventwalk walk;
    MS_TRY(ms_active_list(line, machine, arena, &r.late, &r.seen, &r.n_seen,
                          fault));
    r.list = ms_arena_take_raw(arena, (size_t)line->n_events + r.n_seen,
                               sizeof *r.list);
    if (r.list == NULL)
        return ms_fail_nomem(fault);
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t i = 0; i < line->n_events; i++)
        add_event(&r, ms_timeline_next(&walk));
    *list = r.list;
    *n = r.n;
    return MS_OK;
}
