/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/search/fitlaunch.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/job/globalbatch.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what systems have --------------------------------------------------- */

/* A part of a policy in canonical spelling, between commas, and what says the
 * same there.  %u: the number of the part; %d: ranks that share states. */
typedef struct row {
    const char *part, *words;
} row;

#define RECOMPUTE "--recompute-granularity full --recompute-method "
static const row megatron[] = {
    {"ddp", ""},
    {"zero:1", "--use-distributed-optimizer"},
    {"impl=megatron", ""},
    {"tensor:%u", "--tensor-model-parallel-size %u"},
    {"sp", "--sequence-parallel"},
    {"context:%u", "--context-parallel-size %u"},
    {"expert:%u", "--expert-model-parallel-size %u"},
    {"etp=%u", "--expert-tensor-parallel-size %u"},
    {"pipeline:%u", "--pipeline-model-parallel-size %u"},
    {"chunks=%u", "--num-virtual-stages-per-pipeline-rank %u"},
    {"schedule=1f1b", ""},
    {"schedule=interleaved", ""},
    {"group=%u", "--microbatch-group-size-per-virtual-pipeline-stage %u"},
    {"account=embedding/loss", "--account-for-embedding-in-pipeline-split "
                               "--account-for-loss-in-pipeline-split"},
    {"checkpoint:none", ""},
    {"checkpoint:full", RECOMPUTE "uniform --recompute-num-layers 1"},
    {"checkpoint:every=%u", RECOMPUTE "uniform --recompute-num-layers %u"},
    {"checkpoint:first=%u", RECOMPUTE "block --recompute-num-layers %u"},
    {"checkpoint:selective", "--recompute-granularity selective"},
    {"swap:te=%u", "--cpu-offloading --cpu-offloading-num-layers %u"},
    {NULL, NULL}};

#define PARALLEL "--parallelism."
static const row torchtitan[] = {
    {"ddp", PARALLEL "data_parallel_shard_degree 1 " PARALLEL
                     "data_parallel_replicate_degree %d"},
    {"fsdp", PARALLEL "data_parallel_shard_degree %d"},
    {"tensor:%u", PARALLEL "tensor_parallel_degree %u"},
    {"sp", ""},
    {"context:%u", PARALLEL "context_parallel_degree %u"},
    {"expert:%u", PARALLEL "expert_parallel_degree %u"},
    {"etp=%u", PARALLEL "expert_tensor_parallel_degree %u"},
    {"pipeline:%u", PARALLEL "pipeline_parallel_degree %u"},
    {"chunks=%u", PARALLEL "pipeline_parallel_schedule Interleaved1F1B"},
    {"schedule=1f1b", PARALLEL "pipeline_parallel_schedule 1F1B"},
    {"schedule=zb-v", PARALLEL "pipeline_parallel_schedule ZBVZeroBubble"},
    {"schedule=dualpipev", PARALLEL "pipeline_parallel_schedule DualPipeV"},
    {"account=embedding/loss", ""},
    {"checkpoint:none", ""},
    {"checkpoint:full", "--activation_checkpoint.mode full"},
    {"checkpoint:sac", "--activation_checkpoint.mode selective "
                       "--activation_checkpoint.selective_ac_option op"},
    {NULL, NULL}};

typedef struct batch {
    uint64_t samples, micro; /* of a rank's step, of a micro-batch */
    uint32_t ranks;
    int64_t sequence;
    uint32_t stages, n_blocks;
} batch;

typedef void put_batch(const batch *of, bool pipelined, ms_text *words);

static void put_megatron(const batch *of, bool pipelined, ms_text *words)
{
    (void)pipelined;
    ms_text_add(words,
                " --micro-batch-size %" PRIu64 " --global-batch-size %" PRIu64,
                of->micro, of->samples * of->ranks);
    if (of->sequence > 0)
        ms_text_add(words, " --seq-length %" PRId64, of->sequence);
}

/* It cuts a rank's batch into micro-batches of a pipeline, and accumulates
 * gradients over a rank's batches without one. */
