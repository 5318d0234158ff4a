/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a decoder layer with RMSNorm, rotary positions, grouped-query
 * attention and SwiGLU keeps, in 16 bits and with fused kernels, counted by
 * hand from the save lists of the kernels (FlashAttention-2, Liger, Megatron),
 * per token: the two norms' inputs and their fp32 rstd, the projections'
 * input, q, k, v, the output, the fp32 log-sum-exp, the MLP's input, gate, up
 * and their product. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#define RNG_STATE 16u /* bytes per layer, whatever the batch */

static uint64_t per_token(uint64_t hidden, uint64_t heads, uint64_t kv_heads,
                          uint64_t ffn)
{
    return 12 * hidden + 4 * hidden * kv_heads / heads + 6 * ffn + 4 * heads +
           8;
}

/* Saved by `layers` layers: the difference to a model without them. */
static uint64_t saved(unsigned layers, unsigned sequence)
{
    const ms_result *result =
        truth_run("llama-3-8b --batch 2 --sequence %u --set model.layers=%u",
                  sequence, layers);
    return truth_rank(result)->saved_for_backward_bytes;
}

START_TEST(bytes_per_token_and_layer)
{
    truth_begin();
    ck_assert_uint_eq(per_token(4096, 32, 8, 14336), 139400);
    for (unsigned sequence = 512; sequence <= 8192; sequence *= 4)
        truth_compare("modern", "llama-3-8b", "bytes of two more layers",
                      2 * (UINT64_C(139400) * 2 * sequence + RNG_STATE),
                      saved(3, sequence) - saved(1, sequence));
    truth_end();
}
END_TEST

/* Attention of 4 heads, 40 positions, 16 channels in 16 bits: q, k, v, the
 * output, a log-sum-exp per row in fp32 (xFormers' of 64 rows, a multiple of
 * 32), 16 bytes of random state. */
static void compare_kernel(const char *kernels, uint64_t rows)
{
    static const char model[] =
        "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [4, 40, 16]},"
        " \"layers\": ["
        "{\"type\": \"op\", \"name\": \"q\", \"shape\": [4, 40, 16]},"
        "{\"type\": \"clone\", \"name\": \"k\"},"
        "{\"type\": \"clone\", \"name\": \"v\"},"
        "{\"type\": \"scaled_dot_product_attention\","
        " \"inputs\": [\"q\", \"k\", \"v\"]}, {\"type\": \"mean\"}]}";
    const ms_result *result =
        truth_run_json(model, "y --batch 2 --kernels %s", kernels);
    truth_compare("modern", kernels, "saved_bytes",
                  4 * 2 * (2 * 4 * 40 * 16) + 4 * (2 * 4 * rows) + RNG_STATE,
                  truth_rank(result)->saved_for_backward_bytes);
}

START_TEST(attention_kernels_keep)
{
    truth_begin();
    compare_kernel("flash", 40);
    compare_kernel("efficient", 64);
    truth_end();
}
END_TEST

Suite *suite_modern(void)
{
    Suite *suite = suite_create("modern");
    TCase *tcase = tcase_create("modern");
    tcase_add_test(tcase, bytes_per_token_and_layer);
    tcase_add_test(tcase, attention_kernels_keep);
    suite_add_tcase(suite, tcase);
    return suite;
}
