/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/huggingface/huggingface.h"

#include "graphs/json/fields.h"
#include "graphs/models/huggingface/safetensors.h"
#include "graphs/models/pages/page.h"
#include "graphs/models/pages/pagefile.h"
#include "graphs/models/pages/rules.h"
#include "graphs/models/pages/template.h"
#include "sim/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KEYS 256u
#define MOST_CLASSES 10000000L
#define COLUMNS 78u        /* of help */
#define MOST_PREDICTED 100 /* layers of multi-token prediction */

/* ---- whose file is it? --------------------------------------------------- */

const char *const ms_huggingface_native[] = {
    "memsim", "family", "like", "config", "input", "layers", "format", NULL};

static const char *const theirs[] = {
    "model_type", "architectures",        "hidden_size", "num_hidden_layers",
    "n_embd",     "transformers_version", NULL};

/* The first of the keys that the file has, or NULL. */
static const char *first_key(const ms_json *json, const char *const *keys)
{
    while (*keys != NULL && ms_json_find(json, 0, *keys) == MS_NONE)
        keys++;
    return *keys;
}

bool ms_huggingface_is(const ms_json *json)
{
    return json->nodes[0].kind == MS_JSON_OBJECT &&
           first_key(json, ms_huggingface_native) == NULL &&
           first_key(json, theirs) != NULL;
}

ms_err ms_huggingface_mixed(const ms_json *json, ms_fault *fault)
{
    const char *mine = first_key(json, ms_huggingface_native);
    const char *their = first_key(json, theirs);
    if (mine == NULL || their == NULL)
        return MS_OK;
    return ms_json_fail_key(json, ms_json_find(json, 0, their), fault,
                            "a model file of memsim has the one, a config.json "
                            "of Hugging Face the other: keep one of the two",
                            "\"%s\" beside \"%s\"", their, mine);
}

/* ---- the type ------------------------------------------------------------ */

static ms_err find_type(ms_page *page)
{
    ms_known type = {.name = "model_type"};
    const ms_override *set = ms_page_override(page, "model_type");
    char hint[640] = "say which it is: --set model.model_type=TYPE; ";
    uint32_t row = ms_json_find(page->config, 0, "model_type");
    if (set != NULL)
        type = (ms_known){.kind = MS_KIND_TEXT,
                          .is.s = set->value,
                          .where = "--set model.model_type"};
    else if (row != MS_NONE)
        ms_known_node(page->config, row, &type);
    if (set == NULL && (row == MS_NONE || type.kind == MS_KIND_NULL)) {
        ms_page_types(hint + strlen(hint), sizeof hint - strlen(hint));
        return ms_json_fail(page->config, row == MS_NONE ? 0 : row, page->fault,
                            hint, "no \"model_type\"");
    }
    if (type.kind != MS_KIND_TEXT)
        return ms_known_fail(&type, page->fault, NULL,
                             "\"model_type\" must be a string");
    return ms_page_open(page, &type);
}

/* ---- settings ------------------------------------------------------------ */

static ms_err fail_setting(const ms_page *page, const ms_override *set,
                           const char *const *keys, uint32_t n)
{
    char where[256], hint[160];
    snprintf(where, sizeof where, "--set model.%s=%s", set->key, set->value);
    const char *near = ms_names_nearest(set->key, keys, n);
    snprintf(hint, sizeof hint, "memsim help huggingface lists its keys");
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%.80s\"?", near);
    return ms_fail(page->fault, MS_EUSAGE, where, hint,
                   "model_type \"%s\" has no setting \"%s\"", page->type,
                   set->key);
}

static bool is_key(const ms_page *page, const char *word,
                   const char *const *keys, uint32_t n)
{
    const char *dot = strchr(word, '.');
    size_t length = dot == NULL ? strlen(word) : (size_t)(dot - word);
    (void)page;
    for (uint32_t k = 0; k < n; k++)
        if (strlen(keys[k]) == length && strncmp(keys[k], word, length) == 0)
            return true;
    return false;
}

