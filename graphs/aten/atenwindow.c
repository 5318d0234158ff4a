/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shape rules of ops that slide a window: convolution and pooling. */
#include "graphs/aten/aten.h"

#include <string.h>

static const ms_optensor *input(const ms_aten_call *call, uint32_t i)
{
    return &call->ops->tensors[call->node->in[i]];
}

static bool object(ms_aten_shape *want)
{
    want->objection = "its inputs do not fit together";
    return true;
}

static void copy_dims(ms_aten_shape *want, const ms_optensor *from)
{
    want->n_dims = from->n_dims;
    memcpy(want->size, from->size, sizeof want->size);
}

#define MOST_STEP (INT64_C(1) << 12) /* times a size it does not overflow */

/* The d-th integer of a list argument; the last one stands for those that are
 * missing. */
static int64_t nth(const ms_opnode *node, uint32_t i, uint32_t d,
                   int64_t fallback)
{
    const int64_t *ints = NULL;
    uint32_t n = ms_aten_ints(node, i, &ints);
    int64_t value = n == 0 ? fallback : ints[d < n ? d : n - 1];
    return value < 0 ? 0 : value > INT64_C(1) << 50 ? INT64_C(1) << 50 : value;
}

static int64_t step(const ms_opnode *node, uint32_t i, uint32_t d)
{
    int64_t value = nth(node, i, d, 1);
    return value < MOST_STEP ? value : MOST_STEP;
}

static bool flag(const ms_opnode *node, uint32_t i)
{
    return i < node->n_args && node->args[i].kind == MS_ARG_BOOL &&
           node->args[i].value.i;
}

typedef struct window {
    int64_t kernel, stride, padding, dilation;
    bool rounds_up;
} window;

/* How many windows fit into the size; 0: none. */
static int64_t count_windows(int64_t size, const window *w)
{
    int64_t space = size + 2 * w->padding - w->dilation * (w->kernel - 1) - 1;
    if (w->stride <= 0 || space < 0)
        return 0;
    int64_t n = (space + (w->rounds_up ? w->stride - 1 : 0)) / w->stride + 1;
    bool beyond = w->rounds_up && (n - 1) * w->stride >= size + w->padding;
    return beyond ? n - 1 : n;
}

/* The arguments are x, weight, bias, stride, padding, dilation, transposed,
 * output padding and groups. */
static bool convolution(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_opnode *node = call->node;
    const ms_optensor *x = input(call, 0), *weight = input(call, 1);
    bool transposed = flag(node, 6);
    int64_t groups = step(node, 8, 0);
    if (!weight || x->n_dims < 3 || weight->n_dims != x->n_dims || groups < 1)
        return object(want);
    int64_t channels = transposed ? weight->size[0] : weight->size[1] * groups;
    if (x->size[1] != channels)
        return object(want);
    copy_dims(want, x);
    want->size[1] = transposed ? weight->size[1] * groups : weight->size[0];
    for (uint32_t d = 2; d < x->n_dims; d++) {
        window w = {.kernel = weight->size[d],
                    .stride = step(node, 3, d - 2),
                    .padding = nth(node, 4, d - 2, 0),
                    .dilation = step(node, 5, d - 2)};
        want->size[d] = transposed
                            ? (x->size[d] - 1) * w.stride - 2 * w.padding +
                                  w.dilation * (w.kernel - 1) +
                                  nth(node, 7, d - 2, 0) + 1
                            : count_windows(x->size[d], &w);
    }
    return true;
}

/* A pool slides over the last dimensions, as many as the name of the op says.
 */
static bool pool(const ms_aten_call *call, ms_aten_shape *want, bool average)
{
    const ms_opnode *node = call->node;
    const ms_optensor *x = input(call, 0);
    const char *digit = strpbrk(node->op, "123");
    uint32_t n = digit ? (uint32_t)(*digit - '0') : 2;
    if (x->n_dims < n)
        return object(want);
    copy_dims(want, x);
    for (uint32_t d = 0; d < n; d++) {
        int64_t kernel = nth(node, 1, d, 1);
        window w = {.kernel = kernel,
                    .stride = nth(node, 2, d, kernel),
                    .padding = nth(node, 3, d, 0),
                    .dilation = average ? 1 : step(node, 4, d),
                    .rounds_up = flag(node, average ? 4 : 5)};
        uint32_t at = x->n_dims - n + d;
        want->size[at] = count_windows(x->size[at], &w);
    }
    return true;
}

static bool max_pool(const ms_aten_call *call, ms_aten_shape *want)
{
    return pool(call, want, false);
}

static bool avg_pool(const ms_aten_call *call, ms_aten_shape *want)
{
    return pool(call, want, true);
}

static bool adaptive(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    const int64_t *ints = NULL;
    uint32_t n = ms_aten_ints(call->node, 1, &ints);
    if (x->n_dims < n)
        return object(want);
    copy_dims(want, x);
    for (uint32_t d = 0; d < n; d++)
        want->size[x->n_dims - n + d] = ints[d];
    return true;
}

/* The batch and the channels stay as they are; the other sizes may be any, and
 * are those of the output. */
static bool planes(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    if (x->n_dims < 3)
        return object(want);
    copy_dims(want, &call->ops->tensors[call->node->out[want->k]]);
    want->n_dims = x->n_dims;
    memcpy(want->size, x->size, 2 * sizeof x->size[0]);
    return true;
}

/* ---- by name ------------------------------------------------------------- */

const ms_shape_rule ms_atenwindow_convolution = {"convolution", convolution, 2};
const ms_shape_rule ms_atenwindow_max_pool = {"windows", max_pool, 1};
const ms_shape_rule ms_atenwindow_avg_pool = {"windows", avg_pool, 1};
const ms_shape_rule ms_atenwindow_adaptive = {"last dimensions by argument",
                                              adaptive, 1};
const ms_shape_rule ms_atenwindow_planes = {"batch and channels of in0", planes,
                                            1};
