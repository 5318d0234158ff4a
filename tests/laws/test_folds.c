/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is folded is what expand and replay say, to the byte and to the
 * nanosecond, or a reason is given: on random graphs and programs, on equal
 * units, and for compositions of policies.  Refusing everything does not
 * pass. */
#include "policies/common/policy.h"
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/jobprogram.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPHS 2000u
#define PROGRAMS_EACH 3u
#define MANY(list) (sizeof(list) / sizeof *(list))

static ms_arena keep, trial;

/* How many programs there were, and what became of them. */
typedef struct tally {
    uint32_t programs, folded, refused[MS_N_FOLD_WHYS];
    uint32_t categories; /* choices of which these were told */
    uint64_t calls, learnt, repeated;
} tally;

static void close_arenas(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* With several streams all of time is told, and what other memories hold. */
static void check_streamed(const ms_folded *folded, const ms_timeline *line,
                           const ms_machine *machine, const char *what)
{
    ms_fault fault = {0};
    ms_report report;
    const void *time = &folded->time, *measured;
    ck_assert_int_eq(ms_measure(line, machine, &trial, &report, &fault), MS_OK);
    measured = &report.ranks[0].time;
    ck_assert_msg(memcmp(time, measured, sizeof folded->time) == 0,
                  "%s, seed %llu: parts of time", what,
                  (unsigned long long)laws_seed);
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++)
        ck_assert_msg(folded->far[pool].peak_bytes ==
                              report.far[pool].peak_bytes &&
                          folded->far[pool].reserved_bytes ==
                              report.far[pool].reserved_bytes,
                      "%s, seed %llu: memory %d", what,
                      (unsigned long long)laws_seed, pool);
}

/* Of a choice: the categories at the peak, if they are told, are those of the
 * report. */
static void check_categories(ms_fold *fold, const ms_timeline *line,
                             const ms_machine *machine, tally *counts)
{
    ms_fault fault = {0};
    ms_report report;
    uint64_t by_category[MS_N_CATEGORIES];
    if (!ms_fold_categories(fold, by_category))
        return;
    counts->categories++;
    ck_assert_int_eq(ms_measure(line, machine, &trial, &report, &fault), MS_OK);
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        ck_assert_uint_eq(by_category[c], report.ranks[0].peak.by_category[c]);
}

/* What was folded is what expand and replay say; or expand refuses it, too.
 * chosen: by whom, if it is a choice. */
static void check_folded(const ms_folded *folded, ms_fold *chosen,
                         const ms_graph *graph, const ms_program *program,
                         const ms_expand_opts *opts, const ms_machine *machine,
                         const char *what, tally *counts)
{
    ms_fault fault = {0};
    ms_plan plan;
    ms_timeline line;
    counts->programs++;
    counts->refused[folded->why]++;
    ms_err err = ms_expand(graph, program, opts, &trial, &plan, &fault);
    if (err != MS_OK || folded->why != MS_FOLD_WHOLE) {
        ck_assert_msg(folded->why != MS_FOLD_WHOLE, "%s: %s", what, fault.what);
        ck_assert_msg(folded->why != MS_FOLD_FAULT || err != MS_OK,
                      "%s: it can be run", what);
        ck_assert_ptr_nonnull(ms_fold_sentence(folded->why));
        return;
    }
    counts->folded++;
    counts->calls += folded->calls;
    counts->learnt += folded->learnt;
    counts->repeated += folded->repeated;
    ck_assert_int_eq(ms_replay(&plan, machine, &trial, &line, &fault), MS_OK);
    uint64_t allocated = line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes;
    uint64_t reserved = line.ranks[0].reserved_peak_bytes;
    ck_assert_msg(folded->peak_bytes == allocated,
                  "%s, seed %llu: peak %llu, replay %llu", what,
                  (unsigned long long)laws_seed,
                  (unsigned long long)folded->peak_bytes,
                  (unsigned long long)allocated);
    ck_assert_msg(folded->active_bytes == reserved,
                  "%s, seed %llu: active %llu, replay %llu", what,
                  (unsigned long long)laws_seed,
                  (unsigned long long)folded->active_bytes,
                  (unsigned long long)reserved);
    ck_assert_msg(folded->step_ns == line.step_ns,
                  "%s, seed %llu: time %llu, replay %llu", what,
                  (unsigned long long)laws_seed,
                  (unsigned long long)folded->step_ns,
                  (unsigned long long)line.step_ns);
    if (folded->streamed)
        check_streamed(folded, &line, machine, what);
    if (chosen != NULL)
        check_categories(chosen, &line, machine, counts);
}

