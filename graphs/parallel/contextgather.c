/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/contextgather.h"
#include "graphs/parallel/meetops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

#include <string.h>

#define PIECES 2 /* of a rank's queries */
#define TOKENS 2 /* the dimension */

enum { Q, K, V };
/* What the node saves. */
enum { SAVED_Q, SAVED_K, SAVED_V, SAVED_OUT, SAVED_LSE = SAVED_OUT + PIECES };

/* ---- keys and values of all ---------------------------------------------- */

/* A new tensor like x with other tokens, made by the open op. */
static uint32_t make(ms_trace *trace, const char *role, uint32_t x,
                     int64_t tokens)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[TOKENS] = tokens;
    return ms_trace_make(trace, role, like.dtype, like.n_dims, like.size);
}

static int64_t tokens_of(const ms_trace *trace, uint32_t x)
{
    return trace->err ? 0 : ms_trace_at(trace, x)->size[TOKENS];
}

/* All pieces of x, which is used up, in another order. */
static uint32_t reordered(ms_trace *trace, uint32_t x)
{
    ms_trace_begin(trace, "aten::index_select");
    ms_trace_read(trace, x);
    uint32_t y = make(trace, "reordered", x, tokens_of(trace, x));
    ms_trace_end(trace, 0, false);
    return ms_trace_rebind(trace, x, y);
}

static uint32_t gathered(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "nccl::all_gather");
    ms_trace_read(trace, x);
    uint32_t all =
        make(trace, "gathered", x, tokens_of(trace, x) * trace->context->ranks);
    ms_meetops_end(trace, MS_ALL_GATHER, MS_GROUP_CONTEXT, trace->context);
    return reordered(trace, all);
}

/* This rank's part of the sums of all gradients, which are used up. */
static uint32_t scattered(ms_trace *trace, uint32_t all)
{
    all = reordered(trace, all);
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "nccl::reduce_scatter");
    ms_trace_read(trace, all);
    uint32_t own =
        make(trace, "grad", all, tokens_of(trace, all) / trace->context->ranks);
    ms_meetops_end(trace, MS_REDUCE_SCATTER, MS_GROUP_CONTEXT, trace->context);
    return ms_trace_rebind(trace, all, own);
}

/* ---- a piece ------------------------------------------------------------- */

static uint32_t piece_of(ms_trace *trace, uint32_t x)
{
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, x);
    uint32_t y = make(trace, "piece", x, tokens_of(trace, x) / PIECES);
    ms_trace_end(trace, 0, false);
    return y;
}

static void put_piece(ms_trace *trace, uint32_t x, uint32_t whole)
{
    ms_trace_begin(trace, "aten::copy_");
    ms_trace_read(trace, x);
    ms_trace_read(trace, whole);
    ms_trace_end(trace, 0, false);
}

/* The tokens whose keys a piece of the first rank meets: its own, or all. */
static int64_t keys_of(const ms_trace *trace, uint32_t q, int piece,
                       bool causal)
{
    int64_t all = tokens_of(trace, q) * trace->context->ranks;
    return causal && piece == 0 ? tokens_of(trace, q) / PIECES : all;
}

/* Of one piece: the same for all ranks, together as many pairs as a balanced
 * ring's. */
static double flops_of(const ms_trace *trace, uint32_t q, bool causal)
{
    const ms_tensor *x = ms_trace_at(trace, q);
    double pairs = (double)x->size[TOKENS] * (double)x->size[TOKENS] *
                   trace->context->ranks / PIECES;
    return 4 * (double)x->size[0] * (double)x->size[1] * (double)x->size[3] *
           pairs * (causal ? 0.5 : 1);
}

static void attend(ms_trace *trace, const uint32_t *qkv, double flops,
                   uint32_t *out, uint32_t *lse)
{
    uint32_t q = piece_of(trace, qkv[Q]);
    if (trace->err)
        return;
    const ms_tensor *x = ms_trace_at(trace, q);
    int64_t rows[3] = {x->size[0], x->size[1], x->size[TOKENS]};
    ms_trace_begin(trace, "aten::_scaled_dot_product_flash_attention");
    ms_trace_read(trace, q);
    ms_trace_read(trace, qkv[K]);
    ms_trace_read(trace, qkv[V]);
    *out = ms_trace_make_like(trace, "result", q);
    *lse = ms_trace_make(trace, "logsumexp", MS_FLOAT32, 3, rows);
    ms_opend_attention(trace, MS_WORK_FLASH, q, flops, false);
    ms_trace_drop(trace, q);
}

/* ---- backward ------------------------------------------------------------ */

