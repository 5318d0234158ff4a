/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps to a budget: the largest saved tensor goes, of equals the last that
 * came, and is made again where it is read (dtr:h=size, written outside).  It
 * counts its victims: after `most` of them it gives up. */
#include "policies/plugin.h"

enum { BUDGET, MOST };

static int online(ms_plugin_step *step)
{
    uint64_t *most = ms_plugin_take(step, 1, sizeof *most);
    if (most == NULL)
        return 1;
    *most = (uint64_t)ms_plugin_argument(step, MOST);
    ms_plugin_budget(step, (uint64_t)ms_plugin_argument(step, BUDGET), 0);
    ms_plugin_prepare(step, most, sizeof(uint64_t));
    return 0;
}

static uint32_t victim(const ms_pluginview *view)
{
    const uint64_t *most = ms_pluginview_setup(view);
    uint64_t *n = ms_pluginview_memory(view);
    uint32_t largest = MS_PLUGIN_NONE;
    if ((*n)++ == *most)
        return MS_PLUGIN_NONE;
    for (uint32_t i = 0; i < ms_pluginview_n_here(view); i++) {
        uint32_t s = ms_pluginview_here(view, i);
        if (largest == MS_PLUGIN_NONE ||
            ms_pluginview_bytes(view, s) >= ms_pluginview_bytes(view, largest))
            largest = s;
    }
    return largest;
}

static const ms_plugin_param params[] = {
    [BUDGET] = {.name = "budget",
                .type = MS_PLUGIN_SIZE,
                .low = 1,
                .high = INT64_MAX,
                .help = "the peak to keep to; default the device's memory"},
    [MOST] = {.name = "most",
              .fallback = 1000000,
              .low = 0,
              .high = 1000000,
              .help = "evictions of a step; default a million"}};
const ms_plugin ms_plugin_entry = {
    .api = MS_PLUGIN_API,
    .name = "largest",
    .summary = "the largest saved tensor goes when memory runs short",
    .n_params = 2,
    .params = params,
    .online = online,
    .victim = victim};
