/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The blocks of an op graph, told by the names of its layers. */
#include "graphs/opgraph/opblocks.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "tests/tests.h"

#include <string.h>

#define MOST 12u

static ms_arena arena;
static ms_fault fault;

/* The block of each module, "-" for none, with blanks between. */
static const char *blocks_of(const char *const *modules, uint32_t n)
{
    ms_graph growing = {0};
    ms_trace trace = {
        .graph = &growing, .arena = &arena, .scratch = &arena, .fault = &fault};
    ms_opgraph ops = {.n_modules = n};
    ms_text text = {.arena = &arena};
    const char *copy[MOST];
    uint32_t block_of[MOST];
    memcpy(copy, modules, n * sizeof *copy);
    ops.modules = copy;
    ck_assert_int_eq(ms_opblocks_find(&trace, &ops, block_of), MS_OK);
    for (uint32_t m = 0; m < n; m++)
        ms_text_add(&text, "%s%s", m > 0 ? " " : "",
                    block_of[m] == MS_NONE
                        ? "-"
                        : trace.graph->block_name[block_of[m]]);
    return text.bytes;
}

#define BLOCKS(...)                                                            \
    blocks_of((const char *const[]){__VA_ARGS__},                              \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void teardown(void)
{
    ms_arena_free(&arena);
}

START_TEST(a_number_is_a_part_of_the_name)
{
    ck_assert_str_eq(BLOCKS("", "wte", "h.0.attn", "h.0.mlp.1", "h.11", "head"),
                     "- - h.0 h.0 h.11 -");
    ck_assert_str_eq(BLOCKS("layer1.0.conv1", "layer1.0", "layer2.10.bn3"),
                     "layer1.0 layer1.0 layer2.10");
    ck_assert_str_eq(BLOCKS("0", "0.1", "12"), "0 0 12");
}
END_TEST

START_TEST(a_number_at_the_end_counts_among_its_like)
{
    ck_assert_str_eq(
        BLOCKS("e.layer_0.ln_1", "e.layer_0.mlp.0", "e.layer_1", "e.layer_2.x"),
        "e.layer_0 e.layer_0 e.layer_1 e.layer_2");
    ck_assert_str_eq(BLOCKS("ln_1", "ln_2", "ln_2.h.3.x"), "- - ln_2.h.3");
    ck_assert_str_eq(BLOCKS("conv1", "conv2", "conv3"), "- - -");
    ck_assert_str_eq(BLOCKS("_1", "_2", "_3", "a_"), "_1 _2 _3 -");
}
END_TEST

Suite *suite_opblocks(void)
{
    Suite *suite = suite_create("opblocks");
    TCase *tcase = tcase_create("opblocks");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, a_number_is_a_part_of_the_name);
    tcase_add_test(tcase, a_number_at_the_end_counts_among_its_like);
    suite_add_tcase(suite, tcase);
    return suite;
}
