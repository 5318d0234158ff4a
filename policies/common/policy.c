/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a policy may ask about the policies beside it.  This needs the spec
 * alone, not the table of all policies. */
#include "policies/common/policy.h"
#include "sim/shape.h"

#include <stdio.h>
#include <string.h>

const char *ms_policy_family(const ms_policy *policy)
{
    return policy->variant_of != NULL ? policy->variant_of : policy->name;
}

const char *ms_policy_written(const struct ms_spec_item *item)
{
    return item->is_variant ? item->policy->variant_of : item->policy->name;
}

const ms_policy_value *ms_policy_given(const ms_spec *spec, const char *policy,
                                       const char *param)
{
    for (uint32_t i = 0; spec != NULL && i < spec->n; i++) {
        const struct ms_spec_item *item = &spec->items[i];
        if (strcmp(ms_policy_family(item->policy), policy) != 0 &&
            strcmp(item->policy->name, policy) != 0)
            continue;
        for (uint32_t k = 0; k < item->policy->n_params; k++)
            if (strcmp(item->policy->params[k].name, param) == 0 &&
                item->values[k].given)
                return &item->values[k];
    }
    return NULL;
}

/* Do the job's GPUs divide into models of so many ranks? */
static ms_err check_gpus(const char *where, const char *what,
                         const ms_shape *shape, ms_fault *fault)
{
    uint32_t ranks = ms_shape_model_ranks(shape);
    uint32_t low = shape->gpus / ranks * ranks;
    char hint[64];
    if (shape->gpus % ranks == 0)
        return MS_OK;
    snprintf(hint, sizeof hint, "type --gpus %u", low + ranks);
    if (low > 0)
        snprintf(hint, sizeof hint, "type --gpus %u or %u", low, low + ranks);
    return ms_fail(fault, MS_EUSAGE, where, hint,
                   "%u GPUs do not divide into %s of %u", shape->gpus, what,
                   ranks);
}

ms_err ms_policy_check_groups(const char *where, const char *word,
                              uint32_t ranks, uint32_t some, ms_fault *fault)
{
    uint32_t low = some, high = some;
    char hint[128];
    if (some == 0 || ranks % some == 0)
        return MS_OK;
    while (ranks % low != 0)
        low--;
    while (high < ranks && ranks % high != 0)
        high++;
    if (high > ranks)
        snprintf(hint, sizeof hint, "%s%u would", word, ranks);
    else
        snprintf(hint, sizeof hint, "%s%u and %s%u would", word, low, word,
                 high);
    return ms_fail(fault, MS_EUSAGE, where, hint,
                   "%u ranks do not divide into groups of %u", ranks, some);
}

bool ms_policy_is_path(const ms_param *param, const char *at, size_t length)
{
    return param->file &&
           (memchr(at, '/', length) != NULL || memchr(at, '.', length) != NULL);
}

ms_err ms_policy_share_layers(const char *where, uint32_t ranks,
                              ms_shape *shape, ms_fault *fault)
{
    shape->pipeline_ranks = ranks;
    return check_gpus(where, "pipelines", shape, fault);
}

ms_err ms_policy_split_layers(const char *where, uint32_t ranks,
                              bool by_sequence, ms_shape *shape,
                              ms_fault *fault)
{
    shape->tensor_ranks = ranks;
    shape->by_sequence = by_sequence && ranks > 1;
    return check_gpus(where, "groups", shape, fault);
}
