/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/fields.h"
#include "graphs/model.h"
#include "sim/names.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 48u
#define MAX_WORD 32u
#define MAX_HINT 384u /* all words of a field */

uint32_t ms_fields_find(const ms_field *rows, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    return MS_NONE;
}

/* ---- hints --------------------------------------------------------------- */

/* "did you mean X?", or the list after its title. */
static void suggest(const char *const *words, uint32_t n, const char *word,
                    const char *title, char *buffer, size_t size)
{
    const char *near = ms_names_nearest(word, words, n);
    if (near != NULL) {
        snprintf(buffer, size, "did you mean \"%s\"?", near);
        return;
    }
    size_t used = (size_t)snprintf(buffer, size, "%s: ", title);
    for (uint32_t i = 0; i < n && used < size; i++) {
        bool fits = used + strlen(words[i]) + sizeof ", , ..." <= size;
        used += (size_t)snprintf(buffer + used, size - used, "%s%s",
                                 i == 0 ? "" : ", ", fits ? words[i] : "...");
        if (!fits)
            break;
    }
}

static bool is_extra(const ms_fields *keys, const char *name)
{
    for (uint32_t i = 0; i < keys->n_extra; i++)
        if (strcmp(keys->extra[i], name) == 0)
            return true;
    return false;
}

void ms_fields_hint(const ms_fields *keys, const char *word, char *buffer,
                    size_t size)
{
    const char *names[MS_FIELDS_MAX];
    uint32_t n = 0;
    assert(keys->n_extra + keys->n <= MS_FIELDS_MAX);
    for (uint32_t i = 0; i < keys->n_extra; i++)
        names[n++] = keys->extra[i];
    for (uint32_t i = 0; i < keys->n; i++)
        names[n++] = keys->rows[i].name;
    suggest(names, n, word, "keys", buffer, size);
}

/* ---- words --------------------------------------------------------------- */

/* Splits "a|b|c"; returns how many. */
static uint32_t split(const char *words, char texts[MAX_WORDS][MAX_WORD])
{
    for (uint32_t n = 0;; n++) {
        size_t length = strcspn(words, "|");
        assert(n < MAX_WORDS && length < MAX_WORD);
        memcpy(texts[n], words, length);
        texts[n][length] = '\0';
        if (words[length] == '\0')
            return n + 1;
        words += length + 1;
    }
}

/* The index of word, or MS_NONE with a hint. */
static uint32_t find_word(const ms_field *field, const char *word, char *hint,
                          size_t size)
{
    char texts[MAX_WORDS][MAX_WORD];
    const char *words[MAX_WORDS] = {0};
    uint32_t n = split(field->words, texts);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(texts[i], word) == 0)
            return i;
        words[i] = texts[i];
    }
    suggest(words, n, word, "one of", hint, size);
    return MS_NONE;
}

/* ---- bounds -------------------------------------------------------------- */

static bool int_fits(const ms_field *field, int64_t value)
{
    return field->low == field->high ||
           (value >= field->low && value <= field->high);
}

static bool float_fits(const ms_field *field, double value)
{
    return field->low == field->high ||
           (value >= (double)field->low && value <= (double)field->high);
}

/* The values that a field takes: "an integer from 1 to 64". */
static void describe(const ms_field *field, char *buffer, size_t size)
{
    static const char *const kinds[] = {
        [MS_INT] = "an integer",
        [MS_FLOAT] = "a number",
        [MS_BOOL] = "true or false",
        [MS_WORD] = "a word",
        [MS_NAME] = "the name of a layer",
        [MS_INTS] = "an array of integers",
        [MS_TEXT] = "a string",
    };
    bool bounded = (field->type == MS_INT || field->type == MS_FLOAT ||
                    field->type == MS_INTS) &&
                   field->low != field->high;
    if (bounded)
        snprintf(buffer, size, "%s from %" PRId64 " to %" PRId64,
                 kinds[field->type], field->low, field->high);
    else
        snprintf(buffer, size, "%s", kinds[field->type]);
}

/* ---- from JSON ----------------------------------------------------------- */

