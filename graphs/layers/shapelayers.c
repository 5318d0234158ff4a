/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that only arrange elements.  Their dimensions count from 0 without the
 * batch. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/parallel/shards.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* A fault where x has as many dimensions as a tensor may have. */
static ms_err need_room(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    if (ms_trace_at(trace, x)->n_dims < MS_MAX_DIMS)
        return MS_OK;
    return ms_trace_fail(trace, layer, "fold some dimensions into one",
                         "\"%s\" would make more than %u dimensions",
                         layer->name, MS_MAX_DIMS);
}

/* ---- parts --------------------------------------------------------------- */

enum { SELECT_INDEX, SELECT_DIM };
const ms_field ms_shapelayers_select_fields[MS_SHAPELAYERS_SELECT] = {
    {.name = "index",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 31,
     .help = "which position"},
    MS_LAYERS_DIM_FIELD,
};

ms_err ms_shapelayers_select(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[SELECT_DIM].i;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_dim(trace, layer, in[0], dim));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (x->n_dims < 3 || layer->field[SELECT_INDEX].i >= x->size[dim + 1])
        return ms_trace_fail(
            trace, layer, "index counts from 0",
            "\"%s\" selects position %lld of dimension %lld, "
            "but \"%s\" gives %s",
            layer->name, (long long)layer->field[SELECT_INDEX].i,
            (long long)dim, ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(x, shape));
    *out = ms_view_select(trace, in[0], (uint32_t)dim + 1);
    return trace->err;
}

enum { SLICE_LENGTH, SLICE_DIM };
const ms_field ms_shapelayers_slice_fields[MS_SHAPELAYERS_SLICE] = {
    {.name = "length",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 50,
     .help = "how many elements"},
    MS_LAYERS_DIM_FIELD,
};

/* Views the first elements of a dimension, or raises a fault where it has
 * fewer. */
static ms_err first_elements(ms_trace *trace, const ms_layer *layer, uint32_t x,
                             uint32_t *slice)
{
    int64_t dim = layer->field[SLICE_DIM].i;
    int64_t length = layer->field[SLICE_LENGTH].i;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_have_dim(trace, layer, x, dim));
    const ms_tensor *whole = ms_trace_at(trace, x);
    if (length > whole->size[dim + 1])
        return ms_trace_fail(trace, layer, "take a smaller length",
                             "\"%s\" takes %lld of dimension %lld, but \"%s\" "
                             "gives %s",
                             layer->name, (long long)length, (long long)dim,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(whole, shape));
    *slice = ms_view_slice(trace, x, (uint32_t)dim + 1, length);
    return trace->err;
}

ms_err ms_shapelayers_slice(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    return first_elements(trace, layer, in[0], out);
}

/* x.narrow(dim, 0, length).copy_(y) */
ms_err ms_shapelayers_assign(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    char want[MS_LAYERS_SHAPE], have[MS_LAYERS_SHAPE];
    uint32_t slice = MS_NONE;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    MS_TRY(ms_layers_need_float(trace, layer, in[1]));
    MS_TRY(ms_layers_need_unsaved(trace, layer, in[0]));
    MS_TRY(first_elements(trace, layer, in[0], &slice));
    ms_tensor from = *ms_trace_at(trace, in[1]);
    ms_tensor to = *ms_trace_at(trace, slice);
    if (from.n_dims != to.n_dims ||
        memcmp(from.size, to.size, sizeof *to.size * to.n_dims) != 0)
        return ms_trace_fail(
            trace, layer, "give it the shape of the slice",
            "\"%s\" assigns what \"%s\" gives, %s, to a slice "
            "of %s",
            layer->name, ms_layers_source(trace->settings, layer, 1),
            ms_layers_shape(&from, have), ms_layers_shape(&to, want));
    *out = ms_assign_slice(trace, in[0], slice, in[1]);
    ms_trace_drop(trace, slice);
    return trace->err;
}