static void check_program(ms_fold *fold, const ms_graph *graph,
                          const ms_program *program, const ms_expand_opts *opts,
                          const ms_machine *machine, const char *what,
                          tally *counts)
{
    ms_fault fault = {0};
    ms_folded folded;
    ck_assert_int_eq(ms_fold_program(fold, program, &folded, &fault), MS_OK);
    check_folded(&folded, NULL, graph, program, opts, machine, what, counts);
}

#define MOST_STRETCHES 8u

/* Stretches of random lengths, between which units are open. */
static uint32_t draw_stretches(laws_random *random, uint32_t n_units,
                               ms_fold_stretch *stretches)
{
    uint32_t at = laws_below(random, 3), n = 0;
    while (n < MOST_STRETCHES && at < n_units) {
        uint32_t left = n_units - at;
        uint32_t units = 1 + laws_below(random, left < 6 ? left : 6);
        uint32_t segments = 1 + laws_below(random, left / units);
        stretches[n++] = (ms_fold_stretch){at, units, segments};
        at += units * segments + laws_below(random, 4) / 2;
    }
    return laws_chance(random, 10) ? 0 : n;
}

static void check_choice(ms_fold *fold, laws_random *random,
                         const ms_graph *graph, const ms_machine *machine,
                         tally *counts)
{
    const ms_expand_opts opts = {0};
    ms_fold_stretch stretches[MOST_STRETCHES];
    ms_fault fault = {0};
    ms_folded folded;
    ms_keep choices;
    ms_program program;
    ms_fold_choice choice = {
        .stretches = stretches,
        .n_stretches = draw_stretches(random, graph->n_units, stretches),
        .micro_batches = 1 + laws_below(random, 6),
        .reentrant = laws_chance(random, 30),
        .early_stop = laws_chance(random, 70)};
    ms_arena_reset(&trial);
    ck_assert_int_eq(ms_program_keep_all(graph, &trial, &choices, &fault),
                     MS_OK);
    ms_choice_keep(graph, &choice, &choices);
    ck_assert_int_eq(ms_defaultprogram_alone(graph, &choices,
                                             choice.micro_batches, &trial,
                                             &program, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_fold_choose(fold, &choice, &folded, &fault), MS_OK);
    check_folded(&folded, fold, graph, &program, &opts, machine, "choice",
                 counts);
}

static void check_random_programs(laws_random *random, const ms_graph *graph,
                                  uint32_t n, const char *what, tally *counts)
{
    const ms_expand_opts opts = {0};
    ms_machine machine = {.launch_ns = laws_below(random, 150)};
    laws_framework(&machine);
    ms_fault fault = {0};
    ms_fold *fold;
    ck_assert_int_eq(ms_fold_open(graph, &opts, &machine, &keep, &fold, &fault),
                     MS_OK);
    for (uint32_t i = 0; i < n; i++) {
        ms_keep choices;
        ms_program program;
        uint32_t micro_batches = 1 + laws_below(random, 6);
        ms_arena_reset(&trial);
        laws_keep(random, graph, &trial, &choices);
        ck_assert_int_eq(ms_defaultprogram_alone(graph, &choices, micro_batches,
                                                 &trial, &program, &fault),
                         MS_OK);
        if (laws_chance(random, 5))
            laws_moves(random, graph, &trial, &program);
        check_program(fold, graph, &program, &opts, &machine, what, counts);
    }
    ms_fold_close(fold);
}

static void print_counts(const char *what, const tally *counts)
{
    if (getenv("MEMSIM_TALK") == NULL)
        return;
    printf("%s: %u programs, %u folded, %u with categories, %llu calls, %llu "
           "learnt, %llu repeated\n",
           what, counts->programs, counts->folded, counts->categories,
           (unsigned long long)counts->calls,
           (unsigned long long)counts->learnt,
           (unsigned long long)counts->repeated);
    for (uint32_t why = 1; why < MS_N_FOLD_WHYS; why++)
        if (counts->refused[why] > 0)
            printf("    %u: %s\n", counts->refused[why],
                   ms_fold_sentence((ms_fold_why)why));
}

/* A quarter of these graphs has ops on two streams, and a few programs move
 * storages. */
START_TEST(random_programs)
{
    tally counts = {0};
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&keep);
        laws_graph(&random, &keep, &graph);
        check_random_programs(&random, &graph, PROGRAMS_EACH, "random",
                              &counts);
    }
    print_counts("random", &counts);
    ck_assert_uint_eq(counts.programs, GRAPHS * PROGRAMS_EACH);
    ck_assert_uint_ge(counts.folded, counts.programs * 95 / 100);
    close_arenas();
}
END_TEST

