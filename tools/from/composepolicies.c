/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files' policies.  A fact policy.NAME is what stands first behind the
 * name (+: nothing), policy.NAME.PARAM a parameter (+: a bare word). */

#include "policies/common/policy.h"
#include "tools/from/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    ms_compose *c;
    ms_spec typed;
    ms_text text;
    bool groups; /* of FSDP 1's ranks, each with all of the states */
    ms_fault *fault;
} writer;

/* ---- kinds --------------------------------------------------------------- */

/* Policies of which a job has one. */
static const char *kind_of(const char *name)
{
    static const char *const shares[] = {"ddp", "zero", "deepspeed", "fsdp"};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        if (strcmp(shares[i], name) == 0)
            return "share";
    return name;
}

/* The typed policy of the same kind, or NULL. */
static const struct ms_spec_item *typed_of(const ms_spec *typed,
                                           const char *name)
{
    for (uint32_t i = 0; i < typed->n; i++)
        if (strcmp(kind_of(typed->items[i].policy->name), kind_of(name)) == 0)
            return &typed->items[i];
    return NULL;
}

/* What cannot be read the command itself refuses later. */
static ms_err parse(const ms_compose *c, const char *text, ms_spec *spec,
                    ms_fault *fault)
{
    ms_fault own = {.caret = -1};
    *spec = (ms_spec){0};
    if (text == NULL)
        return MS_OK;
    ms_err err = ms_spec_parse(text, c->arena, spec, &own);
    if (err != MS_OK)
        *spec = (ms_spec){0};
    return ms_fail_but_refusal(err, &own, fault);
}

/* All that the user typed behind -p. */
static ms_err parse_typed(const ms_compose *c, ms_spec *spec, ms_fault *fault)
{
    ms_text text = {.arena = c->arena};
    for (uint32_t i = 0; i < c->typed->n_given; i++)
        if (c->typed->given[i].option->id == MS_OPTION_POLICY)
            ms_text_add(&text, "%s%s", text.length > 0 ? "+" : "",
                        c->typed->given[i].value);
    if (text.failed)
        return ms_fail_nomem(fault);
    return parse(c, text.bytes, spec, fault);
}

static const char *value(const ms_compose *c, const char *to)
{
    return ms_facts_value(c->facts, to);
}

static const ms_fact *head(const ms_compose *c, const char *name)
{
    char to[64];
    snprintf(to, sizeof to, "policy.%s", name);
    return ms_facts_find(c->facts, to);
}

