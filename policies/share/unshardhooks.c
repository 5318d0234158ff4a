/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/unshardhooks.h"
#include "sim/graph.h"
#include "sim/program.h"

typedef ms_unshardhooks writer;

/* ---- calls --------------------------------------------------------------- */

static ms_err add(writer *w, ms_call call, uint32_t buffer)
{
    call.buffer = buffer;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

static ms_err move(writer *w, uint32_t set, uint8_t to)
{
    ms_move_call how = {.to = to};
    return add(w, ms_program_move(w->at, set, how), MS_NONE);
}

/* Into a buffer; ahead: on the ranks' queue. */
static ms_err pack(writer *w, uint32_t set, uint32_t buffer, bool ahead)
{
    ms_move_call how = {.to = MS_PACKED, .ahead = ahead};
    return add(w, ms_program_move(w->at, set, how), buffer);
}

/* Of buffers that a unit may not need. */
static ms_err take(writer *w, uint32_t buffer)
{
    return buffer == MS_NONE
               ? MS_OK
               : add(w, ms_program_call_like(MS_TAKE, w->at), buffer);
}

static ms_err give(writer *w, uint32_t buffer)
{
    return buffer == MS_NONE
               ? MS_OK
               : add(w, ms_program_call_like(MS_GIVE, w->at), buffer);
}

static const ms_share *share_of(const writer *w, uint32_t f)
{
    return &w->graph->share[w->unit[f].group];
}

/* The experts of unit f, where other ranks divide them: a unit that is nested
 * in it, gathered and let go beside it (pytorch/torchtitan, torchtitan/models/
 * llama4/infra/parallelize.py, apply_fsdp: fully_shard of moe.experts on a mesh
 * of their own, prefetched with their block).  Else MS_NONE. */
static uint32_t experts_of(const writer *w, uint32_t f)
{
    uint32_t n = w->units.n_plain;
    return f < n && n < w->n_units ? f + n : MS_NONE;
}

/* Starts the all-gather of unit f. */
static ms_err unshard_one(writer *w, uint32_t f)
{
    ms_unshard_unit *it = &w->unit[f];
    bool ahead = share_of(w, f)->parts > 1;
    uint8_t group = it->parked ? (uint8_t)MS_GROUP_SECONDARY : it->group;
    ms_gather_call how = {
        .group = group, .ahead = ahead, .limit = ahead && w->options->limit};
    if (it->weights == MS_NOTHING || it->whole || it->flying)
        return MS_OK;
    it->flying = true;
    if (!it->parked)
        MS_TRY(take(w, it->cast));
    MS_TRY(take(w, it->gathered));
    MS_TRY(add(w, ms_program_gather(w->at, it->weights, how), it->gathered));
    return it->parked ? MS_OK : give(w, it->cast);
}

/* An all-gather ahead of its use.  One rank alone copies when it must. */
static ms_err prefetch(writer *w, uint32_t f)
{
    uint32_t experts = experts_of(w, f);
    if (share_of(w, f)->parts > 1)
        MS_TRY(unshard_one(w, f));
    return experts == MS_NONE || share_of(w, experts)->parts == 1
               ? MS_OK
               : unshard_one(w, experts);
}

/* Unit f is whole for what runs next.  The output of forward's all-gathers
 * stays until the next one's is copied out, so that copy and collective
 * overlap. */
static ms_err await_one(writer *w, uint32_t f, bool forward)
{
    ms_unshard_unit *it = &w->unit[f];
    if (it->weights == MS_NOTHING || it->whole)
        return MS_OK;
    MS_TRY(unshard_one(w, f));
    it->whole = true;
    it->flying = false;
    if (it->gathered == MS_NONE)
        return MS_OK;
    if (forward && w->held != MS_NONE)
        MS_TRY(give(w, w->unit[w->held].gathered));
    MS_TRY(move(w, it->weights, MS_HERE));
    if (it->parked)
        MS_TRY(give(w, it->small));
    it->parked = false;
    if (!forward)
        return give(w, it->gathered);
    w->held = f;
    return MS_OK;
}

static ms_err await(writer *w, uint32_t f, bool forward)
{
    uint32_t experts = experts_of(w, f);
    MS_TRY(await_one(w, f, forward));
    return experts == MS_NONE ? MS_OK : await_one(w, experts, forward);
}

static ms_err reshard(writer *w, uint32_t f)
{
    ms_unshard_unit *it = &w->unit[f];
    if (!it->whole)
        return MS_OK;
    it->whole = false;
    return move(w, it->weights, MS_SHARD);
}

/* ---- forward ------------------------------------------------------------- */

/* torchtitan keeps the last block, or, where what is around the blocks is
 * apart, what is behind them. */
static bool is_last(const writer *w, uint32_t f)
{
    if (w->unit[w->root + 2].weights != MS_NOTHING)
        return f == w->root + 2;
    return (w->n_order > 0 && f == w->order[w->n_order - 1]) ||
           (w->root > 0 && f == w->root - 1);
}

/* FSDP2 lets nothing go behind a forward that backward runs again: the unit is
 * whole until its own backward has run (is_bw in FSDPParamGroup.post_forward,
 * pytorch/pytorch PR 164009). */
static bool stays(const writer *w)
{
    return w->again && w->options->stays;
}

static ms_err leave_forward(writer *w)
{
    uint32_t f = w->now;
    w->now = MS_NONE;
    if (f == MS_NONE || stays(w) || f == w->root ||
        w->options->keep == MS_UNSHARD_STAY ||
        (w->options->keep == MS_UNSHARD_BUT_LAST && is_last(w, f)))
        return MS_OK;
    uint32_t experts = experts_of(w, f);
    if (experts != MS_NONE)
        MS_TRY(reshard(w, experts));
    w->unit[f].parked = w->unit[f].small != MS_NONE;
    MS_TRY(take(w, w->unit[f].small));
    return reshard(w, f);
}

/* again: backward runs it. */
static ms_err enter_forward(writer *w, uint32_t f, bool again)
{
    if (f == w->now)
        return MS_OK;
    MS_TRY(leave_forward(w));
    w->now = f;
    w->again = again;
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

/* Where a replay of the module comes next, its first unit; else MS_NONE. */
static uint32_t next_replayed(const writer *w)
{
    for (const ms_call *call = w->at; call < w->end; call++) {
        bool forward = call->verb == MS_RUN && call->run.pass == MS_FORWARD;
        bool again = call->verb == MS_HOLD && ms_program_runs(call);
        if (forward || again || call->verb == MS_STEP_SET)
            return MS_NONE;
        if (!ms_program_runs(call))
            continue;
        if (call->unit < w->units.first || call->unit > w->units.last)
            return MS_NONE;
        uint32_t f = ms_unshardunits_of(&w->units, call->unit);
        if (f != w->back)
            return call->verb == MS_RERUN ? f : MS_NONE;
    }
    return MS_NONE;
}

/* The unit whose backward comes next, and the one that runs before it. */
static ms_err prefetch_next(writer *w, uint32_t place)
{
    uint32_t first = w->options->stays ? MS_NONE : next_replayed(w);
    if (place == MS_NONE || place == 0)
        return MS_OK;
    MS_TRY(prefetch(w, w->order[place - 1]));
    return first == MS_NONE || first == w->root ? MS_OK : prefetch(w, first);
}

/* At most one reduce-scatter is in flight: its input goes when the next one
 * wants memory. */
static ms_err end_scatter(writer *w)
{
    uint32_t f = w->scattering, outer = w->outer;
    w->scattering = w->outer = MS_NONE;
    if (f != MS_NONE) {
        MS_TRY(add(w, ms_program_wait(w->at, MS_NOTHING), w->unit[f].in));
        MS_TRY(give(w, w->unit[f].in));
    }
    return outer == MS_NONE ? MS_OK : give(w, w->unit[outer].out);
}

/* The collectives over a unit's gradients, which lie where they are summed. */
static ms_err sum(writer *w, uint32_t f)
{
    ms_unshard_unit *it = &w->unit[f];
    const ms_share *share = share_of(w, f);
    bool first = w->at->micro_batch == 0 || w->options->last_only;
    bool as_part = w->options->reduced_bytes == 0 ||
                   w->options->reduced_bytes == share->part_bytes;
    uint32_t out = first && !it->kept && as_part ? MS_NONE : it->out;
    MS_TRY(take(w, out));
    ms_reduce_call how = {.to = MS_SHARD, .group = it->group};
    MS_TRY(add(w, ms_program_reduce(w->at, it->grads, how), MS_NONE));
    how.group = share->again;
    if (share->copies > 1)
        MS_TRY(add(w, ms_program_reduce(w->at, it->grads, how), out));
    if (share->copies == 1 || w->options->flat || out == MS_NONE)
        return give(w, out);
    w->outer = f; /* FSDP2 holds an all-reduce's input like a scatter's */
    return MS_OK;
}

static bool sums_now(const writer *w, const ms_unshard_unit *it)
{
    return it->grads != MS_NOTHING &&
           (w->options->staged || !w->options->last_only ||
            w->at->micro_batch + 1 == w->program->n_micro_batches);
}

/* FSDP1: the gradients of the views are joined to the flat parameter's, which
 * is cast where it is summed in another format. */
static ms_err post_backward_flat(writer *w, uint32_t f)
{
    ms_unshard_unit *it = &w->unit[f];
    bool sums = sums_now(w, it), casts = it->in != MS_NONE;
    if (sums) {
        MS_TRY(take(w, it->flat));
        MS_TRY(pack(w, it->grads, it->flat, false));
    }
    if (sums || w->options->keep != MS_UNSHARD_STAY) /* else no_sync keeps it */
        MS_TRY(reshard(w, f));
    if (w->options->prefetch == MS_UNSHARD_POST)
        MS_TRY(prefetch_next(w, it->place));
    if (!sums)
        return MS_OK;
    if (casts) {
        MS_TRY(take(w, it->in));
        MS_TRY(pack(w, it->grads, it->in, true));
        MS_TRY(give(w, it->flat));
    }
    MS_TRY(sum(w, f));
    return give(w, casts ? it->in : it->flat);
}

/* _get_grad_inner_tensor: what is a partial sum among ranks that split layers
 * is summed in a copy, each by itself (graphs/optimizer/wholegrads.c). */
static ms_err sum_partial(writer *w, uint32_t f)
{
    const ms_unshard_unit *it = &w->unit[f];
    ms_reduce_call how = {.to = MS_HERE, .group = MS_GROUP_TENSOR};
    for (uint32_t i = 0; i < it->n_sums; i++) {
        MS_TRY(take(w, it->sums[i].buffer));
        MS_TRY(pack(w, it->sums[i].set, it->sums[i].buffer, false));
        MS_TRY(add(w, ms_program_reduce(w->at, it->sums[i].set, how), MS_NONE));
    }
    return MS_OK;
}

static ms_err give_sums(writer *w, uint32_t f)
{
    for (uint32_t i = 0; i < w->unit[f].n_sums; i++)
        MS_TRY(give(w, w->unit[f].sums[i].buffer));
    return MS_OK;
}

static ms_err scatter_apart(writer *w, uint32_t f)
{
    uint32_t in = w->unit[f].in;
    if (in == MS_NONE)
        return sum(w, f);
    MS_TRY(take(w, in));
    MS_TRY(pack(w, w->unit[f].grads, in, true));
    MS_TRY(add(w, ms_program_wait(w->at, MS_NOTHING), in));
    MS_TRY(sum(w, f));
    return give(w, in);
}

static ms_err post_backward_one(writer *w, uint32_t f)
{
    ms_unshard_unit *it = &w->unit[f];
    if (it->weights == MS_NOTHING)
        return MS_OK;
    if (w->options->flat)
        return post_backward_flat(w, f);
    if (f != w->root || !w->options->again)
        MS_TRY(reshard(w, f));
    if (!sums_now(w, it))
        return MS_OK;
    MS_TRY(sum_partial(w, f));
    MS_TRY(end_scatter(w));
    if (w->options->copies_apart) {
        MS_TRY(scatter_apart(w, f));
        return give_sums(w, f);
    }
    if (it->in != MS_NONE) {
        MS_TRY(take(w, it->in));
        MS_TRY(pack(w, it->grads, it->in, false));
        w->scattering = f;
    }
    MS_TRY(sum(w, f));
    return give_sums(w, f);
}

/* What is nested ends first. */
static ms_err post_backward(writer *w, uint32_t f)
{
    uint32_t experts = experts_of(w, f);
    if (experts != MS_NONE)
        MS_TRY(post_backward_one(w, experts));
    return post_backward_one(w, f);
}

/* The unit before the blocks has no input with a gradient that could carry a
 * hook: it is handled with the root, when backward ends. */
static ms_err leave_backward(writer *w)
{
    uint32_t f = w->back;
    w->back = MS_NONE;
    if (f == MS_NONE || f == w->root || f == w->root + 1 || w->options->staged)
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
    return prefetch_next(w, w->n_order);
}

static ms_err prefetch_backward(writer *w)
{
    if (w->options->prefetch != MS_UNSHARD_PRE || w->back == MS_NONE)
        return MS_OK;
    return prefetch_next(w, w->unit[w->back].place);
}

/* Unit f's backward comes next, or a replay that begins with unit first. */
static ms_err enter_backward(writer *w, uint32_t f, uint32_t first)
{
    if (f == w->back)
        return MS_OK;
    MS_TRY(leave_backward(w));
    w->back = f;
    if (f == w->root)
        return MS_OK;
    MS_TRY(await(w, f, false));
    return first == f || w->options->stays ? prefetch_backward(w) : MS_OK;
}

static ms_err end_backward(writer *w)
{
    if (!w->in_backward || w->options->staged)
        return MS_OK;
    MS_TRY(leave_backward(w));
    for (uint32_t f = 0; f < w->n_units; f++) {
        if (w->unit[f].flying) /* a unit without a backward */
            MS_TRY(await_one(w, f, false));
        if (w->unit[f].whole)
            MS_TRY(post_backward_one(w, f));
    }
    MS_TRY(end_scatter(w));
    w->in_backward = w->in_forward = false;
    return MS_OK;
}

/* The groups' post_backward in the order of modules, what is nested behind
 * what it is in. */
static ms_err reduce_stage(writer *w)
{
    MS_TRY(post_backward_one(w, w->root));
    for (uint32_t i = 0; i < w->n_order; i++) {
        uint32_t experts = experts_of(w, w->order[i]);
        MS_TRY(post_backward_one(w, w->order[i]));
        if (experts != MS_NONE)
            MS_TRY(post_backward_one(w, experts));
    }
    return end_scatter(w);
}

/* ---- the program --------------------------------------------------------- */

static bool reads_weights(const ms_graph *graph, uint32_t u)
{
    uint32_t end = graph->in_at[graph->forward_at[u + 1]];
    for (uint32_t i = graph->in_at[graph->forward_at[u]]; i < end; i++)
        if (ms_graph_is_weight(graph, graph->in[i]))
            return true;
    return false;
}

static ms_err before_forward(writer *w, uint32_t u)
{
    MS_TRY(end_backward(w));
    if (!w->in_forward)
        MS_TRY(await(w, w->root, true));
    w->in_forward = true;
    if (u >= w->graph->loss_unit)
        MS_TRY(end_forward(w));
    if (u >= w->graph->loss_unit && !reads_weights(w->graph, u))
        return MS_OK;
    return enter_forward(w, ms_unshardunits_of(&w->units, u), false);
}

static ms_err before_backward(writer *w, uint32_t u, uint32_t first)
{
    MS_TRY(end_forward(w));
    if (u >= w->graph->loss_unit)
        return MS_OK;
    MS_TRY(open_backward(w));
    return enter_backward(w, ms_unshardunits_of(&w->units, u),
                          ms_unshardunits_of(&w->units, first));
}

/* The unit whose backward comes next is whole, and stays so. */
static ms_err before_replay(writer *w, const ms_call *call)
{
    uint32_t f = ms_unshardunits_of(&w->units, call->unit);
    uint32_t last = ms_unshardunits_of(&w->units, call->last);
    if (last != w->back)
        MS_TRY(before_backward(w, call->last, call->unit));
    if (f != last)
        return call->last < w->graph->loss_unit ? enter_forward(w, f, true)
                                                : MS_OK;
    if (w->now == MS_NONE)
        return MS_OK;
    MS_TRY(end_forward(w));
    return w->options->stays ? MS_OK : prefetch_backward(w);
}

/* What is whole has the weights of before the update. */
static ms_err renew_root(writer *w)
{
    MS_TRY(reshard(w, w->root));
    return await(w, w->root, false);
}

ms_err ms_unshardhooks_before(writer *w, const ms_call *call)
{
    w->at = call;
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        if (call->run.pass == MS_GRAD_WEIGHT) /* it reads no weights */
            return MS_OK;
        return call->run.pass == MS_FORWARD
                   ? before_forward(w, call->unit)
                   : before_backward(w, call->unit, call->unit);
    case MS_RERUN: /* in backward, where its last unit's comes next */
        return before_replay(w, call);
    case MS_HOLD:
        if (!ms_program_runs(call))
            return MS_OK;
        return enter_forward(w, ms_unshardunits_of(&w->units, call->unit),
                             true);
    case MS_STEP_SET:
        return end_backward(w);
    case MS_MARK:
        if (call->mark.mark == MS_MARK_BEFORE_LOSS)
            return end_forward(w);
        if (call->mark.mark == MS_MARK_AFTER_BACKWARD)
            return end_backward(w);
        if (call->mark.mark == MS_MARK_END && w->options->again)
            return renew_root(w);
        return MS_OK;
    default:
        return MS_OK;
    }
}

ms_err ms_unshardhooks_after(writer *w, const ms_call *call, bool last)
{
    const ms_unshardunits *units = &w->units;
    if (!w->options->staged || call->verb != MS_RUN)
        return MS_OK;
    w->at = call;
    if (call->run.pass == MS_FORWARD)
        return call->unit == units->last ? end_forward(w) : MS_OK;
    if (call->unit == units->first) {
        w->back = MS_NONE;
        w->in_backward = false;
    }
    return last ? reduce_stage(w) : MS_OK;
}

ms_err ms_unshardhooks_open(const ms_unshardunits *units, const ms_call *end,
                            writer *w)
{
    *w = (writer){.graph = units->graph,
                  .options = units->options,
                  .arena = units->arena,
                  .fault = units->fault,
                  .program = units->program,
                  .units = *units,
                  .end = end,
                  .now = MS_NONE,
                  .back = MS_NONE,
                  .held = MS_NONE,
                  .scattering = MS_NONE,
                  .outer = MS_NONE};
    MS_TRY(ms_unshardunits_open(&w->units));
    w->unit = w->units.unit;
    w->n_units = w->units.n_units;
    w->root = w->units.root;
    w->order = w->units.order;
    w->n_order = w->units.n_order;
    w->unit[w->root].whole = w->options->again;
    return MS_OK;
}
