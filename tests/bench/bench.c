/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim-bench [./memsim] [PART...]: how fast the way through the house is, as
 * JSON, in CPU time.  Each figure is the best and the median of its runs.  With
 * the path of a memsim binary whole processes are timed, too, by the wall.
 * Nothing fails for being slow: machines differ; the budgets are
 *
 *     lower_ns_per_op      1000   of the graph
 *     read_mb_per_s          50   of an op graph of 100,000 ops
 *     expand_ns_per_op       15
 *     replay_ns_per_event     8   measure_ns_per_event 8
 *     streams_ns_per_event   12   replay with every stream busy; the second
 *                                 figure: where each op slows the others
 *     ranks_64_ns_per_op          many ranks that wait for each other, no
 *                                 slower than one, but for the heap of ranks
 *     torch_train_ns_per_op 100   a malloc or free of the torch pool
 *     placement_7000_ms      50   a static plan, greedy by size
 *     exact_ms            71600   plans of minimalloc's files (MEMSIM_TRUTH)
 *     offload_ms             20   GPT-3 175B with ZeRO-3, offload to the disk
 *                                 and checkpoints, the whole way; its parts per
 *                                 op and event below
 *     choices_1000_ms      1000   program, expand, replay of one lowered model
 *     choice_choices_us       2   peak and time of a checkpoint choice, folded,
 *                                 against replay_choices_us; new_: of choices
 *                                 that are new; program_: with a program
 *     choice_micro_64_us     31   the same of 64 micro-batches
 *     pipeline_told_ms       50   GPT-3, 8 stages x 512 micro-batches, from few
 *     pipeline_replayed_ms 1000   _16x64_ 10, _toy_ 200 (64 ranks x 8 x 512)
 *     library_policy_exact_us 10  libmemsim: another policy, evaluated
 *     library_batch_exact_us      another batch: 50 more than it is lowered
 *     process_version_ms    1.5   memsim --version
 *     process_exact_ms        4   GPT-3 175B, checkpoint:sqrt, --json, exact
 *     process_run_ms         15   the same through the torch pool; no slower
 *     builtin_slowest_ms          is a run of any built-in model
 *     deepseek_v3_lower_ms   20   61 layers of 256 experts
 *     lower_gpt3_us         260   lower_llama-2-7b_us 120, lower_deepseek-v3_us
 *                                 300; megatron_apart_: blocks one by one, the
 *                                 same ns per op for more and more layers
 *     sweep_choices_us       30   a point of llama-2-7b, 32 checkpoint choices
 *     sweep_mixed_us         40   a point of 96 policies of all kinds, -j2
 *     sweep_10000_ms      20000   10,000 points of a 7B model, two threads
 *     layers_million_ms    5000   a chain of 10^6 layers, as a process, _mib
 *                          1536   it holds; _exact_ 2000, 1024; unequal_ ones
 *     record_ns_per_event    50   a step of 1.4 million events to its record
 *     figure_million_ms    2000   its figure as PNG: more than without it
 *     layers_12 ... layers_10000: the same ns per op and event, within noise
 *     growth_NAME_exponent    1   of the last doubling: depth, pipelines
 *     fit_7b_ms            1000   llama-2-7b on 8 GPUs; fit_175b_ms 5000 */
#include "graphs/modelgraph.h"
#include "plots/record/record.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/pools/place/placement.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/bench/demand.h"
#include "tests/bench/evaluations.h"
#include "tests/bench/families.h"
#include "tests/bench/folding.h"
#include "tests/bench/growth.h"
#include "tests/bench/ops.h"
#include "tests/bench/pipelines.h"
#include "tests/bench/plans.h"
#include "tests/bench/pools.h"
#include "tests/bench/processes.h"
#include "tests/bench/ranks.h"
#include "tests/bench/solvers.h"
#include "tests/bench/streams.h"
#include "tests/bench/times.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/library/runrecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOWER_RUNS 5

