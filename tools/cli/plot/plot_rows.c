/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Headings and capacities that the rows of a sweep give for their figures. */

#include "plots/plots.h"
#include "tools/cli/plot/plot.h"
#include "tools/terminal/quantity.h"

#include <string.h>

/* The model that all rows with numbers have, or NULL. */
static const char *common_model(const ms_rows *rows)
{
    const char *model = NULL;
    for (uint32_t i = 0; i < rows->n; i++) {
        const ms_sweep_row *row = &rows->rows[i];
        if (!row->has_numbers || row->model == NULL || row->model[0] == '\0')
            continue;
        if (model != NULL && strcmp(model, row->model) != 0)
            return NULL;
        model = row->model;
    }
    return model;
}

/* The number of GPUs that all rows have; 0: they differ, or do not have it. */
static uint64_t common_gpus(const ms_rows *rows)
{
    uint64_t gpus = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const ms_sweep_row *row = &rows->rows[i];
        if (!row->has_numbers)
            continue;
        if (gpus != 0 && row->job_gpus != gpus)
            return 0;
        gpus = row->job_gpus;
    }
    return gpus;
}

bool ms_plot_rows_have_gpus(const ms_plot *plot)
{
    bool several = false;
    for (uint32_t i = 0; i < plot->rows.n; i++)
        several |= plot->rows.rows[i].job_gpus > 1;
    return several;
}

const char *ms_plot_rows_title(const ms_plot *plot, const char *what)
{
    const char *model = common_model(&plot->rows);
    uint64_t gpus = common_gpus(&plot->rows);
    ms_text title = {.arena = plot->arena};
    ms_text_add(&title, "%s%s", what,
                ms_plot_rows_have_gpus(plot) ? ", per GPU" : "");
    if (model != NULL) {
        ms_text_add(&title, ": ");
        ms_text_put(&title, model, strlen(model));
    }
    if (model != NULL && gpus > 1)
        ms_text_add(&title, " on %llu GPUs", (unsigned long long)gpus);
    return title.failed ? NULL : title.bytes;
}

