/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/stageinputs.h"
#include "sim/graph.h"

#include <string.h>

/* What comes into the stage by forwards, or leaves it by backwards. */
static uint64_t sum(const ms_graph *graph, const ms_handovers *h,
                    const ms_program *program, uint32_t stage, bool gradients)
{
    const uint32_t *at = gradients ? h->out_at : h->in_at;
    const uint32_t *list = gradients ? h->out : h->in;
    uint64_t bytes = 0;
    for (uint32_t i = at[stage]; i < at[stage + 1]; i++) {
        const ms_handover *it = &h->all[list[i]];
        if (it->backward == gradients && !it->local)
            bytes += ms_handover_bytes(graph, program, it);
    }
    return bytes;
}

static ms_err add_buffer(ms_program *program, ms_arena *arena, uint64_t bytes,
                         bool gradient, uint32_t *buffer, ms_fault *fault)
{
    ms_buffer value = {.name = gradient ? "input_tensor.grad" : "input_tensor",
                       .bytes = bytes,
                       .category = gradient ? MS_TEMPORARIES : MS_ACTIVATIONS,
                       .pool = MS_DEVICE_POOL,
                       .stream = MS_STREAM_COMPUTE};
    *buffer = MS_NONE;
    if (bytes == 0)
        return MS_OK;
    return ms_program_add_buffer(program, value, arena, buffer, fault);
}

ms_err ms_stageinputs_find(const ms_graph *graph, const ms_schedule *schedule,
                           const ms_handovers *handovers, ms_arena *arena,
                           ms_program *program, ms_stageinputs *inputs,
                           ms_fault *fault)
{
    uint32_t n = schedule->n_stages;
    *inputs = (ms_stageinputs){0};
    if (schedule->keeps.inputs == MS_INPUTS_GO)
        return MS_OK;
    inputs->buffer = ms_arena_take_raw(arena, n, sizeof *inputs->buffer);
    inputs->first = ms_arena_take_raw(arena, n, sizeof *inputs->first);
    inputs->last = ms_arena_take_raw(arena, n, sizeof *inputs->last);
    if (!inputs->buffer || !inputs->first || !inputs->last)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < n; k++)
        for (int which = 0; which < MS_N_STAGEINPUTS; which++) {
            bool gradient = which == MS_STAGEINPUTS_GRADIENT;
            MS_TRY(add_buffer(program, arena,
                              sum(graph, handovers, program, k, gradient),
                              gradient, &inputs->buffer[k][which], fault));
        }
    return MS_OK;
}

void ms_stageinputs_open(const ms_schedule *schedule, uint16_t rank,
                         ms_stageinputs *inputs)
{
    if (inputs->buffer == NULL)
        return;
    memset(inputs->first, 0xff, schedule->n_stages * sizeof *inputs->first);
    memset(inputs->last, 0xff, schedule->n_stages * sizeof *inputs->last);
    for (uint32_t i = schedule->turn_at[rank]; i < schedule->turn_at[rank + 1];
         i++) {
        const ms_turn *turn = &schedule->turns[i];
        if (turn->kind == MS_TURN_FORWARD &&
            inputs->first[turn->stage] == MS_NONE)
            inputs->first[turn->stage] = i;
        if (turn->kind == MS_TURN_BACKWARD || turn->kind == MS_TURN_GRAD_INPUT)
            inputs->last[turn->stage] = i;
    }
}

void ms_stageinputs_write(const ms_stageinputs *inputs, uint16_t rank,
                          uint32_t stage, ms_verb verb, ms_program *program)
{
    for (int which = 0; which < MS_N_STAGEINPUTS; which++) {
        ms_call call = ms_program_call(verb);
        call.buffer = inputs->buffer[stage][which];
        call.rank = rank;
        if (call.buffer != MS_NONE)
            program->calls[program->n_calls++] = call;
    }
}
