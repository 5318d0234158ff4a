/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program that runs a graph as its keep says, before policies place calls
 * in it. */
#include "sim/program.h"

#include "sim/graph.h"

#include <assert.h>
#include <string.h>

/* Units [first, last]; drop: the set of what it alone still holds; grads: the
 * incoming gradients that a nested (reentrant) backward holds as arguments. */
typedef struct span {
    uint32_t first, last, drop, grads;
} span;

/* What ms_defaultprogram works with: one entry per unit, found once and used
 * by every micro-batch. */
typedef struct writer {
    const ms_graph *graph;
    const ms_keep *keep;
    ms_arena *arena;
    ms_program *program;
    ms_fault *fault;
    uint32_t *kept_set, *held_set; /* of a unit's forward */
    uint32_t *segment_of;          /* row of segments, or MS_NONE */
    span *segments;
    uint32_t n_segments;
    uint8_t *held; /* per storage: a segment holds it */
    /* Per storage, with segments: the first unit in no segment whose backward
     * reads it, or MS_NONE; does a segment's backward read it? */
    uint32_t *open_reader;
    uint8_t *segment_reads;
    /* Per unit: what it makes in a segment and units in none saved, too; what
     * such a unit's backward is the last to read. */
    uint32_t *outside_set, *outside_drop;
    uint32_t *list;        /* room for n_storages */
    uint32_t kept_outputs; /* the set of what the training loop holds */
} writer;

static bool has_backward(const ms_graph *graph)
{
    return graph->backward_at[0] > graph->backward_at[graph->n_units];
}

static ms_err take_columns(writer *w)
{
    uint32_t units = w->graph->n_units, storages = w->graph->n_storages;
    w->kept_set = ms_arena_take_raw(w->arena, units, sizeof *w->kept_set);
    w->held_set = ms_arena_take_raw(w->arena, units, sizeof *w->held_set);
    w->segment_of = ms_arena_take_raw(w->arena, units, sizeof *w->segment_of);
    w->segments = ms_arena_take_raw(w->arena, units, sizeof *w->segments);
    w->held = ms_arena_take(w->arena, storages, 1);
    w->open_reader =
        ms_arena_take_raw(w->arena, storages, sizeof *w->open_reader);
    w->segment_reads = ms_arena_take(w->arena, storages, 1);
    w->outside_set = ms_arena_take_raw(w->arena, units, sizeof *w->outside_set);
    w->outside_drop =
        ms_arena_take_raw(w->arena, units, sizeof *w->outside_drop);
    w->list = ms_arena_take_raw(w->arena, storages, sizeof *w->list);
    if (w->kept_set == NULL || w->held_set == NULL || w->segment_of == NULL ||
        w->segments == NULL || w->held == NULL || w->open_reader == NULL ||
        w->segment_reads == NULL || w->outside_set == NULL ||
        w->outside_drop == NULL || w->list == NULL)
        return ms_fail_nomem(w->fault);
    memset(w->open_reader, 0xff, storages * sizeof *w->open_reader);
    return MS_OK;
}

static void find_segments(writer *w)
{
    uint32_t before = MS_NONE;
    bool replayed = has_backward(w->graph);
    for (uint32_t u = 0; u < w->graph->n_units; u++) {
        uint32_t id = replayed ? w->keep->segment[u] : MS_NONE;
        w->segment_of[u] = MS_NONE;
        if (id != MS_NONE) {
            if (id != before)
                w->segments[w->n_segments++] = (span){.first = u};
            w->segment_of[u] = w->n_segments - 1;
            w->segments[w->n_segments - 1].last = u;
        }
        before = id;
    }
}

static void find_readers(writer *w)
{
    const ms_graph *graph = w->graph;
    for (uint32_t u = 0; u < graph->n_units && w->n_segments > 0; u++) {
        bool open = w->segment_of[u] == MS_NONE;
        uint32_t end = graph->in_at[graph->backward_at[u]];
        for (uint32_t i = graph->in_at[graph->backward_at[u + 1]]; i < end;
             i++) {
            uint32_t s = graph->in[i];
            if (!open)
                w->segment_reads[s] = 1;
            else if (w->open_reader[s] == MS_NONE)
                w->open_reader[s] = u;
        }
    }
}

