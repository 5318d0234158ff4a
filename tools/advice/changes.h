/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_CHANGES_H
#define MS_TOOLS_CHANGES_H

/* The changes that people make to a step that is too large: one table for the
 * advice (advice.c), for explain's remedies and for fit. No row is taken on
 * trust: before a change is advised, the step is replayed with it.
 *
 *     ms_changes set = {0};
 *     ms_change_use use = {&ms_changes_table[0], 0};
 *     if (ms_changes_apply_to(use.row, &job, &result)) {
 *         ms_changes_add(&set, use);
 *         MS_TRY(ms_changes_job(&set, &job, &result, &arena, &changed, fault));
 *         MS_TRY(ms_changes_step(&changed, true, &result, NULL, &arena,
 *                                &tried, fault));
 *     }
 *
 * A change replaces one of the same slot in the set. A policy of the set
 * replaces one of the same name in the job; zero and fsdp replace whatever the
 * ranks shared by. */

#include "policies/common/policy.h"
#include "tools/advice/lowerings.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"

/* What a change costs, from what everybody accepts to what only some can. */
typedef enum ms_costs {
    MS_COSTS_NOTHING,  /* the same numbers in the same time or less */
    MS_COSTS_TIME,     /* the same numbers, but a longer step */
    MS_COSTS_NUMERICS, /* the same training in other numbers */
    MS_COSTS_TRAINING, /* another training */
    MS_N_COSTS
} ms_costs;

#define MS_CHANGE_SETTINGS 2u

typedef struct ms_change {
    ms_costs costs;
    const char *slot;
    /* A policy with %lld for a count, or NULL; and settings with their values,
     * as ms_settings_put takes them. */
    const char *policy;
    struct ms_change_setting {
        const char *key, *value;
    } set[MS_CHANGE_SETTINGS];
    /* The row applies only where the training setting `when` is one of words
     * ("a|b"; "!a|b": none of them). NULL: always. */
    const char *when, *words;
    const char *price; /* in words, beside time and memory; or NULL */
} ms_change;
extern const ms_change ms_changes_table[];
extern const uint32_t ms_changes_table_n;

/* A row of the table, with a count for its pattern. */
typedef struct ms_change_use {
    const ms_change *row;
    int64_t count;
} ms_change_use;

#define MS_CHANGES_MOST 24u /* at least the number of slots */

typedef struct ms_changes {
    uint32_t n;
    ms_change_use use[MS_CHANGES_MOST];
} ms_changes;

/* Is there anything in the job that the row would change? */
bool ms_changes_apply_to(const ms_change *row, const ms_job *job,
                         const ms_result *now);
/* Does the row have a count? */
bool ms_changes_counts(const ms_change *row);
/* Replaces the use of the same slot, or adds the use behind the others. */
void ms_changes_add(ms_changes *set, ms_change_use use);
void ms_changes_drop(ms_changes *set, uint32_t i);
/* The same uses in the same order? */
bool ms_changes_same(const ms_changes *a, const ms_changes *b);
/* The highest cost in the set. */
ms_costs ms_changes_costs(const ms_changes *set);
/* The job with the set in it; its memory is arena's. Faults: MS_EUSAGE where a
 * setting or a policy refuses its value. */
ms_err ms_changes_job(const ms_changes *set, const ms_job *job,
                      const ms_result *now, ms_arena *arena, ms_job *changed,
                      ms_fault *fault);
/* Lowers and replays the job's step, through its pool or (exact) without one.
 * The model is the one that `now` has read. kept: of a search with many steps;
 * NULL: the graph lies in the arena. */
ms_err ms_changes_step(const ms_job *changed, bool exact, const ms_result *now,
                       ms_lowerings *kept, ms_arena *arena, ms_result *tried,
                       ms_fault *fault);
/* The policy of the spec that the row's policy replaces, or MS_NONE where it is
 * added. Then the row's policy and a setting's value as this job spells them;
 * NULL: out of memory. */
uint32_t ms_changes_replaced(const ms_change *row, const ms_spec *spec);
const char *ms_changes_policy(ms_change_use use, const ms_job *job,
                              const ms_result *now, ms_arena *arena);
const char *ms_changes_value(const struct ms_change_setting *set,
                             const ms_job *job, ms_arena *arena);

/* ---- changewords.c ------------------------------------------------------- */

/* "kernels" for "training.kernels"; keys of other groups stay whole. */
const char *ms_changewords_key(const char *key);
/* One change: "checkpoint:full", "kernels=flash"; NULL: out of memory. */
const char *ms_changewords_name(ms_change_use use, const ms_job *job,
                                const ms_result *now, ms_arena *arena);
/* What to add to a command line and what that replaces: "--kernels flash -p
 * checkpoint:full instead of checkpoint:sqrt". */
ms_err ms_changewords_put(const ms_changes *set, const ms_job *job,
                          const ms_result *now, ms_text *text, ms_fault *fault);
/* The prices of those changes that have one: "moments in 8 bits, products in
 * fp8". */
void ms_changewords_prices(const ms_changes *set, ms_text *text);
/* The whole command: the arguments without those that the set replaces, then
 * the set. */
ms_err ms_changewords_command(const ms_changes *set,
                              const ms_arguments *arguments, const ms_job *job,
                              const ms_result *now, ms_text *text,
                              ms_fault *fault);

#endif
