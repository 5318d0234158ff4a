/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A curve from the rows of a sweep: one of its keys becomes x, the others
 * lines. */

#include "plots/plots.h"
#include "policies/common/policy.h"
#include "sim/base/size.h"
#include "sim/report.h"
#include "tools/cli/plot/plot.h"
#include "tools/options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* stands for the policy among the keys; it has a column of its own */
#define POLICY MS_NONE
#define MOST_KEYS 16u   /* keys that tell lines apart */
#define MOST_WORDS 100u /* on an x axis */

/* The values of --y. */
static const struct {
    const char *word, *name;
    size_t offset;
    bool is_time, is_capped; /* capped: the capacity is drawn as a line */
} values[] = {
    {"peak", "peak device memory", offsetof(ms_sweep_row, peak_allocated_bytes),
     false, true},
    {"reserved", "reserved device memory",
     offsetof(ms_sweep_row, peak_reserved_bytes), false, true},
    {"host", "peak host memory", offsetof(ms_sweep_row, host_peak_bytes), false,
     false},
    {"step", "step time", offsetof(ms_sweep_row, step_ns), true, false},
    {"recompute", "time to recompute", offsetof(ms_sweep_row, recompute_ns),
     true, false},
    {"stall", "wait for copies", offsetof(ms_sweep_row, stall_ns), true, false},
    {"comm", "wait for comm", offsetof(ms_sweep_row, exposed_comm_ns), true,
     false},
};
#define N_VALUES (sizeof values / sizeof values[0])

/* ---- keys ---------------------------------------------------------------- */

static const char *value_of(const ms_sweep_row *row, uint32_t key)
{
    return key == POLICY ? row->policy : row->values[key];
}

/* "batch" for "training.batch". */
static const char *short_key(const char *key)
{
    static const char group[] = "training.";
    bool has = strncmp(key, group, sizeof group - 1) == 0;
    return has ? key + sizeof group - 1 : key;
}

static const char *key_name(const ms_rows *rows, uint32_t key)
{
    return key == POLICY ? "policy" : short_key(rows->keys[key]);
}

static bool varies(const ms_rows *rows, uint32_t key)
{
    for (uint32_t i = 1; i < rows->n; i++)
        if (strcmp(value_of(&rows->rows[i], key),
                   value_of(&rows->rows[0], key)) != 0)
            return true;
    return false;
}

/* Reads a number, or a size with its unit as bytes; false: it is neither. */
static bool number_of(const char *text, double *number, bool *is_size)
{
    ms_decimal decimal;
    ms_fault fault = {0};
    uint64_t bytes;
    *is_size = false;
    if (ms_size_decimal(text, &decimal) && *decimal.end == '\0') {
        *number = (double)decimal.whole +
                  (double)decimal.fraction / (double)decimal.scale;
        return true;
    }
    *is_size = ms_size_bytes(text, "", &bytes, &fault) == MS_OK;
    if (*is_size)
        *number = (double)bytes;
    return *is_size;
}

/* Is every value a number; and are they sizes? */
static bool is_numeric(const ms_rows *rows, uint32_t key, bool *sizes)
{
    double number;
    *sizes = false;
    for (uint32_t i = 0; i < rows->n; i++) {
        bool is_size;
        if (!number_of(value_of(&rows->rows[i], key), &number, &is_size))
            return false;
        *sizes |= is_size;
    }
    return true;
}

static ms_err find_key(const ms_rows *rows, const char *word, size_t length,
                       const char *option, uint32_t *key, ms_fault *fault)
{
    char hint[384] = "keys: policy";
    *key = POLICY;
    if (length == 6 && memcmp(word, "policy", 6) == 0)
        return MS_OK;
    for (uint32_t i = 0; i < rows->n_keys; i++) {
        const char *name = short_key(rows->keys[i]);
        *key = i;
        if ((strlen(name) == length && memcmp(name, word, length) == 0) ||
            (strlen(rows->keys[i]) == length &&
             memcmp(rows->keys[i], word, length) == 0))
            return MS_OK;
        size_t used = strlen(hint);
        snprintf(hint + used, sizeof hint - used, ", %s", name);
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint,
                   "option \"--%s\": the rows have no key \"%.*s\"", option,
                   (int)length, word);
}

