/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unified memory, as a property of a device and as a policy for some states:
 * paging costs nothing while there is room, and no more than needed when there
 * is not; on a device with one memory there is nowhere to move to. */
#include "graphs/device.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define MODEL                                                                  \
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 6, "    \
    "\"hidden\": 512, \"heads\": 8, \"vocab\": 3000, \"positions\": 512}}"

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *device, const char *policy, const char *optimizer,
                  uint64_t memory_bytes)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 4;
    job.memory_bytes = memory_bytes;
    MS_TRY(ms_training_set(&job.training, "training.optimizer", optimizer,
                           &fault));
    MS_TRY(ms_device_find(device, &job.device, &fault));
    return inlined_step(MODEL, policy, &job, &keep, &trial, &result, &fault);
}

static void must_run(const char *device, const char *policy,
                     const char *optimizer, uint64_t memory_bytes)
{
    ck_assert_msg(run(device, policy, optimizer, memory_bytes) == MS_OK,
                  "%s on %s: %s: %s", policy, device, fault.where, fault.what);
}

static uint64_t used_bytes(void)
{
    return result.report->ranks[0].peak.allocated_bytes +
           result.machine->context_bytes;
}

static uint64_t state_bytes(void)
{
    const ms_graph *graph = result.graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (graph->storage_category[s] == MS_OPTIMIZER_STATE)
            bytes += graph->storage_bytes[s];
    return bytes;
}

static const char *const optimizers[] = {"adamw-8bit", "lion-8bit", "sophia"};

/* With room for everything nothing moves and no time is lost. With less, the
 * step stays within the memory there is, only states leave, and waiting grows.
 */
START_TEST(paged_states_leave_under_pressure)
{
    const char *device = _i % 2 == 0 ? "h100-80gb-sxm" : "gh200-96gb";
    const char *optimizer = optimizers[(size_t)_i / 2];
    must_run(device, "none", optimizer, 0);
    uint64_t all = used_bytes(), states = state_bytes(), before_ns;
    uint64_t none_ns = result.line->step_ns;
    must_run(device, "uvm:optimizer", optimizer, all);
    ck_assert_uint_eq(result.line->step_ns, none_ns);
    ck_assert_uint_le(used_bytes(), all); /* booked by the device's time */
    ck_assert_uint_eq(
        result.line->pages.h2d_bytes + result.line->pages.d2h_bytes, 0);
    before_ns = none_ns;
    for (uint64_t less = states / 8; less <= states / 2; less += states / 8) {
        must_run(device, "uvm:optimizer", optimizer, all - less);
        const ms_pages *pages = &result.line->pages;
        ck_assert_uint_le(used_bytes(), all - less);
        ck_assert_uint_ge(pages->host_peak_bytes, less);
        ck_assert_uint_le(pages->host_peak_bytes, states);
        ck_assert_uint_eq(pages->host_peak_bytes,
                          pages->host_by_category[MS_OPTIMIZER_STATE]);
        ck_assert_uint_eq(pages->faults, 0); /* prefetched */
        ck_assert_uint_ge(result.line->step_ns, before_ns);
        before_ns = result.line->step_ns;
    }
}
END_TEST

/* What does not fit beside the states is reported. */
START_TEST(the_rest_must_fit)
{
    ck_assert_int_eq(run("h100-80gb-sxm", "uvm:optimizer", "adamw-8bit",
                         UINT64_C(700) << 20),
                     MS_EINFEASIBLE);
    ck_assert_ptr_nonnull(strstr(fault.hint, "--memory "));
    unsigned long long least = 0;
    sscanf(strstr(fault.hint, "--memory "), "--memory %llu", &least);
    must_run("h100-80gb-sxm", "uvm:optimizer", "adamw-8bit", least);
    ck_assert_uint_le(used_bytes(), least);
    ck_assert_int_eq(
        run("h100-80gb-sxm", "uvm:optimizer", "adamw-8bit", least - 1),
        MS_EINFEASIBLE);
}
END_TEST

/* A coherent link has no page faults, so it is never slower than one with them.
 */
START_TEST(faults_are_the_devices)
{
    must_run("gh200-96gb", "none", "adamw", 0);
    uint64_t memory = used_bytes() / 4 * 3;
    must_run("gh200-96gb", "uvm", "adamw", memory);
    uint64_t coherent_ns = result.line->step_ns;
    ck_assert_uint_eq(result.line->pages.faults, 0);
    ck_assert_uint_gt(result.line->pages.h2d_bytes, 0);
    must_run("gh200-96gb", "uvm:fault_us=45", "adamw", memory);
    ck_assert_uint_gt(result.line->pages.faults, 0);
    ck_assert_uint_gt(result.line->step_ns, coherent_ns);
    ck_assert_uint_le(result.line->step_ns,
                      coherent_ns + 45000 * result.line->pages.faults);
    must_run("h100-80gb-sxm", "uvm", "adamw", memory);
    uint64_t as_the_device_ns = result.line->step_ns;
    must_run("h100-80gb-sxm", "uvm:fault_us=45", "adamw", memory);
    ck_assert_uint_eq(result.line->step_ns, as_the_device_ns);
}
END_TEST

