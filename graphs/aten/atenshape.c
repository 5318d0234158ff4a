/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shape rules: the sizes that an op's output must have. */
#include "graphs/aten/aten.h"

#include <string.h>

static const ms_optensor *input(const ms_aten_call *call, uint32_t i)
{
    return &call->ops->tensors[call->node->in[i]];
}

static const ms_optensor *output(const ms_aten_call *call, uint32_t k)
{
    return &call->ops->tensors[call->node->out[k]];
}

static bool object(ms_aten_shape *want, const char *objection)
{
    want->objection = objection;
    return true;
}

static bool copy_dims(ms_aten_shape *want, const ms_optensor *from)
{
    want->n_dims = from->n_dims;
    memcpy(want->size, from->size, sizeof want->size);
    return true;
}

/* Sums of arguments may be beyond all bounds: they wrap, and fit nothing. */
static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* A dimension counted from the front; false: there is none. */
static bool front(const ms_optensor *x, int64_t dim, uint32_t *d)
{
    int64_t n = x->n_dims > 0 ? x->n_dims : 1;
    if (dim < -n || dim >= n)
        return false;
    *d = (uint32_t)(dim < 0 ? dim + n : dim);
    return true;
}

static const char no_dim[] = "its argument is no dimension of its input";
static const char no_fit[] = "its inputs do not fit together";

static uint64_t elements(const ms_optensor *tensor)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        n *= (uint64_t)tensor->size[d];
    return n;
}

/* ---- by element ---------------------------------------------------------- */

static bool same(const ms_aten_call *call, ms_aten_shape *want)
{
    return copy_dims(want, input(call, 0));
}

static bool any(const ms_aten_call *call, ms_aten_shape *want)
{
    (void)call;
    (void)want;
    return false;
}

static bool like_1(const ms_aten_call *call, ms_aten_shape *want)
{
    return copy_dims(want, input(call, 1));
}

/* Aligned at the end, 1 fits everything. */
static bool widen(ms_aten_shape *want, const ms_optensor *x)
{
    uint32_t n = want->n_dims > x->n_dims ? want->n_dims : x->n_dims;
    int64_t size[MS_MAX_DIMS];
    for (uint32_t d = 0; d < n; d++) {
        uint32_t a = d + want->n_dims, b = d + x->n_dims;
        int64_t left = a >= n ? want->size[a - n] : 1;
        int64_t right = b >= n ? x->size[b - n] : 1;
        if (left != right && left != 1 && right != 1)
            return false;
        size[d] = left == 1 ? right : left;
    }
    want->n_dims = n;
    memcpy(want->size, size, n * sizeof size[0]);
    return true;
}

static bool broadcast(const ms_aten_call *call, ms_aten_shape *want)
{
    for (uint32_t i = 0; i < call->node->n_in; i++)
        if (!widen(want, input(call, i)))
            return object(want, no_fit);
    return true;
}

static bool scalar(const ms_aten_call *call, ms_aten_shape *want)
{
    (void)call;
    (void)want;
    return true;
}

/* reduction="none" keeps the shape of the input, or of the targets. */
static bool loss(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0), *target = input(call, 1);
    if (output(call, want->k)->n_dims == 0)
        return true;
    return copy_dims(want, target->n_dims < x->n_dims ? target : x);
}

/* ---- products ------------------------------------------------------------ */

/* The last two inputs: [.., m, k] [.., k, n], or vectors. */
static bool product(const ms_aten_call *call, ms_aten_shape *want)
{
    uint32_t n = call->node->n_in;
    const ms_optensor *a = input(call, n - 2), *b = input(call, n - 1);
    if (a->n_dims == 0 || b->n_dims == 0)
        return object(want, no_fit);
    uint32_t inner = b->n_dims > 1 ? b->n_dims - 2u : 0;
    if (a->size[a->n_dims - 1] != b->size[inner])
        return object(want, no_fit);
    if (b->n_dims > 2 && (a->n_dims != b->n_dims || a->size[0] != b->size[0]))
        return object(want, no_fit);
    copy_dims(want, a);
    want->n_dims--;
    if (b->n_dims > 1)
        want->size[want->n_dims++] = b->size[b->n_dims - 1];
    return true;
}

/* Queries, keys, values: as many rows as queries, as wide as the values. */
static bool attention(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *q = input(call, 0), *k = input(call, 1);
    const ms_optensor *v = input(call, 2);
    if (q->n_dims < 2 || k->n_dims != q->n_dims || v->n_dims != q->n_dims ||
        q->size[q->n_dims - 1] != k->size[q->n_dims - 1] ||
        k->size[q->n_dims - 2] != v->size[q->n_dims - 2])
        return object(want, no_fit);
    copy_dims(want, q);
    want->size[q->n_dims - 1] = v->size[q->n_dims - 1];
    return true;
}

