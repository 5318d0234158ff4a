/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/sharedstates.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdio.h>
#include <string.h>

ms_err ms_sharedstates_ranks(const ms_policy_value *dp, const char *where,
                             ms_shape *shape, ms_fault *fault)
{
    uint32_t ranks =
        dp->given ? (uint32_t)dp->number : ms_shape_side_by_side(shape);
    char hint[64];
    bool has_choice = strchr(where, ':') != NULL;
    snprintf(hint, sizeof hint, "type %s%cdp=8, or add --gpus 8", where,
             has_choice ? ',' : ':');
    if (shape->data_ranks > 1 || shape->is_shared)
        return ms_fail(fault, MS_EUSAGE, where, "leave one of the two out",
                       "another policy already says what the ranks share");
    if (ranks == 0)
        return ms_fail(
            fault, MS_EUSAGE, where, hint,
            "the number of ranks that share the states is not given");
    shape->data_ranks = ranks;
    shape->is_shared = true;
    return MS_OK;
}

ms_err ms_sharedstates_experts(const ms_policy_value *value, const char *where,
                               ms_shape *shape, ms_fault *fault)
{
    uint32_t some = (uint32_t)value->number;
    if (!value->given)
        return MS_OK;
    MS_TRY(ms_policy_check_groups(where, "expert_ranks=", shape->data_ranks,
                                  some, fault));
    shape->expert_ranks = some;
    return MS_OK;
}

ms_err ms_sharedstates_need_experts(const ms_policy_context *context,
                                    const char *where, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    if (context->shape == NULL || context->shape->expert_ranks == 0 ||
        graph->storage_shard_bytes == NULL ||
        graph->share[MS_GROUP_EXPERT_DATA].parts > 0)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, where, "leave expert_ranks out",
                   "the model has no experts");
}

ms_err ms_sharedstates_two_memories(const char *where, const ms_shape *shape,
                                    ms_fault *fault)
{
    if (!shape->one_memory)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, where,
                   "leave it out, or checkpoint to keep less",
                   "there is one memory, which a CPU has for itself or shares "
                   "with the GPU: what moves to the host takes as much of it "
                   "as before");
}

/* ---- what a unit reads and makes ----------------------------------------- */

/* A list of storages per unit, CSR, and their set once a call has named it. */
typedef struct unit_lists {
    uint32_t *at, *item, *set;
    uint32_t capacity;
} unit_lists;

typedef struct writer {
    const ms_graph *graph;
    ms_arena *arena;
    ms_fault *fault;
    ms_program *program; /* the new one */
    ms_shared shared;
    bool reduces_at_end;
    uint32_t ahead;
    unit_lists forward, backward, grads;
    uint32_t *seen; /* per storage: unit + 1 of the list under way */
    uint32_t *due;  /* per storage: the last run in sight that reads it */
    uint8_t *whole; /* per storage: gathered */
    uint32_t *list; /* room for all persistent storages */
    uint32_t *own;  /* the same, where several groups divide them; else NULL */
    uint32_t *bucket, n_bucket; /* gradients that wait for the bucket to fill */
    uint64_t bucket_bytes, full_bytes, later_full_bytes;
    uint32_t *last; /* per rank and unit: the call that ends its last backward
                     */
    bool gathers_ahead;
    uint8_t *begun; /* with it, per unit: gathered for the rank under way */
    uint32_t *weight_of; /* per gradient */
    uint16_t rank;
} writer;

/* Does one rank alone have it, though the ranks share the rest?  Experts that
 * are divided among all of them. */
static bool is_alone(const ms_graph *graph, uint32_t storage)
{
    uint8_t group = ms_graph_group(graph, storage);
    return group != MS_GROUP_DATA && graph->storage_shard_bytes != NULL &&
           graph->share[group].parts == 1 &&
           graph->storage_shard_bytes[storage] == MS_UNSHARED;
}

