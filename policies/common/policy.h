/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICY_H
#define MS_POLICY_H

/* A policy is one const object: a name, a table of parameters and a few
 * optional hooks, one per stage of the way (policies/README.md 2).  The core
 * owns the books; a policy returns choices.  This is the whole of a policy that
 * drops what the attention core saved and lets bind make it again:
 *
 *     static ms_err keep(const ms_policy_context *context, ms_keep *keep,
 *                        ms_fault *fault)
 *     {
 *         const ms_graph *graph = context->graph;
 *         for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
 *             if (graph->op_flags[graph->storage_maker[s]] & MS_OP_CORE)
 *                 keep->place[s] = MS_GONE;
 *         return MS_OK;
 *     }
 *     const ms_policy ms_policy_mine = {.name = "mine",
 *         .summary = "recompute the attention core", .keep = keep};
 *
 * plus one row in registry.c.  Policies in shared libraries see another,
 * smaller house (plugin.h). */

#include "sim/base/base.h"
#include "sim/base/words.h"
#include "sim/nouns.h"

#define MS_POLICY_PARAMS 40u
#define MS_SPEC_ITEMS 8u

typedef enum ms_param_type {
    MS_PARAM_INT,
    MS_PARAM_WORD,  /* one of words */
    MS_PARAM_WORDS, /* some of words: a/b; a bit each, in the order of words */
    MS_PARAM_NAMES, /* NAME/NAME/... */
    MS_PARAM_NUMBERS, /* 1.5, or 3/1/0.5: positive ones, each as written */
    MS_PARAM_INTS,    /* 4, or 4/2/0: INTs */
    MS_PARAM_FLAG,    /* a bare word: checkpoint:sqrt */
    MS_PARAM_SIZE     /* bytes: 40GiB, 1500000 */
} ms_param_type;

/* One parameter as data: parser, bounds, help, README and man page come from
 * this row.  Of the rows marked choice exactly one is given; a FLAG is given
 * by its bare name, a bare INT by its number alone (microbatch:4), bare WORDS
 * by the words alone (offload:optimizer/params). */
typedef struct ms_param {
    const char *name;
    ms_param_type type;
    bool choice, bare;
    bool promise; /* SIZE: the peak that the final program keeps to, whatever
                     stands beside the policy, or the run is infeasible */
    int64_t fallback, low, high;
    bool file; /* WORD: or a path, that is what has a '.' or a '/' in it */
    const char *words; /* MS_PARAM_WORD: "a|b" in the order of values */
    const char *with;  /* "a|b": only beside these choices; NULL: any */
    const char *help;
} ms_param;

typedef struct ms_policy_value {
    bool given;
    int64_t number;   /* INT, SIZE; WORD: index, -1 of a path; WORDS: bits;
                         FLAG: 1; fallback if not given; INTS: the last */
    const char *text; /* NAMES, NUMBERS, a path: as written; INTS; else NULL */
} ms_policy_value;

struct ms_spec;

typedef struct ms_policy_context {
    const char *name; /* what the policy is called in the spec */
    const struct ms_policy *policy;
    const ms_graph *graph;              /* NULL in shape */
    const struct ms_schedule *schedule; /* NULL in shape and schedule */
    const ms_policy_value *values; /* in the order of the policy's params */
    bool torch_1; /* framework is torch-1.13: defaults of variant, early_stop */
    ms_arena *arena;       /* NULL in shape */
    const ms_shape *shape; /* as all policies have left it; NULL in shape */
    /* What a policy that measures expands and replays with, as the run will;
     * NULL in shape, and where no times are asked for. */
    const ms_expand_opts *opts;
    const ms_machine *machine;
    const struct ms_spec *spec; /* the policies side by side; NULL in shape */
    uint32_t turn;              /* in place: its number among the hooks */
    /* Does to a program that this policy has placed what others will do to it
     * behind this one, so that what is measured is what runs.  NULL: all that
     * is left to do looks at a step, or nothing is. */
    ms_err (*finish)(const struct ms_policy_context *context,
                     ms_program *program, ms_fault *fault);
} ms_policy_context;