/* ---- reductions ---------------------------------------------------------- */

/* Over the dimensions of argument at, or all; whether they stay with size 1
 * is a keyword, which the output's rank tells. */
static bool reduce_at(const ms_aten_call *call, uint32_t at,
                      ms_aten_shape *want, const int64_t *fallback)
{
    const ms_optensor *x = input(call, 0);
    const int64_t *dims = NULL;
    uint32_t n = ms_aten_ints(call->node, at, &dims), reduced = 0, d;
    if (n == 0 && fallback) {
        n = 1;
        dims = fallback;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!front(x, dims[i], &d))
            return object(want, no_dim);
        reduced |= 1u << d;
    }
    if (n == 0)
        reduced = ~0u;
    bool stay = output(call, 0)->n_dims == x->n_dims;
    for (d = 0; d < x->n_dims; d++) {
        bool gone = reduced >> d & 1;
        if (!gone || stay)
            want->size[want->n_dims++] = gone ? 1 : x->size[d];
    }
    return true;
}

static bool reduce(const ms_aten_call *call, ms_aten_shape *want)
{
    return reduce_at(call, 1, want, NULL);
}

static bool reduce_2(const ms_aten_call *call, ms_aten_shape *want)
{
    return reduce_at(call, 2, want, NULL);
}

static bool chosen(const ms_aten_call *call, ms_aten_shape *want)
{
    static const int64_t last = -1;
    return reduce_at(call, 2, want, &last);
}

static bool topk(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    uint32_t d;
    if (!front(x, ms_aten_int(call->node, 2, -1), &d))
        return object(want, no_dim);
    copy_dims(want, x);
    if (x->n_dims > 0)
        want->size[d] = ms_aten_int(call->node, 1, 1);
    return true;
}

/* ---- the same elements --------------------------------------------------- */

static bool same_elements(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    if (elements(x) == elements(output(call, want->k)))
        return false;
    return object(want, "its output has not the elements of its input");
}

static bool transpose(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    uint32_t a, b;
    if (x->n_dims < 2)
        return copy_dims(want, x);
    if (!front(x, ms_aten_int(call->node, 1, 0), &a) ||
        !front(x, ms_aten_int(call->node, 2, 1), &b))
        return object(want, no_dim);
    copy_dims(want, x);
    want->size[a] = x->size[b];
    want->size[b] = x->size[a];
    return true;
}

static bool permute(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    const int64_t *order = NULL;
    uint32_t n = ms_aten_ints(call->node, 1, &order), seen = 0;
    if (n != x->n_dims)
        return object(want, no_dim);
    want->n_dims = n;
    for (uint32_t d = 0; d < n; d++) {
        uint32_t from;
        if (!front(x, order[d], &from))
            return object(want, no_dim);
        seen |= 1u << from;
        want->size[d] = x->size[from];
    }
    if (seen != (1u << n) - 1)
        return object(want, "its argument names a dimension twice");
    return true;
}

static bool expand(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0), *y = output(call, want->k);
    if (x->n_dims > y->n_dims)
        return object(want, no_fit);
    copy_dims(want, y);
    for (uint32_t d = 0; d < x->n_dims; d++)
        if (x->size[d] != 1)
            want->size[y->n_dims - x->n_dims + d] = x->size[d];
    return true;
}

/* ---- parts --------------------------------------------------------------- */

static int64_t bound(int64_t at, int64_t size)
{
    at = at < 0 ? at + size : at;
    return at < 0 ? 0 : at > size ? size : at;
}

/* Arguments: x, dimension, start, end, step. */
static bool slice(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_opnode *node = call->node;
    const ms_optensor *x = input(call, 0);
    uint32_t d;
    if (x->n_dims == 0 || !front(x, ms_aten_int(node, 1, 0), &d))
        return object(want, no_dim);
    int64_t start = bound(ms_aten_int(node, 2, 0), x->size[d]);
    int64_t end = bound(ms_aten_int(node, 3, INT64_MAX), x->size[d]);
    int64_t step = ms_aten_int(node, 4, 1);
    if (step < 1)
        return object(want, "its step is not positive");
    copy_dims(want, x);
    want->size[d] = end > start ? (end - start - 1) / step + 1 : 0;
    return true;
}