ms_err ms_plot_rows_setup(const ms_plot *plot, ms_text *text, ms_fault *fault)
{
    const ms_rows *rows = &plot->rows;
    uint32_t n = 0;
    const char **setups =
        ms_arena_take(plot->arena, rows->n + 1, sizeof(const char *));
    if (setups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < rows->n; i++)
        if (rows->rows[i].has_numbers && rows->rows[i].setup != NULL)
            setups[n++] = rows->rows[i].setup;
    ms_headings_common(setups, n, text);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* The capacity: that of the command line, or else that of the row. */
ms_limit ms_plot_rows_limit(const ms_plot *plot, const ms_sweep_row *row)
{
    uint64_t capacity = row->capacity_bytes, context = row->context_bytes;
    if (plot->capacity_bytes > 0)
        return (ms_limit){"", plot->capacity_bytes, plot->usable_bytes};
    return (ms_limit){"", capacity,
                      capacity > context ? capacity - context : 0};
}

/* ---- policies that are keys ---------------------------------------------- */

static bool is_key(const ms_rows *rows, const char *name, size_t length)
{
    for (uint32_t i = 0; i < rows->n_keys; i++)
        if (strlen(rows->keys[i]) == length &&
            memcmp(rows->keys[i], name, length) == 0)
            return true;
    return false;
}

/* "zero:1" of "tensor:4+zero:1" where tensor is a key. */
static const char *left_of(const ms_plot *plot, const char *policy)
{
    ms_text left = {.arena = plot->arena};
    for (bool more = true; more;) {
        size_t length = strcspn(policy, "+");
        if (!is_key(&plot->rows, policy, strcspn(policy, ":+"))) {
            ms_text_put(&left, "+", left.length > 0);
            ms_text_put(&left, policy, length);
        }
        more = policy[length] == '+';
        policy += length + more;
    }
    if (left.length == 0)
        ms_text_put(&left, "none", 4);
    return left.failed ? NULL : left.bytes;
}

ms_err ms_plot_rows_part(ms_plot *plot, ms_fault *fault)
{
    bool has_policies = false;
    for (uint32_t i = 0; i < plot->rows.n_keys; i++)
        has_policies |= strchr(plot->rows.keys[i], '.') == NULL;
    for (uint32_t i = 0; i < plot->rows.n && has_policies; i++) {
        ms_sweep_row *row = &plot->rows.rows[i];
        row->policy = left_of(plot, row->policy);
        if (row->policy == NULL)
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

/* ---- capacities as lines ------------------------------------------------- */

#define MOST_LIMITS 4u

/* "capacity 79.18 GiB less context 0.49 to 2.05 GiB" */
static const char *name_of(const ms_plot *plot, const ms_limit *low,
                           const ms_limit *high)
{
    ms_text name = {.arena = plot->arena};
    uint64_t most = low->capacity_bytes - low->usable_bytes;
    uint64_t least = high->capacity_bytes - high->usable_bytes;
    ms_text_add(&name, "capacity");
    if (low->capacity_bytes != high->capacity_bytes) {
        ms_text_add(&name, " less context");
        return name.failed ? NULL : name.bytes;
    }
    ms_text_add(&name, " %s", ms_quantity_size(low->capacity_bytes).s);
    if (most > 0)
        ms_text_add(&name, " less context ");
    if (least < most)
        ms_text_add(&name, "%s to ",
                    ms_quantity_size_as(least, low->capacity_bytes).s);
    if (most > 0)
        ms_text_add(&name, "%s",
                    ms_quantity_size_as(most, low->capacity_bytes).s);
    return name.failed ? NULL : name.bytes;
}

static bool are_equal(const ms_limit *a, const ms_limit *b)
{
    return a->capacity_bytes == b->capacity_bytes &&
           a->usable_bytes == b->usable_bytes;
}

typedef struct limits {
    const ms_plot *plot;
    const double *x; /* by row */
    double *at;      /* x values that have a limit, ascending */
    ms_limit *limits;
    uint32_t n;
    bool is_line; /* every x has a limit */
} limits;

/* Adds the limit of an x, in order of x. */
static void add_limit(limits *l, double x, const ms_limit *limit)
{
    uint32_t at = l->n;
    for (uint32_t i = 0; i < l->n; i++)
        if (!(l->at[i] < x) && !(l->at[i] > x)) {
            l->is_line &= are_equal(&l->limits[i], limit);
            return;
        }
    for (; at > 0 && l->at[at - 1] > x; at--) {
        l->at[at] = l->at[at - 1];
        l->limits[at] = l->limits[at - 1];
    }
    l->at[at] = x;
    l->limits[at] = *limit;
    l->n++;
}

static ms_err find_limits(limits *l, ms_fault *fault)
{
    const ms_rows *rows = &l->plot->rows;
    l->at = ms_arena_take(l->plot->arena, rows->n, sizeof *l->at);
    l->limits = ms_arena_take(l->plot->arena, rows->n, sizeof *l->limits);
    l->is_line = true;
    if (l->at == NULL || l->limits == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < rows->n; i++) {
        ms_limit limit = ms_plot_rows_limit(l->plot, &rows->rows[i]);
        if (rows->rows[i].has_numbers && limit.usable_bytes > 0)
            add_limit(l, l->x[i], &limit);
    }
    return MS_OK;
}

static ms_err put_series(const ms_plot *plot, const ms_limit *of,
                         const double *x, uint32_t n, ms_series *series,
                         ms_fault *fault)
{
    const ms_limit *low = of, *high = of;
    uint64_t *y = ms_arena_take(plot->arena, n, sizeof *y);
    for (uint32_t i = 0; i < n && y != NULL; i++) {
        y[i] = of[i].usable_bytes;
        low = of[i].usable_bytes < low->usable_bytes ? &of[i] : low;
        high = of[i].usable_bytes > high->usable_bytes ? &of[i] : high;
    }
    *series = (ms_series){.name = name_of(plot, low, high),
                          .n = are_equal(low, high) ? 1 : n,
                          .x = x,
                          .y = y};
    return y != NULL && series->name != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* Where lines have different limits at the same x there is no single curve:
 * each capacity becomes a straight line, less the largest context. */
static ms_err put_apart(const ms_plot *plot, const double *x,
                        ms_series **series, uint32_t *n, ms_fault *fault)
{
    const ms_rows *rows = &plot->rows;
    ms_limit low[MOST_LIMITS], high[MOST_LIMITS];
    for (uint32_t i = 0; i < rows->n; i++) {
        ms_limit limit = ms_plot_rows_limit(plot, &rows->rows[i]);
        uint32_t at = 0;
        while (at < *n && low[at].capacity_bytes != limit.capacity_bytes)
            at++;
        if (!rows->rows[i].has_numbers || limit.usable_bytes == 0 ||
            at == MOST_LIMITS)
            continue;
        if (at == *n)
            low[at] = high[at] = limit, ++*n;
        if (limit.usable_bytes < low[at].usable_bytes)
            low[at] = limit;
        if (limit.usable_bytes > high[at].usable_bytes)
            high[at] = limit;
    }
    for (uint32_t at = 0; at < *n; at++) {
        MS_TRY(put_series(plot, &low[at], x, 1, &(*series)[at], fault));
        (*series)[at].name = name_of(plot, &low[at], &high[at]);
        if ((*series)[at].name == NULL)
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

ms_err ms_plot_rows_limits(const ms_plot *plot, const double *x,
                           ms_series **series, uint32_t *n, ms_fault *fault)
{
    limits l = {.plot = plot, .x = x};
    *n = 0;
    *series = ms_arena_take(plot->arena, MOST_LIMITS, sizeof **series);
    if (*series == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(find_limits(&l, fault));
    if (!l.is_line)
        return put_apart(plot, x, series, n, fault);
    if (l.n == 0)
        return MS_OK;
    *n = 1;
    return put_series(plot, l.limits, l.at, l.n, &(*series)[0], fault);
}
