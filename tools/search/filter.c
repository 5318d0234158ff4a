/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --filter: which points of a grid are simulated.
 *
 * A condition has two sides and an operator. A side is a product of numbers and
 * keys; a key is an axis of the grid or a setting that all points share. A key
 * whose values are not numbers must be alone on its side and is compared as a
 * word. */

#include "policies/common/policy.h"
#include "sim/base/size.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/options/options.h"
#include "tools/points/points.h"
#include "tools/terminal/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FACTORS 8u
#define SHOWN 60

typedef enum relation {
    BELOW,
    UP_TO,
    ABOVE,
    FROM,
    EQUAL, /* from here on words can be compared, too */
    OTHER,
    HAS /* for words only: contains */
} relation;

static const struct {
    const char *sign;
    relation is;
} operators[] = {{"<=", UP_TO}, {">=", FROM}, {"!=", OTHER}, {"<", BELOW},
                 {">", ABOVE},  {"=", EQUAL}, {"~", HAS}};
#define N_OPERATORS (sizeof operators / sizeof operators[0])

/* A number or a key. With axis MS_NONE all points have the same value: word,
 * and number if it is one. */
typedef struct term {
    uint32_t axis;
    const char *key, *word; /* key is NULL for a number */
    const double *numbers;  /* by value of the axis; NULL: they are words */
    bool is_number;
    double number;
} term;

typedef struct half {
    term factors[MOST_FACTORS];
    uint32_t n;
} half;

struct ms_filter {
    relation is;
    half left, right;
    /* what left.factors[0] is compared with, or NULL: numbers are compared */
    const char *word;
};

typedef struct reader {
    const char *text;
    size_t length;
    const ms_grid *grid;
    const ms_job *base;
    ms_arena *arena;
    ms_fault *fault;
} reader;

#define FAIL(r, offset, hint, ...)                                             \
    (ms_fail_quote((r)->fault, (r)->text, (r)->length, offset),                \
     ms_fail((r)->fault, MS_EUSAGE, "--filter", hint, __VA_ARGS__))

/* ---- numbers ------------------------------------------------------------- */

/* Reads "64", "1.5" or "80GiB". */
static bool to_number(const char *text, double *number)
{
    char *end;
    uint64_t bytes;
    if (text[0] == '\0' || strchr("0123456789.-", text[0]) == NULL)
        return false;
    *number = strtod(text, &end);
    if (*end == '\0')
        return true;
    if (ms_size_bytes(text, NULL, &bytes, NULL) != MS_OK)
        return false;
    *number = (double)bytes;
    return true;
}

/* The values of an axis as numbers; NULL (and no fault) where one is a word. */
static ms_err to_numbers(const reader *r, const ms_axis *axis,
                         const double **numbers)
{
    double *all = ms_arena_take_raw(r->arena, axis->n, sizeof *all);
    if (all == NULL)
        return ms_fail_nomem(r->fault);
    *numbers = NULL;
    for (uint32_t i = 0; i < axis->n; i++)
        if (!to_number(axis->values[i], &all[i]))
            return MS_OK;
    *numbers = all;
    return MS_OK;
}

/* ---- keys ---------------------------------------------------------------- */

/* The value of a --set model.KEY that all points share, or NULL. */
static const char *find_override(const ms_job *base, const char *key)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < base->n_overrides; i++)
        if (strcmp(base->overrides[i].key, key) == 0)
            value = base->overrides[i].value;
    return value;
}

/* The value that all points share of a key that is no axis; NULL: the model
 * decides it, so it is not known before the model is read. */
static const char *find_common(const reader *r, const char *key)
{
    const ms_job *base = r->base;
    const ms_setting *row = ms_settings_table_find(key);
    if (row != NULL)
        return row->write(row, base, r->arena);
    if (strncmp(key, "model.", 6) == 0)
        return find_override(base, key + 6);
    if (strchr(key, '.') == NULL) { /* a policy, as all points have it */
        const ms_policy *policy = NULL;
        ms_err err = ms_spec_key_find(key, r->arena, &policy, r->fault);
        return err == MS_OK ? ms_spec_key_value(policy, &base->spec, r->arena)
                            : NULL;
    }
    ms_label label = ms_settings_value(&base->training, strchr(key, '.') + 1);
    bool open = strcmp(key, "training.sequence") == 0 &&
                strcmp(label.s, "0") == 0; /* as long as the model allows */
    return open ? NULL : ms_arena_text(r->arena, label.s, strlen(label.s));
}