static bool without(ms_aten_shape *want, const ms_optensor *x, uint32_t gone)
{
    for (uint32_t d = 0; d < x->n_dims; d++)
        if (d != gone)
            want->size[want->n_dims++] = x->size[d];
    return true;
}

static bool select(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    uint32_t d;
    if (x->n_dims == 0 || !front(x, ms_aten_int(call->node, 1, 0), &d))
        return object(want, no_dim);
    return without(want, x, d);
}

static bool unbind(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    uint32_t d;
    if (x->n_dims == 0 || !front(x, ms_aten_int(call->node, 1, 0), &d))
        return object(want, no_dim);
    if (x->size[d] != (int64_t)call->node->n_out)
        return object(want, "it has not as many outputs as there are slices");
    return without(want, x, d);
}

/* Arguments: x, a size or sizes, dimension. */
static bool split(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_opnode *node = call->node;
    const ms_optensor *x = input(call, 0);
    const int64_t *sizes = NULL;
    uint32_t n = ms_aten_ints(node, 1, &sizes), d;
    if (x->n_dims == 0 || !front(x, ms_aten_int(node, 2, 0), &d))
        return object(want, no_dim);
    bool listed = n > 0 && node->args[1].kind == MS_ARG_INTS;
    int64_t each = n > 0 ? sizes[0] : 0, before = 0;
    if (n == 0 || (listed && n != node->n_out) || each < 0)
        return object(want, "it has not as many outputs as pieces");
    for (uint32_t i = 0; i < want->k; i++)
        before = sum(before, listed ? sizes[i] : each);
    copy_dims(want, x);
    int64_t rest = before <= x->size[d] ? x->size[d] - before : 0;
    want->size[d] = listed ? sizes[want->k] : rest < each ? rest : each;
    return true;
}

static bool index_select(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0), *index = input(call, 1);
    uint32_t d;
    if (!front(x, ms_aten_int(call->node, 1, 0), &d))
        return object(want, no_dim);
    copy_dims(want, x);
    if (x->n_dims > 0)
        want->size[d] = (int64_t)elements(index);
    return true;
}

/* A row of the table for each index. */
static bool embedding(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *table = input(call, 0), *ids = input(call, 1);
    if (table->n_dims != 2 || ids->n_dims >= MS_MAX_DIMS)
        return object(want, no_fit);
    copy_dims(want, ids);
    want->size[want->n_dims++] = table->size[1];
    return true;
}

/* Half of a dimension, the last one where no argument says which. */
static bool halved(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    uint32_t d;
    if (x->n_dims == 0 || !front(x, ms_aten_int(call->node, 1, -1), &d))
        return object(want, no_dim);
    copy_dims(want, x);
    want->size[d] /= 2;
    return true;
}

/* ---- more than the inputs ------------------------------------------------ */

static bool is_empty_row(const ms_optensor *x)
{
    return x->n_dims == 1 && x->size[0] == 0;
}

static bool cat(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *first = input(call, 0);
    uint32_t n = call->node->n_in, d, i = 0;
    while (i + 1 < n && is_empty_row(input(call, i)))
        first = input(call, ++i); /* torch passes over them */
    if (!front(first, ms_aten_int(call->node, 1, 0), &d))
        return object(want, no_dim);
    copy_dims(want, first);
    for (i++; i < n; i++) {
        const ms_optensor *x = input(call, i);
        if (is_empty_row(x))
            continue;
        if (x->n_dims != first->n_dims)
            return object(want, no_fit);
        for (uint32_t e = 0; e < x->n_dims; e++)
            if (e != d && x->size[e] != first->size[e])
                return object(want, no_fit);
        want->size[d] = sum(want->size[d], x->size[d]);
    }
    return true;
}

static bool stack(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    int64_t dim = ms_aten_int(call->node, 1, 0);
    if (x->n_dims >= MS_MAX_DIMS)
        return object(want, no_fit);
    dim = dim < 0 ? dim + x->n_dims + 1 : dim;
    if (dim < 0 || dim > x->n_dims)
        return object(want, no_dim);
    for (uint32_t d = 0; d <= x->n_dims; d++) {
        int64_t size = d == dim ? call->node->n_in : x->size[d - (d > dim)];
        want->size[want->n_dims++] = size;
    }
    return true;
}

/* One dimension more. */
static bool wider(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0), *y = output(call, want->k);
    if (x->n_dims == 0 || y->n_dims != x->n_dims + 1)
        return object(want, no_fit);
    return false;
}

