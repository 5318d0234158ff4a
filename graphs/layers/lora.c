/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/lora.h"
#include "graphs/layers/layers.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/partproduct.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/quantized/fp8.h"
#include "graphs/quantized/packed.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* ---- targets ------------------------------------------------------------- */

/* The words of lora.targets and of lora.weights, in the order of these
 * settings. */
enum { TARGETS_QV, TARGETS_QKV, TARGETS_ATTENTION, TARGETS_MLP, TARGETS_ALL };

/* A fused projection is a target where one of its parts is one: the kv_up of
 * latent attention, and the kv of one of two inputs, make keys and values. */
static bool is_target(const ms_trace *trace, const ms_layer *layer,
                      const char *role)
{
    static const char *const makes_qv[] = {"qkv.weight",   "q.weight",
                                           "v.weight",     "q_up.weight",
                                           "kv_up.weight", "kv.weight"};
    bool k = strcmp(role, "k.weight") == 0, qv = false;
    for (size_t i = 0; i < sizeof makes_qv / sizeof *makes_qv; i++)
        qv = qv || strcmp(role, makes_qv[i]) == 0;
    bool plain = strcmp(role, "weight") == 0;
    switch (trace->settings->training->lora_targets) {
    case TARGETS_QV:
        return qv;
    case TARGETS_QKV:
        return qv || k;
    case TARGETS_ATTENTION:
        return !plain;
    case TARGETS_MLP:
        return plain && layer->block != MS_NONE &&
               !ms_trace_is_head(trace, layer);
    default:
        return !ms_trace_is_head(trace, layer);
    }
}

/* ---- adapters ------------------------------------------------------------ */

enum { TRAINS_BOTH, TRAINS_A, TRAINS_B };

/* frozen is the word of lora.trains that leaves this weight frozen. */
static uint32_t adapter_weight(ms_trace *trace, const char *role, int64_t rows,
                               int64_t columns, int64_t frozen)
{
    int64_t dims[2] = {rows, columns};
    uint8_t dtype = trace->weight_dtype;
    trace->frozen = trace->settings->training->lora_trains == frozen;
    trace->weight_dtype = trace->trained_dtype;
    uint32_t weight = ms_trace_parameter(trace, role, 2, dims);
    trace->weight_dtype = dtype;
    trace->frozen = true;
    trace->n_adapters++;
    return weight;
}

