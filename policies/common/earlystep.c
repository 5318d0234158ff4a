/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/earlystep.h"
#include "sim/graph.h"
#include "sim/program.h"

typedef struct writer {
    const ms_graph *graph;
    ms_arena *arena;
    ms_program *program; /* the new one */
    ms_fault *fault;
    uint32_t *ready; /* per persistent storage: the call, or MS_NONE */
    uint32_t *list;  /* as long */
} writer;

static bool is_due(const writer *w, uint32_t s)
{
    return s < w->graph->n_persistent &&
           w->graph->due_end[s] > w->graph->due_first[s];
}

/* An all-to-all whose result lies in a buffer: the sum comes later. */
static bool reduces(const ms_call *call)
{
    const ms_reduce_call *how = &call->reduce;
    return call->verb == MS_REDUCE && !(how->exchange && how->to == MS_HERE) &&
           call->set != MS_ALL && call->set != MS_NOTHING;
}

static void find_ready(writer *w, const ms_program *old)
{
    for (uint32_t s = 0; s < w->graph->n_persistent; s++)
        w->ready[s] = MS_NONE;
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i];
        if (!reduces(call))
            continue;
        for (uint32_t k = old->set_at[call->set];
             k < old->set_at[call->set + 1]; k++)
            if (is_due(w, old->set_item[k]))
                w->ready[old->set_item[k]] = i;
    }
}

static ms_err step(writer *w, const ms_call *like, uint32_t n)
{
    ms_call call = ms_program_call_like(MS_STEP_SET, like);
    if (n == 0)
        return MS_OK;
    MS_TRY(ms_program_add_set(w->program, w->list, n, w->arena, &call.set,
                              w->fault));
    return ms_program_add(w->program, call, w->arena, w->fault);
}

static ms_err after(writer *w, const ms_program *old, uint32_t i)
{
    const ms_call *call = &old->calls[i];
    uint32_t n = 0;
    for (uint32_t k = old->set_at[call->set]; k < old->set_at[call->set + 1];
         k++) {
        uint32_t s = old->set_item[k];
        if (is_due(w, s) && w->ready[s] == i)
            w->list[n++] = s;
    }
    return step(w, call, n);
}

/* The gradients that no call has reduced. */
static ms_err before_step(writer *w, const ms_call *call)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < w->graph->n_persistent; s++)
        if (is_due(w, s) && w->ready[s] == MS_NONE)
            w->list[n++] = s;
    return step(w, call, n);
}

ms_err ms_earlystep_write(const ms_policy_context *context, ms_program *program,
                          ms_fault *fault)
{
    writer w = {
        .graph = context->graph, .arena = context->arena, .fault = fault};
    uint32_t n = context->graph->n_persistent;
    ms_program made, old = *program;
    if (context->graph->due_first == NULL)
        return MS_OK;
    w.program = &made;
    w.ready = ms_arena_take_raw(w.arena, n, sizeof *w.ready);
    w.list = ms_arena_take_raw(w.arena, n, sizeof *w.list);
    if (!w.ready || !w.list)
        return ms_fail_nomem(fault);
    MS_TRY(ms_program_fork(program, w.arena, &made, fault));
    find_ready(&w, &old);
    for (uint32_t i = 0; i < old.n_calls; i++) {
        const ms_call *call = &old.calls[i];
        if (call->verb == MS_STEP_SET && call->set == MS_ALL &&
            call->step.part != MS_HOST)
            MS_TRY(before_step(&w, call));
        MS_TRY(ms_program_add(&made, *call, w.arena, fault));
        bool gives = i + 1 < old.n_calls && call[1].verb == MS_GIVE;
        if (!reduces(call))
            continue;
        if (gives) /* what the step has read ends first */
            MS_TRY(ms_program_add(&made, old.calls[i + 1], w.arena, fault));
        MS_TRY(after(&w, &old, i));
        i += gives;
    }
    *program = made;
    return MS_OK;
}
