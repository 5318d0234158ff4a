/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/pieces/choicecalls.h"

#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

static bool is_of(const ms_call *call, uint8_t verb, bool forward)
{
    return call->verb == verb &&
           (verb != MS_RUN || (call->run.pass == MS_FORWARD) == forward);
}

/* Behind a unit's run come the holds of what it made, or the drops and the
 * random state that ends. */
static bool belongs(const ms_call *call, bool forward)
{
    if (forward)
        return call->verb == MS_HOLD;
    return call->verb == MS_DROP_SET ||
           (call->verb == MS_STATE && call->state.to == MS_GONE);
}

static void find_ends(ms_choicecalls *calls)
{
    const ms_program *program = &calls->program;
    const ms_graph *graph = calls->walk->learner.graph;
    uint32_t n = program->n_calls, i = 0;
    while (i < n) {
        const ms_call *call = &program->calls[i++];
        bool forward = is_of(call, MS_RUN, true);
        if (call->verb == MS_MARK && call->mark.mark == MS_MARK_AFTER_BACKWARD)
            calls->tail = i;
        if (call->verb != MS_RUN)
            continue;
        while (i < n && belongs(&program->calls[i], forward))
            i++;
        (forward ? calls->forward_end : calls->backward_end)[call->unit] = i;
    }
    calls->last = n - 1; /* the mark of the end */
    if (graph->keep_to_step && graph->n_kept > 0)
        calls->last--;
    if (graph->step_first < graph->n_ops)
        calls->last--;
}

static ms_err write_program(ms_choicecalls *calls, ms_fault *fault)
{
    const ms_graph *graph = calls->walk->learner.graph;
    ms_keep keep;
    if (calls->written)
        return MS_OK;
    ms_arena_reset(&calls->trial);
    MS_TRY(ms_program_keep_all(graph, &calls->trial, &keep, fault));
    ms_choice_keep(graph, calls->choice, &keep);
    MS_TRY(ms_defaultprogram_alone(graph, &keep, 1, &calls->trial,
                                   &calls->program, fault));
    find_ends(calls);
    calls->written = true;
    return ms_callwalk_begin(calls->walk, &calls->program, fault);
}

ms_err ms_choicecalls_find(ms_choicecalls *calls, ms_choice_turn turn,
                           uint32_t first, uint32_t end, uint32_t *from,
                           uint32_t *until, ms_fault *fault)
{
    uint32_t n_units = calls->walk->learner.graph->n_units;
    MS_TRY(write_program(calls, fault));
    switch (turn) {
    case MS_CHOICE_FORWARD:
        *from = first > 0 ? calls->forward_end[first - 1] : 0;
        *until = calls->forward_end[end - 1];
        break;
    case MS_CHOICE_BACKWARD:
        *from = end < n_units ? calls->backward_end[end]
                              : calls->forward_end[n_units - 1];
        *until = calls->backward_end[first];
        break;
    case MS_CHOICE_TAIL:
        *from = calls->tail;
        *until = calls->last;
        break;
    case MS_CHOICE_LAST:
    case MS_N_CHOICE_TURNS:
        *from = calls->last;
        *until = calls->program.n_calls;
        break;
    }
    return MS_OK;
}

ms_err ms_choicecalls_open(ms_choicecalls *calls, ms_callwalk *walk,
                           ms_arena *keep, ms_fault *fault)
{
    uint32_t n_units = walk->learner.graph->n_units;
    *calls = (ms_choicecalls){.walk = walk};
    calls->forward_end = ms_arena_take(keep, n_units, sizeof(uint32_t));
    calls->backward_end = ms_arena_take(keep, n_units, sizeof(uint32_t));
    return calls->forward_end && calls->backward_end ? MS_OK
                                                     : ms_fail_nomem(fault);
}

void ms_choicecalls_begin(ms_choicecalls *calls, const ms_fold_choice *choice)
{
    calls->choice = choice;
    calls->written = false;
}

void ms_choicecalls_close(ms_choicecalls *calls)
{
    ms_arena_free(&calls->trial);
}
