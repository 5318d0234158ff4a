/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that only arrange.  Dimensions count from 0 without the batch. */
#include "graphs/layers.h"

/* dim of the fields, or a fault where x has fewer. */
static ms_err need_dim(ms_trace *trace, const ms_layer *layer, uint32_t x,
                       int64_t dim)
{
    char shape[MS_LAYERS_SHAPE];

    MS_TRY(ms_layers_need_float(trace, layer, x));
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (dim + 1 < tensor->n_dims)
        return MS_OK;
    return ms_trace_fail(trace, layer, "dimensions count from 0",
                         "\"%s\" works on dimension %lld, but \"%s\" gives %s",
                         layer->name, (long long)dim,
                         ms_layers_source(trace, layer, 0),
                         ms_layers_shape(tensor, shape));
}

/* ---- parts --------------------------------------------------------------- */

const ms_field ms_shapelayers_select_fields[MS_SHAPELAYERS_SELECT] = {
    {.name = "index",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 31,
     .help = "which position of the sequence"},
};

ms_err ms_shapelayers_select(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (x->n_dims < 3 || layer->field[0].i >= x->size[1])
        return ms_trace_fail(trace, layer, "index counts from 0",
                             "\"%s\" selects position %lld of a sequence that "
                             "is shorter",
                             layer->name, (long long)layer->field[0].i);
    *out = ms_view_select(trace, in[0], layer->field[0].i);
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
    {.name = "dim",
     .type = MS_INT,
     .low = 0,
     .high = MS_MAX_DIMS - 2,
     .help = "dimension, from 0 without the batch"},
};

ms_err ms_shapelayers_slice(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[SLICE_DIM].i;
    int64_t length = layer->field[SLICE_LENGTH].i;
    char shape[MS_LAYERS_SHAPE];

    MS_TRY(need_dim(trace, layer, in[0], dim));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (length > x->size[dim + 1])
        return ms_trace_fail(trace, layer, "take a smaller length",
                             "\"%s\" takes %lld of dimension %lld, but \"%s\" "
                             "gives %s",
                             layer->name, (long long)length, (long long)dim,
                             ms_layers_source(trace, layer, 0),
                             ms_layers_shape(x, shape));
    *out = ms_view_slice(trace, in[0], (uint32_t)dim + 1, length);
    return trace->err;
}

/* ---- cat ----------------------------------------------------------------- */

const ms_field ms_shapelayers_cat_fields[MS_SHAPELAYERS_CAT] = {
    {.name = "dim",
     .type = MS_INT,
     .low = 0,
     .high = MS_MAX_DIMS - 2,
     .help = "dimension, from 0 without the batch"},
};

/* One shape but for dimension dim, the batch included. */
static bool fits(const ms_tensor *a, const ms_tensor *b, uint32_t dim)
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

    MS_TRY(need_dim(trace, layer, in[0], dim));
    for (uint32_t i = 1; i < layer->n_in; i++) {
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
        const ms_tensor *a = ms_trace_at(trace, in[0]);
        const ms_tensor *b = ms_trace_at(trace, in[i]);
        if (!fits(a, b, (uint32_t)dim + 1))
            return ms_trace_fail(
                trace, layer, "only the dimension that grows may differ",
                "\"%s\" joins \"%s\" and \"%s\", whose shapes do not agree: %s "
                "and %s",
                layer->name, ms_layers_source(trace, layer, 0),
                ms_layers_source(trace, layer, i), ms_layers_shape(a, first),
                ms_layers_shape(b, other));
    }
    *out = ms_view_cat(trace, in, layer->n_in, (uint32_t)dim + 1);
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
    {.name = "shape",
     .type = MS_INTS,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 50,
     .help = "sizes of one sample"},
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
                             layer->name, ms_layers_source(trace, layer, 0),
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
                             layer->name, ms_layers_source(trace, layer, 0),
                             ms_layers_shape(x, shape));
    *out = ms_view_permute(trace, in[0], order);
    return trace->err;
}
