/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of a process besides the step: workspaces, NCCL, contexts. */
#include "graphs/device.h"
#include "graphs/machines/overheads.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/cli/commands.h"
#include "tools/job/result.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

/* ---- cuBLAS -------------------------------------------------------------- */

static const struct {
    const char *text;
    int64_t bytes; /* -1: refused */
} workspaces[] = {{":4096:8", INT64_C(32) << 20},
                  {":4096:2:16:8", 8519680},
                  {":16:8", 131072},
                  {":0:0", 0},
                  {":0:9:1:1", 1024},
                  {":1073741824:1", INT64_C(1) << 40},
                  {":1073741824:1:1:1", -1},
                  {":99999999999999999999:1", -1},
                  {":1073741824:1073741824", -1},
                  {":4096", -1},
                  {":4096:2:16", -1},
                  {":4096:2:", -1},
                  {":-4096:2", -1},
                  {":4096:2 ", -1},
                  {"4096:2", -1},
                  {"", -1}};
#define N_WORKSPACES ((int)(sizeof workspaces / sizeof *workspaces))

START_TEST(workspace_is_read)
{
    int64_t bytes;
    bool fine = ms_overheads_read_workspace(workspaces[_i].text, &bytes);
    ck_assert_msg(fine == (workspaces[_i].bytes >= 0), "\"%s\"",
                  workspaces[_i].text);
    if (fine)
        ck_assert_int_eq(bytes, workspaces[_i].bytes);
}
END_TEST

/* ---- NCCL ---------------------------------------------------------------- */

static ms_outside find(const char *name, const ms_shape *shape,
                       int64_t channels, int64_t buffsize)
{
    const ms_device *device;
    ms_fault fault = {0};
    ms_training training;
    ms_outside outside;
    ms_training_init(&training);
    training.nccl_channels = channels;
    training.nccl_buffsize = buffsize;
    ck_assert_int_eq(ms_device_find(name, &device, &fault), MS_OK);
    ck_assert_int_eq(
        ms_overheads_find(device, &training, shape, NULL, &outside, &fault),
        MS_OK);
    return outside;
}

START_TEST(one_rank_has_no_nccl)
{
    ms_outside outside = find("a100", &(ms_shape){.data_ranks = 1}, 0, 0);
    ck_assert_uint_eq(outside.kernels_bytes, 481 * MIB);
    ck_assert_uint_eq(outside.nccl_bytes, 0);
    ck_assert_uint_eq(outside.communicators, 0);
}
END_TEST

/* Buffers do not grow with ranks beyond both neighbours. */
START_TEST(buffers_are_of_neighbours)
{
    uint64_t two = find("a100", &(ms_shape){.data_ranks = 2}, 0, 0).nccl_bytes;
    ck_assert_uint_eq(two, (1024 + UINT64_C(24) * 12) * MIB);
    for (uint32_t ranks = 3; ranks <= 4096; ranks *= 2) {
        ms_shape shape = {.data_ranks = ranks};
        ck_assert_uint_eq(find("a100", &shape, 0, 0).nccl_bytes,
                          (1024 + UINT64_C(24) * 2 * 12) * MIB);
    }
}
END_TEST

/* At most as many channels as the device has; each takes as much. */
START_TEST(buffers_are_linear_in_channels)
{
    const ms_shape shape = {.data_ranks = 8};
    for (uint32_t n = 1; n <= 32; n++) {
        ms_outside outside = find("b200", &shape, n, 0);
        ck_assert_uint_eq(outside.channels, n);
        ck_assert_uint_eq(outside.nccl_bytes, (1024 + UINT64_C(24) * n) * MIB);
    }
    ck_assert_uint_eq(find("b200", &shape, 1000, 0).channels, 32);
    ck_assert_uint_eq(find("l40s", &shape, 0, 0).channels, 2);
}
END_TEST

/* NCCL_BUFFSIZE is one of three buffers, in pages. */
START_TEST(buffsize_counts_in_pages)
{
    const ms_shape shape = {.data_ranks = 8};
    uint64_t small = find("a100", &shape, 1, 1).nccl_bytes;
    uint64_t large = find("a100", &shape, 1, 64 << 20).nccl_bytes;
    ck_assert_uint_eq(small, (1024 + 2 * 8) * MIB);
    ck_assert_uint_eq(large, (1024 + 2 * 72) * MIB);
}
END_TEST

START_TEST(groups_have_communicators)
{
    ms_shape hsdp = {.data_ranks = 16, .shard_ranks = 8};
    ms_shape two = {.data_ranks = 4, .shard_ranks = 2};
    ms_shape reshard = {.data_ranks = 16, .reshard_ranks = 8};
    ms_shape whole = {.data_ranks = 16, .shard_ranks = 16};
    ck_assert_uint_eq(find("a100", &hsdp, 0, 0).communicators, 2);
    ck_assert_uint_eq(find("a100", &two, 0, 0).communicators, 2);
    ck_assert_uint_eq(find("a100", &reshard, 0, 0).communicators, 2);
    ck_assert_uint_eq(find("a100", &whole, 0, 0).communicators, 1);
    ck_assert_uint_eq(find("a100", &two, 0, 0).nccl_bytes,
                      (1024 + UINT64_C(24) * 2 * 12) * MIB);
}
END_TEST

/* ---- eager loading ------------------------------------------------------- */

