/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/experts/deepdispatch.h"
#include "graphs/layertypes.h"
#include "graphs/parallel/expertops.h"
#include "graphs/parallel/meetops.h"
#include "sim/graph.h"

#include <math.h>

/* ---- its buffers --------------------------------------------------------- */

#define CHANNELS 10u /* 20 multiprocessors */
#define NODE_RANKS 8u
#define TOPK_BYTES 2048u /* of 128 experts of a token at most, ids and p */
#define WORKSPACE_BYTES (UINT64_C(32) << 20)

/* Per number of ranks the tokens that a channel holds: over NVLink, and over
 * the network, rounded up to a multiple of what is sent together. */
static const struct {
    uint32_t ranks, nvlink, network;
} configurations[] = {{2, 256, 0},    {4, 256, 0},     {8, 256, 0},
                      {16, 288, 140}, {24, 288, 128},  {32, 288, 128},
                      {64, 288, 140}, {128, 560, 132}, {144, 720, 128},
                      {160, 720, 128}};

uint64_t ms_deepdispatch_bytes(uint32_t ranks, uint64_t width)
{
    uint64_t near = ranks < NODE_RANKS ? ranks : NODE_RANKS;
    uint64_t nodes = ranks > NODE_RANKS ? ranks / NODE_RANKS : 1;
    uint64_t token = 2 * width + TOPK_BYTES;
    for (size_t i = 0; i < sizeof configurations / sizeof *configurations;
         i++) {
        if (configurations[i].ranks != ranks)
            continue;
        uint64_t bytes =
            CHANNELS * near *
            (4 * (2 * nodes + 3) + configurations[i].nvlink * (token + 8));
        if (nodes > 1)
            bytes +=
                CHANNELS * nodes *
                (144 + UINT64_C(2) * configurations[i].network * (token + 24));
        return bytes + WORKSPACE_BYTES;
    }
    return 0;
}

ms_err ms_deepdispatch_check(ms_trace *trace, const ms_layer *layer)
{
    const ms_expert_ranks *ranks = trace->experts;
    if (ranks->within.ranks > 1)
        return ms_trace_fail(trace, layer, "type etp=1, or dispatch=nccl",
                             "\"%s\": how DeepEP's ranks split experts is not "
                             "known (expert)",
                             layer->name);
    if (ms_deepdispatch_bytes(ranks->across.ranks, 1) > 0)
        return MS_OK;
    return ms_trace_fail(trace, layer,
                         "take 2, 4, 8, 16, 24, 32, 64, 128, 144 or 160 ranks, "
                         "or dispatch=nccl",
                         "\"%s\": DeepEP has no configuration for %u ranks",
                         layer->name, ranks->across.ranks);
}

/* ---- there --------------------------------------------------------------- */

/* Tokens that have an expert here, of those of all ranks. */
static int64_t unique_tokens(const ms_trace *trace, const ms_dispatch *how,
                             int64_t tokens)
{
    double none = 1;
    double experts = (double)how->sent.experts, own = (double)how->own_experts;
    for (int64_t i = 0; i < how->sent.chosen; i++)
        none *= (experts - own - (double)i) / (experts - (double)i);
    if (none < 0 || how->sent.experts - how->own_experts < how->sent.chosen)
        none = 0;
    return (int64_t)ceil((double)tokens * trace->experts->across.ranks *
                         (1 - none));
}

/* Where tokens come from and go to is known on both sides: the handle is read
 * and not sent. */
static void end(ms_trace *trace, uint32_t handle)
{
    if (trace->err)
        return;
    trace->graph->op_read_bytes[trace->graph->n_ops - 1] -=
        ms_trace_bytes(ms_trace_at(trace, handle));
    ms_meetops_end(trace, MS_ALL_TO_ALL, MS_GROUP_EXPERT,
                   &trace->experts->across);
}

static uint32_t matrix(ms_trace *trace, const char *role, uint8_t dtype,
                       int64_t rows, int64_t columns)
{
    return ms_trace_make(trace, role, dtype, 2,
                         (const int64_t[]){rows, columns});
}

/* Gradients of tokens and p come back as results do. */
static void dispatch_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    uint32_t first = grads[0] != MS_NONE ? grads[0] : grads[1];
    ms_trace_begin_backward(trace, node, first);
    if (grads[0] != MS_NONE && grads[1] != MS_NONE)
        ms_trace_read(trace, grads[1]);
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    end(trace, node->saved[0]);
}

static const ms_rule dispatch_rule = {"FusedDispatchBackward",
                                      "deepep::combine", dispatch_backward};

enum { X, P, IDS, HANDLE, N_MADE };

