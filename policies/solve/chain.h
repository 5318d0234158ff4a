/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHAIN_H
#define MS_POLICIES_CHAIN_H

/* Chains and how they are run backward in less memory: the model of rotor
 * (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for
 * heterogeneous chains", 2019, arXiv 1911.13214, sections 3 and 4).
 *
 * Nouns.  A chain is n stages, numbered from 1, the last of them the loss.
 * Stage l turns a(l-1) into a(l), its output; for its backward it needs all
 * that it saved, A(l), which includes a(l).  An act runs one stage once:
 *
 *     CHECKPOINT l  forward, saves nothing, a(l-1) stays      rotor: Fck
 *     PASS l        forward, saves nothing, a(l-1) is freed          Fn
 *     SAVE l        forward, makes A(l), a(l-1) stays                Fall
 *     BACKWARD l    needs A(l), a(l-1) and the gradient of a(l), frees
 *                   them, makes the gradient of a(l-1)               B
 *
 * A plan is a list of acts.  A tensor that an act leaves stays until its
 * backward (a persistent plan).
 *
 * Memory of an act: what is stored, the input of the chain included; what it
 * makes (its output, or A(l)); what it takes besides.  The gradient of a(l) has
 * as many bytes as a(l), that of a(0) is not counted; a stage's backward_extra
 * includes the gradient that it makes.
 *
 * A worked example, two stages and the loss, in bytes and ns:
 *
 *     a(0) 7   a(1) 8, A 9   a(2) 4, A 6   loss 0, A 0
 *     CHECKPOINT 1, SAVE 2, SAVE 3, BACKWARD 3, BACKWARD 2,
 *     SAVE 1, BACKWARD 1
 *
 * The highest act is BACKWARD 2: a(0) 7, a(1) 8, A(2) 6, gradient of a(2) 4,
 * besides 11: 36 bytes.  Stage 1 runs forward twice. */

#include "sim/base/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ms_chain_stage {
    uint64_t forward_ns, backward_ns;
    uint64_t output_bytes, saved_bytes; /* saved includes the output */
    uint64_t forward_extra_bytes, backward_extra_bytes;
    uint64_t left_bytes; /* what its backward leaves for the step: gradients of
                            weights; rotor has none */
    uint64_t tail_ns;    /* of forward_ns: what a replay that ends with this
                            stage leaves out (torch's early stop); rotor has
                            none */
} ms_chain_stage;

typedef struct ms_chain {
    uint32_t n;
    uint64_t input_bytes;
    const ms_chain_stage *stages; /* [0] is not used: stages[1 .. n] */
    uint64_t replay_ns; /* what each replay takes besides, however long: weights
                           that are gathered for it; rotor: nothing */
} ms_chain;

typedef enum ms_chain_verb {
    MS_CHAIN_CHECKPOINT,
    MS_CHAIN_PASS,
    MS_CHAIN_SAVE,
    MS_CHAIN_BACKWARD
} ms_chain_verb;

typedef struct ms_chain_act {
    uint8_t verb; /* ms_chain_verb */
    uint32_t stage;
} ms_chain_act;

typedef struct ms_chain_plan {
    uint32_t n, capacity;
    ms_chain_act *acts;
} ms_chain_plan;

ms_err ms_chain_add(ms_chain_plan *plan, ms_chain_verb verb, uint32_t stage,
                    ms_arena *arena, ms_fault *fault);

/* Forward from the input of stage first, which stays, to that of end: nothing
 * is saved. */
ms_err ms_chain_advance(ms_chain_plan *plan, uint32_t first, uint32_t end,
                        ms_arena *arena, ms_fault *fault);

/* What a plan costs: the sum of its acts' times, and its highest act.  A SAVE
 * before the BACKWARD of its own stage ends a replay, but that of stage n.
 * MS_EINPUT: an act needs what is not there. */
ms_err ms_chain_cost(const ms_chain *chain, const ms_chain_plan *plan,
                     ms_arena *scratch, uint64_t *time_ns, uint64_t *peak_bytes,
                     ms_fault *fault);

/* ---- optimum.c: the best persistent plan in a budget --------------------- */

typedef struct ms_optimum {
    ms_chain_plan plan;
    uint64_t time_ns;
    uint64_t unit_bytes; /* sizes are counted in units of so many bytes, rounded
                            up: exact where all sizes are multiples of it */
    bool exact;
} ms_optimum;

/* What is asked in several budgets is found once (chaintable.h):
 *
 *     ms_optimum_table *table;
 *     MS_TRY(ms_optimum_open(&chain, most_bytes, 0, arena, &table, fault));
 *     MS_TRY(ms_optimum_read(table, most_bytes / 2, arena, &optimum, fault));
 */
typedef struct ms_optimum_table ms_optimum_table;

/* Plans in budgets of up to most_bytes.  Where that is more than
 * MS_OPTIMUM_EXACT units of the greatest common divisor of all sizes, it
 * is cut into `slots` units (0: as many as MS_OPTIMUM_STEPS sums allow, between
 * the two bounds); fewer where the tables would take more than MS_OPTIMUM_TABLE
 * bytes.  O(d n slots) time for d pairs of a first and a last stage between
 * which the stages are not the same as between two others: n for n equal
 * stages, n^2 / 2 where all differ.  It lasts as long as arena and chain. */
#define MS_OPTIMUM_EXACT 4096u
#define MS_OPTIMUM_LOW 500u
#define MS_OPTIMUM_HIGH 8192u
#define MS_OPTIMUM_STEPS UINT64_C(50000000)
#define MS_OPTIMUM_TABLE (UINT64_C(2) << 30)
ms_err ms_optimum_open(const ms_chain *chain, uint64_t most_bytes,
                       uint32_t slots, ms_arena *arena,
                       ms_optimum_table **table, ms_fault *fault);
/* Does it take so long to fill (more than MS_OPTIMUM_LONG sums, some seconds)
 * that another one is not worth it? */
#define MS_OPTIMUM_LONG (UINT64_C(1) << 34)
bool ms_optimum_is_long(const ms_optimum_table *table);
/* The plan that takes the least time in the budget, which is no more than
 * most_bytes.  MS_EINFEASIBLE: names the least budget. */
ms_err ms_optimum_read(const ms_optimum_table *table, uint64_t budget_bytes,
                       ms_arena *arena, ms_optimum *optimum, ms_fault *fault);
/* Both, for one budget. */
ms_err ms_optimum_find(const ms_chain *chain, uint64_t budget_bytes,
                       uint32_t slots, ms_arena *arena, ms_optimum *optimum,
                       ms_fault *fault);

/* ---- leastmemory.c ------------------------------------------------------- */

/* The least budget in which there is a plan, to the byte, and (plan may be
 * NULL) a plan that keeps to it.  O(n^3). */
ms_err ms_leastmemory_find(const ms_chain *chain, ms_arena *arena,
                           uint64_t *bytes, ms_chain_plan *plan,
                           ms_fault *fault);

/* ---- binomial.c: the best plan for a number of checkpoints --------------- */

/* Revolve (Griewank and Walther, ACM TOMS 26 (2000), algorithm 799): stages are
 * alike, at most so many of their inputs are there at a time, that of the chain
 * included.  It runs l stages with ms_binomial_advances(l, slots) acts that
 * save nothing, the least there is. */
ms_err ms_binomial_plan(uint32_t stages, uint32_t slots, ms_arena *arena,
                        ms_chain_plan *plan, ms_fault *fault);
/* t(l, c) = r l - C(c + r, c + 1), r the least with C(c + r, c) >= l. */
uint64_t ms_binomial_advances(uint32_t stages, uint32_t slots);

#endif
