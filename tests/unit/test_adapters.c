/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What adapters and frozen weights keep for backward, to the byte. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

/* Two targets and a head: 4 samples of 256. */
static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"shape\": [256]},"
    " \"layers\": [{\"repeat\": 2, \"name\": \"hidden\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 256, \"bias\": false}]},"
    " {\"type\": \"linear\", \"name\": \"head\", \"out\": 256,"
    " \"bias\": false}, {\"type\": \"mean\"}]}";
#define MATRIX (256u * 256u)
#define ROWS (4u * 256u) /* elements of an activation */
#define RANK 8u
#define ADAPTER (RANK * 512u)

#define RUN(options)                                                           \
    truth_run_json(chain, "chain --batch 4 --optimizer adam " options)
#define LORA "--set lora.rank=8 --set lora.targets=all "

static uint64_t of(const ms_result *result, ms_category category)
{
    const ms_rank_report *rank = truth_rank(result);
    return category == MS_PARAMETERS  ? rank->parameters_bytes
           : category == MS_GRADIENTS ? rank->gradients_bytes
                                      : rank->optimizer_state_bytes;
}

START_TEST(only_adapters_have_states)
{
    truth_begin();
    const ms_result *r = RUN(LORA "--precision fp32");
    ck_assert_uint_eq(r->graph->parameters, 3 * MATRIX + 2 * ADAPTER);
    ck_assert_uint_eq(of(r, MS_PARAMETERS), 4 * (3 * MATRIX + 2 * ADAPTER));
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * 2 * ADAPTER);
    ck_assert_uint_eq(of(r, MS_OPTIMIZER_STATE), 8 * 2 * ADAPTER);
    r = RUN(LORA "--precision bf16-mixed");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), 2 * (3 * MATRIX + 2 * ADAPTER));
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 2 * 2 * ADAPTER);
    ck_assert_uint_eq(of(r, MS_OPTIMIZER_STATE), 12 * 2 * ADAPTER);
    r = RUN(LORA "--precision bf16 --set lora.dtype=fp32");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), 2 * 3 * MATRIX + 4 * 2 * ADAPTER);
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * 2 * ADAPTER);
    ck_assert_uint_eq(of(r, MS_OPTIMIZER_STATE), 8 * 2 * ADAPTER);
    truth_end();
}
END_TEST

/* A saves what the layer reads (the first the model's input, which is none of
 * these), B the low-rank product; the head saves nothing. */
START_TEST(saves_what_adapters_read)
{
    truth_begin();
    const ms_result *r = RUN("--precision fp32");
    ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes, 4 * 2 * ROWS);
    r = RUN(LORA "--precision fp32");
    ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes,
                      4 * (ROWS + 2 * 4 * RANK));
    r = RUN(LORA "--precision bf16 --set lora.dtype=fp32");
    ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes,
                      4 * (2 * ROWS + 2 * 4 * RANK)); /* cast copies of both */
    r = RUN(LORA "--precision fp32 --set lora.dropout=0.5");
    ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes,
                      4 * (2 * ROWS + 2 * 4 * RANK) + ROWS);
    /* the model's input needs no gradient, so its mask is not kept */
    truth_end();
}
END_TEST

/* The head has no adapter. */
START_TEST(packs_frozen_weights)
{
    const uint64_t nf4 = MATRIX / 2 + MATRIX / 64 + MATRIX / 64 / 256 * 4 + 68;
    const uint64_t int8 = MATRIX + 256 * 4, rest = 2 * (MATRIX + 2 * ADAPTER);
    truth_begin();
    const ms_result *r = RUN(LORA "--precision bf16 --set lora.base=nf4");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), rest + 2 * nf4);
    ck_assert_uint_eq(r->graph->parameters, 3 * MATRIX + 2 * ADAPTER);
    uint32_t made[2] = {0};
    for (uint32_t op = 0; op < r->graph->n_ops; op++)
        for (uint32_t i = r->graph->out_at[op]; i < r->graph->out_at[op + 1];
             i++)
            if (strcmp(r->graph->op_name[op], "dequantize") == 0) {
                made[r->graph->op_pass[op] > MS_LOSS]++;
                ck_assert_uint_eq(r->graph->storage_bytes[r->graph->out[i]],
                                  2 * MATRIX);
            }
    ck_assert_uint_eq(made[0], 2); /* the first layer's input needs no */
    ck_assert_uint_eq(made[1], 1); /* gradient */
    r = RUN(LORA "--precision bf16 --set lora.base=int8");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), rest + 2 * int8);
    truth_end();
}
END_TEST