/* Rates, groups, and ops that slow each other, all at random. */
static void draw_machine(laws_random *random, ms_expand_opts *opts,
                         ms_machine *machine)
{
    *opts = (ms_expand_opts){.h2d_bytes_per_s = 1e11,
                             .d2h_bytes_per_s = 5e10,
                             .host_bytes_per_s = 2e11,
                             .nvme_read_bytes_per_s = 1e10,
                             .nvme_write_bytes_per_s = 5e9,
                             .hbm_bytes_per_s = 1e12,
                             .copy_ns = laws_below(random, 20),
                             .groups = LAWS_GROUPS};
    *machine = (ms_machine){.launch_ns = laws_below(random, 150)};
    laws_framework(machine);
    for (uint32_t s = 0; s < MS_N_STREAMS && laws_chance(random, 60); s++)
        machine->demand[s][laws_below(random, MS_N_RESOURCES)] =
            (ms_demand){.held = (uint16_t)laws_below(random, 400),
                        .shared = (uint16_t)laws_below(random, 1000)};
}

/* One micro-batch after the other with what several policies add: shared
 * states, moves, work. */
static void draw_streams(laws_random *random, const ms_graph *graph,
                         ms_program *program)
{
    ms_fault fault = {0};
    ms_keep choices;
    ms_arena_reset(&trial);
    laws_keep(random, graph, &trial, &choices);
    ck_assert_int_eq(ms_defaultprogram_alone(graph, &choices,
                                             1 + laws_below(random, 4), &trial,
                                             program, &fault),
                     MS_OK);
    if (laws_chance(random, 50))
        laws_collectives(random, graph, &trial, program);
    if (laws_chance(random, 50))
        laws_moves(random, graph, &trial, program);
    if (laws_chance(random, 30))
        laws_work(random, graph, &trial, program);
}

/* Some of what random programs gather outlives the call that has asked. */
START_TEST(random_streams)
{
    tally counts = {0};
    for (laws_seed = 1; laws_seed <= GRAPHS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_expand_opts opts;
        ms_machine machine;
        ms_fault fault = {0};
        ms_graph graph;
        ms_fold *fold;
        ms_arena_reset(&keep);
        if (laws_chance(&random, 60))
            laws_graph(&random, &keep, &graph);
        else
            laws_chain(1 + laws_below(&random, 20), 1000, &keep, &graph);
        if (laws_chance(&random, 60))
            laws_share(&random, &graph, &keep);
        draw_machine(&random, &opts, &machine);
        ck_assert_int_eq(
            ms_fold_open(&graph, &opts, &machine, &keep, &fold, &fault), MS_OK);
        for (uint32_t i = 0; i < PROGRAMS_EACH; i++) {
            ms_program program;
            draw_streams(&random, &graph, &program);
            check_program(fold, &graph, &program, &opts, &machine, "streams",
                          &counts);
        }
        ms_fold_close(fold);
    }
    print_counts("streams", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 7 / 10);
    close_arenas();
}
END_TEST

