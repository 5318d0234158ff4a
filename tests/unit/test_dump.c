/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs and graphs as text, read back. */
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <string.h>

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static const char *dump(const ms_program *program)
{
    ms_text text = {.arena = &arena};
    ms_dump_program(&graph, program, &text);
    ck_assert(!text.failed);
    return text.bytes;
}

static ms_err read_back(const char *text, ms_program *program)
{
    return ms_dumpread_program(&graph, "p.txt", text, strlen(text), &arena,
                               program, &fault);
}

/* A move's payload is as large as any and has no padding. */
static bool same_payload(const ms_call *a, const ms_call *b)
{
    if (a->verb == MS_RUN)
        return a->run.pass == b->run.pass && a->run.saves == b->run.saves &&
               a->run.keep == b->run.keep;
    return memcmp(&a->move, &b->move, sizeof a->move) == 0;
}

static bool same_call(const ms_call *a, const ms_call *b)
{
    return a->verb == b->verb && a->rank == b->rank && a->frame == b->frame &&
           a->micro_batch == b->micro_batch && a->unit == b->unit &&
           a->last == b->last && a->set == b->set && a->buffer == b->buffer &&
           same_payload(a, b);
}

static void assert_same(const ms_program *a, const ms_program *b)
{
    ck_assert_uint_eq(a->n_calls, b->n_calls);
    ck_assert_uint_eq(a->n_sets, b->n_sets);
    ck_assert_uint_eq(a->set_items, b->set_items);
    ck_assert_uint_eq(a->n_tasks, b->n_tasks);
    ck_assert_uint_eq(a->n_frames, b->n_frames);
    ck_assert_uint_eq(a->n_ranks, b->n_ranks);
    ck_assert_uint_eq(a->n_micro_batches, b->n_micro_batches);
    for (uint32_t i = 0; i < a->n_calls; i++)
        ck_assert_msg(same_call(&a->calls[i], &b->calls[i]), "call %u", i);
    for (uint32_t i = 0; i < a->n_sets; i++)
        ck_assert_uint_eq(a->set_at[i + 1], b->set_at[i + 1]);
    for (uint32_t i = 0; i < a->set_items; i++)
        ck_assert_uint_eq(a->set_item[i], b->set_item[i]);
}

START_TEST(text_of_a_small_program)
{
    ms_keep keep;
    ms_program program;
    laws_chain(2, 1, &arena, &graph);
    ck_assert_int_eq(ms_program_keep_all(&graph, &arena, &keep, &fault), MS_OK);
    keep.segment[1] = 0;
    keep.place[2] = MS_GONE;
    ck_assert_int_eq(
        ms_defaultprogram_alone(&graph, &keep, 1, &arena, &program, &fault),
        MS_OK);
    ck_assert_str_eq(
        dump(&program),
        "memsim-program 1\n"
        "frames 1 ranks 1 micro-batches 1\n"
        "set 0 = 1  # s1\n"
        "set 1 = 1  # s1\n"
        "set 2 = 2 3  # s2 s3\n"
        "mark start frame 0 micro 0\n"
        "run forward unit 0 frame 0 micro 0 keep nothing hold 1  # "
        "block.0\n"
        "run forward unit 1 frame 0 micro 0 keep all hold nothing  # "
        "block.1\n"
        "mark before_loss frame 0 micro 0\n"
        "run forward unit 2 frame 0 micro 0 keep all hold nothing  # "
        "block.2\n"
        "mark after_forward frame 0 micro 0\n"
        "run backward unit 2 frame 0 micro 0  # block.2\n"
        "rerun units 1-1 frame 0 micro 0\n"
        "run backward unit 1 frame 0 micro 0  # block.1\n"
        "drop 0 frame 0 micro 0\n"
        "run backward unit 0 frame 0 micro 0  # block.0\n"
        "mark after_backward frame 0 micro 0\n"
        "drop 2 frame 0 micro 0\n"
        "mark end frame 0 micro 0\n");
}
END_TEST