static void add(ms_trace *trace, uint32_t x, uint32_t sum)
{
    ms_trace_begin(trace, "aten::add_");
    ms_trace_read(trace, sum);
    ms_trace_read(trace, x);
    ms_trace_end(trace, ms_trace_count(trace, x), false);
    ms_trace_drop(trace, x);
}

/* One piece: all[Q..V] are q and everyone's keys and values, sums[] their
 * gradients. */
static void attend_backward(ms_trace *trace, const ms_node *node, int piece,
                            uint32_t grad, const uint32_t *all,
                            const uint32_t *sums)
{
    uint32_t q = piece_of(trace, all[Q]), dy = piece_of(trace, grad), d[3];
    int64_t keys = keys_of(trace, node->input[Q], piece, node->i[0] != 0);
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, dy);
    ms_trace_read(trace, q);
    ms_trace_read(trace, all[K]);
    ms_trace_read(trace, all[V]);
    ms_trace_read(trace, node->saved[SAVED_OUT + piece]);
    ms_trace_read(trace, node->saved[SAVED_LSE + piece]);
    d[Q] = make(trace, "dq_step", q, tokens_of(trace, q));
    d[K] = make(trace, "dk_step", all[K], keys);
    d[V] = make(trace, "dv_step", all[V], keys);
    uint32_t running[2] = {MS_NONE, MS_NONE};
    ms_attention_sums(trace, q, tokens_of(trace, q), running);
    ms_opend_attention(trace, MS_WORK_FLASH, q, node->flops, true);
    ms_trace_drop(trace, running[0]);
    ms_trace_drop(trace, running[1]);
    put_piece(trace, d[Q], sums[Q]);
    ms_trace_drop(trace, d[Q]);
    add(trace, d[K], sums[K]);
    add(trace, d[V], sums[V]);
    ms_trace_drop(trace, q);
    ms_trace_drop(trace, dy);
}

static void gather_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    uint32_t all[3] = {node->saved[SAVED_Q], MS_NONE, MS_NONE}, sums[3];
    if (trace->err)
        return;
    ms_trace_begin(trace, "aten::zeros");
    sums[Q] = ms_trace_make_like(trace, "grad", all[Q]);
    for (int i = K; i <= V; i++) {
        uint32_t x = node->saved[SAVED_Q + i];
        sums[i] =
            make(trace, "sum", x, tokens_of(trace, x) * trace->context->ranks);
    }
    ms_trace_end(trace, 0, false);
    for (int i = K; i <= V; i++)
        all[i] = gathered(trace, node->saved[SAVED_Q + i]);
    for (int piece = 0; piece < PIECES && !trace->err; piece++)
        attend_backward(trace, node, piece, grads[0], all, sums);
    for (int i = K; i <= V; i++)
        ms_trace_drop(trace, all[i]);
    out[Q] = sums[Q];
    out[K] = scattered(trace, sums[K]);
    out[V] = scattered(trace, sums[V]);
}

static const ms_rule gather_rule = {
    "AttnFuncWithCPAndKVAllGatherBackward",
    "aten::_scaled_dot_product_flash_attention_backward", gather_backward};

/* ---- forward ------------------------------------------------------------- */

uint32_t ms_contextgather_run(ms_trace *trace, uint32_t q, uint32_t k,
                              uint32_t v, bool causal)
{
    uint32_t inputs[3] = {q, k, v}, out[PIECES], lse[PIECES];
    uint32_t all[3] = {q, gathered(trace, k), gathered(trace, v)};
    if (trace->err)
        return MS_NONE;
    double flops = flops_of(trace, q, causal);
    ms_trace_begin(trace, "aten::empty_like");
    uint32_t y = ms_trace_make_like(trace, "out", q);
    ms_trace_end(trace, 0, false);
    for (int i = 0; i < PIECES && !trace->err; i++) {
        attend(trace, all, flops, &out[i], &lse[i]);
        put_piece(trace, out[i], y);
    }
    uint32_t node = ms_trace_node(trace, &gather_rule, inputs, 3, &y, 1);
    if (node != MS_NONE) {
        trace->nodes[node].flops = flops;
        trace->nodes[node].i[0] = causal;
    }
    for (int i = Q; i <= V; i++)
        ms_trace_save(trace, node, inputs[i]);
    for (int i = 0; i < PIECES && !trace->err; i++)
        ms_trace_save(trace, node, out[i]);
    for (int i = 0; i < PIECES && !trace->err; i++)
        ms_trace_save(trace, node, lse[i]);
    for (int i = 0; i < PIECES && !trace->err; i++) {
        ms_trace_drop(trace, out[i]);
        ms_trace_drop(trace, lse[i]);
    }
    ms_trace_drop(trace, all[K]);
    ms_trace_drop(trace, all[V]);
    return y;
}
