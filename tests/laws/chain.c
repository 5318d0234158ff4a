/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/laws/chain.h"
#include "sim/program.h"
#include "tests/laws/policy.h"

#include <check.h>

ms_arena chain_arena;
ms_fault chain_fault;
ms_graph chain_graph;

void chain_setup(void)
{
    chain_arena = (ms_arena){0};
    chain_fault = (ms_fault){0};
    laws_chain(CHAIN_UNITS, CHAIN_BYTES, &chain_arena, &chain_graph);
}

void chain_teardown(void)
{
    ms_arena_free(&chain_arena);
}

laws_outcome chain_run(const char *policy, uint64_t copy_ns,
                       uint32_t micro_batches)
{
    return laws_run_policy(&chain_graph, policy, copy_ns, micro_batches,
                           &chain_arena, &chain_fault);
}

uint32_t chain_moved(const laws_outcome *out,
                     uint32_t storages[2 * CHAIN_UNITS])
{
    const ms_program *program = &out->program;
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_MOVE || call->move.to != MS_HOST)
            continue;
        for (uint32_t k = program->set_at[call->set];
             k < program->set_at[call->set + 1]; k++) {
            ck_assert_uint_lt(n, 2 * CHAIN_UNITS);
            storages[n++] = program->set_item[k];
        }
    }
    return n;
}
