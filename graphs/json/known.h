/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_KNOWN_H
#define MS_KNOWN_H

/* The values of expressions (expression.h), and what operators make of
 * them. */

#include "graphs/field.h"
#include "graphs/json/json.h"

#define MS_KNOWN_EXACT 9007199254740992.0 /* 2^53 */

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
    uint32_t length;   /* of a text within an expression, or 0: to its NUL */
    const char *where; /* or where it was set */
} ms_known;

/* The expression that is computed, for messages. */
typedef struct ms_formula {
    const char *text;
    ms_fault *fault;
    bool alone; /* the caller says what a sentence on the text is about */
} ms_formula;

/* The first three compute the right value only where the left leaves it
 * open. */
typedef enum ms_known_operator {
    MS_KNOWN_OTHERWISE,
    MS_KNOWN_EITHER,
    MS_KNOWN_BOTH,
    MS_KNOWN_SAME,
    MS_KNOWN_OTHER,
    MS_KNOWN_LESS_EQUAL,
    MS_KNOWN_MORE_EQUAL,
    MS_KNOWN_LESS,
    MS_KNOWN_MORE,
    MS_KNOWN_IN,
    MS_KNOWN_PLUS,
    MS_KNOWN_MINUS,
    MS_KNOWN_TIMES,
    MS_KNOWN_FLOOR,
    MS_KNOWN_OVER,
    MS_KNOWN_REST
} ms_known_operator;

/* The value of a JSON node. */
void ms_known_node(const ms_json *json, uint32_t row, ms_known *value);
ms_known ms_known_truth_of(bool truth);
/* true and false are numbers, too: 1 and 0. */
bool ms_known_is_number(const ms_known *value);
double ms_known_number(const ms_known *value);
int64_t ms_known_integer(const ms_known *value); /* of no float */
/* Is it a whole number within 2^53, where doubles are exact? */
bool ms_known_is_whole(double number);
bool ms_known_equal(const ms_known *a, const ms_known *b);

/* Fails where the value stands. */
ms_err ms_known_fail(const ms_known *value, ms_fault *fault, const char *hint,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A fault that has no place yet gets that of the text in row, which was
 * computed.  err: what computing it came to, and is returned. */
ms_err ms_known_place(ms_err err, const ms_json *json, uint32_t row,
                      ms_fault *fault);
/* What is wrong with the text itself, not with a value of a name. */
ms_err ms_known_wrong(const ms_formula *f, const char *hint, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
/* The value has the wrong type: what ("a list") is needed. */
ms_err ms_known_need(const ms_formula *f, const ms_known *value,
                     const char *what);

/* Is the value true, or another number than 0?  Faults: MS_EINPUT, here and
 * below, at a value of another type. */
ms_err ms_known_truth(const ms_formula *f, const ms_known *value, bool *holds);
ms_err ms_known_floor(const ms_formula *f, ms_known *value);
ms_err ms_known_negate(const ms_formula *f, ms_known *value);
/* a becomes a op b; op compares or calculates. */
ms_err ms_known_operate(const ms_formula *f, ms_known_operator op, ms_known *a,
                        const ms_known *b);

#endif
