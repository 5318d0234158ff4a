/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The registry of policies: what it adds and what it refuses. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <string.h>

static ms_err keep(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault)
{
    (void)context;
    (void)keep;
    (void)fault;
    return MS_OK;
}

static const ms_param twins[] = {
    {.name = "a", .type = MS_PARAM_FLAG, .help = "help"},
    {.name = "a", .type = MS_PARAM_FLAG, .help = "help"},
};
static const ms_param with[] = {
    {.name = "a", .type = MS_PARAM_FLAG, .choice = true, .help = "help"},
    {.name = "b", .type = MS_PARAM_FLAG, .with = "a|c", .help = "help"},
};
static const ms_param rows[] = {
    {.name = "N", .type = MS_PARAM_INT, .high = 1, .help = "help"},
    {.name = "n", .type = MS_PARAM_INT, .high = 1},
    {.name = "n", .type = (ms_param_type)9, .help = "help"},
    {.name = "n", .type = MS_PARAM_WORD, .help = "help"},
    {.name = "n", .type = MS_PARAM_INT, .low = 2, .high = 1, .help = "help"},
    {.name = "n", .type = MS_PARAM_FLAG, .bare = true, .help = "help"},
    {.name = "n", .type = MS_PARAM_INT, .high = 1, .help = "help"},
};

static const struct {
    ms_policy policy;
    const char *what;
} unsound[] = {
    {{.summary = "s", .keep = keep},
     "the policy has no name that can be written"},
    {{.name = "a+b", .summary = "s", .keep = keep},
     "the policy has no name that can be written"},
    {{.name = "4th", .summary = "s", .keep = keep},
     "the policy has no name that can be written"},
    {{.name = "p", .keep = keep}, "policy \"p\" has no summary"},
    {{.name = "p", .summary = "s"}, "policy \"p\" has no hooks"},
    {{.name = "zero", .summary = "s", .keep = keep},
     "the name \"zero\" is taken by a policy of memsim itself"},
    {{.name = "p", .summary = "s", .n_params = 1, .keep = keep},
     "policy \"p\" has 1 parameters in no table; at most 40"},
    {{.name = "p", .summary = "s", .params = rows, .n_params = 41},
     "policy \"p\" has 41 parameters; at most 40"},
    {{.name = "p", .summary = "s", .params = twins, .n_params = 2},
     "parameter \"a\" of policy \"p\" has the name of another"},
    {{.name = "p", .summary = "s", .params = with, .n_params = 2},
     "parameter \"b\" of policy \"p\" goes with \"a|c\""},
    {{.name = "p", .summary = "s", .params = rows, .n_params = 1},
     "parameter 0 of policy \"p\" has no name"},
    {{.name = "p", .summary = "s", .params = rows + 1, .n_params = 1},
     "parameter \"n\" of policy \"p\" has no help"},
    {{.name = "p", .summary = "s", .params = rows + 2, .n_params = 1},
     "parameter \"n\" of policy \"p\" has a type that is none"},
    {{.name = "p", .summary = "s", .params = rows + 3, .n_params = 1},
     "parameter \"n\" of policy \"p\" is a word and has no words"},
    {{.name = "p", .summary = "s", .params = rows + 4, .n_params = 1},
     "parameter \"n\" of policy \"p\" has no number from low to high that can "
     "be given"},
    {{.name = "p", .summary = "s", .params = rows + 5, .n_params = 1},
     "parameter \"n\" of policy \"p\" is bare and neither number nor words"},
};

START_TEST(unsound_policies_are_refused)
{
    ms_fault fault = {0};
    uint32_t before = ms_registry_n();
    ck_assert_int_eq(ms_registry_add(&unsound[_i].policy, "mine.so", &fault),
                     MS_EINPUT);
    ck_assert_str_eq(fault.what, unsound[_i].what);
    ck_assert_str_eq(fault.where, "mine.so");
    ck_assert_uint_eq(ms_registry_n(), before);
}
END_TEST

START_TEST(no_policy_is_refused)
{
    ms_fault fault = {0};
    ck_assert_int_eq(ms_registry_add(NULL, "mine.so", &fault), MS_EINPUT);
    ck_assert_str_eq(fault.what, "has no policy");
}
END_TEST

START_TEST(our_own_policy_is_refused)
{
    ms_fault fault = {0};
    ck_assert_int_eq(ms_registry_add(ms_registry_row(1), "mine.so", &fault),
                     MS_EINPUT);
    ck_assert_str_eq(fault.what, "its policy is memsim's own \"microbatch\"");
}
END_TEST

/* As many as there is room for: found, spelled and ordered like built-ins. */
START_TEST(policies_are_added)
{
    static ms_policy policies[17];
    static char names[17][4];
    ms_fault fault = {0};
    ms_arena arena = {0};
    ms_spec spec = {0};
    uint32_t n = 0, before = ms_registry_n();
    for (; n < 17 && fault.err == MS_OK; n++) {
        memcpy(names[n], (char[]){'p', (char)('a' + n), '\0'}, 3);
        policies[n] = (ms_policy){.name = names[n],
                                  .summary = "s",
                                  .example = "pa:n=0",
                                  .params = rows + 6,
                                  .n_params = 1,
                                  .keep = keep};
        ck_assert(!ms_registry_is_added(&policies[n]));
        (void)ms_registry_add(&policies[n], "mine.so", &fault);
    }
    ck_assert_uint_eq(n, 17);
    ck_assert_str_eq(fault.what, "more than 16 plugins");
    ck_assert_uint_eq(ms_registry_n(), before + 16);
    ck_assert_ptr_eq(ms_registry_row(before + 3), &policies[3]);
    ck_assert(ms_registry_is_added(&policies[3]));
    ck_assert(!ms_registry_is_added(ms_registry_row(before - 1)));
    fault = (ms_fault){0};
    ck_assert_int_eq(
        ms_spec_parse("pc:n=1+pb+checkpoint:full", &arena, &spec, &fault),
        MS_OK);
    ck_assert_str_eq(ms_spec_print(&spec, &arena), "checkpoint:full+pb+pc:n=1");
    ck_assert_int_eq(ms_registry_add(&policies[0], "mine.so", &fault),
                     MS_EINPUT);
    ck_assert_str_eq(fault.what, "policy \"pa\" is loaded already");
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_registry(void)
{
    Suite *suite = suite_create("registry");
    TCase *tests = tcase_create("registry");
    tcase_add_loop_test(tests, unsound_policies_are_refused, 0,
                        sizeof unsound / sizeof unsound[0]);
    tcase_add_test(tests, no_policy_is_refused);
    tcase_add_test(tests, our_own_policy_is_refused);
    tcase_add_test(tests, policies_are_added);
    suite_add_tcase(suite, tests);
    return suite;
}
