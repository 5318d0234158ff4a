/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plugin with one thing wrong: the one that is defined. */
#include "policies/policies.h"

#if defined BROKEN_SYMBOL
ms_err ms_no_such_call(ms_keep *keep);
#endif

#if !defined BROKEN_HOOKS
static ms_err keep(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault)
{
    (void)context;
    (void)keep;
    (void)fault;
#if defined BROKEN_SYMBOL
    return ms_no_such_call(keep);
#elif defined BROKEN_SILENT
    return MS_EINPUT;
#else
    return MS_OK;
#endif
}
#endif

#if defined BROKEN_PROGRAM
/* Runs a unit that is not there. */
static ms_err program(const ms_policy_context *context, ms_program *program,
                      ms_fault *fault)
{
    ms_call call = ms_program_call(MS_RUN);
    call.unit = context->graph->n_units;
    return ms_program_add(program, call, context->arena, fault);
}
#endif

const ms_policy ms_broken = {
#if defined BROKEN_TAKEN
    .name = "swap",
#elif !defined BROKEN_NAME
    .name = "broken",
#endif
    .summary = "has one thing wrong",
#if defined BROKEN_PROGRAM
    .program = program,
#endif
#if !defined BROKEN_HOOKS
    .keep = keep,
#endif
};

/* What is behind a wrong number must not be read. */
#if defined BROKEN_ABI
const ms_plugin ms_plugin_entry = {.abi = MS_PLUGIN_ABI + 1,
                                   .policy = (const ms_policy *)8};
#elif !defined BROKEN_ENTRY
const ms_plugin ms_plugin_entry = {.abi = MS_PLUGIN_ABI, .policy = &ms_broken};
#endif
