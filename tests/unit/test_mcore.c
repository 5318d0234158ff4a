/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Megatron's kernels: which ops fuse, which attention backend runs, what is
 * kept, and which kernel adds gradients. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

/* Two layers of 64 with 4 heads over 32 tokens; what a test adds to the config
 * stands before "layers". */
#define MODEL(more)                                                            \
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "   \
    "{" more "\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"vocab\": 100, "   \
    "\"positions\": 32}}"
static const char model[] = MODEL("");

static const ms_result *run(const char *json, const char *options)
{
    return truth_run_json(json, "m --kernels megatron --batch 2 %s", options);
}

static uint32_t count(const ms_graph *graph, const char *op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        n += strcmp(graph->op_name[i], op) == 0;
    return n;
}

/* The storage of that name, or MS_NONE. */
static uint32_t find(const ms_graph *graph, const char *name)
{
    char buffer[MS_STORAGE_NAME];
    for (uint32_t s = 0; s < graph->n_storages; s++)
        if (strcmp(ms_graph_storage_name(graph, s, buffer), name) == 0)
            return s;
    return MS_NONE;
}

static uint64_t bytes_of(const ms_result *result, const char *name)
{
    uint32_t s = find(result->graph, name);
    return s == MS_NONE ? 0 : result->graph->storage_bytes[s];
}

/* Two residual additions a layer; the embedding's dropout has no addition. */
START_TEST(dropout_is_added)
{
    truth_begin();
    const ms_result *r = run(model, "--set megatron.attention=fused");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 4);
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add_backward"), 4);
    ck_assert_uint_eq(count(r->graph, "aten::native_dropout"), 1);
    r = run(MODEL("\"dropout\": 0, "), "");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 0);
    r = run(model, "--set training.mode=inference");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 0);
    ck_assert_uint_eq(count(r->graph, "aten::native_dropout"), 0);
    truth_end();
}
END_TEST

/* Read twice, or broadcast: apart. */
START_TEST(dropout_apart)
{
#define LIST(rest)                                                             \
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"shape\": [8]}, "           \
    "\"layers\": [{\"type\": \"linear\", \"name\": \"x\", \"out\": 8}, "       \
    "{\"type\": \"dropout\", \"name\": \"d\"}, " rest "{\"type\": \"mean\"}]}"
    truth_begin();
    const ms_result *r =
        run(LIST("{\"type\": \"add\", \"inputs\": [\"x\", \"d\"]},"), "");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 1);
    r = run(LIST("{\"type\": \"add\", \"name\": \"a\", \"inputs\": [\"x\", "
                 "\"d\"]}, {\"type\": \"mul\", \"inputs\": [\"a\", \"d\"]},"),
            "");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 0);
    ck_assert_uint_eq(count(r->graph, "aten::native_dropout"), 1);
    r = run(LIST("{\"type\": \"add\", \"inputs\": [\"d\", \"d\"]},"), "");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 0);
    r = run(LIST("{\"type\": \"linear\", \"name\": \"y\", \"inputs\": [\"x\"],"
                 " \"out\": 1}, {\"type\": \"add\", \"inputs\": [\"y\", "
                 "\"d\"]},"),
            "");
    ck_assert_uint_eq(count(r->graph, "bias_dropout_add"), 0);
    ck_assert_uint_eq(count(r->graph, "aten::native_dropout"), 1);
    truth_end();
}
END_TEST

/* Flash reads copies of q, k and v with the batch first and gives one of its
 * output; fused has none.  Of two layers. */
static bool is_flash(const char *options)
{
    const ms_result *r = run(model, options);
    ck_assert_uint_eq(
        count(r->graph, "aten::_scaled_dot_product_flash_attention"), 2);
    uint32_t copies = count(r->graph, "aten::clone");
    ck_assert(copies == 0 || copies == 8);
    return copies == 8;
}

START_TEST(backends)
{
    truth_begin();
    ck_assert(is_flash("--device a100"));
    ck_assert(is_flash("--device 4090"));
    ck_assert(!is_flash("--device h100"));
    ck_assert(!is_flash("--device b200"));
    ck_assert(is_flash("--device b200 --set megatron.deterministic=yes"));
    ck_assert(!is_flash("--device h100 --set megatron.deterministic=yes"));
    ck_assert(!is_flash("--device a100 --set megatron.attention=fused"));
    ck_assert(is_flash("--device h100 --set megatron.attention=flash"));
    truth_end();
}
END_TEST

