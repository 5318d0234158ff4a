/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/pieces/unitturns.h"

#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

/* What is done of a unit: a turn of the choice, or a stage of its replay. */
typedef enum unit_turn {
    UNIT_FORWARD = MS_N_CHOICE_TURNS,
    UNIT_OPEN,
    UNIT_WANT,
    UNIT_RUN,
    UNIT_STATE,
    UNIT_END,
    UNIT_BACKWARD,
    UNIT_TAIL,
    UNIT_LAST
} unit_turn;

#define HEAD_WORDS 12u
#define LEFT_WORDS 3u /* shared, rest, and the replay */

static ms_learner *learner_of(const ms_unitturns *units)
{
    return &units->calls->walk->learner;
}

/* ---- the calls of a turn ------------------------------------------------- */

static ms_choice_turn choice_turn_of(unit_turn turn)
{
    switch (turn) {
    case UNIT_FORWARD:
        return MS_CHOICE_FORWARD;
    case UNIT_TAIL:
        return MS_CHOICE_TAIL;
    case UNIT_LAST:
        return MS_CHOICE_LAST;
    default:
        return MS_CHOICE_BACKWARD;
    }
}

static ms_bind_stage stage_of(unit_turn turn)
{
    switch (turn) {
    case UNIT_OPEN:
        return MS_BIND_OPEN;
    case UNIT_WANT:
        return MS_BIND_WANT;
    case UNIT_RUN:
        return MS_BIND_RUN;
    case UNIT_STATE:
        return MS_BIND_STATE;
    case UNIT_END:
        return MS_BIND_END;
    default:
        return MS_N_BIND_STAGES;
    }
}

/* The replay of a segment stands among the calls of its last unit. */
static ms_err walk_turn(ms_unitturns *units, unit_turn turn, uint32_t unit)
{
    ms_callwalk *walk = units->calls->walk;
    ms_bind_stage stage = stage_of(turn);
    bool replays = stage != MS_N_BIND_STAGES;
    uint32_t at = replays ? units->end - 1 : unit, from, until;
    MS_TRY(ms_choicecalls_find(units->calls, choice_turn_of(turn), at, at + 1,
                               &from, &until, units->fault));
    walk->strayed = false;
    walk->since = (ms_effect){0};
    walk->notes = true;
    walk->n_steps = 0;
    walk->replay = units->replays ? units->first : MS_NONE;
    walk->replay_state = units->replay_state;
    for (; from < until && walk->why == MS_FOLD_WHOLE; from++) {
        const ms_call *call = &units->calls->program.calls[from];
        if (replays && call->verb == MS_RERUN)
            MS_TRY(ms_callwalk_stage(walk, call, stage, unit));
        else if (!replays && call->verb != MS_RERUN)
            MS_TRY(ms_callwalk_call(walk, call));
    }
    units->replays = walk->replay != MS_NONE;
    units->replay_state = walk->replay_state;
    units->why = walk->why;
    units->strayed = walk->strayed;
    return MS_OK;
}

/* ---- one turn ------------------------------------------------------------ */

/* A question about units [low, high), the first of which is seen from unit. */
static uint32_t ask(ms_unitturns *units, unit_turn turn, uint32_t unit,
                    uint32_t low, uint32_t high)
{
    const ms_learner *learner = learner_of(units);
    uint32_t *word = units->word, n = 0, n_states = high - low;
    word[n++] =
        (uint32_t)turn << 8 | (uint32_t)units->calls->choice->early_stop << 2 |
        (uint32_t)units->replays << 3 | (uint32_t)units->replay_state << 4;
    word[n++] = ms_homes_shape(units->homes, low, high);
    word[n++] = unit - low;
    word[n++] = n_states;
    memcpy(word + n, learner->now + low, n_states * sizeof *word);
    n += n_states;
    word[n++] = learner->now[learner->classes->shared];
    word[n++] = learner->now[learner->classes->rest];
    return n;
}

