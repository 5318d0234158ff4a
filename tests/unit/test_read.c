/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader of model files: fields, templates, overrides, messages. */
#include "graphs/field.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "sim/base/files.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static ms_err read_with(const char *text, const ms_override *set, uint32_t n)
{
    fault = (ms_fault){0};
    return ms_read_model_bytes("t.json", text, strlen(text), set, n, &arena,
                               &model, &fault);
}

static void read_text(const char *text)
{
    ms_err err = read_with(text, NULL, 0);
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

/* "a,b" of the layers that name reads; "input" for the model's input. */
static const char *inputs(const char *name)
{
    static char text[256];
    const ms_layer *l = layer(name);
    text[0] = '\0';
    for (uint32_t i = 0; i < l->n_in; i++) {
        uint32_t from = model.edges[l->in_at + i];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : ",",
                 from == MS_NONE ? "input" : model.layers[from].name);
    }
    return text;
}

static const ms_value *field(const char *name, const char *key)
{
    const ms_layer *l = layer(name);
    const ms_layer_kind *kind = l->kind;
    for (uint32_t i = 0; i < kind->n_fields; i++)
        if (strcmp(kind->fields[i].name, key) == 0)
            return &l->field[i];
    ck_abort_msg("no field %s", key);
    return NULL;
}

START_TEST(a_layer_list)
{
    read_text("{\"memsim\": 1, \"name\": \"mlp\", \"summary\": \"s\",\n"
              " \"input\": {\"shape\": [784]},\n"
              " \"layers\": [\n"
              "  {\"repeat\": 2, \"name\": \"hidden\", \"layers\": [\n"
              "    {\"type\": \"linear\", \"out\": 1024}, "
              "{\"type\": \"relu\"}]},\n"
              "  {\"type\": \"linear\", \"name\": \"head\", \"out\": 10,\n"
              "   \"bias\": false},\n"
              "  {\"type\": \"cross_entropy\"}]}");
    ck_assert_str_eq(model.name, "mlp");
    ck_assert_ptr_null(model.family);
    ck_assert_uint_eq(model.n_layers, 6);
    ck_assert_uint_eq(model.n_dims, 1);
    ck_assert_uint_eq(model.dims[0], 784);
    ck_assert(!model.tokens && !model.sequence_input);
    ck_assert_uint_eq(model.n_blocks, 2);
    ck_assert_str_eq(model.block_names[1], "hidden.1");
    ck_assert_str_eq(inputs("hidden.0.linear1"), "input");
    ck_assert_str_eq(inputs("hidden.1.linear1"), "hidden.0.relu1");
    ck_assert_str_eq(inputs("head"), "hidden.1.relu1");
    ck_assert_uint_eq(layer("hidden.1.relu1")->block, 1);
    ck_assert_uint_eq(layer("head")->block, MS_NONE);
    ck_assert_uint_eq(layer("head")->spot.line, 6);
    ck_assert_uint_eq(layer("head")->spot.column, 3);
    ck_assert_int_eq(field("head", "out")->i, 10);
    ck_assert(!field("head", "bias")->b);
    ck_assert(field("hidden.0.linear1", "bias")->b);
    ck_assert_str_eq(inputs("cross_entropy1"), "head");
}
END_TEST

