/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MLPs and losses in pieces (training.mlp_tiles, loss_kernel=tiled): only what
 * they read is saved, their products are the same and those of an MLP's forward
 * run once more, each weight has one gradient, and every policy beside them
 * keeps the laws of a step. */
#include "graphs/kernels/kernels.h"
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

#define LAYERS UINT64_C(3)
#define HIDDEN UINT64_C(64)
#define INNER UINT64_C(96)
#define WORDS UINT64_C(512)
#define BATCH UINT64_C(4)
#define SEQUENCE UINT64_C(32)
#define TOKENS (BATCH * SEQUENCE)
#define DECODER(more)                                                          \
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "   \
    "{\"layers\": 3, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "           \
    "\"positions\": 32" more "}}"
static const char gpt[] = DECODER("");
static const char llama[] =
    DECODER(", \"kv_heads\": 4, \"norm_type\": \"rms_norm\", \"dropout\": 0, "
            "\"positions_type\": \"rotary\", \"activation\": \"swiglu\", "
            "\"bias\": false, \"tied\": false, \"ffn\": 96");
static const char *const models[] = {gpt, llama};
/* Two products of one input, one of which is read outside: no MLP. */
static const char open_ended[] =
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true}, "
    "\"layers\": [{\"type\": \"embedding\", \"vocab\": 512, \"dim\": 64}, "
    "{\"repeat\": 3, \"name\": \"block\", \"layers\": ["
    "{\"type\": \"layer_norm\", \"name\": \"norm\"}, "
    "{\"type\": \"linear\", \"name\": \"up\", \"out\": 64}, "
    "{\"type\": \"relu\", \"name\": \"act\"}, "
    "{\"type\": \"linear\", \"name\": \"down\", \"out\": 64}, "
    "{\"type\": \"add\", \"name\": \"both\", \"inputs\": [\"down\", "
    "\"up\"]}, "
    "{\"type\": \"add\", \"inputs\": [\"both\", \"input\"]}]}, "
    "{\"type\": \"linear\", \"out\": 512, \"bias\": false}, "
    "{\"type\": \"cross_entropy\"}]}";

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

typedef struct pieces {
    int64_t mlp;
    bool loss;
} pieces;
static const pieces whole = {0, false};

static void begin(ms_job *job, uint32_t kernels, pieces cut)
{
    inlined_begin(job, &keep, &trial, &fault);
    job->uses = true;
    job->training.batch = (int64_t)BATCH;
    job->training.kernels = (int64_t)kernels;
    job->training.mlp_tiles = cut.mlp;
    if (cut.loss)
        ck_assert(
            !ms_training_set(&job->training, "loss_kernel", "tiled", &fault));
}

static ms_err run(const char *model, uint32_t kernels, const char *policy,
                  pieces cut)
{
    ms_job job;
    begin(&job, kernels, cut);
    return inlined_step(model, policy, &job, &keep, &trial, &result, &fault);
}

static void must_run(const char *model, uint32_t kernels, const char *policy,
                     pieces cut)
{
    ck_assert_msg(run(model, kernels, policy, cut) == MS_OK, "%s: %s: %s",
                  policy, fault.what, fault.hint);
}

/* ---- what is saved ------------------------------------------------------- */

/* Of an MLP the 16-bit input of its products, which whole ones save too; not
 * gate, up and their product.  The result is not saved either way. */
START_TEST(the_input_alone_is_saved)
{
    must_run(llama, MS_FLASH, "none", whole);
    uint64_t all = result.report->ranks[0].saved_for_backward_bytes;
    for (int64_t n = 1; n <= 64; n *= 2) {
        must_run(llama, MS_FLASH, "none", (pieces){n, false});
        ck_assert_uint_eq(all -
                              result.report->ranks[0].saved_for_backward_bytes,
                          LAYERS * 3 * 2 * TOKENS * INNER);
    }
}
END_TEST

