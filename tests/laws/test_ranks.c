/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank is a process of its own: whatever other ranks do beside it, and
 * however their calls are mixed with its own in the program, it gets what it
 * gets alone. */
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <string.h>

#define N_TRIALS 400u
#define MOST_RANKS 5u
#define ROOM (UINT64_C(1) << 40)

typedef struct one_run {
    ms_plan plan;
    ms_timeline line;
    ms_report report;
} one_run;

static ms_arena arena;

static one_run *run(const ms_graph *graph, const ms_program *program,
                    const ms_expand_opts *opts, const ms_machine *machine)
{
    ms_fault fault = {0};
    one_run *it = ms_arena_take(&arena, 1, sizeof *it);
    ck_assert_ptr_nonnull(it);
    MUST(ms_check_program(graph, program, &fault));
    MUST(ms_expand(graph, program, opts, &arena, &it->plan, &fault));
    MUST(ms_replay(&it->plan, machine, &arena, &it->line, &fault));
    MUST(ms_measure(&it->line, machine, &arena, &it->report, &fault));
    return it;
}

/* ---- what a rank gets ---------------------------------------------------- */

/* Compares bytes. Both come from arenas, which are zeroed, so that the
 * padding is equal, too. */
static bool same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* The rank's report with the numbers of its rows and ops, which differ, and
 * with the end of the job, which may be later. */
static ms_rank_report alike(const one_run *of, uint32_t rank, uint64_t step_ns)
{
    ms_rank_report it = of->report.ranks[rank];
    it.rank = 0;
    it.peak.event = it.peak.plan_op = 0;
    it.time.idle_ns += step_ns - it.time.step_ns;
    it.stalls_ns[MS_CAUSE_IDLE] += step_ns - it.time.step_ns;
    it.time.step_ns = step_ns;
    return it;
}

static void compare_reports(const one_run *joint, uint32_t rank,
                            const one_run *alone)
{
    uint64_t step_ns = joint->line.step_ns;
    ms_rank_report a = alike(joint, rank, step_ns);
    ms_rank_report b = alike(alone, 0, step_ns);
    LAW(alone->line.step_ns <= step_ns);
    LAW(a.peak.allocated_bytes == b.peak.allocated_bytes);
    LAW(a.peak.number == b.peak.number);
    LAW(same(&a.peak, &b.peak, sizeof a.peak));
    LAW(same(a.levels, b.levels, sizeof a.levels));
    LAW(same(&a.time, &b.time, sizeof a.time));
    LAW(same(a.stalls_ns, b.stalls_ns, sizeof a.stalls_ns));
    LAW(same(&a, &b, sizeof a));
}

static void compare_points(const one_run *joint, uint16_t rank,
                           const one_run *alone)
{
    ms_fault fault = {0};
    ms_point *a, *b;
    uint32_t n, m;
    MUST(ms_timeline_points(&joint->line, rank, 1000000, &arena, &a, &n,
                            &fault));
    MUST(ms_timeline_points(&alone->line, 0, 1000000, &arena, &b, &m, &fault));
    LAW(n == m);
    LAW(n == 0 || same(a, b, n * sizeof *a));
}

/* Compares what is alive at the peak by what the rows hold. */
static void compare_alive(const one_run *joint, uint16_t rank,
                          const one_run *alone)
{
    ms_fault fault = {0};
    uint32_t *a, *b, n, m, event = joint->report.ranks[rank].peak.event;
    MUST(ms_timeline_alive(&joint->line, event, rank, &arena, &a, &n, &fault));
    event = alone->report.ranks[0].peak.event;
    MUST(ms_timeline_alive(&alone->line, event, 0, &arena, &b, &m, &fault));
    LAW(n == m);
    for (uint32_t i = 0; i < n; i++) {
        const ms_row *x = &joint->plan.row[a[i]], *y = &alone->plan.row[b[i]];
        LAW(x->storage == y->storage && x->bytes == y->bytes);
    }
}

/* ---- random programs ----------------------------------------------------- */

typedef struct ranks_trial {
    laws_random random;
    ms_graph graph;
    ms_expand_opts opts;
    uint32_t n;
    ms_program of[MOST_RANKS], joint;
} ranks_trial;

