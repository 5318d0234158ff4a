/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The models that are compiled into the program, and files that are like one of
 * them. */
#include "graphs/models/files/reader.h"
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

#define MOST_NAMES 256u /* names among which the nearest is searched */
#define MOST_LIKE 2u    /* a user's file, and a built-in one */

const ms_builtin *ms_builtins_find(const char *name)
{
    for (uint32_t i = 0; i < ms_builtin_n_models; i++) {
        size_t length = strlen(ms_builtin_models[i].name);
        if (strncmp(name, ms_builtin_models[i].name, length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, ".json") == 0))
            return &ms_builtin_models[i];
    }
    return NULL;
}

void ms_builtins_hint(const char *name, char *hint, size_t size)
{
    const char *names[MOST_NAMES];
    char plain[64];
    uint32_t n = 0;
    for (; n < ms_builtin_n_models && n < MOST_NAMES; n++)
        names[n] = ms_builtin_models[n].name;
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".json") == 0)
        length -= 5;
    snprintf(plain, sizeof plain, "%.*s", (int)(length < 64 ? length : 63),
             name);
    const char *near = ms_names_nearest(plain, names, n);
    if (near != NULL)
        snprintf(hint, size,
                 "did you mean \"%s\"? (memsim help models lists all)", near);
    else
        snprintf(hint, size, "memsim help models lists the built-in ones");
}

/* ---- "like" -------------------------------------------------------------- */

ms_err ms_builtins_open(const ms_reader *r, uint32_t like, ms_json *json)
{
    const ms_json_node *node = &r->json.nodes[like];
    char hint[128];
    uint32_t depth = 0;
    if (node->kind != MS_JSON_STRING)
        return ms_json_fail(&r->json, like, r->fault, NULL,
                            "\"like\" must be a string, not %s",
                            ms_json_kind_name(&r->json, like));
    for (const ms_likeness *l = r->likeness; l != NULL; l = l->outer)
        depth++;
    if (depth == MOST_LIKE)
        return ms_json_fail(&r->json, like, r->fault, "name a whole one",
                            "a built-in model is like one that is like "
                            "another");
    const ms_builtin *builtin = ms_builtins_find(node->value.s);
    if (builtin == NULL) {
        ms_builtins_hint(node->value.s, hint, sizeof hint);
        return ms_json_fail(&r->json, like, r->fault, hint,
                            "there is no built-in model \"%.100s\"",
                            node->value.s);
    }
    const char *name = ms_arena_format(r->arena, "%s.json", builtin->name);
    if (name == NULL)
        return ms_fail_nomem(r->fault);
    return ms_json_read(name, builtin->text, strlen(builtin->text), r->arena,
                        json, r->fault);
}

ms_err ms_builtins_config(const ms_reader *r, const ms_fields *keys,
                          ms_fields_values *out)
{
    for (const ms_likeness *l = r->likeness; l != NULL; l = l->outer)
        if (l->config != MS_NONE)
            MS_TRY(ms_fields_read_object(l->json, l->config, keys, r->arena,
                                         out, r->fault));
    return MS_OK;
}

const ms_json *ms_builtins_place(const ms_reader *r, uint32_t *node)
{
    const ms_json *json = &r->json;
    for (const ms_likeness *l = r->likeness; l != NULL; l = l->outer)
        if (l->config != MS_NONE) {
            *node = l->config;
            json = l->json;
        }
    return json;
}
