/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/kerneltime.h"
#include "graphs/machines/times/memorytime.h"

typedef struct share_point {
    double size, share;
} share_point;

static const share_point matrix_shares[] = {
    {0, 0.02}, {0.1e9, 0.10}, {1e9, 0.60}, {16e9, 0.90}, {128e9, 0.95},
};

#define N_SHARES 5u

static double matrix_share(double flops)
{
    const share_point *at = matrix_shares;
    for (uint32_t i = 1; i < N_SHARES; i++, at++) {
        if (flops > at[1].size)
            continue;
        double part = (flops - at[0].size) / (at[1].size - at[0].size);
        return at[0].share + part * (at[1].share - at[0].share);
    }
    return at->share;
}

static double point_s(const ms_curve_point *point)
{
    return (double)point->bytes / point->bytes_per_s;
}

/* Without the gap to the next kernel. */
static double default_s(const ms_device *device, uint32_t kind, double bytes)
{
    ms_memory_kernel kernel = MS_STREAM;
    if (kind == MS_MEMORY_OPTIMIZER)
        kernel = MS_COLD;
    else if (kind == MS_MEMORY_LOOKUP)
        kernel = MS_LOOKUP;
    return (ms_memorytime_ns(device, kernel, bytes, 0, 0) -
            (double)device->kernel_ns) /
           1e9;
}

/* Between two points the time is on a line, so that it never falls; outside
 * them it is as far from the default as at the nearest. */
static double curve_s(const ms_device *device, uint32_t kind, double bytes)
{
    const ms_curve *curve = device->memory_curves[kind];
    const ms_curve_point *point = curve->points, *last = point + curve->n - 1;
    while (point < last && bytes >= (double)point[1].bytes)
        point++;
    if (bytes <= (double)point->bytes || point == last)
        return default_s(device, kind, bytes) * point_s(point) /
               default_s(device, kind, (double)point->bytes);
    double part = (bytes - (double)point->bytes) /
                  (double)(point[1].bytes - point->bytes);
    return point_s(point) + part * (point_s(point + 1) - point_s(point));
}

double ms_kerneltime_bytes_s(const ms_device *device, uint32_t kind,
                             double bytes)
{
    if (kind != MS_NONE && device->memory_curves[kind] != NULL)
        return curve_s(device, kind, bytes);
    return default_s(device, kind, bytes);
}

static double longer_ns(const ms_device *device, double compute_s,
                        double memory_s)
{
    return (double)device->kernel_ns +
           1e9 * (compute_s > memory_s ? compute_s : memory_s);
}

double ms_kerneltime_plain_ns(const ms_device *device, uint32_t kind,
                              double flops, double bytes)
{
    return longer_ns(device, flops / device->fp32_flops,
                     ms_kerneltime_bytes_s(device, kind, bytes));
}

double ms_kerneltime_matrix_ns(const ms_device *device, double flops_per_s,
                               double flops, double bytes)
{
    double rate =
        flops_per_s * matrix_share(flops) / matrix_shares[N_SHARES - 1].share;
    return longer_ns(device, flops / rate,
                     ms_kerneltime_bytes_s(device, MS_NONE, bytes));
}