/* Settings name keys of the configuration, or these. */
static ms_err check_settings(const ms_page *page)
{
    static const char *const own[] = {"head", "name", "model_type", "page",
                                      "mtp"};
    const ms_json *json;
    const char *keys[MOST_KEYS];
    uint32_t n = 0;
    uint32_t n_own = ms_page_entry(page, "mtp", &json) == MS_NONE ? 4 : 5;
    for (; n < n_own; n++)
        keys[n] = own[n];
    n += ms_page_keys(page, keys + n, MOST_KEYS - n);
    for (uint32_t i = 0; i < page->n_overrides; i++)
        if (!is_key(page, page->overrides[i].key, keys, n))
            return fail_setting(page, &page->overrides[i], keys, n);
    return MS_OK;
}

/* model.mtp=N: layers that predict further tokens, which Megatron-LM trains
 * where it is asked to (--mtp-num-layers), whatever the checkpoint has. */
static ms_err find_mtp(ms_page *page)
{
    const ms_override *set = ms_page_override(page, "mtp");
    char *end;
    if (set == NULL)
        return MS_OK;
    page->mtp = strtol(set->value, &end, 10);
    if (set->value[0] < '0' || set->value[0] > '9' || *end != '\0' ||
        page->mtp > MOST_PREDICTED)
        return ms_fail(page->fault, MS_EUSAGE, "--set model.mtp", NULL,
                       "must be a number of layers, 0 to %d, not \"%s\"",
                       MOST_PREDICTED, set->value);
    return MS_OK;
}

/* ---- the head ------------------------------------------------------------ */

/* Heads with as many outputs as the user says: of a sequence, of each token. */
static bool takes_count(const char *head, size_t length)
{
    return (length == 7 && memcmp(head, "classes", 7) == 0) ||
           (length == 6 && memcmp(head, "tokens", 6) == 0);
}

/* "none, lm, classes:N": what the page's architectures have. */
static void list_heads(const ms_page *page, char *text, size_t size)
{
    const ms_json *json;
    uint32_t heads = ms_page_entry(page, "heads", &json);
    size_t used = (size_t)snprintf(text, size, "none");
    for (uint32_t i = ms_json_first(json, heads); i != MS_NONE;
         i = json->nodes[i].next) {
        const char *head = json->nodes[i].value.s;
        bool seen = strcmp(head, "none") == 0;
        for (uint32_t j = ms_json_first(json, heads); j != i && !seen;
             j = json->nodes[j].next)
            seen = strcmp(head, json->nodes[j].value.s) == 0;
        if (!seen && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "|%s%s", head,
                                 takes_count(head, strlen(head)) ? ":N" : "");
    }
}

static bool has_head(const ms_page *page, const char *word)
{
    const ms_json *json;
    uint32_t heads = ms_page_entry(page, "heads", &json);
    if (strcmp(word, "none") == 0)
        return true;
    for (uint32_t i = ms_json_first(json, heads); i != MS_NONE;
         i = json->nodes[i].next)
        if (strcmp(json->nodes[i].value.s, word) == 0)
            return true;
    return false;
}

static ms_err fail_head(const ms_page *page, const ms_override *set)
{
    char where[256], hint[160];
    size_t used = (size_t)snprintf(hint, sizeof hint, "choose one of ");
    list_heads(page, hint + used, sizeof hint - used);
    snprintf(where, sizeof where, "--set model.head=%s", set->value);
    return ms_fail(page->fault, MS_EUSAGE, where, hint,
                   "model_type \"%s\" has no such head", page->type);
}

