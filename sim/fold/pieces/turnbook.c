/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/pieces/turnbook.h"

#include "sim/fold/calls/renumber.h"

#include <string.h>

ms_err ms_turnbook_open(ms_turnbook *book, ms_learner *learner, ms_arena *known,
                        ms_fault *fault)
{
    *book = (ms_turnbook){.learner = learner, .known = known};
    return ms_intern_open(&book->questions, known, fault);
}

static bool put(ms_arena *known, const uint32_t *more, uint32_t n,
                uint32_t **list, uint32_t *n_list, uint32_t *capacity)
{
    uint32_t *grown =
        ms_arena_grow(known, *list, capacity, *n_list + n + 1, sizeof *grown);
    if (grown == NULL)
        return false;
    if (n > 0)
        memcpy(grown + *n_list, more, n * sizeof *grown);
    *list = grown;
    *n_list += n;
    return true;
}

bool ms_turnbook_changes(const ms_turnbook *book, const ms_turn_answer *answer,
                         uint32_t from)
{
    const ms_learner *learner = book->learner;
    const uint32_t *step = book->step + answer->first_step;
    bool changes = false;
    for (uint32_t i = from; i < answer->n_steps && !changes; i++) {
        uint32_t recipe = learner->answer[step[i]].recipe;
        changes =
            recipe != MS_NONE && ms_recipe_changes(&learner->recipes, recipe);
    }
    return changes;
}

ms_err ms_turnbook_add(ms_turnbook *book, const uint32_t *words, uint32_t n,
                       const ms_turn_learnt *learnt, uint32_t *id,
                       ms_fault *fault)
{
    ms_turn_answer answer = {.effect = learnt->effect,
                             .first = book->n_left,
                             .n = learnt->n_left,
                             .first_step = book->n_steps,
                             .n_steps = learnt->n_steps,
                             .numbers = book->learner->numbers};
    MS_TRY(ms_intern_add(&book->questions, words, n, id, fault));
    ms_turn_answer *answers =
        ms_arena_grow(book->known, book->answer, &book->answers_capacity,
                      *id + 1, sizeof *answers);
    if (answers == NULL ||
        !put(book->known, learnt->left, learnt->n_left, &book->left,
             &book->n_left, &book->left_capacity) ||
        !put(book->known, learnt->step, learnt->n_steps, &book->step,
             &book->n_steps, &book->steps_capacity))
        return ms_fail_nomem(fault);
    answer.changes = ms_turnbook_changes(book, &answer, 0);
    book->answer = answers;
    answers[*id] = answer;
    return MS_OK;
}

ms_turn_answer *ms_turnbook_answer(ms_turnbook *book, uint32_t id)
{
    ms_learner *learner = book->learner;
    ms_turn_answer *answer = &book->answer[id];
    if (answer->numbers == learner->numbers)
        return answer;
    const uint32_t *step = book->step + answer->first_step;
    answer->effect = (ms_effect){0};
    for (uint32_t i = 0; i < answer->n_steps; i++)
        answer->effect = ms_effect_then(
            answer->effect, ms_renumber_answer(learner, step[i])->effect);
    answer->numbers = learner->numbers;
    return answer;
}
