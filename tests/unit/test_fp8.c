/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fp8 products keep for backward, to the byte, and what they cost. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

/* Three layers that multiply in fp8 and a head that does not: 64 samples. */
static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"shape\": [256]},"
    " \"layers\": [{\"repeat\": 3, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 256, \"bias\": false}]},"
    " {\"type\": \"linear\", \"name\": \"head\", \"out\": 256,"
    " \"bias\": false}, {\"type\": \"mean\"}]}";
#define MATRIX (256u * 256u)
#define ROWS (64u * 256u) /* elements of an activation */
#define SCALE 4u

#define RUN(options)                                                           \
    truth_run_json(chain,                                                      \
                   "chain --batch 64 --optimizer adam --precision " options)

static uint64_t saved(const ms_result *result)
{
    return truth_rank(result)->saved_for_backward_bytes;
}

static uint64_t parameters(const ms_result *result)
{
    return truth_rank(result)->parameters_bytes;
}

/* Inputs by columns, 1 byte and a scale; the head's in 16 bits; of weights
 * rows, and columns but for the first layer, whose input needs no gradient. */
START_TEST(saves_a_byte_of_each_input)
{
    const uint64_t inputs = 3 * (ROWS + SCALE) + 2 * ROWS;
    truth_begin();
    ck_assert_uint_eq(saved(RUN("fp8 --set fp8.weights=layer")), inputs);
    ck_assert_uint_eq(saved(RUN("fp8 --set fp8.weights=kept")), inputs);
    ck_assert_uint_eq(saved(RUN("fp8")), inputs + 5 * MATRIX + 3 * SCALE);
    ck_assert_uint_eq(saved(RUN("fp8-primary")), inputs);
    ck_assert_uint_eq(saved(RUN("fp8 --device b200 --set fp8.recipe=current")),
                      inputs + 3 * MATRIX + 3 * SCALE);
    truth_end();
}
END_TEST

/* The scales of blocks: of inputs, by columns, an fp32 for 128 rows (there are
 * 64); of weights for 128 x 128, four columns of them at least; a byte for 32.
 */
START_TEST(saves_scales_of_blocks)
{
    const uint64_t by_128 = 256 * 4, by_32 = ROWS / 32;
    truth_begin();
    ck_assert_uint_eq(
        saved(RUN("fp8 --set fp8.weights=layer --set fp8.recipe=block")),
        3 * (ROWS + by_128) + 2 * ROWS);
    ck_assert_uint_eq(saved(RUN("fp8 --set fp8.recipe=block")),
                      3 * (ROWS + by_128) + 2 * ROWS +
                          5 * (MATRIX + 2 * 4 * 4));
    const uint64_t padded = by_32 * 2; /* 64 rows are 2 blocks of 4 */
    ck_assert_uint_eq(saved(RUN("fp8 --device b200 --set fp8.weights=layer")),
                      3 * (ROWS + padded) + 2 * ROWS);
    truth_end();
}
END_TEST

/* mxfp8 is fp8 with the recipe of blocks of 32: columns of inputs, rows and
 * columns of weights, each with a byte for 32 elements (a table of them is
 * padded to multiples of 128 x 4: 256 x 2 of an input's columns take twice
 * that).  torchao keeps what the layers read, in 16 bits. */
START_TEST(mxfp8_keeps_both_ways)
{
    const uint64_t scales = ROWS / 32 * 2, of_weight = MATRIX / 32;
    truth_begin();
    ck_assert_uint_eq(saved(RUN("mxfp8 --device b200")),
                      3 * (ROWS + scales) + 2 * ROWS +
                          5 * (MATRIX + of_weight));
    ck_assert_uint_eq(saved(RUN("fp8 --device b200")),
                      saved(RUN("mxfp8 --device b200")));
    ck_assert_uint_eq(saved(RUN("mxfp8 --device b200 --set fp8.weights=layer")),
                      3 * (ROWS + scales) + 2 * ROWS);
    ck_assert_uint_eq(saved(RUN("mxfp8-torchao --device b200")),
                      saved(RUN("bf16-mixed --device b200")));
    ck_assert_uint_eq(saved(RUN("mxfp8 --device b200 --set fp8.weights=kept")),
                      3 * (ROWS + scales) + 2 * ROWS);
    ck_assert_uint_eq(
        parameters(RUN("mxfp8 --device b200 --set fp8.weights=kept")),
        4 * 2 * MATRIX + 3 * 2 * MATRIX);
    truth_end();
}
END_TEST

