/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/search/fitcosts.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/stage.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"

#include <string.h>

/* ---- states -------------------------------------------------------------- */

/* The layers' units: the first that has an op of it. */
static ms_err find_layers(const ms_graph *graph, ms_arena *trial,
                          uint32_t **unit_of, ms_fault *fault)
{
    uint32_t *of = ms_arena_take_raw(trial, graph->n_layers + 1, sizeof *of);
    if (of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t l = 0; l < graph->n_layers; l++)
        of[l] = MS_NONE;
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++) {
        uint32_t l = graph->op_layer[op];
        if (l != MS_NONE && of[l] == MS_NONE)
            of[l] = graph->op_unit[op];
    }
    *unit_of = of;
    return MS_OK;
}

static uint64_t gradient_bytes(const ms_graph *graph, uint32_t s)
{
    bool shared = graph->storage_shard_bytes != NULL &&
                  graph->storage_shard_bytes[s] != MS_UNSHARED;
    if (graph->storage_at_start[s] ||
        graph->storage_category[s] != MS_GRADIENTS ||
        (graph->storage_pool != NULL &&
         graph->storage_pool[s] != MS_DEVICE_POOL))
        return 0;
    return shared && !graph->grads_whole ? graph->storage_shard_bytes[s]
                                         : graph->storage_bytes[s];
}

static void sum_up(uint64_t *of, uint32_t n)
{
    uint64_t before = 0;
    for (uint32_t u = 0; u <= n; u++) {
        uint64_t own = of[u];
        of[u] = before;
        before += own;
    }
}

static ms_err count_states(const ms_graph *graph, ms_arena *trial,
                           ms_fitcosts *c, ms_fault *fault)
{
    uint32_t *unit_of = NULL;
    MS_TRY(find_layers(graph, trial, &unit_of, fault));
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        uint32_t l =
            graph->storage_layer != NULL ? graph->storage_layer[s] : MS_NONE;
        if (l == MS_NONE || unit_of[l] == MS_NONE)
            continue;
        c->state[unit_of[l]] += ms_fitbounds_start(graph, s);
        c->grads[unit_of[l]] += gradient_bytes(graph, s);
    }
    sum_up(c->state, c->n_units);
    sum_up(c->grads, c->n_units);
    return MS_OK;
}

/* ---- what checkpoints keep and run again --------------------------------- */

enum { KEPT = 1u, NEEDED = 2u };

static bool waits(const ms_graph *graph, uint32_t s)
{
    uint32_t saved = graph->storage_saved_end[s];
    return s >= graph->n_persistent && saved != MS_NONE &&
           saved >= graph->forward_at[graph->n_units];
}

static bool on_device(const ms_graph *graph, uint32_t s)
{
    return graph->storage_pool == NULL ||
           graph->storage_pool[s] == MS_DEVICE_POOL;
}

static void keep_one(const ms_graph *graph, uint32_t s, uint8_t *marks,
                     uint64_t *bytes)
{
    if (marks[s] & KEPT)
        return;
    marks[s] |= KEPT;
    if (on_device(graph, s))
        *bytes += graph->storage_bytes[s];
}

/* What the unit's nodes keep, and what a segment holds that begins with it. */
static void keep_unit(const ms_graph *graph, const ms_keep *keep, uint32_t u,
                      uint8_t *marks, uint64_t *bytes)
{
    uint32_t end = graph->out_at[graph->forward_at[u + 1]];
    uint32_t segment = keep->segment[u];
    if (segment != MS_NONE && (u == 0 || keep->segment[u - 1] != segment))
        for (uint32_t i = graph->unit_in_at[u]; i < graph->unit_in_at[u + 1];
             i++)
            if (graph->unit_in[i] >= graph->n_persistent)
                keep_one(graph, graph->unit_in[i], marks, bytes);
    for (uint32_t i = graph->out_at[graph->forward_at[u]]; i < end; i++) {
        uint32_t s = graph->out[i];
        if (waits(graph, s) && keep->place[s] == MS_HERE)
            keep_one(graph, s, marks, bytes);
    }
}

