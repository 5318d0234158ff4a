/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FIELDS_H
#define MS_FIELDS_H

/* Values by table rows (ms_field): from JSON, from the text of --set, and
 * back to text.  Type, bounds and words are checked here and nowhere else. */

#include "graphs/field.h"
#include "graphs/json/json.h"
#include "graphs/json/numbers.h"

#define MS_FIELDS_MAX 128u /* rows of a table and extra keys beside it */

/* The keys that an object may have: a table's and some beside it.  Messages
 * call it by owner and, in quotes, owner_name (optional). */
typedef struct ms_fields {
    const ms_field *rows;
    uint32_t n;
    const char *const *extra;
    uint32_t n_extra;
    const char *owner, *owner_name;
    bool expressions; /* numbers may be expressions of the variables */
    const ms_variable *variables;
} ms_fields;

/* MS_NONE: no such row. */
uint32_t ms_fields_find(const ms_field *rows, uint32_t n, const char *name);
/* "did you mean X?", or "keys: a, b, c" where nothing is near. */
void ms_fields_hint(const ms_fields *keys, const char *word, char *buffer,
                    size_t size);
/* The value of row i of the keys, no INTS: a number may be an expression. */
ms_err ms_fields_evaluate(const ms_json *json, uint32_t row,
                          const ms_fields *keys, uint32_t i, ms_value *value,
                          ms_fault *fault);
/* What an object gives to the rows of a table. */
typedef struct ms_fields_values {
    ms_value *values; /* the table's n; untouched where not given */
    uint64_t given;   /* bit per row */
    const uint64_t *ints;
    uint32_t n_ints;
} ms_fields_values;

/* Reads the members of an object; extra keys are left to the caller. */
ms_err ms_fields_read_object(const ms_json *json, uint32_t row,
                             const ms_fields *keys, ms_arena *arena,
                             ms_fields_values *out, ms_fault *fault);
/* Fails at the object where a required row is not given. */
ms_err ms_fields_require(const ms_json *json, uint32_t row,
                         const ms_fields *keys, uint64_t given,
                         ms_fault *fault);
/* The value that text spells; MS_EUSAGE at where. */
ms_err ms_fields_from_text(const char *text, const char *where,
                           const ms_field *field, ms_arena *arena,
                           ms_value *value, ms_fault *fault);
/* As the user would write it. */
void ms_fields_format(const ms_field *field, ms_value value, char *buffer,
                      size_t size);

#endif
