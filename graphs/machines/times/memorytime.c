/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/memorytime.h"

#include <math.h>

#define NS 1e9
/* Of the time of bytes that are in the cache, what they save: where the op
 * before has just written them, on Hopper, whose cache keeps the same bytes of
 * a longer stream; and where this one writes them. */
#define CACHED 0.3
#define HOPPER_CACHED 0.4
#define WRITTEN 0.15
#define CACHE_BYTES_PER_S 41e9 /* of a multiprocessor */
#define GOES_OUT 0.9           /* of the cache: more does not fit whole */
/* Of a cast: its start, and of a block of threads, which has a row: how long it
 * takes to begin, and its rate. */
#define CAST_NS 230.0
#define CAST_ROW_NS 380.0
#define CAST_ROW_BYTES_PER_S 83e9
#define CAST_THREADS 256.0
#define NORM_THREADS 128.0 /* of a row */
/* A block that has its multiprocessor to itself takes this part of what it
 * takes among others. */
#define ALONE 0.44
#define LOAD_BYTES 16.0 /* of a thread at once */
#define WARP 32.0
#define MOST_THREADS 1024.0
/* Rows up to this are in registers of a warp (softmax_warp_forward), and longer
 * ones in shared memory, if each begins at a multiple of LOAD_BYTES; else so
 * much of them comes from the cache once more. */
#define WARP_ROW 1024.0
#define ODD_AGAIN 0.74
/* Since PyTorch 2.7 a warp has rows up to this, and blocks have up to
 * REGISTERS_ROW in registers, loaded an element at a time. */
#define WARP_ROW_2 2048.0
#define REGISTERS_ROW 9216.0
/* Elements of a multiprocessor a ns: loaded one at a time; with a random
 * number for each; of softmax, in vectors, and of its backward in warps. */
#define SINGLE_A_NS 2.7
#define RANDOM_A_NS 3.8
#define SOFTMAX_A_NS 4.0
#define SOFTMAX_BACKWARD_A_NS 3.2
/* Of a stream's rate, lists of tensors whose vectors of four elements are 16
 * bytes, and fewer. */
#define LISTS_SHARE 0.86
#define NARROW_LISTS_SHARE 0.70
#define LIST_WIDTH 4.0
/* Sums of columns: blocks share them, up to so many rows, and pass what they
 * have on through memory. */
#define COLUMNS_NS 12000.0
#define COLUMN_ROWS 1000.0
/* Each half of their cache has what all multiprocessors read. */
#define A100 80u
#define H100 90u

/* again: what is read again, of bytes.  It comes from memory as far as what is
 * under way goes from the one share of the cache to the other.  more: what else
 * they take, of the time of a stream.  Of a row: how many tensors it moves; of
 * a norm's, how long its block takes to begin, and for an element. */
static const struct {
    double again, from, to, more, tensors, row_ns, element_ns;
} kernels[MS_N_MEMORY_KERNELS] = {
    [MS_ROWS_NORM] = {0.5, 0.3, 0.8, 0, 2, 1450, 1.9},
    [MS_ROWS_NORM_BACKWARD] = {0, 0, 1, 0.9, 3, 1885, 2.47},
    [MS_ROWS_RMS] = {0.5, 0.15, 0.4, 0, 2, 1450, 1.9},
    [MS_ROWS_RMS_BACKWARD] = {0, 0, 1, 0.78, 3, 2880, 4.96},
    [MS_ROWS_CENTRED] = {0.5, 0.15, 0.4, 0, 2, 2460, 2.56},
    [MS_ROWS_CENTRED_BACKWARD] = {0, 0, 1, 0.78, 3, 4800, 4.96},
    [MS_BATCH_NORM] = {.again = 0.5, .from = 0.3, .to = 0.85},
    [MS_BATCH_NORM_BACKWARD] = {.again = 2 / 3.0, .from = 0.3, .to = 0.85},
    [MS_ROWS_SOFTMAX] = {.again = 1, .from = 0.07, .to = 0.97},
    [MS_ROWS_SOFTMAX_BACKWARD] = {.again = 2 / 3.0, .from = 0.07, .to = 0.97},
    [MS_ROWS_REGISTERS] = {.tensors = 2},
    [MS_ROWS_REGISTERS_BACKWARD] = {.tensors = 3},
    [MS_ROWS_LOG] = {.again = 1, .from = 0.45, .to = 0.7, .tensors = 2},
    [MS_ROWS_LOG_BACKWARD] = {.again = 0.36,
                              .from = 0.22,
                              .to = 0.35,
                              .tensors = 3},
};

