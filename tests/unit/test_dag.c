/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of layers: where a DAG can be cut, cycles, and its DOT. */
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ms_arena arena;
static ms_model model;
static ms_fault fault;

static void set_up(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

static ms_err order_list(const char *layers)
{
    const char *text = ms_arena_format(
        &arena,
        "{\"memsim\": 1, \"input\": {\"shape\": [4]}, \"layers\": [%s]}",
        layers);
    ms_err err = ms_read_model_bytes("t.json", text, strlen(text), NULL, 0,
                                     &arena, &model, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
    return ms_dag_order(&model, &arena, &fault);
}

/* The names in topological order, cut points with a star. */
static const char *outline(void)
{
    ms_text text = {.arena = &arena};
    for (uint32_t i = 0; i < model.n_layers; i++) {
        uint32_t l = model.order[i];
        ms_text_add(&text, "%s%s%s", i == 0 ? "" : " ", model.layers[l].name,
                    model.cut[l] ? "*" : "");
    }
    return text.bytes;
}

#define RELU(name, inputs)                                                     \
    "{\"type\": \"relu\", \"name\": \"" name "\", \"inputs\": [" inputs "]}"
#define ADD(name, inputs)                                                      \
    "{\"type\": \"add\", \"name\": \"" name "\", \"inputs\": [" inputs "]}"
#define NEXT(name) ", {\"type\": \"relu\", \"name\": \"" name "\"}"
#define LOSS ", {\"type\": \"mse_loss\", \"name\": \"loss\"}"

START_TEST(a_chain_is_cut_everywhere)
{
    ck_assert_int_eq(order_list(RELU("a", "\"input\"") NEXT("b") LOSS), MS_OK);
    ck_assert_str_eq(outline(), "a* b* loss*");
}
END_TEST

START_TEST(a_skip_is_not_cut)
{
    ck_assert_int_eq(order_list(RELU("a", "\"input\"") NEXT("b") NEXT(
                         "c") ", " ADD("d", "\"a\", \"c\"") NEXT("e") LOSS),
                     MS_OK);
    ck_assert_str_eq(outline(), "a* b c d* e* loss*");
}
END_TEST

START_TEST(the_input_spoils_no_cut)
{
    ck_assert_int_eq(
        order_list(RELU("a", "\"input\"")
                       NEXT("b") ", " ADD("c", "\"b\", \"input\"") ", " RELU(
                           "late", "\"input\"") ", " ADD("d", "\"c\", \"late\"")
                           LOSS),
        MS_OK);
    ck_assert_str_eq(outline(), "a* b* c* late d* loss*");
}
END_TEST

START_TEST(states_only_layers_stand_aside)
{
    ck_assert_int_eq(
        order_list(RELU("a", "\"input\"") ", {\"type\": \"parameters\", "
                                          "\"name\": \"p\", \"count\": 4}" NEXT(
                                              "b") LOSS),
        MS_OK);
    ck_assert_str_eq(outline(), "a* p b* loss*");
    ck_assert_int_eq(order_list("{\"type\": \"parameters\", \"name\": \"p\", "
                                "\"count\": 4}"),
                     MS_OK);
    ck_assert_str_eq(outline(), "p");
}
END_TEST

START_TEST(a_shuffled_file_is_sorted)
{
    ck_assert_int_eq(
        order_list(RELU("c", "\"b\"") ", " RELU("a", "\"input\"") ", " RELU(
            "b", "\"a\"") ", "
                          "{\"type\": \"mse_loss\", \"name\": \"loss\", "
                          "\"inputs\": [\"c\"]}"),
        MS_OK);
    ck_assert_str_eq(outline(), "a* b* c* loss*");
}
END_TEST

START_TEST(branches_stay_together)
{
    ck_assert_int_eq(
        order_list(RELU("a", "\"input\"") NEXT("b1") NEXT("b2") ", " RELU(
            "c1", "\"a\"") NEXT("c2") ", " ADD("d", "\"b2\", \"c2\"") LOSS),
        MS_OK);
    ck_assert_str_eq(outline(), "a* b1 b2 c1 c2 d* loss*");
}
END_TEST

START_TEST(cycles_are_named)
{
    ck_assert_int_eq(order_list(ADD("a", "\"input\", \"c\"") ",\n" RELU(
                         "b", "\"a\"") ", " RELU("c", "\"b\"") LOSS),
                     MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "a -> b -> c -> a"));
    ck_assert_int_eq(strncmp(fault.where, "t.json:1:", 9), 0);
    fault = (ms_fault){0};
    ck_assert_int_eq(
        order_list(RELU("a", "\"input\"") ",\n" RELU("b", "\"b\"") LOSS),
        MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, ": b -> b"));
    ck_assert_str_eq(fault.where, "t.json:2:1");
}
END_TEST

START_TEST(long_cycles_are_cut_short)
{
    ck_assert_int_eq(
        order_list(ADD(
            "a", "\"input\", \"z\"") ", {\"repeat\": 1000, "
                                     "\"layers\": [{\"type\": \"relu\"}]}" NEXT(
                                         "z") LOSS),
        MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "a -> repeat1.0.relu1 -> "));
    ck_assert_ptr_nonnull(strstr(fault.what, "... -> a"));
}
END_TEST

START_TEST(dangling_outputs_are_named)
{
    ck_assert_int_eq(order_list(RELU("a", "\"input\"") NEXT("b") ",\n" RELU(
                         "c", "\"a\"") ", "
                                       "{\"type\": \"mse_loss\", "
                                       "\"inputs\": [\"a\"]}"),
                     MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "\"b\", \"c\""));
    ck_assert_int_eq(strncmp(fault.where, "t.json:1:", 9), 0);
    ck_assert_str_ne(fault.hint, "");
}
END_TEST