static ms_err add(writer *w, unit_lists *lists, uint32_t unit, uint32_t *n,
                  uint32_t storage)
{
    if (w->seen[storage] == unit + 1 || is_alone(w->graph, storage))
        return MS_OK;
    w->seen[storage] = unit + 1;
    lists->item = ms_arena_grow(w->arena, lists->item, &lists->capacity, *n + 1,
                                sizeof *lists->item);
    if (lists->item == NULL)
        return ms_fail_nomem(w->fault);
    lists->item[(*n)++] = storage;
    return MS_OK;
}

static ms_err open_lists(writer *w, unit_lists *lists)
{
    uint32_t units = w->graph->n_units;
    lists->at = ms_arena_take(w->arena, units + 1, sizeof *lists->at);
    lists->set = ms_arena_take_raw(w->arena, units, sizeof *lists->set);
    if (lists->at == NULL || lists->set == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t u = 0; u < units; u++)
        lists->set[u] = MS_NOTHING;
    for (uint32_t s = 0; s < w->graph->n_persistent; s++)
        w->seen[s] = 0;
    return MS_OK;
}

/* The weights that ops of each unit read. */
static ms_err list_weights(writer *w, unit_lists *lists, bool backward)
{
    const ms_graph *graph = w->graph;
    uint32_t n = 0;
    MS_TRY(open_lists(w, lists));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t first =
            backward ? graph->backward_at[u + 1] : graph->forward_at[u];
        uint32_t end =
            backward ? graph->backward_at[u] : graph->forward_at[u + 1];
        for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
            if (ms_graph_is_weight(graph, graph->in[i]))
                MS_TRY(add(w, lists, u, &n, graph->in[i]));
        lists->at[u + 1] = n;
    }
    return MS_OK;
}

static ms_err list_grads(writer *w)
{
    const ms_graph *graph = w->graph;
    uint32_t n = 0;
    MS_TRY(open_lists(w, &w->grads));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        for (uint32_t op = graph->backward_at[u + 1];
             op < graph->backward_at[u]; op++)
            if (graph->op_pass[op] == MS_ACCUMULATE)
                MS_TRY(add(w, &w->grads, u, &n, graph->out[graph->out_at[op]]));
        w->grads.at[u + 1] = n;
    }
    return MS_OK;
}

/* Several ranks may have a unit (the two directions of DualPipe). */
static uint32_t *last_of(const writer *w, const ms_call *call)
{
    return &w->last[(size_t)call->rank * w->graph->n_units + call->unit];
}

static ms_err open_ahead(writer *w)
{
    const ms_graph *graph = w->graph;
    w->begun = ms_arena_take(w->arena, graph->n_units, 1);
    w->weight_of =
        ms_arena_take_raw(w->arena, graph->n_persistent, sizeof *w->weight_of);
    if (!w->begun || !w->weight_of)
        return ms_fail_nomem(w->fault);
    memset(w->weight_of, 0xff, graph->n_persistent * sizeof *w->weight_of);
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s) && graph->storage_grad[s] != MS_NONE)
            w->weight_of[graph->storage_grad[s]] = s;
    return MS_OK;
}

static ms_err open_writer(writer *w, const ms_program *old)
{
    uint32_t n = w->graph->n_persistent;
    MS_TRY(ms_stage_find(w->graph, w->program, w->arena, w->fault));
    w->last = ms_arena_take(w->arena, (size_t)old->n_ranks * w->graph->n_units,
                            sizeof *w->last);
    if (!w->last)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = 0; i < old->n_calls; i++)
        if (ms_program_ends_backward(&old->calls[i]))
            *last_of(w, &old->calls[i]) = i;
    w->seen = ms_arena_take(w->arena, n, sizeof *w->seen);
    w->due = ms_arena_take(w->arena, n, sizeof *w->due);
    w->whole = ms_arena_take(w->arena, n, 1);
    w->list = ms_arena_take_raw(w->arena, n, sizeof *w->list);
    w->bucket = ms_arena_take_raw(w->arena, n, sizeof *w->bucket);
    if (w->graph->storage_shard_group)
        w->own = ms_arena_take_raw(w->arena, n, sizeof *w->own);
    if (!w->seen || !w->due || !w->whole || !w->list || !w->bucket ||
        (w->graph->storage_shard_group && !w->own))
        return ms_fail_nomem(w->fault);
    if (w->gathers_ahead)
        MS_TRY(open_ahead(w));
    MS_TRY(list_weights(w, &w->forward, false));
    MS_TRY(list_weights(w, &w->backward, true));
    return list_grads(w);
}

