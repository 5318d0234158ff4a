/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swaprecompute.h"
#include "policies/swap/swaplanes.h"
#include "sim/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors by storage -------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const ms_profile_tensor *const *x = a, *const *y = b;
    const ms_profile_tensor *s = *x, *t = *y;
    if (s->storage != t->storage)
        return s->storage < t->storage ? -1 : 1;
    if (s->micro_batch != t->micro_batch)
        return s->micro_batch < t->micro_batch ? -1 : 1;
    return (s > t) - (s < t);
}

static ms_err sort_storages(ms_swapplan *p)
{
    ms_swaprecompute *r = p->again;
    ms_arena *arena = p->swap->arena;
    const ms_profile *profile = p->profile;
    uint32_t n = profile->n_tensors;
    size_t n_storages = p->swap->context->graph->n_storages;
    const ms_profile_tensor **list =
        ms_arena_take_raw(arena, n, sizeof(const void *));
    r->by_storage = ms_arena_take_raw(arena, n, sizeof *r->by_storage);
    r->storage_at = ms_arena_take(arena, n_storages + 1, sizeof(uint32_t));
    if (list == NULL || r->by_storage == NULL || r->storage_at == NULL)
        return ms_fail_nomem(p->swap->fault);
    for (uint32_t i = 0; i < n; i++)
        list[i] = &profile->tensors[i];
    qsort(list, n, sizeof(const void *), by_place);
    for (uint32_t i = 0; i < n; i++) {
        r->by_storage[i] = (uint32_t)(list[i] - profile->tensors);
        r->storage_at[list[i]->storage + 1]++;
    }
    for (size_t s = 0; s < n_storages; s++)
        r->storage_at[s + 1] += r->storage_at[s];
    return MS_OK;
}

uint32_t ms_swaprecompute_tensor(const ms_swapplan *p, uint32_t storage,
                                 uint32_t micro_batch)
{
    const ms_profile_tensor *tensors = p->profile->tensors;
    const ms_swaprecompute *r = p->again;
    uint32_t first = r->storage_at[storage], low = first;
    uint32_t high = r->storage_at[storage + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tensors[r->by_storage[middle]].micro_batch <= micro_batch)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == first)
        return MS_NONE;
    uint32_t last = r->by_storage[low - 1];
    return tensors[last].micro_batch == micro_batch ? last : MS_NONE;
}

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

/* What a storage takes that is there, or in the host's memory when `tensor` is
 * needed. */
static uint64_t bring_ns(const ms_swapplan *p, uint32_t tensor,
                         uint32_t storage)
{
    uint32_t micro_batch = p->profile->tensors[tensor].micro_batch;
    uint32_t other = ms_swaprecompute_tensor(p, storage, micro_batch);
    bool away = other != MS_NONE && p->choice[other].place == MS_HOST &&
                p->need_call[other] > p->need_call[tensor];
    return away ? p->in_ns[other] : 0;
}

/* The ops that make it again, to work; false: it cannot be made. */
static bool find_makers(ms_swapplan *p, uint32_t tensor, uint32_t *n,
                        uint64_t *ns)
{
    const ms_graph *graph = p->swap->context->graph;
    const ms_profile_tensor *t = &p->profile->tensors[tensor];
    uint32_t end = graph->storage_saved_end[t->storage];
    p->tick++;
    if (end == MS_NONE || end < t->back_op || !want(p, t->storage, n))
        return false;
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t op = p->work[i];
        *ns += graph->op_ns[op];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++)
            if (is_there(p, graph->in[k], t->back_op))
                *ns += bring_ns(p, tensor, graph->in[k]);
            else if (!want(p, graph->in[k], n))
                return false;
        p->steps += 1 + graph->in_at[op + 1] - graph->in_at[op];
    }
    return true;
}

uint64_t ms_swaprecompute_ns(ms_swapplan *p, uint32_t tensor)
{
    uint32_t n = 0;
    uint64_t ns = 0;
    return find_makers(p, tensor, &n, &ns) ? ns : UINT64_MAX;
}

/* ---- what is known ------------------------------------------------------- */

