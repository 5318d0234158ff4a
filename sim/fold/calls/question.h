/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_QUESTION_H
#define MS_SIM_QUESTION_H

/* Private to sim/fold: what a call asks of a graph, in words: its verb and
 * flags, the classes of the sides of units that it may run (its parts), the
 * storages that it names, and the states of all owners of which these touch
 * storages.  Calls that ask the same get the same from expand.
 *
 * A worked example: the forward of unit 7 that keeps nothing asks
 *
 *     RUN forward, keep nothing, hold nothing | class 3 | states 5 and 0
 *
 * of owners -1 and 0; where its input is not here, the forward of unit 6 is a
 * part, too, which is asked once the state 5 was found to lack it. */

#include "sim/fold/classes/classes.h"

/* A set of a program, counted from the unit that owns the first of it. */
typedef struct ms_question_set {
    uint32_t id;   /* of its content, or MS_NONE: not asked yet */
    uint32_t base; /* that unit; 0 where there is none */
} ms_question_set;

typedef struct ms_question {
    const ms_classes *classes;
    const uint32_t *state; /* per owner: the number of its state */
    uint32_t base;         /* the unit from which others are counted */
    bool whole;            /* it asks the state of every owner */
    uint32_t *word, n_words;
    uint32_t *owner, n_owners; /* whose states are asked */
    uint32_t *part, n_parts;   /* unit << 1 | side */
    uint64_t *owner_tick, *part_tick, tick;
    /* Buffers of the program, in the order in which they are asked of: a call
     * knows them by their number in this list. */
    uint32_t *buffer, n_buffers;
    uint32_t *buffer_number; /* per buffer of the program, and: */
    uint64_t *buffer_tick;
    uint32_t buffers_capacity, words_capacity;
    uint32_t n_closed_owners, n_closed_buffers; /* see ms_question_close */
    ms_arena *arena;
} ms_question;

ms_err ms_question_open(ms_question *question, const ms_classes *classes,
                        const uint32_t *state, ms_arena *arena,
                        ms_fault *fault);

static inline void ms_question_begin(ms_question *question, uint32_t base)
{
    question->base = base;
    question->whole = false;
    question->n_words = question->n_owners = question->n_parts = 0;
    question->n_buffers = 0;
    question->n_closed_owners = question->n_closed_buffers = 0;
    question->tick++;
}

static inline void ms_question_word(ms_question *question, uint32_t word)
{
    question->word[question->n_words++] = word;
}

static inline void ms_question_owner(ms_question *question, uint32_t owner)
{
    if (question->owner_tick[owner] == question->tick)
        return;
    question->owner_tick[owner] = question->tick;
    question->owner[question->n_owners++] = owner;
    ms_question_word(question, question->state[owner]);
}

static inline bool ms_question_has(const ms_question *question, uint32_t part)
{
    return question->part_tick[part] == question->tick;
}

/* One side of a unit, with its owners; once. */
static inline void ms_question_part(ms_question *question, uint32_t unit,
                                    ms_class_side side)
{
    const ms_classes *classes = question->classes;
    uint32_t part = unit << 1 | (uint32_t)side, id = classes->of[side][unit];
    const ms_class *class = &classes->classes[id];
    if (ms_question_has(question, part))
        return;
    question->part_tick[part] = question->tick;
    question->part[question->n_parts++] = part;
    ms_question_word(question, id);
    for (uint32_t i = 0; i < class->n_owners; i++)
        ms_question_owner(question,
                          ms_classes_owner(classes, unit, class->owner[i]));
}

/* Room for the buffers of a program. */
ms_err ms_question_room(ms_question *question, uint32_t n_buffers,
                        ms_fault *fault);
/* A buffer of the program. */
void ms_question_buffer(ms_question *question, uint32_t buffer);
/* Its number. */
static inline uint32_t ms_question_local(const ms_question *question,
                                         uint32_t buffer)
{
    return question->buffer_number[buffer];
}
/* States by number: their words, width of them for each storage; packs: have
 * any of its storages been packed in a buffer? */
typedef struct ms_question_states {
    ms_intern words;
    uint8_t *packs;
    uint32_t width, capacity; /* of packs */
} ms_question_states;
/* With several streams, once all is asked: in which buffers owners have packed
 * what, and the states of these.  It may go on asking, and close again. */
struct ms_tape;
void ms_question_close(ms_question *question, const ms_question_states *states,
                       const struct ms_tape *tape);

/* Storages by name, of these owners (counted from set's base). */
void ms_question_names(ms_question *question, const ms_question_set *set,
                       const int32_t *owners, uint32_t n);
/* The state of all there is. */
void ms_question_everything(ms_question *question);

#endif
