/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of policies: how it is read, added up and printed. */
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;
static ms_spec spec;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    spec = (ms_spec){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* ---- spelling ------------------------------------------------------------ */

static const struct {
    const char *text, *print;
} spellings[] = {
    {"none", "none"},
    {"checkpoint:sqrt", "checkpoint:sqrt"},
    {"checkpoint:sqrt+microbatch:4", "microbatch:4+checkpoint:sqrt"},
    {"microbatch:count=4", "microbatch:4"},
    {"microbatch:size=8", "microbatch:size=8"},
    {"none+checkpoint:full", "checkpoint:full"},
    {"none+microbatch:2+checkpoint:none", "microbatch:2+checkpoint:none"},
    {"checkpoint:early_stop=0,every=4", "checkpoint:every=4,early_stop=0"},
    {"checkpoint:by=bytes,sqrt", "checkpoint:sqrt,by=bytes"},
    {"checkpoint:blocks=h.1/h.7,variant=reentrant",
     "checkpoint:blocks=h.1/h.7,variant=reentrant"},
    {"checkpoint:sequential=08", "checkpoint:sequential=8"},
    {"zero:2,impl=deepspeed,reduce_bucket_size=5e8",
     "zero:2,impl=deepspeed,reduce_bucket_size=500000000"},
    {"zero:reduce_bucket_size=5,impl=deepspeed,2,dp=4",
     "zero:2,dp=4,impl=deepspeed,reduce_bucket_size=5"},
    {"deepspeed:2,reduce_bucket_size=5e8",
     "deepspeed:2,reduce_bucket_size=500000000"},
};

START_TEST(canonical_spelling)
{
    ms_spec again = {0};
    ck_assert_int_eq(ms_spec_parse(spellings[_i].text, &arena, &spec, &fault),
                     MS_OK);
    const char *print = ms_spec_print(&spec, &arena);
    ck_assert_str_eq(print, spellings[_i].print);
    ck_assert_int_eq(ms_spec_parse(print, &arena, &again, &fault), MS_OK);
    ck_assert_str_eq(ms_spec_print(&again, &arena), print);
}
END_TEST

START_TEST(policies_add_up)
{
    ck_assert_str_eq(ms_spec_print(&spec, &arena), "none");
    ck_assert_int_eq(ms_spec_parse("checkpoint:full", &arena, &spec, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_spec_parse("microbatch:2", &arena, &spec, &fault),
                     MS_OK);
    ck_assert_str_eq(ms_spec_print(&spec, &arena),
                     "microbatch:2+checkpoint:full");
    ck_assert_int_eq(ms_spec_parse("microbatch:4", &arena, &spec, &fault),
                     MS_EUSAGE);
    ck_assert_str_eq(fault.what, "policy \"microbatch\" is given twice");
}
END_TEST

/* Several of one policy stay in the order in which they are written, but for
 * those that measure a step, which come last; the same twice is refused. */
START_TEST(swaps_repeat_in_order)
{
    spec = (ms_spec){0};
    ck_assert_int_eq(ms_spec_parse("swap:belady+swap:vdnn=all,to=nvme+"
                                   "checkpoint:full+swap:te=4",
                                   &arena, &spec, &fault),
                     MS_OK);
    ck_assert_str_eq(ms_spec_print(&spec, &arena),
                     "swap:vdnn=all,to=nvme+swap:te=4+checkpoint:full+"
                     "swap:belady");
    ck_assert_int_eq(ms_spec_parse("swap:te=3", &arena, &spec, &fault), MS_OK);
    ck_assert_int_eq(ms_spec_parse("swap:te=4", &arena, &spec, &fault),
                     MS_EUSAGE);
    ck_assert_str_eq(fault.what, "policy \"swap\" is given twice");
    ck_assert_str_eq(fault.hint, "give them different arguments");
}
END_TEST

static const struct {
    const char *text, *what, *hint; /* hint: how it begins */
    int caret;
} mistakes[] = {
    {"checkpoint:sqrd", "unknown argument \"sqrd\" of policy \"checkpoint\"",
     "did you mean \"sqrt\"? checkpoint takes: none, full, sqrt,", 11},
    {"chekpoint:sqrt", "unknown policy \"chekpoint\"",
     "did you mean \"checkpoint\"? policies: none, microbatch, tensor, "
     "pipeline, checkpoint",
     0},
    {"microbatch:2+elsewhere:3", "unknown policy \"elsewhere\"",
     "policies: none", 13},
    {"", "a policy's name is missing", "policies: none", -1},
    {"checkpoint:sqrt+", "a policy's name is missing", "policies: none", 16},
    {"checkpoint:", "an argument of \"checkpoint\" is missing",
     "checkpoint takes: none, full", 11},
    {"checkpoint", "policy \"checkpoint\" does not say what to do",
     "choose one of: none, full, sqrt, selective, sac, every=N, each=N, "
     "first=N, sequential=N, blocks=NAME/NAME",
     0},
    {"checkpoint:early_stop=1", "policy \"checkpoint\" does not say what to do",
     "choose one of:", 0},
    {"checkpoint:sqrt,full", "\"full\" and \"sqrt\" contradict each other",
     "choose one of:", 16},
    {"checkpoint:every=2,sqrt", "\"sqrt\" and \"every\" contradict each other",
     "choose one of:", 19},
    {"checkpoint:sqrt,sqrt", "\"sqrt\" is given twice", "", 16},
    {"checkpoint:sqrt=2", "\"sqrt\" takes no value", "write sqrt", 11},
    {"checkpoint:every", "\"every\" needs a value", "write every=N", 11},
    {"checkpoint:every=", "every: \"\" is no whole number",
     "every takes a whole number from 1 to 1000000", 17},
    {"checkpoint:every=0", "every: \"0\" is out of range",
     "every takes a whole number from 1 to 1000000", 17},
    {"checkpoint:every=-1", "every: \"-1\" is no whole number", "every takes",
     17},
    {"checkpoint:every=99999999999999999999",
     "every: \"99999999999999999999\" is out of range", "every takes", 17},
    {"checkpoint:sqrt,by=byte", "by: unknown value \"byte\"",
     "by is one of count|bytes", 19},
    {"checkpoint:full,by=bytes", "\"by\" means nothing beside \"full\"",
     "it goes with sqrt", 16},
    {"checkpoint:selective,early_stop=0",
     "\"early_stop\" means nothing beside \"selective\"",
     "it goes with full|sqrt|every|each|first|sequential|blocks", 21},
    {"checkpoint:sac,full", "\"full\" and \"sac\" contradict each other",
     "choose one of:", 15},
    {"checkpoint:sac,variant=reentrant",
     "\"variant\" means nothing beside \"sac\"",
     "it goes with full|sqrt|every|each|first|sequential|blocks", 15},
    {"checkpoint:blocks=a//b", "blocks: a name is missing",
     "write NAME or NAME/NAME/...", 20},
    {"microbatch", "policy \"microbatch\" does not say what to do",
     "choose one of: N, size=N", 0},
    {"microbatch:0", "count: \"0\" is out of range", "count takes", 11},
    {"microbatch:4e", "count: \"4e\" is no whole number", "count takes", 11},
    {"microbatch:e4", "unknown argument \"e4\" of policy \"microbatch\"",
     "microbatch takes", 11},
    {"microbatch:1e2e3", "count: \"1e2e3\" is no whole number", "count takes",
     11},
    {"zero:2,dp=1e19", "dp: \"1e19\" is out of range", "dp takes", 10},
    {"microbatch:4x", "count: \"4x\" is no whole number", "count takes", 11},
    {"microbatch:four", "unknown argument \"four\" of policy \"microbatch\"",
     "microbatch takes: N, size=N", 11},
    {"none:1", "unknown argument \"1\" of policy \"none\"",
     "\"none\" takes none", 5},
};

START_TEST(mistakes_are_explained)
{
    const char *hint = mistakes[_i].hint;
    ck_assert_int_eq(ms_spec_parse(mistakes[_i].text, &arena, &spec, &fault),
                     MS_EUSAGE);
    ck_assert_str_eq(fault.what, mistakes[_i].what);
    ck_assert_str_eq(fault.source, mistakes[_i].text);
    ck_assert_int_eq(fault.caret, mistakes[_i].caret);
    ck_assert_msg(strncmp(fault.hint, hint, strlen(hint)) == 0, "hint: %s",
                  fault.hint);
}
END_TEST

START_TEST(a_megabyte_is_refused)
{
    char *text = ms_arena_take(&arena, (1 << 20) + 1, 1);
    memset(text, '+', 1 << 20);
    ck_assert_int_eq(ms_spec_parse(text, &arena, &spec, &fault), MS_EUSAGE);
    ck_assert_str_eq(fault.what, "a policy of 1048576 bytes; at most 4096");
}
END_TEST

START_TEST(every_example_parses)
{
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        ms_spec one = {0};
        const ms_policy *policy = ms_registry_row(i);
        ck_assert_int_eq(ms_registry_check(policy, "memsim", &fault), MS_OK);
        ck_assert_int_eq(ms_spec_parse(policy->example, &arena, &one, &fault),
                         MS_OK);
        ck_assert_str_eq(ms_spec_print(&one, &arena), policy->example);
    }
}
END_TEST

/* ---- microbatch ---------------------------------------------------------- */

static ms_err shape_of(const char *text, ms_shape *shape)
{
    MS_TRY(ms_spec_parse(text, &arena, &spec, &fault));
    return ms_apply_shape(&spec, shape, &fault);
}

START_TEST(micro_batches)
{
    ms_shape shape = {.batch = 32, .micro_batches = 1};
    ck_assert_int_eq(shape_of("microbatch:4", &shape), MS_OK);
    ck_assert_uint_eq(shape.micro_batches, 4);
    spec = (ms_spec){0};
    ck_assert_int_eq(shape_of("microbatch:size=4", &shape), MS_OK);
    ck_assert_uint_eq(shape.micro_batches, 8);
}
END_TEST

static const struct {
    uint64_t batch;
    const char *text, *hint;
} divisions[] = {
    {8, "microbatch:3", "the nearest counts are 2 and 4"},
    {12, "microbatch:size=5", "the nearest sizes are 4 and 6"},
    {8, "microbatch:9", "the nearest count is 8"},
    {7, "microbatch:2", "the nearest counts are 1 and 7"},
    {9223372036854775783, "microbatch:2", "the nearest count is 1"},
};

START_TEST(micro_batches_must_divide)
{
    ms_shape shape = {.batch = divisions[_i].batch, .micro_batches = 1};
    ck_assert_int_eq(shape_of(divisions[_i].text, &shape), MS_EUSAGE);
    ck_assert_str_eq(fault.hint, divisions[_i].hint);
}
END_TEST

/* ---- checkpoint ---------------------------------------------------------- */

/* The segments of an n-block chain as text: "aabb--" is two of two blocks and
 * two open ones. */
static const char *segments(uint32_t n, const char *text)
{
    ms_graph graph;
    ms_keep keep;
    laws_chain(n, 1, &arena, &graph);
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
    ck_assert_int_eq(ms_spec_parse(text, &arena, &spec, &fault), MS_OK);
    ms_schedule schedule;
    ck_assert_int_eq(ms_schedule_default(&graph, 1, &arena, &schedule, &fault),
                     MS_OK);
    ms_policy_context context = {.graph = &graph,
                                 .schedule = &schedule,
                                 .values = spec.items[0].values,
                                 .arena = &arena};
    ck_assert_int_eq(ms_program_keep_all(&graph, &arena, &keep, &fault), MS_OK);
    if (spec.items[0].policy->keep(&context, &keep, &fault) != MS_OK)
        return NULL;
    char *letters = ms_arena_take(&arena, n + 1, 1);
    for (uint32_t u = 0; u < n; u++) {
        bool open = keep.segment[u] == MS_NONE;
        letters[u] = (char)(open ? '-' : 'a' + (int)keep.segment[u]);
        uint32_t out = graph.out[graph.out_at[u]];
        ck_assert_int_eq(keep.place[out], open ? MS_HERE : MS_GONE);
    }
    ck_assert_uint_eq(keep.segment[n], MS_NONE); /* the loss */
    return letters;
}

static const struct {
    uint32_t n;
    const char *text, *segments;
} cuts[] = {
    {6, "checkpoint:none", "------"},
    {6, "checkpoint:full", "abcdef"},
    {6, "checkpoint:selective", "------"},
    {6, "checkpoint:sac", "abcdef"},
    {1, "checkpoint:sqrt", "-"},
    {2, "checkpoint:sqrt", "--"},
    {3, "checkpoint:sqrt", "aa-"},
    {6, "checkpoint:sqrt", "aaa---"},
    {7, "checkpoint:sqrt", "aaabb--"},
    {9, "checkpoint:sqrt", "aaabbb---"},
    {10, "checkpoint:sqrt", "aaaabbb---"},
    {12, "checkpoint:sqrt", "aaaabbbb----"},
    {13, "checkpoint:sqrt", "aaaabbbccc---"},
    /* The last block of the chain saves nothing. */
    {10, "checkpoint:sqrt,by=bytes", "aaabbb----"},
    {14, "checkpoint:sqrt,by=bytes", "aaaabbbccc----"},
    {7, "checkpoint:every=3", "aaabbbc"},
    {7, "checkpoint:every=7", "aaaaaaa"},
    {6, "checkpoint:first=2", "ab----"},
    {3, "checkpoint:first=3", "abc"},
    {10, "checkpoint:sequential=3", "aaabbb----"},
    {5, "checkpoint:sequential=1", "-----"},
    {6, "checkpoint:blocks=block.2/block.3", "--abbb"},
    {6, "checkpoint:blocks=block.4/block.0", "aaaabb"},
};

START_TEST(segments_of_a_chain)
{
    ck_assert_str_eq(segments(cuts[_i].n, cuts[_i].text), cuts[_i].segments);
}
END_TEST

START_TEST(segments_by_bytes_are_balanced)
{
    static const uint64_t mib[] = {9, 1, 1, 1, 1, 1, 1, 2, 2, 9};
    const uint32_t n = sizeof mib / sizeof mib[0];
    ms_graph graph;
    ms_program program;
    laws_chain(n, 1, &arena, &graph);
    for (uint32_t u = 0; u < n; u++)
        graph.storage_bytes[u + 1] = mib[u] << 20;
    graph.storage_saved_end[n] = graph.storage_saved_end[n + 1];
    ck_assert_int_eq(
        ms_spec_parse("checkpoint:sqrt,by=bytes", &arena, &spec, &fault),
        MS_OK);
    ck_assert_int_eq(
        ms_apply_program(&spec,
                         &(ms_policy_context){.graph = &graph, .arena = &arena},
                         1, &program, &fault),
        MS_OK);
    uint32_t last[2], reruns = 0;
    for (uint32_t i = 0; i < program.n_calls; i++)
        if (program.calls[i].verb == MS_RERUN)
            last[reruns++ % 2] = program.calls[i].last;
    ck_assert_uint_eq(reruns, 2); /* 9 1, then 1 1 1 1 1 2 2, then 9 open */
    ck_assert_uint_eq(last[0], 8);
    ck_assert_uint_eq(last[1], 1);
}
END_TEST

START_TEST(cuts_need_the_blocks)
{
    ck_assert_ptr_null(segments(6, "checkpoint:every=7"));
    ck_assert_str_eq(fault.what, "the model has 6 blocks: every is from 1 to "
                                 "6");
    teardown();
    setup();
    ck_assert_ptr_null(segments(6, "checkpoint:blocks=block.1/blck.2"));
    ck_assert_str_eq(fault.what, "the model has no block \"blck.2\"");
    ck_assert_str_eq(fault.hint, "did you mean \"block.2\"?");
    teardown();
    setup();
    ck_assert_ptr_null(segments(6, "checkpoint:blocks=layers"));
    ck_assert_str_eq(fault.hint, "blocks go from \"block.0\" to \"block.5\"");
}
END_TEST

/* Without blocks each unit before the loss is one. */
START_TEST(units_stand_for_blocks)
{
    ms_graph graph;
    ms_program program;
    laws_chain(4, 1, &arena, &graph);
    graph.n_blocks = 0;
    for (uint32_t u = 0; u < graph.n_units; u++)
        graph.unit_block[u] = MS_NONE;
    ck_assert_int_eq(ms_spec_parse("checkpoint:full", &arena, &spec, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_apply_program(&spec,
                                      &(ms_policy_context){.graph = &graph,
                                                           .torch_1 = true,
                                                           .arena = &arena},
                                      1, &program, &fault),
                     MS_OK);
    uint32_t reruns = 0;
    for (uint32_t i = 0; i < program.n_calls; i++) {
        const ms_call *call = &program.calls[i];
        if (call->verb != MS_RERUN)
            continue;
        reruns++;
        ck_assert_uint_eq(call->unit, call->last);
        ck_assert(call->rerun.whole && call->rerun.holds);
    }
    ck_assert_uint_eq(reruns, 4);
}
END_TEST

/* ---- a policy that has every hook ---------------------------------------- */

static ms_err half_batch(const ms_policy_context *context, ms_shape *shape,
                         ms_fault *found)
{
    (void)context;
    (void)found;
    shape->micro_batches *= 2;
    return MS_OK;
}

static ms_err keep_nothing(const ms_policy_context *context, ms_keep *keep,
                           ms_fault *found)
{
    (void)found;
    memset(keep->place, MS_GONE, context->graph->n_storages);
    return MS_OK;
}

static ms_err end_with_sync(const ms_policy_context *context,
                            ms_program *program, ms_fault *found)
{
    return ms_program_add(program, ms_program_call(MS_SYNC), context->arena,
                          found);
}

static const ms_policy every_hook = {.name = "every_hook",
                                     .shape = half_batch,
                                     .keep = keep_nothing,
                                     .place = end_with_sync};

START_TEST(hooks_run_in_order)
{
    ms_shape shape = {.batch = 8, .micro_batches = 1};
    ms_graph graph;
    ms_program program;
    laws_chain(3, 1, &arena, &graph);
    spec.items[spec.n++].policy = &every_hook;
    ck_assert_int_eq(ms_apply_shape(&spec, &shape, &fault), MS_OK);
    ck_assert_uint_eq(shape.micro_batches, 2);
    ck_assert_int_eq(
        ms_apply_program(&spec,
                         &(ms_policy_context){.graph = &graph, .arena = &arena},
                         shape.micro_batches, &program, &fault),
        MS_OK);
    ck_assert_int_eq(ms_check_program(&graph, &program, &fault), MS_OK);
    ck_assert_uint_eq(program.n_micro_batches, 2);
    uint32_t keep_nothing_calls = 0;
    for (uint32_t i = 0; i < program.n_calls; i++)
        keep_nothing_calls += program.calls[i].verb == MS_RUN &&
                              program.calls[i].run.pass == MS_FORWARD &&
                              program.calls[i].run.keep == MS_NOTHING;
    ck_assert_uint_eq(keep_nothing_calls, 2 * 3);
    ck_assert_int_eq(program.calls[program.n_calls - 1].verb, MS_SYNC);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof(table)[0])

Suite *suite_spec(void)
{
    Suite *suite = suite_create("spec");
    TCase *tcase = tcase_create("spec");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, canonical_spelling, 0, ROWS(spellings));
    tcase_add_test(tcase, policies_add_up);
    tcase_add_test(tcase, swaps_repeat_in_order);
    tcase_add_loop_test(tcase, mistakes_are_explained, 0, ROWS(mistakes));
    tcase_add_test(tcase, a_megabyte_is_refused);
    tcase_add_test(tcase, every_example_parses);
    tcase_add_test(tcase, micro_batches);
    tcase_add_loop_test(tcase, micro_batches_must_divide, 0, ROWS(divisions));
    tcase_add_loop_test(tcase, segments_of_a_chain, 0, ROWS(cuts));
    tcase_add_test(tcase, segments_by_bytes_are_balanced);
    tcase_add_test(tcase, cuts_need_the_blocks);
    tcase_add_test(tcase, units_stand_for_blocks);
    tcase_add_test(tcase, hooks_run_in_order);
    suite_add_tcase(suite, tcase);
    return suite;
}