/* The roles of which two are of one rank, and a row of the program's own. */
#define N_GROUPS (MS_N_GROUP_ROLES + 1u)
static const ms_group groups[N_GROUPS] = {
    {"data", 4, 1, 2, MS_ALGORITHM_FASTEST, MS_STREAM_COMM, {0}},
    {"replicate", 2, 4, 1, MS_ALGORITHM_RING, MS_STREAM_OUTER, {0}},
    {.ranks = 1, .queue = MS_STREAM_COMM},
    {"node", 2, 1, 2, MS_ALGORITHM_TREE, MS_STREAM_COMM, {0}},
    {.ranks = 1, .queue = MS_STREAM_COMM},
    {"expert-data", 2, 4, 1, MS_ALGORITHM_SWITCH, MS_STREAM_COMM, {0}},
    {"expert-replicate", 4, 1, 2, MS_ALGORITHM_NESTED, MS_STREAM_OUTER, {0}},
    {"pairs", 2, 2, 1, MS_ALGORITHM_FASTEST, MS_STREAM_OUTER, {0}},
};

/* Random graphs, keeps, moves, work and collectives: what is printed reads back
 * the same. */
START_TEST(programs_read_back)
{
    laws_random random = {(uint64_t)_i + 1};
    ms_keep keep;
    ms_program program, again;
    laws_graph(&random, &arena, &graph);
    laws_keep(&random, &graph, &arena, &keep);
    keep.reentrant = _i % 2;
    keep.early_stop = _i % 3;
    ck_assert_int_eq(ms_defaultprogram_alone(&graph, &keep,
                                             1 + (uint32_t)_i % 3, &arena,
                                             &program, &fault),
                     MS_OK);
    laws_moves(&random, &graph, &arena, &program);
    laws_work(&random, &graph, &arena, &program);
    laws_collectives(&random, &graph, &arena, &program);
    program.groups = groups;
    program.n_groups = _i % 2 ? N_GROUPS : 0;
    const char *text = dump(&program);
    ck_assert_msg(read_back(text, &again) == MS_OK, "%s: %s", fault.where,
                  fault.what);
    assert_same(&program, &again);
    ck_assert_str_eq(dump(&again), text);
}
END_TEST

/* What goes to the disk without a copy on the host says so. */
START_TEST(moves_past_the_host)
{
    ms_program program;
    laws_chain(2, 1, &arena, &graph);
    const char *text =
        "memsim-program 1\nframes 1 ranks 1 micro-batches 1\nset 0 = 1\n"
        "run forward unit 0 frame 0 micro 0 keep all hold nothing\n"
        "move 0 frame 0 micro 0 to nvme straight\n";
    ck_assert_msg(read_back(text, &program) == MS_OK, "%s", fault.what);
    ck_assert(program.calls[1].move.straight);
    ck_assert_ptr_nonnull(
        strstr(dump(&program), "move 0 frame 0 micro 0 to nvme straight\n"));
}
END_TEST

START_TEST(ranks_that_meet)
{
    ms_program program;
    laws_chain(2, 1, &arena, &graph);
    const char *text =
        "memsim-program 1\nframes 1 ranks 2 micro-batches 1\n"
        "set 0 = 0\n"
        "reduce 0 frame 0 micro 0 to here group 7 tag 1\n"
        "reduce 0 frame 0 micro 0 rank 1 to here group 7 tag 1\n";
    ck_assert_msg(read_back(text, &program) == MS_OK, "%s", fault.what);
    ck_assert_uint_eq(program.calls[1].reduce.tag, 1);
    ck_assert_ptr_nonnull(strstr(dump(&program), strstr(text, "reduce")));
}
END_TEST

#define HEAD "memsim-program 1\nframes 2 ranks 1 micro-batches 2\n"

