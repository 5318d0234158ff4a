/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/measure/turntimes.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"

const char *const ms_turntimes_names[MS_TURNTIMES_KINDS] = {
    [MS_TURN_FORWARD] = "forward",       [MS_TURN_BACKWARD] = "backward",
    [MS_TURN_GRAD_INPUT] = "grad_input", [MS_TURN_GRAD_WEIGHT] = "grad_weight",
    [MS_TURNTIMES_STEP] = "optimizer",
};

typedef struct walk {
    const ms_timeline *line;
    uint16_t rank;
    uint32_t *own;       /* of a unit: its stage of this rank + 1, or 0 */
    uint8_t *second;     /* ms_stage_halves */
    ms_turn_time *turns; /* of the program; they have no times */
    uint32_t n, at;      /* the turn under way */
    ms_turn_time *pieces;
    uint32_t n_pieces, capacity, piece_of; /* of which turn the last one is */
    ms_arena *arena;
    bool failed; /* out of memory */
} walk;

/* ---- the turns of the program -------------------------------------------- */

static bool continues(const ms_turn_time *last, const ms_turn *turn)
{
    return last->kind == turn->kind && last->stage == turn->stage &&
           last->micro_batch == turn->micro_batch;
}

/* Counts the turns; with turns not NULL writes them, too. */
static uint32_t list(const ms_program *program, uint16_t rank,
                     ms_turn_time *turns)
{
    ms_turn_time last = {.kind = MS_TURNTIMES_KINDS};
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN || call->rank != rank)
            continue;
        ms_turn turn = ms_schedule_turn_of(program, call);
        if (continues(&last, &turn))
            continue;
        last = (ms_turn_time){.kind = turn.kind,
                              .name = ms_turntimes_names[turn.kind],
                              .stage = turn.stage,
                              .micro_batch = turn.micro_batch};
        if (turns != NULL)
            turns[n] = last;
        n++;
    }
    return n;
}

/* ---- the ops of each ----------------------------------------------------- */

static bool is_update(const ms_plan_op *row)
{
    return row->pass == MS_STEP;
}

/* Can the op be part of such a turn? */
static bool belongs(const walk *w, const ms_plan_op *row,
                    const ms_turn_time *turn)
{
    uint32_t unit = w->line->plan->graph->op_unit[row->of];
    bool forward = row->pass == MS_FORWARD || row->pass == MS_LOSS;
    if (turn->kind == MS_TURNTIMES_STEP || unit == MS_NONE ||
        turn->micro_batch != row->micro_batch ||
        (w->own[unit] > 0 && turn->stage != w->own[unit] - 1u))
        return false;
    if (forward || turn->kind == MS_TURN_FORWARD)
        return forward && turn->kind == MS_TURN_FORWARD;
    return turn->kind == MS_TURN_BACKWARD || row->pass == MS_RECOMPUTE ||
           (turn->kind == MS_TURN_GRAD_WEIGHT) == (w->second[row->of] != 0);
}

/* The op's turn is the one under way, the one before it (of two that run side
 * by side), or the next that it can be part of; what is of none stays with the
 * one under way. */
static void turn_to(walk *w, const ms_plan_op *row)
{
    uint32_t at = w->at;
    if (is_update(row)) {
        w->at = w->n - 1;
        return;
    }
    if (at > 0 && !belongs(w, row, &w->turns[at]) &&
        belongs(w, row, &w->turns[at - 1]))
        at--;
    while (at < w->n && !belongs(w, row, &w->turns[at]))
        at++;
    if (at < w->n)
        w->at = at;
}

/* The piece that an op extends: the last one, or a new one where another turn
 * begins or this one has waited. */
static ms_turn_time *piece(walk *w, uint64_t from_ns)
{
    uint64_t least_ns = w->line->step_ns / MS_TURNTIMES_PAUSE;
    ms_turn_time *last = w->n_pieces > 0 ? &w->pieces[w->n_pieces - 1] : NULL;
    if (last != NULL && w->piece_of == w->at &&
        from_ns <= last->to_ns + least_ns)
        return last;
    if (w->n_pieces == w->capacity)
        w->pieces = ms_arena_grow(w->arena, w->pieces, &w->capacity,
                                  w->n_pieces + 1, sizeof *w->pieces);
    w->failed |= w->pieces == NULL;
    if (w->failed)
        return NULL;
    w->piece_of = w->at;
    last = &w->pieces[w->n_pieces++];
    *last = w->turns[w->at];
    last->from_ns = from_ns;
    return last;
}

static void add_op(walk *w, uint32_t op)
{
    const ms_timeline *line = w->line;
    const ms_plan_op *row = &line->plan->op[op];
    uint64_t ns = line->end_ns[op] - line->start_ns[op];
    if (row->rank != w->rank || row->stream != MS_STREAM_COMPUTE ||
        row->of == MS_NONE || ns == 0 || w->failed)
        return;
    turn_to(w, row);
    ms_turn_time *turn = piece(w, line->start_ns[op]);
    if (turn == NULL)
        return;
    turn->to_ns = line->end_ns[op];
    if (row->pass == MS_RECOMPUTE)
        turn->again_ns += ns;
    else if (row->pass == MS_GRAD_WEIGHT || row->pass == MS_ACCUMULATE ||
             turn->kind == MS_TURN_GRAD_WEIGHT)
        turn->weight_ns += ns;
}

ms_err ms_turntimes_measure(const ms_timeline *line, const ms_program *program,
                            uint16_t rank, ms_arena *arena,
                            ms_turn_time **turns, uint32_t *n, ms_fault *fault)
{
    const ms_graph *graph = line->plan->graph;
    walk w = {.line = line,
              .rank = rank,
              .n = list(program, rank, NULL) + 1,
              .arena = arena};
    w.turns = ms_arena_take(arena, w.n, sizeof *w.turns);
    w.own = ms_arena_take(arena, graph->n_units, sizeof *w.own);
    w.second = ms_arena_take(arena, graph->n_ops, sizeof *w.second);
    if (w.turns == NULL || w.own == NULL || w.second == NULL)
        return ms_fail_nomem(fault);
    list(program, rank, w.turns);
    w.turns[w.n - 1] =
        (ms_turn_time){.kind = MS_TURNTIMES_STEP,
                       .name = ms_turntimes_names[MS_TURNTIMES_STEP]};
    ms_stage_units(program, rank, graph->n_units, w.own);
    ms_stage_halves(graph, w.second);
    for (uint32_t op = 0; op < line->plan->n_ops; op++)
        add_op(&w, op);
    *turns = w.pieces;
    *n = w.n_pieces;
    return w.failed ? ms_fail_nomem(fault) : MS_OK;
}
