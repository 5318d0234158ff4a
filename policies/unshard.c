/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/unshard.h"

/* What is gathered and reduced together. */
typedef struct fsdp_unit {
    uint32_t weights, grads; /* sets */
    uint64_t part_bytes;     /* of all weights, padded, of one rank, in the
                                format of whole copies */
    uint64_t part_elements;  /* of those that are trained, padded, likewise */
    uint8_t part_width;      /* bytes of such an element */
    uint64_t grad_bytes;     /* of an element of the whole gradients */
    bool kept;               /* .grad exists when the step starts */
    bool parked;             /* divided among reshard_ranks since its forward */
    bool whole, flying;      /* flying: the all-gather is under way */
    uint32_t cast, gathered; /* buffers of the all-gather, or MS_NONE */
    uint32_t small;          /* the part while it is parked */
    uint32_t flat, in, out;  /* of the reduce-scatter */
    uint32_t place, n_weight; /* in order; how many weights */
} fsdp_unit;

typedef struct writer {
    const ms_graph *graph;
    const ms_unshard *options;
    ms_arena *arena;
    ms_fault *fault;
    ms_program *program; /* the new one */
    const ms_call *at;   /* the call in whose name calls are added */
    fsdp_unit *unit;
    uint32_t n_units, root; /* root + 1, root + 2: before, behind the blocks */
    uint32_t *order, n_order; /* units but the root, as forward runs them */
    uint32_t now, back;       /* the unit under way in forward, in backward */
    uint32_t held;       /* whose all-gather's output forward still holds */
    uint32_t scattering; /* whose reduce-scatter's input backward still holds */
    uint32_t outer;      /* the same of an all-reduce */
    bool in_forward, in_backward;
} writer;

/* ---- units --------------------------------------------------------------- */

static uint32_t first_in_block(const ms_graph *graph)
{
    uint32_t u = 0;
    while (u < graph->n_units && graph->unit_block[u] == MS_NONE)
        u++;
    return u;
}

static uint32_t unit_of(const writer *w, uint32_t u)
{
    uint32_t block = w->graph->unit_block[u];
    if (w->options->units == MS_UNSHARD_WHOLE)
        return w->root;
    if (block != MS_NONE)
        return block;
    if (w->options->units == MS_UNSHARD_BLOCKS)
        return w->root;
    return u < first_in_block(w->graph) ? w->root + 1 : w->root + 2;
}

/* Whose a weight is: the unit that reads it; the root where several do. */
static void find_owners(const writer *w, uint32_t *owner)
{
    const ms_graph *graph = w->graph;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        owner[s] = MS_NONE;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t f = unit_of(w, u);
        uint32_t end = graph->in_at[graph->forward_at[u + 1]];
        for (uint32_t i = graph->in_at[graph->forward_at[u]]; i < end; i++) {
            uint32_t s = graph->in[i];
            if (!ms_graph_is_weight(graph, s))
                continue;
            bool other = owner[s] != MS_NONE && owner[s] != f;
            owner[s] = other ? w->root : f;
        }
    }
}

static void measure_unit(const writer *w, fsdp_unit *it, uint32_t weight)
{
    const ms_graph *graph = w->graph;
    uint32_t grad = graph->storage_grad[weight];
    uint64_t whole = graph->storage_bytes[weight];
    uint64_t elements = graph->weight_elements != NULL
                            ? graph->weight_elements[weight]
                            : whole / graph->weight_bytes;
    uint64_t shard = graph->storage_shard_bytes[weight];
    bool casts = whole == elements * graph->weight_bytes;
    it->n_weight++;
    it->part_bytes +=
        casts ? shard / graph->part_bytes * graph->weight_bytes : shard;
    if (grad == MS_NONE || whole == 0)
        return;
    it->grad_bytes = graph->storage_bytes[grad] / elements;
    uint64_t width = casts ? graph->part_bytes : whole / elements;
    it->part_width = (uint8_t)width;
    it->part_elements += shard / it->part_width;
    it->kept = graph->storage_at_start[grad];
}

