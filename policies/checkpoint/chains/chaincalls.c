/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/chaincalls.h"
#include "policies/checkpoint/chains/handedon.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <assert.h>
#include <string.h>

/* Of a stage: its calls before its backward, then those behind it. */
typedef struct form {
    uint32_t before, behind, end;
} form;

typedef struct writer {
    const ms_graph *graph;
    const ms_chaincalls *how;
    ms_arena *arena;
    ms_program *program; /* the new one */
    ms_program forms;    /* calls alone, the same for each micro-batch */
    ms_fault *fault;
    ms_handedon handed;
    uint32_t *stage_of;    /* per unit, in the chain of its part */
    uint32_t *keep, *hold; /* per unit: of its forward */
    form *form_of;         /* of a stage, at its first unit */
    /* Of the part at hand. */
    const ms_stages *stages;
    const ms_chain_plan *plan;
    uint32_t *input;  /* per stage: the set that it reads of the one before */
    uint32_t *act_at; /* per stage: the first of the acts before its
                         backward, behind that of the stage above */
    uint32_t *held;   /* per stage: what the plan holds of its input, or
                         NOTHING */
    uint32_t *kept;   /* per stage: what is kept for it and those behind it */
    uint32_t *rerun;  /* per stage whose output a RERUN left: the first and
                         the last unit of it */
} writer;

static ms_chain_act act(const writer *w, uint32_t i)
{
    return w->plan->acts[i];
}

/* ---- forward ------------------------------------------------------------- */

/* Which outputs of a stage a plan holds: behind a stage that saves those that
 * no node does, for one that runs again; for one that saves, those that its
 * nodes do. */
typedef struct needs {
    bool saved, unsaved;
} needs;

static bool is_needed(const writer *w, needs which, uint32_t storage)
{
    return w->graph->storage_saved_end[storage] == MS_NONE ? which.unsaved
                                                           : which.saved;
}

static bool makes(const ms_graph *graph, uint32_t unit, uint32_t storage)
{
    return graph->op_unit[graph->storage_maker[storage]] == unit;
}

/* Is it kept for stages that may run again? */
static bool is_read_later(const ms_stages *stages, uint32_t storage)
{
    return stages->is_kept[storage] && stages->first_reader[storage] > 0;
}

/* Of the outputs of stage l, or of one unit of it, those needed, and (of a
 * unit) what is kept whatever the plan. */
static ms_err held_set(writer *w, uint32_t l, uint32_t unit, needs which,
                       uint32_t *set)
{
    const ms_graph *graph = w->graph;
    const ms_stages *stages = w->stages;
    uint32_t first = stages->out_at[l], end = stages->out_at[l + 1], n = 0;
    uint32_t made =
        unit == MS_NONE ? 0 : graph->out_at[graph->forward_at[unit]];
    uint32_t made_end =
        unit == MS_NONE ? 0 : graph->out_at[graph->forward_at[unit + 1]];
    uint32_t *list = ms_arena_take_raw(
        w->arena, (end - first) + (made_end - made) + 1u, sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = first; i < end; i++)
        if (is_needed(w, which, stages->out[i]) &&
            (unit == MS_NONE || makes(w->graph, unit, stages->out[i])))
            list[n++] = stages->out[i];
    for (uint32_t i = made; i < made_end; i++)
        if (is_read_later(stages, graph->out[i]))
            list[n++] = graph->out[i];
    return ms_program_add_set(w->program, list, n, w->arena, set, w->fault);
}

/* Per stage a set of what is kept and it is the first to read. */
static ms_err find_kept(writer *w)
{
    const ms_graph *graph = w->graph;
    const ms_stages *stages = w->stages;
    uint32_t n = stages->chain.n, first = graph->n_persistent;
    uint32_t *at = ms_arena_take(w->arena, n + 3u, sizeof *at);
    uint32_t *list = ms_arena_take_raw(w->arena, graph->n_storages - first + 1u,
                                       sizeof *list);
    if (at == NULL || list == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t s = first; s < graph->n_storages; s++)
        at[stages->first_reader[s] + 2] += is_read_later(stages, s);
    for (uint32_t l = 0; l <= n; l++)
        at[l + 2] += at[l + 1];
    for (uint32_t s = first; s < graph->n_storages; s++)
        if (is_read_later(stages, s))
            list[at[stages->first_reader[s] + 1]++] = s;
    for (uint32_t l = 1; l <= n; l++)
        MS_TRY(ms_program_add_set(w->program, list + at[l], at[l + 1] - at[l],
                                  w->arena, &w->kept[l], w->fault));
    return MS_OK;
}

