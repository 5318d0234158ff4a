/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pipelines of equal stages, whose times are the published ones: their bubble
 * rates. */
#include "policies/schedule/orders.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/replay/collective.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;

#define MUST(call) ck_assert_msg((call) == MS_OK, "%s", fault.what)

/* One linear layer per stage. */
static const char chain[] =
    "{\"memsim\": 1, \"name\": \"chain\", \"input\": {\"tokens\": true}, "
    "\"layers\": [{\"type\": \"embedding\", \"vocab\": 16, \"dim\": 64}, "
    "{\"repeat\": %u, \"name\": \"h\", \"layers\": [{\"type\": \"linear\", "
    "\"out\": 64, \"bias\": false}]}, {\"type\": \"mean\"}]}";

typedef struct pipeline {
    ms_order order;
    ms_orders_size size;
    uint64_t forward_ns, input_ns, weight_ns, message_ns; /* of a stage */
    uint64_t bytes, wait_bytes; /* what a planner takes for those of its sets */
} pipeline;

/* A graph whose products alone take time. */
static ms_graph graph_of(const pipeline *p)
{
    char json[512];
    uint32_t n = p->size.ranks * p->size.chunks;
    snprintf(json, sizeof json, chain, n);
    ms_graph graph = *truth_run_json(json, "chain --sequence 8")->graph;
    for (uint32_t op = 0; op < graph.n_ops; op++) {
        bool product = graph.op_flags[op] & MS_OP_MATRIX;
        uint8_t pass = graph.op_pass[op];
        graph.op_ns[op] = !product                 ? 0
                          : pass == MS_FORWARD     ? p->forward_ns
                          : pass == MS_GRAD_WEIGHT ? p->weight_ns
                                                   : p->input_ns;
    }
    return graph;
}

static void write_order(const pipeline *p, ms_schedule *schedule)
{
    uint32_t n = p->size.ranks;
    ms_orders_costs costs = {p->message_ns, NULL};
    if (!ms_orders_plans(p->order)) {
        MUST(ms_orders_write(p->order, &p->size, &arena, schedule, &fault));
        return;
    }
    costs.stages = ms_arena_take(&arena, n, sizeof *costs.stages);
    for (uint32_t k = 0; k < n; k++)
        costs.stages[k] = (struct ms_orders_stage){
            p->forward_ns, p->input_ns, p->weight_ns, p->bytes, p->wait_bytes};
    MUST(ms_orders_plan(p->order, &p->size, &costs, &arena, schedule, &fault));
}

static ms_schedule schedule_of(const pipeline *p, const ms_graph *graph)
{
    uint32_t n = p->size.ranks * p->size.chunks, block = 0;
    ms_stage *stages = ms_arena_take(&arena, n, sizeof *stages);
    ms_schedule schedule = {
        .n_stages = n,
        .stages = stages,
        .n_ranks = (uint16_t)p->size.ranks,
        .n_micro_batches = p->size.micro_batches,
        .receives = MS_RECEIVE_AHEAD,
        .turn_at =
            ms_arena_take(&arena, p->size.ranks + 1, sizeof *schedule.turn_at),
        .turns = ms_arena_take(&arena, ms_orders_room(&p->size),
                               sizeof *schedule.turns)};
    for (uint32_t u = 0; u < graph->n_units; u++) {
        block = graph->unit_block[u] == MS_NONE ? block : graph->unit_block[u];
        if (u > 0 && stages[block].last == 0)
            stages[block].first = block > 0 ? u : 0;
        stages[block].rank = ms_orders_rank(p->order, &p->size, block);
        stages[block].last = u;
    }
    write_order(p, &schedule);
    MUST(ms_schedule_check(graph, &schedule, &fault));
    return schedule;
}

/* Links on which any message takes so long. */
static ms_group links_of(uint64_t ns, uint64_t bytes)
{
    ms_group pair = {.ranks = 2,
                     .stride = 1,
                     .node_ranks = 64,
                     .queue = MS_STREAM_OUTER,
                     .links = {.nvlink = true, .node_bytes_per_s = 1e18}};
    double low = 1, high = 1e18;
    for (int i = 0; i < 200; i++) {
        double rate = pair.links.node_bytes_per_s = sqrt(low * high);
        *(ms_collective_ns(&pair, MS_SEND, bytes) > ns ? &low : &high) = rate;
    }
    ck_assert_uint_lt(ms_collective_ns(&pair, MS_SEND, bytes), ns + 10);
    ck_assert_uint_gt(ms_collective_ns(&pair, MS_SEND, bytes), ns - 10);
    return pair;
}

