/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opcast.h"

#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

static bool active(const ms_trace *trace)
{
    return trace->autocast != MS_FLOAT32 && !trace->err;
}

/* ---- notes --------------------------------------------------------------- */

bool ms_opcast_is_note(const char *op)
{
    return strcmp(op, "autocast.lower") == 0 || strcmp(op, "autocast.to") == 0;
}

uint32_t ms_opcast_note(ms_trace *trace, const char *op, uint32_t x,
                        uint8_t dtype)
{
    if (active(trace) && strcmp(op, "autocast.lower") == 0)
        return ms_autocast_lower(trace, x);
    return ms_cast_to(trace, x,
                      active(trace) ? dtype : ms_trace_at(trace, x)->dtype);
}

/* ---- cross entropy ------------------------------------------------------- */

/* Whether the op is the log_softmax of cross_entropy: its reader, nll_loss, is
 * the next op.  It has the dtype of the logits (graphs/ops/loss.c). */
static bool is_of_cross_entropy(const ms_aten_call *call)
{
    const ms_opgraph *ops = call->ops;
    const ms_opnode *node = call->node;
    uint32_t next = (uint32_t)(node - ops->nodes) + 1;
    if (strcmp(node->op, "_log_softmax") != 0 || next >= ops->n_nodes)
        return false;
    const ms_opnode *reader = &ops->nodes[next];
    return strncmp(reader->op, "nll_loss", strlen("nll_loss")) == 0 &&
           reader->n_in > 0 && reader->in[0] == node->out[0];
}

/* ---- inputs -------------------------------------------------------------- */

/* addmm(bias, x, weight) is linear(x, weight, bias). */
static uint32_t turn(const ms_opnode *node, uint32_t i)
{
    bool linear = strcmp(node->op, "addmm") == 0 && node->n_in == 3;
    return linear ? (i + 1) % 3 : i;
}

void ms_opcast_inputs(ms_trace *trace, const ms_aten_call *call, uint32_t *read)
{
    const ms_opnode *node = call->node;
    memcpy(read, call->in, node->n_in * sizeof *read);
    bool as_they_are = is_of_cross_entropy(call);
    for (uint32_t i = 0; i < node->n_in && active(trace); i++) {
        uint32_t at = turn(node, i);
        if (as_they_are)
            ms_trace_ref(trace, call->in[at]);
        else
            read[at] = ms_autocast_input(trace, node->op, call->in[at]);
    }
}

void ms_opcast_drop(ms_trace *trace, const ms_aten_call *call)
{
    for (uint32_t i = 0; i < call->node->n_in && active(trace); i++)
        ms_trace_drop(trace, call->in[i]);
}

/* ---- outputs ------------------------------------------------------------- */

/* The dtype that the op's inputs promote to: tensors without dimensions count
 * only where no other is a float, as in PyTorch. */
static uint8_t widest(const ms_trace *trace, const ms_aten_call *call,
                      uint8_t fallback)
{
    uint8_t dtype[2] = {MS_BYTE, MS_BYTE};
    for (uint32_t i = 0; i < call->node->n_in; i++) {
        const ms_tensor *x = ms_trace_at(trace, call->in[i]);
        uint8_t *of = &dtype[x->n_dims > 0];
        *of = ms_dtypes_wider(*of, x->dtype);
    }
    if (ms_dtypes_floats(dtype[1]))
        return dtype[1];
    return ms_dtypes_floats(dtype[0]) ? dtype[0] : fallback;
}

/* where(condition, x, number) makes a tensor of the number, of x's dtype. */
static uint8_t number_dtype(const ms_trace *trace, const ms_aten_call *call,
                            uint8_t fallback)
{
    const ms_opgraph *ops = call->ops;
    uint32_t next = (uint32_t)(call->node - ops->nodes) + 1;
    if (next >= ops->n_nodes || strcmp(ops->nodes[next].op, "where") != 0)
        return fallback;
    const ms_opnode *reader = &ops->nodes[next];
    for (uint32_t i = 0; i < reader->n_in; i++) {
        uint32_t t = call->made[reader->in[i]];
        if (t != MS_NONE && ms_dtypes_floats(ms_trace_at(trace, t)->dtype))
            return ms_trace_at(trace, t)->dtype;
    }
    return fallback;
}

uint8_t ms_opcast_output(const ms_trace *trace, const ms_aten_call *call,
                         uint32_t k, uint32_t from)
{
    const ms_opnode *node = call->node;
    uint8_t exported = call->ops->tensors[node->out[k]].dtype;
    if (!active(trace) || exported != MS_FLOAT32)
        return exported;
    if (from != MS_NONE)
        return ms_trace_at(trace, from)->dtype;
    if (strcmp(node->op, "_to_copy") == 0)
        return exported;
    if (strcmp(node->op, "scalar_tensor") == 0)
        return number_dtype(trace, call, exported);
    /* Statistics are fp32 whatever they are of. */
    if (strcmp(node->op, "native_batch_norm") == 0)
        return k == 0 ? ms_trace_at(trace, call->in[0])->dtype : exported;
    if (is_of_cross_entropy(call))
        return ms_trace_at(trace, call->in[0])->dtype;
    ms_autocast_kind kind = ms_autocast_of(node->op);
    if (kind == MS_AUTOCAST_FP32 || kind == MS_AUTOCAST_FP32_OUT)
        return exported;
    return widest(trace, call, exported);
}
