/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings of several versions of a format: each old key means what its name
 * now means, files that mix versions are told, files of one are not. */
#include "tests/tests.h"
#include "tools/from/formats.h"
#include "tools/from/versions.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static const ms_format *format_of(const char *name)
{
    for (uint32_t i = 0; i < ms_formats_n; i++)
        if (strcmp(ms_formats_all[i]->name, name) == 0)
            return ms_formats_all[i];
    if (strcmp(name, ms_composerkeys_format.name) == 0)
        return &ms_composerkeys_format;
    ck_assert_str_eq(name, ms_fsdpkeys_format.name);
    return &ms_fsdpkeys_format;
}

static const char *texts(const char *format, const char *a, const char *b)
{
    const char *text = ms_arena_format(&arena, format, a, b);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* A text in which a * stands is one for "any". */
static const char *any(const char *pattern)
{
    const char *star = strchr(pattern, '*');
    return star == NULL
               ? pattern
               : ms_arena_format(&arena, "%.*sany%s", (int)(star - pattern),
                                 pattern, star + 1);
}

static ms_pairs *file(void)
{
    ms_pairs *pairs = ms_arena_take(&arena, 1, sizeof *pairs);
    *pairs =
        (ms_pairs){.source = {.name = "file", .bytes = ""}, .arena = &arena};
    return pairs;
}

static void put(ms_pairs *pairs, const char *key, const char *value)
{
    ck_assert_int_eq(ms_pairs_add(pairs, key, value, 0, true, &fault), MS_OK);
}

static ms_facts *facts_of(const ms_format *format, ms_pairs *pairs)
{
    ms_facts *facts = ms_arena_take(&arena, 1, sizeof *facts);
    *facts = (ms_facts){.arena = &arena};
    ms_err err = ms_versions_read(facts, format, pairs, &fault);
    ck_assert_msg(err == MS_OK, "%s", fault.what);
    return facts;
}

/* The first value that a row is about, and what it is now. */
static const char *value_of(const ms_keyversion *row, const char **now)
{
    bool known = false;
    size_t n = row->values != NULL ? strcspn(row->values, "=|") : 0;
    const char *value =
        n > 0 ? ms_arena_text(&arena, row->values, n) : texts("%s", "2", "");
    *now = ms_formatkeys_value(&arena, row->values, value, &known);
    ck_assert(known);
    return value;
}

/* Does a say all that b does, but what has defaults by version? */
static void compare(const ms_facts *a, const ms_facts *b, const char *key)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const ms_fact *fact = &b->all[i];
        const char *other = ms_facts_value(a, fact->to);
        if (fact->pair == NULL ||
            strcmp(fact->to, "training.optimizer_impl") == 0 ||
            strcmp(fact->to, "training.hold_output") == 0 ||
            strcmp(fact->to, "policy.fsdp.units") == 0 ||
            strcmp(fact->to, "batch.pieces") == 0)
            continue;
        ck_assert_msg(other != NULL && strcmp(other, fact->value) == 0,
                      "%s: %s %s %s", key, fact->to, fact->value,
                      other != NULL ? other : "(absent)");
    }
}

START_TEST(rising_versions)
{
    static const char *const rising[] = {
        "0.3.16", "0.4", "0.10", "2.0", "3.0", "core 0.4", "core 0.10"};
    for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++)
        for (size_t j = 0; j < sizeof rising / sizeof rising[0]; j++) {
            int sign = ms_versions_compare(rising[i], rising[j]);
            ck_assert_msg((i > j) - (i < j) == (sign > 0) - (sign < 0), "%s %s",
                          rising[i], rising[j]);
        }
    ck_assert_int_lt(ms_versions_compare("2024-10", "2025-03"), 0);
    ck_assert_int_eq(ms_versions_compare("2", "2.0"), 0);
}
END_TEST

/* Rows are of formats that are there and have bounds in order. */
START_TEST(rows)
{
    for (uint32_t i = 0; i < ms_keyversions_n; i++) {
        const ms_keyversion *row = &ms_keyversions[i];
        format_of(row->format);
        ck_assert(row->since != NULL || row->until != NULL);
        ck_assert(row->now == NULL || row->until != NULL);
        if (row->since != NULL && row->until != NULL)
            ck_assert_int_lt(ms_versions_compare(row->since, row->until), 0);
    }
}
END_TEST

/* A file with an old key says what one with its name now says. */
START_TEST(renamed)
{
    for (uint32_t i = 0; i < ms_keyversions_n; i++) {
        const ms_keyversion *row = &ms_keyversions[i];
        const ms_format *format = format_of(row->format);
        ms_pairs *old = file(), *new = file();
        const char *now;
        if (row->now == NULL || *row->key == '\0')
            continue;
        put(old, any(row->key), value_of(row, &now));
        put(new, any(row->now), now);
        ms_facts *a = facts_of(format, old), *b = facts_of(format, new);
        compare(a, b, row->key);
        compare(b, a, row->key);
        ck_assert_msg(a->told.n > 0, "%s", row->key);
        ck_assert_uint_eq(a->warnings.n, b->warnings.n);
    }
}
END_TEST

/* Do keys of two rows stand side by side in no version? */
static bool are_apart(const ms_keyversion *old, const ms_keyversion *new)
{
    return strcmp(old->format, new->format) == 0 && old->until != NULL &&
           old->absent == NULL &&
           new->since != NULL &&strcmp(new->since, MS_KEYVERSION_DECLARED) !=
               0 &&
           strcmp(old->key, new->key) != 0 &&
           ms_versions_compare(old->until, new->since) <= 0;
}

