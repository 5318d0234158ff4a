/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/pages/pagefile.h"

#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "graphs/models/files/folder.h"
#include "sim/base/files.h"
#include "sim/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES (UINT64_C(1) << 20)

/* ---- the form of a page -------------------------------------------------- */

typedef enum form {
    TEXT,
    TEXTS,   /* a list of strings */
    ENTRIES, /* an object of strings */
    OBJECT,
    SHAPES, /* an object of lists of strings */
    RULES,
    LIST,     /* of layers */
    TEMPLATE, /* an object with expressions */
    TRUTH,
    ANY
} form;

typedef struct page_key {
    const char *name;
    form form;
    uint32_t least; /* elements of a list */
} page_key;

static const page_key page_keys[] = {
    {"model_type", TEXT, 0}, {"class", TEXT, 0},     {"like", TEXT, 0},
    {"source", TEXT, 0},     {"within", TEXT, 0},    {"depth", TEXT, 0},
    {"sequence", TEXT, 0},   {"refuse", TEXT, 0},    {"defaults", OBJECT, 0},
    {"settings", OBJECT, 0}, {"also", ENTRIES, 0},   {"heads", ENTRIES, 0},
    {"let", ENTRIES, 0},     {"check", RULES, 0},    {"layers", LIST, 0},
    {"image", TEXTS, 1},     {"tensors", SHAPES, 0}, {"mtp", ANY, 0},
    {"input", TEMPLATE, 0},
};
#define N_PAGE_KEYS (sizeof page_keys / sizeof *page_keys)

static const page_key family_keys[] = {
    {"family", TEXT, 0}, {"like", TEXT, 0},         {"summary", TEXT, 0},
    {"source", TEXT, 0}, {"flat", TRUTH, 0},        {"keys", OBJECT, 0},
    {"let", ENTRIES, 0}, {"check", RULES, 0},       {"input", TEMPLATE, 0},
    {"layers", LIST, 0}, {"max_sequence", TEXT, 0},
};
#define N_FAMILY_KEYS (sizeof family_keys / sizeof *family_keys)

/* Of a rule of "check": the first six say which rule it is. */
static const page_key rule_keys[] = {
    {"positive", TEXTS, 1}, {"divides", TEXTS, 2}, {"unsupported", TEXTS, 1},
    {"list", TEXTS, 2},     {"keys", TEXTS, 2},    {"else", TEXT, 0},
    {"that", TEXT, 0},      {"if", TEXT, 0},       {"why", TEXT, 0},
};
#define N_RULE_KEYS (sizeof rule_keys / sizeof *rule_keys)
#define N_RULES 6u

static ms_err fail_kind(const ms_json *json, uint32_t row, const char *what,
                        ms_fault *fault)
{
    return ms_json_fail(json, row, fault, "see memsim help huggingface",
                        "%s must be %s, not %s",
                        json->nodes[row].key != NULL ? json->nodes[row].key
                                                     : "an element",
                        what, ms_json_kind_name(json, row));
}

static ms_err check_kind(const ms_json *json, uint32_t row, ms_json_kind kind,
                         const char *what, ms_fault *fault)
{
    return json->nodes[row].kind == kind ? MS_OK
                                         : fail_kind(json, row, what, fault);
}

static ms_err check_texts(const ms_json *json, uint32_t row, uint32_t least,
                          ms_fault *fault)
{
    MS_TRY(check_kind(json, row, MS_JSON_ARRAY, "a list of strings", fault));
    if (json->nodes[row].value.n < least)
        return ms_json_fail(json, row, fault, NULL,
                            "the list needs %u element%s", least,
                            least == 1 ? "" : "s");
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        MS_TRY(check_kind(json, i, MS_JSON_STRING, "a string", fault));
    return MS_OK;
}

static ms_err check_keys(const ms_json *json, uint32_t object,
                         const page_key *keys, uint32_t n, ms_fault *fault);

static ms_err check_rule(const ms_json *json, uint32_t row, ms_fault *fault)
{
    uint32_t n = 0;
    MS_TRY(check_kind(json, row, MS_JSON_OBJECT, "an object", fault));
    MS_TRY(check_keys(json, row, rule_keys, N_RULE_KEYS, fault));
    for (uint32_t k = 0; k < N_RULES; k++)
        n += ms_json_find(json, row, rule_keys[k].name) != MS_NONE;
    bool that = ms_json_find(json, row, "that") != MS_NONE;
    bool says = ms_json_find(json, row, "keys") != MS_NONE ||
                ms_json_find(json, row, "else") != MS_NONE;
    if (n == 1 && that == says)
        return MS_OK;
    return ms_json_fail(json, row, fault, NULL,
                        "a rule has one of \"positive\", \"divides\", "
                        "\"unsupported\", \"list\", or \"that\" with \"keys\" "
                        "or \"else\"");
}