/* What the unit makes that is kept whatever the plan, or saved by nodes of
 * another part of the rank. */
static ms_err kept_set(writer *w, uint32_t unit, uint32_t *set)
{
    const ms_graph *graph = w->graph;
    uint32_t first = graph->out_at[graph->forward_at[unit]], n = 0;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    uint32_t *list =
        ms_arena_take_raw(w->arena, end - first + 1u, sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = first; i < end; i++)
        if (w->stages->is_kept[graph->out[i]] ||
            ms_handedon_is_saved(&w->handed, graph->out[i]))
            list[n++] = graph->out[i];
    return ms_program_add_set(w->program, list, n, w->arena, set, w->fault);
}

/* What the forward of a stage's units keeps and holds.  The output of the last
 * one with units is other parts'. */
static ms_err plan_forward(writer *w, uint32_t i)
{
    const ms_stages *stages = w->stages;
    uint32_t l = act(w, i).stage;
    bool saves = act(w, i).verb == MS_CHAIN_SAVE;
    uint8_t next = act(w, i + 1).verb;
    bool again = next == MS_CHAIN_CHECKPOINT;
    bool hands_on =
        l < stages->chain.n && stages->first[l + 1] > stages->last[l + 1];
    needs which = {.saved =
                       !saves && !hands_on && (again || next == MS_CHAIN_SAVE),
                   .unsaved = again};
    for (uint32_t u = stages->first[l]; u <= stages->last[l]; u++) {
        w->keep[u] = MS_ALL;
        if (!saves)
            MS_TRY(kept_set(w, u, &w->keep[u]));
        MS_TRY(held_set(w, l, u, which, &w->hold[u]));
    }
    return held_set(w, l, MS_NONE, which, &w->held[l + 1]);
}

/* ---- backward ------------------------------------------------------------ */

static ms_err add(writer *w, ms_call call)
{
    return ms_program_add(&w->forms, call, w->arena, w->fault);
}

/* Stages from that of act i on are saved again: the act behind them. */
static ms_err form_rerun(writer *w, uint32_t *i)
{
    uint32_t first = act(w, *i).stage, last = first;
    ms_call call = ms_program_call(MS_RERUN);
    for ((*i)++; act(w, *i).verb == MS_CHAIN_SAVE; (*i)++)
        last = act(w, *i).stage;
    bool goes_back = act(w, *i).verb == MS_CHAIN_BACKWARD;
    call.unit = w->stages->first[first];
    call.last = w->stages->last[last];
    call.rerun = (ms_rerun_call){.whole = !goes_back || !w->how->early_stop,
                                 .holds = !goes_back,
                                 .state = w->graph->unit_state != NULL};
    if (!goes_back) {
        w->rerun[2 * last] = call.unit;
        w->rerun[2 * last + 1] = call.last;
    }
    return add(w, call);
}

/* The input of a stage is made again from the last one that is there. */
static ms_err form_again(writer *w, uint32_t *i)
{
    ms_call call = ms_program_call(MS_HOLD);
    call.unit = w->stages->first[act(w, *i).stage];
    for ((*i)++; act(w, *i).verb == MS_CHAIN_PASS; (*i)++)
        ;
    call.set = w->input[act(w, *i).stage];
    call.last = w->stages->first[act(w, *i).stage] - 1;
    call.hold.again = true;
    w->held[act(w, *i).stage] = call.set;
    return call.set != MS_NOTHING ? add(w, call) : MS_OK;
}

