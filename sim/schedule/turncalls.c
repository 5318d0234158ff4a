/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/turncalls.h"
#include "sim/graph.h"
#include "sim/program.h"

typedef struct writer {
    const ms_graph *graph;
    const ms_keep *keep;
    const ms_schedule *schedule;
    const ms_keepsets *sets;
    const ms_handovers *handovers;
    ms_program *program; /* the forms */
} writer;

static void add(writer *w, ms_call call)
{
    w->program->calls[w->program->n_calls++] = call;
}

static void write_mark(writer *w, ms_mark mark)
{
    ms_call call = ms_program_call(MS_MARK);
    call.mark.mark = (uint8_t)mark;
    add(w, call);
}

static void write_drop(writer *w, uint32_t set, uint32_t unit, uint32_t last)
{
    if (set == MS_NOTHING && unit == MS_NONE)
        return;
    ms_call call = ms_program_call(MS_DROP_SET);
    call.set = set;
    call.unit = unit;
    call.last = last;
    add(w, call);
}

static void write_hold(writer *w, uint32_t set, bool saves)
{
    if (set == MS_NOTHING)
        return;
    ms_call call = ms_program_call(MS_HOLD);
    call.set = set;
    call.hold.saves = saves;
    add(w, call);
}

/* As Megatron's recomputation, which runs when the gradient of what it makes
 * comes (core/tensor_parallel/random.py, CheckpointWithoutOutput). */
static void write_remade(writer *w, uint32_t set)
{
    uint32_t before = w->program->n_calls;
    write_hold(w, set, false);
    if (w->program->n_calls > before)
        w->program->calls[before].hold.again = true;
}

/* torch.utils.checkpoint keeps the random state that a segment began with. */
static void write_state(writer *w, uint32_t unit, ms_place place)
{
    if (w->graph->unit_state == NULL)
        return;
    ms_call call = ms_program_call(MS_STATE);
    call.unit = call.last = unit;
    call.state.to = (uint8_t)place;
    add(w, call);
}

/* What the stage hands on, though others have made it. */
static void hold_relayed(writer *w, uint32_t k, ms_turn_kind kind)
{
    const ms_handovers *h = w->handovers;
    for (uint32_t i = h->out_at[k]; i < h->out_at[k + 1]; i++)
        if (ms_handover_is_of(&h->all[h->out[i]], (uint8_t)kind))
            write_hold(w, h->all[h->out[i]].relayed, false);
}

static void hold_or_drop(writer *w, uint32_t set, ms_turn_kind kind)
{
    if (kind == MS_TURN_GRAD_INPUT)
        write_hold(w, set, false);
    else if (kind == MS_TURN_GRAD_WEIGHT)
        write_drop(w, set, MS_NONE, MS_NONE);
}

/* What the inputs' half sends the weights' half reads, too: held from the end
 * of the one to the end of the other. */
static void hold_between(writer *w, uint32_t k, ms_turn_kind kind)
{
    const ms_handovers *h = w->handovers;
    for (uint32_t i = h->out_at[k]; i < h->out_at[k + 1]; i++)
        if (h->all[h->out[i]].backward && !h->all[h->out[i]].local)
            hold_or_drop(w, h->all[h->out[i]].set, kind);
    hold_or_drop(w, w->sets->between[k], kind);
}

/* What a stage hands on in this direction stays, where its implementation keeps
 * that, until its own backward has run (outputs) or to the end of the step
 * (gradients; defaultprogram.c ends them).  What comes back to the rank is
 * written anew. */
static void keep_handed(writer *w, uint32_t k, bool gradients, bool ends)
{
    const ms_handovers *h = w->handovers;
    for (uint32_t i = h->out_at[k]; i < h->out_at[k + 1]; i++) {
        const ms_handover *it = &h->all[h->out[i]];
        if (it->backward != gradients || it->returns)
            continue;
        if (ends)
            write_drop(w, it->set, MS_NONE, MS_NONE);
        else if (!gradients || !it->local)
            write_hold(w, it->set, false);
    }
}

/* ---- forward ------------------------------------------------------------- */

