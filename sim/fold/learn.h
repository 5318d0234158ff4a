/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_LEARN_H
#define MS_SIM_LEARN_H

/* Private to sim/fold: what is known of calls, and how more is learnt.
 *
 * The state of an owner is a word per storage: its references (bits 0 to 7, as
 * in the books) and whether it has a row (bit 8).  To learn a call, the
 * storages of the owners that it asks of are put into the books as their states
 * say, expand does the one call, and what it booked and left is summed up.
 *
 * That is exact because expand reads of the books nothing but the states of
 * storages that its ops touch: where all ops that ran belong to parts of the
 * question, nothing else was read.  Where an input is not here, the question is
 * asked again with the unit of its maker, from that state on.  Where ops came
 * from elsewhere (an input went on the way), it is asked with the states of
 * everything. */

#include "sim/expand/books.h"
#include "sim/fold/effect.h"
#include "sim/fold/fold.h"
#include "sim/fold/question.h"

#define MS_LEARN_HERE 0x100u

/* What a question comes to: parts to ask of besides (none: everything), or an
 * effect and the states that it leaves. */
typedef struct ms_answer {
    ms_effect effect;
    uint32_t first, n; /* entries of left */
    uint8_t why;       /* ms_fold_why */
    bool asks;
} ms_answer;

/* An owner and the number of its state; of an answer that asks, a unit whose
 * forward is asked of (owner), no state. */
typedef struct ms_left {
    int32_t owner; /* counted from the question's base */
    uint32_t state;
} ms_left;

typedef struct ms_learner {
    const ms_graph *graph;
    const ms_machine *machine;
    ms_classes classes;
    ms_books books;
    ms_plan plan;
    ms_fault fault;         /* of calls that expand refuses */
    ms_arena *keep, *known; /* known: what is learnt, emptied when full */
    ms_intern states, questions, sets;
    ms_answer *answer; /* per question */
    ms_left *left;
    struct ms_named {
        uint32_t first, n; /* of owners */
    } * named;             /* per set: whose storages it names */
    int32_t *owners;
    uint32_t n_left, n_owners;
    uint32_t answers_capacity, left_capacity, named_capacity, owners_capacity;
    uint32_t *word; /* room for the largest owner, and for the largest set */
    uint32_t word_capacity;
    uint32_t *start; /* per owner: its state as the step starts, interned first
                        of all */
    uint32_t *now;   /* per owner: its state */
    uint64_t start_bytes;
    uint8_t why; /* the graph or the machine stands in the way */
} ms_learner;

/* opts are copied; graph is prepared. */
ms_err ms_learn_open(ms_learner *learner, const ms_graph *graph,
                     const ms_expand_opts *opts, const ms_machine *machine,
                     ms_arena *keep, ms_arena *known, ms_fault *fault);
/* Forgets all that was learnt. */
ms_err ms_learn_forget(ms_learner *learner, ms_fault *fault);
/* The number of a set's content. */
ms_err ms_learn_set(ms_learner *learner, const ms_program *program,
                    uint32_t set, ms_question_set *of, ms_fault *fault);
/* Learns what the question of the call comes to, which is not known: *id is its
 * number. */
ms_err ms_learn_call(ms_learner *learner, const ms_question *question,
                     const ms_program *program, const ms_call *call,
                     uint32_t *id, ms_fault *fault);

#endif