static bool makes_needed(const ms_graph *graph, const uint8_t *marks,
                         uint32_t op)
{
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        if (marks[graph->out[i]] & NEEDED)
            return true;
    return false;
}

/* From the last unit to the first: ops whose outputs a backward needs, or such
 * an op, and nothing keeps. */
static uint64_t rerun_unit(const ms_graph *graph, const ms_keep *keep,
                           uint32_t u, uint8_t *marks)
{
    uint64_t ns = 0;
    if (keep->segment[u] == MS_NONE)
        return 0;
    for (uint32_t i = graph->out_at[graph->forward_at[u]];
         i < graph->out_at[graph->forward_at[u + 1]]; i++) {
        uint32_t s = graph->out[i];
        if (waits(graph, s) && !(marks[s] & KEPT))
            marks[s] |= NEEDED;
    }
    for (uint32_t op = graph->forward_at[u + 1]; op-- > graph->forward_at[u];) {
        if (!makes_needed(graph, marks, op))
            continue;
        if (graph->op_stream[op] == MS_STREAM_COMPUTE)
            ns += graph->op_ns[op];
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            if (s >= graph->n_persistent && !(marks[s] & KEPT))
                marks[s] |= NEEDED;
        }
    }
    return ns;
}

/* A tensor that no segment's node saves again is no part of one: what is needed
 * of another segment is left out of account there. */
static ms_err count_way(const char *spec, uint32_t way, const ms_job *job,
                        ms_arena *trial, const ms_expand_opts *opts,
                        const ms_result *result, ms_fitcosts *c,
                        ms_fault *fault)
{
    const ms_graph *graph = result->graph;
    ms_result alone = *result;
    ms_job kept = *job;
    ms_keep keep;
    bool only;
    uint8_t *marks = ms_arena_take(trial, graph->n_storages, 1);
    if (marks == NULL)
        return ms_fail_nomem(fault);
    kept.spec = (ms_spec){0};
    if (*spec != '\0')
        MS_TRY(ms_spec_parse(spec, trial, &kept.spec, fault));
    alone.shape.micro_batches = 1;
    MS_TRY(ms_jobprogram_keep(&kept, trial, opts, &alone, &keep, &only, fault));
    if (!only)
        return MS_OK;
    for (uint32_t u = 0; u < c->n_units; u++)
        keep_unit(graph, &keep, u, marks, &c->kept[way][u]);
    for (uint32_t u = c->n_units; u-- > 0;)
        c->again[way][u] = rerun_unit(graph, &keep, u, marks);
    sum_up(c->kept[way], c->n_units);
    sum_up(c->again[way], c->n_units);
    return MS_OK;
}

ms_err ms_fitcosts_make(const ms_job *job, ms_arena *trial,
                        const ms_expand_opts *opts, const ms_result *result,
                        ms_arena *arena, ms_fitcosts *c, ms_fault *fault)
{
    static const char *const specs[MS_FITCOSTS_WAYS] = {
        "", "checkpoint:selective", "checkpoint:full"};
    const ms_graph *graph = result->graph;
    size_t n = graph->n_units + 1u;
    uint64_t *room =
        ms_arena_take(arena, n * (2 + 2 * MS_FITCOSTS_WAYS), sizeof *room);
    uint8_t *second = ms_arena_take_raw(arena, graph->n_ops, 1);
    if (room == NULL || second == NULL)
        return ms_fail_nomem(fault);
    c->n_units = graph->n_units;
    c->second = second;
    c->state = room;
    c->grads = room + n;
    ms_stage_halves(graph, second);
    MS_TRY(count_states(graph, trial, c, fault));
    for (uint32_t way = 0; way < MS_FITCOSTS_WAYS; way++) {
        c->kept[way] = room + (2 + way) * n;
        c->again[way] = room + (2 + MS_FITCOSTS_WAYS + way) * n;
        MS_TRY(count_way(specs[way], way, job, trial, opts, result, c, fault));
    }
    return MS_OK;
}

