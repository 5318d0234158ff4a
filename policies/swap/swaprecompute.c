/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swaprecompute.h"
#include "sim/graph.h"

#include <string.h>

/* ---- what recomputation takes -------------------------------------------- */

/* Is it kept, and still when `reader` runs? */
static bool is_there(const ms_swapplan *p, uint32_t storage, uint32_t reader)
{
    const ms_graph *graph = p->swap->context->graph;
    uint32_t end = graph->storage_saved_end[storage];
    return storage < graph->n_persistent ||
           (p->swap->saved.kept[storage] && !p->gone[storage] &&
            end != MS_NONE && end >= reader);
}

static void push(ms_swapplan *p, uint32_t op, uint32_t *n)
{
    if (p->stamp[op] == p->tick)
        return;
    p->stamp[op] = p->tick;
    p->work[(*n)++] = op;
}

/* Does a forward op write the storage in place: has it no result, and this as
 * its first input? */
static bool writes(const ms_graph *graph, uint32_t op, uint32_t storage)
{
    return graph->out_at[op] == graph->out_at[op + 1] &&
           graph->in_at[op] < graph->in_at[op + 1] &&
           graph->in[graph->in_at[op]] == storage &&
           graph->op_pass[op] <= MS_LOSS;
}

/* Asks for the maker of storage and for those that finish it in place; false:
 * it is not made in forward. */
static bool want(ms_swapplan *p, uint32_t storage, uint32_t *n)
{
    const ms_graph *graph = p->swap->context->graph;
    uint32_t maker = graph->storage_maker[storage];
    uint32_t last = graph->storage_local_end[storage];
    if (maker == MS_NONE || graph->op_pass[maker] > MS_LOSS)
        return false;
    push(p, maker, n);
    for (uint32_t op = maker + 1; last != MS_NONE && op <= last; op++)
        if (writes(graph, op, storage))
            push(p, op, n);
    p->steps += last != MS_NONE && last > maker ? last - maker : 0;
    return true;
}

/* Fills tensor_of with the tensors of the micro-batch, for a storage is a
 * tensor of its own in each. */
static void index_tensors(ms_swapplan *p, uint32_t micro_batch)
{
    const ms_profile *profile = p->profile;
    size_t n = p->swap->context->graph->n_storages;
    if (p->tensor_micro_batch == micro_batch)
        return;
    p->tensor_micro_batch = micro_batch;
    memset(p->tensor_of, 0xff, n * sizeof *p->tensor_of);
    for (uint32_t i = 0; i < profile->n_tensors; i++)
        if (profile->tensors[i].micro_batch == micro_batch)
            p->tensor_of[profile->tensors[i].storage] = i;
}

/* What a storage takes that is there, or in the host's memory when `tensor` is
 * needed. */
static uint64_t bring_ns(const ms_swapplan *p, uint32_t tensor,
                         uint32_t storage, uint32_t *sources)
{
    uint32_t other = p->tensor_of[storage];
    if (other == MS_NONE)
        return 0;
    if (sources != NULL)
        sources[other]++;
    bool away = p->choice[other].place == MS_HOST &&
                p->need_call[other] > p->need_call[tensor];
    return away ? p->in_ns[other] : 0;
}

/* The ops that make it again, to work; false: it cannot be made. */
static bool find_makers(ms_swapplan *p, uint32_t tensor, uint32_t *sources,
                        uint32_t *n, uint64_t *ns)
{
    const ms_graph *graph = p->swap->context->graph;
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    uint32_t end = graph->storage_saved_end[t->storage];
    p->tick++;
    index_tensors(p, t->micro_batch);
    if (end == MS_NONE || end < t->back_op || !want(p, t->storage, n))
        return false;
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t op = p->work[i];
        *ns += graph->op_ns[op];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++)
            if (is_there(p, graph->in[k], t->back_op))
                *ns += bring_ns(p, tensor, graph->in[k], sources);
            else if (!want(p, graph->in[k], n))
                return false;
        p->steps += 1 + graph->in_at[op + 1] - graph->in_at[op];
    }
    return true;
}

uint64_t ms_swaprecompute_ns(ms_swapplan *p, uint32_t tensor, uint32_t *sources)
{
    uint32_t n = 0;
    uint64_t ns = 0;
    return find_makers(p, tensor, sources, &n, &ns) ? ns : UINT64_MAX;
}

/* ---- what it needs ------------------------------------------------------- */

/* Moves a tensor that is needed earlier to its new place in by_back; the others
 * keep their order. */
static void move_ahead(ms_swapplan *p, uint32_t tensor)
{
    uint32_t at = p->at_back[tensor];
    for (; at > 0; at--) {
        uint32_t before = p->by_back[at - 1];
        if (p->need_ns[before] <= p->need_ns[tensor])
            break;
        p->by_back[at] = before;
        p->at_back[before] = at;
    }
    p->by_back[at] = tensor;
    p->at_back[tensor] = at;
}

static void add_in_busy(ms_swapplan *p)
{
    uint64_t busy_ns = 0;
    for (uint32_t k = 0; k < p->profile->n_tensors; k++) {
        uint32_t i = p->by_back[k];
        busy_ns += p->choice[i].place == MS_HOST ? p->in_ns[i] : 0;
        p->in_busy_ns[k] = busy_ns;
    }
}

/* The tensor of the storage is needed for (or made with) another one. */
static void need_with(ms_swapplan *p, uint32_t storage, uint32_t other)
{
    uint32_t tensor = p->tensor_of[storage], call = p->need_call[other];
    if (tensor == MS_NONE || call >= p->need_call[tensor])
        return;
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    ms_swapplan_choice *choice = &p->choice[tensor];
    if (call <= t->out_call + 1)
        return;
    if (choice->place != MS_HERE) {
        ms_swapplan_add(p, call, choice->in_call, t->bytes, false);
        choice->in_call = call;
    }
    p->need_call[tensor] = call;
    p->need_ns[tensor] = p->need_ns[other];
    move_ahead(p, tensor);
}

/* Recomputation is collective: what it reads has to be there, and what it makes
 * on the way and others need later stays. */
void ms_swaprecompute_need(ms_swapplan *p, uint32_t tensor)
{
    const ms_graph *graph = p->swap->context->graph;
    uint32_t n = 0;
    uint64_t ns = 0;
    if (!find_makers(p, tensor, NULL, &n, &ns))
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = p->work[i];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++)
            need_with(p, graph->in[k], tensor);
        for (uint32_t k = graph->out_at[op]; k < graph->out_at[op + 1]; k++)
            need_with(p, graph->out[k], tensor);
    }
    add_in_busy(p);
}
