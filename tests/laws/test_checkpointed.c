/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What lasts from forward to backward, whatever kernels, precision and
 * framework a model runs with.  Under checkpoint:full a block leaves behind
 * what other blocks read of it, to the byte, and nothing else; under every
 * checkpoint what its program keeps and holds.  Until its region ends autocast
 * has casts of the weights besides (cached_cast of autocast_mode.cpp), and on
 * a CPU a checkpoint that draws random numbers sets their state aside
 * (torch.get_rng_state). */
#include "graphs/kernels/kernels.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define N_KERNELS ((uint32_t)MS_KERNELS_N)

static ms_arena keep, trial;

/* One run, with marks by storage, block or layer. */
typedef struct run {
    ms_result result;
    char what[160];
    uint8_t *alive; /* by row of the plan: alive after forward */
} run;

static void *marks(size_t n, size_t size)
{
    void *list = ms_arena_take(&trial, n + 1, size);
    ck_assert_ptr_nonnull(list);
    return list;
}

/* Reads and runs the model; false: these settings are refused, with a reason.
 */
static bool open_run(run *r, const char *model, const ms_training *training,
                     const char *policy)
{
    ms_fault fault = {0};
    ms_job job;
    char kernels[32], precision[32];
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
    *r = (run){0};
    ms_settings_init(&job);
    job.model = model;
    job.training = *training;
    job.training.batch = 8; /* fp8 needs a multiple of 8 rows */
    ck_assert_int_eq(ms_spec_parse(policy, &keep, &job.spec, &fault), MS_OK);
    for (uint32_t i = 0; i < ms_training_n_fields; i++) {
        if (strcmp(ms_training_fields[i].name, "kernels") == 0)
            ms_training_value(training, i, kernels, sizeof kernels);
        if (strcmp(ms_training_fields[i].name, "precision") == 0)
            ms_training_value(training, i, precision, sizeof precision);
    }
    snprintf(r->what, sizeof r->what, "%s, %s, %s, %s", model, kernels,
             precision, policy);
    ms_err err = ms_jobway_run(&job, &keep, &trial, &r->result, &fault);
    ck_assert_msg(err == MS_OK || (err == MS_EUSAGE && fault.what[0] != '\0') ||
                      (err == MS_EINPUT && fault.hint[0] != '\0'),
                  "%s: %s: %s", r->what, fault.where, fault.what);
    return err == MS_OK;
}

/* Notes the rows that are there at the mark. */
static void look(run *r, ms_mark mark)
{
    const ms_timeline *line = r->result.line;
    uint32_t until = ms_timeline_until(line, 0, mark);
    r->alive = marks(r->result.plan->n_rows, 1);
    for (uint32_t e = 0; e < until; e++)
        r->alive[line->events[e].row] = line->events[e].op_act & 1u;
}

/* ---- checkpoint:full, block by block ------------------------------------- */

/* The block whose forward makes the storage, or MS_NONE. */
static uint32_t block_of(const ms_graph *graph, uint32_t storage)
{
    uint32_t maker = graph->storage_maker[storage];
    if (storage < graph->n_persistent || maker == MS_NONE ||
        graph->op_pass[maker] > MS_LOSS)
        return MS_NONE;
    return graph->unit_block[graph->op_unit[maker]];
}

/* By block the bytes of its outputs that other blocks read, by the model's
 * edges. open: units outside of all blocks read them, too, and keep what they
 * need. */
static void count_wanted(const run *r, uint64_t *bytes, bool *open)
{
    const ms_model *model = &r->result.model;
    bool *seen = marks(model->n_layers, sizeof *seen);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        for (uint32_t k = 0; k < layer->n_in; k++) {
            uint32_t from = model->edges[layer->in_at + k];
            uint32_t block =
                from == MS_NONE ? MS_NONE : model->layers[from].block;
            if (block == MS_NONE || block == layer->block)
                continue;
            open[block] |= layer->block == MS_NONE;
            bytes[block] += seen[from] ? 0 : r->result.graph->layer_bytes[from];
            seen[from] = true;
        }
    }
}

