/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fit searches: a table per dimension, and the set-ups that they make of
 * a job. */

#include "tools/fit.h"

#include <stdio.h>
#include <string.h>

#define CHOICES(rows) (rows), (uint32_t)(sizeof(rows) / sizeof(rows)[0])
#define MOST_BLOCKS 128u  /* values of first=N, evenly spaced where more */
#define MOST_DIVISOR 64u  /* micro-batches; and as many as there are samples */
#define MOST_OPTIONS 300u /* of an axis: all of the above */
#define SPEC_TEXT 64u

static const ms_fit_choice checkpoints[] = {
    {.spec = "", .label = "none"},
    {.spec = "checkpoint:selective",
     .words = "recomputed attention cores",
     .label = "selective"},
    {.spec = "checkpoint:sac",
     .words = "checkpoints that keep every second matmul",
     .label = "sac"},
    {.spec = "checkpoint:first=%u",
     .words = "checkpoints of the first %u blocks",
     .values = MS_FIT_BLOCKS,
     .label = "first"},
    {.spec = "checkpoint:full",
     .words = "a checkpoint per block",
     .label = "full"},
    {.spec = "checkpoint:sqrt",
     .words = "checkpoints by the square root of the blocks",
     .label = "sqrt"},
    {.spec = "checkpoint:every=%u",
     .words = "a checkpoint every %u blocks",
     .values = MS_FIT_LENGTHS,
     .label = "every"},
};

static const ms_fit_choice micro_batches[] = {
    {.spec = ""},
    {.spec = "microbatch:%u",
     .words = "%u micro-batches",
     .values = MS_FIT_DIVISORS},
};

/* Of several GPUs; one has nothing to share. */
static const ms_fit_choice shares[] = {
    {.spec = "ddp", .words = "DDP"},
    {.spec = "zero:1", .words = "ZeRO stage 1"},
    {.spec = "zero:2", .words = "ZeRO stage 2"},
    {.spec = "zero:3", .words = "ZeRO stage 3"},
    {.spec = "fsdp", .words = "FSDP"},
};

static const ms_fit_choice offloads[] = {
    {.spec = ""},
    {.spec = "offload:optimizer", .words = "the optimizer on the host"},
    {.spec = "offload:optimizer/gradients",
     .words = "optimizer and gradients on the host"},
    {.spec = "offload:optimizer/params/gradients",
     .words = "all model states on the host"},
};

static const ms_fit_choice swaps[] = {
    {.spec = ""},
    {.spec = "swap:te=%u",
     .words = "activations of %u blocks swapped",
     .values = MS_FIT_EIGHTHS,
     .beside = "none"},
    {.spec = "swap:torchtune",
     .words = "all activations swapped (torchtune)",
     .beside = "none|full"},
    {.spec = "swap:save_on_cpu",
     .words = "all activations swapped (save_on_cpu)",
     .beside = "none|full"},
    {.spec = "swap:checkpoints",
     .words = "checkpoints swapped",
     .beside = "full|every"},
};

const ms_fit_dimension ms_fitspace_dimensions[MS_FIT_N_AXES] = {
    [MS_FIT_OFFLOAD] = {"offload", "offload", CHOICES(offloads)},
    [MS_FIT_SWAP] = {"swap", "swap", CHOICES(swaps)},
    [MS_FIT_CHECKPOINT] = {"checkpointing", "checkpoint", CHOICES(checkpoints)},
    [MS_FIT_MICROBATCH] = {"micro-batches", "microbatch",
                           CHOICES(micro_batches)},
    [MS_FIT_SHARE] = {"sharing", "ddp|zero|fsdp", CHOICES(shares)},
};

/* ---- the options of a dimension ------------------------------------------ */

static void add_option(ms_fit_axis *axis, const ms_fit_choice *choice,
                       uint32_t value)
{
    const ms_fit_option *last = &axis->options[axis->n - (axis->n > 0)];
    if (axis->n > 0 && last->choice == choice && last->value == value)
        return;
    axis->options[axis->n++] = (ms_fit_option){choice, value};
}

/* Of k that cut n blocks into as many segments, the least: no segment is
 * longer than it need be. */
static void add_lengths(ms_fit_axis *axis, const ms_fit_choice *choice,
                        uint32_t n)
{
    for (uint32_t k = 2; k <= n && axis->n + MOST_BLOCKS < MOST_OPTIONS; k++)
        if ((n + k - 1) / k < (n + k - 2) / (k - 1))
            add_option(axis, choice, k);
}

static void add_blocks(ms_fit_axis *axis, const ms_fit_choice *choice,
                       uint32_t n)
{
    uint64_t most = n > 0 ? n - 1 : 0;
    uint64_t steps = most < MOST_BLOCKS ? most : MOST_BLOCKS;
    for (uint64_t i = 1; i <= steps; i++)
        add_option(axis, choice, (uint32_t)(most * i / steps));
}

