/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/calls/turnpairs.h"

#include "sim/names.h"
#include "sim/schedule/schedule.h"

static bool is_simple(const ms_call *call)
{
    return call->verb == MS_RUN || call->verb == MS_DROP_SET ||
           call->verb == MS_MARK ||
           (call->verb == MS_HOLD && !call->hold.again);
}

static bool is_of(const ms_program *program, const ms_call *call,
                  const ms_turn *turn)
{
    if (call->micro_batch != turn->micro_batch)
        return false;
    if (call->verb != MS_RUN)
        return true;
    ms_turn own = ms_schedule_turn_of(program, call);
    return own.stage == turn->stage && own.kind == turn->kind;
}

/* Other calls stand among those of the turn. */
#define NOT_SIMPLE (MS_NONE - 1u)

/* The call behind those of the turn, from its call i on. */
static uint32_t end_of(const ms_program *program, const uint32_t *next,
                       uint32_t i, const ms_turn *turn)
{
    for (; i != MS_NONE; i = next[i]) {
        const ms_call *call = &program->calls[i];
        if (call->verb == MS_SEND_SET || call->verb == MS_RECV_SET ||
            !is_of(program, call, turn))
            return i;
        if (!is_simple(call))
            return NOT_SIMPLE;
    }
    return MS_NONE;
}

bool ms_turnpairs_at(const ms_program *program, const uint32_t *next,
                     uint32_t i, ms_turnpair *pair)
{
    const ms_call *calls = program->calls;
    if (calls[i].verb != MS_RUN || !calls[i].run.side)
        return false;
    ms_turn turn = ms_schedule_turn_of(program, &calls[i]);
    uint32_t second = end_of(program, next, i, &turn), run = second;
    while (run < NOT_SIMPLE && calls[run].verb != MS_RUN)
        run = next[run];
    if (run >= NOT_SIMPLE || calls[run].run.half ||
        calls[run].run.pass == MS_FORWARD)
        return false;
    turn = ms_schedule_turn_of(program, &calls[run]);
    uint32_t end = end_of(program, next, second, &turn);
    *pair = (ms_turnpair){{i, second}, {second, end}};
    return end != NOT_SIMPLE;
}
