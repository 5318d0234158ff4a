/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/measured.h"
#include "graphs/machines/communicators.h"
#include "graphs/machines/times/kerneltime.h"
#include "sim/replay/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK_SLACK                                                            \
    1.05 /* over the peak at the clock that it is printed for                  \
          */

const char *const ms_measured_names[MS_N_RATE_KINDS] = {
    [MS_RATE_PRODUCT] = "products",
    [MS_RATE_FP32_PRODUCT] = "products in fp32",
    [MS_RATE_FLASH_1] = "FlashAttention 1",
    [MS_RATE_FLASH_2] = "FlashAttention 2",
    [MS_RATE_FLASH_3] = "FlashAttention 3",
    [MS_RATE_EFFICIENT] = "xFormers' attention",
    [MS_RATE_POINTWISE] = "pointwise",
    [MS_RATE_NORM] = "norms",
    [MS_RATE_SOFTMAX] = "softmax",
    [MS_RATE_REDUCTION] = "reductions",
    [MS_RATE_LOOKUP] = "lookups",
    [MS_RATE_OPTIMIZER] = "optimizer",
    [MS_RATE_COPY] = "copies within",
    [MS_RATE_TO_DEVICE] = "copies to device",
    [MS_RATE_TO_HOST] = "copies to host",
    [MS_RATE_PAGEABLE] = "pageable copies",
    [MS_RATE_ALL_REDUCE] = "all-reduce",
    [MS_RATE_LAUNCH] = "launches",
};

const char *const ms_measured_words[MS_N_RATE_KINDS] = {
    [MS_RATE_PRODUCT] = "product",
    [MS_RATE_FP32_PRODUCT] = "fp32_product",
    [MS_RATE_FLASH_1] = "flash1",
    [MS_RATE_FLASH_2] = "flash2",
    [MS_RATE_FLASH_3] = "flash3",
    [MS_RATE_EFFICIENT] = "efficient",
    [MS_RATE_POINTWISE] = "pointwise",
    [MS_RATE_NORM] = "norm",
    [MS_RATE_SOFTMAX] = "softmax",
    [MS_RATE_REDUCTION] = "reduction",
    [MS_RATE_LOOKUP] = "lookup",
    [MS_RATE_OPTIMIZER] = "optimizer",
    [MS_RATE_COPY] = "copy",
    [MS_RATE_TO_DEVICE] = "h2d",
    [MS_RATE_TO_HOST] = "d2h",
    [MS_RATE_PAGEABLE] = "pageable",
    [MS_RATE_ALL_REDUCE] = "allreduce",
    [MS_RATE_LAUNCH] = "launch",
};

/* ---- rows ---------------------------------------------------------------- */

ms_err ms_measured_add(ms_measurements *all, const ms_measured *row,
                       ms_fault *fault)
{
    all->rows = ms_arena_grow(all->arena, all->rows, &all->capacity, all->n + 1,
                              sizeof *all->rows);
    if (all->rows == NULL)
        return ms_fail_nomem(fault);
    all->rows[all->n++] = *row;
    return MS_OK;
}

ms_measured ms_measured_product(const char *op, ms_product_shape s,
                                double width)
{
    bool half = width <= 2;
    return (ms_measured){.op = op,
                         .kind = half ? MS_RATE_PRODUCT : MS_RATE_FP32_PRODUCT,
                         .tensor = half,
                         .shape = s,
                         .flops = 2 * s.batch * s.m * s.n * s.k,
                         .bytes = width * s.batch *
                                  (s.m * s.n + s.m * s.k + s.n * s.k)};
}

ms_err ms_measured_miss(ms_measurements *all, const char *name, const char *why,
                        double ns, ms_fault *fault)
{
    uint32_t i = 0;
    while (i < all->n_untold && (strcmp(all->untold[i].name, name) != 0 ||
                                 strcmp(all->untold[i].why, why) != 0))
        i++;
    if (i == all->n_untold) {
        all->untold =
            ms_arena_grow(all->arena, all->untold, &all->untold_capacity, i + 1,
                          sizeof *all->untold);
        if (all->untold == NULL)
            return ms_fail_nomem(fault);
        all->untold[all->n_untold++] = (ms_untold){.name = name, .why = why};
    }
    all->untold[i].count++;
    all->untold[i].ns += ns;
    return MS_OK;
}

