/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/curvefit.h"
#include "graphs/machines/times/kerneltime.h"
#include "sim/replay/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL_BYTES 65536.0 /* a kernel of fewer takes what any does */
#define FOLD 4.0            /* of sizes that a point stands for */
#define MOST_POINTS 32u

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, uint32_t n)
{
    qsort(numbers, n, sizeof *numbers, compare_numbers);
    return n % 2 > 0 ? numbers[n / 2]
                     : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

static double rounded(double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.4g", value);
    return strtod(digits, NULL);
}

/* ---- medians ------------------------------------------------------------- */

typedef double number_of(const ms_device *device, const ms_measured *row);

static double rate(const ms_device *device, const ms_measured *row)
{
    (void)device;
    return 1e9 * row->bytes / row->ns;
}

static double pageable_share(const ms_device *device, const ms_measured *row)
{
    return rate(device, row) /
           (row->to_host ? device->d2h_bytes_per_s : device->h2d_bytes_per_s);
}

static double time_of(const ms_device *device, const ms_measured *row)
{
    (void)device;
    return row->ns;
}

/* The median over the fitted rows of a kind; 0: there are none. */
static ms_err find_median(const ms_measurements *all, const ms_device *device,
                          ms_rate_kind kind, number_of *of, double *found,
                          ms_fault *fault)
{
    uint32_t n = 0;
    double *numbers = ms_arena_take(all->arena, all->n, sizeof *numbers);
    if (numbers == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < all->n; i++)
        if (all->rows[i].kind == kind && !all->rows[i].is_kept_back)
            numbers[n++] = of(device, &all->rows[i]);
    *found = n > 0 ? median(numbers, n) : 0;
    return MS_OK;
}

/* What a kernel takes that moves next to nothing: where one was measured. */
static ms_err fit_gap(const ms_measurements *all, ms_device *device,
                      ms_fault *fault)
{
    uint32_t n = 0;
    double *gaps = ms_arena_take(all->arena, all->n, sizeof *gaps);
    if (gaps == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < all->n; i++) {
        const ms_measured *row = &all->rows[i];
        if (row->is_kept_back || row->kind < MS_RATE_POINTWISE ||
            row->kind > MS_RATE_COPY || row->bytes > SMALL_BYTES)
            continue;
        double bytes_s = ms_kerneltime_bytes_s(
            device, row->kind - MS_RATE_POINTWISE, row->bytes);
        gaps[n++] = row->ns - 1e9 * bytes_s;
    }
    if (n == 0)
        return MS_OK;
    double gap_ns = rounded(median(gaps, n));
    if (gap_ns >= 10)
        device->kernel_ns = (uint64_t)gap_ns;
    return MS_OK;
}

ms_err ms_curvefit_rates(const ms_measurements *all, ms_device *device,
                         ms_fault *fault)
{
    double h2d = 0, d2h = 0, share = 0, launch_ns = 0;
    MS_TRY(find_median(all, device, MS_RATE_TO_DEVICE, rate, &h2d, fault));
    MS_TRY(find_median(all, device, MS_RATE_TO_HOST, rate, &d2h, fault));
    if (h2d > 0)
        device->h2d_bytes_per_s = h2d;
    if (d2h > 0)
        device->d2h_bytes_per_s = d2h;
    MS_TRY(find_median(all, device, MS_RATE_PAGEABLE, pageable_share, &share,
                       fault));
    if (share > 0)
        device->pageable_share = share < 1 ? share : 1;
    MS_TRY(
        find_median(all, device, MS_RATE_LAUNCH, time_of, &launch_ns, fault));
    if (launch_ns >= 10)
        device->launch_ns = (uint64_t)(launch_ns + 0.5);
    return fit_gap(all, device, fault);
}

/* ---- curves -------------------------------------------------------------- */

/* Adds a point unless a larger transfer would take less time. */
static void add_point(ms_curve *curve, ms_curve_point *points, double bytes,
                      double bytes_per_s)
{
    const ms_curve_point *last = &points[curve->n > 0 ? curve->n - 1 : 0];
    /* As the file says it, in KiB and GB/s. */
    bytes = floor(rounded(bytes / 1024) * 1024);
    bytes_per_s = rounded(bytes_per_s / 1e9) * 1e9;
    if (curve->n == MOST_POINTS || bytes < 2 || bytes_per_s < 1e6)
        return;
    if (curve->n > 0 &&
        (bytes <= (double)last->bytes ||
         bytes / bytes_per_s < (double)last->bytes / last->bytes_per_s))
        return;
    points[curve->n++] = (ms_curve_point){(uint64_t)bytes, bytes_per_s};
}

/* The rows from `from` on whose sizes lie within one fold. */
static uint32_t fold_end(const ms_measured *const *rows, uint32_t from,
                         uint32_t n)
{
    uint32_t to = from + 1;
    while (to < n && rows[to]->bytes < FOLD * rows[from]->bytes)
        to++;
    return to;
}

/* rows: in the order of their sizes.  gap_ns: of their times that is not of
 * their bytes; share: of the bytes that go by. */
static ms_err make_curve(const ms_measurements *all,
                         const ms_measured *const *rows, uint32_t n,
                         double gap_ns, double share, ms_curve *curve,
                         ms_fault *fault)
{
    ms_curve_point *points =
        ms_arena_take(all->arena, MOST_POINTS, sizeof *points);
    double *rates = ms_arena_take(all->arena, n, sizeof *rates);
    if (points == NULL || rates == NULL)
        return ms_fail_nomem(fault);
    curve->n = 0;
    curve->points = points;
    for (uint32_t from = 0, to; from < n; from = to) {
        to = fold_end(rows, from, n);
        for (uint32_t i = from; i < to; i++)
            rates[i] = 1e9 * share * rows[i]->bytes /
                       fmax(rows[i]->ns - gap_ns, rows[i]->ns / 10);
        add_point(curve, points, sqrt(rows[from]->bytes * rows[to - 1]->bytes),
                  median(rates + from, to - from));
    }
    return MS_OK;
}

static int compare_bytes(const void *a, const void *b)
{
    const ms_measured *x = *(const ms_measured *const *)a,
                      *y = *(const ms_measured *const *)b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The fitted rows of a kind, and of so many ranks (0: any), by size; of what
 * moves next to nothing a rate says nothing. */
static const ms_measured **rows_of(const ms_measurements *all,
                                   ms_rate_kind kind, uint32_t ranks,
                                   uint32_t *n)
{
    const ms_measured **rows =
        ms_arena_take(all->arena, all->n, sizeof(const ms_measured *));
    *n = 0;
    if (rows == NULL)
        return NULL;
    for (uint32_t i = 0; i < all->n; i++)
        if (all->rows[i].kind == kind && !all->rows[i].is_kept_back &&
            (ranks == 0 ? all->rows[i].bytes > SMALL_BYTES
                        : all->rows[i].ranks == ranks))
            rows[(*n)++] = &all->rows[i];
    qsort(rows, *n, sizeof(const ms_measured *), compare_bytes);
    return rows;
}

/* Rows that are as they are predicted need no curve. */
static bool is_off(const ms_device *device, const ms_measured *const *rows,
                   uint32_t n, bool in_step)
{
    for (uint32_t i = 0; i < n; i++)
        if (fabs(ms_measured_predict(device, rows[i], in_step) / rows[i]->ns -
                 1) > 0.002)
            return true;
    return false;
}

ms_err ms_curvefit_memory(const ms_measurements *all, ms_device *device,
                          bool changed[MS_N_MEMORY_KINDS], ms_fault *fault)
{
    for (uint32_t kind = 0; kind < MS_N_MEMORY_KINDS; kind++) {
        uint32_t n;
        const ms_measured **rows =
            rows_of(all, (ms_rate_kind)(MS_RATE_POINTWISE + kind), 0, &n);
        ms_curve *curve = ms_arena_take(all->arena, 1, sizeof *curve);
        if (rows == NULL || curve == NULL)
            return ms_fail_nomem(fault);
        if (!is_off(device, rows, n, all->in_step))
            continue;
        MS_TRY(make_curve(all, rows, n, (double)device->kernel_ns, 1, curve,
                          fault));
        if (curve->n == 0)
            continue;
        device->memory_curves[kind] = curve;
        device->has_memory_curves = changed[kind] = true;
    }
    return MS_OK;
}

/* The curves of the device but for that of so many ranks, and one more. */
static ms_err put_curve(const ms_measurements *all, ms_device *device,
                        const ms_curve *curve, ms_fault *fault)
{
    uint32_t n = 0;
    ms_curve *curves =
        ms_arena_take(all->arena, device->n_curves + 1, sizeof *curves);
    if (curves == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < device->n_curves; i++)
        if (device->curves[i].ranks != curve->ranks ||
            device->curves[i].kind != curve->kind)
            curves[n++] = device->curves[i];
    curves[n++] = *curve;
    device->curves = curves;
    device->n_curves = n;
    return MS_OK;
}

ms_err ms_curvefit_links(const ms_measurements *all, ms_device *device,
                         bool *changed, ms_fault *fault)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const ms_measured *row = &all->rows[i];
        uint32_t n;
        ms_curve curve = {.kind = MS_ALL_REDUCE,
                          .ranks = row->ranks,
                          .ranks_per_node = device->gpus_per_node};
        if (row->kind != MS_RATE_ALL_REDUCE || row->is_kept_back)
            continue;
        const ms_measured **rows =
            rows_of(all, MS_RATE_ALL_REDUCE, row->ranks, &n);
        if (rows == NULL)
            return ms_fail_nomem(fault);
        if (!is_off(device, rows, n, all->in_step))
            continue;
        MS_TRY(make_curve(all, rows, n, 0, 2 * (1 - 1.0 / row->ranks), &curve,
                          fault));
        if (curve.n == 0)
            continue;
        MS_TRY(put_curve(all, device, &curve, fault));
        *changed = true;
    }
    return MS_OK;
}
