/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/earlystep.h"
#include "policies/common/profile.h"
#include "policies/common/tiedweights.h"
#include "policies/order.h"
#include "policies/schedule/normmeeting.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/online.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "sim/shape.h"

#include <stdio.h>

/* A hook that fails must say why, a plugin's hook too. */
static ms_err answer(const ms_policy *policy, ms_err err, ms_fault *fault)
{
    if (err == MS_OK || fault->err != MS_OK)
        return err == MS_OK ? MS_OK : fault->err;
    return ms_fail(fault, MS_EINPUT, policy->name, NULL,
                   "the policy failed and did not say why");
}

static void turn_to(ms_policy_context *context, const struct ms_spec_item *item)
{
    context->name = ms_policy_written(item);
    context->policy = item->policy;
    context->values = item->values;
}

ms_err ms_apply_shape(const ms_spec *spec, ms_shape *shape, ms_fault *fault)
{
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        ms_policy_context context = {0};
        turn_to(&context, &spec->items[i]);
        if (policy->shape != NULL)
            MS_TRY(
                answer(policy, policy->shape(&context, shape, fault), fault));
    }
    return MS_OK;
}

/* The same for a hook that changes a program.  expand trusts the calls of
 * built-in policies; those of a plugin are checked here. */
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

/* Without a policy that has another one, the default. */
ms_err ms_apply_schedule(const ms_spec *spec, const ms_policy_context *given,
                         uint32_t micro_batches, ms_schedule *schedule,
                         ms_fault *fault)
{
    ms_policy_context context = *given;
    const char *by = NULL;
    context.spec = spec;
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        turn_to(&context, &spec->items[i]);
        if (policy->schedule == NULL)
            continue;
        if (by != NULL)
            return ms_fail(fault, MS_EUSAGE, context.name,
                           "leave one of the two out",
                           "%s already says in which order the units run", by);
        by = context.name;
        MS_TRY(answer(
            policy, policy->schedule(&context, micro_batches, schedule, fault),
            fault));
        if (schedule->name == NULL)
            schedule->name = context.name;
        MS_TRY(ms_schedule_check(context.graph, schedule, fault));
    }
    return by != NULL ? MS_OK
                      : ms_schedule_default(context.graph, micro_batches,
                                            context.arena, schedule, fault);
}

static bool places(const struct ms_spec_item *item)
{
    const ms_policy *policy = item->policy;
    return policy->place != NULL &&
           (policy->places == NULL || policy->places(item->values));
}

/* Calls that a place hook writes for one rank that has the whole model may be
 * wrong for ranks that have parts of it. */
static ms_err check_ranks(const ms_spec *spec, const ms_schedule *schedule,
                          const ms_graph *graph, ms_fault *fault)
{
    bool plain = schedule->n_ranks == 1 && !ms_schedule_splits(schedule);
    if (graph->nodes && schedule->n_ranks > 1)
        return ms_fail(fault, MS_EUSAGE, "pipeline", "leave it out",
                       "what was measured node by node runs on one rank");
    for (uint32_t i = 0; i < spec->n && !plain; i++) {
        const ms_policy *policy = spec->items[i].policy;
        bool serves = policy->serves_ranks != NULL &&
                      policy->serves_ranks(spec->items[i].values);
        if (!places(&spec->items[i]) || (serves && graph->due_first == NULL))
            continue;
        const char *why = policy->refuses_ranks != NULL
                              ? policy->refuses_ranks(spec->items[i].values)
                              : NULL;
        if (why != NULL)
            return ms_fail(fault, MS_EUSAGE, ms_policy_written(&spec->items[i]),
                           policy->serves_instead, "%s", why);
        return ms_fail(fault, MS_EUSAGE, ms_policy_written(&spec->items[i]),
                       "beside pipeline stand microbatch, checkpoint, ddp, "
                       "fsdp, zero:1 or zero:2, offload:optimizer, and "
                       "swap:megatron, checkpoints or "
                       "save_on_cpu",
                       "memsim does not yet simulate this policy on ranks that "
                       "have parts of the model");
    }
    return MS_OK;
}

static ms_err apply_keep(const ms_spec *spec, ms_policy_context context,
                         ms_keep *keep, ms_fault *fault)
{
    MS_TRY(ms_program_keep_all(context.graph, context.arena, keep, fault));
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        turn_to(&context, &spec->items[i]);
        if (policy->keep != NULL)
            MS_TRY(answer(policy, policy->keep(&context, keep, fault), fault));
    }
    return MS_OK;
}

/* What the step needs of the gradients, once policies have reduced them. */
static ms_err before_step(const ms_policy_context *context, ms_program *program,
                          ms_fault *fault)
{
    MS_TRY(ms_tiedweights_write(context, program, fault));
    MS_TRY(ms_earlystep_write(context, program, fault));
    return ms_normmeeting_write(context, program, fault);
}

/* The place hooks from context's turn on, of all that measure, or of those that
 * do not. */
static ms_err place_turns(ms_policy_context *context, bool measure,
                          ms_program *program, ms_fault *fault)
{
    const struct ms_spec_item *item;
    for (; (item = ms_order_place(context->spec, context->turn)) != NULL &&
           ms_order_measures(item) == measure;
         context->turn++) {
        turn_to(context, item);
        if (item->policy->place != NULL)
            MS_TRY(written(item->policy,
                           item->policy->place(context, program, fault),
                           context->graph, program, fault));
    }
    return MS_OK;
}