/* ---- calls --------------------------------------------------------------- */

/* What a run reads: all of its unit's weights.  Replays are in parts, a unit
 * each. */
static unit_lists *weights_of(writer *w, const ms_call *call)
{
    bool backward = call->verb == MS_RUN && call->run.pass != MS_FORWARD;
    return backward ? &w->backward : &w->forward;
}

/* One call over a set, in a group of ranks where it is a collective. */
static ms_err emit_in(writer *w, const ms_call *like, ms_verb verb,
                      uint8_t place, uint8_t group, uint32_t set)
{
    ms_call call = ms_program_call_like(verb, like);
    call.set = set;
    if (verb == MS_REDUCE)
        call.reduce = (ms_reduce_call){
            .to = place, .group = group, .in_line = place == MS_SHARD};
    else if (verb == MS_GATHER)
        call.gather.group = group;
    else if (verb == MS_MOVE)
        call.move.to = place;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

/* The storages that one group divides.  Gradients of which several ranks have
 * the same part are summed once more. */
static ms_err emit_group(writer *w, const ms_call *like, ms_verb verb,
                         uint8_t place, uint8_t group, const uint32_t *storages,
                         uint32_t n)
{
    const ms_share *share = &w->graph->share[group];
    uint32_t n_own = 0, set = MS_NOTHING;
    for (uint32_t i = 0; i < n; i++)
        if (ms_graph_group(w->graph, storages[i]) == group)
            w->own[n_own++] = storages[i];
    if (n_own == 0)
        return MS_OK;
    MS_TRY(ms_program_add_set(w->program, w->own, n_own, w->arena, &set,
                              w->fault));
    MS_TRY(emit_in(w, like, verb, place, group, set));
    bool again = verb == MS_REDUCE && place == MS_SHARD && share->copies > 1;
    return again ? emit_in(w, like, verb, place, share->again, set) : MS_OK;
}

static ms_err emit(writer *w, const ms_call *like, ms_verb verb, uint8_t place,
                   const uint32_t *storages, uint32_t n, uint32_t *set)
{
    if (n == 0)
        return MS_OK;
    for (uint32_t g = 0;
         w->own != NULL && verb != MS_MOVE && g < MS_N_GROUP_ROLES; g++)
        MS_TRY(emit_group(w, like, verb, place, (uint8_t)g, storages, n));
    if (w->own != NULL && verb != MS_MOVE)
        return MS_OK;
    if (*set == MS_NOTHING)
        MS_TRY(ms_program_add_set(w->program, storages, n, w->arena, set,
                                  w->fault));
    return emit_in(w, like, verb, place, MS_GROUP_DATA, *set);
}

/* Gathers what run number r will read, before the run under way. */
static ms_err gather(writer *w, const ms_call *now, const ms_call *run,
                     uint32_t r)
{
    unit_lists *lists = weights_of(w, run);
    uint32_t first = lists->at[run->unit], end = lists->at[run->unit + 1];
    uint32_t n = 0, set = MS_NOTHING;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = lists->item[i];
        w->due[s] = r;
        if (!w->whole[s])
            w->list[n++] = s;
        w->whole[s] = 1;
    }
    bool all = n == end - first;
    return emit(w, now, MS_GATHER, MS_HERE, w->list, n,
                all ? &lists->set[run->unit] : &set);
}

/* Lets go of the weights that run number r read and no run in sight, up to the
 * last one gathered for, reads again. */