static void put_torchtitan(const batch *of, bool pipelined, ms_text *words)
{
    bool counted;
    if (pipelined) {
        ms_fitchoices_even(of->n_blocks, of->stages, &counted);
        ms_text_add(words,
                    " " PARALLEL "pipeline_parallel_microbatch_size %" PRIu64
                    " " PARALLEL "pipeline_parallel_layers_per_stage %u",
                    of->micro, (of->n_blocks + (counted ? 2 : 0)) / of->stages);
        if (!counted)
            ms_text_add(words, " " PARALLEL
                               "pipeline_parallel_first_stage_less_layers "
                               "0 " PARALLEL
                               "pipeline_parallel_last_stage_less_layers 0");
    }
    ms_text_add(words,
                " --training.local_batch_size %" PRIu64
                " --training.global_batch_size %" PRIu64,
                pipelined ? of->samples : of->micro, of->samples * of->ranks);
    if (of->sequence > 0)
        ms_text_add(words, " --training.seq_len %" PRId64, of->sequence);
}

static const struct {
    const char *system, *label, *hint;
    const row *rows;
    put_batch *put;
} systems[MS_FITLAUNCH_SYSTEMS] = {
    {"Megatron-LM", "megatron:", "zero:1", megatron, put_megatron},
    {"torchtitan", "titan:", "fsdp", torchtitan, put_torchtitan}};

/* ---- a part -------------------------------------------------------------- */

/* Is the part as the pattern says?  *number: what stands for %u. */
static bool is_like(const char *pattern, const char *part, size_t length,
                    uint64_t *number)
{
    const char *at = strstr(pattern, "%u");
    size_t before = at != NULL ? (size_t)(at - pattern) : strlen(pattern);
    if (length < before || strncmp(pattern, part, before) != 0)
        return false;
    if (at == NULL)
        return length == before;
    size_t digits = strspn(part + before, "0123456789");
    *number = strtoull(part + before, NULL, 10);
    return digits > 0 && before + digits == length;
}

static void fill(const char *words, uint64_t number, uint32_t ranks,
                 ms_text *text)
{
    for (; *words != '\0'; words++) {
        if (words[0] == '%' && (words[1] == 'u' || words[1] == 'd'))
            ms_text_u64(text, *++words == 'u' ? number : ranks);
        else
            ms_text_put(text, words, 1);
    }
}

/* false: the system does not have it. */
static bool put_part(const row *rows, const char *part, size_t length,
                     uint32_t ranks, ms_text *text)
{
    uint64_t number = 0;
    while (rows->part != NULL && !is_like(rows->part, part, length, &number))
        rows++;
    if (rows->part == NULL)
        return false;
    if (*rows->words != '\0')
        ms_text_add(text, "%s", text->length > 0 ? " " : "");
    fill(rows->words, number, ranks, text);
    return true;
}

static bool put_item(const row *rows, const char *item, uint32_t ranks,
                     ms_text *text)
{
    bool has = true;
    for (bool more = true; more;) {
        size_t length = strcspn(item, ",");
        has &= put_part(rows, item, length, ranks, text);
        more = item[length] == ',';
        item += length + more;
    }
    return has;
}

/* ---- a set-up ------------------------------------------------------------ */

static ms_err find_batch(const ms_fit *fit, const ms_fit_point *point,
                         const ms_job *job, batch *of, ms_fault *fault)
{
    const ms_policy_value *count =
        ms_policy_given(&job->spec, "microbatch", "count");
    const ms_policy_value *size =
        ms_policy_given(&job->spec, "microbatch", "size");
    MS_TRY(ms_globalbatch_ranks(job, &of->ranks, fault));
    of->samples = job->global_batch > 0 ? job->global_batch / of->ranks
                                        : ms_fitsetup_batch(fit, point);
    of->micro = of->samples;
    if (count != NULL && count->given)
        of->micro /= (uint64_t)count->number;
    if (size != NULL && size->given)
        of->micro = (uint64_t)size->number;
    if (fit->model.model.sequence_input)
        of->sequence = fit->model.training.sequence;
    of->n_blocks = fit->n_blocks;
    of->stages = ms_fitsetup_stages(fit, point);
    return MS_OK;
}

