/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plugin with one fault, which is the macro that is defined. */
#include "policies/plugin.h"

#if defined BROKEN_SYMBOL
int ms_no_such_call(ms_plugin_step *step);
#endif

#if !defined BROKEN_HOOKS
static int keep(ms_plugin_step *step)
{
    (void)step;
#if defined BROKEN_SYMBOL
    return ms_no_such_call(step);
#elif defined BROKEN_SILENT
    return 1;
#elif defined BROKEN_FAILS
    return ms_plugin_fail(step, "today is not its day");
#elif defined BROKEN_UNIT
    ms_plugin_segment(step, ms_plugin_units(step), 0);
    ms_plugin_drop(step, MS_PLUGIN_NONE);
    return 0;
#elif defined BROKEN_EARLY
    ms_plugin_copy(step, 0);
    return 0;
#elif defined BROKEN_LATE
    ms_plugin_turn(step, MS_PLUGIN_TURN_FORWARD, 0, 0);
    return 0;
#else
    return 0;
#endif
}
#endif

#if defined BROKEN_PROGRAM || defined BROKEN_STREAM || defined BROKEN_BUFFER
static int place(ms_plugin_step *step)
{
#if defined BROKEN_STREAM
    ms_plugin_task(step, "work", "cream", MS_PLUGIN_NS, 1);
#elif defined BROKEN_BUFFER
    ms_plugin_give_buffer(step, 0, 7);
#else
    for (uint32_t i = 0; i < ms_plugin_calls(step); i++)
        if (ms_plugin_call_verb(step, i) == MS_PLUGIN_BACKWARD)
            ms_plugin_copy(step, i);
#endif
    return 0;
}
#endif

#if defined BROKEN_SHORT || defined BROKEN_TWO || defined BROKEN_RANKS ||      \
    defined BROKEN_HALF
#define BROKEN_TURNS
static int schedule(ms_plugin_step *step)
{
#if defined BROKEN_TWO
    ms_plugin_stage(step, 0, 0, 0);
    ms_plugin_stage(step, 1, 1, ms_plugin_units(step) - 1);
    ms_plugin_turn(step, MS_PLUGIN_TURN_FORWARD, 1, 0);
#elif defined BROKEN_HALF
    ms_plugin_turn(step, (ms_plugin_turn_kind)4, 0, 0);
#else
    ms_plugin_turn(step, MS_PLUGIN_TURN_FORWARD, 0, 0);
#endif
    return 0;
}
#endif

#if defined BROKEN_PAIR
static uint32_t victim(const ms_pluginview *view)
{
    return ms_pluginview_here(view, 0);
}
#endif

/* A wrong version must keep memsim from reading what follows it. */
#if defined BROKEN_API
const ms_plugin ms_plugin_entry = {.api = MS_PLUGIN_API + 1,
                                   .name = (const char *)8};
#elif defined BROKEN_OLD /* made before there was schedule */
const ms_plugin ms_plugin_entry = {.api = 1, .name = (const char *)8};
#elif !defined BROKEN_ENTRY
const ms_plugin ms_plugin_entry = {
    .api = MS_PLUGIN_API,
#if defined BROKEN_TAKEN
    .name = "swap",
#elif !defined BROKEN_NAME
    .name = "broken",
#endif
    .summary = "has one thing wrong",
#if defined BROKEN_PROGRAM || defined BROKEN_STREAM || defined BROKEN_BUFFER
    .place = place,
#endif
#if defined BROKEN_TURNS
    .schedule = schedule,
#endif
#if defined BROKEN_RANKS
    .ranks = "ranks",
#endif
#if defined BROKEN_PAIR
    .victim = victim,
#endif
#if !defined BROKEN_HOOKS
    .keep = keep,
#endif
};
#endif
