/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/splitproducts.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/lora.h"
#include "graphs/parallel/partproduct.h"
#include "graphs/quantized/fp8.h"
#include "graphs/trace/trace.h"

/* Megatron's own layers gather into its buffer: the head, and those of blocks
 * where Transformer Engine's do not stand for them. */
static bool gathers_in_buffer(const ms_trace *trace, const ms_layer *layer)
{
    return layer->block == MS_NONE || trace->kernels.gathers_in_buffer;
}

uint32_t ms_splitproducts_linear(ms_trace *trace, const ms_layer *layer,
                                 const char *role, uint32_t x, uint32_t weight,
                                 uint32_t bias, ms_split split)
{
    if (trace->err)
        return MS_NONE;
    uint32_t y;
    bool by_rows = split == MS_SPLIT_ROWS, keeps = trace->kernels.keeps_parts;
    if (split == MS_SPLIT_NOT)
        return ms_lora_linear(trace, layer, role, x, weight, bias);
    if (trace->settings->training->lora_rank == 0 && ms_fp8_takes(trace, layer))
        return ms_fp8_linear(trace, layer, x, weight, bias, split);
    if (keeps && by_rows)
        y = ms_partproduct_rows(trace, x, weight, bias);
    else if (keeps)
        y = ms_partproduct_columns(trace, x, weight, bias,
                                   gathers_in_buffer(trace, layer) &&
                                       ms_trace_needs(trace, weight));
    else
        y = ms_lora_base(trace, layer, x, weight, bias);
    if (!keeps && by_rows)
        y = ms_trace_rebind(trace, y, ms_shards_leave(trace, y));
    return ms_lora_add(trace, layer, role, x, weight, y, split);
}

uint32_t ms_splitproducts_product(ms_trace *trace, const ms_layer *layer,
                                  const char *const roles[2], bool biased,
                                  uint32_t x, int64_t width, ms_split split)
{
    if (trace->err)
        return MS_NONE;
    bool divided = split != MS_SPLIT_NOT;
    int64_t dims[2] = {width, ms_layers_last_dim(trace, x)};
    uint32_t bias = MS_NONE;
    ms_shards_make_parts(trace, divided);
    uint32_t weight = ms_trace_parameter(trace, roles[0], 2, dims);
    ms_shards_make_parts(trace, divided && split != MS_SPLIT_ROWS);
    if (biased)
        bias = ms_layers_vector(trace, roles[1], width);
    ms_shards_make_parts(trace, false);
    return ms_splitproducts_linear(trace, layer, roles[0], x, weight, bias,
                                   split);
}
