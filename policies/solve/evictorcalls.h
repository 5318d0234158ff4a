/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_EVICTORCALLS_H
#define MS_POLICIES_EVICTORCALLS_H

/* What an evictor does with nodes that were measured, as calls. */

#include "policies/solve/evictor.h"

/* MS_EINFEASIBLE: an op does not fit (it and what it needs are named), or the
 * run thrashes. */
ms_err ms_evictorcalls_write(const ms_policy_context *context,
                             const ms_evictor_setup *setup, ms_program *program,
                             ms_fault *fault);

#endif
