/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs of calls by hand, and the checks of wrong ones. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;
static ms_keep keep;
static ms_program program;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* A chain of n units; units [first, last] are one segment if first <= last. */
static void build(uint32_t n, uint32_t first, uint32_t last)
{
    laws_chain(n, 1, &arena, &graph);
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
    ck_assert_int_eq(ms_program_keep_all(&graph, &arena, &keep, &fault), MS_OK);
    for (uint32_t u = first; u <= last && u < n; u++) {
        keep.segment[u] = 0;
        keep.place[u + 1] = MS_GONE; /* a_(u + 1) is made in unit u */
    }
}

static void write_default(uint32_t micro_batches)
{
    ck_assert_int_eq(ms_defaultprogram_alone(&graph, &keep, micro_batches,
                                             &arena, &program, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_check_program(&graph, &program, &fault), MS_OK);
}

/* Calls as letters, e.g. "F0" forward of unit 0. */
static const char *letters(void)
{
    static const char verbs[] = "?R>SHD|M";
    ms_text text = {.arena = &arena};
    for (uint32_t i = 0; i < program.n_calls; i++) {
        const ms_call *call = &program.calls[i];
        if (call->verb == MS_RUN)
            ms_text_add(&text, "%c%u ",
                        call->run.pass == MS_FORWARD ? 'F' : 'B', call->unit);
        else if (call->verb == MS_RERUN)
            ms_text_add(&text, "R%u-%u ", call->unit, call->last);
        else if (call->verb == MS_MARK)
            ms_text_add(&text, "M%u ", (unsigned)call->mark.mark);
        else
            ms_text_add(&text, "%c ", verbs[call->verb]);
    }
    return text.bytes;
}

static void assert_set(uint32_t set, const uint32_t *items, uint32_t n)
{
    ck_assert_uint_lt(set, program.n_sets);
    ck_assert_uint_eq(program.set_at[set + 1] - program.set_at[set], n);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_uint_eq(program.set_item[program.set_at[set] + i], items[i]);
}

static const ms_call *find(ms_verb verb, uint32_t nth)
{
    for (uint32_t i = 0; i < program.n_calls; i++)
        if (program.calls[i].verb == verb && nth-- == 0)
            return &program.calls[i];
    ck_abort_msg("no such call");
}

static void assert_rerun(uint32_t nth, ms_rerun_call how)
{
    const ms_rerun_call *found = &find(MS_RERUN, nth)->rerun;
    ck_assert_int_eq(found->whole, how.whole);
    ck_assert_int_eq(found->holds, how.holds);
    ck_assert_int_eq(found->state, how.state);
    ck_assert_int_eq(found->part, how.part);
}

START_TEST(keeping_all)
{
    build(2, 1, 0);
    write_default(1);
    ck_assert_str_eq(letters(), "M0 F0 F1 M1 F2 M2 B2 B1 B0 M3 D M4 ");
    ck_assert_uint_eq(program.n_frames, 1);
    ck_assert_uint_eq(program.n_ranks, 1);
    for (uint32_t i = 0; i < program.n_calls; i++)
        if (program.calls[i].verb == MS_RUN &&
            program.calls[i].run.pass == MS_FORWARD) {
            ck_assert_uint_eq(program.calls[i].run.keep, MS_ALL);
            ck_assert_uint_eq(program.calls[i].set, MS_NOTHING);
        }
    assert_set(find(MS_DROP_SET, 0)->set, (uint32_t[]){2, 3}, 2);
}
END_TEST

START_TEST(one_segment)
{
    build(4, 1, 2);
    write_default(1);
    /* Unit 3, in no segment, saved a_3, which the segment makes: held until
     * B3 has run. */
    ck_assert_str_eq(letters(), "M0 F0 F1 F2 H F3 M1 F4 M2 "
                                "B4 B3 D R1-2 B2 B1 D B0 M3 D M4 ");
    assert_set(find(MS_HOLD, 0)->set, (uint32_t[]){3}, 1);
    ck_assert(find(MS_HOLD, 0)->hold.saves);
    assert_set(find(MS_DROP_SET, 0)->set, (uint32_t[]){3}, 1);
    /* The segment reads a_1, which unit 0 makes and nobody else saves: it is
     * held, not saved. */
    assert_set(find(MS_RUN, 0)->set, (uint32_t[]){1}, 1);
    ck_assert_uint_eq(find(MS_RUN, 0)->run.keep, MS_NOTHING);
    ck_assert_uint_eq(find(MS_RUN, 1)->run.keep, MS_NOTHING);
    ck_assert_uint_eq(find(MS_RUN, 1)->set, MS_NOTHING);
    assert_rerun(0, (ms_rerun_call){0});
    const ms_call *drop = find(MS_DROP_SET, 1);
    assert_set(drop->set, (uint32_t[]){1}, 1);
    ck_assert_uint_eq(drop->unit, MS_NONE);
}
END_TEST

START_TEST(variants_of_the_replay)
{
    build(4, 1, 2);
    keep.early_stop = false;
    write_default(1);
    assert_rerun(0, (ms_rerun_call){.whole = true});
    keep.early_stop = true;
    keep.reentrant = true;
    write_default(1);
    assert_rerun(0, (ms_rerun_call){.whole = true, .holds = true});
    ck_assert_uint_eq(find(MS_DROP_SET, 1)->unit, 1);
    ck_assert_uint_eq(find(MS_DROP_SET, 1)->last, 2);
}
END_TEST

/* Equal ids with a gap between them are two segments. */
START_TEST(a_gap_parts_a_segment)
{
    build(5, 0, 3);
    keep.segment[2] = MS_NONE;
    write_default(1);
    ck_assert_str_eq(letters(), "M0 F0 F1 H F2 F3 H F4 M1 F5 M2 B5 B4 D "
                                "R3-3 B3 D B2 D R0-1 B1 B0 M3 D M4 ");
}
END_TEST

/* Both segments read what unit 0 makes: the one replayed last drops it. */
START_TEST(a_skip_is_held_once)
{
    build(3, 1, 2);
    keep.segment[2] = 1;
    uint32_t *at = graph.unit_in_at;
    uint32_t *in = ms_arena_take(&arena, at[4] + 1, sizeof *in);
    memcpy(in, graph.unit_in, at[3] * sizeof *in);
    in[at[3]] = 1; /* unit 2 reads a_1 too */
    in[at[3] + 1] = graph.unit_in[at[3]];
    at[3]++;
    at[4]++;
    graph.unit_in = in;
    write_default(1);
    assert_set(find(MS_RUN, 0)->set, (uint32_t[]){1}, 1);
    assert_set(find(MS_RUN, 1)->set, (uint32_t[]){2}, 1);
    ck_assert_str_eq(letters(), "M0 F0 F1 F2 M1 F3 M2 B3 R2-2 B2 D R1-1 B1 D "
                                "B0 M3 D M4 ");
    assert_set(find(MS_DROP_SET, 0)->set, (uint32_t[]){2}, 1);
    assert_set(find(MS_DROP_SET, 1)->set, (uint32_t[]){1}, 1);
}
END_TEST

START_TEST(single_storages_can_go)
{
    build(4, 1, 0);
    keep.place[2] = MS_GONE;
    write_default(1);
    ck_assert_uint_eq(find(MS_RUN, 0)->run.keep, MS_ALL);
    ck_assert_uint_eq(find(MS_RUN, 1)->run.keep, MS_NOTHING);
    /* With a second saved output of unit 1 the rest is a set. */
    graph.out_at[2]++;
    for (uint32_t op = 3; op <= graph.n_ops; op++)
        graph.out_at[op]++;
    memmove(graph.out + 3, graph.out + 2,
            (graph.out_at[graph.n_ops] - 3) * sizeof *graph.out);
    graph.out[2] = 3;
    write_default(1);
    assert_set(find(MS_RUN, 1)->run.keep, (uint32_t[]){3}, 1);
}
END_TEST

START_TEST(micro_batches_share_the_sets)
{
    build(4, 1, 2);
    write_default(1);
    uint32_t sets = program.n_sets, calls = program.n_calls - 2;
    write_default(1000);
    ck_assert_uint_eq(program.n_sets, sets);
    ck_assert_uint_eq(program.n_calls, 1000 * calls + 2);
    ck_assert_uint_eq(program.n_micro_batches, 1000);
    ck_assert_uint_eq(program.calls[program.n_calls - 1].micro_batch, 999);
    ck_assert_uint_eq(program.calls[calls].micro_batch, 0);
    ck_assert_uint_eq(program.calls[calls + 1].micro_batch, 1);
    ck_assert_int_eq(program.calls[calls + 1].verb, MS_RUN);
}
END_TEST

START_TEST(outputs_kept_to_the_step)
{
    build(1, 1, 0);
    graph.keep_to_step = true;
    write_default(2);
    ck_assert_str_eq(letters(), "M0 F0 M1 F1 M2 B1 B0 M3 "
                                "F0 M1 F1 M2 B1 B0 M3 D M4 ");
}
END_TEST

/* What a laws graph has and the chain has not: an optimizer. */
START_TEST(the_step_comes_last)
{
    laws_random random = {7};
    laws_graph(&random, &arena, &graph);
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
    laws_keep(&random, &graph, &arena, &keep);
    write_default(3);
    ck_assert_int_eq(program.calls[program.n_calls - 1].verb, MS_MARK);
    ck_assert_uint_eq(find(MS_STEP_SET, 0)->set, MS_ALL);
    ck_assert_uint_eq(find(MS_STEP_SET, 0)->micro_batch, 2);
}
END_TEST

/* ---- checks -------------------------------------------------------------- */

static void refused(ms_call call, const char *what)
{
    uint32_t n = program.n_calls;
    ms_fault found = {0};
    ck_assert_int_eq(ms_program_add(&program, call, &arena, &fault), MS_OK);
    ck_assert_int_eq(ms_check_program(&graph, &program, &found), MS_EINPUT);
    ck_assert_str_eq(found.what, what);
    ck_assert_ptr_nonnull(strstr(found.where, "call "));
    program.n_calls = n;
}

START_TEST(wrong_calls_are_found)
{
    build(2, 1, 0);
    write_default(1);
    ms_call call = ms_program_call(MS_RUN);
    refused(call, "there are no units 4294967295-4294967295; the graph has "
                  "3");
    call.unit = 0;
    call.run.pass = MS_GRAD_INPUT;
    refused(call, "backward of unit 0 (block.0) without its forward");
    call.run.pass = MS_STEP;
    refused(call, "a unit runs forward or backward, not pass 5");
    call.run.pass = MS_FORWARD;
    call.run.keep = 1;
    refused(call, "there is no set 1; the program has 1");
    call.run.keep = MS_ALL;
    call.frame = 1;
    refused(call, "frame 1 is out of range: 0 to 0");
    call.frame = 0;
    call.rank = 2;
    refused(call, "rank 2 is out of range: 0 to 0");
    call.rank = 0;
    call.micro_batch = 1;
    refused(call, "micro-batch 1 is out of range: 0 to 0");
    call = ms_program_call(MS_MARK);
    call.mark.mark = MS_N_MARKS;
    refused(call, "there is no mark 5");
    call = ms_program_call(MS_MOVE);
    call.move.to = MS_GONE;
    refused(call, "a set moves to here, host, nvme, shard or packed, not to "
                  "place 2");
    call = ms_program_call(MS_RERUN);
    call.unit = call.last = 1;
    refused(call, "unit 1 (block.1) is run again before its forward");
    call.unit = 2;
    refused(call, "there are no units 2-1; the graph has 3");
    call.verb = MS_N_VERBS;
    char what[32];
    snprintf(what, sizeof what, "there is no verb %d", MS_N_VERBS);
    refused(call, what);
}
END_TEST

/* A replay in parts: what stands between them is another's. */
START_TEST(parts_are_checked)
{
    ms_fault found = {0};
    build(4, 1, 3);
    write_default(1);
    ck_assert_int_eq(ms_program_part_replays(&graph, &program, &arena, &found),
                     MS_OK);
    ck_assert_str_eq(letters(), "M0 F0 F1 F2 F3 M1 F4 M2 "
                                "B4 R1-3 R2-3 R3-3 B3 B2 B1 D B0 M3 D M4 ");
    assert_rerun(2, (ms_rerun_call){.part = true});
    ck_assert_int_eq(ms_check_program(&graph, &program, &found), MS_OK);
    ms_call *second = (ms_call *)find(MS_RERUN, 1), part = *second;
    second->unit = 3;
    ck_assert_int_eq(ms_check_program(&graph, &program, &found), MS_EINPUT);
    ck_assert_str_eq(found.what, "units 3-3 are run again where the part of "
                                 "unit 2 (block.2) comes next");
    *second = part;
    ((ms_call *)find(MS_RERUN, 2))->verb = MS_SYNC;
    found = (ms_fault){0};
    ck_assert_int_eq(ms_check_program(&graph, &program, &found), MS_EINPUT);
    ck_assert_str_eq(found.what, "the program ends before the part of unit 3 "
                                 "(block.3)");
}
END_TEST

START_TEST(graphs_are_checked)
{
    uint32_t *columns[] = {graph.storage_maker, graph.storage_local_end,
                           graph.op_unit,       graph.in,
                           graph.out,           graph.drop,
                           graph.forward_at,    graph.in_at};
    build(3, 1, 0);
    uint32_t *now[] = {graph.storage_maker, graph.storage_local_end,
                       graph.op_unit,       graph.in,
                       graph.out,           graph.drop,
                       graph.forward_at,    graph.in_at};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        ms_fault found = {0};
        uint32_t before = now[i][2];
        now[i][2] = 77;
        ck_assert_int_eq(ms_graph_check(&graph, &found), MS_EINPUT);
        ck_assert_str_ne(found.what, "");
        now[i][2] = before;
    }
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
}
END_TEST

