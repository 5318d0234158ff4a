/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/finish.h"
#include "graphs/kernels/flatbuffers.h"
#include "graphs/lowering/numbering.h"
#include "graphs/lowering/unitcosts.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/parallel/expertops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>

/* ---- what is there once ids are final ------------------------------------ */

/* A checkpoint on the CPU sets its random state aside: a tensor of 5,056
 * bytes (torch.get_rng_state: the Mersenne twister's).  On CUDA both states
 * are tensors in host memory. */
#define RANDOM_STATE_BYTES 5056u

static ms_err add_states(ms_trace *trace, uint32_t n_units)
{
    uint32_t *states = ms_arena_take_raw(trace->arena, n_units, sizeof *states);
    if (!states)
        return ms_fail_nomem(trace->fault);
    trace->layer = MS_NONE;
    for (uint32_t u = 0; u < n_units; u++) {
        states[u] = ms_trace_storage(trace, "random_state", RANDOM_STATE_BYTES,
                                     MS_ACTIVATIONS, true);
        if (states[u] != MS_NONE)
            trace->graph->storage_at_start[states[u]] = 0;
    }
    trace->graph->unit_state = states;
    return trace->err;
}

/* What of the step is due with single gradients. */
static ms_err number_due(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    uint32_t n = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        n += trace->parameters[p].due_end > 0;
    if (n == 0)
        return MS_OK;
    g->due_first = ms_arena_take(trace->arena, g->n_persistent, sizeof n);
    g->due_end = ms_arena_take(trace->arena, g->n_persistent, sizeof n);
    if (!g->due_first || !g->due_end)
        return ms_fail_nomem(trace->fault);
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (it->due_end == 0)
            continue;
        g->due_first[it->grad_storage] = it->due_first;
        g->due_end[it->grad_storage] = it->due_end;
    }
    return MS_OK;
}

static bool is_copy(const ms_trace *trace, uint32_t parameter)
{
    return trace->parameters[parameter].original != MS_NONE;
}

/* Whose copies for other stages of a pipeline weights are. */
static ms_err number_copies(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    uint32_t n = 0;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        n += is_copy(trace, p);
    if (n == 0)
        return MS_OK;
    g->storage_copy_of =
        ms_arena_take_raw(trace->arena, g->n_persistent, sizeof n);
    if (!g->storage_copy_of)
        return ms_fail_nomem(trace->fault);
    for (uint32_t s = 0; s < g->n_persistent; s++)
        g->storage_copy_of[s] = MS_NONE;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (is_copy(trace, p))
            g->storage_copy_of[trace->parameters[p].storage] =
                trace->parameters[p].original;
    return MS_OK;
}

/* Of whose gradients the ranks that split layers have sums of their own until
 * a policy reduces them. */
static ms_err number_partial(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    if (!trace->settings->shape->sums_late || trace->kernels.keeps_parts)
        return MS_OK;
    g->storage_partial = ms_arena_take(trace->arena, g->n_persistent,
                                       sizeof *g->storage_partial);
    if (!g->storage_partial)
        return ms_fail_nomem(trace->fault);
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        g->storage_partial[trace->parameters[p].storage] =
            trace->parameters[p].partial;
    return MS_OK;
}

/* ---- units --------------------------------------------------------------- */

static bool is_backward(uint8_t pass)
{
    return pass == MS_GRAD_INPUT || pass == MS_GRAD_WEIGHT ||
           pass == MS_ACCUMULATE || pass == MS_RECOMPUTE ||
           pass == MS_STEP; /* in backward */
}

/* Ops come forward by rising unit, then backward by falling unit, then the
 * step: one scan finds every range. */
static ms_err find_ranges(ms_trace *trace, const ms_forward *forward)
{
    ms_graph *g = trace->graph;
    uint32_t n = forward->n_units, op = 0;
    g->forward_at = ms_arena_take_raw(trace->arena, n + 1, sizeof(uint32_t));
    g->backward_at = ms_arena_take_raw(trace->arena, n + 1, sizeof(uint32_t));
    if (!g->forward_at || !g->backward_at)
        return ms_fail_nomem(trace->fault);
    for (uint32_t u = 0; u < n; u++) {
        g->forward_at[u] = op;
        while (op < g->n_ops && g->op_pass[op] <= MS_LOSS &&
               g->op_unit[op] == u)
            op++;
    }
    g->forward_at[n] = op;
    for (uint32_t u = n; u-- > 0;) {
        g->backward_at[u + 1] = op;
        while (op < g->n_ops && is_backward(g->op_pass[op]) &&
               g->op_unit[op] == u)
            op++;
    }
    g->backward_at[0] = op;
    g->step_first = g->step_all = op;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (trace->parameters[p].due_end > g->step_all)
            g->step_all = trace->parameters[p].due_end;
    g->n_units = n;
    g->loss_unit = forward->loss_unit == MS_NONE ? n : forward->loss_unit;
    g->unit_block = forward->unit_block;
    g->unit_name = forward->unit_name;
    return MS_OK;
}