/* The objects of a run, from a model to its timeline. */
struct way {
    ms_arena keep, trial;
    ms_model model;
    ms_training training;
    ms_graph graph;
    ms_program program;
    ms_plan plan;
    ms_timeline line;
};

static void read_model(const char *name, const char *layers, struct way *way)
{
    ms_override override = {.key = "layers", .value = layers};
    ms_fault fault = {0};
    ms_training_init(&way->training);
    demand(ms_read_model(name, &override, layers != NULL, &way->keep,
                         &way->model, &fault),
           &fault);
    demand(ms_resolve_training(&way->training, &way->model, &fault), &fault);
    demand(ms_dag_order(&way->model, &way->keep, &fault), &fault);
}

static void lower(struct way *way, ms_arena *arena)
{
    const ms_device *device;
    ms_shape shape = {.micro_batches = 1, .data_ranks = 1};
    ms_fault fault = {0};
    demand(ms_device_find("h100", &device, &fault), &fault);
    demand(ms_lower(&way->model, &way->training, device, &shape, arena,
                    &way->graph, &fault),
           &fault);
}

static void write_program(struct way *way, const char *policy)
{
    ms_spec spec = {0};
    ms_fault fault = {0};
    way->program = (ms_program){0};
    demand(ms_spec_parse(policy, &way->trial, &spec, &fault), &fault);
    demand(ms_apply_program(
               &spec,
               &(ms_policy_context){.graph = &way->graph, .arena = &way->trial},
               1, &way->program, &fault),
           &fault);
}

static void expand(struct way *way)
{
    ms_expand_opts opts = {0};
    ms_fault fault = {0};
    demand(ms_expand(&way->graph, &way->program, &opts, &way->trial, &way->plan,
                     &fault),
           &fault);
}

static void replay(struct way *way)
{
    const ms_machine machine = {.launch_ns = 5000,
                                .capacity_bytes = UINT64_C(80) << 30};
    ms_fault fault = {0};
    demand(ms_replay(&way->plan, &machine, &way->trial, &way->line, &fault),
           &fault);
}

static void measure(struct way *way)
{
    const ms_machine machine = {.capacity_bytes = UINT64_C(80) << 30};
    ms_report report;
    ms_fault fault = {0};
    demand(ms_measure(&way->line, &machine, &way->trial, &report, &fault),
           &fault);
}

static void time_lower(struct way *way)
{
    struct bench_times times = {.n = LOWER_RUNS};
    for (size_t i = 0; i < times.n; i++) {
        ms_arena_reset(&way->trial);
        double t0 = bench_times_now_ns();
        lower(way, &way->trial);
        times.ns[i] = bench_times_now_ns() - t0;
    }
    bench_times_print("lower_ns_per_op", &times, way->graph.n_ops);
    ms_arena_free(&way->trial);
}

/* Times the parts of a run, per op or event; the first run warms up. */
static void time_step(struct way *way, const char *policy, size_t runs)
{
    struct bench_times parts[3] = {{.n = runs}, {.n = runs}, {.n = runs}};
    for (size_t i = 0; i <= runs; i++) {
        size_t run = i > 0 ? i - 1 : 0;
        ms_arena_reset(&way->trial);
        write_program(way, policy);
        double t0 = bench_times_now_ns();
        expand(way);
        double t1 = bench_times_now_ns();
        replay(way);
        double t2 = bench_times_now_ns();
        measure(way);
        parts[0].ns[run] = t1 - t0;
        parts[1].ns[run] = t2 - t1;
        parts[2].ns[run] = bench_times_now_ns() - t2;
    }
    printf(",\n  \"ops\": %u, \"events\": %u", way->plan.n_ops,
           way->line.n_events);
    bench_times_print("expand_ns_per_op", &parts[0], way->plan.n_ops);
    bench_times_print("replay_ns_per_event", &parts[1], way->line.n_events);
    bench_times_print("measure_ns_per_event", &parts[2], way->line.n_events);
}

