/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_EXPRESSION_H
#define MS_EXPRESSION_H

/* Private to graphs/: what the pages of models compute.
 *
 *     head_dim ?? hidden_size / num_attention_heads
 *     i >= first_k_dense_replace ? 'moe' : 'mlp'
 *     layer_types != null && layer_types[i] == 'sliding_attention'
 *
 * Values are null, booleans, 64-bit integers (overflow is a fault), floats,
 * texts, and arrays and objects of a JSON text.  Weakest first: a ? b : c,
 * a ?? b (b where a is null), ||, &&, == != < <= > >= in, + -, * / %, !,
 * list[i].  Literals: 12, 0.5, 'text', true, false,
 * null.  Integers divide
 * downwards; an integer times a float is cut to an integer.  What is not
 * asked for (behind ?, ??, ||, &&) is not computed. */

#include "graphs/field.h"
#include "graphs/json/json.h"

typedef enum ms_kind {
    MS_KIND_NULL,
    MS_KIND_BOOL,
    MS_KIND_INT,
    MS_KIND_FLOAT,
    MS_KIND_TEXT,
    MS_KIND_LIST /* an array or object */
} ms_kind;

typedef struct ms_known {
    ms_kind kind;
    ms_value is;         /* i, f, b, s */
    const char *name;    /* the key that it is the value of, or NULL */
    const ms_json *json; /* where it stands, or NULL */
    uint32_t row;
    const char *where; /* or where it was set */
} ms_known;

/* Looks a name up: fills value or faults.  A name is one word, or words with
 * dots where an object is meant. */
typedef struct ms_names {
    ms_err (*find)(void *scope, const char *name, ms_known *value);
    void *scope;
    ms_arena *arena;
    ms_fault *fault;
} ms_names;

/* The value that text has.  Faults: MS_EINPUT at the value that does not
 * fit. */
ms_err ms_expression_value(const char *text, const ms_names *names,
                           ms_known *value);
/* The same, and it must be true or false, or an integer (from low on). */
ms_err ms_expression_truth(const char *text, const ms_names *names,
                           bool *truth);
ms_err ms_expression_integer(const char *text, const ms_names *names,
                             int64_t low, int64_t *integer);
/* The value of a JSON node. */
void ms_expression_node(const ms_json *json, uint32_t row, ms_known *value);
bool ms_expression_equal(const ms_known *a, const ms_known *b);
/* Fails where the value stands. */
ms_err ms_expression_fail(const ms_known *value, ms_fault *fault,
                          const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
