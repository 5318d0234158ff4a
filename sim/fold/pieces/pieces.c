/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/pieces/pieces.h"

#include "sim/fold/classes/homes.h"
#include "sim/fold/renumber.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <assert.h>
#include <string.h>

/* What a question is about. */
typedef enum piece_turn { FORWARD, BACKWARD, TAIL, LAST } piece_turn;

#define HEAD_WORDS 12u
#define MOST_REACH 7u /* two bits for each unit of a window in a word */

/* ---- how far units reach ------------------------------------------------- */

/* A number for units [first, end): the same for units that are alike. */
static uint32_t shape_of(const ms_pieces *pieces, uint32_t first, uint32_t end)
{
    return pieces->alike[first] >= end - first ? pieces->home[first] : first;
}

/* The furthest owner of a class: a second one is far away. */
static uint32_t reach_of(const ms_class *class, uint32_t reach)
{
    for (uint32_t i = 0; i < class->n_owners; i++) {
        int32_t owner = class->owner[i];
        uint32_t far = owner < 0 ? 0 - (uint32_t)owner : (uint32_t)owner;
        if (owner < MS_CLASSES_REST && far > reach)
            reach = far;
    }
    return reach;
}

/* How far from its maker's unit an op of this side of a unit reads what a
 * micro-batch makes.  Of gradients this is counted apart: how many come from
 * further away than that (of tied weights, of a residual stream). */
static uint32_t reach_of_reads(ms_pieces *pieces, uint32_t unit,
                               ms_class_side side, bool grads, uint32_t reach)
{
    const ms_graph *graph = pieces->walk->learner.graph;
    uint32_t first, end, backward = graph->forward_at[graph->n_units];
    ms_classes_ops(graph, unit, side, &first, &end);
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++) {
        uint32_t s = graph->in[i], maker = graph->storage_maker[s];
        if (s < graph->n_persistent || maker == MS_NONE ||
            (maker >= backward) != grads)
            continue;
        uint32_t at = graph->op_unit[maker];
        uint32_t far = at > unit ? at - unit : unit - at;
        if (grads && far > reach)
            pieces->n_far[unit + 1]++;
        else if (far > reach)
            reach = far;
    }
    return reach;
}

/* From how far units read the default program finds what segments hold; of
 * gradients it holds any for reentrant segments alone.  Who reads a storage may
 * lie as far from its maker as other readers do on the other side. */
static void find_window(ms_pieces *pieces)
{
    const ms_classes *classes = pieces->walk->learner.classes;
    const ms_graph *graph = classes->graph;
    uint32_t reach = 0;
    for (uint32_t id = 0; id < classes->n_classes; id++)
        reach = reach_of(&classes->classes[id], reach);
    for (uint32_t u = 0; u < graph->n_units; u++)
        for (int side = 0; side < MS_N_CLASS_SIDES; side++)
            reach = reach_of_reads(pieces, u, (ms_class_side)side, false,
                                   reach);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        reach_of_reads(pieces, u, MS_CLASS_BACKWARD, true, reach);
        pieces->n_far[u + 1] += pieces->n_far[u];
    }
    pieces->window = 2 * reach;
    pieces->far = reach > MOST_REACH ||
                  graph->backward_at[0] == graph->backward_at[graph->n_units];
}

/* ---- the program, where a piece is new ----------------------------------- */

static bool is_of(const ms_call *call, uint8_t verb, bool forward)
{
    return call->verb == verb &&
           (verb != MS_RUN || (call->run.pass == MS_FORWARD) == forward);
}

/* Behind a unit's run come the holds of what it made, or the drops and the
 * random state that ends. */
static bool belongs(const ms_call *call, bool forward)
{
    if (forward)
        return call->verb == MS_HOLD;
    return call->verb == MS_DROP_SET ||
           (call->verb == MS_STATE && call->state.to == MS_GONE);
}