/* ---- how long a turn takes at least -------------------------------------- */

typedef struct clock {
    const ms_graph *graph;
    const uint8_t *second;
    uint64_t *ready; /* by storage: when it is made; in turn `made` */
    uint32_t *made, turn;
    uint64_t free[MS_N_STREAMS], first, last;
    bool begun, straight; /* straight: nothing is waited for */
} clock;

static void begin_turn(clock *k)
{
    memset(k->free, 0, sizeof k->free);
    k->first = k->last = 0;
    k->begun = false;
    k->turn++;
}

static void run_op(clock *k, uint32_t op)
{
    const ms_graph *graph = k->graph;
    uint8_t stream = graph->op_stream[op];
    uint64_t at = k->free[stream];
    for (uint32_t i = graph->in_at[op];
         i < graph->in_at[op + 1] && !k->straight; i++) {
        uint32_t s = graph->in[i];
        if (k->made[s] == k->turn && k->ready[s] > at)
            at = k->ready[s];
    }
    uint64_t end =
        at + (graph->op_pass[op] == MS_ACCUMULATE ? 0 : graph->op_ns[op]);
    k->free[stream] = end;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        k->made[graph->out[i]] = k->turn;
        k->ready[graph->out[i]] = end;
    }
    if (stream != MS_STREAM_COMPUTE)
        return;
    if (!k->begun)
        k->first = at;
    k->begun = true;
    k->last = end;
}

/* half: 0 and 1 as in second; 2: all. */
static uint64_t time_turn(clock *k, uint32_t first, uint32_t end, uint8_t half)
{
    begin_turn(k);
    for (uint32_t op = first; op < end; op++)
        if (half == 2 || k->second[op] == half)
            run_op(k, op);
    return k->last - k->first;
}

static ms_err time_stages(const ms_graph *graph, const ms_fitcosts_layout *f,
                          const uint8_t *second, ms_arena *trial,
                          ms_fitcosts_turns *times, ms_fault *fault)
{
    uint32_t n = graph->n_storages;
    clock k = {.graph = graph,
               .second = second,
               .straight = f->pairs,
               .ready = ms_arena_take_raw(trial, n, sizeof *k.ready),
               .made = ms_arena_take(trial, n, sizeof *k.made)};
    if (k.ready == NULL || k.made == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t s = 0; s < f->n; s++) {
        uint32_t from = graph->backward_at[f->last[s] + 1];
        uint32_t end = graph->backward_at[f->first[s]];
        times[s].forward_ns = time_turn(&k, graph->forward_at[f->first[s]],
                                        graph->forward_at[f->last[s] + 1], 2);
        times[s].whole_ns = time_turn(&k, from, end, 2);
        times[s].input_ns = f->splits ? time_turn(&k, from, end, 0) : 0;
        times[s].weight_ns = f->splits ? time_turn(&k, from, end, 1) : 0;
    }
    return MS_OK;
}

/* Schedules of one kind with as many stages have the same. */
ms_err ms_fitcosts_time(ms_fitcosts *c, const ms_graph *graph,
                        const ms_fitcosts_layout *f, ms_arena *arena,
                        ms_arena *trial, ms_fitcosts_turns **times,
                        ms_fault *fault)
{
    for (uint32_t i = 0; i < MS_FITCOSTS_LAYOUTS; i++)
        if (c->layouts[i].n == f->n && c->layouts[i].pairs == f->pairs) {
            *times = c->layouts[i].times;
            return MS_OK;
        }
    struct ms_fitcosts_timed *at =
        &c->layouts[c->next_layout++ % MS_FITCOSTS_LAYOUTS];
    at->n = 0;
    at->times = ms_arena_take(arena, f->n, sizeof *at->times);
    if (at->times == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(time_stages(graph, f, c->second, trial, at->times, fault));
    at->n = f->n;
    at->pairs = f->pairs;
    *times = at->times;
    return MS_OK;
}
