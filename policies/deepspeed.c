/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient bucket of all stages, and the calls of stages 0 to 2. */
#include "policies/deepspeed.h"

/* ---- calls and buffers --------------------------------------------------- */

ms_err ms_deepspeed_emit(ms_deepspeed_writer *w, const ms_call *like,
                         ms_verb verb, uint8_t place, uint16_t flags,
                         uint32_t set, uint32_t buffer)
{
    ms_call call = ms_program_call_like(verb, like);
    call.place = place;
    call.flags = flags;
    call.set = set;
    if (buffer != MS_NONE)
        call.buffer = w->buffers[buffer].id;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

static ms_err new_buffer(ms_deepspeed_writer *w, ms_buffer value, uint32_t *row)
{
    ms_deepspeed_buffer *buffers =
        ms_arena_grow(w->arena, w->buffers, &w->buffers_capacity,
                      w->n_buffers + 1, sizeof *buffers);
    if (buffers == NULL)
        return ms_fail_nomem(w->fault);
    w->buffers = buffers;
    *row = w->n_buffers++;
    buffers[*row] =
        (ms_deepspeed_buffer){.name = value.name, .bytes = value.bytes};
    return ms_program_add_buffer(w->program, value, w->arena, &buffers[*row].id,
                                 w->fault);
}

ms_err ms_deepspeed_buffer_of(ms_deepspeed_writer *w, ms_buffer value,
                              uint32_t *row)
{
    uint32_t i = 0;
    while (i < w->n_buffers &&
           (w->buffers[i].taken || w->buffers[i].name != value.name ||
            w->buffers[i].bytes != value.bytes))
        i++;
    if (i == w->n_buffers)
        MS_TRY(new_buffer(w, value, &i));
    w->buffers[i].taken = true;
    *row = i;
    return MS_OK;
}

ms_err ms_deepspeed_take(ms_deepspeed_writer *w, const ms_call *like,
                         ms_buffer value, uint32_t *row)
{
    MS_TRY(ms_deepspeed_buffer_of(w, value, row));
    return ms_deepspeed_emit(w, like, MS_TAKE, 0, 0, MS_NOTHING, *row);
}

ms_err ms_deepspeed_give(ms_deepspeed_writer *w, const ms_call *like,
                         uint32_t row)
{
    w->buffers[row].taken = false;
    return ms_deepspeed_emit(w, like, MS_GIVE, 0, 0, MS_NOTHING, row);
}

ms_err ms_deepspeed_await(ms_deepspeed_writer *w, const ms_call *like,
                          ms_deepspeed_events *events)
{
    uint32_t oldest = events->buffer[0];
    if (events->n <= MS_DEEPSPEED_UNDER_WAY)
        return MS_OK;
    MS_TRY(ms_deepspeed_emit(w, like, MS_SYNC, 0, 0, MS_NOTHING, oldest));
    MS_TRY(ms_deepspeed_give(w, like, oldest));
    events->n--;
    for (uint32_t i = 0; i < events->n; i++)
        events->buffer[i] = events->buffer[i + 1];
    return MS_OK;
}

ms_err ms_deepspeed_record(ms_deepspeed_writer *w, const ms_call *like,
                           ms_deepspeed_events *events)
{
    return ms_deepspeed_take(w, like,
                             (ms_buffer){.name = events->name,
                                         .category = MS_COMMUNICATION,
                                         .stream = w->how->overlap
                                                       ? MS_STREAM_COMM
                                                       : MS_STREAM_COMPUTE},
                             &events->buffer[events->n++]);
}

static ms_err add_set(ms_deepspeed_writer *w, uint32_t n, uint32_t *set)
{
    return ms_program_add_set(w->program, w->list, n, w->arena, set, w->fault);
}

/* ---- parameters ---------------------------------------------------------- */

/* All weights have one format: its size is bytes over elements. */
static uint64_t weight_item_bytes(const ms_graph *graph)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        bytes += ms_graph_is_weight(graph, s) ? graph->storage_bytes[s] : 0;
    return graph->parameters > 0 ? bytes / graph->parameters : 1;
}