/* Two entries of one list made one: the first op whose list has two. */
static void check_doubled(const uint32_t *at, uint32_t *list, const char *what)
{
    uint32_t op = 0;
    ms_fault found = {0};
    while (op < graph.n_ops && at[op + 1] - at[op] < 2)
        op++;
    ck_assert_uint_lt(op, graph.n_ops);
    uint32_t before = list[at[op] + 1];
    list[at[op] + 1] = list[at[op]];
    ck_assert_int_eq(ms_graph_check(&graph, &found), MS_EINPUT);
    ck_assert_str_eq(found.what, what);
    list[at[op] + 1] = before;
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
}

START_TEST(lists_name_each_once)
{
    laws_random random = {7};
    laws_graph(&random, &arena, &graph);
    check_doubled(graph.drop_at, graph.drop,
                  "drops a reference that ends elsewhere");
    check_doubled(graph.out_at, graph.out,
                  "makes a storage that has another maker");
}
END_TEST

START_TEST(no_memory_is_a_fault)
{
    ms_program written;
    build(8, 2, 5);
    arena.limit_bytes = arena.used_bytes;
    uint64_t used = arena.used_bytes;
    ms_err err = MS_ENOMEM;
    for (uint64_t more = 0; err != MS_OK; more += 16) {
        ms_fault found = {0};
        arena.limit_bytes = arena.used_bytes + more;
        err =
            ms_defaultprogram_alone(&graph, &keep, 2, &arena, &written, &found);
        ck_assert_int_eq(err, found.err);
        ck_assert(err == MS_OK || err == MS_ENOMEM);
    }
    ck_assert_uint_gt(arena.used_bytes, used);
}
END_TEST

