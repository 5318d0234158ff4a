/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/quantized/quantize.h"
#include "graphs/formats/precisions.h"
#include "graphs/trace/opend.h"
#include "sim/graph.h"

/* ---- recipes ------------------------------------------------------------- */

/* The scales of a matrix as its rows are read: one for down x across elements,
 * each dimension of their table padded; by columns the same, transposed. down 0
 * means one scale for the whole tensor. */
typedef struct scaling {
    uint16_t down, across, pad_down, pad_across, item_bytes;
} scaling;

typedef struct recipe {
    scaling tensor, weight;
    bool apart; /* the data by rows and by columns differ in more than their
                   order */
    bool looks; /* a kernel finds the maximum first */
    /* The number of tokens must be a multiple of rows_by, widths one of
     * width_by. */
    uint8_t rows_by, width_by;
    /* The bytes of scales and maxima that a product has, for forward and
     * backward. */
    uint16_t state_bytes[2];
} recipe;

/* delayed: three tensors of forward, two of backward, each with a scale and
 * 1024 maxima (transformer_engine/pytorch/quantization.py,
 * DelayedScalingRecipeState); current: with a scale and a maximum.  Sizes of
 * scales: tensor/float8_blockwise_tensor.py and tensor/mxfp8_tensor.py,
 * get_scale_shape; of matrices: utils.py, assert_dim_for_fp8_exec.  MS-AMP:
 * metas of input and weight, of gradients (msamp/common/tensor/meta.py), with
 * windows of 16 and 1. */
#define WHOLE                                                                  \
    {                                                                          \
        .item_bytes = 4                                                        \
    }
enum { DELAYED, CURRENT, BLOCK, MX, MSAMP };
static const recipe recipes[] = {
    [DELAYED] = {.tensor = WHOLE,
                 .weight = WHOLE,
                 .rows_by = 8,
                 .width_by = 16,
                 .state_bytes = {3 * 4 * 1025, 2 * 4 * 1025}},
    [CURRENT] = {.tensor = WHOLE,
                 .weight = WHOLE,
                 .looks = true,
                 .rows_by = 8,
                 .width_by = 16,
                 .state_bytes = {3 * 8, 2 * 8}},
    [BLOCK] = {.tensor = {1, 128, 4, 1, 4},
               .weight = {128, 128, 1, 4, 4},
               .apart = true,
               .rows_by = 8,
               .width_by = 16},
    [MX] = {.tensor = {1, 32, 128, 4, 1},
            .weight = {1, 32, 128, 4, 1},
            .apart = true,
            .rows_by = 32,
            .width_by = 32},
    [MSAMP] = {.tensor = WHOLE,
               .weight = WHOLE,
               .rows_by = 8,
               .width_by = 16,
               .state_bytes = {4 * (3 + 16) + 4 * (3 + 1),
                               4 * (3 + 16) + 4 * (3 + 1)}},
};

bool ms_quantize_is_late(const ms_step_settings *settings)
{
    return ms_precisions_of(settings->training)->late;
}

bool ms_quantize_is_wide(const ms_step_settings *settings)
{
    return ms_precisions_of(settings->training)->wide;
}

/* Transformer Engine's own choice (get_default_fp8_recipe). */
static const recipe *recipe_of(const ms_step_settings *settings)
{
    if (ms_quantize_is_late(settings))
        return &recipes[MSAMP];
    if (ms_precisions_of(settings->training)->mx)
        return &recipes[MX];
    switch (settings->training->fp8_recipe) {
    case MS_RECIPE_DELAYED:
        return &recipes[DELAYED];
    case MS_RECIPE_CURRENT:
        return &recipes[CURRENT];
    case MS_RECIPE_BLOCK:
        return &recipes[BLOCK];
    case MS_RECIPE_MX:
        return &recipes[MX];
    default:
        return &recipes[settings->device->compute_capability >= MS_BLACKWELL
                            ? MX
                            : DELAYED];
    }
}

/* Does the data by rows serve products that read columns
 * (is_non_tn_fp8_gemm_supported)? */
static bool one_serves(const ms_step_settings *settings)
{
    return !recipe_of(settings)->apart && !ms_quantize_is_late(settings) &&
           settings->device->compute_capability >= MS_BLACKWELL;
}

