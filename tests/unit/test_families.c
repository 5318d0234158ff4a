/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Families of models: published counts, and the layers they consist of. */
#include "graphs/field.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ms_arena arena;
static ms_model model;

static void set_up(void)
{
    arena = (ms_arena){0};
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

static void read_model(const char *name, const ms_override *set, uint32_t n)
{
    ms_fault fault = {0};
    ms_err err = ms_read_model(name, set, n, &arena, &model, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
}

static ms_value field(const ms_layer *layer, const char *key)
{
    const ms_layer_kind *kind = layer->kind;
    for (uint32_t i = 0; i < kind->n_fields; i++)
        if (strcmp(kind->fields[i].name, key) == 0)
            return layer->field[i];
    ck_abort_msg("no field %s", key);
    return (ms_value){0};
}

static const char *type_of(const ms_layer *layer)
{
    return layer->kind->type;
}

/* Parameters by the textbook, from nothing but the layers and their edges:
 * width[l] is the last dimension of layer l's output. */
static uint64_t count_parameters(void)
{
    uint64_t *width = calloc(model.n_layers, sizeof *width);
    uint64_t sum = 0;
    for (uint32_t l = 0; l < model.n_layers; l++) {
        const ms_layer *layer = &model.layers[l];
        const char *type = type_of(layer);
        uint32_t from = layer->n_in > 0 ? model.edges[layer->in_at] : MS_NONE;
        uint64_t in = from == MS_NONE ? 0 : width[from];
        width[l] = in;
        if (strcmp(type, "embedding") == 0) {
            width[l] = (uint64_t)field(layer, "dim").i;
            sum += (uint64_t)field(layer, "vocab").i * width[l];
        } else if (strcmp(type, "linear") == 0) {
            width[l] = (uint64_t)field(layer, "out").i;
            sum += *field(layer, "tied").s == '\0' ? in * width[l] : 0;
            sum += field(layer, "bias").b ? width[l] : 0;
        } else if (strcmp(type, "layer_norm") == 0) {
            sum += 2 * in;
        } else if (strcmp(type, "attention") == 0) {
            sum += 4 * in * in + (field(layer, "bias").b ? 4 * in : 0);
        } else if (strcmp(type, "parameters") == 0) {
            sum += (uint64_t)field(layer, "count").i;
        }
    }
    free(width);
    return sum;
}

/* GPT-3: GPT-2's architecture at table 2.1's shapes (OpenAI's table D.1 lists
 * 356 M, 2,650 M, 6,660 M, 174,600 M); GPT-2 and BERT: keras-hub presets, as
 * counted by its maintainers on the models; BERT-large: Hugging Face. */
static const struct {
    const char *name;
    uint64_t parameters;
} counts[] = {
    {"gpt3", 174604259328},    {"gpt3-medium", 355871744},
    {"gpt3-2.7b", 2651553280}, {"gpt3-6.7b", 6658404352},
    {"gpt2", 124439808},       {"gpt2-medium", 354823168},
    {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200},
    {"bert-base", 109482240},  {"bert-large", 335141888},
};

START_TEST(published_counts)
{
    read_model(counts[_i].name, NULL, 0);
    ck_assert_uint_eq(count_parameters(), counts[_i].parameters);
}
END_TEST

/* Variants of the same sources: a padded vocabulary (llm.c's log), the cased
 * vocabulary, bert-medium. */
START_TEST(published_counts_of_variants)
{
    const ms_override padded[] = {{"vocab_pad_to", "128"}};
    const ms_override cased[] = {{"vocab", "28996"}};
    const ms_override medium[] = {
        {"layers", "8"}, {"hidden", "512"}, {"heads", "8"}};
    read_model("gpt2", padded, 1);
    ck_assert_uint_eq(count_parameters(), 124475904);
    read_model("bert-base", cased, 1);
    ck_assert_uint_eq(count_parameters(), 108310272);
    read_model("bert-large", cased, 1);
    ck_assert_uint_eq(count_parameters(), 333579264);
    read_model("bert-base", medium, 3);
    ck_assert_uint_eq(count_parameters(), 41373184);
}
END_TEST

/* Narayanan et al. 2021, table 1 by its formula 12lh^2 + 13lh + (V + s)h, to
 * which the final layer norm adds 2h. */
START_TEST(megatron_table)
{
    static const uint64_t rows[][4] = {
        /* layers, hidden, heads, formula */
        {24, 2304, 24, 1652226048},      {30, 3072, 32, 3562162176},
        {36, 4096, 32, 7467778048},      {40, 6144, 48, 18449743872},
        {48, 8192, 64, 39096025088},     {60, 10240, 80, 76050718720},
        {80, 12288, 96, 145622237184},   {96, 16384, 128, 310130507776},
        {105, 20480, 128, 529600778240}, {128, 25600, 160, 1008038707200}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[3][24];
        for (int j = 0; j < 3; j++)
            snprintf(text[j], sizeof text[j], "%" PRIu64, rows[i][j]);
        const ms_override set[] = {{"layers", text[0]},
                                   {"hidden", text[1]},
                                   {"heads", text[2]},
                                   {"vocab", "51200"}};
        read_model("gpt3", set, 4);
        ck_assert_uint_eq(count_parameters(), rows[i][3] + 2 * rows[i][1]);
    }
}
END_TEST

/* The layers' names and types as one text, "name:type" joined by blanks. */
static const char *outline(void)
{
    ms_text text = {.arena = &arena};
    for (uint32_t l = 0; l < model.n_layers; l++)
        ms_text_add(&text, "%s%s:%s", l == 0 ? "" : " ", model.layers[l].name,
                    type_of(&model.layers[l]));
    return text.bytes;
}

START_TEST(a_decoder)
{
    const ms_override set[] = {{"layers", "1"}};
    read_model("gpt2", set, 1);
    ck_assert_str_eq(
        outline(), "embeddings.tokens:embedding embeddings.positions:embedding "
                   "embeddings.add:add embeddings.dropout:dropout "
                   "layers.0.norm1:layer_norm layers.0.attention:attention "
                   "layers.0.dropout1:dropout layers.0.residual1:add "
                   "layers.0.norm2:layer_norm layers.0.mlp.up:linear "
                   "layers.0.mlp.activation:gelu layers.0.mlp.down:linear "
                   "layers.0.dropout2:dropout layers.0.residual2:add "
                   "final_norm:layer_norm head:linear loss:cross_entropy");
    ck_assert_uint_eq(model.max_sequence, 1024);
    ck_assert_str_eq(model.family, "decoder");
    const ms_layer *attention = &model.layers[5];
    ck_assert(field(attention, "causal").b);
    ck_assert_int_eq(field(attention, "heads").i, 12);
    ck_assert_double_eq(field(attention, "dropout").f, 0.1);
    ck_assert_uint_eq(attention->block, 0);
    const ms_layer *residual = &model.layers[13];
    ck_assert_uint_eq(model.edges[residual->in_at], 7);
    ck_assert_uint_eq(model.edges[residual->in_at + 1], 12);
    const ms_layer *head = &model.layers[15];
    ck_assert_str_eq(field(head, "tied").s, "embeddings.tokens");
    ck_assert(!field(head, "bias").b);
    ck_assert_uint_eq(head->block, MS_NONE);
    ck_assert(field(&model.layers[16], "upcast").b);
}
END_TEST

START_TEST(an_encoder)
{
    const ms_override set[] = {
        {"layers", "1"}, {"dropout", "0"}, {"attention_dropout", "0.5"}};
    read_model("bert-base", set, 3);
    ck_assert_str_eq(
        outline(), "embeddings.tokens:embedding embeddings.types:embedding "
                   "embeddings.add_types:add embeddings.positions:embedding "
                   "embeddings.add:add embeddings.norm:layer_norm "
                   "layers.0.attention:attention layers.0.residual1:add "
                   "layers.0.norm1:layer_norm layers.0.mlp.up:linear "
                   "layers.0.mlp.activation:gelu layers.0.mlp.down:linear "
                   "layers.0.residual2:add layers.0.norm2:layer_norm "
                   "pooler.select:select pooler.linear:linear pooler.tanh:tanh "
                   "loss:mean");
    ck_assert(!field(&model.layers[6], "causal").b);
    ck_assert_double_eq(field(&model.layers[6], "dropout").f, 0.5);
}
END_TEST

START_TEST(states_only)
{
    static const char text[] =
        "{\"memsim\": 1, \"family\": \"parameters\", \"count\": 7500000000}";
    ms_fault fault = {0};
    ck_assert_int_eq(ms_read_model_bytes("zero.json", text, strlen(text), NULL,
                                         0, &arena, &model, &fault),
                     MS_OK);
    ck_assert_str_eq(model.name, "zero");
    ck_assert_uint_eq(model.n_layers, 1);
    ck_assert_uint_eq(count_parameters(), 7500000000);
    ck_assert(!model.tokens && !model.sequence_input);
}
END_TEST

Suite *suite_families(void)
{
    Suite *suite = suite_create("families");
    TCase *tcase = tcase_create("families");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, published_counts, 0,
                        (int)(sizeof counts / sizeof *counts));
    tcase_add_test(tcase, published_counts_of_variants);
    tcase_add_test(tcase, megatron_table);
    tcase_add_test(tcase, a_decoder);
    tcase_add_test(tcase, an_encoder);
    tcase_add_test(tcase, states_only);
    suite_add_tcase(suite, tcase);
    return suite;
}
