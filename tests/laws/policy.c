/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/policy.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/laws/policy.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

laws_outcome laws_run_policy(const ms_graph *graph, const char *policy,
                             uint64_t copy_ns, uint32_t micro_batches,
                             ms_arena *arena, ms_fault *fault)
{
    laws_outcome out = {0};
    ms_spec spec = {0};
    ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_expand_opts opts = {.copy_ns = copy_ns};
    ms_policy_context context = {
        .graph = graph, .arena = arena, .opts = &opts, .machine = &machine};
    ms_timeline line;
    *fault = (ms_fault){0};
    out.err = ms_spec_parse(policy, arena, &spec, fault);
    if (out.err == MS_OK)
        out.err = ms_apply_program(&spec, &context, micro_batches, &out.program,
                                   fault);
    if (out.err != MS_OK)
        return out;
    opts.uses = true;
    ck_assert_int_eq(ms_check_program(graph, &out.program, fault), MS_OK);
    ck_assert_int_eq(
        ms_expand(graph, &out.program, &opts, arena, &out.plan, fault), MS_OK);
    ck_assert_int_eq(ms_replay(&out.plan, &machine, arena, &line, fault),
                     MS_OK);
    ck_assert_int_eq(ms_measure(&line, &machine, arena, &out.report, fault),
                     MS_OK);
    laws_check_rows(&out.plan);
    laws_check_clock(&out.plan, &line, &machine);
    laws_check_levels(&out.plan, &line);
    return out;
}

uint64_t laws_least_budget(const laws_outcome *out, const ms_fault *fault)
{
    ck_assert_int_eq(out->err, MS_EINFEASIBLE);
    const char *at = strstr(fault->hint, "budget=");
    ck_assert_ptr_nonnull(at);
    return strtoull(at + strlen("budget="), NULL, 10);
}
