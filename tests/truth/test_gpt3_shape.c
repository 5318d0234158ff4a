/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The activations of GPT-3 175B at batch 1, sequence 2048, 16 bits, flash
 * attention, to the byte.  In units of sbh (s b h = 2048 * 12288), one layer
 * saves 34: Korthikanti et al. 2022, section 4.1, without the scores (11:
 * attention; 19: MLP; 4: layer norms).  Beside it flash attention keeps the
 * log-sum-exp (fp32) and its 16 B random state, and each layer norm its mean
 * and rstd (fp32).  Outside the layers: the mask of the embedding's dropout
 * (1), the inputs of the final norm and of the head (2 each), the fp32
 * log-probabilities, 8 B per position index and the 4 B total weight of the
 * loss. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>

#define LAYERS UINT64_C(96)
#define HEADS UINT64_C(96)
#define HIDDEN UINT64_C(12288)
#define TOKENS UINT64_C(2048)
#define VOCABULARY UINT64_C(50257)
#define SBH (TOKENS * HIDDEN)
#define STATISTICS (8 * TOKENS) /* of one layer norm */
#define LAYER (34 * SBH + 4 * HEADS * TOKENS + 16 + 2 * STATISTICS)
#define EMBEDDING (SBH + 8 * TOKENS)
#define HEAD (4 * SBH + STATISTICS + 4 * VOCABULARY * TOKENS + 4)
#define INPUT (2 * SBH) /* what a segment is replayed from */

static uint64_t activations(const char *policy)
{
    const ms_result *result =
        truth_run("gpt3 --precision bf16-mixed --kernels flash --batch 1 "
                  "--sequence %" PRIu64 " -p %s",
                  TOKENS, policy);
    return truth_rank(result)->category_peaks[MS_ACTIVATIONS];
}

/* n segments, the first n_longer of one layer more than size.  Segment i is
 * replayed while the inputs of segments 0 to i are held; its first layer saves
 * the input itself.  The last one may be open: it is never replayed. */
static uint64_t segmented(uint64_t n, uint64_t size, uint64_t n_longer,
                          bool open)
{
    uint64_t closed = open ? n - 1 : n;
    uint64_t peak = EMBEDDING + closed * INPUT + HEAD;
    if (open)
        peak += size * LAYER;
    for (uint64_t i = 0; i < closed; i++) {
        uint64_t layers = size + (i < n_longer);
        peak = truth_larger(peak, EMBEDDING + i * INPUT + layers * LAYER);
    }
    return peak;
}

START_TEST(activations_of_gpt3)
{
    truth_begin();
    uint64_t none = activations("none");
    uint64_t root = activations("checkpoint:sqrt");
    uint64_t full = activations("checkpoint:full");
    truth_compare("gpt3", "none: 96 * 34 sbh = 3264 sbh, ends",
                  "activations, bytes", LAYERS * LAYER + EMBEDDING + HEAD,
                  none);
    truth_compare("gpt3", "sqrt: 6 segments of 10, 4 of 9: 350 sbh, mask",
                  "activations, bytes", segmented(10, 9, 6, true), root);
    truth_compare("gpt3", "full: 96 inputs, 1 layer: 224 sbh, mask",
                  "activations, bytes", segmented(96, 1, 0, false), full);
    truth_compare("gpt3", "none", "activations, sbh", 3288, none / SBH);
    truth_compare("gpt3", "sqrt", "activations, sbh", 351, root / SBH);
    truth_compare("gpt3", "full", "activations, sbh", 225, full / SBH);
    truth_end();
}
END_TEST

Suite *suite_gpt3_shape(void)
{
    Suite *suite = suite_create("gpt3_shape");
    TCase *tcase = tcase_create("gpt3_shape");
    tcase_add_test(tcase, activations_of_gpt3);
    suite_add_tcase(suite, tcase);
    return suite;
}
