/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Views: shape and strides change, the storage is shared. */
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

#include <assert.h>
#include <string.h>

/* ---- strides ------------------------------------------------------------- */

bool ms_view_is_contiguous(const ms_tensor *tensor)
{
    int64_t expected = 1;
    for (uint32_t d = tensor->n_dims; d-- > 0;) {
        if (tensor->size[d] == 1)
            continue;
        if (tensor->stride[d] != expected)
            return false;
        expected *= tensor->size[d];
    }
    return true;
}

/* Non-overlapping and dense: some order of the dimensions is contiguous. */
bool ms_view_is_dense(const ms_tensor *tensor)
{
    bool used[MS_MAX_DIMS] = {false};
    int64_t expected = 1;
    for (uint32_t n = 0; n < tensor->n_dims; n++) {
        uint32_t next = MS_NONE;
        for (uint32_t d = 0; d < tensor->n_dims; d++)
            if (!used[d] &&
                (tensor->size[d] == 1 || tensor->stride[d] == expected))
                next = d;
        if (next == MS_NONE)
            return false;
        used[next] = true;
        if (tensor->size[next] != 1)
            expected *= tensor->size[next];
    }
    return true;
}

static bool is_empty(const ms_tensor *tensor)
{
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        if (tensor->size[d] == 0)
            return true;
    return false;
}

/* The strides of a view of the tensor with other sizes, or false where only a
 * copy can have them (ATen/TensorUtils.cpp, computeStride).  From the innermost
 * dimension on, each run of dimensions that is contiguous has to be filled
 * exactly by new dimensions: a new one cannot reach across a gap. */
static bool compute_strides(const ms_tensor *tensor, uint32_t n_dims,
                            const int64_t *dims, int64_t *strides)
{
    int64_t view = (int64_t)n_dims - 1;
    int64_t chunk = 1, have = 1, base;
    if (tensor->n_dims == 0 || is_empty(tensor)) {
        for (uint32_t d = 0; d < n_dims; d++)
            strides[d] = 1;
        return true;
    }
    base = tensor->stride[tensor->n_dims - 1];
    for (uint32_t d = tensor->n_dims; d-- > 0;) {
        chunk *= tensor->size[d];
        bool ends = d == 0 || (tensor->size[d - 1] != 1 &&
                               tensor->stride[d - 1] != chunk * base);
        if (!ends)
            continue;
        while (view >= 0 && (have < chunk || dims[view] == 1)) {
            strides[view] = have * base;
            have *= dims[view];
            view--;
        }
        if (have != chunk)
            return false;
        if (d > 0) {
            base = tensor->stride[d - 1];
            chunk = have = 1;
        }
    }
    return view == -1;
}

void ms_view_lay_out(ms_trace *trace, uint32_t tensor, uint32_t layout)
{
    ms_tensor *made = ms_trace_at(trace, tensor);
    const ms_tensor *like = ms_trace_at(trace, layout);
    if (like->n_dims == made->n_dims && ms_view_is_dense(like) &&
        memcmp(like->size, made->size, sizeof made->size[0] * made->n_dims) ==
            0)
        memcpy(made->stride, like->stride, sizeof made->stride);
}

uint32_t ms_view_make(ms_trace *trace, const char *role, uint32_t tensor,
                      uint32_t layout)
{
    uint32_t y = ms_trace_make_like(trace, role, tensor);
    if (y != MS_NONE)
        ms_view_lay_out(trace, y, layout);
    return y;
}

/* ---- rules --------------------------------------------------------------- */

uint32_t ms_view_as(ms_trace *trace, uint32_t x, uint32_t like)
{
    int64_t dims[MS_MAX_DIMS];
    if (trace->err)
        return MS_NONE;
    const ms_tensor *shape = ms_trace_at(trace, like);
    memcpy(dims, shape->size, sizeof dims);
    return ms_view_reshape(trace, x, shape->n_dims, dims);
}

