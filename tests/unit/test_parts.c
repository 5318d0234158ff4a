/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of which each of the ranks that split layers sends its part: half
 * the bytes where there are two, room for so many, and behind each message an
 * all-gather that makes the whole, in memory that the part leaves. */
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tools/job/settings.h"

#include <check.h>
#include <stdio.h>

/* Two stages hand on 8 tokens of 16 features in 2 bytes, and their gradient,
 * each twice. */
static const char model[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 4, "
    "\"hidden\": 16, \"heads\": 2, \"dropout\": 0, \"vocab\": 32, "
    "\"positions\": 8}}";
#define WHOLE (UINT64_C(8) * 16 * 2)
#define MESSAGES 4u

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static void run(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 2;
    job.training.sequence = 8;
    ms_err err =
        inlined_step(model, policy, &job, &keep, &trial, &result, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", policy, fault.what);
}

/* The sends of a plan; each has so many bytes. */
static uint32_t count_sends(const ms_plan *plan, uint64_t bytes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        if (plan->transfers[i].kind != MS_TRANSFER_SEND)
            continue;
        ck_assert_uint_eq(plan->transfers[i].bytes, bytes);
        n++;
    }
    return n;
}

/* The row's whole is made by the op that ends it, an all-gather, which begins
 * when the message has come. */
static void check_part(uint32_t row)
{
    const ms_timeline *line = result.line;
    const ms_plan *plan = line->plan;
    uint32_t s = plan->row[row].storage, gather = 0, i = 0;
    ck_assert_uint_eq(plan->row[row].bytes, WHOLE / 2);
    while (plan->release[i] != row)
        i++;
    while (plan->op[gather + 1].release_at <= i)
        gather++;
    uint32_t whole = plan->op[gather].alloc_at;
    ck_assert_uint_eq(plan->op[gather].of, MS_NONE);
    ck_assert_uint_eq(plan->op[gather].rank, plan->op[plan->row[row].op].rank);
    ck_assert_uint_eq(plan->row[whole].storage, s);
    ck_assert_uint_eq(plan->row[whole].bytes, WHOLE);
    ck_assert_uint_eq(plan->row[whole].op, gather);
    bool waits = false;
    for (uint32_t k = plan->wait_at[gather]; k < plan->wait_at[gather + 1];
         k++) {
        const ms_plan_op *before = &plan->op[plan->wait[k]];
        waits |= before->rank != plan->op[gather].rank;
        ck_assert_uint_le(line->end_ns[plan->wait[k]], line->start_ns[gather]);
    }
    ck_assert(waits);
}

START_TEST(parts_are_sent_and_gathered)
{
    const char *const orders[] = {"", ",schedule=gpipe", ",chunks=2,overlap=0"};
    for (uint32_t o = 0; o < 3; o++) {
        char policy[128];
        uint32_t parts = 0, n = o == 2 ? 3 * MESSAGES : MESSAGES;
        snprintf(policy, sizeof policy, "tensor:2+pipeline:2%s+microbatch:2",
                 orders[o]);
        run(policy);
        ck_assert_uint_eq(count_sends(result.line->plan, WHOLE), n);
        snprintf(policy, sizeof policy,
                 "tensor:2+pipeline:2%s,messages=parts+microbatch:2",
                 orders[o]);
        run(policy);
        const ms_plan *plan = result.line->plan;
        ck_assert_uint_eq(count_sends(plan, WHOLE / 2), n);
        for (uint32_t r = 0; r < plan->n_rows; r++)
            if (plan->row[r].category == MS_COMMUNICATION &&
                plan->row[r].storage != MS_NONE &&
                plan->row[r].bytes == WHOLE / 2 &&
                plan->op[plan->row[r].op].of == MS_NONE) {
                check_part(r);
                parts++;
            }
        ck_assert_uint_eq(parts, n);
    }
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}
END_TEST

Suite *suite_parts(void)
{
    Suite *suite = suite_create("parts");
    TCase *tcase = tcase_create("parts");
    tcase_add_test(tcase, parts_are_sent_and_gathered);
    suite_add_tcase(suite, tcase);
    return suite;
}
