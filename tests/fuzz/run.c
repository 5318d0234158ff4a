/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs all of memsim: the first line is a policy, the rest a model file.
 * Every event log must end with all rows freed but those that the step
 * leaves, and its peak must be the highest level that a naive sum finds. */
#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/training.h"
#include "tests/fuzz/fuzz.h"
#include "tools/cli/commands.h"

#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"

#include <string.h>

#define MAX_LAYERS 300u

static void check_levels(const ms_timeline *line)
{
    const ms_plan *plan = line->plan;
    uint64_t level = 0, peak = 0, last_ns = 0;
    for (uint32_t i = 0; i < line->n_events; i++) {
        const ms_event *event = &line->events[i];
        uint64_t bytes = plan->row[event->row].bytes;
        FUZZ_LAW(event->t_ns >= last_ns);
        last_ns = event->t_ns;
        if (plan->row[event->row].pool != MS_DEVICE_POOL)
            continue;
        FUZZ_LAW((event->op_act & 1) != 0 || level >= bytes);
        level = (event->op_act & 1) != 0 ? level + bytes : level - bytes;
        peak = level > peak ? level : peak;
    }
    FUZZ_LAW(peak == line->ranks[0].pool[MS_DEVICE_POOL].peak_bytes);
    FUZZ_LAW(level == line->ranks[0].pool[MS_DEVICE_POOL].now_bytes);
}

static ms_err simulate(const ms_graph *graph, const ms_program *program,
                       ms_arena *arena, ms_fault *fault)
{
    const ms_machine machine = {.launch_ns = 5000,
                                .capacity_bytes = UINT64_C(1) << 34};
    ms_expand_opts opts = {0};
    ms_plan plan;
    ms_timeline line;
    ms_report report;
    MS_TRY(ms_expand(graph, program, &opts, arena, &plan, fault));
    MS_TRY(ms_replay(&plan, &machine, arena, &line, fault));
    check_levels(&line);
    return ms_measure(&line, &machine, arena, &report, fault);
}

static ms_err run(const char *policy, const char *bytes, size_t length,
                  ms_arena *arena, ms_fault *fault)
{
    ms_shape shape = {.batch = 4, .micro_batches = 1, .data_ranks = 1};
    ms_spec spec = {0};
    ms_model model;
    ms_training training;
    ms_graph graph;
    ms_program program = {0};
    ms_training_init(&training);
    training.batch = (int64_t)shape.batch;
    MS_TRY(ms_spec_parse(policy, arena, &spec, fault));
    MS_TRY(ms_apply_shape(&spec, &shape, fault));
    MS_TRY(ms_read_model_bytes("fuzz.json", bytes, length, NULL, 0, arena,
                               &model, fault));
    if (model.n_layers > MAX_LAYERS)
        return MS_OK;
    MS_TRY(ms_resolve_training(&training, &model, fault));
    MS_TRY(ms_dag_order(&model, arena, fault));
    MS_TRY(ms_lower(&model, &training, ms_devicerows_at(0), &shape, arena,
                    &graph, fault));
    FUZZ_LAW(ms_graph_check(&graph, fault) == MS_OK);
    MS_TRY(ms_apply_program(
        &spec, &(ms_policy_context){.graph = &graph, .arena = arena},
        shape.micro_batches, &program, fault));
    FUZZ_LAW(ms_check_program(&graph, &program, fault) == MS_OK);
    return simulate(&graph, &program, arena, fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const uint8_t *end = memchr(bytes, '\n', length);
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - bytes);
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    const char *policy = ms_arena_text(&arena, (const char *)bytes, head);
    if (policy != NULL) {
        ms_err err = run(policy, (const char *)end + 1, length - head - 1,
                         &arena, &fault);
        FUZZ_LAW(err == fault.err);
    }
    ms_arena_free(&arena);
    return 0;
}
