/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of the Gantt chart and of the trace: what they show adds up to the
 * report, for policies that use several streams. */
#include "graphs/json/json.h"
#include "graphs/training.h"
#include "plots/plots.h"
#include "plots/record/lanes.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/measure/waits.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const policies[] = {"none",
                                       "checkpoint:full+microbatch:2",
                                       "zero:3,dp=8",
                                       "ddp:dp=8",
                                       "swap:te=6",
                                       "swap:vdnn=all",
                                       "swap:save_on_cpu",
                                       "zero:2,dp=16",
                                       "fsdp:dp=8", /* updates in backward */
                                       "zero:2,dp=8,impl=deepspeed+offload:"
                                       "optimizer",
                                       "offload:optimizer/gradients",
                                       ("zero:3,dp=8+offload:optimizer/params,"
                                        "to=nvme")};
#define N_POLICIES ((int)(sizeof policies / sizeof policies[0]))

/* Steps near the capacity, in which prefetches are revoked and issued again. */
static const struct {
    const char *model, *policy;
    int64_t batch;
    uint64_t memory_bytes;
} walls[] = {
    {"vgg16", "swap:vdnn=all", 32, UINT64_C(2300) << 20},
    {"vgg16", "swap:torchtune", 32, UINT64_C(2458) << 20},
    {"gpt2", "offload:optimizer/params", 2, UINT64_C(2600) << 20},
};
#define N_WALLS ((int)(sizeof walls / sizeof walls[0]))

static ms_arena keep, trial;
static ms_fault fault;
static ms_job job;
static ms_result result;

#define MUST(call) ck_assert_msg((call) == MS_OK, "%s", fault.what)

static void setup(void)
{
    keep = trial = (ms_arena){0};
    fault = (ms_fault){0};
    folder_open();
}

static void teardown(void)
{
    folder_close();
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

static const ms_times *run_job(const char *policy)
{
    MUST(ms_spec_parse(policy, &keep, &job.spec, &fault));
    MUST(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    return &result.report->ranks[0].time;
}

/* Runs policy i, or, for numbers behind the policies, a step near the
 * capacity. */
static const ms_times *run(int i)
{
    ms_settings_init(&job);
    job.model = "gpt2";
    job.training.batch = 2;
    if (i < N_POLICIES && strncmp(policies[i], "fsdp", 4) == 0)
        job.training.optimizer_in_backward = 1;
    if (i < N_POLICIES)
        return run_job(policies[i]);
    job.model = walls[i - N_POLICIES].model;
    job.training.batch = walls[i - N_POLICIES].batch;
    job.training.optimizer = MS_SGD;
    job.memory_bytes = walls[i - N_POLICIES].memory_bytes;
    job.wall = job.book_device = true;
    const ms_times *time = run_job(walls[i - N_POLICIES].policy);
    ck_assert_uint_gt(result.report->revoked_prefetches, 0);
    return time;
}

/* ---- lanes --------------------------------------------------------------- */

/* Slices of 1 ns or more are the spans themselves: each has one kind of
 * work. */
static void check_tiling(const ms_slicer *spans)
{
    uint8_t before = MS_N_WORKS;
    for (uint32_t i = 0; i < spans->n; i++) {
        const ms_slice *span = &spans->slices[i];
        uint8_t work = 0;
        while (span->work_ns[work] == 0)
            work++;
        ck_assert_uint_eq(span->work_ns[work], span->to_ns - span->from_ns);
        ck_assert_uint_eq(span->from_ns,
                          i > 0 ? spans->slices[i - 1].to_ns : 0);
        ck_assert_uint_ne(work, before);
        before = work;
    }
    ck_assert_uint_eq(spans->slices[spans->n - 1].to_ns, result.line->step_ns);
}

static uint64_t busy_ns(uint32_t stream)
{
    uint64_t t_ns = 0;
    for (uint32_t op = 0; op < result.plan->n_ops; op++)
        if (result.plan->op[op].stream == stream)
            t_ns += result.line->end_ns[op] - result.line->start_ns[op];
    for (uint32_t i = 0; i < result.line->n_revoked; i++) {
        const struct ms_revoked *it = &result.line->revoked[i];
        if (it->came && result.plan->op[it->op].stream == stream)
            t_ns += it->end_ns - it->start_ns;
    }
    return t_ns;
}

static void check_compute(const uint64_t *work_ns, const ms_times *time)
{
    ck_assert_uint_eq(work_ns[MS_WORK_FORWARD], time->forward_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_RECOMPUTE], time->recompute_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_BACKWARD], time->backward_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_OPTIMIZER], time->optimizer_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_H2D] + work_ns[MS_WORK_D2H] +
                          work_ns[MS_WORK_PACK] + work_ns[MS_WORK_WAIT_COPY] +
                          work_ns[MS_WORK_WAIT_DISK] +
                          work_ns[MS_WORK_WAIT_CORES],
                      time->stall_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_WAIT_COMM], time->exposed_comm_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_WAIT_HOST], time->host_bound_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_WAIT_RANK], time->bubble_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_WAIT_MEMORY], time->memory_wait_ns);
    ck_assert_uint_eq(work_ns[MS_WORK_IDLE], time->idle_ns);
}

