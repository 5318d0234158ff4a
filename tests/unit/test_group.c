/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of groups: what a job's ranks form on nodes, what an algorithm
 * takes, experts that other ranks divide than the rest; by hand. */
#include "graphs/machines/communicators.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/replay/collective.h"
#include "sim/report.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <string.h>

#define GIB ((uint64_t)1 << 30)

/* ---- on nodes of eight --------------------------------------------------- */

static void make(const ms_shape *shape, ms_group rows[MS_N_GROUP_ROLES])
{
    const ms_device *device = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find("h100-80gb-sxm", &device, &fault), MS_OK);
    ck_assert_uint_eq(device->gpus_per_node, 8);
    ms_communicators_make(device, shape, rows);
}

static void expect_row(const ms_group *row, uint32_t ranks, uint32_t stride,
                       uint32_t local, uint32_t nodes)
{
    ck_assert_uint_eq(row->ranks, ranks);
    ck_assert_uint_eq(row->stride, stride);
    ck_assert_uint_eq(row->node_ranks, local);
    ck_assert_uint_eq(ms_group_nodes(row), nodes);
}

/* Ranks 0 to 3 divide; 0, 4, 8 and 12 hold the same part, 0 and 4 on one node.
 */
START_TEST(order_decides_what_lies_in_a_node)
{
    ms_group rows[MS_N_GROUP_ROLES];
    make(&(ms_shape){.data_ranks = 16, .shard_ranks = 4}, rows);
    expect_row(&rows[MS_GROUP_DATA], 4, 1, 8, 1);
    expect_row(&rows[MS_GROUP_REPLICATE], 4, 4, 2, 2);
    ck_assert_uint_eq(rows[MS_GROUP_DATA].queue, MS_STREAM_COMM);
    ck_assert_uint_eq(rows[MS_GROUP_REPLICATE].queue, MS_STREAM_OUTER);
    ck_assert_uint_eq(rows[MS_GROUP_NODE].ranks, 1);
    make(&(ms_shape){.data_ranks = 32, .shard_ranks = 8}, rows);
    expect_row(&rows[MS_GROUP_REPLICATE], 4, 8, 1, 4);
}
END_TEST

/* ---- other orders -------------------------------------------------------- */

typedef struct grid {
    uint32_t size[MS_N_RANK_DIMS]; /* by ms_rank_dim */
    uint8_t order[MS_N_RANK_DIMS];
} grid;

static uint32_t coordinate(const grid *g, uint32_t rank, uint8_t dim)
{
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t at = rank % g->size[g->order[i]];
        rank /= g->size[g->order[i]];
        if (g->order[i] == dim)
            return at;
    }
    return 0;
}

/* Rank 0's group: who have its coordinates but for two dimensions'.  The first
 * few of them, each so many of these apart, lie on its node. */
static void expect_members(const grid *g, const ms_group *row, uint8_t a,
                           uint8_t b, uint32_t world)
{
    uint32_t n = 0, here = 0, second = 0;
    for (uint32_t r = 0; r < world; r++) {
        bool member = true;
        for (uint32_t d = 1; d < MS_N_RANK_DIMS; d++)
            member &= d == a || d == b || coordinate(g, r, (uint8_t)d) == 0;
        if (member && n == 1)
            second = r;
        n += member;
        here += member && r < 8;
    }
    uint32_t local =
        row->node_ranks < row->ranks ? row->node_ranks : row->ranks;
    ck_assert_uint_eq(row->ranks, n);
    ck_assert_uint_eq(local, here);
    if (n > 1)
        ck_assert_uint_eq(row->stride, second);
}

/* All orders of ranks whose degrees are powers of two, on nodes of eight, as
 * Megatron's definition has them: no code is shared. */