static ms_err read_key(const reader *r, size_t at, const char *word,
                       term *factor)
{
    char hint[192];
    MS_TRY(ms_grid_key(word, r->arena, &factor->key, r->fault));
    if (factor->key == NULL) {
        ms_grid_key_hint(word, hint, sizeof hint);
        return FAIL(r, at, hint, "\"%.*s\" is neither a number nor a key",
                    SHOWN, word);
    }
    for (uint32_t a = 0; a < r->grid->n_axes; a++)
        if (strcmp(r->grid->axes[a].key, factor->key) == 0) {
            factor->axis = a;
            return to_numbers(r, &r->grid->axes[a], &factor->numbers);
        }
    factor->word = find_common(r, factor->key);
    if (factor->word == NULL)
        return FAIL(r, at, "give it a value by --grid, or by its option",
                    "\"%s\" has no value to compare", factor->key);
    factor->is_number = to_number(factor->word, &factor->number);
    return MS_OK;
}

static ms_err read_factor(const reader *r, size_t at, const char *word,
                          term *factor)
{
    *factor = (term){.axis = MS_NONE};
    if (word[0] == '\0')
        return FAIL(r, at, "e.g. --filter 'batch*sequence<=65536'",
                    "a number or a key is missing");
    if (strchr("0123456789.-", word[0]) == NULL)
        return read_key(r, at, word, factor);
    factor->is_number = to_number(word, &factor->number);
    if (!factor->is_number)
        return FAIL(r, at, "e.g. 64, 0.5 or 80GiB", "\"%.*s\" is not a number",
                    SHOWN, word);
    return MS_OK;
}

/* Reads the product in [at, at + length). */
static ms_err read_side(const reader *r, size_t at, size_t length, half *side)
{
    const char *rest = ms_arena_text(r->arena, r->text + at, length);
    side->n = 0;
    for (bool last = false; !last;) {
        size_t part = rest == NULL ? 0 : strcspn(rest, "*");
        char *word = rest == NULL ? NULL : ms_arena_text(r->arena, rest, part);
        if (word == NULL)
            return ms_fail_nomem(r->fault);
        if (side->n == MOST_FACTORS)
            return FAIL(r, at, NULL, "more than %u factors", MOST_FACTORS);
        MS_TRY(read_factor(r, at, word, &side->factors[side->n++]));
        last = rest[part] == '\0';
        rest += part + !last;
        at += part + !last;
    }
    return MS_OK;
}

/* ---- conditions ---------------------------------------------------------- */

static bool is_numeric(const term *factor)
{
    return factor->axis == MS_NONE ? factor->is_number
                                   : factor->numbers != NULL;
}

static ms_err check_numeric(const reader *r, size_t at, const half *side)
{
    for (uint32_t i = 0; i < side->n; i++)
        if (!is_numeric(&side->factors[i]))
            return FAIL(r, at,
                        "words are compared with =, != or ~ (contains), one "
                        "key with one word",
                        "the values of \"%s\" are not numbers",
                        side->factors[i].key);
    return MS_OK;
}

/* Spells a word as the grid spells it ("h100" becomes the device's whole name),
 * so that words that mean the same are equal. */
static ms_err spell_word(const reader *r, size_t at, const char *key,
                         const char *word, const char **spelled)
{
    ms_job job = *r->base;
    ms_fault inner = {.caret = -1};
    *spelled = word;
    if (word == NULL)
        return ms_fail_nomem(r->fault);
    if (strncmp(key, "model.", 6) == 0)
        return MS_OK;
    job.spec.n = 0;
    if (ms_settings_put(&job, key, word, r->arena, &inner) != MS_OK)
        return FAIL(r, at, inner.hint, "%s", inner.what);
    const ms_setting *row = ms_settings_table_find(key);
    const ms_policy *policy = NULL;
    MS_TRY(ms_spec_key_find(key, r->arena, &policy, r->fault));
    if (row != NULL)
        *spelled = row->write(row, &job, r->arena);
    else if (policy != NULL)
        *spelled = ms_spec_key_value(policy, &job.spec, r->arena);
    return *spelled == NULL ? ms_fail_nomem(r->fault) : MS_OK;
}