static void dispatch(ms_trace *trace, const ms_dispatch *how, uint32_t x,
                     uint32_t which, uint32_t p, int64_t unique,
                     uint32_t made[N_MADE])
{
    const uint32_t in[2] = {x, p};
    int64_t chosen = how->sent.chosen;
    if (trace->err)
        return;
    ms_tensor token = *ms_trace_at(trace, x), share = *ms_trace_at(trace, p);
    int64_t ranks = trace->experts->across.ranks;
    int64_t handle = unique + 2 * ranks * token.size[0];
    ms_trace_begin(trace, "deepep::get_dispatch_layout");
    ms_trace_read(trace, which);
    made[HANDLE] = ms_trace_make(trace, "handle", MS_INT32, 1, &handle);
    ms_trace_end(trace, 0, false);
    ms_trace_begin(trace, "deepep::dispatch");
    ms_trace_read(trace, x);
    ms_trace_read(trace, which);
    ms_trace_read(trace, p);
    ms_trace_read(trace, made[HANDLE]);
    made[X] = matrix(trace, "received", token.dtype, unique, token.size[1]);
    made[IDS] = matrix(trace, "indices", MS_INT64, unique, chosen);
    made[P] = matrix(trace, "probabilities", share.dtype, unique, chosen);
    end(trace, made[HANDLE]);
    uint32_t n = ms_trace_node(trace, &dispatch_rule, in, 2, made, 2);
    ms_trace_save(trace, n, made[HANDLE]);
}

static void hot_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = trace->err ? MS_NONE
                        : ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
}

static const ms_rule hot_rule = {"IndicesToMultihotBackward",
                                 "indices_to_multihot_backward", hot_backward};

/* Which of this rank's experts a token has, and p of each; made is used up. */
static void spread(ms_trace *trace, const ms_dispatch *how, uint32_t ids,
                   uint32_t p, ms_deepdispatch *way)
{
    if (trace->err)
        return;
    uint8_t dtype = ms_trace_at(trace, p)->dtype;
    int64_t own = how->own_experts;
    ms_trace_begin(trace, "indices_to_multihot");
    ms_trace_read(trace, ids);
    ms_trace_read(trace, p);
    way->map = matrix(trace, "multihot", MS_BYTE, way->unique, own);
    way->p = matrix(trace, "probabilities", dtype, way->unique, own);
    ms_trace_workspace(trace, 8 * (uint64_t)(way->unique * own));
    ms_trace_end(trace, 0, false);
    uint32_t n = ms_trace_node(trace, &hot_rule, &p, 1, &way->p, 1);
    ms_trace_save(trace, n, ids);
    ms_trace_drop(trace, ids);
    ms_trace_drop(trace, p);
}

uint32_t ms_deepdispatch_there(ms_trace *trace, const ms_dispatch *how,
                               uint32_t x, uint32_t which, uint32_t p,
                               ms_deepdispatch *way, uint32_t *own)
{
    uint32_t made[N_MADE] = {MS_NONE, MS_NONE, MS_NONE, MS_NONE};
    ms_dispatch here = *how;
    *own = MS_NONE;
    if (trace->err)
        return MS_NONE;
    uint64_t *bytes = &trace->graph->library_bytes;
    uint64_t need = ms_deepdispatch_bytes(
        trace->experts->across.ranks, (uint64_t)ms_trace_at(trace, x)->size[1]);
    *bytes = need > *bytes ? need : *bytes;
    way->tokens = ms_trace_at(trace, x)->size[0];
    way->unique = unique_tokens(trace, how, way->tokens);
    dispatch(trace, how, x, which, p, way->unique, made);
    way->handle = made[HANDLE];
    spread(trace, how, made[IDS], made[P], way);
    here.sent.rows = how->received;
    uint32_t rows =
        ms_dispatch_permute(trace, &here, made[X], way->map, way->p, own);
    ms_trace_drop(trace, made[X]);
    return rows;
}

/* ---- back ---------------------------------------------------------------- */

static void combine_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = trace->err ? MS_NONE
                        : ms_trace_make_like(trace, "grad", node->input[0]);
    end(trace, node->saved[0]);
}

static const ms_rule combine_rule = {"FusedCombineBackward", "deepep::dispatch",
                                     combine_backward};

uint32_t ms_deepdispatch_back(ms_trace *trace, const ms_dispatch *how,
                              const ms_deepdispatch *way, uint32_t y)
{
    uint32_t p = how->weights_gate ? MS_NONE : way->p;
    y = ms_trace_rebind(
        trace, y, ms_experts_unpermute(trace, y, way->map, p, way->unique));
    if (trace->err)
        return MS_NONE;
    ms_tensor row = *ms_trace_at(trace, y);
    ms_trace_begin(trace, "deepep::combine");
    ms_trace_read(trace, y);
    ms_trace_read(trace, way->handle);
    uint32_t out = matrix(trace, "out", row.dtype, way->tokens, row.size[1]);
    end(trace, way->handle);
    uint32_t n = ms_trace_node(trace, &combine_rule, &y, 1, &out, 1);
    ms_trace_save(trace, n, way->handle);
    ms_trace_drop(trace, way->handle);
    ms_trace_drop(trace, way->map);
    ms_trace_drop(trace, way->p);
    return ms_trace_rebind(trace, y, out);
}
