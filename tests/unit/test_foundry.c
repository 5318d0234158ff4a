/* SPDX-License-Identifier: GPL-3.0-or-later */
/* llm-foundry's settings: what values are made of, and that all of FSDP's,
 * precision's and the batch's keys go together. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/from/compose.h"
#include "tools/from/references.h"
#include "tools/from/versions.h"

#include <stdio.h>
#include <stdlib.h>
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

static void put(ms_pairs *pairs, const char *key, const char *value)
{
    ms_err err = ms_pairs_add(pairs, ms_arena_text(&arena, key, strlen(key)),
                              ms_arena_text(&arena, value, strlen(value)), 0,
                              false, &fault);
    ck_assert_msg(err == MS_OK, "%s", fault.what);
}

static ms_pairs *file(void)
{
    ms_pairs *pairs = ms_arena_take(&arena, 1, sizeof *pairs);
    *pairs =
        (ms_pairs){.source = {.name = "file", .bytes = ""}, .arena = &arena};
    return pairs;
}

/* ---- references ---------------------------------------------------------- */

static const struct {
    const char *pairs[8]; /* keys and values */
    const char *key, *value;
    const char *warning; /* a part of the only one; NULL: there is none */
} referred[] = {
    {{"a.b", "7", "c", "${a.b}"}, "c", "7", NULL},
    {{"a", "7", "c", "x-${a}-${a}y"}, "c", "x-7-7y", NULL},
    {{"c", "${b}", "b", "${a}", "a", "7"}, "c", "7", NULL},
    {{"m.a", "7", "m.b", "${.a}"}, "m.b", "7", NULL},
    {{"m.a", "7", "m.n.b", "${..a}"}, "m.n.b", "7", NULL},
    {{"n", "a", "a", "7", "c", "${${n}}"}, "c", "7", NULL},
    {{"m.a", "7", "m.n.b", "8", "c", "${m}"}, "c.n.b", "8", NULL},
    {{"m.a", "${k}", "k", "7", "c", "${m}"}, "c.a", "7", NULL},
    {{"c", "${b"}, "c", "${b", NULL},
    {{"c", "${b}"}, "c", "null", "c=${b}: there is no such key"},
    {{"c", "${}"}, "c", "null", "there is no such key"},
    {{"seed", "${b}"}, "seed", "null", "there is no such key"},
    {{"c", "${d}", "d", "${c}"}, "c", "null", NULL},
    {{"m.a", "${m}"}, "m.a", "null", "there is no such key"},
    {{"c", "${oc.env:N}"}, "c", "null", "only OmegaConf's resolver"},
    {{"run_name", "${oc.env:N}"}, "run_name", "null", NULL},
    {{"variables.n", "${oc.env:N}", "c", "${variables.n}"},
     "c",
     "null",
     "c=${variables.n}: what it refers to has no value"},
};

START_TEST(references)
{
    for (size_t i = 0; i < sizeof referred / sizeof referred[0]; i++) {
        const char *const *p = referred[i].pairs;
        ms_pairs *pairs = file();
        ms_facts facts = {.arena = &arena};
        for (size_t k = 0; k < 8 && p[k] != NULL; k += 2)
            put(pairs, p[k], p[k + 1]);
        ck_assert_int_eq(ms_references_resolve(&facts, &ms_foundrykeys_format,
                                               pairs, &fault),
                         MS_OK);
        const ms_pair *pair = ms_pairs_find(pairs, referred[i].key);
        ck_assert_ptr_nonnull(pair);
        ck_assert_str_eq(pair->value, referred[i].value);
        if (referred[i].warning != NULL) {
            ck_assert_uint_eq(facts.warnings.n, 1);
            ck_assert_msg(strstr(facts.warnings.all[0], referred[i].warning) !=
                              NULL,
                          "%s", facts.warnings.all[0]);
        }
    }
}
END_TEST

