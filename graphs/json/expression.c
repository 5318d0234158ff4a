/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/expression.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_NAME 128u
#define MOST_DEPTH 64u /* of what is in parentheses, of choices, of ! */

/* Reads from left to right; with skip nothing is computed. */
typedef struct parser {
    const char *at, *whole;
    const ms_names *names;
    uint32_t skip, depth;
} parser;

static ms_err ternary(parser *p, ms_known *value);

/* ---- faults -------------------------------------------------------------- */

ms_err ms_expression_fail(const ms_known *value, ms_fault *fault,
                          const char *hint, const char *format, ...)
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

static const char *kind_name(const ms_known *value)
{
    static const char *const names[] = {"null",     "true or false",
                                        "a number", "a number",
                                        "a string", "a list or object"};
    return names[value->kind];
}

/* Only the value of a key can have the wrong type: a page has none. */
static ms_err need(const parser *p, const ms_known *value, const char *what)
{
    if (value->name == NULL)
        return ms_fail(p->names->fault, MS_EINPUT, NULL, NULL,
                       "\"%s\" needs %s, not %s", p->whole, what,
                       kind_name(value));
    return ms_expression_fail(value, p->names->fault, NULL,
                              "\"%s\" must be %s, not %s", value->name, what,
                              kind_name(value));
}

static ms_err fail_syntax(const parser *p)
{
    return ms_fail(p->names->fault, MS_EINPUT, NULL, NULL,
                   "cannot read \"%s\" at \"%s\"", p->whole, p->at);
}

static ms_err deeper(parser *p)
{
    return ++p->depth > MOST_DEPTH
               ? ms_fail(p->names->fault, MS_EINPUT, NULL, NULL,
                         "\"%.100s\" nests more than %u deep", p->whole,
                         MOST_DEPTH)
               : MS_OK;
}

/* ---- values -------------------------------------------------------------- */

void ms_expression_node(const ms_json *json, uint32_t row, ms_known *value)
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

static bool is_number(const ms_known *value)
{
    return value->kind == MS_KIND_INT || value->kind == MS_KIND_FLOAT;
}

static double number(const ms_known *value)
{
    return value->kind == MS_KIND_INT ? (double)value->is.i : value->is.f;
}

bool ms_expression_equal(const ms_known *a, const ms_known *b)
{
    if (is_number(a) && is_number(b))
        return a->kind == MS_KIND_INT && b->kind == MS_KIND_INT
                   ? a->is.i == b->is.i
                   : number(a) == number(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == MS_KIND_TEXT)
        return strcmp(a->is.s, b->is.s) == 0;
    return a->kind == MS_KIND_NULL ||
           (a->kind == MS_KIND_BOOL && a->is.b == b->is.b);
}

static ms_known truth_of(bool truth)
{
    return (ms_known){.kind = MS_KIND_BOOL, .is.b = truth};
}

/* ---- words --------------------------------------------------------------- */