/* A stream of its own works as long as the report says of its link; copies
 * in line are on the lane of the compute stream. */
static void check_links(uint64_t (*work_ns)[MS_N_WORKS])
{
    static const struct {
        uint8_t stream, link, work;
    } links[] = {
        {MS_STREAM_COMM, MS_LINK_COMM, MS_WORK_COMM},
        {MS_STREAM_OUTER, MS_LINK_OUTER, MS_WORK_COMM},
        {MS_STREAM_H2D, MS_LINK_H2D, MS_WORK_H2D},
        {MS_STREAM_D2H, MS_LINK_D2H, MS_WORK_D2H},
        {MS_STREAM_HOST, MS_LINK_HOST, MS_WORK_HOST},
        {MS_STREAM_NVME_READ, MS_LINK_NVME_READ, MS_WORK_NVME},
        {MS_STREAM_NVME_WRITE, MS_LINK_NVME_WRITE, MS_WORK_NVME},
    };
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        ck_assert_uint_eq(
            work_ns[links[i].stream][links[i].work] +
                work_ns[MS_STREAM_COMPUTE][links[i].work],
            result.report->ranks[0].links[links[i].link].time.busy_ns);
}

static ms_slicer slice(ms_lanes *lanes, uint8_t stream, uint64_t least_ns)
{
    ms_slicer slicer = {.arena = &trial, .least_ns = least_ns};
    MUST(ms_lanes_slices(lanes, (ms_stream_kind)stream, &slicer, &fault));
    return slicer;
}

/* Wide slices lose no work, and no slice is narrower than asked for. */
static void check_slices(const ms_slicer *slicer, const ms_slicer *spans)
{
    uint64_t sum_ns[MS_N_WORKS] = {0};
    ck_assert_uint_le(slicer->n, spans->n);
    for (uint32_t i = 0; i < slicer->n; i++) {
        const ms_slice *slice = &slicer->slices[i];
        ck_assert_uint_eq(slice->from_ns, i > 0 ? slice[-1].to_ns : 0);
        ck_assert(slicer->n == 1 ||
                  slice->to_ns - slice->from_ns >= slicer->least_ns);
        for (int work = 0; work < MS_N_WORKS; work++)
            sum_ns[work] += slice->work_ns[work];
    }
    ck_assert_uint_eq(slicer->slices[slicer->n - 1].to_ns,
                      result.line->step_ns);
    ck_assert_mem_eq(sum_ns, spans->work_ns, sizeof sum_ns);
    ck_assert_mem_eq(sum_ns, slicer->work_ns, sizeof sum_ns);
}

START_TEST(lanes_add_up_to_the_report)
{
    const ms_times *time = run(_i);
    uint64_t work_ns[MS_N_STREAMS][MS_N_WORKS];
    ms_lanes lanes;
    MUST(ms_lanes_open(&lanes, result.line, 0, &trial, &fault));
    for (uint8_t stream = 0; stream < MS_N_STREAMS; stream++) {
        ms_slicer spans = slice(&lanes, stream, 1);
        check_tiling(&spans);
        memcpy(work_ns[stream], spans.work_ns, sizeof work_ns[stream]);
        if (stream == MS_STREAM_COMPUTE)
            check_compute(spans.work_ns, time);
        else
            ck_assert_uint_eq(result.line->step_ns -
                                  spans.work_ns[MS_WORK_IDLE],
                              busy_ns(stream));
        ck_assert_uint_eq(lanes.busy_ns[stream], busy_ns(stream));
        for (uint64_t least_ns = 1; least_ns < 2 * result.line->step_ns;
             least_ns *= 3) {
            ms_slicer slicer = slice(&lanes, stream, least_ns);
            check_slices(&slicer, &spans);
        }
    }
    check_links(work_ns);
}
END_TEST

