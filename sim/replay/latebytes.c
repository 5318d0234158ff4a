/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/latebytes.h"

ms_err ms_latebytes_open(ms_latebytes *late, uint64_t start_bytes,
                         uint32_t n_frees, ms_arena *arena, ms_fault *fault)
{
    *late = (ms_latebytes){.now_bytes = start_bytes, .most_bytes = start_bytes};
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        late->first[s] = MS_NONE;
    late->held = ms_arena_take_raw(arena, n_frees, sizeof *late->held);
    return late->held != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* It goes to the stream that holds it up longest: those that come later
 * complete later. */
static void hold(ms_latebytes *late, const ms_latebytes_free *it)
{
    uint32_t last = (uint32_t)__builtin_ctz(it->streams);
    for (uint32_t left = it->streams & (it->streams - 1u); left != 0;
         left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        if (late->tail_ns[s] > late->tail_ns[last])
            last = s;
    }
    uint32_t i = late->n_held++;
    late->held[i] =
        (struct ms_latebytes_held){late->tail_ns[last], it->bytes, MS_NONE};
    if (late->first[last] == MS_NONE)
        late->first[last] = i;
    else
        late->held[late->last[last]].next = i;
    late->last[last] = i;
}

static void complete(ms_latebytes *late, uint64_t host_ns)
{
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        while (late->first[s] != MS_NONE &&
               late->held[late->first[s]].passed_ns <= host_ns) {
            late->now_bytes -= late->held[late->first[s]].bytes;
            late->first[s] = late->held[late->first[s]].next;
        }
}

void ms_latebytes_run(ms_latebytes *late, const ms_latebytes_op *ops,
                      uint32_t n, const ms_latebytes_free *frees,
                      uint64_t host_later_ns, uint64_t later_ns)
{
    for (const ms_latebytes_op *op = ops; op < ops + n; op++) {
        if (op->takes)
            complete(late, op->host_ns + host_later_ns);
        late->now_bytes += op->taken_bytes;
        if (late->now_bytes > late->most_bytes)
            late->most_bytes = late->now_bytes;
        late->tail_ns[op->stream] = op->end_ns + later_ns;
        late->now_bytes -= op->given_bytes;
        for (uint32_t i = op->late_at; i < op[1].late_at; i++)
            hold(late, &frees[i]);
    }
}
