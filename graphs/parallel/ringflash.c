/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/ringflash.h"
#include "graphs/parallel/meetops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

#define TOKENS 2 /* the dimension */

enum { Q, K, V };
/* What the node saves. */
enum { SAVED_Q, SAVED_K, SAVED_V, SAVED_OUT, SAVED_LSE };

/* A pair of tensors that travel together: keys and values, or their gradients.
 */
typedef struct pair {
    uint32_t k, v;
} pair;
static const pair no_pair = {MS_NONE, MS_NONE};

/* What a rank does in a step of the ring. */
typedef struct ring_turn {
    int64_t queries, keys; /* tokens; 0: it waits for the others' */
    double flops;          /* of the attention, this rank's or the others' */
} ring_turn;

static bool is_plain(const ms_trace *trace)
{
    return trace->settings->shape->context_plain;
}

static ring_turn turn_of(const ms_trace *trace, uint32_t q, uint32_t step,
                         bool causal)
{
    const ms_tensor *x = ms_trace_at(trace, q);
    int64_t rows = x->size[TOKENS];
    uint32_t rank = trace->settings->shape->context_rank;
    double flops = 4 * (double)x->size[0] * (double)x->size[1] *
                   (double)x->size[3] * (double)rows * (double)rows;
    if (!causal)
        return (ring_turn){rows, rows, flops};
    if (step == 0)
        return (ring_turn){rows, rows, flops / 2};
    if (is_plain(trace) && step > rank)
        return (ring_turn){0, 0, flops};
    if (is_plain(trace))
        return (ring_turn){rows, rows, flops};
    return step > rank ? (ring_turn){rows / 2, rows, flops / 2}
                       : (ring_turn){rows, rows / 2, flops / 2};
}

/* ---- tensors ------------------------------------------------------------- */

/* A new tensor of so many tokens like x, made by the open op. */
static uint32_t make(ms_trace *trace, const char *role, uint8_t dtype,
                     uint32_t x, int64_t tokens)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[TOKENS] = tokens;
    return ms_trace_make(trace, role, dtype, like.n_dims, like.size);
}

static uint32_t whole(ms_trace *trace, const char *role, uint8_t dtype,
                      uint32_t x)
{
    return trace->err ? MS_NONE
                      : make(trace, role, dtype, x,
                             ms_trace_at(trace, x)->size[TOKENS]);
}

static void read_pair(ms_trace *trace, pair x)
{
    ms_trace_read(trace, x.k);
    ms_trace_read(trace, x.v);
}

static void drop_pair(ms_trace *trace, pair x)
{
    ms_trace_drop(trace, x.k);
    ms_trace_drop(trace, x.v);
}

static pair held_pair(ms_trace *trace, pair x)
{
    ms_trace_ref(trace, x.k);
    ms_trace_ref(trace, x.v);
    return x;
}

/* Sends a pair to the next rank, and receives one like it: new, or into a pair
 * that is there. */
static pair hand_on(ms_trace *trace, pair x, pair into)
{
    pair next = into;
    ms_trace_begin(trace, "nccl::send_recv");
    read_pair(trace, x);
    if (into.k == MS_NONE && !trace->err) {
        uint8_t dtype = ms_trace_at(trace, x.k)->dtype;
        next.k = whole(trace, "received", dtype, x.k);
        next.v = whole(trace, "received", dtype, x.v);
    } else if (!trace->err) {
        ms_trace_read_storage(trace, ms_trace_at(trace, into.k)->storage, 0);
        ms_trace_read_storage(trace, ms_trace_at(trace, into.v)->storage, 0);
    }
    ms_meetops_end(trace, MS_SEND, MS_GROUP_CONTEXT, trace->context);
    return next;
}

/* Until the other ranks have attended: x is what the next op of this one goes
 * on with. */
static void wait(ms_trace *trace, uint32_t x, uint32_t q, const ring_turn *turn,
                 bool backward)
{
    ms_trace_begin(trace, "nccl::wait");
    ms_trace_read(trace, x);
    ms_opend_attention(trace, MS_WORK_FLASH, q, turn->flops, backward);
    ms_meetops_wait(trace, MS_GROUP_CONTEXT, trace->context);
}

/* ---- forward ------------------------------------------------------------- */

typedef struct result {
    uint32_t out, lse;
} result;
static const result no_result = {MS_NONE, MS_NONE};

static void drop_result(ms_trace *trace, result x)
{
    ms_trace_drop(trace, x.out);
    ms_trace_drop(trace, x.lse);
}

static uint32_t statistics(ms_trace *trace, uint32_t q, int64_t tokens)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = ms_trace_at(trace, q);
    int64_t rows[3] = {x->size[0], x->size[1], tokens};
    return ms_trace_make(trace, "logsumexp", MS_FLOAT32, 3, rows);
}