START_TEST(names_are_lexical)
{
    read_text(
        "{\"memsim\": 1, \"input\": {\"shape\": [8], \"sequence\": true},\n"
        " \"layers\": [{\"type\": \"linear\", \"name\": \"in\", \"out\": 8},\n"
        "  {\"repeat\": 2, \"name\": \"b\", \"layers\": [\n"
        "   {\"type\": \"relu\", \"name\": \"r\"},\n"
        "   {\"type\": \"add\", \"name\": \"skip\","
        " \"inputs\": [\"input\", \"r\"]},\n"
        "   {\"repeat\": 2, \"name\": \"c\", \"layers\": [\n"
        "    {\"type\": \"add\", \"name\": \"a\","
        " \"inputs\": [\"input\", \"in\"]}]},\n"
        "   {\"type\": \"mul\", \"name\": \"m\","
        " \"inputs\": [\"c.0.a\", \"c.1.a\"]}]},\n"
        "  {\"type\": \"add\", \"name\": \"last\","
        " \"inputs\": [\"b.1.m\", \"input\"]},\n"
        "  {\"type\": \"mse_loss\"}]}");
    ck_assert(model.sequence_input);
    ck_assert_str_eq(inputs("b.0.skip"), "in,b.0.r");
    ck_assert_str_eq(inputs("b.1.r"), "b.0.m");
    ck_assert_str_eq(inputs("b.1.skip"), "b.0.m,b.1.r");
    ck_assert_str_eq(inputs("b.1.c.0.a"), "b.1.skip,in");
    ck_assert_str_eq(inputs("b.1.c.1.a"), "b.1.c.0.a,in");
    ck_assert_str_eq(inputs("b.1.m"), "b.1.c.0.a,b.1.c.1.a");
    ck_assert_str_eq(inputs("last"), "b.1.m,input");
    ck_assert_uint_eq(model.n_blocks, 2); /* the outermost repeat counts */
    ck_assert_uint_eq(layer("b.1.c.1.a")->block, 1);
}
END_TEST

START_TEST(fields_of_all_types)
{
    read_text("{\"memsim\": 1, \"input\": {\"tokens\": true}, \"layers\": [\n"
              " {\"type\": \"embedding\", \"name\": \"e\", \"vocab\": 9,"
              " \"dim\": 4},\n"
              " {\"type\": \"embedding\", \"name\": \"p\", \"vocab\": 7,"
              " \"dim\": 4, \"ids\": \"positions\","
              " \"inputs\": [\"input\"]},\n"
              " {\"type\": \"add\", \"inputs\": [\"e\", \"p\"]},\n"
              " {\"type\": \"dropout\", \"p\": 1},\n"
              " {\"type\": \"op\", \"shape\": [2, 3], \"saves\": \"input\"},\n"
              " {\"type\": \"parameters\", \"count\": 5},\n"
              " {\"type\": \"linear\", \"out\": 9, \"tied\": \"e\"},\n"
              " {\"type\": \"cross_entropy\", \"upcast\": true}]}");
    ck_assert(model.tokens && model.sequence_input);
    ck_assert_uint_eq(model.max_sequence, 7);
    ck_assert_int_eq(field("p", "ids")->i, 1);
    ck_assert_double_eq(field("dropout1", "p")->f, 1);
    ck_assert_uint_eq(layer("op1")->n_ints, 2);
    ck_assert_uint_eq(layer("op1")->ints[1], 3);
    ck_assert_str_eq(field("linear1", "tied")->s, "e");
    ck_assert_str_eq(inputs("linear1"), "op1"); /* states have no output */
    ck_assert_str_eq(inputs("parameters1"), "");
    ck_assert(field("cross_entropy1", "upcast")->b);
}
END_TEST

#define FAMILY(config)                                                         \
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {" config "}}"
#define CONFIG                                                                 \
    "\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"vocab\": 100, "            \
    "\"positions\": 16"
#define LIST(layers)                                                           \
    "{\"memsim\": 1, \"input\": {\"shape\": [4]}, \"layers\": [" layers "]}"
#define LOSS ", {\"type\": \"mse_loss\"}"

