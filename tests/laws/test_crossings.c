/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Job after job at random, over all axes at once: models, degrees, schedules,
 * what is recomputed, moved and shared, precisions, optimizers, first steps,
 * kernel sets, pools.  Each runs, and its books are right, or it is refused in
 * words about what the user has typed: never for what memsim has made of it. */
#include "graphs/model.h"
#include "graphs/training.h"
#include "sim/plan.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 1024u
#define MOST_WORDS 64u
#define MANY(list) (sizeof(list) / sizeof *(list))

static ms_arena keep, trial;

typedef struct job_text {
    laws_random random;
    char words[LONGEST];
    uint32_t ranks; /* of all degrees together */
    uint32_t micro_batches;
    bool has_experts;
} job_text;

/* ---- the axes ------------------------------------------------------------ */

#define SMALL " --set model.layers=%u --sequence 64"
static const char *const models[] = {"gpt2" SMALL,       "llama-2-7b" SMALL,
                                     "qwen2-7b" SMALL,   "mixtral-8x7b" SMALL,
                                     "bert-base" SMALL,  "t5-small" SMALL,
                                     "gemma-2-2b" SMALL, "phi-2" SMALL};
#define WITH_EXPERTS 3u

static const char *const schedules[] = {"",
                                        ",schedule=gpipe",
                                        ",schedule=zb-h1",
                                        ",schedule=zb-h2",
                                        ",schedule=zb-v",
                                        ",schedule=v-half",
                                        ",schedule=v-min",
                                        ",schedule=dualpipev",
                                        ",impl=torch",
                                        ",schedule=zb-h1,impl=torch",
                                        ",deallocate=0",
                                        ",schedule=v-half,overlap=0",
                                        ",schedule=zb-h2,overlap=0"};
static const char *const checkpoints[] = {"full",
                                          "sqrt",
                                          "every=2",
                                          "each=2",
                                          "first=1",
                                          "sequential=2",
                                          "layers=0/1",
                                          "nested=4/2/1",
                                          "recursive",
                                          "chen",
                                          "optimal,budget=60GiB",
                                          "mincut",
                                          "knapsack,share=50",
                                          "revolve=2",
                                          "selective",
                                          "modules=layernorm",
                                          "modules=core_attn",
                                          "modules=mlp",
                                          "save=aten.mm",
                                          "sac",
                                          "full,micro_batches=0",
                                          "full,variant=reentrant",
                                          "full,early_stop=0"};
static const char *const shares[] = {
    "ddp",
    "zero:1",
    "zero:2",
    "zero:3",
    "zero:1,impl=megatron",
    "zero:1,impl=megatron,overlap_grad_reduce=1",
    "zero:1,impl=megatron,overlap_param_gather=1",
    "fsdp",
    "fsdp:impl=1",
    "fsdp:reshard=no",
    "fsdp:sync=last",
    "fsdp:code=megatron",
    "deepspeed:1",
    "deepspeed:2",
    "deepspeed:3"};
static const char *const moves[] = {"offload:optimizer",
                                    "offload:optimizer/params",
                                    "offload:optimizer/params/gradients",
                                    "offload:optimizer,impl=megatron",
                                    "offload:optimizer,delayed=1",
                                    "offload:optimizer,percent=50",
                                    "offload:optimizer,to=nvme",
                                    "swap:save_on_cpu",
                                    "swap:vdnn=all",
                                    "swap:te=1",
                                    "swap:torchtune",
                                    "swap:trl",
                                    "swap:megatron,modules=core_attn",
                                    "swap:checkpoints",
                                    "swap:layers",
                                    "swap:belady,budget=60GiB",
                                    "swap:superneurons,budget=60GiB",
                                    "dtr:budget=60GiB",
                                    "uvm",
                                    "uvm:optimizer"};
static const char *const precisions[] = {
    "fp32", "bf16", "autocast-bf16", "fp16-mixed", "fp8", "bf16-remainders"};
static const char *const optimizers[] = {
    "sgd",     "adam", "adam-8bit", "muon",      "galore",
    "shampoo", "soap", "sophia",    "adafactor", "lion"};
static const char *const kernels[] = {"eager",    "fused",    "sdpa",
                                      "megatron", "nanotron", "efficient"};
