/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_CHANGES_H
#define MS_TOOLS_CHANGES_H

/* What people change about a step that is too large: one table for the advice
 * (advice.c), for explain's remedies and for fit.  No row is taken on trust:
 * before a change is advised, the step is replayed with it.
 *
 *     ms_changes set = {0};
 *     ms_change_use use = {&ms_changes_table[0], 0};
 *     if (ms_changes_apply_to(use.row, &job, &result)) {
 *         ms_changes_add(&set, use);
 *         MS_TRY(ms_changes_job(&set, &job, &result, &arena, &changed, fault));
 *         MS_TRY(ms_changes_step(&changed, true, &result, &arena, &tried,
 *                                fault));
 *     }
 *
 * Changes of one slot take each other's place; so does a policy of a set that
 * of the same name in the job, and zero or fsdp what ranks shared before. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"

/* What a change costs, from what everybody accepts to what only some can
 * accept. */
typedef enum ms_costs {
    MS_COSTS_NOTHING,  /* the same numbers, at least as fast */
    MS_COSTS_TIME,     /* the same numbers */
    MS_COSTS_NUMERICS, /* of the same training */
    MS_COSTS_TRAINING, /* it trains something else */
    MS_N_COSTS
} ms_costs;

#define MS_CHANGE_SETTINGS 2u

typedef struct ms_change {
    ms_costs costs;
    const char *slot;
    /* A policy, in which %lld is a count, or NULL; settings and their values
     * as ms_settings_put takes them. */
    const char *policy;
    struct ms_change_setting {
        const char *key, *value;
    } set[MS_CHANGE_SETTINGS];
    /* Only where a training setting is one of words ("a|b"; "!a|b": none of
     * them); NULL: always. */
    const char *when, *words;
    const char *price; /* in words, beyond time and memory; or NULL */
} ms_change;
extern const ms_change ms_changes_table[];
extern const uint32_t ms_changes_table_n;

/* A row, with the count of its pattern. */
typedef struct ms_change_use {
    const ms_change *row;
    int64_t count;
} ms_change_use;

#define MS_CHANGES_MOST 24u /* slots, at most */

typedef struct ms_changes {
    uint32_t n;
    ms_change_use use[MS_CHANGES_MOST];
} ms_changes;

/* Is there anything that the row could change about the job? */
bool ms_changes_apply_to(const ms_change *row, const ms_job *job,
                         const ms_result *now);
/* Has the row a count? */
bool ms_changes_counts(const ms_change *row);
/* Puts the use in the place of the one that has the same slot, or behind the
 * others. */
void ms_changes_add(ms_changes *set, ms_change_use use);
void ms_changes_drop(ms_changes *set, uint32_t i);
/* What the dearest of them costs. */
ms_costs ms_changes_costs(const ms_changes *set);
/* The job with the set in it; what it needs lies in arena.  Faults: MS_EUSAGE,
 * what settings and policies refuse. */
ms_err ms_changes_job(const ms_changes *set, const ms_job *job,
                      const ms_result *now, ms_arena *arena, ms_job *changed,
                      ms_fault *fault);
/* The step of such a job, through its pool or, of one step, by bare lifetimes.
 * The model is the one that `now` has read. */
ms_err ms_changes_step(const ms_job *changed, bool exact, const ms_result *now,
                       ms_arena *arena, ms_result *tried, ms_fault *fault);
/* The policy of the spec in whose place the row's comes; MS_NONE: it joins
 * them.  Its words, and those of a value, as this job has them; NULL: no
 * memory. */
uint32_t ms_changes_replaced(const ms_change *row, const ms_spec *spec);
const char *ms_changes_policy(ms_change_use use, const ms_job *job,
                              const ms_result *now, ms_arena *arena);
const char *ms_changes_value(const struct ms_change_setting *set,
                             const ms_job *job, ms_arena *arena);

/* ---- changewords.c ------------------------------------------------------- */

/* "kernels" of "training.kernels"; other groups keep theirs. */
const char *ms_changewords_key(const char *key);
/* One change: "checkpoint:full", "kernels=flash"; NULL: no memory. */
const char *ms_changewords_name(ms_change_use use, const ms_job *job,
                                const ms_result *now, ms_arena *arena);
/* What to add to a command line, and what it replaces there: "--kernels flash
 * -p checkpoint:full instead of checkpoint:sqrt". */
ms_err ms_changewords_put(const ms_changes *set, const ms_job *job,
                          const ms_result *now, ms_text *text, ms_fault *fault);
/* "moments in 8 bits, products in fp8": the prices of those that have one. */
void ms_changewords_prices(const ms_changes *set, ms_text *text);
/* The whole command: the arguments, without those that the set replaces, and
 * the set. */
ms_err ms_changewords_command(const ms_changes *set,
                              const ms_arguments *arguments, const ms_job *job,
                              const ms_result *now, ms_text *text,
                              ms_fault *fault);

#endif
