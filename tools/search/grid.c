/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --grid: the values that settings take; the grid is their product. */

#include "graphs/device.h"
#include "graphs/settings/settingwords.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/base/size.h"
#include "sim/names.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/options/options.h"
#include "tools/options/optionwords.h"
#include "tools/points/points.h"
#include "tools/terminal/quantity.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KEYS 96u
#define SHOWN 60 /* characters of a value that a message shows */

/* The state of reading one --grid argument; `at` is the part at work, for the
 * caret. */
typedef struct reader {
    const char *text;
    size_t length, at;
    char separator;
    const ms_job *base;
    ms_arena *arena;
    ms_axis *axis;
    const ms_setting *row;   /* of the key, where the key is a setting */
    const ms_policy *policy; /* whose name the key is, or NULL */
    uint32_t capacity;
    uint32_t *places; /* by value: where its word begins in the argument */
    ms_fault *fault;
} reader;

/* A value with its place in the list, to find values that are given twice. */
typedef struct twin {
    const char *value;
    uint32_t order;
} twin;

#define FAIL(r, offset, hint, ...)                                             \
    (ms_fail_quote((r)->fault, (r)->text, (r)->length, offset),                \
     ms_fail((r)->fault, MS_EUSAGE, "--grid", hint, __VA_ARGS__))

/* ---- keys ---------------------------------------------------------------- */

/* The key that is spelled like this option, or NULL. */
static const char *other_name(const char *option)
{
    for (uint32_t i = 0; i < ms_settings_table_n; i++) {
        const ms_setting *row = &ms_settings_table[i];
        if (row->in_grid &&
            ms_words_same(option, strlen(option), row->key, strlen(row->key)))
            return row->key;
    }
    return NULL;
}

ms_err ms_grid_key(const char *key, ms_arena *arena, const char **whole,
                   ms_fault *fault)
{
    const ms_policy *policy;
    *whole = NULL;
    const ms_setting *row = ms_settings_table_find(key);
    if (row != NULL && row->in_grid)
        *whole = row->key;
    if (strncmp(key, "model.", 6) == 0 && key[6] != '\0')
        *whole = key;
    uint32_t field = *whole == NULL ? ms_training_row(key) : MS_NONE;
    if (*whole == NULL)
        *whole = other_name(ms_optionwords_key(key));
    if (field != MS_NONE) {
        *whole = ms_arena_format(arena, "%s.%s", ms_training_group(field),
                                 ms_training_fields[field].name);
        return *whole != NULL ? MS_OK : ms_fail_nomem(fault);
    }
    if (*whole != NULL)
        return MS_OK;
    MS_TRY(ms_spec_key_find(key, arena, &policy, fault));
    *whole = policy != NULL ? policy->name : NULL;
    return MS_OK;
}

/* "keys: policy, device, ..., and those of --set ...". */
static void list_keys(char *hint, size_t size)
{
    int n = snprintf(hint, size, "keys: ");
    for (uint32_t i = 0; i < ms_settings_table_n && (size_t)n < size; i++)
        if (ms_settings_table[i].in_grid)
            n += snprintf(hint + n, size - (size_t)n, "%s, ",
                          ms_settings_table[i].key);
    if ((size_t)n < size)
        snprintf(hint + n, size - (size_t)n,
                 "a policy's name, and those of --set (memsim help training; "
                 "model.KEY)");
}

void ms_grid_key_hint(const char *key, char *hint, size_t size)
{
    const char *names[MOST_KEYS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_settings_table_n; i++)
        if (ms_settings_table[i].in_grid)
            names[n++] = ms_settings_table[i].key;
    for (uint32_t row = 0; row < ms_training_n_fields && n < MOST_KEYS; row++)
        names[n++] = ms_training_fields[row].name;
    for (uint32_t row = 0; row < ms_registry_n() && n < MOST_KEYS; row++)
        names[n++] = ms_registry_row(row)->name;
    const char *dot = strchr(key, '.');
    const ms_word *row =
        dot == NULL ? ms_settingwords_key("training", key) : NULL;
    const char *near = ms_names_nearest(dot != NULL ? dot + 1 : key, names, n);
    list_keys(hint, size);
    if (row != NULL && row->means == NULL)
        ms_words_hint(row, hint, size);
    else if (near != NULL)
        snprintf(hint, size, "did you mean \"%s\"?", near);
}