const char *ms_composepolicies_share(const ms_compose *c)
{
    static const char *const names[] = {"deepspeed", "fsdp", "zero", "ddp"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (head(c, names[i]) != NULL)
            return names[i];
    return c->ranks > 1 ? "ddp" : "";
}

ms_err ms_composepolicies_degree(const ms_compose *c, const char *name,
                                 uint64_t *degree, ms_fault *fault)
{
    char to[64];
    ms_spec spec;
    MS_TRY(parse_typed(c, &spec, fault));
    const struct ms_spec_item *item = typed_of(&spec, name);
    *degree = 1;
    if (item != NULL) {
        *degree = (uint64_t)item->values[0].number;
        return MS_OK;
    }
    snprintf(to, sizeof to, "policy.%s", name);
    if (ms_facts_find(c->facts, to) != NULL)
        MS_TRY(ms_facts_number(c->facts, to, degree, fault));
    return MS_OK;
}

/* ---- one policy ---------------------------------------------------------- */

static void put_separator(ms_text *text)
{
    char last = text->length > 0 ? text->bytes[text->length - 1] : '\0';
    bool begins = text->length > 0 && last != ':' && last != ',';
    ms_text_add(text, "%s", begins ? "," : "");
}

/* ",name=value" or ",name". */
static void put_argument(ms_text *text, const char *name, const char *words)
{
    if (words == NULL)
        return;
    put_separator(text);
    if (strcmp(words, "+") == 0)
        ms_text_add(text, "%s", name);
    else
        ms_text_add(text, "%s=%s", name, words);
}

/* Begins a policy behind those before it; false: the user typed one of its
 * kind. */
static ms_err begin(writer *w, const char *name, const ms_fact *fact,
                    bool *goes)
{
    const struct ms_spec_item *typed = typed_of(&w->typed, name);
    *goes = typed == NULL;
    if (typed != NULL)
        return fact == NULL
                   ? MS_OK
                   : ms_composeput_wins(w->c, "-p", typed->policy->name, fact,
                                        w->fault);
    ms_text_add(&w->text, "%s%s:", w->text.length > 0 ? "+" : "", name);
    return MS_OK;
}

/* A policy without arguments has no colon. */
static void end(writer *w)
{
    ms_text *text = &w->text;
    if (!text->failed && text->bytes[text->length - 1] == ':')
        text->bytes[--text->length] = '\0';
}

/* Does FSDP's way have the parameter?  Beside a pipeline no unit lets its
 * weights go by default, torchtitan's last one neither. */
static bool fits(const writer *w, const char *name, const ms_fact *fact)
{
    const char *impl = value(w->c, "policy.fsdp.impl");
    const char *param = strrchr(fact->to, '.') + 1;
    bool one = impl != NULL && strcmp(impl, "1") == 0;
    if (strcmp(name, "fsdp") != 0)
        return true;
    if (strcmp(fact->value, "but_last") == 0 &&
        value(w->c, "policy.pipeline") != NULL)
        return false;
    if (one)
        return strcmp(param, "reshard") != 0;
    return strcmp(param, "strategy") != 0 && strcmp(param, "prefetch") != 0 &&
           strcmp(param, "limit") != 0 &&
           strcmp(param, "forward_prefetch") != 0;
}

/* Commas in Megatron-LM's layouts mean nothing there (pipeline_parallel_layer_
 * layout.py, parse_str_to_list), and end an argument here. */
static const char *without_commas(writer *w, const char *words)
{
    ms_text text = {.arena = w->c->arena};
    for (; *words != '\0'; words++)
        if (*words != ',')
            ms_text_put(&text, words, 1);
    w->text.failed |= text.failed;
    return text.length > 0 && !text.failed ? text.bytes : "";
}

static void put_parameters(writer *w, const char *name)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "policy.%s.", name);
    size_t n = strlen(prefix);
    for (uint32_t i = 0; i < w->c->facts->n; i++) {
        const ms_fact *fact = &w->c->facts->all[i];
        if (strncmp(fact->to, prefix, n) != 0 || !fits(w, name, fact))
            continue;
        bool hybrid = w->groups && strcmp(fact->to + n, "strategy") == 0;
        put_argument(&w->text, fact->to + n,
                     hybrid ? "hybrid_shard"
                     : strchr(fact->value, ',') == NULL
                         ? fact->value
                         : without_commas(w, fact->value));
    }
}

/* NAME:head,param=value as the facts are. */
static ms_err put_plain(writer *w, const char *name, const char *extra)
{
    bool goes;
    const ms_fact *fact = head(w->c, name);
    if (fact == NULL)
        return MS_OK;
    MS_TRY(begin(w, name, fact, &goes));
    if (!goes)
        return MS_OK;
    if (strcmp(fact->value, "+") != 0)
        ms_text_add(&w->text, "%s", fact->value);
    put_parameters(w, name);
    if (extra != NULL) {
        put_separator(&w->text);
        ms_text_add(&w->text, "%s", extra);
    }
    end(w);
    return MS_OK;
}

/* ---- those that are put together ----------------------------------------- */

/* The ranks that share states, where only some of the data ranks do. */
static ms_err shards(const writer *w, uint64_t *shards, ms_fault *fault)
{
    uint64_t replicas;
    const char *strategy = value(w->c, "policy.fsdp.strategy");
    const char *mesh = value(w->c, "fsdp.mesh"); /* "replicas,shards" */
    bool hybrid = strategy != NULL && strcmp(strategy, "hybrid_shard") == 0;
    MS_TRY(ms_facts_number(w->c->facts, "fsdp.replicas", &replicas, fault));
    if (mesh != NULL && strchr(mesh, ',') != NULL)
        replicas = strtoull(mesh, NULL, 10);
    *shards = replicas > 1 ? w->c->ranks / replicas : 0;
    if (hybrid && *shards == 0)
        *shards = w->c->ranks > 8 ? 8 : w->c->ranks;
    return MS_OK;
}

/* DeepSpeed and FSDP do not share the states of one job. */
static ms_err check_share(const writer *w)
{
    const ms_fact *one = head(w->c, "deepspeed"), *other = head(w->c, "fsdp");
    char hint[160];
    if (!ms_facts_is_said(one) || !ms_facts_is_said(other) ||
        one->pairs == other->pairs)
        return MS_OK;
    snprintf(hint, sizeof hint, "%.120s says FSDP; give one of the two",
             ms_facts_place(w->c->facts, other));
    return ms_facts_fail(one, w->fault, hint,
                         "DeepSpeed contradicts another file");
}

/* Groups of FSDP 1 are a strategy of its own, which Composer takes where a file
 * has another (dist_strategy.py, prepare_fsdp_module). */