ms_fp8_weights ms_quantize_lasts(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    int64_t set = settings->training->fp8_weights;
    if (ms_quantize_is_wide(settings))
        return MS_FP8_LAYER;
    if (set != MS_FP8_AUTO)
        return (ms_fp8_weights)set;
    if (ms_quantize_is_late(settings))
        return MS_FP8_FORWARD;
    if (ms_precisions_of(settings->training)->quantized)
        return MS_FP8_KEPT;
    if (settings->shape->shared == MS_SHARED_PARAMETERS)
        return MS_FP8_LAYER;
    return trace->kernels.keeps_fp8 ? MS_FP8_KEPT : MS_FP8_FORWARD;
}

static bool is_primary(const ms_step_settings *settings)
{
    return ms_precisions_of(settings->training)->quantized;
}

void ms_quantize_multiples(const ms_step_settings *settings, uint32_t *rows,
                           uint32_t *width)
{
    *rows = recipe_of(settings)->rows_by;
    *width = recipe_of(settings)->width_by;
}

static uint64_t rounded(uint64_t n, uint64_t by, uint64_t pad)
{
    uint64_t blocks = n / by + (n % by != 0);
    return (blocks + pad - 1) / pad * pad;
}

/* The bytes of the scales of a tensor seen as a matrix: all dimensions but the
 * last are rows, the last is columns. */
static uint64_t scale_bytes(const scaling *how, const ms_tensor *x,
                            bool columns)
{
    uint64_t elements = ms_trace_elements(x);
    uint64_t across = (uint64_t)x->size[x->n_dims - 1];
    uint64_t down = across > 0 ? elements / across : 0;
    if (how->down == 0)
        return how->item_bytes;
    if (columns) /* the same table of the transposed matrix */
        return rounded(down, how->across, how->pad_across) *
               rounded(across, how->down, how->pad_down) * how->item_bytes;
    return rounded(down, how->down, how->pad_down) *
           rounded(across, how->across, how->pad_across) * how->item_bytes;
}

/* ---- quantized tensors --------------------------------------------------- */

const ms_quantized ms_quantize_nothing = {
    {MS_NONE, MS_NONE}, {MS_NONE, MS_NONE}, {MS_NONE, MS_NONE}};

bool ms_quantize_has(const ms_quantized *q, uint32_t side)
{
    return q->data[side] != MS_NONE || q->lasting[side] != MS_NONE;
}

void ms_quantize_read(ms_trace *trace, const ms_quantized *q, uint32_t side)
{
    uint32_t lasting = q->lasting[side];
    if (trace->err)
        return;
    if (lasting != MS_NONE)
        ms_trace_read_storage(trace, lasting,
                              trace->graph->storage_bytes[lasting]);
    ms_trace_read(trace, q->data[side]);
    ms_trace_read(trace, q->scale[side]);
}

void ms_quantize_drop(ms_trace *trace, ms_quantized *q, uint32_t side)
{
    ms_trace_drop(trace, q->data[side]);
    ms_trace_drop(trace, q->scale[side]);
    q->data[side] = q->scale[side] = MS_NONE;
}

void ms_quantize_save(ms_trace *trace, uint32_t node, const ms_quantized *q,
                      uint32_t side)
{
    if (q->data[side] == MS_NONE)
        return;
    ms_trace_save(trace, node, q->data[side]);
    ms_trace_save(trace, node, q->scale[side]);
}

static void make_side(ms_trace *trace, ms_quantized *q, uint32_t side,
                      const ms_tensor *x, const scaling *how)
{
    static const char *const names[] = {"fp8_rows", "fp8_columns"};
    int64_t scales[1] = {(int64_t)scale_bytes(how, x, side == MS_COLUMNS)};
    q->data[side] =
        ms_trace_make(trace, names[side], MS_FLOAT8, x->n_dims, x->size);
    if (side == MS_COLUMNS && how->down == 0 && q->scale[MS_ROWS] != MS_NONE) {
        q->scale[MS_COLUMNS] = q->scale[MS_ROWS]; /* transposed only */
        ms_trace_ref(trace, q->scale[MS_ROWS]);
        return;
    }
    q->scale[side] = ms_trace_make(trace, "fp8_scale", MS_BYTE, 1, scales);
}