/* MS-AMP keeps the rows of inputs and weights; autocast casts the head's. */
START_TEST(msamp_keeps_rows)
{
    truth_begin();
    ck_assert_uint_eq(saved(RUN("msamp-o1")), 3 * (ROWS + SCALE) +
                                                  3 * (MATRIX + SCALE) +
                                                  2 * ROWS + 2 * MATRIX);
    ck_assert_uint_eq(saved(RUN("msamp-o3")),
                      3 * (ROWS + SCALE) + 2 * ROWS + 2 * MATRIX);
    const ms_result *r = RUN("msamp-o2");
    ck_assert_uint_eq(parameters(r), 3 * 2 * MATRIX + 4 * MATRIX);
    ck_assert_uint_eq(truth_rank(r)->gradients_bytes, 3 * MATRIX + 4 * MATRIX);
    ck_assert_uint_eq(truth_rank(r)->optimizer_state_bytes, 4 * 3 * MATRIX);
    truth_end();
}
END_TEST

/* Three fp8 weights beside the head's 2 bytes. */
START_TEST(copies_of_weights)
{
    truth_begin();
    ck_assert_uint_eq(parameters(RUN("fp8")), 4 * 2 * MATRIX);
    ck_assert_uint_eq(parameters(RUN("fp8 --set fp8.weights=kept")),
                      4 * 2 * MATRIX + 3 * 2 * MATRIX);
    ck_assert_uint_eq(parameters(RUN("fp8-primary --set fp8.weights=layer")),
                      3 * MATRIX + 2 * MATRIX);
    ck_assert_uint_eq(parameters(RUN("fp8-primary")),
                      3 * 2 * MATRIX + 2 * MATRIX);
    ck_assert_uint_eq(parameters(RUN("fp8-primary --set mode=inference")),
                      3 * MATRIX + 2 * MATRIX);
    const ms_result *r = RUN("fp8 --set fp8.weights=kept");
    ck_assert_uint_eq(r->graph->parameters, 4 * MATRIX);
    ck_assert_uint_eq(saved(RUN("fp8 --set mode=inference")), 0);
    truth_end();
}
END_TEST

static uint32_t ops_named(const ms_graph *graph, const char *name)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < graph->n_ops; op++)
        n += strcmp(graph->op_name[op], name) == 0;
    return n;
}

/* Forward 3 inputs and 3 weights, backward 3 gradients; a layer's weight is
 * quantized again where its columns are read, MS-AMP casts gradients and
 * turns what it kept. */
START_TEST(quantizes_what_products_read)
{
    truth_begin();
    const ms_result *r = RUN("fp8");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::gemm"), 3 + 2 + 3);
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 9);
    r = RUN("fp8 --set fp8.recipe=current");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::amax"), 9);
    r = RUN("fp8 --set fp8.weights=layer");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 9 + 2);
    r = RUN("fp8 --set fp8.weights=kept");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 6);
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize (all)"), 1);
    r = RUN("fp8-primary --set fp8.weights=layer");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 6);
    ck_assert_uint_eq(ops_named(r->graph, "fp8::transpose"), 2);
    r = RUN("mxfp8 --device b200");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 9);
    /* Two operands of 3 + 2 + 3 products, each by a kernel of its own; and the
     * rows of the gradient whose product nobody asks for. */
    r = RUN("mxfp8-torchao --device b200");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 2 * 8 + 1);
    ck_assert_uint_eq(ops_named(r->graph, "aten::mm"), 8 + 3);
    r = RUN("msamp-o1");
    ck_assert_uint_eq(ops_named(r->graph, "fp8::quantize"), 9 + 3);
    ck_assert_uint_eq(ops_named(r->graph, "fp8::transpose"), 2 + 3);
    truth_end();
}
END_TEST

/* Products take their FLOPs at the device's rate for fp8; of this shape, 16384
 * each way, aiconfigurator measured 12.523 ms in bf16 and 6.748 in fp8 (H100
 * 80GB HBM3). */
START_TEST(products_at_the_rate_of_fp8)
{
    static const char *const layer =
        "{\"memsim\": 1, \"name\": \"layer\", \"input\": {\"shape\": [16384]},"
        " \"layers\": [{\"type\": \"linear\", \"out\": 16384, \"bias\": "
        "false}, {\"type\": \"relu\"}, {\"type\": \"mean\"}]}";
    const char *const words[2] = {"fp8", "bf16-mixed"};
    const char *const names[2] = {"fp8::gemm", "aten::mm"};
    uint64_t took_ns[2] = {0};
    double flops[2] = {0};
    truth_begin();
    for (uint32_t i = 0; i < 2; i++) {
        const ms_graph *g =
            truth_run_json(layer, "layer --batch 16384 --precision %s",
                           words[i])
                ->graph;
        for (uint32_t op = 0; op < g->n_ops && took_ns[i] == 0; op++)
            if (strcmp(g->op_name[op], names[i]) == 0) {
                took_ns[i] = g->op_ns[op];
                flops[i] = g->op_flops[op];
            }
    }
    ck_assert_double_eq(flops[0], flops[1]);
    ck_assert_double_eq_tol((double)took_ns[1] / (double)took_ns[0],
                            12.523 / 6.748, 0.03);
    truth_end();
}
END_TEST