enum { SPLIT_SIZES, SPLIT_DIM, SPLIT_PIECE };
const ms_field ms_shapelayers_split_fields[MS_SHAPELAYERS_SPLIT] = {
    {.name = "sizes",
     .type = MS_INTS,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 50,
     .help = "of all pieces; their sum is the dimension"},
    MS_LAYERS_DIM_FIELD,
    {.name = "piece",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 20,
     .help = "which piece this layer gives, from 0"},
};

/* All pieces are made, as torch.split returns a tuple of views, and all but the
 * one asked for are dropped: autograd has a node for the whole split. */
ms_err ms_shapelayers_split(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[SPLIT_DIM].i, sum = 0;
    int64_t piece = layer->field[SPLIT_PIECE].i;
    char shape[MS_LAYERS_SHAPE];
    uint32_t n = layer->n_ints;
    MS_TRY(ms_layers_need_dim(trace, layer, in[0], dim));
    int64_t *sizes = ms_arena_take_raw(trace->scratch, n, sizeof *sizes);
    uint32_t *pieces = ms_arena_take_raw(trace->scratch, n, sizeof *pieces);
    if (!sizes || !pieces)
        return ms_fail_nomem(trace->fault);
    for (uint32_t i = 0; i < n; i++)
        sum += sizes[i] = ms_shards_columns(trace, (int64_t)layer->ints[i]);
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (sum != x->size[dim + 1] || piece >= n)
        return ms_trace_fail(trace, layer,
                             "the sizes must add up to the dimension, and the "
                             "piece be one of them",
                             "\"%s\" takes piece %lld of %u that add up to "
                             "%lld, but \"%s\" gives %s",
                             layer->name, (long long)piece, n, (long long)sum,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(x, shape));
    ms_split_sizes(trace, in[0], (uint32_t)dim + 1, n, sizes, pieces);
    *out = trace->err ? MS_NONE : pieces[piece];
    ms_trace_ref(trace, *out);
    ms_split_drop(trace, n, pieces);
    return trace->err;
}

/* ---- cat ----------------------------------------------------------------- */

const ms_field ms_shapelayers_cat_fields[MS_SHAPELAYERS_CAT] = {
    MS_LAYERS_DIM_FIELD,
};

/* Do the shapes agree, the batch included, in all dimensions but dim? */
static bool shapes_agree(const ms_tensor *a, const ms_tensor *b, uint32_t dim)
{
    if (a->n_dims != b->n_dims)
        return false;
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (d != dim && a->size[d] != b->size[d])
            return false;
    return true;
}

ms_err ms_shapelayers_cat(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[0].i;
    char first[MS_LAYERS_SHAPE], other[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_dim(trace, layer, in[0], dim));
    for (uint32_t i = 1; i < layer->n_in; i++) {
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
        const ms_tensor *a = ms_trace_at(trace, in[0]);
        const ms_tensor *b = ms_trace_at(trace, in[i]);
        if (!shapes_agree(a, b, (uint32_t)dim + 1))
            return ms_trace_fail(
                trace, layer, "only the dimension that grows may differ",
                "\"%s\" joins \"%s\" and \"%s\", whose shapes do not agree: %s "
                "and %s",
                layer->name, ms_layers_source(trace->settings, layer, 0),
                ms_layers_source(trace->settings, layer, i),
                ms_layers_shape(a, first), ms_layers_shape(b, other));
    }
    *out = ms_view_cat(trace, in, layer->n_in, (uint32_t)dim + 1);
    return trace->err;
}

/* x[:, ..., None] */
static uint32_t unsqueeze(ms_trace *trace, uint32_t x, uint32_t dim)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor from = *ms_trace_at(trace, x);
    int64_t dims[MS_MAX_DIMS];
    for (uint32_t d = 0; d <= from.n_dims; d++)
        dims[d] = d == dim ? 1 : from.size[d - (d > dim)];
    return ms_view_reshape(trace, x, from.n_dims + 1u, dims);
}

/* torch.stack is a cat of the inputs with one more dimension
 * (ATen/native/TensorShape.cpp, stack). */
