/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/numbers.h"
#include "sim/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 256u
#define MAX_NAME 64u
#define MAX_DEPTH 64u /* of parentheses and calls */
#define MAX_NAMES 64u /* that did-you-mean looks at */

typedef struct parser {
    const char *text, *at;
    const ms_variable *variables;
    ms_numbers_error *error;
    uint32_t depth;
    bool failed;
} parser;

static double choice(parser *p);

/* The first failure stays; the value no longer matters. */
__attribute__((format(printf, 3, 4))) static double
fail(parser *p, const char *hint, const char *format, ...)
{
    va_list args;
    if (p->failed)
        return 0;
    p->failed = true;
    va_start(args, format);
    vsnprintf(p->error->what, sizeof p->error->what, format, args);
    va_end(args);
    snprintf(p->error->hint, sizeof p->error->hint, "%s", hint);
    return 0;
}

/* ---- words --------------------------------------------------------------- */

static void skip_blanks(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

/* Passes over an operator where it stands next, and not a longer one. */
static bool take(parser *p, const char *operator)
{
    size_t n = strlen(operator);
    skip_blanks(p);
    if (strncmp(p->at, operator, n) != 0)
        return false;
    if (n == 1 && strchr("<>!=", *operator) != NULL && p->at[1] == '=')
        return false;
    p->at += n;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool ms_numbers_is_name(const char *text)
{
    if (!is_letter(*text))
        return false;
    while (is_letter(*text) || is_digit(*text))
        text++;
    return *text == '\0';
}

static double number(parser *p)
{
    char digits[MAX_NAME];
    size_t n = strspn(p->at, "0123456789.");
    if (n >= sizeof digits)
        return fail(p, "", "a number is too long");
    memcpy(digits, p->at, n);
    digits[n] = '\0';
    char *end;
    double value = strtod(digits, &end);
    if (*end != '\0')
        return fail(p, "", "\"%s\" is no number", digits);
    p->at += n;
    return value;
}

static double unknown(parser *p, const char *name)
{
    const char *names[MAX_NAMES] = {0};
    char hint[160] = "no name has a value here";
    uint32_t n = 0;
    for (const ms_variable *v = p->variables; v != NULL && n < MAX_NAMES;
         v = v->outer)
        names[n++] = v->name;
    const char *near = ms_names_nearest(name, names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%.60s\"?", near);
    size_t used = 0;
    for (uint32_t i = 0; near == NULL && i < n && used < sizeof hint; i++)
        used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s",
                                 i == 0 ? "names: " : ", ", names[i]);
    return fail(p, hint, "there is no value \"%s\"", name);
}

/* ---- values -------------------------------------------------------------- */

static double call(parser *p, const char *name)
{
    double a = choice(p), b = a;
    bool lowest = strcmp(name, "min") == 0;
    if (strcmp(name, "floor") == 0) {
        a = floor(a);
    } else if (lowest || strcmp(name, "max") == 0) {
        if (!take(p, ","))
            return fail(p, "", "%s needs two values", name);
        b = choice(p);
        a = (a < b) == lowest ? a : b;
    } else {
        return fail(p, "min, max and floor can be called",
                    "there is no function \"%s\"", name);
    }
    return take(p, ")") ? a : fail(p, "", "a ) is missing");
}

static double named(parser *p)
{
    char name[MAX_NAME];
    size_t n = 0;
    while (is_letter(p->at[n]) || is_digit(p->at[n]))
        n++;
    if (n >= sizeof name)
        return fail(p, "", "a name is too long");
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    if (take(p, "("))
        return call(p, name);
    for (const ms_variable *v = p->variables; v != NULL; v = v->outer)
        if (strcmp(v->name, name) == 0)
            return v->value;
    return unknown(p, name);
}

static double primary(parser *p)
{
    double value = 0;
    skip_blanks(p);
    if (p->depth == MAX_DEPTH)
        return fail(p, "", "too many parentheses");
    p->depth++;
    if (is_digit(*p->at) || *p->at == '.')
        value = number(p);
    else if (is_letter(*p->at))
        value = named(p);
    else if (take(p, "-"))
        value = -primary(p);
    else if (take(p, "!"))
        value = primary(p) == 0;
    else if (!take(p, "("))
        value = fail(p, "", "a value is missing");
    else {
        value = choice(p);
        if (!take(p, ")"))
            fail(p, "", "a ) is missing");
    }
    p->depth--;
    return value;
}

/* ---- operators, from tight to loose -------------------------------------- */

static double product(parser *p)
{
    double value = primary(p);
    while (!p->failed) {
        if (take(p, "*"))
            value *= primary(p);
        else if (take(p, "/"))
            value /= primary(p);
        else if (take(p, "%"))
            value = fmod(value, primary(p));
        else
            break;
    }
    return value;
}

static double sum(parser *p)
{
    double value = product(p);
    while (!p->failed) {
        if (take(p, "+"))
            value += product(p);
        else if (take(p, "-"))
            value -= product(p);
        else
            break;
    }
    return value;
}

static double comparison(parser *p)
{
    double a = sum(p);
    if (take(p, "<="))
        return a <= sum(p);
    if (take(p, ">="))
        return a >= sum(p);
    if (take(p, "<"))
        return a < sum(p);
    if (take(p, ">"))
        return a > sum(p);
    if (take(p, "=="))
        return a == sum(p);
    if (take(p, "!="))
        return a != sum(p);
    return a;
}

static double both(parser *p)
{
    double value = comparison(p);
    while (!p->failed && take(p, "&&")) {
        double other = comparison(p);
        value = value != 0 && other != 0;
    }
    return value;
}

static double either(parser *p)
{
    double value = both(p);
    while (!p->failed && take(p, "||")) {
        double other = both(p);
        value = value != 0 || other != 0;
    }
    return value;
}

static double choice(parser *p)
{
    double condition = either(p);
    if (p->failed || !take(p, "?"))
        return condition;
    double yes = choice(p);
    if (!take(p, ":"))
        return fail(p, "", "a : is missing");
    double no = choice(p);
    return condition != 0 ? yes : no;
}

/* ---- the whole ----------------------------------------------------------- */

bool ms_numbers_value(const char *text, const ms_variable *variables,
                      double *value, ms_numbers_error *error)
{
    parser p = {
        .text = text, .at = text, .variables = variables, .error = error};
    *value = strlen(text) > MAX_TEXT
                 ? fail(&p, "", "more than %u bytes", MAX_TEXT)
                 : choice(&p);
    skip_blanks(&p);
    if (!p.failed && *p.at != '\0')
        fail(&p, "", "\"%.40s\" is left over", p.at);
    if (!p.failed && !isfinite(*value))
        fail(&p, "", "it is no finite number");
    return !p.failed;
}

bool ms_numbers_integer(const char *text, const ms_variable *variables,
                        int64_t *value, ms_numbers_error *error)
{
    double number;
    if (!ms_numbers_value(text, variables, &number, error))
        return false;
    if (fabs(number) > MS_NUMBERS_EXACT || floor(number) != number) {
        snprintf(error->what, sizeof error->what, "it is %g, no whole number",
                 number);
        snprintf(error->hint, sizeof error->hint,
                 "floor(x) is the whole number below x");
        return false;
    }
    *value = (int64_t)number;
    return true;
}

/* The expression between braces at text, without them. */
static bool cut_out(const char *text, char *inner, size_t size,
                    const char **rest)
{
    const char *end = strchr(text, '}');
    if (end == NULL || (size_t)(end - text) >= size)
        return false;
    memcpy(inner, text + 1, (size_t)(end - text) - 1);
    inner[end - text - 1] = '\0';
    *rest = end + 1;
    return true;
}

bool ms_numbers_fill(const char *text, const ms_variable *variables,
                     char *buffer, size_t size, ms_numbers_error *error)
{
    char inner[256];
    size_t used = 0;
    const char *at = text;
    while (*at != '\0' && used + 1 < size) {
        int64_t value;
        if (*at != '{') {
            buffer[used++] = *at++;
            continue;
        }
        if (!cut_out(at, inner, sizeof inner, &at)) {
            snprintf(error->what, sizeof error->what, "a } is missing");
            *error->hint = '\0';
            return false;
        }
        if (!ms_numbers_integer(inner, variables, &value, error))
            return false;
        used += (size_t)snprintf(buffer + used, size - used, "%" PRId64, value);
    }
    if (*at != '\0' || used >= size) {
        snprintf(error->what, sizeof error->what,
                 "a name of more than %zu bytes", size - 1);
        *error->hint = '\0';
        return false;
    }
    buffer[used] = '\0';
    return true;
}