/* Bytes of a matrix in each format: maxima of 64 elements, scales of rows,
 * 16-bit scales and 4-bit zero points of 128. */
static const struct packing {
    const char *base;
    uint64_t bytes;
} packings[] = {
    {"weights", 2 * MATRIX},
    {"nf4", MATRIX / 2 + MATRIX / 64 + MATRIX / 64 / 256 * 4 + 68},
    {"int8", MATRIX + 256 * 4},
    {"nf4-plain", MATRIX / 2 + MATRIX / 64 * 4 + 64},
    {"int4", MATRIX / 2 + MATRIX / 128 * 2 + MATRIX / 128 / 2},
};

START_TEST(freezes_without_adapters)
{
    const struct packing *it = &packings[_i];
    truth_begin();
    const ms_result *r =
        truth_run_json(chain,
                       "chain --batch 4 --optimizer adam --precision bf16 "
                       "--set frozen.blocks=1 --set frozen.base=%s",
                       it->base);
    ck_assert_uint_eq(r->graph->parameters, 3 * MATRIX);
    ck_assert_uint_eq(of(r, MS_PARAMETERS), 2 * 2 * MATRIX + it->bytes);
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 2 * 2 * MATRIX);
    ck_assert_uint_eq(of(r, MS_OPTIMIZER_STATE), 2 * 4 * MATRIX);
    ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes, 2 * 2 * ROWS);
    r = truth_run_json(chain,
                       "chain --batch 4 --precision bf16 --set mode=inference "
                       "--set frozen.base=%s",
                       it->base);
    ck_assert_uint_eq(of(r, MS_PARAMETERS), 2 * MATRIX + 2 * it->bytes);
    truth_end();
}
END_TEST

/* Two frozen matrices with adapters, and the head: ZeRO shares what adapters
 * have, stage 3 and FSDP all weights, of those in 4 bits the packed bytes. */
START_TEST(ranks_share)
{
    const uint64_t all = 4 * (3 * MATRIX + 2 * ADAPTER);
    const uint64_t nf4 = MATRIX / 2 + MATRIX / 64 + MATRIX / 64 / 256 * 4 + 68;
    static const char *const three[] = {"zero:3,dp=4", "fsdp:dp=4"};
    truth_begin();
    const ms_result *r = RUN(LORA "--precision fp32 -p zero:1,dp=4");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), all);
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * 2 * ADAPTER);
    ck_assert_uint_eq(of(r, MS_OPTIMIZER_STATE), 8 * 2 * ADAPTER / 4);
    /* its gradients to their owners, the new adapters back */
    ck_assert_uint_eq(truth_rank(r)->comm_bytes,
                      2 * 4 * 2 * (uint64_t)ADAPTER * 3 / 4);
    r = RUN(LORA "--precision fp32 -p zero:2,dp=4");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), all);
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * 2 * ADAPTER / 4);
    for (int i = 0; i < 2; i++) {
        r = truth_run_json(chain,
                           "chain --batch 4 --optimizer adam " LORA
                           "--precision fp32 -p %s",
                           three[i]);
        ck_assert_uint_eq(of(r, MS_PARAMETERS), all / 4);
        ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * 2 * ADAPTER / 4);
        ck_assert_uint_eq(of(r, MS_OPTIMIZER_STATE), 8 * 2 * ADAPTER / 4);
        r = truth_run_json(chain,
                           "chain --batch 4 --optimizer adam " LORA
                           "--precision bf16 --set lora.base=nf4 "
                           "--set lora.dtype=fp32 -p %s",
                           three[i]);
        ck_assert_uint_eq(of(r, MS_PARAMETERS),
                          2 * (nf4 / 4) + 2 * MATRIX / 4 + 4 * 2 * ADAPTER / 4);
    }
    truth_end();
}
END_TEST