/* The text, and what where, what and hint must contain. */
static const struct {
    const char *text, *where, *what, *hint;
} refused[] = {
    {"", "1:1", "empty", ""},
    {"[]", "1:1", "must be an object, not an array", "memsim help files"},
    {"{}", "1:1", "needs \"family\"", ""},
    {"{\"memsim\": 2}", "1:12", "version", "reads version 1"},
    {"{\"memsim\": \"1\"}", "1:12", "version", ""},
    {"{\"memsim\": 1}", "1:1", "needs \"family\"", ""},
    {"{\"memsim\": 1, \"famly\": 1}", "1:15", "unknown key \"famly\"",
     "did you mean \"family\""},
    {"{\"memsim\": 1, \"family\": \"decodr\"}", "1:25",
     "unknown family \"decodr\"", "did you mean \"decoder\""},
    {"{\"memsim\": 1, \"family\": \"resnet\"}", "1:25", "unknown family",
     "families: decoder encoder parameters"},
    {"{\"memsim\": 1, \"family\": 3}", "1:25", "must be a string", ""},
    {"{\"memsim\": 1, \"family\": \"decoder\"}", "1:1", "\"config\"", ""},
    {"{\"memsim\": 1, \"family\": \"decoder\", \"config\": 1}", "1:46",
     "must be an object", ""},
    {"{\"memsim\": 1, \"family\": \"decoder\", \"layers\": []}", "1:36",
     "beside \"family\"", ""},
    {"{\"memsim\": 1, \"name\": 1, \"family\": \"decoder\"}", "1:23",
     "\"name\" must be a string", ""},
    {"{\"memsim\": 1, \"name\": \"a\\u001b[1m\"}", "1:23", "control character",
     ""},
    {"{\"memsim\": 1, \"family\": \"parameters\"}", "1:1",
     "the model lacks the key \"count\"", ""},
    {"{\"memsim\": 1, \"family\": \"parameters\", \"count\": 0}", "1:48",
     "from 1 to", ""},
    {"{\"memsim\": 1, \"family\": \"parameters\", \"coutn\": 1}", "1:39",
     "unknown key \"coutn\"", "\"count\""},
    {FAMILY("\"layers\": 2,\n\"hiden\": 4"), "2:1",
     "unknown key \"hiden\" in \"config\"", "did you mean \"hidden\"?"},
    {FAMILY("\"layers\": 2"), "1:46",
     "\"config\" lacks the key \"hidden\" "
     "(width",
     ""},
    {FAMILY(CONFIG ", \"layers\": 3"), "", "duplicate key \"layers\"", ""},
    {FAMILY("\"layers\": 0"), "1:57", "from 1 to 100000, not 0", ""},
    {FAMILY("\"layers\": -1"), "1:57", "not -1", ""},
    {FAMILY("\"layers\": 2.0"), "1:57", "fraction", ""},
    {FAMILY("\"layers\": \"2\""), "1:57", "not a string", ""},
    {FAMILY("\"layers\": null"), "1:57", "not null", ""},
    {FAMILY("\"norm\": \"pre-norm\""), "1:55", "cannot be \"pre-norm\"",
     "one of: pre, post"},
    {FAMILY("\"dropout\": 1.5"), "1:58", "from 0 to 1", ""},
    {FAMILY("\"dropout\": NaN"), "1:58", "expected a value", "no NaN"},
    {FAMILY("\"tied\": 1"), "1:55", "true or false", ""},
    {FAMILY("\"layers\": 2, \"hidden\": 65, \"heads\": 4, \"vocab\": 100, "
            "\"positions\": 16"),
     "1:46", "\"hidden\" (65) is no multiple of \"heads\" (4)", ""},
    {FAMILY(CONFIG ", \"pooler\": true"), "1:46", "pooler", "\"head\""},
    {"{\"memsim\": 1, \"layers\": []}", "1:1", "\"input\"", "shape"},
    {"{\"memsim\": 1, \"input\": 3, \"layers\": []}", "1:24",
     "must be an object", ""},
    {"{\"memsim\": 1, \"input\": {}, \"layers\": []}", "1:24",
     "either \"shape\" or \"tokens\"", ""},
    {"{\"memsim\": 1, \"input\": {\"shape\": [0]}, \"layers\": []}", "1:35",
     "from 1 to", ""},
    {"{\"memsim\": 1, \"input\": {\"shape\": [-1]}, \"layers\": []}", "1:35",
     "not -1", ""},
    {"{\"memsim\": 1, \"input\": {\"shape\": [9223372036854775807]}, "
     "\"layers\": []}",
     "1:35", "from 1 to", ""},
    {"{\"memsim\": 1, \"input\": {\"shape\": [1099511627776, 1099511627776]}"
     ", \"layers\": []}",
     "1:24", "beyond 2^63", ""},
    {"{\"memsim\": 1, \"input\": {\"shape\": [1,1,1,1,1,1,1]}, "
     "\"layers\": []}",
     "1:34", "at most 6", ""},
    {LIST(""), "1:50", "at least one layer", ""},
    {LIST("3"), "1:51", "must be an object, not an integer", ""},
    {LIST("{}"), "1:51", "lacks the key \"type\"", "help layers"},
    {LIST("{\"type\": 1}"), "1:60", "\"type\" must be", ""},
    {LIST("{\"type\": \"liner\"}"), "1:60", "unknown layer type \"liner\"",
     "\"linear\""},
    {LIST("{\"type\": \"linear\", \"name\": \"mlp\"}"), "1:51",
     "layer \"mlp\" lacks the key \"out\"", ""},
    {LIST("{\"type\": \"linear\", \"out\": 4, \"bais\": true}"), "1:80",
     "unknown key \"bais\" in layer \"linear1\"", "\"bias\""},
    {LIST("{\"type\": \"relu\", \"name\": \"\"}"), "1:76", "at least one", ""},
    {LIST("{\"type\": \"relu\", \"name\": \"input\"}"), "1:76", "input", ""},
    {LIST("{\"type\": \"relu\", \"name\": \"a\\nb\"}"), "1:76",
     "control character", ""},
    {LIST("{\"type\": \"relu\", \"name\": \"a\"},\n"
          "{\"type\": \"relu\", \"name\": \"a\"}"),
     "2:1", "two layers are called \"a\" (the first in line 1)", ""},
    {LIST("{\"type\": \"add\"}" LOSS), "1:51", "has 1 inputs, its type needs 2",
     "\"inputs\""},
    {LIST("{\"type\": \"relu\", \"inputs\": []}" LOSS), "1:78",
     "has 0 inputs, its type needs 1", ""},
    {LIST("{\"type\": \"relu\", \"inputs\": \"input\"}" LOSS), "1:78",
     "must be an array", ""},
    {LIST("{\"type\": \"relu\", \"inputs\": [1]}" LOSS), "1:79",
     "must be the name of a layer", ""},
    {LIST("{\"type\": \"relu\", \"name\": \"first\"}, "
          "{\"type\": \"gelu\", \"inputs\": [\"frist\"]}" LOSS),
     "1:114", "there is no layer \"frist\"", "did you mean \"first\""},
    {LIST("{\"type\": \"linear\", \"out\": 4, \"tied\": \"nobody\"}" LOSS),
     "1:88", "there is no layer \"nobody\"", ""},
    {LIST("{\"type\": \"parameters\", \"name\": \"p\", \"count\": 1}, "
          "{\"type\": \"relu\", \"inputs\": [\"p\"]}" LOSS),
     "", "layer \"p\" has no output", ""},
    {LIST("{\"repeat\": 0, \"layers\": [{\"type\": \"relu\"}]}"), "1:62",
     "from 1 to", ""},
    {LIST("{\"repeat\": 2}"), "1:51", "lacks the key \"layers\"", ""},
    {LIST("{\"repeat\": 2, \"layers\": []}"), "1:75", "at least one layer", ""},
    {LIST("{\"repeat\": 2, \"layer\": []}"), "1:65", "unknown key \"layer\"",
     "\"layers\""},
    {LIST("{\"repeat\": 4000000, \"layers\": [{\"repeat\": 4000000, "
          "\"layers\": [{\"type\": \"relu\"}]}]}"),
     "", "layers, with those of repeats", ""},
};

