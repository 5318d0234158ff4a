/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zero:STAGE,impl=deepspeed by hand: three layers of 8 x 8 weights, 128 bytes
 * each in bf16, two ranks.  What the policy itself makes and lets go, in order,
 * with its own running level. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

static const char *const model =
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [8]}, "
    "\"layers\": [{\"repeat\": 3, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 8, \"bias\": false}]}, "
    "{\"type\": \"mean\"}]}";

static char text[8192];
static uint64_t gathered_bytes; /* that a rank sends */
static uint32_t n_syncs;

static void put(const char *format, const char *name, uint64_t bytes,
                uint64_t level)
{
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, format, name,
             (unsigned long long)bytes, (unsigned long long)level);
}

/* Buffers, gradients, gathered weights and what the step makes. */
static const char *name_of(const ms_result *result, const ms_row *row)
{
    const ms_graph *graph = result->graph;
    if (row->bytes == 0 || row->pool != MS_DEVICE_POOL) /* an event; a sum */
        return NULL;
    if (row->storage == MS_NONE)
        return result->plan->buffers[row->buffer].name;
    uint32_t of = result->plan->op[row->op].of;
    if (of != MS_NONE && graph->op_pass[of] == MS_STEP)
        return graph->storage_name[row->storage];
    if (result->plan->op[row->op].pass == MS_START)
        return NULL;
    if (row->category == MS_GRADIENTS)
        return "part";
    if (row->category != MS_COMMUNICATION)
        return NULL;
    return graph->storage_category[row->storage] == MS_PARAMETERS ? "weight"
                                                                  : "grad";
}

/* "+name bytes = level" per event, one a line. */
static const char *events(const char *policy)
{
    const ms_result *result = truth_run_json(model, "mlp -p %s", policy);
    const ms_timeline *line = result->line;
    uint64_t level = 0;
    text[0] = '\0';
    gathered_bytes = 0;
    n_syncs = result->plan->n_sync;
    for (uint32_t i = 0; i < result->plan->n_transfers; i++)
        if (result->plan->transfers[i].kind == MS_TRANSFER_GATHER)
            gathered_bytes += result->plan->transfers[i].bytes;
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_row *row = &result->plan->row[line->events[e].row];
        const char *name = name_of(result, row);
        bool made = line->events[e].op_act & 1u;
        if (name == NULL)
            continue;
        level += made ? row->bytes : 0 - row->bytes;
        put(made ? "+%s %llu = %llu\n" : "-%s %llu = %llu\n", name, row->bytes,
            level);
    }
    return text;
}

/* The flat group has 192 elements, a rank 96 of them: h.0 and half of h.1. */
#define STEP                                                                   \
    "+copy 512 = 704\n-copy 512 = 192\n"                                       \
    "+flat_gradients 192 = 384\n+fp32_gradients 384 = 768\n"                   \
    "-flat_gradients 192 = 576\n"                                              \
    "-part 64 = 512\n-part 64 = 448\n-part 64 = 384\n"                         \
    "-fp32_gradients 384 = 0\n"

START_TEST(stage_2)
{
    /* The bucket holds two gradients; the third makes it be reduced: its
     * slices have two owners, so they are flattened.  The tail has one. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:2,dp=2,impl=deepspeed,reduce_bucket_size=128"),
        "+ipg_bucket 256 = 256\n"
        "+grad 128 = 384\n-grad 128 = 256\n"
        "+grad 128 = 384\n-grad 128 = 256\n"
        "+grad 128 = 384\n"
        "+part 64 = 448\n+part 64 = 512\n+part 64 = 576\n"
        "+flattened 256 = 832\n-flattened 256 = 576\n"
        "-grad 128 = 448\n"
        "-ipg_bucket 256 = 192\n" STEP);
    truth_end();
}
END_TEST

START_TEST(stage_2_without_copies)
{
    /* All-reduced in place; two buckets take turns. */
    truth_begin();
    ck_assert_str_eq(events("zero:2,dp=2,impl=deepspeed,reduce_bucket_size=128,"
                            "reduce_scatter=0,overlap_comm=1"),
                     "+ipg_bucket 256 = 256\n+ipg_bucket 256 = 512\n"
                     "+grad 128 = 640\n-grad 128 = 512\n"
                     "+grad 128 = 640\n-grad 128 = 512\n"
                     "+grad 128 = 640\n"
                     "+part 64 = 704\n+part 64 = 768\n+part 64 = 832\n"
                     "-grad 128 = 704\n"
                     "-ipg_bucket 256 = 448\n-ipg_bucket 256 = 192\n" STEP);
    truth_end();
}
END_TEST