/* Of head and loss its gradients: of the hidden state, and of the weight. */
START_TEST(gradients_of_the_loss_are_kept)
{
    must_run(llama, MS_FLASH, "none", (pieces){0, true});
    const ms_graph *graph = result.graph;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < graph->n_saves; i++)
        if (graph->op_unit[graph->saves[i].op] >= graph->loss_unit)
            bytes += graph->saves[i].bytes;
    ck_assert_uint_eq(bytes, 2 * TOKENS * HIDDEN + 2 * WORDS * HIDDEN);
}
END_TEST

/* ---- what is computed ---------------------------------------------------- */

static double products(uint8_t first, uint8_t last)
{
    const ms_graph *graph = result.graph;
    double flops = 0;
    for (uint32_t op = 0; op < graph->step_first; op++)
        if (graph->op_flags[op] & MS_OP_MATRIX && graph->op_pass[op] >= first &&
            graph->op_pass[op] <= last)
            flops += graph->op_flops[op];
    return flops;
}

START_TEST(products_are_the_same)
{
    static const pieces cuts[] = {{3, false}, {0, true}, {5, true}, {64, true}};
    const double mlp = 2.0 * LAYERS * TOKENS * 3 * HIDDEN * INNER;
    for (size_t c = 0; c < MANY(cuts); c++) {
        must_run(llama, MS_FLASH, "none", whole);
        double all = products(MS_FORWARD, MS_GRAD_WEIGHT);
        must_run(llama, MS_FLASH, "none", cuts[c]);
        ck_assert_double_eq_tol(products(MS_FORWARD, MS_GRAD_WEIGHT), all,
                                1e-9 * all);
        ck_assert_double_eq_tol(products(MS_RECOMPUTE, MS_RECOMPUTE),
                                cuts[c].mlp > 0 ? mlp : 0, 1e-9 * mlp);
        ck_assert(result.report->recompute_flops >=
                  (cuts[c].mlp > 0 ? mlp : 0));
    }
}
END_TEST

static uint32_t n_accumulated(uint32_t grad)
{
    const ms_graph *graph = result.graph;
    uint32_t n = 0;
    for (uint32_t op = 0; op < graph->step_first; op++)
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            n += graph->out[i] == grad && graph->op_pass[op] == MS_ACCUMULATE;
    return n;
}

static uint64_t states(void)
{
    const ms_rank_report *rank = &result.report->ranks[0];
    return rank->parameters_bytes + rank->gradients_bytes +
           rank->optimizer_state_bytes;
}

START_TEST(each_weight_has_one_gradient)
{
    for (size_t m = 0; m < MANY(models); m++) {
        must_run(models[m], MS_EAGER, "none", whole);
        uint64_t parameters = result.graph->parameters;
        uint64_t bytes = states();
        must_run(models[m], MS_EAGER, "none", (pieces){7, true});
        const ms_graph *graph = result.graph;
        ck_assert_uint_eq(graph->parameters, parameters);
        ck_assert_uint_eq(graph->n_untrained, 0);
        ck_assert_uint_eq(states(), bytes);
        for (uint32_t s = 0; s < graph->n_persistent; s++)
            if (ms_graph_is_weight(graph, s))
                ck_assert_uint_eq(n_accumulated(graph->storage_grad[s]), 1);
    }
}
END_TEST

/* Smaller pieces never need more. */
START_TEST(peaks_fall_with_pieces)
{
    uint64_t before = UINT64_MAX;
    for (int64_t n = 1; n <= 32; n *= 2) {
        must_run(llama, MS_FLASH, "checkpoint:full", (pieces){n, true});
        uint64_t bytes = result.report->ranks[0].phase_peaks[MS_PHASE_BACKWARD];
        ck_assert_uint_le(bytes, before);
        before = bytes;
    }
}
END_TEST

/* ---- beside other settings and policies ---------------------------------- */

