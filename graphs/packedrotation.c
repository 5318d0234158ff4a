/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotation of samples packed into one sequence, where a token's place in its
 * sample is no place in the sequence: pytorch/torchtune,
 * modules/position_embeddings.py, RotaryPositionalEmbeddings.forward with
 * input_pos.  The rows of the table that the tokens need are copied, once for q
 * and once for k, and saved: 8 bytes per token and pair of channels. */
#include "graphs/layers.h"

#include <string.h>

static uint32_t find_shared(const ms_trace *trace, const char *role,
                            int64_t columns)
{
    for (const ms_shared_buffer *b = trace->shared; b; b = b->next)
        if (strcmp(b->role, role) == 0 &&
            ms_trace_at(trace, b->tensor)->size[1] == columns)
            return b->tensor;
    return MS_NONE;
}

static void remember(ms_trace *trace, const char *role, uint32_t tensor)
{
    ms_shared_buffer *item = ms_arena_take(trace->scratch, 1, sizeof *item);

    if (!item && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    if (trace->err)
        return;
    *item = (ms_shared_buffer){role, tensor, trace->shared};
    trace->shared = item;
}

/* Cosines and sines of all positions, in fp32. */
static uint32_t table_of(ms_trace *trace, int64_t sequence, int64_t dim)
{
    uint32_t table = find_shared(trace, "rope_cache", dim);
    int64_t longest = (int64_t)trace->model->max_sequence;
    int64_t dims[2] = {longest == 0 ? sequence : longest, dim};

    if (table == MS_NONE) {
        table = ms_trace_buffer(trace, "rope_cache", MS_FLOAT32, 2, dims);
        remember(trace, "rope_cache", table);
    }
    return table;
}

static uint32_t positions_of(ms_trace *trace, int64_t batch, int64_t sequence)
{
    uint32_t positions = find_shared(trace, "input_pos", sequence);
    int64_t dims[2] = {batch, sequence};

    if (positions == MS_NONE) {
        positions = ms_trace_input(trace, "input_pos", MS_INT64, 2, dims);
        remember(trace, "input_pos", positions);
    }
    return positions;
}

/* view_as_real(view_as_complex(x.float()) * cache[input_pos]).type_as(x) */
static uint32_t rotate(ms_trace *trace, uint32_t x, uint32_t table,
                       uint32_t positions)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor in = *ms_trace_at(trace, x);
    int64_t dims[4] = {in.size[0], 1, in.size[2], in.size[3]};
    ms_trace_begin(trace, "aten::index");
    ms_trace_read(trace, positions);
    ms_trace_read_storage(trace, ms_trace_at(trace, table)->storage,
                          4 * (uint64_t)(dims[0] * dims[2] * dims[3]));
    uint32_t rows = ms_trace_make(trace, "rope_cache", MS_FLOAT32, 4, dims);
    ms_trace_end(trace, 0, false);
    uint32_t wide = ms_pointwise_cast(trace, x, MS_FLOAT32);
    uint32_t turned = ms_pointwise_mul(trace, wide, rows);
    ms_trace_drop(trace, wide);
    ms_trace_drop(trace, rows);
    uint32_t y = ms_pointwise_cast(trace, turned, in.dtype);
    ms_trace_drop(trace, turned);
    return y;
}

void ms_packedrotation_run(ms_trace *trace, int64_t dim, uint32_t qk[2])
{
    if (trace->err)
        return;
    ms_tensor q = *ms_trace_at(trace, qk[0]);
    uint32_t table = table_of(trace, q.size[2], dim);
    uint32_t positions = positions_of(trace, q.size[0], q.size[2]);

    for (int i = 0; i < 2; i++)
        qk[i] = ms_trace_rebind(trace, qk[i],
                                rotate(trace, qk[i], table, positions));
}
