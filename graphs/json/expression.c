/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/expression.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAME 128u
#define MOST_DIGITS 64u
#define MOST_DEPTH 64u /* of what is in parentheses, of choices, of signs */

/* Reads from left to right; with skip nothing is computed. */
typedef struct parser {
    const char *at;
    ms_formula formula;
    const ms_names *names;
    uint32_t skip, depth;
} parser;

enum { LOOSEST = 1, COMPARES = 4, TIGHTEST = 6 };

/* A longer sign stands before one that it begins with. */
typedef struct infix {
    const char sign[3];
    uint8_t length, binds;
    ms_known_operator does;
} infix;

static const infix infixes[] = {
    {"??", 2, LOOSEST, MS_KNOWN_OTHERWISE},
    {"||", 2, 2, MS_KNOWN_EITHER},
    {"&&", 2, 3, MS_KNOWN_BOTH},
    {"==", 2, COMPARES, MS_KNOWN_SAME},
    {"!=", 2, COMPARES, MS_KNOWN_OTHER},
    {"<=", 2, COMPARES, MS_KNOWN_LESS_EQUAL},
    {">=", 2, COMPARES, MS_KNOWN_MORE_EQUAL},
    {"<", 1, COMPARES, MS_KNOWN_LESS},
    {">", 1, COMPARES, MS_KNOWN_MORE},
    {"in", 2, COMPARES, MS_KNOWN_IN},
    {"+", 1, 5, MS_KNOWN_PLUS},
    {"-", 1, 5, MS_KNOWN_MINUS},
    {"*", 1, TIGHTEST, MS_KNOWN_TIMES},
    {"//", 2, TIGHTEST, MS_KNOWN_FLOOR},
    {"/", 1, TIGHTEST, MS_KNOWN_OVER},
    {"%", 1, TIGHTEST, MS_KNOWN_REST},
};

static ms_err ternary(parser *p, ms_known *value);
static ms_err unary(parser *p, ms_known *value);

static ms_err missing(const parser *p, const char *what)
{
    return ms_known_wrong(&p->formula, NULL, "%s is missing", what);
}

static ms_err deeper(parser *p)
{
    return ++p->depth > MOST_DEPTH
               ? ms_known_wrong(&p->formula, NULL, "it nests more than %u deep",
                                MOST_DEPTH)
               : MS_OK;
}

/* ---- words --------------------------------------------------------------- */

static void blanks(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

/* Passes over the character if the text continues with it. */
static bool accept(parser *p, char c)
{
    blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The operator that the text continues with, or NULL. */
static const infix *next_infix(parser *p)
{
    blanks(p);
    const char *at = p->at;
    for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++) {
        const infix *s = &infixes[i];
        if (*at != s->sign[0] || (s->length == 2 && at[1] != s->sign[1]))
            continue;
        if (s->does != MS_KNOWN_IN || !(is_letter(at[2]) || is_digit(at[2])))
            return s;
    }
    return NULL;
}

/* "12", "0.1", ".5" */
static ms_err read_number(parser *p, ms_known *value)
{
    char digits[MOST_DIGITS];
    size_t n = strspn(p->at, "0123456789"), all = strspn(p->at, "0123456789.");
    int64_t whole = 0;
    if (all >= sizeof digits)
        return ms_known_wrong(&p->formula, NULL, "a number is too long");
    memcpy(digits, p->at, all);
    digits[all] = '\0';
    p->at += all;
    if (all > n) {
        char *end;
        *value =
            (ms_known){.kind = MS_KIND_FLOAT, .is.f = strtod(digits, &end)};
        return *end == '\0' ? MS_OK
                            : ms_known_wrong(&p->formula, NULL,
                                             "\"%s\" is no number", digits);
    }
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, digits[i] - '0', &whole))
            return ms_known_wrong(&p->formula, NULL, "%s is beyond 2^63",
                                  digits);
    *value = (ms_known){.kind = MS_KIND_INT, .is.i = whole};
    return MS_OK;
}

static ms_err read_text(parser *p, ms_known *value)
{
    const char *text = ++p->at, *end = strchr(text, '\'');
    if (end == NULL)
        return missing(p, "a '");
    *value = (ms_known){
        .kind = MS_KIND_TEXT, .is.s = "", .length = (uint32_t)(end - text)};
    if (end > text)
        value->is.s = text;
    p->at = end + 1;
    return MS_OK;
}

/* ---- names and calls ----------------------------------------------------- */

