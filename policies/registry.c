/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/sharedstates.h"

#include <string.h>

extern const ms_policy ms_policy_none;
extern const ms_policy ms_policy_microbatch;
extern const ms_policy ms_policy_tensor;
extern const ms_policy ms_policy_pipeline;
extern const ms_policy ms_policy_checkpoint;
extern const ms_policy ms_policy_dtr;
extern const ms_policy ms_policy_ddp;
extern const ms_policy ms_policy_zero;
extern const ms_policy ms_policy_deepspeed;
extern const ms_policy ms_policy_fsdp;
extern const ms_policy ms_policy_context_ranks;
extern const ms_policy ms_policy_expert_ranks;
extern const ms_policy ms_policy_offload;
extern const ms_policy ms_policy_swap;
extern const ms_policy ms_policy_uvm;

static const ms_policy *const built_in[] = {
    &ms_policy_none,     &ms_policy_microbatch,    &ms_policy_tensor,
    &ms_policy_pipeline, &ms_policy_checkpoint,    &ms_policy_dtr,
    &ms_policy_ddp,      &ms_policy_zero,          &ms_policy_deepspeed,
    &ms_policy_fsdp,     &ms_policy_context_ranks, &ms_policy_expert_ranks,
    &ms_policy_offload,  &ms_policy_swap,          &ms_policy_uvm,
};
#define N_BUILT_IN ((uint32_t)(sizeof built_in / sizeof built_in[0]))

/* The policies of plugins, in the order in which they were loaded. */
#define MOST_ADDED 16u
static const ms_policy *added[MOST_ADDED];
static uint32_t n_added;

uint32_t ms_registry_n(void)
{
    return N_BUILT_IN + n_added;
}

const ms_policy *ms_registry_row(uint32_t row)
{
    return row < N_BUILT_IN ? built_in[row] : added[row - N_BUILT_IN];
}

static bool is_among(const char *argument, const char *arguments, size_t length)
{
    size_t n = strlen(argument);
    for (size_t at = 0; at + n <= length; at++) {
        bool begins = at == 0 || arguments[at - 1] == ',';
        bool ends = at + n == length || arguments[at + n] == ',';
        if (begins && ends && memcmp(arguments + at, argument, n) == 0)
            return true;
    }
    return false;
}

const ms_policy *ms_registry_variant(const ms_policy *policy,
                                     const char *arguments, size_t length)
{
    for (uint32_t i = 0; i < N_BUILT_IN; i++)
        if (built_in[i]->variant_of != NULL &&
            strcmp(built_in[i]->variant_of, policy->name) == 0 &&
            is_among(built_in[i]->variant_by, arguments, length))
            return built_in[i];
    return policy;
}

bool ms_registry_is_added(const ms_policy *policy)
{
    for (uint32_t i = 0; i < n_added; i++)
        if (added[i] == policy)
            return true;
    return false;
}

/* ---- is a policy from elsewhere sound? ----------------------------------- */

#define MOST_LETTERS 32u

/* Can the grammar of specs spell the name?  It has none of the signs of the
 * grammar and no digit in front. */
static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return name != NULL && *name >= 'a' && *name <= 'z' &&
           name[strspn(name, letters)] == '\0' && strlen(name) <= MOST_LETTERS;
}

static bool is_choice(const ms_policy *policy, const char *name, size_t length)
{
    for (uint32_t i = 0; i < policy->n_params; i++)
        if (policy->params[i].choice &&
            strlen(policy->params[i].name) == length &&
            memcmp(policy->params[i].name, name, length) == 0)
            return true;
    return false;
}

static bool names_choices(const ms_policy *policy, const char *words)
{
    bool more = true;
    while (more) {
        size_t length = strcspn(words, "|");
        if (!is_choice(policy, words, length))
            return false;
        more = words[length] != '\0';
        words += length + more;
    }
    return true;
}

static bool has_twin(const ms_policy *policy, uint32_t row)
{
    for (uint32_t i = 0; i < row; i++)
        if (strcmp(policy->params[i].name, policy->params[row].name) == 0)
            return true;
    return false;
}

/* Returns what is wrong with a row, or NULL; its name, and the rows before, are
 * sound. */