/* The open op makes the sides that are asked for; one may serve for both. */
static void make_sides(ms_trace *trace, ms_quantized *q, const ms_tensor *x,
                       const scaling *how, bool columns)
{
    make_side(trace, q, MS_ROWS, x, how);
    if (!columns || trace->err)
        return;
    if (!one_serves(trace->settings)) {
        make_side(trace, q, MS_COLUMNS, x, how);
        return;
    }
    q->data[MS_COLUMNS] = q->data[MS_ROWS];
    q->scale[MS_COLUMNS] = q->scale[MS_ROWS];
    ms_trace_ref(trace, q->data[MS_ROWS]);
    ms_trace_ref(trace, q->scale[MS_ROWS]);
}

/* Quantizes x as products read it. bias gets the sum of the rows of x, or is
 * NULL. */
ms_quantized ms_quantize_tensor(ms_trace *trace, uint32_t x, bool columns,
                                uint32_t like, uint32_t *bias)
{
    ms_quantized q = ms_quantize_nothing;
    if (trace->err)
        return q;
    const recipe *how = recipe_of(trace->settings);
    const ms_tensor tensor = *ms_trace_at(trace, x);
    uint64_t n = ms_trace_elements(&tensor);
    if (how->looks) {
        ms_trace_begin(trace, "fp8::amax");
        ms_trace_read(trace, x);
        ms_trace_end(trace, (double)n, false);
    }
    ms_trace_begin(trace, "fp8::quantize");
    ms_trace_read(trace, x);
    make_sides(trace, &q, &tensor, &how->tensor, columns);
    if (bias)
        *bias = ms_trace_make_like(trace, "grad", like);
    ms_opend_cast(trace, 2 * (double)n, x);
    return q;
}

/* Quantizes one side of a weight or of a layer's input; both have a scale for
 * 32 elements. */
ms_quantized ms_quantize_side(ms_trace *trace, uint32_t x, uint32_t side)
{
    ms_quantized q = ms_quantize_nothing;
    if (trace->err)
        return q;
    const ms_tensor tensor = *ms_trace_at(trace, x);
    ms_trace_begin(trace, "fp8::quantize");
    ms_trace_read(trace, x);
    make_side(trace, &q, side, &tensor, &recipe_of(trace->settings)->tensor);
    double flops = 2 * (double)ms_trace_elements(&tensor);
    if (tensor.parameter != MS_NONE)
        ms_trace_end(trace, flops, false);
    else
        ms_opend_cast(trace, flops, x);
    return q;
}

/* Makes one side from the other by a kernel that transposes it. */
void ms_quantize_turn(ms_trace *trace, ms_quantized *q, const ms_tensor *x)
{
    if (trace->err)
        return;
    ms_trace_begin(trace, "fp8::transpose");
    ms_quantize_read(trace, q, MS_ROWS);
    make_side(trace, q, MS_COLUMNS, x, &recipe_of(trace->settings)->weight);
    ms_trace_end(trace, 0, false);
}

/* ---- weights ------------------------------------------------------------- */

/* The quantized copies of a weight that exist throughout the step. */
ms_quantized ms_quantize_lasting(const ms_step_settings *settings,
                                 const ms_parameter *of)
{
    ms_quantized q = ms_quantize_nothing;
    q.lasting[MS_ROWS] = of->copy[MS_ROWS];
    q.lasting[MS_COLUMNS] = of->copy[MS_COLUMNS];
    if (is_primary(settings) && of->linear)
        q.lasting[MS_ROWS] = of->storage;
    if (one_serves(settings) && q.lasting[MS_ROWS] != MS_NONE)
        q.lasting[MS_COLUMNS] = q.lasting[MS_ROWS];
    return q;
}

/* Quantizes the weight as its products read it, with columns where they are
 * asked for. */
