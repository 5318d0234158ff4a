/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which layers nanotron's stages have, of random models: as its build_model
 * (src/nanotron/models/base.py) assigns block after block, from the formula of
 * models/llama.py, or refused where it leaves a stage without a layer or the
 * head. */
#include "graphs/kernels/kernels.h"
#include "sim/program.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/advice/evenout.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

#define TRIALS 60u
#define MOST_LAYERS 16u
#define MOST_STAGES 8u
#define HEADS 8u

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

typedef struct model {
    uint32_t layers, kv_heads, ffn, vocab;
} model;

static uint32_t hidden_of(const model *of)
{
    return of->ffn % 64 == 0 ? 64 : 128;
}

static ms_err run(const model *of, int kernels, const char *policy)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", "
             "\"config\": {\"layers\": %u, \"hidden\": %u, \"heads\": %u, "
             "\"kv_heads\": %u, \"ffn\": %u, \"vocab\": %u, \"positions\": 32, "
             "\"norm_type\": \"rms_norm\", \"bias\": false, \"dropout\": 0, "
             "\"positions_type\": \"rotary\", \"activation\": \"swiglu\"}}",
             of->layers, hidden_of(of), HEADS, of->kv_heads, of->ffn,
             of->vocab);
    return inlined_run(text, 8, (uint32_t)kernels, policy, &keep, &trial,
                       &result, &fault);
}

/* Blocks: embedding, layers, norm, head, cast, loss.  False: some stage has no
 * layer, nor the head. */
static bool assign(const model *of, uint32_t n, uint32_t *layers)
{
    uint64_t h = hidden_of(of), all = 0, so_far = 0;
    uint64_t cost[MOST_LAYERS + 5] = {0};
    uint32_t blocks = of->layers + 5, costs[MOST_STAGES] = {0}, k = 0;
    for (uint32_t b = 1; b <= of->layers; b++)
        cost[b] = 4 * HEADS * (h / HEADS) * h + 3 * (uint64_t)of->ffn * h;
    cost[of->layers + 2] = (uint64_t)of->vocab * h;
    for (uint32_t b = 0; b < blocks; b++)
        all += cost[b];
    for (uint32_t b = 0; b < blocks; b++) {
        layers[k] += b >= 1 && b <= of->layers;
        costs[k] += cost[b] > 0;
        so_far += cost[b];
        k += so_far * n > all * (k + 1);
    }
    for (uint32_t i = 0; i < n; i++)
        if (costs[i] == 0)
            return false;
    return true;
}

static bool check(const model *of, uint32_t n, const char *policy)
{
    uint32_t layers[MOST_STAGES] = {0};
    bool fits = assign(of, n, layers);
    ms_err err = run(of, MS_NANOTRON, policy);
    ck_assert_msg(
        err == (fits ? MS_OK : MS_EUSAGE), "seed %llu, %s of %u layers: %s",
        (unsigned long long)laws_seed, policy, of->layers, fault.what);
    for (uint32_t k = 0; k < n && fits; k++)
        ck_assert_msg(
            ms_evenout_layers(result.graph, &result.program->stages[k]) ==
                layers[k],
            "seed %llu, %s, stage %u", (unsigned long long)laws_seed, policy,
            k);
    return fits;
}

START_TEST(as_build_model_assigns)
{
    uint32_t fits = 0;
    for (laws_seed = 1; laws_seed <= TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        char policy[96];
        uint32_t n = 2 + laws_below(&random, 5);
        bool splits = laws_chance(&random, 40);
        model of = {1 + laws_below(&random, MOST_LAYERS),
                    2u << laws_below(&random, 3),
                    32 * (1 + laws_below(&random, 8)),
                    64 * (1 + laws_below(&random, 16))};
        snprintf(policy, sizeof policy, "%smicrobatch:8+pipeline:%u",
                 splits ? "tensor:2,sp+" : "", n);
        fits += check(&of, n, policy);
    }
    ck_assert_uint_gt(fits, TRIALS / 4);
    ck_assert_uint_lt(fits, TRIALS);
}
END_TEST

/* A stage of a layer's own cost is not closed by it: all is even there. */
START_TEST(a_share_is_exceeded)
{
    static const model of = {4, 8, 64, 256 + 3 * 64};
    uint32_t layers[MOST_STAGES] = {0};
    ck_assert(assign(&of, 5, layers) == false);
    ck_assert(!check(&of, 5, "microbatch:8+pipeline:5"));
    ck_assert(check(&of, 2, "microbatch:8+pipeline:2"));
}
END_TEST

static uint64_t peak_of(const model *of, int kernels, const char *policy)
{
    ck_assert_msg(run(of, kernels, policy) == MS_OK, "%s: %s", policy,
                  fault.what);
    return result.report->ranks[result.report->worst].peak.allocated_bytes;
}

/* One rank has all; who wants as many layers each says so; other kernels'
 * stages have as many. */
START_TEST(others_stay)
{
    static const model of = {8, 8, 64, 512};
    const char *equal = "microbatch:8+pipeline:2,layers=4/4";
    ck_assert_uint_eq(peak_of(&of, MS_NANOTRON, "microbatch:8"),
                      peak_of(&of, MS_NANOTRON, "microbatch:8+pipeline:1"));
    ck_assert_uint_eq(
        peak_of(&of, MS_NANOTRON, equal),
        peak_of(&of, MS_NANOTRON, "microbatch:8+pipeline:2,less=0/0"));
    for (int kernels = 0; kernels < MS_KERNELS_N; kernels++)
        ck_assert_int_eq(peak_of(&of, kernels, equal) ==
                             peak_of(&of, kernels, "microbatch:8+pipeline:2"),
                         kernels != MS_NANOTRON);
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_costsplit(void)
{
    Suite *suite = suite_create("costsplit");
    TCase *tcase = tcase_create("costsplit");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, as_build_model_assigns);
    tcase_add_test(tcase, a_share_is_exceeded);
    tcase_add_test(tcase, others_stay);
    suite_add_tcase(suite, tcase);
    return suite;
}
