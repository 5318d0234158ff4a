/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/pieces/atpeak.h"

#include "sim/fold/calls/renumber.h"
#include "sim/graph.h"

#include <string.h>

/* A turn of a round, and how many times the round was gone through before. */
typedef struct place {
    uint32_t round, repeat, turn;
    int64_t above_bytes; /* the level there, above that of the start */
    bool found;          /* the level was never higher than at the start: false
                          */
} place;

static const ms_turn_answer *answer_of(ms_pieces *pieces, uint32_t turn)
{
    return ms_turnbook_answer(&pieces->book, pieces->trail[turn]);
}

static int64_t level_of_round(ms_pieces *pieces, const ms_piece_round *round)
{
    int64_t bytes = 0;
    for (uint32_t i = round->first; i < round->end; i++)
        bytes += answer_of(pieces, i)->effect.level_bytes;
    return bytes;
}

/* Where the level is the highest for the first time.  A round that leaves more
 * than it found is highest the last time. */
static place find_peak(ms_pieces *pieces)
{
    place peak = {.found = false};
    int64_t level_bytes = 0;
    for (uint32_t k = 0; k < pieces->n_rounds; k++) {
        const ms_piece_round *round = &pieces->round[k];
        int64_t rise_bytes = level_of_round(pieces, round);
        uint32_t repeat = rise_bytes > 0 ? round->times - 1 : 0;
        int64_t at_bytes = level_bytes + (int64_t)repeat * rise_bytes;
        for (uint32_t i = round->first; i < round->end; i++) {
            const ms_effect *effect = &answer_of(pieces, i)->effect;
            int64_t most_bytes = at_bytes + effect->most_bytes;
            if (most_bytes > peak.above_bytes)
                peak = (place){k, repeat, i, most_bytes, true};
            at_bytes += effect->level_bytes;
        }
        level_bytes += (int64_t)round->times * rise_bytes;
    }
    return peak;
}

/* ---- categories that change ---------------------------------------------- */

/* Does anything change its category behind a step of the peak's turn? */
static bool is_changed_later(ms_pieces *pieces, const place *peak,
                             uint32_t step)
{
    bool changes = ms_turnbook_changes(&pieces->book,
                                       answer_of(pieces, peak->turn), step + 1);
    const ms_piece_round *round = &pieces->round[peak->round];
    uint32_t first =
        peak->repeat + 1 < round->times ? round->first : peak->turn;
    for (uint32_t i = first; i < pieces->n_trail && !changes; i++)
        changes = i != peak->turn && answer_of(pieces, i)->changes;
    return changes;
}

/* ---- by category --------------------------------------------------------- */

static void add(int64_t *by_category, const int64_t *more)
{
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        by_category[c] += more[c];
}

static void add_start(ms_pieces *pieces, int64_t *by_category)
{
    const ms_learner *learner = &pieces->walk->learner;
    const ms_graph *graph = learner->graph;
    ms_piece_levels *it = &pieces->start_levels;
    if (it->numbers != learner->numbers + 1) {
        *it = (ms_piece_levels){.numbers = learner->numbers + 1};
        for (uint32_t s = 0; s < graph->n_persistent; s++)
            if (graph->storage_at_start[s])
                it->bytes[graph->storage_category[s]] +=
                    (int64_t)graph->storage_bytes[s];
    }
    add(by_category, it->bytes);
}

static void read_step(const ms_learner *learner, uint32_t step,
                      const int64_t *until_bytes, int64_t *by_category)
{
    uint32_t recipe = learner->answer[step].recipe;
    if (recipe != MS_NONE)
        ms_recipe_add(&learner->recipes, recipe, learner->graph, until_bytes,
                      by_category);
}

static void add_step(ms_pieces *pieces, uint32_t step, int64_t *by_category)
{
    const ms_learner *learner = &pieces->walk->learner;
    ms_piece_levels *it = &pieces->step_levels[step];
    if (it->numbers != learner->numbers + 1) {
        *it = (ms_piece_levels){.numbers = learner->numbers + 1};
        read_step(learner, step, NULL, it->bytes);
    }
    add(by_category, it->bytes);
}

