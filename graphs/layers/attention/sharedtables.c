/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* The number of positions for which tables are made; a longer sequence makes
 * them longer. */
int64_t ms_sharedtables_longest(const ms_step_settings *settings,
                                int64_t sequence)
{
    int64_t longest = (int64_t)settings->model->max_sequence;
    bool at_hand = settings->model->fresh_tables || longest < sequence;
    return at_hand ? sequence : longest;
}

/* A buffer of the model, which the first layer that asks for it makes. */
uint32_t ms_sharedtables_buffer(ms_trace *trace, const char *role,
                                uint8_t dtype, const int64_t *dims)
{
    for (const ms_shared_buffer *b = trace->shared; b; b = b->next) {
        const ms_tensor *made = ms_trace_at(trace, b->tensor);
        if (strcmp(b->role, role) == 0 && made->size[0] == dims[0] &&
            made->size[1] == dims[1] && made->dtype == dtype)
            return b->tensor;
    }
    uint32_t t = ms_trace_buffer(trace, role, dtype, 2, dims);
    ms_shared_buffer *item = ms_arena_take(trace->scratch, 1, sizeof *item);
    if (!item && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    if (trace->err)
        return MS_NONE;
    *item = (ms_shared_buffer){role, t, trace->shared};
    trace->shared = item;
    return t;
}

uint32_t ms_sharedtables_rows(ms_trace *trace, const char *role,
                              int64_t sequence, int64_t columns)
{
    int64_t longest = ms_sharedtables_longest(trace->settings, sequence);
    bool square = columns == 0;
    int64_t dims[2] = {longest, square ? longest : columns};
    uint32_t whole =
        ms_sharedtables_buffer(trace, role, trace->weight_dtype, dims);
    uint32_t rows = ms_view_slice(trace, whole, 0, sequence);
    if (!square)
        return rows;
    uint32_t y = ms_view_slice(trace, rows, 1, sequence);
    ms_trace_drop(trace, rows);
    return y;
}