/* ---- the part that each key plays
 * -------------------------------------------- */

struct layout {
    uint32_t x;
    bool is_number, is_size; /* of x */
    uint32_t lines[MOST_KEYS], n_lines;
    size_t value; /* its row in the table of --y */
};

/* The first key that varies and is a number, else the first one that varies;
 * POLICY where none does. */
static uint32_t default_x(const ms_rows *rows)
{
    uint32_t any = POLICY;
    bool sizes;
    for (uint32_t i = 0; i < rows->n_keys; i++) {
        if (!varies(rows, i))
            continue;
        if (is_numeric(rows, i, &sizes))
            return i;
        if (any == POLICY)
            any = i;
    }
    return any;
}

static void default_lines(const ms_rows *rows, struct layout *layout)
{
    layout->n_lines = 0;
    if (layout->x != POLICY && varies(rows, POLICY))
        layout->lines[layout->n_lines++] = POLICY;
    for (uint32_t i = 0; i < rows->n_keys && layout->n_lines < MOST_KEYS; i++)
        if (i != layout->x && varies(rows, i))
            layout->lines[layout->n_lines++] = i;
}

static ms_err read_lines(const ms_plot *plot, struct layout *layout,
                         ms_fault *fault)
{
    const char *list = ms_options_value(plot->arguments, MS_OPTION_SERIES);
    if (list == NULL) {
        default_lines(&plot->rows, layout);
        return MS_OK;
    }
    for (bool more = true; more;) {
        size_t length = strcspn(list, ",");
        if (layout->n_lines == MOST_KEYS)
            return ms_fail(fault, MS_EUSAGE, NULL, "name fewer",
                           "option \"--series\" names too many keys");
        MS_TRY(find_key(&plot->rows, list, length, "series",
                        &layout->lines[layout->n_lines++], fault));
        more = list[length] == ',';
        list += length + more;
    }
    return MS_OK;
}

static ms_err read_layout(const ms_plot *plot, struct layout *layout,
                          ms_fault *fault)
{
    const char *x = ms_options_value(plot->arguments, MS_OPTION_AXIS);
    const char *y = ms_options_value(plot->arguments, MS_OPTION_VALUE);
    *layout = (struct layout){.x = default_x(&plot->rows)};
    if (x != NULL)
        MS_TRY(find_key(&plot->rows, x, strlen(x), "x", &layout->x, fault));
    while (y != NULL && strcmp(values[layout->value].word, y) != 0)
        layout->value++;
    layout->is_number = is_numeric(&plot->rows, layout->x, &layout->is_size);
    return read_lines(plot, layout, fault);
}

/* ---- names of lines ------------------------------------------------------ */

/* "checkpoint:sqrt, batch=8": a number needs its key, a policy does not. */
static void put_value(const ms_rows *rows, const ms_sweep_row *row,
                      uint32_t key, ms_text *text)
{
    const char *before = text->length > 0 ? ", " : "";
    if (key == POLICY)
        ms_text_add(text, "%s%s", before, row->policy);
    else
        ms_text_add(text, "%s%s=%s", before, key_name(rows, key),
                    row->values[key]);
}

const char *ms_plot_sweep_name(const ms_plot *plot, const ms_sweep_row *row)
{
    const ms_rows *rows = &plot->rows;
    ms_text text = {.arena = plot->arena};
    put_value(rows, row, POLICY, &text);
    for (uint32_t i = 0; i < rows->n_keys; i++)
        put_value(rows, row, i, &text);
    return text.failed ? NULL : text.bytes;
}

