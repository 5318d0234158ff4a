/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/numbers.h"
#include "graphs/json/expression.h"
#include "sim/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_TEXT 256u
#define MAX_NAMES 64u /* that did-you-mean looks at */

/* ---- names --------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool ms_numbers_is_name(const char *text)
{
    if (!is_letter(*text))
        return false;
    while (is_letter(*text) || (*text >= '0' && *text <= '9'))
        text++;
    return *text == '\0';
}

typedef struct scope {
    const ms_variable *variables;
    ms_fault *why;
} scope;

static ms_err unknown(const scope *in, const char *name)
{
    const char *names[MAX_NAMES] = {0};
    char hint[160] = "no name has a value here";
    uint32_t n = 0;
    for (const ms_variable *v = in->variables; v != NULL && n < MAX_NAMES;
         v = v->outer)
        names[n++] = v->name;
    const char *near = ms_names_nearest(name, names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%.60s\"?", near);
    size_t used = 0;
    for (uint32_t i = 0; near == NULL && i < n && used < sizeof hint; i++)
        used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s",
                                 i == 0 ? "names: " : ", ", names[i]);
    return ms_fail(in->why, MS_EINPUT, NULL, hint, "there is no value \"%s\"",
                   name);
}

static ms_err find(void *from, const char *name, ms_known *value)
{
    const scope *in = from;
    const ms_variable *v = in->variables;
    while (v != NULL && strcmp(v->name, name) != 0)
        v = v->outer;
    if (v == NULL)
        return unknown(in, name);
    *value = (ms_known){.kind = MS_KIND_FLOAT, .is.f = v->value};
    if (ms_known_is_whole(v->value)) {
        value->kind = MS_KIND_INT;
        value->is.i = (int64_t)v->value;
    }
    value->name = v->name;
    return MS_OK;
}

/* ---- values -------------------------------------------------------------- */

/* An empty fault without clearing its texts: there are as many expressions as
 * layers. */
static void begin(ms_fault *why)
{
    why->err = MS_OK;
    why->source[0] = '\0';
}

ms_err ms_numbers_value(const char *text, const ms_variable *variables,
                        double *value, ms_fault *why)
{
    scope in = {variables, why};
    const ms_names names = {find, &in, NULL, why};
    begin(why);
    if (strlen(text) > MAX_TEXT)
        return ms_fail(why, MS_EINPUT, NULL, NULL, "more than %u bytes",
                       MAX_TEXT);
    return ms_expression_number(text, &names, value);
}

ms_err ms_numbers_integer(const char *text, const ms_variable *variables,
                          int64_t *value, ms_fault *why)
{
    double number;
    MS_TRY(ms_numbers_value(text, variables, &number, why));
    if (!ms_known_is_whole(number))
        return ms_fail(why, MS_EINPUT, NULL,
                       "floor(x) is the whole number below x",
                       "it is %g, no whole number", number);
    *value = (int64_t)number;
    return MS_OK;
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

ms_err ms_numbers_fill(const char *text, const ms_variable *variables,
                       char *buffer, size_t size, ms_fault *why)
{
    char inner[256];
    size_t used = 0;
    const char *at = text;
    begin(why);
    while (*at != '\0' && used + 1 < size) {
        int64_t value;
        if (*at != '{') {
            buffer[used++] = *at++;
            continue;
        }
        if (!cut_out(at, inner, sizeof inner, &at))
            return ms_fail(why, MS_EINPUT, NULL, NULL, "a } is missing");
        MS_TRY(ms_numbers_integer(inner, variables, &value, why));
        used += (size_t)snprintf(buffer + used, size - used, "%" PRId64, value);
    }
    if (*at != '\0' || used >= size)
        return ms_fail(why, MS_EINPUT, NULL, NULL,
                       "a name of more than %zu bytes", size - 1);
    buffer[used] = '\0';
    return MS_OK;
}