/* Fails at a node whose value the field does not take. */
static ms_err fail_type(const ms_json *json, uint32_t row,
                        const ms_field *field, ms_fault *fault)
{
    const ms_json_node *node = &json->nodes[row];
    char wanted[128];
    describe(field, wanted, sizeof wanted);
    if (node->kind == MS_JSON_INT && field->type != MS_BOOL &&
        field->type != MS_WORD && field->type != MS_NAME &&
        field->type != MS_TEXT)
        return ms_json_fail(json, row, fault, field->help,
                            "\"%s\" must be %s, not %" PRId64, field->name,
                            wanted, node->value.i);
    if (node->kind == MS_JSON_FLOAT && field->type == MS_FLOAT)
        return ms_json_fail(json, row, fault, field->help,
                            "\"%s\" must be %s, not %g", field->name, wanted,
                            node->value.f);
    return ms_json_fail(json, row, fault, field->help,
                        "\"%s\" must be %s, not %s", field->name, wanted,
                        ms_json_kind_name(json, row));
}

static ms_err word_from_json(const ms_json *json, uint32_t row,
                             const ms_field *field, ms_value *value,
                             ms_fault *fault)
{
    char hint[MAX_HINT];
    const char *word = json->nodes[row].value.s;
    uint32_t found = find_word(field, word, hint, sizeof hint);
    if (found == MS_NONE)
        return ms_json_fail(json, row, fault, hint, "\"%s\" cannot be \"%s\"",
                            field->name, word);
    value->i = found;
    return MS_OK;
}

static ms_err check_bounds(const ms_json *json, uint32_t row,
                           const ms_field *field, ms_value value,
                           ms_fault *fault)
{
    bool fits = field->type == MS_INT     ? int_fits(field, value.i)
                : field->type == MS_FLOAT ? float_fits(field, value.f)
                                          : true;
    return fits ? MS_OK : fail_type(json, row, field, fault);
}

/* Has the node an expression for a number? */
static bool is_expression(const ms_json *json, uint32_t row,
                          const ms_fields *keys, ms_value_type type)
{
    return keys != NULL && keys->expressions &&
           json->nodes[row].kind == MS_JSON_STRING &&
           (type == MS_INT || type == MS_FLOAT || type == MS_BOOL ||
            type == MS_INTS);
}

static ms_err fail_value(const ms_json *json, uint32_t row,
                         const ms_field *field, double value, ms_fault *fault)
{
    char wanted[128];
    describe(field, wanted, sizeof wanted);
    return ms_json_fail(json, row, fault, field->help,
                        "\"%s\" must be %s, but \"%.100s\" is %.15g",
                        field->name, wanted, json->nodes[row].value.s, value);
}

static ms_err from_expression(const ms_json *json, uint32_t row,
                              const ms_fields *keys, const ms_field *field,
                              ms_value *value, ms_fault *fault)
{
    const char *text = json->nodes[row].value.s;
    ms_fault why;
    ms_err err;
    double number = 0;
    int64_t whole = 0;
    if (field->type == MS_INT || field->type == MS_INTS)
        err = ms_numbers_integer(text, keys->variables, &whole, &why);
    else
        err = ms_numbers_value(text, keys->variables, &number, &why);
    if (err != MS_OK)
        return ms_json_fail(
            json, row, fault, *why.hint != '\0' ? why.hint : field->help,
            "\"%s\" cannot be \"%.100s\": %s", field->name, text, why.what);
    if (field->type == MS_BOOL)
        value->b = number != 0;
    else if (field->type == MS_FLOAT)
        value->f = number;
    else
        value->i = whole;
    if (field->type == MS_FLOAT && !float_fits(field, number))
        return fail_value(json, row, field, number, fault);
    if ((field->type == MS_INT || field->type == MS_INTS) &&
        !int_fits(field, whole))
        return fail_value(json, row, field, (double)whole, fault);
    return MS_OK;
}