/* Backward has 2.5 times the FLOPs (Dao et al. 2022). */
ms_measured ms_measured_attention(const char *op, ms_attention_code code,
                                  bool backward, double heads, double queries,
                                  double keys, double channels, bool causal)
{
    double seen = causal ? keys - (queries - 1) / 2 : keys;
    return (ms_measured){
        .op = op,
        .kind = (uint8_t)(MS_RATE_FLASH_1 + code),
        .backward = backward,
        .shape = {.batch = heads, .m = queries, .n = seen, .k = channels},
        .flops = (backward ? 10 : 4) * heads * queries * seen * channels};
}

static int order_of(double a, double b)
{
    return (a > b) - (a < b);
}

/* By kind, then by what tells shapes apart, the work first. */
static int compare_shapes(const ms_measured *a, const ms_measured *b)
{
    const double keys[][2] = {
        {a->kind, b->kind},       {a->flops, b->flops},
        {a->bytes, b->bytes},     {a->backward, b->backward},
        {a->to_host, b->to_host}, {a->tf32, b->tf32},
        {a->ranks, b->ranks},     {a->shape.batch, b->shape.batch},
        {a->shape.m, b->shape.m}, {a->shape.n, b->shape.n},
        {a->shape.k, b->shape.k},
    };
    int order = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && order == 0; i++)
        order = order_of(keys[i][0], keys[i][1]);
    return order;
}

