/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/offloadcalls.h"
#include "policies/share/sharedstates.h"
#include "policies/share/zenflow.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/shape.h"

#define IN_FLIGHT 2u /* sets of gradients that leave at a time */

typedef struct writer {
    const ms_policy_context *context;
    const ms_offloadcalls *how;
    ms_program *program; /* the new one */
    const ms_program *old;
    ms_fault *fault;
    bool parameters, gradients, disk_parameters;
    uint8_t gradients_to;        /* ms_place */
    uint32_t leaving[IN_FLIGHT]; /* sets of gradients, the last ones to leave */
    uint32_t n_leaving;
    uint32_t *gathers, n_gathers;  /* calls of old, in order */
    uint32_t next_read, next_copy; /* of gathers: not read, copied yet */
    ms_zenflow zenflow;            /* with topk_ratio */
} writer;

static ms_err move(writer *w, const ms_call *like, uint32_t set,
                   ms_move_call how)
{
    how.pageable |= w->context->shape->offload.pageable;
    return ms_program_add(w->program, ms_program_move(like, set, how),
                          w->context->arena, w->fault);
}

/* Before gather number g: what is read and copied ahead of it. */
static ms_err run_ahead(writer *w, uint32_t g, const ms_call *now)
{
    uint32_t copies = g + w->how->copy_ahead;
    uint32_t reads = copies + w->how->read_ahead;
    for (; w->disk_parameters && w->next_read <= reads &&
           w->next_read < w->n_gathers;
         w->next_read++)
        MS_TRY(move(w, now, w->old->calls[w->gathers[w->next_read]].set,
                    (ms_move_call){.to = MS_HOST}));
    for (; w->next_copy <= copies && w->next_copy < w->n_gathers;
         w->next_copy++)
        MS_TRY(move(w, now, w->old->calls[w->gathers[w->next_copy]].set,
                    (ms_move_call){.to = MS_HERE}));
    return MS_OK;
}

/* The host waits while so many sets of gradients are on their way
 * (DeepSpeed's stage 3 allows two reductions in flight). */
static ms_err limit(writer *w, const ms_call *now)
{
    uint32_t *oldest = &w->leaving[w->n_leaving++ % IN_FLIGHT];
    uint32_t set = w->n_leaving > IN_FLIGHT ? *oldest : MS_NOTHING;
    *oldest = now->set;
    if (set == MS_NOTHING)
        return MS_OK;
    ms_call call = ms_program_call_like(MS_SYNC, now);
    call.set = set;
    return ms_program_add(w->program, call, w->context->arena, w->fault);
}

/* DeepSpeed's gradients are summed on the device in their own format, which
 * goes to the host and back; the last sum goes as fp32 (stage_1_and_2.py,
 * async_accumulate_grad_in_cpu_via_gpu,
 * async_inplace_copy_grad_to_fp32_buffer_from_gpu; stage3.py, partition_grads).
 * Where ZenFlow's update runs apart that is to memory which is not pinned. */
static ms_move_call leaving(const writer *w, const ms_call *call)
{
    const ms_offload *offload = &w->context->shape->offload;
    bool last = call->micro_batch + 1 == w->old->n_micro_batches;
    ms_move_call how = {.to = w->gradients_to};
    if (offload->engine == MS_ENGINE_DEEPSPEED) {
        how.as_is = !last;
        how.pageable = last && ms_offload_is_apart(offload);
    } else
        how.adds = call->micro_batch > 0;
    return how;
}

/* A reduced gradient leaves; later micro-batches are added to it: by the host,
 * or, as DeepSpeed has it, on the device. */
static ms_err reduce(writer *w, const ms_call *call, uint32_t *i)
{
    const ms_call *next = &w->old->calls[*i + 1];
    const ms_offload *offload = &w->context->shape->offload;
    if (offload->engine != MS_ENGINE_TORCHAO) /* its hooks wait for nothing */
        MS_TRY(limit(w, call));
    if (offload->engine == MS_ENGINE_DEEPSPEED && call->micro_batch > 0)
        MS_TRY(move(w, call, call->set,
                    (ms_move_call){.to = MS_HERE, .adds = true}));
    MS_TRY(ms_program_add(w->program, *call, w->context->arena, w->fault));
    if (*i + 1 < w->old->n_calls && next->verb == MS_GIVE) { /* read by it */
        MS_TRY(ms_program_add(w->program, *next, w->context->arena, w->fault));
        ++*i;
    }
    if (offload->selected > 0)
        MS_TRY(ms_zenflow_reduced(&w->zenflow, call));
    return move(w, call, call->set, leaving(w, call));
}

