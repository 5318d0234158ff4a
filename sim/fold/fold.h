/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_FOLD_H
#define MS_SIM_FOLD_H

/* The peak and the time of a program without its rows.  What a call does to the
 * level and to the clock depends on the content of its unit, on what it names,
 * and on the state (is it here, who holds it) of the storages that its ops
 * touch.  The first call of a kind is expanded in books of the evaluator's own
 * and summarised; the next one that reads the same is a look-up.  Summaries
 * compose (sim/fold/calls/effect.h), and micro-batches that leave behind what
 * they found are one summary, repeated.
 *
 * With several streams a summary of the level does, but none of the clock: ops
 * that run side by side slow each other.  There the ops of a call are kept, and
 * what they wait for by name; put behind each other without any row of the
 * device's memory they are a plan for the clock of sim/replay.
 *
 * A fold is exact, to the byte and to the nanosecond, or there is none: then
 * `why` says what stands in the way, and the program has to be replayed.
 *
 * A worked example, the unit of sim/graph.h checkpointed.  Its forward, with
 * nothing kept, is learnt: level +0 (x goes again), most 8 MiB, 20 ns.  Each
 * later unit of the class that finds its input in the same state adds these
 * three numbers and the new state of x: not here.
 *
 *     ms_fold *fold;
 *     ms_folded folded;
 *     MS_TRY(ms_fold_open(&graph, &opts, &machine, &keep, &fold, fault));
 *     for (each program)
 *         MS_TRY(ms_fold_program(fold, &program, &folded, fault));
 *     if (folded.why == MS_FOLD_WHOLE)
 *         use(folded.peak_bytes, folded.step_ns);
 *     ms_fold_close(fold);
 *
 * An evaluator belongs to one thread; it learns, but what it answers does not
 * depend on what it was asked before. */

#include "sim/base/base.h"
#include "sim/nouns.h"
#include "sim/report.h"

typedef struct ms_fold ms_fold;

/* Why a program is replayed instead. */
typedef enum ms_fold_why {
    MS_FOLD_WHOLE,   /* it is not: peak and time are folded */
    MS_FOLD_RANKS,   /* several ranks, or messages */
    MS_FOLD_FRAMES,  /* several micro-batches under way at once */
    MS_FOLD_HALVES,  /* backward runs in halves */
    MS_FOLD_HOOKS,   /* hooks on what nodes save */
    MS_FOLD_MEMORY,  /* books by device time, a wall, unified memory, an online
                        pass */
    MS_FOLD_STREAMS, /* of a choice: the graph has ops on several streams */
    MS_FOLD_BETWEEN, /* copies or gathers that outlive a call in the books' own
                        memory, or a host that waits though there is one stream
                        */
    MS_FOLD_FAR,     /* of a choice: units read what far ones make */
    MS_FOLD_FAULT,   /* expand refuses it, and says why */
    MS_N_FOLD_WHYS
} ms_fold_why;

/* peak_bytes: allocated on the device at most; active_bytes: with what waits
 * until other streams have passed, and so, with the exact pool, reserved.
 * calls: of the program, of which learnt were expanded and repeated belong to
 * micro-batches that were not walked. streamed: ops of several streams ran
 * through the clock; then all of time is told, and what other memories hold;
 * else step_ns and recompute_ns alone. */
typedef struct ms_folded {
    ms_fold_why why;
    bool streamed;
    uint64_t peak_bytes, active_bytes;
    uint64_t step_ns, recompute_ns; /* recompute_ns: of step_ns */
    ms_times time;
    struct ms_far_memory far[MS_N_POOLS];
    uint32_t calls, learnt, repeated;
} ms_folded;

/* `segments` segments of `units` units each, from unit `first` on. */
typedef struct ms_fold_stretch {
    uint32_t first, units, segments;
} ms_fold_stretch;

/* Checkpoints, as the policy writes them: segments save nothing that their
 * units make, all other units save everything.  Stretches ascend and do not
 * overlap. */