static ms_err read_key(reader *r)
{
    char hint[192];
    size_t length = strcspn(r->text, "=");
    if (length == 0 || r->text[length] == '\0')
        return FAIL(r, 0, "write it as --grid 'batch=1,2,4'",
                    "\"%.*s\" is not KEY=VALUE,VALUE,...", SHOWN, r->text);
    char *key = ms_arena_text(r->arena, r->text, length);
    if (key == NULL)
        return ms_fail_nomem(r->fault);
    MS_TRY(ms_grid_key(key, r->arena, &r->axis->key, r->fault));
    if (r->axis->key == NULL) {
        ms_grid_key_hint(key, hint, sizeof hint);
        return FAIL(r, 0, hint, "unknown key \"%.*s\"", SHOWN, key);
    }
    r->row = ms_settings_table_find(r->axis->key);
    r->at = length + 1;
    return ms_spec_key_find(r->axis->key, r->arena, &r->policy, r->fault);
}

/* ---- values -------------------------------------------------------------- */

static bool is_key(const reader *r, const char *key)
{
    return strcmp(r->axis->key, key) == 0;
}

/* The value as the result's rows write it (a canonical spelling), read back
 * from a job that got it. */
static const char *spell(const reader *r, const ms_job *job, const char *value)
{
    const char *dot = strchr(r->axis->key, '.');
    if (r->row != NULL)
        return r->row->write(r->row, job, r->arena);
    if (r->policy != NULL)
        return ms_spec_key_value(r->policy, &job->spec, r->arena);
    if (strncmp(r->axis->key, "model.", 6) == 0)
        return value;
    ms_label label = ms_settings_value(&job->training, dot + 1);
    return ms_arena_text(r->arena, label.s, strlen(label.s));
}

/* Do the key's values add policies? */
static bool is_spec(const reader *r)
{
    return r->policy != NULL || is_key(r, "policy");
}

static bool is_bytes(const reader *r)
{
    return r->row != NULL && r->row->type == MS_SETTING_BYTES;
}

/* Reports a setting's fault as one of --grid, with the caret at the value. A
 * file's fault (of a device) has a place of its own and stays. */
static ms_err fail_value(const reader *r, size_t at, const ms_fault *inner)
{
    if (inner->err != MS_EUSAGE) {
        if (r->fault->err == MS_OK)
            *r->fault = *inner;
        return inner->err;
    }
    if (inner->caret > 0)
        at += (size_t)inner->caret;
    const char *hint = inner->hint;
    char commas[96];
    if (r->separator == ',' && strchr(r->text, ',') != NULL && r->row != NULL &&
        r->row->many != NULL) {
        snprintf(commas, sizeof commas,
                 "%s may have commas: put ; between them, or at the end of one",
                 r->row->many);
        hint = commas;
    }
    return FAIL(r, at, hint, "%s", inner->what);
}

/* Fails unless the value is legal: by itself, and policies on top of those that
 * all points have.  *alone has nothing else. */
static ms_err check_value(const reader *r, size_t at, const char *value,
                          ms_job *alone)
{
    ms_fault inner = {.caret = -1};
    ms_spec joined = r->base->spec;
    *alone = *r->base;
    alone->spec.n = 0;
    ms_err err =
        is_bytes(r) ? ms_quantity_unit(value, "--grid", &inner) : MS_OK;
    if (err == MS_OK)
        err = ms_settings_put(alone, r->axis->key, value, r->arena, &inner);
    if (inner.caret >= 0 && r->policy != NULL) /* of "tensor:4", not of "4" */
        inner.caret -= (int)strlen(r->policy->name) + 1;
    if (err == MS_OK && is_spec(r))
        err = ms_spec_join(&alone->spec, &joined, &inner);
    return err == MS_OK ? MS_OK : fail_value(r, at, &inner);
}

