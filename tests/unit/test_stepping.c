/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The optimizer's step in backward, and clipping before it. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>

static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"shape\": [256]},"
    " \"layers\": [{\"repeat\": 8, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 256}]}, {\"type\": \"mean\"}]}";
#define MATRIX (256u * 256u)
#define EACH (MATRIX + 256u) /* elements of a layer */

static const char pair[] =
    "{\"memsim\": 1, \"name\": \"pair\", \"input\": {\"shape\": [300]},"
    " \"layers\": [{\"type\": \"linear\", \"out\": 700}, {\"type\": "
    "\"mean\"}]}";

typedef struct seen {
    ms_rank_report rank;
    uint32_t step_ops, step_first;
    double model_flops, step_flops;
} seen;

static seen run(const char *json, const char *options)
{
    truth_begin();
    const ms_result *result =
        truth_run_json(json, "model --precision fp32 --batch 4 %s", options);
    seen got = {.rank = *truth_rank(result),
                .step_first = result->graph->step_first,
                .model_flops = result->graph->model_flops,
                .step_flops = result->report->optimizer_flops};
    for (uint32_t op = 0; op < result->graph->n_ops; op++)
        got.step_ops += result->graph->op_pass[op] == MS_STEP;
    truth_end();
    return got;
}

/* One node makes the gradients of a layer's weight and bias. */
START_TEST(gradients_end_one_by_one)
{
    seen kept = run(chain, "--optimizer adamw --set optimizer_impl=loop");
    seen freed = run(chain, "--optimizer adamw --set optimizer_impl=loop "
                            "--set optimizer_in_backward=yes");
    ck_assert_uint_eq(kept.rank.gradients_bytes, 8 * EACH * 4);
    ck_assert_uint_eq(freed.rank.gradients_bytes, EACH * 4);
    ck_assert_uint_eq(freed.rank.levels[MS_MARK_END],
                      kept.rank.levels[MS_MARK_END] - 8 * EACH * 4);
    ck_assert_uint_eq(kept.rank.optimizer_state_bytes,
                      freed.rank.optimizer_state_bytes);
    ck_assert_uint_eq(kept.step_ops, freed.step_ops);
    ck_assert(kept.model_flops == freed.model_flops);
    ck_assert_uint_eq(kept.rank.time.backward_ns, freed.rank.time.backward_ns);
}
END_TEST

START_TEST(the_first_step_makes_the_state)
{
    seen first = run(chain, "--optimizer adam --set step=first "
                            "--set optimizer_in_backward=yes");
    seen steady =
        run(chain, "--optimizer adam --set optimizer_in_backward=yes");
    ck_assert_uint_eq(first.rank.levels[MS_MARK_END],
                      steady.rank.levels[MS_MARK_END]);
    ck_assert_uint_eq(steady.rank.levels[MS_MARK_START] -
                          first.rank.levels[MS_MARK_START],
                      8 * EACH * 8);
}
END_TEST

/* Sums for each 65,536 elements of the larger of two tensors, and a norm of
 * each; then these, a tensor of them and theirs. */
START_TEST(clipping_takes_scalars)
{
    const char *fused = "--optimizer adam --set optimizer_impl=fused "
                        "--set clip_norm=%s --framework %s";
    const uint64_t chunks = 4, sums = 2 * chunks * 4, norms = 2 * 4;
    static const char *const frameworks[] = {"torch-2.0", "torch-2"};
    for (size_t i = 0; i < 2; i++) {
        char options[128];
        snprintf(options, sizeof options, fused, "0", frameworks[i]);
        seen none = run(pair, options);
        snprintf(options, sizeof options, fused, "1.5", frameworks[i]);
        seen clipped = run(pair, options);
        ck_assert_uint_eq(none.rank.optimizer_scratch_bytes, 0);
        ck_assert_uint_eq(clipped.rank.optimizer_scratch_bytes, sums + norms);
        ck_assert_uint_eq(clipped.step_ops, none.step_ops + 8);
        ck_assert_uint_eq(clipped.rank.levels[MS_MARK_END],
                          none.rank.levels[MS_MARK_END]);
    }
}
END_TEST