/* Each pair of keys that no version has side by side is told, the key and both
 * versions, even if both keys mean the same. */
START_TEST(mixed)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_keyversions_n; i++)
        for (uint32_t j = 0; j < ms_keyversions_n; j++) {
            const ms_keyversion *old = &ms_keyversions[i];
            const ms_keyversion *new = &ms_keyversions[j];
            const char *now, *later, *unused;
            if (!are_apart(old, new) || strcmp(old->format, "FSDP") == 0)
                continue;
            ms_pairs *pairs = file();
            put(pairs, any(old->key), value_of(old, &now));
            later = old->now != NULL && strcmp(old->now, new->key) == 0
                        ? now
                        : value_of(new, &unused);
            put(pairs, any(new->key), later);
            ms_facts *facts = facts_of(format_of(old->format), pairs);
            ck_assert_msg(facts->warnings.n > 0, "%s %s", old->key, new->key);
            ck_assert_ptr_nonnull(strstr(facts->warnings.all[0], old->until));
            ck_assert_ptr_nonnull(strstr(facts->warnings.all[0], new->since));
            n++;
        }
    ck_assert_uint_gt(n, 200);
}
END_TEST

/* fsdp_version says which keys hold, wherever it stands. */
static const struct {
    const char *version, *key, *value;
    bool is_warned;
} declared[] = {{"2", "fsdp_sharding_strategy", "FULL_SHARD", true},
                {"2", "fsdp_limit_all_gathers", "true", true},
                {"2", "fsdp_reshard_after_forward", "true", false},
                {"2", "fsdp_reshard_after_forward", "SHARD_GRAD_OP", true},
                {"1", "fsdp_sharding_strategy", "FULL_SHARD", false},
                {"1", "fsdp_reshard_after_forward", "SHARD_GRAD_OP", false},
                {"1", "fsdp_reshard_after_forward", "false", true},
                {NULL, "fsdp_reshard_after_forward", "false", true},
                {NULL, "fsdp_backward_prefetch_policy", "BACKWARD_PRE", false}};

START_TEST(fsdp)
{
    for (size_t i = 0; i < sizeof declared / sizeof declared[0]; i++)
        for (int root = 0; root < 2; root++) {
            ms_pairs *pairs = file();
            if (declared[i].version != NULL)
                put(pairs, root ? "fsdp_version" : "fsdp_config.fsdp_version",
                    declared[i].version);
            put(pairs, texts("fsdp_config.%s", declared[i].key, ""),
                declared[i].value);
            ms_facts *facts = facts_of(&ms_axolotlkeys_format, pairs);
            ck_assert_msg((facts->warnings.n > 0) == declared[i].is_warned,
                          "%s=%s", declared[i].key, declared[i].value);
        }
}
END_TEST

/* Defaults of torchtitan before 2025: foreach, a micro-batch for each stage;
 * and what its code did that no key says. */
START_TEST(defaults)
{
    ms_pairs *old = file(), *new = file(), *oldest = file();
    put(old, "training.data_parallel_degree", "2");
    put(old, "experimental.pipeline_parallel_degree", "4");
    put(new, "parallelism.pipeline_parallel_degree", "4");
    ms_facts *a = facts_of(&ms_torchtitankeys_format, old);
    ms_facts *b = facts_of(&ms_torchtitankeys_format, new);
    ck_assert_str_eq(ms_facts_value(a, "batch.pieces"), "stages");
    ck_assert_str_eq(ms_facts_value(a, "training.optimizer_impl"), "foreach");
    ck_assert_ptr_null(ms_facts_value(b, "batch.pieces"));
    ck_assert_str_eq(ms_facts_value(b, "training.optimizer_impl"), "fused");
    ck_assert_str_eq(ms_facts_value(a, "policy.fsdp.units"), "blocks");
    ck_assert_str_eq(ms_facts_value(b, "policy.fsdp.units"), "split");
    ck_assert_str_eq(ms_facts_value(a, "training.hold_output"), "none");
    put(oldest, "training.sequence_parallel_degree", "2");
    a = facts_of(&ms_torchtitankeys_format, oldest);
    ck_assert_str_eq(ms_facts_value(a, "training.hold_output"), "backward");
}
END_TEST

/* Two names of one key with two values. */
START_TEST(contradiction)
{
    ms_pairs *pairs = file();
    ms_facts facts = {.arena = &arena};
    put(pairs, "zero_optimization.stage", "2");
    put(pairs, "zero_optimization.cpu_offload", "true");
    put(pairs, "zero_optimization.offload_optimizer.device", "nvme");
    ck_assert_int_eq(
        ms_versions_read(&facts, &ms_deepspeedkeys_format, pairs, &fault),
        MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "contradicts another key"));
    ck_assert_ptr_nonnull(strstr(fault.hint, "cpu_offload=true"));
}
END_TEST

Suite *suite_versions(void)
{
    Suite *suite = suite_create("versions");
    TCase *cases = tcase_create("versions");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, rising_versions);
    tcase_add_test(cases, rows);
    tcase_add_test(cases, renamed);
    tcase_add_test(cases, mixed);
    tcase_add_test(cases, fsdp);
    tcase_add_test(cases, defaults);
    tcase_add_test(cases, contradiction);
    suite_add_tcase(suite, cases);
    return suite;
}