START_TEST(any_order_is_a_grid)
{
    uint32_t n = 0;
    for (uint32_t code = 0; code < 5 * 5 * 5 * 5 * 5; code++) {
        uint32_t digits[5], rest = code;
        grid g = {.size = {1, 1, 1, 1, 1, 1}};
        bool twice = false;
        for (uint32_t i = 0; i < 5; i++, rest /= 5) {
            digits[i] = rest % 5;
            g.order[i] = (uint8_t)(digits[i] + 1);
            for (uint32_t k = 0; k < i; k++)
                twice |= digits[k] == digits[i];
        }
        for (uint32_t sizes = 0; sizes < 81 && !twice; sizes++, n++) {
            static const uint8_t dims[4] = {MS_RANK_TENSOR, MS_RANK_CONTEXT,
                                            MS_RANK_DATA, MS_RANK_PIPELINE};
            uint32_t s = sizes, world = 1;
            for (uint32_t i = 0; i < 4; i++, s /= 3) {
                g.size[dims[i]] = 1u << s % 3;
                world *= g.size[dims[i]];
            }
            ms_shape shape = {.tensor_ranks = g.size[MS_RANK_TENSOR],
                              .context_ranks = g.size[MS_RANK_CONTEXT],
                              .pipeline_ranks = g.size[MS_RANK_PIPELINE],
                              .data_ranks = g.size[MS_RANK_CONTEXT] *
                                            g.size[MS_RANK_DATA]};
            memcpy(shape.rank_order, g.order, sizeof g.order);
            ms_group rows[MS_N_GROUP_ROLES];
            make(&shape, rows);
            expect_members(&g, &rows[MS_GROUP_TENSOR], MS_RANK_TENSOR, 0,
                           world);
            expect_members(&g, &rows[MS_GROUP_CONTEXT], MS_RANK_CONTEXT, 0,
                           world);
            expect_members(&g, &rows[MS_GROUP_PIPELINE], MS_RANK_PIPELINE, 0,
                           world);
            expect_members(&g, &rows[MS_GROUP_DATA], MS_RANK_DATA,
                           MS_RANK_CONTEXT, world);
        }
    }
    ck_assert_uint_eq(n, 120 * 81);
}
END_TEST

/* Without an order, and with Megatron's, the rows are the same. */
START_TEST(the_usual_order_need_not_be_named)
{
    ms_group rows[MS_N_GROUP_ROLES], named[MS_N_GROUP_ROLES];
    ms_shape shape = {.data_ranks = 16,
                      .tensor_ranks = 2,
                      .context_ranks = 2,
                      .shard_ranks = 4,
                      .expert_split = 4,
                      .expert_ranks = 4,
                      .pipeline_ranks = 3};
    make(&shape, rows);
    for (uint32_t d = 1; d < MS_N_RANK_DIMS; d++)
        shape.rank_order[d - 1] = (uint8_t)d;
    make(&shape, named);
    for (uint32_t role = 0; role < MS_N_GROUP_ROLES; role++)
        expect_row(&named[role], rows[role].ranks, rows[role].stride,
                   rows[role].node_ranks, ms_group_nodes(&rows[role]));
    expect_row(&rows[MS_GROUP_EXPERT], 4, 2, 4, 1);
    expect_row(&rows[MS_GROUP_EXPERT_DATA], 4, 8, 1, 4);
    expect_row(&rows[MS_GROUP_PIPELINE], 3, 32, 1, 3);
}
END_TEST