/* What a unit's forward reads from earlier units: its checkpoint. */
static ms_err find_unit_inputs(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    uint32_t *seen = ms_arena_take(trace->scratch, g->n_storages, sizeof *seen);
    uint32_t capacity = 0, n = 0;
    g->unit_in_at =
        ms_arena_take_raw(trace->arena, g->n_units + 1, sizeof(uint32_t));
    if (!seen || !g->unit_in_at)
        return ms_fail_nomem(trace->fault);
    for (uint32_t u = 0; u < g->n_units; u++) {
        uint32_t first = g->forward_at[u];
        g->unit_in_at[u] = n;
        for (uint32_t i = g->in_at[first]; i < g->in_at[g->forward_at[u + 1]];
             i++) {
            uint32_t s = g->in[i];
            bool earlier = s >= g->n_persistent && g->storage_maker[s] < first;
            if (!earlier || seen[s] == u + 1)
                continue;
            seen[s] = u + 1;
            if (n == capacity)
                g->unit_in = ms_arena_grow(trace->arena, g->unit_in, &capacity,
                                           n + 1, sizeof(uint32_t));
            if (!g->unit_in)
                return ms_fail_nomem(trace->fault);
            g->unit_in[n++] = s;
        }
    }
    g->unit_in_at[g->n_units] = n;
    return MS_OK;
}

/* What ranks that split layers, or divide experts, have of each weight. */
static ms_err number_ranks(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    bool experts = ms_expertops_divides(trace);
    if (trace->shards == NULL && trace->context == NULL && !experts)
        g->op_meets = NULL;
    if (trace->shards == NULL && !experts)
        return MS_OK;
    g->storage_ranks =
        ms_arena_take_raw(trace->arena, g->n_persistent, sizeof(uint32_t));
    if (!g->storage_ranks)
        return ms_fail_nomem(trace->fault);
    for (uint32_t s = 0; s < g->n_persistent; s++)
        g->storage_ranks[s] = 1;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        g->storage_ranks[trace->parameters[p].storage] =
            trace->parameters[p].ranks;
    return MS_OK;
}

/* ---- sums ---------------------------------------------------------------- */

static void add_up(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    const ms_model *model = trace->settings->model;
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        if (!is_copy(trace, p))
            g->parameters +=
                trace->parameters[p].elements * trace->parameters[p].ranks;
    g->tokens = model->tokens || model->sequence_input
                    ? trace->settings->batch * trace->settings->sequence
                    : 0;
    for (uint32_t op = 0; op < g->step_first; op++)
        if (g->op_pass[op] <= MS_GRAD_WEIGHT)
            g->model_flops += g->op_flops[op];
}

ms_err ms_finish_graph(ms_trace *trace, const ms_forward *forward,
                       ms_graph *graph)
{
    ms_graph *g = trace->graph;
    if (trace->settings->cpu && trace->settings->train &&
        !trace->settings->model->measured)
        MS_TRY(add_states(trace, forward->n_units));
    MS_TRY(ms_numbering_run(trace, forward->n_units));
    MS_TRY(number_due(trace));
    MS_TRY(number_copies(trace));
    MS_TRY(number_partial(trace));
    MS_TRY(number_ranks(trace));
    MS_TRY(ms_parts_columns(trace));
    MS_TRY(ms_flatbuffers_column(trace));
    if (g->n_ops == 0) { /* a model of nothing to do still has closed CSRs */
        uint32_t *zero = ms_arena_take(trace->arena, 1, sizeof *zero);
        if (!zero)
            return ms_fail_nomem(trace->fault);
        g->in_at = g->out_at = g->drop_at = zero;
    }
    g->in_at[g->n_ops] = trace->n_in;
    g->out_at[g->n_ops] = trace->n_out;
    g->drop_at[g->n_ops] = trace->n_drop;
    MS_TRY(find_ranges(trace, forward));
    MS_TRY(ms_unitcosts_fill(trace));
    MS_TRY(find_unit_inputs(trace));
    add_up(trace);
    *graph = *g;
    return MS_OK;
}