/* From its first op to its last, of the rank that is longest at it. */
static uint64_t longest_span(const ms_timeline *line)
{
    uint64_t longest = 0;
    for (uint32_t r = 0; r < line->plan->n_ranks; r++) {
        uint64_t from = UINT64_MAX, to = 0;
        for (uint32_t op = 0; op < line->plan->n_ops; op++) {
            if (line->plan->op[op].rank != r || line->plan->op[op].ns == 0 ||
                line->plan->op[op].stream != MS_STREAM_COMPUTE)
                continue;
            from = line->start_ns[op] < from ? line->start_ns[op] : from;
            to = line->end_ns[op] > to ? line->end_ns[op] : to;
        }
        longest = to - from > longest ? to - from : longest;
    }
    return longest;
}

/* In 1e-4. */
static double rate_of(const pipeline *p)
{
    ms_graph graph = graph_of(p);
    ms_schedule schedule = schedule_of(p, &graph);
    ms_keep keep;
    ms_program program;
    ms_plan plan;
    ms_timeline line;
    ms_machine machine = {0};
    ms_expand_opts opts = {0};
    MUST(ms_program_keep_all(&graph, &arena, &keep, &fault));
    MUST(ms_defaultprogram(&graph, &keep, &schedule, &arena, &program, &fault));
    MUST(ms_check_program(&graph, &program, &fault));
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program.n_calls && bytes == 0; i++)
        if (program.calls[i].verb == MS_SEND_SET)
            bytes =
                graph.storage_bytes
                    [program.set_item[program.set_at[program.calls[i].set]]];
    opts.groups[MS_GROUP_PIPELINE] = links_of(p->message_ns, bytes);
    MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
    MUST(ms_replay(&plan, &machine, &arena, &line, &fault));
    double work = (double)((p->forward_ns + p->input_ns + p->weight_ns) *
                           p->size.chunks * p->size.micro_batches);
    return 1e4 * (1 - work / (double)longest_span(&line));
}

static ms_order order_named(const char *name)
{
    static const struct {
        const char *name;
        ms_order order;
    } rows[] = {
        {"1f1b", MS_ORDER_1F1B},   {"interleaved", MS_ORDER_INTERLEAVED},
        {"zb-h1", MS_ORDER_ZB_H1}, {"zb-h2", MS_ORDER_ZB_H2},
        {"zb-1p", MS_ORDER_ZB_1P}, {"zb-2p", MS_ORDER_ZB_2P}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].order;
    ck_abort_msg("%s", name);
}

/* 1F1B, zb-1p and zb-2p to 1e-4, zb-h1 and zb-h2 to 2e-4 (the times are printed
 * to a us), an interleaved one within 5 %: the authors count fewer messages
 * there than Megatron's order has. */