/* Makes room for one more value; the arrays grow alike. */
static bool make_room(reader *r)
{
    ms_axis *axis = r->axis;
    uint32_t n = axis->n + 1, to[3] = {r->capacity, r->capacity, r->capacity};
    bool device = is_key(r, "device"), policy = is_spec(r);
    axis->values =
        ms_arena_grow(r->arena, axis->values, &to[0], n, sizeof *axis->values);
    r->places =
        ms_arena_grow(r->arena, r->places, &to[1], n, sizeof *r->places);
    if (device)
        axis->devices = ms_arena_grow(r->arena, axis->devices, &to[2], n,
                                      sizeof *axis->devices);
    if (policy)
        axis->specs = ms_arena_grow(r->arena, axis->specs, &to[2], n,
                                    sizeof *axis->specs);
    if (axis->values == NULL || r->places == NULL ||
        (device && axis->devices == NULL) || (policy && axis->specs == NULL))
        return false;
    r->capacity = to[0];
    return true;
}

static ms_err append(reader *r, size_t at, const char *value, const ms_job *job)
{
    ms_axis *axis = r->axis;
    uint32_t most = is_spec(r) ? MS_GRID_POLICIES : MS_GRID_AXIS;
    if (axis->n == most)
        return FAIL(r, at, "take larger steps, or sweep a part",
                    "\"%s\" has more than %s values", axis->key,
                    ms_quantity_count(most).s);
    if (value == NULL || !make_room(r))
        return ms_fail_nomem(r->fault);
    if (axis->devices != NULL)
        axis->devices[axis->n] = *job->device;
    if (axis->specs != NULL)
        axis->specs[axis->n] = job->spec;
    r->places[axis->n] = (uint32_t)at;
    axis->values[axis->n++] = value;
    return MS_OK;
}

static ms_err read_word(reader *r, size_t at, const char *word)
{
    ms_job job;
    MS_TRY(check_value(r, at, word, &job));
    return append(r, at, spell(r, &job, word), &job);
}

/* ---- ranges -------------------------------------------------------------- */

typedef struct span {
    uint64_t from, to, by;
    bool multiplies;
} span;

/* "1..64*2": begins with a digit and has two dots. A name with dots begins with
 * a letter. */
static bool is_range(const reader *r, const char *word)
{
    return (r->row == NULL || r->row->has_ranges) && word[0] >= '0' &&
           word[0] <= '9' && strstr(word, "..") != NULL;
}

/* Reads the number in [word, word + length): bytes where the axis is of bytes
 * and it is not `plain` (a factor), else a whole number. */
static ms_err read_number(const reader *r, size_t at, const char *word,
                          size_t length, bool plain, uint64_t *number)
{
    ms_fault inner = {.caret = -1};
    char *text = ms_arena_text(r->arena, word, length), *end;
    if (text == NULL)
        return ms_fail_nomem(r->fault);
    if (!plain && is_bytes(r)) {
        ms_err err = ms_size_bytes(text, NULL, number, &inner);
        return err == MS_OK ? MS_OK : fail_value(r, at, &inner);
    }
    bool fits = ms_quantity_whole(text, number, &end);
    if (end == text || *end != '\0')
        return FAIL(r, at, "write A..B, A..B+STEP or A..B*FACTOR",
                    "\"%.*s\" is not a whole number in a range", SHOWN, text);
    if (!fits || *number > INT64_MAX)
        return FAIL(r, at, "end the range below it", "\"%.*s\" is beyond 2^63",
                    SHOWN, text);
    return MS_OK;
}

static ms_err check_range(const reader *r, size_t at, const span *range)
{
    char hint[96];
    if (range->from > range->to) {
        snprintf(hint, sizeof hint,
                 "from the smaller one: %" PRIu64 "..%" PRIu64, range->to,
                 range->from);
        return FAIL(r, at, hint, "the range ends before it begins");
    }
    if (!range->multiplies && range->by == 0)
        return FAIL(r, at, "count by 1 or more: 1..64+8",
                    "a range with a step of 0 never ends");
    if (range->multiplies && (range->by < 2 || range->from == 0))
        return FAIL(r, at, "multiply a number from 1 on by 2 or more: 1..64*2",
                    "a range that multiplies %s never ends",
                    range->from == 0 ? "0" : "by less than 2");
    return MS_OK;
}

