/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ZeRO (Rajbhandari et al. 2020): data-parallel ranks share the optimizer
 * state (1), the gradients too (2), the parameters too (3).  As the paper has
 * it: every rank's part is the elements over the ranks, the part of the
 * gradients exists all through the step, each unit's gradients are reduced when
 * its backward ends, each unit's parameters are gathered before it runs. */
#include "policies/policies.h"

#include <stdio.h>

enum { STAGE, RANKS, IMPL, PREFETCH, N_PARAMS };

#define MOST_RANKS 65536

static const ms_param params[N_PARAMS] = {
    [STAGE] = {.name = "stage",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 0,
               .high = 3,
               .help = "what is shared: 0 nothing, 1 optimizer state, 2 and "
                       "gradients, 3 and parameters"},
    [RANKS] = {.name = "dp",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = MOST_RANKS,
               .help = "data-parallel ranks; default --gpus"},
    [IMPL] = {.name = "impl",
              .type = MS_PARAM_WORD,
              .words = "ideal",
              .help = "whose buckets and buffers: ideal has none, as the "
                      "paper"},
    [PREFETCH] = {.name = "prefetch",
                  .type = MS_PARAM_INT,
                  .fallback = 1,
                  .low = 0,
                  .high = 1000,
                  .help = "stage 3: how many units ahead parameters are "
                          "gathered"},
};

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    char where[32], hint[64];
    uint32_t ranks =
        values[RANKS].given ? (uint32_t)values[RANKS].number : shape->gpus;
    snprintf(where, sizeof where, "zero:%d", (int)values[STAGE].number);
    snprintf(hint, sizeof hint, "type %s,dp=8, or add --gpus 8", where);
    if (ranks == 0)
        return ms_fail(fault, MS_EUSAGE, where, hint,
                       "among how many ranks is not said");
    shape->data_ranks = ranks;
    shape->shared = (ms_shared)values[STAGE].number;
    shape->holds_gradients = true;
    return MS_OK;
}

/* ---- what a unit reads and makes ----------------------------------------- */

/* A list of storages per unit, CSR, and their set once a call has named it. */
typedef struct unit_lists {
    uint32_t *at, *item, *set;
    uint32_t capacity;
} unit_lists;

typedef struct plan_zero {
    const ms_graph *graph;
    ms_arena *arena;
    ms_fault *fault;
    ms_program *program; /* the new one */
    uint32_t stage, ahead;
    unit_lists forward, backward, grads;
    uint32_t *seen; /* per storage: unit + 1 of the list under way */
    uint32_t *due;  /* per storage: the last run in sight that reads it */
    uint8_t *whole; /* per storage: gathered */
    uint32_t *list; /* room for all persistent storages */
} plan_zero;

static bool is_weight(const ms_graph *graph, uint32_t s)
{
    return s < graph->n_persistent &&
           graph->storage_category[s] == MS_PARAMETERS &&
           !graph->storage_buffer[s];
}

static ms_err add(plan_zero *zero, unit_lists *lists, uint32_t unit,
                  uint32_t *n, uint32_t storage)
{
    if (zero->seen[storage] == unit + 1)
        return MS_OK;
    zero->seen[storage] = unit + 1;
    lists->item = ms_arena_grow(zero->arena, lists->item, &lists->capacity,
                                *n + 1, sizeof *lists->item);
    if (lists->item == NULL)
        return ms_fail_nomem(zero->fault);
    lists->item[(*n)++] = storage;
    return MS_OK;
}

static ms_err open_lists(plan_zero *zero, unit_lists *lists)
{
    uint32_t units = zero->graph->n_units;
    lists->at = ms_arena_take(zero->arena, units + 1, sizeof *lists->at);
    lists->set = ms_arena_take_raw(zero->arena, units, sizeof *lists->set);
    if (lists->at == NULL || lists->set == NULL)
        return ms_fail_nomem(zero->fault);
    for (uint32_t u = 0; u < units; u++)
        lists->set[u] = MS_NOTHING;
    for (uint32_t s = 0; s < zero->graph->n_persistent; s++)
        zero->seen[s] = 0;
    return MS_OK;
}

