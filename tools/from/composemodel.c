/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The model that files describe: a name, or numbers of a built-in one.  What
 * Megatron-LM's arguments leave to its code is worked out here: the width of an
 * MLP with a gate, the words of a vocabulary, which layers have experts. */

#include "tools/from/compose.h"
#include "tools/from/modelwidth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREDICTS "model.mtp" /* beside any model that can */

static bool is_of_model(const char *to)
{
    return strncmp(to, "model.", 6) == 0 && strcmp(to, PREDICTS) != 0;
}

static uint32_t numbers_of_model(const ms_facts *facts)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < facts->n; i++)
        n += is_of_model(facts->all[i].to) && facts->all[i].pair != NULL;
    return n;
}

/* MODEL was typed: what files say of a model of their own is left out. */
static ms_err tell_typed(ms_compose *c, ms_fault *fault)
{
    const ms_fact *model = ms_facts_find(c->facts, "model");
    uint32_t n = numbers_of_model(c->facts);
    if (model == NULL || (model->pair == NULL && n == 0))
        return MS_OK;
    if (model->pair != NULL)
        return ms_composeput_wins(c, "MODEL", c->typed->operands[0], model,
                                  fault);
    return ms_facts_say(c->facts, &c->facts->told, fault,
                        "MODEL %.80s, which you typed, stands over the %u "
                        "numbers of a model in %s",
                        c->typed->operands[0], n, model->pairs->source.name);
}

/* Layers of multi-token prediction, or NULL. */
static const ms_fact *predicts(const ms_compose *c)
{
    const ms_fact *fact = ms_facts_find(c->facts, PREDICTS);
    return fact != NULL && strcmp(fact->value, "0") != 0 ? fact : NULL;
}

static ms_err put_beside(ms_compose *c, ms_fault *fault)
{
    const ms_fact *fact = predicts(c);
    MS_TRY(tell_typed(c, fault));
    return fact == NULL
               ? MS_OK
               : ms_composeput_setting(c, fact->to, fact->value, fault);
}

static ms_err put_model(ms_compose *c, ms_fault *fault)
{
    const ms_fact *model = ms_facts_find(c->facts, "model");
    const ms_fact *refused = ms_facts_find(c->facts, "model.refused");
    if (c->out->n_operands > 0)
        return put_beside(c, fault);
    if (model == NULL) /* the command asks for it */
        return MS_OK;
    if (refused != NULL)
        return ms_facts_fail(refused, fault,
                             "give the model, too: memsim run MODEL --from "
                             "FILE, MODEL being a config.json or a layer list",
                             "%s: the model is not a GPT that memsim builds "
                             "from these arguments",
                             refused->pair->key[0] == '$'
                                 ? refused->pair->value
                                 : ms_pairs_name(refused->pair));
    const char *name = ms_modelwidth_named(model->value);
    if (name == NULL)
        return ms_facts_fail(model, fault,
                             "give its config.json, too: memsim run "
                             "./config.json --from FILE",
                             "\"%.60s\" is no model that is here or built in",
                             model->value);
    c->out->operands[c->out->n_operands++] = name;
    return MS_OK;
}

/* MPT's MLP, as a multiple of the model's width. */
static ms_err put_ratio(ms_compose *c, ms_fault *fault)
{
    const ms_fact *ratio = ms_facts_find(c->facts, "ffn.ratio");
    uint64_t width;
    char words[24], *end;
    if (ratio == NULL)
        return MS_OK;
    MS_TRY(ms_facts_number(c->facts, "model.hidden", &width, fault));
    double inner = strtod(ratio->value, &end) * (double)width;
    if (*ratio->value == '\0' || *end != '\0' || !(inner >= 1 && inner < 1e9))
        return ms_facts_fail(ratio, fault, NULL,
                             "\"%.40s\" is no ratio of an MLP", ratio->value);
    snprintf(words, sizeof words, "%" PRIu64, (uint64_t)inner);
    return ms_composeput_setting(c, "model.ffn", words, fault);
}

/* The width of an MLP with a gate: two thirds of the plain one's, in steps of
 * 64 (megatron/training/arguments.py, validate_args). */
