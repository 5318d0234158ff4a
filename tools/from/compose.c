/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- precision ----------------------------------------------------------- */

static bool is_on(const ms_compose *c, const char *to)
{
    const char *value = ms_facts_value(c->facts, to);
    return value != NULL && strcmp(value, "true") == 0;
}

/* Does the code of training hold fp32 masters beside 16-bit weights?
 * llm-foundry's FSDP is none on one GPU. */
static bool has_masters(const ms_compose *c)
{
    const char *share = ms_composepolicies_share(c);
    const char *kernels = ms_facts_value(c->facts, "training.kernels");
    bool alone =
        c->ranks == 1 && ms_facts_find(c->facts, "fsdp.one_rank") != NULL;
    return strcmp(share, "deepspeed") == 0 ||
           (strcmp(share, "fsdp") == 0 && !alone) ||
           (kernels != NULL && strcmp(kernels, "megatron") == 0);
}

/* Are the weights loaded in 16 bits?  Those beside adapters are, unless the
 * format says otherwise. */
static bool is_lean(const ms_compose *c)
{
    const char *weights = ms_facts_value(c->facts, "weights");
    return weights != NULL ? strcmp(weights, "fp32") != 0
                           : ms_facts_find(c->facts, "lora.rank") != NULL;
}

/* Is it "auto" in a file, and does no other say? */
static bool is_open(const ms_compose *c)
{
    for (uint32_t i = 0; i < c->facts->n_autos; i++)
        if (strcmp(c->facts->autos[i].to, "bf16") == 0 ||
            strcmp(c->facts->autos[i].to, "fp16") == 0)
            return ms_facts_find(c->facts, "bf16") == NULL &&
                   ms_facts_find(c->facts, "fp16") == NULL;
    return false;
}

/* A word of memsim's, or what Megatron-LM's fp8 weights make of it. */
static const char *said_precision(const ms_compose *c)
{
    const char *word = ms_facts_value(c->facts, "training.precision");
    if (word != NULL || ms_facts_find(c->facts, "fp8") == NULL)
        return word;
    return is_on(c, "fp8.primary") ? "fp8-primary" : "fp8";
}

/* The word of --precision, or NULL: no file says. */
static ms_err precision_of(const ms_compose *c, const char **word,
                           ms_fault *fault)
{
    bool bf16 = is_on(c, "bf16"), fp16 = is_on(c, "fp16");
    bool autocast = is_on(c, "autocast"), tf32 = is_on(c, "tf32");
    const char *dtype = ms_facts_value(c->facts, "autocast.dtype");
    bool adapters = ms_facts_find(c->facts, "lora.rank") != NULL;
    bool lean = is_lean(c);
    const ms_fact *b = ms_facts_find(c->facts, "bf16");
    *word = said_precision(c);
    if (*word != NULL)
        return MS_OK;
    if (bf16 && fp16)
        return ms_facts_fail(b, fault, "leave one of the two on",
                             "bf16 and fp16 are both on");
    if (autocast)
        *word = dtype != NULL && strcmp(dtype, "float16") == 0
                    ? "autocast-fp16"
                    : "autocast-bf16";
    else if (has_masters(c) && !(adapters && lean) && (bf16 || fp16))
        *word = bf16 ? "bf16-mixed" : "fp16-mixed";
    else if (bf16)
        *word = lean ? "bf16" : "autocast-bf16";
    else if (fp16)
        *word = adapters && lean ? "fp16" : "autocast-fp16";
    else if (tf32 || !is_open(c))
        *word = tf32 ? "tf32" : "fp32";
    return MS_OK;
}

static ms_err put_precision(ms_compose *c, ms_fault *fault)
{
    const char *word;
    MS_TRY(precision_of(c, &word, fault));
    const char *typed = ms_composeput_typed(c, "training.precision");
    const ms_fact *bf16 = ms_facts_find(c->facts, "bf16");
    if (typed != NULL && bf16 != NULL)
        return ms_composeput_wins(c, "--precision", typed, bf16, fault);
    return word != NULL
               ? ms_composeput_setting(c, "training.precision", word, fault)
               : MS_OK;
}

