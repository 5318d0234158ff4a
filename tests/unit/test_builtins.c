/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Built-in models, models that refer to them with "like", and what their
 * pages need of layer lists. */
#include "graphs/json/json.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdio.h>
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

static void read_text(const char *text, const ms_override *set, uint32_t n)
{
    ms_err err = ms_read_model_bytes("t.json", text, strlen(text), set, n,
                                     &arena, &model, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
}

static const ms_layer *layer(const char *name)
{
    for (uint32_t l = 0; l < model.n_layers; l++)
        if (strcmp(model.layers[l].name, name) == 0)
            return &model.layers[l];
    ck_abort_msg("no layer %s", name);
    return NULL;
}

static const char *type_of(const char *name)
{
    return layer(name)->kind->type;
}

/* The layer that name reads first. */
static const char *source_of(const char *name)
{
    uint32_t from = model.edges[layer(name)->in_at];
    return from == MS_NONE ? "input" : model.layers[from].name;
}

/* ---- "like" -------------------------------------------------------------- */

static const char *like_of(const char *name, ms_json *json)
{
    for (uint32_t i = 0; i < ms_builtin_n_models; i++) {
        const ms_builtin *row = &ms_builtin_models[i];
        if (strcmp(row->name, name) != 0)
            continue;
        ck_assert_int_eq(ms_json_read(row->name, row->text, strlen(row->text),
                                      &arena, json, &fault),
                         MS_OK);
        uint32_t like = ms_json_find(json, 0, "like");
        return like == MS_NONE ? NULL : json->nodes[like].value.s;
    }
    ck_abort_msg("no built-in %s", name);
    return NULL;
}

/* Sizes do not copy a page, and no chain can close: all are like whole
 * ones. */
START_TEST(sizes_are_like_pages)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_builtin_n_models; i++) {
        ms_json json;
        const char *like = like_of(ms_builtin_models[i].name, &json);
        n += like != NULL;
        if (like != NULL)
            ck_assert_msg(like_of(like, &json) == NULL, "%s is like %s",
                          ms_builtin_models[i].name, like);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_ge(n, 50);
}
END_TEST

/* The built-in's, the file's, the user's: what is nearest counts. */
START_TEST(numbers_stand_over_others)
{
    static const char text[] = "{\"like\": \"qwen2-0.5b\", \"name\": \"mine\", "
                               "\"config\": {\"layers\": 3, \"ffn\": 100}}";
    const ms_override set = {"ffn", "200"};
    read_text(text, &set, 1);
    ck_assert_str_eq(model.name, "mine");
    ck_assert_uint_eq(model.n_blocks, 3);
    ck_assert_int_eq(layer("layers.0.mlp.up")->field[0].i, 200);
    ck_assert_int_eq(layer("embeddings.tokens")->field[1].i, 896);
    ck_assert_int_eq(layer("embeddings.tokens")->field[0].i, 151936);
    ck_assert_uint_eq(layer("head")->spot.line, 0); /* of another file */
    ck_assert_ptr_eq(strstr(model.source, "qwen2-7b"), NULL);
}
END_TEST

/* ---- pages --------------------------------------------------------------- */

#define EITHER                                                                 \
    "{\"input\": {\"shape\": [8]}, \"config\": {\"smooth\": 1}, "              \
    "\"layers\": [{\"type\": \"linear\", \"name\": \"up\", \"out\": 4}, "      \
    "{\"type\": \"gelu\", \"name\": \"act\", \"when\": \"smooth\"}, "          \
    "{\"type\": \"relu\", \"name\": \"act\", \"when\": \"smooth == 0\"}, "     \
    "{\"type\": \"linear\", \"name\": \"side\", \"inputs\": [\"input\"], "     \
    "\"out\": 4}, {\"type\": \"add\", \"name\": \"sum\", "                     \
    "\"inputs\": [\"act\", \"side\"]}, {\"type\": \"mean\"}]}"

/* Layers that exclude one another share a name. */
START_TEST(one_of_two_layers)
{
    static const char *const values[] = {"1", "0", "2"};
    static const char *const types[] = {"gelu", "relu", "gelu"};
    for (size_t i = 0; i < 3; i++) {
        const ms_override set = {"smooth", values[i]};
        read_text(EITHER, &set, 1);
        ck_assert_uint_eq(model.n_layers, 5);
        ck_assert_str_eq(type_of("act"), types[i]);
        ck_assert_str_eq(source_of("act"), "up");
        ck_assert_str_eq(source_of("sum"), "act");
    }
}
END_TEST

START_TEST(neither_of_two_layers)
{
    static const char text[] =
        "{\"input\": {\"shape\": [8]}, \"layers\": ["
        "{\"type\": \"linear\", \"name\": \"up\", \"out\": 4}, "
        "{\"type\": \"gelu\", \"name\": \"act\", \"when\": false}, "
        "{\"type\": \"relu\", \"name\": \"act\", \"when\": \"1 > 2\"}, "
        "{\"type\": \"add\", \"name\": \"sum\", \"inputs\": [\"act\", "
        "\"up\"]}, {\"type\": \"mean\"}]}";
    read_text(text, NULL, 0);
    ck_assert_uint_eq(model.n_layers, 3);
    ck_assert_str_eq(source_of("sum"), "up");
}
END_TEST

#define NESTED(outer, inner)                                                   \
    "{\"input\": {\"shape\": [8]}, \"layers\": ["                              \
    "{\"repeat\": 2, " outer "\"name\": \"stage\", \"layers\": ["              \
    "{\"type\": \"relu\"}, {" inner "\"name\": \"part\", \"layers\": ["        \
    "{\"type\": \"relu\"}]}]}, {\"type\": \"mean\"}]}"

/* What checkpoint policies count can be said. */
START_TEST(blocks_are_chosen)
{
    read_text(NESTED("", "\"repeat\": 3, "), NULL, 0);
    ck_assert_uint_eq(model.n_blocks, 2);
    read_text(NESTED("\"block\": false, ", "\"repeat\": 3, "), NULL, 0);
    ck_assert_uint_eq(model.n_blocks, 6);
    ck_assert_str_eq(model.block_names[0], "stage.0.part.0");
    read_text(NESTED("\"block\": false, ", "\"block\": true, "), NULL, 0);
    ck_assert_uint_eq(model.n_blocks, 2);
    ck_assert_str_eq(model.block_names[1], "stage.1.part");
    read_text(NESTED("\"block\": false, ", ""), NULL, 0);
    ck_assert_uint_eq(model.n_blocks, 0);
}
END_TEST

Suite *suite_builtins(void)
{
    Suite *suite = suite_create("builtins");
    TCase *tcase = tcase_create("builtins");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, sizes_are_like_pages);
    tcase_add_test(tcase, numbers_stand_over_others);
    tcase_add_test(tcase, one_of_two_layers);
    tcase_add_test(tcase, neither_of_two_layers);
    tcase_add_test(tcase, blocks_are_chosen);
    suite_add_tcase(suite, tcase);
    return suite;
}
