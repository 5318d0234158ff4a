/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a library's policy becomes one of ours: a hook of ours opens a step for
 * that of the library. */
#include "policies/pluginpolicy.h"
#include "policies/common/profile.h"
#include "policies/pluginstep.h"
#include "sim/graph.h"
#include "sim/online.h"
#include "sim/schedule/schedule.h"

#include <string.h>

#define MOST_PLUGINS 16u

/* A policy of a library as one of ours; ours is its first member, so that a
 * pointer to it is one to this. */
typedef struct adapted {
    ms_policy policy;
    ms_param params[MS_POLICY_PARAMS];
    const ms_plugin *plugin;
} adapted;
static adapted rows[MOST_PLUGINS];
static uint32_t n_rows;

static const ms_plugin *plugin_of(const ms_policy_context *context)
{
    uint32_t i = 0;
    while (&rows[i].policy != context->policy)
        i++;
    return rows[i].plugin;
}

/* Combines what the hook returned and what went wrong while it ran. */
static ms_err close_step(const ms_plugin_step *step, int answer)
{
    if (step->err != MS_OK)
        return step->err;
    return answer == 0 ? MS_OK : MS_EINPUT;
}

/* ---- schedule ------------------------------------------------------------ */

/* The row of the parameter that says how many ranks there are; n_params: none
 * does. */
static uint32_t ranks_row(const ms_plugin *plugin)
{
    uint32_t row = 0;
    while (row < plugin->n_params &&
           (plugin->ranks == NULL ||
            strcmp(plugin->params[row].name, plugin->ranks) != 0))
        row++;
    return row;
}

static int64_t ranks_of(const ms_policy_context *context)
{
    const ms_plugin *plugin = plugin_of(context);
    uint32_t row = ranks_row(plugin);
    return row < plugin->n_params ? context->values[row].number : 1;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    return ms_policy_share_layers(context->name, (uint32_t)ranks_of(context),
                                  shape, fault);
}

/* Sorts the turns by rank; those of a rank stay in their order. */
static void sort_turns(const struct ms_pluginstep_turns *from,
                       ms_schedule *schedule)
{
    uint32_t *at = schedule->turn_at, ranks = schedule->n_ranks;
    for (uint32_t i = 0; i < from->n_turns; i++)
        at[from->stages[from->turns[i].stage].rank + 1]++;
    for (uint32_t r = 0; r < ranks; r++)
        at[r + 1] += at[r];
    for (uint32_t i = 0; i < from->n_turns; i++)
        schedule->turns[at[from->stages[from->turns[i].stage].rank]++] =
            from->turns[i];
    for (uint32_t r = ranks; r > 0; r--) /* each offset is the next one's */
        at[r] = at[r - 1];
    at[0] = 0;
}

static ms_err close_turns(const ms_plugin_step *step, ms_schedule *schedule)
{
    const struct ms_pluginstep_turns *from = step->turns;
    ms_arena *arena = step->context->arena;
    uint32_t ranks = 0;
    for (uint32_t k = 0; k < from->n_stages; k++)
        if (from->stages[k].rank >= ranks)
            ranks = from->stages[k].rank + 1u;
    *schedule = (ms_schedule){
        .n_stages = from->n_stages,
        .stages = from->stages,
        .n_ranks = (uint16_t)ranks,
        .n_micro_batches = step->n_micro_batches,
        .turn_at = ms_arena_take(arena, ranks + 1u, sizeof(uint32_t)),
        .turns = ms_arena_take_raw(arena, from->n_turns, sizeof(ms_turn)),
        .receives = from->ahead ? MS_RECEIVE_AHEAD : MS_RECEIVE_NEXT,
        .waits = !from->ahead};
    if (schedule->turn_at == NULL || schedule->turns == NULL)
        return ms_fail_nomem(step->fault);
    sort_turns(from, schedule);
    return MS_OK;
}

/* The shape has the ranks that the parameter says. */
static ms_err check_ranks(const ms_plugin_step *step,
                          const ms_schedule *schedule)
{
    const ms_policy_context *context = step->context;
    int64_t ranks = ranks_of(context);
    if (schedule->n_ranks == ranks)
        return MS_OK;
    return ms_fail(
        step->fault, MS_EINPUT, context->name,
        "set .ranks to the name of the parameter that says how many",
        "the stages are of %u ranks, and the model was made for %lld",
        (unsigned)schedule->n_ranks, (long long)ranks);
}

static ms_err schedule(const ms_policy_context *context, uint32_t micro_batches,
                       ms_schedule *schedule, ms_fault *fault)
{
    struct ms_pluginstep_turns turns = {0};
    ms_plugin_step step = {.context = context,
                           .n_micro_batches = micro_batches,
                           .turns = &turns,
                           .fault = fault};
    MS_TRY(close_step(&step, plugin_of(context)->schedule(&step)));
    if (turns.n_turns == 0 && turns.n_stages == 0)
        return ms_schedule_default(context->graph, micro_batches,
                                   context->arena, schedule, fault);
    if (turns.n_stages == 0)
        ms_plugin_stage(&step, 0, 0, context->graph->n_units - 1);
    MS_TRY(close_step(&step, 0));
    MS_TRY(close_turns(&step, schedule));
    return check_ranks(&step, schedule);
}

/* ---- keep, place --------------------------------------------------------- */

static uint32_t micro_batches_of(const ms_policy_context *context)
{
    return context->schedule->n_micro_batches;
}