/* Each rank has moves, collectives and work of its own. */
static void open_trial(ranks_trial *trial, uint64_t seed)
{
    ms_fault fault = {0};
    const ms_program *of[MOST_RANKS];
    laws_random *random = &trial->random;
    laws_seed = seed;
    *trial = (ranks_trial){.random = {seed},
                           .opts = {.uses = true,
                                    .hbm_bytes_per_s = 1e11,
                                    .flops_per_s = 1e13,
                                    .h2d_bytes_per_s = 1e10,
                                    .d2h_bytes_per_s = 2e10,
                                    .copy_ns = 7,
                                    .groups = LAWS_GROUPS}};
    laws_graph(random, &arena, &trial->graph);
    bool shares = laws_chance(random, 30);
    if (shares)
        laws_share(random, &trial->graph, &arena);
    trial->n = 2 + laws_below(random, MOST_RANKS - 1);
    uint32_t micro_batches = 1 + laws_below(random, 3);
    for (uint32_t r = 0; r < trial->n; r++) {
        ms_keep keep;
        laws_keep(random, &trial->graph, &arena, &keep);
        MUST(ms_defaultprogram_alone(&trial->graph, &keep, micro_batches,
                                     &arena, &trial->of[r], &fault));
        if (laws_chance(random, 70))
            laws_moves(random, &trial->graph, &arena, &trial->of[r]);
        if (shares)
            laws_collectives(random, &trial->graph, &arena, &trial->of[r]);
        if (laws_chance(random, 50))
            laws_work(random, &trial->graph, &arena, &trial->of[r]);
        of[r] = &trial->of[r];
    }
    trial->joint = laws_ranks(random, of, trial->n, &arena);
}

static void compare_ranks(const ranks_trial *trial, const one_run *joint,
                          const ms_machine *machine, one_run **alone)
{
    for (uint32_t r = 0; r < trial->n; r++) {
        alone[r] = run(&trial->graph, &trial->of[r], &trial->opts, machine);
        compare_reports(joint, r, alone[r]);
        compare_points(joint, (uint16_t)r, alone[r]);
        compare_alive(joint, (uint16_t)r, alone[r]);
    }
}

static void check_host_order(const one_run *it, const ms_machine *machine)
{
    laws_check_rows(&it->plan);
    laws_check_clock(&it->plan, &it->line, machine);
    laws_check_levels(&it->plan, &it->line);
    laws_check_streams(&it->plan);
    laws_check_active(&it->plan, &it->line, machine);
    laws_check_report(&it->line, &it->report, true);
    laws_check_layers(&it->line, &it->report, &arena);
}