static const char *const beside[] = {
    "none",
    "checkpoint:full",
    "checkpoint:selective",
    "checkpoint:sac",
    "microbatch:2+checkpoint:sqrt",
    "microbatch:4",
    "ddp:dp=4+microbatch:2",
    "zero:1,dp=8",
    "zero:2,dp=8,impl=deepspeed",
    "zero:3,dp=4+checkpoint:full",
    "zero:3,dp=4,impl=deepspeed+checkpoint:full+microbatch:2",
    "fsdp:dp=8+microbatch:2",
    "fsdp:dp=8,shard=4+checkpoint:full",
    "zero:2,dp=8+offload:optimizer",
    "zero:3,dp=4+offload:optimizer/params",
    "swap:torchtune",
    "swap:te=2",
    "context:4+zero:3,dp=4+checkpoint:full",
    "context:4,mode=ring+zero:1,dp=8",
    "context:8,mode=a2a+fsdp:dp=8+microbatch:2",
    "pipeline:3,layers=1/1/1+microbatch:4",
    "pipeline:3,layers=1/1/1,schedule=zb-h1+microbatch:4",
};

static const pieces cuts[] = {{3, false}, {0, true}, {-1, true}, {5, true}};

/* Kernels that say why they have no pieces, a ring that needs a fused kernel,
 * Transformer Engine, which repeats no heads, and nanotron, which divides no
 * sequence. */
static bool is_refused(const char *model, uint32_t kernels, const char *policy,
                       pieces cut)
{
    bool modules = kernels == MS_MEGATRON || kernels == MS_NANOTRON;
    return (modules && cut.mlp != 0) ||
           (kernels == MS_NANOTRON && strstr(policy, "context")) ||
           (kernels == MS_EAGER && strstr(policy, "mode=ring")) ||
           (kernels == MS_MEGATRON && model == llama &&
            strstr(policy, "context:8"));
}

static void check_laws(void)
{
    laws_check_levels(result.plan, result.line);
    if (result.plan->n_ranks > 1)
        return;
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_report(result.line, result.report, true);
    laws_check_steady(result.plan, true);
}

START_TEST(steps_keep_the_laws)
{
    for (uint32_t kernels = 0; kernels < MS_KERNELS_N; kernels++)
        for (size_t m = 0; m < MANY(models); m++)
            for (size_t c = 0; c < MANY(cuts); c++) {
                if (is_refused(models[m], kernels, beside[_i], cuts[c])) {
                    ck_assert_int_ne(
                        run(models[m], kernels, beside[_i], cuts[c]), MS_OK);
                    continue;
                }
                must_run(models[m], kernels, beside[_i], cuts[c]);
                check_laws();
            }
}
END_TEST

static const char *const settings[][2] = {
    {"lora.rank", "4"},
    {"lora.base", "nf4"},
    {"frozen.blocks", "2"},
    {"retain_graph", "yes"},
    {"device", "cpu"},
    {"optimizer_impl", "foreach"},
    {"precision", "fp16-mixed"},
    {"precision", "bf16"},
    {"precision", "fp32"},
    {"zero_grad", "keep"},
    {"gradients", "fp32"},
    {"mode", "inference"},
    {"framework", "torch-1.13"},
    {"norm_kernel", "liger"},
    {"clip_norm", "1"},
    {"activation_kernel", "fused"},
    {"memory_format", "contiguous"},
    {"hold_output", "none"},
};

START_TEST(settings_compose)
{
    for (size_t c = 0; c < MANY(cuts); c++) {
        ms_job job;
        begin(&job, MS_FLASH, cuts[c]);
        if (strcmp(settings[_i][0], "lora.base") == 0)
            ck_assert(
                !ms_training_set(&job.training, "lora.rank", "4", &fault));
        ck_assert_msg(!ms_training_set(&job.training, settings[_i][0],
                                       settings[_i][1], &fault),
                      "%s", fault.what);
        ms_err err = inlined_step(llama, "microbatch:2", &job, &keep, &trial,
                                  &result, &fault);
        ck_assert_msg(err == MS_OK, "%s: %s", settings[_i][0], fault.what);
        check_laws();
    }
}
END_TEST

