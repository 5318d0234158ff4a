/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/calls/question.h"

#include "sim/fold/ops/tape.h"
#include "sim/graph.h"
#include "sim/program.h"

#define HEAD_WORDS 32u  /* verb, flags, two sets and their bases */
#define MOST_SETS 2u    /* of a call */
#define BUFFER_WORDS 5u /* of a buffer */

static size_t count_words(const ms_classes *classes)
{
    size_t parts = 2 * (size_t)classes->graph->n_units;
    return HEAD_WORDS + parts + (1 + MOST_SETS) * (size_t)classes->n_owners;
}

ms_err ms_question_open(ms_question *question, const ms_classes *classes,
                        const uint32_t *state, ms_arena *arena, ms_fault *fault)
{
    size_t parts = 2 * (size_t)classes->graph->n_units;
    size_t owners = classes->n_owners;
    *question =
        (ms_question){.classes = classes, .state = state, .arena = arena};
    question->word =
        ms_arena_grow(arena, NULL, &question->words_capacity,
                      (uint32_t)count_words(classes), sizeof(uint32_t));
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

ms_err ms_question_room(ms_question *question, uint32_t n_buffers,
                        ms_fault *fault)
{
    ms_arena *arena = question->arena;
    uint32_t n = n_buffers > 0 ? n_buffers : 1;
    size_t words = count_words(question->classes) +
                   question->classes->graph->n_storages +
                   (size_t)BUFFER_WORDS * n;
    if (words > UINT32_MAX)
        return ms_fail_nomem(fault);
    uint32_t *word =
        ms_arena_grow(arena, question->word, &question->words_capacity,
                      (uint32_t)words, sizeof *word);
    if (word == NULL)
        return ms_fail_nomem(fault);
    question->word = word;
    if (n <= question->buffers_capacity)
        return MS_OK;
    question->buffer = ms_arena_take(arena, n, sizeof(uint32_t));
    question->buffer_number = ms_arena_take(arena, n, sizeof(uint32_t));
    question->buffer_tick = ms_arena_take(arena, n, sizeof(uint64_t));
    if (question->buffer == NULL || question->buffer_number == NULL ||
        question->buffer_tick == NULL)
        return ms_fail_nomem(fault);
    question->buffers_capacity = n;
    return MS_OK;
}

void ms_question_buffer(ms_question *question, uint32_t buffer)
{
    if (question->buffer_tick[buffer] == question->tick)
        return;
    question->buffer_tick[buffer] = question->tick;
    question->buffer_number[buffer] = question->n_buffers;
    question->buffer[question->n_buffers++] = buffer;
}

static void close_owner(ms_question *question, uint32_t owner,
                        const ms_question_states *states, const ms_tape *tape)
{
    const ms_classes *classes = question->classes;
    const uint32_t *word =
        ms_intern_words(&states->words, question->state[owner]);
    for (uint32_t i = classes->cell_at[owner]; i < classes->cell_at[owner + 1];
         i++, word += states->width) {
        if (!(*word & MS_CELLS_PACKED))
            continue;
        uint32_t buffer = tape->packed[classes->cell[i]];
        ms_question_buffer(question, buffer);
        ms_question_word(question, question->buffer_number[buffer]);
    }
}

static void close_buffer(ms_question *question, uint32_t buffer,
                         const ms_tape *tape)
{
    const ms_buffer *value = &tape->plan.buffers[buffer];
    const ms_tape_buffer *now = &tape->buffer[buffer];
    bool read = now->kind > 0 && now->read != MS_NONE;
    ms_question_word(question, (uint32_t)value->bytes);
    ms_question_word(question, (uint32_t)(value->bytes >> 32));
    ms_question_word(question, value->pool | (uint32_t)value->stream << 8 |
                                   (uint32_t)value->home << 16 |
                                   (uint32_t)value->waited << 24 |
                                   (uint32_t)read << 25);
    ms_question_word(question, now->kind);
}

void ms_question_close(ms_question *question, const ms_question_states *states,
                       const ms_tape *tape)
{
    for (uint32_t i = question->n_closed_owners; i < question->n_owners; i++)
        if (states->packs[question->state[question->owner[i]]])
            close_owner(question, question->owner[i], states, tape);
    for (uint32_t i = question->n_closed_buffers; i < question->n_buffers; i++)
        close_buffer(question, question->buffer[i], tape);
    question->n_closed_owners = question->n_owners;
    question->n_closed_buffers = question->n_buffers;
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
