/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_JSON_H
#define MS_JSON_H

/* JSON texts as a flat tree, strictly read (scan.h says what is refused;
 * duplicate keys are, too, and nesting over 64 levels).  Nodes are in document
 * order, so the first child of a node is the next row:
 *
 *     for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
 *          i = json->nodes[i].next)
 */

#include "sim/base/base.h"

#define MS_JSON_DEPTH 64u
#define MS_JSON_MAX_BYTES (UINT64_C(256) << 20)

typedef enum ms_json_kind {
    MS_JSON_NULL,
    MS_JSON_BOOL,
    MS_JSON_INT, /* digits only */
    MS_JSON_FLOAT,
    MS_JSON_STRING,
    MS_JSON_ARRAY,
    MS_JSON_OBJECT
} ms_json_kind;

typedef struct ms_json_node {
    const char *key; /* NULL: not a member of an object */
    union {
        bool b;
        int64_t i;
        double f;
        const char *s;
        uint32_t n; /* ARRAY, OBJECT: children */
    } value;
    uint32_t at, key_at;   /* offsets into the source */
    uint32_t line, column; /* of the value, from 1 */
    uint32_t next;         /* sibling, or MS_NONE */
    uint8_t kind;          /* ms_json_kind */
    bool folded;           /* its children, n of them, are no rows */
} ms_json_node;

typedef struct ms_json {
    ms_quote source; /* the whole text; offset 0 */
    uint32_t n;
    ms_json_node *nodes; /* row 0: the root */
    struct ms_spelling *keys;
} ms_json;

/* name, bytes and the arena must outlive json. */
ms_err ms_json_read(const char *name, const char *bytes, size_t length,
                    ms_arena *arena, ms_json *json, ms_fault *fault);
/* The same, but arrays and objects that lie in `fold` others are folded: they
 * have been read and checked as a whole, and are read again one by one.  So a
 * list of a million small rows needs one node for each.
 *
 *     ms_json_outline(name, bytes, length, 2, arena, &json, fault);
 *     ... for each row of a list that the root has:
 *     ms_arena_reset(&scratch);
 *     at = row;
 *     MS_TRY(ms_json_unfold(&json, &at, &scratch, &part, fault));
 *     part.nodes[at].value ...                                            */
ms_err ms_json_outline(const char *name, const char *bytes, size_t length,
                       uint32_t fold, ms_arena *arena, ms_json *json,
                       ms_fault *fault);
/* As ms_json_read; the nodes lie in rows, so that they can go and the texts
 * stay. */
ms_err ms_json_read_apart(const char *name, const char *bytes, size_t length,
                          ms_arena *rows, ms_arena *arena, ms_json *json,
                          ms_fault *fault);
/* The value at *row as a tree of its own, in which it is at *row; places are
 * those in the text.  What is not folded is handed on as it is. */
ms_err ms_json_unfold(const ms_json *json, uint32_t *row, ms_arena *arena,
                      ms_json *part, ms_fault *fault);
/* One of several values in a text (JSON Lines): that at source->offset, in the
 * given line (from 1), both of which are moved to what follows; at the end
 * offset is length. */
ms_err ms_json_next(ms_quote *source, uint32_t *line, ms_arena *arena,
                    ms_json *json, ms_fault *fault);
uint32_t ms_json_first(const ms_json *json, uint32_t row);
/* The member of an object, or MS_NONE. */
uint32_t ms_json_find(const ms_json *json, uint32_t row, const char *key);
/* "an integer", "a string", ...: for messages. */
const char *ms_json_kind_name(const ms_json *json, uint32_t row);
/* Fails at a node's value, or at its key. */
ms_err ms_json_fail(const ms_json *json, uint32_t row, ms_fault *fault,
                    const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
ms_err ms_json_fail_key(const ms_json *json, uint32_t row, ms_fault *fault,
                        const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
