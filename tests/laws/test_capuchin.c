/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Capuchin (Peng et al. 2020) by hand, on a chain of equal units
 * (tests/laws/chain.h): a_i is idle from 10 * (i + 1) to
 * 80 + 20 * (7 - i); and against plans that move alone, on real models and
 * links. */
#include "sim/graph.h"
#include "sim/program.h"
#include "tests/laws/chain.h"
#include "tests/laws/policy.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>

static laws_outcome run(uint64_t budget_bytes, uint64_t copy_ns)
{
    char policy[80];
    snprintf(policy, sizeof policy, "swap:capuchin,min=2,budget=%" PRIu64,
             budget_bytes);
    laws_outcome out = chain_run(policy, copy_ns, 1);
    ck_assert_msg(out.err == MS_OK, "%s", chain_fault.what);
    ck_assert_uint_le(out.report.ranks[0].peak.allocated_bytes, budget_bytes);
    return out;
}

/* A bit per tensor: bit i says that a_i is moved out. */
static uint32_t leaving(const laws_outcome *out)
{
    uint32_t list[2 * CHAIN_UNITS], bits = 0;
    uint32_t n = chain_moved(out, list);
    for (uint32_t i = 0; i < n; i++)
        bits |= 1u << list[i];
    return bits;
}

/* A bit per tensor: bit i says that a_i is computed a second time. */
static uint32_t remade(const laws_outcome *out)
{
    const ms_plan *plan = &out->plan;
    uint32_t bits = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++)
        if (plan->op[op].pass == MS_RECOMPUTE)
            bits |= 1u << chain_graph.out[chain_graph.out_at[plan->op[op].of]];
    return bits;
}

/* Copies of 25: a_1 is out at 45, a_2 at 70, both before the peak at 80, and
 * back by 175 and 150; a_3, alone free from 65 to 135, would be out at 95.  To
 * wait for it takes 15, to make a_6 again from a_5 takes 10. */
START_TEST(a_queue_takes_free_time)
{
    for (uint32_t tensors = 1; tensors <= 2; tensors++) {
        laws_outcome out =
            run(CHAIN_PEAK - (tensors - 1) * CHAIN_BYTES - 1, 25);
        ck_assert_uint_eq(leaving(&out), (2u << tensors) - 2);
        ck_assert_uint_eq(out.report.ranks[0].time.step_ns, CHAIN_NS);
    }
    laws_outcome out = run(CHAIN_PEAK - 2 * CHAIN_BYTES - 1, 25);
    ck_assert_uint_eq(leaving(&out), 1u << 1 | 1u << 2);
    ck_assert_uint_eq(remade(&out), 1u << 6);
    ck_assert_uint_eq(out.report.ranks[0].time.step_ns, CHAIN_NS + 10);
}
END_TEST

/* Copies of 1000 are never hidden.  All MSPS are equal; the one needed soonest
 * goes first, a_6, made from a_5 (a_7 is in use at the peak).  Now a_5 takes 10
 * and 10 more for a_6 (algorithm 2), a_4 10: it is next; then a_5 takes 20,
 * with a_4, and 20 more for a_6, a_3 10 and 10 for a_4, and a_2 10. */
START_TEST(rates_are_updated)
{
    static const uint32_t made[] = {1u << 6, 1u << 6 | 1u << 4,
                                    1u << 6 | 1u << 4 | 1u << 2};
    for (uint32_t n = 1; n <= 3; n++) {
        laws_outcome out = run(CHAIN_PEAK - (n - 1) * CHAIN_BYTES - 1, 1000);
        ck_assert_uint_eq(leaving(&out), 0);
        ck_assert_uint_eq(remade(&out), made[n - 1]);
        ck_assert_uint_eq(out.report.ranks[0].time.recompute_ns, 10 * n);
        ck_assert_uint_eq(out.report.ranks[0].time.step_ns, CHAIN_NS + 10 * n);
    }
}
END_TEST

/* What is computed on the way and used later stays: nothing is computed
 * twice. */
START_TEST(recomputation_is_collective)
{
    static const uint64_t copies[] = {0, 3, 15, 25, 40, 90, 1000};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        for (uint64_t less = 0; less <= 6 * CHAIN_BYTES;
             less += CHAIN_BYTES / 2) {
            laws_outcome out = run(CHAIN_PEAK - less, copies[i]);
            uint32_t made = remade(&out), n = 0;
            for (uint32_t bit = 0; bit < CHAIN_UNITS; bit++)
                n += made >> bit & 1u;
            ck_assert_uint_eq(out.report.ranks[0].time.recompute_ns, 10 * n);
        }
}
END_TEST

static const struct {
    const char *words;
    /* the least budget that is tried, in percent of the model's peak */
    uint64_t percent;
} models[] = {{"vgg16 --batch 256 --precision fp32", 70},
              {"resnet50 --batch 256", 50},
              {"resnet50 --batch 64 --device v100-16gb-sxm2", 50},
              {"bert-base --batch 64 --sequence 128 --precision fp32 --device "
               "v100-32gb-sxm2",
               50},
              {"gpt2-medium --batch 8", 70}};

static const ms_rank_report *run_words(const char *words, const char *way,
                                       uint64_t budget_bytes)
{
    const ms_rank_report *rank = truth_rank(
        truth_run("%s -p swap:%s,budget=%" PRIu64, words, way, budget_bytes));
    ck_assert_uint_le(rank->peak.allocated_bytes, budget_bytes);
    return rank;
}

/* Where moving alone makes the step wait, some tensors are recomputed
 * instead, and the step is shorter. */
START_TEST(real_links_recompute)
{
    const char *words = models[_i].words;
    uint32_t n = 0;
    truth_begin();
    uint64_t most =
        truth_rank(truth_run("%s", words))->peak.allocated_bytes / 100;
    for (uint64_t percent = 90; percent >= models[_i].percent; percent -= 10) {
        const ms_rank_report *rank = run_words(words, "belady", most * percent);
        uint64_t step_ns = rank->time.step_ns;
        if (rank->time.stall_ns < step_ns / 25)
            continue;
        rank = run_words(words, "capuchin", most * percent);
        ck_assert_uint_gt(rank->time.recompute_ns, 0);
        ck_assert_uint_lt(rank->time.step_ns, step_ns);
        n++;
    }
    ck_assert_uint_gt(n, 0);
    truth_end();
}
END_TEST

Suite *suite_capuchin(void)
{
    Suite *suite = suite_create("capuchin");
    TCase *tcase = tcase_create("capuchin");
    tcase_add_checked_fixture(tcase, chain_setup, chain_teardown);
    tcase_add_test(tcase, a_queue_takes_free_time);
    tcase_add_test(tcase, rates_are_updated);
    tcase_add_test(tcase, recomputation_is_collective);
    tcase_add_loop_test(tcase, real_links_recompute, 0,
                        (int)(sizeof models / sizeof *models));
    suite_add_tcase(suite, tcase);
    return suite;
}
