/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables in JSON: {"columns": ["t_ns", "bytes"], "rows": [[0, 512], [12,
 * 1024]]}. */

#include "graphs/json/json.h"
#include "tools/results/keys/keys.h"

#include <stdio.h>
#include <string.h>

static void put(ms_text *text, const char *words)
{
    ms_text_put(text, words, strlen(words));
}

/* ---- printed ------------------------------------------------------------- */

static void put_cell(const ms_key_column *column, uint32_t row, ms_text *text)
{
    const char *at = (const char *)column->first + row * column->stride;
    const char *words;
    uint64_t number;
    if (column->is_text) {
        memcpy(&words, at, sizeof words);
        ms_text_json(text, words);
        return;
    }
    memcpy(&number, at, sizeof number);
    ms_text_u64(text, number);
}

void ms_keys_table_write(const ms_key *key, const void *of, const void *at,
                         ms_text *text)
{
    ms_key_columns columns = {.n = 0};
    uint32_t n = 0;
    key->columns(of, at, &columns);
    for (uint32_t j = 0; j < columns.n; j++)
        if (!columns.of[j].is_hidden)
            columns.of[n++] = columns.of[j];
    put(text, "{\"columns\": [");
    for (uint32_t j = 0; j < n; j++) {
        put(text, j > 0 ? ", " : "");
        ms_text_json(text, columns.of[j].name);
    }
    put(text, "], \"rows\": [");
    for (uint32_t i = 0; i < columns.n_rows; i++) {
        put(text, i > 0 ? ", [" : "[");
        for (uint32_t j = 0; j < n; j++) {
            put(text, j > 0 ? ", " : "");
            put_cell(&columns.of[j], i, text);
        }
        put(text, "]");
    }
    put(text, "]}");
}

/* ---- read back ----------------------------------------------------------- */

typedef struct reading {
    const ms_values *values;
    ms_value_table table;
    ms_key_columns columns;
    /* by place in the file: the row of `columns` that it belongs to */
    uint32_t to[MS_KEY_COLUMNS_MOST];
} reading;

/* Joins the names of the columns: "name, bytes and t_ns". */
static void name_columns(const ms_key_columns *columns, char *names,
                         size_t size)
{
    names[0] = '\0';
    for (uint32_t j = 0; j < columns->n; j++) {
        size_t length = strlen(names);
        const char *between = j == 0 ? "" : j + 1 < columns->n ? ", " : " and ";
        snprintf(names + length, size - length, "%s%s", between,
                 columns->of[j].name);
    }
}

static ms_err fail_columns(const reading *r)
{
    char names[256];
    uint32_t most = r->columns.most;
    name_columns(&r->columns, names, sizeof names);
    return most > 0
               ? ms_json_fail(r->values->json, r->table.columns,
                              r->values->fault, NULL,
                              "this should be a table of at most %u rows with "
                              "the columns %s",
                              most, names)
               : ms_json_fail(r->values->json, r->table.columns,
                              r->values->fault, NULL,
                              "the columns should be %s", names);
}

static ms_err check_columns(const reading *r, const bool *met)
{
    const ms_key_columns *columns = &r->columns;
    bool too_many = columns->most > 0 && r->table.n_rows > columns->most;
    if (columns->in_order && (r->table.n_columns != columns->n || too_many))
        return fail_columns(r);
    for (uint32_t j = 0; j < columns->n; j++)
        if (columns->of[j].must && !met[j])
            return ms_json_fail(
                r->values->json, r->table.columns, r->values->fault, NULL,
                "there is no column \"%s\"", columns->of[j].name);
    return MS_OK;
}

static ms_err read_columns(reading *r)
{
    const ms_json *json = r->values->json;
    const char *names[MS_KEY_COLUMNS_MOST];
    bool met[MS_KEY_COLUMNS_MOST] = {false};
    uint32_t which;
    for (uint32_t j = 0; j < r->columns.n; j++)
        names[j] = r->columns.of[j].name;
    uint32_t row = ms_json_first(json, r->table.columns);
    for (uint32_t j = 0; row != MS_NONE; j++, row = json->nodes[row].next) {
        MS_TRY(ms_values_word(r->values, row, names, r->columns.n, &which));
        if (r->columns.in_order && which != j)
            return fail_columns(r);
        if (met[which])
            return ms_json_fail(json, row, r->values->fault, NULL,
                                "column \"%s\" stands twice", names[which]);
        met[which] = true;
        r->to[j] = which;
    }
    return check_columns(r, met);
}

static ms_err read_cell(const reading *r, uint32_t cell,
                        const ms_key_column *column, uint32_t row)
{
    char *at = (char *)column->first + row * column->stride;
    const char *words;
    uint64_t number;
    if (column->is_text) {
        MS_TRY(ms_values_name(r->values, cell, &words));
        memcpy(at, &words, sizeof words);
        return MS_OK;
    }
    MS_TRY(ms_values_u64(r->values, cell, &number));
    memcpy(at, &number, sizeof number);
    return MS_OK;
}

static ms_err read_row(const reading *r, uint32_t node, uint32_t row)
{
    MS_TRY(ms_values_row(r->values, &r->table, node));
    uint32_t cell = ms_json_first(r->values->json, node);
    for (uint32_t j = 0; cell != MS_NONE; j++) {
        MS_TRY(read_cell(r, cell, &r->columns.of[r->to[j]], row));
        cell = r->values->json->nodes[cell].next;
    }
    return MS_OK;
}

ms_err ms_keys_table_read(const ms_values *values, uint32_t object,
                          const ms_key *key, void *of, void *at)
{
    reading r = {.values = values};
    MS_TRY(ms_values_table(values, object, &r.table));
    MS_TRY(key->room(values, object, at));
    key->columns(of, at, &r.columns);
    MS_TRY(read_columns(&r));
    uint32_t node = r.table.row;
    for (uint32_t i = 0; i < r.table.n_rows; i++) {
        MS_TRY(read_row(&r, node, i));
        const char *wrong =
            key->row_wrong != NULL ? key->row_wrong(of, at, i) : NULL;
        if (wrong != NULL)
            return ms_json_fail(values->json, node, values->fault,
                                "was the file edited?", "%s", wrong);
        node = values->json->nodes[node].next;
    }
    return MS_OK;
}