static ms_err let_go(writer *w, const ms_call *run, uint32_t r)
{
    unit_lists *lists = weights_of(w, run);
    uint32_t first = lists->at[run->unit], end = lists->at[run->unit + 1];
    uint32_t n = 0, set = MS_NOTHING;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = lists->item[i];
        if (w->due[s] != r || !w->whole[s])
            continue;
        w->whole[s] = 0;
        w->list[n++] = s;
    }
    bool all = n == end - first;
    return emit(w, run, MS_MOVE, MS_SHARD, w->list, n,
                all ? &lists->set[run->unit] : &set);
}

static uint8_t reduced_to(const writer *w)
{
    return w->shared == MS_SHARED_NOTHING ? MS_HERE : MS_SHARD;
}

static ms_err close_bucket(writer *w, const ms_call *at)
{
    uint32_t n = w->n_bucket, set = MS_NOTHING;
    w->n_bucket = 0;
    w->bucket_bytes = 0;
    w->full_bytes = w->later_full_bytes;
    return emit(w, at, MS_REDUCE, reduced_to(w), w->bucket, n, &set);
}

static ms_err fill_buckets(writer *w, const ms_call *run,
                           const uint32_t *storages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w->bucket[w->n_bucket++] = storages[i];
        w->bucket_bytes += w->graph->storage_bytes[storages[i]];
        if (w->bucket_bytes >= w->full_bytes)
            MS_TRY(close_bucket(w, run));
    }
    return MS_OK;
}

/* Shared gradients go to their owners after each micro-batch, others after the
 * last. */
static ms_err reduce(writer *w, const ms_call *run, bool last)
{
    unit_lists *grads = &w->grads;
    uint32_t first = grads->at[run->unit], end = grads->at[run->unit + 1];
    if (!ms_program_ends_backward(run) ||
        (w->shared < MS_SHARED_GRADIENTS && !last) || w->reduces_at_end)
        return MS_OK;
    if (w->full_bytes > 0)
        return fill_buckets(w, run, grads->item + first, end - first);
    return emit(w, run, MS_REDUCE, reduced_to(w), grads->item + first,
                end - first, &grads->set[run->unit]);
}

static bool is_held(const writer *w, uint16_t rank, uint32_t s)
{
    size_t first = (size_t)rank * w->graph->n_storages;
    const uint8_t *holds = w->program->holds;
    return holds == NULL || (holds[first + s] & MS_STAGE_HELD);
}

/* All gradients that the rank made, before it updates its part. */
static ms_err reduce_all(writer *w, const ms_call *step)
{
    const unit_lists *grads = &w->grads;
    uint32_t n = 0, set = MS_NOTHING;
    for (uint32_t s = 0; s < w->graph->n_persistent; s++)
        w->seen[s] = 0;
    for (uint32_t i = 0; i < grads->at[w->graph->n_units]; i++) {
        uint32_t s = grads->item[i];
        if (!w->seen[s] && is_held(w, step->rank, s))
            w->list[n++] = s;
        w->seen[s] = 1;
    }
    return emit(w, step, MS_REDUCE, reduced_to(w), w->list, n, &set);
}

/* Every rank has updated its part of the weights; an all-gather gives each rank
 * all of them, of the layers that it has. */
static ms_err gather_updated(writer *w, const ms_call *step)
{
    uint32_t n = 0, set = MS_NOTHING;
    if (w->shared == MS_SHARED_NOTHING || w->shared == MS_SHARED_PARAMETERS ||
        w->gathers_ahead)
        return MS_OK;
    for (uint32_t s = 0; s < w->graph->n_persistent; s++)
        if (ms_graph_is_weight(w->graph, s) && is_held(w, step->rank, s) &&
            !is_alone(w->graph, s) &&
            w->graph->storage_grad[s] != MS_NONE) /* else no rank updates it */
            w->list[n++] = s;
    return emit(w, step, MS_GATHER, MS_HERE, w->list, n, &set);
}

static bool is_forward(const ms_call *call)
{
    return call->verb == MS_RUN && call->run.pass == MS_FORWARD;
}

/* A unit's weights as the step before has updated them, once on a rank: those
 * that get their gradients in its backward. */