static bool are_one_line(const struct layout *layout, const ms_sweep_row *a,
                         const ms_sweep_row *b)
{
    for (uint32_t i = 0; i < layout->n_lines; i++)
        if (strcmp(value_of(a, layout->lines[i]),
                   value_of(b, layout->lines[i])) != 0)
            return false;
    return true;
}

/* Finds a row of each line, in the order in which the lines appear; returns at
 * most one more than there may be. */
static uint32_t find_lines(const ms_rows *rows, const struct layout *layout,
                           const ms_sweep_row *first[MS_CURVES_MOST])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t at = 0;
        while (at < n && !are_one_line(layout, first[at], &rows->rows[i]))
            at++;
        if (at == MS_CURVES_MOST)
            return MS_CURVES_MOST + 1;
        if (at == n)
            first[n++] = &rows->rows[i];
    }
    return n;
}

bool ms_plot_sweep_has_curve(const ms_plot *plot)
{
    const ms_sweep_row *first[MS_CURVES_MOST];
    struct layout layout = {.x = default_x(&plot->rows)};
    bool sizes;
    if (layout.x == POLICY || !is_numeric(&plot->rows, layout.x, &sizes))
        return false;
    default_lines(&plot->rows, &layout);
    return find_lines(&plot->rows, &layout, first) <= MS_CURVES_MOST;
}

/* ---- lines --------------------------------------------------------------- */

typedef struct spot {
    double x;
    const ms_sweep_row *row;
} spot;

typedef struct curve {
    const ms_plot *plot;
    struct layout layout;
    double unit; /* what an x that is a size is divided by */
    const char *words[MOST_WORDS];
    uint32_t n_words;
    ms_series series[MS_CURVES_MOST];
    const ms_sweep_row *first[MS_CURVES_MOST];
    uint32_t n;
    double *x; /* by row */
} curve;

static int by_x(const void *a, const void *b)
{
    const spot *p = a, *q = b;
    if (p->x < q->x || p->x > q->x)
        return p->x < q->x ? -1 : 1;
    return p->row < q->row ? -1 : p->row > q->row;
}

/* Words on an x axis are numbered in the order in which the rows have them. */
static ms_err word_of(curve *c, const char *word, double *x, ms_fault *fault)
{
    uint32_t i = 0;
    while (i < c->n_words && strcmp(c->words[i], word) != 0)
        i++;
    *x = i;
    if (i == MOST_WORDS)
        return ms_fail(fault, MS_EUSAGE, NULL, "choose another --x",
                       "\"%s\" has more than %u values, which are no numbers",
                       key_name(&c->plot->rows, c->layout.x), MOST_WORDS);
    if (i == c->n_words)
        c->words[c->n_words++] = word;
    return MS_OK;
}

static ms_err x_of(curve *c, const ms_sweep_row *row, double *x,
                   ms_fault *fault)
{
    bool is_size;
    const char *value = value_of(row, c->layout.x);
    if (!c->layout.is_number)
        return word_of(c, value, x, fault);
    number_of(value, x, &is_size);
    *x /= c->unit;
    return MS_OK;
}

/* Two rows of a line have the same x: names a key that tells them apart, if
 * there is one. */
static ms_err fail_double(const curve *c, const spot *a, const spot *b,
                          ms_fault *fault)
{
    const ms_rows *rows = &c->plot->rows;
    uint32_t apart = MS_NONE - 1;
    char hint[128] = "leave one of the two out";
    if (strcmp(a->row->policy, b->row->policy) != 0)
        apart = POLICY;
    for (uint32_t i = 0; i < rows->n_keys && apart == MS_NONE - 1; i++)
        if (i != c->layout.x &&
            strcmp(a->row->values[i], b->row->values[i]) != 0)
            apart = i;
    if (a->row->point == b->row->point && apart == MS_NONE - 1)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the files out",
                       "point %llu of the sweep is in the files twice",
                       (unsigned long long)a->row->point);
    if (apart != MS_NONE - 1)
        snprintf(hint, sizeof hint, "they differ in %.60s: add it to --series",
                 key_name(rows, apart));
    return ms_fail(fault, MS_EUSAGE, NULL, hint,
                   "points %llu and %llu of one line have the same %s=%s",
                   (unsigned long long)a->row->point,
                   (unsigned long long)b->row->point,
                   key_name(rows, c->layout.x), value_of(a->row, c->layout.x));
}

