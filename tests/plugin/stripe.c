/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/plugin.h"

/* Every Nth block is redone.  What is in no block (head, loss) stays. */
static bool is_redone(ms_plugin_step *step, uint32_t unit)
{
    uint32_t block = ms_plugin_unit_block(step, unit);
    return block != MS_PLUGIN_NONE && block % ms_plugin_argument(step, 0) == 0;
}

static int keep(ms_plugin_step *step)
{
    if (ms_plugin_blocks(step) == 0)
        return ms_plugin_fail(step, "no blocks here");
    for (uint32_t u = 0; u < ms_plugin_units(step); u++)
        if (is_redone(step, u))
            ms_plugin_segment(step, u, ms_plugin_unit_block(step, u));
    for (uint32_t s = 0; s < ms_plugin_storages(step); s++) {
        uint32_t unit = ms_plugin_maker(step, s);
        if (unit != MS_PLUGIN_NONE && is_redone(step, unit))
            ms_plugin_drop(step, s);
    }
    return 0;
}

/* What the other blocks save leaves after its unit. */
static uint32_t leaving(ms_plugin_step *step, uint32_t unit)
{
    if (ms_plugin_unit_block(step, unit) == MS_PLUGIN_NONE ||
        is_redone(step, unit))
        return MS_PLUGIN_NONE;
    return ms_plugin_saved_set(step, unit, 1024);
}

/* It comes back one unit early. */
static int place(ms_plugin_step *step)
{
    for (uint32_t i = 0; i < ms_plugin_calls(step); i++) {
        ms_plugin_verb verb = ms_plugin_call_verb(step, i);
        uint32_t unit = ms_plugin_call_unit(step, i);
        if (verb == MS_PLUGIN_BACKWARD && unit > 0)
            ms_plugin_move(step, i, leaving(step, unit - 1), MS_PLUGIN_HERE);
        ms_plugin_copy(step, i);
        if (verb == MS_PLUGIN_FORWARD)
            ms_plugin_move(step, i, leaving(step, unit), MS_PLUGIN_HOST);
    }
    return 0;
}

static const ms_plugin_param params[] = {{.name = "every",
                                          .choice = true,
                                          .low = 1,
                                          .high = 1000000,
                                          .help = "recompute one block of N"}};
const ms_plugin ms_plugin_entry = {
    .api = MS_PLUGIN_API,
    .name = "stripe",
    .summary = "one block of N is recomputed, the others wait on the host",
    .n_params = 1,
    .params = params,
    .keep = keep,
    .place = place};