static void for_each_trial(void (*law)(ranks_trial *trial))
{
    for (uint64_t seed = 1; seed <= N_TRIALS; seed++) {
        ranks_trial trial;
        open_trial(&trial, seed);
        law(&trial);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}

/* The report is the same where events are not merged by time, but for the time
 * of the peak, which is then its op's, and its number among all of them. */
static void compare_unmerged(const one_run *merged, ms_machine machine)
{
    ms_fault fault = {0};
    ms_timeline line;
    ms_report report;
    machine.unmerged = true;
    MUST(ms_replay(&merged->plan, &machine, &arena, &line, &fault));
    MUST(ms_measure(&line, &machine, &arena, &report, &fault));
    LAW(same(report.far, merged->report.far, sizeof report.far));
    for (uint16_t r = 0; r < report.n_ranks; r++) {
        const ms_rank_report *a = &report.ranks[r];
        ms_rank_report b = merged->report.ranks[r];
        b.peak.event = a->peak.event;
        b.peak.t_ns = a->peak.t_ns;
        LAW(same(a, &b, sizeof b));
    }
}

static void in_host_order(ranks_trial *trial)
{
    ms_machine machine = {.launch_ns = laws_below(&trial->random, 40),
                          .capacity_bytes = ROOM};
    laws_framework(&machine);
    one_run *alone[MOST_RANKS];
    one_run *joint = run(&trial->graph, &trial->joint, &trial->opts, &machine);
    check_host_order(joint, &machine);
    compare_unmerged(joint, machine);
    compare_ranks(trial, joint, &machine, alone);
}

START_TEST(ranks_are_alone_in_host_order)
{
    for_each_trial(in_host_order);
}
END_TEST

/* The same by device time, where ops slow each other and wait for memory. */
static void by_device_time(ranks_trial *trial)
{
    laws_random *random = &trial->random;
    one_run *alone[MOST_RANKS];
    ms_machine machine = {.launch_ns = laws_below(random, 40),
                          .capacity_bytes = ROOM,
                          .book_device = true};
    laws_framework(&machine);
    bool slows = laws_chance(random, 50);
    for (uint32_t s = 0; slows && s < MS_N_STREAMS; s++)
        machine.demand[s][MS_HOST_DRAM].shared =
            (uint16_t)laws_below(random, 1001);
    one_run *joint = run(&trial->graph, &trial->joint, &trial->opts, &machine);
    laws_check_clock(&joint->plan, &joint->line, &machine);
    laws_check_device_levels(&joint->plan, &joint->line);
    laws_check_report(&joint->line, &joint->report, false);
    compare_ranks(trial, joint, &machine, alone);
    uint64_t peak = joint->report.ranks[0].peak.allocated_bytes;
    machine.wall = true;
    machine.capacity_bytes = peak / 2 + laws_below(random, 100) * peak / 150;
    joint = run(&trial->graph, &trial->joint, &trial->opts, &machine);
    compare_ranks(trial, joint, &machine, alone);
    bool lacks = false;
    for (uint32_t r = 0; r < trial->n; r++)
        lacks |= alone[r]->line.lack.missing_bytes > 0;
    LAW(lacks == (joint->line.lack.missing_bytes > 0));
}

START_TEST(ranks_are_alone_by_device_time)
{
    for_each_trial(by_device_time);
}
END_TEST

static ms_pooled_rank pooled_of(one_run *it, uint32_t rank,
                                const ms_machine *machine)
{
    ms_fault fault = {0};
    ms_pooled_setup setup = {.steps = 2};
    if (it->line.pooled == NULL) {
        ms_torch_setup_init(&setup.torch, ROOM);
        MUST(ms_pooled_run(&setup, NULL, machine, &arena, &it->line, &fault));
    }
    ms_pooled_rank out = it->line.pooled->ranks[rank];
    out.at_peak.op = 0;
    return out;
}

static void in_pools(ranks_trial *trial)
{
    ms_machine machine = {.launch_ns = laws_below(&trial->random, 40),
                          .capacity_bytes = ROOM};
    laws_framework(&machine);
    one_run *joint = run(&trial->graph, &trial->joint, &trial->opts, &machine);
    for (uint32_t r = 0; r < trial->n; r++) {
        one_run *alone =
            run(&trial->graph, &trial->of[r], &trial->opts, &machine);
        ms_pooled_rank a = pooled_of(joint, r, &machine);
        ms_pooled_rank b = pooled_of(alone, 0, &machine);
        LAW(same(&a, &b, sizeof a));
        LAW(joint->line.ranks[r].reserved_peak_bytes ==
            alone->line.ranks[0].reserved_peak_bytes);
    }
}

START_TEST(ranks_have_pools_of_their_own)
{
    for_each_trial(in_pools);
}
END_TEST

/* Two equal ranks need twice what one needs in the memory of their node. */
static void twice(ranks_trial *trial)
{
    ms_machine machine = {.launch_ns = laws_below(&trial->random, 40),
                          .capacity_bytes = ROOM};
    laws_framework(&machine);
    const ms_program *of[] = {&trial->of[0], &trial->of[0]};
    ms_program joint = laws_ranks(&trial->random, of, 2, &arena);
    for (int by_device = 0; by_device < 2; by_device++) {
        machine.book_device = by_device;
        one_run *a = run(&trial->graph, &trial->of[0], &trial->opts, &machine);
        one_run *b = run(&trial->graph, &joint, &trial->opts, &machine);
        LAW(b->report.host_peak_bytes == 2 * a->report.host_peak_bytes);
        LAW(b->line.step_ns == a->line.step_ns);
        LAW(b->report.tokens_per_second == 2 * a->report.tokens_per_second ||
            a->report.tokens_per_second < 0);
        LAW(b->report.mfu == a->report.mfu);
    }
}

START_TEST(equal_ranks_need_twice_as_much)
{
    for_each_trial(twice);
}
END_TEST

/* ---- policies, whose programs have buffers ------------------------------- */

static const char model[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 3, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}";
#define ZEROPP                                                                 \
    "zero:3,dp=16,impl=deepspeed,reduce_bucket_size=900,"                      \
    "param_persistence_threshold=64,zero_hpz_partition_size=8,"                \
    "zero_quantized_weights=1,zero_quantized_gradients=1"
#define INFINITY_ON_DISK                                                       \
    "zero:3,dp=4,impl=deepspeed+offload:optimizer/params/gradients,to=nvme,"   \
    "tile=100"
static const char *const policies[] = {
    "none",
    "checkpoint:sqrt+microbatch:2",
    "checkpoint:full,variant=reentrant",
    "swap:vdnn=all+offload:optimizer/gradients",
    "ddp:dp=4",
    "zero:1,dp=4,impl=megatron",
    "zero:1,dp=4,impl=megatron,overlap_grad_reduce=0",
    "zero:1,dp=4,impl=megatron,overlap_param_gather=1",
    "zero:1,dp=4,impl=deepspeed+checkpoint:full",
    "zero:2,dp=3,impl=deepspeed,reduce_bucket_size=700,overlap_comm=1",
    ZEROPP,
    "zero:3,dp=4,impl=deepspeed,param_persistence_threshold=64,"
    "max_reuse_distance=1500,mem_efficient_linear=0+checkpoint:first=1"
    "+microbatch:2",
    "fsdp:dp=6,shard=3,reshard=but_last,units=split,reduce=bf16,sync=last",
    INFINITY_ON_DISK,
};

START_TEST(policies_on_two_ranks)
{
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    ms_expand_opts opts;
    laws_random random = {(uint64_t)_i + 1};
    laws_seed = (uint64_t)_i;
    ms_settings_init(&job);
    job.model = "ranks";
    job.uses = true;
    job.training.batch = 4;
    MUST(ms_read_model_bytes("ranks", model, strlen(model), NULL, 0, &arena,
                             &result.model, &fault));
    result.training = job.training;
    MUST(ms_resolve_training(&result.training, &result.model, &fault));
    MUST(ms_dag_order(&result.model, &arena, &fault));
    MUST(ms_spec_parse(policies[_i], &arena, &job.spec, &fault));
    MUST(ms_jobway_lower(&job, &arena, &result, &fault));
    MUST(ms_jobprogram_make(&job, &arena, &opts, &result, &fault));
    one_run *alone = run(result.graph, result.program, &opts, result.machine);
    for (int order = 0; order < 6; order++) {
        const ms_program *of[] = {result.program, result.program};
        ms_program both = laws_ranks(&random, of, 2, &arena);
        one_run *joint = run(result.graph, &both, &opts, result.machine);
        check_host_order(joint, result.machine);
        compare_reports(joint, 0, alone);
        compare_reports(joint, 1, alone);
        LAW(joint->line.step_ns == alone->line.step_ns);
    }
    ms_arena_free(&arena);
}
END_TEST

/* There are more ranks than a byte counts, and each gets what one alone gets.
 */
START_TEST(many_ranks_are_as_one)
{
    enum { MANY_RANKS = 700 };
    laws_random random = {7};
    ranks_trial trial;
    const ms_program *of[MANY_RANKS];
    ms_machine machine = {.launch_ns = 10, .capacity_bytes = ROOM};
    open_trial(&trial, 7);
    for (uint32_t r = 0; r < MANY_RANKS; r++)
        of[r] = &trial.of[0];
    ms_program many = laws_ranks(&random, of, MANY_RANKS, &arena);
    one_run *alone = run(&trial.graph, &trial.of[0], &trial.opts, &machine);
    one_run *joint = run(&trial.graph, &many, &trial.opts, &machine);
    ck_assert_uint_eq(joint->report.n_ranks, MANY_RANKS);
    for (uint32_t r = 0; r < MANY_RANKS; r++)
        compare_reports(joint, r, alone);
    LAW(joint->line.step_ns == alone->line.step_ns);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_ranks(void)
{
    Suite *suite = suite_create("ranks");
    TCase *tcase = tcase_create("ranks");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, ranks_are_alone_in_host_order);
    tcase_add_test(tcase, ranks_are_alone_by_device_time);
    tcase_add_test(tcase, ranks_have_pools_of_their_own);
    tcase_add_test(tcase, equal_ranks_need_twice_as_much);
    tcase_add_test(tcase, many_ranks_are_as_one);
    tcase_add_loop_test(tcase, policies_on_two_ranks, 0,
                        (int)(sizeof policies / sizeof *policies));
    suite_add_tcase(suite, tcase);
    return suite;
}
