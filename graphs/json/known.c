/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/known.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- faults -------------------------------------------------------------- */

ms_err ms_known_fail(const ms_known *value, ms_fault *fault, const char *hint,
                     const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (value->json != NULL)
        return ms_json_fail(value->json, value->row, fault, hint, "%s", what);
    return ms_fail(fault, MS_EINPUT, value->where, hint, "%s", what);
}

ms_err ms_known_place(ms_err err, const ms_json *json, uint32_t row,
                      ms_fault *fault)
{
    if (err != MS_EINPUT || *fault->where != '\0')
        return err;
    const ms_fault found = *fault;
    *fault = (ms_fault){0};
    return ms_json_fail(json, row, fault,
                        *found.hint == '\0' ? NULL : found.hint, "%s",
                        found.what);
}

ms_err ms_known_wrong(const ms_formula *f, const char *hint, const char *format,
                      ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (f->alone)
        return ms_fail(f->fault, MS_EINPUT, NULL, hint, "%s", what);
    return ms_fail(f->fault, MS_EINPUT, NULL, hint,
                   "cannot compute \"%.200s\": %s", f->text, what);
}

static const char *kind_name(const ms_known *value)
{
    static const char *const names[] = {"null",     "true or false",
                                        "a number", "a number",
                                        "a string", "a list or object"};
    return names[value->kind];
}

/* Only the value of a key can have the wrong type: a page has none. */
ms_err ms_known_need(const ms_formula *f, const ms_known *value,
                     const char *what)
{
    if (value->name == NULL)
        return ms_known_wrong(f, NULL, "%s is needed, not %s", what,
                              kind_name(value));
    return ms_known_fail(value, f->fault, NULL, "\"%s\" must be %s, not %s",
                         value->name, what, kind_name(value));
}

/* ---- values -------------------------------------------------------------- */

void ms_known_node(const ms_json *json, uint32_t row, ms_known *value)
{
    static const uint8_t kinds[] = {
        [MS_JSON_NULL] = MS_KIND_NULL,   [MS_JSON_BOOL] = MS_KIND_BOOL,
        [MS_JSON_INT] = MS_KIND_INT,     [MS_JSON_FLOAT] = MS_KIND_FLOAT,
        [MS_JSON_STRING] = MS_KIND_TEXT, [MS_JSON_ARRAY] = MS_KIND_LIST,
        [MS_JSON_OBJECT] = MS_KIND_LIST};
    const ms_json_node *node = &json->nodes[row];
    *value = (ms_known){
        .kind = kinds[node->kind], .name = node->key, .json = json, .row = row};
    if (value->kind == MS_KIND_BOOL)
        value->is.b = node->value.b;
    else if (value->kind == MS_KIND_INT)
        value->is.i = node->value.i;
    else if (value->kind == MS_KIND_FLOAT)
        value->is.f = node->value.f;
    else if (value->kind == MS_KIND_TEXT)
        value->is.s = node->value.s;
}

bool ms_known_is_number(const ms_known *value)
{
    return value->kind == MS_KIND_INT || value->kind == MS_KIND_FLOAT ||
           value->kind == MS_KIND_BOOL;
}

int64_t ms_known_integer(const ms_known *value)
{
    return value->kind == MS_KIND_BOOL ? value->is.b : value->is.i;
}

double ms_known_number(const ms_known *value)
{
    return value->kind == MS_KIND_FLOAT ? value->is.f
                                        : (double)ms_known_integer(value);
}

bool ms_known_is_whole(double number)
{
    return fabs(number) <= MS_KNOWN_EXACT && floor(number) == number;
}

static size_t length_of(const ms_known *text)
{
    return text->length > 0 ? text->length : strlen(text->is.s);
}

bool ms_known_equal(const ms_known *a, const ms_known *b)
{
    if (ms_known_is_number(a) && ms_known_is_number(b))
        return a->kind != MS_KIND_FLOAT && b->kind != MS_KIND_FLOAT
                   ? ms_known_integer(a) == ms_known_integer(b)
                   : ms_known_number(a) == ms_known_number(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == MS_KIND_TEXT)
        return length_of(a) == length_of(b) &&
               memcmp(a->is.s, b->is.s, length_of(a)) == 0;
    return a->kind == MS_KIND_NULL;
}

ms_known ms_known_truth_of(bool truth)
{
    return (ms_known){.kind = MS_KIND_BOOL, .is.b = truth};
}

ms_err ms_known_truth(const ms_formula *f, const ms_known *value, bool *holds)
{
    *holds = false;
    if (!ms_known_is_number(value))
        return ms_known_need(f, value, "true or false");
    *holds = ms_known_number(value) != 0;
    return MS_OK;
}

/* ---- operators ----------------------------------------------------------- */

ms_err ms_known_floor(const ms_formula *f, ms_known *value)
{
    if (value->kind == MS_KIND_INT)
        return MS_OK;
    if (!ms_known_is_number(value))
        return ms_known_need(f, value, "a number");
    double whole = floor(ms_known_number(value));
    if (fabs(whole) > MS_KNOWN_EXACT)
        return ms_known_wrong(f, NULL, "%g is beyond 2^53, and has no floor",
                              whole);
    *value = (ms_known){.kind = MS_KIND_INT, .is.i = (int64_t)whole};
    return MS_OK;
}

