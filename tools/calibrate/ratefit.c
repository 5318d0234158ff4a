/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/ratefit.h"
#include "tools/calibrate/curvefit.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define N_PARTS 16u  /* fitted shapes from which the parts of a product are */
#define LARGE 8192.0 /* sides of a large product */
#define LEAST_SHARE 0.01
#define FIRST_STEP 0.25 /* of a number, that the search begins with */
#define LAST_STEP 0.002
/* What it costs to leave a number of `like`, beside the mean error: numbers
 * that the rows do not tell stay. */
#define PULL 0.001

/* ---- numbers of a device ------------------------------------------------- */

typedef struct number {
    const char *key;
    size_t at;
    double unit;
    double low, high; /* as the file may say it */
    bool whole;       /* a uint64_t; else a double */
} number;

#define AT(member) offsetof(ms_device, member)
#define SHARE(called, member)                                                  \
    {                                                                          \
        (called), AT(member), 1, LEAST_SHARE, 1, false                         \
    }
#define CODE(called, code)                                                     \
    SHARE(called "_forward", attention_share[code][0]),                        \
        SHARE(called "_backward", attention_share[code][1])

static const number numbers[] = {
    {"kernel_us", AT(kernel_ns), 1e3, 0.01, 1e6, true},
    {"launch_us", AT(launch_ns), 1e3, 0.01, 1e6, true},
    {"product_start_us", AT(product.start_ns), 1e3, 0.1, 1e3, false},
    {"product_depth", AT(product.depth), 1, 1, 4096, false},
    SHARE("product_memory_share", product.memory_share),
    {"product_sharpness", AT(product.sharpness), 1, 1, 64, false},
    SHARE("product_256x128", product.tile_share[0]),
    SHARE("product_128x128", product.tile_share[1]),
    SHARE("product_128x64", product.tile_share[2]),
    SHARE("product_64x64", product.tile_share[3]),
    CODE("flash1", MS_FLASH_1),
    CODE("flash2", MS_FLASH_2),
    CODE("flash3", MS_FLASH_3),
    CODE("efficient", MS_ATTENTION_EFFICIENT),
    SHARE("fp32_share", fp32_share),
    SHARE("step_share", step_share),
    SHARE("pageable_share", pageable_share),
    {"h2d_gbps", AT(h2d_bytes_per_s), 1e9, 0.1, 1e6, false},
    {"d2h_gbps", AT(d2h_bytes_per_s), 1e9, 0.1, 1e6, false},
    SHARE("half_matmul_tflops", matmul_share), /* of half_flops */
};
#define N_NUMBERS (sizeof numbers / sizeof *numbers)
_Static_assert(N_NUMBERS <= MS_RATEFIT_MOST, "raise MS_RATEFIT_MOST");

static double value_of(const ms_device *device, const number *row)
{
    const char *at = (const char *)device + row->at;
    return (row->whole ? (double)*(const uint64_t *)(const void *)at
                       : *(const double *)(const void *)at) /
           row->unit;
}

static void set_value(ms_device *device, const number *row, double value)
{
    char *at = (char *)device + row->at;
    if (row->whole)
        *(uint64_t *)(void *)at = (uint64_t)(value * row->unit + 0.5);
    else
        *(double *)(void *)at = value * row->unit;
}

/* A file has four digits of what was fitted. */
static double rounded(double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.4g", value);
    return strtod(digits, NULL);
}

/* ---- the search ---------------------------------------------------------- */

/* Numbers that go together are one direction; tiles that a device does not use
 * stay unused. */
typedef struct search {
    const ms_measurements *all;
    ms_device *device;
    const ms_device *like;
    const size_t (*ways)[4]; /* offsets, 0-terminated unless four */
    uint32_t n_ways;
    ms_rate_kind kind;
    int backward; /* of attention; -1: both */
} search;

static const number *number_at(size_t at)
{
    uint32_t i = 0;
    while (numbers[i].at != at)
        i++;
    return &numbers[i];
}

static bool is_fitted(const search *s, const ms_measured *row)
{
    return !row->is_kept_back && row->kind == s->kind &&
           (s->backward < 0 || row->backward == (s->backward > 0));
}

static double loss_of(const search *s)
{
    double sum = 0, pull = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->all->n; i++) {
        const ms_measured *row = &s->all->rows[i];
        if (!is_fitted(s, row))
            continue;
        sum += fabs(log(ms_measured_predict(s->device, row, s->all->in_step) /
                        row->ns));
        n++;
    }
    for (uint32_t i = 0; i < s->n_ways; i++) {
        const number *first = number_at(s->ways[i][0]);
        double before = value_of(s->like, first);
        if (before > 0)
            pull += fabs(log(value_of(s->device, first) / before));
    }
    return n > 0 ? sum / n + PULL * pull : 0;
}

/* False: a number would leave its range. */
static bool scale(const search *s, uint32_t way, double factor)
{
    for (uint32_t i = 0; i < 4 && s->ways[way][i] > 0; i++) {
        const number *row = number_at(s->ways[way][i]);
        double value = value_of(s->device, row) * factor;
        if (value > 0 && (value < row->low || value > row->high))
            return false;
        set_value(s->device, row, value);
    }
    return true;
}