static void expect_order(const char *policy, const char *what)
{
    static const char model[] =
        "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", "
        "\"config\": {\"layers\": 2, \"hidden\": 64, \"heads\": 8, "
        "\"vocab\": 64, \"positions\": 32}}";
    ms_arena keep = {0}, trial = {0};
    ms_result result;
    ms_fault fault;
    ms_err err =
        inlined_run(model, 4, 1, policy, &keep, &trial, &result, &fault);
    ck_assert_int_eq(err, what == NULL ? MS_OK : MS_EUSAGE);
    if (what != NULL)
        ck_assert_msg(strstr(fault.what, what) != NULL, "%s: %s", policy,
                      fault.what);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

START_TEST(orders_are_read)
{
    expect_order("tensor:2,order=tp-dp+zero:1,dp=4", NULL);
    expect_order("tensor:2,order=dp/tp/pp+zero:1,dp=4", NULL);
    expect_order("tensor:2,order=tp-dp-cp+context:2,order=tp-dp-cp+zero:1,dp=4",
                 NULL);
    expect_order("tensor:2,order=tp-dp+context:2,order=cp-tp-dp+zero:1,dp=4",
                 "another order");
    expect_order("tensor:2,order=tp-dp-tp+zero:1,dp=4", "tp is there twice");
    expect_order("tensor:2,order=tp-xp+zero:1,dp=4", "\"xp\" is none of");
    expect_order("tensor:2,order=tp--dp+zero:1,dp=4", "\"\" is none of");
    expect_order("tensor:2,order=tp-dp-+zero:1,dp=4", "\"\" is none of");
    expect_order("tensor:2,order=dp+zero:1,dp=4", "not name tp (tensor), of "
                                                  "which there are 2");
    expect_order("tensor:2,order=tp-pp+zero:1,dp=4", "not name dp (data)");
    expect_order("pipeline:2,order=tp-dp+zero:1,dp=4", "not name pp");
}
END_TEST

/* Of 16 ranks 0, 4, 8 and 12 divide the experts; 0 to 3 hold the same. */
START_TEST(experts_are_divided_by_every_fourth)
{
    ms_group rows[MS_N_GROUP_ROLES];
    make(&(ms_shape){.data_ranks = 16, .expert_ranks = 4}, rows);
    expect_row(&rows[MS_GROUP_DATA], 16, 1, 8, 2);
    expect_row(&rows[MS_GROUP_EXPERT_DATA], 4, 4, 2, 2);
    expect_row(&rows[MS_GROUP_EXPERT_REPLICATE], 4, 1, 8, 1);
}
END_TEST

START_TEST(exchanges_have_the_node_and_its_peers)
{
    ms_group rows[MS_N_GROUP_ROLES];
    make(&(ms_shape){.data_ranks = 20, .exchanges = true, .reshard_ranks = 4},
         rows);
    expect_row(&rows[MS_GROUP_NODE], 8, 1, 8, 1);
    expect_row(&rows[MS_GROUP_ACROSS], 3, 8, 1, 3);
    expect_row(&rows[MS_GROUP_SECONDARY], 4, 1, 8, 1);
}
END_TEST

/* ---- algorithms ---------------------------------------------------------- */

/* Two nodes of eight GPUs. */
static const ms_group sixteen = {.ranks = 16,
                                 .node_ranks = 8,
                                 .links = {.nvlink = true,
                                           .node_bytes_per_s = 360e9,
                                           .network_bytes_per_s = 37.5e9,
                                           .nvls_share = 0.9}};

static double all_reduce_us(ms_group group, ms_algorithm algorithm)
{
    group.algorithm = (uint8_t)algorithm;
    return (double)ms_collective_ns(&group, MS_ALL_REDUCE, GIB) * 1e-3;
}

/* NVIDIA/nccl src/graph/tuning.cc: latency of the protocol Simple, of a hop by
 * NVLink and by the network, and what is sent by the slowest link. */
START_TEST(across_nodes_each_has_its_formula)
{
    const double bytes = (double)GIB * 1e6;
    double ring = 8.4 + 26 * 3.4 + 4 * 14.0 + 30.0 / 16 * bytes / 300e9;
    double tree = 8.4 + 2 * (7 * 4.0 + 14.0) + 2 * bytes / (360e9 * 0.92);
    double nested = 8.4 + 14 * 3.4 + 2 * 14.0 + 14.0 / 8 * bytes / 360e9;
    double nvls = 25 + 2 * 18.0 + bytes / (8 * 37.5e9 * 5 / 6);
    ck_assert_double_eq_tol(all_reduce_us(sixteen, MS_ALGORITHM_RING), ring, 1);
    ck_assert_double_eq_tol(all_reduce_us(sixteen, MS_ALGORITHM_TREE), tree, 1);
    ck_assert_double_eq_tol(all_reduce_us(sixteen, MS_ALGORITHM_NESTED), nested,
                            1);
    ck_assert_double_eq_tol(all_reduce_us(sixteen, MS_ALGORITHM_SWITCH), nvls,
                            1);
    ck_assert_double_eq_tol(all_reduce_us(sixteen, MS_ALGORITHM_FASTEST), nvls,
                            1); /* the least of those that NCCL has */
}
END_TEST

/* What a group cannot do is done by rings. */
START_TEST(in_a_node_nothing_nests)
{
    ms_group eight = sixteen;
    eight.ranks = 8;
    eight.links.nvls_share = 0;
    double ring = all_reduce_us(eight, MS_ALGORITHM_RING);
    ck_assert_double_eq_tol(ring, 8.4 + 14 * 3.4 + 14.0 / 8 * GIB / 360e3, 1);
    ck_assert_double_eq(all_reduce_us(eight, MS_ALGORITHM_NESTED), ring);
    ck_assert_double_eq(all_reduce_us(eight, MS_ALGORITHM_SWITCH), ring);
    eight.algorithm = MS_ALGORITHM_TREE; /* there is none for other kinds */
    ms_group any = eight;
    any.algorithm = MS_ALGORITHM_FASTEST;
    ck_assert_uint_eq(ms_collective_ns(&eight, MS_ALL_GATHER, GIB),
                      ms_collective_ns(&any, MS_ALL_GATHER, GIB));
}
END_TEST

/* nccl-tests measured what NCCL chose. */
START_TEST(a_forced_algorithm_has_no_curve)
{
    const ms_curve_point point = {GIB, 100e9};
    const ms_curve curve = {.kind = MS_ALL_REDUCE,
                            .ranks = 16,
                            .ranks_per_node = 8,
                            .n = 1,
                            .points = &point};
    ms_group measured = sixteen;
    measured.links.curves = &curve;
    measured.links.n_curves = 1;
    ck_assert_double_eq_tol(all_reduce_us(measured, MS_ALGORITHM_FASTEST),
                            30.0 / 16 * GIB / 100e3, 1);
    ck_assert_double_eq(all_reduce_us(measured, MS_ALGORITHM_TREE),
                        all_reduce_us(sixteen, MS_ALGORITHM_TREE));
}
END_TEST

/* ---- two shares at once -------------------------------------------------- */

/* A block has a router of 4 x 16 and four experts of 16 x 16 and 16 x 8. */
static const char model[] =
    "{\"memsim\": 1, \"name\": \"moe\", \"input\": {\"shape\": [4, 16]}, "
    "\"layers\": [{\"repeat\": 2, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"moe\", \"experts\": 4, \"top_k\": 1, \"hidden\": 8}]}, "
    "{\"type\": \"mean\"}]}";
#define BLOCKS 2u

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err try_policy(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 8;
    return inlined_step(model, policy, &job, &keep, &trial, &result, &fault);
}

static void run_policy(const char *policy)
{
    ck_assert_msg(try_policy(policy) == MS_OK, "%s: %s: %s", policy,
                  fault.where, fault.what);
}

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* So many collectives of a kind in a group, each sending so many bytes. */
static void expect_sent(ms_transfer_kind kind, ms_group_role group, uint32_t n,
                        uint64_t bytes)
{
    const ms_plan *plan = result.plan;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        if (plan->transfers[i].kind != kind ||
            plan->transfers[i].group != group)
            continue;
        ck_assert_uint_eq(plan->transfers[i].bytes, bytes);
        seen++;
    }
    ck_assert_uint_eq(seen, n);
}