ms_err ms_swaprecompute_open(ms_swapplan *p)
{
    ms_arena *arena = p->swap->arena;
    size_t n = p->profile->n_tensors, size = sizeof(uint32_t);
    size_t n_storages = p->swap->context->graph->n_storages;
    if (p->again != NULL)
        return MS_OK;
    ms_swaprecompute *r = ms_arena_take(arena, 1, sizeof *r);
    if (r == NULL)
        return ms_fail_nomem(p->swap->fault);
    p->again = r;
    r->ns = ms_arena_take(arena, n, sizeof *r->ns);
    r->readers = ms_arena_take(arena, n, size);
    r->counts = ms_arena_take(arena, n, 1);
    r->is_stale = ms_arena_take(arena, n, 1);
    r->stale = ms_arena_take_raw(arena, n, size);
    r->of_tensor = ms_arena_take_raw(arena, n, size);
    r->of_storage = ms_arena_take_raw(arena, n_storages, size);
    return r->ns == NULL || r->readers == NULL || r->counts == NULL ||
                   r->is_stale == NULL || r->stale == NULL ||
                   r->of_tensor == NULL || r->of_storage == NULL
               ? ms_fail_nomem(p->swap->fault)
               : sort_storages(p);
}

void ms_swaprecompute_begin(ms_swapplan *p)
{
    ms_swaprecompute *r = p->again;
    uint32_t n = p->profile->n_tensors;
    size_t size = sizeof(uint32_t);
    r->n_links = 0;
    r->unused = MS_NONE;
    r->n_stale = n;
    memset(r->readers, 0, n * size);
    memset(r->counts, 0, n);
    memset(r->is_stale, 1, n);
    memset(r->of_tensor, 0xff, n * size);
    memset(r->of_storage, 0xff, p->swap->context->graph->n_storages * size);
    for (uint32_t i = 0; i < n; i++)
        r->stale[i] = i;
}

static void make_stale(ms_swaprecompute *r, uint32_t tensor)
{
    if (r->is_stale[tensor])
        return;
    r->is_stale[tensor] = 1;
    r->stale[r->n_stale++] = tensor;
}

/* Its place, or what needs it, has changed. */
void ms_swaprecompute_changed(ms_swapplan *p, uint32_t tensor)
{
    ms_swaprecompute *r = p->again;
    uint32_t storage = p->profile->tensors[tensor].storage;
    make_stale(r, tensor);
    for (uint32_t i = r->of_storage[storage]; i != MS_NONE;
         i = r->links[i].behind)
        make_stale(r, r->links[i].tensor);
}

static void set_rate(ms_swapplan *p, uint32_t tensor)
{
    const ms_swaprecompute *r = p->again;
    uint64_t ns = r->ns[tensor];
    double bytes = (double)p->profile->tensors[tensor].bytes;
    double rate = -INFINITY;
    if (p->choice[tensor].place != MS_HERE)
        return;
    if (ns != UINT64_MAX)
        rate = bytes / ((double)(ns * (1 + r->readers[tensor])) + 1);
    ms_estimates_rate(&p->lanes->estimates, tensor, rate);
}

static void count_source(ms_swapplan *p, uint32_t source, bool more)
{
    uint32_t *readers = p->again->readers;
    if (source == MS_NONE)
        return;
    readers[source] = more ? readers[source] + 1 : readers[source] - 1;
    set_rate(p, source);
}

static void forget(ms_swapplan *p, uint32_t tensor)
{
    ms_swaprecompute *r = p->again;
    ms_swaprecompute_link *links = r->links;
    for (uint32_t i = r->of_tensor[tensor], next; i != MS_NONE; i = next) {
        const ms_swaprecompute_link *link = &links[i];
        next = link->next;
        if (r->counts[tensor])
            count_source(p, link->source, false);
        if (link->ahead == MS_NONE)
            r->of_storage[link->storage] = link->behind;
        else
            links[link->ahead].behind = link->behind;
        if (link->behind != MS_NONE)
            links[link->behind].ahead = link->ahead;
        links[i].next = r->unused;
        r->unused = i;
    }
    r->of_tensor[tensor] = MS_NONE;
    r->counts[tensor] = 0;
}