static ms_err put_thirds(ms_compose *c, ms_fault *fault)
{
    uint64_t width;
    char words[24];
    if (ms_facts_find(c->facts, "ffn.thirds") == NULL ||
        ms_facts_find(c->facts, "model.ffn") != NULL)
        return MS_OK;
    MS_TRY(ms_facts_number(c->facts, "model.hidden", &width, fault));
    if (width == 0)
        return MS_OK;
    snprintf(words, sizeof words, "%" PRIu64, 4 * width * 2 / 3 / 64 * 64);
    return ms_composeput_setting(c, "model.ffn", words, fault);
}

/* ---- experts ------------------------------------------------------------- */

/* A digit, "([0]*3+[1]*11)" or "[0,1]*8": which layers have experts, a byte for
 * each of at most n, '0' or '1'; how many there are, or 0: it is none. */
static size_t read_layers(const char *text, char *layers, size_t n)
{
    size_t made = 0;
    for (const char *at = text + strspn(text, " ("); *at == '[';) {
        size_t begin = made;
        for (at++; *at == '0' || *at == '1'; at += strspn(at, ", "))
            if (made < n)
                layers[made++] = *at++;
            else
                return 0;
        if (*at++ != ']')
            return 0;
        at += strspn(at, " ");
        uint64_t times = *at == '*' ? strtoull(at + 1, (char **)&at, 10) : 1;
        size_t piece = made - begin;
        if (piece == 0 || times == 0 || times > (n - begin) / piece)
            return 0;
        for (made = begin + piece; made < begin + piece * times; made++)
            layers[made] = layers[made - piece];
        at += strspn(at, " +)");
        if (*at == '\0')
            return made;
    }
    return 0;
}

/* Every so many-th layer has experts, or all behind the first ones (core's
 * models/gpt/gpt_layer_specs.py, get_gpt_decoder_block_spec). */
static ms_err put_layers(ms_compose *c, ms_fault *fault)
{
    const ms_fact *of = ms_facts_find(c->facts, "experts.layers");
    char layers[4096], words[24];
    if (of == NULL)
        return MS_OK;
    if (strspn(of->value, "0123456789") == strlen(of->value))
        return ms_composeput_setting(c, "model.expert_every", of->value, fault);
    size_t n = read_layers(of->value, layers, sizeof layers), dense = 0;
    while (dense < n && layers[dense] == '0')
        dense++;
    for (size_t i = dense; i < n; i++)
        if (layers[i] == '0')
            n = 0;
    if (n == 0)
        return ms_facts_fail(of, fault,
                             "write a number, or ([0]*A+[1]*B): A layers with "
                             "an MLP, then B with experts; or give MODEL, a "
                             "layer list",
                             "\"%.60s\" is no order of layers that memsim has",
                             of->value);
    snprintf(words, sizeof words, "%zu", dense);
    return ms_composeput_setting(c, "model.dense", words, fault);
}

static bool is(const ms_compose *c, const char *to, const char *word)
{
    const char *value = ms_facts_value(c->facts, to);
    return value != NULL && strcmp(value, word) == 0;
}

/* How the router scores experts (core's moe_utils.py,
 * topk_routing_with_score_function, and router.py, sinkhorn_load_balancing). */
static ms_err put_score(ms_compose *c, ms_fault *fault)
{
    uint64_t top_k;
    MS_TRY(ms_facts_number(c->facts, "model.top_k", &top_k, fault));
    bool sinkhorn = is(c, "experts.balance", "sinkhorn");
    bool one = top_k == 1, first = is(c, "experts.first", "true");
    bool sigmoid = sinkhorn ? one : is(c, "experts.score", "sigmoid");
    const char *score = sigmoid             ? "sigmoid"
                        : sinkhorn || first ? "softmax"
                                            : "chosen";
    MS_TRY(ms_composeput_setting(c, "model.expert_score", score, fault));
    return sigmoid && !one
               ? MS_OK
               : ms_composeput_setting(c, "model.expert_norm", "false", fault);
}

/* Without --moe-grouped-gemm Megatron-LM has SequentialMLP. */
static ms_err put_run(ms_compose *c, ms_fault *fault)
{
    return ms_facts_find(c->facts, "experts.grouped") != NULL
               ? MS_OK
               : ms_composeput_setting(c, "model.experts_run", "each", fault);
}