static ms_err int_from_json(const ms_json *json, uint32_t row,
                            const ms_fields *keys, const ms_field *field,
                            uint64_t *value, ms_fault *fault)
{
    const ms_json_node *node = &json->nodes[row];
    ms_value number = {.i = -1};
    if (is_expression(json, row, keys, MS_INTS))
        MS_TRY(from_expression(json, row, keys, field, &number, fault));
    else if (node->kind == MS_JSON_INT)
        number.i = node->value.i;
    if (number.i < 0 || !int_fits(field, number.i))
        return fail_type(json, row, field, fault);
    *value = (uint64_t)number.i;
    return MS_OK;
}

static ms_err ints_from_json(const ms_json *json, uint32_t row,
                             const ms_fields *keys, const ms_field *field,
                             ms_arena *arena, const uint64_t **ints,
                             uint32_t *n_ints, ms_fault *fault)
{
    uint32_t n = json->nodes[row].value.n;
    if (n > MS_MAX_DIMS)
        return ms_json_fail(json, row, fault, field->help,
                            "\"%s\" has %u numbers, at most %u are possible",
                            field->name, n, MS_MAX_DIMS);
    uint64_t *values = ms_arena_take(arena, n + 1, sizeof *values);
    if (values == NULL)
        return ms_fail_nomem(fault);
    *ints = values;
    *n_ints = n;
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next)
        MS_TRY(int_from_json(json, i, keys, field, values++, fault));
    return MS_OK;
}

static ms_err text_from(const char *text, ms_arena *arena, ms_value *value,
                        ms_fault *fault)
{
    value->s = ms_arena_text(arena, text, strlen(text));
    return value->s == NULL ? ms_fail_nomem(fault) : MS_OK;
}

/* keys (optional) say whether numbers may be expressions. */
static ms_err from_json(const ms_json *json, uint32_t row,
                        const ms_fields *keys, const ms_field *field,
                        ms_arena *arena, ms_value *value, const uint64_t **ints,
                        uint32_t *n_ints, ms_fault *fault)
{
    static const uint8_t wanted[] = {
        [MS_INT] = MS_JSON_INT,     [MS_FLOAT] = MS_JSON_FLOAT,
        [MS_BOOL] = MS_JSON_BOOL,   [MS_WORD] = MS_JSON_STRING,
        [MS_NAME] = MS_JSON_STRING, [MS_INTS] = MS_JSON_ARRAY,
        [MS_TEXT] = MS_JSON_STRING};
    const ms_json_node *node = &json->nodes[row];
    if (field->type != MS_INTS && is_expression(json, row, keys, field->type))
        return from_expression(json, row, keys, field, value, fault);
    if (field->type == MS_FLOAT && node->kind == MS_JSON_INT)
        value->f = (double)node->value.i;
    else if (node->kind != wanted[field->type])
        return fail_type(json, row, field, fault);
    else if (field->type == MS_WORD)
        return word_from_json(json, row, field, value, fault);
    else if (field->type == MS_INTS)
        return ints_from_json(json, row, keys, field, arena, ints, n_ints,
                              fault);
    else if (field->type == MS_BOOL)
        value->b = node->value.b;
    else if (field->type == MS_NAME)
        value->s = node->value.s;
    else if (field->type == MS_TEXT)
        return text_from(node->value.s, arena, value, fault);
    else if (field->type == MS_FLOAT)
        value->f = node->value.f;
    else
        value->i = node->value.i;
    return check_bounds(json, row, field, *value, fault);
}

ms_err ms_fields_evaluate(const ms_json *json, uint32_t row,
                          const ms_fields *keys, uint32_t i, ms_value *value,
                          ms_fault *fault)
{
    return from_json(json, row, keys, &keys->rows[i], NULL, value, NULL, NULL,
                     fault);
}

/* ---- from text ----------------------------------------------------------- */

static bool int_from_text(const char *text, int64_t *value)
{
    size_t n = strspn(text, "-0123456789");
    if (n == 0 || text[n] != '\0' || strrchr(text, '-') > text)
        return false;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    return errno == 0 && *end == '\0';
}

static bool float_from_text(const char *text, double *value)
{
    if (*text == '\0' || text[strspn(text, "-+.eE0123456789")] != '\0')
        return false; /* no hexadecimals, no nan */
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && *end == '\0';
}