/* The weights that ops of each unit read. */
static ms_err list_weights(plan_zero *zero, unit_lists *lists, bool backward)
{
    const ms_graph *graph = zero->graph;
    uint32_t n = 0;
    MS_TRY(open_lists(zero, lists));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t first =
            backward ? graph->backward_at[u + 1] : graph->forward_at[u];
        uint32_t end =
            backward ? graph->backward_at[u] : graph->forward_at[u + 1];
        for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
            if (is_weight(graph, graph->in[i]))
                MS_TRY(add(zero, lists, u, &n, graph->in[i]));
        lists->at[u + 1] = n;
    }
    return MS_OK;
}

static ms_err list_grads(plan_zero *zero)
{
    const ms_graph *graph = zero->graph;
    uint32_t n = 0;
    MS_TRY(open_lists(zero, &zero->grads));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        for (uint32_t op = graph->backward_at[u + 1];
             op < graph->backward_at[u]; op++)
            if (graph->op_pass[op] == MS_ACCUMULATE)
                MS_TRY(add(zero, &zero->grads, u, &n,
                           graph->out[graph->out_at[op]]));
        zero->grads.at[u + 1] = n;
    }
    return MS_OK;
}

static ms_err open_zero(plan_zero *zero)
{
    uint32_t n = zero->graph->n_persistent;
    zero->seen = ms_arena_take(zero->arena, n, sizeof *zero->seen);
    zero->due = ms_arena_take(zero->arena, n, sizeof *zero->due);
    zero->whole = ms_arena_take(zero->arena, n, 1);
    zero->list = ms_arena_take_raw(zero->arena, n, sizeof *zero->list);
    if (!zero->seen || !zero->due || !zero->whole || !zero->list)
        return ms_fail_nomem(zero->fault);
    MS_TRY(list_weights(zero, &zero->forward, false));
    MS_TRY(list_weights(zero, &zero->backward, true));
    return list_grads(zero);
}

/* ---- calls --------------------------------------------------------------- */

static bool runs(const ms_call *call)
{
    return call->verb == MS_RUN || call->verb == MS_RERUN;
}

/* What a run reads first: all of its unit's weights.  The later units of a
 * rerun are gathered as they come. */
static unit_lists *weights_of(plan_zero *zero, const ms_call *call)
{
    bool backward = call->verb == MS_RUN && call->pass != MS_FORWARD;
    return backward ? &zero->backward : &zero->forward;
}

static ms_err emit(plan_zero *zero, const ms_call *like, ms_verb verb,
                   uint8_t place, const uint32_t *storages, uint32_t n,
                   uint32_t *set)
{
    ms_call call = ms_program_call(verb);
    if (n == 0)
        return MS_OK;
    if (*set == MS_NOTHING)
        MS_TRY(ms_program_add_set(zero->program, storages, n, zero->arena, set,
                                  zero->fault));
    call.rank = like->rank;
    call.frame = like->frame;
    call.micro_batch = like->micro_batch;
    call.place = place;
    call.set = *set;
    return ms_program_add(zero->program, call, zero->arena, zero->fault);
}

/* Gathers what run number r will read, before the run under way. */
static ms_err gather(plan_zero *zero, const ms_call *now, const ms_call *run,
                     uint32_t r)
{
    unit_lists *lists = weights_of(zero, run);
    uint32_t first = lists->at[run->unit], end = lists->at[run->unit + 1];
    uint32_t n = 0, set = MS_NOTHING;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = lists->item[i];
        zero->due[s] = r;
        if (!zero->whole[s])
            zero->list[n++] = s;
        zero->whole[s] = 1;
    }
    bool all = n == end - first;
    return emit(zero, now, MS_GATHER, MS_HERE, zero->list, n,
                all ? &lists->set[run->unit] : &set);
}

