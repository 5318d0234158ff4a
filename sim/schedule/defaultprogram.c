/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The program that runs a graph as its schedule and its keep say, before
 * policies place calls in it. */
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/exchange.h"
#include "sim/schedule/rooms.h"
#include "sim/schedule/stageinputs.h"
#include "sim/schedule/turncalls.h"

#include <assert.h>
#include <string.h>

typedef struct writer {
    const ms_graph *graph;
    const ms_keep *keep;
    const ms_schedule *schedule;
    ms_arena *arena;
    ms_program *program;
    ms_fault *fault;
    ms_keepsets sets[2]; /* of the keep and of its other choice */
    ms_turncalls turns[2];
    ms_handovers handovers;
    /* Of the rank at hand, per micro-batch: its frame + 1 while it is under
     * way, and how many turns it has yet to come. */
    uint32_t *frame, *left;
    uint16_t *free_frames; /* given back, the last one first */
    uint32_t n_free, n_frames;
    uint32_t *rooms; /* rooms.h */
    ms_stageinputs inputs;
} writer;

static void write_mark(writer *w, uint16_t rank, uint32_t micro_batch,
                       ms_mark mark)
{
    ms_call call = ms_program_call(MS_MARK);
    call.mark.mark = (uint8_t)mark;
    call.rank = rank;
    call.micro_batch = micro_batch;
    w->program->calls[w->program->n_calls++] = call;
}

/* ---- frames -------------------------------------------------------------- */

static void count_turns(writer *w, uint16_t rank)
{
    const ms_schedule *schedule = w->schedule;
    memset(w->frame, 0, schedule->n_micro_batches * sizeof *w->frame);
    memset(w->left, 0, schedule->n_micro_batches * sizeof *w->left);
    w->n_free = w->n_frames = 0;
    for (uint32_t i = schedule->turn_at[rank]; i < schedule->turn_at[rank + 1];
         i++)
        w->left[schedule->turns[i].micro_batch]++;
}

static ms_err open_frame(writer *w, uint32_t micro_batch)
{
    if (w->frame[micro_batch] > 0)
        return MS_OK;
    if (w->n_free == 0 && w->n_frames == UINT16_MAX)
        return ms_fail(w->fault, MS_EINPUT, "schedule",
                       "run backward of some before the others' forward",
                       "more than %u micro-batches are in flight on a rank",
                       (unsigned)UINT16_MAX);
    w->frame[micro_batch] =
        1 + (w->n_free > 0 ? w->free_frames[--w->n_free] : w->n_frames++);
    if (w->n_frames > w->program->n_frames)
        w->program->n_frames = (uint16_t)w->n_frames;
    return MS_OK;
}

static void end_turn(writer *w, uint32_t micro_batch)
{
    if (--w->left[micro_batch] == 0 && !w->schedule->keeps.messages)
        w->free_frames[w->n_free++] = (uint16_t)(w->frame[micro_batch] - 1);
}

/* Which choice of the keep a turn takes. */
static bool takes_other(const writer *w, uint32_t stage, uint32_t micro_batch)
{
    size_t at = (size_t)stage * w->schedule->n_micro_batches + micro_batch;
    return w->keep->other != NULL && w->keep->turns[at] != 0;
}

static ms_err check_choices(const writer *w)
{
    for (uint32_t i = 0; i < w->handovers.n && w->keep->other != NULL; i++) {
        const ms_handover *it = &w->handovers.all[i];
        for (uint32_t m = 0; it->local && m < w->schedule->n_micro_batches; m++)
            if (takes_other(w, it->from, m) != takes_other(w, it->to, m))
                return ms_fail(w->fault, MS_EUSAGE, "schedule",
                               "let all micro-batches be checkpointed alike",
                               "stages %u and %u of rank %u hand to each "
                               "other, but keep differently of micro-batch %u",
                               it->from, it->to,
                               (unsigned)w->schedule->stages[it->from].rank, m);
    }
    return MS_OK;
}

/* ---- deeds --------------------------------------------------------------- */

static void write_turn(writer *w, uint16_t rank, const ms_turn *turn)
{
    ms_program *program = w->program;
    const ms_turncalls *turns =
        &w->turns[takes_other(w, turn->stage, turn->micro_batch)];
    const uint32_t *at =
        &turns->at[(size_t)turn->stage * MS_N_TURNS + turn->kind];
    uint32_t n = at[1] - at[0];
    ms_call *copy = program->calls + program->n_calls;
    uint16_t frame = (uint16_t)(w->frame[turn->micro_batch] - 1);
    if (n > 0)
        memcpy(copy, turns->forms.calls + at[0], n * sizeof *copy);
    for (uint32_t i = 0; i < n; i++) {
        copy[i].rank = rank;
        copy[i].frame = frame;
        copy[i].micro_batch = turn->micro_batch;
        if (turn->pairs && copy[i].verb == MS_RUN) {
            copy[i].run.pairs = true;
            copy[i].run.side = w->schedule->sides;
        }
    }
    program->n_calls += n;
    end_turn(w, turn->micro_batch);
}

