/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SuperNeurons (Wang et al., PPoPP 2018).  Liveness is
 * what a program has anyway.  What expensive layers make is a checkpoint:
 * convolutions, linear layers, joins and concatenations (CHECKPOINT_LAYERS of
 * include/mem_control.h in linnanwang/superneurons-release).  It stays, in the
 * tensor cache (swapcache.h).  What was saved between two such layers is made
 * again from them, in one of two ways (find_bottleneck and scan_checkpoint of
 * src/recompute.cpp there):
 *
 *     speed    the segment runs again once, and each tensor stays until the
 *              last backward that reads it: n layers, n more
 *     memory   before each unit's backward only what that reads is made, and
 *              goes behind it: n layers, up to n (n + 1) / 2 more
 *
 * by cost: memory where the segment would hold more at once than the largest
 * backward of any unit, l_peak.  (The code counts the recomputed tensors alone;
 * with what a backward holds beside them the segment does not raise the peak,
 * which is what the paper's rule is for.)  A segment ends with a unit that
 * makes a checkpoint: its backward is the first to need what came before.
 */
#include "policies/swap/swapcache.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

#include <string.h>

typedef struct neurons {
    ms_swap *swap;
    const ms_graph *graph;
    ms_arena *arena;
    ms_program *program; /* with recomputation, without copies */
    ms_fault *fault;
    uint8_t *checkpoint;   /* per storage */
    uint8_t *again;        /* per storage: made again for backward */
    uint8_t *layer;        /* per unit: makes a checkpoint */
    uint32_t *need;        /* per storage: the last unit, in the order of
                              backward, for which something is made from it */
    uint32_t *reader;      /* per storage: the same of those that read it */
    uint32_t *stamp, tick; /* per storage: in this list already */
    uint32_t *list;        /* room for a set */
    uint64_t peak_bytes;   /* l_peak */
    /* Per unit: sets, or MS_NOTHING. */
    uint32_t *kept, *held;    /* of its forward */
    uint32_t *made, *dropped; /* before and behind its backward */
    uint32_t *done;           /* checkpoints that nothing needs any more: */
    uint32_t *done_item, *done_at; /* by the unit that needs them last, CSR */
} neurons;

static ms_err take_columns(neurons *n)
{
    size_t units = n->graph->n_units, storages = n->graph->n_storages;
    uint32_t **const per_unit[] = {&n->kept, &n->held, &n->made, &n->dropped,
                                   &n->done};
    uint32_t **const per_storage[] = {&n->need, &n->reader, &n->stamp,
                                      &n->list};
    for (size_t i = 0; i < sizeof per_unit / sizeof *per_unit; i++) {
        *per_unit[i] = ms_arena_take_raw(n->arena, units, sizeof(uint32_t));
        if (*per_unit[i] == NULL)
            return ms_fail_nomem(n->fault);
    }
    for (size_t i = 0; i < sizeof per_storage / sizeof *per_storage; i++) {
        *per_storage[i] =
            ms_arena_take_raw(n->arena, storages, sizeof(uint32_t));
        if (*per_storage[i] == NULL)
            return ms_fail_nomem(n->fault);
    }
    n->checkpoint = ms_arena_take(n->arena, storages, 1);
    n->again = ms_arena_take(n->arena, storages, 1);
    n->layer = ms_arena_take(n->arena, units, 1);
    if (n->checkpoint == NULL || n->again == NULL || n->layer == NULL)
        return ms_fail_nomem(n->fault);
    memset(n->need, 0xff, storages * sizeof *n->need);
    memset(n->stamp, 0, storages * sizeof *n->stamp);
    for (uint32_t u = 0; u < units; u++)
        n->made[u] = n->dropped[u] = MS_NOTHING;
    return MS_OK;
}

static ms_err add_set(neurons *n, uint32_t count, uint32_t *set)
{
    return ms_program_add_set(n->program, n->list, count, n->arena, set,
                              n->fault);
}

/* Is it not in the list under way yet?  It is from now on. */
static bool is_new(neurons *n, uint32_t storage)
{
    bool yes = n->stamp[storage] != n->tick;
    n->stamp[storage] = n->tick;
    return yes;
}

/* ---- which tensors ------------------------------------------------------- */

/* An element-wise sum or a concatenation of two tensors of this step. */
static bool joins(const ms_graph *graph, uint32_t op)
{
    uint32_t first = MS_NONE;
    bool may =
        graph->op_kind[op] == MS_KIND_ADD || graph->op_kind[op] == MS_KIND_CAT;
    for (uint32_t i = graph->in_at[op]; may && i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i];
        if (s < graph->n_persistent)
            continue;
        if (first != MS_NONE && s != first)
            return true;
        first = s;
    }
    return false;
}

