/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops whose shapes and costs the user describes, and parameters that no op
 * reads. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

static void raw_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    if (node->needs[0])
        out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 2 * node->flops, true);
}

static const ms_rule raw_rule = {"OpBackward", "op_backward", raw_backward};

uint32_t ms_raw_op(ms_trace *trace, uint32_t x, const ms_raw *raw)
{
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    if (dtype == MS_INT64) /* a raw op of token ids makes floats */
        dtype = trace->weight_dtype;
    ms_trace_begin(trace, "op");
    ms_trace_read(trace, x);
    uint32_t y = ms_trace_make(trace, "out", dtype, raw->n_dims, raw->dims);
    if (raw->workspace_bytes)
        ms_trace_workspace(trace, raw->workspace_bytes);
    ms_trace_end(trace, raw->flops, true);
    /* What the user's op computes depends on parameters that are not listed:
     * its output takes part in backward even where its input does not. */
    uint32_t n = trace->settings->train
                     ? ms_trace_node_always(trace, &raw_rule, &x, 1, &y, 1)
                     : MS_NONE;
    if (n != MS_NONE)
        trace->nodes[n].flops = raw->flops;
    if (raw->saves_input)
        ms_trace_save(trace, n, x);
    if (raw->saves_output)
        ms_trace_save(trace, n, y);
    return y;
}

/* ---- stages that were measured ------------------------------------------- */

static void end_measured(ms_trace *trace, uint64_t ns)
{
    ms_trace_end(trace, 0, true);
    if (trace->err)
        return;
    uint32_t op = trace->graph->n_ops - 1;
    trace->ends[op].work = MS_WORK_NONE;
    trace->graph->op_ns[op] = ns;
}

static void measured_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    if (node->i[0] > 0)
        ms_trace_workspace(trace, (uint64_t)node->i[0]);
    if (node->needs[0])
        out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    end_measured(trace, (uint64_t)node->i[1]);
}

static const ms_rule measured_rule = {"StageBackward", "stage_backward",
                                      measured_backward};

static uint32_t make_bytes(ms_trace *trace, const char *role, uint64_t bytes)
{
    int64_t size = (int64_t)bytes;
    return ms_trace_make(trace, role, MS_BYTE, 1, &size);
}

uint32_t ms_raw_measured(ms_trace *trace, uint32_t x, const ms_raw_stage *stage)
{
    uint32_t more = MS_NONE;
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "stage");
    ms_trace_read(trace, x);
    uint32_t y = make_bytes(trace, "out", stage->output_bytes);
    if (stage->saved_bytes > stage->output_bytes)
        more = make_bytes(trace, "saved",
                          stage->saved_bytes - stage->output_bytes);
    if (stage->forward_workspace_bytes > 0)
        ms_trace_workspace(trace, stage->forward_workspace_bytes);
    end_measured(trace, stage->forward_ns);
    if (!trace->err)
        trace->graph->op_flags[trace->graph->n_ops - 1] |= MS_OP_SPARES;
    uint32_t n = trace->settings->train
                     ? ms_trace_node_always(trace, &measured_rule, &x, 1, &y, 1)
                     : MS_NONE;
    if (n != MS_NONE) {
        trace->nodes[n].i[0] = (int64_t)stage->backward_workspace_bytes;
        trace->nodes[n].i[1] = (int64_t)stage->backward_ns;
    }
    ms_trace_save(trace, n, x);
    ms_trace_save(trace, n, y);
    if (more != MS_NONE) {
        ms_trace_save(trace, n, more);
        ms_trace_drop(trace, more);
    }
    return y;
}

/* ---- states only --------------------------------------------------------- */

static void states_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    /* The gradient is one of a weight in the figures, so the pass is set for
     * this op alone. */
    uint8_t was = trace->pass;
    (void)grads;
    trace->pass = MS_GRAD_WEIGHT;
    ms_trace_begin(trace, "gradient");
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
    trace->pass = was;
}

static const ms_rule states_rule = {"StatesBackward", "gradient",
                                    states_backward};

void ms_raw_states(ms_trace *trace, uint32_t parameter)
{
    ms_trace_node(trace, &states_rule, &parameter, 1, NULL, 0);
}