/* Was it made in a segment and saved by a unit in none?  The output of the
 * last segment is: the final norm, which is not replayed, saved it.  It stays
 * until that backward has run; the segment, if it needs it, makes it anew. */
static bool is_outside(const writer *w, uint32_t s)
{
    const ms_graph *graph = w->graph;
    uint32_t maker = graph->storage_maker[s];
    return w->keep->place[s] == MS_GONE && w->open_reader[s] != MS_NONE &&
           s >= graph->n_persistent &&
           maker < graph->forward_at[graph->n_units] &&
           w->segment_of[graph->op_unit[maker]] != MS_NONE;
}

/* A unit in a segment makes such storages, one in none is the last to read
 * them. */
static ms_err find_outside(writer *w, uint32_t unit)
{
    const ms_graph *graph = w->graph;
    bool open = w->segment_of[unit] == MS_NONE;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]], n = 0;
    w->outside_set[unit] = w->outside_drop[unit] = MS_NOTHING;
    if (w->n_segments == 0)
        return MS_OK;
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end && !open;
         i++)
        if (is_outside(w, graph->out[i]))
            w->list[n++] = graph->out[i];
    MS_TRY(ms_program_add_set(w->program, w->list, n, w->arena,
                              &w->outside_set[unit], w->fault));
    n = 0;
    end = graph->in_at[graph->backward_at[unit]];
    for (uint32_t i = graph->in_at[graph->backward_at[unit + 1]];
         i < end && open; i++) {
        uint32_t s = graph->in[i];
        if (w->open_reader[s] != unit || !is_outside(w, s) ||
            w->segment_reads[s] == 2)
            continue;
        w->segment_reads[s] = 2; /* listed: other ops may read it, too */
        w->list[n++] = s;
    }
    return ms_program_add_set(w->program, w->list, n, w->arena,
                              &w->outside_drop[unit], w->fault);
}

/* What the segment reads from outside and no earlier one reads. */
static ms_err hold_inputs(writer *w, span *segment)
{
    const ms_graph *graph = w->graph;
    uint32_t first = graph->unit_in_at[segment->first];
    uint32_t end = graph->unit_in_at[segment->last + 1], n = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->unit_in[i];
        bool outside = graph->op_unit[graph->storage_maker[s]] < segment->first;
        if (!outside || w->held[s])
            continue;
        w->held[s] = 1;
        w->list[n++] = s;
    }
    return ms_program_add_set(w->program, w->list, n, w->arena, &segment->drop,
                              w->fault);
}

/* Gradients that the segment's backward reads and later units made.  The nested
 * backward of a reentrant checkpoint gets them as arguments of its node, which
 * holds them until it returns (torch/utils/checkpoint.py,
 * CheckpointFunction.backward); others let go of each behind its last use. */
static ms_err find_gradients(writer *w, span *segment)
{
    const ms_graph *graph = w->graph;
    uint32_t backward = graph->backward_at[graph->n_units];
    uint32_t before = graph->backward_at[segment->last + 1], n = 0;
    uint32_t end = graph->in_at[graph->backward_at[segment->first]];
    segment->grads = MS_NOTHING;
    if (!w->keep->reentrant)
        return MS_OK;
    for (uint32_t i = graph->in_at[before]; i < end; i++) {
        uint32_t s = graph->in[i], maker = graph->storage_maker[s];
        if (s < graph->n_persistent || maker < backward || maker >= before ||
            w->held[s])
            continue;
        w->held[s] = 1;
        w->list[n++] = s;
    }
    return ms_program_add_set(w->program, w->list, n, w->arena, &segment->grads,
                              w->fault);
}

/* The saved storages of a unit that stay: all, nothing or a set. */
static ms_err find_kept(writer *w, uint32_t unit)
{
    const ms_graph *graph = w->graph;
    uint32_t first = graph->out_at[graph->forward_at[unit]];
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    uint32_t saved = 0, here = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->out[i];
        if (graph->storage_saved_end[s] == MS_NONE)
            continue;
        saved++;
        /* A storage that only segments read is held for them and not saved. */
        bool held = w->segment_reads[s] && w->open_reader[s] == MS_NONE &&
                    w->segment_of[unit] == MS_NONE;
        if (w->keep->place[s] != MS_GONE && !held)
            w->list[here++] = s;
    }
    w->kept_set[unit] = MS_ALL;
    if (here == saved)
        return MS_OK;
    return ms_program_add_set(w->program, w->list, here, w->arena,
                              &w->kept_set[unit], w->fault);
}