static ms_err fill_line(curve *c, uint32_t line, spot *spots, uint32_t n,
                        ms_fault *fault)
{
    ms_arena *arena = c->plot->arena;
    ms_series *series = &c->series[line];
    double *x = ms_arena_take(arena, n, sizeof *x);
    uint64_t *y = ms_arena_take(arena, n, sizeof *y);
    bool *fits = ms_arena_take(arena, n, sizeof *fits);
    if (x == NULL || y == NULL || fits == NULL)
        return ms_fail_nomem(fault);
    qsort(spots, n, sizeof *spots, by_x);
    for (uint32_t i = 0; i < n; i++) {
        const ms_sweep_row *row = spots[i].row;
        if (i > 0 && spots[i - 1].x >= spots[i].x)
            return fail_double(c, &spots[i - 1], &spots[i], fault);
        x[i] = spots[i].x;
        y[i] = MS_NO_LEVEL;
        fits[i] = row->fits;
        if (row->has_numbers)
            memcpy(&y[i], (const char *)row + values[c->layout.value].offset,
                   sizeof y[i]);
    }
    ms_text name = {.arena = arena};
    for (uint32_t i = 0; i < c->layout.n_lines; i++)
        put_value(&c->plot->rows, c->first[line], c->layout.lines[i], &name);
    if (name.failed)
        return ms_fail_nomem(fault);
    *series = (ms_series){.name = name.bytes != NULL ? name.bytes : "",
                          .n = n,
                          .x = x,
                          .y = y,
                          .fits = fits};
    series->family = series->name;
    if (varies(&c->plot->rows, POLICY))
        series->family = ms_figures_family(c->first[line]->policy, arena);
    return series->family != NULL ? MS_OK : ms_fail_nomem(fault);
}

static ms_err fill(curve *c, ms_fault *fault)
{
    const ms_rows *rows = &c->plot->rows;
    spot *spots = ms_arena_take(c->plot->arena, rows->n, sizeof *spots);
    c->x = ms_arena_take(c->plot->arena, rows->n, sizeof *c->x);
    if (spots == NULL || c->x == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t line = 0; line < c->n; line++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < rows->n; i++) {
            const ms_sweep_row *row = &rows->rows[i];
            if (!are_one_line(&c->layout, c->first[line], row))
                continue;
            spots[n].row = row;
            MS_TRY(x_of(c, row, &spots[n].x, fault));
            c->x[i] = spots[n++].x;
        }
        MS_TRY(fill_line(c, line, spots, n, fault));
    }
    return MS_OK;
}

/* Gives the lines the names of --label, in the order in which they appear. */
static ms_err label_lines(curve *c, ms_fault *fault)
{
    const ms_arguments *arguments = c->plot->arguments;
    uint32_t n = 0;
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        if (arguments->given[i].option->id != MS_OPTION_LABEL)
            continue;
        if (n < c->n)
            c->series[n].name = arguments->given[i].value;
        n++;
    }
    if (n == 0 || n == c->n)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--label",
                   "name each of them, in their order",
                   "there %s %u label%s for %u lines", n == 1 ? "is" : "are", n,
                   n == 1 ? "" : "s", c->n);
}