/* Both ends of a circle are told; other formats have no references. */
START_TEST(circles)
{
    ms_pairs *pairs = file();
    ms_facts facts = {.arena = &arena};
    put(pairs, "c", "${d}");
    put(pairs, "d", "${c}");
    ck_assert_int_eq(
        ms_references_resolve(&facts, &ms_axolotlkeys_format, pairs, &fault),
        MS_OK);
    ck_assert_str_eq(pairs->all[0].value, "${d}");
    ck_assert_int_eq(
        ms_references_resolve(&facts, &ms_foundrykeys_format, pairs, &fault),
        MS_OK);
    ck_assert_uint_eq(facts.warnings.n, 2);
    ck_assert_ptr_nonnull(strstr(facts.warnings.all[0], "circle"));
    ck_assert_ptr_nonnull(strstr(facts.warnings.all[1], "has no value"));
}
END_TEST

/* Values that double, chains and mappings that copy themselves end. */
START_TEST(bombs)
{
    char key[16], value[32];
    for (int kind = 0; kind < 3; kind++) {
        ms_pairs *pairs = file();
        ms_facts facts = {.arena = &arena};
        for (int i = 0; i < 60; i++) {
            snprintf(key, sizeof key, kind == 2 ? "k%d.a" : "k%d", i);
            snprintf(value, sizeof value, kind == 1 ? "${k%d}${k%d}" : "${k%d}",
                     i + 1, i + 1);
            put(pairs, key, value);
            if (kind == 2) {
                snprintf(key, sizeof key, "k%d.b", i);
                put(pairs, key, value);
            }
        }
        put(pairs, kind == 2 ? "k60.a" : "k60", "xx");
        ms_err err = ms_references_resolve(&facts, &ms_foundrykeys_format,
                                           pairs, &fault);
        ck_assert(err == MS_OK || err == MS_EINPUT);
        ck_assert(facts.warnings.n > 0 || err == MS_EINPUT);
        fault = (ms_fault){.caret = -1};
    }
}
END_TEST

/* ---- all of it together -------------------------------------------------- */

typedef struct point {
    const char *strategy, *mixed, *precision, *checkpoint, *reentrant, *most;
    uint64_t gpus, global;
} point;

typedef struct answer {
    const char *precision, *policy;
    uint64_t batch;
} answer;

static answer ask(const point *p)
{
    char gpus[16], global[16];
    const char *words[] = {"--gpus", gpus};
    ms_arguments typed, out;
    ms_facts facts = {.arena = &arena};
    ms_pairs *pairs = file();
    answer a = {"", "none", 0};
    snprintf(gpus, sizeof gpus, "%d", (int)p->gpus);
    snprintf(global, sizeof global, "%d", (int)p->global);
    put(pairs, "model.name", "mpt_causal_lm");
    put(pairs, "global_train_batch_size", global);
    put(pairs, "device_train_microbatch_size", p->most);
    put(pairs, "precision", p->precision);
    put(pairs, "fsdp_config.sharding_strategy", p->strategy);
    put(pairs, "fsdp_config.mixed_precision", p->mixed);
    put(pairs, "fsdp_config.activation_checkpointing", p->checkpoint);
    put(pairs, "fsdp_config.activation_checkpointing_reentrant", p->reentrant);
    ck_assert_int_eq(
        ms_options_parse(MS_FOR_RUN, words, 2, &arena, &typed, &fault), MS_OK);
    ck_assert_int_eq(
        ms_versions_read(&facts, &ms_foundrykeys_format, pairs, &fault), MS_OK);
    ck_assert_int_eq(ms_facts_settle(&facts, 0, &fault), MS_OK);
    ms_err err =
        ms_compose_arguments(&facts, MS_FOR_RUN, &typed, &arena, &out, &fault);
    ck_assert_msg(err == MS_OK, "%s", fault.what);
    for (uint32_t i = 0; i < out.n_given; i++) {
        const ms_given *given = &out.given[i];
        if (strcmp(given->option->name, "batch") == 0)
            a.batch = strtoull(given->value, NULL, 10);
        if (strcmp(given->option->name, "precision") == 0)
            a.precision = given->value;
        if (strcmp(given->option->name, "policy") == 0)
            a.policy = given->value;
    }
    return a;
}