/* min and max give one of the two as it is. */
static ms_err chosen(parser *p, bool lowest, ms_known *a)
{
    ms_known b;
    if (!accept(p, ','))
        return ms_known_wrong(&p->formula, NULL, "%s needs two values",
                              lowest ? "min" : "max");
    MS_TRY(ternary(p, &b));
    if (p->skip > 0)
        return MS_OK;
    if (!ms_known_is_number(a) || !ms_known_is_number(&b))
        return ms_known_need(&p->formula, ms_known_is_number(a) ? &b : a,
                             "a number");
    if ((ms_known_number(a) < ms_known_number(&b)) != lowest)
        *a = b;
    return MS_OK;
}

static ms_err call(parser *p, const char *name, ms_known *value)
{
    bool lowest = strcmp(name, "min") == 0, flat = strcmp(name, "floor") == 0;
    if (!lowest && !flat && strcmp(name, "max") != 0)
        return ms_known_wrong(&p->formula, "min, max and floor can be called",
                              "there is no function \"%s\"", name);
    MS_TRY(ternary(p, value));
    if (!flat)
        MS_TRY(chosen(p, lowest, value));
    else if (p->skip == 0)
        MS_TRY(ms_known_floor(&p->formula, value));
    return accept(p, ')') ? MS_OK : missing(p, "a )");
}

/* Is it null, true or false? */
static bool is_literal(const char *word, ms_known *value)
{
    bool yes = strcmp(word, "true") == 0;
    if (yes || strcmp(word, "false") == 0)
        *value = ms_known_truth_of(yes);
    else if (strcmp(word, "null") == 0)
        *value = (ms_known){.kind = MS_KIND_NULL};
    else
        return false;
    return true;
}

static ms_err named(parser *p, ms_known *value)
{
    char name[MOST_NAME];
    size_t n = 0;
    for (char c = *p->at; is_letter(c) || is_digit(c) || c == '.'; c = p->at[n])
        if (++n == sizeof name)
            return ms_known_wrong(&p->formula, NULL, "a name is too long");
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    if (accept(p, '('))
        return call(p, name, value);
    if (is_literal(name, value) || p->skip > 0)
        return MS_OK;
    return p->names->find(p->names->scope, name, value);
}

/* ---- operators ----------------------------------------------------------- */

static ms_err primary(parser *p, ms_known *value)
{
    *value = (ms_known){.kind = MS_KIND_NULL};
    if (accept(p, '(')) {
        MS_TRY(ternary(p, value));
        return accept(p, ')') ? MS_OK : missing(p, "a )");
    }
    if (is_digit(*p->at) || *p->at == '.')
        return read_number(p, value);
    if (*p->at == '\'')
        return read_text(p, value);
    return is_letter(*p->at) ? named(p, value) : missing(p, "a value");
}

/* list[i]: an element; beyond the end: a fault. */
static ms_err element(parser *p, ms_known *list)
{
    ms_known index;
    MS_TRY(ternary(p, &index));
    if (!accept(p, ']'))
        return missing(p, "a ]");
    if (p->skip > 0)
        return MS_OK;
    if (list->kind != MS_KIND_LIST)
        return ms_known_need(&p->formula, list, "a list");
    if (index.kind != MS_KIND_INT)
        return ms_known_need(&p->formula, &index, "an integer");
    int64_t left = index.is.i;
    uint32_t row = ms_json_first(list->json, list->row);
    for (; row != MS_NONE && left > 0; left--)
        row = list->json->nodes[row].next;
    if (row == MS_NONE || left < 0)
        return ms_known_fail(list, p->names->fault, NULL,
                             "\"%s\" has no element %" PRId64, list->name,
                             index.is.i);
    const char *name = list->name;
    ms_known_node(list->json, row, list);
    list->name = name;
    return MS_OK;
}

/* !a and -a */
static ms_err signed_value(parser *p, char sign, ms_known *value)
{
    bool holds;
    MS_TRY(deeper(p));
    MS_TRY(unary(p, value));
    p->depth--;
    if (p->skip > 0)
        return MS_OK;
    if (sign == '-')
        return ms_known_negate(&p->formula, value);
    MS_TRY(ms_known_truth(&p->formula, value, &holds));
    *value = ms_known_truth_of(!holds);
    return MS_OK;
}

static ms_err unary(parser *p, ms_known *value)
{
    blanks(p);
    if (*p->at == '!' || *p->at == '-')
        return signed_value(p, *p->at++, value);
    MS_TRY(primary(p, value));
    while (accept(p, '['))
        MS_TRY(element(p, value));
    return MS_OK;
}

/* Does the left value of ??, || or && say what the whole is? */
static ms_err decides(const parser *p, ms_known_operator op, ms_known *left,
                      bool *decided)
{
    *decided = false;
    if (p->skip > 0 || op > MS_KNOWN_BOTH)
        return MS_OK;
    if (op == MS_KNOWN_OTHERWISE) {
        *decided = left->kind != MS_KIND_NULL;
        return MS_OK;
    }
    bool holds;
    MS_TRY(ms_known_truth(&p->formula, left, &holds));
    *left = ms_known_truth_of(holds);
    *decided = holds == (op == MS_KNOWN_EITHER);
    return MS_OK;
}