static void list_rows(ms_deepspeed_writer *w)
{
    const ms_graph *graph = w->graph;
    uint64_t item_bytes = weight_item_bytes(graph);
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        w->row_of[s] = MS_NONE;
        if (!ms_graph_is_weight(graph, s))
            continue;
        uint32_t grad = graph->storage_grad[s];
        uint64_t elements = graph->storage_bytes[s] / item_bytes;
        w->row_of[s] = w->n_rows;
        w->rows[w->n_rows++] = (ms_deepspeed_row){
            .weight = s, .grad = grad, .set = MS_NOTHING, .elements = elements};
        if (grad != MS_NONE && elements > 0)
            w->item_bytes = graph->storage_bytes[grad] / elements;
    }
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->rows[r].grad != MS_NONE)
            w->row_of[w->rows[r].grad] = r;
}

/* Where each lies in the flat group: in their order or, round robin, every
 * ranks-th first (stage_1_and_2.py, _round_robin_reorder). */
static void lay_out(ms_deepspeed_writer *w)
{
    uint32_t step = w->how->round_robin ? w->ranks : 1;
    uint64_t at = 0, multiple = 2 * (uint64_t)w->ranks;
    for (uint32_t first = 0; first < step; first++)
        for (uint32_t r = first; r < w->n_rows; r += step) {
            w->rows[r].at = at;
            at += w->rows[r].elements;
        }
    w->stretch = (at + multiple - 1) / multiple * 2;
}

static void list_grads(ms_deepspeed_writer *w)
{
    const ms_graph *graph = w->graph;
    uint32_t n = 0;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        w->grad_at[u] = n;
        for (uint32_t op = graph->backward_at[u + 1];
             op < graph->backward_at[u]; op++) {
            if (graph->op_pass[op] != MS_ACCUMULATE)
                continue;
            uint32_t row = w->row_of[graph->out[graph->out_at[op]]];
            if (row == MS_NONE || w->rows[row].made)
                continue;
            w->rows[row].made = true;
            w->grad_of[n++] = row;
        }
    }
    w->grad_at[graph->n_units] = n;
}

static ms_err open_writer(ms_deepspeed_writer *w)
{
    uint32_t n = w->graph->n_persistent, g = 0, p = 0;
    w->rows = ms_arena_take(w->arena, n, sizeof *w->rows);
    w->row_of = ms_arena_take_raw(w->arena, n, sizeof(uint32_t));
    w->grad_at =
        ms_arena_take(w->arena, w->graph->n_units + 1, sizeof(uint32_t));
    w->grad_of = ms_arena_take(w->arena, n, sizeof(uint32_t));
    w->list = ms_arena_take_raw(w->arena, n, sizeof(uint32_t));
    w->in = ms_arena_take_raw(w->arena, n, sizeof(uint32_t));
    if (!w->rows || !w->row_of || !w->grad_at || !w->grad_of || !w->list ||
        !w->in)
        return ms_fail_nomem(w->fault);
    list_rows(w);
    lay_out(w);
    list_grads(w);
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->rows[r].made)
            w->list[g++] = w->rows[r].grad;
    MS_TRY(add_set(w, g, &w->all_grads));
    for (uint32_t r = 0; r < w->n_rows; r++)
        w->list[p++] = w->rows[r].weight;
    return add_set(w, p, &w->all_weights);
}

/* ---- the bucket ---------------------------------------------------------- */

static uint64_t owner(const ms_deepspeed_writer *w, uint64_t at)
{
    return w->stretch > 0 ? at / w->stretch : 0;
}

/* Does what is in the bucket belong to several ranks? */
static bool has_owners(const ms_deepspeed_writer *w)
{
    uint64_t first = owner(w, w->rows[w->in[0]].at);
    for (uint32_t i = 0; i < w->n_in; i++) {
        const ms_deepspeed_row *it = &w->rows[w->in[i]];
        uint64_t last = it->at + (it->elements > 0 ? it->elements - 1 : 0);
        if (owner(w, it->at) != first || owner(w, last) != first)
            return true;
    }
    return false;
}

/* Is it copied before it is reduced?  Stages 1 and 2 flatten the slices of
 * several owners (allreduce_and_scatter) and, without a bucket, whatever there
 * is; stage 3 interleaves the ranks' chunks (reduce_scatter_coalesced). */
