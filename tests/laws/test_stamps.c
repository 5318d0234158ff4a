/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A graph in which equal blocks are stamped is the one in which each of them is
 * lowered by itself: the same models, but with a row of the table of layer
 * types for each layer, so that no two are equal. */
#include "graphs/layertypes.h"
#include "graphs/lowering/blockrun.h"
#include "graphs/modelgraph.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/shape.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <stdio.h>
#include <string.h>

#define TRIALS 500u

static const char *const models[] = {
    "gpt3",        "llama-2-7b",  "gpt2",      "bert-base",    "mixtral-8x7b",
    "qwen3-4b",    "deepseek-v3", "falcon-7b", "gemma-2-2b",   "mpt-7b",
    "gpt-oss-20b", "t5-small",    "phi-4",     "gpt-neox-20b", "bloom-560m",
};
enum { N_MODELS = sizeof models / sizeof *models };

static const char *const layers[] = {"{\"type\": \"linear\", \"out\": 96}",
                                     "{\"type\": \"relu\"}",
                                     "{\"type\": \"gelu\"}",
                                     "{\"type\": \"layer_norm\"}",
                                     "{\"type\": \"dropout\"}",
                                     "{\"type\": \"linear\", \"out\": 64}"};
enum { N_LAYERS = sizeof layers / sizeof *layers };

/* ---- models -------------------------------------------------------------- */

/* A chain of random layers, some of them equal blocks, or as equal but written
 * out, in no block: few of them or so many that stretches are stamped. */
static void write_list(laws_random *random, ms_text *json)
{
    uint32_t count = 1 + laws_below(random, 5), times = 7, layer[5];
    bool blocks = laws_chance(random, 50);
    times += laws_below(random, laws_chance(random, 30) ? 300 : 9);
    for (uint32_t i = 0; i < count; i++)
        layer[i] = laws_below(random, N_LAYERS);
    ms_text_add(json, "{\"memsim\": 1, \"name\": \"list\", \"input\": "
                      "{\"shape\": [96]}, \"layers\": [{\"type\": \"linear\", "
                      "\"out\": 64}, ");
    if (blocks)
        ms_text_add(json, "{\"repeat\": %u, \"name\": \"block\", \"layers\": [",
                    times);
    for (uint32_t k = 0; k < (blocks ? 1 : times); k++) {
        for (uint32_t i = 0; i < count; i++)
            ms_text_add(json, "%s, ", layers[layer[i]]);
        ms_text_add(json, "%s%s", layers[0],
                    blocks || k + 1 == times ? "" : ", ");
    }
    ms_text_add(json, "%s, %s, {\"type\": \"mean\"}]}", blocks ? "]}" : "",
                layers[laws_below(random, N_LAYERS)]);
}

static void read_one(laws_random *random, ms_arena *arena, ms_model *model,
                     ms_fault *fault)
{
    char blocks[8];
    ms_text json = {.arena = arena};
    ms_override override = {.key = "layers", .value = blocks};
    if (laws_chance(random, 30)) {
        write_list(random, &json);
        ck_assert_msg(!ms_read_model_bytes("list.json", json.bytes, json.length,
                                           NULL, 0, arena, model, fault),
                      "%s", fault->what);
    } else {
        const char *name = models[laws_below(random, N_MODELS)];
        snprintf(blocks, sizeof blocks, "%u", 5 + laws_below(random, 14));
        ck_assert_msg(!ms_read_model(name, &override, 1, arena, model, fault),
                      "%s: %s", name, fault->what);
    }
    ck_assert(!ms_dag_order(model, arena, fault));
}

static void set(ms_training *training, const char *key, const char *value)
{
    ms_fault fault = {0};
    ck_assert_msg(!ms_training_set(training, key, value, &fault), "%s",
                  fault.what);
}

