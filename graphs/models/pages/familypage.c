/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/pages/familypage.h"

#include "graphs/layertypes.h"
#include "graphs/models/files/folder.h"
#include "graphs/models/pages/pagefile.h"
#include "graphs/models/pages/rules.h"
#include "graphs/models/pages/template.h"

#include <string.h>

ms_err ms_familypage_open(ms_page *page, const ms_known *name,
                          ms_family *family)
{
    const ms_json *json;
    MS_TRY(ms_page_open_family(page, name));
    uint32_t summary = ms_page_entry(page, "summary", &json);
    *family = (ms_family){
        .name = page->type,
        .summary = summary == MS_NONE ? "" : json->nodes[summary].value.s,
        .n_fields = page->n_keys,
        .fields = page->keys};
    uint32_t flat = ms_page_entry(page, "flat", &json);
    family->flat = flat != MS_NONE && json->nodes[flat].value.b;
    return MS_OK;
}

ms_err ms_familypage_write(ms_page *page, ms_text *text, uint64_t *longest)
{
    const ms_names names = ms_page_names(page);
    const ms_json *json;
    ms_known value = {.kind = MS_KIND_NULL};
    MS_TRY(ms_rules_check(page));
    ms_text_put(text, "{", 1);
    if (ms_page_entry(page, "input", &json) != MS_NONE) {
        ms_text_add(text, "\"input\": ");
        MS_TRY(ms_template_entry(page, "input", text));
        ms_text_add(text, ",\n ");
    }
    ms_text_add(text, "\"layers\": ");
    MS_TRY(ms_template_entry(page, "layers", text));
    ms_text_add(text, "}\n");
    uint32_t row = ms_page_entry(page, "max_sequence", &json);
    if (row != MS_NONE)
        MS_TRY(ms_known_place(
            ms_expression_value(json->nodes[row].value.s, &names, &value), json,
            row, page->fault));
    *longest = 0;
    if (value.kind == MS_KIND_INT && value.is.i > 0)
        *longest = (uint64_t)value.is.i;
    else if (value.kind != MS_KIND_NULL)
        return ms_json_fail(json, row, page->fault, NULL,
                            "max_sequence must be an integer from 1 on, or "
                            "null");
    return text->failed ? ms_fail_nomem(page->fault) : MS_OK;
}

const char *ms_familypage_name(uint32_t i)
{
    return i < ms_pages_n_families ? ms_pages_families[i].name : NULL;
}

/* Reads a family into the next row, or that of its name. */
static ms_err read_row(const char *name, bool is_ours, ms_arena *arena,
                       ms_family *families, uint32_t *n)
{
    ms_fault fault = {0};
    ms_family family;
    ms_page page = {.arena = arena, .fault = &fault, .is_ours = is_ours};
    const ms_known known = {.kind = MS_KIND_TEXT, .is.s = name};
    uint32_t row = 0;
    MS_TRY(ms_familypage_open(&page, &known, &family));
    while (row < *n && strcmp(families[row].name, name) != 0)
        row++;
    families[row] = family;
    *n += row == *n;
    return MS_OK;
}

const ms_family *ms_familypage_all(ms_arena *arena, uint32_t *n)
{
    const char *folder = ms_pagefile_folder();
    const char **names = NULL;
    uint32_t n_names = 0;
    ms_err err = MS_OK;
    *n = 0;
    if (folder != NULL)
        names = ms_folder_pages(folder, arena, &n_names);
    ms_family *families =
        ms_arena_take(arena, ms_pages_n_families + n_names, sizeof *families);
    if (families == NULL || (folder != NULL && names == NULL))
        return NULL;
    for (uint32_t i = 0; i < ms_pages_n_families && err == MS_OK; i++)
        err = read_row(ms_pages_families[i].name, true, arena, families, n);
    /* A page that is none is told of where a model asks for it. */
    for (uint32_t i = 0; i < n_names && err != MS_ENOMEM; i++)
        err = read_row(names[i], false, arena, families, n);
    if (err != MS_ENOMEM)
        return families;
    *n = 0;
    return NULL;
}