/* A group of layers: how many times, and which. */
static ms_err check_repeat(const ms_json *json, uint32_t row, uint32_t times,
                           ms_fault *fault)
{
    uint32_t layers = ms_json_find(json, row, "layers");
    uint32_t name = ms_json_find(json, row, "name");
    MS_TRY(check_kind(json, times, MS_JSON_STRING, "\"=EXPRESSION\"", fault));
    if (json->nodes[times].value.s[0] != '=')
        return ms_json_fail(json, times, fault, NULL,
                            "repeat must be \"=EXPRESSION\"");
    if (layers == MS_NONE)
        return ms_json_fail(json, row, fault, NULL,
                            "a repeat needs \"layers\"");
    if (name != MS_NONE)
        MS_TRY(check_kind(json, name, MS_JSON_STRING, "a string", fault));
    return check_kind(json, layers, MS_JSON_ARRAY, "a list", fault);
}

/* What the writer of layers asks of a list or an object, and of all in it. */
static ms_err check_layers(const ms_json *json, uint32_t row, ms_fault *fault)
{
    uint8_t kind = json->nodes[row].kind;
    if (kind != MS_JSON_ARRAY && kind != MS_JSON_OBJECT)
        return MS_OK;
    if (kind == MS_JSON_OBJECT) {
        uint32_t condition = ms_json_find(json, row, "if");
        uint32_t times = ms_json_find(json, row, "repeat");
        if (condition != MS_NONE)
            MS_TRY(
                check_kind(json, condition, MS_JSON_STRING, "a string", fault));
        if (times != MS_NONE)
            MS_TRY(check_repeat(json, row, times, fault));
    }
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        MS_TRY(check_layers(json, i, fault));
    return MS_OK;
}

static ms_err check_form(const ms_json *json, uint32_t row, const page_key *key,
                         ms_fault *fault)
{
    if (key->form == TEXT)
        return check_kind(json, row, MS_JSON_STRING, "a string", fault);
    if (key->form == TEXTS)
        return check_texts(json, row, key->least, fault);
    if (key->form == TRUTH)
        return check_kind(json, row, MS_JSON_BOOL, "true or false", fault);
    if (key->form == LIST || key->form == RULES)
        MS_TRY(check_kind(json, row, MS_JSON_ARRAY, "a list", fault));
    else if (key->form != ANY)
        MS_TRY(check_kind(json, row, MS_JSON_OBJECT, "an object", fault));
    if (key->form == LIST || key->form == TEMPLATE)
        return check_layers(json, row, fault);
    if (key->form == OBJECT || key->form == ANY)
        return MS_OK;
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        MS_TRY(key->form == RULES ? check_rule(json, i, fault)
               : key->form == SHAPES
                   ? check_texts(json, i, 1, fault)
                   : check_kind(json, i, MS_JSON_STRING, "a string", fault));
    return MS_OK;
}