static ms_err set_head(ms_page *page, const ms_override *set)
{
    size_t length = strcspn(set->value, ":");
    const char *digits = set->value + length + 1;
    char *end;
    if (takes_count(set->value, length) != (set->value[length] == ':'))
        return fail_head(page, set);
    if (set->value[length] == ':') {
        long n = strtol(digits, &end, 10);
        if (*digits < '0' || *digits > '9' || *end != '\0' || n < 1 ||
            n > MOST_CLASSES)
            return fail_head(page, set);
        page->classes = n;
    }
    char *word = ms_arena_text(page->arena, set->value, length);
    if (word == NULL)
        return ms_fail_nomem(page->fault);
    page->head = word;
    return has_head(page, word) ? MS_OK : fail_head(page, set);
}

/* num_labels, else as many as id2label names, else the class default. */
static ms_err count_classes(ms_page *page)
{
    const ms_json *config = page->config;
    uint32_t n = ms_json_find(config, 0, "num_labels");
    uint32_t labels = ms_json_find(config, 0, "id2label");
    bool counted = n != MS_NONE && config->nodes[n].kind == MS_JSON_INT;
    bool listed =
        labels != MS_NONE && config->nodes[labels].kind == MS_JSON_OBJECT;
    int64_t count = counted ? config->nodes[n].value.i : 2;
    if (counted && listed && count != config->nodes[labels].value.n)
        return ms_json_fail(config, n, page->fault, "keep one of the two",
                            "\"num_labels\" (%lld) contradicts \"id2label\", "
                            "which names %u",
                            (long long)count, config->nodes[labels].value.n);
    if (!counted && listed)
        count = config->nodes[labels].value.n;
    if (count < 1 || count > MOST_CLASSES)
        return ms_json_fail(config, counted ? n : labels, page->fault, NULL,
                            "%lld classes", (long long)count);
    page->classes = count;
    return MS_OK;
}

/* What follows the name of the page's class ("Mpt|MPT": of one of them) in an
 * architecture, or NULL. */
static const char *after_class(const char *name, const char *classes)
{
    for (;;) {
        size_t length = strcspn(classes, "|");
        if (strncmp(name, classes, length) == 0)
            return name + length;
        if (classes[length] == '\0')
            return NULL;
        classes += length + 1;
    }
}