START_TEST(larger_than_the_bucket)
{
    /* Not copied: each is reduced where it is when the next one comes. */
    truth_begin();
    ck_assert_str_eq(events("zero:2,dp=2,impl=deepspeed,reduce_bucket_size=63"),
                     "+ipg_bucket 126 = 126\n"
                     "+grad 128 = 254\n+grad 128 = 382\n"
                     "+part 64 = 446\n+part 64 = 510\n+part 64 = 574\n"
                     "-grad 128 = 446\n"
                     "+grad 128 = 574\n-grad 128 = 446\n-grad 128 = 318\n"
                     "-ipg_bucket 126 = 192\n" STEP);
    truth_end();
}
END_TEST

START_TEST(two_micro_batches)
{
    /* The second partition is added to the first when the backward ends. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:2,dp=2,impl=deepspeed,reduce_bucket_size=192+microbatch:2"
               " --batch 2"),
        "+ipg_bucket 384 = 384\n"
        "+grad 128 = 512\n-grad 128 = 384\n+grad 128 = 512\n-grad 128 = 384\n"
        "+grad 128 = 512\n-grad 128 = 384\n"
        "+part 64 = 448\n+part 64 = 512\n+part 64 = 576\n"
        "+flattened 384 = 960\n-flattened 384 = 576\n"
        "-ipg_bucket 384 = 192\n"
        "+ipg_bucket 384 = 576\n"
        "+grad 128 = 704\n-grad 128 = 576\n+grad 128 = 704\n-grad 128 = 576\n"
        "+grad 128 = 704\n-grad 128 = 576\n"
        "+grads_in_partition 192 = 768\n"
        "+flattened 384 = 1152\n-flattened 384 = 768\n"
        "-ipg_bucket 384 = 384\n-grads_in_partition 192 = 192\n" STEP);
    truth_end();
}
END_TEST

START_TEST(offloaded)
{
    /* The parts travel as they are reduced; in the second micro-batch they come
     * back to be added to.  What is in the bucket stays there.  The last sum's
     * parts have norms, of copies in fp64, before they leave. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:2,dp=2,impl=deepspeed,reduce_bucket_size=192"
               "+offload:optimizer,impl=deepspeed+microbatch:2 --batch 2"),
        "+ipg_bucket 384 = 384\n"
        "+grad 128 = 512\n-grad 128 = 384\n+grad 128 = 512\n-grad 128 = 384\n"
        "+grad 128 = 512\n-grad 128 = 384\n"
        "+flattened 384 = 768\n"
        "+part 64 = 832\n+part 64 = 896\n+part 64 = 960\n"
        "-flattened 384 = 576\n"
        "-part 64 = 512\n-part 64 = 448\n-part 64 = 384\n"
        "-ipg_bucket 384 = 0\n"
        "+ipg_bucket 384 = 384\n"
        "+grad 128 = 512\n-grad 128 = 384\n+grad 128 = 512\n-grad 128 = 384\n"
        "+grad 128 = 512\n-grad 128 = 384\n"
        "+flattened 384 = 768\n"
        "+part 64 = 832\n+part 64 = 896\n+part 64 = 960\n"
        "-flattened 384 = 576\n"
        "+copy 512 = 1088\n+norm 8 = 1096\n-copy 512 = 584\n"
        "+copy 512 = 1096\n+norm 8 = 1104\n-copy 512 = 592\n"
        "+copy 512 = 1104\n+norm 8 = 1112\n-copy 512 = 600\n"
        "-part 64 = 536\n-part 64 = 472\n-part 64 = 408\n"
        "-ipg_bucket 384 = 24\n"
        "-norm 8 = 16\n-norm 8 = 8\n-norm 8 = 0\n"
        "+fp32_partition 384 = 384\n-fp32_partition 384 = 0\n");
    truth_end();
}
END_TEST

START_TEST(stage_3)
{
    /* Everything persists but the bucket is there at the start; two gradients
     * are interleaved, the tail alone divides by the ranks. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:3,dp=2,impl=deepspeed,reduce_bucket_size=128"),
        "+ipg_bucket 256 = 256\n"
        "+grad 128 = 384\n-grad 128 = 256\n"
        "+grad 128 = 384\n-grad 128 = 256\n"
        "+grad 128 = 384\n"
        "+flattened 256 = 640\n-flattened 256 = 384\n"
        "-grad 128 = 256\n"
        "+copy 256 = 512\n-copy 256 = 256\n"
        "+flat_gradients 192 = 448\n+fp32_gradients 384 = 832\n"
        "-flat_gradients 192 = 640\n-fp32_gradients 384 = 256\n"
        "+weight 128 = 384\n+weight 128 = 512\n+weight 128 = 640\n");
    truth_end();
}
END_TEST

START_TEST(fetch_and_release)
{
    /* Nothing persists; the limit of 100 elements prefetches two layers: while
     * h.0 runs they arrive in a flat buffer, h.1 copies both out.  They stay to
     * their backwards: what the prefetch finds whole on its way along the trace
     * is fetched for the later run.  Before h.1 that way ends at the backward
     * of h.0, whose hook fetches a weight that nothing reads. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:3,dp=2,impl=deepspeed,param_persistence_threshold=0,"
               "prefetch_bucket_size=100,max_reuse_distance=0,"
               "reduce_bucket_size=192,reduce_scatter=0"),
        "+ipg_bucket 384 = 384\n"
        "+weight 128 = 512\n+all_gather_output 256 = 768\n-weight 128 = 640\n"
        "+weight 128 = 768\n+weight 128 = 896\n-all_gather_output 256 = 640\n"
        "+weight 128 = 768\n"
        "+grad 128 = 896\n-weight 128 = 768\n-grad 128 = 640\n"
        "+grad 128 = 768\n-weight 128 = 640\n-grad 128 = 512\n"
        "+grad 128 = 640\n-weight 128 = 512\n-grad 128 = 384\n"
        "+copy 256 = 640\n-copy 256 = 384\n"
        "+flat_gradients 192 = 576\n+fp32_gradients 384 = 960\n"
        "-flat_gradients 192 = 768\n-fp32_gradients 384 = 384\n");
    truth_end();
}
END_TEST

START_TEST(saved_views)
{
    /* Without zero.Init the views that h.1's and h.2's nodes save keep what
     * their forwards gathered, with what is gathered for a backward that does
     * not read it.  The first layer's input needs no gradient: nothing saves
     * its weight. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:3,dp=2,impl=deepspeed,param_persistence_threshold=0,"
               "prefetch_bucket_size=0,max_reuse_distance=0,"
               "reduce_bucket_size=192,reduce_scatter=0,"
               "mem_efficient_linear=0"),
        "+ipg_bucket 384 = 384\n"
        "+weight 128 = 512\n-weight 128 = 384\n"
        "+weight 128 = 512\n+weight 128 = 640\n+weight 128 = 768\n"
        "+grad 128 = 896\n-weight 128 = 768\n-weight 128 = 640\n"
        "-grad 128 = 512\n"
        "+weight 128 = 640\n"
        "+grad 128 = 768\n-weight 128 = 640\n-weight 128 = 512\n"
        "-grad 128 = 384\n"
        "+weight 128 = 512\n"
        "+grad 128 = 640\n-weight 128 = 512\n-grad 128 = 384\n"
        "+copy 256 = 640\n-copy 256 = 384\n"
        "+flat_gradients 192 = 576\n+fp32_gradients 384 = 960\n"
        "-flat_gradients 192 = 768\n-fp32_gradients 384 = 384\n");
    ck_assert_uint_eq(gathered_bytes, 6 * 128 / 2);
    truth_end();
}
END_TEST

START_TEST(two_under_way)
{
    /* From the fourth fetch and the fourth reduction on the host waits for the
     * third last one.  Two micro-batches fetch three weights forward and
     * backward, and reduce each gradient alone. */
    truth_begin();
    events("zero:3,dp=2,impl=deepspeed,param_persistence_threshold=0,"
           "prefetch_bucket_size=0,max_reuse_distance=0,"
           "reduce_bucket_size=64+microbatch:2 --batch 2");
    ck_assert_uint_eq(n_syncs, (12 - 3) + (6 - 3));
    truth_end();
}
END_TEST