/* The longest first. */
static int compare_untold(const void *a, const void *b)
{
    const ms_untold *x = a, *y = b;
    int order = order_of(y->ns, x->ns);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static int compare_rows(const void *a, const void *b)
{
    const ms_measured *x = a, *y = b;
    int order = compare_shapes(x, y);
    if (order == 0)
        order = order_of(x->ns, y->ns);
    return order != 0 ? order : strcmp(x->op, y->op);
}

/* The samples from row `from` to row `to`, in the order of their times, as one.
 */
static ms_measured joined(const ms_measured *rows, uint32_t from, uint32_t to)
{
    ms_measured row = rows[from + (to - from) / 2];
    if ((to - from) % 2 == 0)
        row.ns = (row.ns + rows[from + (to - from) / 2 - 1].ns) / 2;
    row.count = 0;
    row.total_ns = 0;
    for (uint32_t i = from; i < to; i++) {
        row.count += rows[i].count > 0 ? rows[i].count : 1;
        row.total_ns += rows[i].count > 0 ? rows[i].total_ns : rows[i].ns;
    }
    return row;
}

ms_err ms_measured_settle(ms_measurements *all, ms_fault *fault)
{
    uint32_t n = 0, within[MS_N_RATE_KINDS][2] = {{0}};
    if (all->n == 0)
        return ms_fail(fault, MS_EINPUT, all->source, NULL,
                       "there is no kernel in it that a device's file has a "
                       "rate of");
    if (all->n_untold > 0)
        qsort(all->untold, all->n_untold, sizeof *all->untold, compare_untold);
    qsort(all->rows, all->n, sizeof *all->rows, compare_rows);
    for (uint32_t from = 0, to; from < all->n; from = to) {
        for (to = from + 1; to < all->n && compare_shapes(&all->rows[from],
                                                          &all->rows[to]) == 0;)
            to++;
        ms_measured row = joined(all->rows, from, to);
        row.is_kept_back =
            within[row.kind][row.backward || row.to_host]++ % 2 == 1;
        all->rows[n++] = row;
    }
    all->n = n;
    return MS_OK;
}

/* ---- prediction ---------------------------------------------------------- */

static double product_ns(const ms_device *d, const ms_measured *row,
                         bool in_step)
{
    double flops_per_s = row->tf32 ? d->tf32_flops : d->half_flops;
    if (!row->tensor)
        flops_per_s = d->fp32_flops * d->fp32_share;
    else if (in_step)
        flops_per_s *= d->step_share;
    return ms_producttime_ns(d, row->shape, flops_per_s, row->bytes,
                             row->tensor ? MS_UNIT_TENSOR : MS_UNIT_PLAIN);
}

static double copy_ns(const ms_device *d, const ms_measured *row)
{
    bool to_host = row->kind == MS_RATE_TO_HOST || row->to_host;
    double rate = to_host ? d->d2h_bytes_per_s : d->h2d_bytes_per_s;
    if (row->kind == MS_RATE_PAGEABLE)
        rate *= d->pageable_share;
    return 1e9 * row->bytes / rate;
}

static double all_reduce_ns(const ms_device *d, const ms_measured *row)
{
    ms_group group = ms_communicators_row(d, MS_GROUP_DATA, row->ranks, 1);
    return (double)ms_collective_ns(&group, MS_ALL_REDUCE,
                                    (uint64_t)row->bytes);
}

double ms_measured_predict(const ms_device *d, const ms_measured *row,
                           bool in_step)
{
    uint32_t kind = row->kind;
    if (kind <= MS_RATE_FP32_PRODUCT)
        return product_ns(d, row, in_step);
    if (kind <= MS_RATE_EFFICIENT)
        return ms_producttime_attention_ns(
            d, (ms_attention_code)(kind - MS_RATE_FLASH_1), row->backward,
            (ms_attention_shape){row->shape.m, row->shape.n, row->shape.k,
                                 row->bytes},
            row->flops, d->half_flops);
    if (kind <= MS_RATE_COPY)
        return ms_kerneltime_plain_ns(d, kind - MS_RATE_POINTWISE, row->flops,
                                      row->bytes);
    if (kind <= MS_RATE_PAGEABLE)
        return copy_ns(d, row);
    return kind == MS_RATE_ALL_REDUCE ? all_reduce_ns(d, row)
                                      : (double)d->launch_ns;
}

static double peak_of(const ms_device *d, const ms_measured *row)
{
    if (row->kind == MS_RATE_FP32_PRODUCT)
        return d->fp32_flops;
    return row->tf32 ? d->tf32_flops : d->half_flops;
}

ms_err ms_measured_check(const ms_measurements *all, const ms_device *device,
                         ms_fault *fault)
{
    uint32_t n = 0, faster = 0;
    double most = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const ms_measured *row = &all->rows[i];
        if (row->kind > MS_RATE_EFFICIENT)
            continue;
        double flops_per_s = 1e9 * row->flops / row->ns;
        n++;
        faster += flops_per_s > peak_of(device, row) * CLOCK_SLACK;
        if (row->kind != MS_RATE_FP32_PRODUCT && flops_per_s > most)
            most = flops_per_s;
    }
    if (2 * faster <= n)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, all->source,
                   "name the device that was measured (memsim help devices)",
                   "products ran at up to %.0f TFLOP/s, and the peak of %s is "
                   "%.0f: it was recorded on another device",
                   most / 1e12, device->name, device->half_flops / 1e12);
}

/* ---- errors -------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    return order_of(*(const double *)a, *(const double *)b);
}

static double quantile(double *numbers, uint32_t n, double part)
{
    qsort(numbers, n, sizeof *numbers, compare_numbers);
    double at = part * (n - 1);
    uint32_t below = (uint32_t)at;
    double above = below + 1 < n ? numbers[below + 1] : numbers[below];
    return numbers[below] + (at - below) * (above - numbers[below]);
}

ms_err ms_measured_judge(const ms_measurements *all, const ms_device *device,
                         ms_rate_kind kind, bool kept_back,
                         ms_measured_error *error, ms_fault *fault)
{
    uint32_t n = 0;
    double *ratios = ms_arena_take(all->arena, all->n, sizeof *ratios);
    *error = (ms_measured_error){0};
    if (ratios == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < all->n; i++)
        if (all->rows[i].kind == kind && all->rows[i].is_kept_back == kept_back)
            ratios[n++] =
                ms_measured_predict(device, &all->rows[i], all->in_step) /
                all->rows[i].ns;
    error->n = n;
    if (n == 0)
        return MS_OK;
    error->ratio = quantile(ratios, n, 0.5);
    for (uint32_t i = 0; i < n; i++)
        ratios[i] = fabs(ratios[i] - 1);
    error->median = quantile(ratios, n, 0.5);
    error->most = quantile(ratios, n, 0.95);
    return MS_OK;
}
