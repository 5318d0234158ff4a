/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/pieces/pieces.h"

#include "sim/graph.h"

#include <assert.h>
#include <string.h>

#define HEAD_WORDS 12u
#define MOST_REACH 7u /* two bits for each unit of a window in a word */

/* ---- how far units reach ------------------------------------------------- */

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
            reach =
                reach_of_reads(pieces, u, (ms_class_side)side, false, reach);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        reach_of_reads(pieces, u, MS_CLASS_BACKWARD, true, reach);
        pieces->n_far[u + 1] += pieces->n_far[u];
    }
    pieces->window = 2 * reach;
    pieces->far = reach > MOST_REACH ||
                  graph->backward_at[0] == graph->backward_at[graph->n_units];
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

static ms_err read_left(ms_pieces *pieces, uint32_t first, uint32_t end)
{
    const ms_learner *learner = &pieces->walk->learner;
    uint32_t *left = pieces->left;
    for (uint32_t i = first; i < end; i++) {
        const ms_piece *piece = &pieces->piece[i];
        MS_TRY(ms_intern_add(&pieces->states, learner->now + piece->first,
                             piece->end - piece->first, left++, pieces->fault));
    }
    left[0] = learner->now[learner->classes->shared];
    left[1] = learner->now[learner->classes->rest];
    return MS_OK;
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

static void ask_piece(ms_pieces *pieces, ms_choice_turn turn, uint32_t piece)
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
    word[1] = ms_homes_shape(&pieces->homes, low, high);
    word[2] = it->first - low;
    word[3] = high - it->end;
    word[4] = it->end - it->first;
    word[5] = cuts_before(pieces, piece);
    word[6] = cuts_behind(pieces, piece);
    pieces->n_words = 7;
}