static void view_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    out[0] = ms_view_as(trace, grads[0], node->input[0]);
}

static void transpose_backward(ms_trace *trace, const ms_node *node,
                               const uint32_t *grads, uint32_t *out)
{
    out[0] = ms_view_transpose(trace, grads[0], (uint32_t)node->i[0],
                               (uint32_t)node->i[1]);
}

static void clone_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    (void)node;
    ms_trace_ref(trace, grads[0]);
    out[0] = grads[0];
}

const ms_rule ms_view_view_rule = {"ViewBackward0", NULL, view_backward};
const ms_rule ms_view_transpose_rule = {"TransposeBackward0", NULL,
                                        transpose_backward};
const ms_rule ms_view_clone_rule = {"CloneBackward0", NULL, clone_backward};

/* ---- ops ----------------------------------------------------------------- */

uint32_t ms_view_copy(ms_trace *trace, uint32_t x)
{
    bool together = trace->err || ms_view_is_contiguous(ms_trace_at(trace, x));
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, x);
    uint32_t y = ms_trace_make_like(trace, "copy", x);
    ms_opend_plain(trace, 0, together ? MS_WORK_PLAIN : MS_WORK_SCATTERED);
    ms_trace_node(trace, &ms_view_clone_rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_view_contiguous(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    if (!ms_view_is_contiguous(ms_trace_at(trace, x)))
        return ms_view_copy(trace, x);
    ms_trace_ref(trace, x);
    return x;
}

static bool same_dims(const ms_tensor *tensor, uint32_t n_dims,
                      const int64_t *dims)
{
    return tensor->n_dims == n_dims &&
           memcmp(tensor->size, dims, n_dims * sizeof *dims) == 0;
}

uint32_t ms_view_reshape(ms_trace *trace, uint32_t x, uint32_t n_dims,
                         const int64_t *dims)
{
    int64_t strides[MS_MAX_DIMS];
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (!compute_strides(tensor, n_dims, dims, strides)) {
        uint32_t copied = ms_view_copy(trace, x);
        uint32_t y = ms_view_reshape(trace, copied, n_dims, dims);
        ms_trace_drop(trace, copied);
        return y;
    }
    if (same_dims(tensor, n_dims, dims) && !tensor->requires_grad) {
        ms_trace_ref(trace, x);
        return x;
    }
    uint32_t y = ms_trace_alias(trace, x);
    if (y == MS_NONE)
        return y;
    ms_tensor *view = ms_trace_at(trace, y);
    view->n_dims = (uint8_t)n_dims;
    memcpy(view->size, dims, n_dims * sizeof *dims);
    memcpy(view->stride, strides, n_dims * sizeof *strides);
    ms_trace_node(trace, &ms_view_view_rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_view_rows(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    int64_t last = tensor->size[tensor->n_dims - 1];
    int64_t dims[2] = {(int64_t)ms_trace_elements(tensor) / (last ? last : 1),
                       last};
    return ms_view_reshape(trace, x, 2, dims);
}

uint32_t ms_view_transpose(ms_trace *trace, uint32_t x, uint32_t a, uint32_t b)
{
    uint32_t y = ms_trace_alias(trace, x);
    if (y == MS_NONE)
        return y;
    ms_tensor *view = ms_trace_at(trace, y);
    int64_t size = view->size[a], stride = view->stride[a];
    view->size[a] = view->size[b];
    view->stride[a] = view->stride[b];
    view->size[b] = size;
    view->stride[b] = stride;
    uint32_t n = ms_trace_node(trace, &ms_view_transpose_rule, &x, 1, &y, 1);
    if (n != MS_NONE) {
        trace->nodes[n].i[0] = a;
        trace->nodes[n].i[1] = b;
    }
    return y;
}

/* ---- split and select ---------------------------------------------------- */

static void split_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::cat");
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (grads[i] != MS_NONE)
            ms_trace_read(trace, grads[i]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
}

const ms_rule ms_view_unbind_rule = {"UnbindBackward0", "aten::stack",
                                     split_backward};
const ms_rule ms_view_split_rule = {"SplitBackward0", "aten::cat",
                                    split_backward};

void ms_view_drop_dim(ms_tensor *view, uint32_t dim)
{
    view->n_dims--;
    for (uint32_t d = dim; d < view->n_dims; d++) {
        view->size[d] = view->size[d + 1];
        view->stride[d] = view->stride[d + 1];
    }
}

/* The gradient of a slice or a selected row is zeros as large as the input,
 * into which the incoming gradient is written. */
static void select_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
}

const ms_rule ms_view_slice_rule = {"SliceBackward0", "aten::slice_backward",
                                    select_backward};
const ms_rule ms_view_select_rule = {"SelectBackward0", "aten::select_backward",
                                     select_backward};

uint32_t ms_view_slice(ms_trace *trace, uint32_t x, uint32_t dim,
                       int64_t length)
{
    uint32_t y = ms_trace_alias(trace, x);
    if (y == MS_NONE)
        return y;
    ms_trace_at(trace, y)->size[dim] = length;
    ms_trace_node(trace, &ms_view_slice_rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_view_select(ms_trace *trace, uint32_t x, uint32_t dim)
{
    if (trace->err)
        return MS_NONE;
    uint32_t whole = x;
    ms_trace_ref(trace, whole);
    for (uint32_t d = 0; d < dim && !trace->err; d++) { /* x[:, ..., index] */
        int64_t all = ms_trace_at(trace, whole)->size[d];
        uint32_t next = ms_view_slice(trace, whole, d, all);
        ms_trace_drop(trace, whole);
        whole = next;
    }
    uint32_t y = ms_trace_alias(trace, whole);
    if (y == MS_NONE)
        return y;
    ms_view_drop_dim(ms_trace_at(trace, y), dim);
    ms_trace_node(trace, &ms_view_select_rule, &whole, 1, &y, 1);
    ms_trace_drop(trace, whole);
    return y;
}

/* ---- permute, cat, expand ------------------------------------------------ */

/* i[0] holds the order of the dimensions, four bits each. */
static void permute_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    uint32_t y = ms_trace_alias(trace, grads[0]);
    if (y == MS_NONE)
        return;
    ms_tensor *view = ms_trace_at(trace, y);
    ms_tensor grad = *ms_trace_at(trace, grads[0]);
    for (uint32_t d = 0; d < grad.n_dims; d++) {
        uint32_t to = (uint32_t)(node->i[0] >> 4 * d) & 15u;
        view->size[to] = grad.size[d];
        view->stride[to] = grad.stride[d];
    }
    out[0] = y;
}

const ms_rule ms_view_permute_rule = {"PermuteBackward0", NULL,
                                      permute_backward};

uint32_t ms_view_permute(ms_trace *trace, uint32_t x, const uint32_t *order)
{
    uint32_t y = ms_trace_alias(trace, x);
    int64_t packed = 0;
    if (y == MS_NONE)
        return y;
    ms_tensor from = *ms_trace_at(trace, x);
    ms_tensor *view = ms_trace_at(trace, y);
    for (uint32_t d = 0; d < from.n_dims; d++) {
        view->size[d] = from.size[order[d]];
        view->stride[d] = from.stride[order[d]];
        packed |= (int64_t)order[d] << 4 * d;
    }
    uint32_t n = ms_trace_node(trace, &ms_view_permute_rule, &x, 1, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].i[0] = packed;
    return y;
}

/* The gradient of each input is a narrow view of the incoming one: nothing is
 * allocated. */
static void cat_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!node->needs[i])
            continue;
        out[i] = ms_trace_alias(trace, grads[0]);
        if (out[i] == MS_NONE)
            return;
        memcpy(ms_trace_at(trace, out[i])->size,
               ms_trace_at(trace, node->input[i])->size,
               sizeof ms_trace_at(trace, out[i])->size);
    }
}