static ms_err find_series(curve *c, ms_fault *fault)
{
    const ms_rows *rows = &c->plot->rows;
    c->n = find_lines(rows, &c->layout, c->first);
    if (c->n > MS_CURVES_MOST)
        return ms_fail(
            fault, MS_EUSAGE, NULL, "leave rows out, or draw --figure pareto",
            "there are more than %u lines for one figure", MS_CURVES_MOST);
    return MS_OK;
}

/* ---- headings ------------------------------------------------------------ */

static const char *x_name(curve *c)
{
    const ms_rows *rows = &c->plot->rows;
    const char *name = key_name(rows, c->layout.x);
    double most = 0.0, number;
    bool is_size;
    c->unit = 1.0;
    if (!c->layout.is_number || !c->layout.is_size)
        return name;
    for (uint32_t i = 0; i < rows->n; i++)
        if (number_of(value_of(&rows->rows[i], c->layout.x), &number,
                      &is_size) &&
            number > most)
            most = number;
    bool giga = most >= 1073741824.0;
    c->unit = giga ? 1073741824.0 : 1048576.0;
    return ms_arena_format(c->plot->arena, "%s (%s)", name,
                           giga ? "GiB" : "MiB");
}

/* What all rows have in common. */
static ms_err put_subtitle(const curve *c, ms_text *text, ms_fault *fault)
{
    const ms_rows *rows = &c->plot->rows;
    ms_text setup = {.arena = c->plot->arena};
    MS_TRY(ms_plot_rows_setup(c->plot, &setup, fault));
    if (c->layout.x != POLICY && !varies(rows, POLICY))
        ms_text_add(text, "%s",
                    strcmp(rows->rows[0].policy, "none") == 0
                        ? "no policy"
                        : rows->rows[0].policy);
    for (uint32_t i = 0; i < rows->n_keys && setup.length == 0; i++)
        if (i != c->layout.x && !varies(rows, i))
            put_value(rows, &rows->rows[0], i, text);
    if (setup.length > 0)
        ms_text_add(text, "%s%s", text->length > 0 ? "; " : "", setup.bytes);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err put_headings(const curve *c, ms_drawing *drawing, ms_fault *fault)
{
    const ms_plot *plot = c->plot;
    const char *of_y = values[c->layout.value].name;
    ms_text subtitle = {.arena = plot->arena};
    MS_TRY(put_subtitle(c, &subtitle, fault));
    drawing->subtitle = subtitle.bytes != NULL ? subtitle.bytes : "";
    drawing->per_gpu = ms_plot_rows_have_gpus(plot);
    if (drawing->title != NULL)
        return MS_OK;
    const char *what =
        ms_arena_format(plot->arena, "%c%s against %s", of_y[0] - 'a' + 'A',
                        of_y + 1, key_name(&plot->rows, c->layout.x));
    drawing->title = what != NULL ? ms_plot_rows_title(plot, what) : NULL;
    return drawing->title != NULL ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_plot_sweep_curve(const ms_plot *plot, ms_fault *fault)
{
    curve c = {.plot = plot};
    MS_TRY(read_layout(plot, &c.layout, fault));
    MS_TRY(find_series(&c, fault));
    const char *name = x_name(&c);
    if (name == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(fill(&c, fault));
    MS_TRY(label_lines(&c, fault));
    ms_drawing drawing = plot->drawing;
    ms_series *limits = NULL;
    uint32_t n_limits = 0;
    if (values[c.layout.value].is_capped)
        MS_TRY(ms_plot_rows_limits(plot, c.x, &limits, &n_limits, fault));
    ms_curves curves = {.series = c.series,
                        .n = c.n,
                        .x_name = name,
                        .y_name = values[c.layout.value].name,
                        .is_time = values[c.layout.value].is_time,
                        .x_words = c.layout.is_number ? NULL : c.words,
                        .n_words = c.n_words,
                        .limits = limits,
                        .n_limits = n_limits};
    MS_TRY(put_headings(&c, &drawing, fault));
    return ms_figure_curve(&curves, &drawing, fault);
}