static ms_err gather_begun(writer *w, const ms_call *at, uint32_t unit)
{
    const unit_lists *grads = &w->grads;
    uint32_t n = 0, set = MS_NOTHING;
    w->begun[unit] = 1;
    for (uint32_t i = grads->at[unit]; i < grads->at[unit + 1]; i++) {
        uint32_t s = w->weight_of[grads->item[i]];
        if (s == MS_NONE || w->whole[s])
            continue;
        w->list[n++] = s;
        w->whole[s] = 1;
    }
    return emit(w, at, MS_GATHER, MS_HERE, w->list, n, &set);
}

/* Before a unit's first forward the next one's gather begins, too
 * (distributed_data_parallel.py, _make_forward_pre_hook, and param_and_grad_
 * buffer.py, finish_param_sync). */
static ms_err gather_next(writer *w, const ms_program *old, uint32_t i)
{
    const ms_call *call = &old->calls[i];
    if (!w->gathers_ahead || !is_forward(call))
        return MS_OK;
    if (w->rank != call->rank) {
        memset(w->begun, 0, w->graph->n_units);
        memset(w->whole, 0, w->graph->n_persistent);
        w->rank = call->rank;
    }
    if (!w->begun[call->unit])
        MS_TRY(gather_begun(w, call, call->unit));
    if (w->begun[call->unit] > 1)
        return MS_OK;
    w->begun[call->unit] = 2;
    for (i++; i < old->n_calls && old->calls[i].rank == call->rank; i++)
        if (is_forward(&old->calls[i]) && !w->begun[old->calls[i].unit])
            return gather_begun(w, call, old->calls[i].unit);
    return MS_OK;
}

/* The first run at or behind call i, or NULL. */
static const ms_call *run_from(const ms_program *old, uint32_t *i)
{
    while (*i < old->n_calls && !ms_program_runs(&old->calls[*i]))
        (*i)++;
    return *i < old->n_calls ? &old->calls[(*i)++] : NULL;
}

static ms_err write_calls(writer *w, const ms_program *old)
{
    bool gathers = w->shared == MS_SHARED_PARAMETERS;
    uint32_t next = 0, in_sight = 0, run = 0; /* next: run in_sight is there */
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i], *coming;
        /* A gather is issued before the run that is `ahead` runs earlier. */
        while (gathers && ms_program_runs(call) && in_sight <= run + w->ahead &&
               (coming = run_from(old, &next)) != NULL)
            MS_TRY(gather(w, call, coming, in_sight++));
        MS_TRY(gather_next(w, old, i));
        if (call->verb == MS_STEP_SET)
            MS_TRY(w->reduces_at_end ? reduce_all(w, call)
                                     : close_bucket(w, call));
        MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
        if (call->verb == MS_STEP_SET)
            MS_TRY(gather_updated(w, call));
        if (!ms_program_runs(call))
            continue;
        if (gathers)
            MS_TRY(let_go(w, call, run));
        MS_TRY(reduce(w, call, *last_of(w, call) == i));
        run++;
    }
    return MS_OK;
}

ms_err ms_sharedstates_write(const ms_policy_context *context,
                             const ms_sharedstates *shares, ms_program *program,
                             ms_fault *fault)
{
    ms_program made;
    writer w = {.graph = context->graph,
                .arena = context->arena,
                .fault = fault,
                .program = &made,
                .shared = shares->shared,
                .reduces_at_end = shares->reduces_at_end,
                .gathers_ahead = shares->gathers_ahead,
                .ahead = shares->units_ahead,
                .full_bytes = shares->first_bucket_bytes,
                .later_full_bytes = shares->bucket_bytes};
    ms_program old = *program;
    if (shares->shared == MS_SHARED_PARAMETERS)
        MS_TRY(ms_program_part_replays(w.graph, &old, w.arena, fault));
    MS_TRY(ms_program_fork(&old, w.arena, &made, fault));
    MS_TRY(open_writer(&w, &old));
    MS_TRY(write_calls(&w, &old));
    *program = made;
    return MS_OK;
}