static void add_eighths(ms_fit_axis *axis, const ms_fit_choice *choice,
                        uint32_t n)
{
    for (uint64_t i = 1; i <= 7 && n > 1; i++)
        add_option(axis, choice, (uint32_t)((n * i + 7) / 8));
    if (n > 8)
        add_option(axis, choice, n - 1);
}

static void add_divisors(ms_fit_axis *axis, const ms_fit_choice *choice,
                         uint64_t batch)
{
    for (uint32_t k = 2; k <= MOST_DIVISOR && k <= batch; k++)
        if (batch % k == 0)
            add_option(axis, choice, k);
    if (batch > MOST_DIVISOR && batch <= UINT32_MAX)
        add_option(axis, choice, (uint32_t)batch);
}

/* The samples of a model of fixed batch cannot be divided. */
static void add_choice(const ms_fit *fit, const ms_fit_choice *choice,
                       ms_fit_axis *axis)
{
    const ms_result *model = &fit->model;
    uint64_t batch = model->model.fixed_batch != 0 ? 1 : model->shape.batch;

    switch (choice->values) {
    case MS_FIT_ONE:
        add_option(axis, choice, 0);
        break;
    case MS_FIT_LENGTHS:
        add_lengths(axis, choice, fit->n_blocks);
        break;
    case MS_FIT_BLOCKS:
        add_blocks(axis, choice, fit->n_blocks);
        break;
    case MS_FIT_EIGHTHS:
        add_eighths(axis, choice, fit->n_blocks);
        break;
    case MS_FIT_DIVISORS:
        add_divisors(axis, choice, batch);
        break;
    }
}

static bool is_given(const ms_spec *spec, const char *policies)
{
    for (uint32_t i = 0; i < spec->n; i++)
        if (ms_options_one_of(policies, spec->items[i].policy->name))
            return true;
    return false;
}

static ms_err open_axis(ms_fit *fit, ms_fit_axis_id id, ms_fault *fault)
{
    static const ms_fit_choice nothing = {.spec = ""};
    const ms_fit_dimension *dimension = &ms_fitspace_dimensions[id];
    ms_fit_axis *axis = &fit->axes[id];
    axis->n = 0;
    axis->options =
        ms_arena_take(fit->arena, MOST_OPTIONS, sizeof *axis->options);
    if (axis->options == NULL)
        return ms_fail_nomem(fault);
    axis->fixed = fit->frozen[id] ||
                  is_given(&fit->job->spec, dimension->policies) ||
                  (id == MS_FIT_SHARE && fit->job->gpus <= 1);
    if (axis->fixed)
        add_option(axis, &nothing, 0);
    for (uint32_t i = 0; i < dimension->n_choices && !axis->fixed; i++)
        add_choice(fit, &dimension->choices[i], axis);
    return MS_OK;
}

/* ---- the set-ups --------------------------------------------------------- */

static const ms_fit_option *
option_of(const ms_fit *fit, const ms_fit_point *point, ms_fit_axis_id axis)
{
    return &fit->axes[axis].options[point->option[axis]];
}

static bool is_legal(const ms_fit *fit, const ms_fit_point *point)
{
    const char *beside = option_of(fit, point, MS_FIT_SWAP)->choice->beside;
    const char *label = option_of(fit, point, MS_FIT_CHECKPOINT)->choice->label;
    return beside == NULL || label == NULL || ms_options_one_of(beside, label);
}

/* Counts up, the last axis first; false behind the last set-up. */
static bool next_point(const ms_fit *fit, ms_fit_point *point)
{
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        if (++point->option[a] < fit->axes[a].n)
            return true;
        point->option[a] = 0;
    }
    return false;
}

static ms_err list_points(ms_fit *fit, ms_fault *fault)
{
    ms_fit_point point = {0};
    uint32_t n = 0;
    do
        n += is_legal(fit, &point);
    while (next_point(fit, &point));
    fit->all = ms_arena_take(fit->arena, n, sizeof *fit->all);
    if (fit->all == NULL)
        return ms_fail_nomem(fault);
    fit->n_all = 0;
    do
        if (is_legal(fit, &point))
            fit->all[fit->n_all++] = point;
    while (next_point(fit, &point));
    return MS_OK;
}

/* As the checkpoint policy counts them: blocks, or units where there are
 * none. */
static uint32_t count_blocks(const ms_graph *graph)
{
    uint32_t n = 0;
    if (graph->n_blocks == 0)
        return graph->loss_unit < graph->n_units ? graph->loss_unit
                                                 : graph->n_units;
    for (uint32_t u = 0; u < graph->n_units; u++)
        n += graph->unit_block[u] != MS_NONE &&
             (u == 0 || graph->unit_block[u] != graph->unit_block[u - 1]);
    return n < graph->n_blocks ? n : graph->n_blocks;
}