static ms_err apply(const parser *p, ms_known_operator op, ms_known *left,
                    ms_known *right)
{
    bool holds;
    if (p->skip > 0)
        return MS_OK;
    if (op > MS_KNOWN_BOTH)
        return ms_known_operate(&p->formula, op, left, right);
    if (op != MS_KNOWN_OTHERWISE) {
        MS_TRY(ms_known_truth(&p->formula, right, &holds));
        *right = ms_known_truth_of(holds);
    }
    *left = *right;
    return MS_OK;
}

/* Operators that bind at least as tightly, from the left; of those that
 * compare, one. */
static ms_err binary(parser *p, uint32_t least, ms_known *value)
{
    uint32_t most = TIGHTEST;
    MS_TRY(unary(p, value));
    for (;;) {
        const infix *s = next_infix(p);
        ms_known right;
        bool decided;
        if (s == NULL || s->binds < least || s->binds > most)
            return MS_OK;
        p->at += s->length;
        MS_TRY(decides(p, s->does, value, &decided));
        p->skip += decided;
        MS_TRY(binary(p, s->binds + 1u, &right));
        p->skip -= decided;
        if (!decided)
            MS_TRY(apply(p, s->does, value, &right));
        if (s->binds == COMPARES)
            most = COMPARES - 1;
    }
}

/* What is not chosen is not computed. */
static ms_err choice(parser *p, ms_known *value)
{
    ms_known yes, no;
    bool holds = false;
    if (p->skip == 0)
        MS_TRY(ms_known_truth(&p->formula, value, &holds));
    p->skip += !holds;
    MS_TRY(ternary(p, &yes));
    p->skip -= !holds;
    if (!accept(p, ':'))
        return missing(p, "a :");
    p->skip += holds;
    MS_TRY(ternary(p, &no));
    p->skip -= holds;
    *value = holds ? yes : no;
    return MS_OK;
}

static ms_err ternary(parser *p, ms_known *value)
{
    MS_TRY(deeper(p));
    MS_TRY(binary(p, LOOSEST, value));
    if (accept(p, '?'))
        MS_TRY(choice(p, value));
    p->depth--;
    return MS_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static ms_err whole(parser *p, ms_known *value)
{
    MS_TRY(ternary(p, value));
    blanks(p);
    return *p->at == '\0' ? MS_OK
                          : ms_known_wrong(&p->formula, NULL,
                                           "\"%.40s\" is left over", p->at);
}

ms_err ms_expression_value(const char *text, const ms_names *names,
                           ms_known *value)
{
    parser p = {text, {text, names->fault, false}, names, 0, 0};
    MS_TRY(whole(&p, value));
    if (value->kind != MS_KIND_TEXT || value->length == 0)
        return MS_OK;
    value->is.s = ms_arena_text(names->arena, value->is.s, value->length);
    value->length = 0;
    return value->is.s == NULL ? ms_fail_nomem(names->fault) : MS_OK;
}

ms_err ms_expression_truth(const char *text, const ms_names *names, bool *holds)
{
    ms_known value;
    const ms_formula formula = {text, names->fault, false};
    MS_TRY(ms_expression_value(text, names, &value));
    return ms_known_truth(&formula, &value, holds);
}

ms_err ms_expression_integer(const char *text, const ms_names *names,
                             int64_t low, int64_t *result)
{
    ms_known value;
    const ms_formula formula = {text, names->fault, false};
    MS_TRY(ms_expression_value(text, names, &value));
    if (value.kind == MS_KIND_FLOAT && ms_known_is_whole(value.is.f))
        *result = (int64_t)value.is.f;
    else if (value.kind == MS_KIND_INT || value.kind == MS_KIND_BOOL)
        *result = ms_known_integer(&value);
    else
        return ms_known_need(&formula, &value, "an integer");
    if (*result < low)
        return ms_known_fail(&value, names->fault, NULL,
                             "\"%s\" must be at least %" PRId64,
                             value.name == NULL ? text : value.name, low);
    return MS_OK;
}

ms_err ms_expression_number(const char *text, const ms_names *names,
                            double *result)
{
    ms_known value;
    parser p = {text, {text, names->fault, true}, names, 0, 0};
    MS_TRY(whole(&p, &value));
    if (!ms_known_is_number(&value))
        return ms_known_need(&p.formula, &value, "a number");
    *result = ms_known_number(&value);
    return MS_OK;
}
