/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/idle.h"
#include "sim/plan.h"
#include "sim/timeline.h"

#include <assert.h>
#include <stdlib.h>

typedef struct idle_state {
    const ms_timeline *line;
    uint16_t rank;
    uint32_t mark_op; /* the last op of forward */
    uint32_t *at;     /* per row: its tensor, or MS_NONE */
    ms_idle_tensor *list;
    uint32_t n;
} idle_state;

/* A row that measure.c counts as saved for backward (is_part). */
static bool is_saved(const idle_state *state, uint32_t row)
{
    const ms_plan *plan = state->line->plan;
    const ms_row *it = &plan->row[row];
    return it->saved && it->category == MS_ACTIVATIONS &&
           it->pool == MS_DEVICE_POOL && plan->op[it->op].rank == state->rank;
}

/* state->at[row] is set where the row is alive, then is its place in the list.
 */
static void list_alive(idle_state *state, uint32_t until)
{
    const ms_timeline *line = state->line;
    for (uint32_t r = 0; r < line->plan->n_rows; r++)
        state->at[r] = MS_NONE;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0; e < until; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        if (is_saved(state, event->row))
            state->at[event->row] = event->op_act & 1u ? 0 : MS_NONE;
    }
    for (uint32_t r = 0; r < line->plan->n_rows; r++) {
        if (state->at[r] == MS_NONE)
            continue;
        state->at[r] = state->n;
        state->list[state->n++] =
            (ms_idle_tensor){.bytes = line->plan->row[r].bytes,
                             .from_ns = line->end_ns[line->plan->row[r].op],
                             .to_ns = UINT64_MAX,
                             .row = r};
    }
}

static void see_use(const idle_state *state, uint32_t row, uint32_t op)
{
    const ms_timeline *line = state->line;
    ms_idle_tensor *it = &state->list[state->at[row]];
    if (line->plan->row[row].op == op)
        return;
    it->uses++;
    if (op <= state->mark_op && line->end_ns[op] > it->from_ns)
        it->from_ns = line->end_ns[op];
    else if (op > state->mark_op && line->start_ns[op] < it->to_ns)
        it->to_ns = line->start_ns[op];
}

static void find_uses(const idle_state *state)
{
    const ms_plan *plan = state->line->plan;
    for (uint32_t op = 0; op < plan->n_ops; op++)
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            if (state->at[plan->use[i]] != MS_NONE)
                see_use(state, plan->use[i], op);
    for (uint32_t i = 0; i < state->n; i++) {
        ms_idle_tensor *it = &state->list[i];
        if (it->to_ns == UINT64_MAX)
            it->to_ns = state->line->step_ns;
        if (it->to_ns < it->from_ns) /* another stream is not done yet */
            it->to_ns = it->from_ns;
    }
}

static int by_start(const void *left, const void *right)
{
    const ms_idle_tensor *a = left, *b = right;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Rounded up: what is moved takes time. */
static uint64_t copy_ns(const ms_idle_links *links, double rate, uint64_t bytes)
{
    double ns = (double)bytes / rate * 1e9;
    return links->copy_ns + (uint64_t)ns + ((double)(uint64_t)ns < ns);
}

/* Greedy, in the order of from_ns: the link to the host is free from out_ns on,
 * the link back is free up to in_ns.  A tensor whose copies do not fit between
 * the two stays on the device and takes no time on either. */
static void find_hidden(const ms_idle_links *links, ms_idle_tensor *list,
                        uint32_t n)
{
    uint64_t out_ns = 0, in_ns = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        ms_idle_tensor *it = &list[i];
        uint64_t there = copy_ns(links, links->out_bytes_per_s, it->bytes);
        uint64_t back = copy_ns(links, links->in_bytes_per_s, it->bytes);
        uint64_t from = it->from_ns > out_ns ? it->from_ns : out_ns;
        uint64_t to = it->to_ns < in_ns ? it->to_ns : in_ns;
        it->alone = it->to_ns - it->from_ns >= there + back;
        it->together = to >= from && to - from >= there + back;
        if (it->together) {
            out_ns = from + there;
            in_ns = to - back;
        }
    }
}

static const struct ms_plan_mark *find_mark(const ms_plan *plan, uint16_t rank)
{
    for (uint32_t i = 0; i < plan->n_marks; i++)
        if (plan->marks[i].rank == rank &&
            plan->marks[i].mark == MS_MARK_AFTER_FORWARD)
            return &plan->marks[i];
    return NULL;
}

ms_err ms_idle_list(const ms_timeline *line, uint16_t rank,
                    const ms_idle_links *links, ms_arena *arena,
                    ms_idle_tensor **list, uint32_t *n, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    const struct ms_plan_mark *mark = find_mark(plan, rank);
    idle_state state = {.line = line, .rank = rank};
    *n = 0;
    assert(plan->use_at);
    if (!mark)
        return MS_OK;
    state.mark_op = mark->op;
    state.at = ms_arena_take_raw(arena, plan->n_rows, sizeof *state.at);
    state.list = ms_arena_take_raw(arena, plan->n_rows, sizeof *state.list);
    if (!state.at || !state.list)
        return ms_fail_nomem(fault);
    list_alive(&state, ms_timeline_until(line, rank, MS_MARK_AFTER_FORWARD));
    find_uses(&state);
    if (state.n > 0)
        qsort(state.list, state.n, sizeof *state.list, by_start);
    if (links->out_bytes_per_s > 0 && links->in_bytes_per_s > 0)
        find_hidden(links, state.list, state.n);
    *list = state.list;
    *n = state.n;
    return MS_OK;
}