static uint32_t count(const ms_measurements *all, ms_rate_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        n += all->rows[i].kind == kind && !all->rows[i].is_kept_back;
    return n;
}

/* Goes a step along each way, up or down, as long as that pays; then with half
 * the step. */
static void descend(const search *s)
{
    if (count(s->all, s->kind) == 0)
        return;
    double best = loss_of(s);
    for (double step = FIRST_STEP; step > LAST_STEP;) {
        bool better = false;
        for (uint32_t way = 0; way < 2 * s->n_ways; way++) {
            ms_device before = *s->device;
            double factor = way % 2 > 0 ? 1 / (1 + step) : 1 + step;
            double loss = scale(s, way / 2, factor) ? loss_of(s) : INFINITY;
            bool pays = loss < best - 1e-9;
            if (pays)
                best = loss;
            else
                *s->device = before;
            better |= pays;
        }
        if (!better)
            step /= 2;
    }
}

/* ---- products and attention ---------------------------------------------- */

#define TILE(i) AT(product.tile_share[i])
static const size_t product_ways[][4] = {
    {AT(step_share)},
    {TILE(0), TILE(1), TILE(2), TILE(3)},
    {AT(product.start_ns)},
    {AT(product.memory_share)},
    {TILE(0)},
    {TILE(1)},
    {TILE(2)},
    {TILE(3)},
    {AT(product.depth)},
    {AT(product.sharpness)},
};
#define N_PRODUCT_WAYS (sizeof product_ways / sizeof *product_ways)

static double large_ns(const ms_device *device)
{
    ms_measured row =
        ms_measured_product("", (ms_product_shape){1, LARGE, LARGE, LARGE}, 2);
    return ms_measured_predict(device, &row, false);
}

static void fit_products(const ms_measurements *all, ms_ratefit *fit)
{
    uint32_t n = count(all, MS_RATE_PRODUCT);
    const size_t(*ways)[4] = all->in_step ? product_ways : product_ways + 1;
    uint32_t most = (uint32_t)N_PRODUCT_WAYS - !all->in_step;
    if (n == 0)
        return;
    const search s = {.all = all,
                      .device = &fit->device,
                      .like = fit->like,
                      .ways = ways,
                      .n_ways = n < N_PARTS ? 1 : most,
                      .kind = MS_RATE_PRODUCT,
                      .backward = -1};
    descend(&s);
    double share =
        fit->like->matmul_share * large_ns(fit->like) / large_ns(&fit->device);
    fit->device.matmul_share = share < 1 ? share : 1;
}

/* One number by which rows of a kind are too slow or too fast. */
static void fit_factor(const ms_measurements *all, ms_ratefit *fit,
                       ms_rate_kind kind, int backward, size_t at)
{
    const size_t ways[1][4] = {{at}};
    const search s = {.all = all,
                      .device = &fit->device,
                      .like = fit->like,
                      .ways = ways,
                      .n_ways = 1,
                      .kind = kind,
                      .backward = backward};
    descend(&s);
}

static void fit_shares(const ms_measurements *all, ms_ratefit *fit)
{
    fit_factor(all, fit, MS_RATE_FP32_PRODUCT, -1, AT(fp32_share));
    for (uint32_t code = 0; code < MS_N_ATTENTION_CODES; code++)
        for (int backward = 0; backward < 2; backward++)
            fit_factor(all, fit, (ms_rate_kind)(MS_RATE_FLASH_1 + code),
                       backward,
                       AT(attention_share) +
                           (2 * code + (uint32_t)backward) * sizeof(double));
}

/* ---- the whole ----------------------------------------------------------- */

/* What differs from `like`, as the file will say it. */
static void note_changes(ms_ratefit *fit)
{
    for (uint32_t i = 0; i < N_NUMBERS; i++) {
        double unit = numbers[i].at == AT(matmul_share)
                          ? fit->like->half_flops / 1e12
                          : 1;
        double before = value_of(fit->like, &numbers[i]) * unit;
        double after = value_of(&fit->device, &numbers[i]) * unit;
        if (fabs(after - before) <= 1e-6 * before)
            continue;
        after = rounded(after);
        set_value(&fit->device, &numbers[i], after / unit);
        fit->changes[fit->n_changes++] =
            (ms_ratefit_change){numbers[i].key, before, after};
    }
}

ms_err ms_ratefit_run(const ms_measurements *all, const ms_device *like,
                      ms_ratefit *fit, ms_fault *fault)
{
    *fit = (ms_ratefit){.like = like, .device = *like};
    fit_products(all, fit);
    fit_shares(all, fit);
    MS_TRY(ms_curvefit_rates(all, &fit->device, fault));
    MS_TRY(ms_curvefit_memory(all, &fit->device, fit->new_curves, fault));
    MS_TRY(ms_curvefit_links(all, &fit->device, &fit->new_links, fault));
    note_changes(fit);
    return MS_OK;
}