static bool is_expensive(const ms_graph *graph, uint32_t op)
{
    return graph->op_kind[op] == MS_KIND_CONVOLUTION ||
           ms_saved_is_linear(graph, op) || joins(graph, op);
}

/* Marks what the op makes or, where it works in place, its first input, as
 * checkpoints. */
static void mark_layer(neurons *n, uint32_t op)
{
    const ms_graph *graph = n->graph;
    uint32_t first = graph->out_at[op], end = graph->out_at[op + 1];
    for (uint32_t i = first; i < end; i++)
        n->checkpoint[graph->out[i]] = 1;
    if (first == end && graph->in[graph->in_at[op]] >= graph->n_persistent)
        n->checkpoint[graph->in[graph->in_at[op]]] = 1;
    n->layer[graph->op_unit[op]] = 1;
}

static bool may_go(const neurons *n, uint32_t storage)
{
    const ms_graph *graph = n->graph;
    uint32_t maker = graph->storage_maker[storage];
    return graph->storage_saved_end[storage] != MS_NONE &&
           !n->checkpoint[storage] && maker != MS_NONE &&
           maker < graph->forward_at[graph->loss_unit] &&
           graph->storage_category[storage] == MS_ACTIVATIONS;
}

static void mark(neurons *n)
{
    const ms_graph *graph = n->graph;
    bool none =
        n->swap->values[MS_SWAP_RECOMPUTE].number == MS_SWAP_RECOMPUTE_NONE;
    for (uint32_t op = 0; op < graph->forward_at[graph->loss_unit]; op++)
        if (is_expensive(graph, op))
            mark_layer(n, op);
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        n->again[s] = !none && may_go(n, s);
    for (uint32_t i = 0; i < graph->n_kept; i++)
        n->again[graph->kept[i]] = 0;
}

/* ---- segments ------------------------------------------------------------ */

/* Tensors of the step that a unit's backward reads and makes and are not in the
 * list yet: data and workspace, no gradients of weights. */
static uint64_t backward_bytes(neurons *n, uint32_t unit)
{
    const ms_graph *graph = n->graph;
    uint32_t first = graph->backward_at[unit + 1];
    uint32_t end = graph->backward_at[unit];
    const uint32_t *const lists[] = {graph->in, graph->out};
    const uint32_t *const at[] = {graph->in_at, graph->out_at};
    uint64_t bytes = 0;
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = at[k][first]; i < at[k][end]; i++) {
            uint32_t s = lists[k][i];
            if (s >= graph->n_persistent && is_new(n, s) &&
                graph->storage_category[s] != MS_BECOMES_GRAD)
                bytes += graph->storage_bytes[s];
        }
    return bytes;
}

/* Appends what the unit's backward reads of what is made again. */
static uint32_t list_read(neurons *n, uint32_t unit, uint32_t count)
{
    const ms_graph *graph = n->graph;
    uint32_t end = graph->in_at[graph->backward_at[unit]];
    for (uint32_t i = graph->in_at[graph->backward_at[unit + 1]]; i < end;
         i++) {
        uint32_t s = graph->in[i];
        if (!n->again[s])
            continue;
        n->reader[s] = unit;
        if (is_new(n, s))
            n->list[count++] = s;
    }
    return count;
}

/* What the list is made from is needed until this unit's backward.  The list
 * is used up. */
