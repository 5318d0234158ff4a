/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scratch of a reduction on CUDA (ATen/native/cuda/Reduce.cuh): where few
 * outputs gather many values, several blocks of threads share an output and
 * meet in a buffer.  The arithmetic is checked against every recorded scratch
 * (graphs/autograd.md 15; tests/truth/test_scratch.c). */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

#define MOST_THREADS 512u
#define WARP 32u
#define VECTOR 4u             /* values that one thread loads at once */
#define FEWEST_PER_THREAD 16u /* values */
#define MOST_PER_THREAD 256u

/* ---- the shape of the grid ----------------------------------------------- */

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The largest power of two up to n. */
static uint64_t power_of_two(uint64_t n)
{
    uint64_t power = 1;
    while (power * 2 <= n)
        power *= 2;
    return power;
}

typedef struct block {
    uint64_t width, height;
} block;

/* Threads along the two dimensions, the fastest first. */
static block block_of(uint64_t fast, uint64_t slow, uint64_t threads)
{
    uint64_t width = fast < threads ? power_of_two(fast) : threads;
    uint64_t height = slow < threads ? power_of_two(slow) : threads;
    uint64_t whole = width;
    width = smaller(width, WARP);
    height = smaller(height, threads / width);
    return (block){.width = smaller(whole, threads / height), .height = height};
}

/* Blocks that share an output, 1: none do. */
static uint64_t blocks_per_output(const ms_device *device, uint64_t threads,
                                  uint64_t grid, uint64_t values)
{
    uint64_t resident = device->multiprocessors *
                        (device->threads_per_multiprocessor / threads);
    if (values < MOST_PER_THREAD || grid > resident)
        return 1;
    return larger(smaller(divide_up(resident, grid),
                          divide_up(values, FEWEST_PER_THREAD)),
                  divide_up(values, MOST_PER_THREAD));
}

ms_scratch ms_scratch_of(const ms_device *device, const ms_reduction *shape)
{
    uint64_t vector = shape->contiguous ? 1 : shape->vector;
    uint64_t fast = shape->contiguous ? shape->values : shape->outputs;
    uint64_t slow = shape->contiguous ? shape->outputs : shape->values;
    uint64_t values = shape->values, along = 1, share;
    fast /= vector;
    if (shape->contiguous && shape->one_dim && fast > 128)
        fast /= VECTOR;
    block b = block_of(fast, slow, MOST_THREADS / vector);
    if (shape->contiguous)
        values = divide_up(values, b.width);
    else
        along = b.width;
    bool split = values >= smaller(b.height * 16, MOST_PER_THREAD);
    if (split)
        values = divide_up(values, b.height);
    else
        along *= b.height;
    uint64_t grid = divide_up(shape->outputs / vector, along);
    share = blocks_per_output(device, b.width * b.height, grid, values);
    if (!split || share == 1)
        return (ms_scratch){0};
    return (ms_scratch){.buffer = shape->accumulator * shape->outputs * share *
                                  (shape->contiguous ? 1 : b.width * vector),
                        .semaphores = sizeof(int32_t) * grid};
}

/* ---- the shape of the reduction ------------------------------------------ */

typedef struct axis {
    int64_t size, stride;
    bool reduced;
} axis;

/* Dimensions as TensorIterator orders them: the reduced ones first, those by
 * rising stride, the others as the output has them; neighbours merged. */
static uint32_t order_axes(const ms_tensor *x, uint32_t reduced, axis *axes)
{
    uint32_t n = 0, n_reduced;
    for (uint32_t d = 0; d < x->n_dims; d++) {
        if (!(reduced >> d & 1) || x->size[d] == 1)
            continue;
        uint32_t at = n++;
        for (; at > 0 && axes[at - 1].stride > x->stride[d]; at--)
            axes[at] = axes[at - 1];
        axes[at] = (axis){x->size[d], x->stride[d], true};
    }
    n_reduced = n;
    for (uint32_t d = x->n_dims; d-- > 0;)
        if (!(reduced >> d & 1) && x->size[d] != 1)
            axes[n++] = (axis){x->size[d], x->stride[d], false};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        axis *last = kept > 0 ? &axes[kept - 1] : NULL;
        bool merges = last && i != n_reduced &&
                      last->size * last->stride == axes[i].stride;
        if (merges)
            last->size *= axes[i].size;
        else
            axes[kept++] = axes[i];
    }
    return kept;
}

/* Outputs that one thread can write at once: a divisor of the first kept
 * dimension and of all other strides. */
static uint32_t vector_of(const axis *axes, uint32_t n, uint32_t first)
{
    uint32_t vector = VECTOR;
    while (axes[first].size % vector != 0)
        vector /= 2;
    for (uint32_t i = 0; i < n; i++)
        while (i != first && axes[i].stride % vector != 0)
            vector /= 2;
    return vector;
}

static ms_reduction reduction_of(const ms_tensor *x, uint32_t reduced,
                                 uint32_t accumulator)
{
    axis axes[MS_MAX_DIMS];
    uint32_t n = order_axes(x, reduced, axes), first = 0;
    ms_reduction shape = {
        .outputs = 1, .values = 1, .accumulator = accumulator, .vector = 1};
    while (first < n && axes[first].reduced)
        shape.values *= (uint64_t)axes[first++].size;
    for (uint32_t i = first; i < n; i++)
        shape.outputs *= (uint64_t)axes[i].size;
    shape.one_dim = n <= 1;
    shape.contiguous =
        first == n || (first > 0 && axes[0].stride < axes[first].stride);
    if (!shape.contiguous)
        shape.vector = vector_of(axes, n, first);
    return shape;
}

static void take(ms_trace *trace, const char *role, uint64_t bytes)
{
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_WORKSPACE, false);
    if (s != MS_NONE)
        ms_trace_out(trace, s);
}

void ms_scratch_reduce(ms_trace *trace, uint32_t x, uint32_t reduced,
                       uint32_t accumulator)
{
    if (trace->err || trace->settings->cpu ||
        ms_trace_elements(ms_trace_at(trace, x)) == 0)
        return;
    ms_reduction shape =
        reduction_of(ms_trace_at(trace, x), reduced, accumulator);
    ms_scratch scratch = ms_scratch_of(trace->settings->device, &shape);
    if (scratch.buffer == 0)
        return;
    take(trace, "reduction_scratch", scratch.buffer);
    take(trace, "reduction_semaphores", scratch.semaphores);
}

uint32_t ms_scratch_changed(const ms_tensor *x, const ms_tensor *y)
{
    uint32_t reduced = 0, ahead = x->n_dims - y->n_dims;
    for (uint32_t d = 0; d < x->n_dims; d++)
        if (d < ahead || x->size[d] != y->size[d - ahead])
            reduced |= 1u << d;
    return reduced;
}