/* Autocast keeps its cast of the head for all pieces of a loss. */
START_TEST(a_cast_is_kept_for_all_pieces)
{
    ms_job job;
    uint32_t n = 0;
    begin(&job, MS_FLASH, (pieces){0, true});
    job.training.precision = MS_AUTOCAST_BF16;
    ck_assert_int_eq(
        inlined_step(llama, "none", &job, &keep, &trial, &result, &fault),
        MS_OK);
    const ms_graph *graph = result.graph;
    for (uint32_t op = graph->forward_at[graph->loss_unit];
         op < graph->forward_at[graph->n_units]; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            n += ms_graph_is_weight(graph, graph->in[i]);
    ck_assert_uint_eq(n, 1);
    check_laws();
}
END_TEST

/* Peak and time by folding calls, and by replay. */
START_TEST(folds_are_replays)
{
    for (size_t c = 0; c < MANY(cuts); c++) {
        ms_job job;
        ms_expand_opts opts;
        ms_fold *fold;
        ms_folded folded;
        begin(&job, MS_FLASH, cuts[c]);
        ck_assert_int_eq(
            inlined_lower(llama, beside[_i], &job, &keep, &result, &fault),
            MS_OK);
        ck_assert_int_eq(
            ms_jobprogram_make(&job, &trial, &opts, &result, &fault), MS_OK);
        ck_assert_int_eq(ms_fold_open(result.graph, &opts, result.machine,
                                      &keep, &fold, &fault),
                         MS_OK);
        ck_assert_int_eq(ms_fold_program(fold, result.program, &folded, &fault),
                         MS_OK);
        ms_fold_close(fold);
        if (folded.why != MS_FOLD_WHOLE) /* hooks, pipelines */
            continue;
        must_run(llama, MS_FLASH, beside[_i], cuts[c]);
        ck_assert_uint_eq(
            folded.peak_bytes,
            result.line->ranks[0].pool[MS_DEVICE_POOL].peak_bytes);
        ck_assert_uint_eq(folded.active_bytes,
                          result.line->ranks[0].reserved_peak_bytes);
        ck_assert_uint_eq(folded.step_ns, result.line->step_ns);
    }
}
END_TEST

/* ---- what is refused ----------------------------------------------------- */

static ms_err run_in(const char *key, const char *value)
{
    ms_job job;
    begin(&job, MS_FLASH, (pieces){4, false});
    ck_assert(!ms_training_set(&job.training, key, value, &fault));
    return inlined_step(llama, "none", &job, &keep, &trial, &result, &fault);
}

START_TEST(what_is_not_known_is_refused)
{
    static const pieces four = {4, false};
    ms_err err = run(open_ended, MS_FLASH, "none", four);
    ck_assert_msg(err == MS_EUSAGE, "%s: %s", fault.what, fault.hint);
    ck_assert_ptr_nonnull(strstr(fault.what, "has no MLP"));
    ck_assert_int_eq(run(llama, MS_FLASH, "tensor:2", four), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "split an MLP"));
    ck_assert_int_eq(run(llama, MS_MEGATRON, "none", four), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "these kernels"));
    ck_assert_int_eq(run_in("precision", "autocast-bf16"), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "autocast is off"));
    ck_assert_int_eq(run_in("precision", "fp8"), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "fp8"));
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_tiles(void)
{
    Suite *suite = suite_create("tiles");
    TCase *tcase = tcase_create("tiles");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, the_input_alone_is_saved);
    tcase_add_test(tcase, gradients_of_the_loss_are_kept);
    tcase_add_test(tcase, products_are_the_same);
    tcase_add_test(tcase, each_weight_has_one_gradient);
    tcase_add_test(tcase, peaks_fall_with_pieces);
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0, (int)MANY(beside));
    tcase_add_loop_test(tcase, settings_compose, 0, (int)MANY(settings));
    tcase_add_test(tcase, a_cast_is_kept_for_all_pieces);
    tcase_add_loop_test(tcase, folds_are_replays, 0, (int)MANY(beside));
    tcase_add_test(tcase, what_is_not_known_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
