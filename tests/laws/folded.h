/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_FOLDED_H
#define MS_TESTS_FOLDED_H

/* What suites of folds share: programs and choices that are folded, and
 * expanded and replayed, and must come to the same.
 *
 *     folded_tally counts = {0};
 *     folded_check_program(fold, &graph, &program, &opts, &machine, "what",
 *                          &counts);
 *     folded_print("what", &counts);
 *     folded_close(); */

#include "sim/fold/fold.h"
#include "sim/machine.h"
#include "tests/laws/laws.h"

/* Of a trial; of a program of it. */
extern ms_arena folded_keep, folded_trial;

/* Policies that are put behind one another, "" for none; others: with more than
 * one stream, behind the first. */
#define FOLDED_MODELS 2u
#define FOLDED_CHECKPOINTS 11u
#define FOLDED_MICRO_BATCHES 2u
#define FOLDED_OTHERS 12u
extern const char *const folded_models[FOLDED_MODELS];
extern const char *const folded_checkpoints[FOLDED_CHECKPOINTS];
extern const char *const folded_micro_batches[FOLDED_MICRO_BATCHES];
extern const char *const folded_others[FOLDED_OTHERS];

/* How many programs there were, and what became of them. */
typedef struct folded_tally {
    uint32_t programs, folded, refused[MS_N_FOLD_WHYS];
    uint32_t categories; /* choices of which these were told */
    uint64_t calls, learnt, repeated;
} folded_tally;

void folded_check_program(ms_fold *fold, const ms_graph *graph,
                          const ms_program *program, const ms_expand_opts *opts,
                          const ms_machine *machine, const char *what,
                          folded_tally *counts);
/* A random choice of checkpoints, without a program and with one. */
void folded_check_choice(ms_fold *fold, laws_random *random,
                         const ms_graph *graph, const ms_machine *machine,
                         folded_tally *counts);
/* If MEMSIM_TALK is set. */
void folded_print(const char *what, const folded_tally *counts);
/* Rates, groups, and ops that slow each other, all at random. */
void folded_draw_machine(laws_random *random, ms_expand_opts *opts,
                         ms_machine *machine);
/* One micro-batch after the other with what several policies add: shared
 * states, moves, work. */
void folded_draw_streams(laws_random *random, const ms_graph *graph,
                         ms_program *program);
void folded_close(void);

#endif
