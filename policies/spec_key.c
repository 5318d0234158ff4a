/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A policy's name as a key, its arguments as the value. */
#include "policies/common/policy.h"

#include <string.h>

static const ms_policy *find(const char *name)
{
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        const ms_policy *row = ms_registry_row(i);
        if (row->n_params > 0 && row->variant_of == NULL &&
            strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

ms_err ms_spec_key_find(const char *key, ms_arena *arena,
                        const ms_policy **policy, ms_fault *fault)
{
    ms_fault inner = {.caret = -1};
    const char *name = key;
    *policy = NULL;
    if (strchr(key, '.') != NULL) /* "training.batch" */
        return MS_OK;
    ms_err err = ms_policywords_plain(key, arena, &name, &inner);
    *policy = err == MS_OK ? find(name) : NULL;
    return err == MS_ENOMEM ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_spec_key_put(const ms_policy *policy, const char *value,
                       ms_arena *arena, ms_spec *spec, ms_fault *fault)
{
    if (strcmp(value, "none") == 0)
        return MS_OK;
    const char *text = ms_arena_format(arena, "%s:%s", policy->name, value);
    if (text == NULL)
        return ms_fail_nomem(fault);
    return ms_spec_parse(text, arena, spec, fault);
}

const char *ms_spec_key_value(const ms_policy *policy, const ms_spec *spec,
                              ms_arena *arena)
{
    ms_spec alone = {0};
    const char *family = ms_policy_family(policy);
    for (uint32_t i = 0; i < spec->n && alone.n == 0; i++)
        if (strcmp(ms_policy_family(spec->items[i].policy), family) == 0)
            alone.items[alone.n++] = spec->items[i];
    const char *text = ms_spec_print(&alone, arena);
    const char *colon = text == NULL ? NULL : strchr(text, ':');
    return colon == NULL ? text : colon + 1;
}
