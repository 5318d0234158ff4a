/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/aten/opcall.h"

#include "graphs/aten/reductions.h"
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>

#define PREFIX "aten::"
#define MOST_INPUTS 4u

void ms_opcall_like(const ms_trace *trace, ms_opcall_made *made,
                    uint32_t tensor)
{
    if (trace->err)
        return;
    const ms_tensor *like = ms_trace_at(trace, tensor);
    made->dtype = like->dtype;
    made->n_dims = like->n_dims;
    memcpy(made->size, like->size, sizeof made->size);
}

/* The rows by name: an index that the first call makes. */
static const ms_index *rows_of(ms_trace *trace)
{
    ms_index *rows = &trace->op_rows;
    if (rows->capacity == 0 && !trace->err)
        trace->err = ms_atentable_open(rows, trace->scratch, trace->fault);
    return rows;
}

/* NULL once the trace has failed. */
static const ms_aten_row *row_of(ms_trace *trace, const char *op,
                                 const char *overload)
{
    const ms_index *rows = rows_of(trace);
    const char *name = op + strlen(PREFIX);
    if (trace->err)
        return NULL;
    const ms_aten_row *row =
        ms_atentable_find(rows, name, overload ? overload : "default");
    if (!row && !overload)
        row = ms_atentable_find(rows, name, "Scalar");
    assert(row);
    return row;
}

uint32_t ms_opcall_outputs(ms_trace *trace, const ms_opcall *call)
{
    const ms_aten_row *row = row_of(trace, call->op, call->overload);
    return row && strstr(row->saves, "o1") ? 2 : 1;
}

const ms_rule *ms_opcall_rule(ms_trace *trace, const char *op)
{
    const ms_aten_row *row = row_of(trace, op, NULL);
    return row ? row->rule : NULL;
}

/* The op of the table as an exporter would write it. */
static ms_opnode node_of(const ms_trace *trace, const ms_opcall *call,
                         const char *op, const uint32_t *in, uint32_t n_in)
{
    return (ms_opnode){.op = op + strlen(PREFIX),
                       .overload = call->overload ? call->overload : "default",
                       .n_in = n_in,
                       .n_args = call->n_args,
                       .args = call->args,
                       .flops = call->flops * (double)ms_trace_elements(
                                                  ms_trace_at(trace, in[0]))};
}

/* TensorIterator lays its output out as the first input of its shape: the loop
 * goes from the last to the first, so that the first decides. */
static void lay_out(ms_trace *trace, uint32_t y, const uint32_t *in,
                    uint32_t n_in)
{
    for (uint32_t i = n_in; i-- > 0 && !trace->err;)
        ms_view_lay_out(trace, y, in[i]);
}

static void begin(ms_trace *trace, const char *op, const uint32_t *in,
                  uint32_t n_in)
{
    ms_trace_begin(trace, op);
    for (uint32_t i = 0; i < n_in; i++)
        ms_trace_read(trace, in[i]);
}

/* Floats come out as wide as the widest input, or as autocast has it. */
static uint8_t dtype_of(const ms_trace *trace, const ms_opcall *call,
                        const uint32_t *in, uint32_t n_in, uint32_t k)
{
    uint8_t dtype = call->made[k].dtype;
    if (!ms_dtypes_floats(dtype))
        return dtype;
    dtype = MS_BYTE;
    for (uint32_t i = 0; i < n_in; i++)
        dtype = ms_dtypes_wider(dtype, ms_trace_at(trace, in[i])->dtype);
    return ms_autocast_dtype(trace, call->op + strlen(PREFIX), dtype);
}

/* The op over what it reads. */
static uint32_t run(ms_trace *trace, const ms_opcall *call, const uint32_t *in,
                    uint32_t n_in)
{
    const ms_aten_row *row = row_of(trace, call->op, call->overload);
    uint32_t out[MS_OPCALL_OUTPUTS], listed[MOST_INPUTS + 1];
    if (!row)
        return MS_NONE;
    ms_opnode node = node_of(trace, call, call->op, in, n_in);
    ms_aten_call aten = {.node = &node,
                         .in = in,
                         .out = out,
                         .listed = listed,
                         .whole = MS_NONE,
                         .clone = MS_NONE};
    node.n_out = ms_opcall_outputs(trace, call);
    begin(trace, call->op, in, n_in);
    for (uint32_t k = 0; k < node.n_out; k++)
        out[k] = ms_trace_make(trace, k == 0 ? "out" : "indices",
                               dtype_of(trace, call, in, n_in, k),
                               call->made[k].n_dims, call->made[k].size);
    for (uint32_t k = 0; k < call->scratch && !trace->err; k++)
        ms_trace_drop(trace, ms_trace_make_like(trace, "scratch", in[0]));
    if (!trace->settings->cpu && !trace->err)
        ms_reductions_scratch(trace, &aten);
    ms_trace_end(trace, node.flops, row->matrix);
    lay_out(trace, out[0], in, n_in);
    if (!trace->err)
        ms_aten_record(trace, row, &aten);
    if (node.n_out > 1)
        ms_trace_drop(trace, out[1]);
    return out[0];
}

uint32_t ms_opcall_run(ms_trace *trace, const ms_opcall *call,
                       const uint32_t *in, uint32_t n_in)
{
    uint32_t read[MOST_INPUTS];
    assert(n_in <= MOST_INPUTS);
    ms_autocast_enter(trace, call->op + strlen(PREFIX), n_in, in, read);
    uint32_t y = run(trace, call, read, n_in);
    ms_autocast_exit(trace, n_in, read);
    return y;
}

uint32_t ms_opcall_like_run(ms_trace *trace, const char *op, const uint32_t *in,
                            uint32_t n_in)
{
    ms_opcall call = {.op = op, .flops = 1};
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++)
        ms_opcall_like(trace, &call.made[k], in[0]);
    return ms_opcall_run(trace, &call, in, n_in);
}

/* The tensor that x, written in place, is a view of, or MS_NONE. */
static uint32_t whole_of(const ms_trace *trace, uint32_t x)
{
    uint32_t whole = x;
    for (const ms_tensor *at = ms_trace_at(trace, whole);
         at->view && at->node != MS_NONE; at = ms_trace_at(trace, whole))
        whole = trace->nodes[at->node].input[0];
    return whole == x ? MS_NONE : whole;
}

uint32_t ms_opcall_in_place(ms_trace *trace, const ms_opcall *call,
                            const uint32_t *in, uint32_t n_in)
{
    if (trace->err)
        return MS_NONE;
    const char *op = ms_arena_format(trace->arena, "%s_", call->op);
    if (!op) {
        trace->err = ms_fail_nomem(trace->fault);
        return MS_NONE;
    }
    const ms_aten_row *row = row_of(trace, op, call->overload);
    uint32_t y = MS_NONE, listed[MOST_INPUTS + 1];
    if (!row)
        return MS_NONE;
    ms_opnode node = node_of(trace, call, op, in, n_in);
    ms_aten_call aten = {.node = &node,
                         .in = in,
                         .out = &y,
                         .listed = listed,
                         .whole = whole_of(trace, in[0]),
                         .clone = MS_NONE};
    node.n_out = 1;
    begin(trace, op, in, n_in);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            ms_trace_bytes(ms_trace_at(trace, in[0]));
    y = ms_trace_alias(trace, in[0]);
    if (y != MS_NONE) {
        ms_trace_at(trace, y)->view = ms_trace_at(trace, in[0])->view;
        ms_aten_record(trace, row, &aten);
    }
    ms_trace_end(trace, node.flops, false);
    return y;
}