static void blanks(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

/* Passes over the token if the text continues with it. */
static bool accept(parser *p, const char *sign)
{
    size_t length = strlen(sign);
    blanks(p);
    if (strncmp(p->at, sign, length) != 0)
        return false;
    p->at += length;
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

static bool accept_word(parser *p, const char *word)
{
    const char *before = p->at;
    if (accept(p, word) && !is_letter(*p->at) && !is_digit(*p->at))
        return true;
    p->at = before;
    return false;
}

/* "12", "0.1": digits over a power of ten. */
static ms_err read_number(parser *p, ms_known *value)
{
    int64_t digits = 0, scale = 1;
    bool decimal = false;
    for (;; p->at++) {
        if (*p->at == '.' && !decimal && is_digit(p->at[1])) {
            decimal = true;
            continue;
        }
        if (!is_digit(*p->at))
            break;
        if (__builtin_mul_overflow(digits, 10, &digits) ||
            __builtin_add_overflow(digits, *p->at - '0', &digits) ||
            (decimal && __builtin_mul_overflow(scale, 10, &scale)))
            return fail_syntax(p);
    }
    if (decimal)
        *value = (ms_known){.kind = MS_KIND_FLOAT,
                            .is.f = (double)digits / (double)scale};
    else
        *value = (ms_known){.kind = MS_KIND_INT, .is.i = digits};
    return MS_OK;
}

static ms_err read_text(parser *p, ms_known *value)
{
    const char *end = strchr(++p->at, '\'');
    if (end == NULL)
        return fail_syntax(p);
    const char *text =
        ms_arena_text(p->names->arena, p->at, (size_t)(end - p->at));
    if (text == NULL)
        return ms_fail_nomem(p->names->fault);
    *value = (ms_known){.kind = MS_KIND_TEXT, .is.s = text};
    p->at = end + 1;
    return MS_OK;
}

static ms_err read_name(parser *p, ms_known *value)
{
    char name[MOST_NAME];
    size_t n = 0;
    while (is_letter(*p->at) || is_digit(*p->at) || *p->at == '.') {
        if (n + 1 == sizeof name)
            return fail_syntax(p);
        name[n++] = *p->at++;
    }
    name[n] = '\0';
    if (p->skip > 0)
        return MS_OK;
    const char *kept = ms_arena_text(p->names->arena, name, n);
    if (kept == NULL)
        return ms_fail_nomem(p->names->fault);
    return p->names->find(p->names->scope, kept, value);
}

/* ---- operators ----------------------------------------------------------- */

static ms_err primary(parser *p, ms_known *value)
{
    *value = (ms_known){0};
    blanks(p);
    if (accept(p, "(")) {
        MS_TRY(ternary(p, value));
        return accept(p, ")") ? MS_OK : fail_syntax(p);
    }
    if (is_digit(*p->at))
        return read_number(p, value);
    if (*p->at == '\'')
        return read_text(p, value);
    if (accept_word(p, "null"))
        return MS_OK;
    if (accept_word(p, "true") || accept_word(p, "false")) {
        *value = truth_of(p->at[-2] == 'u');
        return MS_OK;
    }
    return is_letter(*p->at) ? read_name(p, value) : fail_syntax(p);
}

/* list[i]: an element; beyond the end: a fault. */
static ms_err element(parser *p, ms_known *list)
{
    ms_known index;
    MS_TRY(ternary(p, &index));
    if (!accept(p, "]"))
        return fail_syntax(p);
    if (p->skip > 0)
        return MS_OK;
    if (list->kind != MS_KIND_LIST)
        return need(p, list, "a list");
    if (index.kind != MS_KIND_INT)
        return need(p, &index, "an integer");
    int64_t left = index.is.i;
    uint32_t row = ms_json_first(list->json, list->row);
    for (; row != MS_NONE && left > 0; left--)
        row = list->json->nodes[row].next;
    if (row == MS_NONE || left < 0)
        return ms_expression_fail(list, p->names->fault, NULL,
                                  "\"%s\" has no element %" PRId64, list->name,
                                  index.is.i);
    const char *name = list->name;
    ms_expression_node(list->json, row, list);
    list->name = name;
    return MS_OK;
}

static ms_err unary(parser *p, ms_known *value)
{
    if (accept(p, "!")) {
        MS_TRY(deeper(p));
        MS_TRY(unary(p, value));
        p->depth--;
        if (p->skip > 0)
            return MS_OK;
        if (value->kind != MS_KIND_BOOL)
            return need(p, value, "true or false");
        *value = truth_of(!value->is.b);
        return MS_OK;
    }
    MS_TRY(primary(p, value));
    while (accept(p, "["))
        MS_TRY(element(p, value));
    return MS_OK;
}

static int64_t divided(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* int(integer * share) */
static ms_err cut(const parser *p, ms_known *a, const ms_known *share)
{
    double product = (double)a->is.i * share->is.f;
    if (!(product >= 0 && product <= 9007199254740992.0)) /* 2^53 */
        return ms_expression_fail(share, p->names->fault, NULL,
                                  "\"%s\" is out of range", share->name);
    *a = (ms_known){.kind = MS_KIND_INT, .is.i = (int64_t)product};
    return MS_OK;
}

/* Faults: MS_EINPUT for a result beyond 64 bits, a division by 0. */
static ms_err calculate(const parser *p, char sign, ms_known *a, ms_known *b)
{
    int64_t x = a->is.i, y = b->is.i, result = 0;
    bool over = false;
    if (p->skip > 0)
        return MS_OK;
    if (sign == '*' && a->kind == MS_KIND_INT && b->kind == MS_KIND_FLOAT)
        return cut(p, a, b);
    if (a->kind != MS_KIND_INT || b->kind != MS_KIND_INT)
        return need(p, a->kind != MS_KIND_INT ? a : b, "an integer");
    if ((sign == '/' || sign == '%') && y == 0) {
        if (b->name == NULL)
            return ms_fail(p->names->fault, MS_EINPUT, NULL, NULL,
                           "a division by 0 in \"%s\"", p->whole);
        return ms_expression_fail(b, p->names->fault, NULL,
                                  "\"%s\" must not be 0", b->name);
    }
    if (sign == '+')
        over = __builtin_add_overflow(x, y, &result);
    else if (sign == '-')
        over = __builtin_sub_overflow(x, y, &result);
    else if (sign == '*')
        over = __builtin_mul_overflow(x, y, &result);
    else if (y == -1)
        over = true; /* no page divides by it */
    else
        result = sign == '/' ? divided(x, y) : x - divided(x, y) * y;
    if (over)
        return ms_expression_fail(a, p->names->fault, NULL,
                                  "\"%s\" is beyond 2^63 at %" PRId64
                                  " and %" PRId64,
                                  p->whole, x, y);
    *a = (ms_known){.kind = MS_KIND_INT, .is.i = result};
    return MS_OK;
}

static ms_err product(parser *p, ms_known *value)
{
    MS_TRY(unary(p, value));
    for (;;) {
        ms_known right;
        blanks(p);
        char sign = *p->at;
        if (sign != '*' && sign != '/' && sign != '%')
            return MS_OK;
        p->at++;
        MS_TRY(unary(p, &right));
        MS_TRY(calculate(p, sign, value, &right));
    }
}

static ms_err sum(parser *p, ms_known *value)
{
    MS_TRY(product(p, value));
    for (;;) {
        ms_known right;
        blanks(p);
        char sign = *p->at;
        if (sign != '+' && sign != '-')
            return MS_OK;
        p->at++;
        MS_TRY(product(p, &right));
        MS_TRY(calculate(p, sign, value, &right));
    }
}

static bool is_in(const ms_known *value, const ms_known *list)
{
    for (uint32_t i = ms_json_first(list->json, list->row); i != MS_NONE;
         i = list->json->nodes[i].next) {
        ms_known element;
        ms_expression_node(list->json, i, &element);
        if (ms_expression_equal(value, &element))
            return true;
    }
    return false;
}

enum { SAME, OTHER, LESS_EQUAL, MORE_EQUAL, LESS, MORE, IN, N_COMPARISONS };

static ms_err compared(const parser *p, int how, ms_known *a, ms_known *b)
{
    if (p->skip > 0)
        return MS_OK;
    if (how == SAME || how == OTHER) {
        *a = truth_of(ms_expression_equal(a, b) == (how == SAME));
        return MS_OK;
    }
    if (how == IN) {
        if (b->kind != MS_KIND_LIST)
            return need(p, b, "a list");
        *a = truth_of(is_in(a, b));
        return MS_OK;
    }
    if (!is_number(a) || !is_number(b))
        return need(p, is_number(a) ? b : a, "a number");
    double x = number(a), y = number(b);
    bool truth = how == LESS         ? x < y
                 : how == MORE       ? x > y
                 : how == LESS_EQUAL ? x <= y
                                     : x >= y;
    *a = truth_of(truth);
    return MS_OK;
}

static ms_err comparison(parser *p, ms_known *value)
{
    static const char *const signs[N_COMPARISONS] = {
        "==", "!=", "<=", ">=", "<", ">", "in "};
    ms_known right;
    MS_TRY(sum(p, value));
    for (int how = 0; how < N_COMPARISONS; how++)
        if (accept(p, signs[how])) {
            MS_TRY(sum(p, &right));
            return compared(p, how, value, &right);
        }
    return MS_OK;
}

/* a && b or a || b: b is not computed where a decides. */
static ms_err both(parser *p, ms_known *value)
{
    MS_TRY(comparison(p, value));
    while (accept(p, "&&")) {
        if (p->skip == 0 && value->kind != MS_KIND_BOOL)
            return need(p, value, "true or false");
        bool decided = p->skip == 0 && !value->is.b;
        ms_known right = {0};
        p->skip += decided;
        MS_TRY(comparison(p, &right));
        p->skip -= decided;
        if (p->skip == 0 && !decided)
            *value = right;
    }
    return MS_OK;
}

static ms_err either(parser *p, ms_known *value)
{
    MS_TRY(both(p, value));
    while (accept(p, "||")) {
        if (p->skip == 0 && value->kind != MS_KIND_BOOL)
            return need(p, value, "true or false");
        bool decided = p->skip == 0 && value->is.b;
        ms_known right = {0};
        p->skip += decided;
        MS_TRY(both(p, &right));
        p->skip -= decided;
        if (p->skip == 0 && !decided)
            *value = right;
    }
    return MS_OK;
}

static ms_err otherwise(parser *p, ms_known *value)
{
    MS_TRY(either(p, value));
    while (accept(p, "??")) {
        bool decided = p->skip == 0 && value->kind != MS_KIND_NULL;
        ms_known right = {0};
        p->skip += decided;
        MS_TRY(either(p, &right));
        p->skip -= decided;
        if (p->skip == 0 && !decided)
            *value = right;
    }
    return MS_OK;
}

static ms_err ternary(parser *p, ms_known *value)
{
    ms_known yes = {0}, no = {0};
    MS_TRY(deeper(p));
    MS_TRY(otherwise(p, value));
    if (!accept(p, "?")) {
        p->depth--;
        return MS_OK;
    }
    if (p->skip == 0 && value->kind != MS_KIND_BOOL)
        return need(p, value, "true or false");
    bool truth = p->skip == 0 && value->is.b, off = p->skip > 0;
    p->skip += off || !truth;
    MS_TRY(ternary(p, &yes));
    p->skip -= off || !truth;
    if (!accept(p, ":"))
        return fail_syntax(p);
    p->skip += off || truth;
    MS_TRY(ternary(p, &no));
    p->skip -= off || truth;
    *value = truth ? yes : no;
    p->depth--;
    return MS_OK;
}

/* ---- the whole ----------------------------------------------------------- */

ms_err ms_expression_value(const char *text, const ms_names *names,
                           ms_known *value)
{
    parser p = {.at = text, .whole = text, .names = names};
    MS_TRY(ternary(&p, value));
    blanks(&p);
    return *p.at == '\0' ? MS_OK : fail_syntax(&p);
}

ms_err ms_expression_truth(const char *text, const ms_names *names, bool *truth)
{
    ms_known value;
    const parser p = {.whole = text, .names = names};
    MS_TRY(ms_expression_value(text, names, &value));
    if (value.kind != MS_KIND_BOOL)
        return need(&p, &value, "true or false");
    *truth = value.is.b;
    return MS_OK;
}

ms_err ms_expression_integer(const char *text, const ms_names *names,
                             int64_t low, int64_t *integer)
{
    ms_known value;
    const parser p = {.whole = text, .names = names};
    MS_TRY(ms_expression_value(text, names, &value));
    if (value.kind != MS_KIND_INT)
        return need(&p, &value, "an integer");
    if (value.is.i < low)
        return ms_expression_fail(&value, names->fault, NULL,
                                  "\"%s\" must be at least %" PRId64,
                                  value.name == NULL ? text : value.name, low);
    *integer = value.is.i;
    return MS_OK;
}
