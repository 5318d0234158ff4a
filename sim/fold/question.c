/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/question.h"

#include "sim/graph.h"

#define HEAD_WORDS 16u /* verb, flags, two sets and their bases */
#define MOST_SETS 2u   /* of a call */

ms_err ms_question_open(ms_question *question, const ms_classes *classes,
                        const uint32_t *state, ms_arena *arena, ms_fault *fault)
{
    size_t parts = 2 * (size_t)classes->graph->n_units;
    size_t owners = classes->n_owners;
    size_t words = HEAD_WORDS + parts + (1 + MOST_SETS) * owners;
    *question = (ms_question){.classes = classes, .state = state};
    question->word = ms_arena_take(arena, words, sizeof(uint32_t));
    question->owner = ms_arena_take(arena, owners, sizeof(uint32_t));
    question->part = ms_arena_take(arena, parts, sizeof(uint32_t));
    question->owner_tick = ms_arena_take(arena, owners, sizeof(uint64_t));
    question->part_tick = ms_arena_take(arena, parts, sizeof(uint64_t));
    if (question->word == NULL || question->owner == NULL ||
        question->part == NULL || question->owner_tick == NULL ||
        question->part_tick == NULL)
        return ms_fail_nomem(fault);
    return MS_OK;
}

void ms_question_names(ms_question *question, const ms_question_set *set,
                       const int32_t *owners, uint32_t n)
{
    const ms_classes *classes = question->classes;
    ms_question_word(question, set->id);
    ms_question_word(question, set->base - question->base);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t owner = ms_classes_owner(classes, set->base, owners[i]);
        ms_question_word(question, classes->kind[owner]);
        ms_question_owner(question, owner);
    }
}

void ms_question_everything(ms_question *question)
{
    question->whole = true;
    ms_question_word(question, question->base);
    for (uint32_t owner = 0; owner < question->classes->n_owners; owner++)
        ms_question_owner(question, owner);
}