/* Kernels and the way of the optimizer's step are a system's own; a loss in
 * chunks and other numbers are not had by their arguments. */
static void put_settings(const ms_fit *fit, const ms_fit_point *point,
                         ms_text *cannot)
{
    static const ms_fit_axis_id axes[] = {MS_FIT_LOSS, MS_FIT_PRECISION};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        const char *value =
            ms_fitsetup_value(fit, point, axes[i], cannot->arena);
        if (value != NULL)
            ms_text_add(cannot, "%s%s=%s", cannot->length > 0 ? ", " : "",
                        strchr(ms_fitchoices_all[axes[i]].key, '.') + 1, value);
    }
}

/* Stages of unequal length are cut in other ways there. */
static bool has_stages(const batch *of)
{
    bool counted;
    return of->stages == 1 ||
           ms_fitchoices_even(of->n_blocks, of->stages, &counted);
}

static ms_err launch_on(uint32_t k, const ms_fit *fit,
                        const ms_fit_point *point, const ms_job *job,
                        const batch *of, ms_arena *arena,
                        const char **arguments, const char **lacks,
                        ms_fault *fault)
{
    ms_text words = {.arena = arena}, cannot = {.arena = arena};
    for (uint32_t i = 0; i < job->spec.n; i++) {
        ms_spec one = {.n = 1, .items = {job->spec.items[i]}};
        const char *item = ms_spec_print(&one, arena);
        if (item == NULL)
            return ms_fail_nomem(fault);
        if (strcmp(ms_policy_family(job->spec.items[i].policy), "microbatch") !=
                0 &&
            !put_item(systems[k].rows, item, of->ranks, &words))
            ms_text_add(&cannot, "%s%s", cannot.length > 0 ? ", " : "", item);
    }
    put_settings(fit, point, &cannot);
    if (!has_stages(of))
        ms_text_add(&cannot, "%sstages of %u/%u layers",
                    cannot.length > 0 ? ", " : "", of->n_blocks, of->stages);
    systems[k].put(of, ms_fitsetup_ranks(fit, point) > 1, &words);
    if (words.failed || cannot.failed)
        return ms_fail_nomem(fault);
    *arguments = words.bytes + (*words.bytes == ' ');
    *lacks = cannot.length > 0 ? cannot.bytes : NULL;
    return MS_OK;
}

static ms_err try_point(uint32_t k, const ms_fit *fit, uint32_t point,
                        ms_arena *arena, ms_fitlaunch *launch, bool is_chosen,
                        ms_fault *fault)
{
    const char *arguments = NULL, *lacks = NULL;
    ms_job job;
    batch of = {0};
    MS_TRY(ms_fitsetup_job(fit, &fit->all[point], arena, &job, fault));
    MS_TRY(find_batch(fit, &fit->all[point], &job, &of, fault));
    MS_TRY(launch_on(k, fit, &fit->all[point], &job, &of, arena, &arguments,
                     &lacks, fault));
    if (is_chosen)
        launch->cannot = lacks;
    if (lacks != NULL)
        return MS_OK;
    launch->point = point;
    launch->arguments = arguments;
    return MS_OK;
}

ms_err ms_fitlaunch_of(const ms_fit *fit, uint32_t chosen, ms_arena *arena,
                       ms_fitlaunch launch[MS_FITLAUNCH_SYSTEMS],
                       ms_fault *fault)
{
    for (uint32_t k = 0; k < MS_FITLAUNCH_SYSTEMS; k++) {
        launch[k] = (ms_fitlaunch){.system = systems[k].system,
                                   .label = systems[k].label,
                                   .hint = systems[k].hint,
                                   .point = MS_NONE};
        MS_TRY(try_point(k, fit, chosen, arena, &launch[k], true, fault));
        for (uint32_t i = 0; i < fit->n_rows && launch[k].point == MS_NONE; i++)
            MS_TRY(try_point(k, fit, fit->rows[i], arena, &launch[k], false,
                             fault));
    }
    return MS_OK;
}