/* The sets of each unit: storages in order of their units. */
static ms_err make_sets(writer *w, const uint32_t *owner)
{
    const ms_graph *graph = w->graph;
    uint32_t n = graph->n_persistent;
    uint32_t *list =
        ms_arena_take_raw(w->arena, 2 * (size_t)n + 1, sizeof *list);
    uint32_t *at = ms_arena_take(w->arena, w->n_units + 1, sizeof *at);
    if (list == NULL || at == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t f = 0; f < w->n_units; f++)
        at[f + 1] = at[f] + w->unit[f].n_weight;
    for (uint32_t s = 0; s < n; s++)
        if (owner[s] != MS_NONE)
            list[at[owner[s]]++] = s;
    for (uint32_t f = 0, first = 0; f < w->n_units; f++) {
        fsdp_unit *it = &w->unit[f];
        uint32_t *grads = list + n, n_grad = 0;
        for (uint32_t i = first; i < at[f]; i++)
            if (graph->storage_grad[list[i]] != MS_NONE)
                grads[n_grad++] = graph->storage_grad[list[i]];
        MS_TRY(ms_program_add_set(w->program, list + first, at[f] - first,
                                  w->arena, &it->weights, w->fault));
        MS_TRY(ms_program_add_set(w->program, grads, n_grad, w->arena,
                                  &it->grads, w->fault));
        first = at[f];
    }
    return MS_OK;
}

static ms_err add_buffer(writer *w, const char *name, uint64_t bytes,
                         ms_block_home home, uint32_t *buffer)
{
    uint8_t stream =
        home == MS_HOME_COMPUTE ? MS_STREAM_COMPUTE : MS_STREAM_COMM;
    ms_buffer value = {.name = name,
                       .bytes = bytes,
                       .category = MS_COMMUNICATION,
                       .pool = MS_DEVICE_POOL,
                       .stream = stream,
                       .home = (uint8_t)home,
                       .waited = !w->options->flat};
    return ms_program_add_buffer(w->program, value, w->arena, buffer, w->fault);
}

/* Of FSDP2 one rank alone needs none: its part is copied as it is. */
static ms_err make_buffers(writer *w, fsdp_unit *it)
{
    const ms_graph *graph = w->graph;
    bool flat = w->options->flat, alone = graph->part_ranks == 1;
    uint64_t gathered = it->part_bytes * graph->part_ranks;
    uint64_t part = it->part_elements, all = part * graph->part_ranks;
    uint64_t bytes = w->options->reduced_bytes;
    bool apart = flat || w->options->copies_apart;
    bool again = w->program->n_micro_batches > 1 && !w->options->last_only;
    if (bytes == 0)
        bytes = it->part_width;
    if (!alone && graph->part_bytes != graph->weight_bytes)
        MS_TRY(add_buffer(w, "all_gather_input", it->part_bytes,
                          flat ? MS_HOME_CAST : MS_HOME_STREAM, &it->cast));
    if (!alone && !flat)
        MS_TRY(add_buffer(w, "all_gather_output", gathered, MS_HOME_STREAM,
                          &it->gathered));
    if (!alone && w->options->reshard_ranks > 0)
        MS_TRY(add_buffer(w, "post_forward_shard",
                          gathered / w->options->reshard_ranks, MS_HOME_COMPUTE,
                          &it->small));
    if (it->grads == MS_NOTHING)
        return MS_OK;
    if (flat)
        MS_TRY(add_buffer(w, "flat_grad", all * it->grad_bytes, MS_HOME_COMPUTE,
                          &it->flat));
    if (flat ? bytes != it->grad_bytes : !alone)
        MS_TRY(add_buffer(w, "reduce_scatter_input", all * bytes,
                          apart ? MS_HOME_REDUCE : MS_HOME_COMPUTE, &it->in));
    if (bytes != it->part_width || it->kept || again)
        MS_TRY(add_buffer(w, "reduce_scatter_output", part * bytes,
                          MS_HOME_REDUCE, &it->out));
    return MS_OK;
}

static ms_err open_units(writer *w)
{
    const ms_graph *graph = w->graph;
    uint32_t *owner =
        ms_arena_take_raw(w->arena, graph->n_persistent, sizeof *owner);
    w->root = graph->n_blocks;
    w->n_units = w->root + 3;
    w->unit = ms_arena_take(w->arena, w->n_units, sizeof *w->unit);
    w->order = ms_arena_take_raw(w->arena, w->n_units, sizeof *w->order);
    if (owner == NULL || w->unit == NULL || w->order == NULL)
        return ms_fail_nomem(w->fault);
    find_owners(w, owner);
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (owner[s] != MS_NONE)
            measure_unit(w, &w->unit[owner[s]], s);
    MS_TRY(make_sets(w, owner));
    for (uint32_t f = 0; f < w->n_units; f++) {
        fsdp_unit *it = &w->unit[f];
        it->small = it->cast = it->gathered = it->flat = it->in = it->out =
            MS_NONE;
        it->place = MS_NONE;
        if (it->weights != MS_NOTHING)
            MS_TRY(make_buffers(w, it));
    }
    for (uint32_t u = 0; u < graph->n_units; u++) {
        fsdp_unit *it = &w->unit[unit_of(w, u)];
        if (it == &w->unit[w->root] || it->place != MS_NONE ||
            it->weights == MS_NOTHING)
            continue;
        it->place = w->n_order;
        w->order[w->n_order++] = unit_of(w, u);
    }
    return MS_OK;
}