/* Of 2 samples and 4 heads of 16, in fp32, over 32 tokens rounded up to 128 and
 * channels to 32; deterministic as many as 108 multiprocessors are 8 blocks. */
START_TEST(sums_of_flash)
{
    const uint64_t sum = 4u * 2 * 4 * 128 * 32;
    const char *dq = "layers.1.attention:dq_accum";
    truth_begin();
    ck_assert_uint_eq(bytes_of(run(model, "--device a100"), dq), sum);
    ck_assert_uint_eq(
        bytes_of(run(model, "--device a100 --set megatron.deterministic=yes"),
                 dq),
        14 * sum);
    ck_assert_uint_eq(
        bytes_of(run(model, "--device h100 --set megatron.deterministic=yes"),
                 dq),
        sum);
    /* in a ring, whose rank has 16 tokens */
    ck_assert_uint_eq(
        bytes_of(run(model, "--device a100 --set megatron.deterministic=yes "
                            "-p context:2"),
                 dq),
        14 * sum);
    truth_end();
}
END_TEST

/* The product's result is there until the projection has run, as a variable
 * names a view of it, though the kernel reads copies, or its turned ones. */
static void check_named(const char *options)
{
    const ms_graph *graph = run(model, options)->graph;
    uint32_t s = find(graph, "layers.1.attention:out");
    ck_assert_uint_ne(s, MS_NONE);
    uint32_t first = graph->storage_maker[s], end = graph->storage_local_end[s];
    ck_assert_uint_ne(first, end);
    ck_assert_str_eq(graph->op_name[first], "aten::addmm");
    ck_assert_str_eq(graph->op_name[end], "aten::addmm");
    ck_assert_uint_eq(graph->op_layer[first], graph->op_layer[end]);
}

START_TEST(values_are_named)
{
    truth_begin();
    check_named("--device a100");
    check_named("--device h100 --set model.positions_type=rotary");
    truth_end();
}
END_TEST

START_TEST(workspaces)
{
    static const char te[] = "transformer_engine_workspace";
    const uint64_t mib = 1 << 20;
    truth_begin();
    ck_assert_uint_eq(bytes_of(run(model, "--device a100"), te), 4 * mib);
    ck_assert_uint_eq(bytes_of(run(model, "--device h100"), te),
                      32 * mib + 1024);
    ck_assert_uint_eq(
        bytes_of(run(model, "--device a100 --set megatron.deterministic=yes"),
                 "forward:cublas_workspace"),
        32 * mib);
    const ms_result *r = run(model, "--set megatron.spec=local");
    ck_assert_uint_eq(bytes_of(r, te), 0);
    ck_assert_uint_eq(bytes_of(r, "mpu"), 2 * 2 * 4 * 32 * 32);
    ck_assert_uint_eq(bytes_of(run(model, ""), "mpu"), 0);
    truth_end();
}
END_TEST

/* fp32 positions of the sequence, not of the longest; whole heads of all. */
START_TEST(positions_rotate)
{
    truth_begin();
    const ms_result *r =
        run(MODEL("\"positions_type\": \"rotary\", "), "--sequence 16");
    ck_assert_uint_eq(bytes_of(r, "layers.0.attention:rotary_pos_emb"),
                      4 * 16 * 16);
    ck_assert_uint_eq(count(r->graph, "fused_rope"), 4);
    ck_assert_uint_eq(count(r->graph, "fused_rope_backward"), 4);
    truth_end();
}
END_TEST

/* One micro-batch of the step's inputs at a time. */
START_TEST(inputs)
{
    truth_begin();
    const uint64_t tokens = 8 + 8 + 8 + 4; /* ids, labels, positions, mask */
    for (unsigned batch = 2; batch <= 4; batch += 2) {
        const ms_result *r = truth_run_json(
            model, "m --kernels megatron --batch %u -p microbatch:%u", batch,
            batch / 2);
        ck_assert_uint_eq(truth_rank(r)->category_peaks[MS_INPUTS],
                          2 * 32 * (tokens + 32));
    }
    const ms_result *r = run(model, "--set megatron.mask=no");
    ck_assert_uint_eq(truth_rank(r)->category_peaks[MS_INPUTS],
                      2 * 32 * tokens);
    truth_end();
}
END_TEST

