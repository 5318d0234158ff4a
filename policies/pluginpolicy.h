/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_PLUGINPOLICY_H
#define MS_POLICIES_PLUGINPOLICY_H

/* The policy that a library brings (plugin.h) as one of ours, to be checked and
 * added by the registry.  It lasts as long as the
 * process.  By one thread, before the first policy is parsed.  Faults
 * (MS_EINPUT, at where, the library's name): too many, and
 * members that do not go together. */

#include "policies/common/policy.h"
#include "policies/plugin.h"

ms_err ms_pluginpolicy_of(const ms_plugin *plugin, const char *where,
                          const ms_policy **policy, ms_fault *fault);

#endif