/* Two hidden matrices and a head, each 256 x 256. */
static const char matrices[] =
    "{\"memsim\": 1, \"name\": \"matrices\", \"input\": {\"shape\": [256]},"
    " \"layers\": [{\"repeat\": 2, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 256, \"bias\": false}]},"
    " {\"type\": \"linear\", \"name\": \"head\", \"out\": 256,"
    " \"bias\": false}, {\"type\": \"mean\"}]}";

/* Between ranks an update comes when its gradient is reduced: of FSDP and ZeRO
 * one unit's part is there at a time, of DDP all of a bucket, which lasts. */
START_TEST(reduced_gradients_end)
{
    static const struct {
        const char *policy;
        uint64_t kept, freed, left;
    } rows[] = {
        {"fsdp:dp=2", 3 * 2 * MATRIX, 2 * MATRIX, 0},
        {"zero:2,dp=2", 3 * 2 * MATRIX, 2 * MATRIX, 0},
        {"zero:3,dp=4", 3 * MATRIX, MATRIX, 0},
        {"ddp:dp=2", 3 * 4 * MATRIX, 3 * 4 * MATRIX, 0},
        {"ddp:dp=2,view=1", 3 * 4 * MATRIX, 3 * 4 * MATRIX, 3 * 4 * MATRIX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char options[160];
        snprintf(options, sizeof options,
                 "--optimizer adam --set optimizer_impl=fused -p %s",
                 rows[i].policy);
        seen kept = run(matrices, options);
        snprintf(options, sizeof options,
                 "--optimizer adam --set optimizer_impl=fused -p %s --set "
                 "optimizer_in_backward=yes",
                 rows[i].policy);
        seen freed = run(matrices, options);
        uint64_t ended = rows[i].kept - rows[i].left;
        ck_assert_uint_eq(kept.rank.gradients_bytes, rows[i].kept);
        ck_assert_uint_eq(freed.rank.gradients_bytes, rows[i].freed);
        ck_assert_uint_eq(kept.rank.levels[MS_MARK_END] -
                              freed.rank.levels[MS_MARK_END],
                          ended);
        ck_assert_uint_eq(freed.step_ops, 3); /* one update each, not a list */
    }
}
END_TEST

/* Where gradients lie elsewhere their norm (two FLOPs an element) and their
 * factor (one) are passes of the host, on the disk one for each tile; nothing
 * is made on the device. */
START_TEST(clipping_far_gradients)
{
    static const struct {
        const char *policy;
        uint32_t more_ops;
    } rows[] = {
        {"offload:optimizer/gradients", 2},
        {"offload:optimizer/gradients,delayed=1", 2},
        /* read, norm and factor of three tiles */
        {"offload:optimizer/gradients,to=nvme,tile=65536", 3 * 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char options[160];
        seen step[2];
        for (int clip = 0; clip < 2; clip++) {
            snprintf(options, sizeof options,
                     "--optimizer adam --set clip_norm=%d -p %s", clip,
                     rows[i].policy);
            step[clip] = run(matrices, options);
        }
        ck_assert_uint_eq(step[1].step_ops - step[0].step_ops,
                          rows[i].more_ops);
        ck_assert_double_eq(step[1].step_flops - step[0].step_flops,
                            3.0 * 3 * MATRIX);
        ck_assert_uint_eq(step[1].rank.optimizer_scratch_bytes,
                          step[0].rank.optimizer_scratch_bytes);
        ck_assert_uint_gt(step[1].rank.links[MS_LINK_HOST].time.busy_ns,
                          step[0].rank.links[MS_LINK_HOST].time.busy_ns);
        ck_assert_uint_gt(step[1].rank.time.step_ns, step[0].rank.time.step_ns);
    }
}
END_TEST

/* DeepSpeed takes the norm of each part in fp64 before it leaves, clipped or
 * not; the scalars wait for the step. */
START_TEST(deepspeed_always_has_a_norm)
{
    for (int clip = 0; clip < 2; clip++) {
        char options[160];
        snprintf(options, sizeof options,
                 "--optimizer adam --set clip_norm=%d -p "
                 "offload:optimizer,impl=deepspeed",
                 clip);
        seen step = run(matrices, options);
        /* Norms, item(), factor, update, copy, cast: the fp32 partition that
         * comes back is the most that the step makes. */
        ck_assert_uint_eq(step.step_ops, 3 + 1 + 1 + 3);
        ck_assert_uint_eq(step.rank.optimizer_scratch_bytes, 3 * 4 * MATRIX);
        ck_assert_double_eq(step.step_flops, (2 + 1 + 11) * 3.0 * MATRIX);
    }
}
END_TEST

static const char *const decaying[] = {"sgd", "momentum", "nesterov", "adam",
                                       "adam-amsgrad"};

/* Copies of gradients that decay is added to end with the step, and are at most
 * one of each gradient; a fused update makes none. */
START_TEST(decayed_gradients_end)
{
    static const char *const frameworks[] = {"torch-1.13", "torch-2.0",
                                             "torch-2"};
    static const char *const impls[] = {"loop", "foreach", "fused"};
    static const char *const others[] = {"", "--precision bf16-mixed",
                                         "--set optimizer_in_backward=yes"};
    static const char *const decay[] = {"no", "yes"};
    for (uint32_t i = 0; i < 27; i++) {
        seen step[2];
        for (uint32_t d = 0; d < 2; d++) {
            char options[192];
            snprintf(options, sizeof options,
                     "--optimizer %s --set optimizer_impl=%s --framework %s "
                     "--set weight_decay=%s %s",
                     decaying[_i], impls[i % 3], frameworks[i / 3 % 3],
                     decay[d], others[i / 9]);
            step[d] = run(matrices, options);
        }
        uint64_t most = i % 3 == 2 ? 0 : 3 * 4 * MATRIX;
        uint64_t without = step[0].rank.optimizer_scratch_bytes;
        uint64_t with = step[1].rank.optimizer_scratch_bytes;
        ck_assert_uint_ge(with, without);
        ck_assert_uint_le(with, without + most);
        ck_assert_uint_eq(step[1].rank.levels[MS_MARK_END],
                          step[0].rank.levels[MS_MARK_END]);
    }
}
END_TEST

/* States: graphs/states.md 2.  Scratch: what the step's code has at its
 * highest, the variables of the matrix before included. */
static const struct {
    const char *options;
    uint64_t state, scratch;
} kept[] = {
    {"--optimizer sophia", 3 * 8 * MATRIX, 16 * MATRIX},
    /* X before and after, a X, B X and the update before in bf16, A and B */
    {"--optimizer muon", (2 * 4 + 8) * MATRIX, 2 * (5 + 2) * MATRIX},
    /* factors and their roots, gradient, grafting */
    {"--optimizer shampoo", 3 * 6 * 4 * MATRIX, 3 * 4 * MATRIX},
    /* in four blocks: each n^2 is two times (n / 2)^2, for two across */
    {"--optimizer shampoo --set optimizer_block=128", 3 * 6 * 4 * MATRIX,
     3 * 4 * MATRIX},
    {"--optimizer soap", 3 * 6 * 4 * MATRIX, 5 * 4 * MATRIX},
    {"--optimizer soap --set optimizer_block=255", 3 * 2 * 4 * MATRIX,
     5 * 4 * MATRIX},
    /* a projector and two moments of rank 32; Adam's for the head: its roots
     * and quotient beside the last update and its low-rank denominator */
    {"--optimizer galore --set optimizer_rank=32",
     2 * 3 * 32 * 256 * 4 + 8 * MATRIX, 3 * 4 * MATRIX + 32 * 256 * 4},
    {"--optimizer adafactor", 3 * 2 * 256 * 4, 2 * 4 * MATRIX + 2 * 256 * 4},
    {"--optimizer lamb", 3 * 8 * MATRIX, 0},
    {"--optimizer lion", 3 * 4 * MATRIX, 4 * 4 * MATRIX},
    {"--optimizer adamw-8bit", 3 * (2 * MATRIX + 2 * 4 * 256) + 2048, 0},
    {"--optimizer lomo", 0, 0},
    {"--precision bf16 --optimizer lomo", 0, 2 * 4 * MATRIX},
    /* root and quotient, the quotient and the copy of the matrix before */
    {"--precision bf16 --optimizer adamw-kahan", 3 * 3 * 2 * MATRIX,
     4 * 2 * MATRIX},
    {"--precision fp16 --optimizer adam", 3 * 2 * 2 * MATRIX, 3 * 2 * MATRIX},
};

START_TEST(keeps_and_takes)
{
    seen got = run(matrices, kept[_i].options);
    ck_assert_msg(got.rank.optimizer_state_bytes == kept[_i].state &&
                      got.rank.optimizer_scratch_bytes == kept[_i].scratch,
                  "%s: %llu, %llu", kept[_i].options,
                  (unsigned long long)got.rank.optimizer_state_bytes,
                  (unsigned long long)got.rank.optimizer_scratch_bytes);
}
END_TEST

/* No matrix is square, and what goes in is not as wide as what comes out. */
static const char oblong[] =
    "{\"memsim\": 1, \"name\": \"oblong\", \"input\": {\"shape\": [256]},"
    " \"layers\": [{\"repeat\": 1, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 512}, {\"type\": \"linear\", "
    "\"out\": 384}]},"
    " {\"type\": \"linear\", \"name\": \"head\", \"out\": 128,"
    " \"bias\": false}, {\"type\": \"mean\"}]}";

/* factors and their roots, gradient, grafting */
static uint64_t shampoo_of(uint64_t m, uint64_t n)
{
    return 2 * m * m + 2 * n * n + 2 * m * n;
}

/* By hand.  Muon: a momentum of hidden matrices, Adam's two of the rest.
 * Shampoo's vectors have one factor. */
START_TEST(states_of_oblong_matrices)
{
    const uint64_t muon = 512 * 256 + 384 * 512 + 2 * (128 * 384 + 512 + 384);
    const uint64_t shampoo = shampoo_of(512, 256) + shampoo_of(384, 512) +
                             shampoo_of(128, 384) + 2 * 512 * 512 + 2 * 512 +
                             2 * 384 * 384 + 2 * 384;
    ck_assert_uint_eq(run(oblong, "--precision fp32 --optimizer muon")
                          .rank.optimizer_state_bytes,
                      4 * muon);
    ck_assert_uint_eq(run(oblong, "--precision fp32 --optimizer shampoo")
                          .rank.optimizer_state_bytes,
                      4 * shampoo);
}
END_TEST

/* What inference has beside the weights does not grow with the layers. */
START_TEST(inference_keeps_nothing)
{
    uint64_t beside[2];
    for (unsigned i = 0; i < 2; i++) {
        truth_begin();
        const ms_result *r =
            truth_run("gpt3 --sequence 64 --set mode=inference "
                      "--set model.layers=%u",
                      i == 0 ? 2u : 96u);
        ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes, 0);
        ck_assert_uint_eq(truth_rank(r)->optimizer_state_bytes, 0);
        beside[i] = truth_rank(r)->peak.allocated_bytes -
                    truth_rank(r)->parameters_bytes;
        truth_end();
    }
    ck_assert_uint_eq(beside[0], beside[1]);
}
END_TEST

Suite *suite_stepping(void)
{
    Suite *suite = suite_create("stepping");
    TCase *tcase = tcase_create("stepping");
    tcase_add_test(tcase, gradients_end_one_by_one);
    tcase_add_test(tcase, the_first_step_makes_the_state);
    tcase_add_test(tcase, reduced_gradients_end);
    tcase_add_test(tcase, clipping_takes_scalars);
    tcase_add_test(tcase, clipping_far_gradients);
    tcase_add_test(tcase, deepspeed_always_has_a_norm);
    tcase_add_loop_test(tcase, decayed_gradients_end, 0,
                        sizeof decaying / sizeof *decaying);
    tcase_add_test(tcase, inference_keeps_nothing);
    tcase_add_test(tcase, states_of_oblong_matrices);
    tcase_add_loop_test(tcase, keeps_and_takes, 0,
                        (int)(sizeof kept / sizeof *kept));
    suite_add_tcase(suite, tcase);
    return suite;
}
