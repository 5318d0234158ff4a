/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/order.h"

#define NO_HOOK 5u

/* The stage of the first hook; one that is online is asked by its graph whether
 * it places instead. */
static uint32_t stage(const ms_policy *policy)
{
    bool asks = policy->online != NULL && policy->places != NULL;
    return policy->shape != NULL      ? 0
           : policy->schedule != NULL ? 1
           : policy->keep != NULL     ? 2
           : policy->place && !asks   ? 3
           : policy->online != NULL   ? 4
                                      : NO_HOOK;
}

static uint32_t registry_row(const ms_policy *policy)
{
    uint32_t row = 0;
    while (ms_registry_row(row) != policy)
        row++;
    return row;
}

bool ms_order_measures(const struct ms_spec_item *item)
{
    return item->policy->measures != NULL &&
           item->policy->measures(item->values);
}

bool ms_order_before(const struct ms_spec_item *a, const struct ms_spec_item *b)
{
    uint32_t x = stage(a->policy), y = stage(b->policy);
    if (ms_order_measures(a) != ms_order_measures(b))
        return ms_order_measures(b);
    return x != y ? x < y : registry_row(a->policy) < registry_row(b->policy);
}

/* What is kept and run again comes before what serves the runs (gathers,
 * copies, sums), and what looks at all of it behind. */
static uint32_t place_turn(const struct ms_spec_item *item)
{
    return ms_order_measures(item) ? 2u : item->policy->keep != NULL ? 0u : 1u;
}

const struct ms_spec_item *ms_order_place(const ms_spec *spec, uint32_t k)
{
    for (uint32_t turn = 0; turn < 3; turn++)
        for (uint32_t i = 0; i < spec->n; i++)
            if (place_turn(&spec->items[i]) == turn && k-- == 0)
                return &spec->items[i];
    return NULL;
}

bool ms_order_has_hook(const ms_policy *policy)
{
    return stage(policy) != NO_HOOK;
}