static ms_err find_held(writer *w, uint32_t unit)
{
    const ms_graph *graph = w->graph;
    uint32_t first = graph->out_at[graph->forward_at[unit]];
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]], n = 0;
    for (uint32_t i = first; i < end; i++)
        if (w->held[graph->out[i]])
            w->list[n++] = graph->out[i];
    return ms_program_add_set(w->program, w->list, n, w->arena,
                              &w->held_set[unit], w->fault);
}

static ms_err find_sets(writer *w)
{
    const ms_graph *graph = w->graph;
    find_segments(w);
    find_readers(w);
    for (uint32_t i = 0; i < w->n_segments; i++)
        MS_TRY(hold_inputs(w, &w->segments[i]));
    for (uint32_t i = 0; i < w->n_segments; i++)
        MS_TRY(find_gradients(w, &w->segments[i]));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        MS_TRY(find_kept(w, u));
        MS_TRY(find_held(w, u));
    }
    for (uint32_t u = 0; u < graph->n_units; u++)
        MS_TRY(find_outside(w, u));
    return ms_program_add_set(w->program, graph->kept, graph->n_kept, w->arena,
                              &w->kept_outputs, w->fault);
}

static void write_mark(writer *w, ms_mark mark)
{
    ms_call call = ms_program_call(MS_MARK);
    call.mark.mark = (uint8_t)mark;
    w->program->calls[w->program->n_calls++] = call;
}

static void write_drop(writer *w, uint32_t set, uint32_t unit, uint32_t last)
{
    if (set == MS_NOTHING && unit == MS_NONE)
        return;
    ms_call call = ms_program_call(MS_DROP_SET);
    call.set = set;
    call.unit = unit;
    call.last = last;
    w->program->calls[w->program->n_calls++] = call;
}

static void write_hold(writer *w, uint32_t set, bool saves)
{
    if (set == MS_NOTHING)
        return;
    ms_call call = ms_program_call(MS_HOLD);
    call.set = set;
    call.hold.saves = saves;
    w->program->calls[w->program->n_calls++] = call;
}

/* torch.utils.checkpoint keeps the random state that a segment began with. */
static void write_state(writer *w, uint32_t unit, ms_place place)
{
    if (w->graph->unit_state == NULL)
        return;
    ms_call call = ms_program_call(MS_STATE);
    call.unit = call.last = unit;
    call.state.to = (uint8_t)place;
    w->program->calls[w->program->n_calls++] = call;
}

static void write_forward(writer *w, uint32_t unit)
{
    uint32_t id = w->segment_of[unit];
    if (id != MS_NONE && w->segments[id].first == unit)
        write_state(w, unit, MS_HERE);
    ms_call call = ms_program_call(MS_RUN);
    call.run.pass = MS_FORWARD;
    call.unit = call.last = unit;
    call.run.keep = w->kept_set[unit];
    call.set = w->held_set[unit];
    call.run.saves = w->keep->reentrant && call.set != MS_NOTHING;
    w->program->calls[w->program->n_calls++] = call;
    write_hold(w, w->outside_set[unit], true);
}

static void write_rerun(writer *w, const span *segment)
{
    bool reentrant = w->keep->reentrant;
    write_hold(w, segment->grads, false);
    ms_call call = ms_program_call(MS_RERUN);
    call.unit = segment->first;
    call.last = segment->last;
    call.rerun = (ms_rerun_call){.whole = reentrant || !w->keep->early_stop,
                                 .holds = reentrant,
                                 .state = w->graph->unit_state != NULL};
    w->program->calls[w->program->n_calls++] = call;
}

static void write_backward(writer *w, uint32_t unit)
{
    uint32_t id = w->segment_of[unit];
    const span *segment = id == MS_NONE ? NULL : &w->segments[id];
    if (segment != NULL && unit == segment->last)
        write_rerun(w, segment);
    ms_call call = ms_program_call(MS_RUN);
    call.run.pass = MS_GRAD_INPUT;
    call.unit = call.last = unit;
    w->program->calls[w->program->n_calls++] = call;
    write_drop(w, w->outside_drop[unit], MS_NONE, MS_NONE);
    if (segment != NULL && unit == segment->first) {
        bool outputs = w->keep->reentrant;
        write_drop(w, segment->drop, outputs ? segment->first : MS_NONE,
                   outputs ? segment->last : MS_NONE);
        write_drop(w, segment->grads, MS_NONE, MS_NONE);
        if (!w->keep->reentrant)
            write_state(w, unit, MS_GONE);
    }
}