static void find_ends(ms_pieces *pieces)
{
    const ms_program *program = &pieces->program;
    const ms_graph *graph = pieces->walk->learner.graph;
    uint32_t n = program->n_calls, i = 0;
    while (i < n) {
        const ms_call *call = &program->calls[i++];
        bool forward = is_of(call, MS_RUN, true);
        if (call->verb == MS_MARK && call->mark.mark == MS_MARK_AFTER_BACKWARD)
            pieces->tail = i;
        if (call->verb != MS_RUN)
            continue;
        while (i < n && belongs(&program->calls[i], forward))
            i++;
        (forward ? pieces->forward_end : pieces->backward_end)[call->unit] = i;
    }
    pieces->last = n - 1; /* the mark of the end */
    if (graph->keep_to_step && graph->n_kept > 0)
        pieces->last--;
    if (graph->step_first < graph->n_ops)
        pieces->last--;
}

static ms_err write_program(ms_pieces *pieces)
{
    const ms_graph *graph = pieces->walk->learner.graph;
    ms_keep keep;
    if (pieces->written)
        return MS_OK;
    ms_arena_reset(&pieces->trial);
    MS_TRY(ms_program_keep_all(graph, &pieces->trial, &keep, pieces->fault));
    ms_choice_keep(graph, pieces->choice, &keep);
    MS_TRY(ms_defaultprogram_alone(graph, &keep, 1, &pieces->trial,
                                   &pieces->program, pieces->fault));
    find_ends(pieces);
    pieces->written = true;
    return ms_callwalk_begin(pieces->walk, &pieces->program, pieces->fault);
}

/* The calls of a turn of pieces [first, end). */
static void find_calls(const ms_pieces *pieces, piece_turn turn, uint32_t piece,
                       uint32_t *first, uint32_t *end)
{
    const ms_graph *graph = pieces->walk->learner.graph;
    const ms_piece *it = &pieces->piece[piece];
    switch (turn) {
    case FORWARD:
        *first = it->first > 0 ? pieces->forward_end[it->first - 1] : 0;
        *end = pieces->forward_end[it->end - 1];
        break;
    case BACKWARD:
        *first = it->end < graph->n_units
                     ? pieces->backward_end[it->end]
                     : pieces->forward_end[graph->n_units - 1];
        *end = pieces->backward_end[it->first];
        break;
    case TAIL:
        *first = pieces->tail;
        *end = pieces->last;
        break;
    case LAST:
        *first = pieces->last;
        *end = pieces->program.n_calls;
        break;
    }
}

/* ---- states -------------------------------------------------------------- */

/* Pieces [*first, *end) lie in the window of a piece. */
static void find_near(const ms_pieces *pieces, uint32_t piece, uint32_t *first,
                      uint32_t *end)
{
    const ms_piece *it = &pieces->piece[piece];
    *first = piece;
    *end = piece + 1;
    while (*first > 0 &&
           pieces->piece[*first].first + pieces->window > it->first)
        --*first;
    while (*end < pieces->n &&
           pieces->piece[*end - 1].end < it->end + pieces->window)
        ++*end;
}

static void set_up(ms_pieces *pieces, uint32_t first, uint32_t end)
{
    ms_learner *learner = &pieces->walk->learner;
    for (uint32_t i = first; i < end; i++) {
        const ms_piece *piece = &pieces->piece[i];
        memcpy(learner->now + piece->first,
               ms_intern_words(&pieces->states, piece->state),
               (piece->end - piece->first) * sizeof *learner->now);
    }
    learner->now[learner->classes->shared] = pieces->shared;
    learner->now[learner->classes->rest] = pieces->rest;
}