const ms_rule ms_view_cat_rule = {"CatBackward0", NULL, cat_backward};

/* stack gives each input a view of one row of the gradient; i[0] is the new
 * dimension. */
static void stack_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!node->needs[i])
            continue;
        out[i] = ms_trace_alias(trace, grads[0]);
        if (out[i] == MS_NONE)
            return;
        ms_view_drop_dim(ms_trace_at(trace, out[i]), (uint32_t)node->i[0]);
    }
}

const ms_rule ms_view_stack_rule = {"StackBackward0", NULL, stack_backward};

/* The gradient of diag_embed is a view of the diagonal of the last two
 * dimensions: one step along both is one step along the diagonal. */
static void diag_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    out[0] = ms_trace_alias(trace, grads[0]);
    if (out[0] == MS_NONE)
        return;
    ms_tensor *view = ms_trace_at(trace, out[0]);
    const ms_tensor *input = ms_trace_at(trace, node->input[0]);
    int64_t step =
        view->stride[view->n_dims - 2] + view->stride[view->n_dims - 1];
    view->n_dims = input->n_dims;
    memcpy(view->size, input->size, sizeof view->size);
    view->stride[view->n_dims - 1] = step;
}

const ms_rule ms_view_diag_rule = {"DiagEmbedBackward0", NULL, diag_backward};