START_TEST(eager_is_measured_or_refused)
{
    const ms_shape shape = {.data_ranks = 1};
    ms_training training;
    ms_training_init(&training);
    training.cuda_loading = 1;
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        const ms_device *device = ms_devicerows_at(i);
        ms_fault fault = {0};
        ms_outside outside;
        ms_err err = ms_overheads_find(device, &training, &shape, NULL,
                                       &outside, &fault);
        bool known = strncmp(device->name, "a100", 4) == 0 ||
                     strncmp(device->name, "v100", 4) == 0;
        ck_assert_int_eq(err, known ? MS_OK : MS_EUSAGE);
        if (known)
            ck_assert_uint_gt(outside.kernels_bytes, device->context_bytes);
        else
            ck_assert_ptr_nonnull(strstr(fault.where, device->name));
    }
}
END_TEST

/* ---- in a run ------------------------------------------------------------ */

/* The parts sum up; a device of just so much memory is enough. */
START_TEST(a_run_fits_in_what_it_uses)
{
    static const char *const words[] = {
        "gpt2",
        "gpt2 --allocator torch",
        "gpt2 -p zero:2,dp=8 --device a100",
        "gpt2 -p fsdp:dp=4 --set training.nccl_channels=2",
        "gpt2 --set training.cublas_workspace=:4096:16",
        "gpt2 --set training.device=cpu --set model.layers=2"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const ms_report *report = truth_run("%s", words[i])->report;
        uint64_t used = ms_capacity_used(report);
        ck_assert_uint_eq(report->context_bytes,
                          report->outside.kernels_bytes +
                              report->outside.nccl_bytes);
        ck_assert_uint_eq(used, report->ranks[0].peak.reserved_bytes +
                                    report->context_bytes);
        ck_assert(
            truth_run("%s --memory %llu", words[i], (unsigned long long)used)
                ->report->fits);
        ck_assert(!truth_run("%s --memory %llu", words[i],
                             (unsigned long long)used - 1)
                       ->report->fits ||
                  strstr(words[i], "allocator") != NULL);
    }
}
END_TEST

/* Workspaces are in the pool: what one is larger, so is what is allocated. */
START_TEST(workspaces_are_allocated)
{
    uint32_t n;
    const ms_result *result =
        truth_run("gpt2 --set training.cublas_workspace=0");
    uint64_t without = truth_rank(result)->peak.allocated_bytes;
    ck_assert_uint_eq(ms_measure_libraries(result->graph, &n), 0);
    ck_assert_uint_eq(n, 0);
    result = truth_run("gpt2 --set training.cublas_workspace=:1024:3");
    /* cuBLAS's for two threads, cublasLt's for the forward's. */
    ck_assert_uint_eq(ms_measure_libraries(result->graph, &n), 7 * MIB);
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(truth_rank(result)->peak.allocated_bytes,
                      without + 7 * MIB);
}
END_TEST

/* stas00/ml-engineering (1.78, 0.90 GiB) and GPUMemNet's MLPs; convolutions
 * bring cuDNN's kernels. */
START_TEST(builds_have_contexts)
{
    static const uint64_t mib[] = {481, 1823, 922, 1429};
    const ms_shape shape = {.data_ranks = 1};
    uint8_t convolution = MS_KIND_CONVOLUTION;
    const ms_graph none = {.n_ops = 0},
                   one = {.n_ops = 1, .op_kind = &convolution};
    const ms_device *a100, *h100;
    ms_fault fault = {0};
    ms_training training;
    ms_outside outside;
    ms_training_init(&training);
    ck_assert_int_eq(ms_device_find("a100-40gb-sxm", &a100, &fault), MS_OK);
    ck_assert_int_eq(ms_device_find("h100", &h100, &fault), MS_OK);
    for (training.cuda = 0; training.cuda < 4; training.cuda++) {
        ck_assert_int_eq(
            ms_overheads_find(a100, &training, &shape, &none, &outside, &fault),
            MS_OK);
        ck_assert_uint_eq(outside.kernels_bytes, mib[training.cuda] * MIB);
        ms_err err =
            ms_overheads_find(h100, &training, &shape, &none, &outside, &fault);
        ck_assert_int_eq(err, training.cuda == 0 ? MS_OK : MS_EUSAGE);
    }
    training.cuda = MS_CUDA_STATION;
    ms_overheads_find(a100, &training, &shape, &one, &outside, &fault);
    ck_assert_uint_eq(outside.kernels_bytes, (1429 + 420) * MIB);
}
END_TEST

Suite *suite_overheads(void)
{
    Suite *suite = suite_create("overheads");
    TCase *tcase = tcase_create("overheads");
    tcase_add_loop_test(tcase, workspace_is_read, 0, N_WORKSPACES);
    tcase_add_test(tcase, one_rank_has_no_nccl);
    tcase_add_test(tcase, buffers_are_of_neighbours);
    tcase_add_test(tcase, buffers_are_linear_in_channels);
    tcase_add_test(tcase, buffsize_counts_in_pages);
    tcase_add_test(tcase, groups_have_communicators);
    tcase_add_test(tcase, eager_is_measured_or_refused);
    tcase_add_test(tcase, a_run_fits_in_what_it_uses);
    tcase_add_test(tcase, workspaces_are_allocated);
    tcase_add_test(tcase, builds_have_contexts);
    suite_add_tcase(suite, tcase);
    return suite;
}