static const char *const besides[] = {"ddp:dp=4",
                                      "zero:1,dp=4",
                                      "zero:2,dp=4",
                                      "zero:3,dp=4",
                                      "fsdp:dp=4",
                                      "fsdp:impl=1,dp=4",
                                      "zero:3,dp=4+microbatch:2",
                                      "fsdp:dp=4+checkpoint:full",
                                      "fsdp:dp=4+swap:te=2",
                                      "swap:layers"};

static void put(char *policy, const char *format, const char *beside)
{
    snprintf(policy, 128, format, beside);
}

/* Pages of a rank's part beside whoever shares or moves the rest: with room for
 * all as without them; with less, what is missing of the states is on the host,
 * nothing else leaves, and what collectives and copies move stays the same. */
START_TEST(parts_are_paged_beside_others)
{
    char policy[128];
    put(policy, "%s", besides[_i]);
    must_run("h100-80gb-sxm", policy, "adamw-8bit", 0);
    uint64_t alone_ns = result.line->step_ns;
    uint32_t transfers = result.plan->n_transfers;
    put(policy, "%s+uvm:optimizer", besides[_i]);
    must_run("h100-80gb-sxm", policy, "adamw-8bit", 0);
    uint64_t all = used_bytes(), before_ns = alone_ns;
    uint64_t states = result.report->ranks[0].optimizer_state_bytes;
    ck_assert_uint_eq(result.line->step_ns, alone_ns);
    ck_assert_uint_eq(
        result.line->pages.h2d_bytes + result.line->pages.d2h_bytes, 0);
    for (uint64_t less = states / 8; less <= states / 4; less += states / 8) {
        must_run("h100-80gb-sxm", policy, "adamw-8bit", all - less);
        const ms_pages *pages = &result.line->pages;
        ck_assert_uint_le(used_bytes(), all - less);
        ck_assert_uint_ge(pages->host_peak_bytes, less);
        ck_assert_uint_le(pages->host_peak_bytes, states);
        ck_assert_uint_eq(pages->host_peak_bytes,
                          pages->host_by_category[MS_OPTIMIZER_STATE]);
        ck_assert_uint_eq(result.plan->n_transfers, transfers);
        ck_assert_uint_ge(result.line->step_ns, before_ns);
        before_ns = result.line->step_ns;
    }
}
END_TEST

static const char *const twice_placed[] = {
    "uvm+offload:optimizer",
    "uvm:optimizer+offload:optimizer",
    "uvm:params+swap:layers",
    "uvm:gradients+offload:optimizer/gradients",
    "uvm:activations+swap:te=2",
    "uvm+swap:belady",
    "uvm:params+offload:optimizer/params,to=nvme"};

/* A storage has one place: a policy that would place it a second time is
 * refused. */
START_TEST(what_is_placed_is_not_paged)
{
    ck_assert_int_eq(run("h100-80gb-sxm", twice_placed[_i], "adamw", 0),
                     MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "the other policy says where"));
    ck_assert_uint_gt(strlen(fault.hint), 0);
}
END_TEST

static const char *const moves[] = {"uvm",
                                    "uvm:optimizer",
                                    "swap:save_on_cpu",
                                    "swap:vdnn=all",
                                    "swap:te=2",
                                    "swap:torchtune",
                                    "swap:belady",
                                    "swap:superneurons",
                                    "swap:checkpoints+checkpoint:full",
                                    "swap:layers",
                                    "offload:optimizer",
                                    "offload:optimizer/gradients",
                                    "offload:optimizer/params/gradients",
                                    "offload:optimizer,impl=deepspeed",
                                    "offload:optimizer,impl=megatron"};

/* Every policy that moves tensors to the host runs where there are two
 * memories, and is refused with the reason where there is one; policies that
 * move to the disk are not. */
START_TEST(one_memory_has_nowhere_to_move_to)
{
    for (uint32_t d = 0; d < ms_devices_n; d++) {
        bool one = ms_devicerows_at(d)->one_memory;
        if (!one && d % 6 != 0)
            continue; /* some of the others */
        ms_err err = run(ms_devices[d].name, moves[_i], "adamw", 0);
        ck_assert_msg(one ? err == MS_EUSAGE : err == MS_OK, "%s on %s: %s",
                      moves[_i], ms_devices[d].name, fault.what);
        ck_assert(!one || strstr(fault.what, "there is one memory") != NULL);
        ck_assert(!one || fault.hint[0] != '\0');
        must_run(ms_devices[d].name,
                 "checkpoint:full+offload:optimizer/params/gradients,to=nvme",
                 "adamw", 0);
    }
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_unified(void)
{
    Suite *suite = suite_create("unified");
    TCase *tcase = tcase_create("unified");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, paged_states_leave_under_pressure, 0,
                        2 * (int)MANY(optimizers));
    tcase_add_test(tcase, the_rest_must_fit);
    tcase_add_test(tcase, faults_are_the_devices);
    tcase_add_loop_test(tcase, parts_are_paged_beside_others, 0,
                        (int)MANY(besides));
    tcase_add_loop_test(tcase, what_is_placed_is_not_paged, 0,
                        (int)MANY(twice_placed));
    tcase_add_loop_test(tcase, one_memory_has_nowhere_to_move_to, 0,
                        (int)MANY(moves));
    suite_add_tcase(suite, tcase);
    return suite;
}
