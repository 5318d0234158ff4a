/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_H
#define MS_POLICIES_H

/* What a plugin sees: all of sim/, what a policy is (policy.h), and the one
 * object that it exports. */

#include "policies/common/policy.h"
#include "sim/sim.h"

/* ---- a policy in a shared library (--plugin ./mine.so) ------------------- */

/* The library exports one object of this name and type:
 *
 *     #include "policies/policies.h"
 *     static const ms_policy mine = {.name = "mine", ...};
 *     const ms_plugin ms_plugin_entry = {.abi = MS_PLUGIN_ABI,
 *                                        .policy = &mine};
 *
 *     cc -std=c17 -shared -fPIC -I. mine.c -o mine.so
 *     memsim run gpt2 --plugin ./mine.so -p mine
 *
 * (tests/plugin/stripe.c is a whole one.)  It is never unloaded.  It may call
 * what sim/sim.h, policies/common/saved.h, sharedstates.h and cuts.h declare:
 * the program exports all of that.  Hooks may be called from several threads at
 * once, each with its own context: keep what changes in context->arena, not in
 * statics.
 *
 * abi is read before anything else: a library made for other headers is
 * refused.  It has the edition in front, which is raised by hand when a field,
 * a hook or a value changes its meaning or its place, and behind it a sum over
 * the sizes of what the two sides share, which changes by itself when a
 * structure grows. */
typedef struct ms_plugin {
    uint32_t abi;
    const ms_policy *policy;
} ms_plugin;

#define MS_PLUGIN_EDITION 6u
#define MS_PLUGIN_SIZES                                                        \
    (2u * MS_N_VERBS + 3u * MS_N_PLACES + 5u * MS_N_PASSES +                   \
     7u * MS_N_CATEGORIES + 11u * sizeof(ms_policy) + 13u * sizeof(ms_param) + \
     17u * sizeof(ms_policy_value) + 19u * sizeof(ms_policy_context) +         \
     23u * sizeof(ms_shape) + 29u * sizeof(ms_graph) + 31u * sizeof(ms_call) + \
     37u * sizeof(ms_program) + 41u * sizeof(ms_keep) +                        \
     43u * sizeof(ms_expand_opts) + 47u * sizeof(ms_machine) +                 \
     53u * sizeof(ms_plan) + 59u * sizeof(ms_timeline) +                       \
     61u * sizeof(ms_report) + 67u * sizeof(ms_rank_report) +                  \
     71u * sizeof(ms_fault) + 73u * sizeof(ms_arena) + 79u * sizeof(ms_text) + \
     83u * sizeof(ms_buffer) + 89u * sizeof(ms_plan_op) +                      \
     97u * sizeof(ms_row) + 101u * sizeof(ms_event) +                          \
     103u * sizeof(ms_rank_levels) + 107u * sizeof(ms_point) +                 \
     109u * sizeof(ms_curve_point))
#define MS_PLUGIN_ABI                                                          \
    ((uint32_t)(MS_PLUGIN_EDITION * 100000u + MS_PLUGIN_SIZES % 100000u))

/* The program itself has none: it looks this name up in each library. */
extern const ms_plugin ms_plugin_entry __attribute__((visibility("default")));

#endif
