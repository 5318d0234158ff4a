/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/contextops.h"
#include "graphs/machines/communicators.h"
#include "graphs/parallel/contextgather.h"
#include "graphs/parallel/meetops.h"
#include "graphs/parallel/ringflash.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "sim/kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- who divides it ------------------------------------------------------ */

static uint8_t mode_of(const ms_trace *trace)
{
    uint8_t mode = trace->settings->shape->context_mode;
    if (mode != MS_CONTEXT_AUTO)
        return mode;
    return trace->kernels.keeps_parts ? MS_CONTEXT_RING : MS_CONTEXT_A2A;
}

bool ms_contextops_is_joint(const ms_trace *trace)
{
    return trace->context && mode_of(trace) != MS_CONTEXT_A2A;
}

static ms_err refuse(const ms_trace *trace, const char *hint, const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, "context", hint, "%s", what);
}

/* Where work is balanced, a rank has two pieces. */
static ms_err check_sequence(const ms_trace *trace, uint32_t ranks)
{
    const ms_step_settings *settings = trace->settings;
    uint64_t sequence = (uint64_t)settings->training->sequence;
    bool one =
        mode_of(trace) == MS_CONTEXT_A2A || settings->shape->context_plain;
    uint64_t pieces = one ? ranks : 2 * (uint64_t)ranks;
    uint64_t low = sequence / pieces * pieces;
    char hint[96];
    if (sequence % pieces == 0)
        return MS_OK;
    if (low == 0)
        low = pieces;
    uint64_t high = low + pieces;
    snprintf(hint, sizeof hint, "type --sequence %" PRIu64 " or %" PRIu64, low,
             high);
    return ms_fail(trace->fault, MS_EINPUT, settings->model->name, hint,
                   "a sequence of %" PRIu64 " does not divide into %" PRIu64
                   " pieces (context)",
                   sequence, pieces);
}

ms_err ms_contextops_open(ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    uint32_t ranks = settings->shape->context_ranks;
    ms_group rows[MS_N_GROUP_ROLES];
    if (ranks < 2)
        return MS_OK;
    if (settings->model->ops)
        return refuse(trace, "export the graph of one rank instead",
                      "ranks cannot divide the sequence of an exported graph");
    if (!settings->model->tokens && !settings->model->sequence_input)
        return refuse(trace, "leave it out for this model",
                      "the model has no sequence that ranks could divide");
    MS_TRY(check_sequence(trace, ranks));
    trace->context = ms_arena_take(trace->scratch, 1, sizeof *trace->context);
    if (!trace->context)
        return ms_fail_nomem(trace->fault);
    ms_communicators_make(settings->device, settings->shape, rows);
    *trace->context = rows[MS_GROUP_CONTEXT];
    return MS_OK;
}

static void end(ms_trace *trace, ms_collective collective)
{
    ms_meetops_end(trace, collective, MS_GROUP_CONTEXT, trace->context);
}

/* ---- all-to-all ---------------------------------------------------------- */

static uint32_t copy(ms_trace *trace, const char *role, uint32_t x,
                     const int64_t *dims)
{
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, x);
    uint32_t y = ms_trace_make(trace, role, dtype, 4, dims);
    ms_trace_end(trace, 0, false);
    return y;
}

/* Dimension 1 becomes C times as long, 2 as short, or the other way round. */
static uint32_t exchange(ms_trace *trace, uint32_t x, bool to_heads)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[4], ranks = trace->context->ranks;
    memcpy(dims, ms_trace_at(trace, x)->size, sizeof dims);
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    uint32_t ordered = copy(trace, "ordered", x, dims);
    dims[1] = to_heads ? dims[1] * ranks : dims[1] / ranks;
    dims[2] = to_heads ? dims[2] / ranks : dims[2] * ranks;
    ms_trace_begin(trace, "nccl::all_to_all");
    ms_trace_read(trace, ordered);
    uint32_t received = ms_trace_make(trace, "received", dtype, 4, dims);
    end(trace, MS_ALL_TO_ALL);
    ms_trace_drop(trace, ordered);
    return ms_trace_rebind(trace, received,
                           copy(trace, "exchanged", received, dims));
}