/* The gradients of a norm's weight and bias, of the backward's bytes; columns
 * of a block, and its rate. */
#define WEIGHT_PART 0.3
#define WEIGHT_PART_2 (2 / 3.0) /* since PyTorch 2.8 */
#define COLUMNS 32.0
#define BLOCK_BYTES_PER_S 60e9
#define TENSORS 3.0 /* that its backward moves; two are read for these */

static double clamp(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

static bool is_norm(ms_memory_kernel kernel)
{
    return kernels[kernel].row_ns > 0;
}

/* Of those since PyTorch 2.8. */
static bool is_norm_backward(ms_memory_kernel kernel)
{
    return kernel == MS_ROWS_RMS_BACKWARD || kernel == MS_ROWS_CENTRED_BACKWARD;
}

static bool is_old_softmax(ms_memory_kernel kernel)
{
    return kernel == MS_ROWS_SOFTMAX || kernel == MS_ROWS_SOFTMAX_BACKWARD;
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
    if (!is_norm(kernel))
        threads = clamp(row * width / LOAD_BYTES, WARP, MOST_THREADS);
    return fmin(all / threads * row * width, bytes);
}

/* A block goes over all rows of some columns, so that few columns leave most
 * multiprocessors idle. */
static double weight_ns(const ms_device *device, double bytes, double row,
                        double least_ns)
{
    double blocks = fmax(1, ceil(row / COLUMNS));
    double waves = ceil(blocks / (double)device->multiprocessors);
    double of_block = bytes * 2 / TENSORS * COLUMNS / fmax(row, COLUMNS);
    return fmax(least_ns, waves * of_block * NS / BLOCK_BYTES_PER_S);
}

/* The rows of a norm in waves of blocks, where kernels are CUDA's. */
static double rows_ns(const ms_device *device, ms_memory_kernel kernel,
                      double bytes, double row, double width)
{
    if (device->compute_capability == 0 || !is_norm(kernel))
        return 0;
    double at_once = (double)device->multiprocessors *
                     (double)device->threads_per_multiprocessor / NORM_THREADS;
    double rows = bytes / (kernels[kernel].tensors * fmax(1, row * width));
    bool first = kernel == MS_ROWS_NORM || kernel == MS_ROWS_NORM_BACKWARD;
    return fmax(first ? 1 : ALONE, rows / at_once) *
           (kernels[kernel].row_ns + kernels[kernel].element_ns * row);
}

/* Elements that a multiprocessor has done in a ns; 0: as fast as they come. */
static double elements_a_ns(const ms_device *device, ms_memory_kernel kernel,
                            double row)
{
    if (kernel == MS_SINGLE)
        return SINGLE_A_NS;
    if (kernel == MS_SCATTERED && device->compute_capability == H100)
        return SINGLE_A_NS;
    if (kernel == MS_RANDOM)
        return RANDOM_A_NS;
    if (kernel == MS_ROWS_REGISTERS && row > WARP_ROW_2 && row <= REGISTERS_ROW)
        return SINGLE_A_NS;
    if (kernel == MS_ROWS_REGISTERS_BACKWARD && row <= WARP_ROW_2)
        return SOFTMAX_BACKWARD_A_NS;
    return kernel == MS_ROWS_REGISTERS || kernel == MS_ROWS_LOG ? SOFTMAX_A_NS
                                                                : 0;
}

static double elements_ns(const ms_device *device, ms_memory_kernel kernel,
                          double bytes, double row, double width)
{
    double a_ns = elements_a_ns(device, kernel, row), elements = row;
    if (a_ns <= 0 || device->compute_capability == 0)
        return 0;
    if (kernels[kernel].tensors > 0)
        elements = bytes / (kernels[kernel].tensors * fmax(1, width));
    return elements / (a_ns * (double)device->multiprocessors);
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

static double near_cache(const ms_device *device, ms_memory_kernel kernel)
{
    uint32_t capability = device->compute_capability;
    bool halves =
        is_old_softmax(kernel) && (capability == A100 || capability == H100);
    return device->memory.cache_bytes / (halves ? 2 : 1);
}

/* Of what a kernel reads again, the share that has left the cache. */
static double gone(const ms_device *device, ms_memory_kernel kernel,
                   double bytes, double row, double width)
{
    double warp = is_old_softmax(kernel) ? WARP_ROW : WARP_ROW_2;
    bool batch = kernel == MS_BATCH_NORM || kernel == MS_BATCH_NORM_BACKWARD;
    double from = kernels[kernel].from, to = kernels[kernel].to;
    if (kernels[kernel].again <= 0 ||
        (!batch && !is_norm(kernel) && row <= warp))
        return 0;
    double part = under_way(device, kernel, bytes, row, width) /
                  near_cache(device, kernel);
    return clamp((part - from) / (to - from), 0, 1);
}

/* Of rows that begin at no multiple of LOAD_BYTES. */
static double odd_ns(const ms_device *device, ms_memory_kernel kernel,
                     double bytes, double row, double width)
{
    if (!is_old_softmax(kernel) || row <= WARP_ROW ||
        fmod(row * width, LOAD_BYTES) <= 0)
        return 0;
    double there = 1 - gone(device, kernel, bytes, row, width);
    return ms_memorytime_cached_ns(device, ODD_AGAIN * kernels[kernel].again *
                                               there * bytes);
}

/* Of the time of so many bytes, what those take less that are in the cache. */
static double saved(const ms_device *device, ms_memory_kernel kernel,
                    double bytes)
{
    double part = bytes / device->memory.cache_bytes;
    if (kernel == MS_LOOKUP)
        return 0;
    if (kernel == MS_STREAM && device->compute_capability == H100)
        return HOPPER_CACHED / (1 + part);
    return (kernel == MS_COLD ? WRITTEN : CACHED) / (1 + part * part);
}

static double share_of(const ms_device *device, ms_memory_kernel kernel,
                       double width)
{
    const ms_memory_rates *rates = &device->memory;
    if (kernel == MS_LOOKUP)
        return rates->lookup_share;
    if (kernel == MS_LISTS && device->compute_capability == H100)
        return rates->stream_share *
               (width < LIST_WIDTH ? NARROW_LISTS_SHARE : LISTS_SHARE);
    return rates->stream_share;
}

double ms_memorytime_ns(const ms_device *device, ms_memory_kernel kernel,
                        double bytes, double row, double width)
{
    if (kernel == MS_CAST)
        return cast_ns(device, bytes, row, width);
    double again =
        kernels[kernel].again * gone(device, kernel, bytes, row, width);
    double stream_ns =
        bytes * (1 + again) * (1 - saved(device, kernel, bytes)) * NS /
        (device->hbm_bytes_per_s * share_of(device, kernel, width));
    double ns = fmax((1 + kernels[kernel].more) * stream_ns,
                     fmax(rows_ns(device, kernel, bytes, row, width),
                          elements_ns(device, kernel, bytes, row, width)));
    if (kernel == MS_COLUMN_SUMS && device->compute_capability == H100)
        ns += COLUMNS_NS * row / (row + COLUMN_ROWS);
    else if (kernel == MS_ROWS_NORM_BACKWARD)
        ns += weight_ns(device, bytes, row, WEIGHT_PART * stream_ns);
    else if (is_norm_backward(kernel))
        ns += weight_ns(device, bytes, row, WEIGHT_PART_2 * stream_ns) +
              (double)device->kernel_ns;
    return (double)device->kernel_ns + ns +
           odd_ns(device, kernel, bytes, row, width);
}
