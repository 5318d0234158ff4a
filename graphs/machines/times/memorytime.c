/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/memorytime.h"

#include <math.h>

#define NS 1e9
/* Of the time of bytes that are in the cache, what they save. */
#define CACHED 0.3
#define CACHE_BYTES_PER_S 41e9 /* of a multiprocessor */
#define GOES_OUT 0.9           /* of the cache: more does not fit whole */
/* Of a cast: its start, and of a block of threads, which has a row: how long it
 * takes to begin, and its rate. */
#define CAST_NS 230.0
#define CAST_ROW_NS 380.0
#define CAST_ROW_BYTES_PER_S 83e9
#define CAST_THREADS 256.0
#define NORM_THREADS 128.0 /* of a row */
/* Of a norm's row: how long its block takes to begin and for an element, and
 * how much longer both take in backward. */
#define NORM_ROW_NS 1450.0
#define NORM_ELEMENT_NS 1.9
#define NORM_ROW_BACKWARD 1.3
#define LOAD_BYTES 16.0 /* of a thread at once */
#define WARP 32.0
#define MOST_THREADS 1024.0
/* Rows up to this are in registers of a warp (softmax_warp_forward), and longer
 * ones in shared memory, if each begins at a multiple of LOAD_BYTES; else so
 * much of them comes from the cache once more. */
#define WARP_ROW 1024.0
#define ODD_AGAIN 0.74
/* Each half of their cache has what all multiprocessors read. */
#define A100 80u
#define H100 90u

/* again: what is read again, of bytes.  It comes from memory as far as what is
 * under way goes from the one share of the cache to the other.  slower: what
 * else they take, of the time of a stream. */
static const struct {
    double again, from, to, slower;
} kernels[MS_N_MEMORY_KERNELS] = {
    [MS_STREAM] = {0, 0, 1, 1},
    [MS_COLD] = {0, 0, 1, 1},
    [MS_ROWS_NORM] = {0.5, 0.3, 0.8, 1},
    [MS_ROWS_NORM_BACKWARD] = {0, 0, 1, 1.9},
    [MS_BATCH_NORM] = {0.5, 0.3, 0.85, 1},
    [MS_BATCH_NORM_BACKWARD] = {2 / 3.0, 0.3, 0.85, 1},
    [MS_ROWS_SOFTMAX] = {1, 0.07, 0.97, 1},
    [MS_ROWS_SOFTMAX_BACKWARD] = {2 / 3.0, 0.07, 0.97, 1},
    [MS_LOOKUP] = {0, 0, 1, 1},
    [MS_CAST] = {0, 0, 1, 1},
};

/* The gradients of a norm's weight and bias, of the backward's bytes; columns
 * of a block, and its rate. */
#define WEIGHT_PART 0.3
#define COLUMNS 32.0
#define BLOCK_BYTES_PER_S 60e9
#define TENSORS 3.0 /* that its backward moves; two are read for these */

