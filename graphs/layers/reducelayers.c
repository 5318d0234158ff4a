/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that reduce dimensions: one forward, driven by the table's op. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"

#include <string.h>

enum { DIMS, KEEP };
const ms_field ms_reducelayers_dims_fields[MS_REDUCELAYERS_DIMS] = {
    {.name = "dims",
     .type = MS_INTS,
     .low = 0,
     .high = MS_MAX_DIMS - 2,
     .help = "the dimensions, from 0 without the batch"},
    {.name = "keepdim",
     .type = MS_BOOL,
     .help = "leave them there with a size of 1"},
};

bool ms_reducelayers_is_loss(const ms_layer *layer)
{
    const char *op = layer->kind->op;
    return layer->n_ints == 0 && op != NULL &&
           (strcmp(op, "aten::mean") == 0 || strcmp(op, "aten::sum") == 0);
}

/* One number over everything, the batch included. */
static ms_err reduce_all(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         uint32_t *out)
{
    const ms_layer_kind *kind = layer->kind;
    ms_opcall call = {.op = kind->op, .flops = kind->flops};
    if (!ms_reducelayers_is_loss(layer))
        return ms_trace_fail(trace, layer, "name them: \"dims\": [0]",
                             "\"%s\" (%s) needs the dimensions to reduce",
                             layer->name, kind->type);
    call.made[0].dtype = ms_trace_at(trace, x)->dtype;
    *out = ms_opcall_run(trace, &call, &x, 1);
    return trace->err;
}

/* The dimensions as the op counts them, a bit each. */
static ms_err read_dims(ms_trace *trace, const ms_layer *layer, uint32_t x,
                        int64_t *dims, uint32_t *bits)
{
    const ms_tensor *tensor = ms_trace_at(trace, x);
    char shape[MS_LAYERS_SHAPE];
    *bits = 0;
    for (uint32_t i = 0; i < layer->n_ints; i++) {
        uint64_t d = layer->ints[i] + 1;
        if (d >= tensor->n_dims || (*bits >> d & 1) != 0)
            return ms_trace_fail(
                trace, layer, "name each dimension once, from 0",
                "\"%s\" reduces dimension %llu, but \"%s\" gives %s",
                layer->name, (unsigned long long)layer->ints[i],
                ms_layers_source(trace->settings, layer, 0),
                ms_layers_shape(tensor, shape));
        *bits |= 1u << d;
        dims[i] = (int64_t)d;
    }
    return MS_OK;
}

static void reduce_shape(const ms_tensor *x, uint32_t bits, bool keep,
                         ms_opcall_made *made)
{
    made->dtype = x->dtype;
    made->n_dims = 0;
    for (uint32_t d = 0; d < x->n_dims; d++) {
        bool reduced = (bits >> d & 1) != 0;
        if (!reduced || keep)
            made->size[made->n_dims++] = reduced ? 1 : x->size[d];
    }
}

ms_err ms_reducelayers_reduce(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    const ms_layer_kind *kind = layer->kind;
    int64_t dims[MS_MAX_DIMS];
    bool keep = layer->field[KEEP].b;
    uint32_t bits;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (layer->n_ints == 0)
        return reduce_all(trace, layer, in[0], out);
    MS_TRY(read_dims(trace, layer, in[0], dims, &bits));
    const ms_oparg tensor = {.kind = MS_ARG_TENSOR};
    const ms_oparg of = {
        .kind = MS_ARG_INTS, .n = layer->n_ints, .value.ints = dims};
    const ms_oparg kept = {.kind = MS_ARG_BOOL, .value.i = keep};
    const ms_oparg power = {.kind = MS_ARG_FLOAT, .value.f = 2};
    const ms_oparg plain[] = {tensor, of, kept};
    const ms_oparg powered[] = {tensor, power, of, kept};
    bool norm = strcmp(kind->op, "aten::linalg_vector_norm") == 0;
    ms_opcall call = {.op = kind->op,
                      .overload = "dim",
                      .args = norm ? powered : plain,
                      .n_args = norm ? 4 : 3,
                      .flops = kind->flops};
    if (layer->n_ints > 1 && ms_opcall_outputs(trace, &call) > 1)
        return ms_trace_fail(trace, layer, "reduce them one after another",
                             "\"%s\" (%s) reduces one dimension, not %u",
                             layer->name, kind->type, layer->n_ints);
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++)
        reduce_shape(ms_trace_at(trace, in[0]), bits, keep, &call.made[k]);
    call.made[1].dtype = MS_INT64;
    *out = ms_opcall_run(trace, &call, in, 1);
    return trace->err;
}
