/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_ORDER_H
#define MS_POLICIES_ORDER_H

/* Private to spec.c and apply.c: the canonical order of the policies of a spec,
 * in which their hooks run and in which they are printed.  By the stage of the
 * first hook, then by the registry; what measures a step comes after all that
 * change what the step keeps. */

#include "policies/common/policy.h"

bool ms_order_before(const struct ms_spec_item *a,
                     const struct ms_spec_item *b);
/* Does its place look at the step (policy.h)? */
bool ms_order_measures(const struct ms_spec_item *item);
/* The policy whose place hook is the k-th; NULL: there are fewer. */
const struct ms_spec_item *ms_order_place(const ms_spec *spec, uint32_t k);
/* A policy without hooks changes nothing. */
bool ms_order_has_hook(const ms_policy *policy);

#endif