START_TEST(refuses)
{
    ms_err err = read_with(refused[_i].text, NULL, 0);
    ck_assert_msg(err == MS_EINPUT, "%s", refused[_i].text);
    ck_assert_str_ne(fault.source, refused[_i].text[0] == '\0' ? "x" : "");
    char where[64];
    snprintf(where, sizeof where, "t.json:%s", refused[_i].where);
    ck_assert_msg(strncmp(fault.where, where, strlen(where)) == 0,
                  "%s: %s, wanted %s: %s", refused[_i].text, fault.where, where,
                  fault.what);
    ck_assert_msg(strstr(fault.what, refused[_i].what) != NULL, "%s: %s",
                  refused[_i].text, fault.what);
    ck_assert_msg(strstr(fault.hint, refused[_i].hint) != NULL, "%s: %s",
                  refused[_i].text, fault.hint);
}
END_TEST

START_TEST(long_names_are_refused)
{
    ms_text text = {.arena = &arena};
    ms_text_add(&text, "{\"memsim\":1,\"input\":{\"shape\":[4]},\"layers\":"
                       "[{\"type\":\"relu\",\"name\":\"");
    for (int i = 0; i < 1 << 20; i++)
        ms_text_put(&text, "x", 1);
    ms_text_add(&text, "\"}]}");
    ck_assert_int_eq(read_with(text.bytes, NULL, 0), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "more than 256 bytes"));
}
END_TEST

