/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank's host drops references behind an op of its own rank.  While the calls
 * of several ranks alternate, expand books a drop behind whatever op came last,
 * perhaps another rank's; here each drop is moved behind the last op of its own
 * rank, and the drops of a rank keep their order. */
#include "sim/expand/books.h"
#include "sim/plan.h"

#include <string.h>

typedef struct settle_state {
    ms_plan *plan;
    uint32_t *last;  /* per rank: its last op so far */
    uint32_t *owner; /* per release: the op behind which it belongs */
    uint32_t *n;     /* per op: how many releases are its so far */
    uint32_t mark;   /* those before it are settled but for their place */
} settle_state;

/* Marks before release i, all behind op or an earlier one. */
static void settle_marks(settle_state *state, uint32_t op, uint32_t i)
{
    ms_plan *plan = state->plan;
    for (; state->mark < plan->n_marks; state->mark++) {
        struct ms_plan_mark *mark = &plan->marks[state->mark];
        if (mark->op > op || mark->releases > i)
            return;
        mark->op = state->last[mark->rank];
        mark->releases = state->n[mark->op];
    }
}

static void find_owners(settle_state *state)
{
    ms_plan *plan = state->plan;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t i = plan->op[op].release_at;
        state->last[plan->op[op].rank] = op;
        for (; i < plan->op[op + 1].release_at; i++) {
            const ms_row *row = &plan->row[plan->release[i]];
            settle_marks(state, op, i);
            state->owner[i] = state->last[plan->op[row->op].rank];
            state->n[state->owner[i]]++;
        }
        settle_marks(state, op, i);
    }
}

/* Each release to the next place behind its op. */
static void place(settle_state *state, uint32_t *list)
{
    ms_plan *plan = state->plan;
    uint32_t n_release = plan->op[plan->n_ops].release_at, at = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        plan->op[op].release_at = at;
        at += state->n[op];
        state->n[op] = plan->op[op].release_at;
    }
    for (uint32_t m = 0; m < plan->n_marks; m++)
        plan->marks[m].releases += plan->op[plan->marks[m].op].release_at;
    for (uint32_t i = 0; i < n_release; i++)
        list[state->n[state->owner[i]]++] = plan->release[i];
    if (n_release > 0)
        memcpy(plan->release, list, n_release * sizeof *list);
}

/* Where every drop is behind its own rank's op, a mark behind another rank's
 * comes behind the drops of the last op of its own. */
static void move_marks(ms_plan *plan, uint32_t *last)
{
    struct ms_plan_mark *mark = plan->marks, *end = mark + plan->n_marks;
    for (uint32_t op = 0; mark < end; op++) {
        last[plan->op[op].rank] = op;
        for (; mark < end && mark->op == op; mark++) {
            if (plan->op[op].rank == mark->rank)
                continue;
            mark->op = last[mark->rank];
            mark->releases = plan->op[mark->op + 1].release_at;
        }
    }
}

ms_err ms_rankdrops_settle(ms_books *books)
{
    ms_plan *plan = books->plan;
    uint32_t n_release = plan->op[plan->n_ops].release_at;
    settle_state state = {.plan = plan};
    state.last = ms_arena_take(books->arena, plan->n_ranks, sizeof(uint32_t));
    if (state.last && !books->strays) {
        move_marks(plan, state.last);
        return MS_OK;
    }
    state.owner = ms_arena_take_raw(books->arena, n_release, sizeof(uint32_t));
    state.n = ms_arena_take(books->arena, plan->n_ops, sizeof(uint32_t));
    uint32_t *list =
        ms_arena_take_raw(books->arena, n_release, sizeof(uint32_t));
    if (!state.last || !state.owner || !state.n || !list)
        return ms_fail_nomem(books->fault);
    find_owners(&state);
    place(&state, list);
    return MS_OK;
}