/* The fused update counts the steps of a router and of two experts' tensors in
 * 4 bytes each. */
#define COUNTERS (4 * 3 * BLOCKS)

/* Of eight ranks each has a row (16) of the router, of which there are 8 with
 * the padding; of four each has one expert's 16 x 16 + 16 x 8. */
START_TEST(experts_and_the_rest)
{
    const uint64_t row = 16, expert = 384, part = BLOCKS * (row + expert);
    run_policy("fsdp:dp=8,expert_ranks=4");
    const ms_rank_report *rank = &result.report->ranks[0];
    ck_assert_uint_eq(rank->parameters_bytes, 4 * part);
    ck_assert_uint_eq(rank->gradients_bytes, 4 * part);
    ck_assert_uint_eq(rank->optimizer_state_bytes, 8 * part + COUNTERS);
    expect_sent(MS_TRANSFER_GATHER, MS_GROUP_DATA, 2 * BLOCKS, 7 * 2 * row);
    expect_sent(MS_TRANSFER_GATHER, MS_GROUP_EXPERT_DATA, 2 * BLOCKS,
                3 * 2 * expert);
    expect_sent(MS_TRANSFER_SCATTER, MS_GROUP_DATA, BLOCKS, 7 * 4 * row);
    expect_sent(MS_TRANSFER_SCATTER, MS_GROUP_EXPERT_DATA, BLOCKS,
                3 * 4 * expert);
    expect_sent(MS_TRANSFER_OUTER, MS_GROUP_EXPERT_REPLICATE, BLOCKS,
                2 * 4 * expert / 2);
    expect_sent(MS_TRANSFER_OUTER, MS_GROUP_REPLICATE, 0, 0);
}
END_TEST