static ms_err read_condition(const reader *r, size_t at, const char *sign,
                             struct ms_filter *filter)
{
    size_t right = at + strlen(sign);
    const half *left = &filter->left;
    MS_TRY(read_side(r, 0, at, &filter->left));
    bool words = filter->is == HAS ||
                 (filter->is >= EQUAL && left->n == 1 &&
                  left->factors[0].key != NULL && !is_numeric(left->factors));
    if (!words) {
        MS_TRY(read_side(r, right, r->length - right, &filter->right));
        MS_TRY(check_numeric(r, 0, left));
        return check_numeric(r, right, &filter->right);
    }
    if (left->n != 1 || left->factors[0].key == NULL)
        return FAIL(r, 0, "e.g. --filter 'policy~checkpoint'",
                    "\"~\" looks for a word in the values of one key");
    if (r->length == right)
        return FAIL(r, right, "e.g. --filter 'policy!=none'",
                    "a word is missing");
    filter->word = ms_arena_text(r->arena, r->text + right, r->length - right);
    return filter->is == HAS && filter->word != NULL
               ? MS_OK
               : spell_word(r, right, left->factors[0].key, filter->word,
                            &filter->word);
}

static ms_err read_filter(const reader *r, struct ms_filter *filter)
{
    size_t at = strcspn(r->text, "<>=!~");
    *filter = (struct ms_filter){0};
    for (size_t i = 0; i < N_OPERATORS; i++) {
        const char *sign = operators[i].sign;
        if (strncmp(r->text + at, sign, strlen(sign)) != 0)
            continue;
        filter->is = operators[i].is;
        return read_condition(r, at, sign, filter);
    }
    return FAIL(r, at < r->length ? at : 0,
                "e.g. --filter 'batch*sequence<=65536' or 'policy!=none'",
                "a filter compares with <, <=, >, >=, =, != or ~");
}

ms_err ms_filter_read(const ms_arguments *arguments, const ms_grid *grid,
                      const ms_job *base, ms_arena *arena, ms_filters *filters,
                      ms_fault *fault)
{
    struct ms_filter *rows =
        ms_arena_take(arena, arguments->n_given + 1, sizeof *rows);
    if (rows == NULL)
        return ms_fail_nomem(fault);
    *filters = (ms_filters){.rows = rows};
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        if (given->option->id != MS_OPTION_FILTER)
            continue;
        const reader r = {.text = given->value,
                          .length = strlen(given->value),
                          .grid = grid,
                          .base = base,
                          .arena = arena,
                          .fault = fault};
        MS_TRY(read_filter(&r, &rows[filters->n++]));
    }
    return MS_OK;
}

/* ---- at a point ---------------------------------------------------------- */

static double product_at(const half *side, const ms_grid *grid, uint64_t point)
{
    double product = 1;
    for (uint32_t i = 0; i < side->n; i++) {
        const term *factor = &side->factors[i];
        product *=
            factor->axis == MS_NONE
                ? factor->number
                : factor->numbers[ms_grid_index(grid, point, factor->axis)];
    }
    return product;
}

static bool word_holds(const struct ms_filter *filter, const ms_grid *grid,
                       uint64_t point)
{
    const term *factor = &filter->left.factors[0];
    const char *word = factor->axis == MS_NONE
                           ? factor->word
                           : ms_grid_value(grid, point, factor->axis);
    if (filter->is == HAS)
        return strstr(word, filter->word) != NULL;
    return (strcmp(word, filter->word) == 0) == (filter->is == EQUAL);
}

static bool holds(const struct ms_filter *filter, const ms_grid *grid,
                  uint64_t point)
{
    if (filter->word != NULL)
        return word_holds(filter, grid, point);
    double left = product_at(&filter->left, grid, point);
    double right = product_at(&filter->right, grid, point);
    switch (filter->is) {
    case BELOW:
        return left < right;
    case UP_TO:
        return left <= right;
    case ABOVE:
        return left > right;
    case FROM:
        return left >= right;
    case OTHER:
        return left < right || left > right;
    case EQUAL:
    case HAS:
        break;
    }
    return left <= right && left >= right;
}

bool ms_filter_holds(const ms_filters *filters, const ms_grid *grid,
                     uint64_t point)
{
    for (uint32_t i = 0; i < filters->n; i++)
        if (!holds(&filters->rows[i], grid, point))
            return false;
    return true;
}
