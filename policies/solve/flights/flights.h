/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_FLIGHTS_H
#define MS_POLICIES_FLIGHTS_H

/* Chains that share one memory, with sets of several micro-batches at a time:
 * the stages that a rank of a pipeline has (Sun et al., ASPLOS 2024, "AdaPipe",
 * for one stage; here for all of a rank's at once).
 *
 * Between its forward and its backward a micro-batch has in memory what the
 * forward of chain k left there, S(k): inputs of stages and what is saved.
 * While it runs backward it has at most P(k), one micro-batch at a time.  A
 * state is an instant at which chain k begins to run: c(j) sets of each chain j
 * are there, its own included, and some bytes that no plan changes.  A rank
 * takes
 *
 *     max over states  sum c(j) S(j)  +  others
 *                      +  P(k) - S(k), or what a stage of its forward takes
 *
 * A worked example: two chains, S = (10, 4), P = (16, 14) bytes.  Chain 0 runs
 * backward in state (3, 1), of 34 bytes of sets, chain 1 in (2, 2), of 28: they
 * take 40 and 38, the rank 40.
 *
 * Of a bound on P(k) - S(k) the front of S and time of each chain is found over
 * all persistent plans; the fronts are merged into the least time for a bound
 * on the sum of sets; the two bounds divide the budget, and the best division
 * is searched.  What backwards leave (left_bytes) is not counted: micro-batches
 * add to the same gradients. */

#include "policies/solve/chain.h"

typedef struct ms_flights_state {
    const uint32_t *sets; /* per chain */
    uint32_t chain;       /* that begins to run */
    bool back;            /* backward; else forward */
    uint64_t others_bytes;
} ms_flights_state;

typedef struct ms_flights {
    uint32_t n; /* chains */
    const ms_chain *chains;
    uint32_t n_states;
    const ms_flights_state *states;
} ms_flights;

typedef struct ms_flights_table ms_flights_table;

/* Plans in budgets of up to most_bytes, in units as ms_optimum_open has them.
 * It lasts as long as arena, chains and states. */
ms_err ms_flights_open(const ms_flights *flights, uint64_t most_bytes,
                       uint32_t slots, ms_arena *arena,
                       ms_flights_table **table, ms_fault *fault);
/* Plans of all chains that together take the least time in the budget, of
 * those that are searched, with sizes in units of unit_bytes; per chain in
 * plans.  MS_EINFEASIBLE: there are none. */
ms_err ms_flights_read(const ms_flights_table *table, uint64_t budget_bytes,
                       ms_arena *arena, ms_chain_plan *plans,
                       uint64_t *unit_bytes, ms_fault *fault);
/* S of a chain where all is saved. */
uint64_t ms_flights_all(const ms_chain *chain);
/* What plans take of memory and, each run once, of time. */
ms_err ms_flights_cost(const ms_flights *flights, const ms_chain_plan *plans,
                       ms_arena *scratch, uint64_t *bytes, uint64_t *time_ns,
                       ms_fault *fault);

#endif