static ms_err split_range(const reader *r, size_t at, const char *word,
                          span *range)
{
    const char *points = strstr(word, ".."), *second = points + 2;
    size_t length = strcspn(second, "+*");
    const char *sign = second + length;
    *range = (span){.by = 1, .multiplies = *sign == '*'};
    MS_TRY(
        read_number(r, at, word, (size_t)(points - word), false, &range->from));
    MS_TRY(read_number(r, at + (size_t)(second - word), second, length, false,
                       &range->to));
    if (*sign == '\0')
        return MS_OK;
    size_t by_at = at + (size_t)(sign + 1 - word);
    return read_number(r, by_at, sign + 1, strlen(sign + 1), range->multiplies,
                       &range->by);
}

/* Only the ends are checked as values: the settings with ranges have a least
 * and a largest value and nothing that is forbidden in between.  Policies are
 * read one by one. */
static ms_err read_range(reader *r, size_t at, const char *word)
{
    span range;
    ms_job job;
    uint64_t last = 0, next;
    MS_TRY(split_range(r, at, word, &range));
    MS_TRY(check_range(r, at, &range));
    for (uint64_t number = range.from; number <= range.to; number = next) {
        char *value = ms_arena_format(r->arena, "%" PRIu64, number);
        if (value != NULL && (number == range.from || is_spec(r)))
            MS_TRY(check_value(r, at, value, &job));
        MS_TRY(append(r, at, value, &job));
        last = number;
        if (range.multiplies ? __builtin_mul_overflow(number, range.by, &next)
                             : __builtin_add_overflow(number, range.by, &next))
            break;
    }
    const char *value = r->axis->values[r->axis->n - 1];
    return last == range.from ? MS_OK : check_value(r, at, value, &job);
}

/* ---- lists --------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const twin *x = a, *y = b;
    int order = strcmp(x->value, y->value);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static ms_err check_twice(const reader *r)
{
    const ms_axis *axis = r->axis;
    twin *twins = ms_arena_take_raw(r->arena, axis->n, sizeof *twins);
    if (twins == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = 0; i < axis->n; i++)
        twins[i] = (twin){axis->values[i], i};
    qsort(twins, axis->n, sizeof *twins, by_value);
    for (uint32_t i = 1; i < axis->n; i++)
        if (strcmp(twins[i - 1].value, twins[i].value) == 0)
            return FAIL(r, r->places[twins[i].order],
                        "leave one of the two out",
                        "\"%s\" has the value \"%.*s\" twice", axis->key, SHOWN,
                        twins[i].value);
    return MS_OK;
}

static ms_err read_values(reader *r)
{
    const char *list = r->text + r->at;
    uint32_t n = 0;
    bool of_lists = r->row != NULL && r->row->has_lists;
    r->separator = of_lists || strchr(list, ';') != NULL ? ';' : ',';
    const char between[2] = {r->separator, '\0'};
    for (bool last = false; !last; n++) {
        size_t length = strcspn(list, between), at = (size_t)(list - r->text);
        const char *word = ms_arena_text(r->arena, list, length);
        if (word == NULL)
            return ms_fail_nomem(r->fault);
        if (length == 0)
            return FAIL(r, at, "write it as --grid 'batch=1,2,4'",
                        "a value of \"%s\" is missing", r->axis->key);
        MS_TRY(is_range(r, word) ? read_range(r, at, word)
                                 : read_word(r, at, word));
        list += length + (list[length] != '\0');
        last = *list == '\0' && (r->separator == ';' || list[-1] != ',');
    }
    return n > 1 ? check_twice(r) : MS_OK; /* a single range repeats no value */
}

/* ---- the grid ------------------------------------------------------------ */

static ms_err check_key_twice(const reader *r, const ms_grid *grid)
{
    for (uint32_t i = 0; i < grid->n_axes; i++)
        if (is_key(r, grid->axes[i].key))
            return FAIL(r, 0, "join the two lists",
                        "there are two grids of \"%s\"", r->axis->key);
    return MS_OK;
}

