/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/results/keys/values.h"
#include "graphs/json/json.h"

#include <string.h>

#define WRITTEN "results are written by memsim run MODEL --json"

static const ms_json_node *node_of(const ms_values *values, uint32_t row)
{
    return &values->json->nodes[row];
}

ms_err ms_values_wrong(const ms_values *values, uint32_t row,
                       const char *wanted)
{
    const char *key = node_of(values, row)->key;
    const char *found = ms_json_kind_name(values->json, row);
    if (key == NULL)
        return ms_json_fail(values->json, row, values->fault, WRITTEN,
                            "%s should be here, not %s", wanted, found);
    return ms_json_fail(values->json, row, values->fault, WRITTEN,
                        "\"%s\" should be %s, not %s", key, wanted, found);
}

static const char *const kinds[] = {
    [MS_JSON_NULL] = "null",        [MS_JSON_BOOL] = "true or false",
    [MS_JSON_INT] = "an integer",   [MS_JSON_FLOAT] = "a number",
    [MS_JSON_STRING] = "a string",  [MS_JSON_ARRAY] = "an array",
    [MS_JSON_OBJECT] = "an object",
};

ms_err ms_values_kind(const ms_values *values, uint32_t row, ms_json_kind kind)
{
    return node_of(values, row)->kind == kind
               ? MS_OK
               : ms_values_wrong(values, row, kinds[kind]);
}

static ms_err missing(const ms_values *values, uint32_t object, const char *key)
{
    const char *of = node_of(values, object)->key;
    return ms_json_fail(values->json, object, values->fault, WRITTEN,
                        of != NULL ? "there is no \"%s\" in \"%s\""
                                   : "there is no \"%s\" here",
                        key, of);
}

ms_err ms_values_any(const ms_values *values, uint32_t object, const char *key,
                     uint32_t *member)
{
    MS_TRY(ms_values_kind(values, object, MS_JSON_OBJECT));
    *member = ms_json_find(values->json, object, key);
    return *member != MS_NONE ? MS_OK : missing(values, object, key);
}

ms_err ms_values_member(const ms_values *values, uint32_t object,
                        const char *key, ms_json_kind kind, uint32_t *member)
{
    MS_TRY(ms_values_any(values, object, key, member));
    return ms_values_kind(values, *member, kind);
}

ms_err ms_values_optional(const ms_values *values, uint32_t object,
                          const char *key, ms_json_kind kind, uint32_t *member)
{
    MS_TRY(ms_values_kind(values, object, MS_JSON_OBJECT));
    *member = ms_json_find(values->json, object, key);
    if (*member != MS_NONE && node_of(values, *member)->kind == MS_JSON_NULL)
        *member = MS_NONE;
    return *member == MS_NONE ? MS_OK : ms_values_kind(values, *member, kind);
}

ms_err ms_values_u64(const ms_values *values, uint32_t row, uint64_t *number)
{
    const ms_json_node *node = node_of(values, row);
    if (node->kind != MS_JSON_INT || node->value.i < 0)
        return ms_values_wrong(values, row, "an integer from 0 on");
    *number = (uint64_t)node->value.i;
    return MS_OK;
}

ms_err ms_values_name(const ms_values *values, uint32_t row, const char **name)
{
    MS_TRY(ms_values_kind(values, row, MS_JSON_STRING));
    const char *string = node_of(values, row)->value.s;
    *name = ms_arena_text(values->arena, string, strlen(string));
    return *name != NULL ? MS_OK : ms_fail_nomem(values->fault);
}

ms_err ms_values_word(const ms_values *values, uint32_t row,
                      const char *const *words, uint32_t n, uint32_t *which)
{
    MS_TRY(ms_values_kind(values, row, MS_JSON_STRING));
    const char *word = node_of(values, row)->value.s;
    for (*which = 0; *which < n; ++*which)
        if (words[*which] != NULL && strcmp(words[*which], word) == 0)
            return MS_OK;
    return ms_json_fail(values->json, row, values->fault,
                        "was it written by a newer memsim?",
                        "unknown word \"%s\"", word);
}

/* ---- tables -------------------------------------------------------------- */

ms_err ms_values_table(const ms_values *values, uint32_t object,
                       ms_value_table *table)
{
    uint32_t columns, rows;
    MS_TRY(
        ms_values_member(values, object, "columns", MS_JSON_ARRAY, &columns));
    MS_TRY(ms_values_member(values, object, "rows", MS_JSON_ARRAY, &rows));
    *table = (ms_value_table){.columns = columns,
                              .n_columns = node_of(values, columns)->value.n,
                              .row = ms_json_first(values->json, rows),
                              .n_rows = node_of(values, rows)->value.n};
    return MS_OK;
}

ms_err ms_values_row(const ms_values *values, const ms_value_table *table,
                     uint32_t row)
{
    MS_TRY(ms_values_kind(values, row, MS_JSON_ARRAY));
    uint32_t n = node_of(values, row)->value.n;
    if (n == table->n_columns)
        return MS_OK;
    return ms_json_fail(values->json, row, values->fault, NULL,
                        "a row of %u values, where there are %u columns", n,
                        table->n_columns);
}
