/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What implementations of pipelines keep: counted in messages, beside the step
 * that keeps nothing. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

#define SEQUENCE 1024u
#define MESSAGE (SEQUENCE * 768u * 2u) /* gpt2's hidden state in bf16 */

typedef struct peaks {
    uint64_t peak[8], end[8];
} peaks;

static peaks peaks_of(uint32_t ranks, uint32_t micro_batches, const char *rest)
{
    peaks out = {{0}, {0}};
    const ms_report *report =
        truth_run("gpt2 --sequence %u --batch %u --allocator exact -p "
                  "microbatch:%u+pipeline:%u%s",
                  SEQUENCE, micro_batches, micro_batches, ranks, rest)
            ->report;
    for (uint32_t r = 0; r < ranks; r++) {
        out.peak[r] = report->ranks[r].peak.allocated_bytes;
        out.end[r] = report->ranks[r].levels[MS_MARK_AFTER_BACKWARD];
    }
    return out;
}

static void check_messages(const char *what, uint32_t rank, uint64_t bytes,
                           uint64_t less, uint64_t messages)
{
    ck_assert_msg(bytes - less == messages * MESSAGE,
                  "%s, rank %u: %lld bytes more are not %llu messages", what,
                  rank, (long long)(bytes - less),
                  (unsigned long long)messages);
}

/* 1F1B on p ranks, m micro-batches.  deallocate=0: an output for each
 * micro-batch in flight, p - r.  PyTorch: m activations and m gradients have
 * room at all times (at either end of the pipeline one of the two), of which
 * those in flight are no allocations of their own; besides the outputs, and of
 * each micro-batch that has gone back the gradient that was handed on.  */
START_TEST(messages_of_1f1b)
{
    static const uint32_t sizes[][2] = {{2, 4}, {3, 6}, {4, 8}, {4, 12}};
    truth_begin();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t p = sizes[i][0], m = sizes[i][1];
        peaks bare = peaks_of(p, m, "");
        peaks kept = peaks_of(p, m, ",deallocate=0");
        peaks torch = peaks_of(p, m, ",impl=torch");
        for (uint32_t r = 0; r < p; r++) {
            bool first = r == 0, last = r == p - 1;
            check_messages("deallocate=0", r, kept.peak[r], bare.peak[r],
                           last ? 0 : p - r);
            check_messages("torch", r, torch.peak[r], bare.peak[r],
                           first  ? m + p - 1
                           : last ? 2 * m - 2
                                  : 3 * m - (p - r));
            check_messages("torch, after backward", r, torch.end[r],
                           bare.end[r],
                           first  ? m
                           : last ? 2 * m - 1
                                  : 3 * m - 1);
        }
    }
    truth_end();
}
END_TEST

static uint32_t count_halves(const ms_program *program, uint16_t rank)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        n += program->calls[i].rank == rank &&
             program->calls[i].verb == MS_RUN && program->calls[i].run.half;
    return n;
}

/* PyTorch's first stage has no gradient of an input to make. */
START_TEST(first_stage_goes_back_whole)
{
    truth_begin();
    static const char *const impls[] = {"zb", "torch"};
    for (size_t i = 0; i < 2; i++) {
        const ms_program *program =
            truth_run("gpt2 --sequence 64 --batch 4 -p microbatch:4+"
                      "pipeline:2,schedule=zb-h1,impl=%s",
                      impls[i])
                ->program;
        ck_assert_int_eq(count_halves(program, 0) > 0, i == 0);
        ck_assert_uint_gt(count_halves(program, 1), 0);
    }
    truth_end();
}
END_TEST

/* While the inputs' half runs under PyTorch nothing that is saved goes. */
START_TEST(graphs_are_retained)
{
    truth_begin();
    uint64_t own = peaks_of(4, 8, ",schedule=zb-h1,deallocate=0").peak[2];
    uint64_t torch = peaks_of(4, 8, ",schedule=zb-h1,impl=torch").peak[2];
    /* the rooms, and what was handed on, less what they hold in flight */
    ck_assert_uint_gt(torch, own + 2 * 8 * MESSAGE);
    truth_end();
}
END_TEST

static uint32_t count_verb(const ms_program *program, uint16_t rank,
                           ms_verb verb, bool before_start)
{
    uint32_t n = 0;
    bool started = false;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->rank != rank)
            continue;
        started |= call->verb == MS_MARK && call->mark.mark == MS_MARK_START;
        n += call->verb == verb && !(started && before_start);
    }
    return n;
}

/* Megatron-LM's stages name their last input and its gradient from the last
 * backward over the end of the step to the next forward: two messages a stage
 * that has an input.  A first step begins without. */
static void check_inputs(const char *options, uint32_t stages, bool first)
{
    const ms_result *result =
        truth_run("gpt2 --kernels megatron --sequence %u --batch 4 "
                  "--allocator exact -p microbatch:4+%s",
                  SEQUENCE, options);
    const ms_program *program = result->program;
    const ms_rank_report *rank = &result->report->ranks[1];
    uint32_t before = count_verb(program, 1, MS_TAKE, true);
    ck_assert_uint_eq(before, first ? 0 : 2 * stages);
    ck_assert_uint_eq(count_verb(program, 1, MS_GIVE, false), before);
    ck_assert_uint_eq(count_verb(program, 1, MS_TAKE, false) - before,
                      2 * stages);
    ck_assert_uint_eq(program->n_buffers > 0, stages > 0);
    for (uint32_t b = 0; b < program->n_buffers; b++)
        ck_assert_uint_eq(program->buffers[b].bytes, MESSAGE);
    if (!first)
        ck_assert_uint_eq(rank->levels[MS_MARK_START],
                          rank->levels[MS_MARK_END]);
}

START_TEST(inputs_are_named)
{
    truth_begin();
    check_inputs("pipeline:2", 1, false);
    check_inputs("pipeline:2 --set training.step=first", 1, true);
    check_inputs("pipeline:2,chunks=3", 3, false);
    check_inputs("pipeline:2,schedule=zb-h1", 1, false);
    check_inputs("pipeline:2,chunks=2,schedule=zb-v", 1, false);
    /* others' kernels name none */
    const ms_result *bare = truth_run("gpt2 --sequence 64 --batch 4 -p "
                                      "microbatch:4+pipeline:2");
    ck_assert_uint_eq(bare->program->n_buffers, 0);
    truth_end();
}
END_TEST

Suite *suite_kept(void)
{
    Suite *suite = suite_create("kept");
    TCase *tcase = tcase_create("kept");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, messages_of_1f1b);
    tcase_add_test(tcase, first_stage_goes_back_whole);
    tcase_add_test(tcase, graphs_are_retained);
    tcase_add_test(tcase, inputs_are_named);
    suite_add_tcase(suite, tcase);
    return suite;
}