static bool is_copied(const ms_deepspeed_writer *w)
{
    const ms_deepspeed *how = w->how;
    const ms_deepspeed_row *first = &w->rows[w->in[0]];
    bool alone = w->n_in == 1;
    if (how->stage == 3)
        return how->scatter && !(alone && first->elements % w->ranks == 0);
    if (!how->contiguous)
        return !alone;
    if (alone && first->elements > how->bucket)
        return false;
    return how->scatter && how->multi_rank && has_owners(w);
}

static uint64_t copy_bytes(const ms_deepspeed_writer *w)
{
    uint64_t elements = 0, ranks = w->ranks;
    for (uint32_t i = 0; i < w->n_in; i++) {
        uint64_t n = w->rows[w->in[i]].elements;
        elements += w->how->stage == 3 ? (n + ranks - 1) / ranks * ranks : n;
    }
    return elements * w->item_bytes;
}

static uint64_t parts_bytes(const ms_deepspeed_writer *w)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->rows[r].made)
            bytes += w->graph->storage_shard_bytes[w->rows[r].grad];
    return bytes;
}

/* The owner's partition of the whole group is made with the first slice of it
 * in a backward; in stage 2 those of later micro-batches are added to the first
 * one when the backward ends. */
static ms_err open_parts(ms_deepspeed_writer *w, const ms_call *like)
{
    if (w->has_parts || w->how->stage == 3 || w->far)
        return MS_OK;
    w->has_parts = true;
    if (w->how->stage == 1 || like->micro_batch == 0)
        return ms_deepspeed_emit(w, like, MS_MOVE, MS_SHARD, MS_CALL_LATER,
                                 w->all_grads, MS_NONE);
    return ms_deepspeed_take(w, like,
                             (ms_buffer){.name = "grads_in_partition",
                                         .bytes = parts_bytes(w),
                                         .category = MS_GRADIENTS},
                             &w->parts);
}

ms_err ms_deepspeed_reduce(ms_deepspeed_writer *w, const ms_call *like)
{
    const ms_deepspeed *how = w->how;
    uint32_t set, copy = MS_NONE;
    uint16_t flags = MS_CALL_FILLED;
    for (uint32_t i = 0; i < w->n_in; i++)
        w->list[i] = w->rows[w->in[i]].grad;
    MS_TRY(add_set(w, w->n_in, &set));
    if (is_copied(w)) {
        MS_TRY(ms_deepspeed_take(w, like,
                                 (ms_buffer){.name = "flattened",
                                             .bytes = copy_bytes(w),
                                             .category = MS_COMMUNICATION},
                                 &copy));
        MS_TRY(ms_deepspeed_emit(w, like, MS_MOVE, MS_PACKED, 0, set, copy));
        flags = 0; /* all of it */
    }
    if (!how->scatter || (how->stage < 3 && how->multi_rank))
        flags |= MS_CALL_WHOLE;
    MS_TRY(
        ms_deepspeed_emit(w, like, MS_REDUCE, MS_SHARD, flags, set, MS_NONE));
    /* The copy ends with the function, before what leaves is looked at. */
    if (w->far && copy != MS_NONE)
        MS_TRY(ms_deepspeed_give(w, like, copy));
    if (!how->overlap)
        MS_TRY(ms_deepspeed_emit(w, like, MS_WAIT, 0, 0, set, MS_NONE));
    return !w->far && copy != MS_NONE ? ms_deepspeed_give(w, like, copy)
                                      : MS_OK;
}

ms_err ms_deepspeed_close(ms_deepspeed_writer *w, const ms_call *like)
{
    const ms_deepspeed *how = w->how;
    if (w->n_in == 0)
        return MS_OK;
    MS_TRY(open_parts(w, like));
    if (how->stage == 3)
        MS_TRY(ms_deepspeed_await(w, like, &w->reductions));
    if (how->quantized_gradients && w->ranks / w->node_ranks > 1)
        MS_TRY(ms_deepspeedpp_reduce(w, like));
    else
        MS_TRY(ms_deepspeed_reduce(w, like));
    if (how->stage == 3)
        MS_TRY(ms_deepspeed_record(w, like, &w->reductions));
    if (how->overlap && how->stage < 3)
        w->active = 1 - w->active;
    w->n_in = 0;
    w->filled = 0;
    return MS_OK;
}