static ms_err find_groups(writer *w, uint64_t shards)
{
    const ms_fact *strategy =
        ms_facts_find(w->c->facts, "policy.fsdp.strategy");
    const char *impl = value(w->c, "policy.fsdp.impl");
    w->groups = shards > 0 && impl != NULL && strcmp(impl, "1") == 0;
    if (!w->groups || strategy == NULL ||
        strcmp(strategy->value, "shard_grad_op") != 0)
        return MS_OK;
    return ms_facts_say(w->c->facts, &w->c->facts->warnings, w->fault,
                        "%s: groups of ranks keep their weights from forward "
                        "to backward there; memsim's hybrid_shard gathers them "
                        "again",
                        ms_facts_place(w->c->facts, strategy));
}

/* States are divided among ranks that divide a sequence, too. */
static bool divides_states(const ms_compose *c)
{
    return head(c, "fsdp") != NULL || head(c, "zero") != NULL;
}

static ms_err put_share(writer *w)
{
    const char *name = ms_composepolicies_share(w->c);
    bool goes, is_deepspeed = strcmp(name, "deepspeed") == 0;
    char extra[64] = "";
    uint64_t some, context;
    MS_TRY(check_share(w));
    MS_TRY(ms_composepolicies_degree(w->c, "context", &context, w->fault));
    bool alone = w->c->ranks == 1 && (context == 1 || !divides_states(w->c));
    if (*name == '\0' || (alone && !is_deepspeed))
        return MS_OK;
    if (w->c->command == MS_FOR_INSPECT && w->c->ranks == 0)
        return ms_facts_say(w->c->facts, &w->c->facts->told, w->fault,
                            "%s is left out: how many GPUs there are, no file "
                            "says",
                            name);
    MS_TRY(shards(w, &some, w->fault));
    MS_TRY(find_groups(w, some));
    if (is_deepspeed && w->c->gpus == 1 && w->c->ranks > 0)
        snprintf(extra, sizeof extra, "dp=%" PRIu64, w->c->ranks);
    if (some > 0 && strcmp(name, "fsdp") == 0)
        snprintf(extra + strlen(extra), sizeof extra - strlen(extra),
                 "%sshard=%" PRIu64, *extra != '\0' ? "," : "", some);
    if (head(w->c, name) != NULL)
        return put_plain(w, name, *extra != '\0' ? extra : NULL);
    MS_TRY(begin(w, name, NULL, &goes));
    if (!goes)
        return MS_OK;
    if (*extra != '\0')
        ms_text_add(&w->text, "%s", extra);
    put_parameters(w, name);
    end(w);
    return MS_OK;
}

/* "0.3" in percent, "30"; NULL: all. */
static const char *percent(const writer *w)
{
    const char *ratio = value(w->c, "offload.ratio");
    double share = ratio != NULL ? strtod(ratio, NULL) : 1;
    if (!(share >= 0 && share < 1))
        return NULL;
    return ms_arena_format(w->c->arena, "%d", (int)(100 * share + 0.5));
}

static ms_err put_offload(writer *w)
{
    static const char *const whats[] = {"optimizer", "params", "gradients"};
    static const char *const params[] = {
        "pin",     "pipeline_read", "pipeline_write", "impl",
        "overlap", "topk_ratio",    "overlap_step"};
    const char *share = ms_composepolicies_share(w->c);
    bool all = value(w->c, "fsdp.offload") != NULL && !strcmp(share, "fsdp");
    const char *to[3], *first = NULL;
    bool goes;
    char name[64];
    const ms_fact *fact = ms_facts_find(w->c->facts, "fsdp.offload");
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "offload.%s", whats[i]);
        to[i] = all ? "cpu" : value(w->c, name);
        first = first == NULL ? to[i] : first;
        fact = to[i] != NULL && !all ? ms_facts_find(w->c->facts, name) : fact;
    }
    if (first == NULL)
        return MS_OK;
    MS_TRY(begin(w, "offload", fact, &goes));
    for (size_t i = 0, n = 0; goes && i < 3; i++)
        if (to[i] != NULL)
            ms_text_add(&w->text, "%s%s", n++ > 0 ? "/" : "", whats[i]);
    if (!goes)
        return MS_OK;
    if (strcmp(first, "cpu") != 0)
        put_argument(&w->text, "to", first);
    if (to[1] != NULL && strcmp(to[1], first) != 0)
        put_argument(&w->text, "params_to", to[1]);
    put_argument(&w->text, "percent", percent(w));
    for (size_t i = 0; !all && i < sizeof params / sizeof params[0]; i++) {
        snprintf(name, sizeof name, "offload.%s", params[i]);
        put_argument(&w->text, params[i], value(w->c, name));
    }
    return MS_OK;
}