/* What the step before has left. */
static void take_inputs(writer *w, uint16_t rank)
{
    if (w->schedule->keeps.inputs != MS_INPUTS_STAY)
        return;
    for (uint32_t k = 0; k < w->schedule->n_stages; k++)
        if (w->inputs.first[k] != MS_NONE && w->inputs.last[k] != MS_NONE)
            ms_stageinputs_write(&w->inputs, rank, k, MS_TAKE, w->program);
}

/* A turn, and what its stage's module names before and after it. */
static void write_kept_turn(writer *w, uint16_t rank, uint32_t row)
{
    const ms_turn *turn = &w->schedule->turns[row];
    const ms_stageinputs *inputs = &w->inputs;
    bool kept = inputs->buffer != NULL && inputs->last[turn->stage] != MS_NONE;
    if (kept && inputs->first[turn->stage] == row &&
        w->schedule->keeps.inputs == MS_INPUTS_STAY)
        ms_stageinputs_write(inputs, rank, turn->stage, MS_GIVE, w->program);
    write_turn(w, rank, turn);
    if (kept && inputs->last[turn->stage] == row)
        ms_stageinputs_write(inputs, rank, turn->stage, MS_TAKE, w->program);
}

/* Does a unit in no segment of the stage save something of the set? */
static bool is_saved(const writer *w, const ms_keepsets *sets,
                     const ms_handover *it)
{
    const ms_graph *graph = w->graph;
    const ms_stage *stage = &w->schedule->stages[it->to];
    if (sets->n_segments == 0)
        return true;
    for (uint32_t u = stage->first; u <= stage->last; u++) {
        uint32_t end = graph->unit_in_at[u + 1];
        if (sets->segment_of[u] != MS_NONE)
            continue;
        for (uint32_t i = graph->unit_in_at[u]; i < end; i++)
            for (uint32_t k = w->program->set_at[it->set];
                 k < w->program->set_at[it->set + 1]; k++)
                if (w->program->set_item[k] == graph->unit_in[i])
                    return true;
    }
    return false;
}

/* Of all that the rank has under way. */
static void write_sync(writer *w, uint16_t rank, uint32_t micro_batch)
{
    ms_call call = ms_program_call(MS_SYNC);
    call.rank = rank;
    call.frame = (uint16_t)(w->frame[micro_batch] - 1);
    call.micro_batch = micro_batch;
    w->program->calls[w->program->n_calls++] = call;
}

/* A tag is of one handover and one micro-batch; it comes round again only
 * where there are more than 2^32 of them. */
static void write_message(writer *w, uint16_t rank, const ms_deed *deed,
                          const bool *saved[2])
{
    const ms_handover *it = &w->handovers.all[deed->what];
    bool sends = deed->kind == MS_DEED_SEND;
    ms_call call = ms_program_call(sends                           ? MS_SEND_SET
                                   : deed->kind == MS_DEED_RECEIVE ? MS_RECV_SET
                                                                   : MS_WAIT);
    call.rank = rank;
    call.frame = (uint16_t)(w->frame[deed->micro_batch] - 1);
    call.micro_batch = deed->micro_batch;
    call.set = it->set;
    if (deed->kind == MS_DEED_RECEIVE && w->rooms != NULL &&
        !ms_rooms_overflows(&w->handovers, w->program, it))
        call.buffer = w->rooms[rank];
    if (deed->kind == MS_DEED_WAIT) {
        w->program->calls[w->program->n_calls++] = call;
        return;
    }
    uint8_t receives = w->schedule->receives;
    call.message = (ms_message_call){
        .peer = ms_schedule_rank(w->schedule, sends ? it->to : it->from,
                                 deed->micro_batch),
        .group = MS_GROUP_PIPELINE,
        .again = sends && it->again,
        .saves = !sends &&
                 saved[takes_other(w, it->to, deed->micro_batch)][deed->what],
        .pairs = sends && (receives == MS_RECEIVE_AHEAD ||
                           receives == MS_RECEIVE_TOGETHER),
        .in_line = receives == MS_RECEIVE_IN_LINE,
        .parts = !sends && w->schedule->parts,
        .tag = deed->micro_batch * w->handovers.n + deed->what};
    w->program->calls[w->program->n_calls++] = call;
    if (!sends || it->relayed == MS_NOTHING)
        return;
    ms_call drop = ms_program_call_like(MS_DROP_SET, &call);
    drop.set = it->relayed;
    w->program->calls[w->program->n_calls++] = drop;
}