static void need_sources(neurons *n, uint32_t count, uint32_t unit)
{
    const ms_graph *graph = n->graph;
    while (count > 0) {
        uint32_t op = graph->storage_maker[n->list[--count]];
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            bool kept =
                n->checkpoint[s] ||
                (graph->storage_saved_end[s] != MS_NONE && !n->again[s]);
            if (s < graph->n_persistent)
                continue;
            if (kept)
                n->need[s] = unit < n->need[s] ? unit : n->need[s];
            else if (is_new(n, s))
                n->list[count++] = s;
        }
    }
}

/* Makes what units [first, last] read before the backward of the last. */
static ms_err make_once(neurons *n, uint32_t first, uint32_t last)
{
    uint32_t count = 0;
    n->tick++;
    for (uint32_t u = last + 1; u-- > first;)
        count = list_read(n, u, count);
    MS_TRY(add_set(n, count, &n->made[last]));
    if (n->made[last] == MS_NOTHING)
        return MS_OK;
    need_sources(n, count, last);
    const ms_program *program = n->program;
    uint32_t begin = program->set_at[n->made[last]];
    for (uint32_t u = first; u <= last; u++) {
        count = 0;
        for (uint32_t i = begin; i < program->set_at[n->made[last] + 1]; i++)
            if (n->reader[program->set_item[i]] == u)
                n->list[count++] = program->set_item[i];
        MS_TRY(add_set(n, count, &n->dropped[u]));
    }
    return MS_OK;
}

static ms_err make_each(neurons *n, uint32_t first, uint32_t last)
{
    for (uint32_t u = first; u <= last; u++) {
        n->tick++;
        uint32_t count = list_read(n, u, 0);
        MS_TRY(add_set(n, count, &n->made[u]));
        n->dropped[u] = n->made[u];
        need_sources(n, count, u);
    }
    return MS_OK;
}

/* The most that the segment holds at once if it runs again once: what is left
 * of the recomputed tensors and what a backward reads and makes besides. */