static ms_err form_before(writer *w, uint32_t stage)
{
    uint32_t i = w->act_at[stage];
    while (act(w, i).verb != MS_CHAIN_BACKWARD)
        MS_TRY(act(w, i).verb == MS_CHAIN_SAVE ? form_rerun(w, &i)
                                               : form_again(w, &i));
    assert(act(w, i).stage == stage);
    return MS_OK;
}

static ms_err form_drop(writer *w, uint32_t set)
{
    ms_call call = ms_program_call(MS_DROP_SET);
    call.set = set;
    return set != MS_NOTHING ? add(w, call) : MS_OK;
}

/* What the backward of the stage was the last to need. */
static ms_err form_behind(writer *w, uint32_t k, uint32_t stage)
{
    ms_call call = ms_program_call(MS_DROP_SET);
    uint32_t *rerun = &w->rerun[2 * (stage - 1)];
    MS_TRY(form_drop(w, w->held[stage]));
    MS_TRY(form_drop(w, w->kept[stage]));
    MS_TRY(form_drop(w, w->handed.entered[k][stage]));
    if (rerun[0] == MS_NONE)
        return MS_OK;
    call.unit = rerun[0];
    call.last = rerun[1];
    rerun[0] = MS_NONE;
    return add(w, call);
}

/* ---- a part -------------------------------------------------------------- */

static ms_err open_part(writer *w, uint32_t k)
{
    uint32_t n = w->how->parts->of[k].chain.n;
    w->stages = &w->how->parts->of[k];
    w->plan = &w->how->plans[k];
    w->input = ms_arena_take_raw(w->arena, n + 2u, sizeof *w->input);
    w->act_at = ms_arena_take(w->arena, n + 2u, sizeof *w->act_at);
    w->held = ms_arena_take_raw(w->arena, n + 2u, sizeof *w->held);
    w->kept = ms_arena_take_raw(w->arena, n + 2u, sizeof *w->kept);
    w->rerun = ms_arena_take_raw(w->arena, 2 * (n + 2u), sizeof *w->rerun);
    if (w->input == NULL || w->act_at == NULL || w->held == NULL ||
        w->kept == NULL || w->rerun == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t l = 0; l < 2 * (n + 2u); l++)
        w->rerun[l] = MS_NONE;
    for (uint32_t l = 0; l < n + 2u; l++)
        w->held[l] = MS_NOTHING;
    for (uint32_t l = 1; l <= n; l++)
        for (uint32_t u = w->stages->first[l]; u <= w->stages->last[l]; u++)
            w->stage_of[u] = l;
    return MS_OK;
}

/* The first act of each stage, in order, is its forward; what stands between
 * two backwards is before the second. */
static ms_err read_plan(writer *w)
{
    const ms_stages *stages = w->stages;
    uint32_t i = 0, n = stages->chain.n;
    MS_TRY(find_kept(w));
    w->input[1] = MS_NOTHING;
    for (uint32_t l = 1; l < n; l++)
        MS_TRY(ms_program_add_set(w->program, stages->out + stages->out_at[l],
                                  stages->out_at[l + 1] - stages->out_at[l],
                                  w->arena, &w->input[l + 1], w->fault));
    for (; act(w, i).verb != MS_CHAIN_BACKWARD; i++) {
        assert(act(w, i).stage == i + 1);
        MS_TRY(plan_forward(w, i));
    }
    w->act_at[n] = i;
    for (; i + 1 < w->plan->n; i++)
        if (act(w, i).verb == MS_CHAIN_BACKWARD)
            w->act_at[act(w, i).stage - 1] = i + 1;
    return MS_OK;
}

static bool is_planned(const writer *w, uint32_t unit)
{
    return w->how->plans[w->how->parts->of_unit[unit]].n > 0;
}

static ms_err plan_part(writer *w, uint32_t k)
{
    if (w->how->plans[k].n == 0)
        return MS_OK;
    MS_TRY(open_part(w, k));
    MS_TRY(read_plan(w));
    for (uint32_t l = w->stages->chain.n; l > 0; l--) {
        form own = {.before = w->forms.n_calls};
        MS_TRY(form_before(w, l));
        own.behind = w->forms.n_calls;
        MS_TRY(form_behind(w, k, l));
        own.end = w->forms.n_calls;
        if (w->stages->first[l] <= w->stages->last[l])
            w->form_of[w->stages->first[l]] = own;
    }
    return MS_OK;
}