typedef struct ms_policy {
    const char *name, *summary, *example;
    const ms_param *params;
    uint32_t n_params;
    /* (optional) It is also what another policy is with this argument, which
     * is written behind so many of its parameters: deepspeed is a variant of
     * zero by impl=deepspeed, behind stage and dp, so that
     * zero:3,dp=8,impl=deepspeed is deepspeed:3,dp=8. */
    const char *variant_of, *variant_by;
    uint32_t variant_at;
    ms_err (*shape)(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault); /* (optional) */
    /* (optional) Says which rank runs which stage on which micro-batch, in
     * which order; of a spec's policies at most one does. */
    ms_err (*schedule)(const ms_policy_context *context, uint32_t micro_batches,
                       struct ms_schedule *schedule, ms_fault *fault);
    ms_err (*keep)(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault); /* (optional) */
    ms_err (*place)(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault); /* (optional) inserts calls */
    /* (optional) Keeps to a budget while rows are taken (sim/online.h); of a
     * spec's policies at most one does. */
    ms_err (*online)(const ms_policy_context *context, ms_online *online,
                     ms_fault *fault);
    /* (optional) Does place do anything?  Without it, it does. */
    bool (*places)(const ms_policy_value *values);
    /* (optional) Does place serve the calls of each rank, and halves of
     * backward?  Without it, place is refused beside ranks that have parts of
     * the model. */
    bool (*serves_ranks)(const ms_policy_value *values);
    /* (optional) Why its own code does not run so; NULL: it does.  And what to
     * take instead. */
    const char *(*refuses_ranks)(const ms_policy_value *values);
    const char *serves_instead;
    /* May a spec have it several times?  Then each takes what those before it
     * leave, in the order in which they are written. */
    bool repeats;
    /* Is it about what waits for backward?  So is one that has keep: figures
     * show the step without it, too. */
    bool saves;
    /* (optional) Does place change the step that it looks at?  Then it runs
     * after all that do not, on the program as the run will have it.  One that
     * looks at a program of its own finishes it (profile.h). */
    bool (*measures)(const ms_policy_value *values);
} ms_policy;

/* ---- registry.c: the one explicit table ---------------------------------- */

/* In the order in which help lists them; plugins' policies come last. */
uint32_t ms_registry_n(void);
/* What people call policies (policywords.h), and a spec in our words. */
extern const ms_words ms_policywords_table;
ms_err ms_policywords_plain(const char *text, ms_arena *arena,
                            const char **plain, ms_fault *fault);
const ms_policy *ms_registry_row(uint32_t row);
/* What the policy is with these arguments, bytes [arguments, + length): a
 * variant of it, or itself. */
const ms_policy *ms_registry_variant(const ms_policy *policy,
                                     const char *arguments, size_t length);
/* Does it come from a plugin? */
bool ms_registry_is_added(const ms_policy *policy);
/* Can it be spelled, and is its table such that parser and help can walk it?
 * Faults (MS_EINPUT) are at where, the library's name. */
ms_err ms_registry_check(const ms_policy *policy, const char *where,
                         ms_fault *fault);
/* Adds a policy that lives as long as the process.  Before the first policy
 * is parsed, by one thread; from then on the table is only read.  Faults: the
 * above, no hook, a name that is taken, too many. */
ms_err ms_registry_add(const ms_policy *policy, const char *where,
                       ms_fault *fault);

/* ---- spec.c: "checkpoint:sqrt+microbatch:4" ------------------------------ */

/* policy = name [':' arg {',' arg}], arg = word | key '=' value; policies
 * join with '+'.  A parsed list, in canonical order: shape policies first,
 * those that measure a step last. */
typedef struct ms_spec {
    uint32_t n;
    struct ms_spec_item {
        const ms_policy *policy;
        bool is_variant; /* written as the other policy */
        ms_policy_value values[MS_POLICY_PARAMS];
    } items[MS_SPEC_ITEMS];
} ms_spec;

/* Adds the policies of text to spec.  Faults (MS_EUSAGE) point into text with
 * a caret and suggest the nearest name. */
ms_err ms_spec_parse(const char *text, ms_arena *arena, ms_spec *spec,
                     ms_fault *fault);
/* The canonical spelling ("none" for an empty spec). */
char *ms_spec_print(const ms_spec *spec, ms_arena *arena);

/* ---- spec_join.c: policies side by side ---------------------------------- */

