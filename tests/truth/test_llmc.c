/* SPDX-License-Identifier: GPL-3.0-or-later */
/* llm.c holds all activations of GPT-2 124M from the start to the end of a
 * step.  llmc_gpt2.json is its list of tensors (the sizes of
 * fill_in_activation_sizes in train_gpt2.c, MIT licence; the list is written
 * anew) at T = 64.  The program prints num_activations, quoted in its README
 * for vocabulary 50257; versions that pad it to 50304 print 73347840. */
#include "sim/base/files.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <string.h>

#define MOST_BYTES (UINT64_C(1) << 16)

static void compare(const char *json, const char *name, uint64_t floats)
{
    const ms_result *result = truth_run_json(
        json, "llmc_gpt2 --batch 4 --precision fp32 --optimizer none");
    const ms_rank_report *rank = truth_rank(result);
    uint64_t bytes = rank->saved_for_backward_bytes;
    truth_compare("llm.c", name, "num_activations", floats, bytes / 4);
    ck_assert_uint_eq(bytes % 4, 0);
    ck_assert_uint_eq(rank->category_peaks[MS_ACTIVATIONS], bytes);
}

/* The same list with every vocabulary replaced by the padded one. */
static void pad(char *json)
{
    char *at = json;
    while ((at = strstr(at, "50257")) != NULL)
        memcpy(at, "50304", 5);
}

START_TEST(num_activations)
{
    char path[TESTS_PATH], *json;
    size_t length;
    ms_arena arena = {0};
    ms_fault fault = {0};
    truth_begin();
    tests_source("tests/truth/llmc_gpt2.json", path);
    ck_assert_int_eq(
        ms_files_read(path, MOST_BYTES, &arena, &json, &length, &fault), MS_OK);
    compare(json, "gpt2 124M, B=4, T=64", 73323776);
    pad(json);
    compare(json, "gpt2 124M, padded vocabulary, B=4, T=64", 73347840);
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

Suite *suite_llmc(void)
{
    Suite *suite = suite_create("llmc");
    TCase *tcase = tcase_create("llmc");
    tcase_add_test(tcase, num_activations);
    suite_add_tcase(suite, tcase);
    return suite;
}