/* Does the rank have the stage, or a copy of it? */
static bool runs(const ms_schedule *schedule, uint16_t rank, uint32_t stage)
{
    if (schedule->rank_of == NULL)
        return schedule->stages[stage].rank == rank;
    for (uint32_t m = 0; m < schedule->n_micro_batches; m++)
        if (ms_schedule_rank(schedule, stage, m) == rank)
            return true;
    return false;
}

static void drop_everywhere(writer *w, uint32_t set)
{
    ms_call call = ms_program_call(MS_DROP_SET);
    call.set = set;
    for (uint32_t frame = 0; frame < w->n_frames; frame++) {
        call.frame = (uint16_t)frame;
        w->program->calls[w->program->n_calls++] = call;
    }
}

/* What the training loop keeps to the step, in every frame. */
static void drop_outputs(writer *w, uint16_t rank)
{
    for (uint32_t k = 0; k < w->schedule->n_stages; k++)
        if (runs(w->schedule, rank, k) && w->sets[0].outputs[k] != MS_NOTHING)
            drop_everywhere(w, w->sets[0].outputs[k]);
}

/* What backward has handed on, where that lasts to here. */
static void drop_gradients(writer *w, uint16_t rank)
{
    for (uint32_t i = 0; i < w->handovers.n; i++) {
        const ms_handover *it = &w->handovers.all[i];
        if (it->backward && !it->local && !it->returns &&
            runs(w->schedule, rank, it->from))
            drop_everywhere(w, it->set);
    }
}

static void write_room(writer *w, uint16_t rank, ms_verb verb)
{
    if (w->rooms == NULL || w->rooms[rank] == MS_NONE)
        return;
    ms_call call = ms_program_call(verb);
    call.buffer = w->rooms[rank];
    call.rank = rank;
    w->program->calls[w->program->n_calls++] = call;
}

static ms_err write_end(writer *w, uint16_t rank)
{
    ms_program *program = w->program;
    uint32_t first = program->n_calls;
    bool lasts = w->schedule->keeps.messages;
    uint64_t drops = w->schedule->n_stages + (lasts ? w->handovers.n : 0u);
    MS_TRY(ms_program_reserve(program, 3 + drops * w->n_frames, w->arena,
                              w->fault));
    if (w->graph->step_first < w->graph->n_ops) {
        ms_call call = ms_program_call(MS_STEP_SET);
        call.set = MS_ALL;
        program->calls[program->n_calls++] = call;
    }
    if (w->graph->keep_to_step)
        drop_outputs(w, rank);
    if (lasts)
        drop_gradients(w, rank);
    for (uint32_t i = first; i < program->n_calls; i++) {
        program->calls[i].rank = rank;
        program->calls[i].micro_batch = program->n_micro_batches - 1;
    }
    write_mark(w, rank, program->n_micro_batches - 1, MS_MARK_END);
    write_room(w, rank, MS_GIVE);
    return MS_OK;
}

static uint64_t count_calls(const writer *w, const ms_deeds *deeds)
{
    /* A stage's buffers are taken and given twice. */
    uint64_t n = 2 + 4u * (uint64_t)MS_N_STAGEINPUTS * w->schedule->n_stages;
    for (uint32_t i = 0; i < deeds->n; i++) {
        const ms_deed *deed = &deeds->all[i];
        if (deed->kind != MS_DEED_TURN) {
            n += 2; /* a message, and a drop */
            continue;
        }
        const ms_turn *turn = &w->schedule->turns[deed->what];
        const uint32_t *at =
            &w->turns[takes_other(w, turn->stage, turn->micro_batch)]
                 .at[(size_t)turn->stage * MS_N_TURNS + turn->kind];
        n += at[1] - at[0];
    }
    return n;
}

static ms_err write_rank(writer *w, uint16_t rank, const ms_deeds *deeds,
                         const bool *saved[2])
{
    MS_TRY(ms_program_reserve(w->program, count_calls(w, deeds), w->arena,
                              w->fault));
    count_turns(w, rank);
    ms_stageinputs_open(w->schedule, rank, &w->inputs);
    write_room(w, rank, MS_TAKE);
    take_inputs(w, rank);
    write_mark(w, rank, 0, MS_MARK_START);
    for (uint32_t i = 0; i < deeds->n; i++) {
        const ms_deed *deed = &deeds->all[i];
        MS_TRY(open_frame(w, deed->micro_batch));
        if (deed->kind == MS_DEED_TURN)
            write_kept_turn(w, rank, deed->what);
        else if (deed->kind == MS_DEED_SYNC)
            write_sync(w, rank, deed->micro_batch);
        else
            write_message(w, rank, deed, saved);
    }
    return write_end(w, rank);
}