static const struct {
    const char *text, *where, *what, *hint;
} mistakes[] = {
    {"", "p.txt", "the program is empty", "--dump program prints one"},
    {"# nothing\n\n", "p.txt", "the program is empty",
     "--dump program prints one"},
    {"memsim-plan 1\n", "p.txt:1:1",
     "expected \"memsim-program\", not \"memsim-plan\"", ""},
    {"memsim-program 2\n", "p.txt:1:16", "version 2 is out of range: 1 to 1",
     ""},
    {"memsim-program 1\n", "p.txt:2:1",
     "the line ends where \"frames\" should be", ""},
    {"memsim-program 1\nframes 1 ranks 65536 micro-batches 1", "p.txt:2:16",
     "ranks 65536 is out of range: 1 to 65535", ""},
    {HEAD "set 0 = 0\nreduce 0 to here tag 1\n", "p.txt:4:1",
     "there is one rank, which meets no other (tag 1)", "leave tag out"},
    {HEAD "rnu forward unit 0\n", "p.txt:3:1", "unknown call \"rnu\"",
     "did you mean \"run\"?"},
    {HEAD "run backwards unit 0\n", "p.txt:3:5", "unknown pass \"backwards\"",
     "did you mean \"backward\"?"},
    {HEAD "run forward unit 3\n", "p.txt:3:18",
     "unit 3 is out of range: 0 to 2", ""},
    {HEAD "run forward unit 99999999999999999999999999\n", "p.txt:3:18",
     "unit 99999999999999999999999999 is out of range: 0 to 2", ""},
    {HEAD "run forward unit -1\n", "p.txt:3:18", "expected unit, not \"-1\"",
     ""},
    {HEAD "run forward unit\n", "p.txt:3:17",
     "the line ends where unit should be", ""},
    {HEAD "run forward unit 1 frmae 0\n", "p.txt:3:20", "unknown key \"frmae\"",
     "did you mean \"frame\"?"},
    {HEAD "run forward unit 1 unit 1\n", "p.txt:3:20",
     "\"unit\" is given twice", ""},
    {HEAD "run forward unit 1 whole\n", "p.txt:3:20",
     "\"run\" has no \"whole\"", ""},
    {HEAD "run forward unit 1 keep 0\n", "p.txt:3:25",
     "no set is defined before this line",
     "sets stand before the calls that name them"},
    {HEAD "set 1 = 2\n", "p.txt:3:5", "set 1 is out of range: 0 to 0", ""},
    {HEAD "set 0 =\n", "p.txt:3:8", "the line ends where storage should be",
     ""},
    {HEAD "set 0 = 1\nhold 1\n", "p.txt:4:6", "set 1 is out of range: 0 to 0",
     ""},
    {HEAD "rerun units 2\n", "p.txt:3:13",
     "expected units FIRST-LAST, not \"2\"", ""},
    {HEAD "rerun units 2-1\n", "p.txt:3:15", "unit 1 is out of range: 2 to 2",
     ""},
    {HEAD "mark middle\n", "p.txt:3:6", "unknown mark \"middle\"", ""},
    {HEAD "run forward unit 1 frame 2\n", "p.txt:3:26",
     "frame 2 is out of range: 0 to 1", ""},
    {HEAD "\n  run backward unit 1\n", "p.txt:4:3",
     "backward of unit 1 (block.1) without its forward",
     "run each unit forward before its backward"},
    {HEAD "run forward unit 1 frame 0\nrun backward unit 1 frame 1\n",
     "p.txt:4:1", "backward of unit 1 (block.1) without its forward",
     "run each unit forward before its backward"},
    {HEAD "run forward\n", "p.txt:3:1",
     "there are no units 4294967295-4294967295; the graph has 3", ""},
    {HEAD "move all to gone\n", "p.txt:3:1",
     "a set moves to here, host, nvme, shard or packed, not to "
     "place 2",
     ""},
};

START_TEST(mistakes_are_located)
{
    ms_program program;
    laws_chain(2, 1, &arena, &graph);
    ck_assert_int_eq(read_back(mistakes[_i].text, &program), MS_EINPUT);
    ck_assert_str_eq(fault.what, mistakes[_i].what);
    ck_assert_str_eq(fault.where, mistakes[_i].where);
    ck_assert_str_eq(fault.hint, mistakes[_i].hint);
}
END_TEST

START_TEST(layout_is_free)
{
    ms_program program;
    laws_chain(2, 1, &arena, &graph);
    ck_assert_int_eq(
        read_back("# by hand\r\n\r\nmemsim-program\t1 # form\r\n"
                  "frames 1 ranks 1 micro-batches 1\r\n"
                  "set 0 = 1 # a_1\r\n"
                  "  run forward keep 0 unit 1\r\nsync\r\nstep all",
                  &program),
        MS_OK);
    ck_assert_uint_eq(program.n_calls, 3);
    ck_assert_uint_eq(program.calls[0].run.keep, 0);
    ck_assert_uint_eq(program.calls[0].last, 1);
    ck_assert_uint_eq(program.calls[2].set, MS_ALL);
}
END_TEST