/* ---- ops in place -------------------------------------------------------- */

enum { INPUT, MADE, OUTPUT, LOSS, D_OUTPUT, D_MADE, D_INPUT, N_STORAGES };

/* Unit 0 makes a tensor (10 ns) and finishes it in place (3 ns); unit 1, whose
 * backward reads it, makes the output. */
static void build_in_place(void)
{
    static const uint32_t loss[] = {LOSS}, made[] = {MADE}, out[] = {OUTPUT};
    static const uint32_t input[] = {INPUT}, second[] = {D_OUTPUT, MADE};
    static const uint32_t third[] = {D_MADE, INPUT}, d_out[] = {D_OUTPUT};
    static const uint32_t d_made[] = {D_MADE}, d_in[] = {D_INPUT};
    laws_builder b;
    laws_build_open(&b, &graph, &arena, N_STORAGES, 8, 3);
    laws_build_storage(&b, 8, MS_INPUTS, true);
    graph.n_persistent = 1;
    for (uint32_t s = MADE; s < N_STORAGES; s++)
        laws_build_storage(
            &b, 8, s < D_OUTPUT ? MS_ACTIVATIONS : MS_TEMPORARIES, false);
    laws_build_op(&b, MS_FORWARD, 0, 10, input, 1, made, 1);
    laws_build_op(&b, MS_FORWARD, 0, 3, made, 1, NULL, 0);
    graph.forward_at[1] = laws_build_op(&b, MS_FORWARD, 1, 10, made, 1, out, 1);
    graph.forward_at[2] = laws_build_op(&b, MS_LOSS, 2, 0, out, 1, loss, 1);
    graph.loss_unit = 2;
    graph.storage_saved_end[LOSS] =
        laws_build_op(&b, MS_GRAD_INPUT, 2, 0, loss, 1, d_out, 1);
    graph.forward_at[3] = graph.backward_at[3] = graph.storage_saved_end[LOSS];
    graph.backward_at[2] = graph.storage_saved_end[MADE] =
        laws_build_op(&b, MS_GRAD_INPUT, 1, 20, second, 2, d_made, 1);
    graph.backward_at[1] =
        laws_build_op(&b, MS_GRAD_INPUT, 0, 20, third, 2, d_in, 1);
    graph.backward_at[0] = graph.step_first = graph.n_ops;
    graph.kept[graph.n_kept++] = OUTPUT;
    laws_build_close(&b);
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
    ck_assert_int_eq(ms_program_keep_all(&graph, &arena, &keep, &fault), MS_OK);
}

