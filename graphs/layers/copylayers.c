/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that copy elements to other places: ops of the aten table whose
 * output has other sizes than its input. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"

#include <string.h>

#define MAX_TIMES (INT64_C(1) << 20)

/* Opens a call of the layer's op over x, whose dimension dim must exist.  The
 * output is like x; a second one holds indices. */
static ms_err open_call(ms_trace *trace, const ms_layer *layer, uint32_t x,
                        int64_t dim, ms_opcall *call)
{
    const ms_layer_kind *kind = layer->kind;
    MS_TRY(ms_layers_need_dim(trace, layer, x, dim));
    *call = (ms_opcall){.op = kind->op, .flops = kind->flops};
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++)
        ms_opcall_like(trace, &call->made[k], x);
    call->made[1].dtype = MS_INT64;
    return MS_OK;
}

static ms_err run(ms_trace *trace, const ms_opcall *call, const uint32_t *in,
                  uint32_t n_in, uint32_t *out)
{
    *out = ms_opcall_run(trace, call, in, n_in);
    return trace->err;
}

/* ---- along a dimension --------------------------------------------------- */

const ms_field ms_copylayers_dim_fields[MS_COPYLAYERS_DIM] = {
    MS_LAYERS_DIM_FIELD};

/* The ops whose output has the sizes of the input. */
ms_err ms_copylayers_along(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[0].i, dims[1] = {dim + 1};
    const ms_oparg args[] = {{.kind = MS_ARG_TENSOR},
                             {.kind = MS_ARG_INTS, .n = 1, .value.ints = dims}};
    ms_opcall call;
    MS_TRY(open_call(trace, layer, in[0], dim, &call));
    call.args = args;
    call.n_args = 2;
    return run(trace, &call, in, 1, out);
}

ms_err ms_copylayers_glu(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[0].i;
    char shape[MS_LAYERS_SHAPE];
    ms_opcall call;
    MS_TRY(open_call(trace, layer, in[0], dim, &call));
    if (call.made[0].size[dim + 1] % 2 != 0)
        return ms_trace_fail(
            trace, layer, "give it an even size",
            "\"%s\" halves dimension %lld, but \"%s\" gives %s", layer->name,
            (long long)dim, ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(ms_trace_at(trace, in[0]), shape));
    call.made[0].size[dim + 1] /= 2;
    return run(trace, &call, in, 1, out);
}

const ms_field ms_copylayers_topk_fields[MS_COPYLAYERS_TOPK] = {
    {.name = "k",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 31,
     .help = "how many"},
};

ms_err ms_copylayers_topk(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    char shape[MS_LAYERS_SHAPE];
    ms_opcall call;
    MS_TRY(open_call(trace, layer, in[0], 0, &call));
    uint32_t last = call.made[0].n_dims - 1u;
    if (layer->field[0].i > call.made[0].size[last])
        return ms_trace_fail(trace, layer, "take a smaller k",
                             "\"%s\" takes the %lld largest of what \"%s\" "
                             "gives: %s",
                             layer->name, (long long)layer->field[0].i,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(ms_trace_at(trace, in[0]), shape));
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++)
        call.made[k].size[last] = layer->field[0].i;
    return run(trace, &call, in, 1, out);
}

/* ---- more of the same ---------------------------------------------------- */

enum { REPEAT_TIMES, REPEAT_DIM };
const ms_field ms_copylayers_repeat_fields[MS_COPYLAYERS_REPEAT] = {
    {.name = "times",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = MAX_TIMES,
     .help = "how many times"},
    MS_LAYERS_DIM_FIELD,
};

/* repeat_interleave makes the indices of its rows first. */
ms_err ms_copylayers_repeat(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[REPEAT_DIM].i;
    uint32_t inputs[2] = {in[0], MS_NONE};
    ms_opcall call;
    MS_TRY(open_call(trace, layer, in[0], dim, &call));
    int64_t *size = &call.made[0].size[dim + 1];
    if (__builtin_mul_overflow(*size, layer->field[REPEAT_TIMES].i, size))
        *size = INT64_MAX; /* the tensor's product overflows too */
    if (strcmp(call.op, "aten::index_select") != 0)
        return run(trace, &call, in, 1, out);
    inputs[1] = ms_lookup_arange(trace, *size);
    *out = ms_opcall_run(trace, &call, inputs, 2);
    ms_trace_drop(trace, inputs[1]);
    return trace->err;
}

const ms_field ms_copylayers_pad_fields[MS_COPYLAYERS_PAD] = {
    {.name = "sizes",
     .type = MS_INTS,
     .required = true,
     .low = 0,
     .high = INT64_C(1) << 31,
     .help =
         "before and after the last dimension, then the one before it, ..."},
};

ms_err ms_copylayers_pad(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, uint32_t *out)
{
    char shape[MS_LAYERS_SHAPE];
    ms_opcall call;
    MS_TRY(open_call(trace, layer, in[0], 0, &call));
    uint32_t n_dims = call.made[0].n_dims;
    if (layer->n_ints % 2 != 0 || layer->n_ints / 2 >= n_dims)
        return ms_trace_fail(
            trace, layer, "two sizes for each dimension, the last one first",
            "\"%s\" has %u sizes to pad what \"%s\" gives: %s", layer->name,
            layer->n_ints, ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(ms_trace_at(trace, in[0]), shape));
    for (uint32_t i = 0; i < layer->n_ints; i++)
        call.made[0].size[n_dims - 1 - i / 2] += (int64_t)layer->ints[i];
    return run(trace, &call, in, 1, out);
}

/* ---- by indices ---------------------------------------------------------- */

enum { INDEX_COUNT, INDEX_DIM };
const ms_field ms_copylayers_index_fields[MS_COPYLAYERS_INDEX] = {
    {.name = "count",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 31,
     .help = "how many indices; an input of the step"},
    MS_LAYERS_DIM_FIELD,
};

/* gather has an index for each element, the others have one for each row.
 * x[:, index] first makes a full slice of each dimension before the index: a
 * view with a node of its own. */
ms_err ms_copylayers_index(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    int64_t dim = layer->field[INDEX_DIM].i;
    int64_t count = layer->field[INDEX_COUNT].i;
    ms_opcall call;
    MS_TRY(open_call(trace, layer, in[0], dim, &call));
    bool gathers = strcmp(call.op, "aten::gather") == 0;
    bool slices = strcmp(call.op, "aten::index") == 0;
    call.made[0].size[dim + 1] = count;
    uint32_t inputs[2] = {in[0], MS_NONE};
    inputs[1] = ms_trace_input(trace, "index", MS_INT64,
                               gathers ? call.made[0].n_dims : 1,
                               gathers ? call.made[0].size : &count);
    ms_trace_ref(trace, in[0]);
    for (int64_t d = 0; slices && d <= dim && !trace->err; d++) {
        uint32_t whole = inputs[0];
        inputs[0] = ms_view_slice(trace, whole, (uint32_t)d,
                                  ms_trace_at(trace, whole)->size[d]);
        ms_trace_drop(trace, whole);
    }
    *out = ms_opcall_run(trace, &call, inputs, 2);
    ms_trace_drop(trace, inputs[0]);
    return trace->err;
}