/* Megatron-LM's --recompute-*: uniform, equal segments of so many layers;
 * block, the first ones; selective, modules. */
static ms_err recompute(writer *w)
{
    ms_facts *facts = w->c->facts;
    const ms_fact *of = ms_facts_find(facts, "recompute.granularity");
    const char *method = value(w->c, "recompute.method");
    const char *layers = value(w->c, "recompute.layers");
    const char *modules = value(w->c, "recompute.modules");
    bool goes;
    if (of == NULL)
        return MS_OK;
    MS_TRY(begin(w, "checkpoint", of, &goes));
    if (!goes)
        return MS_OK;
    if (strcmp(of->value, "selective") == 0 &&
        (modules == NULL || strcmp(modules, "core_attn") == 0))
        ms_text_add(&w->text, "selective");
    else if (strcmp(of->value, "selective") == 0)
        ms_text_add(&w->text, "modules=%s", modules);
    else if (method != NULL && strcmp(method, "block") == 0)
        ms_text_add(&w->text, "first=%s", layers != NULL ? layers : "1");
    else if (layers != NULL && strcmp(layers, "1") != 0)
        ms_text_add(&w->text, "every=%s", layers);
    else
        ms_text_add(&w->text, "full");
    return MS_OK;
}

/* Does the order need several stages on a rank, whose number is not told? */
static bool has_two_chunks(const writer *w)
{
    const char *order = value(w->c, "policy.pipeline.schedule");
    return order != NULL &&
           (!strcmp(order, "interleaved") || !strcmp(order, "looped-bfs")) &&
           value(w->c, "policy.pipeline.per_stage") == NULL &&
           value(w->c, "policy.pipeline.chunks") == NULL;
}

/* Virtual stages by their layers: Megatron-LM's older argument.  torchtitan
 * makes two a rank (distributed/pipeline_parallel.py, stages_per_rank). */
static ms_err count_chunks(const writer *w, uint64_t *chunks)
{
    uint64_t layers, each, stages;
    const ms_facts *facts = w->c->facts;
    MS_TRY(ms_facts_number(facts, "model.layers", &layers, w->fault));
    MS_TRY(ms_facts_number(facts, "pipeline.chunk_layers", &each, w->fault));
    MS_TRY(ms_facts_number(facts, "policy.pipeline", &stages, w->fault));
    if (each > 0 && stages > 0 && layers > 0)
        *chunks = layers / stages / each;
    else
        *chunks = has_two_chunks(w) ? 2 : 0;
    return MS_OK;
}

static ms_err put_pipeline(writer *w)
{
    uint64_t chunks;
    const char *first = value(w->c, "pipeline.first_less");
    const char *last = value(w->c, "pipeline.last_less");
    char extra[96] = "";
    int n = 0;
    MS_TRY(count_chunks(w, &chunks));
    if (chunks > 0)
        n = snprintf(extra, sizeof extra, "chunks=%" PRIu64, chunks);
    if (first != NULL && last != NULL)
        snprintf(extra + n, sizeof extra - (size_t)n, "%sless=%.20s/%.20s",
                 n > 0 ? "," : "", first, last);
    return put_plain(w, "pipeline", extra[0] != '\0' ? extra : NULL);
}

static ms_err put_micro_batches(writer *w)
{
    bool goes;
    if (w->c->micro_batches == NULL)
        return MS_OK;
    MS_TRY(begin(w, "microbatch",
                 ms_facts_find(w->c->facts, "batch.accumulate"), &goes));
    if (goes)
        ms_text_add(&w->text, "%s", w->c->micro_batches);
    return MS_OK;
}

ms_err ms_composepolicies_of(ms_compose *c, const char *typed,
                             const char **spec, ms_fault *fault)
{
    writer w = {.c = c, .text = {.arena = c->arena}, .fault = fault};
    MS_TRY(parse(c, typed, &w.typed, fault));
    MS_TRY(put_plain(&w, "tensor", NULL));
    MS_TRY(put_plain(&w, "context", NULL));
    MS_TRY(put_plain(&w, "expert", NULL));
    MS_TRY(put_pipeline(&w));
    MS_TRY(put_share(&w));
    MS_TRY(put_offload(&w));
    MS_TRY(put_plain(&w, "uvm", NULL));
    MS_TRY(put_plain(&w, "swap", NULL));
    MS_TRY(put_plain(&w, "checkpoint", NULL));
    MS_TRY(recompute(&w));
    MS_TRY(put_micro_batches(&w));
    *spec = w.text.bytes;
    return w.text.failed ? ms_fail_nomem(fault) : MS_OK;
}