/* ---- settings ------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Modules with adapters, in any order, as the word that memsim has for them;
 * NULL: it has none. */
static const char *targets_of(const char *modules, ms_arena *arena)
{
    static const struct {
        const char *modules, *targets;
    } rows[] = {
        {"all", "all"},
        {"all-linear", "all"},
        {"q_proj,v_proj", "qv"},
        {"c_attn", "qkv"},
        {"query_key_value", "qkv"},
        {"Wqkv", "qkv"},
        {"k_proj,q_proj,v_proj", "qkv"},
        {"k_proj,o_proj,q_proj,v_proj", "attention"},
        {"down_proj,gate_proj,up_proj", "mlp"},
        {"down_proj,gate_proj,k_proj,o_proj,q_proj,up_proj,v_proj", "all"}};
    const char *names[32];
    ms_text text = {.arena = arena};
    char *copy = ms_arena_text(arena, modules, strlen(modules));
    size_t n = 0;
    for (char *at = copy; at != NULL && *at != '\0' && n < 32;) {
        size_t length = strcspn(at, ", ");
        bool last = at[length] == '\0';
        at[length] = '\0';
        if (length > 0)
            names[n++] = at;
        at += length + !last;
    }
    qsort(names, n, sizeof names[0], compare);
    for (size_t i = 0; i < n; i++)
        ms_text_add(&text, "%s%s", i > 0 ? "," : "", names[i]);
    for (size_t i = 0;
         n > 0 && !text.failed && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].modules, text.bytes) == 0)
            return rows[i].targets;
    return NULL;
}

static ms_err put_adapters(ms_compose *c, ms_fault *fault)
{
    const ms_fact *of = ms_facts_find(c->facts, "lora.modules");
    if (ms_facts_find(c->facts, "lora.rank") == NULL)
        return MS_OK;
    MS_TRY(ms_composeput_setting(c, "lora.dtype", "fp32", fault));
    if (of == NULL || ms_facts_find(c->facts, "lora.targets") != NULL)
        return MS_OK;
    const char *targets = targets_of(of->value, c->arena);
    if (targets != NULL)
        return ms_composeput_setting(c, "lora.targets", targets, fault);
    return ms_facts_say(c->facts, &c->facts->warnings, fault,
                        "%s: adapters of %.80s: --set lora.targets is qv, qkv, "
                        "attention, mlp or all, and qv without it",
                        ms_facts_place(c->facts, of), of->value);
}

/* Facts that are settings as they are. */
static bool is_setting(const char *to)
{
    static const char *const groups[] = {"training.", "lora.", "megatron.",
                                         "fp8."};
    if (strcmp(to, "training.precision") == 0 ||
        strcmp(to, "fp8.primary") == 0 || strcmp(to, "lora.modules") == 0 ||
        strcmp(to, "lora.on") == 0)
        return false;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (strncmp(to, groups[i], strlen(groups[i])) == 0)
            return true;
    return false;
}

/* A format's own clipping, where gradients are gone before their norm is known:
 * there its code clips nothing. */
static bool is_idle_clip(const ms_compose *c, const ms_fact *fact)
{
    const char *early =
        ms_facts_value(c->facts, "training.optimizer_in_backward");
    return early != NULL && strcmp(early, "yes") == 0 &&
           !ms_facts_is_said(fact) &&
           strcmp(fact->to, "training.clip_norm") == 0;
}

