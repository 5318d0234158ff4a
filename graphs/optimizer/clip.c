/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.nn.utils.clip_grad_norm_ (training.clip_norm), before the optimizer's
 * step: a norm of each gradient, one of these, a factor, and all gradients
 * times that in place.
 *
 * One by one in 1.13 and on the CPU; lists since 2.0, where _foreach_norm has
 * a sum for each stretch of CHUNK elements, as many for each tensor as the
 * largest needs (ATen/native/cuda/ForeachReduceOp.cu). */
#include "graphs/ops/ops.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

#define CHUNK 65536u
#define SUM_BYTES 4u

typedef struct clip {
    ms_trace *trace;
    bool foreach;
    uint64_t item_bytes;
    uint32_t n, *norms; /* of the parameters that have a gradient */
    uint32_t *grads;    /* per parameter what the norm is of, or MS_NONE */
} clip;

static bool has_grad(const clip *c, uint32_t p)
{
    const ms_graph *g = c->trace->graph;
    uint32_t grad = c->trace->parameters[p].grad_storage;
    return grad != MS_NONE &&
           (g->storage_at_start[grad] || g->storage_maker[grad] != MS_NONE);
}

static void read_grad(clip *c, uint32_t p, bool writes)
{
    const ms_parameter *it = &c->trace->parameters[p];
    uint64_t bytes = it->part * c->item_bytes;
    ms_trace_read_storage(c->trace, writes ? it->grad_storage : c->grads[p],
                          bytes);
    if (writes && !c->trace->err)
        c->trace->graph->op_write_bytes[c->trace->graph->n_ops - 1] += bytes;
}

static void begin(clip *c, const char *name)
{
    c->trace->layer = MS_NONE;
    ms_trace_begin(c->trace, name);
}

static uint32_t scalar(clip *c, const char *role)
{
    return ms_trace_make_storage(c->trace, role, c->item_bytes);
}

/* ---- norms --------------------------------------------------------------- */

static void norm_of_each(clip *c)
{
    ms_trace *trace = c->trace;
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        if (!has_grad(c, p))
            continue;
        trace->layer = trace->parameters[p].layer;
        ms_trace_begin(trace, "aten::linalg_vector_norm");
        read_grad(c, p, false);
        c->norms[c->n++] = scalar(c, "norm");
        ms_scratch_reduce(trace, trace->parameters[p].tensor, MS_ALL_DIMS,
                          sizeof(float));
        ms_trace_end(trace, 2 * (double)trace->parameters[p].part, false);
    }
}

/* 2.0 has one tensor of all norms, of which each is a view. */
static void norm_of_all(clip *c)
{
    ms_trace *trace = c->trace;
    uint64_t most = 0, tensors = 0;
    double elements = 0;
    begin(c, "aten::_foreach_norm");
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        uint64_t part = trace->parameters[p].part;
        if (!has_grad(c, p))
            continue;
        read_grad(c, p, false);
        most = part > most ? part : most;
        elements += (double)part;
        tensors++;
    }
    uint64_t chunks = most / CHUNK + (most % CHUNK != 0);
    uint32_t sums = ms_trace_make_storage(trace, "chunk_sums",
                                          tensors * chunks * SUM_BYTES);
    if (trace->settings->framework < MS_TORCH_2)
        c->norms[c->n++] =
            ms_trace_make_storage(trace, "norms", tensors * c->item_bytes);
    else
        for (uint64_t i = 0; i < tensors && !trace->err; i++)
            c->norms[c->n++] = scalar(c, "norm");
    trace->layer = MS_NONE;
    ms_trace_end(trace, 2 * elements, false);
    ms_trace_drop_storage(trace, sums);
}

static void drop_norms(clip *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        ms_trace_drop_storage(c->trace, c->norms[i]);
}

