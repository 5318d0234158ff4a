/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_VALUES_H
#define MS_TOOLS_VALUES_H

/* Takes values out of saved JSON and checks the kind of each. A value of
 * another kind fails with its place in the file.
 *
 *     MS_TRY(ms_values_member(&values, object, "peak", MS_JSON_OBJECT, &peak));
 *     MS_TRY(ms_values_any(&values, peak, "time_ns", &member));
 *     MS_TRY(ms_values_u64(&values, member, &t_ns));
 *
 * Whole structs are read by the rows of their keys (keys.h). */

#include "graphs/json/json.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"

typedef struct ms_values {
    const ms_json *json;
    ms_arena *arena; /* for strings, which outlive the JSON */
    ms_fault *fault;
} ms_values;

/* MS_OK where the value is of that kind; else a fault that it should be
 * `wanted`. */
ms_err ms_values_kind(const ms_values *values, uint32_t row, ms_json_kind kind);
ms_err ms_values_wrong(const ms_values *values, uint32_t row,
                       const char *wanted);
/* Finds a member of an object; it must be there. */
ms_err ms_values_any(const ms_values *values, uint32_t object, const char *key,
                     uint32_t *member);
/* Finds a member of an object; it must be there and be of that ms_json_kind. */
ms_err ms_values_member(const ms_values *values, uint32_t object,
                        const char *key, ms_json_kind kind, uint32_t *member);
/* The same, but *member is MS_NONE where the member is null or missing. */
ms_err ms_values_optional(const ms_values *values, uint32_t object,
                          const char *key, ms_json_kind kind, uint32_t *member);
ms_err ms_values_u64(const ms_values *values, uint32_t row, uint64_t *number);
ms_err ms_values_name(const ms_values *values, uint32_t row, const char **name);
/* Finds which of the n words a string is; words that are NULL match nothing. */
ms_err ms_values_word(const ms_values *values, uint32_t row,
                      const char *const *words, uint32_t n, uint32_t *which);

/* A table: {"columns": [names], "rows": [[values], ...]}. row is the first
 * of its rows; the others follow by `next`; each is an array of n_columns
 * values. */
typedef struct ms_value_table {
    uint32_t columns, n_columns, row, n_rows;
} ms_value_table;
ms_err ms_values_table(const ms_values *values, uint32_t object,
                       ms_value_table *table);
/* Checks that the row is an array of as many values as there are columns. */
ms_err ms_values_row(const ms_values *values, const ms_value_table *table,
                     uint32_t row);

#endif
