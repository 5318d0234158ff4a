/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_NUMBERS_H
#define MS_NUMBERS_H

/* Numbers of a native file that are written as text: "4 * width", or in a
 * name "layer{i + 1}".  They are expressions (expression.h) of at most 256
 * bytes; a name is a variable: of the model's "config", of "with", "each" or
 * "index" of the groups around it, the innermost first.
 *
 *     ms_variable width = {"width", 64, NULL};
 *     MS_TRY(ms_numbers_value("4 * width", &width, &value, &why));
 *
 * Faults (MS_EINPUT) are what is wrong with the text and a hint ("" for
 * none); the caller says where it stands.  They need not be filled before. */

#include "sim/base/base.h"

/* Innermost first. */
typedef struct ms_variable {
    const char *name;
    double value;
    const struct ms_variable *outer;
} ms_variable;

ms_err ms_numbers_value(const char *text, const ms_variable *variables,
                        double *value, ms_fault *why);
/* The same, and the value must be a whole number within 2^53. */
ms_err ms_numbers_integer(const char *text, const ms_variable *variables,
                          int64_t *value, ms_fault *why);
/* Writes text with each {expression} replaced by its value, a whole number;
 * size: of buffer, which must hold the result. */
ms_err ms_numbers_fill(const char *text, const ms_variable *variables,
                       char *buffer, size_t size, ms_fault *why);
/* A letter or _, then letters, digits and _. */
bool ms_numbers_is_name(const char *text);

#endif