/* Where all ranks divide them they have a unit of their own, no more. */
START_TEST(experts_among_all)
{
    run_policy("fsdp:dp=4,expert_ranks=4");
    expect_sent(MS_TRANSFER_GATHER, MS_GROUP_EXPERT_DATA, 2 * BLOCKS,
                3 * 2 * 384);
    expect_sent(MS_TRANSFER_OUTER, MS_GROUP_EXPERT_REPLICATE, 0, 0);
    uint64_t bytes = result.report->ranks[0].parameters_bytes;
    run_policy("fsdp:dp=4");
    ck_assert_uint_eq(result.report->ranks[0].parameters_bytes, bytes);
}
END_TEST

/* Of eight ranks each has 8 elements of a router (64), of four each 384 of the
 * experts (1536), which are summed once more by two that have the same. */
START_TEST(experts_of_stage_2)
{
    const uint64_t part = BLOCKS * (8 + 384);
    run_policy("zero:2,dp=8,expert_ranks=4");
    const ms_rank_report *rank = &result.report->ranks[0];
    ck_assert_uint_eq(rank->parameters_bytes, 2 * BLOCKS * (64 + 1536));
    ck_assert_uint_eq(rank->gradients_bytes, 2 * part);
    ck_assert_uint_eq(rank->optimizer_state_bytes, 12 * part + COUNTERS);
    expect_sent(MS_TRANSFER_SCATTER, MS_GROUP_DATA, BLOCKS, 7 * 2 * 8);
    expect_sent(MS_TRANSFER_SCATTER, MS_GROUP_EXPERT_DATA, BLOCKS, 3 * 2 * 384);
    expect_sent(MS_TRANSFER_OUTER, MS_GROUP_EXPERT_REPLICATE, BLOCKS, 2 * 384);
    expect_sent(MS_TRANSFER_GATHER, MS_GROUP_DATA, 1, BLOCKS * 7 * 2 * 8);
    expect_sent(MS_TRANSFER_GATHER, MS_GROUP_EXPERT_DATA, 1,
                BLOCKS * 3 * 2 * 384);
}
END_TEST

START_TEST(refused)
{
    static const char *const policies[] = {
        "zero:1,dp=8,expert_ranks=4", "zero:3,dp=8,expert_ranks=5",
        "fsdp:dp=8,expert_ranks=3", "fsdp:dp=8,expert_ranks=4,impl=1",
        "fsdp:dp=8,expert_ranks=4,reshard_ranks=2"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        ck_assert_int_eq(try_policy(policies[i]), MS_EUSAGE);
}
END_TEST

Suite *suite_group(void)
{
    Suite *suite = suite_create("group");
    TCase *tcase = tcase_create("group");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, order_decides_what_lies_in_a_node);
    tcase_add_test(tcase, any_order_is_a_grid);
    tcase_add_test(tcase, the_usual_order_need_not_be_named);
    tcase_add_test(tcase, orders_are_read);
    tcase_add_test(tcase, experts_are_divided_by_every_fourth);
    tcase_add_test(tcase, exchanges_have_the_node_and_its_peers);
    tcase_add_test(tcase, across_nodes_each_has_its_formula);
    tcase_add_test(tcase, in_a_node_nothing_nests);
    tcase_add_test(tcase, a_forced_algorithm_has_no_curve);
    tcase_add_test(tcase, experts_and_the_rest);
    tcase_add_test(tcase, experts_among_all);
    tcase_add_test(tcase, experts_of_stage_2);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
