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

#include "sim/fold/classes.h"

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
} ms_question;

ms_err ms_question_open(ms_question *question, const ms_classes *classes,
                        const uint32_t *state, ms_arena *arena,
                        ms_fault *fault);

static inline void ms_question_begin(ms_question *question, uint32_t base)
{
    question->base = base;
    question->whole = false;
    question->n_words = question->n_owners = question->n_parts = 0;
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

/* Storages by name, of these owners (counted from set's base). */
void ms_question_names(ms_question *question, const ms_question_set *set,
                       const int32_t *owners, uint32_t n);
/* The state of all there is. */
void ms_question_everything(ms_question *question);

#endif
