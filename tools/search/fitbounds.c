/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lower bounds of a set-up's memory and time; fit.h says why they are sound. */

#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tools/search/fit.h"

#include <string.h>

#define NS_PER_S 1e9

static bool is_repeated(const ms_graph *graph, uint32_t op)
{
    return op < graph->step_first && graph->op_pass[op] != MS_ACCUMULATE;
}

static uint64_t longest(const uint64_t *ns)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        most = ns[s] > most ? ns[s] : most;
    return most;
}

/* ---- the graph ----------------------------------------------------------- */

uint64_t ms_fitbounds_start(const ms_graph *graph, uint32_t storage)
{
    uint64_t bytes = graph->storage_bytes[storage];
    bool far = graph->storage_pool != NULL &&
               graph->storage_pool[storage] != MS_DEVICE_POOL;
    bool shared = graph->storage_shard_bytes != NULL &&
                  graph->storage_shard_bytes[storage] != MS_UNSHARED;
    if (!graph->storage_at_start[storage])
        return 0;
    if (graph->storage_whole != NULL && graph->storage_whole[storage])
        /* the gathered copy is on the device wherever the shard is */
        return bytes;
    if (far)
        return 0;
    return shared ? graph->storage_shard_bytes[storage] : bytes;
}

ms_fit_bound ms_fitbounds_graph(const ms_graph *graph, const ms_shape *shape)
{
    uint64_t ns[MS_N_STREAMS] = {0};
    ms_fit_bound bound = {0};
    if (shape->paging.page_bytes > 0)
        return bound;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        bound.peak_bytes += ms_fitbounds_start(graph, s);
    for (uint32_t op = 0; op < graph->n_ops; op++)
        if (is_repeated(graph, op))
            ns[graph->op_stream[op]] += graph->op_ns[op] * shape->micro_batches;
        else if (op >= graph->step_first)
            ns[graph->op_stream[op]] += graph->op_ns[op];
    bound.step_ns = longest(ns);
    return bound;
}

/* ---- the program --------------------------------------------------------- */

enum {            /* what the walk knows of a storage */
       KEPT = 1u, /* its SAVED reference lasts until backward */
       HELD = 2u, /* some call of the program holds it */
       MOVED = 4u,
       LOST = 8u, /* only its maker, run again, brings it back */
       HERE = 16u /* held by the call that made it, and not dropped yet */
};

typedef struct walk {
    const ms_graph *graph;
    const ms_program *program;
    const ms_expand_opts *opts;
    uint8_t *of; /* by storage: the bits above */
    /* by op: the micro-batch, plus 1, that ran it again last */
    uint32_t *run_in;
    uint32_t backwards;
    uint64_t ns[MS_N_STREAMS];
    uint64_t peak_bytes; /* when the first backward begins; 0: not yet */
} walk;

/* The storages of a set; none for MS_ALL and MS_NOTHING. */
static const uint32_t *items(const walk *w, uint32_t set, uint32_t *n)
{
    *n = 0;
    if (set == MS_ALL || set == MS_NOTHING)
        return NULL;
    *n = w->program->set_at[set + 1] - w->program->set_at[set];
    return w->program->set_item + w->program->set_at[set];
}

static void clear(const walk *w, uint32_t set, uint8_t bits)
{
    uint32_t n;
    const uint32_t *storages = items(w, set, &n);
    for (uint32_t i = 0; i < n; i++)
        w->of[storages[i]] &= (uint8_t)~bits;
}

static void mark(const walk *w, uint32_t set, uint8_t bits)
{
    uint32_t n;
    const uint32_t *storages = items(w, set, &n);
    for (uint32_t i = 0; i < n; i++)
        w->of[storages[i]] |= bits;
}

/* Marks what any call or the hooks move away and what a call holds, before the
 * walk: a storage that leaves at any time must not count to a lower bound. A
 * move to MS_SHARD frees the gathered copy only; the shard still counts. */
static void look_ahead(const walk *w)
{
    const ms_hooks *hooks = &w->program->hooks;
    for (uint32_t i = 0; i < w->program->n_calls; i++) {
        const ms_call *call = &w->program->calls[i];
        if (call->verb == MS_MOVE && call->move.to != MS_HERE &&
            call->move.to != MS_SHARD)
            mark(w, call->set, MOVED);
        else if (call->verb == MS_HOLD ||
                 (call->verb == MS_RUN && call->run.pass == MS_FORWARD))
            mark(w, call->set, HELD);
    }
    for (uint32_t i = 0; i < w->graph->n_kept; i++)
        w->of[w->graph->kept[i]] |= HELD;
    for (uint32_t i = 0; i < w->graph->n_saves; i++)
        if (hooks->used && ms_hooks_packs(hooks, &w->graph->saves[i]) &&
            w->graph->saves[i].storage >= w->graph->n_persistent)
            w->of[w->graph->saves[i].storage] |= MOVED;
    for (uint32_t s = w->graph->n_persistent;
         hooks->used && w->graph->saves == NULL && s < w->graph->n_storages;
         s++)
        w->of[s] |= MOVED;
}

