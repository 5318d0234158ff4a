/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All forwards, then all backwards, the last micro-batch first (first=1: the
 * first one first, which is GPipe), on ranks that share the blocks. */
#include "policies/plugin.h"

enum { RANKS, FIRST };

/* How many blocks the model has before the unit, counted where they begin. */
static uint32_t begins(ms_plugin_step *step, uint32_t unit)
{
    uint32_t block = ms_plugin_unit_block(step, unit);
    bool is_first = unit == 0 || ms_plugin_unit_block(step, unit - 1) != block;
    return is_first ? block : MS_PLUGIN_NONE;
}

/* Equal shares of the blocks; what stands before them is the first rank's, what
 * stands behind them the last one's. */
static void share(ms_plugin_step *step, uint32_t ranks)
{
    uint32_t blocks = ms_plugin_blocks(step), rank = 0, first = 0;
    for (uint32_t u = 0; u < ms_plugin_units(step) && rank + 1 < ranks; u++)
        if (begins(step, u) == (rank + 1) * blocks / ranks) {
            ms_plugin_stage(step, rank++, first, u - 1);
            first = u;
        }
    ms_plugin_stage(step, rank, first, ms_plugin_units(step) - 1);
}

static int schedule(ms_plugin_step *step)
{
    uint32_t ranks = (uint32_t)ms_plugin_argument(step, RANKS);
    uint32_t n = ms_plugin_micro_batches(step);
    bool first = ms_plugin_argument(step, FIRST) == 1;
    if (ms_plugin_blocks(step) < ranks)
        return ms_plugin_fail(step, "there are fewer blocks than ranks");
    share(step, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t m = 0; m < n; m++)
            ms_plugin_turn(step, MS_PLUGIN_TURN_FORWARD, rank, m);
        for (uint32_t m = 0; m < n; m++)
            ms_plugin_turn(step, MS_PLUGIN_TURN_BACKWARD, rank,
                           first ? m : n - 1 - m);
    }
    return 0;
}

static const ms_plugin_param params[] = {
    [RANKS] = {.name = "ranks",
               .fallback = 1,
               .low = 1,
               .high = 64,
               .help = "ranks that share the blocks; default 1"},
    [FIRST] = {.name = "first",
               .low = 0,
               .high = 1,
               .help = "1: backward begins with the first micro-batch"}};
const ms_plugin ms_plugin_entry = {
    .api = MS_PLUGIN_API,
    .name = "lifo",
    .summary = "all forwards, then all backwards, the last one first",
    .n_params = 2,
    .params = params,
    .ranks = "ranks",
    .schedule = schedule};
