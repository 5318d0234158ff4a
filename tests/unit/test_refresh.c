/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps in which an optimizer recomputes what other steps reuse: the temporary
 * memory, by the number of matrices that live at once. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

/* One weight, 256 x 512. */
static const char one[] =
    "{\"memsim\": 1, \"name\": \"one\", \"input\": {\"shape\": [512]},"
    " \"layers\": [{\"type\": \"linear\", \"name\": \"fc\", \"out\": 256,"
    " \"bias\": false}, {\"type\": \"relu\"},"
    " {\"type\": \"linear\", \"name\": \"head\", \"out\": 1,"
    " \"bias\": false}, {\"type\": \"mean\"}]}";
#define WHOLE (256u * 512u)
#define SMALL (256u * 256u)
#define LARGE (512u * 512u)
#define RANK 8u

#define SCRATCH(options)                                                       \
    truth_rank(truth_run_json(one, "one --batch 4 " options))                  \
        ->optimizer_scratch_bytes
#define REFRESH " --set training.optimizer_refresh=yes"

/* The copy that is decomposed and what comes of it: n m + min(n, m)^2. */
START_TEST(galore)
{
#define GALORE "--optimizer galore --set training.optimizer_rank=8 "
    truth_begin();
    ck_assert_uint_eq(SCRATCH(GALORE "--precision fp32"),
                      4 * (2 * WHOLE + 2 * RANK * 512));
    ck_assert_uint_eq(SCRATCH(GALORE "--precision fp32" REFRESH),
                      4 * (2 * WHOLE + SMALL));
    ck_assert_uint_eq(SCRATCH(GALORE "--precision bf16" REFRESH),
                      4 * (3 * WHOLE + SMALL));
    truth_end();
}
END_TEST

/* The factor, its eigenvectors, these scaled and their product. */
START_TEST(shampoo)
{
#define SHAMPOO "--precision fp32 --optimizer shampoo "
    truth_begin();
    ck_assert_uint_eq(SCRATCH(SHAMPOO), 4 * 3 * WHOLE);
    ck_assert_uint_eq(SCRATCH(SHAMPOO REFRESH), 4 * 4 * LARGE);
    /* of blocks one at a time */
    ck_assert_uint_eq(
        SCRATCH(SHAMPOO "--set training.optimizer_block=512" REFRESH),
        4 * 4 * LARGE);
    ck_assert_uint_eq(
        SCRATCH(SHAMPOO "--set training.optimizer_block=128" REFRESH),
        4 * 3 * WHOLE);
    truth_end();
}
END_TEST

/* Besides the step's variables (three of the weight's size) the sorted second
 * moment and the left side's new basis, then of the right side the sorted
 * basis, the power iteration and its Q and R, and the left side's R. */
START_TEST(soap)
{
#define SOAP "--precision fp32 --optimizer soap "
    truth_begin();
    ck_assert_uint_eq(SCRATCH(SOAP), 4 * (3 * WHOLE + LARGE));
    ck_assert_uint_eq(SCRATCH(SOAP REFRESH),
                      4 * (4 * WHOLE + 2 * SMALL + 4 * LARGE));
    truth_end();
}
END_TEST

Suite *suite_refresh(void)
{
    Suite *suite = suite_create("refresh");
    TCase *tcase = tcase_create("refresh");
    tcase_add_test(tcase, galore);
    tcase_add_test(tcase, shampoo);
    tcase_add_test(tcase, soap);
    suite_add_tcase(suite, tcase);
    return suite;
}