/* A gradient is there: into the bucket, or beside it if it is larger. */
static ms_err ready_row(ms_deepspeed_writer *w, const ms_call *like, uint32_t r)
{
    ms_deepspeed_row *it = &w->rows[r];
    uint64_t most = w->how->bucket;
    if (w->n_in > 0 && w->filled + it->elements > most)
        MS_TRY(ms_deepspeed_close(w, like));
    if (w->how->contiguous && w->filled + it->elements <= most) {
        w->list[0] = it->grad;
        if (it->set == MS_NOTHING)
            MS_TRY(add_set(w, 1, &it->set));
        MS_TRY(ms_deepspeed_emit(w, like, MS_MOVE, MS_PACKED, 0, it->set,
                                 w->bucket[w->active]));
    }
    w->in[w->n_in++] = r;
    w->filled += it->elements;
    return MS_OK;
}

ms_err ms_deepspeed_ready(ms_deepspeed_writer *w, const ms_call *like,
                          uint32_t unit)
{
    for (uint32_t i = w->grad_at[unit]; i < w->grad_at[unit + 1]; i++)
        MS_TRY(ready_row(w, like, w->grad_of[i]));
    return MS_OK;
}

/* ---- stages 0 to 2 ------------------------------------------------------- */

static bool is_last(const ms_deepspeed_writer *w, const ms_call *call)
{
    return call->micro_batch + 1 == w->program->n_micro_batches;
}

static ms_err open_backward(ms_deepspeed_writer *w, const ms_call *like)
{
    uint32_t n = w->how->overlap ? 2 : 1;
    w->open = true;
    w->has_parts = false;
    w->parts = MS_NONE;
    w->active = 0;
    if (w->how->stage == 0 || w->has_sum)
        return MS_OK;
    for (uint32_t i = 0; i < n && w->how->contiguous; i++)
        MS_TRY(ms_deepspeed_take(
            w, like,
            (ms_buffer){.name = "ipg_bucket",
                        .bytes = w->how->bucket * w->item_bytes,
                        .category = MS_COMMUNICATION},
            &w->bucket[i]));
    return MS_OK;
}

/* Stage 0: flat copies of all gradients are reduced, one after the other
 * (engine.py, buffered_allreduce_fallback). */
static ms_err reduce_all(ms_deepspeed_writer *w, const ms_call *like)
{
    uint32_t r = 0;
    while (r < w->n_rows) {
        uint32_t n = 0, set, copy;
        uint64_t elements = 0;
        for (; r < w->n_rows && elements <= w->how->bucket; r++) {
            if (!w->rows[r].made)
                continue;
            w->list[n++] = w->rows[r].grad;
            elements += w->rows[r].elements;
        }
        if (n == 0)
            break;
        MS_TRY(add_set(w, n, &set));
        MS_TRY(ms_deepspeed_take(w, like,
                                 (ms_buffer){.name = "flattened",
                                             .bytes = elements * w->item_bytes,
                                             .category = MS_COMMUNICATION},
                                 &copy));
        MS_TRY(ms_deepspeed_emit(w, like, MS_REDUCE, MS_HERE, 0, set, MS_NONE));
        MS_TRY(ms_deepspeed_emit(w, like, MS_WAIT, 0, 0, set, MS_NONE));
        MS_TRY(ms_deepspeed_give(w, like, copy));
    }
    return MS_OK;
}

/* BF16_Optimizer: all of the fp32 sum, one flat tensor, is cast to bf16,
 * all-reduced and copied back (engine.py: get_grads_for_reduction,
 * allreduce_bucket with communication_data_type, which for bf16 is bf16).  Its
 * elements are those of .grad. */
static ms_err reduce_sum(ms_deepspeed_writer *w, const ms_call *like)
{
    uint64_t elements = 0;
    uint32_t copy;
    for (uint32_t r = 0; r < w->n_rows; r++)
        elements += w->rows[r].made ? w->rows[r].elements : 0;
    MS_TRY(ms_deepspeed_take(w, like,
                             (ms_buffer){.name = "cast",
                                         .bytes = elements * w->item_bytes,
                                         .category = MS_COMMUNICATION},
                             &copy));
    MS_TRY(ms_deepspeed_emit(w, like, MS_REDUCE, MS_HERE, 0, w->all_grads,
                             MS_NONE));
    MS_TRY(ms_deepspeed_emit(w, like, MS_WAIT, 0, 0, w->all_grads, MS_NONE));
    return ms_deepspeed_give(w, like, copy);
}

