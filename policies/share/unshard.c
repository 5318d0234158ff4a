/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/unshardhooks.h"
#include "sim/graph.h"
#include "sim/program.h"

/* The modules that are wrapped: the model, or each stage of a pipeline. */
typedef struct modules {
    const ms_program *old;
    bool staged; /* ms_unshard */
    ms_unshardhooks *hooks;
    const ms_call **last; /* per module: the call that ends its last backward */
    uint32_t *own; /* with stages: ms_stage_units of the rank under way */
    uint32_t rank;
} modules;

/* The module that the call is about; NULL: it is about none. */
static ms_unshardhooks *module_of(modules *m, const ms_call *call)
{
    uint32_t n_units = m->hooks[0].graph->n_units;
    if (!m->staged)
        return &m->hooks[0];
    if (!ms_program_runs(call))
        return NULL;
    if (m->rank != call->rank)
        ms_stage_units(m->old, call->rank, n_units, m->own);
    m->rank = call->rank;
    return &m->hooks[m->own[call->unit] - 1];
}

static ms_err open_modules(modules *m, ms_unshardunits units)
{
    const ms_graph *graph = units.graph;
    uint32_t n = m->staged ? m->old->n_stages : 1;
    m->hooks = ms_arena_take(units.arena, n, sizeof *m->hooks);
    m->last = ms_arena_take(units.arena, n, sizeof(const ms_call *));
    m->own = ms_arena_take(units.arena, graph->n_units, sizeof *m->own);
    m->rank = MS_NONE;
    if (!m->hooks || !m->last || !m->own)
        return ms_fail_nomem(units.fault);
    const ms_call *end = m->old->calls + m->old->n_calls;
    for (uint32_t i = 0; i < n; i++) {
        units.first = m->staged ? m->old->stages[i].first : 0;
        units.last = m->staged ? m->old->stages[i].last : graph->n_units - 1;
        MS_TRY(ms_unshardhooks_open(&units, end, &m->hooks[i]));
    }
    for (const ms_call *call = m->old->calls; call < end; call++)
        if (ms_program_ends_backward(call))
            m->last[module_of(m, call) - m->hooks] = call;
    return MS_OK;
}

static ms_err write_calls(modules *m, ms_program *made, ms_arena *arena,
                          ms_fault *fault)
{
    for (uint32_t i = 0; i < m->old->n_calls; i++) {
        const ms_call *call = &m->old->calls[i];
        ms_unshardhooks *hooks = module_of(m, call);
        if (hooks != NULL)
            MS_TRY(ms_unshardhooks_before(hooks, call));
        MS_TRY(ms_program_add(made, *call, arena, fault));
        if (hooks != NULL && m->staged)
            MS_TRY(ms_unshardhooks_after(hooks, call,
                                         m->last[hooks - m->hooks] == call));
    }
    return MS_OK;
}

ms_err ms_unshard_write(const ms_policy_context *context,
                        const ms_unshard *options, ms_program *program,
                        ms_fault *fault)
{
    ms_program old = *program, made;
    modules m = {.old = &old, .staged = options->staged};
    MS_TRY(
        ms_program_part_replays(context->graph, &old, context->arena, fault));
    MS_TRY(ms_program_fork(&old, context->arena, &made, fault));
    MS_TRY(open_modules(&m, (ms_unshardunits){.graph = context->graph,
                                              .options = options,
                                              .arena = context->arena,
                                              .fault = fault,
                                              .program = &made}));
    MS_TRY(write_calls(&m, &made, context->arena, fault));
    *program = made;
    return MS_OK;
}
