/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PIECES_H
#define MS_SIM_PIECES_H

/* Private to sim/fold: choices of checkpoints without a program.  Segments and
 * the open stretches between them are pieces; the default program runs piece
 * after piece forward, then back.  What it writes for a piece follows from the
 * classes of the piece's units and of their neighbours as far as these reach,
 * and from where these are cut; what its calls do, from the states of the
 * pieces that they touch.  So a piece that is like one before it is a look-up.
 *
 * For a piece that is new, the default program of the whole choice is written,
 * and the calls of this piece are walked.
 *
 * A worked example: 96 equal blocks, segments of 10.  Forward, the pieces are
 * the embedding, nine segments of ten blocks, one of six, and the head.  The
 * second segment differs from the first in what stands before it; the third to
 * the eighth are like the second. */

#include "sim/fold/callwalk.h"

typedef struct ms_piece {
    uint32_t first, end; /* units */
    uint32_t state;      /* the number of the states of its owners */
    bool segment;
} ms_piece;

/* What a piece's calls do, and the states that they leave to the pieces near
 * it, to shared and to rest. */
typedef struct ms_piece_answer {
    ms_effect effect;
    uint32_t first, n;            /* entries of left */
    uint32_t first_step, n_steps; /* the answers of its calls */
    uint32_t numbers;             /* as of these (ms_answer) */
} ms_piece_answer;

/* What something does to the level of each category; numbers: see ms_answer,
 * and one more; 0: not known. */
typedef struct ms_piece_levels {
    int64_t bytes[MS_N_CATEGORIES];
    uint32_t numbers;
} ms_piece_levels;

/* Turns that were taken one after the other, so many times. */
typedef struct ms_piece_round {
    uint32_t first, end; /* of the trail */
    uint32_t times;
} ms_piece_round;

typedef struct ms_pieces {
    ms_callwalk *walk;
    ms_arena *keep, *known;
    ms_arena trial;  /* the program of a choice that has a new piece */
    uint32_t window; /* how many units on either side matter */
    bool far;        /* units read what far ones make: nothing is known */
    uint32_t *n_far; /* per unit, of those before it: gradients from far away */
    uint32_t *home;  /* per unit: a unit before it from which on units are */
    uint32_t *alike; /* like those from it on, and so many; or itself */
    ms_intern states, questions, starts;
    ms_piece_answer *answer;
    uint32_t *left, *start_of, *step;
    uint32_t n_left, n_steps;
    uint32_t answers_capacity, left_capacity, starts_capacity, steps_capacity;
    uint32_t *word, n_words; /* of the question */
    ms_piece *piece;
    uint32_t n, shared, rest; /* states of the latter two */
    uint32_t *before;         /* all states as the micro-batch began */
    const ms_fold_choice *choice;
    ms_program program; /* written: */
    bool written;
    uint32_t *forward_end, *backward_end; /* per unit: behind its calls */
    uint32_t tail, last;                  /* of a micro-batch; of the step */
    ms_effect effect;                     /* of the calls so far */
    /* Of the choice: the numbers of its answers, in rounds. */
    uint32_t *trail, n_trail, trail_capacity;
    ms_piece_round *round;
    uint32_t n_rounds, rounds_capacity;
    /* By category, as far as it was asked: per answer of a piece, and per one
     * of a call. */
    ms_piece_levels *levels, *step_levels;
    uint32_t levels_capacity, step_levels_capacity;
    ms_fold_why why;
    uint32_t learnt, n_calls;
    ms_fault *fault;
} ms_pieces;

/* An answer, with the effect that it has in the graph at hand. */
const ms_piece_answer *ms_pieces_answer(ms_pieces *pieces, uint32_t id);
ms_err ms_pieces_open(ms_pieces *pieces, ms_callwalk *walk, ms_arena *keep,
                      ms_arena *known, ms_fault *fault);
/* The learner has forgotten everything: so do the pieces. */
ms_err ms_pieces_forget(ms_pieces *pieces, ms_fault *fault);
/* Fills effect, why and learnt. */
ms_err ms_pieces_fold(ms_pieces *pieces, const ms_fold_choice *choice,
                      ms_fault *fault);
void ms_pieces_close(ms_pieces *pieces);

#endif