/* Before there were rows of groups. */
START_TEST(outer_is_a_row)
{
    ms_program program;
    laws_chain(2, 1, &arena, &graph);
    ck_assert_int_eq(read_back("memsim-program 1\n"
                               "frames 1 ranks 1 micro-batches 1\n"
                               "gather all\ngather all outer\n"
                               "reduce all to shard\n"
                               "reduce all to shard outer\n"
                               "reduce all to here exchange\n"
                               "reduce all to shard exchange outer\n",
                               &program),
                     MS_OK);
    static const uint8_t reduced[] = {MS_GROUP_DATA, MS_GROUP_REPLICATE,
                                      MS_GROUP_NODE, MS_GROUP_ACROSS};
    ck_assert_uint_eq(program.calls[0].gather.group, MS_GROUP_DATA);
    ck_assert_uint_eq(program.calls[1].gather.group, MS_GROUP_SECONDARY);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(program.calls[2 + i].reduce.group, reduced[i]);
    ck_assert_uint_eq(program.n_groups, 0);
}
END_TEST

START_TEST(frames_are_bounded)
{
    ms_program program;
    laws_chain(40, 1, &arena, &graph);
    ck_assert_int_eq(read_back("memsim-program 1\n"
                               "frames 65535 ranks 255 micro-batches 1\n",
                               &program),
                     MS_EINPUT);
    ck_assert_str_eq(fault.what,
                     "65535 frames on 255 ranks are too many for 41 units");
}
END_TEST

/* Every cut and every changed byte of a good program is read or refused. */
START_TEST(damaged_texts)
{
    laws_random random = {3};
    ms_keep keep;
    ms_program program;
    laws_chain(3, 1, &arena, &graph);
    laws_keep(&random, &graph, &arena, &keep);
    ck_assert_int_eq(
        ms_defaultprogram_alone(&graph, &keep, 2, &arena, &program, &fault),
        MS_OK);
    const char *good = dump(&program);
    size_t length = strlen(good);
    char *bad = ms_arena_take(&arena, length + 1, 1);
    for (size_t cut = 0; cut < length; cut++) {
        ms_arena scratch = {.limit_bytes = 1 << 20};
        ms_fault found = {0};
        ms_err err = ms_dumpread_program(&graph, "p", good, cut, &scratch,
                                         &program, &found);
        ck_assert_int_eq(err, found.err);
        memcpy(bad, good, length);
        bad[cut] = (char)laws_below(&random, 256);
        ms_arena_reset(&scratch);
        found = (ms_fault){0};
        err = ms_dumpread_program(&graph, "p", bad, length, &scratch, &program,
                                  &found);
        ck_assert_int_eq(err, found.err);
        ms_arena_free(&scratch);
    }
}
END_TEST

static void expect_line(const ms_text *text, const char *line)
{
    ck_assert_msg(strstr(text->bytes, line) != NULL, "no \"%s\" in\n%s", line,
                  text->bytes);
}

START_TEST(text_of_a_graph)
{
    ms_text text = {.arena = &arena};
    laws_chain(1, 8, &arena, &graph);
    graph.name = "two\nlines";
    ms_dump_graph(&graph, NULL, 0, &text);
    ck_assert(!text.failed);
    ck_assert_str_eq(
        text.bytes,
        "memsim-graph 1  # two?lines\n"
        "parameters 0 units 2 loss-unit 1 ops 4 step-first 4 storages 5 "
        "persistent 1\n"
        "# ranges end before their second number; \"drop 7s\" ends the saved "
        "reference of 7\n"
        "kept-to backward 1 2\n"
        "unit 0 forward 0-1 backward 3-4  # block.0 block block.0\n"
        "unit 1 forward 1-2 backward 2-3 in 1  # block.1\n"
        "storage 0 bytes 8 inputs at-start  # s0\n"
        "storage 1 bytes 8 activations maker 0 local-end 1  # s1\n"
        "storage 2 bytes 1 activations maker 1 local-end 1 saved-end 2  # "
        "s2\n"
        "storage 3 bytes 8 temporaries maker 2 local-end 3  # s3\n"
        "storage 4 bytes 8 temporaries maker 3 local-end 3  # s4\n"
        "op 0 op0 forward unit 0 ns 10 flops 10 in 0 out 1  # layer\n"
        "op 1 op1 loss unit 1 ns 0 in 1 out 2 drop 1 2  # layer\n"
        "op 2 op2 grad_input unit 1 ns 0 in 2 out 3 drop 2s  # layer\n"
        "op 3 op3 grad_input unit 0 ns 20 flops 20 in 3 0 out 4 drop 3 4  # "
        "layer\n");
}
END_TEST

