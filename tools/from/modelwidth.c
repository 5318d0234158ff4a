/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/modelwidth.h"
#include "graphs/model.h"
#include "graphs/models/files/namewords.h"
#include "sim/base/files.h"
#include "tools/from/pairs/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const ms_builtin *builtin(const char *name)
{
    char hint[384];
    for (uint32_t i = 0; i < ms_builtin_n_models; i++)
        if (strcmp(ms_builtin_models[i].name, name) == 0)
            return &ms_builtin_models[i];
    return ms_namewords_model(name, hint, sizeof hint);
}

/* The text of a model, of a folder its config.json; NULL: there is none. */
static const char *text_of(const char *model, size_t *length, ms_arena *arena,
                           ms_fault *own)
{
    char path[512];
    char *bytes = NULL;
    const ms_builtin *row = NULL;
    if (access(model, R_OK) != 0)
        row = builtin(model);
    if (row != NULL) {
        *length = strlen(row->text);
        return row->text;
    }
    snprintf(path, sizeof path, "%.490s/config.json", model);
    const char *file = access(path, R_OK) == 0 ? path : model;
    if (strcmp(model, "-") == 0 ||
        ms_files_read(file, MS_PAIRS_MAX_BYTES, arena, &bytes, length, own) !=
            MS_OK)
        return NULL;
    return bytes;
}

static ms_err find_width(const char *model, uint32_t depth, ms_arena *arena,
                         uint64_t *width, ms_fault *fault)
{
    static const char *const keys[] = {"hidden_size",
                                       "n_embd",
                                       "d_model",
                                       "config.hidden",
                                       "text_config.hidden_size",
                                       "n_embed"};
    size_t length = 0;
    ms_fault own = {.caret = -1};
    *width = 0;
    const char *text = text_of(model, &length, arena, &own);
    if (text == NULL)
        return own.err == MS_ENOMEM ? ms_fail_nomem(fault) : MS_OK;
    ms_pairs pairs = {
        .source = {.name = model, .bytes = text, .length = length},
        .arena = arena};
    if (ms_jsonpairs_read(&pairs, &own) != MS_OK)
        return own.err == MS_ENOMEM ? ms_fail_nomem(fault) : MS_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const ms_pair *pair = ms_pairs_find(&pairs, keys[i]);
        if (pair != NULL) {
            *width = strtoull(pair->value, NULL, 10);
            return MS_OK;
        }
    }
    const ms_pair *like = ms_pairs_find(&pairs, "like");
    return like != NULL && depth < 2
               ? find_width(like->value, depth + 1, arena, width, fault)
               : MS_OK;
}

ms_err ms_modelwidth_find(const char *model, ms_arena *arena, uint64_t *width,
                          ms_fault *fault)
{
    return find_width(model, 0, arena, width, fault);
}

const char *ms_modelwidth_named(const char *name)
{
    const char *slash = strrchr(name, '/');
    if (access(name, R_OK) == 0)
        return name;
    const ms_builtin *row = builtin(slash != NULL ? slash + 1 : name);
    return row != NULL ? row->name : NULL;
}
