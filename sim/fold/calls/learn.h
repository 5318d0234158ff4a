/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_LEARN_H
#define MS_SIM_LEARN_H

/* Private to sim/fold: what is known of calls, and how more is learnt.
 *
 * To learn a call, the storages of the owners that it asks of are put into the
 * books as their states say (sim/fold/cells/cells.h), expand does the one call,
 * and what it booked and left is summed up; with several streams its ops are
 * kept, too (sim/fold/ops/span.h).
 *
 * That is exact because expand reads of the books nothing but the states of
 * storages that its ops touch, and of buffers that the call names or in which
 * these lie: where all ops that ran belong to parts of the question, nothing
 * else was read.  Where an input is nowhere, the question is asked again with
 * the unit of its maker, from that state on.  Where ops came from elsewhere (an
 * input went on the way), it is asked with the states of everything. */

#include "sim/fold/calls/around.h"
#include "sim/fold/calls/effect.h"
#include "sim/fold/fold.h"
#include "sim/fold/ops/recipe.h"
#include "sim/fold/ops/span.h"

/* What a question comes to: parts to ask of besides (none: everything), or an
 * effect and the states that it leaves. */
typedef struct ms_answer {
    ms_effect effect;
    uint32_t first, n; /* entries of left */
    uint32_t span;     /* with several streams */
    uint32_t recipe;   /* with one stream; MS_NONE: it does nothing */
    uint32_t numbers;  /* those of which graph the effect has */
    uint8_t why;       /* ms_fold_why */
    bool asks;
    bool replays, replay_state; /* it leaves a replay in parts under way */
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
    const ms_expand_opts *opts;
    const ms_classes *classes;
    ms_cells cells;
    ms_intern kinds;        /* of rows */
    ms_arena *keep, *known; /* known: what is learnt, emptied when full */
    ms_question_states states;
    ms_intern questions, sets, contexts;
    ms_answer *answer; /* per question */
    ms_left *left;
    struct ms_named {
        uint32_t first, n; /* of owners */
    } * named;             /* per set: whose storages it names */
    int32_t *owners;
    uint32_t n_left, n_owners;
    uint32_t answers_capacity, left_capacity, named_capacity, owners_capacity;
    uint32_t *word; /* room for the largest set */
    uint32_t word_capacity;
    uint32_t *start; /* per owner: its state as the step starts, interned first
                        of all */
    uint32_t *now;   /* per owner: its state */
    uint64_t start_bytes;
    ms_row *far; /* n_far: what then lies in other memories */
    uint32_t n_far, far_capacity;
    /* With one stream: */
    ms_recipes recipes;
    uint32_t numbers; /* how often it has turned to another graph */
    /* With several streams: */
    bool streamed;
    ms_spans spans;
    uint32_t context; /* what else of the program calls depend on */
} ms_learner;

/* opts, the machine and the classes of the graph, which is prepared, must
 * outlive it; its books are opened for the program. */
ms_err ms_learn_open(ms_learner *learner, const ms_classes *classes,
                     const ms_expand_opts *opts, const ms_machine *machine,
                     const ms_program *program, ms_arena *keep, ms_arena *known,
                     ms_fault *fault);
void ms_learn_close(ms_learner *learner);
/* Turns to another program: with several streams it may have other columns,
 * buffers and groups. */
ms_err ms_learn_turn(ms_learner *learner, const ms_program *program,
                     ms_fault *fault);
/* Books what exists before the step, and reads its bytes. */
ms_err ms_learn_start(ms_learner *learner, ms_fault *fault);
/* Forgets all that was learnt. */
ms_err ms_learn_forget(ms_learner *learner, ms_fault *fault);
/* The number of a set's content. */
ms_err ms_learn_set(ms_learner *learner, const ms_program *program,
                    uint32_t set, ms_question_set *of, ms_fault *fault);
/* Learns what the question of the call comes to, which is not known: *id is its
 * number. */
ms_err ms_learn_call(ms_learner *learner, const ms_question *question,
                     const ms_around *around, const ms_program *program,
                     const ms_call *call, uint32_t *id, ms_fault *fault);

#endif
