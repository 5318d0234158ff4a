/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_EXPRESSION_H
#define MS_EXPRESSION_H

/* Private to graphs/: the one language of expressions, of pages and of native
 * files (numbers.h).
 *
 *     head_dim ?? hidden_size // num_attention_heads
 *     i >= first_k_dense_replace ? 'moe' : 'mlp'
 *     layer_types != null && layer_types[i] == 'sliding_attention'
 *     max(1, floor(width / 4))
 *
 * Values are null, booleans, 64-bit integers, floats, texts, and arrays and
 * objects of a JSON text.  Weakest first:
 *
 *     a ? b : c
 *     a ?? b                         b where a is null
 *     a || b
 *     a && b
 *     == != < <= > >= in             one of them: a < b < c is none
 *     + -
 *     * / // %
 *     !a  -a
 *     list[i]  min(a, b)  max(a, b)  floor(a)  (a)
 *     12  0.5  'text'  true  false  null  name  object.name
 *
 * a / b is an integer where it divides, else a float (7 / 2 is 3.5); // and %
 * are Python's: -7 // 2 is -4, -7 % 2 is 1.  An integer and a float make a
 * float, floor(a) is an integer.  A result beyond 2^63, a division by 0 and
 * what is not finite are faults.  In arithmetic and beside numbers true is 1;
 * where a truth is asked for, numbers are true but for 0; ||, && and ! give
 * booleans.  What is not asked for (behind ?, ??, ||, &&) is not computed. */

#include "graphs/json/known.h"

/* Looks a name up: fills value or faults.  A name is one word, or words with
 * dots where an object is meant; find copies it where it keeps it. */
typedef struct ms_names {
    ms_err (*find)(void *scope, const char *name, ms_known *value);
    void *scope;
    ms_arena *arena; /* of texts; ms_expression_number needs none */
    ms_fault *fault;
} ms_names;

/* The value that text has.  Faults: MS_EINPUT at the value that does not
 * fit. */
ms_err ms_expression_value(const char *text, const ms_names *names,
                           ms_known *value);
/* The same, and it must be a truth, or a whole number (from low on). */
ms_err ms_expression_truth(const char *text, const ms_names *names,
                           bool *holds);
ms_err ms_expression_integer(const char *text, const ms_names *names,
                             int64_t low, int64_t *result);
/* The same, and it must be a number.  Faults are sentences that leave it to
 * the caller to say of what ("a value is missing"). */
ms_err ms_expression_number(const char *text, const ms_names *names,
                            double *result);

#endif