static ms_err fail_key(const ms_json *json, uint32_t row, const page_key *keys,
                       uint32_t n, ms_fault *fault)
{
    const char *names[N_PAGE_KEYS + N_RULE_KEYS];
    char hint[128] = "see memsim help huggingface";
    for (uint32_t k = 0; k < n; k++)
        names[k] = keys[k].name;
    const char *near = ms_names_nearest(json->nodes[row].key, names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_json_fail_key(json, row, fault, hint,
                            "a page has no key \"%s\" here",
                            json->nodes[row].key);
}

static ms_err check_keys(const ms_json *json, uint32_t object,
                         const page_key *keys, uint32_t n, ms_fault *fault)
{
    for (uint32_t row = ms_json_first(json, object); row != MS_NONE;
         row = json->nodes[row].next) {
        uint32_t k = 0;
        while (k < n && strcmp(keys[k].name, json->nodes[row].key) != 0)
            k++;
        if (k == n)
            return fail_key(json, row, keys, n, fault);
        MS_TRY(check_form(json, row, &keys[k], fault));
    }
    return MS_OK;
}

/* ---- where pages come from ----------------------------------------------- */

/* A file of the user's, read once however often a chain of pages asks. */
typedef struct ms_page_file {
    const char *path;
    ms_json json;
    struct ms_page_file *next;
} page_file;

static const char *const names_of[] = {
    [MS_PAGE_MODEL_TYPE] = "model_type", [MS_PAGE_FAMILY] = "family"};

/* Its name is told in summaries. */
static ms_err check_name(const ms_json *json, uint32_t row, ms_fault *fault)
{
    const char *name = json->nodes[row].value.s;
    bool fine = *name != '\0' && strlen(name) <= MS_MAX_NAME;
    for (; *name != '\0'; name++)
        fine &= (unsigned char)*name >= 0x20 && *name != 0x7f;
    return fine ? MS_OK
                : ms_json_fail(json, row, fault, NULL,
                               "the name of a page has 1 to %u bytes, and no "
                               "control character",
                               MS_MAX_NAME);
}

static ms_err check_page(const ms_json *json, ms_fault *fault)
{
    MS_TRY(check_kind(json, 0, MS_JSON_OBJECT, "an object", fault));
    uint32_t family = ms_json_find(json, 0, "family");
    if (family != MS_NONE) {
        MS_TRY(check_keys(json, 0, family_keys, N_FAMILY_KEYS, fault));
        return check_name(json, family, fault);
    }
    MS_TRY(check_keys(json, 0, page_keys, N_PAGE_KEYS, fault));
    uint32_t type = ms_json_find(json, 0, "model_type");
    if (type != MS_NONE)
        return check_name(json, type, fault);
    return ms_json_fail(json, 0, fault, "see memsim help huggingface",
                        "a page needs \"model_type\" or \"family\"");
}

static ms_err read_file(ms_page *page, const char *path, const ms_json **json)
{
    char *bytes;
    size_t length;
    for (const page_file *f = page->files; f != NULL; f = f->next)
        if (strcmp(f->path, path) == 0) {
            *json = &f->json;
            return MS_OK;
        }
    page_file *file = ms_arena_take(page->arena, 1, sizeof *file);
    if (file == NULL)
        return ms_fail_nomem(page->fault);
    MS_TRY(ms_files_read(path, MAX_FILE_BYTES, page->arena, &bytes, &length,
                         page->fault));
    MS_TRY(ms_json_read(path, bytes, length, page->arena, &file->json,
                        page->fault));
    MS_TRY(check_page(&file->json, page->fault));
    file->path = path;
    file->next = page->files;
    page->files = file;
    *json = &file->json;
    return MS_OK;
}

/* The name that a page has, or NULL: it is of the other kind. */
static const char *name_of(const ms_page *page, const ms_json *json)
{
    uint32_t row = ms_json_find(json, 0, names_of[page->kind]);
    return row == MS_NONE ? NULL : json->nodes[row].value.s;
}

/* Is it the page of that name, and none that is under way already? */
static bool serves(const ms_page *page, const ms_json *json, const char *type)
{
    const char *name = name_of(page, json);
    for (uint32_t p = 0; p < page->n_pages; p++)
        if (strcmp(page->pages[p].source.name, json->source.name) == 0)
            return false;
    return name != NULL && strcmp(name, type) == 0;
}

static ms_err find_given(ms_page *page, const char *type, ms_json *json,
                         bool *found)
{
    const ms_json *read;
    for (uint32_t i = page->n_overrides; i-- > 0 && !*found;) {
        if (strcmp(page->overrides[i].key, "page") != 0)
            continue;
        MS_TRY(read_file(page, page->overrides[i].value, &read));
        *found = serves(page, read, type);
        *json = *read;
    }
    return MS_OK;
}

const char *ms_pagefile_folder(void)
{
    const char *folder = getenv("MEMSIM_PAGES");
    return folder != NULL && *folder != '\0' ? folder : NULL;
}

/* A type is a word: no path leads out of the folder. */
static ms_err find_in_folder(ms_page *page, const char *type, ms_json *json,
                             bool *found)
{
    const char *folder = ms_pagefile_folder();
    const ms_json *read;
    if (*found || folder == NULL || *type == '.' || strchr(type, '/') != NULL)
        return MS_OK;
    const char *path = ms_arena_format(page->arena, "%s/%s.json", folder, type);
    if (path == NULL)
        return ms_fail_nomem(page->fault);
    bool there;
    MS_TRY(ms_folder_file(path, &there, page->fault));
    if (!there)
        return MS_OK;
    MS_TRY(read_file(page, path, &read));
    *found = serves(page, read, type);
    *json = *read;
    return MS_OK;
}

ms_err ms_pagefile_find(ms_page *page, const char *type, ms_json *json,
                        bool *found)
{
    bool is_family = page->kind == MS_PAGE_FAMILY;
    const ms_page_text *texts = is_family ? ms_pages_families : ms_pages_all;
    uint32_t n = is_family ? ms_pages_n_families : ms_pages_n;
    *found = false;
    if (!page->is_ours) {
        MS_TRY(find_given(page, type, json, found));
        MS_TRY(find_in_folder(page, type, json, found));
    }
    for (uint32_t i = 0; i < n && !*found; i++) {
        *found = strcmp(texts[i].name, type) == 0;
        if (*found)
            return ms_json_read(texts[i].name, texts[i].text,
                                strlen(texts[i].text), page->arena, json,
                                page->fault);
    }
    return MS_OK;
}

uint32_t ms_pagefile_families(const ms_page *page, const char **names,
                              uint32_t room)
{
    uint32_t n = 0;
    for (; n < ms_pages_n_families && n < room; n++)
        names[n] = ms_pages_families[n].name;
    for (const page_file *f = page->files; f != NULL && n < room; f = f->next)
        if (name_of(page, &f->json) != NULL)
            names[n++] = name_of(page, &f->json);
    return n;
}
