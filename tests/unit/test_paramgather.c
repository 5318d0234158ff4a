/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zero:1,impl=megatron,overlap_param_gather: updated parameters are gathered
 * beside the next forward, each once, and not behind the update. */
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

static const ms_result *run(const char *policies, const char *more)
{
    return truth_run("gpt2 --kernels megatron --sequence 256 --batch 4 -p "
                     "microbatch:4+%szero:1,dp=8,impl=megatron%s "
                     "--allocator exact",
                     policies, more);
}

/* The bytes of weights that a rank's gathers name; early: all of these stand
 * before its first backward. */
static uint64_t gathered(const ms_result *result, uint16_t rank, bool *early)
{
    const ms_program *program = result->program;
    uint64_t bytes = 0;
    bool back = false;
    *early = true;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->rank != rank)
            continue;
        back |= call->verb == MS_RUN && call->run.pass != MS_FORWARD;
        if (call->verb != MS_GATHER)
            continue;
        *early &= !back;
        for (uint32_t k = program->set_at[call->set];
             k < program->set_at[call->set + 1]; k++)
            bytes += result->graph->storage_bytes[program->set_item[k]];
    }
    return bytes;
}

static void compare(const char *policies, uint16_t rank)
{
    bool early, late;
    const ms_result *behind = run(policies, "");
    uint64_t all = gathered(behind, rank, &late);
    uint64_t peak = behind->report->ranks[rank].peak.allocated_bytes;
    uint64_t comm = behind->report->ranks[rank].comm_bytes;
    const ms_result *beside = run(policies, ",overlap_param_gather=1");
    ck_assert_uint_eq(gathered(beside, rank, &early), all);
    ck_assert_uint_gt(all, 0);
    ck_assert(early);
    ck_assert(!late);
    ck_assert_uint_eq(beside->report->ranks[rank].peak.allocated_bytes, peak);
    ck_assert_uint_eq(beside->report->ranks[rank].comm_bytes, comm);
}

START_TEST(beside_forward)
{
    truth_begin();
    compare("", 0);
    compare("tensor:2,sp+", 0);
    for (uint16_t rank = 0; rank < 2; rank++)
        compare("pipeline:2+", rank);
    truth_end();
}
END_TEST

static uint64_t exposed(const char *more)
{
    return run("", more)->report->ranks[0].time.exposed_comm_ns;
}

START_TEST(hides_time)
{
    truth_begin();
    uint64_t behind = exposed("");
    ck_assert_uint_lt(exposed(",overlap_param_gather=1"), behind);
    ck_assert_uint_eq(exposed(",overlap_param_gather=0"), behind);
    truth_end();
}
END_TEST

Suite *suite_paramgather(void)
{
    Suite *suite = suite_create("paramgather");
    TCase *tcase = tcase_create("paramgather");
    tcase_add_test(tcase, beside_forward);
    tcase_add_test(tcase, hides_time);
    suite_add_tcase(suite, tcase);
    return suite;
}