static void write_unit_forward(writer *w, uint32_t unit)
{
    const ms_keepsets *sets = w->sets;
    uint32_t id = sets->segment_of[unit];
    if (id != MS_NONE && sets->segments[id].first == unit)
        write_state(w, unit, MS_HERE);
    ms_call call = ms_program_call(MS_RUN);
    call.run.pass = MS_FORWARD;
    call.unit = call.last = unit;
    call.run.keep = sets->kept[unit];
    call.set = sets->held[unit];
    call.run.saves = w->keep->reentrant && call.set != MS_NOTHING;
    add(w, call);
    write_hold(w, sets->outside[unit], true);
}

/* Is the stage the last one of its rank, the first one? */
static bool is_outermost(const writer *w, uint32_t k, bool last)
{
    const ms_stage *stages = w->schedule->stages;
    uint32_t first = last ? k + 1 : 0;
    uint32_t end = last ? w->schedule->n_stages : k;
    for (uint32_t i = first; i < end; i++)
        if (stages[i].rank == stages[k].rank)
            return false;
    return true;
}

/* Levels are read when all of a rank's part has run: where the loss is another
 * rank's, behind its own last unit. */
static void write_forward(writer *w, uint32_t k)
{
    const ms_stage *stage = &w->schedule->stages[k];
    uint32_t loss = w->graph->loss_unit;
    bool last = is_outermost(w, k, true);
    bool has_loss = stage->first <= loss && loss <= stage->last;
    hold_relayed(w, k, MS_TURN_FORWARD);
    write_hold(w, w->sets->entry[k], w->keep->reentrant);
    for (uint32_t u = stage->first; u <= stage->last; u++) {
        if (u == loss)
            write_mark(w, MS_MARK_BEFORE_LOSS);
        if (u == loss && w->graph->nodes) /* its first gradient */
            write_mark(w, MS_MARK_AFTER_FORWARD);
        write_unit_forward(w, u);
    }
    if (last && !has_loss)
        write_mark(w, MS_MARK_BEFORE_LOSS);
    if (last && !(has_loss && w->graph->nodes))
        write_mark(w, MS_MARK_AFTER_FORWARD);
    if (w->schedule->keeps.outputs)
        keep_handed(w, k, false, false);
}

/* ---- backward ------------------------------------------------------------ */

static void write_rerun(writer *w, const ms_keepspan *segment)
{
    bool reentrant = w->keep->reentrant;
    write_hold(w, segment->grads, false);
    ms_call call = ms_program_call(MS_RERUN);
    call.unit = segment->first;
    call.last = segment->last;
    call.rerun = (ms_rerun_call){.whole = reentrant || !w->keep->early_stop,
                                 .holds = reentrant,
                                 .state = w->graph->unit_state != NULL};
    add(w, call);
}

/* What ends when the last of a segment's backward has run. */
static void end_segment(writer *w, const ms_keepspan *segment)
{
    bool outputs = w->keep->reentrant;
    write_drop(w, segment->drop, outputs ? segment->first : MS_NONE,
               outputs ? segment->last : MS_NONE);
    write_drop(w, segment->grads, MS_NONE, MS_NONE);
    if (!w->keep->reentrant)
        write_state(w, segment->first, MS_GONE);
}

static void write_unit_backward(writer *w, uint32_t unit, ms_turn_kind kind)
{
    const ms_keepsets *sets = w->sets;
    uint32_t id = sets->segment_of[unit];
    const ms_keepspan *segment = id == MS_NONE ? NULL : &sets->segments[id];
    bool second = kind == MS_TURN_GRAD_WEIGHT;
    if (segment != NULL && unit == segment->last && !second)
        write_rerun(w, segment);
    if (kind == MS_TURN_GRAD_INPUT)
        write_remade(w, sets->remade[unit]);
    ms_call call = ms_program_call(MS_RUN);
    call.run.pass = second ? MS_GRAD_WEIGHT : MS_GRAD_INPUT;
    call.run.half = kind != MS_TURN_BACKWARD;
    call.unit = call.last = unit;
    add(w, call);
    if (kind == MS_TURN_GRAD_INPUT)
        return;
    write_drop(w, sets->release[unit], MS_NONE, MS_NONE);
    write_drop(w, sets->outside_drop[unit], MS_NONE, MS_NONE);
    if (segment != NULL && unit == segment->first)
        end_segment(w, segment);
}