/* "q.lora_A.weight" */
static const char *role_of(ms_trace *trace, const char *role, const char *which)
{
    int stem = (int)(strlen(role) - strlen("weight"));
    const char *name =
        ms_arena_format(trace->arena, "%.*slora_%s.weight", stem, role, which);
    if (!name && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    return name;
}

/* Returns x in the dtype of the adapters, as a new reference. */
static uint32_t input_of(ms_trace *trace, uint32_t x)
{
    if (ms_trace_at(trace, x)->dtype != trace->trained_dtype)
        return ms_cast_to(trace, x, trace->trained_dtype);
    ms_trace_ref(trace, x);
    return x;
}

/* lora_A(x): where ranks split the layer by rows its columns are divided, and
 * the result is summed over them. */
static uint32_t lower(ms_trace *trace, uint32_t x, uint32_t a, ms_split split)
{
    if (split != MS_SPLIT_ROWS)
        return ms_matmul_linear(trace, x, a, MS_NONE);
    if (!trace->err && trace->kernels.keeps_parts)
        return ms_partproduct_rows(trace, x, a, MS_NONE);
    uint32_t low = ms_matmul_linear(trace, x, a, MS_NONE);
    return ms_trace_rebind(trace, low, ms_shards_leave(trace, low));
}

/* lora_B(low): where they split it by columns its rows are divided, and the
 * gradient of low is summed. */
static uint32_t raise(ms_trace *trace, uint32_t low, uint32_t b, ms_split split)
{
    if (split != MS_SPLIT_COLUMNS)
        return ms_matmul_linear(trace, low, b, MS_NONE);
    if (!trace->err && trace->kernels.keeps_parts)
        return ms_partproduct_columns(trace, low, b, MS_NONE, false);
    uint32_t entered = ms_tensorops_enter(trace, low);
    uint32_t high = ms_matmul_linear(trace, entered, b, MS_NONE);
    ms_trace_drop(trace, entered);
    return high;
}

/* lora_B(lora_A(dropout(x))) * scaling */
static uint32_t adapter(ms_trace *trace, const char *role, uint32_t x,
                        uint32_t weight, ms_split split)
{
    const ms_tensor *w = ms_trace_at(trace, weight);
    int64_t rank = trace->settings->training->lora_rank, out = w->size[0];
    uint32_t parts = trace->parts,
             ranks = trace->shards ? trace->shards->ranks.ranks : 0;
    trace->parts = split == MS_SPLIT_ROWS ? ranks : 0;
    uint32_t a = adapter_weight(trace, role_of(trace, role, "A"), rank,
                                w->size[1], TRAINS_B);
    trace->parts = split == MS_SPLIT_COLUMNS ? ranks : 0;
    uint32_t b =
        adapter_weight(trace, role_of(trace, role, "B"), out, rank, TRAINS_A);
    trace->parts = parts;
    if (trace->err)
        return MS_NONE;
    uint32_t in = input_of(trace, x);
    uint32_t dropped = ms_pointwise_dropout(
        trace, in, trace->settings->training->lora_dropout);
    uint32_t low = lower(trace, dropped, a, split);
    ms_trace_drop(trace, dropped);
    uint32_t high = raise(trace, low, b, split);
    ms_trace_drop(trace, low);
    uint32_t y = ms_pointwise_mul_scalar(trace, high);
    ms_trace_drop(trace, high);
    ms_trace_drop(trace, in);
    return y;
}

uint32_t ms_lora_add(ms_trace *trace, const ms_layer *layer, const char *role,
                     uint32_t x, uint32_t weight, uint32_t y, ms_split split)
{
    if (trace->err || trace->settings->training->lora_rank == 0 ||
        !is_target(trace, layer, role))
        return y;
    uint8_t dtype = ms_trace_at(trace, y)->dtype;
    uint32_t low = adapter(trace, role, x, weight, split);
    y = ms_trace_rebind(trace, y, ms_pointwise_add(trace, y, low));
    ms_trace_drop(trace, low);
    if (trace->err || ms_trace_at(trace, y)->dtype == dtype)
        return y;
    return ms_trace_rebind(trace, y, ms_cast_to(trace, y, dtype));
}

uint32_t ms_lora_base(ms_trace *trace, const ms_layer *layer, uint32_t x,
                      uint32_t weight, uint32_t bias)
{
    if (trace->err)
        return MS_NONE;
    return ms_packed_takes(trace, layer)
               ? ms_packed_linear(trace, x, weight, bias)
               : ms_matmul_linear(trace, x, weight, bias);
}

uint32_t ms_lora_linear(ms_trace *trace, const ms_layer *layer,
                        const char *role, uint32_t x, uint32_t weight,
                        uint32_t bias)
{
    const ms_training *training = trace->settings->training;
    if (trace->err)
        return MS_NONE;
    if (training->lora_rank == 0 && ms_fp8_takes(trace, layer))
        return ms_fp8_linear(trace, layer, x, weight, bias, MS_SPLIT_NOT);
    uint32_t y = ms_lora_base(trace, layer, x, weight, bias);
    return ms_lora_add(trace, layer, role, x, weight, y, MS_SPLIT_NOT);
}

/* ---- settings ------------------------------------------------------------ */

static ms_err refuse(const ms_trace *trace, const char *what, const char *hint)
{
    return ms_fail(trace->fault, MS_EUSAGE, "lora.rank", hint,
                   "lora.rank is not known %s", what);
}

ms_err ms_lora_open(ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    const ms_shape *shape = trace->settings->shape;
    trace->trained_dtype = trace->weight_dtype;
    if (training->lora_rank == 0)
        return MS_OK;
    trace->frozen = true;
    if (training->lora_dtype == 1)
        trace->trained_dtype = MS_FLOAT32;
    if (shape->flat_step.used)
        return refuse(trace, "beside DeepSpeed's flat step",
                      shape->flat_step.is_named
                          ? "take zero or fsdp"
                          : "leave impl=deepspeed out, or take fsdp");
    if (shape->shared >= MS_SHARED_OPTIMIZER && shape->copies_parts &&
        shape->part != MS_PART_ROWS)
        return refuse(trace,
                      "beside FSDP1, whose flat parameters are trained or "
                      "frozen as a whole",
                      "take fsdp, or zero:3");
    return MS_OK;
}

ms_err ms_lora_close(const ms_trace *trace)
{
    if (trace->settings->training->lora_rank == 0 || trace->n_adapters > 0)
        return MS_OK;
    return ms_fail(trace->fault, MS_EUSAGE, "lora.targets",
                   "take other targets: memsim inspect MODEL lists its layers",
                   "no layer of %s is a target of lora.targets",
                   trace->settings->model->name);
}

uint32_t ms_lora_product(ms_trace *trace, const ms_layer *layer,
                         const char *const roles[2], bool biased, uint32_t x,
                         int64_t width)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {width, ms_layers_last_dim(trace, x)};
    uint32_t weight = ms_trace_parameter(trace, roles[0], 2, dims);
    uint32_t bias = biased ? ms_layers_vector(trace, roles[1], width) : MS_NONE;
    return ms_lora_linear(trace, layer, roles[0], x, weight, bias);
}
