/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/plugin.h"

/* ZeRO-R's partitioned activation checkpoints (Rajbhandari et al. 2020, section
 * 6.1): ranks that compute the same activations, a tensor-parallel group, each
 * keep a part of what is saved, and gather it before backward or a replay needs
 * it.  The job's ranks stand for that group here.  With slower=N the step is
 * measured with and without, and stays as it is where that takes too long. */

/* Units in no block (head, loss) have no checkpoint. */
static uint32_t checkpoint(ms_plugin_step *step, uint32_t unit)
{
    return ms_plugin_unit_block(step, unit) != MS_PLUGIN_NONE
               ? ms_plugin_saved_set(step, unit, 1024)
               : MS_PLUGIN_NONE;
}

static void gather_units(ms_plugin_step *step, uint32_t call)
{
    uint32_t last = ms_plugin_call_last(step, call);
    for (uint32_t u = ms_plugin_call_unit(step, call); u <= last; u++)
        ms_plugin_gather(step, call, checkpoint(step, u));
}

static void write_program(ms_plugin_step *step)
{
    for (uint32_t i = 0; i < ms_plugin_calls(step); i++) {
        ms_plugin_verb verb = ms_plugin_call_verb(step, i);
        uint32_t unit = ms_plugin_call_unit(step, i);
        if (verb == MS_PLUGIN_BACKWARD || verb == MS_PLUGIN_REPLAY)
            gather_units(step, i);
        ms_plugin_copy(step, i);
        if (verb == MS_PLUGIN_FORWARD)
            ms_plugin_move(step, i, checkpoint(step, unit), MS_PLUGIN_PARTS);
    }
}

static int place(ms_plugin_step *step)
{
    uint64_t bytes, before_ns, after_ns;
    if (!ms_plugin_measure(step, &bytes, &before_ns))
        return 1;
    write_program(step);
    if (!ms_plugin_is_given(step, 0))
        return 0;
    if (!ms_plugin_measure(step, &bytes, &after_ns))
        return 1;
    if (after_ns >
        before_ns / 100 * (100 + (uint64_t)ms_plugin_argument(step, 0)))
        ms_plugin_restart(step);
    return 0;
}

static const ms_plugin_param params[] = {
    {.name = "slower",
     .low = 0,
     .high = 1000000,
     .help = "only where the step takes at most so many percent longer"}};
const ms_plugin ms_plugin_entry = {
    .api = MS_PLUGIN_API,
    .name = "partition",
    .summary = "ranks keep parts of what is saved and gather it for backward",
    .example = "partition",
    .n_params = 1,
    .params = params,
    .place = place,
    .measures = true};
