/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SCHEMA_H
#define MS_TOOLS_SCHEMA_H

/* JSON Schemas (draft 2020-12) of what memsim reads and prints:
 *
 *     schema_write.c  a document; those of results from the rows of their keys
 *     schema_model.c  native models, from the tables that the reader walks
 *     schema_measured.c  of these the ones that were measured
 *     properties.c    a field of such a table
 *     indent.c        JSON in lines
 *
 * tests/schema.sh holds them against what commands print: every key that is
 * printed is a row, every row is printed.  cli/schema/documents.c lists the
 * documents. */

#include "graphs/field.h"
#include "tools/results/keys/keys.h"

/* ---- indent.c: JSON in lines --------------------------------------------- */

typedef struct ms_indent {
    ms_text *text;
    uint32_t depth;
    bool some; /* the open object or array has a member already */
} ms_indent;

/* key NULL: an element of an array, or the whole document. bracket: '{' or '['.
 */
void ms_indent_open(ms_indent *json, const char *key, char bracket);
void ms_indent_close(ms_indent *json, char bracket);
void ms_indent_string(ms_indent *json, const char *key, const char *value);
void ms_indent_integer(ms_indent *json, const char *key, int64_t value);
void ms_indent_word(ms_indent *json, const char *key, const char *word);
/* "a|b" as ["a", "b"], on one line. */
void ms_indent_words(ms_indent *json, const char *key, const char *words);
/* {"$ref": "#/$defs/NAME"} */
void ms_indent_ref(ms_indent *json, const char *key, const char *name);

/* ---- properties.c: fields of a table ------------------------------------- */

/* {"type": ..., "minimum": ..., "default": ...}. most: length of a list of
 * integers, 0: no limit. or_text: a number may be an expression. */
void ms_properties_field_or(ms_indent *json, const char *key,
                            const ms_field *field, uint32_t most, bool or_text);
void ms_properties_field(ms_indent *json, const char *key,
                         const ms_field *field, uint32_t most);
/* Adds the fields as members of an open object; those of a layer list may be
 * expressions. */
void ms_properties_fields(ms_indent *json, const ms_field *fields, uint32_t n);
void ms_properties_list_fields(ms_indent *json, const ms_field *fields,
                               uint32_t n);
/* Adds the names of the required rows to an open array. */
void ms_properties_required(ms_indent *json, const ms_field *fields,
                            uint32_t n);
/* "properties": {"KEY": {"const": "VALUE"}} */
void ms_properties_const(ms_indent *json, const char *key, const char *value);
/* The keys that every form of a native model may have. */
void ms_properties_head(ms_indent *json);
/* Forbids other keys. */
void ms_properties_close(ms_indent *json);

/* ---- schema_measured.c: models that were measured ------------------------ */

/* Adds their definitions, which have no pages. */
void ms_schema_measured_put(ms_indent *json);

/* ---- schema_write.c, schema_model.c -------------------------------------- */

typedef struct ms_schema_document {
    const char *name, *what;
    const ms_keys *keys; /* NULL: the document is a native model */
} ms_schema_document;
void ms_schema_write(const ms_schema_document *document, ms_text *text);

/* Adds the keys of the open root object, and "$defs". */
void ms_schema_model_write(ms_indent *json);

#endif