/* Where the units of a window are cut. */
static uint32_t ask_cuts(ms_unitturns *units, uint32_t low, uint32_t high,
                         uint32_t n)
{
    uint32_t n_words = (high - low + 3) / 4;
    units->word[n + n_words - 1] = 0;
    memcpy(units->word + n, units->cut + low, high - low);
    return n + n_words;
}

static ms_err learn(ms_unitturns *units, unit_turn turn, uint32_t unit,
                    uint32_t low, uint32_t high, uint32_t n_words, uint32_t *id)
{
    ms_callwalk *walk = units->calls->walk;
    const ms_learner *learner = learner_of(units);
    uint32_t *left = units->left, n = high - low;
    walk->all = turn == UNIT_TAIL || turn == UNIT_LAST;
    walk->low = low;
    walk->high = high;
    MS_TRY(walk_turn(units, turn, unit));
    if (units->strayed || units->why != MS_FOLD_WHOLE)
        return MS_OK;
    memcpy(left, learner->now + low, n * sizeof *left);
    left[n] = learner->now[learner->classes->shared];
    left[n + 1] = learner->now[learner->classes->rest];
    left[n + 2] = (uint32_t)units->replays | (uint32_t)units->replay_state << 1;
    const ms_turn_learnt learnt = {.effect = walk->since,
                                   .left = left,
                                   .step = walk->steps,
                                   .n_left = n + LEFT_WORDS,
                                   .n_steps = walk->n_steps};
    return ms_turnbook_add(units->book, units->word, n_words, &learnt, id,
                           units->fault);
}

static void take_left(ms_unitturns *units, const ms_turn_answer *answer,
                      uint32_t low)
{
    ms_learner *learner = learner_of(units);
    const uint32_t *left = units->book->left + answer->first;
    uint32_t n = answer->n - LEFT_WORDS;
    memcpy(learner->now + low, left, n * sizeof *left);
    learner->now[learner->classes->shared] = left[n];
    learner->now[learner->classes->rest] = left[n + 1];
    units->replays = (left[n + 2] & 1u) != 0;
    units->replay_state = left[n + 2] >> 1 != 0;
}

static ms_err make_room(ms_unitturns *units, uint64_t more)
{
    uint64_t most = units->n_steps + more + 1;
    uint32_t *steps =
        most > UINT32_MAX
            ? NULL
            : ms_arena_grow(units->keep, units->step, &units->steps_capacity,
                            (uint32_t)most, sizeof *steps);
    if (steps == NULL)
        return ms_fail_nomem(units->fault);
    units->step = steps;
    return MS_OK;
}

static void put_steps(ms_unitturns *units, const uint32_t *step, uint32_t n)
{
    if (n > 0)
        memcpy(units->step + units->n_steps, step, n * sizeof *step);
    units->n_steps += n;
}

static ms_err take(ms_unitturns *units, unit_turn turn, uint32_t unit,
                   uint32_t *id)
{
    const ms_learner *learner = learner_of(units);
    uint32_t n_units = learner->graph->n_units, window = units->window, n;
    uint32_t low = unit > window ? unit - window : 0;
    uint32_t high = unit + window < n_units ? unit + window + 1 : n_units;
    if (turn == UNIT_TAIL || turn == UNIT_LAST) {
        low = 0;
        high = n_units;
        n = ask(units, turn, unit, low, high);
    } else {
        n = ask_cuts(units, low, high, ask(units, turn, unit, low, high));
    }
    *id = ms_intern_find(&units->book->questions, units->word, n);
    if (*id == MS_NONE)
        MS_TRY(learn(units, turn, unit, low, high, n, id));
    if (units->strayed || units->why != MS_FOLD_WHOLE)
        return MS_OK;
    const ms_turn_answer *answer = ms_turnbook_answer(units->book, *id);
    take_left(units, answer, low);
    units->effect = ms_effect_then(units->effect, answer->effect);
    MS_TRY(make_room(units, answer->n_steps));
    put_steps(units, units->book->step + answer->first_step, answer->n_steps);
    return MS_OK;
}

