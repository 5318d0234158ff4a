/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/experts/dispatch.h"
#include "graphs/layers/layers.h"
#include "graphs/parallel/expertops.h"

/* ---- rows and what goes along with them ---------------------------------- */

/* Makes a tensor of so many rows like x, by the open op. */
static uint32_t make(ms_trace *trace, const char *role, uint32_t x,
                     int64_t rows)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    like.size[0] = rows;
    return ms_trace_make(trace, role, like.dtype, like.n_dims, like.size);
}

/* One kernel that moves the rows of all gradients back. */
static void move_back(ms_trace *trace, const ms_node *node,
                      const uint32_t *grads, uint32_t *out)
{
    uint32_t first = grads[0] != MS_NONE ? grads[0] : grads[1];
    ms_trace_begin_backward(trace, node, first);
    for (uint32_t i = 1; i < node->n_outputs; i++)
        if (grads[i] != MS_NONE && grads[i] != first)
            ms_trace_read(trace, grads[i]);
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, 0, false);
}

static const ms_rule permute_rule = {"PermuteTokensBackward",
                                     "moe_permute_backward", move_back};
static const ms_rule sort_rule = {"SortChunksBackward",
                                  "moe_sort_chunks_backward", move_back};

/* x and p of each token's experts, p [tokens, chosen], in one kernel. */
static uint32_t permute_both(ms_trace *trace, const ms_dispatch *how,
                             uint32_t x, uint32_t map, uint32_t p,
                             uint32_t *own)
{
    const uint32_t in[2] = {x, p};
    uint32_t made[2];
    if (trace->err)
        return *own = MS_NONE;
    int64_t rows = how->sent.rows;
    ms_trace_begin(trace, "moe_permute");
    ms_trace_read(trace, x);
    ms_trace_read(trace, map);
    ms_trace_read(trace, p);
    made[0] = make(trace, "permuted", x, rows);
    uint8_t dtype = trace->err ? MS_FLOAT32 : ms_trace_at(trace, p)->dtype;
    made[1] = ms_trace_make(trace, "probabilities", dtype, 1, &rows);
    ms_trace_end(trace, 0, false);
    uint32_t n = ms_trace_node(trace, &permute_rule, in, 2, made, 2);
    ms_trace_save(trace, n, map);
    *own = made[1];
    return made[0];
}

/* Rows by rank become rows by expert, or the other way: p goes along unless it
 * is MS_NONE. */
static void sort(ms_trace *trace, uint32_t *x, uint32_t *p)
{
    uint32_t in[2] = {*x, *p}, made[2] = {MS_NONE, MS_NONE};
    uint32_t many = *p == MS_NONE ? 1 : 2;
    if (trace->err)
        return;
    int64_t rows = ms_trace_at(trace, *x)->size[0];
    ms_trace_begin(trace, "moe_sort_chunks");
    for (uint32_t i = 0; i < many; i++)
        ms_trace_read(trace, in[i]);
    uint32_t map = ms_trace_make(trace, "chunk_map", MS_INT32, 1, &rows);
    for (uint32_t i = 0; i < many; i++)
        made[i] = make(trace, "sorted", in[i], rows);
    ms_trace_end(trace, 0, false);
    uint32_t n = ms_trace_node(trace, &sort_rule, in, many, made, many);
    ms_trace_save(trace, n, map);
    ms_trace_drop(trace, map);
    *x = ms_trace_rebind(trace, *x, made[0]);
    if (many == 2)
        *p = ms_trace_rebind(trace, *p, made[1]);
}

/* ---- there and back ------------------------------------------------------ */

static void receive(ms_trace *trace, const ms_dispatch *how, uint32_t *x)
{
    if (*x == MS_NONE)
        return;
    *x = ms_trace_rebind(trace, *x,
                         ms_expertops_exchange(trace, *x, how->received));
}

static void gather(ms_trace *trace, uint32_t *x)
{
    if (*x != MS_NONE)
        *x = ms_trace_rebind(trace, *x, ms_expertops_gather(trace, *x));
}

uint32_t ms_dispatch_permute(ms_trace *trace, const ms_dispatch *how,
                             uint32_t x, uint32_t map, uint32_t p,
                             uint32_t *own)
{
    *own = MS_NONE;
    return how->weights_gate ? permute_both(trace, how, x, map, p, own)
                             : ms_experts_permute(trace, x, map, &how->sent);
}

uint32_t ms_dispatch_there(ms_trace *trace, const ms_dispatch *how, uint32_t x,
                           uint32_t map, uint32_t p, uint32_t *own)
{
    uint32_t rows = ms_dispatch_permute(trace, how, x, map, p, own);
    if (!ms_expertops_divides(trace))
        return rows;
    receive(trace, how, &rows);
    receive(trace, how, own);
    gather(trace, &rows);
    gather(trace, own);
    if (how->own_experts > 1)
        sort(trace, &rows, own);
    return rows;
}

uint32_t ms_dispatch_back(ms_trace *trace, const ms_dispatch *how, uint32_t y,
                          bool wide)
{
    uint32_t alone = MS_NONE;
    if (trace->err || !ms_expertops_divides(trace))
        return y;
    uint8_t dtype = ms_trace_at(trace, y)->dtype;
    bool casts = wide && trace->experts->within.ranks > 1;
    if (how->own_experts > 1)
        sort(trace, &y, &alone);
    if (casts)
        y = ms_trace_rebind(trace, y, ms_cast_to(trace, y, MS_FLOAT32));
    y = ms_trace_rebind(trace, y, ms_expertops_scatter(trace, y));
    if (casts)
        y = ms_trace_rebind(trace, y, ms_cast_to(trace, y, dtype));
    return ms_trace_rebind(trace, y,
                           ms_expertops_exchange(trace, y, how->sent.rows));
}