static double clamp(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* Bytes of the rows that all multiprocessors work on at once. */
static double under_way(const ms_device *device, ms_memory_kernel kernel,
                        double bytes, double row, double width)
{
    double threads = NORM_THREADS;
    double all = (double)device->multiprocessors *
                 (double)device->threads_per_multiprocessor;
    if (kernel == MS_BATCH_NORM || kernel == MS_BATCH_NORM_BACKWARD)
        return bytes;
    if (kernel != MS_ROWS_NORM)
        threads = clamp(row * width / LOAD_BYTES, WARP, MOST_THREADS);
    return fmin(all / threads * row * width, bytes);
}

/* A block goes over all rows of some columns, so that few columns leave most
 * multiprocessors idle. */
static double weight_ns(const ms_device *device, double bytes, double row,
                        double stream_ns)
{
    double blocks = fmax(1, ceil(row / COLUMNS));
    double waves = ceil(blocks / (double)device->multiprocessors);
    double of_block = bytes * 2 / TENSORS * COLUMNS / fmax(row, COLUMNS);
    return fmax(WEIGHT_PART * stream_ns,
                waves * of_block * NS / BLOCK_BYTES_PER_S);
}

/* The rows of a norm, which moves so many tensors, in waves of blocks, where
 * kernels are CUDA's. */
static double rows_ns(const ms_device *device, double bytes, double row,
                      double width, double tensors)
{
    if (device->compute_capability == 0)
        return 0;
    double at_once = (double)device->multiprocessors *
                     (double)device->threads_per_multiprocessor / NORM_THREADS;
    double rows = bytes / (tensors * fmax(1, row * width));
    return fmax(1, rows / at_once) * (NORM_ROW_NS + NORM_ELEMENT_NS * row);
}

double ms_memorytime_cached_ns(const ms_device *device, double bytes)
{
    double rate = device->hbm_bytes_per_s * device->product.memory_share;
    return bytes * NS /
           fmax(rate, (double)device->multiprocessors * CACHE_BYTES_PER_S);
}

double ms_memorytime_cached_share(const ms_device *device, double bytes)
{
    double part = bytes / device->memory.cache_bytes;
    return clamp((1 - part) / (1 - GOES_OUT), 0, 1);
}

/* Rows by waves, each a block's, beside what all of them move. */
static double cast_ns(const ms_device *device, double bytes, double row,
                      double width)
{
    double of_row = fmax(1, row * width);
    double cached = ms_memorytime_cached_share(device, bytes);
    double rate = device->hbm_bytes_per_s * device->product.memory_share;
    double moved_ns = ms_memorytime_cached_ns(device, bytes * cached) +
                      bytes * (1 - cached) * NS / rate;
    double waves =
        bytes / of_row * CAST_THREADS /
        ((double)device->multiprocessors * device->threads_per_multiprocessor);
    double rows_ns =
        fmax(1, waves) * (CAST_ROW_NS + of_row * NS / CAST_ROW_BYTES_PER_S);
    return (double)device->kernel_ns + CAST_NS + hypot(moved_ns, rows_ns);
}

static double near_cache(const ms_device *device, bool softmax)
{
    uint32_t capability = device->compute_capability;
    bool halves = softmax && (capability == A100 || capability == H100);
    return device->memory.cache_bytes / (halves ? 2 : 1);
}

double ms_memorytime_ns(const ms_device *device, ms_memory_kernel kernel,
                        double bytes, double row, double width)
{
    if (kernel == MS_CAST)
        return cast_ns(device, bytes, row, width);
    const ms_memory_rates *rates = &device->memory;
    double again = kernels[kernel].again, share = rates->stream_share;
    bool softmax =
        kernel == MS_ROWS_SOFTMAX || kernel == MS_ROWS_SOFTMAX_BACKWARD;
    double from = kernels[kernel].from, to = kernels[kernel].to;
    double in_cache = bytes / rates->cache_bytes;
    double saved = CACHED / (1 + in_cache * in_cache), odd_ns = 0;
    if (again > 0 && !(softmax && row <= WARP_ROW)) {
        double cached = under_way(device, kernel, bytes, row, width) /
                        near_cache(device, softmax);
        double gone = clamp((cached - from) / (to - from), 0, 1);
        if (softmax && fmod(row * width, LOAD_BYTES) > 0)
            odd_ns = ms_memorytime_cached_ns(device, ODD_AGAIN * again *
                                                         (1 - gone) * bytes);
        again *= gone;
    } else
        again = 0;
    if (kernel == MS_COLD || kernel == MS_LOOKUP)
        saved = 0;
    if (kernel == MS_LOOKUP)
        share = rates->lookup_share;
    double stream_ns = bytes * (1 + again) * (1 - saved) * NS /
                       (device->hbm_bytes_per_s * share);
    double ns = kernels[kernel].slower * stream_ns;
    if (kernel == MS_ROWS_NORM)
        ns = fmax(ns, rows_ns(device, bytes, row, width, 2));
    else if (kernel == MS_ROWS_NORM_BACKWARD)
        ns = fmax(ns, NORM_ROW_BACKWARD *
                          rows_ns(device, bytes, row, width, TENSORS)) +
             weight_ns(device, bytes, row, stream_ns);
    return (double)device->kernel_ns + ns + odd_ns;
}