/* Pairs of argument 1, from the last dimension on. */
static bool pad(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    const int64_t *pairs = NULL;
    uint32_t n = ms_aten_ints(call->node, 1, &pairs) / 2;
    if (n > x->n_dims)
        return object(want, no_dim);
    copy_dims(want, x);
    for (uint32_t i = 0; i < n; i++)
        want->size[x->n_dims - 1 - i] = sum(
            want->size[x->n_dims - 1 - i], sum(pairs[2 * i], pairs[2 * i + 1]));
    return true;
}

static bool repeat(const ms_aten_call *call, ms_aten_shape *want)
{
    const ms_optensor *x = input(call, 0);
    const int64_t *times = NULL;
    uint32_t n = ms_aten_ints(call->node, 1, &times);
    if (n < x->n_dims || n > MS_MAX_DIMS)
        return object(want, no_dim);
    want->n_dims = n;
    for (uint32_t d = 0; d < n; d++) {
        uint32_t from = d + x->n_dims;
        int64_t size = from >= n ? x->size[from - n] : 1;
        want->size[d] = (int64_t)((uint64_t)times[d] * (uint64_t)size);
    }
    return true;
}

static bool sized_by(const ms_aten_call *call, uint32_t i, ms_aten_shape *want)
{
    const int64_t *ints = NULL;
    if (i >= call->node->n_args || call->node->args[i].kind != MS_ARG_INTS)
        return false;
    want->n_dims = ms_aten_ints(call->node, i, &ints);
    if (want->n_dims > MS_MAX_DIMS)
        return object(want, "it has more than 6 dimensions");
    memcpy(want->size, ints, want->n_dims * sizeof *ints);
    return true;
}

static bool sized(const ms_aten_call *call, ms_aten_shape *want)
{
    return sized_by(call, 0, want);
}

static bool sized_1(const ms_aten_call *call, ms_aten_shape *want)
{
    return sized_by(call, 1, want);
}

/* ---- by name ------------------------------------------------------------- */

const ms_shape_rule ms_atenshape_same = {"of in0", same, 1};
const ms_shape_rule ms_atenshape_broadcast = {"broadcast of the inputs",
                                              broadcast, 1};
const ms_shape_rule ms_atenshape_like_1 = {"of in1", like_1, 2};
const ms_shape_rule ms_atenshape_product = {"matrix product", product, 2};
const ms_shape_rule ms_atenshape_reduce = {"reduced", reduce, 1};
const ms_shape_rule ms_atenshape_reduce_2 = {"reduced", reduce_2, 1};
const ms_shape_rule ms_atenshape_chosen = {"reduced", chosen, 1};
const ms_shape_rule ms_atenshape_loss = {"scalar, or of in0", loss, 2};
const ms_shape_rule ms_atenshape_cat = {"inputs end to end", cat, 1};
const ms_shape_rule ms_atenshape_stack = {"a new dimension", stack, 1};
const ms_shape_rule ms_atenshape_elements = {"as many elements as in0",
                                             same_elements, 1};
const ms_shape_rule ms_atenshape_transpose = {"two dimensions swapped",
                                              transpose, 1};
const ms_shape_rule ms_atenshape_permute = {"dimensions reordered", permute, 1};
const ms_shape_rule ms_atenshape_expand = {"in0, where 1 becomes any", expand,
                                           1};
const ms_shape_rule ms_atenshape_slice = {"part of a dimension", slice, 1};
const ms_shape_rule ms_atenshape_select = {"without a dimension", select, 1};
const ms_shape_rule ms_atenshape_split = {"pieces of a dimension", split, 1};
const ms_shape_rule ms_atenshape_unbind = {"without a dimension", unbind, 1};
const ms_shape_rule ms_atenshape_embedding = {"a row for each index", embedding,
                                              2};
const ms_shape_rule ms_atenshape_index_select = {"a slice for each index",
                                                 index_select, 2};
const ms_shape_rule ms_atenshape_topk = {"k of a dimension", topk, 1};
const ms_shape_rule ms_atenshape_pad = {"padded", pad, 1};
const ms_shape_rule ms_atenshape_repeat = {"repeated", repeat, 1};
const ms_shape_rule ms_atenshape_sized = {"by argument", sized, 0};
const ms_shape_rule ms_atenshape_sized_1 = {"by argument", sized_1, 1};
const ms_shape_rule ms_atenshape_scalar = {"scalar", scalar, 0};
const ms_shape_rule ms_atenshape_halved = {"half of a dimension", halved, 1};
const ms_shape_rule ms_atenshape_any = {"any", any, 0};
const ms_shape_rule ms_atenshape_wider = {"a dimension more", wider, 1};
const ms_shape_rule ms_atenshape_attention = {"in0 by the last of in2",
                                              attention, 3};