ms_quantized ms_quantize_weight(ms_trace *trace, uint32_t weight, bool columns)
{
    ms_quantized q = ms_quantize_nothing;
    if (trace->err)
        return q;
    const recipe *how = recipe_of(trace->settings);
    const ms_tensor tensor = *ms_trace_at(trace, weight);
    uint64_t bytes = trace->graph->storage_bytes[tensor.storage];
    if (tensor.parameter != MS_NONE)
        q = ms_quantize_lasting(trace->settings,
                                &trace->parameters[tensor.parameter]);
    if (ms_quantize_has(&q, MS_ROWS)) {
        if (columns && !ms_quantize_has(&q, MS_COLUMNS))
            ms_quantize_turn(trace, &q, &tensor);
        return q;
    }
    for (uint32_t pass = how->looks ? 0 : 1; pass < 2; pass++) {
        ms_trace_begin(trace, pass == 0 ? "fp8::amax" : "fp8::quantize");
        ms_trace_read_storage(trace, tensor.storage, bytes);
        if (pass == 1)
            make_sides(trace, &q, &tensor, &how->weight, columns);
        ms_trace_end(trace, (double)ms_trace_elements(&tensor), false);
    }
    return q;
}

static uint32_t lasting_storage(ms_trace *trace, const char *role,
                                uint64_t bytes, uint8_t what)
{
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_PARAMETERS, true);
    if (s != MS_NONE)
        trace->graph->storage_buffer[s] = what;
    return s;
}

static void keep_copies(ms_trace *trace, ms_parameter *it, const ms_tensor *w)
{
    const scaling *how = &recipe_of(trace->settings)->weight;
    bool columns = trace->settings->train && !trace->frozen &&
                   !one_serves(trace->settings);
    if (!is_primary(trace->settings))
        it->copy[MS_ROWS] = lasting_storage(trace, "fp8_rows", it->elements,
                                            MS_COPY_OF_WEIGHTS);
    if (columns)
        it->copy[MS_COLUMNS] = lasting_storage(
            trace, "fp8_columns", it->elements, MS_COPY_OF_WEIGHTS);
    lasting_storage(trace, "fp8_scale", scale_bytes(how, w, false),
                    MS_MODEL_BUFFER);
    if (columns && how->down > 0)
        lasting_storage(trace, "fp8_scale", scale_bytes(how, w, true),
                        MS_MODEL_BUFFER);
}

void ms_quantize_parameter(ms_trace *trace, uint32_t weight)
{
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    if (trace->err || !row->fp8)
        return;
    ms_tensor *tensor = ms_trace_at(trace, weight);
    ms_parameter *it = &trace->parameters[tensor->parameter];
    if (it->linear)
        return;
    it->linear = true;
    trace->n_formatted++;
    trace->graph->storage_bytes[it->storage] =
        it->elements * ms_dtypes_bytes[row->linear.weight];
    if (row->linear.gradient != MS_NO_DTYPE) /* autograd's dtype is that */
        tensor->dtype = row->linear.gradient;
    if (ms_quantize_lasts(trace) == MS_FP8_KEPT)
        keep_copies(trace, it, ms_trace_at(trace, weight));
}

/* Makes the scales of so many products, with the maxima of earlier steps from
 * which they are computed. */
void ms_quantize_state(ms_trace *trace, uint64_t products)
{
    static const char *const names[] = {"fp8_forward_state",
                                        "fp8_backward_state"};
    const recipe *how = recipe_of(trace->settings);
    for (uint32_t i = 0; i < 2; i++)
        if (how->state_bytes[i] > 0)
            lasting_storage(trace, names[i], products * how->state_bytes[i],
                            MS_MODEL_BUFFER);
}

void ms_quantize_refresh(ms_trace *trace)
{
    bool some = false;
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        const ms_parameter *it = &trace->parameters[p];
        for (uint32_t side = MS_ROWS; side <= MS_COLUMNS; side++) {
            if (it->copy[side] == MS_NONE || it->grad_storage == MS_NONE)
                continue;
            if (!some)
                ms_trace_begin(trace, "fp8::quantize (all)");
            some = true;
            ms_trace_read_storage(trace, it->storage,
                                  trace->graph->storage_bytes[it->storage]);
            ms_trace_read_storage(trace, it->copy[side], 0);
            if (!trace->err)
                trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
                    trace->graph->storage_bytes[it->copy[side]];
        }
    }
    if (some)
        ms_trace_end(trace, 0, false);
}