/* Equal units share what is learnt. */
START_TEST(equal_units)
{
    tally counts = {0};
    for (laws_seed = 1; laws_seed <= 200; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&keep);
        laws_chain(1 + laws_below(&random, 40), 1000, &keep, &graph);
        check_random_programs(&random, &graph, 20, "chain", &counts);
    }
    print_counts("equal units", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 9 / 10);
    ck_assert_uint_lt(3 * counts.learnt, counts.calls);
    close_arenas();
}
END_TEST

static const char *const models[] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 6, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}",
    "{\"memsim\": 1, \"name\": \"cnn\", \"input\": {\"shape\": [3, 16, 16]}, "
    "\"layers\": [{\"repeat\": 5, \"name\": \"b\", \"layers\": ["
    "{\"type\": \"conv2d\", \"out\": 8, \"kernel\": 3, \"padding\": 1}, "
    "{\"type\": \"batch_norm\"}, {\"type\": \"relu\", \"inplace\": true}]}, "
    "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 10}, "
    "{\"type\": \"cross_entropy\"}]}",
};
static const char *const checkpoints[] = {"",
                                          "+checkpoint:full",
                                          "+checkpoint:sqrt",
                                          "+checkpoint:every=2",
                                          "+checkpoint:every=4",
                                          "+checkpoint:selective",
                                          "+checkpoint:sac",
                                          "+checkpoint:full,variant=reentrant",
                                          "+checkpoint:sqrt,variant=reentrant"};
static const char *const micro_batches[] = {"", "+microbatch:4"};
/* With more than one stream, behind the first. */
static const char *const others[] = {"",
                                     "+ddp:dp=4",
                                     "+zero:1,dp=4",
                                     "+zero:2,dp=4",
                                     "+zero:3,dp=4",
                                     "+fsdp:dp=4",
                                     "+fsdp:dp=4,impl=1",
                                     "+deepspeed:3,dp=4",
                                     "+offload:optimizer",
                                     "+swap:vdnn=all",
                                     "+tensor:2,sp+zero:2,dp=4",
                                     "+context:2,mode=ring+zero:3,dp=4"};

/* Steps of the job through the evaluator, and through expand and replay. */
static void check_policy(const char *model, const char *policy, tally *counts)
{
    static ms_arena lowered;
    ms_fault fault = {0};
    ms_job job;
    ms_result result = {0};
    ms_expand_opts opts;
    ms_fold *fold;
    ms_arena_reset(&lowered);
    ms_arena_reset(&trial);
    ms_settings_init(&job);
    job.training.batch = 4;
    if (inlined_lower(model, policy, &job, &lowered, &result, &fault) != MS_OK)
        return;
    ck_assert_msg(ms_jobprogram_make(&job, &trial, &opts, &result, &fault) ==
                      MS_OK,
                  "%s: %s", policy, fault.what);
    ck_assert_int_eq(ms_fold_open(result.graph, &opts, result.machine, &lowered,
                                  &fold, &fault),
                     MS_OK);
    for (int again = 0; again < 2; again++)
        check_program(fold, result.graph, result.program, &opts, result.machine,
                      policy, counts);
    ms_fold_close(fold);
    ms_arena_free(&lowered);
}