/* Is it a weight's cast that forward made? */
static bool is_cast(const run *r, uint32_t storage)
{
    const ms_graph *graph = r->result.graph;
    uint32_t maker = graph->storage_maker[storage];
    return strcmp(graph->op_name[maker], "aten::_to_copy") == 0 &&
           ms_graph_is_weight(graph, graph->in[graph->in_at[maker]]);
}

static void check_blocks(run *r, ms_mark mark)
{
    const ms_graph *graph = r->result.graph;
    uint64_t *left = marks(graph->n_blocks, sizeof *left);
    uint64_t *wanted = marks(graph->n_blocks, sizeof *wanted);
    bool *open = marks(graph->n_blocks, sizeof *open);
    look(r, mark);
    count_wanted(r, wanted, open);
    for (uint32_t i = 0; i < r->result.plan->n_rows; i++) {
        const ms_row *row = &r->result.plan->row[i];
        uint32_t block = !r->alive[i] || row->storage == MS_NONE
                             ? MS_NONE
                             : block_of(graph, row->storage);
        if (block != MS_NONE &&
            !(mark == MS_MARK_BEFORE_LOSS && is_cast(r, row->storage)))
            left[block] += row->bytes;
    }
    for (uint32_t b = 0; b < graph->n_blocks; b++)
        ck_assert_msg(open[b] ? left[b] <= wanted[b] : left[b] == wanted[b],
                      "%s: %s leaves %llu bytes, others read %llu", r->what,
                      graph->block_name[b], (unsigned long long)left[b],
                      (unsigned long long)wanted[b]);
}

static const char *const both[] = {"checkpoint:full",
                                   "checkpoint:full,variant=reentrant"};

static bool check_model(const char *model, ms_training *training,
                        const char *policy)
{
    run r;
    if (!open_run(&r, model, training, policy))
        return false;
    check_blocks(&r, MS_MARK_BEFORE_LOSS);
    check_blocks(&r, MS_MARK_AFTER_FORWARD);
    return true;
}

/* Every built-in model that has blocks, with the sets of kernels in turn
 * (models of one family are adjacent, so each family meets several sets). */
START_TEST(every_model)
{
    ms_training training;
    uint32_t ran = 0, all = 0;
    ms_training_init(&training);
    for (uint32_t m = 0; m < ms_builtin_n_models; m++)
        for (uint32_t v = 0; v < 2; v++, all++) {
            training.kernels = MS_EAGER + (m + 3 * v) % N_KERNELS;
            ran += check_model(ms_builtin_models[m].name, &training, both[v]);
        }
    ck_assert_uint_gt(ran, all * 9 / 10);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* One model of each family, with every set of kernels and every precision;
 * variants of the checkpoint and frameworks take turns. */
static const char *const some[] = {
    "gpt2",    "bert-base",    "t5-small",         "llama-3.2-1b",
    "phi-4",   "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b",
    "vit-b16", "resnet18",     "swin-t",           "gpt-oss-20b",
    "mpt-7b"};
#define N_SOME (sizeof some / sizeof *some)

START_TEST(every_precision)
{
    ms_training training;
    ms_training_init(&training);
    for (int64_t k = 0; k < MS_KERNELS_N; k++)
        for (int64_t p = MS_FP32; p <= MS_MSAMP_O3; p++) {
            training.kernels = k;
            training.precision = p;
            training.framework = p % 2 == 0 ? MS_TORCH_2 : MS_TORCH_1_13;
            check_model(some[_i], &training, both[(k + p / 2 + _i) % 2]);
        }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* ---- every checkpoint, call by call -------------------------------------- */

static const char *const policies[] = {"none",
                                       "checkpoint:sqrt",
                                       "checkpoint:every=3",
                                       "checkpoint:each=2",
                                       "checkpoint:nested=2/1",
                                       "checkpoint:chen",
                                       "checkpoint:mincut",
                                       "checkpoint:first=2,variant=reentrant",
                                       "checkpoint:sequential=2",
                                       "checkpoint:selective",
                                       "checkpoint:sac",
                                       "checkpoint:sac,products=all",
                                       "checkpoint:full"};

static void add_set(const ms_program *program, uint32_t set, bool *may)
{
    if (set >= program->n_sets)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        may[program->set_item[i]] = true;
}

/* The storages that the calls of forward keep and hold, and those that the
 * training loop keeps. */
static bool *find_allowed(const run *r)
{
    const ms_graph *graph = r->result.graph;
    const ms_program *program = r->result.program;
    bool *may = marks(graph->n_storages, sizeof *may);
    for (uint32_t i = 0; i < graph->n_kept; i++)
        may[graph->kept[i]] = true;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb == MS_HOLD)
            add_set(program, call->set, may);
        if (call->verb != MS_RUN || call->run.pass != MS_FORWARD)
            continue;
        add_set(program, call->set, may);
        add_set(program, call->run.keep, may);
        uint32_t first = graph->out_at[graph->forward_at[call->unit]];
        uint32_t end = graph->out_at[graph->forward_at[call->unit + 1]];
        for (uint32_t o = first; call->run.keep == MS_ALL && o < end; o++)
            may[graph->out[o]] |=
                graph->storage_saved_end[graph->out[o]] != MS_NONE;
    }
    return may;
}

