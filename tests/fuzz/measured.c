/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes bytes as a measured file: a chain, a DAG or the log of a run.  Nodes
 * are then run by DTR in two budgets, and in the least time of all orders:
 * what comes out keeps to the budget and takes the time of all nodes and of
 * those that ran again. */
#include "graphs/lowering/nodegraph.h"
#include "graphs/model.h"
#include "graphs/nodelist.h"
#include "policies/solve/evictor.h"
#include "sim/graph.h"
#include "tests/fuzz/fuzz.h"

#define MOST_NODES 2000u /* larger ones take too long */
#define MOST_SEARCHED 14u

static uint64_t all_ns(const ms_graph *graph)
{
    uint64_t ns = 0;
    for (uint32_t op = 0; op < graph->n_ops; op++)
        ns += graph->op_ns[op];
    return ns;
}

static uint64_t all_bytes(const ms_graph *graph)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_storages; s++)
        bytes += graph->storage_bytes[s];
    return bytes;
}

static void evict(const ms_graph *graph, ms_evictor_heuristic heuristic,
                  uint64_t budget_bytes)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    ms_evictor_run made;
    const ms_evictor_setup setup = {.heuristic = heuristic,
                                    .seed = 1,
                                    .budget_bytes = budget_bytes,
                                    .most_again_ns = 4 * all_ns(graph)};
    ms_err err = ms_evictor_find(graph, &setup, &arena, &made, &fault);
    FUZZ_LAW(err == fault.err);
    if (err == MS_OK && made.status == MS_EVICTOR_OK) {
        FUZZ_LAW(made.peak_bytes <= budget_bytes);
        FUZZ_LAW(made.time_ns == all_ns(graph) + made.again_ns);
    }
    ms_arena_free(&arena);
}

static void search(const ms_graph *graph, uint64_t budget_bytes)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    ms_nodedag dag;
    ms_pebble pebble;
    ms_err err = ms_nodedag_find(graph, &arena, &dag, &fault);
    if (err == MS_OK)
        err = ms_pebble_find(&dag, budget_bytes, &arena, &pebble, &fault);
    if (err == MS_OK && pebble.ended) {
        uint64_t ns, peak_bytes;
        FUZZ_LAW(ms_dagcost_find(&dag, &pebble.plan, &arena, &ns, &peak_bytes,
                                 &fault) == MS_OK);
        FUZZ_LAW(ns == pebble.time_ns && peak_bytes <= budget_bytes);
    }
    ms_arena_free(&arena);
}

static void run_nodes(const ms_model *model, ms_arena *arena)
{
    ms_fault fault = {0};
    ms_graph graph;
    if (ms_nodegraph_lower(model, arena, &graph, &fault) != MS_OK)
        return;
    uint64_t bytes = all_bytes(&graph);
    for (uint32_t h = MS_EVICTOR_DTR; h <= MS_EVICTOR_ESIZE; h++) {
        evict(&graph, (ms_evictor_heuristic)h, bytes / 2 + 1);
        evict(&graph, (ms_evictor_heuristic)h, bytes / 4 + 1);
    }
    if (graph.n_ops <= MOST_SEARCHED)
        search(&graph, bytes / 2 + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    ms_model model;
    ms_err err = ms_read_model_bytes("fuzz.json", (const char *)bytes, length,
                                     NULL, 0, &arena, &model, &fault);
    FUZZ_LAW(err == fault.err);
    FUZZ_LAW(err == MS_OK || (fault.what[0] != '\0' && fault.where[0] != '\0'));
    if (err == MS_OK && model.nodes != NULL && model.nodes->n <= MOST_NODES)
        run_nodes(&model, &arena);
    ms_arena_free(&arena);
    return 0;
}