/* The head of an architecture: "Llama" and "ForCausalLM" have a row. */
static ms_err head_of(ms_page *page, uint32_t node)
{
    const ms_json *config = page->config, *json;
    char hint[200] = "choose one: --set model.head=";
    size_t used = strlen(hint);
    uint32_t class_row = ms_page_entry(page, "class", &json);
    const char *classes = json->nodes[class_row].value.s;
    uint32_t heads = ms_page_entry(page, "heads", &json);
    const char *name = config->nodes[node].value.s;
    if (config->nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(config, node, page->fault, NULL,
                            "\"architectures\" must hold strings");
    const char *rest = after_class(name, classes);
    uint32_t row = rest == NULL ? MS_NONE : ms_json_find(json, heads, rest);
    if (row != MS_NONE) {
        page->head = json->nodes[row].value.s;
        return MS_OK;
    }
    list_heads(page, hint + used, sizeof hint - used);
    return ms_json_fail(config, node, page->fault, hint,
                        "unknown architecture \"%s\" of model_type \"%s\"",
                        name, page->type);
}

static ms_err find_head(ms_page *page)
{
    const ms_override *set = ms_page_override(page, "head");
    const ms_json *config = page->config, *json;
    uint32_t list = ms_json_find(config, 0, "architectures");
    MS_TRY(count_classes(page));
    if (set != NULL)
        return set_head(page, set);
    if (list != MS_NONE && config->nodes[list].kind != MS_JSON_NULL &&
        config->nodes[list].kind != MS_JSON_ARRAY)
        return ms_json_fail(config, list, page->fault, NULL,
                            "\"architectures\" must be a list");
    uint32_t first =
        list == MS_NONE || config->nodes[list].kind != MS_JSON_ARRAY
            ? MS_NONE
            : ms_json_first(config, list);
    if (first != MS_NONE)
        return head_of(page, first);
    uint32_t heads = ms_page_entry(page, "heads", &json);
    uint32_t absent = ms_json_find(json, heads, "absent");
    page->head = json->nodes[absent].value.s;
    return MS_OK;
}

/* ---- the native model ---------------------------------------------------- */

static ms_err put_name(const ms_page *page, const char *name, ms_text *text)
{
    const ms_override *set = ms_page_override(page, "name");
    if (set != NULL)
        name = set->value;
    else if (*name == '\0' || *name == '.' || strcmp(name, "config") == 0)
        name = page->type;
    ms_text_add(text, "{\"memsim\": 1, \"name\": ");
    ms_text_json(text, name);
    return MS_OK;
}

/* Pages say it by "image" and "sequence" where it is no more than that. */
static ms_err put_short_input(ms_page *page, ms_text *text)
{
    const ms_names names = ms_page_names(page);
    const ms_json *json;
    int64_t size;
    uint32_t image = ms_page_entry(page, "image", &json);
    ms_text_add(text, image == MS_NONE ? "{\"tokens\": true" : "{\"shape\": [");
    for (uint32_t i = image == MS_NONE ? MS_NONE : ms_json_first(json, image);
         i != MS_NONE; i = json->nodes[i].next) {
        MS_TRY(ms_known_place(
            ms_expression_integer(json->nodes[i].value.s, &names, 1, &size),
            json, i, page->fault));
        ms_text_i64(text, size);
        ms_text_add(text, json->nodes[i].next == MS_NONE ? "]" : ", ");
    }
    uint32_t sequence = ms_page_entry(page, "sequence", &json);
    if (sequence != MS_NONE) {
        MS_TRY(
            ms_known_place(ms_expression_integer(json->nodes[sequence].value.s,
                                                 &names, 1, &size),
                           json, sequence, page->fault));
        ms_text_add(text, ", \"longest\": ");
        ms_text_i64(text, size);
    }
    ms_text_add(text, "}");
    return MS_OK;
}

/* What is given to the model: token ids, or an image. */
static ms_err put_input(ms_page *page, ms_text *text)
{
    const ms_json *json;
    ms_text_add(text, ",\n \"input\": ");
    MS_TRY(ms_page_entry(page, "input", &json) != MS_NONE
               ? ms_template_entry(page, "input", text)
               : put_short_input(page, text));
    ms_text_add(text, ",\n \"layers\": ");
    return MS_OK;
}

static ms_err find_refusal(ms_page *page, ms_huggingface_model *model)
{
    const ms_names names = ms_page_names(page);
    const ms_json *json;
    uint32_t row = ms_page_entry(page, "refuse", &json);
    ms_known why = {0};
    if (row != MS_NONE)
        MS_TRY(ms_known_place(
            ms_expression_value(json->nodes[row].value.s, &names, &why), json,
            row, page->fault));
    model->refusal = why.kind == MS_KIND_TEXT ? why.is.s : NULL;
    return MS_OK;
}

ms_err ms_huggingface_write(const ms_json *json, const char *name,
                            const char *folder, const ms_override *overrides,
                            uint32_t n_overrides, ms_arena *arena,
                            ms_huggingface_model *model, ms_fault *fault)
{
    ms_page page = {.config = json,
                    .overrides = overrides,
                    .n_overrides = n_overrides,
                    .arena = arena,
                    .fault = fault,
                    .assumed = {.arena = arena}};
    *model = (ms_huggingface_model){.text = {.arena = arena}};
    MS_TRY(find_type(&page));
    MS_TRY(check_settings(&page));
    MS_TRY(find_mtp(&page));
    MS_TRY(find_head(&page));
    MS_TRY(ms_rules_check(&page));
    model->type = page.type;
    MS_TRY(put_name(&page, name, &model->text));
    MS_TRY(put_input(&page, &model->text));
    MS_TRY(ms_template_entry(&page, "layers", &model->text));
    ms_text_add(&model->text, "}\n");
    model->assumed = page.assumed.length > 0 ? page.assumed.bytes : NULL;
    model->text.failed |= page.assumed.failed;
    if (folder != NULL)
        MS_TRY(ms_safetensors_check(&page, folder));
    MS_TRY(find_refusal(&page, model));
    return model->text.failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- help ---------------------------------------------------------------- */

static void put_word(ms_text *text, const char *word, uint32_t *column)
{
    uint32_t length = (uint32_t)strlen(word);
    if (*column + 1 + length > COLUMNS) {
        ms_text_add(text, "\n   ");
        *column = 3;
    }
    ms_text_add(text, " %s", word);
    *column += 1 + length;
}

static void put_key(const ms_json *json, uint32_t row, const char *prefix,
                    ms_text *text, uint32_t *column)
{
    const ms_json_node *node = &json->nodes[row];
    ms_text word = {.arena = text->arena};
    if (node->kind == MS_JSON_OBJECT) {
        for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
             i = json->nodes[i].next)
            put_key(json, i, node->key, text, column);
        return;
    }
    ms_text_add(&word, "%s%s%s=", prefix, *prefix == '\0' ? "" : ".",
                node->key);
    if (node->kind == MS_JSON_INT)
        ms_text_i64(&word, node->value.i);
    else if (node->kind == MS_JSON_FLOAT)
        ms_text_double(&word, node->value.f);
    else if (node->kind == MS_JSON_BOOL)
        ms_text_add(&word, node->value.b ? "true" : "false");
    else
        ms_text_add(&word, "%s",
                    node->kind == MS_JSON_STRING ? node->value.s : "null");
    text->failed |= word.failed;
    if (!word.failed)
        put_word(text, word.bytes, column);
}

/* A type's own keys; the others are those of the type that it is like. */
static void put_type(const ms_page *page, ms_text *text)
{
    const ms_json *own = &page->pages[0];
    char heads[160];
    uint32_t column = 3;
    uint32_t like = ms_json_find(own, 0, "like");
    uint32_t keys = ms_json_find(own, 0, "defaults");
    uint32_t also = ms_json_find(own, 0, "also");
    uint32_t settings = ms_json_find(own, 0, "settings");
    list_heads(page, heads, sizeof heads);
    ms_text_add(text, "\n%s", page->type);
    if (like != MS_NONE)
        ms_text_add(text, ", like %s", own->nodes[like].value.s);
    ms_text_add(text, ": head=%s\n   ", heads);
    for (uint32_t i = keys == MS_NONE ? MS_NONE : ms_json_first(own, keys);
         i != MS_NONE; i = own->nodes[i].next)
        put_key(own, i, "", text, &column);
    for (uint32_t i = settings == MS_NONE ? MS_NONE
                                          : ms_json_first(own, settings);
         i != MS_NONE; i = own->nodes[i].next)
        put_key(own, i, "", text, &column);
    for (uint32_t i = also == MS_NONE ? MS_NONE : ms_json_first(own, also);
         i != MS_NONE; i = own->nodes[i].next) {
        ms_text word = {.arena = text->arena};
        ms_text_add(&word, "%s=%s", own->nodes[i].key, own->nodes[i].value.s);
        text->failed |= word.failed;
        if (!word.failed)
            put_word(text, word.bytes, &column);
    }
    ms_text_add(text, "\n");
}

const char *ms_huggingface_type(uint32_t i)
{
    return i < ms_pages_n ? ms_pages_all[i].name : NULL;
}

void ms_huggingface_describe(ms_text *text)
{
    for (uint32_t i = 0; i < ms_pages_n; i++) {
        ms_fault fault = {0};
        ms_page page = {.arena = text->arena, .fault = &fault};
        const ms_known type = {.kind = MS_KIND_TEXT,
                               .is.s = ms_pages_all[i].name};
        if (ms_page_open(&page, &type) == MS_OK)
            put_type(&page, text);
        else
            text->failed = true;
    }
}