START_TEST(dot_is_escaped)
{
    ms_text text = {.arena = &arena};
    ck_assert_int_eq(
        order_list(
            RELU("a\\\"b\\\\",
                 "\"input\"") ", {\"repeat\": 2, \"name\": \"r\", "
                              "\"layers\": [{\"type\": \"relu\"}]}" LOSS),
        MS_OK);
    ms_dag_dot(&model, &text);
    ck_assert(!text.failed);
    ck_assert_ptr_nonnull(strstr(text.bytes, "label=\"a\\\"b\\\\\\nrelu\""));
    ck_assert_ptr_nonnull(strstr(text.bytes, "subgraph cluster_1"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "    input -> l0;\n"));
    ck_assert_ptr_nonnull(strstr(text.bytes, "    l2 -> l3;\n"));
}
END_TEST

/* ---- random graphs against the definition -------------------------------- */

static uint32_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

/* n layers, each of one or two inputs; unread ones are read by the layer
 * after them, so that one end remains.  Rows are shuffled by map. */
static void make_random(uint32_t n, const uint32_t *map)
{
    static ms_layer layers[64];
    static uint32_t edges[128];
    static char names[64][16];
    uint32_t add = ms_layer_find("add"), relu = ms_layer_find("relu");
    uint32_t n_edges = 0;
    bool read[64] = {0};
    for (uint32_t i = 0; i < n; i++) {
        ms_layer *layer = &layers[map[i]];
        bool two = random_below(2) == 0;
        snprintf(names[map[i]], sizeof names[0], "n%u", i);
        *layer = (ms_layer){.name = names[map[i]],
                            .kind = &ms_layer_kinds[two ? add : relu],
                            .in_at = n_edges,
                            .n_in = two ? 2 : 1,
                            .block = MS_NONE};
        for (uint32_t j = 0; j < layer->n_in; j++) {
            uint32_t back = random_below(5);
            uint32_t from = i == 0 || (back == 0 && read[i - 1]) || back > i
                                ? MS_NONE
                                : i - (back == 0 ? 1 : back);
            if (j == 0 && i > 0 && !read[i - 1])
                from = i - 1;
            if (from != MS_NONE)
                read[from] = true;
            edges[n_edges++] = from == MS_NONE ? MS_NONE : map[from];
        }
    }
    model = (ms_model){.name = "random",
                       .path = "random",
                       .n_layers = n,
                       .n_edges = n_edges,
                       .layers = layers,
                       .edges = edges};
}

/* Position p is a cut point when no edge leads from before p to behind it. */
static bool is_cut(const uint32_t *place, uint32_t p)
{
    for (uint32_t l = 0; l < model.n_layers; l++) {
        const ms_layer *layer = &model.layers[l];
        for (uint32_t i = 0; i < layer->n_in; i++) {
            uint32_t from = model.edges[layer->in_at + i];
            if (from != MS_NONE && place[from] < p && place[l] > p)
                return false;
        }
    }
    return true;
}

static void check_random(uint32_t n)
{
    uint32_t place[64];
    bool seen[64] = {0};
    ck_assert_int_eq(ms_dag_order(&model, &arena, &fault), MS_OK);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(!seen[model.order[i]]);
        seen[model.order[i]] = true;
        place[model.order[i]] = i;
    }
    for (uint32_t l = 0; l < n; l++) {
        const ms_layer *layer = &model.layers[l];
        for (uint32_t i = 0; i < layer->n_in; i++) {
            uint32_t from = model.edges[layer->in_at + i];
            ck_assert(from == MS_NONE || place[from] < place[l]);
        }
        ck_assert_msg(model.cut[l] == is_cut(place, place[l]),
                      "layer %u of %u, seed %u", l, n, state);
    }
}

START_TEST(random_graphs)
{
    state = 12345;
    for (int round = 0; round < 2000; round++) {
        uint32_t n = 1 + random_below(40), map[64];
        for (uint32_t i = 0; i < n; i++)
            map[i] = i;
        make_random(n, map);
        check_random(n);
        for (uint32_t i = 0; i < n; i++) /* file order is legal: kept */
            ck_assert_uint_eq(model.order[i], i);
        for (uint32_t i = n; i > 1; i--) {
            uint32_t j = random_below(i), swap = map[i - 1];
            map[i - 1] = map[j];
            map[j] = swap;
        }
        make_random(n, map);
        check_random(n);
        ms_arena_reset(&arena);
    }
}
END_TEST

START_TEST(a_long_chain_is_quick)
{
    ck_assert_int_eq(order_list("{\"repeat\": 250000, \"layers\": "
                                "[{\"type\": \"relu\"}]}" LOSS),
                     MS_OK);
    ck_assert_uint_eq(model.order[250000], 250000);
    ck_assert_uint_eq(model.cut[125000], 1);
}
END_TEST

Suite *suite_dag(void)
{
    Suite *suite = suite_create("dag");
    TCase *tcase = tcase_create("dag");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_chain_is_cut_everywhere);
    tcase_add_test(tcase, a_skip_is_not_cut);
    tcase_add_test(tcase, the_input_spoils_no_cut);
    tcase_add_test(tcase, states_only_layers_stand_aside);
    tcase_add_test(tcase, a_shuffled_file_is_sorted);
    tcase_add_test(tcase, branches_stay_together);
    tcase_add_test(tcase, cycles_are_named);
    tcase_add_test(tcase, long_cycles_are_cut_short);
    tcase_add_test(tcase, dangling_outputs_are_named);
    tcase_add_test(tcase, dot_is_escaped);
    tcase_add_test(tcase, random_graphs);
    tcase_add_test(tcase, a_long_chain_is_quick);
    suite_add_tcase(suite, tcase);
    return suite;
}