static const char *const more[] = {"--set training.step=first",
                                   "--set training.zero_grad=keep",
                                   "--set training.clip_norm=1",
                                   "--set training.mode=inference",
                                   "--set training.optimizer_in_backward=yes",
                                   "--set lora.rank=8",
                                   "--framework torch-1.13",
                                   "--framework torch-2.0",
                                   "--allocator exact",
                                   "--book device",
                                   "--wall"};

static void put(job_text *job, const char *before, const char *part)
{
    size_t used = strlen(job->words);
    ck_assert_uint_lt(used + strlen(before) + strlen(part) + 1, LONGEST);
    snprintf(job->words + used, LONGEST - used, "%s%s", before, part);
}

static void put_degree(job_text *job, const char *before, uint32_t degree)
{
    char text[16];
    snprintf(text, sizeof text, "%u", degree);
    put(job, before, text);
}

/* One of the list, in so many of a hundred jobs; false: none. */
static bool maybe(job_text *job, uint32_t percent, const char *before,
                  const char *const *list, size_t n)
{
    if (!laws_chance(&job->random, percent))
        return false;
    put(job, before, list[laws_below(&job->random, (uint32_t)n)]);
    return true;
}

static void put_degrees(job_text *job)
{
    static const uint32_t degrees[] = {1, 2, 2, 4};
    laws_random *random = &job->random;
    job->ranks = 1;
    if (laws_chance(random, 35)) {
        uint32_t t = degrees[laws_below(random, 3)];
        put_degree(job, " -p tensor:", t);
        put(job, "", laws_chance(random, 50) ? ",sp" : "");
        job->ranks *= t;
    }
    if (laws_chance(random, 40)) {
        uint32_t p = degrees[laws_below(random, MANY(degrees))];
        put_degree(job, " -p pipeline:", p);
        maybe(job, 80, "", schedules, MANY(schedules));
        job->ranks *= p;
    }
    if (laws_chance(random, 15)) {
        put_degree(job, " -p context:", degrees[laws_below(random, 2)]);
        job->ranks *= strstr(job->words, "context:2") ? 2 : 1;
        put(job, "", laws_chance(random, 50) ? ",mode=a2a" : "");
    }
}

static void write_job(job_text *job, uint32_t seed)
{
    char model[64];
    uint32_t data = 1, which;
    *job = (job_text){.random = {seed}, .micro_batches = 1};
    which = laws_below(&job->random, MANY(models));
    snprintf(model, sizeof model, models[which],
             4 + laws_below(&job->random, 6));
    put(job, model, "");
    put_degrees(job);
    if (laws_chance(&job->random, 40)) {
        job->micro_batches = 1 + laws_below(&job->random, 6);
        put_degree(job, " -p microbatch:", job->micro_batches);
    }
    maybe(job, 45, " -p checkpoint:", checkpoints, MANY(checkpoints));
    if (maybe(job, 50, " -p ", shares, MANY(shares)))
        data = 1u << laws_below(&job->random, 3);
    if (which == WITH_EXPERTS && laws_chance(&job->random, 50))
        put_degree(job, " -p expert:", data);
    maybe(job, 30, " -p ", moves, MANY(moves));
    maybe(job, 30, " --precision ", precisions, MANY(precisions));
    maybe(job, 25, " --optimizer ", optimizers, MANY(optimizers));
    maybe(job, 40, " --kernels ", kernels, MANY(kernels));
    maybe(job, 40, " ", more, MANY(more));
    put_degree(job, " --gpus ", job->ranks * data);
    put_degree(job, " --batch ",
               job->micro_batches * (1 + laws_below(&job->random, 2)));
}

/* ---- the law ------------------------------------------------------------- */

static ms_err run(const char *words, ms_job *job, ms_result *result,
                  ms_fault *fault)
{
    const char *word[MOST_WORDS];
    uint32_t n = 0;
    ms_arguments *arguments = ms_arena_take(&keep, 1, sizeof *arguments);
    char *line = ms_arena_text(&keep, words, strlen(words));
    for (char *w = strtok(line, " "); w != NULL; w = strtok(NULL, " ")) {
        ck_assert_uint_lt(n, MOST_WORDS);
        word[n++] = w;
    }
    MS_TRY(ms_options_parse(MS_FOR_RUN, word, n, &keep, arguments, fault));
    MS_TRY(ms_settings_read(arguments, &keep, job, fault));
    MS_TRY(ms_jobway_read(job, &keep, result, fault));
    MS_TRY(ms_jobway_lower(job, &keep, result, fault));
    return ms_jobway_step(job, &trial, result, fault);
}

