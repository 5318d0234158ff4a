/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <string.h>

typedef struct finder {
    ms_swap *swap;
    uint32_t turns_capacity;
    uint32_t *now;     /* per rank: a turn of it, or NONE */
    uint32_t *forward; /* per stage and micro-batch: its last forward turn */
} finder;

static ms_err take_columns(finder *f)
{
    ms_swap *w = f->swap;
    const ms_program *from = w->from;
    size_t stages = from->n_stages > 0 ? from->n_stages : 1;
    size_t cells = stages * from->n_micro_batches;
    w->turn_of = ms_arena_take_raw(w->arena, from->n_calls, sizeof *w->turn_of);
    f->now = ms_arena_take_raw(w->arena, from->n_ranks, sizeof *f->now);
    f->forward = ms_arena_take_raw(w->arena, cells, sizeof *f->forward);
    if (w->turn_of == NULL || f->now == NULL || f->forward == NULL)
        return ms_fail_nomem(w->fault);
    memset(f->now, 0xff, from->n_ranks * sizeof *f->now);
    memset(f->forward, 0xff, cells * sizeof *f->forward);
    return MS_OK;
}

static const ms_call *run_of(const ms_swap *w, uint32_t turn)
{
    return &w->from->calls[w->turns[turn].call];
}

/* Are they of one stage and micro-batch? */
static bool is_same(const ms_swap *w, uint32_t a, uint32_t b)
{
    return w->turns[a].first == w->turns[b].first &&
           run_of(w, a)->micro_batch == run_of(w, b)->micro_batch;
}

static bool goes_on(const ms_swap *w, uint32_t turn, const ms_call *call)
{
    const ms_swap_turn *now = &w->turns[turn];
    const ms_call *run = run_of(w, turn);
    return now->first <= call->unit && call->unit <= now->last &&
           run->micro_batch == call->micro_batch &&
           run->run.pass == call->run.pass && run->run.half == call->run.half;
}

static ms_err add_turn(finder *f, const ms_call *call)
{
    ms_swap *w = f->swap;
    const ms_program *from = w->from;
    ms_turn deed = ms_schedule_turn_of(from, call);
    bool forward = deed.kind == MS_TURN_FORWARD;
    ms_stage stage = {.last = w->context->graph->n_units - 1};
    uint32_t *ran =
        &f->forward[deed.stage * from->n_micro_batches + deed.micro_batch];
    w->turns = ms_arena_grow(w->arena, w->turns, &f->turns_capacity,
                             w->n_turns + 1, sizeof *w->turns);
    if (w->turns == NULL)
        return ms_fail_nomem(w->fault);
    if (from->n_stages > 0)
        stage = from->stages[deed.stage];
    f->now[call->rank] = w->n_turns;
    if (forward)
        *ran = w->n_turns;
    w->turns[w->n_turns++] =
        (ms_swap_turn){.call = (uint32_t)(call - from->calls),
                       .first = stage.first,
                       .last = stage.last,
                       .next = MS_NONE,
                       .forward = forward ? MS_NONE : *ran,
                       .second = deed.kind == MS_TURN_GRAD_WEIGHT};
    return MS_OK;
}

static ms_err add_run(finder *f, const ms_call *call)
{
    ms_swap *w = f->swap;
    uint32_t now = f->now[call->rank];
    if (now == MS_NONE || !goes_on(w, now, call))
        MS_TRY(add_turn(f, call));
    w->turn_of[call - w->from->calls] = f->now[call->rank];
    return MS_OK;
}

/* From the last turn on: which backward comes next on its rank. */
static void find_next(finder *f)
{
    ms_swap *w = f->swap;
    memset(f->now, 0xff, w->from->n_ranks * sizeof *f->now);
    for (uint32_t t = w->n_turns; t-- > 0;) {
        ms_swap_turn *turn = &w->turns[t];
        uint32_t *next = &f->now[run_of(w, t)->rank];
        bool forward = ms_swap_is_forward(run_of(w, t));
        turn->next = *next;
        turn->waits = forward && *next != MS_NONE && !is_same(w, *next, t);
        if (!forward && !turn->second)
            *next = t;
    }
}

ms_err ms_swapturns_find(ms_swap *w)
{
    finder f = {.swap = w};
    MS_TRY(take_columns(&f));
    for (uint32_t i = 0; i < w->from->n_calls; i++)
        if (w->from->calls[i].verb == MS_RUN)
            MS_TRY(add_run(&f, &w->from->calls[i]));
    find_next(&f);
    return MS_OK;
}

ms_swap_turn *ms_swapturns_of(ms_swap *w, const ms_call *run)
{
    return &w->turns[w->turn_of[run - w->from->calls]];
}