static const char *wrong_row(const ms_policy *policy, uint32_t row)
{
    const ms_param *param = &policy->params[row];
    if (has_twin(policy, row))
        return "has the name of another";
    if (param->help == NULL || *param->help == '\0')
        return "has no help";
    if (param->type > MS_PARAM_SIZE)
        return "has a type that is none";
    bool wordy = param->type == MS_PARAM_WORD || param->type == MS_PARAM_WORDS;
    if (wordy && (param->words == NULL || *param->words == '\0'))
        return "is a word and has no words";
    if ((param->type == MS_PARAM_INT || param->type == MS_PARAM_INTS ||
         param->type == MS_PARAM_SIZE) &&
        (param->low < 0 || param->low > param->high))
        return "has no number from low to high that can be given";
    if (param->bare && param->type != MS_PARAM_INT &&
        param->type != MS_PARAM_WORDS)
        return "is bare and neither number nor words";
    return NULL;
}

/* Each row is checked by itself first, because "with" may name a later one. */
static ms_err check_params(const ms_policy *policy, const char *where,
                           ms_fault *fault)
{
    const ms_param *params = policy->params;
    if (policy->n_params > MS_POLICY_PARAMS ||
        (policy->n_params > 0 && params == NULL))
        return ms_fail(fault, MS_EINPUT, where, NULL,
                       "policy \"%s\" has %u parameters%s; at most %u",
                       policy->name, policy->n_params,
                       params == NULL ? " in no table" : "", MS_POLICY_PARAMS);
    for (uint32_t i = 0; i < policy->n_params; i++) {
        if (!is_name(params[i].name))
            return ms_fail(fault, MS_EINPUT, where,
                           "a letter, then letters, digits, - and _",
                           "parameter %u of policy \"%s\" has no name", i,
                           policy->name);
        const char *wrong = wrong_row(policy, i);
        if (wrong != NULL)
            return ms_fail(fault, MS_EINPUT, where, NULL,
                           "parameter \"%s\" of policy \"%s\" %s",
                           params[i].name, policy->name, wrong);
    }
    for (uint32_t i = 0; i < policy->n_params; i++)
        if (params[i].with != NULL && !names_choices(policy, params[i].with))
            return ms_fail(fault, MS_EINPUT, where,
                           "\"with\" names rows that are marked choice",
                           "parameter \"%s\" of policy \"%s\" goes with \"%s\"",
                           params[i].name, policy->name, params[i].with);
    return MS_OK;
}

ms_err ms_registry_check(const ms_policy *policy, const char *where,
                         ms_fault *fault)
{
    if (policy == NULL)
        return ms_fail(fault, MS_EINPUT, where, "set .policy", "has no policy");
    if (!is_name(policy->name))
        return ms_fail(fault, MS_EINPUT, where,
                       "set .name: a letter, then letters, digits, - and _",
                       "the policy has no name that can be written");
    if (policy->summary == NULL || *policy->summary == '\0')
        return ms_fail(fault, MS_EINPUT, where, "set .summary: help prints it",
                       "policy \"%s\" has no summary", policy->name);
    return check_params(policy, where, fault);
}

/* ---- adding one ---------------------------------------------------------- */

static ms_err fail_taken(const ms_policy *policy, const ms_policy *other,
                         const char *where, ms_fault *fault)
{
    /* The dynamic linker takes the program's own policy where a library has a
     * global of the same name. */
    if (policy == other && !ms_registry_is_added(other))
        return ms_fail(fault, MS_EINPUT, where,
                       "make the object static, or call it by another name",
                       "its policy is memsim's own \"%s\"", policy->name);
    if (policy == other)
        return ms_fail(fault, MS_EINPUT, where, "name each plugin once",
                       "policy \"%s\" is loaded already", policy->name);
    return ms_fail(fault, MS_EINPUT, where, "give it another .name",
                   "the name \"%s\" is taken by a policy %s", policy->name,
                   ms_registry_is_added(other) ? "of another plugin"
                                               : "of memsim itself");
}

ms_err ms_registry_add(const ms_policy *policy, const char *where,
                       ms_fault *fault)
{
    MS_TRY(ms_registry_check(policy, where, fault));
    if (policy->shape == NULL && policy->schedule == NULL &&
        policy->keep == NULL && policy->place == NULL && policy->online == NULL)
        return ms_fail(fault, MS_EINPUT, where,
                       "set .schedule, .keep, .place or .online",
                       "policy \"%s\" has no hooks", policy->name);
    for (uint32_t i = 0; i < ms_registry_n(); i++)
        if (strcmp(ms_registry_row(i)->name, policy->name) == 0)
            return fail_taken(policy, ms_registry_row(i), where, fault);
    if (n_added == MOST_ADDED)
        return ms_fail(fault, MS_EINPUT, where, NULL, "more than %u plugins",
                       MOST_ADDED);
    added[n_added++] = policy;
    return MS_OK;
}
