/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A delayed update (ZeRO-Offload, section 5.2) runs beside the next step: a
 * step takes the longer of the host's work and the device's, plus the copies
 * that nothing hides. */
#include "graphs/device.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/replay/streams/inorder.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

static const char *const offloads[] = {
    "offload:optimizer",
    "offload:optimizer/gradients",
    "offload:optimizer/gradients,percent=60",
    "offload:optimizer/params/gradients",
    "offload:optimizer/params/gradients,params_to=nvme",
    "offload:optimizer/gradients,pin=0"};
static const char *const others[] = {"", "+checkpoint:full", "+microbatch:4",
                                     "+zero:2,dp=4+checkpoint:every=2",
                                     "+zero:3,dp=8+microbatch:2"};
static const char *const devices[] = {"v100-32gb-sxm2", "h100-80gb-sxm",
                                      "gh200-96gb", "rtx4090-24gb"};
static const int64_t batches[] = {4, 32};

static ms_arena keep, trial;

/* False: the settings are refused. */
static bool run(const char *policy, const char *device, int64_t batch,
                ms_result *result)
{
    static const char json[] =
        "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 6, "
        "\"hidden\": 512, \"heads\": 8, \"vocab\": 5000, \"positions\": 256}}";
    ms_fault fault = {0};
    ms_job job;
    ms_settings_init(&job);
    job.training.batch = batch;
    ck_assert_int_eq(ms_device_find(device, &job.device, &fault), MS_OK);
    job.device_given = true;
    bool ran = inlined_step(json, policy, &job, &keep, &trial, result,
                            &fault) == MS_OK;
    ck_assert_msg(ran || fault.err == MS_EUSAGE, "%s: %s: %s", policy,
                  fault.where, fault.what);
    return ran;
}

/* The time of all ops of a stream, and in *longest that of its longest op. */
static uint64_t busy_ns(const ms_result *result, uint8_t stream,
                        uint64_t *longest_ns)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < result->plan->n_ops; i++) {
        uint64_t one = result->line->end_ns[i] - result->line->start_ns[i];
        if (result->plan->op[i].stream != stream)
            continue;
        ns += one;
        if (longest_ns != NULL && one > *longest_ns)
            *longest_ns = one;
    }
    return ns;
}

/* What the host takes for the optimizer's ops. */
static uint64_t issue_ns(const ms_result *result)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < result->plan->n_ops; i++)
        if (result->plan->op[i].pass == MS_STEP)
            ns += ms_inorder_issue_ns(result->machine, &result->plan->op[i]);
    return ns;
}

/* Bytes in host memory that only a delayed update keeps. */
static uint64_t kept_bytes(const ms_result *result)
{
    const ms_graph *graph = result->graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if ((strcmp(graph->storage_name[s], "stale_grad") == 0 ||
             strcmp(graph->storage_name[s], "next_weight") == 0) &&
            graph->storage_pool[s] == MS_HOST_POOL)
            bytes += graph->storage_bytes[s];
    return bytes;
}

static void check_pair(const char *offload, const char *other,
                       const char *device, int64_t batch)
{
    char policy[128];
    ms_result now, later;
    snprintf(policy, sizeof policy, "%s%s", offload, other);
    bool ran = run(policy, device, batch, &now);
    snprintf(policy, sizeof policy, "%s,delayed=1%s", offload, other);
    ck_assert_int_eq(run(policy, device, batch, &later), ran);
    if (!ran)
        return;
    uint64_t most_ns = 0, now_ns = now.line->step_ns;
    uint64_t later_ns = later.line->step_ns;
    uint64_t host_ns = busy_ns(&later, MS_STREAM_HOST, NULL);
    uint64_t device_ns = busy_ns(&later, MS_STREAM_COMPUTE, NULL);
    uint64_t copies_ns = busy_ns(&later, MS_STREAM_H2D, &most_ns) +
                         busy_ns(&later, MS_STREAM_D2H, &most_ns) +
                         busy_ns(&later, MS_STREAM_COMM, NULL) +
                         busy_ns(&later, MS_STREAM_NVME_READ, NULL) +
                         busy_ns(&later, MS_STREAM_NVME_WRITE, NULL);
    uint64_t longer_ns = host_ns > device_ns ? host_ns : device_ns;
    /* at once, a host goes through the parameters while the device works;
     * before the step the device waits for it */
    uint64_t more_ns = issue_ns(&later);
    ck_assert_msg(later_ns <= now_ns + now_ns / 1000 + more_ns,
                  "%s on %s, batch %" PRId64 ": %" PRIu64 " ns, %" PRIu64
                  " at once",
                  policy, device, batch, later_ns, now_ns);
    ck_assert_msg(later_ns >= longer_ns, "%s on %s", policy, device);
    ck_assert_msg(later_ns <= longer_ns + copies_ns + most_ns +
                                  later.report->ranks[0].time.host_bound_ns,
                  "%s on %s, batch %" PRId64 ": %" PRIu64 " ns, host %" PRIu64
                  ", device %" PRIu64 ", copies %" PRIu64,
                  policy, device, batch, later_ns, host_ns, device_ns,
                  copies_ns);
    ck_assert_uint_gt(kept_bytes(&later), 0);
    ck_assert_uint_eq(kept_bytes(&now), 0);
    ck_assert_uint_le(later.report->ranks[0].peak.allocated_bytes,
                      now.report->ranks[0].peak.allocated_bytes);
}

START_TEST(never_slower)
{
    for (size_t i = 0; i < MANY(others) * MANY(devices) * MANY(batches); i++) {
        check_pair(offloads[_i], others[i % MANY(others)],
                   devices[i / MANY(others) % MANY(devices)],
                   batches[i / MANY(others) / MANY(devices)]);
        ms_arena_reset(&keep);
        ms_arena_reset(&trial);
    }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_delayed(void)
{
    Suite *suite = suite_create("delayed");
    TCase *tcase = tcase_create("delayed");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, never_slower, 0, (int)MANY(offloads));
    suite_add_tcase(suite, tcase);
    return suite;
}