/* Bytes that gradients' ops of this layer's weight write. */
static uint64_t written(const ms_graph *graph, const char *op, uint8_t pass,
                        const char *layer)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (graph->op_pass[i] == pass && graph->op_layer[i] != MS_NONE &&
            strcmp(graph->op_name[i], op) == 0 &&
            strcmp(graph->layer_name[graph->op_layer[i]], layer) == 0)
            bytes += graph->op_write_bytes[i];
    return bytes;
}

/* mlp.up: a weight [256, 64], a bias whose gradient the hook adds. */
START_TEST(products_add)
{
    const uint64_t weight = 256 * 64, bias = 256;
    truth_begin();
    const ms_result *r = run(model, "");
    ck_assert_uint_eq(
        written(r->graph, "aten::mm", MS_GRAD_WEIGHT, "layers.1.mlp.up"),
        4 * weight);
    ck_assert_uint_eq(
        written(r->graph, "AccumulateGrad", MS_ACCUMULATE, "layers.1.mlp.up"),
        4 * bias);
    /* the head's is a table, too, whose gradients are summed before */
    ck_assert_uint_eq(
        written(r->graph, "AccumulateGrad", MS_ACCUMULATE, "embeddings.tokens"),
        4 * 100 * 64);
    r = run(model, "--set megatron.wgrad=apart");
    ck_assert_uint_eq(
        written(r->graph, "aten::mm", MS_GRAD_WEIGHT, "layers.1.mlp.up"),
        2 * weight);
    ck_assert_uint_eq(
        written(r->graph, "AccumulateGrad", MS_ACCUMULATE, "layers.1.mlp.up"),
        4 * (weight + bias));
    truth_end();
}
END_TEST

/* Both make the same tensors. */
START_TEST(adding_moves_no_peak)
{
    truth_begin();
    uint64_t fused = truth_rank(run(model, ""))->peak.allocated_bytes;
    uint64_t apart = truth_rank(run(model, "--set megatron.wgrad=apart"))
                         ->peak.allocated_bytes;
    ck_assert_uint_eq(fused, apart);
    truth_end();
}
END_TEST

/* What selective recomputation drops: softmax, its mask, the dropped. */
START_TEST(selective_drops_the_core)
{
    const uint64_t squares = 2 * 2 * 4 * 32 * 32;
    truth_begin();
    uint64_t all = truth_rank(run(model, "--set megatron.attention=unfused"))
                       ->saved_for_backward_bytes;
    uint64_t less = truth_rank(run(model, "--set megatron.attention=unfused "
                                          "-p checkpoint:selective"))
                        ->saved_for_backward_bytes;
    ck_assert_uint_eq(all - less, 5 * squares);
    truth_end();
}
END_TEST

/* The loop names the loss alone, unless it is told to. */
START_TEST(logits_end)
{
    const uint64_t logits = 2 * 2 * 32 * 100;
    truth_begin();
    uint64_t own = truth_rank(run(model, ""))->levels[MS_MARK_AFTER_FORWARD];
    uint64_t held = truth_rank(run(model, "--set training.hold_output=step"))
                        ->levels[MS_MARK_AFTER_FORWARD];
    ck_assert_uint_eq(held - own, logits);
    truth_end();
}
END_TEST

Suite *suite_mcore(void)
{
    Suite *suite = suite_create("mcore");
    TCase *tcase = tcase_create("mcore");
    tcase_add_test(tcase, dropout_is_added);
    tcase_add_test(tcase, dropout_apart);
    tcase_add_test(tcase, backends);
    tcase_add_test(tcase, sums_of_flash);
    tcase_add_test(tcase, values_are_named);
    tcase_add_test(tcase, workspaces);
    tcase_add_test(tcase, positions_rotate);
    tcase_add_test(tcase, inputs);
    tcase_add_test(tcase, products_add);
    tcase_add_test(tcase, adding_moves_no_peak);
    tcase_add_test(tcase, selective_drops_the_core);
    tcase_add_test(tcase, logits_end);
    suite_add_tcase(suite, tcase);
    return suite;
}