static ms_err put_experts(ms_compose *c, ms_fault *fault)
{
    const char *balance = ms_facts_value(c->facts, "experts.balance");
    const char *loss = ms_facts_value(c->facts, "experts.aux_loss");
    bool balances = balance == NULL || strstr(balance, "aux_loss") != NULL;
    if (ms_facts_find(c->facts, "model.experts") == NULL)
        return MS_OK;
    MS_TRY(put_layers(c, fault));
    MS_TRY(put_score(c, fault));
    MS_TRY(put_run(c, fault));
    return loss != NULL && balances
               ? ms_composeput_setting(c, "model.aux_loss", loss, fault)
               : MS_OK;
}

/* ---- the vocabulary ------------------------------------------------------ */

/* The words of tokenizers whose files are not read. */
static const struct {
    const char *tokenizer;
    uint64_t words;
} tokenizers[] = {{"GPT2BPETokenizer", 50257},
                  {"BertWordPieceLowerCase", 30522},
                  {"BertWordPieceCase", 28996},
                  {"Llama2Tokenizer", 32000}};

static ms_err put_words(ms_compose *c, uint64_t words, ms_fault *fault)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, words);
    return ms_composeput_setting(c, "model.vocab", text, fault);
}

/* The words of a vocabulary, which is often the tokenizer's; NullTokenizer adds
 * one to those that are said, the end of a document. */
static ms_err put_vocabulary(ms_compose *c, ms_fault *fault)
{
    const ms_fact *of = ms_facts_find(c->facts, "model.vocab");
    const char *tokenizer = ms_facts_value(c->facts, "tokenizer");
    uint64_t words, extra;
    if (of == NULL || ms_composeput_typed(c, "model.vocab") != NULL)
        return MS_OK;
    MS_TRY(ms_facts_number(c->facts, "tokenizer.extra", &extra, fault));
    if (of->pair != NULL && is(c, "tokenizer", "NullTokenizer")) {
        MS_TRY(ms_facts_number(c->facts, "model.vocab", &words, fault));
        return put_words(c, words + 1, fault);
    }
    if (of->pair != NULL)
        return ms_composeput_setting(c, of->to, of->value, fault);
    for (size_t i = 0;
         tokenizer != NULL && i < sizeof tokenizers / sizeof tokenizers[0]; i++)
        if (strcmp(tokenizers[i].tokenizer, tokenizer) == 0)
            return put_words(c, tokenizers[i].words + extra, fault);
    MS_TRY(ms_composeput_setting(c, of->to, of->value, fault));
    return ms_facts_say(c->facts, &c->facts->warnings, fault,
                        "%s: the vocabulary is the tokenizer's, which is not "
                        "read: %s words (GPT-2's); --set model.vocab=N",
                        of->pairs->source.name, of->value);
}

static ms_err put_pad(ms_compose *c, ms_fault *fault)
{
    uint64_t pad, tensor;
    char words[24];
    MS_TRY(ms_facts_number(c->facts, "model.pad", &pad, fault));
    MS_TRY(ms_composepolicies_degree(c, "tensor", &tensor, fault));
    if (pad == 0)
        return MS_OK;
    snprintf(words, sizeof words, "%" PRIu64, pad * tensor);
    return ms_composeput_setting(c, "model.vocab_pad_to", words, fault);
}

/* ---- all ----------------------------------------------------------------- */

/* Numbers that are settings as they are. */
static bool is_plain(const char *to)
{
    return is_of_model(to) && strcmp(to, "model.pad") != 0 &&
           strcmp(to, "model.vocab") != 0 && strcmp(to, "model.refused") != 0;
}

static ms_err put_numbers(ms_compose *c, ms_fault *fault)
{
    for (uint32_t i = 0; i < c->facts->n; i++)
        if (is_plain(c->facts->all[i].to))
            MS_TRY(ms_composeput_setting(c, c->facts->all[i].to,
                                         c->facts->all[i].value, fault));
    if (predicts(c) != NULL)
        MS_TRY(ms_composeput_setting(c, PREDICTS, predicts(c)->value, fault));
    MS_TRY(put_ratio(c, fault));
    MS_TRY(put_thirds(c, fault));
    MS_TRY(put_experts(c, fault));
    MS_TRY(put_vocabulary(c, fault));
    return put_pad(c, fault);
}

ms_err ms_composemodel_put(ms_compose *c, ms_fault *fault)
{
    MS_TRY(put_model(c, fault));
    return c->typed->n_operands == 0 ? put_numbers(c, fault) : MS_OK;
}