/* ---- the program --------------------------------------------------------- */

static ms_err copy_forms(writer *w, const ms_call *like, uint32_t first,
                         uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        ms_call call = w->forms.calls[i];
        call.rank = like->rank;
        call.frame = like->frame;
        call.micro_batch = like->micro_batch;
        MS_TRY(ms_program_add(w->program, call, w->arena, w->fault));
    }
    return MS_OK;
}

static ms_err write_forward(writer *w, ms_call call)
{
    uint32_t k = w->how->parts->of_unit[call.unit];
    ms_call hold = ms_program_call_like(MS_HOLD, &call);
    hold.set = w->handed.entry[k];
    if (call.unit == w->how->parts->of[k].first[1] && hold.set != MS_NOTHING)
        MS_TRY(ms_program_add(w->program, hold, w->arena, w->fault));
    call.run.keep = w->keep[call.unit];
    call.set = w->hold[call.unit];
    return ms_program_add(w->program, call, w->arena, w->fault);
}

static ms_err write_backward(writer *w, const ms_call *call)
{
    uint32_t k = w->how->parts->of_unit[call->unit];
    uint32_t l = w->stage_of[call->unit];
    const ms_stages *stages = &w->how->parts->of[k];
    const form *own = &w->form_of[stages->first[l]];
    bool begins = call->run.pass != MS_GRAD_WEIGHT;
    if (begins && call->unit == stages->last[l])
        MS_TRY(copy_forms(w, call, own->before, own->behind));
    MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
    if (ms_program_ends_backward(call) && call->unit == stages->first[l])
        MS_TRY(copy_forms(w, call, own->behind, own->end));
    return MS_OK;
}

static ms_err write_call(writer *w, const ms_program *from, uint32_t i)
{
    ms_call call = from->calls[i];
    bool runs = call.verb == MS_RUN && is_planned(w, call.unit);
    if (runs && call.run.pass == MS_FORWARD)
        return write_forward(w, call);
    if (runs)
        return write_backward(w, &call);
    if (!ms_handedon_change(&w->handed, from, i, &call))
        return MS_OK;
    return ms_program_add(w->program, call, w->arena, w->fault);
}

static ms_err take_columns(writer *w)
{
    uint32_t units = w->graph->n_units;
    w->stage_of = ms_arena_take_raw(w->arena, units, sizeof *w->stage_of);
    w->keep = ms_arena_take_raw(w->arena, units, sizeof *w->keep);
    w->hold = ms_arena_take_raw(w->arena, units, sizeof *w->hold);
    w->form_of = ms_arena_take_raw(w->arena, units, sizeof *w->form_of);
    if (w->stage_of == NULL || w->keep == NULL || w->hold == NULL ||
        w->form_of == NULL)
        return ms_fail_nomem(w->fault);
    return MS_OK;
}

ms_err ms_chaincalls_write(const ms_policy_context *context,
                           const ms_chaincalls *how, ms_arena *arena,
                           ms_program *program, ms_fault *fault)
{
    ms_program made;
    writer w = {.graph = context->graph,
                .how = how,
                .arena = arena,
                .program = &made,
                .fault = fault};
    MS_TRY(ms_program_fork(program, arena, &made, fault));
    MS_TRY(take_columns(&w));
    MS_TRY(ms_handedon_find(context, how->parts, how->plans, program, arena,
                            &made, &w.handed, fault));
    for (uint32_t k = 0; k < how->parts->n; k++)
        MS_TRY(plan_part(&w, k));
    MS_TRY(ms_program_reserve(&made, program->n_calls, arena, fault));
    for (uint32_t i = 0; i < program->n_calls; i++)
        MS_TRY(write_call(&w, program, i));
    *program = made;
    return MS_OK;
}
