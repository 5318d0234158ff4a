/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_LAWS_POLICY_H
#define MS_TESTS_LAWS_POLICY_H

/* What a policy makes of a graph by hand, held to the laws. */

#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"

/* The result of a policy's run of a graph, if err is MS_OK. */
typedef struct laws_outcome {
    ms_err err;
    ms_program program;
    ms_plan plan;
    ms_report report;
} laws_outcome;

/* Runs a policy on a device with room for everything, with copies of copy_ns
 * each, and checks the laws. The outcome points into arena and graph. */
laws_outcome laws_run_policy(const ms_graph *graph, const char *policy,
                             uint64_t copy_ns, uint32_t micro_batches,
                             ms_arena *arena, ms_fault *fault);
/* The least budget, which the refusal names. */
uint64_t laws_least_budget(const laws_outcome *out, const ms_fault *fault);

#endif