static void to_heads_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = exchange(trace, grads[0], false);
}

static void to_tokens_backward(ms_trace *trace, const ms_node *node,
                               const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = exchange(trace, grads[0], true);
}

static const ms_rule to_heads_rule = {"AllToAllToHeads", NULL,
                                      to_heads_backward};
static const ms_rule to_tokens_rule = {"AllToAllToTokens", NULL,
                                       to_tokens_backward};

static uint32_t with_node(ms_trace *trace, uint32_t x, bool to_heads)
{
    if (trace->err)
        return MS_NONE;
    if (!trace->context) {
        ms_trace_ref(trace, x);
        return x;
    }
    uint32_t y = exchange(trace, x, to_heads);
    ms_trace_node(trace, to_heads ? &to_heads_rule : &to_tokens_rule, &x, 1, &y,
                  1);
    return y;
}

/* The gradients of a head's copies are summed. */
static void repeat_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, ms_trace_count(trace, grads[0]), false);
}

static const ms_rule repeat_rule = {"RepeatInterleave", "aten::sum",
                                    repeat_backward};

/* x.repeat_interleave(ranks / heads, dim=2): each rank has a copy of one. */
static uint32_t repeated(ms_trace *trace, uint32_t x)
{
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[2] = trace->context->ranks;
    ms_trace_begin(trace, "aten::repeat_interleave");
    ms_trace_read(trace, x);
    uint32_t y =
        ms_trace_make(trace, "repeated", like.dtype, like.n_dims, like.size);
    ms_trace_end(trace, 0, false);
    ms_trace_node(trace, &repeat_rule, &x, 1, &y, 1);
    return y;
}

static ms_err refuse_heads(ms_trace *trace, int64_t heads)
{
    int64_t ranks = trace->context->ranks, fewer = ranks;
    char hint[96];
    while (heads % fewer != 0)
        fewer--;
    snprintf(hint, sizeof hint, "context:%lld would, or mode=ring",
             (long long)fewer);
    return trace->err = ms_trace_fail(
               trace, &trace->settings->model->layers[trace->layer], hint,
               "%lld heads of \"%s\" do not divide among %lld ranks (context)",
               (long long)heads,
               trace->settings->model->layers[trace->layer].name,
               (long long)ranks);
}

uint32_t ms_contextops_to_heads(ms_trace *trace, uint32_t x)
{
    if (!trace->err && trace->context) {
        int64_t heads = ms_trace_at(trace, x)->size[2];
        if (heads % trace->context->ranks != 0)
            refuse_heads(trace, heads);
    }
    return with_node(trace, x, true);
}

uint32_t ms_contextops_to_tokens(ms_trace *trace, uint32_t x)
{
    return with_node(trace, x, false);
}

/* [batch, heads, sequence, dim] from or to the order of the exchange; x is used
 * up. */
static uint32_t turned(ms_trace *trace, uint32_t x)
{
    return ms_trace_rebind(trace, x, ms_view_transpose(trace, x, 1, 2));
}

uint32_t ms_contextops_forth(ms_trace *trace, uint32_t x, bool may_repeat)
{
    x = turned(trace, x);
    if (trace->err)
        return MS_NONE;
    int64_t heads = ms_trace_at(trace, x)->size[2];
    int64_t ranks = trace->context->ranks;
    if (may_repeat && heads < ranks && ranks % heads == 0)
        x = ms_trace_rebind(trace, x, repeated(trace, x));
    x = ms_trace_rebind(trace, x, ms_contextops_to_heads(trace, x));
    return turned(trace, x);
}

uint32_t ms_contextops_back(ms_trace *trace, uint32_t x)
{
    x = turned(trace, x);
    x = ms_trace_rebind(trace, x, ms_contextops_to_tokens(trace, x));
    return turned(trace, x);
}