/* Five marks and drops, and per unit at most forward, two holds, replay,
 * backward, three drops and a state twice. */
#define FIXED_CALLS 8u
#define CALLS_PER_UNIT 10u

/* A reentrant checkpoint's state is an attribute of its autograd node: it goes
 * with the graph, when loss.backward() is over and the loss dropped. */
static void end_states(writer *w)
{
    for (uint32_t i = 0; i < w->n_segments && w->keep->reentrant; i++)
        write_state(w, w->segments[i].first, MS_GONE);
}

static ms_err write_micro_batch(writer *w)
{
    const ms_graph *graph = w->graph;
    uint64_t most = FIXED_CALLS + CALLS_PER_UNIT * (uint64_t)graph->n_units;
    MS_TRY(ms_program_reserve(w->program, most, w->arena, w->fault));
    for (uint32_t u = 0; u < graph->n_units; u++) {
        if (u == graph->loss_unit)
            write_mark(w, MS_MARK_BEFORE_LOSS);
        write_forward(w, u);
    }
    if (graph->loss_unit >= graph->n_units)
        write_mark(w, MS_MARK_BEFORE_LOSS);
    write_mark(w, MS_MARK_AFTER_FORWARD);
    if (has_backward(graph))
        for (uint32_t u = graph->n_units; u-- > 0;)
            write_backward(w, u);
    write_mark(w, MS_MARK_AFTER_BACKWARD);
    /* Kept to the step, they end when the next forward binds them anew. */
    if (!graph->keep_to_step)
        write_drop(w, w->kept_outputs, MS_NONE, MS_NONE);
    end_states(w);
    return MS_OK;
}

/* Writes the calls [first, n_calls) of micro-batch 0 again for the others. */
static ms_err repeat(writer *w, uint32_t first)
{
    ms_program *program = w->program;
    uint32_t n = program->n_calls - first;
    uint64_t others = program->n_micro_batches - 1;
    MS_TRY(ms_program_reserve(program, others * n, w->arena, w->fault));
    for (uint32_t m = 1; m <= others; m++) {
        ms_call *copy = program->calls + program->n_calls;
        memcpy(copy, program->calls + first, n * sizeof *copy);
        for (uint32_t i = 0; i < n; i++)
            copy[i].micro_batch = m;
        program->n_calls += n;
    }
    return MS_OK;
}

static ms_err write_end(writer *w)
{
    ms_program *program = w->program;
    uint32_t first = program->n_calls;
    MS_TRY(ms_program_reserve(program, FIXED_CALLS, w->arena, w->fault));
    if (w->graph->step_first < w->graph->n_ops) {
        ms_call call = ms_program_call(MS_STEP_SET);
        call.set = MS_ALL;
        program->calls[program->n_calls++] = call;
    }
    if (w->graph->keep_to_step)
        write_drop(w, w->kept_outputs, MS_NONE, MS_NONE);
    write_mark(w, MS_MARK_END);
    for (uint32_t i = first; i < program->n_calls; i++)
        program->calls[i].micro_batch = program->n_micro_batches - 1;
    return MS_OK;
}

ms_err ms_defaultprogram(const ms_graph *graph, const ms_keep *keep,
                         uint32_t micro_batches, ms_arena *arena,
                         ms_program *program, ms_fault *fault)
{
    assert(micro_batches > 0);
    writer w = {.graph = graph,
                .keep = keep,
                .arena = arena,
                .program = program,
                .fault = fault};
    *program = (ms_program){
        .n_frames = 1, .n_ranks = 1, .n_micro_batches = micro_batches};
    MS_TRY(take_columns(&w));
    MS_TRY(find_sets(&w));
    MS_TRY(ms_program_reserve(program, 1, arena, fault));
    write_mark(&w, MS_MARK_START);
    MS_TRY(write_micro_batch(&w));
    MS_TRY(repeat(&w, 1));
    return write_end(&w);
}