/* A reentrant checkpoint's state is an attribute of its autograd node: it goes
 * with the graph, when loss.backward() is over and the loss dropped. */
static void end_states(writer *w, const ms_stage *stage)
{
    for (uint32_t i = 0; i < w->sets->n_segments && w->keep->reentrant; i++) {
        uint32_t first = w->sets->segments[i].first;
        if (stage->first <= first && first <= stage->last)
            write_state(w, first, MS_GONE);
    }
}

/* What ends, and what is kept from now on, when the backward that hands on has
 * run. */
static void end_handing(writer *w, uint32_t k)
{
    if (w->schedule->keeps.messages)
        keep_handed(w, k, true, false);
    if (w->schedule->keeps.outputs)
        keep_handed(w, k, false, true);
}

static bool hands_gradients(const writer *w, uint32_t k)
{
    const ms_handovers *h = w->handovers;
    for (uint32_t i = h->out_at[k]; i < h->out_at[k + 1]; i++)
        if (h->all[h->out[i]].backward)
            return true;
    return false;
}

static void write_backward(writer *w, uint32_t k, ms_turn_kind kind)
{
    const ms_graph *graph = w->graph;
    const ms_stage *stage = &w->schedule->stages[k];
    bool whole = kind != MS_TURN_BACKWARD && w->schedule->keeps.graphs &&
                 !hands_gradients(w, k);
    if (whole && kind == MS_TURN_GRAD_INPUT)
        return;
    kind = whole ? MS_TURN_BACKWARD : kind;
    hold_relayed(w, k, kind);
    if (kind == MS_TURN_GRAD_INPUT)
        write_hold(w, w->sets->retained[k], false);
    if (graph->backward_at[0] > graph->backward_at[graph->n_units])
        for (uint32_t u = stage->last + 1; u-- > stage->first;)
            write_unit_backward(w, u, kind);
    hold_between(w, k, kind);
    if (kind != MS_TURN_GRAD_WEIGHT)
        end_handing(w, k);
    if (kind == MS_TURN_GRAD_INPUT) {
        write_drop(w, w->sets->retained[k], MS_NONE, MS_NONE);
        return;
    }
    if (is_outermost(w, k, false))
        write_mark(w, MS_MARK_AFTER_BACKWARD);
    /* Kept to the step, they end when the next forward binds them anew. */
    if (!graph->keep_to_step)
        write_drop(w, w->sets->outputs[k], MS_NONE, MS_NONE);
    end_states(w, stage);
}

/* ---- all of them --------------------------------------------------------- */

/* Four marks, drops and holds, and per unit at most forward, two holds, replay,
 * backward, four drops and a state three times. */
#define FIXED_CALLS 10u
#define CALLS_PER_UNIT 12u

ms_err ms_turncalls_write(const ms_graph *graph, const ms_keep *keep,
                          const ms_schedule *schedule, const ms_keepsets *sets,
                          const ms_handovers *handovers, ms_arena *arena,
                          ms_turncalls *calls, ms_fault *fault)
{
    uint32_t n = schedule->n_stages;
    bool splits = ms_schedule_splits(schedule);
    *calls = (ms_turncalls){0};
    writer w = {.graph = graph,
                .keep = keep,
                .schedule = schedule,
                .sets = sets,
                .handovers = handovers,
                .program = &calls->forms};
    calls->at =
        ms_arena_take(arena, (size_t)n * MS_N_TURNS + 1, sizeof *calls->at);
    if (calls->at == NULL)
        return ms_fail_nomem(fault);
    uint64_t most = (splits ? 2u : 1u) *
                    (FIXED_CALLS * (uint64_t)n + 7 * (uint64_t)handovers->n +
                     CALLS_PER_UNIT * (uint64_t)graph->n_units);
    MS_TRY(ms_program_reserve(&calls->forms, most, arena, fault));
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t kind = 0; kind < MS_N_TURNS; kind++) {
            if (kind == MS_TURN_FORWARD)
                write_forward(&w, k);
            else if (kind == MS_TURN_BACKWARD || splits)
                write_backward(&w, k, (ms_turn_kind)kind);
            calls->at[k * MS_N_TURNS + kind + 1] = calls->forms.n_calls;
        }
    return MS_OK;
}