static result attend(ms_trace *trace, uint32_t q, pair kv,
                     const ring_turn *turn)
{
    result own = no_result;
    if (trace->err)
        return own;
    ms_trace_begin(trace, "aten::_scaled_dot_product_flash_attention");
    ms_trace_read(trace, q);
    read_pair(trace, kv);
    own.out =
        make(trace, "block", ms_trace_at(trace, q)->dtype, q, turn->queries);
    own.lse = statistics(trace, q, turn->queries);
    if (!trace->err)
        ms_opend_attention(trace, MS_WORK_FLASH, own.out, turn->flops, false);
    return own;
}

/* The sum with one more: new tensors, or, of half of the queries, a part
 * overwritten. */
static result add(ms_trace *trace, uint32_t q, result sum, result own,
                  int64_t queries)
{
    result next;
    bool first = sum.out == MS_NONE;
    if (trace->err)
        return no_result;
    ms_trace_begin(trace, first ? "aten::_to_copy" : "update_out_and_lse");
    if (!first) {
        ms_trace_read(trace, sum.out);
        ms_trace_read(trace, sum.lse);
        ms_trace_read(trace, own.lse);
    }
    ms_trace_read(trace, own.out);
    next.out = make(trace, "sum", MS_FLOAT32, q, queries);
    next.lse = first ? own.lse : statistics(trace, q, queries);
    if (first)
        ms_trace_ref(trace, own.lse);
    ms_trace_end(trace, first ? 0 : 5 * ms_trace_count(trace, own.out), false);
    if (first || trace->err)
        return next;
    if (queries < ms_trace_at(trace, q)->size[TOKENS]) {
        ms_trace_begin(trace, "aten::copy_");
        ms_trace_read(trace, sum.out);
        ms_trace_read(trace, next.out);
        ms_trace_end(trace, 0, false);
        drop_result(trace, next);
        return sum;
    }
    drop_result(trace, sum);
    return next;
}

/* The sum of all steps, in fp32. */
static result go_round(ms_trace *trace, uint32_t q, pair kv, bool causal)
{
    result sum = no_result, own = no_result, last;
    uint32_t n = trace->err ? 0 : trace->context->ranks;
    pair next = no_pair, named = no_pair;
    kv = held_pair(trace, kv);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        const ring_turn turn = turn_of(trace, q, i, causal);
        if (i + 1 < n)
            next = hand_on(trace, kv, no_pair);
        if (is_plain(trace) && turn.queries > 0) {
            drop_pair(trace, named);
            named = held_pair(trace, kv);
        }
        if (turn.queries > 0) {
            last = own;
            own = attend(trace, q, kv, &turn);
            drop_result(trace, last);
            sum = add(trace, q, sum, own, turn.queries);
        } else {
            wait(trace, sum.out, q, &turn, false);
        }
        drop_pair(trace, kv);
        kv = next;
        next = no_pair;
    }
    drop_pair(trace, named);
    drop_result(trace, own);
    return sum;
}

/* ---- backward ------------------------------------------------------------ */

typedef struct gradients {
    uint32_t block[3]; /* of a step, in 16 bits */
    uint32_t dq;       /* sums, in fp32 */
    pair sum, received, spare;
    uint32_t half_lse;
} gradients;

static void open_gradients(ms_trace *trace, const ms_node *node, bool halves,
                           gradients *g)
{
    static const char *const roles[3] = {"dq_block", "dk_block", "dv_block"};
    *g = (gradients){.dq = MS_NONE,
                     .sum = no_pair,
                     .received = no_pair,
                     .spare = no_pair,
                     .half_lse = MS_NONE};
    if (halves) {
        uint32_t q = node->saved[SAVED_Q];
        ms_trace_begin(trace, "aten::clone");
        ms_trace_read(trace, node->saved[SAVED_LSE]);
        g->half_lse =
            statistics(trace, q, ms_trace_at(trace, q)->size[TOKENS] / 2);
        ms_trace_end(trace, 0, false);
    }
    ms_trace_begin(trace, "aten::empty");
    for (int i = Q; i <= V && !trace->err; i++)
        g->block[i] =
            whole(trace, roles[i], ms_trace_at(trace, node->saved[i])->dtype,
                  node->saved[i]);
    ms_trace_end(trace, 0, false);
}

static void attend_backward(ms_trace *trace, const ms_node *node, uint32_t grad,
                            pair kv, const ring_turn *turn, const gradients *g)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grad);
    ms_trace_read(trace, node->saved[SAVED_Q]);
    read_pair(trace, kv);
    ms_trace_read(trace, node->saved[SAVED_OUT]);
    ms_trace_read(trace, node->saved[SAVED_LSE]);
    for (int i = Q; i <= V; i++)
        ms_trace_read(trace, g->block[i]);
    uint32_t sums[2] = {MS_NONE, MS_NONE};
    ms_attention_sums(trace, node->saved[SAVED_Q], turn->queries, sums);
    ms_opend_attention(trace, MS_WORK_FLASH, node->saved[SAVED_Q], turn->flops,
                       true);
    ms_trace_drop(trace, sums[0]);
    ms_trace_drop(trace, sums[1]);
}