static ms_err put_settings(ms_compose *c, ms_fault *fault)
{
    const char *impl = ms_facts_value(c->facts, "loss.impl");
    const char *pool = ms_facts_value(c->facts, "allocator");
    const char *typed = ms_composeput_typed(c, "allocator");
    MS_TRY(put_precision(c, fault));
    for (uint32_t i = 0; i < c->facts->n; i++) {
        const ms_fact *fact = &c->facts->all[i];
        if (!is_setting(fact->to) || is_idle_clip(c, fact))
            continue;
        bool te = strcmp(fact->to, "megatron.loss") == 0 && impl != NULL;
        MS_TRY(
            ms_composeput_setting(c, fact->to, te ? impl : fact->value, fault));
    }
    MS_TRY(put_adapters(c, fault));
    if (pool != NULL && typed != NULL)
        return ms_composeput_wins(c, "--allocator", typed,
                                  ms_facts_find(c->facts, "allocator"), fault);
    return pool != NULL ? ms_composeput_option(c, "allocator", pool, fault)
                        : MS_OK;
}

/* ---- all ----------------------------------------------------------------- */

/* Where each --policy is a variant, each has the files' policies, too; where
 * they join, the files' come first. */
static ms_err put_policies(ms_compose *c, ms_fault *fault)
{
    bool variants = (c->command & (MS_FOR_COMPARE | MS_FOR_REPORT)) != 0;
    ms_text all = {.arena = c->arena};
    const char *spec;
    for (uint32_t i = 0; i < c->typed->n_given; i++) {
        const ms_given *given = &c->typed->given[i];
        if (given->option->id != MS_OPTION_POLICY)
            continue;
        ms_text_add(&all, "%s%s", all.length > 0 ? "+" : "", given->value);
        if (!variants)
            continue;
        MS_TRY(ms_composepolicies_of(c, given->value, &spec, fault));
        bool none = strcmp(given->value, "none") == 0 && spec != NULL;
        const char *joined =
            spec == NULL ? given->value
            : none       ? spec
                   : ms_arena_format(c->arena, "%s+%s", spec, given->value);
        if (joined == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(ms_composeput_option(c, "policy", joined, fault));
    }
    if (all.failed)
        return ms_fail_nomem(fault);
    if (variants && all.length > 0)
        return MS_OK;
    MS_TRY(ms_composepolicies_of(c, all.bytes, &spec, fault));
    return spec != NULL ? ms_composeput_option(c, "policy", spec, fault)
                        : MS_OK;
}

/* What was typed comes last, and so stands; --from is answered by now. */
static void put_typed(ms_compose *c)
{
    bool variants = (c->command & (MS_FOR_COMPARE | MS_FOR_REPORT)) != 0;
    for (uint32_t i = 0; i < c->typed->n_given; i++) {
        const ms_given *given = &c->typed->given[i];
        if (given->option->id == MS_OPTION_FROM ||
            (variants && given->option->id == MS_OPTION_POLICY))
            continue;
        c->out->words[c->out->n_given] = c->typed->words[i];
        c->out->given[c->out->n_given++] = *given;
    }
}

ms_err ms_compose_arguments(ms_facts *facts, uint16_t command,
                            const ms_arguments *typed, ms_arena *arena,
                            ms_arguments *out, ms_fault *fault)
{
    ms_compose c = {.facts = facts,
                    .command = command,
                    .typed = typed,
                    .out = out,
                    .arena = arena};
    size_t room = typed->n_given * 2 + facts->n + 32;
    *out =
        (ms_arguments){.given = ms_arena_take(arena, room, sizeof *out->given),
                       .words = ms_arena_take(arena, room, sizeof *out->words),
                       .operands = ms_arena_take(arena, typed->n_operands + 1,
                                                 sizeof *out->operands)};
    if (out->given == NULL || out->words == NULL || out->operands == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < typed->n_operands; i++)
        out->operands[out->n_operands++] = typed->operands[i];
    MS_TRY(ms_composemodel_put(&c, fault));
    MS_TRY(ms_composebatch_put(&c, fault));
    MS_TRY(put_settings(&c, fault));
    MS_TRY(put_policies(&c, fault));
    put_typed(&c);
    return MS_OK;
}