/* The host updates what is trained: master, two moments and the gradient; only
 * the new adapters travel. */
START_TEST(host_updates)
{
    const uint64_t n = 2 * ADAPTER;
    truth_begin();
    const ms_result *r =
        RUN(LORA "--precision bf16-mixed -p offload:optimizer");
    ck_assert_uint_eq(of(r, MS_PARAMETERS), 2 * (3 * MATRIX + n));
    ck_assert_uint_eq(r->report->host_peak_bytes, (12 + 2) * n);
    ck_assert_uint_eq(truth_rank(r)->h2d_bytes, 2 * n);
    truth_end();
}
END_TEST

/* The input of the first trained layer is saved, not those before it. */
START_TEST(saves_from_the_first_trained)
{
    truth_begin();
    const ms_result *r = RUN("--precision fp32 --set frozen.blocks=2");
    ck_assert_uint_eq(truth_rank(r)->saved_for_backward_bytes, 4 * ROWS);
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * MATRIX);
    r = RUN("--precision fp32 --set frozen.blocks=1 -p checkpoint:full");
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 2 * 4 * MATRIX);
    truth_end();
}
END_TEST

/* Of T5 (peft's count for t5-small, rank 8, q and v: 18 attentions of 512) and
 * of latent attention: 2 layers, q from 96 to 4 heads of 24, keys and values
 * from 64 to 4 heads of 32. */
START_TEST(other_attentions)
{
    static const char t5[] =
        "{\"model_type\": \"t5\", \"architectures\": "
        "[\"T5ForConditionalGeneration\"], \"d_model\": 512, \"d_kv\": 64, "
        "\"d_ff\": 2048, \"num_layers\": 6, \"num_heads\": 8, "
        "\"vocab_size\": 32128}";
    static const char latent[] =
        "{\"memsim\": 1, \"name\": \"latent\", \"input\": {\"tokens\": true},"
        " \"layers\": [{\"type\": \"embedding\", \"vocab\": 100, \"dim\": 96},"
        " {\"repeat\": 2, \"name\": \"l\", \"layers\": ["
        "{\"type\": \"latent_attention\", \"heads\": 4, \"kv_rank\": 64, "
        "\"plain_dim\": 16, \"rotary_dim\": 8, \"value_dim\": 16}]},"
        " {\"type\": \"mean\"}]}";
    truth_begin();
    const ms_result *r = truth_run_json(
        t5, "t5 --sequence 8 --precision fp32 --set lora.rank=8");
    ck_assert_uint_eq(of(r, MS_GRADIENTS), 4 * 294912);
    r = truth_run_json(
        latent, "latent --sequence 8 --precision fp32 --set lora.rank=8");
    ck_assert_uint_eq(of(r, MS_GRADIENTS),
                      4 * 2 * 8 * (96 + 4 * 24 + 64 + 4 * 32));
    truth_end();
}
END_TEST

Suite *suite_adapters(void)
{
    Suite *suite = suite_create("adapters");
    TCase *tcase = tcase_create("adapters");
    tcase_add_test(tcase, only_adapters_have_states);
    tcase_add_test(tcase, saves_what_adapters_read);
    tcase_add_test(tcase, packs_frozen_weights);
    tcase_add_loop_test(tcase, freezes_without_adapters, 0,
                        sizeof packings / sizeof *packings);
    tcase_add_test(tcase, saves_from_the_first_trained);
    tcase_add_test(tcase, ranks_share);
    tcase_add_test(tcase, host_updates);
    tcase_add_test(tcase, other_attentions);
    suite_add_tcase(suite, tcase);
    return suite;
}