static ms_err step(writer *w, const ms_call *call, uint8_t place)
{
    ms_call part = *call;
    part.step.part = place;
    return ms_program_add(w->program, part, w->context->arena, w->fault);
}

/* An all-to-all whose result lies in a buffer: the sum comes later. */
static bool is_hop(const ms_call *call)
{
    return call->reduce.exchange && call->reduce.to == MS_HERE;
}

static ms_err open(writer *w)
{
    const ms_offload *offload = &w->context->shape->offload;
    if (offload->selected > 0)
        MS_TRY(ms_zenflow_open(&w->zenflow));
    /* The host's part of the step before begins with this step, and goes on
     * beside its forward and backward. */
    for (uint32_t i = 0; i < w->old->n_calls; i++)
        if (offload->delayed && w->old->calls[i].verb == MS_STEP_SET)
            MS_TRY(step(w, &w->old->calls[i], MS_HOST));
    return MS_OK;
}

static ms_err write_call(writer *w, uint32_t *i, bool *stepped)
{
    const ms_call *call = &w->old->calls[*i];
    const ms_offload *offload = &w->context->shape->offload;
    if (w->gradients && call->verb == MS_REDUCE && !is_hop(call))
        return reduce(w, call, i);
    *stepped |= call->verb == MS_STEP_SET && call->set == MS_ALL;
    if (offload->delayed && call->verb == MS_STEP_SET)
        return step(w, call, MS_PENDING);
    MS_TRY(ms_program_add(w->program, *call, w->context->arena, w->fault));
    if (offload->selected > 0 && *stepped && call->verb == MS_GATHER)
        return ms_zenflow_gathered(&w->zenflow, call,
                                   ms_offload_is_apart(offload));
    return MS_OK;
}

static ms_err write_calls(writer *w)
{
    uint32_t g = 0;
    bool stepped = false;
    MS_TRY(open(w));
    for (uint32_t i = 0; i < w->old->n_calls; i++) {
        if (w->parameters && w->old->calls[i].verb == MS_GATHER)
            MS_TRY(run_ahead(w, g++, &w->old->calls[i]));
        MS_TRY(write_call(w, &i, &stepped));
    }
    return MS_OK;
}

static ms_err find_gathers(writer *w)
{
    w->gathers = ms_arena_take_raw(w->context->arena, w->old->n_calls,
                                   sizeof *w->gathers);
    if (w->gathers == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = 0; i < w->old->n_calls; i++)
        if (w->old->calls[i].verb == MS_GATHER)
            w->gathers[w->n_gathers++] = i;
    return MS_OK;
}

static bool has_reduce(const ms_program *program)
{
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb == MS_REDUCE)
            return true;
    return false;
}

ms_err ms_offloadcalls_write(const ms_policy_context *context,
                             const ms_offloadcalls *how, ms_program *program,
                             ms_fault *fault)
{
    const ms_offload *offload = &context->shape->offload;
    writer w = {.context = context,
                .how = how,
                .old = program,
                .fault = fault,
                .parameters = offload->parameters != MS_DEVICE_POOL,
                .disk_parameters = offload->parameters == MS_NVME_POOL,
                .gradients = offload->gradients != MS_DEVICE_POOL,
                .gradients_to =
                    offload->gradients == MS_NVME_POOL ? MS_NVME : MS_HOST};
    /* A single rank has the same calls; its collectives take no time. */
    if (!has_reduce(program)) {
        ms_sharedstates alone = {.shared = w.parameters ? MS_SHARED_PARAMETERS
                                                        : MS_SHARED_GRADIENTS,
                                 .units_ahead = how->units_ahead};
        MS_TRY(ms_sharedstates_write(context, &alone, program, fault));
    }
    ms_program made;
    w.program = &made;
    MS_TRY(ms_program_fork(program, context->arena, &made, fault));
    w.zenflow =
        (ms_zenflow){.context = context, .program = &made, .fault = fault};
    MS_TRY(find_gathers(&w));
    MS_TRY(write_calls(&w));
    *program = made;
    return MS_OK;
}