/* The first step's, in fp32. */
static uint32_t copied(ms_trace *trace, uint32_t x, const char *role,
                       uint8_t dtype)
{
    ms_trace_begin(trace, "aten::_to_copy");
    ms_trace_read(trace, x);
    uint32_t y = whole(trace, role, dtype, x);
    ms_trace_end(trace, 0, false);
    return y;
}

/* x + y: in place of x, or a new tensor in its place. */
static uint32_t summed(ms_trace *trace, uint32_t x, uint32_t y, bool in_place)
{
    uint32_t sum = x;
    ms_trace_begin(trace, in_place ? "aten::add_" : "aten::add");
    ms_trace_read(trace, x);
    ms_trace_read(trace, y);
    if (!in_place)
        sum = whole(trace, "dkv", MS_FLOAT32, x);
    ms_trace_end(trace, ms_trace_count(trace, y), false);
    return sum;
}

/* What came with the keys of this step, and this step's. */
static void add_block(ms_trace *trace, gradients *g)
{
    bool plain = is_plain(trace);
    if (g->dq == MS_NONE) {
        g->dq = copied(trace, g->block[Q], "dq", MS_FLOAT32);
        g->sum.k = copied(trace, g->block[K], "dkv", MS_FLOAT32);
        g->sum.v = copied(trace, g->block[V], "dkv", MS_FLOAT32);
        return;
    }
    summed(trace, g->dq, g->block[Q], true);
    pair old = g->sum;
    g->sum.k = summed(trace, g->received.k, g->block[K], !plain);
    g->sum.v = summed(trace, g->received.v, g->block[V], !plain);
    if (plain) {
        drop_pair(trace, old);
        drop_pair(trace, g->received);
    } else {
        g->spare = old; /* what comes next comes here */
    }
}

static void step_backward(ms_trace *trace, const ms_node *node, uint32_t grad,
                          pair kv, const ring_turn *turn, gradients *g)
{
    if (turn->queries > 0) {
        attend_backward(trace, node, grad, kv, turn, g);
        add_block(trace, g);
    } else {
        wait(trace, g->dq, node->saved[SAVED_Q], turn, true);
        drop_pair(trace, g->sum);
        g->sum = g->received;
    }
    g->received = no_pair;
}

static void ring_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    bool causal = node->i[0] != 0;
    uint32_t n = trace->err ? 0 : trace->context->ranks;
    pair next = no_pair, named = no_pair;
    pair kv = {node->saved[SAVED_K], node->saved[SAVED_V]};
    gradients g;
    open_gradients(trace, node, causal && !is_plain(trace), &g);
    kv = held_pair(trace, kv);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        const ring_turn turn = turn_of(trace, node->saved[SAVED_Q], i, causal);
        if (i + 1 < n)
            next = hand_on(trace, kv, no_pair);
        if (is_plain(trace) && turn.queries > 0) {
            drop_pair(trace, named);
            named = held_pair(trace, kv);
        }
        step_backward(trace, node, grads[0], kv, &turn, &g);
        drop_pair(trace, kv);
        kv = next;
        next = no_pair;
        g.received = hand_on(trace, g.sum, g.spare);
        g.spare = no_pair;
    }
    if (trace->err)
        return;
    uint8_t dtype = ms_trace_at(trace, node->saved[SAVED_Q])->dtype;
    out[Q] = copied(trace, g.dq, "grad", dtype);
    out[K] = copied(trace, g.received.k, "grad", dtype);
    out[V] = copied(trace, g.received.v, "grad", dtype);
    for (int i = Q; i <= V; i++)
        ms_trace_drop(trace, g.block[i]);
    ms_trace_drop(trace, g.dq);
    ms_trace_drop(trace, g.half_lse);
    drop_pair(trace, g.sum);
    drop_pair(trace, g.received);
    drop_pair(trace, named);
}

static const ms_rule ring_rule = {
    "RingFlashAttnFuncBackward",
    "aten::_scaled_dot_product_flash_attention_backward", ring_backward};

uint32_t ms_ringflash_run(ms_trace *trace, uint32_t q, uint32_t k, uint32_t v,
                          bool causal)
{
    uint32_t inputs[3] = {q, k, v};
    result sum = go_round(trace, q, (pair){k, v}, causal);
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "aten::_to_copy");
    ms_trace_read(trace, sum.out);
    uint32_t y = ms_trace_make_like(trace, "out", q);
    ms_trace_end(trace, 0, false);
    ms_trace_drop(trace, sum.out);
    uint32_t node = ms_trace_node(trace, &ring_rule, inputs, 3, &y, 1);
    if (node != MS_NONE)
        trace->nodes[node].i[0] = causal;
    for (int i = Q; i <= V; i++)
        ms_trace_save(trace, node, inputs[i]);
    ms_trace_save(trace, node, y);
    ms_trace_save(trace, node, sum.lse);
    ms_trace_drop(trace, sum.lse);
    return y;
}
