/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torchtune's OffloadActivations (torchtune/training/
 * _activation_offloading.py; specs/policies.md 4.6): each saved tensor is
 * copied out as it is saved.  Before tensor k leaves, the compute stream waits
 * for tensor k - 5 and lets it go; the last five stay until their backward.
 * Copies in do not wait for the node that runs, so that those of the next one
 * overlap it: a double buffer.  One side stream takes both directions.  The
 * output projection and the loss are outside it.  A node is a unit here. */
#include "policies/swap.h"

#include <string.h>

#define STASH 5u /* max_fwd_stash_size */

bool ms_torchtune_is_linear(const ms_graph *graph, uint32_t op)
{
    static const char *const names[] = {"aten::mm", "aten::addmm",
                                        "aten::linear", "aten::matmul"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(graph->op_name[op], names[i]) == 0)
            return true;
    return false;
}

static void stay_range(const uint32_t *list, uint32_t first, uint32_t end,
                       uint8_t *stays)
{
    for (uint32_t i = first; i < end; i++)
        stays[list[i]] = 1;
}

/* Does the backward of another layer than op's read the storage, too? */
static bool read_elsewhere(const ms_graph *graph, uint32_t storage, uint32_t op)
{
    uint32_t end = graph->backward_at[0];
    for (uint32_t b = graph->backward_at[graph->n_units]; b < end; b++)
        for (uint32_t i = graph->in_at[b]; i < graph->in_at[b + 1]; i++)
            if (graph->in[i] == storage &&
                graph->op_layer[b] != graph->op_layer[op])
                return true;
    return false;
}

static void stay_inputs(const ms_graph *graph, uint32_t op, uint8_t *stays)
{
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        if (!read_elsewhere(graph, graph->in[i], op))
            stays[graph->in[i]] = 1;
}

/* What the loss reads, and what only the last linear layer before it saves. */
void ms_torchtune_stays(const ms_swap *w, uint8_t *stays)
{
    const ms_graph *graph = w->context->graph;
    uint32_t first = graph->forward_at[graph->loss_unit];
    uint32_t end = graph->forward_at[graph->n_units];
    stay_range(graph->in, graph->in_at[first], graph->in_at[end], stays);
    stay_range(graph->out, graph->out_at[first], graph->out_at[end], stays);
    for (uint32_t op = first; op-- > 0;) {
        if (!ms_torchtune_is_linear(graph, op))
            continue;
        stay_inputs(graph, op, stays);
        return;
    }
}

/* The tensors of a unit, each a set of its own: those that exist when it
 * begins, then those that it makes. */
static ms_err list_unit(ms_swap *w, uint32_t unit, uint32_t *n)
{
    const ms_graph *graph = w->saved.graph;
    uint32_t set = w->saved.unit_set[unit];
    w->leaving_at[unit] = *n;
    for (int made = 0; made < 2 && set != MS_NOTHING; made++) {
        for (uint32_t i = w->program->set_at[set];
             i < w->program->set_at[set + 1]; i++) {
            uint32_t s = w->program->set_item[i];
            if ((graph->op_unit[graph->storage_maker[s]] == unit) != made)
                continue;
            MS_TRY(ms_program_add_set(w->program, &s, 1, w->arena,
                                      &w->leaving[(*n)++], w->fault));
            w->leaving_before[unit] += !made;
        }
    }
    return MS_OK;
}

ms_err ms_torchtune_open(ms_swap *w)
{
    const ms_policy_value *inflight = &w->values[MS_SWAP_INFLIGHT];
    const ms_policy_value *prefetch = &w->values[MS_SWAP_PREFETCH];
    uint32_t units = w->saved.graph->n_units, n = 0;
    MS_TRY(ms_swapgroups_open(
        w, units, prefetch->given ? (uint32_t)prefetch->number : 1));
    MS_TRY(ms_swapgroups_open_leaving(w, w->saved.graph->n_storages));
    w->in_flight = inflight->given ? (uint32_t)inflight->number : STASH;
    w->leaving_flags = MS_CALL_LATER | MS_CALL_SIDE; /* stream s1 */
    w->coming_flags = MS_CALL_SIDE;
    for (uint32_t u = 0; u < units; u++) {
        MS_TRY(list_unit(w, u, &n));
        if (w->saved.unit_set[u] != MS_NOTHING)
            w->groups[w->n_groups++] =
                (ms_swap_group){.set = w->saved.unit_set[u], .last = u};
    }
    w->leaving_at[units] = n;
    return MS_OK;
}

ms_err ms_torchtune_around(ms_swap *w, const ms_call *call, bool before)
{
    if (before)
        MS_TRY(ms_swapgroups_send(w, call));
    return ms_swapgroups_leave(w, call, before);
}