/* ---- ring ---------------------------------------------------------------- */

enum { Q, K, V };
/* What the node saves. */
enum { SAVED_Q, SAVED_KV, SAVED_OUT, SAVED_LSE };

/* Hands a buffer on, and receives another like it. */
static uint32_t hand_on(ms_trace *trace, uint32_t buffer)
{
    ms_trace_begin(trace, "nccl::send_recv");
    ms_trace_read(trace, buffer);
    uint32_t next =
        trace->err ? MS_NONE : ms_trace_make_like(trace, "received", buffer);
    end(trace, MS_SEND);
    return next;
}

/* Keys and values together. */
static uint32_t join(ms_trace *trace, uint32_t k, uint32_t v)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = ms_trace_at(trace, k);
    uint8_t dtype = x->dtype;
    int64_t dims[5] = {2, x->size[0], x->size[1], x->size[2], x->size[3]};
    ms_trace_begin(trace, "aten::cat");
    ms_trace_read(trace, k);
    ms_trace_read(trace, v);
    uint32_t kv = ms_trace_make(trace, "kv", dtype, 5, dims);
    ms_trace_end(trace, 0, false);
    return kv;
}

/* A step's queries: causal ones of ranks before this one all, of those behind
 * it the later half. */
static int64_t queries_of(const ms_trace *trace, uint32_t q, uint32_t step,
                          bool causal)
{
    bool half = causal && step > trace->settings->shape->context_rank;
    return ms_trace_at(trace, q)->size[2] / (half ? 2 : 1);
}

/* One step's partial result, and its statistics. */
static void attend(ms_trace *trace, uint32_t q, uint32_t kv, int64_t queries,
                   double flops, uint32_t *out, uint32_t *lse)
{
    if (trace->err)
        return;
    ms_tensor part = *ms_trace_at(trace, q);
    part.size[2] = queries;
    int64_t rows[3] = {part.size[0], part.size[1], queries};
    ms_trace_begin(trace, "aten::_scaled_dot_product_flash_attention");
    ms_trace_read(trace, q);
    ms_trace_read(trace, kv);
    *out = ms_trace_make(trace, "partial", part.dtype, 4, part.size);
    *lse = ms_trace_make(trace, "logsumexp", MS_FLOAT32, 3, rows);
    ms_opend_attention(trace, MS_WORK_FLASH, *out, flops, false);
}

static uint32_t merge(ms_trace *trace, uint32_t q, const uint32_t *out,
                      uint32_t n)
{
    ms_trace_begin(trace, "merge_partial_results");
    for (uint32_t i = 0; i < n; i++)
        ms_trace_read(trace, out[i]);
    uint32_t y = trace->err ? MS_NONE : ms_trace_make_like(trace, "out", q);
    ms_trace_end(trace, 3 * n * ms_trace_count(trace, q), false);
    return y;
}

/* Gradients of keys and values travel with them in a second buffer; each step
 * makes its own first. */
