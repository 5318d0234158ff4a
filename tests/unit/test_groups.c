/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers and groups of a layer list that are expressions. */
#include "graphs/model.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <string.h>

static const char text[] =
    "{\"memsim\": 1, \"input\": {\"shape\": [\"size\"]},\n"
    " \"config\": {\"size\": 4, \"deep\": 0}, \"layers\": [\n"
    " {\"each\": {\"w\": [4, 8]}, \"index\": \"s\", \"name\": \"s{s + 1}\",\n"
    "  \"layers\": [\n"
    "  {\"repeat\": \"w / 4\", \"name\": \"b\", \"layers\": [\n"
    "   {\"type\": \"linear\", \"name\": \"fc\", \"out\": \"w\"},\n"
    "   {\"type\": \"cat\", \"name\": \"all\",\n"
    "    \"inputs\": [\"fc\", \"b.*\", \"b.input\"]}]},\n"
    "  {\"template\": \"act\", \"name\": \"act\", \"when\": \"deep\"},\n"
    "  {\"type\": \"add\", \"name\": \"twice\", \"inputs\": [\"act\", "
    "\"b\"]}]},\n"
    " {\"type\": \"mean\"}],\n"
    " \"templates\": {\"act\": [{\"type\": \"relu\", \"name\": \"relu\"}]}}";

static const char *const wanted[2] = {
    "s1.b.0.fc <input\n"
    "s1.b.0.all <s1.b.0.fc,input\n"
    "s1.twice <s1.b.0.all,s1.b.0.all\n"
    "s2.b.0.fc <s1.twice\n"
    "s2.b.0.all <s2.b.0.fc,s1.twice\n"
    "s2.b.1.fc <s2.b.0.all\n"
    "s2.b.1.all <s2.b.1.fc,s2.b.0.all,s1.twice\n"
    "s2.twice <s2.b.1.all,s2.b.1.all\n"
    "mean1 <s2.twice\n",
    "s1.b.0.fc <input\n"
    "s1.b.0.all <s1.b.0.fc,input\n"
    "s1.act.relu <s1.b.0.all\n"
    "s1.twice <s1.act.relu,s1.b.0.all\n"
    "s2.b.0.fc <s1.twice\n"
    "s2.b.0.all <s2.b.0.fc,s1.twice\n"
    "s2.b.1.fc <s2.b.0.all\n"
    "s2.b.1.all <s2.b.1.fc,s2.b.0.all,s1.twice\n"
    "s2.act.relu <s2.b.1.all\n"
    "s2.twice <s2.act.relu,s2.b.1.all\n"
    "mean1 <s2.twice\n"};

static void list(const ms_model *model, ms_text *lines)
{
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        ms_text_add(lines, "%s ", layer->name);
        for (uint32_t i = 0; i < layer->n_in; i++) {
            uint32_t from = model->edges[layer->in_at + i];
            ms_text_add(lines, "%s%s", i == 0 ? "<" : ",",
                        from == MS_NONE ? "input" : model->layers[from].name);
        }
        ms_text_add(lines, "\n");
    }
}

START_TEST(groups_are_unrolled)
{
    for (int deep = 0; deep < 2; deep++) {
        const ms_override set = {"deep", deep ? "1" : "0"};
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_model model;
        ms_text lines = {.arena = &arena};
        ck_assert_int_eq(ms_read_model_bytes("t", text, strlen(text), &set, 1,
                                             &arena, &model, &fault),
                         MS_OK);
        list(&model, &lines);
        ck_assert_str_eq(lines.bytes, wanted[deep]);
        ck_assert_uint_eq(model.n_blocks, 3); /* "each" makes none */
        ck_assert_str_eq(model.block_names[2], "s2.b.1");
        ms_arena_free(&arena);
    }
}
END_TEST

START_TEST(out_of_memory_is_reported)
{
    ms_err err = MS_ENOMEM;
    for (long i = 1; err != MS_OK; i++) {
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_model model;
        ms_arena_fail_after(i);
        err = ms_read_model_bytes("t", text, strlen(text), NULL, 0, &arena,
                                  &model, &fault);
        ms_arena_fail_after(0);
        ck_assert(err == MS_OK || err == MS_ENOMEM);
        ms_arena_free(&arena);
    }
}
END_TEST

Suite *suite_groups(void)
{
    Suite *suite = suite_create("groups");
    TCase *tcase = tcase_create("groups");
    tcase_add_test(tcase, groups_are_unrolled);
    tcase_add_test(tcase, out_of_memory_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