static void choose(laws_random *random, ms_training *training)
{
    static const char *const kernels[] = {"eager", "flash", "sdpa", "fused",
                                          "megatron"};
    static const char *const precisions[] = {
        "fp32", "bf16-mixed", "bf16", "autocast-bf16", "fp8", "fp8-primary"};
    static const char *const optimizers[] = {
        "sgd", "adamw", "adafactor", "lion", "muon", "adamw-8bit", "lion-8bit"};
    ms_training_init(training);
    set(training, "kernels", kernels[laws_below(random, 5)]);
    set(training, "precision", precisions[laws_below(random, 6)]);
    set(training, "optimizer", optimizers[laws_below(random, 7)]);
    set(training, "batch", "8");
    if (laws_chance(random, 20))
        set(training, "retain_graph", "yes");
    if (laws_chance(random, 20))
        set(training, "frozen.blocks", "2");
    if (laws_chance(random, 20))
        set(training, "clip_norm", "1");
    if (laws_chance(random, 20))
        set(training, "lora.rank", "8");
    if (laws_chance(random, 10))
        set(training, "device", "cpu");
    if (laws_chance(random, 10))
        set(training, "step", "first");
    if (laws_chance(random, 15))
        set(training, "mlp_tiles", laws_chance(random, 50) ? "3" : "-1");
    if (laws_chance(random, 15))
        set(training, "loss_kernel", "tiled");
}

/* What ranks share, and how. */
static bool choose_shape(laws_random *random, ms_arena *arena, ms_shape *shape)
{
    static const char *const policies[] = {
        "none",
        "zero:1,dp=8",
        "zero:2,dp=8",
        "zero:3,dp=8",
        "zero:1,dp=8,impl=deepspeed",
        "zero:2,dp=8,impl=deepspeed",
        "zero:3,dp=8,impl=deepspeed",
        "zero:1,dp=8,impl=megatron",
        "zero:1,dp=8,impl=megatron,overlap_grad_reduce=0",
        "fsdp:dp=8",
        "fsdp:dp=8,impl=1",
        "fsdp:dp=8,shard=4",
        "ddp:dp=4",
        "expert:4+zero:1,dp=8",
        "expert:2+fsdp:dp=8",
        "expert:4,imbalance=1.3+zero:3,dp=4",
        "tensor:2,sp+expert:2+zero:2,dp=4",
        "tensor:2,sp+zero:1,dp=4,impl=megatron",
        "context:2+expert:2,etp=1+ddp:dp=4",
    };
    static const char *const offloads[] = {
        "offload:optimizer",
        "offload:optimizer/gradients",
        "offload:optimizer/params/gradients",
        "offload:optimizer,percent=50",
        "offload:optimizer,tile=20000",
        "offload:optimizer,impl=megatron",
        "offload:optimizer,impl=megatron,percent=30",
        "offload:optimizer,impl=megatron,overlap=0",
        "offload:optimizer,impl=torchao",
        "offload:optimizer/gradients,impl=torchao",
        "offload:optimizer,delayed=1",
        "offload:optimizer,pin=0",
        "offload:optimizer,to=nvme",
        "offload:optimizer/params/gradients,to=nvme,tile=10000",
        "offload:optimizer/params,to=nvme,impl=deepspeed",
        "offload:optimizer,impl=deepspeed,tile=30000",
    };
    enum {
        N_POLICIES = sizeof policies / sizeof *policies,
        N_OFFLOADS = sizeof offloads / sizeof *offloads
    };
    char words[128];
    ms_spec spec = {0};
    ms_fault fault = {0};
    *shape = (ms_shape){.batch = 8,
                        .micro_batches = 1 + laws_below(random, 2),
                        .data_ranks = 1};
    const char *policy = laws_chance(random, 60)
                             ? policies[laws_below(random, N_POLICIES)]
                             : policies[0];
    snprintf(words, sizeof words, "%s", policy);
    if (laws_chance(random, 40))
        snprintf(words, sizeof words, "%s+%s", policy,
                 offloads[laws_below(random, N_OFFLOADS)]);
    ck_assert_msg(!ms_spec_parse(words, arena, &spec, &fault), "%s: %s", words,
                  fault.what);
    return ms_apply_shape(&spec, shape, &fault) == MS_OK;
}