ms_err ms_known_negate(const ms_formula *f, ms_known *value)
{
    if (!ms_known_is_number(value))
        return ms_known_need(f, value, "a number");
    if (value->kind == MS_KIND_FLOAT) {
        *value = (ms_known){.kind = MS_KIND_FLOAT, .is.f = -value->is.f};
        return MS_OK;
    }
    int64_t result;
    if (__builtin_sub_overflow(0, ms_known_integer(value), &result))
        return ms_known_wrong(f, NULL, "-(%" PRId64 ") is beyond 2^63",
                              ms_known_integer(value));
    *value = (ms_known){.kind = MS_KIND_INT, .is.i = result};
    return MS_OK;
}

static ms_err fail_zero(const ms_formula *f, const ms_known *divisor)
{
    if (divisor->name == NULL)
        return ms_known_wrong(f, NULL, "a division by 0");
    return ms_known_fail(divisor, f->fault, NULL, "\"%s\" must not be 0",
                         divisor->name);
}

static ms_err fail_overflow(const ms_formula *f, const ms_known *at, int64_t x,
                            int64_t y)
{
    if (at->name == NULL || f->alone)
        return ms_known_wrong(
            f, NULL, "it is beyond 2^63 at %" PRId64 " and %" PRId64, x, y);
    return ms_known_fail(at, f->fault, NULL,
                         "\"%s\" is beyond 2^63 at %" PRId64 " and %" PRId64,
                         f->text, x, y);
}

/* Downwards; y is not 0. */
static bool divide(int64_t x, int64_t y, int64_t *quotient, int64_t *rest)
{
    *rest = 0;
    if (y == -1)
        return __builtin_sub_overflow(0, x, quotient);
    bool down = x % y != 0 && (x < 0) != (y < 0);
    *quotient = x / y - down;
    *rest = x % y + (down ? y : 0);
    return false;
}

static ms_err integers(const ms_formula *f, ms_known_operator op, ms_known *a,
                       const ms_known *b)
{
    int64_t x = ms_known_integer(a), y = ms_known_integer(b), result = 0,
            rest = 0;
    bool over = op == MS_KNOWN_PLUS    ? __builtin_add_overflow(x, y, &result)
                : op == MS_KNOWN_MINUS ? __builtin_sub_overflow(x, y, &result)
                : op == MS_KNOWN_TIMES ? __builtin_mul_overflow(x, y, &result)
                                       : divide(x, y, &result, &rest);
    if (over && op != MS_KNOWN_REST)
        return fail_overflow(f, a, x, y);
    *a = (ms_known){.kind = MS_KIND_INT,
                    .is.i = op == MS_KNOWN_REST ? rest : result};
    if (op == MS_KNOWN_OVER && rest != 0)
        *a = (ms_known){.kind = MS_KIND_FLOAT, .is.f = (double)x / (double)y};
    return MS_OK;
}

static ms_err floats(const ms_formula *f, ms_known_operator op, ms_known *a,
                     const ms_known *b)
{
    double x = ms_known_number(a), y = ms_known_number(b), result = fmod(x, y);
    if (op == MS_KNOWN_PLUS)
        result = x + y;
    else if (op == MS_KNOWN_MINUS)
        result = x - y;
    else if (op == MS_KNOWN_TIMES)
        result = x * y;
    else if (op == MS_KNOWN_OVER)
        result = x / y;
    else if (op == MS_KNOWN_FLOOR)
        result = floor(x / y);
    else if (result != 0 && (result < 0) != (y < 0))
        result += y;
    if (!isfinite(result))
        return ms_known_wrong(f, NULL, "it is no finite number");
    *a = (ms_known){.kind = MS_KIND_FLOAT, .is.f = result};
    return MS_OK;
}

static ms_err arithmetic(const ms_formula *f, ms_known_operator op, ms_known *a,
                         const ms_known *b)
{
    if (!ms_known_is_number(a) || !ms_known_is_number(b))
        return ms_known_need(f, ms_known_is_number(a) ? b : a, "a number");
    if (op > MS_KNOWN_TIMES && ms_known_number(b) == 0)
        return fail_zero(f, b);
    bool whole = a->kind != MS_KIND_FLOAT && b->kind != MS_KIND_FLOAT;
    return whole ? integers(f, op, a, b) : floats(f, op, a, b);
}

static bool is_in(const ms_known *value, const ms_known *list)
{
    for (uint32_t i = ms_json_first(list->json, list->row); i != MS_NONE;
         i = list->json->nodes[i].next) {
        ms_known element;
        ms_known_node(list->json, i, &element);
        if (ms_known_equal(value, &element))
            return true;
    }
    return false;
}

static ms_err compared(const ms_formula *f, ms_known_operator how, ms_known *a,
                       const ms_known *b)
{
    if (how == MS_KNOWN_SAME || how == MS_KNOWN_OTHER) {
        *a = ms_known_truth_of(ms_known_equal(a, b) == (how == MS_KNOWN_SAME));
        return MS_OK;
    }
    if (how == MS_KNOWN_IN) {
        if (b->kind != MS_KIND_LIST)
            return ms_known_need(f, b, "a list");
        *a = ms_known_truth_of(is_in(a, b));
        return MS_OK;
    }
    if (!ms_known_is_number(a) || !ms_known_is_number(b))
        return ms_known_need(f, ms_known_is_number(a) ? b : a, "a number");
    double x = ms_known_number(a), y = ms_known_number(b);
    *a = ms_known_truth_of(how == MS_KNOWN_LESS         ? x < y
                           : how == MS_KNOWN_MORE       ? x > y
                           : how == MS_KNOWN_LESS_EQUAL ? x <= y
                                                        : x >= y);
    return MS_OK;
}

ms_err ms_known_operate(const ms_formula *f, ms_known_operator op, ms_known *a,
                        const ms_known *b)
{
    return op < MS_KNOWN_PLUS ? compared(f, op, a, b) : arithmetic(f, op, a, b);
}