static ms_err finish(const ms_policy_context *given, ms_program *program,
                     ms_fault *fault)
{
    ms_policy_context context = *given;
    context.turn++;
    MS_TRY(place_turns(&context, false, program, fault));
    return before_step(&context, program, fault);
}

static ms_err apply_place(ms_policy_context context, ms_program *program,
                          ms_fault *fault)
{
    context.turn = 0;
    context.finish = finish;
    MS_TRY(place_turns(&context, false, program, fault));
    MS_TRY(before_step(&context, program, fault));
    context.finish = NULL;
    return place_turns(&context, true, program, fault);
}

/* One rank, and one micro-batch after the other: the only way in which a pass
 * can know what an eviction costs. */
static ms_err check_online(const ms_policy_context *context,
                           const ms_program *program, const char *by,
                           ms_fault *fault)
{
    if (by != NULL)
        return ms_fail(fault, MS_EUSAGE, context->name,
                       "leave one of the two out",
                       "%s already evicts while the step runs", by);
    if (program->n_ranks == 1 && program->n_frames == 1)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, context->name, "leave pipeline out",
                   "memsim evicts on one rank, one micro-batch after the "
                   "other");
}

static ms_err apply_online(const ms_spec *spec, ms_policy_context context,
                           ms_program *program, ms_fault *fault)
{
    const char *by = NULL;
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        turn_to(&context, &spec->items[i]);
        if (policy->online == NULL)
            continue;
        MS_TRY(check_online(&context, program, by, fault));
        ms_online *online = ms_arena_take(context.arena, 1, sizeof *online);
        if (online == NULL)
            return ms_fail_nomem(fault);
        online->name = context.name;
        MS_TRY(answer(policy, policy->online(&context, online, fault), fault));
        if (online->victim == NULL) /* it has planned it already */
            continue;
        by = online->name;
        program->online = online;
    }
    return MS_OK;
}

static ms_err broken(const struct ms_spec_item *item, uint32_t param,
                     uint64_t peak_bytes, ms_fault *fault)
{
    char where[64], hint[64], budget[MS_SIZE_COUNT], peak[MS_SIZE_COUNT];
    const char *name = item->policy->params[param].name;
    snprintf(where, sizeof where, "%s:%s", item->policy->name, name);
    snprintf(hint, sizeof hint, "give it %s=%llu or more", name,
             (unsigned long long)peak_bytes);
    ms_size_count((uint64_t)item->values[param].number, budget);
    ms_size_count(peak_bytes, peak);
    return ms_fail(fault, MS_EINFEASIBLE, where, hint,
                   "the policies side by side do not keep to %s bytes: the "
                   "peak is %s",
                   budget, peak);
}

/* What a policy promises (a budget) is checked on the program that all of them
 * together have made. */
static ms_err check_promises(const ms_spec *spec,
                             const ms_policy_context *context,
                             const ms_program *program, ms_fault *fault)
{
    uint64_t peak_bytes = 0, step_ns;
    bool measured = false;
    for (uint32_t i = 0; i < spec->n; i++) {
        const struct ms_spec_item *item = &spec->items[i];
        for (uint32_t k = 0; k < item->policy->n_params; k++) {
            if (!item->policy->params[k].promise || !item->values[k].given)
                continue;
            if (!measured)
                MS_TRY(ms_profile_measure(context, program, &peak_bytes,
                                          &step_ns, fault));
            measured = true;
            if (peak_bytes > (uint64_t)item->values[k].number)
                return broken(item, k, peak_bytes, fault);
        }
    }
    return MS_OK;
}

ms_err ms_apply_program(const ms_spec *spec, const ms_policy_context *context,
                        uint32_t micro_batches, ms_program *program,
                        ms_fault *fault)
{
    ms_keep keep;
    ms_schedule schedule;
    ms_policy_context own = *context;
    own.spec = spec;
    MS_TRY(ms_apply_schedule(spec, &own, micro_batches, &schedule, fault));
    MS_TRY(check_ranks(spec, &schedule, own.graph, fault));
    own.schedule = &schedule;
    MS_TRY(apply_keep(spec, own, &keep, fault));
    MS_TRY(ms_defaultprogram(own.graph, &keep, &schedule, own.arena, program,
                             fault));
    MS_TRY(apply_place(own, program, fault));
    MS_TRY(apply_online(spec, own, program, fault));
    return check_promises(spec, &own, program, fault);
}

static bool promises(const struct ms_spec_item *item)
{
    for (uint32_t k = 0; k < item->policy->n_params; k++)
        if (item->policy->params[k].promise && item->values[k].given)
            return true;
    return false;
}

/* Do the policies say what is kept, and nothing else? */
static bool only_keep(const ms_spec *spec, const ms_graph *graph)
{
    bool only = graph->due_first == NULL;
    for (uint32_t i = 0; i < spec->n; i++) {
        const ms_policy *policy = spec->items[i].policy;
        only &= policy->schedule == NULL && policy->online == NULL &&
                !places(&spec->items[i]) && !promises(&spec->items[i]);
    }
    return only;
}

ms_err ms_apply_keep(const ms_spec *spec, const ms_policy_context *context,
                     uint32_t micro_batches, ms_keep *keep, bool *alone,
                     ms_fault *fault)
{
    ms_schedule schedule;
    ms_policy_context own = *context;
    *alone = only_keep(spec, context->graph);
    if (!*alone)
        return MS_OK;
    own.spec = spec;
    MS_TRY(ms_apply_schedule(spec, &own, micro_batches, &schedule, fault));
    own.schedule = &schedule;
    return apply_keep(spec, own, keep, fault);
}