START_TEST(overrides)
{
    const ms_override good[] = {{"layers", "3"},
                                {"dropout", "0"},
                                {"tied", "false"},
                                {"norm", "post"},
                                {"name", "mine"}};
    ck_assert_int_eq(read_with(FAMILY(CONFIG), good, 5), MS_OK);
    ck_assert_uint_eq(model.n_blocks, 3);
    ck_assert_str_eq(model.name, "mine");
    ck_assert_str_eq(field("head", "tied")->s, "");
    const ms_override missing[] = {{"positions", "8"}};
    ck_assert_int_eq(read_with(FAMILY("\"layers\": 2, \"hidden\": 64, "
                                      "\"heads\": 4, \"vocab\": 100"),
                               missing, 1),
                     MS_OK);
    ck_assert_uint_eq(model.max_sequence, 8);
}
END_TEST

START_TEST(bad_overrides)
{
    static const ms_override bad[] = {
        {"hiden", "4"}, {"layers", "two"}, {"layers", "0"}, {"norm", "mid"}};
    static const char *const hints[] = {"\"hidden\"", "", "", "pre, post"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(read_with(FAMILY(CONFIG), &bad[i], 1), MS_EUSAGE);
        ck_assert_ptr_nonnull(strstr(fault.where, "--set model."));
        ck_assert_ptr_nonnull(strstr(fault.hint, hints[i]));
    }
    ck_assert_int_eq(read_with(LIST("{\"type\": \"relu\"}" LOSS), &bad[1], 1),
                     MS_EUSAGE);
    ck_assert_str_eq(fault.hint, "keys: name");
}
END_TEST

START_TEST(built_in_models)
{
    for (uint32_t i = 0; i < ms_builtin_n_models; i++) {
        const ms_builtin *row = &ms_builtin_models[i];
        char name[64];
        snprintf(name, sizeof name, "%s.json", row->name);
        ck_assert_int_eq(ms_read_model(name, NULL, 0, &arena, &model, &fault),
                         MS_OK);
        ck_assert_str_eq(model.path, name);
        ck_assert_int_eq(
            ms_read_model(row->name, NULL, 0, &arena, &model, &fault), MS_OK);
        ck_assert_str_eq(model.name, row->name);
        ck_assert_str_ne(row->summary, "");
    }
}
END_TEST

START_TEST(unknown_models)
{
    ck_assert_int_eq(
        ms_read_model("gtp3.json", NULL, 0, &arena, &model, &fault), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.hint, "\"gpt3\""));
    ck_assert_ptr_nonnull(strstr(fault.hint, "memsim help models"));
    fault = (ms_fault){0};
    ck_assert_int_eq(
        ms_read_model("./gpt3.json", NULL, 0, &arena, &model, &fault),
        MS_ESYSTEM);
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_read_model("/", NULL, 0, &arena, &model, &fault),
                     MS_EINPUT); /* a folder without config.json */
}
END_TEST