static void ring_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    uint32_t q = node->input[Q], ranks = trace->context->ranks;
    uint32_t kv = node->saved[SAVED_KV];
    if (trace->err)
        return;
    ms_tensor both = *ms_trace_at(trace, kv);
    both.size[0] *= 2; /* the gradients beside */
    ms_trace_begin(trace, "aten::empty");
    uint32_t buffer[2];
    for (uint32_t i = 0; i < 2; i++)
        buffer[i] =
            ms_trace_make(trace, "p2p_buffer", both.dtype, 5, both.size);
    uint32_t dq = ms_trace_make_like(trace, "grad", q);
    ms_trace_end(trace, 0, false);
    for (uint32_t i = 0; i < ranks; i++) {
        ms_trace_begin(trace, node->rule->op);
        ms_trace_read(trace, grads[0]);
        ms_trace_read(trace, buffer[i % 2]);
        for (uint32_t s = 0; s < node->n_saved; s++)
            ms_trace_read(trace, node->saved[s]);
        uint32_t own = ms_trace_make_like(trace, "dq_step", q);
        uint32_t step =
            trace->err ? MS_NONE : ms_trace_make_like(trace, "dkv_step", kv);
        uint32_t sums[2] = {MS_NONE, MS_NONE};
        ms_attention_sums(trace, q, queries_of(trace, q, i, node->i[0] != 0),
                          sums);
        ms_opend_attention(trace, MS_WORK_FLASH, q, node->flops, true);
        ms_trace_drop(trace, sums[0]);
        ms_trace_drop(trace, sums[1]);
        ms_trace_begin(trace, "aten::add_");
        ms_trace_read(trace, dq);
        ms_trace_read(trace, own);
        ms_trace_end(trace, ms_trace_count(trace, own), false);
        ms_trace_begin(trace, "nccl::send_recv");
        ms_trace_read(trace, buffer[i % 2]);
        ms_trace_read(trace, step);
        end(trace, MS_SEND);
        ms_trace_drop(trace, own);
        ms_trace_drop(trace, step);
    }
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, buffer[(ranks - 1) % 2]);
    out[K] = ms_trace_make_like(trace, "grad", node->input[K]);
    out[V] = ms_trace_make_like(trace, "grad", node->input[V]);
    ms_trace_end(trace, 0, false);
    out[Q] = dq;
    ms_trace_drop(trace, buffer[0]);
    ms_trace_drop(trace, buffer[1]);
}

static const ms_rule ring_rule = {
    "AttnFuncWithCPAndKVP2PBackward",
    "aten::_scaled_dot_product_flash_attention_backward", ring_backward};

/* A step's FLOPs: a causal one's are half of all pairs of a rank's queries with
 * one rank's keys. */
static double step_flops(const ms_trace *trace, uint32_t q, bool causal)
{
    const ms_tensor *x = ms_trace_at(trace, q);
    double pairs = (double)x->size[2] * (double)x->size[2];
    return 4 * (double)x->size[0] * (double)x->size[1] * (double)x->size[3] *
           pairs * (causal ? 0.5 : 1);
}

static uint32_t ring(ms_trace *trace, uint32_t q, uint32_t k, uint32_t v,
                     bool causal)
{
    uint32_t inputs[3] = {q, k, v};
    if (trace->err)
        return MS_NONE;
    uint32_t n = trace->context->ranks;
    uint32_t *kv = ms_arena_take(trace->scratch, 3u * n, sizeof *kv);
    if (!kv) {
        trace->err = ms_fail_nomem(trace->fault);
        return MS_NONE;
    }
    uint32_t *out = kv + n, *lse = out + n;
    double flops = step_flops(trace, q, causal);
    kv[0] = join(trace, k, v);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        if (i + 1 < n)
            kv[i + 1] = hand_on(trace, kv[i]);
        if (!trace->err)
            attend(trace, q, kv[i], queries_of(trace, q, i, causal), flops,
                   &out[i], &lse[i]);
    }
    uint32_t y = merge(trace, q, out, n);
    uint32_t node = ms_trace_node(trace, &ring_rule, inputs, 3, &y, 1);
    if (node != MS_NONE) {
        trace->nodes[node].flops = flops;
        trace->nodes[node].i[0] = causal;
    }
    ms_trace_save(trace, node, q);
    ms_trace_save(trace, node, kv[n - 1]);
    ms_trace_save(trace, node, y);
    ms_trace_save(trace, node, lse[0]);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        ms_trace_drop(trace, kv[i]);
        ms_trace_drop(trace, out[i]);
        ms_trace_drop(trace, lse[i]);
    }
    return y;
}

uint32_t ms_contextops_joint(ms_trace *trace, uint32_t q, uint32_t k,
                             uint32_t v, bool causal)
{
    if (mode_of(trace) != MS_CONTEXT_RING)
        return ms_contextgather_run(trace, q, k, v, causal);
    return trace->settings->shape->context_flash
               ? ms_ringflash_run(trace, q, k, v, causal)
               : ring(trace, q, k, v, causal);
}