/* Strides are found from the last axis back, which varies fastest. */
static ms_err multiply(ms_grid *grid, ms_fault *fault)
{
    uint64_t specs = 1;
    grid->n_points = 1;
    for (uint32_t a = grid->n_axes; a-- > 0;) {
        ms_axis *axis = &grid->axes[a];
        axis->stride = grid->n_points;
        axis->spec_stride = (uint32_t)specs;
        /* at most 10^7 times 10^8: no overflow */
        grid->n_points *= axis->n;
        specs *= axis->specs != NULL ? axis->n : 1;
        if (grid->n_points > MS_GRID_POINTS || specs > MS_GRID_SPECS)
            return ms_fail(
                fault, MS_EUSAGE, "--grid", "leave out values, or sweep a part",
                "the grid has more than %s %s",
                ms_quantity_count(specs > MS_GRID_SPECS ? MS_GRID_SPECS
                                                        : MS_GRID_POINTS)
                    .s,
                specs > MS_GRID_SPECS ? "combinations of policies" : "points");
    }
    grid->n_specs = (uint32_t)specs;
    return MS_OK;
}

static uint32_t spec_at(const ms_axis *axis, uint32_t index)
{
    return index / axis->spec_stride % axis->n;
}

static ms_err join(const ms_grid *grid, uint32_t index, const ms_job *base,
                   ms_spec *spec, ms_fault *fault)
{
    *spec = base->spec;
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        const ms_axis *axis = &grid->axes[a];
        if (axis->specs != NULL)
            MS_TRY(
                ms_spec_join(&axis->specs[spec_at(axis, index)], spec, fault));
    }
    return MS_OK;
}

/* Two keys may name the same policy, or policy and a key. */
static ms_err check_specs(const ms_grid *grid, const ms_job *base,
                          ms_fault *fault)
{
    ms_spec spec;
    for (uint32_t i = 0; i < grid->n_specs; i++) {
        ms_fault inner = {.caret = -1};
        if (join(grid, i, base, &spec, &inner) != MS_OK)
            return ms_fail(fault, MS_EUSAGE, "--grid",
                           "say it with one of the keys", "%s", inner.what);
    }
    return MS_OK;
}

ms_err ms_grid_read(const ms_arguments *arguments, const ms_job *base,
                    ms_arena *arena, ms_grid *grid, ms_fault *fault)
{
    *grid = (ms_grid){.axes = ms_arena_take(arena, arguments->n_given + 1,
                                            sizeof *grid->axes)};
    if (grid->axes == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        if (given->option->id != MS_OPTION_GRID)
            continue;
        reader r = {.text = given->value,
                    .length = strlen(given->value),
                    .base = base,
                    .arena = arena,
                    .axis = &grid->axes[grid->n_axes],
                    .fault = fault};
        MS_TRY(read_key(&r));
        MS_TRY(check_key_twice(&r, grid));
        MS_TRY(read_values(&r));
        grid->n_axes++;
    }
    MS_TRY(multiply(grid, fault));
    return check_specs(grid, base, fault);
}

uint32_t ms_grid_index(const ms_grid *grid, uint64_t point, uint32_t axis)
{
    const ms_axis *row = &grid->axes[axis];
    return (uint32_t)(point / row->stride % row->n);
}

const char *ms_grid_value(const ms_grid *grid, uint64_t point, uint32_t axis)
{
    return grid->axes[axis].values[ms_grid_index(grid, point, axis)];
}

uint32_t ms_grid_spec_index(const ms_grid *grid, uint64_t point)
{
    uint32_t index = 0;
    for (uint32_t a = 0; a < grid->n_axes && grid->n_specs > 1; a++)
        if (grid->axes[a].specs != NULL)
            index += ms_grid_index(grid, point, a) * grid->axes[a].spec_stride;
    return index;
}

void ms_grid_spec(const ms_grid *grid, uint32_t index, const ms_job *base,
                  ms_spec *spec)
{
    ms_err err = join(grid, index, base, spec, &(ms_fault){.caret = -1});
    assert(err == MS_OK); /* or ms_grid_read had failed */
    (void)err;
}

ms_err ms_grid_job(const ms_grid *grid, uint64_t point, const ms_job *base,
                   ms_arena *arena, ms_job *job, ms_fault *fault)
{
    *job = *base;
    ms_grid_spec(grid, ms_grid_spec_index(grid, point), base, &job->spec);
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        const ms_axis *axis = &grid->axes[a];
        uint32_t i = ms_grid_index(grid, point, a);
        if (axis->devices != NULL) {
            job->device = &axis->devices[i];
            job->device_given = true;
        } else if (axis->specs == NULL) {
            MS_TRY(
                ms_settings_put(job, axis->key, axis->values[i], arena, fault));
        }
    }
    return MS_OK;
}