/* tf32 changes rates alone. */
START_TEST(tf32_has_the_bytes_of_fp32)
{
    truth_begin();
    ms_rank_report fp32 = *truth_rank(truth_run("gpt2 --precision fp32"));
    const ms_rank_report *tf32 = truth_rank(truth_run("gpt2 --precision tf32"));
    ck_assert_mem_eq(&fp32.levels, &tf32->levels, sizeof fp32.levels);
    ck_assert_mem_eq(&fp32.category_peaks, &tf32->category_peaks,
                     sizeof fp32.category_peaks);
    ck_assert_uint_eq(fp32.saved_for_backward_bytes,
                      tf32->saved_for_backward_bytes);
    ck_assert_uint_lt(tf32->time.step_ns, fp32.time.step_ns);
    truth_end();
}
END_TEST

/* With a policy a precision still has its states, and keeps less or as much. */
static const struct composition {
    const char *words;
    uint64_t states;
} compositions[] = {
    {"fp8 -p checkpoint:full", 4 * 16 * MATRIX},
    {"fp8 -p microbatch:4", 4 * 16 * MATRIX},
    {"fp8 -p ddp:dp=8", 4 * 16 * MATRIX},
    {"fp8 -p zero:1,dp=8", 4 * 4 * MATRIX + 4 * 12 * MATRIX / 8},
    {"fp8 -p zero:2,dp=8", 0},
    {"fp8 -p zero:3,dp=8", 0},
    {"fp8 -p fsdp:dp=8", 0},
    {"fp8 -p offload:optimizer", 0},
    {"mxfp8 --device b200 -p checkpoint:full", 4 * 16 * MATRIX},
    {"mxfp8 --device b200 -p zero:1,dp=8",
     4 * 4 * MATRIX + 4 * 12 * MATRIX / 8},
    {"mxfp8 --device b200 -p fsdp:dp=8+checkpoint:full", 0},
    {"mxfp8 --device b200 -p offload:optimizer", 0},
    {"mxfp8-torchao --device b200 -p checkpoint:sac", 4 * 16 * MATRIX},
    {"mxfp8-torchao --device b200 -p zero:3,dp=8", 0},
    {"mxfp8-torchao --device b200 -p microbatch:2+ddp:dp=8", 4 * 16 * MATRIX},
    {"fp8-primary -p checkpoint:full+microbatch:2",
     3 * (2 + 2 + 12) * MATRIX + 16 * MATRIX},
    {"fp8-primary -p zero:2,dp=8", 0},
    {"msamp-o2 -p checkpoint:full", 3 * 6 * MATRIX + (4 + 4 + 3) * MATRIX},
    {"msamp-o3 -p zero:1,dp=8",
     3 * 2 * MATRIX + 8 * MATRIX + (3 * 5 + 3) * MATRIX / 8},
    {"bf16-remainders -p fsdp:dp=8", 0},
    {"bf16-remainders -p zero:1,dp=8", 4 * 4 * MATRIX + 4 * 10 * MATRIX / 8},
};

START_TEST(precisions_compose)
{
    const struct composition *it = &compositions[_i];
    truth_begin();
    const ms_result *r = truth_run_json(
        chain, "chain --batch 64 --optimizer adam --precision %s", it->words);
    const ms_rank_report *rank = truth_rank(r);
    uint64_t states = rank->parameters_bytes + rank->gradients_bytes +
                      rank->optimizer_state_bytes;
    ck_assert_uint_eq(r->graph->parameters, 4 * MATRIX);
    if (it->states > 0)
        ck_assert_uint_eq(states, it->states);
    truth_end();
}
END_TEST

/* What a checkpoint replays is quantized again, a micro-batch keeps a part. */
START_TEST(policies_keep_less)
{
    truth_begin();
    uint64_t all = saved(RUN("fp8 --set fp8.weights=kept"));
    uint64_t part = saved(RUN("fp8 --set fp8.weights=kept -p microbatch:4"));
    ck_assert_uint_eq(4 * (part - 3 * SCALE), all - 3 * SCALE);
    ck_assert_uint_lt(saved(RUN("fp8 -p checkpoint:full")), saved(RUN("fp8")));
    truth_end();
}
END_TEST

Suite *suite_fp8(void)
{
    Suite *suite = suite_create("fp8");
    TCase *tcase = tcase_create("fp8");
    tcase_add_test(tcase, saves_a_byte_of_each_input);
    tcase_add_test(tcase, saves_scales_of_blocks);
    tcase_add_test(tcase, mxfp8_keeps_both_ways);
    tcase_add_test(tcase, msamp_keeps_rows);
    tcase_add_test(tcase, copies_of_weights);
    tcase_add_test(tcase, quantizes_what_products_read);
    tcase_add_test(tcase, products_at_the_rate_of_fp8);
    tcase_add_test(tcase, tf32_has_the_bytes_of_fp32);
    tcase_add_loop_test(tcase, precisions_compose, 0,
                        sizeof compositions / sizeof *compositions);
    tcase_add_test(tcase, policies_keep_less);
    suite_add_tcase(suite, tcase);
    return suite;
}