static bool bool_from_text(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *value || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

ms_err ms_fields_from_text(const char *text, const char *where,
                           const ms_field *field, ms_arena *arena,
                           ms_value *value, ms_fault *fault)
{
    char wanted[MAX_HINT];
    bool fine = false;
    if (field->type == MS_INT) {
        fine = int_from_text(text, &value->i) && int_fits(field, value->i);
    } else if (field->type == MS_FLOAT) {
        fine = float_from_text(text, &value->f) && float_fits(field, value->f);
    } else if (field->type == MS_BOOL) {
        fine = bool_from_text(text, &value->b);
    } else if (field->type == MS_NAME || field->type == MS_TEXT) {
        return text_from(text, arena, value, fault);
    } else if (field->type == MS_WORD) {
        uint32_t word = find_word(field, text, wanted, sizeof wanted);
        value->i = word;
        if (word == MS_NONE)
            return ms_fail(fault, MS_EUSAGE, where, wanted,
                           "\"%s\" cannot be \"%s\"", field->name, text);
        return MS_OK;
    }
    if (fine)
        return MS_OK;
    describe(field, wanted, sizeof wanted);
    return ms_fail(fault, MS_EUSAGE, where, field->help,
                   "\"%s\" must be %s, not \"%s\"", field->name, wanted, text);
}

void ms_fields_format(const ms_field *field, ms_value value, char *buffer,
                      size_t size)
{
    char texts[MAX_WORDS][MAX_WORD];
    if (field->type == MS_WORD) {
        uint32_t n = split(field->words, texts);
        assert(value.i >= 0 && value.i < (int64_t)n);
        snprintf(buffer, size, "%s", texts[value.i % n]);
    } else if (field->type == MS_FLOAT) {
        snprintf(buffer, size, "%g", value.f);
    } else if (field->type == MS_BOOL) {
        snprintf(buffer, size, "%s", value.b ? "true" : "false");
    } else if (field->type == MS_NAME || field->type == MS_TEXT) {
        snprintf(buffer, size, "%s", value.s);
    } else {
        snprintf(buffer, size, "%" PRId64, value.i);
    }
}

/* ---- whole objects ------------------------------------------------------- */

/* "layer "mlp"", "the model" */
static void print_owner(const ms_fields *keys, char *buffer, size_t size)
{
    if (keys->owner_name == NULL)
        snprintf(buffer, size, "%s", keys->owner);
    else
        snprintf(buffer, size, "%s \"%s\"", keys->owner, keys->owner_name);
}

static ms_err fail_unknown(const ms_json *json, uint32_t row,
                           const ms_fields *keys, ms_fault *fault)
{
    char hint[384], owner[128];
    const char *key = json->nodes[row].key;
    ms_fields_hint(keys, key, hint, sizeof hint);
    print_owner(keys, owner, sizeof owner);
    return ms_json_fail_key(json, row, fault, hint, "unknown key \"%s\" in %s",
                            key, owner);
}

ms_err ms_fields_read_object(const ms_json *json, uint32_t row,
                             const ms_fields *keys, ms_arena *arena,
                             ms_fields_values *out, ms_fault *fault)
{
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next) {
        const char *key = json->nodes[i].key;
        uint32_t field = ms_fields_find(keys->rows, keys->n, key);
        if (field != MS_NONE) {
            MS_TRY(from_json(json, i, keys, &keys->rows[field], arena,
                             &out->values[field], &out->ints, &out->n_ints,
                             fault));
            out->given |= UINT64_C(1) << field;
        } else if (!is_extra(keys, key)) {
            return fail_unknown(json, i, keys, fault);
        }
    }
    return MS_OK;
}

ms_err ms_fields_require(const ms_json *json, uint32_t row,
                         const ms_fields *keys, uint64_t given, ms_fault *fault)
{
    char owner[128];
    uint32_t i = 0;
    while (i < keys->n && (!keys->rows[i].required || (given >> i & 1) != 0))
        i++;
    if (i == keys->n)
        return MS_OK;
    print_owner(keys, owner, sizeof owner);
    return ms_json_fail(json, row, fault, NULL, "%s lacks the key \"%s\" (%s)",
                        owner, keys->rows[i].name, keys->rows[i].help);
}