typedef struct ms_fold_choice {
    const ms_fold_stretch *stretches;
    uint32_t n_stretches, micro_batches;
    bool reentrant, early_stop; /* as in ms_keep */
} ms_fold_choice;

/* What stands in the way, as a sentence without its full stop. */
const char *ms_fold_sentence(ms_fold_why why);

/* What stands in the way whatever the calls do, of which most can be told
 * without a walk. */
ms_fold_why ms_fold_bar(const ms_graph *graph, const ms_machine *machine,
                        const ms_program *program);

/* The graph, the options and the machine must outlive the evaluator; what it
 * learns is its own, and bounded.  Faults: MS_ENOMEM. */
ms_err ms_fold_open(const ms_graph *graph, const ms_expand_opts *opts,
                    const ms_machine *machine, ms_arena *arena, ms_fold **fold,
                    ms_fault *fault);
void ms_fold_close(ms_fold *fold);
/* Turns the evaluator to another graph, which differs from its own in bytes and
 * times alone: what was learnt of calls is known of both, since an effect is a
 * sum of what ops and storages have, and so are the ops of calls on several
 * streams, where copies and collectives take what they took or are copies of
 * one storage; else these are learnt anew.  Programs that come again then are
 * not walked (sim/fold/knowntape.h).  The machine's rates may be others from
 * then on.  The new graph must outlive the evaluator, the old one is not needed
 * any more.  false: it differs otherwise, or is of a kind that is not known to
 * be the same, and the evaluator is of its graph as before. */
bool ms_fold_turn(ms_fold *fold, const ms_graph *graph);
/* May it ever turn to another graph? */
bool ms_fold_turns(const ms_fold *fold);
/* Do two graphs differ in this way, as far as that can be told without one's
 * evaluator? */
bool ms_fold_alike(const ms_graph *a, const ms_graph *b);
/* Faults: MS_ENOMEM.  A program that cannot be folded, or not be expanded, is
 * no fault but a `why`. */
ms_err ms_fold_program(ms_fold *fold, const ms_program *program,
                       ms_folded *folded, ms_fault *fault);
/* The same of the default program of a choice, which is written only where a
 * unit of it is new; learnt counts pieces, repeated turns of units that were
 * told by a period of such before them (sim/fold/pieces/unitturns.h), calls is
 * 0. */
ms_err ms_fold_choose(ms_fold *fold, const ms_fold_choice *choice,
                      ms_folded *folded, ms_fault *fault);
/* Of what the peak of the choice is that was folded last, if it was.  false:
 * that is not known, and it has to be replayed. */
bool ms_fold_categories(ms_fold *fold, uint64_t by_category[MS_N_CATEGORIES]);
/* pieces/choice.c: the keep of a choice, from which ms_defaultprogram writes
 * the program that is meant; keep is that of ms_program_keep_all before. */
void ms_choice_keep(const ms_graph *graph, const ms_fold_choice *choice,
                    ms_keep *keep);
/* The other way round: the choice of a keep for the evaluator's graph; it has
 * room for as many stretches as the graph has units.  false: the keep is no
 * such choice. */
bool ms_fold_read(const ms_fold *fold, const ms_keep *keep,
                  ms_fold_stretch *stretches, ms_fold_choice *choice);
/* pieces/choice.c, for it: what forward makes and saves, unit by unit. */
typedef struct ms_choice_saved {
    uint32_t *storage, *at; /* n_units + 1 */
} ms_choice_saved;
ms_err ms_choice_open(ms_choice_saved *saved, const ms_graph *graph,
                      ms_arena *arena, ms_fault *fault);
bool ms_choice_read(const ms_graph *graph, const ms_choice_saved *saved,
                    const ms_keep *keep, ms_fold_stretch *stretches,
                    ms_fold_choice *choice);
/* The bytes of all that the evaluator holds. */
uint64_t ms_fold_bytes(const ms_fold *fold);

#endif