/* The model by itself, whatever its policies. */
static ms_err look_at_model(ms_fit *fit, ms_fault *fault)
{
    ms_job job = *fit->job;
    job.gpus = 0;
    job.spec = (ms_spec){0};
    MS_TRY(ms_points_lower(fit->points, &fit->seat, &job, &fit->model, fault));
    fit->n_blocks = count_blocks(&fit->model.graph);
    return MS_OK;
}

/* What every set-up leaves to its pool at most: the ranks share as the given
 * policies say, else all of them; groups among them would have communicators
 * of their own, none has less than one of them all. */
static ms_err look_outside(ms_fit *fit, ms_fault *fault)
{
    ms_result given = fit->model;
    ms_fault own = {.caret = -1};
    ms_err err = ms_pipeline_shape(fit->job, &given, &own);
    MS_TRY(ms_fail_but_refusal(err, &own, fault));
    if (err != MS_OK)
        given.shape = (ms_shape){.data_ranks = fit->job->gpus};
    MS_TRY(ms_overheads_find(fit->job->device, &fit->job->training,
                             &given.shape, &given.graph, &fit->outside, fault));
    bool nccl = fit->outside.nccl_bytes > 0;
    fit->context_bytes = fit->outside.kernels_bytes + fit->outside.nccl_bytes;
    if (fit->capacity_bytes > fit->context_bytes)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--memory", "give more than that",
                   "the CUDA context%s alone take%s %s",
                   nccl ? " and NCCL" : "", nccl ? "" : "s",
                   ms_quantity_size(fit->context_bytes).s);
}

ms_err ms_fitspace_open(ms_fit *fit, ms_fault *fault)
{
    MS_TRY(look_at_model(fit, fault));
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        MS_TRY(open_axis(fit, (ms_fit_axis_id)a, fault));
    fit->capacity_bytes = fit->job->memory_bytes > 0
                              ? fit->job->memory_bytes
                              : fit->job->device->memory_bytes;
    MS_TRY(look_outside(fit, fault));
    return list_points(fit, fault);
}

/* ---- a set-up as a policy and in words ----------------------------------- */

/* Puts the value where the pattern says %u. */
static void fill(const char *pattern, uint32_t value, ms_text *text)
{
    const char *at = strstr(pattern, "%u");
    if (at == NULL) {
        ms_text_add(text, "%s", pattern);
        return;
    }
    ms_text_put(text, pattern, (size_t)(at - pattern));
    ms_text_u64(text, value);
    ms_text_add(text, "%s", at + 2);
}

ms_err ms_fitspace_spec(const ms_fit *fit, const ms_fit_point *point,
                        ms_arena *arena, ms_spec *spec, ms_fault *fault)
{
    *spec = fit->job->spec;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        const ms_fit_option *option = option_of(fit, point, (ms_fit_axis_id)a);
        ms_text words = {.arena = arena};
        if (*option->choice->spec == '\0')
            continue;
        fill(option->choice->spec, option->value, &words);
        if (words.failed)
            return ms_fail_nomem(fault);
        MS_TRY(ms_spec_parse(words.bytes, arena, spec, fault));
    }
    return MS_OK;
}

void ms_fitspace_part(const ms_fit *fit, const ms_fit_point *point,
                      ms_fit_axis_id axis, ms_text *text)
{
    const ms_fit_option *option = option_of(fit, point, axis);
    if (option->choice->words != NULL)
        fill(option->choice->words, option->value, text);
}

void ms_fitspace_words(const ms_fit *fit, const ms_fit_point *point,
                       ms_text *text)
{
    bool more = false;
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;) {
        ms_fit_axis_id axis = (ms_fit_axis_id)a;
        if (option_of(fit, point, axis)->choice->words == NULL)
            continue;
        ms_text_add(text, "%s", more ? ", " : "");
        ms_fitspace_part(fit, point, axis, text);
        more = true;
    }
}

uint32_t ms_fitspace_kind(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t kind = 0;
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++) {
        const ms_fit_dimension *dimension = &ms_fitspace_dimensions[a];
        const ms_fit_choice *choice =
            option_of(fit, point, (ms_fit_axis_id)a)->choice;
        uint32_t row = 0;
        while (row < dimension->n_choices && choice != &dimension->choices[row])
            row++;
        kind = kind * (dimension->n_choices + 1) + row;
    }
    return kind;
}

uint32_t ms_fitspace_other(const ms_fit *fit, uint32_t point,
                           ms_fit_axis_id axis, uint16_t to)
{
    ms_fit_point wanted = fit->all[point];
    wanted.option[axis] = to;
    for (uint32_t i = 0; i < fit->n_all; i++)
        if (memcmp(fit->all[i].option, wanted.option, sizeof wanted.option) ==
            0)
            return i;
    return MS_NONE;
}

void ms_fitspace_close(ms_fit *fit)
{
    ms_points_leave(fit->points, &fit->seat);
}