/* The level of each rank's device, from what is allocated and freed: never
 * below nothing, its highest is the peak, its last what the step leaves. */
static void check_levels(const ms_timeline *line)
{
    const ms_plan *plan = line->plan;
    uint32_t n_ranks = plan->n_ranks;
    uint64_t *level = ms_arena_take(&trial, n_ranks, sizeof *level);
    uint64_t *peak = ms_arena_take(&trial, n_ranks, sizeof *peak);
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        uint64_t bytes = plan->row[event->row].bytes;
        uint32_t r = plan->op[event->op_act >> 1].rank;
        if (plan->row[event->row].pool != MS_DEVICE_POOL)
            continue;
        if ((event->op_act & 1) == 0) {
            ck_assert_uint_ge(level[r], bytes);
            level[r] -= bytes;
            continue;
        }
        level[r] += bytes;
        peak[r] = level[r] > peak[r] ? level[r] : peak[r];
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        const ms_level *booked = &line->ranks[r].pool[MS_DEVICE_POOL];
        ck_assert_uint_eq(peak[r], booked->peak_bytes);
        ck_assert_uint_eq(level[r], booked->now_bytes);
    }
}

/* What is wrong with what memsim made, not with what was typed, names an op, a
 * call or a row of it. */
static bool blames_itself(const ms_fault *fault)
{
    return strstr(fault->what, "which no backward has made") ||
           strstr(fault->what, "at this point of the program") ||
           strstr(fault->what, "of another rank makes") ||
           strstr(fault->what, "a deadlock");
}

/* True: it ran. */
static bool check_job(const char *words)
{
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    bool ran = run(words, &job, &result, &fault) == MS_OK;
    if (ran) {
        check_levels(result.line);
    } else {
        ck_assert_msg(!blames_itself(&fault), "%s\n%s: %s", words, fault.where,
                      fault.what);
        ck_assert_msg(fault.err == MS_EUSAGE || fault.err == MS_EINPUT ||
                          fault.err == MS_EINFEASIBLE,
                      "%s\n%s: %s", words, fault.where, fault.what);
        ck_assert_msg(fault.hint[0] != '\0', "%s\n%s: %s: no hint", words,
                      fault.where, fault.what);
    }
    ms_arena_reset(&keep);
    ms_arena_reset(&trial);
    return ran;
}

#define N_PARTS 4
#define JOBS_PER_PART 500u

START_TEST(all_axes)
{
    uint32_t ran = 0;
    for (uint32_t i = 0; i < JOBS_PER_PART; i++) {
        job_text job;
        laws_seed = (uint32_t)_i * JOBS_PER_PART + i;
        write_job(&job, (uint32_t)laws_seed);
        ran += check_job(job.words);
    }
    ck_assert_uint_gt(4 * ran, JOBS_PER_PART); /* many contradict each other */
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

/* Of each optimizer the first step, which makes its states, and others, in
 * which the host has them or the device. */
START_TEST(first_steps)
{
    static const char *const offloads[] = {
        "", " -p offload:optimizer", " -p offload:optimizer,impl=megatron"};
    for (size_t i = 0; i < MANY(optimizers) * MANY(offloads); i++) {
        char words[LONGEST];
        snprintf(words, sizeof words,
                 "gpt2 --set model.layers=2 --optimizer %s%s",
                 optimizers[i / MANY(offloads)], offloads[i % MANY(offloads)]);
        bool ran = check_job(words);
        ck_assert_msg(ran || i % MANY(offloads) > 0, "%s", words);
        strcat(words, " --set training.step=first");
        ck_assert_msg(check_job(words) == ran, "%s", words);
    }
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_crossings(void)
{
    Suite *suite = suite_create("crossings");
    TCase *tcase = tcase_create("crossings");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, all_axes, 0, N_PARTS);
    tcase_add_test(tcase, first_steps);
    suite_add_tcase(suite, tcase);
    return suite;
}