/* ---- what runs again ----------------------------------------------------- */

static const char *const replays[] = {
    "none", "checkpoint:full+microbatch:3", "checkpoint:sqrt+swap:checkpoints",
    "checkpoint:sac+fsdp:dp=8", "swap:superneurons,budget=7GiB"};
#define N_REPLAYS ((int)(sizeof replays / sizeof replays[0]))

/* The curve of a record never falls and ends where the report's sums are. */
START_TEST(recomputing_adds_up_to_the_report)
{
    ms_report_names names = {"gpt2", "device", replays[_i], NULL, NULL, NULL};
    ms_record record;
    ms_settings_init(&job);
    job.model = "gpt2";
    job.training.batch = 6;
    const ms_times *time = run_job(replays[_i]);
    MUST(ms_record_of(result.line, result.report, &names, &trial, &record,
                      &fault));
    const ms_record_rank *rank = &record.ranks[0];
    ck_assert_uint_eq(rank->again_ns, time->recompute_ns);
    ck_assert_uint_eq(rank->again_flops,
                      (uint64_t)result.report->recompute_flops);
    ck_assert_uint_eq(rank->recompute_ns != NULL, time->recompute_ns > 0);
    ck_assert_uint_eq(time->recompute_ns > 0, _i > 0);
    for (uint32_t i = 1; _i > 0 && i < rank->n_points; i++) {
        uint64_t t_ns = rank->points[i].t_ns - rank->points[i - 1].t_ns;
        uint64_t more_ns = rank->recompute_ns[i] - rank->recompute_ns[i - 1];
        ck_assert_uint_le(more_ns, t_ns);
        ck_assert_uint_ge(rank->recompute_flops[i],
                          rank->recompute_flops[i - 1]);
        ck_assert_uint_le(rank->recompute_ns[i], rank->again_ns);
    }
}
END_TEST

/* ---- trace --------------------------------------------------------------- */

static ms_json json;

static uint32_t member(uint32_t row, const char *key)
{
    uint32_t found = ms_json_find(&json, row, key);
    ck_assert_msg(found != MS_NONE, "no \"%s\"", key);
    return found;
}

static uint64_t number(uint32_t row, const char *key)
{
    const ms_json_node *node = &json.nodes[member(row, key)];
    return node->kind == MS_JSON_FLOAT ? (uint64_t)llround(node->value.f)
                                       : (uint64_t)node->value.i;
}

static uint64_t argument(uint32_t row, const char *key)
{
    uint32_t args = member(row, "args");
    return ms_json_find(&json, args, key) == MS_NONE ? 0 : number(args, key);
}

/* Reads a time in microseconds as ns. */
static uint64_t time_of(uint32_t row, const char *key)
{
    return (uint64_t)llround(json.nodes[member(row, key)].value.f * 1e3);
}

/* The time that the rank works after its compute stream has ended. Slices
 * tell it, so that an op that takes no time does not count. */
static uint64_t rank_end_ns(void)
{
    uint64_t last_ns = 0;
    for (uint32_t op = 0; op < result.plan->n_ops; op++)
        if (result.plan->op[op].stream == MS_STREAM_COMPUTE &&
            result.line->end_ns[op] > result.line->start_ns[op])
            last_ns = result.line->end_ns[op];
    return result.line->step_ns - last_ns;
}

struct sums {
    uint64_t end_ns[MS_N_STREAMS], busy_ns[MS_N_STREAMS];
    uint64_t comm_ns, copy_ns, sent_bytes, copied_bytes, peak_bytes, host_bytes;
    uint64_t last_bytes;
};

