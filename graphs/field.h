/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_FIELD_H
#define MS_GRAPHS_FIELD_H

/* A parameter as data, of a layer type, a family or a setting. */

#include "sim/base/base.h"

/* A value of a layer's or family's parameter, as its table row says.  A WORD
 * is the index (i) into the row's words; a NAME is a layer's full name (s),
 * "" for none; INTS lie outside (ms_layer.ints); a TEXT is whatever it is. */
typedef union ms_value {
    int64_t i;
    double f;
    const char *s;
    bool b;
} ms_value;

typedef enum ms_value_type {
    MS_INT,
    MS_FLOAT,
    MS_BOOL,
    MS_WORD,
    MS_NAME,
    MS_INTS,
    MS_TEXT
} ms_value_type;

/* One parameter of a layer type, family or of training, as data: the reader,
 * --set, help, man page, schema and tests walk these rows. */
typedef struct ms_field {
    const char *name;
    ms_value_type type;
    bool required;
    ms_value fallback;
    int64_t low, high; /* INT, FLOAT, INTS: inclusive; equal: no bounds */
    const char *words; /* MS_WORD: "a|b|c" */
    const char *help;  /* one line, with unit */
    const char *group; /* settings: what stands before the dot of their key;
                          NULL: "training" */
    bool is_extra; /* settings: off unless it is asked for, so that the line of
                      defaults leaves it out */
} ms_field;

#endif