/* Adds the policies of another spec.  MS_EUSAGE: they do not go together. */
ms_err ms_spec_join(const ms_spec *more, ms_spec *spec, ms_fault *fault);
/* Adds one, in the order in which policies apply. */
ms_err ms_spec_join_one(ms_spec *spec, const struct ms_spec_item *item,
                        ms_fault *fault);
/* Is there room for it beside those that are there? */
bool ms_spec_join_fits(const ms_spec *spec, const struct ms_spec_item *item);

/* ---- spec_key.c: a policy's name as a key -------------------------------- */

/* In grids, variants and libmemsim the key "tensor" with the value "4,sp" says
 * tensor:4,sp; with "none", that no policy of that name is there.
 *
 *     const ms_policy *policy;
 *     MS_TRY(ms_spec_key_find("tp", &arena, &policy, fault));           tensor
 *     MS_TRY(ms_spec_key_put(policy, "4,sp", &arena, &spec, fault));
 *     ms_spec_key_value(policy, &spec, &arena)                         "4,sp"
 */

/* The policy that a key names, as it is or as other programs call it; *policy
 * is NULL where there is none that takes arguments.  MS_ENOMEM. */
ms_err ms_spec_key_find(const char *key, ms_arena *arena,
                        const ms_policy **policy, ms_fault *fault);
/* Adds the policy with these arguments to the spec. */
ms_err ms_spec_key_put(const ms_policy *policy, const char *value,
                       ms_arena *arena, ms_spec *spec, ms_fault *fault);
/* The policy's arguments in the spec, in canonical spelling; "none": it is not
 * there.  NULL: no memory. */
const char *ms_spec_key_value(const ms_policy *policy, const ms_spec *spec,
                              ms_arena *arena);

/* ---- policy.c ------------------------------------------------------------ */

/* Variants count as the policy that they are variants of: its name. */
const char *ms_policy_family(const ms_policy *policy);
/* What it is called in the spec. */
const char *ms_policy_written(const struct ms_spec_item *item);
/* The value of a parameter of a policy of the spec (or of its variant), by
 * their names; NULL where it is not given. */
const ms_policy_value *ms_policy_given(const ms_spec *spec, const char *policy,
                                       const char *param);

/* Is it a path, and may the parameter be one? */
bool ms_policy_is_path(const ms_param *param, const char *at, size_t length);

/* So many ranks share the model's layers (a pipeline): in shape.  MS_EUSAGE:
 * the job's GPUs do not divide into such. */
ms_err ms_policy_share_layers(const char *where, uint32_t ranks,
                              ms_shape *shape, ms_fault *fault);

/* So many ranks split each layer (tensor parallelism), by_sequence: and divide
 * the sequence between.  MS_EUSAGE as above. */
ms_err ms_policy_split_layers(const char *where, uint32_t ranks,
                              bool by_sequence, ms_shape *shape,
                              ms_fault *fault);

/* Do so many ranks divide into groups of `some` (0: nothing is asked)?
 * MS_EUSAGE with the degrees below and above that would, `word` in front of
 * each. */
ms_err ms_policy_check_groups(const char *where, const char *word,
                              uint32_t ranks, uint32_t some, ms_fault *fault);

/* ---- apply.c: the hooks in order ----------------------------------------- */

ms_err ms_apply_shape(const ms_spec *spec, ms_shape *shape, ms_fault *fault);
/* Runs the hooks schedule, keep and place, from a graph to its program.
 * context: complete but for the values, which are set for each policy. */
ms_err ms_apply_program(const ms_spec *spec, const ms_policy_context *context,
                        uint32_t micro_batches, ms_program *program,
                        ms_fault *fault);
/* The schedule alone: who runs which stage on which micro-batch, in which
 * order. */
ms_err ms_apply_schedule(const ms_spec *spec, const ms_policy_context *context,
                         uint32_t micro_batches, struct ms_schedule *schedule,
                         ms_fault *fault);
/* The same as far as the hook keep, where the policies say no more than what is
 * kept, and promise nothing: *alone; the program is then the default one of
 * keep.  Else keep is not set. */
ms_err ms_apply_keep(const ms_spec *spec, const ms_policy_context *context,
                     uint32_t micro_batches, ms_keep *keep, bool *alone,
                     ms_fault *fault);

#endif