static void add_slice(struct sums *sums, uint32_t row)
{
    uint64_t stream = number(row, "tid") - 1, from_ns = time_of(row, "ts");
    ck_assert_uint_lt(stream, MS_N_STREAMS);
    if (argument(row, "comes_again") == 0) {
        ck_assert_uint_ge(from_ns, sums->end_ns[stream]);
        sums->end_ns[stream] = from_ns + time_of(row, "dur");
    }
    sums->busy_ns[stream] += time_of(row, "dur");
    sums->comm_ns += argument(row, "waited_for_gather_ns") +
                     argument(row, "waited_for_reduce_ns");
    static const char *const waits[] = {
        "waited_for_copy_to_device_ns", "waited_for_copy_to_host_ns",
        "waited_for_disk_ns", "waited_for_host_work_ns", "waited_for_pack_ns"};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        sums->copy_ns += argument(row, waits[i]);
    bool copies = strcmp(json.nodes[member(row, "cat")].value.s, "copy") == 0;
    if (stream == MS_STREAM_COMPUTE && copies) /* copies in line */
        sums->copy_ns += time_of(row, "dur");
    sums->copied_bytes += argument(row, "copied_bytes");
    sums->sent_bytes += argument(row, "sent_bytes");
}

static void add_counter(struct sums *sums, uint32_t row)
{
    const char *name = json.nodes[member(row, "name")].value.s;
    uint64_t bytes = argument(row, "allocated"), sum = 0;
    if (strcmp(name, "device bytes") == 0 && bytes > sums->peak_bytes)
        sums->peak_bytes = bytes;
    if (strcmp(name, "host bytes") == 0 && bytes > sums->host_bytes)
        sums->host_bytes = bytes;
    if (strstr(name, "by category") == NULL) {
        sums->last_bytes = bytes;
        return;
    }
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum += argument(row, ms_names_category[c]);
    ck_assert_uint_eq(sum, sums->last_bytes); /* the same in all */
}

static void read_trace(const char *path)
{
    const size_t room = 16u << 20;
    char *bytes = ms_arena_take_raw(&trial, room, 1);
    ms_report_names names = {"gpt2", "device", "a \"policy\"",
                             NULL,   NULL,     NULL};
    MUST(ms_chrome_trace(result.line, result.report, &names, path, &trial,
                         &fault));
    size_t n = folder_read(path, bytes, room);
    MUST(ms_json_read("trace", bytes, n, &trial, &json, &fault));
}

START_TEST(trace_adds_up_to_the_report)
{
    struct sums sums = {0};
    const ms_times *time = run(_i);
    const ms_rank_report *rank = &result.report->ranks[0];
    read_trace(folder_path("a.json"));
    uint32_t events = member(0, "traceEvents");
    for (uint32_t row = ms_json_first(&json, events); row != MS_NONE;
         row = json.nodes[row].next) {
        char kind = json.nodes[member(row, "ph")].value.s[0];
        if (kind == 'X')
            add_slice(&sums, row);
        else if (kind == 'C')
            add_counter(&sums, row);
    }
    for (uint32_t stream = 0; stream < MS_N_STREAMS; stream++)
        ck_assert_uint_eq(sums.busy_ns[stream], busy_ns(stream));
    ck_assert_uint_eq(sums.peak_bytes, rank->peak.allocated_bytes);
    ck_assert_uint_eq(sums.host_bytes, result.report->host_peak_bytes);
    ck_assert_uint_eq(sums.sent_bytes, rank->comm_bytes);
    ck_assert_uint_eq(sums.copied_bytes,
                      rank->h2d_bytes + rank->d2h_bytes + rank->nvme_bytes);
    ck_assert_uint_le(sums.comm_ns, time->exposed_comm_ns);
    ck_assert_uint_ge(sums.comm_ns + rank_end_ns(), time->exposed_comm_ns);
    ck_assert_uint_le(sums.copy_ns, time->stall_ns);
    /* no slice shows what is waited for at the end */
    ck_assert_uint_ge(sums.copy_ns + rank_end_ns(), time->stall_ns);
}
END_TEST

Suite *suite_lanes(void)
{
    Suite *suite = suite_create("lanes");
    TCase *tcase = tcase_create("lanes");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_loop_test(tcase, lanes_add_up_to_the_report, 0,
                        N_POLICIES + N_WALLS);
    tcase_add_loop_test(tcase, recomputing_adds_up_to_the_report, 0, N_REPLAYS);
    tcase_add_loop_test(tcase, trace_adds_up_to_the_report, 0,
                        N_POLICIES + N_WALLS);
    suite_add_tcase(suite, tcase);
    return suite;
}
