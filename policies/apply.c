/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/policies.h"

/* Each failure must say what failed, a plugin's too. */
static ms_err answer(const ms_policy *policy, ms_err err, ms_fault *fault)
{
    if (err == MS_OK || fault->err != MS_OK)
        return err == MS_OK ? MS_OK : fault->err;
    return ms_fail(fault, MS_EINPUT, policy->name, NULL,
                   "the policy failed and did not say why");
}

ms_err ms_apply_shape(const ms_spec *spec, ms_shape *shape, ms_fault *fault)
{
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        ms_policy_context context = {.values = spec->items[i].values};
        if (policy->shape != NULL)
            MS_TRY(
                answer(policy, policy->shape(&context, shape, fault), fault));
    }
    return MS_OK;
}

/* The same of a hook that writes a program.  Expand trusts those of our own
 * policies; others may err. */
static ms_err written(const ms_policy *policy, ms_err err,
                      const ms_graph *graph, const ms_program *program,
                      ms_fault *fault)
{
    ms_fault found = {0};
    MS_TRY(answer(policy, err, fault));
    if (ms_registry_is_added(policy))
        err = ms_check_program(graph, program, &found);
    if (err == MS_OK)
        return MS_OK;
    return ms_fail(fault, err, policy->name, found.hint,
                   "the policy writes a program that cannot run: %s%s%s",
                   found.where, found.where[0] != '\0' ? ": " : "", found.what);
}

static ms_err apply_keep(const ms_spec *spec, ms_policy_context context,
                         ms_keep *keep, ms_fault *fault)
{
    MS_TRY(ms_program_keep_all(context.graph, context.arena, keep, fault));
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        context.values = spec->items[i].values;
        if (policy->keep != NULL)
            MS_TRY(answer(policy, policy->keep(&context, keep, fault), fault));
    }
    return MS_OK;
}

/* The policy that writes the program, NULL for the default one. */
static ms_err find_author(const ms_spec *spec,
                          const struct ms_spec_item **author, ms_fault *fault)
{
    *author = NULL;
    for (uint32_t i = 0; i < spec->n; i++) {
        if (spec->items[i].policy->program == NULL)
            continue;
        if (*author != NULL)
            return ms_fail(fault, MS_EUSAGE, "--policy", "leave one out",
                           "%s and %s both write the whole program",
                           (*author)->policy->name,
                           spec->items[i].policy->name);
        *author = &spec->items[i];
    }
    return MS_OK;
}

static ms_err apply_place(const ms_spec *spec, ms_policy_context context,
                          ms_program *program, ms_fault *fault)
{
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        context.values = spec->items[i].values;
        if (policy->place != NULL)
            MS_TRY(written(policy, policy->place(&context, program, fault),
                           context.graph, program, fault));
    }
    return MS_OK;
}

ms_err ms_apply_program(const ms_spec *spec, const ms_policy_context *context,
                        uint32_t micro_batches, ms_program *program,
                        ms_fault *fault)
{
    const struct ms_spec_item *author;
    ms_keep keep;
    ms_policy_context own = *context;
    own.spec = spec;
    context = &own;
    MS_TRY(find_author(spec, &author, fault));
    MS_TRY(apply_keep(spec, *context, &keep, fault));
    if (author == NULL) {
        MS_TRY(ms_program_default(context->graph, &keep, micro_batches,
                                  context->arena, program, fault));
    } else {
        ms_policy_context author_context = *context;
        *program = (ms_program){
            .n_frames = 1, .n_ranks = 1, .n_micro_batches = micro_batches};
        author_context.values = author->values;
        MS_TRY(written(author->policy,
                       author->policy->program(&author_context, program, fault),
                       context->graph, program, fault));
    }
    return apply_place(spec, *context, program, fault);
}