static ms_err keep(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault)
{
    ms_plugin_step step = {.context = context,
                           .n_micro_batches = micro_batches_of(context),
                           .keep = keep,
                           .fault = fault};
    return close_step(&step, plugin_of(context)->keep(&step));
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    ms_plugin_step step = {.context = context,
                           .n_micro_batches = micro_batches_of(context),
                           .old = program,
                           .fault = fault};
    MS_TRY(ms_program_fork(program, context->arena, &step.made, fault));
    MS_TRY(close_step(&step, plugin_of(context)->place(&step)));
    if (step.writes)
        *program = step.made;
    return MS_OK;
}

static bool measures(const ms_policy_value *values)
{
    (void)values;
    return true;
}

/* ---- online -------------------------------------------------------------- */

/* What ms_online.setup points to. */
typedef struct watch {
    const ms_plugin *plugin;
    const void *setup;
} watch;

/* A library may name what cannot go. */
static uint32_t victim(const ms_online *online, void *state,
                       const ms_online_view *view)
{
    const watch *w = online->setup;
    ms_pluginview shown = {.of = view, .setup = w->setup, .memory = state};
    shown.n_here = ms_eviction_list(view, &shown.here);
    uint32_t named = w->plugin->victim(&shown);
    bool may =
        named < view->graph->n_storages && ms_eviction_may_go(view, named);
    return may ? named : MS_NONE;
}

static ms_err online(const ms_policy_context *context, ms_online *online,
                     ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    const ms_plugin *plugin = plugin_of(context);
    ms_plugin_step step = {.context = context,
                           .n_micro_batches = micro_batches_of(context),
                           .online = online,
                           .fault = fault};
    watch *w = ms_arena_take(context->arena, 1, sizeof *w);
    if (w == NULL)
        return ms_fail_nomem(fault);
    online->victim = victim;
    online->setup = w;
    online->budget_bytes = ms_plugin_capacity_bytes(&step);
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++)
        online->most_again_ns += 10 * graph->op_ns[op] * step.n_micro_batches;
    MS_TRY(close_step(&step, plugin->online(&step)));
    *w = (watch){plugin, step.setup};
    return MS_OK;
}

/* ---- a row of the registry ----------------------------------------------- */

static ms_param param_of(const ms_plugin_param *param)
{
    static const ms_param_type types[] = {MS_PARAM_INT, MS_PARAM_SIZE,
                                          MS_PARAM_FLAG, MS_PARAM_WORD};
    bool known = (unsigned)param->type < sizeof types / sizeof *types;
    return (ms_param){.name = param->name,
                      .type = known ? types[param->type]
                                    : (ms_param_type)(MS_PARAM_SIZE + 1),
                      .choice = param->choice,
                      .fallback = param->fallback,
                      .low = param->low,
                      .high = param->high,
                      .words = param->words,
                      .help = param->help};
}

/* What takes two members takes both of them. */
static ms_err check_pairs(const ms_plugin *plugin, const char *where,
                          ms_fault *fault)
{
    if ((plugin->online == NULL) != (plugin->victim == NULL))
        return ms_fail(fault, MS_EINPUT, where, "set both, or none",
                       "the policy has one of .online and .victim");
    if (plugin->ranks == NULL)
        return MS_OK;
    uint32_t row = plugin->params != NULL ? ranks_row(plugin) : 0;
    const ms_plugin_param *param = &plugin->params[row];
    if (plugin->schedule != NULL && plugin->params != NULL &&
        row < plugin->n_params && param->type == MS_PLUGIN_INT &&
        param->low > 0 && param->high <= UINT16_MAX)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, where,
                   "name an INT parameter, from 1 to 65535 at most",
                   "the policy's .ranks \"%s\" is no number of ranks for a "
                   "schedule",
                   plugin->ranks);
}

static ms_policy policy_of(const ms_plugin *plugin, const ms_param *params)
{
    return (ms_policy){.name = plugin->name,
                       .summary = plugin->summary,
                       .example = plugin->example,
                       .params = plugin->params != NULL ? params : NULL,
                       .n_params = plugin->n_params,
                       .shape = plugin->ranks != NULL ? shape : NULL,
                       .schedule = plugin->schedule != NULL ? schedule : NULL,
                       .keep = plugin->keep != NULL ? keep : NULL,
                       .place = plugin->place != NULL ? place : NULL,
                       .online = plugin->online != NULL ? online : NULL,
                       .saves = plugin->online != NULL,
                       .measures = plugin->measures ? measures : NULL};
}

ms_err ms_pluginpolicy_of(const ms_plugin *plugin, const char *where,
                          const ms_policy **policy, ms_fault *fault)
{
    adapted *row = &rows[n_rows];
    for (uint32_t i = 0; i < n_rows; i++)
        if (rows[i].plugin == plugin) {
            *policy =
                &rows[i].policy; /* loaded before; the registry tells it */
            return MS_OK;
        }
    if (n_rows == MOST_PLUGINS)
        return ms_fail(fault, MS_EINPUT, where, NULL, "more than %u plugins",
                       MOST_PLUGINS);
    MS_TRY(check_pairs(plugin, where, fault));
    *row =
        (adapted){.plugin = plugin, .policy = policy_of(plugin, row->params)};
    for (uint32_t i = 0;
         i < plugin->n_params && i < MS_POLICY_PARAMS && plugin->params != NULL;
         i++)
        row->params[i] = param_of(&plugin->params[i]);
    n_rows++;
    *policy = &row->policy;
    return MS_OK;
}
