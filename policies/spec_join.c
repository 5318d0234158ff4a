/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies side by side: which go together, and in which order. */
#include "policies/order.h"

#include <string.h>

static bool is_same(const struct ms_spec_item *a, const struct ms_spec_item *b)
{
    for (uint32_t i = 0; i < a->policy->n_params; i++) {
        const ms_policy_value *x = &a->values[i], *y = &b->values[i];
        bool texts = x->text != NULL && y->text != NULL;
        if (x->given != y->given || x->number != y->number ||
            (texts && strcmp(x->text, y->text) != 0))
            return false;
    }
    return true;
}

/* The policy of the spec that does not go with the item, or NULL. */
static const struct ms_spec_item *find_twin(const ms_spec *spec,
                                            const struct ms_spec_item *item)
{
    for (uint32_t i = 0; i < spec->n; i++) {
        const struct ms_spec_item *other = &spec->items[i];
        bool repeats = item->policy->repeats && !is_same(other, item);
        if (!repeats && strcmp(ms_policy_family(other->policy),
                               ms_policy_family(item->policy)) == 0)
            return other;
    }
    return NULL;
}

bool ms_spec_join_fits(const ms_spec *spec, const struct ms_spec_item *item)
{
    return spec->n < MS_SPEC_ITEMS && find_twin(spec, item) == NULL;
}

ms_err ms_spec_join_one(ms_spec *spec, const struct ms_spec_item *item,
                        ms_fault *fault)
{
    if (find_twin(spec, item) != NULL)
        return ms_fail(fault, MS_EUSAGE, "--policy",
                       item->policy->repeats
                           ? "give them different arguments"
                           : "name it once, its arguments joined with commas",
                       "policy \"%s\" is given twice", ms_policy_written(item));
    if (spec->n == MS_SPEC_ITEMS)
        return ms_fail(fault, MS_EUSAGE, "--policy", NULL,
                       "more than %u policies", MS_SPEC_ITEMS);
    /* The items stay in the order in which policies apply, whatever the order
     * of the spec. */
    uint32_t at = spec->n++;
    for (; at > 0 && ms_order_before(item, &spec->items[at - 1]); at--)
        spec->items[at] = spec->items[at - 1];
    spec->items[at] = *item;
    return MS_OK;
}

ms_err ms_spec_join(const ms_spec *more, ms_spec *spec, ms_fault *fault)
{
    for (uint32_t i = 0; i < more->n; i++)
        MS_TRY(ms_spec_join_one(spec, &more->items[i], fault));
    return MS_OK;
}