START_TEST(files)
{
    char path[] = "/tmp/memsim-read-XXXXXX", *bytes;
    size_t length;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq((int)write(file, FAMILY(CONFIG), strlen(FAMILY(CONFIG))),
                     (int)strlen(FAMILY(CONFIG)));
    close(file);
    ck_assert_int_eq(ms_read_model(path, NULL, 0, &arena, &model, &fault),
                     MS_OK);
    ck_assert_str_eq(model.path, path);
    ck_assert_ptr_nonnull(strstr(path, model.name));
    ck_assert_int_eq(ms_files_read(path, 10, &arena, &bytes, &length, &fault),
                     MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "larger than 10 bytes"));
    unlink(path);
}
END_TEST

START_TEST(without_permission)
{
    char path[] = "/tmp/memsim-read-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(fchmod(file, 0), 0);
    close(file);
    tests_become_nobody();
    ms_err err = ms_read_model(path, NULL, 0, &arena, &model, &fault);
    tests_become_self();
    unlink(path);
    ck_assert_int_eq(err, MS_ESYSTEM);
    ck_assert_str_eq(fault.where, path);
    ck_assert_str_eq(fault.what, "cannot read: Permission denied");
}
END_TEST

START_TEST(fail_points_at_a_layer)
{
    read_text(LIST("\n  {\"type\": \"relu\", \"name\": \"r\"}" LOSS));
    ck_assert_int_eq(
        ms_read_fail(&model, layer("r"), &fault, "hint", "bad %d", 7),
        MS_EINPUT);
    ck_assert_str_eq(fault.where, "t.json:2:3");
    ck_assert_str_eq(fault.what, "bad 7");
    ck_assert_int_eq(fault.caret, 2);
    read_text(FAMILY(CONFIG));
    ms_read_fail(&model, &model.layers[0], &fault, NULL, "bad");
    ck_assert_str_eq(fault.where, "t.json");
}
END_TEST

START_TEST(a_long_repeat_is_linear)
{
    read_text(
        LIST("{\"repeat\": 100000, \"name\": \"b\", \"layers\": ["
             "{\"type\": \"linear\", \"out\": 4, \"name\": \"l\"}, "
             "{\"type\": \"add\", \"inputs\": [\"l\", \"input\"]}]}" LOSS));
    ck_assert_uint_eq(model.n_layers, 200001);
    ck_assert_str_eq(inputs("b.99999.add1"), "b.99999.l,b.99998.add1");
}
END_TEST

START_TEST(out_of_memory_is_reported)
{
    static const char *const texts[] = {
        FAMILY(CONFIG),
        LIST("{\"repeat\": 9, \"layers\": [{\"type\": \"relu\", "
             "\"inputs\": [\"input\"]}]}" LOSS)};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ms_err err = MS_ENOMEM;
        for (long n = 1; err != MS_OK; n++) {
            ms_arena small = {0};
            ms_fault why = {0};
            ms_arena_fail_after(n);
            err = ms_read_model_bytes("t", texts[i], strlen(texts[i]), NULL, 0,
                                      &small, &model, &why);
            ms_arena_fail_after(0);
            ck_assert(err == MS_OK || err == MS_ENOMEM);
            ck_assert_int_eq(err, why.err);
            ms_arena_free(&small);
        }
    }
}
END_TEST

Suite *suite_read(void)
{
    Suite *suite = suite_create("read");
    TCase *tcase = tcase_create("read");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_layer_list);
    tcase_add_test(tcase, names_are_lexical);
    tcase_add_test(tcase, fields_of_all_types);
    tcase_add_loop_test(tcase, refuses, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tcase, long_names_are_refused);
    tcase_add_test(tcase, overrides);
    tcase_add_test(tcase, bad_overrides);
    tcase_add_test(tcase, built_in_models);
    tcase_add_test(tcase, unknown_models);
    tcase_add_test(tcase, files);
    tcase_add_test(tcase, without_permission);
    tcase_add_test(tcase, fail_points_at_a_layer);
    tcase_add_test(tcase, a_long_repeat_is_linear);
    tcase_add_test(tcase, out_of_memory_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
