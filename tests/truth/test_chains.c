/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Uniform chains: N layers, each with an output of one unit (1 MiB), a unit of
 * forward work and a backward that needs its input.  With k = round(sqrt N)
 * segments, the last of floor(N / k) layers and open (Chen et al. 2016; the
 * constants by counting):
 *
 *     none     N + 1 activations a_0 .. a_N, 2 gradients   no forward again
 *     full     the same: each segment is held by its input
 *     sqrt     k + last - 1 + 1 activations, 2 gradients
 *              N - last - (k - 1) forwards again; N - last where each segment
 *              is replayed to its end.  A reentrant checkpoint holds what its
 *              replay returns while it goes backward: one more where the last
 *              closed segment is longer than the open one
 *
 * and 8 bytes: the loss and the gradient that backward begins with. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>

#define UNIT (UINT64_C(1) << 20)
#define LOSS_BYTES 8

typedef struct outcome {
    uint64_t peak, recomputed;
} outcome;

static outcome run(unsigned n, const char *policy)
{
    char json[512];
    snprintf(json, sizeof json,
             "{\"memsim\": 1, \"name\": \"chain\","
             " \"input\": {\"shape\": [262144]}, \"layers\": ["
             "{\"repeat\": %u, \"name\": \"layers\", \"layers\": [{\"type\":"
             " \"op\", \"shape\": [262144], \"saves\": \"input\"}]},"
             " {\"type\": \"mean\"}]}",
             n);
    const ms_result *result = truth_run_json(
        json, "chain --precision fp32 --optimizer none -p %s", policy);
    return (outcome){truth_rank(result)->peak.allocated_bytes,
                     result->report->recomputed_ops};
}

static void compare(unsigned n, const char *policy, uint64_t units,
                    uint64_t recomputed)
{
    char name[96];
    outcome is = run(n, policy);
    snprintf(name, sizeof name, "N=%u %s", n, policy);
    truth_compare("chains", name, "peak, bytes", units * UNIT + LOSS_BYTES,
                  is.peak);
    truth_compare("chains", name, "forwards again", recomputed, is.recomputed);
}

static void compare_sqrt(unsigned n, unsigned k)
{
    unsigned last = n / k;
    compare(n, "checkpoint:sqrt", k + last + 2, n - last - (k - 1));
    compare(n, "checkpoint:sqrt,early_stop=0", k + last + 2, n - last);
    unsigned before = last + (n % k == k - 1); /* the segment before the last */
    compare(n, "checkpoint:sqrt,variant=reentrant", k + before + 2, n - last);
}

/* round(sqrt N) is k for k^2 - k + 1 <= N <= k^2 + k. Each k is tried at
 * both ends of that range, at its square and beside it. */
START_TEST(square_root_of_n)
{
    truth_begin();
    for (unsigned k = 2; k <= 20; k++) {
        unsigned square = k * k;
        compare_sqrt(square, k);
        if (k == 20) /* 400, the square of 20, is the longest chain */
            break;
        compare_sqrt(square + 1, k);
        compare_sqrt(square + k, k);
        compare_sqrt(square + k + 1, k + 1);
        compare_sqrt(square + 2 * k, k + 1);
    }
    truth_end();
}
END_TEST

START_TEST(none_and_full)
{
    truth_begin();
    for (unsigned n = 4; n <= 400; n += 44) {
        compare(n, "none", n + 3, 0);
        compare(n, "checkpoint:full", n + 3, 0);
        compare(n, "checkpoint:full,early_stop=0", n + 3, n);
    }
    truth_end();
}
END_TEST

Suite *suite_chains(void)
{
    Suite *suite = suite_create("chains");
    TCase *tcase = tcase_create("chains");
    tcase_add_test(tcase, square_root_of_n);
    tcase_add_test(tcase, none_and_full);
    suite_add_tcase(suite, tcase);
    return suite;
}