/* ---- periods ------------------------------------------------------------- */

/* How many periods of p units behind a unit, of which `most` are left, ask what
 * the one before them has asked: what each window gains is as it was then. */
static uint32_t count_periods(const ms_unitturns *units, bool back,
                              uint32_t unit, uint32_t p, uint32_t most)
{
    uint32_t window = units->window, i = 1;
    uint32_t n_units = learner_of(units)->graph->n_units;
    for (; i <= most; i++) {
        if (back ? unit < i + window : unit + i + window >= n_units)
            break;
        uint32_t x = back ? unit - i - window : unit + i + window;
        uint32_t y = back ? x + p : x - p, n = 2 * window;
        uint32_t low = back ? x : x - n, then = back ? y : y - n;
        if (units->cut[x] != units->cut[y] ||
            units->then[x] != units->then[y] ||
            ms_homes_shape(units->homes, low, low + n + 1) !=
                ms_homes_shape(units->homes, then, then + n + 1))
            break;
    }
    return (i - 1) / p;
}

/* The states that so many units behind a unit leave, of which each p do what
 * the p before them did. */
static void leap_states(ms_unitturns *units, bool back, uint32_t unit,
                        uint32_t p, uint32_t n)
{
    uint32_t *now = learner_of(units)->now, window = units->window;
    uint32_t *at = now + unit - window, width = 2 * window + 1;
    memcpy(units->left, at, width * sizeof *at);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = back ? unit + window - 1 - i : unit - window + 1 + i;
        now[x] = now[back ? x + p : x - p];
    }
    memcpy(back ? at - n : at + n, units->left, width * sizeof *at);
}

/* The period that a turn ends, if it has the answer of one before it in the
 * pass: its turns. */
static uint32_t note_taken(ms_unitturns *units, uint32_t id, uint32_t step)
{
    ms_turn_answer *answer = &units->book->answer[id];
    uint32_t at = units->n_taken++;
    uint32_t period = answer->pass == units->pass ? at - answer->at : 0;
    units->taken[at] = (ms_unitturns_taken){id, step};
    answer->pass = units->pass;
    answer->at = at;
    return period;
}

/* Leaps over as many periods of p units behind a unit as are like the last one;
 * *leapt: units. */
static ms_err leap(ms_unitturns *units, bool back, uint32_t unit, uint32_t p,
                   uint32_t most, uint32_t *leapt)
{
    uint32_t times = count_periods(units, back, unit, p, most);
    const ms_unitturns_taken *taken = units->taken + units->n_taken - p;
    ms_effect effect = {0};
    *leapt = times * p;
    if (times == 0)
        return MS_OK;
    for (uint32_t i = 0; i < p; i++)
        effect =
            ms_effect_then(effect, units->book->answer[taken[i].answer].effect);
    units->effect =
        ms_effect_then(units->effect, ms_effect_times(effect, times));
    uint32_t n_steps = units->n_steps - taken->step;
    MS_TRY(make_room(units, (uint64_t)n_steps * times));
    for (uint32_t i = 0; i < times; i++)
        put_steps(units, units->step + taken->step, n_steps);
    leap_states(units, back, unit, p, *leapt);
    units->repeated += *leapt;
    units->pass++;
    units->n_taken = 0;
    return MS_OK;
}

/* ---- passes -------------------------------------------------------------- */

static bool goes_on(const ms_unitturns *units)
{
    return !units->strayed && units->why == MS_FOLD_WHOLE;
}

static void begin_pass(ms_unitturns *units)
{
    const ms_learner *learner = learner_of(units);
    uint32_t window = units->window, n_units = learner->graph->n_units;
    uint32_t low = units->first > window ? units->first - window : 0;
    uint32_t high =
        units->end + window < n_units ? units->end + window : n_units;
    memcpy(units->then + low, learner->now + low,
           (high - low) * sizeof *units->then);
    units->pass++;
    units->n_taken = 0;
}