static void bench_step(const char *label, const char *model, const char *layers,
                       const char *policy, size_t runs)
{
    struct way way = {0};
    double t0 = bench_times_now_ns();
    read_model(model, layers, &way);
    lower(&way, &way.keep);
    printf(",\n \"%s\": {\"policy\": \"%s\", \"read_and_lower_ms\": %.3f",
           label, policy, (bench_times_now_ns() - t0) / 1e6);
    time_lower(&way);
    lower(&way, &way.keep);
    time_step(&way, policy, runs);
    printf("}");
    ms_arena_free(&way.trial);
    ms_arena_free(&way.keep);
}

/* Times an exported graph from its bytes on. */
static void bench_ops(const char *label, unsigned blocks)
{
    struct way way = {0};
    ms_arena arena = {0};
    ms_text text = {.arena = &arena};
    ms_fault fault = {0};
    double best_ns = 0;
    bench_ops_chain(blocks, &arena, &text);
    ms_training_init(&way.training);
    for (size_t i = 0; i < LOWER_RUNS; i++) {
        ms_arena_reset(&way.keep);
        double t0 = bench_times_now_ns();
        demand(ms_read_model_bytes("chain.graph.json", text.bytes, text.length,
                                   NULL, 0, &way.keep, &way.model, &fault),
               &fault);
        double ns = bench_times_now_ns() - t0;
        best_ns = i == 0 || ns < best_ns ? ns : best_ns;
    }
    demand(ms_resolve_training(&way.training, &way.model, &fault), &fault);
    demand(ms_dag_order(&way.model, &way.keep, &fault), &fault);
    printf(",\n \"%s\": {\"read_mb_per_s\": %.0f", label,
           text.length * 1e3 / best_ns);
    lower(&way, &way.trial);
    time_lower(&way);
    printf("}");
    ms_arena_free(&way.keep);
    ms_arena_free(&arena);
}

