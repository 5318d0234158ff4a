/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TURNBOOK_H
#define MS_SIM_TURNBOOK_H

/* Private to sim/fold: what is known of turns.  A turn is a span of calls of a
 * default program, of a piece of units or of one unit; its question says all on
 * which depends which calls these are and what they find, and so what they do.
 *
 * A worked example: "forward, in a segment, of a unit like unit 3, whose
 * neighbours are in the segment, too; states 5 5 4 4 4" has the answer: level
 * -2 MiB, most 6 MiB, 40 ns; states 5 5 6 4 4.  It is learnt from the calls of
 * one unit, and is then that of all units that ask the same. */

#include "sim/fold/calls/learn.h"

typedef struct ms_turn_answer {
    ms_effect effect;
    uint32_t first, n;            /* entries of left */
    uint32_t first_step, n_steps; /* the answers of its calls */
    uint32_t numbers;             /* as of these (ms_answer) */
    bool changes; /* a call changes the category of a row that was there */
    /* For unitturns.c: the pass in which it was taken last, as which of it. */
    uint64_t pass;
    uint32_t at;
} ms_turn_answer;

typedef struct ms_turnbook {
    ms_learner *learner;
    ms_arena *known;
    ms_intern questions;
    ms_turn_answer *answer; /* per question */
    uint32_t *left, *step;
    uint32_t n_left, n_steps;
    uint32_t answers_capacity, left_capacity, steps_capacity;
} ms_turnbook;

/* A turn that was learnt: what its calls do, the answers of these, and the
 * states that they leave. */
typedef struct ms_turn_learnt {
    ms_effect effect;
    const uint32_t *left, *step;
    uint32_t n_left, n_steps;
} ms_turn_learnt;

/* Nothing is known. */
ms_err ms_turnbook_open(ms_turnbook *book, ms_learner *learner, ms_arena *known,
                        ms_fault *fault);
/* The answer of a question that is not known yet; *id is its number. */
ms_err ms_turnbook_add(ms_turnbook *book, const uint32_t *words, uint32_t n,
                       const ms_turn_learnt *learnt, uint32_t *id,
                       ms_fault *fault);
/* An answer, with the effect that it has in the graph at hand. */
ms_turn_answer *ms_turnbook_answer(ms_turnbook *book, uint32_t id);
/* Do calls from a step of the answer on change the category of a row? */
bool ms_turnbook_changes(const ms_turnbook *book, const ms_turn_answer *answer,
                         uint32_t from);

#endif