/* Every composition is folded, whatever its streams. */
START_TEST(compositions)
{
    tally plain = {0}, rest = {0};
    char policy[160];
    for (size_t i = 0; i < MANY(models) * MANY(checkpoints) *
                               MANY(micro_batches) * MANY(others);
         i++) {
        size_t k = i / MANY(models), c = k % MANY(checkpoints);
        size_t m = k / MANY(checkpoints) % MANY(micro_batches);
        size_t o = k / MANY(checkpoints) / MANY(micro_batches);
        snprintf(policy, sizeof policy, "none%s%s%s", checkpoints[c],
                 micro_batches[m], others[o]);
        check_policy(models[i % MANY(models)], policy, o == 0 ? &plain : &rest);
    }
    print_counts("compositions", &plain);
    print_counts("with others", &rest);
    ck_assert_uint_ge(plain.programs, 60);
    ck_assert_uint_eq(plain.folded, plain.programs);
    ck_assert_uint_ge(rest.programs, 500);
    ck_assert_uint_eq(rest.folded, rest.programs);
    close_arenas();
}
END_TEST

static void check_choices(laws_random *random, const ms_graph *graph,
                          uint32_t n, tally *counts)
{
    const ms_expand_opts opts = {0};
    ms_machine machine = {.launch_ns = laws_below(random, 150)};
    laws_framework(&machine);
    ms_fault fault = {0};
    ms_fold *fold;
    ck_assert_int_eq(ms_fold_open(graph, &opts, &machine, &keep, &fold, &fault),
                     MS_OK);
    for (uint32_t i = 0; i < n; i++)
        check_choice(fold, random, graph, &machine, counts);
    ms_fold_close(fold);
}

/* Choices by stretches of units, without a program. */
START_TEST(random_choices)
{
    tally random_graphs = {0}, chains = {0};
    for (laws_seed = 1; laws_seed <= 500; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&keep);
        laws_graph(&random, &keep, &graph);
        check_choices(&random, &graph, 5, &random_graphs);
        ms_arena_reset(&keep);
        laws_chain(1 + laws_below(&random, 60), 1000, &keep, &graph);
        check_choices(&random, &graph, 10, &chains);
    }
    print_counts("choices", &random_graphs);
    print_counts("choices of chains", &chains);
    ck_assert_uint_ge(random_graphs.categories, random_graphs.folded / 4);
    ck_assert_uint_ge(chains.categories, chains.folded / 2);
    ck_assert_uint_ge(random_graphs.folded, random_graphs.programs / 2);
    ck_assert_uint_eq(chains.folded, chains.programs);
    close_arenas();
}
END_TEST

/* ---- graphs that differ in numbers alone --------------------------------- */

/* Equal numbers stay equal, unless each is drawn by itself. */
static uint64_t *draw_numbers(laws_random *random, bool apart,
                              const uint64_t *numbers, uint32_t n)
{
    uint64_t factor = 1 + laws_below(random, 7), more = laws_below(random, 99);
    uint64_t *drawn = ms_arena_take(&keep, n, sizeof *drawn);
    for (uint32_t i = 0; i < n; i++)
        drawn[i] = apart && laws_chance(random, 5)
                       ? laws_below(random, 5000)
                       : numbers[i] * factor + numbers[i] % 3 * more;
    return drawn;
}

static void copy_graph(const ms_graph *graph, laws_random *random, bool apart,
                       ms_graph *copy)
{
    ms_fault fault = {0};
    *copy = *graph;
    copy->storage_bytes =
        draw_numbers(random, apart, graph->storage_bytes, graph->n_storages);
    copy->op_ns = draw_numbers(random, apart, graph->op_ns, graph->n_ops);
    ck_assert_int_eq(ms_prepare_graph(copy, &keep, &fault), MS_OK);
}

/* Programs and choices of one graph, then of one like it with what was learnt
 * of the first, and so on; the machine's rates change, too. */