/* ---- calls --------------------------------------------------------------- */

static ms_err add(writer *w, ms_verb verb, uint32_t set, uint32_t buffer,
                  uint8_t place, unsigned flags)
{
    ms_call call = ms_program_call_like(verb, w->at);
    call.set = set;
    call.buffer = buffer;
    call.place = place;
    call.flags = (uint16_t)flags;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

/* Of buffers that a unit may not need. */
static ms_err take(writer *w, uint32_t buffer)
{
    return buffer == MS_NONE ? MS_OK
                             : add(w, MS_TAKE, MS_NOTHING, buffer, MS_HERE, 0);
}

static ms_err give(writer *w, uint32_t buffer)
{
    return buffer == MS_NONE ? MS_OK
                             : add(w, MS_GIVE, MS_NOTHING, buffer, MS_HERE, 0);
}

/* Starts the all-gather of unit f. */
static ms_err unshard(writer *w, uint32_t f)
{
    fsdp_unit *it = &w->unit[f];
    unsigned flags = w->graph->part_ranks > 1 ? MS_CALL_AHEAD : 0;
    if (it->weights == MS_NOTHING || it->whole || it->flying)
        return MS_OK;
    if (flags != 0 && w->options->limit)
        flags |= MS_CALL_LIMIT;
    it->flying = true;
    if (it->parked)
        flags |= MS_CALL_OUTER;
    else
        MS_TRY(take(w, it->cast));
    MS_TRY(take(w, it->gathered));
    MS_TRY(add(w, MS_GATHER, it->weights, it->gathered, MS_HERE, flags));
    return it->parked ? MS_OK : give(w, it->cast);
}

/* An all-gather ahead of its use.  One rank alone copies when it must. */
static ms_err prefetch(writer *w, uint32_t f)
{
    return w->graph->part_ranks == 1 ? MS_OK : unshard(w, f);
}

/* Unit f is whole for what runs next.  The output of forward's all-gathers
 * stays until the next one's is copied out, so that copy and collective
 * overlap. */
static ms_err await(writer *w, uint32_t f, bool forward)
{
    fsdp_unit *it = &w->unit[f];
    if (it->weights == MS_NOTHING || it->whole)
        return MS_OK;
    MS_TRY(unshard(w, f));
    it->whole = true;
    it->flying = false;
    if (it->gathered == MS_NONE)
        return MS_OK;
    if (forward && w->held != MS_NONE)
        MS_TRY(give(w, w->unit[w->held].gathered));
    MS_TRY(add(w, MS_MOVE, it->weights, MS_NONE, MS_HERE, 0));
    if (it->parked)
        MS_TRY(give(w, it->small));
    it->parked = false;
    if (!forward)
        return give(w, it->gathered);
    w->held = f;
    return MS_OK;
}

static ms_err reshard(writer *w, uint32_t f)
{
    fsdp_unit *it = &w->unit[f];
    if (!it->whole)
        return MS_OK;
    it->whole = false;
    return add(w, MS_MOVE, it->weights, MS_NONE, MS_SHARD, 0);
}

/* ---- forward ------------------------------------------------------------- */

/* torchtitan keeps the last block, or, where what is around the blocks is
 * apart, what is behind them. */
static bool is_last(const writer *w, uint32_t f)
{
    if (w->unit[w->root + 2].weights != MS_NOTHING)
        return f == w->root + 2;
    return (w->n_order > 0 && f == w->order[w->n_order - 1]) ||
           (w->graph->n_blocks > 0 && f == w->graph->n_blocks - 1);
}

static ms_err leave_forward(writer *w)
{
    uint32_t f = w->now;
    w->now = MS_NONE;
    if (f == MS_NONE || f == w->root || w->options->keep == MS_UNSHARD_STAY ||
        (w->options->keep == MS_UNSHARD_BUT_LAST && is_last(w, f)))
        return MS_OK;
    w->unit[f].parked = w->unit[f].small != MS_NONE;
    MS_TRY(take(w, w->unit[f].small));
    return reshard(w, f);
}

static ms_err enter_forward(writer *w, uint32_t f)
{
    if (f == w->now)
        return MS_OK;
    MS_TRY(leave_forward(w));
    w->now = f;
    MS_TRY(await(w, f, true));
    uint32_t next = w->unit[f].place + 1;
    if (f != w->root && w->options->forward_prefetch && next < w->n_order)
        MS_TRY(prefetch(w, w->order[next]));
    return MS_OK;
}

/* The model's output is there. */
static ms_err end_forward(writer *w)
{
    uint32_t held = w->held;
    MS_TRY(leave_forward(w));
    w->held = MS_NONE;
    return held == MS_NONE ? MS_OK : give(w, w->unit[held].gathered);
}

/* ---- backward ------------------------------------------------------------ */

/* At most one reduce-scatter is in flight: its input goes when the next one
 * wants memory. */
static ms_err end_scatter(writer *w)
{
    uint32_t f = w->scattering, outer = w->outer;
    w->scattering = w->outer = MS_NONE;
    if (f != MS_NONE) {
        MS_TRY(add(w, MS_WAIT, MS_NOTHING, w->unit[f].in, MS_HERE, 0));
        MS_TRY(give(w, w->unit[f].in));
    }
    return outer == MS_NONE ? MS_OK : give(w, w->unit[outer].out);
}

/* The collectives over a unit's gradients, which lie where they are summed. */
static ms_err sum(writer *w, uint32_t f)
{
    fsdp_unit *it = &w->unit[f];
    bool first = w->at->micro_batch == 0 || w->options->last_only;
    bool as_part = w->options->reduced_bytes == 0 ||
                   w->options->reduced_bytes == w->graph->part_bytes;
    uint32_t out = first && !it->kept && as_part ? MS_NONE : it->out;
    MS_TRY(take(w, out));
    MS_TRY(add(w, MS_REDUCE, it->grads, MS_NONE, MS_SHARD, 0));
    if (w->graph->part_groups > 1)
        MS_TRY(add(w, MS_REDUCE, it->grads, out, MS_SHARD, MS_CALL_OUTER));
    if (w->graph->part_groups == 1 || w->options->flat || out == MS_NONE)
        return give(w, out);
    w->outer = f; /* FSDP2 holds an all-reduce's input like a scatter's */
    return MS_OK;
}

static bool sums_now(const writer *w, const fsdp_unit *it)
{
    return it->grads != MS_NOTHING &&
           (!w->options->last_only ||
            w->at->micro_batch + 1 == w->program->n_micro_batches);
}

/* FSDP1: the gradients of the views are joined to the flat parameter's, which
 * is cast where it is summed in another format. */
static ms_err post_backward_flat(writer *w, uint32_t f)
{
    fsdp_unit *it = &w->unit[f];
    bool sums = sums_now(w, it), casts = it->in != MS_NONE;
    if (sums) {
        MS_TRY(take(w, it->flat));
        MS_TRY(add(w, MS_MOVE, it->grads, it->flat, MS_PACKED, 0));
    }
    if (sums || w->options->keep != MS_UNSHARD_STAY) /* else no_sync keeps it */
        MS_TRY(reshard(w, f));
    if (w->options->prefetch == MS_UNSHARD_POST && it->place != MS_NONE &&
        it->place > 0)
        MS_TRY(prefetch(w, w->order[it->place - 1]));
    if (!sums)
        return MS_OK;
    if (casts) {
        MS_TRY(take(w, it->in));
        MS_TRY(add(w, MS_MOVE, it->grads, it->in, MS_PACKED, MS_CALL_AHEAD));
        MS_TRY(give(w, it->flat));
    }
    MS_TRY(sum(w, f));
    return give(w, casts ? it->in : it->flat);
}

static ms_err scatter_apart(writer *w, uint32_t f)
{
    uint32_t in = w->unit[f].in;
    if (in == MS_NONE)
        return sum(w, f);
    MS_TRY(take(w, in));
    MS_TRY(add(w, MS_MOVE, w->unit[f].grads, in, MS_PACKED, MS_CALL_AHEAD));
    MS_TRY(add(w, MS_WAIT, MS_NOTHING, in, MS_HERE, 0));
    MS_TRY(sum(w, f));
    return give(w, in);
}

static ms_err post_backward(writer *w, uint32_t f)
{
    fsdp_unit *it = &w->unit[f];
    if (it->weights == MS_NOTHING)
        return MS_OK;
    if (w->options->flat)
        return post_backward_flat(w, f);
    MS_TRY(reshard(w, f));
    if (!sums_now(w, it))
        return MS_OK;
    MS_TRY(end_scatter(w));
    if (w->options->copies_apart)
        return scatter_apart(w, f);
    if (it->in != MS_NONE) {
        MS_TRY(take(w, it->in));
        MS_TRY(add(w, MS_MOVE, it->grads, it->in, MS_PACKED, 0));
        w->scattering = f;
    }
    return sum(w, f);
}

/* What is before the blocks gets no gradient to hang a hook on: its turn comes
 * with the root's, when backward ends. */
static ms_err leave_backward(writer *w)
{
    uint32_t f = w->back;
    w->back = MS_NONE;
    if (f == MS_NONE || f == w->root || f == w->root + 1)
        return MS_OK;
    return post_backward(w, f);
}

/* The root's hook comes first, with the gradient of the model's output. */
static ms_err open_backward(writer *w)
{
    if (w->in_backward)
        return MS_OK;
    w->in_backward = true;
    if (w->n_order == 0 || w->options->prefetch != MS_UNSHARD_PRE ||
        w->unit[w->root].weights == MS_NOTHING)
        return MS_OK;
    return prefetch(w, w->order[w->n_order - 1]);
}

static ms_err enter_backward(writer *w, uint32_t f)
{
    if (f == w->back)
        return MS_OK;
    MS_TRY(leave_backward(w));
    w->back = f;
    if (f == w->root)
        return MS_OK;
    MS_TRY(await(w, f, false));
    uint32_t place = w->unit[f].place;
    if (w->options->prefetch == MS_UNSHARD_PRE && place != MS_NONE && place > 0)
        MS_TRY(prefetch(w, w->order[place - 1]));
    return MS_OK;
}

static ms_err end_backward(writer *w)
{
    if (!w->in_backward)
        return MS_OK;
    MS_TRY(leave_backward(w));
    for (uint32_t f = 0; f < w->n_units; f++) {
        if (w->unit[f].flying) /* a unit without a backward */
            MS_TRY(await(w, f, false));
        if (w->unit[f].whole)
            MS_TRY(post_backward(w, f));
    }
    MS_TRY(end_scatter(w));
    w->in_backward = w->in_forward = false;
    return MS_OK;
}

/* ---- the program --------------------------------------------------------- */

static ms_err before_forward(writer *w, uint32_t u)
{
    MS_TRY(end_backward(w));
    if (!w->in_forward)
        MS_TRY(await(w, w->root, true));
    w->in_forward = true;
    if (u >= w->graph->loss_unit)
        MS_TRY(end_forward(w));
    return enter_forward(w, unit_of(w, u));
}

static ms_err before_backward(writer *w, uint32_t u)
{
    MS_TRY(end_forward(w));
    if (u >= w->graph->loss_unit)
        return MS_OK;
    MS_TRY(open_backward(w));
    return enter_backward(w, unit_of(w, u));
}

static ms_err before(writer *w, const ms_call *call)
{
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        return call->pass == MS_FORWARD ? before_forward(w, call->unit)
                                        : before_backward(w, call->unit);
    case MS_RERUN: /* in backward, where its last unit's comes next */
        return before_backward(w, call->last);
    case MS_STEP_SET:
        return end_backward(w);
    case MS_MARK:
        if (call->place == MS_MARK_BEFORE_LOSS)
            return end_forward(w);
        if (call->place == MS_MARK_AFTER_BACKWARD)
            return end_backward(w);
        return MS_OK;
    default:
        return MS_OK;
    }
}

ms_err ms_unshard_write(const ms_policy_context *context,
                        const ms_unshard *options, ms_program *program,
                        ms_fault *fault)
{
    ms_program made = ms_program_without_calls(program);
    writer w = {.graph = context->graph,
                .options = options,
                .arena = context->arena,
                .fault = fault,
                .program = &made,
                .now = MS_NONE,
                .back = MS_NONE,
                .held = MS_NONE,
                .scattering = MS_NONE,
                .outer = MS_NONE};
    MS_TRY(open_units(&w));
    for (uint32_t i = 0; i < program->n_calls; i++) {
        w.at = &program->calls[i];
        MS_TRY(before(&w, w.at));
        MS_TRY(ms_program_add(&made, *w.at, w.arena, fault));
    }
    *program = made;
    return MS_OK;
}