static void bench_streams(const char *label, bool interfering)
{
    struct bench_times times = {.n = 21};
    const ms_graph graph = {.name = "streams"};
    ms_machine machine = bench_streams_machine(interfering);
    ms_arena keep = {0}, trial = {0};
    ms_plan plan;
    ms_timeline line = {0};
    ms_fault fault = {0};
    if (!bench_streams_plan(20000, &graph, &keep, &plan))
        demand(ms_fail_nomem(&fault), &fault);
    for (size_t i = 0; i <= times.n; i++) {
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(ms_replay(&plan, &machine, &trial, &line, &fault), &fault);
        times.ns[i > 0 ? i - 1 : 0] = bench_times_now_ns() - t0;
    }
    bench_times_print(label, &times, line.n_events);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

/* So many ranks that wait for each other, of as many ops in all. */
static void bench_ranks(const char *label, uint32_t ranks, bool interfering)
{
    struct bench_times times = {.n = 5};
    bench_ranks_size size = {ranks, 512, 64 / ranks};
    ms_machine machine = bench_streams_machine(interfering);
    ms_arena keep = {0}, trial = {0};
    ms_graph graph = {.name = "ranks"};
    ms_plan plan = {0};
    ms_timeline line = {0};
    ms_fault fault = {0};
    if (!bench_ranks_plan(size, &graph, &keep, &plan))
        demand(ms_fail_nomem(&fault), &fault);
    for (size_t i = 0; i <= times.n; i++) {
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(ms_replay(&plan, &machine, &trial, &line, &fault), &fault);
        times.ns[i > 0 ? i - 1 : 0] = bench_times_now_ns() - t0;
    }
    bench_times_print(label, &times, plan.n_ops);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

/* A step with all streams busy: ranks share, gather, copy and read the disk. */
static void bench_offload(void)
{
    enum { RUNS = 21 };
    const char *words[] = {"gpt3.json", "-p", "checkpoint:full+zero:3,dp=8",
                           "-p", "offload:optimizer/params/gradients,to=nvme"};
    struct bench_times all = {.n = RUNS}, parts[2] = {{.n = RUNS}, {.n = RUNS}};
    ms_arena keep = {0}, trial = {0}, words_arena = {0};
    ms_fault fault = {0};
    ms_arguments arguments = {0};
    ms_result result = {0};
    ms_job job;
    demand(ms_options_parse(MS_FOR_RUN, words, 5, &words_arena, &arguments,
                            &fault),
           &fault);
    demand(ms_settings_read(&arguments, &words_arena, &job, &fault), &fault);
    for (size_t i = 0; i < RUNS; i++) {
        ms_arena_reset(&keep);
        ms_arena_reset(&trial);
        result = (ms_result){0};
        demand(ms_jobway_read(&job, &keep, &result, &fault), &fault);
        double t0 = bench_times_now_ns();
        demand(ms_jobway_lower(&job, &keep, &result, &fault), &fault);
        demand(ms_jobway_step(&job, &trial, &result, &fault), &fault);
        all.ns[i] = bench_times_now_ns() - t0;
        ms_expand_opts opts = ms_stepmachine_rates(job.device, &result.shape);
        t0 = bench_times_now_ns();
        demand(ms_expand(result.graph, result.program, &opts, &trial,
                         result.plan, &fault),
               &fault);
        double t1 = bench_times_now_ns();
        demand(
            ms_replay(result.plan, result.machine, &trial, result.line, &fault),
            &fault);
        parts[0].ns[i] = t1 - t0;
        parts[1].ns[i] = bench_times_now_ns() - t1;
    }
    printf(",\n  \"offload_ops\": %u, \"offload_events\": %u",
           result.plan->n_ops, result.line->n_events);
    bench_times_print("offload_ms", &all, 1e6);
    bench_times_print("offload_expand_ns_per_op", &parts[0],
                      result.plan->n_ops);
    bench_times_print("offload_replay_ns_per_event", &parts[1],
                      result.line->n_events);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
    ms_arena_free(&words_arena);
}

/* Times traces of tests/truth/allocator, and that of MEMSIM_BENCH_TRACE. */
static void bench_pools(const char *label, const char *path,
                        ms_heap_options heap)
{
    struct bench_times times = {.n = BENCH_TIMES_MOST};
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    bench_pools_trace trace;
    if (!bench_pools_read(path, &keep, &trace)) {
        fprintf(stderr, "memsim-bench: %s: cannot read\n", path);
        exit(EXIT_FAILURE);
    }
    trace.setup.heap = heap;
    for (size_t i = 0; i <= times.n; i++) {
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(bench_pools_replay(&trace, &trial, &fault), &fault);
        times.ns[i > 0 ? i - 1 : 0] = bench_times_now_ns() - t0;
    }
    bench_times_print(label, &times, trace.n_ops);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

static void bench_every_pool(void)
{
    static const char train[] =
        MEMSIM_SOURCE_DIR "/tests/truth/allocator/train_default.txt";
    static const char lack[] =
        MEMSIM_SOURCE_DIR "/tests/truth/allocator/train_fp32_oom.txt";
    const char *more = getenv("MEMSIM_BENCH_TRACE");
    ms_heap_options torch = {.kind = MS_POOL_TORCH};
    bench_pools("torch_train_ns_per_op", train, torch);
    bench_pools("torch_train_oom_ns_per_op", lack, torch);
    bench_pools("bfc_train_ns_per_op", train,
                (ms_heap_options){.kind = MS_POOL_BFC, .allow_growth = true});
    bench_pools("buddy_train_ns_per_op", train,
                (ms_heap_options){.kind = MS_POOL_BUDDY});
    bench_pools("contiguous_train_ns_per_op", train,
                (ms_heap_options){.kind = MS_POOL_CONTIGUOUS});
    if (more != NULL)
        bench_pools("torch_more_ns_per_op", more, torch);
}

/* Half of the buffers live briefly, like temporaries; half long, like saves. */
static void bench_placement(void)
{
    enum { N = 7000 };
    static ms_placement_buffer buffers[N];
    static uint64_t offsets[N];
    struct bench_times times = {.n = 5};
    ms_arena trial = {0};
    ms_fault fault = {0};
    uint64_t random = 1, height;
    for (uint32_t i = 0; i < N; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t span = i % 2 == 0 ? 1 + (random >> 60) : 2 * (N - i);
        buffers[i] =
            (ms_placement_buffer){i, i + span, 512 * (1 + (random >> 48)), 1};
    }
    for (size_t i = 0; i <= times.n; i++) {
        ms_arena_reset(&trial);
        double t0 = bench_times_now_ns();
        demand(ms_placement_greedy(buffers, N, MS_PLACEMENT_SIZE, offsets,
                                   &height, &fault),
               &fault);
        times.ns[i > 0 ? i - 1 : 0] = bench_times_now_ns() - t0;
    }
    bench_times_print("placement_7000_ms", &times, 1e6);
    ms_arena_free(&trial);
}

static void bench_choices(const char *memsim)
{
    (void)memsim;
    struct way way = {0};
    struct bench_times all = {.n = 3};
    char policy[64];
    read_model("gpt3.json", NULL, &way);
    lower(&way, &way.keep);
    for (size_t run = 0; run < all.n; run++) {
        double t0 = bench_times_now_ns();
        for (unsigned i = 0; i < 1000; i++) {
            ms_arena_reset(&way.trial);
            snprintf(policy, sizeof policy, "checkpoint:every=%u", 1 + i % 96);
            write_program(&way, policy);
            expand(&way);
            replay(&way);
        }
        all.ns[run] = bench_times_now_ns() - t0;
    }
    bench_times_print("choices_1000_ms", &all, 1e6);
    ms_arena_free(&way.trial);
    ms_arena_free(&way.keep);
}

static void bench_exact(void)
{
    struct bench_times all = {.n = 1};
    for (const char *letter = BENCH_PLANS; *letter != '\0'; letter++) {
        char label[] = {'e', 'x', 'a', 'c', 't', '_', *letter, '\0'};
        struct bench_times times = {.n = 1};
        if (!bench_plans_search(*letter, &times.ns[0]))
            return;
        bench_times_print(label, &times, 1e6);
        all.ns[0] += times.ns[0];
    }
    bench_times_print("exact_ms", &all, 1e6);
}

static void bench_record(const char *memsim)
{
    (void)memsim;
    enum { RUNS = 11 };
    const char *words[] = {"gpt3.json", "--batch=128", "-p", "microbatch:128"};
    struct bench_times times = {.n = RUNS};
    ms_arena keep = {0}, trial = {0}, drawn = {0};
    ms_fault fault = {0};
    ms_arguments arguments = {0};
    ms_result result = {0};
    ms_record record;
    ms_job job;
    demand(ms_options_parse(MS_FOR_RUN, words, 4, &keep, &arguments, &fault),
           &fault);
    demand(ms_settings_read(&arguments, &keep, &job, &fault), &fault);
    demand(ms_jobway_run(&job, &keep, &trial, &result, &fault), &fault);
    for (size_t i = 0; i < RUNS; i++) {
        ms_arena_reset(&drawn);
        double t0 = bench_times_now_ns();
        demand(ms_runrecord_of(&job, &result, "microbatch:128", &drawn, &record,
                               &fault),
               &fault);
        times.ns[i] = bench_times_now_ns() - t0;
    }
    printf(",\n  \"record_events\": %u", result.line->n_events);
    bench_times_print("record_ns_per_event", &times, result.line->n_events);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
    ms_arena_free(&drawn);
}

/* ---- the parts ----------------------------------------------------------- */

static void bench_steps(const char *memsim)
{
    (void)memsim;
    bench_step("gpt3", "gpt3.json", NULL, "none", 51);
    bench_step("gpt3_sqrt", "gpt3.json", NULL, "checkpoint:sqrt", 51);
    bench_step("layers_12", "gpt3-small", "12", "checkpoint:sqrt", 51);
    bench_step("layers_100", "gpt3-small", "100", "checkpoint:sqrt", 21);
    bench_step("layers_1000", "gpt3-small", "1000", "checkpoint:sqrt", 11);
    bench_step("layers_10000", "gpt3-small", "10000", "checkpoint:sqrt", 5);
    bench_step("mixtral", "mixtral-8x7b", NULL, "checkpoint:sqrt", 21);
    bench_step("resnet50", "resnet50", NULL, "checkpoint:sqrt", 51);
}

static void bench_opgraphs(const char *memsim)
{
    (void)memsim;
    bench_ops("ops_1000", 333);
    bench_ops("ops_100000", 33333);
}

static void bench_lowering(const char *memsim)
{
    (void)memsim;
    bench_families_lower();
    bench_families_stamp();
}

static void bench_clocks(const char *memsim)
{
    (void)memsim;
    bench_streams("streams_ns_per_event", false);
    bench_streams("streams_slowed_ns_per_event", true);
    bench_offload();
}

/* The same number of ops, of more and more ranks. */
static void bench_every_ranks(const char *memsim)
{
    (void)memsim;
    bench_ranks("ranks_1_ns_per_op", 1, false);
    bench_ranks("ranks_8_ns_per_op", 8, false);
    bench_ranks("ranks_64_ns_per_op", 64, false);
    bench_ranks("ranks_1_slowed_ns_per_op", 1, true);
    bench_ranks("ranks_8_slowed_ns_per_op", 8, true);
    bench_ranks("ranks_64_slowed_ns_per_op", 64, true);
}

static void bench_allocators(const char *memsim)
{
    (void)memsim;
    bench_every_pool();
    bench_placement();
    bench_exact();
}

/* memsim: the program to start, or NULL where a part needs none. */
static const struct bench_part {
    const char *name;
    void (*run)(const char *memsim);
    bool starts; /* runs the program */
} parts[] = {
    {"steps", bench_steps, false},
    {"opgraphs", bench_opgraphs, false},
    {"lowering", bench_lowering, false},
    {"clocks", bench_clocks, false},
    {"ranks", bench_every_ranks, false},
    {"allocators", bench_allocators, false},
    {"recordings", bench_record, false},
    {"policies", bench_choices, false},
    {"library", bench_evaluations_run, false},
    {"folding", bench_folding_run, false},
    {"pipelines", bench_pipelines_run, false},
    {"growth", bench_growth_run, false},
    {"solvers", bench_solvers_run, false},
    {"processes", bench_processes_start, true},
    {"fit", bench_processes_fit, true},
    {"sweep", bench_processes_sweep, true},
    {"calibrate", bench_processes_calibrate, true},
    {"million", bench_processes_million, true},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static bool is_wanted(const char *part, int n, char **words)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], part) == 0)
            return true;
    return n == 0;
}

static void check_words(int n, char **words)
{
    for (int i = 0; i < n; i++) {
        size_t part = 0;
        while (part < N_PARTS && strcmp(parts[part].name, words[i]) != 0)
            part++;
        if (part < N_PARTS)
            continue;
        fprintf(stderr, "memsim-bench: %s: no such part; there are:", words[i]);
        for (part = 0; part < N_PARTS; part++)
            fprintf(stderr, " %s", parts[part].name);
        fprintf(stderr, "\n");
        exit(EXIT_FAILURE);
    }
}

/* memsim-bench [./memsim] [PART...]: all parts, or those named; those that
 * start the program run where its path (with a slash) comes first. */
int main(int argc, char **argv)
{
    const char *memsim = argc > 1 && strchr(argv[1], '/') ? argv[1] : NULL;
    int first = memsim ? 2 : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    check_words(argc - first, argv + first);
    printf("{\"memsim\": \"%s\"", MS_VERSION);
    for (size_t i = 0; i < N_PARTS; i++)
        if ((memsim || !parts[i].starts) &&
            is_wanted(parts[i].name, argc - first, argv + first))
            parts[i].run(memsim);
    printf("\n}\n");
    return EXIT_SUCCESS;
}