static void run_ops(walk *w, uint32_t first, uint32_t end)
{
    const ms_graph *graph = w->graph;
    for (uint32_t op = first; op < end; op++)
        if (graph->op_pass[op] != MS_ACCUMULATE)
            w->ns[graph->op_stream[op]] += graph->op_ns[op];
}

/* Decides which outputs of a forward last until the backward: KEPT, or LOST
 * where nothing keeps, holds or moves them. */
static void run_forward(walk *w, const ms_call *call)
{
    const ms_graph *graph = w->graph;
    uint32_t first = graph->forward_at[call->unit], n;
    uint32_t end = graph->forward_at[call->unit + 1];
    uint32_t forward = graph->forward_at[graph->n_units];
    const uint32_t *kept = items(w, call->run.keep, &n);
    run_ops(w, first, end);
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++) {
        uint32_t s = graph->out[i], saved = graph->storage_saved_end[s];
        uint32_t local = graph->storage_local_end[s];
        w->of[s] &= (uint8_t) ~(KEPT | LOST);
        if (saved == MS_NONE || saved < forward || s < graph->n_persistent)
            continue;
        if (call->run.keep == MS_ALL)
            w->of[s] |= KEPT;
        else if (local < forward && !(w->of[s] & (HELD | MOVED)))
            w->of[s] |= LOST;
    }
    for (uint32_t i = 0; i < n; i++)
        if (graph->storage_saved_end[kept[i]] != MS_NONE &&
            graph->storage_saved_end[kept[i]] >= forward)
            w->of[kept[i]] = (uint8_t)((w->of[kept[i]] & ~LOST) | KEPT);
    mark(w, call->set, HERE);
}

static uint64_t bytes_now(const walk *w)
{
    const ms_graph *graph = w->graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (!(w->of[s] & MOVED) && graph->storage_local_end[s] == MS_NONE)
            bytes += ms_fitbounds_start(graph, s);
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (w->of[s] & (KEPT | HERE) && !(w->of[s] & MOVED) &&
            (graph->storage_pool == NULL ||
             graph->storage_pool[s] == MS_DEVICE_POOL))
            bytes += graph->storage_bytes[s];
    return bytes;
}

static void run_backward(walk *w, const ms_call *call)
{
    const ms_graph *graph = w->graph;
    uint32_t u = call->unit;
    if (w->backwards++ == 0)
        w->peak_bytes = bytes_now(w);
    run_ops(w, graph->backward_at[u + 1], graph->backward_at[u]);
    for (uint32_t i = graph->back_in_at[u]; i < graph->back_in_at[u + 1]; i++) {
        uint32_t s = graph->back_in[i], maker = graph->storage_maker[s];
        if (!(w->of[s] & LOST) || w->run_in[maker] == call->micro_batch + 1)
            continue;
        w->run_in[maker] = call->micro_batch + 1;
        w->ns[graph->op_stream[maker]] += graph->op_ns[maker];
    }
}

/* The first time what a forward saved goes to the host, its bytes cross the
 * link. */
static void move(walk *w, const ms_call *call)
{
    double rate = w->opts->d2h_bytes_per_s;
    bool in_line = call->move.in_line;
    uint64_t *ns = &w->ns[in_line ? MS_STREAM_COMPUTE : MS_STREAM_D2H];
    uint32_t n;
    const uint32_t *storages = items(w, call->set, &n);
    if (call->move.to != MS_HOST || rate <= 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i];
        if (!(w->of[s] & KEPT))
            continue;
        w->of[s] &= (uint8_t)~KEPT;
        *ns += (uint64_t)((double)w->graph->storage_bytes[s] / rate * NS_PER_S);
    }
}

static void do_call(walk *w, const ms_call *call)
{
    if (call->rank != 0)
        return;
    if (call->verb == MS_RUN && call->run.pass == MS_FORWARD)
        run_forward(w, call);
    else if (call->verb == MS_RUN)
        run_backward(w, call);
    else if (call->verb == MS_MOVE)
        move(w, call);
    else if (call->verb == MS_DROP_SET)
        clear(w, call->set, HERE);
}

/* With several frames a storage is in several states at once, which the walk
 * does not model; then the bound of the graph alone stands. */
ms_err ms_fitbounds_program(const ms_graph *graph, const ms_program *program,
                            const ms_expand_opts *opts, ms_arena *arena,
                            ms_fit_bound *bound, ms_fault *fault)
{
    walk w = {.graph = graph, .program = program, .opts = opts};
    if (program->n_frames > 1 || graph->back_in_at == NULL ||
        bound->step_ns == 0)
        return MS_OK;
    w.of = ms_arena_take(arena, graph->n_storages, sizeof *w.of);
    w.run_in = ms_arena_take(arena, graph->n_ops, sizeof *w.run_in);
    if (w.of == NULL || w.run_in == NULL)
        return ms_fail_nomem(fault);
    look_ahead(&w);
    for (uint32_t i = 0; i < program->n_calls; i++)
        do_call(&w, &program->calls[i]);
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++)
        w.ns[graph->op_stream[op]] += graph->op_ns[op];
    uint64_t step_ns = longest(w.ns);
    if (step_ns > bound->step_ns)
        bound->step_ns = step_ns;
    if (w.peak_bytes > bound->peak_bytes)
        bound->peak_bytes = w.peak_bytes;
    return MS_OK;
}