static bool has(const answer *a, const char *words)
{
    return strstr(a->policy, words) != NULL;
}

static uint64_t micro_batches(const answer *a)
{
    const char *at = strstr(a->policy, "microbatch:");
    return at != NULL ? strtoull(at + strlen("microbatch:"), NULL, 10) : 1;
}

static void check_batch(const point *p, const answer *a)
{
    uint64_t each = p->global / p->gpus, n = micro_batches(a);
    uint64_t most =
        strcmp(p->most, "auto") == 0 ? each : strtoull(p->most, NULL, 10);
    uint64_t micro = most < each ? most : each;
    ck_assert_uint_eq(n, (each + micro - 1) / micro);
    ck_assert_uint_eq(a->batch, n * micro);
}

static void check(const point *p)
{
    ms_spec spec = {0};
    answer a = ask(p);
    bool low = strcmp(p->precision, "fp32") != 0, alone = p->gpus == 1;
    bool full = strcmp(p->mixed, "FULL") == 0;
    bool pure = strcmp(p->mixed, "PURE") == 0;
    bool on = strcmp(p->checkpoint, "true") == 0;
    ck_assert_msg(ms_spec_parse(a.policy, &arena, &spec, &fault) == MS_OK,
                  "%s: %s", a.policy, fault.what);
    ck_assert_int_eq(has(&a, "fsdp:"), !alone);
    ck_assert_int_eq(has(&a, "prefetch=post"), !alone);
    ck_assert_int_eq(has(&a, "reduce=bf16"), !alone && pure && low);
    ck_assert_int_eq(strstr(a.precision, "autocast") != NULL,
                     low && (alone || full));
    ck_assert_int_eq(strstr(a.precision, "-mixed") != NULL,
                     low && !alone && !full);
    ck_assert_int_eq(strstr(a.precision, "fp16") != NULL,
                     strcmp(p->precision, "amp_fp16") == 0);
    ck_assert_int_eq(has(&a, "checkpoint:full"), on);
    ck_assert_int_eq(has(&a, "variant=reentrant"),
                     on && strcmp(p->reentrant, "true") == 0);
    ck_assert_int_eq(has(&a, "shard="),
                     !alone && strcmp(p->strategy, "HYBRID_SHARD") == 0);
    check_batch(p, &a);
}

#define AXIS(i, axis) ((i) % (sizeof(axis) / sizeof(axis)[0]))

START_TEST(product)
{
    static const char *const strategies[] = {"FULL_SHARD", "SHARD_GRAD_OP",
                                             "NO_SHARD", "HYBRID_SHARD"};
    static const char *const mixed[] = {"PURE", "DEFAULT", "FULL"};
    static const char *const precisions[] = {"amp_bf16", "amp_fp16", "fp32",
                                             "amp_fp8"};
    static const char *const switches[] = {"true", "false"};
    static const char *const most[] = {"1", "3", "8", "auto"};
    static const uint64_t gpus[] = {1, 8, 16};
    size_t n = 4 * 3 * 4 * 2 * 2 * 4 * 3;
    for (size_t i = 0; i < n; i++) {
        point p = {.strategy = strategies[AXIS(i, strategies)],
                   .mixed = mixed[AXIS(i / 4, mixed)],
                   .precision = precisions[AXIS(i / 12, precisions)],
                   .checkpoint = switches[AXIS(i / 48, switches)],
                   .reentrant = switches[AXIS(i / 96, switches)],
                   .most = most[AXIS(i / 192, most)],
                   .gpus = gpus[AXIS(i / 768, gpus)],
                   .global = 80};
        check(&p);
        ms_arena_reset(&arena);
    }
}
END_TEST

Suite *suite_foundry(void)
{
    Suite *suite = suite_create("foundry");
    TCase *cases = tcase_create("foundry");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, references);
    tcase_add_test(cases, circles);
    tcase_add_test(cases, bombs);
    tcase_add_test(cases, product);
    suite_add_tcase(suite, cases);
    return suite;
}
