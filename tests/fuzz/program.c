/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes bytes as the text of a program over one small graph. A program that
 * can be read is printed and must give the same text again, and a legal one
 * is replayed and measured. */
#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/training.h"
#include "tests/fuzz/fuzz.h"
#include "tools/cli/commands.h"

#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"

#include <string.h>

static const char model_text[] =
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [8]},\n"
    " \"layers\": [{\"repeat\": 4, \"name\": \"hidden\", \"layers\": [\n"
    "   {\"type\": \"linear\", \"out\": 16}, {\"type\": \"relu\"}]},\n"
    "  {\"type\": \"linear\", \"name\": \"head\", \"out\": 4},\n"
    "  {\"type\": \"cross_entropy\"}]}\n";

static const ms_machine machine = {.launch_ns = 5000,
                                   .capacity_bytes = 1u << 30};

/* The graph is lowered once and kept for the life of the process. */
static const ms_graph *small_graph(void)
{
    static ms_arena keep;
    static ms_graph graph;
    ms_model model;
    ms_training training;
    ms_shape shape = {.micro_batches = 1, .data_ranks = 1};
    ms_fault fault = {0};
    if (graph.n_ops > 0)
        return &graph;
    ms_training_init(&training);
    FUZZ_LAW(ms_read_model_bytes("mlp.json", model_text, strlen(model_text),
                                 NULL, 0, &keep, &model, &fault) == MS_OK);
    FUZZ_LAW(ms_resolve_training(&training, &model, &fault) == MS_OK);
    FUZZ_LAW(ms_dag_order(&model, &keep, &fault) == MS_OK);
    FUZZ_LAW(ms_lower(&model, &training, ms_devicerows_at(0), &shape, &keep,
                      &graph, &fault) == MS_OK);
    return &graph;
}

static void check_print(const ms_graph *graph, const ms_program *program,
                        ms_arena *arena)
{
    ms_text first = {.arena = arena}, second = {.arena = arena};
    ms_program again = {0};
    ms_fault fault = {0};
    ms_dump_program(graph, program, &first);
    if (first.failed || first.length == 0)
        return;
    FUZZ_LAW(ms_dumpread_program(graph, "again", first.bytes, first.length,
                                 arena, &again, &fault) == MS_OK);
    ms_dump_program(graph, &again, &second);
    FUZZ_LAW(strcmp(first.bytes, second.bytes) == 0);
}

static ms_err replay(const ms_graph *graph, const ms_program *program,
                     ms_arena *arena, ms_fault *fault)
{
    ms_expand_opts opts = {.uses = true};
    ms_plan plan;
    ms_timeline line;
    ms_report report;
    MS_TRY(ms_check_program(graph, program, fault));
    MS_TRY(ms_expand(graph, program, &opts, arena, &plan, fault));
    MS_TRY(ms_replay(&plan, &machine, arena, &line, fault));
    return ms_measure(&line, &machine, arena, &report, fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const ms_graph *graph = small_graph();
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    ms_program program = {0};
    ms_err err = ms_dumpread_program(graph, "fuzz", (const char *)bytes, length,
                                     &arena, &program, &fault);
    if (err == MS_OK) {
        check_print(graph, &program, &arena);
        err = replay(graph, &program, &arena, &fault);
    }
    FUZZ_LAW(err == fault.err);
    ms_arena_free(&arena);
    return 0;
}
