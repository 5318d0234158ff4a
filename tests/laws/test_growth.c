/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nobody keeps a pointer into a table that may grow: here arrays move whenever
 * they grow and overwrite what they leave, and every pair of policies must
 * still write the same program. AddressSanitizer names who looks at memory that
 * was left. */
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <string.h>

static const char model[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 4, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}";

static const char *const parts[] = {
    "microbatch:2",
    "checkpoint:sqrt",
    "checkpoint:full,variant=reentrant",
    "checkpoint:sac",
    "checkpoint:selective",
    "checkpoint:auto,budget=900KiB",
    "ddp:dp=4",
    "zero:1,dp=4,impl=megatron",
    "zero:1,dp=4,impl=megatron,overlap_grad_reduce=0",
    "zero:1,dp=4,impl=megatron,overlap_param_gather=1",
    "zero:2,dp=3",
    "zero:3,dp=4,prefetch=3",
    "zero:1,dp=4,impl=deepspeed",
    "zero:2,dp=3,impl=deepspeed,reduce_bucket_size=700,overlap_comm=1",
    "zero:3,dp=4,impl=deepspeed,prefetch_bucket_size=2000",
    "fsdp:dp=4,reshard_ranks=2",
    "fsdp:impl=1,dp=4",
    "swap:save_on_cpu",
    "swap:vdnn=all",
    "swap:vdnn=dyn",
    "swap:te=2",
    "swap:torchtune",
    "swap:checkpoints",
    "swap:layers",
    "swap:megatron,modules=core_attn/attn_proj,min=16B",
    "swap:capuchin,budget=900KiB",
    "swap:belady,budget=900KiB",
    "swap:superneurons,budget=900KiB",
    "swap:auto,budget=900KiB",
    "offload:optimizer",
    "offload:optimizer,impl=deepspeed",
    "offload:optimizer/gradients",
    "offload:optimizer/params/gradients,to=nvme,tile=100",
    "uvm",
};
#define N_PARTS (sizeof parts / sizeof *parts)

static ms_arena keep, trial;

/* The program's text, or the message of the refusal. */
static const char *outcome(const char *policy)
{
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    ms_expand_opts opts;
    ms_text text = {.arena = &keep};
    ms_settings_init(&job);
    job.model = "grown";
    job.training.batch = 4;
    ms_err err = ms_read_model_bytes("grown", model, strlen(model), NULL, 0,
                                     &trial, &result.model, &fault);
    result.training = job.training;
    if (err == MS_OK)
        err = ms_resolve_training(&result.training, &result.model, &fault);
    if (err == MS_OK)
        err = ms_dag_order(&result.model, &trial, &fault);
    ck_assert_int_eq(err, MS_OK);
    err = ms_spec_parse(policy, &trial, &job.spec, &fault);
    if (err == MS_OK)
        err = ms_jobway_lower(&job, &trial, &result, &fault);
    if (err == MS_OK)
        err = ms_jobprogram_make(&job, &trial, &opts, &result, &fault);
    if (err == MS_OK)
        ms_dump_program(result.graph, result.program, &text);
    else
        ms_text_add(&text, "%s: %s", fault.where, fault.what);
    ck_assert(!text.failed);
    ms_arena_free(&trial);
    trial = (ms_arena){0};
    return text.bytes;
}

static void check_pair(const char *policy)
{
    const char *plain = outcome(policy);
    ms_arena_move_always(true);
    const char *moved = outcome(policy);
    ms_arena_move_always(false);
    const char *why = differ_texts(policy, moved, plain);
    ck_assert_msg(why == NULL, "%s", why);
    ms_arena_reset(&keep);
}

/* The order of the names does not matter, because the spec is sorted. */
START_TEST(pairs_of_policies)
{
    char policy[320];
    check_pair(parts[_i]);
    for (size_t j = (size_t)_i + 1; j < N_PARTS; j++) {
        strcpy(policy, parts[_i]);
        strcat(policy, "+");
        strcat(policy, parts[j]);
        check_pair(policy);
    }
    ms_arena_free(&keep);
}
END_TEST

/* What is added to a fork of a program changes neither its original nor its
 * other forks. */
START_TEST(forks_stand_side_by_side)
{
    ms_fault fault = {0};
    ms_program from = {.n_frames = 1, .n_ranks = 1, .n_micro_batches = 1};
    ms_program fork;
    uint32_t set, buffer;
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(ms_program_add_set(&from, &i, 1, &keep, &set, &fault),
                         MS_OK);
    ck_assert_int_eq(ms_program_add_buffer(&from, (ms_buffer){.bytes = 7},
                                           &keep, &buffer, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_program_fork(&from, &keep, &fork, &fault), MS_OK);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t other = 5000 + i;
        ck_assert_int_eq(ms_program_add_set(&from, &i, 1, &keep, &set, &fault),
                         MS_OK);
        ck_assert_int_eq(
            ms_program_add_set(&fork, &other, 1, &keep, &set, &fault), MS_OK);
        ck_assert_uint_eq(set, 100 + i);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(from.set_item[from.set_at[100 + i]], i);
        ck_assert_uint_eq(fork.set_item[fork.set_at[100 + i]], 5000 + i);
    }
    ck_assert_uint_eq(fork.buffers[0].bytes, 7);
    ck_assert_ptr_ne(fork.buffers, from.buffers);
    ms_arena_free(&keep);
}
END_TEST

Suite *suite_growth(void)
{
    Suite *suite = suite_create("growth");
    TCase *tcase = tcase_create("growth");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, pairs_of_policies, 0, (int)N_PARTS);
    tcase_add_test(tcase, forks_stand_side_by_side);
    suite_add_tcase(suite, tcase);
    return suite;
}