/* Per handover: does its receiver save something of it? */
static ms_err find_saved(const writer *w, const ms_keepsets *sets,
                         const bool **saved)
{
    bool *list = ms_arena_take(w->arena, w->handovers.n + 1u, sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = 0; i < w->handovers.n && sets->kept != NULL; i++)
        list[i] = is_saved(w, sets, &w->handovers.all[i]);
    *saved = list;
    return MS_OK;
}

/* The stages, then their copies. */
static ms_err add_stages(writer *w)
{
    const ms_schedule *schedule = w->schedule;
    uint32_t n = schedule->n_ranks > 1 ? schedule->n_stages : 0;
    for (uint32_t k = 0; k < n; k++)
        MS_TRY(
            ms_stage_add(w->program, schedule->stages[k], w->arena, w->fault));
    for (uint16_t r = 0; r < schedule->n_ranks && schedule->rank_of; r++)
        for (uint32_t k = 0; k < n; k++) {
            ms_stage copy = schedule->stages[k];
            copy.rank = r;
            if (schedule->stages[k].rank != r && runs(schedule, r, k))
                MS_TRY(ms_stage_add(w->program, copy, w->arena, w->fault));
        }
    return MS_OK;
}

static ms_err write_ranks(writer *w)
{
    const ms_schedule *schedule = w->schedule;
    ms_deeds *deeds;
    MS_TRY(
        ms_exchange_write(schedule, &w->handovers, w->arena, &deeds, w->fault));
    uint32_t n = schedule->n_micro_batches;
    w->frame = ms_arena_take_raw(w->arena, n, sizeof *w->frame);
    w->left = ms_arena_take_raw(w->arena, n, sizeof *w->left);
    w->free_frames = ms_arena_take_raw(w->arena, n, sizeof *w->free_frames);
    if (!w->frame || !w->left || !w->free_frames)
        return ms_fail_nomem(w->fault);
    const bool *saved[2];
    for (int which = 0; which < 2; which++)
        MS_TRY(find_saved(w, &w->sets[which], &saved[which]));
    MS_TRY(add_stages(w));
    for (uint32_t r = 0; r < schedule->n_ranks; r++)
        MS_TRY(write_rank(w, (uint16_t)r, &deeds[r], saved));
    return MS_OK;
}

static ms_err find_forms(writer *w, const ms_keep *keep,
                         const uint32_t *stage_of, int which)
{
    return ms_keepsets_find(w->graph, keep, w->schedule, stage_of, w->arena,
                            w->program, &w->sets[which], w->fault);
}

static ms_err write_forms(writer *w, const ms_keep *keep, int which)
{
    return ms_turncalls_write(w->graph, keep, w->schedule, &w->sets[which],
                              &w->handovers, w->arena, &w->turns[which],
                              w->fault);
}

ms_err ms_defaultprogram(const ms_graph *graph, const ms_keep *keep,
                         const ms_schedule *schedule, ms_arena *arena,
                         ms_program *program, ms_fault *fault)
{
    uint32_t *stage_of;
    assert(schedule->n_micro_batches > 0);
    writer w = {.graph = graph,
                .keep = keep,
                .schedule = schedule,
                .arena = arena,
                .program = program,
                .fault = fault};
    *program = (ms_program){.n_frames = 1,
                            .n_ranks = schedule->n_ranks,
                            .n_micro_batches = schedule->n_micro_batches};
    MS_TRY(ms_schedule_stage_of(graph, schedule, arena, &stage_of, fault));
    MS_TRY(find_forms(&w, keep, stage_of, 0));
    MS_TRY(ms_handover_find(graph, schedule, stage_of, arena, program,
                            &w.handovers, fault));
    MS_TRY(ms_rooms_find(graph, schedule, &w.handovers, arena, program,
                         &w.rooms, fault));
    MS_TRY(ms_stageinputs_find(graph, schedule, &w.handovers, arena, program,
                               &w.inputs, fault));
    if (keep->other != NULL)
        MS_TRY(find_forms(&w, keep->other, stage_of, 1));
    MS_TRY(write_forms(&w, keep, 0));
    if (keep->other != NULL)
        MS_TRY(write_forms(&w, keep->other, 1));
    MS_TRY(check_choices(&w));
    MS_TRY(write_ranks(&w));
    for (int which = 0; which < 2; which++) {
        ms_arena_drop(arena, w.turns[which].forms.calls);
        ms_keepsets_drop(&w.sets[which], arena);
    }
    return MS_OK;
}

ms_err ms_defaultprogram_alone(const ms_graph *graph, const ms_keep *keep,
                               uint32_t micro_batches, ms_arena *arena,
                               ms_program *program, ms_fault *fault)
{
    ms_schedule schedule;
    MS_TRY(ms_schedule_default(graph, micro_batches, arena, &schedule, fault));
    return ms_defaultprogram(graph, keep, &schedule, arena, program, fault);
}