static ms_err put_left(ms_pieces *pieces, uint32_t state)
{
    uint32_t *left =
        ms_arena_grow(pieces->known, pieces->left, &pieces->left_capacity,
                      pieces->n_left + 1, sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(pieces->fault);
    pieces->left = left;
    left[pieces->n_left++] = state;
    return MS_OK;
}

static ms_err read_left(ms_pieces *pieces, uint32_t first, uint32_t end)
{
    const ms_learner *learner = &pieces->walk->learner;
    for (uint32_t i = first; i < end; i++) {
        const ms_piece *piece = &pieces->piece[i];
        uint32_t state;
        MS_TRY(ms_intern_add(&pieces->states, learner->now + piece->first,
                             piece->end - piece->first, &state, pieces->fault));
        MS_TRY(put_left(pieces, state));
    }
    MS_TRY(put_left(pieces, learner->now[learner->classes->shared]));
    return put_left(pieces, learner->now[learner->classes->rest]);
}

/* ---- one turn of a piece ------------------------------------------------- */

/* Which of the units next to it, as far as they matter, are in segments and
 * begin one: two bits each. */
static uint32_t cuts_before(const ms_pieces *pieces, uint32_t piece)
{
    uint32_t bits = 1, at = pieces->piece[piece].first;
    uint32_t low = at > pieces->window ? at - pieces->window : 0;
    for (uint32_t u = at; u-- > low;) {
        if (u < pieces->piece[piece].first)
            piece--;
        const ms_piece *it = &pieces->piece[piece];
        bits = bits << 2 | (uint32_t)it->segment << 1 | (u == it->first);
    }
    return bits;
}

static uint32_t cuts_behind(const ms_pieces *pieces, uint32_t piece)
{
    uint32_t bits = 1, at = pieces->piece[piece].end;
    uint32_t n_units = pieces->piece[pieces->n - 1].end;
    uint32_t high =
        at + pieces->window < n_units ? at + pieces->window : n_units;
    for (uint32_t u = at; u < high; u++) {
        if (u >= pieces->piece[piece].end)
            piece++;
        const ms_piece *it = &pieces->piece[piece];
        bits = bits << 2 | (uint32_t)it->segment << 1 | (u == it->first);
    }
    return bits;
}

static void ask_piece(ms_pieces *pieces, piece_turn turn, uint32_t piece)
{
    const ms_piece *it = &pieces->piece[piece];
    uint32_t window = pieces->window,
             n_units = pieces->piece[pieces->n - 1].end;
    uint32_t low = it->first > window ? it->first - window : 0;
    uint32_t high = it->end + window < n_units ? it->end + window : n_units;
    uint32_t flags = (uint32_t)it->segment |
                     (uint32_t)pieces->choice->reentrant << 1 |
                     (uint32_t)pieces->choice->early_stop << 2;
    uint32_t *word = pieces->word;
    word[0] = (uint32_t)turn << 8 | flags;
    word[1] = shape_of(pieces, low, high);
    word[2] = it->first - low;
    word[3] = high - it->end;
    word[4] = it->end - it->first;
    word[5] = cuts_before(pieces, piece);
    word[6] = cuts_behind(pieces, piece);
    pieces->n_words = 7;
}

/* The end of a micro-batch and of the step may touch everything. */
static void ask_everything(ms_pieces *pieces, piece_turn turn)
{
    uint32_t *word = pieces->word;
    word[0] = (uint32_t)turn << 8 | (uint32_t)pieces->choice->reentrant << 1 |
              (uint32_t)pieces->choice->early_stop << 2;
    pieces->n_words = 1;
    for (uint32_t i = 0; i < pieces->n; i++)
        word[pieces->n_words++] =
            pieces->piece[i].first << 1 | (uint32_t)pieces->piece[i].segment;
}

/* The answers of the calls that the walk has noted. */
static ms_err keep_steps(ms_pieces *pieces, ms_piece_answer *answer)
{
    const ms_callwalk *walk = pieces->walk;
    uint32_t *step =
        ms_arena_grow(pieces->known, pieces->step, &pieces->steps_capacity,
                      pieces->n_steps + walk->n_steps + 1, sizeof *step);
    if (step == NULL)
        return ms_fail_nomem(pieces->fault);
    pieces->step = step;
    answer->numbers = walk->learner.numbers;
    answer->first_step = pieces->n_steps;
    answer->n_steps = walk->n_steps;
    if (walk->n_steps > 0)
        memcpy(step + pieces->n_steps, walk->steps,
               walk->n_steps * sizeof *step);
    pieces->n_steps += walk->n_steps;
    return MS_OK;
}

const ms_piece_answer *ms_pieces_answer(ms_pieces *pieces, uint32_t id)
{
    ms_learner *learner = &pieces->walk->learner;
    ms_piece_answer *answer = &pieces->answer[id];
    if (answer->numbers == learner->numbers)
        return answer;
    const uint32_t *step = pieces->step + answer->first_step;
    answer->effect = (ms_effect){0};
    for (uint32_t i = 0; i < answer->n_steps; i++)
        answer->effect = ms_effect_then(
            answer->effect, ms_renumber_answer(learner, step[i])->effect);
    answer->numbers = learner->numbers;
    return answer;
}

static ms_err note_turn(ms_pieces *pieces, uint32_t id)
{
    uint32_t *trail =
        ms_arena_grow(pieces->keep, pieces->trail, &pieces->trail_capacity,
                      pieces->n_trail + 1, sizeof *trail);
    if (trail == NULL)
        return ms_fail_nomem(pieces->fault);
    pieces->trail = trail;
    trail[pieces->n_trail++] = id;
    return MS_OK;
}

/* The turns since the round before have been taken so many times. */
static ms_err end_round(ms_pieces *pieces, uint32_t times)
{
    uint32_t n = pieces->n_rounds;
    ms_piece_round *rounds =
        ms_arena_grow(pieces->keep, pieces->round, &pieces->rounds_capacity,
                      n + 1, sizeof *rounds);
    if (rounds == NULL)
        return ms_fail_nomem(pieces->fault);
    pieces->round = rounds;
    rounds[pieces->n_rounds++] =
        (ms_piece_round){.first = n > 0 ? rounds[n - 1].end : 0,
                         .end = pieces->n_trail,
                         .times = times};
    return MS_OK;
}

static ms_err learn(ms_pieces *pieces, piece_turn turn, uint32_t piece,
                    uint32_t first, uint32_t end, uint32_t *id)
{
    ms_callwalk *walk = pieces->walk;
    ms_piece_answer answer;
    uint32_t at, until;
    MS_TRY(write_program(pieces));
    find_calls(pieces, turn, piece, &at, &until);
    set_up(pieces, first, end);
    walk->all = first == 0 && end == pieces->n;
    walk->strayed = false;
    walk->low = pieces->piece[first].first;
    walk->high = pieces->piece[end - 1].end;
    walk->since = (ms_effect){0};
    walk->notes = true;
    walk->n_steps = 0;
    for (; at < until && walk->why == MS_FOLD_WHOLE; at++)
        MS_TRY(ms_callwalk_call(walk, &pieces->program.calls[at]));
    pieces->why = walk->strayed ? MS_FOLD_FAR : walk->why;
    if (pieces->why != MS_FOLD_WHOLE)
        return MS_OK;
    pieces->learnt++;
    answer = (ms_piece_answer){.effect = walk->since, .first = pieces->n_left};
    MS_TRY(keep_steps(pieces, &answer));
    MS_TRY(read_left(pieces, first, end));
    answer.n = pieces->n_left - answer.first;
    MS_TRY(ms_intern_add(&pieces->questions, pieces->word, pieces->n_words, id,
                         pieces->fault));
    ms_piece_answer *answers =
        ms_arena_grow(pieces->known, pieces->answer, &pieces->answers_capacity,
                      *id + 1, sizeof *answers);
    if (answers == NULL)
        return ms_fail_nomem(pieces->fault);
    pieces->answer = answers;
    answers[*id] = answer;
    return MS_OK;
}

static ms_err take_turn(ms_pieces *pieces, piece_turn turn, uint32_t piece)
{
    uint32_t first = 0, end = pieces->n;
    if (turn == FORWARD || turn == BACKWARD) {
        ask_piece(pieces, turn, piece);
        find_near(pieces, piece, &first, &end);
    } else {
        ask_everything(pieces, turn);
    }
    for (uint32_t i = first; i < end; i++)
        pieces->word[pieces->n_words++] = pieces->piece[i].state;
    pieces->word[pieces->n_words++] = pieces->shared;
    pieces->word[pieces->n_words++] = pieces->rest;
    uint32_t id =
        ms_intern_find(&pieces->questions, pieces->word, pieces->n_words);
    if (id == MS_NONE)
        MS_TRY(learn(pieces, turn, piece, first, end, &id));
    if (pieces->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(note_turn(pieces, id));
    const ms_piece_answer *answer = ms_pieces_answer(pieces, id);
    const uint32_t *left = pieces->left + answer->first;
    pieces->effect = ms_effect_then(pieces->effect, answer->effect);
    for (uint32_t i = first; i < end; i++)
        pieces->piece[i].state = *left++;
    pieces->shared = left[0];
    pieces->rest = left[1];
    return MS_OK;
}

/* ---- a choice ------------------------------------------------------------ */

static ms_err add_piece(ms_pieces *pieces, uint32_t first, uint32_t end,
                        bool segment)
{
    const ms_learner *learner = &pieces->walk->learner;
    uint32_t id, known = pieces->starts.n;
    assert(first <= end && end <= learner->graph->n_units);
    if (first == end)
        return MS_OK;
    uint32_t words[2] = {shape_of(pieces, first, end), end - first};
    if (segment && pieces->choice->reentrant &&
        pieces->n_far[first] < pieces->n_far[end])
        pieces->why = MS_FOLD_FAR;
    MS_TRY(ms_intern_add(&pieces->starts, words, 2, &id, pieces->fault));
    if (id == known) {
        uint32_t *start =
            ms_arena_grow(pieces->known, pieces->start_of,
                          &pieces->starts_capacity, id + 1, sizeof *start);
        if (start == NULL)
            return ms_fail_nomem(pieces->fault);
        pieces->start_of = start;
        MS_TRY(ms_intern_add(&pieces->states, learner->start + first,
                             end - first, &start[id], pieces->fault));
    }
    pieces->piece[pieces->n++] = (ms_piece){.first = first,
                                            .end = end,
                                            .state = pieces->start_of[id],
                                            .segment = segment};
    return MS_OK;
}

static ms_err cut(ms_pieces *pieces)
{
    const ms_fold_choice *choice = pieces->choice;
    const ms_learner *learner = &pieces->walk->learner;
    uint32_t at = 0;
    pieces->n = 0;
    for (uint32_t i = 0; i < choice->n_stretches; i++) {
        const ms_fold_stretch *stretch = &choice->stretches[i];
        MS_TRY(add_piece(pieces, at, stretch->first, false));
        at = stretch->first;
        for (uint32_t k = 0; k < stretch->segments; k++) {
            MS_TRY(add_piece(pieces, at, at + stretch->units, true));
            at += stretch->units;
        }
    }
    MS_TRY(add_piece(pieces, at, learner->graph->n_units, false));
    pieces->shared = learner->start[learner->classes->shared];
    pieces->rest = learner->start[learner->classes->rest];
    return MS_OK;
}

static ms_err fold_micro_batch(ms_pieces *pieces)
{
    for (uint32_t i = 0; i < pieces->n && pieces->why == MS_FOLD_WHOLE; i++)
        MS_TRY(take_turn(pieces, FORWARD, i));
    for (uint32_t i = pieces->n; i-- > 0 && pieces->why == MS_FOLD_WHOLE;)
        MS_TRY(take_turn(pieces, BACKWARD, i));
    return pieces->why == MS_FOLD_WHOLE ? take_turn(pieces, TAIL, 0) : MS_OK;
}

/* Are the states those of the micro-batch's beginning?  Notes them. */
static bool is_as_before(ms_pieces *pieces)
{
    bool same = true;
    for (uint32_t i = 0; i < pieces->n; i++) {
        same &= pieces->before[i] == pieces->piece[i].state;
        pieces->before[i] = pieces->piece[i].state;
    }
    same &= pieces->before[pieces->n] == pieces->shared &&
            pieces->before[pieces->n + 1] == pieces->rest;
    pieces->before[pieces->n] = pieces->shared;
    pieces->before[pieces->n + 1] = pieces->rest;
    return same;
}

ms_err ms_pieces_fold(ms_pieces *pieces, const ms_fold_choice *choice,
                      ms_fault *fault)
{
    ms_effect before = {0};
    uint32_t left = choice->micro_batches;
    pieces->choice = choice;
    pieces->fault = fault;
    pieces->written = false;
    pieces->learnt = 0;
    pieces->n_trail = pieces->n_rounds = 0;
    pieces->why = pieces->far ? MS_FOLD_FAR : MS_FOLD_WHOLE;
    if (pieces->far)
        return MS_OK;
    MS_TRY(cut(pieces));
    is_as_before(pieces);
    while (left > 0 && pieces->why == MS_FOLD_WHOLE) {
        uint32_t times = 1;
        pieces->effect = (ms_effect){0};
        MS_TRY(fold_micro_batch(pieces));
        if (is_as_before(pieces))
            times = left;
        before = ms_effect_then(before, ms_effect_times(pieces->effect, times));
        left -= times;
        MS_TRY(end_round(pieces, times));
    }
    pieces->effect = before;
    if (pieces->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(take_turn(pieces, LAST, 0));
    return end_round(pieces, 1);
}

/* ---- opening ------------------------------------------------------------- */

ms_err ms_pieces_forget(ms_pieces *pieces, ms_fault *fault)
{
    pieces->answer = NULL;
    pieces->left = pieces->start_of = pieces->step = NULL;
    pieces->levels = pieces->step_levels = NULL;
    pieces->levels_capacity = pieces->step_levels_capacity = 0;
    pieces->n_steps = pieces->steps_capacity = 0;
    pieces->n_left = pieces->answers_capacity = pieces->left_capacity = 0;
    pieces->starts_capacity = 0;
    MS_TRY(ms_intern_open(&pieces->states, pieces->known, fault));
    MS_TRY(ms_intern_open(&pieces->questions, pieces->known, fault));
    return ms_intern_open(&pieces->starts, pieces->known, fault);
}

static ms_err take(ms_pieces *pieces, size_t n, uint32_t **column,
                   ms_fault *fault)
{
    *column = ms_arena_take(pieces->keep, n, sizeof **column);
    return *column != NULL ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_pieces_open(ms_pieces *pieces, ms_callwalk *walk, ms_arena *keep,
                      ms_arena *known, ms_fault *fault)
{
    uint32_t n_units = walk->learner.graph->n_units, *first;
    *pieces = (ms_pieces){.walk = walk, .keep = keep, .known = known};
    MS_TRY(take(pieces, n_units, &pieces->home, fault));
    MS_TRY(take(pieces, n_units, &pieces->alike, fault));
    MS_TRY(take(pieces, n_units + 2, &pieces->before, fault));
    MS_TRY(take(pieces, n_units + 1, &pieces->n_far, fault));
    MS_TRY(take(pieces, n_units, &pieces->forward_end, fault));
    MS_TRY(take(pieces, n_units, &pieces->backward_end, fault));
    MS_TRY(
        take(pieces, 2 * (size_t)n_units + HEAD_WORDS, &pieces->word, fault));
    MS_TRY(take(pieces, walk->learner.classes->n_classes, &first, fault));
    pieces->piece = ms_arena_take(keep, n_units + 1, sizeof *pieces->piece);
    if (pieces->piece == NULL)
        return ms_fail_nomem(fault);
    ms_homes_find(walk->learner.classes, n_units, first, pieces->home,
                  pieces->alike);
    find_window(pieces);
    return ms_pieces_forget(pieces, fault);
}

void ms_pieces_close(ms_pieces *pieces)
{
    ms_arena_free(&pieces->trial);
}