/* The end of a micro-batch and of the step may touch everything. */
static void ask_everything(ms_pieces *pieces, ms_choice_turn turn)
{
    uint32_t *word = pieces->word;
    word[0] = (uint32_t)turn << 8 | (uint32_t)pieces->choice->reentrant << 1 |
              (uint32_t)pieces->choice->early_stop << 2;
    pieces->n_words = 1;
    for (uint32_t i = 0; i < pieces->n; i++)
        word[pieces->n_words++] =
            pieces->piece[i].first << 1 | (uint32_t)pieces->piece[i].segment;
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

/* ---- a turn that is new -------------------------------------------------- */

static void note_cuts(ms_pieces *pieces)
{
    for (uint32_t i = 0; i < pieces->n && !pieces->is_cut; i++) {
        const ms_piece *piece = &pieces->piece[i];
        uint8_t *cut = pieces->units.cut;
        uint8_t in = piece->segment ? MS_UNITTURNS_SEGMENT : 0;
        memset(cut + piece->first, in, piece->end - piece->first);
        cut[piece->first] |= MS_UNITTURNS_FIRST;
    }
    pieces->is_cut = true;
}

static ms_err learn_units(ms_pieces *pieces, ms_choice_turn turn,
                          const ms_piece *piece, ms_turn_learnt *learnt)
{
    ms_unitturns *units = &pieces->units;
    note_cuts(pieces);
    ms_unitturns_begin(units, pieces->fault);
    if (turn == MS_CHOICE_FORWARD)
        MS_TRY(ms_unitturns_forward(units, piece->first, piece->end));
    else if (turn == MS_CHOICE_BACKWARD)
        MS_TRY(ms_unitturns_backward(units, piece->first, piece->end));
    else
        MS_TRY(ms_unitturns_end(units, turn));
    pieces->why = units->why;
    pieces->strayed = units->strayed;
    pieces->repeated += units->repeated;
    *learnt = (ms_turn_learnt){.effect = units->effect,
                               .step = units->step,
                               .n_steps = units->n_steps};
    return MS_OK;
}

/* By the calls of pieces [first, end), which may touch each other. */
static ms_err learn_calls(ms_pieces *pieces, ms_choice_turn turn,
                          const ms_piece *piece, uint32_t first, uint32_t end,
                          ms_turn_learnt *learnt)
{
    ms_callwalk *walk = pieces->walk;
    const ms_choicecalls *calls = &pieces->calls;
    uint32_t at, until;
    MS_TRY(ms_choicecalls_find(&pieces->calls, turn, piece->first, piece->end,
                               &at, &until, pieces->fault));
    walk->all = first == 0 && end == pieces->n;
    walk->strayed = false;
    walk->low = pieces->piece[first].first;
    walk->high = pieces->piece[end - 1].end;
    walk->since = (ms_effect){0};
    walk->notes = true;
    walk->n_steps = 0;
    for (; at < until && walk->why == MS_FOLD_WHOLE; at++)
        MS_TRY(ms_callwalk_call(walk, &calls->program.calls[at]));
    pieces->why = walk->strayed ? MS_FOLD_FAR : walk->why;
    *learnt = (ms_turn_learnt){
        .effect = walk->since, .step = walk->steps, .n_steps = walk->n_steps};
    return MS_OK;
}

static ms_err learn(ms_pieces *pieces, ms_choice_turn turn, uint32_t piece,
                    uint32_t first, uint32_t end, uint32_t *id)
{
    const ms_piece *it = &pieces->piece[piece];
    ms_turn_learnt learnt;
    bool by_units = !pieces->choice->reentrant && !pieces->strayed;
    set_up(pieces, first, end);
    if (by_units)
        MS_TRY(learn_units(pieces, turn, it, &learnt));
    if (by_units && pieces->strayed)
        set_up(pieces, first, end);
    if (!by_units || pieces->strayed)
        MS_TRY(learn_calls(pieces, turn, it, first, end, &learnt));
    if (pieces->why != MS_FOLD_WHOLE)
        return MS_OK;
    pieces->learnt++;
    MS_TRY(read_left(pieces, first, end));
    learnt.left = pieces->left;
    learnt.n_left = end - first + 2;
    return ms_turnbook_add(&pieces->book, pieces->word, pieces->n_words,
                           &learnt, id, pieces->fault);
}

/* ---- turns --------------------------------------------------------------- */

static ms_err take_turn(ms_pieces *pieces, ms_choice_turn turn, uint32_t piece)
{
    uint32_t first = 0, end = pieces->n;
    if (turn == MS_CHOICE_FORWARD || turn == MS_CHOICE_BACKWARD) {
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
        ms_intern_find(&pieces->book.questions, pieces->word, pieces->n_words);
    if (id == MS_NONE)
        MS_TRY(learn(pieces, turn, piece, first, end, &id));
    if (pieces->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(note_turn(pieces, id));
    const ms_turn_answer *answer = ms_turnbook_answer(&pieces->book, id);
    const uint32_t *left = pieces->book.left + answer->first;
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
    uint32_t words[2] = {ms_homes_shape(&pieces->homes, first, end),
                         end - first};
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
        MS_TRY(take_turn(pieces, MS_CHOICE_FORWARD, i));
    for (uint32_t i = pieces->n; i-- > 0 && pieces->why == MS_FOLD_WHOLE;)
        MS_TRY(take_turn(pieces, MS_CHOICE_BACKWARD, i));
    return pieces->why == MS_FOLD_WHOLE ? take_turn(pieces, MS_CHOICE_TAIL, 0)
                                        : MS_OK;
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
    pieces->is_cut = false;
    pieces->learnt = pieces->repeated = 0;
    ms_choicecalls_begin(&pieces->calls, choice);
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
    MS_TRY(take_turn(pieces, MS_CHOICE_LAST, 0));
    return end_round(pieces, 1);
}

/* ---- opening ------------------------------------------------------------- */

ms_err ms_pieces_forget(ms_pieces *pieces, ms_fault *fault)
{
    pieces->start_of = NULL;
    pieces->levels = pieces->step_levels = NULL;
    pieces->levels_capacity = pieces->step_levels_capacity = 0;
    pieces->starts_capacity = 0;
    MS_TRY(ms_turnbook_open(&pieces->book, &pieces->walk->learner,
                            pieces->known, fault));
    MS_TRY(ms_intern_open(&pieces->states, pieces->known, fault));
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
    uint32_t n_units = walk->learner.graph->n_units;
    *pieces = (ms_pieces){.walk = walk, .keep = keep, .known = known};
    MS_TRY(take(pieces, n_units + 2, &pieces->before, fault));
    MS_TRY(take(pieces, n_units + 2, &pieces->left, fault));
    MS_TRY(take(pieces, n_units + 1, &pieces->n_far, fault));
    MS_TRY(
        take(pieces, 2 * (size_t)n_units + HEAD_WORDS, &pieces->word, fault));
    pieces->piece = ms_arena_take(keep, n_units + 1, sizeof *pieces->piece);
    if (pieces->piece == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_homes_find(&pieces->homes, walk->learner.classes, n_units, keep,
                         fault));
    find_window(pieces);
    MS_TRY(ms_choicecalls_open(&pieces->calls, walk, keep, fault));
    MS_TRY(ms_unitturns_open(&pieces->units, &pieces->calls, &pieces->book,
                             &pieces->homes, pieces->window, keep, fault));
    return ms_pieces_forget(pieces, fault);
}

void ms_pieces_close(ms_pieces *pieces)
{
    ms_choicecalls_close(&pieces->calls);
}