static void check_calls(run *r)
{
    const ms_graph *graph = r->result.graph;
    const bool *may = find_allowed(r);
    char name[MS_STORAGE_NAME];
    look(r, MS_MARK_AFTER_FORWARD);
    for (uint32_t i = 0; i < r->result.plan->n_rows; i++) {
        uint32_t s = r->result.plan->row[i].storage;
        bool of_forward = s != MS_NONE && s >= graph->n_persistent;
        ck_assert_msg(!of_forward || !r->alive[i] || may[s],
                      "%s: forward leaves %s behind", r->what,
                      ms_graph_storage_name(graph, s, name));
    }
}

START_TEST(every_checkpoint)
{
    static const int64_t precisions[] = {MS_BF16_MIXED, MS_AUTOCAST_BF16,
                                         MS_FP8};
    ms_training training;
    run r;
    ms_training_init(&training);
    for (uint32_t k = 0; k < N_KERNELS; k++)
        for (uint32_t c = 0; c < sizeof policies / sizeof *policies; c++) {
            training.kernels = MS_EAGER + k;
            training.precision = precisions[(k + c + (uint32_t)_i) % 3];
            if (open_run(&r, some[_i], &training, policies[c]))
                check_calls(&r);
        }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* ---- random state -------------------------------------------------------- */

/* On a CPU there is one random state per block, and it is all that forward
 * makes and that persists. */
START_TEST(state_is_named)
{
    ms_training training;
    uint32_t n = 0;
    run r;
    char name[MS_STORAGE_NAME];
    ms_training_init(&training);
    training.device = 1;
    training.precision = MS_FP32;
    ck_assert(open_run(&r, "gpt2", &training, "checkpoint:full"));
    look(&r, MS_MARK_AFTER_FORWARD);
    for (uint32_t i = 0; i < r.result.plan->n_rows; i++) {
        const ms_row *row = &r.result.plan->row[i];
        if (!r.alive[i] || row->storage >= r.result.graph->n_persistent ||
            r.result.plan->op[row->op].pass == MS_START)
            continue;
        ck_assert_str_eq(
            ms_graph_storage_name(r.result.graph, row->storage, name),
            "random_state");
        n++;
    }
    ck_assert_uint_eq(n, r.result.graph->n_blocks);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_checkpointed(void)
{
    Suite *suite = suite_create("checkpointed");
    TCase *tcase = tcase_create("checkpointed");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, every_model);
    tcase_add_loop_test(tcase, every_precision, 0, (int)N_SOME);
    tcase_add_loop_test(tcase, every_checkpoint, 0, (int)N_SOME);
    tcase_add_test(tcase, state_is_named);
    suite_add_tcase(suite, tcase);
    return suite;
}