/* Equal kinds of layers become different ones. */
static void disguise(ms_model *model, ms_arena *arena)
{
    ms_layer_kind *kinds = ms_arena_take(arena, model->n_layers, sizeof *kinds);
    ck_assert_ptr_nonnull(kinds);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        kinds[l] = *model->layers[l].kind;
        model->layers[l].kind = &kinds[l];
    }
}

/* ---- graphs -------------------------------------------------------------- */

static bool same(const void *a, const void *b, size_t n, size_t size)
{
    if (!a || !b)
        return a == b;
    return memcmp(a, b, n * size) == 0;
}

#define SAME(column, n)                                                        \
    ck_assert_msg(same(a->column, b->column, n, sizeof *a->column),            \
                  #column ", seed %llu", (unsigned long long)laws_seed)

/* What the text of a graph does not say. */
static void compare_columns(const ms_graph *a, const ms_graph *b)
{
    ck_assert_uint_eq(a->n_ops, b->n_ops);
    ck_assert_uint_eq(a->n_storages, b->n_storages);
    ck_assert_uint_eq(a->n_units, b->n_units);
    ck_assert_uint_eq(a->n_saves, b->n_saves);
    SAME(op_node, a->n_ops);
    SAME(op_ns, a->n_ops);
    SAME(op_kind, a->n_ops);
    SAME(op_flags, a->n_ops);
    SAME(op_layer, a->n_ops);
    SAME(op_unit, a->n_ops);
    SAME(op_flops, a->n_ops);
    SAME(op_read_bytes, a->n_ops);
    SAME(op_write_bytes, a->n_ops);
    SAME(in_at, a->n_ops + 1);
    SAME(out_at, a->n_ops + 1);
    SAME(drop_at, a->n_ops + 1);
    SAME(in, a->in_at[a->n_ops]);
    SAME(out, a->out_at[a->n_ops]);
    SAME(drop, a->drop_at[a->n_ops]);
    SAME(storage_bytes, a->n_storages);
    SAME(storage_category, a->n_storages);
    SAME(storage_at_start, a->n_storages);
    SAME(storage_maker, a->n_storages);
    SAME(storage_local_end, a->n_storages);
    SAME(storage_saved_end, a->n_storages);
    SAME(storage_grad, a->n_storages);
    SAME(storage_layer, a->n_storages);
    SAME(storage_buffer, a->n_storages);
    SAME(unit_block, a->n_units);
    SAME(unit_name, a->n_units);
    SAME(unit_in_at, a->n_units + 1);
    SAME(saves, a->n_saves);
    SAME(kept, a->n_kept);
    SAME(layer_bytes, a->n_layers);
    SAME(layer_role, a->n_layers);
    SAME(storage_shard_bytes, a->n_persistent);
    SAME(storage_shard_group, a->n_persistent);
    SAME(storage_ranks, a->n_persistent);
    SAME(layer_split, a->n_layers);
    SAME(op_meets, a->n_ops);
    SAME(storage_asked_bytes, a->n_persistent);
    SAME(storage_whole, a->n_persistent);
    SAME(storage_width, a->n_persistent);
    SAME(weight_elements, a->n_persistent);
    SAME(unit_state, a->n_units);
    SAME(unit_cost, a->n_units);
    SAME(storage_pool, a->n_storages);
    SAME(storage_far_bytes, a->n_persistent);
    SAME(hosted.of, a->n_persistent);
    ck_assert_uint_eq(a->hosted.n_blocks, b->hosted.n_blocks);
    SAME(hosted.block_bytes, a->hosted.n_blocks);
}

static void compare_texts(const ms_graph *a, const ms_graph *b, ms_arena *arena)
{
    ms_text texts[2] = {{.arena = arena}, {.arena = arena}};
    ms_dump_graph(a, NULL, 0, &texts[0]);
    ms_dump_graph(b, NULL, 0, &texts[1]);
    ck_assert_uint_eq(texts[0].length, texts[1].length);
    ck_assert(memcmp(texts[0].bytes, texts[1].bytes, texts[0].length) == 0);
}

/* Cut points that follow from four blocks are those of the whole model. */
static void compare_cuts(ms_model *model, ms_arena *arena)
{
    const uint8_t *cut = model->cut;
    const uint32_t *order = model->order;
    ms_fault fault = {0};
    ck_assert(!ms_dag_order(model, arena, &fault));
    ck_assert(same(cut, model->cut, model->n_layers, 1));
    ck_assert(same(order, model->order, model->n_layers, sizeof *order));
}

/* 1 where blocks were equal; 0 where settings contradict the model. */
static uint32_t try_one(laws_random *random, ms_arena *arena)
{
    ms_shape shape;
    ms_model model;
    ms_training training;
    ms_graph graphs[2];
    const ms_device *device;
    ms_fault fault = {0};
    read_one(random, arena, &model, &fault);
    choose(random, &training);
    if (!choose_shape(random, arena, &shape) ||
        ms_resolve_training(&training, &model, &fault))
        return 0;
    ck_assert(!ms_device_find("h100", &device, &fault));
    uint32_t equal = ms_blockrun_find(&model).left_out > 0;
    ms_err err =
        ms_lower(&model, &training, device, &shape, arena, &graphs[0], &fault);
    disguise(&model, arena);
    compare_cuts(&model, arena);
    ck_assert_uint_eq(ms_blockrun_find(&model).left_out, 0);
    ck_assert_int_eq(err, ms_lower(&model, &training, device, &shape, arena,
                                   &graphs[1], &fault));
    if (err)
        return 0;
    compare_columns(&graphs[0], &graphs[1]);
    compare_texts(&graphs[0], &graphs[1], arena);
    return equal;
}

/* Layers that are written out are a run of the shortest period, which begins
 * where a layer no longer reads the model's input. */
START_TEST(layers_of_no_block_are_a_run)
{
    ms_arena arena = {0};
    ms_text json = {.arena = &arena};
    ms_fault fault = {0};
    ms_model model;
    ms_text_add(&json, "{\"input\": {\"shape\": [64]}, \"layers\": [");
    for (uint32_t i = 0; i < 20; i++)
        ms_text_add(&json, "%s, %s, %s, ", layers[5], layers[1], layers[3]);
    ms_text_add(&json, "%s, {\"type\": \"mean\"}]}", layers[0]);
    ck_assert(!ms_read_model_bytes("list.json", json.bytes, json.length, NULL,
                                   0, &arena, &model, &fault));
    ck_assert(!ms_dag_order(&model, &arena, &fault));
    ms_blockrun run = ms_blockrun_find(&model);
    ck_assert_uint_eq(run.first, 1);
    ck_assert_uint_eq(run.period, 3);
    ck_assert_uint_eq(run.blocks, 0);
    ck_assert_uint_eq(run.left_out, 19 - MS_BLOCKRUN_LEFT);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(stamped_is_lowered_one_by_one)
{
    uint32_t equal = 0;
    for (laws_seed = 1; laws_seed <= TRIALS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_arena arena = {0};
        equal += try_one(&random, &arena);
        ms_arena_free(&arena);
    }
    ck_assert_uint_gt(equal, TRIALS / 4);
}
END_TEST

Suite *suite_stamps(void)
{
    Suite *suite = suite_create("stamps");
    TCase *tcase = tcase_create("stamps");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, layers_of_no_block_are_a_run);
    tcase_add_test(tcase, stamped_is_lowered_one_by_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