uint32_t ms_view_cat(ms_trace *trace, const uint32_t *x, uint32_t n,
                     uint32_t dim)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor first = *ms_trace_at(trace, x[0]);
    first.size[dim] = 0;
    ms_trace_begin(trace, "aten::cat");
    for (uint32_t i = 0; i < n; i++) {
        ms_trace_read(trace, x[i]);
        first.dtype =
            ms_dtypes_wider(first.dtype, ms_trace_at(trace, x[i])->dtype);
        first.size[dim] += ms_trace_at(trace, x[i])->size[dim];
    }
    uint32_t y =
        ms_trace_make(trace, "out", first.dtype, first.n_dims, first.size);
    ms_trace_end(trace, 0, false);
    ms_trace_node(trace, &ms_view_cat_rule, x, n, &y, 1);
    return y;
}

/* The engine sums the gradient to the input's shape. */
static const ms_rule expand_rule = {"ExpandBackward0", NULL, clone_backward};

uint32_t ms_view_expand(ms_trace *trace, uint32_t x, uint32_t dim, int64_t n)
{
    uint32_t y = ms_trace_alias(trace, x);
    if (y == MS_NONE)
        return y;
    ms_trace_at(trace, y)->size[dim] = n;
    ms_trace_at(trace, y)->stride[dim] = 0;
    ms_trace_node(trace, &expand_rule, &x, 1, &y, 1);
    return y;
}

/* The gradient of a sum is the incoming one expanded to the shape of the input,
 * with a stride of 0 where it was reduced: nothing is allocated. */
static void expand_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    uint32_t y = ms_trace_alias(trace, grads[0]);
    if (y == MS_NONE)
        return;
    ms_tensor *view = ms_trace_at(trace, y);
    ms_tensor grad = *ms_trace_at(trace, grads[0]);
    ms_tensor input = *ms_trace_at(trace, node->input[0]);
    uint32_t from = 0;
    view->n_dims = input.n_dims;
    for (uint32_t d = 0; d < input.n_dims; d++) {
        bool reduced = node->i[0] >> d & 1;
        bool kept = !reduced || grad.n_dims == input.n_dims;
        view->size[d] = input.size[d];
        view->stride[d] =
            reduced || from >= grad.n_dims ? 0 : grad.stride[from];
        from += kept;
    }
    out[0] = y;
}

/* i[0] has a bit for each reduced dimension. */
const ms_rule ms_view_sum_rule = {"SumBackward1", NULL, expand_backward};
