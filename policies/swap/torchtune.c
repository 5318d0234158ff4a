/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torchtune's OffloadActivations (torchtune/training/
 * _activation_offloading.py; policies/sources.md 7): hooks on each save but
 * those of parameters themselves; linear saves a view of its weight, which
 * leaves.  Before tensor k leaves, the compute stream waits for tensor k - 5
 * and lets it go; the first node that asks for one finds the last five still
 * here; they go, too, when that node has run.  What a node has unpacked stays
 * until the next one has run, and copies wait for the node before that one, not
 * for the one that runs: a double buffer.  One side stream takes both
 * directions.  The output projection and the loss are outside it.  What
 * checkpoints hold leaves and comes back unit by unit, in the same stash as
 * what hooks pack behind it. */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/program.h"

#define STASH 5u /* max_fwd_stash_size */

/* Finds the first op of the output projection, the last linear layer: it and
 * the loss are outside the hooks. */
static uint32_t output_of(const ms_graph *graph)
{
    uint32_t loss = graph->forward_at[graph->loss_unit];
    uint32_t end = graph->forward_at[graph->n_units];
    for (uint32_t op = loss; op < end; op++)
        if (ms_saved_is_linear(graph, op))
            return loss; /* a fused loss computes the projection, too */
    for (uint32_t op = loss; op-- > 0;) {
        if (!ms_saved_is_linear(graph, op))
            continue;
        while (op > 0 && graph->op_layer[op - 1] == graph->op_layer[op])
            op--;
        return op;
    }
    return loss;
}

static ms_err open_leaving(ms_swap *w)
{
    const ms_graph *graph = w->saved.graph;
    uint32_t n = graph->n_storages, units = graph->n_units;
    w->leaving = ms_arena_take_raw(w->arena, n, sizeof *w->leaving);
    w->leaving_at =
        ms_arena_take(w->arena, (size_t)units + 1, sizeof *w->leaving_at);
    w->leaving_before =
        ms_arena_take(w->arena, units, sizeof *w->leaving_before);
    return w->leaving == NULL || w->leaving_at == NULL ||
                   w->leaving_before == NULL
               ? ms_fail_nomem(w->fault)
               : MS_OK;
}

/* Lists the tensors of a unit, each as a set of its own: those that exist when
 * it begins, then those that it makes. */
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

/* Counts the saves that come to the hooks in each unit. */
static ms_err count_saves(ms_swap *w)
{
    const ms_graph *graph = w->saved.graph;
    uint32_t n = graph->n_units;
    w->saves = ms_arena_take(w->arena, n, sizeof *w->saves);
    w->packed = ms_arena_take(w->arena, n, sizeof *w->packed);
    w->leaving_id =
        ms_arena_take(w->arena, graph->n_storages, sizeof *w->leaving_id);
    if (w->saves == NULL || w->packed == NULL || w->leaving_id == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = 0; i < graph->n_saves; i++) {
        const ms_save *save = &graph->saves[i];
        uint32_t unit = graph->op_unit[save->op];
        w->saves[unit] += save->op < w->program->hooks.ops;
        if (ms_hooks_packs(&w->program->hooks, save))
            w->packed[unit] = w->saves[unit];
    }
    return MS_OK;
}

ms_err ms_torchtune_open(ms_swap *w)
{
    const ms_policy_value *inflight = &w->values[MS_SWAP_INFLIGHT];
    uint32_t units = w->saved.graph->n_units, n = 0;
    MS_TRY(ms_swapgroups_open(w, units, 1));
    MS_TRY(open_leaving(w));
    w->coming_how.side = true; /* stream s1 */
    w->program->hooks = (ms_hooks){
        .used = true,
        .skips_parameters = true,
        .stash = inflight->given ? (uint32_t)inflight->number : STASH,
        .ops = output_of(w->context->graph),
        .min_bytes = w->min_bytes};
    for (uint32_t u = 0; u < units; u++) {
        MS_TRY(list_unit(w, u, &n));
        if (w->saved.unit_set[u] != MS_NOTHING)
            w->groups[w->n_groups++] =
                (ms_swap_group){.set = w->saved.unit_set[u], .last = u};
    }
    w->leaving_at[units] = n;
    MS_TRY(ms_swapgroups_close(w));
    return count_saves(w);
}

/* TRL's copy of it (trl/models/activation_offloading.py) looks a tensor up by
 * its address: what is packed already is not packed again, and what the later
 * node saves is the tensor here. */
ms_err ms_torchtune_open_trl(ms_swap *w)
{
    MS_TRY(ms_torchtune_open(w));
    w->program->hooks.once = true;
    return MS_OK;
}

/* When tensor id is packed, tensors before it leave the stash. */
static ms_err wait_before(ms_swap *w, const ms_call *call, uint32_t id,
                          uint32_t n)
{
    uint32_t oldest = ms_hooks_oldest(&w->program->hooks, id);
    while (w->waited < n && w->leaving_id[w->waited] <= oldest)
        MS_TRY(ms_swapcalls_wait(w, call, w->leaving[w->waited++]));
    return MS_OK;
}

static ms_err leave(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t middle = w->leaving_at[call->unit] + w->leaving_before[call->unit];
    uint32_t first = before ? w->leaving_at[call->unit] : middle;
    uint32_t end = before ? middle : w->leaving_at[call->unit + 1];
    if (before && call->unit == 0)
        w->came = w->waited = 0;
    for (uint32_t i = first; i < end; i++) {
        w->leaving_id[i] = ++w->came;
        MS_TRY(wait_before(w, call, w->came, i));
        MS_TRY(ms_swapcalls_move(
            w, call, w->leaving[i],
            (ms_move_call){.to = MS_HOST, .later = true, .side = true}));
    }
    if (before || call->run.keep != MS_ALL)
        return MS_OK;
    if (w->packed[call->unit] > 0)
        MS_TRY(wait_before(w, call, w->came + w->packed[call->unit], end));
    w->came += w->saves[call->unit];
    return MS_OK;
}

ms_err ms_torchtune_around(ms_swap *w, const ms_call *call, bool before)
{
    if (before)
        MS_TRY(ms_swapgroups_send(w, call));
    return ms_swap_is_forward(call) ? leave(w, call, before) : MS_OK;
}
