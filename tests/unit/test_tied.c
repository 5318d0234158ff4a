/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weights that stages of a pipeline share, by hand: GPT-2's embedding is its
 * head, and lies on the first rank and on the last.
 *
 *     tokens     50,257 x 768 = 38,597,376 parameters, on both
 *     positions   1,024 x 768 =    786,432, on the first
 *     a block                    7,087,872
 *     final norm                     1,536, on the last
 *
 * In 16-bit weights and gradients, with fp32 master weights and two moments. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/replay/collective.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#define TOKENS ((uint64_t)50257 * 768)
#define FIRST (TOKENS + (uint64_t)1024 * 768 + 6 * (uint64_t)7087872)
#define LAST (TOKENS + 1536 + 6 * (uint64_t)7087872)

START_TEST(both_stages_hold_all_of_it)
{
    static const uint64_t held[2] = {FIRST, LAST};
    truth_begin();
    const ms_report *report =
        truth_run("gpt2 --batch 4 -p microbatch:4+pipeline:2 "
                  "--set optimizer_impl=foreach")
            ->report;
    for (uint32_t r = 0; r < 2; r++) {
        const ms_rank_report *rank = &report->ranks[r];
        ck_assert_uint_eq(rank->parameters_bytes, 2 * held[r]);
        ck_assert_uint_eq(rank->gradients_bytes, 2 * held[r]);
        ck_assert_uint_eq(rank->optimizer_state_bytes, 12 * held[r]);
    }
    truth_end();
}
END_TEST

/* The collectives in which ranks of the plan meet; *op: the first ones. */
static uint32_t find_met(const ms_plan *plan, uint32_t most, uint32_t *op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfers[i].kind == MS_TRANSFER_OUTER &&
            plan->transfers[i].group == MS_GROUP_PIPELINE && n++ < most)
            op[n - 1] = plan->transfers[i].op;
    return n;
}

static bool reads_grad(const ms_plan *plan, uint32_t op)
{
    const ms_graph *graph = plan->graph;
    uint32_t of = plan->op[op].of;
    if (of == MS_NONE || of < graph->step_first)
        return false;
    for (uint32_t i = graph->in_at[of]; i < graph->in_at[of + 1]; i++)
        if (graph->storage_category[graph->in[i]] == MS_GRADIENTS)
            return true;
    return false;
}

/* Both begin once both have ended their backward, the first rank last, take as
 * long as an all-reduce of two neighbours, and end before the step of the
 * gradients. */
static void check_times(const ms_result *result, const uint32_t *met,
                        uint64_t bytes)
{
    const ms_plan *plan = result->plan;
    const ms_timeline *line = result->line;
    ms_group pair = result->program->groups[MS_GROUP_PIPELINE];
    uint64_t end_ns = 0;
    pair.ranks = 2;
    pair.node_ranks = 2;
    for (uint32_t op = 0; op < plan->n_ops; op++)
        if (plan->op[op].pass == MS_GRAD_INPUT && line->end_ns[op] > end_ns)
            end_ns = line->end_ns[op];
    for (uint32_t k = 0; k < 2; k++) {
        ck_assert_uint_eq(plan->op[met[k]].ns,
                          ms_collective_ns(&pair, MS_ALL_REDUCE, bytes));
        ck_assert_uint_ge(line->start_ns[met[k]], end_ns);
        for (uint32_t op = 0; op < plan->n_ops; op++)
            if (reads_grad(plan, op) && plan->op[op].rank == k)
                ck_assert_uint_ge(line->start_ns[op], line->end_ns[met[k]]);
    }
}

START_TEST(gradients_of_the_copies_are_summed)
{
    uint32_t met[2];
    truth_begin();
    const ms_result *result =
        truth_run("gpt2 --batch 4 --steps 1 -p microbatch:4+pipeline:2");
    ck_assert_uint_eq(find_met(result->plan, 2, met), 2);
    ck_assert(result->plan->op[met[0]].rank != result->plan->op[met[1]].rank);
    uint32_t swapped[2] = {met[result->plan->op[met[0]].rank],
                           met[result->plan->op[met[1]].rank]};
    check_times(result, swapped, 2 * TOKENS);
    truth_end();
}
END_TEST

/* Behind a reduction over data-parallel ranks it is of this rank's part. */
START_TEST(parts_of_the_gradients_are_summed)
{
    uint32_t met[2];
    truth_begin();
    const ms_plan *plan = truth_run("gpt2 --batch 4 --steps 1 -p "
                                    "microbatch:4+pipeline:2+zero:2,dp=2")
                              ->plan;
    ck_assert_uint_eq(find_met(plan, 2, met), 2);
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfers[i].op == met[0])
            ck_assert_uint_eq(plan->transfers[i].bytes, TOKENS);
    truth_end();
}
END_TEST

static const struct {
    const char *words;
    uint32_t n; /* collectives in which ranks meet, one of each rank */
} others[] = {
    {"gpt2 --batch 4 -p microbatch:4+pipeline:1", 0},
    {"gpt2 --batch 4 -p microbatch:4+pipeline:4", 2},
    {"gpt2 --batch 4 -p microbatch:4+pipeline:2,chunks=2", 2},
    {"gpt2 --batch 4 -p microbatch:4+pipeline:2,schedule=zb-v", 0},
    {"gpt2 --batch 4 --set mode=inference -p microbatch:4+pipeline:2", 0},
    {"pythia-410m --batch 4 -p microbatch:4+pipeline:2", 0}, /* not tied */
    {"t5-small --sequence 32 --batch 4 -p microbatch:4+pipeline:2", 2},
    {"t5-small --sequence 32 --batch 4 -p microbatch:4+pipeline:4", 3},
};

START_TEST(who_shares_it_sums_it)
{
    uint32_t met[1];
    truth_begin();
    const ms_plan *plan = truth_run("%s --steps 1", others[_i].words)->plan;
    uint32_t n = find_met(plan, 1, met);
    ck_assert_msg(n == others[_i].n, "%s: %u, not %u", others[_i].words, n,
                  others[_i].n);
    truth_end();
}
END_TEST

Suite *suite_tied(void)
{
    Suite *suite = suite_create("tied");
    TCase *tcase = tcase_create("tied");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, both_stages_hold_all_of_it);
    tcase_add_test(tcase, gradients_of_the_copies_are_summed);
    tcase_add_test(tcase, parts_of_the_gradients_are_summed);
    tcase_add_loop_test(tcase, who_shares_it_sums_it, 0,
                        sizeof others / sizeof *others);
    suite_add_tcase(suite, tcase);
    return suite;
}