static uint64_t segment_bytes(neurons *n, uint32_t first, uint32_t last)
{
    uint32_t count = 0;
    uint64_t most = 0;
    n->tick++;
    for (uint32_t u = last + 1; u-- > first;)
        count = list_read(n, u, count);
    for (uint32_t u = last + 1; u-- > first;) {
        uint64_t bytes = 0;
        n->tick++;
        for (uint32_t i = 0; i < count; i++)
            if (n->reader[n->list[i]] <= u && is_new(n, n->list[i]))
                bytes += n->graph->storage_bytes[n->list[i]];
        bytes += backward_bytes(n, u);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static ms_err find_segments(neurons *n)
{
    int64_t way = n->swap->values[MS_SWAP_RECOMPUTE].number;
    uint32_t units = n->graph->n_units;
    for (uint32_t u = 0; u < units; u++) {
        n->tick++;
        uint64_t bytes = backward_bytes(n, u);
        n->peak_bytes = bytes > n->peak_bytes ? bytes : n->peak_bytes;
    }
    for (uint32_t first = 0, u = 0; u < units; u++) {
        if (!n->layer[u] && u + 1 < units)
            continue;
        bool once = way == MS_SWAP_RECOMPUTE_SPEED;
        if (way == MS_SWAP_RECOMPUTE_COST)
            once = segment_bytes(n, first, u) <= n->peak_bytes;
        MS_TRY(once ? make_once(n, first, u) : make_each(n, first, u));
        first = u + 1;
    }
    return MS_OK;
}

/* ---- the program --------------------------------------------------------- */

/* Of a unit's forward: what it saves and keeps, what it makes and recomputation
 * needs. */
static ms_err find_forward_sets(neurons *n, uint32_t unit)
{
    const ms_graph *graph = n->graph;
    uint32_t first = graph->out_at[graph->forward_at[unit]], count = 0;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    bool all = true;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->out[i];
        all &= !n->again[s];
        if (!n->again[s] && graph->storage_saved_end[s] != MS_NONE)
            n->list[count++] = s;
    }
    MS_TRY(add_set(n, count, &n->kept[unit]));
    if (all)
        n->kept[unit] = MS_ALL;
    count = 0;
    for (uint32_t i = first; i < end; i++)
        if (n->need[graph->out[i]] != MS_NONE)
            n->list[count++] = graph->out[i];
    return add_set(n, count, &n->held[unit]);
}

/* Puts the storages in order of the units that need them last. */
static ms_err order_done(neurons *n)
{
    const ms_graph *graph = n->graph;
    n->done_at =
        ms_arena_take(n->arena, graph->n_units + 1, sizeof *n->done_at);
    n->done_item =
        ms_arena_take_raw(n->arena, graph->n_storages, sizeof *n->done_item);
    if (n->done_at == NULL || n->done_item == NULL)
        return ms_fail_nomem(n->fault);
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (n->need[s] != MS_NONE)
            n->done_at[n->need[s] + 1]++;
    for (uint32_t u = 0; u < graph->n_units; u++)
        n->done_at[u + 1] += n->done_at[u];
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (n->need[s] != MS_NONE)
            n->done_item[n->done_at[n->need[s]]++] = s;
    return MS_OK;
}

/* Filling has moved each offset to its end, where the next unit begins. */
static ms_err find_done(neurons *n, uint32_t unit)
{
    uint32_t first = unit > 0 ? n->done_at[unit - 1] : 0;
    return ms_program_add_set(n->program, n->done_item + first,
                              n->done_at[unit] - first, n->arena,
                              &n->done[unit], n->fault);
}

static ms_err write_call(neurons *n, ms_verb verb, uint32_t set,
                         const ms_call *like)
{
    ms_call call = ms_program_call_like(verb, like);
    call.set = set;
    if (verb == MS_HOLD)
        call.hold.again = true;
    return set == MS_NOTHING
               ? MS_OK
               : ms_program_add(n->program, call, n->arena, n->fault);
}

static ms_err write_program(neurons *n)
{
    const ms_program *from = n->swap->from;
    for (uint32_t i = 0; i < from->n_calls; i++) {
        ms_call call = from->calls[i];
        uint32_t u = call.unit;
        bool backward = ms_swap_is_backward(&call);
        if (ms_swap_is_forward(&call)) {
            call.run.keep = n->kept[u];
            call.set = n->held[u];
        }
        if (backward)
            MS_TRY(write_call(n, MS_HOLD, n->made[u], &call));
        MS_TRY(ms_program_add(n->program, call, n->arena, n->fault));
        if (!backward)
            continue;
        MS_TRY(write_call(n, MS_DROP_SET, n->dropped[u], &call));
        MS_TRY(write_call(n, MS_DROP_SET, n->done[u], &call));
    }
    return MS_OK;
}

/* ---- the way ------------------------------------------------------------- */

static ms_err check_alone(const ms_swap *swap)
{
    const ms_program *from = swap->from;
    for (uint32_t i = 0; i < from->n_calls; i++) {
        const ms_call *call = &from->calls[i];
        bool less = ms_swap_is_forward(call) &&
                    (call->run.keep != MS_ALL || call->set != MS_NOTHING);
        if (less || call->verb == MS_RERUN)
            return ms_fail(swap->fault, MS_EUSAGE, "swap:superneurons",
                           "leave the other policy out",
                           "superneurons recomputes by a rule of its own, and "
                           "another policy recomputes already");
    }
    return MS_OK;
}

ms_err ms_superneurons_write(ms_swap *swap)
{
    ms_program program;
    neurons n = {.swap = swap,
                 .graph = swap->context->graph,
                 .arena = swap->arena,
                 .program = &program,
                 .fault = swap->fault};
    MS_TRY(check_alone(swap));
    MS_TRY(ms_program_fork(swap->program, swap->arena, &program, swap->fault));
    MS_TRY(take_columns(&n));
    mark(&n);
    MS_TRY(find_segments(&n));
    MS_TRY(order_done(&n));
    for (uint32_t u = 0; u < n.graph->n_units; u++) {
        MS_TRY(find_forward_sets(&n, u));
        MS_TRY(find_done(&n, u));
    }
    MS_TRY(write_program(&n));
    MS_TRY(ms_program_fork(&program, swap->arena, swap->program, swap->fault));
    return ms_swapcache_write(
        swap, &(ms_swapcache){.program = &program,
                              .cached = n.checkpoint,
                              .fetches = n.layer,
                              .budget = &swap->values[MS_SWAP_BUDGET],
                              .name = "swap:superneurons"});
}