/* The tail of the bucket; in stage 1 without overlap, whose gradients have no
 * hooks, all of them. */
static ms_err close_backward(ms_deepspeed_writer *w, const ms_call *like)
{
    const ms_deepspeed *how = w->how;
    w->open = false;
    if (how->stage == 0)
        return is_last(w, like) ? reduce_all(w, like) : MS_OK;
    if (w->has_sum)
        return is_last(w, like) ? reduce_sum(w, like) : MS_OK;
    for (uint32_t r = 0;
         r < w->n_rows && how->stage == 1 && !how->overlap && is_last(w, like);
         r++)
        if (w->rows[r].made)
            MS_TRY(ready_row(w, like, r));
    MS_TRY(ms_deepspeed_close(w, like));
    for (uint32_t i = 0; i < (how->overlap ? 2u : 1u) && how->contiguous; i++)
        MS_TRY(ms_deepspeed_give(w, like, w->bucket[i]));
    if (w->parts != MS_NONE)
        MS_TRY(ms_deepspeed_give(w, like, w->parts));
    return MS_OK;
}

bool ms_deepspeed_ends(const ms_call *call)
{
    return (call->verb == MS_RUN && call->pass == MS_FORWARD) ||
           call->verb == MS_STEP_SET ||
           (call->verb == MS_MARK && call->place == MS_MARK_AFTER_BACKWARD);
}

static ms_err write_calls(ms_deepspeed_writer *w, const ms_program *old)
{
    uint32_t stage = w->how->stage;
    const ms_call *last = NULL; /* run of the backward under way */
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i];
        bool back = call->verb == MS_RUN && call->pass != MS_FORWARD;
        if (w->open && last != NULL && ms_deepspeed_ends(call))
            MS_TRY(close_backward(w, last));
        if (!w->open && (back || call->verb == MS_RERUN))
            MS_TRY(open_backward(w, call));
        MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
        if (back) {
            bool hooks = stage == 2 || (stage == 1 && !w->has_sum &&
                                        w->how->overlap && is_last(w, call));
            last = call;
            if (hooks)
                MS_TRY(ms_deepspeed_ready(w, call, call->unit));
        }
        if (call->verb == MS_STEP_SET && stage > 0)
            MS_TRY(ms_deepspeed_emit(w, call, MS_GATHER, MS_HERE, 0,
                                     w->all_weights, MS_NONE));
    }
    return w->open && last != NULL ? close_backward(w, last) : MS_OK;
}

/* Of the job's ranks those of a node. */
static uint32_t node_ranks(const ms_policy_context *context)
{
    uint32_t ranks = context->shape->data_ranks;
    uint32_t local =
        context->opts != NULL ? context->opts->ring.ranks_per_node : 0;
    return local > 0 && local < ranks ? local : ranks;
}

ms_err ms_deepspeed_write(const ms_policy_context *context,
                          const ms_deepspeed *how, ms_program *program,
                          ms_fault *fault)
{
    const ms_shape *shape = context->shape;
    ms_program made;
    ms_deepspeed_writer w = {.context = context,
                             .graph = context->graph,
                             .how = how,
                             .arena = context->arena,
                             .fault = fault,
                             .program = &made,
                             .ranks = shape->data_ranks,
                             .node_ranks = node_ranks(context),
                             .fetches = {.name = "fetch_event"},
                             .reductions = {.name = "reduce_event"},
                             .has_sum =
                                 how->stage == 1 &&
                                 context->graph->storage_shard_bytes == NULL,
                             .far = shape->offload.gradients != MS_DEVICE_POOL,
                             .item_bytes = 1};
    MS_TRY(ms_program_fork(program, w.arena, &made, fault));
    MS_TRY(open_writer(&w));
    MS_TRY(how->stage == 3 ? ms_deepspeed3_write(&w, program)
                           : write_calls(&w, program));
    *program = made;
    return MS_OK;
}
