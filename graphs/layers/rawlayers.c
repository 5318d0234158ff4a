/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that the user describes by hand: states and single ops. */
#include "graphs/layers/layers.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/trace.h"

const ms_field ms_rawlayers_parameters_fields[MS_RAWLAYERS_PARAMETERS] = {
    {.name = "count",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 58,
     .help = "elements"},
};

ms_err ms_rawlayers_parameters(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    (void)in;
    *out = MS_NONE;
    uint32_t states = ms_layers_vector(trace, "weight", layer->field[0].i);
    ms_quantize_parameter(trace, states);
    if (!trace->err && trace->settings->train)
        ms_raw_states(trace, states);
    return trace->err;
}

const ms_field ms_rawlayers_shape_fields[MS_RAWLAYERS_SHAPE] = {
    MS_LAYERS_SHAPE_FIELD,
};

/* The dimensions [first, shape...] of the layer's field. */
static ms_err read_shape(ms_trace *trace, const ms_layer *layer, int64_t first,
                         int64_t dims[MS_MAX_DIMS])
{
    if (layer->n_ints >= MS_MAX_DIMS)
        return ms_trace_fail(trace, layer, "fold some sizes into one",
                             "\"%s\" has %u dimensions; at most %u are "
                             "supported",
                             layer->name, layer->n_ints, MS_MAX_DIMS - 1);
    dims[0] = first;
    for (uint32_t i = 0; i < layer->n_ints; i++)
        dims[i + 1] = (int64_t)layer->ints[i];
    return MS_OK;
}

/* The parameter is one for all samples: ops broadcast it, or a layer expands
 * it. */
ms_err ms_rawlayers_parameter(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    int64_t dims[MS_MAX_DIMS];
    (void)in;
    MS_TRY(read_shape(trace, layer, 1, dims));
    *out = ms_trace_parameter(trace, "weight", layer->n_ints + 1, dims);
    ms_trace_ref(trace, *out);
    return trace->err;
}

ms_err ms_rawlayers_input(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    int64_t dims[MS_MAX_DIMS];
    (void)in;
    MS_TRY(read_shape(trace, layer, (int64_t)trace->settings->batch, dims));
    *out = ms_trace_input(trace, "input", trace->weight_dtype,
                          layer->n_ints + 1, dims);
    ms_trace_ref(trace, *out);
    return trace->err;
}

enum { OP_SHAPE, OP_SAVES, OP_FLOPS, OP_WORKSPACE };
enum { SAVES_NONE, SAVES_INPUT, SAVES_OUTPUT, SAVES_BOTH };
const ms_field ms_rawlayers_op_fields[MS_RAWLAYERS_OP] = {
    {.name = "shape",
     .type = MS_INTS,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 50,
     .help = "sizes of the output of one sample"},
    {.name = "saves",
     .type = MS_WORD,
     .words = "none|input|output|both",
     .help = "what backward needs"},
    {.name = "flops",
     .type = MS_FLOAT,
     .low = 0,
     .high = INT64_MAX,
     .help = "FLOPs of one sample, forward; backward counts twice"},
    {.name = "forward_workspace",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 50,
     .help = "bytes that live only while it runs"},
};

ms_err ms_rawlayers_op(ms_trace *trace, const ms_layer *layer,
                       const uint32_t *in, uint32_t *out)
{
    int64_t dims[MS_MAX_DIMS];
    int64_t saves = layer->field[OP_SAVES].i;
    MS_TRY(read_shape(trace, layer, (int64_t)trace->settings->batch, dims));
    ms_raw raw = {.dims = dims,
                  .n_dims = layer->n_ints + 1,
                  .saves_input = saves == SAVES_INPUT || saves == SAVES_BOTH,
                  .saves_output = saves == SAVES_OUTPUT || saves == SAVES_BOTH,
                  .flops =
                      layer->field[OP_FLOPS].f * (double)trace->settings->batch,
                  .workspace_bytes = (uint64_t)layer->field[OP_WORKSPACE].i};
    *out = ms_raw_op(trace, in[0], &raw);
    return trace->err;
}

/* ---- stages that were measured ------------------------------------------- */

#define BYTES(key, need, text)                                                 \
    {                                                                          \
        .name = (key), .type = MS_INT, .required = (need), .low = 0,           \
        .high = INT64_C(1) << 50, .help = (text)                               \
    }
const ms_field ms_rawlayers_stage_fields[MS_RAWLAYERS_STAGE] = {
    [MS_STAGE_FORWARD_NS] = BYTES("forward_ns", true, "ns of its forward"),
    [MS_STAGE_BACKWARD_NS] = BYTES("backward_ns", true, "ns of its backward"),
    [MS_STAGE_OUTPUT] = BYTES("output_bytes", true, "bytes of its output"),
    [MS_STAGE_SAVED] =
        BYTES("saved_bytes", true,
              "bytes that its backward needs, its output included"),
    [MS_STAGE_FORWARD_WORKSPACE] =
        BYTES("forward_workspace_bytes", false,
              "bytes that its forward takes besides, while it runs"),
    [MS_STAGE_BACKWARD_WORKSPACE] =
        BYTES("backward_workspace_bytes", false,
              "bytes that its backward takes, with the gradient of its "
              "input"),
};

ms_err ms_rawlayers_stage(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    const ms_value *field = layer->field;
    uint64_t workspace = (uint64_t)field[MS_STAGE_BACKWARD_WORKSPACE].i;
    uint64_t handed = ms_trace_needs(trace, in[0])
                          ? ms_trace_bytes(ms_trace_at(trace, in[0]))
                          : 0;
    if (workspace < handed)
        return ms_trace_fail(trace, layer,
                             "it includes the gradient of the layer's input",
                             "\"%s\" has a backward_workspace_bytes of less "
                             "than %llu bytes, its input",
                             layer->name, (unsigned long long)handed);
    *out = ms_raw_measured(
        trace, in[0],
        &(ms_raw_stage){.output_bytes = (uint64_t)field[MS_STAGE_OUTPUT].i,
                        .saved_bytes = (uint64_t)field[MS_STAGE_SAVED].i,
                        .forward_workspace_bytes =
                            (uint64_t)field[MS_STAGE_FORWARD_WORKSPACE].i,
                        .backward_workspace_bytes = workspace - handed,
                        .forward_ns = (uint64_t)field[MS_STAGE_FORWARD_NS].i,
                        .backward_ns =
                            (uint64_t)field[MS_STAGE_BACKWARD_NS].i});
    return trace->err;
}