/* On demand or before the backward of its segment: made again, finished
 * again. */
START_TEST(what_is_finished_in_place_is_so_again)
{
    for (uint32_t segments = 0; segments < 2; segments++) {
        ms_plan plan;
        uint64_t ns = 0;
        build_in_place();
        keep.place[MADE] = MS_GONE;
        if (segments)
            keep.segment[0] = keep.segment[1] = 0;
        write_default(1);
        ms_expand_opts opts = {.uses = true};
        ck_assert_int_eq(
            ms_expand(&graph, &program, &opts, &arena, &plan, &fault), MS_OK);
        for (uint32_t op = 0; op < plan.n_ops; op++)
            ns += plan.op[op].pass == MS_RECOMPUTE ? plan.op[op].ns : 0;
        ck_assert_uint_eq(plan.recomputed_ops, 2);
        ck_assert_uint_eq(ns, 10 + 3);
        laws_check_rows(&plan);
    }
}
END_TEST

Suite *suite_program(void)
{
    Suite *suite = suite_create("program");
    TCase *tcase = tcase_create("program");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, keeping_all);
    tcase_add_test(tcase, one_segment);
    tcase_add_test(tcase, variants_of_the_replay);
    tcase_add_test(tcase, a_gap_parts_a_segment);
    tcase_add_test(tcase, a_skip_is_held_once);
    tcase_add_test(tcase, single_storages_can_go);
    tcase_add_test(tcase, micro_batches_share_the_sets);
    tcase_add_test(tcase, outputs_kept_to_the_step);
    tcase_add_test(tcase, the_step_comes_last);
    tcase_add_test(tcase, wrong_calls_are_found);
    tcase_add_test(tcase, parts_are_checked);
    tcase_add_test(tcase, graphs_are_checked);
    tcase_add_test(tcase, lists_name_each_once);
    tcase_add_test(tcase, no_memory_is_a_fault);
    tcase_add_test(tcase, what_is_finished_in_place_is_so_again);
    suite_add_tcase(suite, tcase);
    return suite;
}