/* Two nodes of 8, four neighbours divide the input: HSDP, and gathers of it. */
START_TEST(groups_of_a_graph)
{
    ms_text text = {.arena = &arena};
    uint64_t part[1] = {2};
    uint8_t of[1] = {MS_GROUP_DATA};
    ms_group rows[MS_N_GROUP_ROLES] = {
        [MS_GROUP_DATA] = ms_group_of(MS_GROUP_DATA, 4, 1, 8),
        [MS_GROUP_REPLICATE] = ms_group_of(MS_GROUP_REPLICATE, 4, 4, 8),
        [MS_GROUP_NODE] = ms_group_of(MS_GROUP_NODE, 1, 1, 8)};
    rows[MS_GROUP_DATA].links =
        (ms_links){.nvlink = true, .node_bytes_per_s = 4e11, .nvls_share = 0.5};
    rows[MS_GROUP_REPLICATE].links = (ms_links){.node_bytes_per_s = 2e10,
                                                .network_bytes_per_s = 1e10,
                                                .peer_bytes_per_s = 5,
                                                .n_curves = 3};
    rows[MS_GROUP_REPLICATE].algorithm = MS_ALGORITHM_TREE;
    laws_chain(1, 8, &arena, &graph);
    graph.storage_shard_bytes = part;
    graph.storage_shard_group = of;
    graph.share[MS_GROUP_DATA] =
        (ms_share){.parts = 4, .copies = 4, .again = MS_GROUP_REPLICATE};
    graph.op_flags[3] |= MS_OP_GATHERS;
    ms_dump_graph(&graph, rows, MS_N_GROUP_ROLES, &text);
    ck_assert(!text.failed);
    expect_line(&text, "\ngroup 0 = data ranks 4 stride 1 node 8 comm fastest "
                       "nodes 1 nvlink 4e+11 switch 0.5 parts 4 "
                       "copies 4 again 1\n"
                       "group 1 = replicate ranks 4 stride 4 node 2 outer tree "
                       "nodes 2 pcie 2e+10 network 1e+10 pair 5 "
                       "curves 3\n"
                       "unit 0 ");
    expect_line(&text,
                "\nstorage 0 bytes 8 inputs at-start part 2 group 0  # s0\n"
                "storage 1 bytes 8 activations maker");
    expect_line(&text, "\nop 3 op3 grad_input unit 0 gathers group 0 ns 20");
    part[0] = MS_UNSHARED;
    text.length = 0;
    ms_dump_graph(&graph, rows, MS_N_GROUP_ROLES, &text);
    expect_line(&text, "\nstorage 0 bytes 8 inputs at-start  # s0\n");
}
END_TEST

Suite *suite_dump(void)
{
    Suite *suite = suite_create("dump");
    TCase *tcase = tcase_create("dump");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, text_of_a_small_program);
    tcase_add_loop_test(tcase, programs_read_back, 0, 50);
    tcase_add_test(tcase, moves_past_the_host);
    tcase_add_test(tcase, ranks_that_meet);
    tcase_add_loop_test(tcase, mistakes_are_located, 0,
                        (int)(sizeof mistakes / sizeof mistakes[0]));
    tcase_add_test(tcase, layout_is_free);
    tcase_add_test(tcase, outer_is_a_row);
    tcase_add_test(tcase, frames_are_bounded);
    tcase_add_test(tcase, damaged_texts);
    tcase_add_test(tcase, text_of_a_graph);
    tcase_add_test(tcase, groups_of_a_graph);
    suite_add_tcase(suite, tcase);
    return suite;
}