/* torch.stack of the norms, and its norm.  1.13 has let the list go by then. */
static uint32_t total_norm(clip *c)
{
    ms_trace *trace = c->trace;
    uint64_t bytes = 0;
    begin(c, "aten::stack");
    for (uint32_t i = 0; i < c->n && !trace->err; i++) {
        uint64_t norm = trace->graph->storage_bytes[c->norms[i]];
        ms_trace_read_storage(trace, c->norms[i], norm);
        bytes += norm;
    }
    uint32_t stack = ms_trace_make_storage(trace, "norms", bytes);
    ms_trace_end(trace, 0, false);
    if (trace->settings->framework == MS_TORCH_1_13)
        drop_norms(c);
    begin(c, "aten::linalg_vector_norm");
    ms_trace_read_storage(trace, stack, bytes);
    uint32_t total = scalar(c, "total_norm");
    ms_trace_end(trace, 0, false);
    ms_trace_drop_storage(trace, stack);
    if (trace->settings->framework != MS_TORCH_1_13)
        drop_norms(c);
    return total;
}

/* ---- the factor ---------------------------------------------------------- */

/* A scalar made of another, which ends unless it is a variable. */
static uint32_t next(clip *c, const char *op, const char *role, uint32_t from,
                     bool stays)
{
    begin(c, op);
    ms_trace_read_storage(c->trace, from, c->item_bytes);
    uint32_t made = scalar(c, role);
    ms_trace_end(c->trace, 0, false);
    if (!stays)
        ms_trace_drop_storage(c->trace, from);
    return made;
}

static void scale(clip *c, uint32_t factor)
{
    ms_trace *trace = c->trace;
    double elements = 0;
    if (c->foreach)
        begin(c, "aten::_foreach_mul_");
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        if (!has_grad(c, p))
            continue;
        elements += (double)trace->parameters[p].part;
        if (!c->foreach) {
            trace->layer = trace->parameters[p].layer;
            ms_trace_begin(trace, "aten::mul_");
        }
        read_grad(c, p, true);
        if (!c->foreach) {
            ms_trace_read_storage(trace, factor, c->item_bytes);
            ms_trace_end(trace, (double)trace->parameters[p].part, false);
        }
    }
    if (!c->foreach)
        return;
    ms_trace_read_storage(trace, factor, c->item_bytes);
    ms_trace_end(trace, elements, false);
}

static bool open_clip(clip *c)
{
    ms_trace *trace = c->trace;
    uint8_t dtype =
        ms_parts_are_masters(trace) ? (uint8_t)MS_FLOAT32 : trace->grad_dtype;
    c->item_bytes = ms_dtypes_bytes[dtype];
    c->foreach =
        trace->settings->framework > MS_TORCH_1_13 && !trace->settings->cpu;
    c->norms = ms_arena_take_raw(trace->scratch, trace->n_parameters + 1,
                                 sizeof *c->norms);
    c->grads = ms_arena_take_raw(trace->scratch, trace->n_parameters,
                                 sizeof *c->grads);
    if (!c->norms || !c->grads) {
        trace->err = ms_fail_nomem(trace->fault);
        return false;
    }
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        c->grads[p] =
            has_grad(c, p) ? trace->parameters[p].grad_storage : MS_NONE;
    return true;
}

static void find_norms(clip *c)
{
    ms_wholegrads_take(c->trace, c->grads);
    if (c->foreach)
        norm_of_all(c);
    else
        norm_of_each(c);
    ms_wholegrads_drop(c->trace, c->grads);
}

/* The caller lets the total norm go at once; variables end with the function.
 */
void ms_clip_run(ms_trace *trace)
{
    clip c = {.trace = trace};
    if (!(trace->settings->training->clip_norm > 0) || trace->err ||
        !open_clip(&c))
        return;
    find_norms(&c);
    if (c.n == 0 || trace->err)
        return;
    uint32_t total = total_norm(&c);
    trace->graph->step_norm = trace->graph->n_ops;
    uint32_t sum = next(&c, "aten::add", "total_norm", total, true);
    uint32_t inverse = next(&c, "aten::reciprocal", "clip_coef", sum, false);
    uint32_t coef = next(&c, "aten::mul", "clip_coef", inverse, false);
    uint32_t factor = next(&c, "aten::clamp", "clip_coef", coef, true);
    scale(&c, factor);
    ms_trace_drop_storage(trace, factor);
    ms_trace_drop_storage(trace, coef);
    ms_trace_drop_storage(trace, total);
}