static void check_turns(laws_random *random, ms_graph *graph, tally *counts,
                        uint32_t *turned)
{
    const ms_expand_opts opts = {0};
    ms_machine machine = {.launch_ns = laws_below(random, 150)};
    ms_fault fault = {0};
    ms_graph graphs[4];
    ms_fold *fold;
    ck_assert_int_eq(ms_prepare_graph(graph, &keep, &fault), MS_OK);
    ck_assert_int_eq(ms_fold_open(graph, &opts, &machine, &keep, &fold, &fault),
                     MS_OK);
    const ms_graph *now = graph;
    for (uint32_t i = 0; i < 4; i++) {
        copy_graph(graph, random, i == 2, &graphs[i]);
        if (ms_fold_turn(fold, &graphs[i])) {
            now = &graphs[i];
            machine.launch_ns = laws_below(random, 150);
            ++*turned;
        }
        laws_random again = {laws_seed}; /* the same choices each time */
        for (uint32_t k = 0; k < 3; k++)
            check_choice(fold, &again, now, &machine, counts);
        for (uint32_t k = 0; k < 2; k++) {
            ms_keep choices;
            ms_program program;
            ms_arena_reset(&trial);
            laws_keep(&again, now, &trial, &choices);
            ck_assert_int_eq(ms_defaultprogram_alone(now, &choices, 2, &trial,
                                                     &program, &fault),
                             MS_OK);
            check_program(fold, now, &program, &opts, &machine, "turned",
                          counts);
        }
    }
    ms_fold_close(fold);
}

START_TEST(other_numbers)
{
    tally counts = {0};
    uint32_t turned = 0;
    for (laws_seed = 1; laws_seed <= 400; laws_seed++) {
        laws_random random = {laws_seed};
        ms_graph graph;
        ms_arena_reset(&keep);
        if (laws_seed % 2 == 0)
            laws_graph(&random, &keep, &graph);
        else
            laws_chain(1 + laws_below(&random, 30), 1000, &keep, &graph);
        check_turns(&random, &graph, &counts, &turned);
    }
    print_counts("other numbers", &counts);
    ck_assert_uint_ge(counts.folded, counts.programs * 3 / 4);
    ck_assert_uint_ge(turned, 800);
    close_arenas();
}
END_TEST

/* What is learnt of the same programs is learnt once, and many others do not
 * make the evaluator grow without end. */
START_TEST(bounded_memory)
{
    const ms_expand_opts opts = {0};
    const ms_machine machine = {.launch_ns = 5};
    ms_fault fault = {0};
    ms_fold *fold;
    ms_graph graph;
    uint64_t bytes = 0, most_bytes = 0;
    laws_chain(100, 1000, &keep, &graph);
    ck_assert_int_eq(
        ms_fold_open(&graph, &opts, &machine, &keep, &fold, &fault), MS_OK);
    for (uint32_t i = 0; i < 6000; i++) {
        laws_random random = {i % 2 == 0 ? 7 : i};
        ms_keep choices;
        ms_program program;
        ms_folded folded;
        ms_arena_reset(&trial);
        laws_keep(&random, &graph, &trial, &choices);
        ck_assert_int_eq(ms_defaultprogram_alone(&graph, &choices, 2, &trial,
                                                 &program, &fault),
                         MS_OK);
        ck_assert_int_eq(ms_fold_program(fold, &program, &folded, &fault),
                         MS_OK);
        ck_assert_int_eq(folded.why, MS_FOLD_WHOLE);
        bytes = ms_fold_bytes(fold);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    ms_fold_close(fold);
    ck_assert_uint_lt(most_bytes, UINT64_C(64) << 20);
    close_arenas();
}
END_TEST

Suite *suite_folds(void)
{
    Suite *suite = suite_create("folds");
    TCase *tcase = tcase_create("folds");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, random_programs);
    tcase_add_test(tcase, random_streams);
    tcase_add_test(tcase, equal_units);
    tcase_add_test(tcase, random_choices);
    tcase_add_test(tcase, compositions);
    tcase_add_test(tcase, other_numbers);
    tcase_add_test(tcase, bounded_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
