/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/latebytes.h"

ms_err ms_latebytes_open(ms_latebytes *late, uint64_t start_bytes,
                         uint32_t n_frees, ms_arena *arena, ms_fault *fault)
{
    *late = (ms_latebytes){.now_bytes = start_bytes,
                           .most_bytes = start_bytes,
                           .held.first_ns = UINT64_MAX};
    late->items = ms_arena_take_raw(arena, n_frees, sizeof *late->items);
    return late->items != NULL ? MS_OK : ms_fail_nomem(fault);
}

static void complete(ms_latebytes *late, uint64_t host_ns)
{
    while (late->held.first_ns <= host_ns)
        late->now_bytes -= ms_heldfrees_pop(&late->held, late->items);
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
        late->held.tail_ns[op->stream] = op->end_ns + later_ns;
        late->now_bytes -= op->given_bytes;
        for (uint32_t i = op->late_at; i < op[1].late_at; i++)
            ms_heldfrees_push(&late->held, late->items, late->n_items++,
                              frees[i].streams, frees[i].bytes);
    }
}