ms_err ms_shapelayers_stack(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[0].i;
    char first[MS_LAYERS_SHAPE], other[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_dim(trace, layer, in[0], dim - 1));
    MS_TRY(need_room(trace, layer, in[0]));
    uint32_t *rows = ms_arena_take_raw(trace->scratch, layer->n_in, sizeof *in);
    if (!rows)
        return ms_fail_nomem(trace->fault);
    for (uint32_t i = 0; i < layer->n_in; i++) {
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
        const ms_tensor *a = ms_trace_at(trace, in[0]);
        const ms_tensor *b = ms_trace_at(trace, in[i]);
        if (!shapes_agree(a, b, MS_MAX_DIMS))
            return ms_trace_fail(
                trace, layer, "all inputs need one shape",
                "\"%s\" stacks \"%s\" and \"%s\", whose shapes do not agree: "
                "%s and %s",
                layer->name, ms_layers_source(trace->settings, layer, 0),
                ms_layers_source(trace->settings, layer, i),
                ms_layers_shape(a, first), ms_layers_shape(b, other));
        rows[i] = unsqueeze(trace, in[i], (uint32_t)dim + 1);
    }
    *out = ms_view_cat(trace, rows, layer->n_in, (uint32_t)dim + 1);
    ms_split_drop(trace, layer->n_in, rows);
    return trace->err;
}

/* ---- the same elements --------------------------------------------------- */

ms_err ms_shapelayers_flatten(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    int64_t dims[2] = {x->size[0], 1};
    for (uint32_t d = 1; d < x->n_dims; d++)
        dims[1] *= x->size[d];
    *out = ms_view_reshape(trace, in[0], 2, dims);
    return trace->err;
}

const ms_field ms_shapelayers_reshape_fields[MS_SHAPELAYERS_RESHAPE] = {
    MS_LAYERS_SHAPE_FIELD,
};

ms_err ms_shapelayers_reshape(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    int64_t dims[MS_MAX_DIMS], n;
    bool agrees = layer->n_ints < MS_MAX_DIMS;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    n = dims[0] = x->size[0];
    for (uint32_t d = 0; d < layer->n_ints && agrees; d++) {
        dims[d + 1] = (int64_t)layer->ints[d];
        agrees = !__builtin_mul_overflow(n, dims[d + 1], &n);
    }
    if (!agrees || n != (int64_t)ms_trace_elements(x))
        return ms_trace_fail(trace, layer, "the product of the sizes must stay",
                             "\"%s\" cannot reshape what \"%s\" gives: %s",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(x, shape));
    *out = ms_view_reshape(trace, in[0], layer->n_ints + 1, dims);
    return trace->err;
}

const ms_field ms_shapelayers_permute_fields[MS_SHAPELAYERS_PERMUTE] = {
    {.name = "order",
     .type = MS_INTS,
     .required = true,
     .low = 0,
     .high = MS_MAX_DIMS - 2,
     .help = "the dimensions, from 0 without the batch, in their new order"},
};

ms_err ms_shapelayers_permute(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    uint32_t order[MS_MAX_DIMS] = {0}, seen = 0;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    for (uint32_t d = 0; d < layer->n_ints && d + 1 < MS_MAX_DIMS; d++) {
        order[d + 1] = (uint32_t)layer->ints[d] + 1;
        seen |= 1u << layer->ints[d];
    }
    if (layer->n_ints + 1 != x->n_dims || seen + 1 != 1u << layer->n_ints)
        return ms_trace_fail(trace, layer, "name each dimension once",
                             "\"%s\" cannot permute what \"%s\" gives: %s",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(x, shape));
    *out = ms_view_permute(trace, in[0], order);
    return trace->err;
}

ms_err ms_shapelayers_contiguous(ms_trace *trace, const ms_layer *layer,
                                 const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_view_contiguous(trace, in[0]);
    return trace->err;
}

/* x.expand(batch, ...) of a parameter, which is one for all samples. */
ms_err ms_shapelayers_expand(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (ms_trace_at(trace, in[0])->size[0] != 1)
        return ms_trace_fail(trace, layer, "it is for a \"parameter\" layer",
                             "\"%s\" expands what \"%s\" gives, which has a "
                             "batch already",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0));
    *out = ms_view_expand(trace, in[0], 0, (int64_t)trace->settings->batch);
    return trace->err;
}
