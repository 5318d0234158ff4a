/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHAINTABLE_H
#define MS_POLICIES_CHAINTABLE_H

/* Private to policies/solve: the table behind the best persistent plans of a
 * chain, the dynamic program of the paper (chain.h; theorem 1).  Of stages s to
 * t in m units, beside the input of s, with the gradient of t's output inside,
 *
 *     Opt(s, s, m) = forward + backward of s            if m >= saved(s, s)
 *     Opt(s, t, m) = min(
 *         again(s, k) + Opt(k, t, m - a(k-1)) + Opt(s, k-1, m)
 *                              for s < k <= t           if m >= none(s, t)
 *         forward + backward of s + Opt(s+1, t, m - A(s))
 *                                                       if m >= saved(s, t)
 *     )
 *
 * the first with the input of k as a checkpoint, the second with A(s) kept.
 * again(s, k) is the forwards of s..k-1 less the tail of k-1, with which a
 * replay ends, and what each replay takes besides: it grows with k, too.
 * What the backwards of stages leave is there when those before them run:
 * Opt(s, k-1, m) has as much less room.
 *
 * The table has what a plan takes beyond running each stage once, W = Opt minus
 * the sum of all times.  Two bounds leave out sums that cannot change it:
 *
 *     W(s, t, m) is nothing from the memory on in which all of s to t is saved,
 *     and infinite below the least in which there is a plan: a row ends there;
 *     the checkpoint at k costs again(s, k) at least, and W falls with m: where
 *     it is as little already, that k and all behind it are done.
 *
 * A choice reads the rows (k, t) and (s, k-1), as a product of matrices reads a
 * column and a row: rows are filled in square tiles of s and t, so that what is
 * read for one of a tile is in the cache for the others.  Example, tiles of 2
 * and 6 stages: (5..6, 5..6), (3..4, 3..4), (3..4, 5..6), (1..2, 1..2), ...
 * A chain with many equal stages shares rows instead. */

#include "policies/solve/chainunits.h"

/* A row of the table, of units in [low, high): W is infinite below and nothing
 * from high on, or as far as there is room. */
typedef struct ms_chaintable_row {
    uint64_t at; /* its first W in the table */
    uint32_t low, high;
} ms_chaintable_row;

typedef struct ms_chaintable {
    const ms_chain *chain;
    uint32_t n;
    double *forward_ns;     /* of stages 1 to l */
    uint32_t *twin, *alike; /* of a stage: a later one from which on the most
                               stages are the same, and how many; 0: none */
    uint32_t n_rows;
    uint64_t n_sums; /* per unit: choices of all rows */
    const ms_chainunits *stage;
    uint64_t room; /* units beside the chain's input */
    bool shares; /* pairs between which the stages are the same have one row */
    /* per pair (s, t), and (t, s): so that both of a choice lie next to those
     * of the next choice */
    ms_chaintable_row *by_first, *by_last;
    double *table;
} ms_chaintable;

/* What does not depend on the units; n_rows and n_sums. */
ms_err ms_chaintable_open(const ms_chain *chain, ms_arena *arena,
                          ms_chaintable *table, ms_fault *fault);

/* All rows, of stages [0 .. n] in units, in so much room. */
ms_err ms_chaintable_fill(ms_chaintable *table, const ms_chainunits *stage,
                          uint64_t room, ms_arena *arena, ms_fault *fault);

/* W(s, t, m). */
double ms_chaintable_more_ns(const ms_chaintable *table, uint32_t s, uint32_t t,
                             uint64_t m);

/* again(s, end). */
double ms_chaintable_again_ns(const ms_chaintable *table, uint32_t s,
                              uint32_t end);

/* ---- optimum.c ----------------------------------------------------------- */

/* Adds the acts that run stages s to t in m units; W(s, t, m) is finite. */
ms_err ms_optimum_write(const ms_chaintable *table, uint32_t s, uint32_t t,
                        uint64_t m, ms_arena *arena, ms_chain_plan *plan,
                        ms_fault *fault);
/* The sizes of a chain in units of so many bytes, [0 .. n]; [0].output is that
 * of its input. */
void ms_optimum_units(const ms_chain *chain, uint64_t unit,
                      ms_chainunits *stage);
/* The greatest unit of which all sizes are multiples. */
uint64_t ms_optimum_divisor(const ms_chain *chain);
/* The unit for budgets of up to most_bytes, as ms_optimum_open has it; exact:
 * all sizes are multiples of it.  table is open. */
uint64_t ms_optimum_unit(const ms_chaintable *table, uint64_t most_bytes,
                         uint32_t slots, bool *exact);

#endif