/* The ideal implementation waits by events and holds nothing; DeepSpeed's host
 * runs ahead of forward, as the ranks' queue does: what the compute stream has
 * not passed stays active.  Making secondary parts the host waits for it. */
START_TEST(active)
{
    static const struct {
        const char *policy;
        bool held;
    } rows[] = {
        {"zero:3,dp=8", false},
        {"zero:3,dp=8,prefetch=4+checkpoint:full", false},
        {"zero:3,dp=8,impl=deepspeed", true},
        {"zero:3,dp=8,impl=deepspeed,zero_hpz_partition_size=8", false},
    };
    truth_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ms_result *result =
            truth_run("llama-2-7b --batch 8 -p %s", rows[i].policy);
        const ms_peak *peak = &truth_rank(result)->peak;
        ck_assert_msg((peak->active_bytes > peak->allocated_bytes) ==
                          rows[i].held,
                      "%s", rows[i].policy);
    }
    truth_end();
}
END_TEST

START_TEST(secondary_parts)
{
    /* Groups of two: what is released in forward leaves half of it with this
     * rank until the step.  Three weights from four ranks, then from two. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:3,dp=4,impl=deepspeed,param_persistence_threshold=0,"
               "prefetch_bucket_size=0,max_reuse_distance=0,"
               "reduce_bucket_size=192,reduce_scatter=0,"
               "zero_hpz_partition_size=2"),
        "+ipg_bucket 384 = 384\n"
        "+weight 128 = 512\n+secondary_part 64 = 576\n-weight 128 = 448\n"
        "+weight 128 = 576\n+secondary_part 64 = 640\n-weight 128 = 512\n"
        "+weight 128 = 640\n+secondary_part 64 = 704\n-weight 128 = 576\n"
        "+weight 128 = 704\n"
        "+grad 128 = 832\n-weight 128 = 704\n-grad 128 = 576\n"
        "+weight 128 = 704\n"
        "+grad 128 = 832\n-weight 128 = 704\n-grad 128 = 576\n"
        "+weight 128 = 704\n"
        "+grad 128 = 832\n-weight 128 = 704\n-grad 128 = 576\n"
        "+copy 128 = 704\n-copy 128 = 576\n"
        "+flat_gradients 96 = 672\n+fp32_gradients 192 = 864\n"
        "-flat_gradients 96 = 768\n-fp32_gradients 192 = 576\n"
        "-secondary_part 64 = 512\n-secondary_part 64 = 448\n"
        "-secondary_part 64 = 384\n");
    ck_assert_uint_eq(gathered_bytes, 3 * 128 * 3 / 4 + 3 * 128 / 2);
    truth_end();
}
END_TEST

START_TEST(quantized_gradients)
{
    /* Two nodes of eight: 64 values of four bits and 16 fp32 scales; an eighth
     * of them; that part in 16 bits.  The second gradient's buffers are there
     * before the first one's go. */
    truth_begin();
    ck_assert_str_eq(
        events("zero:3,dp=16,impl=deepspeed,reduce_bucket_size=128,"
               "zero_quantized_gradients=1"),
        "+ipg_bucket 256 = 256\n"
        "+grad 128 = 384\n-grad 128 = 256\n"
        "+grad 128 = 384\n-grad 128 = 256\n"
        "+grad 128 = 384\n"
        "+quantized 96 = 480\n+exchanged 96 = 576\n"
        "+requantized 12 = 588\n+received 12 = 600\n+dequantized 16 = 616\n"
        "+quantized 96 = 712\n-quantized 96 = 616\n"
        "+exchanged 96 = 712\n-exchanged 96 = 616\n"
        "+requantized 12 = 628\n-requantized 12 = 616\n"
        "+received 12 = 628\n-received 12 = 616\n"
        "+dequantized 16 = 632\n-dequantized 16 = 616\n"
        "-quantized 96 = 520\n-exchanged 96 = 424\n"
        "-requantized 12 = 412\n-received 12 = 400\n-dequantized 16 = 384\n"
        "-grad 128 = 256\n"
        "+quantized 96 = 352\n+exchanged 96 = 448\n"
        "+requantized 12 = 460\n+received 12 = 472\n+dequantized 16 = 488\n"
        "-quantized 96 = 392\n-exchanged 96 = 296\n"
        "-requantized 12 = 284\n-received 12 = 272\n-dequantized 16 = 256\n"
        "+copy 32 = 288\n-copy 32 = 256\n"
        "+flat_gradients 24 = 280\n+fp32_gradients 48 = 328\n"
        "-flat_gradients 24 = 304\n-fp32_gradients 48 = 256\n"
        "+weight 128 = 384\n+weight 128 = 512\n+weight 128 = 640\n");
    truth_end();
}
END_TEST

