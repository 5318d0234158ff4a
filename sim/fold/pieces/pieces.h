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
 * A piece that is new is told unit by unit (unitturns.h).  Only where a unit is
 * new, too, the default program of the whole choice is written, and the calls
 * of this unit are walked; of a reentrant segment, whose end names all of its
 * units, those of the piece.
 *
 * A worked example: 96 equal blocks, segments of 10.  Forward, the pieces are
 * the embedding, nine segments of ten blocks, one of six, and the head.  The
 * second segment differs from the first in what stands before it; the third to
 * the eighth are like the second. */

#include "sim/fold/pieces/unitturns.h"

typedef struct ms_piece {
    uint32_t first, end; /* units */
    uint32_t state;      /* the number of the states of its owners */
    bool segment;
} ms_piece;

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
    uint32_t window; /* how many units on either side matter */
    bool far;        /* units read what far ones make: nothing is known */
    uint32_t *n_far; /* per unit, of those before it: gradients from far away */
    ms_homes homes;
    ms_choicecalls calls;
    ms_turnbook book;
    ms_unitturns units;
    bool strayed; /* units have: pieces are told by their calls */
    bool is_cut;  /* units.cut is of the choice */
    ms_intern states, starts;
    uint32_t *start_of, starts_capacity;
    uint32_t *word, n_words; /* of the question */
    uint32_t *left;          /* room for the states that a piece leaves */
    ms_piece *piece;
    uint32_t n, shared, rest; /* states of the latter two */
    uint32_t *before;         /* all states as the micro-batch began */
    const ms_fold_choice *choice;
    ms_effect effect; /* of the calls so far */
    /* Of the choice: the numbers of its answers, in rounds. */
    uint32_t *trail, n_trail, trail_capacity;
    ms_piece_round *round;
    uint32_t n_rounds, rounds_capacity;
    /* By category, as far as it was asked: as the step starts, per answer of a
     * piece, and per one of a call. */
    ms_piece_levels start_levels, *levels, *step_levels;
    uint32_t levels_capacity, step_levels_capacity;
    ms_fold_why why;
    uint32_t learnt, repeated; /* pieces; turns of units that were leapt over */
    ms_fault *fault;
} ms_pieces;

ms_err ms_pieces_open(ms_pieces *pieces, ms_callwalk *walk, ms_arena *keep,
                      ms_arena *known, ms_fault *fault);
/* The learner has forgotten everything: so do the pieces. */
ms_err ms_pieces_forget(ms_pieces *pieces, ms_fault *fault);
/* Fills effect, why, learnt and repeated. */
ms_err ms_pieces_fold(ms_pieces *pieces, const ms_fold_choice *choice,
                      ms_fault *fault);
void ms_pieces_close(ms_pieces *pieces);

#endif