static void add_turn(ms_pieces *pieces, uint32_t turn, int64_t *by_category)
{
    const ms_turn_answer *answer = answer_of(pieces, turn);
    ms_piece_levels *it = &pieces->levels[pieces->trail[turn]];
    if (it->numbers != answer->numbers + 1) {
        *it = (ms_piece_levels){.numbers = answer->numbers + 1};
        for (uint32_t i = 0; i < answer->n_steps; i++)
            add_step(pieces, pieces->book.step[answer->first_step + i],
                     it->bytes);
    }
    add(by_category, it->bytes);
}

/* What comes before the peak's turn. */
static void add_turns(ms_pieces *pieces, const place *peak,
                      int64_t *by_category)
{
    for (uint32_t k = 0; k <= peak->round; k++) {
        const ms_piece_round *round = &pieces->round[k];
        uint32_t times = k < peak->round ? round->times : peak->repeat;
        int64_t once[MS_N_CATEGORIES] = {0};
        for (uint32_t i = round->first; i < round->end && times > 0; i++)
            add_turn(pieces, i, once);
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            by_category[c] += (int64_t)times * once[c];
    }
    for (uint32_t i = pieces->round[peak->round].first; i < peak->turn; i++)
        add_turn(pieces, i, by_category);
}

/* Within the turn, up to the op; *at: its step. */
static void add_within(ms_pieces *pieces, const place *peak,
                       int64_t *by_category, uint32_t *at)
{
    ms_learner *learner = &pieces->walk->learner;
    const ms_turn_answer *answer = answer_of(pieces, peak->turn);
    int64_t level_bytes = 0;
    for (uint32_t i = 0; i < answer->n_steps; i++) {
        uint32_t step = pieces->book.step[answer->first_step + i];
        const ms_effect *effect = &ms_renumber_answer(learner, step)->effect;
        int64_t left_bytes = answer->effect.most_bytes - level_bytes;
        bool here = effect->most_bytes == left_bytes;
        *at = i;
        if (here) {
            read_step(learner, step, &left_bytes, by_category);
            return;
        }
        add_step(pieces, step, by_category);
        level_bytes += effect->level_bytes;
    }
}

/* Entries behind those that there were are not known yet. */
static bool widen(ms_arena *arena, ms_piece_levels **levels, uint32_t *capacity,
                  uint32_t n)
{
    uint32_t before = *capacity;
    ms_piece_levels *grown =
        ms_arena_grow(arena, *levels, capacity, n + 1, sizeof *grown);
    if (grown == NULL)
        return false;
    *levels = grown;
    if (*capacity > before)
        memset(grown + before, 0, (*capacity - before) * sizeof *grown);
    return true;
}

static bool make_room(ms_pieces *pieces)
{
    return widen(pieces->known, &pieces->levels, &pieces->levels_capacity,
                 pieces->book.questions.n) &&
           widen(pieces->known, &pieces->step_levels,
                 &pieces->step_levels_capacity,
                 pieces->walk->learner.questions.n);
}

bool ms_atpeak_find(ms_pieces *pieces, uint64_t by_category[MS_N_CATEGORIES])
{
    const ms_learner *learner = &pieces->walk->learner;
    int64_t level_bytes[MS_N_CATEGORIES] = {0};
    place peak = find_peak(pieces);
    uint32_t step = 0;
    if (learner->recipes.fixed || !peak.found || !make_room(pieces))
        return false;
    add_start(pieces, level_bytes);
    add_turns(pieces, &peak, level_bytes);
    add_within(pieces, &peak, level_bytes, &step);
    if (is_changed_later(pieces, &peak, step))
        return false;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        by_category[c] = (uint64_t)level_bytes[c];
    return true;
}