/* Flat groups are of this rank's parts: masters and moments are 12 bytes of
 * each element, which has 2, divided by the data ranks, but for what fills the
 * group up to a multiple of twice those. */
START_TEST(parts_of_layers)
{
    static const char *const split[] = {"", "tensor:2+", "tensor:4+",
                                        "tensor:4,sp+"};
    truth_begin();
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
        const ms_result *result =
            truth_run("gpt2 -p %szero:1,dp=2,impl=deepspeed", split[i]);
        const uint64_t *most = truth_rank(result)->category_peaks;
        uint64_t states = most[MS_OPTIMIZER_STATE];
        uint64_t flat = 12 * (most[MS_PARAMETERS] / 2) / 2;
        ck_assert_uint_ge(states, flat);
        ck_assert_uint_le(states, flat + 12 * 2 * 2);
    }
    truth_end();
}
END_TEST

Suite *suite_buckets(void)
{
    Suite *suite = suite_create("buckets");
    TCase *tcase = tcase_create("buckets");
    tcase_add_test(tcase, stage_2);
    tcase_add_test(tcase, stage_2_without_copies);
    tcase_add_test(tcase, larger_than_the_bucket);
    tcase_add_test(tcase, two_micro_batches);
    tcase_add_test(tcase, offloaded);
    tcase_add_test(tcase, stage_3);
    tcase_add_test(tcase, fetch_and_release);
    tcase_add_test(tcase, saved_views);
    tcase_add_test(tcase, two_under_way);
    tcase_add_test(tcase, active);
    tcase_add_test(tcase, secondary_parts);
    tcase_add_test(tcase, quantized_gradients);
    tcase_add_test(tcase, parts_of_layers);
    suite_add_tcase(suite, tcase);
    return suite;
}
