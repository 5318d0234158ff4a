/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/normmeeting.h"
#include "sim/graph.h"
#include "sim/program.h"

#define NORM_BYTES 4u
#define NORM_TAG (UINT32_MAX - 1u) /* of no message of a schedule */

typedef struct writer {
    const ms_graph *graph;
    ms_arena *arena;
    const ms_program *old;
    ms_program made;
    ms_fault *fault;
    uint32_t buffer, tag;
    bool chained; /* postvalidate */
} writer;

static ms_err add(writer *w, const ms_call *call)
{
    return ms_program_add(&w->made, *call, w->arena, w->fault);
}

static ms_err add_buffer(writer *w, ms_verb verb, const ms_call *like)
{
    ms_call call = ms_program_call_like(verb, like);
    call.buffer = w->buffer;
    return add(w, &call);
}

static ms_err add_message(writer *w, ms_verb verb, const ms_call *like,
                          uint16_t peer)
{
    ms_call call = ms_program_call_like(verb, like);
    call.buffer = w->buffer;
    call.message = (ms_message_call){
        .peer = peer, .group = MS_GROUP_PIPELINE, .tag = NORM_TAG};
    return add(w, &call);
}

static ms_err meet(writer *w, const ms_call *step)
{
    ms_call call = ms_program_reduce(
        step, MS_NOTHING,
        (ms_reduce_call){.group = MS_GROUP_PIPELINE, .tag = w->tag});
    call.buffer = w->buffer;
    MS_TRY(add(w, &call));
    return add_buffer(w, MS_SYNC, step);
}

static ms_err hand_on(writer *w, const ms_call *step)
{
    uint16_t rank = step->rank;
    if (rank > 0)
        MS_TRY(add_buffer(w, MS_SYNC, step));
    if (rank + 1u == w->old->n_ranks)
        return MS_OK;
    return add_message(w, MS_SEND_SET, step, (uint16_t)(rank + 1));
}

static ms_err write_step(writer *w, const ms_call *step)
{
    ms_call norms = *step, behind = *step;
    norms.step.norms = true;
    behind.step.behind = true;
    MS_TRY(add_buffer(w, MS_TAKE, step));
    if (w->chained && step->rank > 0)
        MS_TRY(add_message(w, MS_RECV_SET, step, (uint16_t)(step->rank - 1)));
    MS_TRY(add(w, &norms));
    MS_TRY(w->chained ? hand_on(w, step) : meet(w, step));
    MS_TRY(add(w, &behind));
    return add_buffer(w, MS_GIVE, step);
}

static bool is_step(const ms_call *call)
{
    return call->verb == MS_STEP_SET && call->set == MS_ALL &&
           call->step.part == MS_HERE;
}

static uint32_t next_tag(const ms_program *program)
{
    uint32_t tag = 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb == MS_REDUCE &&
            program->calls[i].reduce.tag > tag)
            tag = program->calls[i].reduce.tag;
    return tag + 1;
}

static ms_err write_all(writer *w)
{
    ms_buffer buffer = {.name = "norm of all gradients",
                        .bytes = NORM_BYTES,
                        .category = MS_TEMPORARIES,
                        .stream = MS_STREAM_COMPUTE};
    w->tag = next_tag(w->old);
    MS_TRY(ms_program_fork(w->old, w->arena, &w->made, w->fault));
    MS_TRY(ms_program_add_buffer(&w->made, buffer, w->arena, &w->buffer,
                                 w->fault));
    for (uint32_t i = 0; i < w->old->n_calls; i++) {
        const ms_call *call = &w->old->calls[i];
        MS_TRY(is_step(call) ? write_step(w, call) : add(w, call));
    }
    return MS_OK;
}

ms_err ms_normmeeting_write(const ms_policy_context *context,
                            ms_program *program, ms_fault *fault)
{
    const ms_policy_value *how =
        ms_policy_given(context->spec, "pipeline", "optimizer");
    const ms_graph *graph = context->graph;
    writer w = {.graph = graph,
                .arena = context->arena,
                .old = program,
                .fault = fault,
                .chained = how != NULL && how->number == MS_NORM_POSTVALIDATE};
    if (program->n_ranks < 2 || how == NULL)
        return MS_OK;
    if (ms_graph_norm_end(graph) == graph->step_all)
        return ms_fail(fault, MS_EUSAGE, "pipeline:optimizer",
                       "add --set training.clip_norm=1, or leave optimizer= "
                       "out",
                       "the stages have no norm to agree upon: this step does "
                       "not clip gradients, or clips them elsewhere");
    MS_TRY(write_all(&w));
    w.made.overlaps = w.chained;
    *program = w.made;
    return MS_OK;
}
