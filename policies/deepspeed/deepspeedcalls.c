/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The calls, buffers and events in which the programs of DeepSpeed's stages are
 * written. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/names.h"
#include "sim/program.h"

ms_err ms_deepspeedcalls_emit(ms_deepspeed_writer *w, ms_call call,
                              uint32_t buffer)
{
    if (buffer != MS_NONE)
        call.buffer = w->buffers[buffer].id;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

ms_err ms_deepspeedcalls_wait(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t set, uint32_t buffer)
{
    return ms_deepspeedcalls_emit(w, ms_program_wait(like, set), buffer);
}

ms_err ms_deepspeedcalls_move(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t set, uint32_t buffer, ms_move_call how)
{
    return ms_deepspeedcalls_emit(w, ms_program_move(like, set, how), buffer);
}

ms_err ms_deepspeedcalls_gather(ms_deepspeed_writer *w, const ms_call *like,
                                uint32_t set, uint32_t buffer,
                                ms_gather_call how)
{
    return ms_deepspeedcalls_emit(w, ms_program_gather(like, set, how), buffer);
}

ms_err ms_deepspeedcalls_reduce(ms_deepspeed_writer *w, const ms_call *like,
                                uint32_t set, uint32_t buffer,
                                ms_reduce_call how)
{
    return ms_deepspeedcalls_emit(w, ms_program_reduce(like, set, how), buffer);
}

static ms_err new_buffer(ms_deepspeed_writer *w, ms_buffer value, uint32_t *row)
{
    ms_deepspeed_buffer *buffers =
        ms_arena_grow(w->arena, w->buffers, &w->buffers_capacity,
                      w->n_buffers + 1, sizeof *buffers);
    if (buffers == NULL)
        return ms_fail_nomem(w->fault);
    w->buffers = buffers;
    *row = w->n_buffers++;
    buffers[*row] =
        (ms_deepspeed_buffer){.name = value.name, .bytes = value.bytes};
    return ms_program_add_buffer(w->program, value, w->arena, &buffers[*row].id,
                                 w->fault);
}

ms_err ms_deepspeedcalls_buffer_of(ms_deepspeed_writer *w, ms_buffer value,
                                   uint32_t *row)
{
    uint32_t i = 0;
    while (i < w->n_buffers &&
           (w->buffers[i].taken || w->buffers[i].name != value.name ||
            w->buffers[i].bytes != value.bytes))
        i++;
    if (i == w->n_buffers)
        MS_TRY(new_buffer(w, value, &i));
    w->buffers[i].taken = true;
    *row = i;
    return MS_OK;
}

ms_err ms_deepspeedcalls_take(ms_deepspeed_writer *w, const ms_call *like,
                              ms_buffer value, uint32_t *row)
{
    MS_TRY(ms_deepspeedcalls_buffer_of(w, value, row));
    return ms_deepspeedcalls_emit(w, ms_program_call_like(MS_TAKE, like), *row);
}

ms_err ms_deepspeedcalls_give(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t row)
{
    w->buffers[row].taken = false;
    return ms_deepspeedcalls_emit(w, ms_program_call_like(MS_GIVE, like), row);
}

ms_err ms_deepspeedcalls_await(ms_deepspeed_writer *w, const ms_call *like,
                               ms_deepspeed_events *events)
{
    uint32_t oldest = events->buffer[0];
    if (events->n <= MS_DEEPSPEED_UNDER_WAY)
        return MS_OK;
    MS_TRY(
        ms_deepspeedcalls_emit(w, ms_program_call_like(MS_SYNC, like), oldest));
    MS_TRY(ms_deepspeedcalls_give(w, like, oldest));
    events->n--;
    for (uint32_t i = 0; i < events->n; i++)
        events->buffer[i] = events->buffer[i + 1];
    return MS_OK;
}

ms_err ms_deepspeedcalls_record(ms_deepspeed_writer *w, const ms_call *like,
                                ms_deepspeed_events *events)
{
    return ms_deepspeedcalls_take(
        w, like,
        (ms_buffer){.name = events->name,
                    .category = MS_COMMUNICATION,
                    .stream =
                        w->how->overlap ? MS_STREAM_COMM : MS_STREAM_COMPUTE},
        &events->buffer[events->n++]);
}

ms_err ms_deepspeedcalls_add_set(ms_deepspeed_writer *w, uint32_t n,
                                 uint32_t *set)
{
    return ms_program_add_set(w->program, w->list, n, w->arena, set, w->fault);
}

bool ms_deepspeedcalls_ends(const ms_call *call)
{
    return (call->verb == MS_RUN && call->run.pass == MS_FORWARD) ||
           call->verb == MS_STEP_SET ||
           (call->verb == MS_MARK && call->mark.mark == MS_MARK_AFTER_BACKWARD);
}