static ms_err add_link(ms_swapplan *p, uint32_t tensor, uint32_t storage)
{
    ms_swaprecompute *r = p->again;
    uint32_t i = r->unused, *of_storage = &r->of_storage[storage];
    if (i != MS_NONE)
        r->unused = r->links[i].next;
    else
        i = r->n_links++;
    r->links = ms_arena_grow(p->swap->arena, r->links, &r->capacity, r->n_links,
                             sizeof *r->links);
    if (r->links == NULL)
        return ms_fail_nomem(p->swap->fault);
    r->links[i] = (ms_swaprecompute_link){
        .tensor = tensor,
        .storage = storage,
        .source = ms_swaprecompute_tensor(
            p, storage, p->profile->tensors[tensor].micro_batch),
        .next = r->of_tensor[tensor],
        .ahead = MS_NONE,
        .behind = *of_storage};
    if (*of_storage != MS_NONE)
        r->links[*of_storage].ahead = i;
    *of_storage = r->of_tensor[tensor] = i;
    if (r->counts[tensor])
        count_source(p, r->links[i].source, true);
    return MS_OK;
}

/* What the first n ops of work read that is there. */
static ms_err remember(ms_swapplan *p, uint32_t tensor, uint32_t n)
{
    const ms_graph *graph = p->swap->context->graph;
    uint32_t back_op = p->profile->tensors[tensor].back_op;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = p->work[i];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++)
            if (graph->in[k] >= graph->n_persistent &&
                is_there(p, graph->in[k], back_op))
                MS_TRY(add_link(p, tensor, graph->in[k]));
    }
    return MS_OK;
}

/* What cannot be made now can never be: nothing comes back that is gone. */
static ms_err find(ms_swapplan *p, uint32_t tensor)
{
    ms_swaprecompute *r = p->again;
    uint32_t n = 0;
    uint64_t ns = 0;
    forget(p, tensor);
    if (p->choice[tensor].place == MS_HOST)
        return MS_OK;
    bool made = find_makers(p, tensor, &n, &ns);
    r->ns[tensor] = made ? ns : UINT64_MAX;
    r->counts[tensor] = made && p->choice[tensor].place == MS_GONE;
    if (made)
        MS_TRY(remember(p, tensor, n));
    set_rate(p, tensor);
    return MS_OK;
}

ms_err ms_swaprecompute_refresh(ms_swapplan *p)
{
    ms_swaprecompute *r = p->again;
    while (r->n_stale > 0) {
        uint32_t tensor = r->stale[--r->n_stale];
        r->is_stale[tensor] = 0;
        MS_TRY(find(p, tensor));
    }
    return MS_OK;
}

/* ---- what it needs ------------------------------------------------------- */

/* Moves a tensor that is needed earlier to its new place in by_back; the others
 * keep their order. */
static void move_ahead(ms_swapplan *p, uint32_t tensor)
{
    uint32_t from = p->at_back[tensor], at = from;
    for (; at > 0; at--) {
        uint32_t before = p->by_back[at - 1];
        if (p->need_ns[before] <= p->need_ns[tensor])
            break;
        p->by_back[at] = before;
        p->at_back[before] = at;
    }
    p->by_back[at] = tensor;
    p->at_back[tensor] = at;
    if (p->rule->lanes)
        ms_swaplanes_needed(p, tensor, from + 1);
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
    uint32_t micro_batch = p->profile->tensors[other].micro_batch;
    uint32_t tensor = ms_swaprecompute_tensor(p, storage, micro_batch);
    uint32_t call = p->need_call[other];
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
    if (p->rule->lanes)
        ms_swaprecompute_changed(p, tensor);
}

/* Recomputation is collective: what it reads has to be there, and what it makes
 * on the way and others need later stays. */
void ms_swaprecompute_need(ms_swapplan *p, uint32_t tensor)
{
    const ms_graph *graph = p->swap->context->graph;
    uint32_t n = 0;
    uint64_t ns = 0;
    if (!find_makers(p, tensor, &n, &ns))
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = p->work[i];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++)
            need_with(p, graph->in[k], tensor);
        for (uint32_t k = graph->out_at[op]; k < graph->out_at[op + 1]; k++)
            need_with(p, graph->out[k], tensor);
    }
    if (p->rule->percent > 0)
        add_in_busy(p);
}