/* Lets go what run number r read and no run in sight reads again. */
static ms_err let_go(plan_zero *zero, const ms_call *run, uint32_t r)
{
    unit_lists *lists = weights_of(zero, run);
    uint32_t first = lists->at[run->unit], end = lists->at[run->unit + 1];
    uint32_t n = 0, set = MS_NOTHING;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = lists->item[i];
        if (zero->due[s] != r || !zero->whole[s])
            continue;
        zero->whole[s] = 0;
        zero->list[n++] = s;
    }
    bool all = n == end - first;
    return emit(zero, run, MS_MOVE, MS_SHARD, zero->list, n,
                all ? &lists->set[run->unit] : &set);
}

/* Shared gradients go to their owners after each micro-batch, others after the
 * last. */
static ms_err reduce(plan_zero *zero, const ms_call *run)
{
    unit_lists *grads = &zero->grads;
    uint32_t first = grads->at[run->unit], end = grads->at[run->unit + 1];
    bool backward = run->verb == MS_RUN && run->pass != MS_FORWARD;
    bool last = run->micro_batch + 1 == zero->program->n_micro_batches;
    if (!backward || (zero->stage < MS_SHARED_GRADIENTS && !last))
        return MS_OK;
    return emit(zero, run, MS_REDUCE,
                zero->stage == MS_SHARED_NOTHING ? MS_HERE : MS_SHARD,
                grads->item + first, end - first, &grads->set[run->unit]);
}

/* Every rank updated its part of the weights: all get all of them. */
static ms_err gather_updated(plan_zero *zero, const ms_call *step)
{
    uint32_t n = 0, set = MS_NOTHING;
    if (zero->stage == MS_SHARED_NOTHING || zero->stage == MS_SHARED_PARAMETERS)
        return MS_OK;
    for (uint32_t s = 0; s < zero->graph->n_persistent; s++)
        if (is_weight(zero->graph, s))
            zero->list[n++] = s;
    return emit(zero, step, MS_GATHER, MS_HERE, zero->list, n, &set);
}

/* The first run at or behind call i, or NULL. */
static const ms_call *run_from(const ms_program *old, uint32_t *i)
{
    while (*i < old->n_calls && !runs(&old->calls[*i]))
        (*i)++;
    return *i < old->n_calls ? &old->calls[(*i)++] : NULL;
}

static ms_err write_calls(plan_zero *zero, const ms_program *old)
{
    bool gathers = zero->stage == MS_SHARED_PARAMETERS;
    uint32_t next = 0, in_sight = 0, run = 0; /* next: run in_sight is there */
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i], *coming;
        while (gathers && runs(call) && in_sight <= run + zero->ahead &&
               (coming = run_from(old, &next)) != NULL)
            MS_TRY(gather(zero, call, coming, in_sight++));
        MS_TRY(ms_program_add(zero->program, *call, zero->arena, zero->fault));
        if (call->verb == MS_STEP_SET)
            MS_TRY(gather_updated(zero, call));
        if (!runs(call))
            continue;
        if (gathers)
            MS_TRY(let_go(zero, call, run));
        MS_TRY(reduce(zero, call));
        run++;
    }
    return MS_OK;
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    ms_program made = *program;
    plan_zero zero = {.graph = context->graph,
                      .arena = context->arena,
                      .fault = fault,
                      .program = &made,
                      .stage = (uint32_t)context->values[STAGE].number,
                      .ahead = (uint32_t)context->values[PREFETCH].number};
    made.calls = NULL;
    made.n_calls = made.calls_capacity = 0;
    MS_TRY(open_zero(&zero));
    MS_TRY(write_calls(&zero, program));
    *program = made;
    return MS_OK;
}

const ms_policy ms_policy_zero = {
    .name = "zero",
    .summary = "data-parallel ranks share optimizer state, gradients, "
               "parameters",
    .example = "zero:3,dp=8",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
};