START_TEST(bubbles_of_zero_bubble)
{
    truth_table table;
    truth_begin();
    truth_read_here("zerobubble.tsv", &table);
    for (uint32_t i = 0; i < table.n_rows; i++) {
        const char *id = truth_cell(&table, i, "id");
        pipeline p = {.order = order_named(truth_cell(&table, i, "schedule"))};
        uint64_t chunks = truth_number(&table, i, "chunks");
        p.size.ranks = (uint32_t)truth_number(&table, i, "p");
        p.size.micro_batches = (uint32_t)truth_number(&table, i, "m");
        p.size.chunks = (uint32_t)chunks;
        p.forward_ns = 1000 * truth_number(&table, i, "F") / chunks;
        p.input_ns = 1000 * truth_number(&table, i, "B") / chunks;
        p.weight_ns = 1000 * truth_number(&table, i, "W") / chunks;
        p.wait_bytes = 32 * truth_number(&table, i, "hidden");
        p.bytes = p.wait_bytes + 2 * truth_number(&table, i, "hidden") +
                  5 * 1024 * truth_number(&table, i, "heads");
        p.message_ns = 1000 * truth_number(&table, i, "comm");
        double truth = (double)truth_number(&table, i, "rate");
        double rate = rate_of(&p);
        double allowed = p.order == MS_ORDER_1F1B || ms_orders_plans(p.order)
                             ? 1
                         : p.order == MS_ORDER_INTERLEAVED ? 0.05 * truth
                                                           : 2;
        ck_assert_msg(rate > truth - allowed && rate < truth + allowed,
                      "%s: %.2f, not %.0f", id, rate, truth);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

/* Megatron-LM 23e00ed0 on 8 B200, peaks over the ranks of a stage as
 * MooreThreads/SimuMax@4dcaae513b measured them
 * (docs/b200/b200_release_v1.2_summary.json, llama3_70b_l12_tp1_pp2_dp4, fused
 * cross entropy): within 3 %.  What is missing is alike for each layer and
 * micro-batch in flight, 0.11 GiB of the MLP's. */
START_TEST(stages_measured)
{
    static const double measured_mib[] = {68149.199, 64479.479};
    truth_begin();
    const ms_report *report =
        truth_run("llama-3-70b --set model.layers=12 --set model.vocab=128384 "
                  "--sequence 4096 --kernels megatron --device b200 --gpus 8 "
                  "-p zero:1,impl=megatron+pipeline:2+microbatch:4 --batch 4 "
                  "--allocator torch")
            ->report;
    for (uint32_t r = 0; r < 2; r++) {
        const ms_peak *peak = &report->ranks[r].peak;
        double share =
            (double)peak->allocated_bytes / (measured_mib[r] * 1024 * 1024);
        ck_assert_msg(share > 0.97 && share < 1.01, "stage %u: %.4f", r, share);
        ck_assert_uint_gt(peak->reserved_bytes, peak->allocated_bytes);
        ck_assert_uint_lt(peak->reserved_bytes,
                          peak->allocated_bytes + peak->allocated_bytes / 10);
    }
    truth_end();
}
END_TEST

static double highest_gib(const char *words, const char *schedule)
{
    const ms_report *report =
        truth_run("%s,schedule=%s", words, schedule)->report;
    uint64_t most = 0;
    for (uint32_t r = 0; r < report->n_ranks; r++)
        most = report->ranks[r].peak.allocated_bytes > most
                   ? report->ranks[r].peak.allocated_bytes
                   : most;
    return (double)most / 0x1p30;
}

/* ZB-2p less ZB-1p, whose states are the same: Qi et al. 2024, table 4, GPT of
 * 6.2 and 28.3 billion parameters, 1,024 tokens, 24 and 96 micro-batches, in
 * whole "GB".  The authors' sets are 34 sbh + 5 as^2b bytes a layer: attention
 * op by op.  Those of the larger model weigh 5 % more than that (table 11: 29
 * and 30 more with micro-batches twice as large, where the formula has 27.7),
 * whatever the order. */
START_TEST(twice_the_sets)
{
    static const struct {
        const char *model, *layers;
        uint32_t ranks, micro_batch, micro_batches;
        double gib, allowed;
    } rows[] = {
        {"layers=30 --set model.hidden=4096 --set model.heads=32 --set "
         "model.ffn=16384",
         "3/4/4/4/4/4/4/3", 8, 3, 24, 28, 1},
        {"layers=62 --set model.hidden=6144 --set model.heads=48 --set "
         "model.ffn=24576",
         "1/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/1", 32,
         1, 96, 30, 2.5},
    };
    char words[640];
    truth_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(words, sizeof words,
                 "gpt3 --set model.%s --set model.vocab=50304 --set "
                 "model.tied=false --sequence 1024 --precision fp16-mixed "
                 "--kernels megatron --set megatron.attention=unfused --device "
                 "a100 --batch %u --allocator exact -p "
                 "microbatch:%u+pipeline:%u,layers=%s",
                 rows[i].model, rows[i].micro_batch * rows[i].micro_batches,
                 rows[i].micro_batches, rows[i].ranks, rows[i].layers);
        double more = highest_gib(words, "zb-2p") - highest_gib(words, "zb-1p");
        ck_assert_msg(fabs(more - rows[i].gib) <= rows[i].allowed,
                      "%u ranks: %.2f GiB more, not %.0f", rows[i].ranks, more,
                      rows[i].gib);
    }
    truth_end();
}
END_TEST

/* Reserved bytes of ranks in torchtitan, pytorch/torchtitan issue 773
 * (Llama-3 8B, 512 tokens, 8 H100, 16 samples; two chunks a rank, in GiB):
 * interleaved 1F1B 22.74 on rank 0 and 17.97 on rank 7, interleaved zero bubble
 * 20.57 and 22.23.  Precision and micro-batches are not told: signs and orders
 * are held. */
START_TEST(ranks_of_torchtitan)
{
    static const char *const orders[] = {"interleaved", "zb-h1"};
    double gib[2][2];
    truth_begin();
    for (size_t i = 0; i < 2; i++) {
        const ms_report *report =
            truth_run("llama-3-8b --sequence 512 --batch 16 --precision tf32 "
                      "--allocator torch -p microbatch:16+pipeline:8,"
                      "schedule=%s,chunks=2,impl=torch",
                      orders[i])
                ->report;
        gib[i][0] = (double)report->ranks[0].peak.reserved_bytes / 0x1p30;
        gib[i][1] = (double)report->ranks[7].peak.reserved_bytes / 0x1p30;
    }
    ck_assert(gib[0][0] > gib[0][1]); /* 4.77 */
    ck_assert(gib[1][0] < gib[1][1]); /* 1.66 */
    ck_assert(gib[0][0] > gib[1][0]); /* 2.17 */
    ck_assert(gib[0][1] < gib[1][1]); /* 4.26 */
    ck_assert(gib[0][0] - gib[0][1] > gib[1][1] - gib[1][0]);
    ck_assert(gib[1][1] - gib[0][1] > gib[0][0] - gib[1][0]);
    truth_end();
}
END_TEST

Suite *suite_pipelines(void)
{
    Suite *suite = suite_create("pipelines");
    TCase *tcase = tcase_create("pipelines");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, bubbles_of_zero_bubble);
    tcase_add_test(tcase, stages_measured);
    tcase_add_test(tcase, twice_the_sets);
    tcase_add_test(tcase, ranks_of_torchtitan);
    suite_add_tcase(suite, tcase);
    return suite;
}
