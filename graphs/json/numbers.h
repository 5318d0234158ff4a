/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_NUMBERS_H
#define MS_NUMBERS_H

/* Numbers of a model file that are written as text: "4 * width", or in a name
 * "layer{i + 1}".
 *
 *     sum     + - * / % and unary -, parentheses
 *     choice  condition ? a : b, with < <= > >= == != && || !
 *     call    min(a, b), max(a, b), floor(a)
 *     name    a variable: of the model's "config", of "with", "each" or
 *             "index" of the groups around it, the innermost first
 *
 * Values are doubles, so whole numbers are exact up to 2^53 and 7 / 2 is 3.5;
 * true is 1.  Both branches of a choice are evaluated; only the value of the
 * whole must be finite.
 *
 *     ms_variable width = {"width", 64, NULL};
 *     MS_TRY(ms_numbers_value("4 * width", &width, &value, &error));
 */

#include "sim/base/base.h"

#define MS_NUMBERS_EXACT 9007199254740992.0 /* 2^53 */

/* Innermost first. */
typedef struct ms_variable {
    const char *name;
    double value;
    const struct ms_variable *outer;
} ms_variable;

typedef struct ms_numbers_error {
    char what[192], hint[192];
} ms_numbers_error;

/* False, with what is wrong, unless text is an expression with a value. */
bool ms_numbers_value(const char *text, const ms_variable *variables,
                      double *value, ms_numbers_error *error);
/* The same, and the value must be a whole number within 2^53. */
bool ms_numbers_integer(const char *text, const ms_variable *variables,
                        int64_t *value, ms_numbers_error *error);
/* Writes text with each {expression} replaced by its value, a whole number;
 * size: of buffer, which must hold the result. */
bool ms_numbers_fill(const char *text, const ms_variable *variables,
                     char *buffer, size_t size, ms_numbers_error *error);
/* A letter or _, then letters, digits and _. */
bool ms_numbers_is_name(const char *text);

#endif