/* A turn of each unit of the piece. */
static ms_err pass(ms_unitturns *units, unit_turn turn)
{
    bool back = turn == UNIT_WANT || turn == UNIT_BACKWARD;
    uint32_t n = units->end - units->first, leapt = 0;
    begin_pass(units);
    for (uint32_t i = 0; i < n && goes_on(units); i += 1 + leapt) {
        uint32_t unit = back ? units->end - 1 - i : units->first + i, id;
        uint32_t step = units->n_steps;
        leapt = 0;
        MS_TRY(take(units, turn, unit, &id));
        uint32_t period = goes_on(units) ? note_taken(units, id, step) : 0;
        if (period > 0)
            MS_TRY(leap(units, back, unit, period, n - 1 - i, &leapt));
    }
    return MS_OK;
}

static ms_err take_one(ms_unitturns *units, unit_turn turn, uint32_t unit)
{
    uint32_t id;
    return goes_on(units) ? take(units, turn, unit, &id) : MS_OK;
}

/* As callwalk.c takes the stages of a RERUN. */
static ms_err replay(ms_unitturns *units)
{
    const ms_graph *graph = learner_of(units)->graph;
    if (graph->unit_state != NULL)
        MS_TRY(take_one(units, UNIT_OPEN, units->first));
    units->replays = true;
    if (units->calls->choice->early_stop)
        MS_TRY(pass(units, UNIT_WANT));
    MS_TRY(pass(units, UNIT_RUN));
    units->strayed |= !units->replays; /* it has ended before its end */
    if (units->replay_state)
        MS_TRY(take_one(units, UNIT_STATE, units->first));
    MS_TRY(pass(units, UNIT_END));
    units->replays = units->replay_state = false;
    return MS_OK;
}

static void set_piece(ms_unitturns *units, uint32_t first, uint32_t end)
{
    units->first = first;
    units->end = end;
    units->replays = units->replay_state = false;
}

ms_err ms_unitturns_forward(ms_unitturns *units, uint32_t first, uint32_t end)
{
    set_piece(units, first, end);
    return pass(units, UNIT_FORWARD);
}

ms_err ms_unitturns_backward(ms_unitturns *units, uint32_t first, uint32_t end)
{
    set_piece(units, first, end);
    if (units->cut[first] & MS_UNITTURNS_SEGMENT)
        MS_TRY(replay(units));
    return pass(units, UNIT_BACKWARD);
}

ms_err ms_unitturns_end(ms_unitturns *units, ms_choice_turn turn)
{
    set_piece(units, 0, learner_of(units)->graph->n_units);
    return take_one(units, turn == MS_CHOICE_TAIL ? UNIT_TAIL : UNIT_LAST, 0);
}

/* ---- opening ------------------------------------------------------------- */

void ms_unitturns_begin(ms_unitturns *units, ms_fault *fault)
{
    units->effect = (ms_effect){0};
    units->n_steps = units->repeated = 0;
    units->why = MS_FOLD_WHOLE;
    units->strayed = false;
    units->fault = fault;
}

ms_err ms_unitturns_open(ms_unitturns *units, ms_choicecalls *calls,
                         ms_turnbook *book, const ms_homes *homes,
                         uint32_t window, ms_arena *keep, ms_fault *fault)
{
    uint32_t n_units = calls->walk->learner.graph->n_units;
    *units = (ms_unitturns){.calls = calls,
                            .book = book,
                            .homes = homes,
                            .keep = keep,
                            .window = window};
    units->cut = ms_arena_take(keep, n_units, sizeof *units->cut);
    units->then = ms_arena_take(keep, n_units, sizeof *units->then);
    units->taken = ms_arena_take(keep, n_units, sizeof *units->taken);
    units->word = ms_arena_take(keep, 2 * (size_t)n_units + HEAD_WORDS,
                                sizeof *units->word);
    units->left = ms_arena_take(keep, (size_t)n_units + 2 * window + HEAD_WORDS,
                                sizeof *units->left);
    return units->cut && units->then && units->taken && units->word &&
                   units->left
               ? MS_OK
               : ms_fail_nomem(fault);
}
