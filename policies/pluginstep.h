/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_PLUGINSTEP_H
#define MS_POLICIES_PLUGINSTEP_H

/* Private to plugin.c, pluginview.c and pluginpolicy.c: what is behind the
 * types of plugin.h whose fields a library does not see.  pluginpolicy.c opens
 * a step with the members of the hook that it calls, the others NULL; the
 * functions of plugin.h fail where theirs is not there. */

#include "policies/common/policy.h"
#include "policies/common/saved.h"
#include "policies/plugin.h"
#include "sim/program.h"
#include "sim/stage.h"

/* Turns in the order in which they are added, those of all ranks mixed. */
struct ms_pluginstep_turns {
    ms_stage *stages;
    struct ms_turn *turns;
    uint32_t n_stages, stages_capacity, n_turns, turns_capacity;
    bool ahead;
};

struct ms_plugin_step {
    const ms_policy_context *context;
    uint32_t n_micro_batches;
    struct ms_pluginstep_turns *turns; /* in schedule */
    ms_keep *keep;                     /* in keep */
    const ms_program *old;             /* in place */
    ms_online *online;                 /* in online */
    const void *setup;                 /* of online, for victim */
    ms_program made;
    bool has_saved, writes;
    ms_saved saved;
    ms_fault *fault;
    ms_err err; /* the first failure of a call */
};

struct ms_pluginview {
    const struct ms_online_view *of;
    const void *setup;
    void *memory;
    const uint32_t *here; /* n_here: what may go */
    uint32_t n_here;
};

#endif
