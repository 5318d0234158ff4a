/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/fp8.h"
#include "graphs/lower.h"
#include "graphs/ops/ops.h"
#include "graphs/precisions.h"

#include <stdio.h>
#include <string.h>

/* ---- recipes ------------------------------------------------------------- */

/* Scales of a matrix as its rows are read: one for down x across elements, each
 * dimension of their table padded; by columns the same turned.  down 0: one of
 * the whole tensor. */
typedef struct scaling {
    uint16_t down, across, pad_down, pad_across, item_bytes;
} scaling;

typedef struct recipe {
    scaling tensor, weight;
    bool apart; /* rows and columns differ in more than their order */
    bool looks; /* a kernel finds the maximum first */
    /* Tokens must be a multiple of this, widths of that. */
    uint8_t rows_by, width_by;
    /* Scales and maxima that a product has, for forward and backward. */
    uint16_t state_bytes[2];
} recipe;

/* delayed: three tensors of forward, two of backward, each with a scale and
 * 1024 maxima (transformer_engine/pytorch/quantization.py,
 * DelayedScalingRecipeState); current: with a scale and a maximum.  Sizes of
 * scales: tensor/float8_blockwise_tensor.py and tensor/mxfp8_tensor.py,
 * get_scale_shape; of matrices: utils.py, assert_dim_for_fp8_exec.  MS-AMP:
 * metas of input and weight, of gradients (msamp/common/tensor/meta.py), with
 * windows of 16 and 1. */
#define WHOLE {.item_bytes = 4}
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

/* In the order of the words of fp8.recipe. */
enum { RECIPE_AUTO, RECIPE_DELAYED, RECIPE_CURRENT, RECIPE_BLOCK, RECIPE_MX };

#define BLACKWELL 100u
#define HOPPER 90u

static bool is_late(const ms_trace *trace)
{
    return ms_precisions_of(trace->training)->late;
}

/* Transformer Engine's own choice (get_default_fp8_recipe). */
static const recipe *recipe_of(const ms_trace *trace)
{
    if (is_late(trace))
        return &recipes[MSAMP];
    switch (trace->training->fp8_recipe) {
    case RECIPE_DELAYED:
        return &recipes[DELAYED];
    case RECIPE_CURRENT:
        return &recipes[CURRENT];
    case RECIPE_BLOCK:
        return &recipes[BLOCK];
    case RECIPE_MX:
        return &recipes[MX];
    default:
        return &recipes[trace->device->compute_capability >= BLACKWELL
                            ? MX
                            : DELAYED];
    }
}

/* Do rows serve for columns (is_non_tn_fp8_gemm_supported)? */
static bool one_serves(const ms_trace *trace)
{
    return !recipe_of(trace)->apart && !is_late(trace) &&
           trace->device->compute_capability >= BLACKWELL;
}

static ms_fp8_weights weights_of(const ms_trace *trace)
{
    int64_t set = trace->training->fp8_weights;

    if (set != MS_FP8_AUTO)
        return (ms_fp8_weights)set;
    if (is_late(trace))
        return MS_FP8_FORWARD;
    if (ms_precisions_of(trace->training)->quantized)
        return MS_FP8_KEPT;
    return trace->shape->shared == MS_SHARED_PARAMETERS ? MS_FP8_LAYER
                                                        : MS_FP8_FORWARD;
}

static bool is_primary(const ms_trace *trace)
{
    return ms_precisions_of(trace->training)->quantized;
}

static uint64_t rounded(uint64_t n, uint64_t by, uint64_t pad)
{
    uint64_t blocks = n / by + (n % by != 0);

    return (blocks + pad - 1) / pad * pad;
}

/* Of a tensor seen as a matrix: all dimensions but the last, the last. */
static uint64_t scale_bytes(const scaling *how, const ms_tensor *x,
                            bool columns)
{
    uint64_t elements = ms_trace_elements(x);
    uint64_t across = (uint64_t)x->size[x->n_dims - 1];
    uint64_t down = across > 0 ? elements / across : 0;

    if (how->down == 0)
        return how->item_bytes;
    if (columns) /* the same table of the matrix turned */
        return rounded(down, how->across, how->pad_across) *
               rounded(across, how->down, how->pad_down) * how->item_bytes;
    return rounded(down, how->down, how->pad_down) *
           rounded(across, how->across, how->pad_across) * how->item_bytes;
}

/* ---- quantized tensors --------------------------------------------------- */

enum { ROWS, COLUMNS };

/* By rows and by columns, each a tensor or MS_NONE; or a storage that lasts, of
 * which nothing is referenced. */
typedef struct quantized {
    uint32_t data[2], scale[2], lasting[2];
} quantized;

static const quantized nothing = {
    {MS_NONE, MS_NONE}, {MS_NONE, MS_NONE}, {MS_NONE, MS_NONE}};

static bool has(const quantized *q, uint32_t side)
{
    return q->data[side] != MS_NONE || q->lasting[side] != MS_NONE;
}

static void read_side(ms_trace *trace, const quantized *q, uint32_t side)
{
    uint32_t lasting = q->lasting[side];

    if (trace->err)
        return;
    if (lasting != MS_NONE)
        ms_trace_read_storage(trace, lasting,
                              trace->graph.storage_bytes[lasting]);
    ms_trace_read(trace, q->data[side]);
    ms_trace_read(trace, q->scale[side]);
}

static void drop_side(ms_trace *trace, quantized *q, uint32_t side)
{
    ms_trace_drop(trace, q->data[side]);
    ms_trace_drop(trace, q->scale[side]);
    q->data[side] = q->scale[side] = MS_NONE;
}

static void save_side(ms_trace *trace, uint32_t node, const quantized *q,
                      uint32_t side)
{
    if (q->data[side] == MS_NONE)
        return;
    ms_trace_save(trace, node, q->data[side]);
    ms_trace_save(trace, node, q->scale[side]);
}

static void make_side(ms_trace *trace, quantized *q, uint32_t side,
                      const ms_tensor *x, const scaling *how)
{
    static const char *const names[] = {"fp8_rows", "fp8_columns"};
    int64_t scales[1] = {(int64_t)scale_bytes(how, x, side == COLUMNS)};

    q->data[side] =
        ms_trace_make(trace, names[side], MS_FLOAT8, x->n_dims, x->size);
    if (side == COLUMNS && how->down == 0 && q->scale[ROWS] != MS_NONE) {
        q->scale[COLUMNS] = q->scale[ROWS]; /* turned, not made anew */
        ms_trace_ref(trace, q->scale[ROWS]);
        return;
    }
    q->scale[side] = ms_trace_make(trace, "fp8_scale", MS_BYTE, 1, scales);
}

/* The open op makes the sides asked for; one may serve for both. */
static void make_sides(ms_trace *trace, quantized *q, const ms_tensor *x,
                       const scaling *how, bool columns)
{
    make_side(trace, q, ROWS, x, how);
    if (!columns || trace->err)
        return;
    if (!one_serves(trace)) {
        make_side(trace, q, COLUMNS, x, how);
        return;
    }
    q->data[COLUMNS] = q->data[ROWS];
    q->scale[COLUMNS] = q->scale[ROWS];
    ms_trace_ref(trace, q->data[ROWS]);
    ms_trace_ref(trace, q->scale[ROWS]);
}

/* x as products read it.  bias: gets the sum of the rows of x, or NULL. */
static quantized quantize(ms_trace *trace, uint32_t x, bool columns,
                          uint32_t like, uint32_t *bias)
{
    quantized q = nothing;

    if (trace->err)
        return q;
    const recipe *how = recipe_of(trace);
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
    ms_trace_end(trace, 2 * (double)n, false);
    return q;
}

/* One side from the other: a kernel that turns it. */
static void turn(ms_trace *trace, quantized *q, const ms_tensor *x)
{
    if (trace->err)
        return;
    ms_trace_begin(trace, "fp8::transpose");
    read_side(trace, q, ROWS);
    make_side(trace, q, COLUMNS, x, &recipe_of(trace)->weight);
    ms_trace_end(trace, 0, false);
}

/* ---- weights ------------------------------------------------------------- */

/* Copies that a weight has at all times. */
static quantized lasting_of(const ms_trace *trace, const ms_parameter *of)
{
    quantized q = nothing;

    q.lasting[ROWS] = of->copy[ROWS];
    q.lasting[COLUMNS] = of->copy[COLUMNS];
    if (is_primary(trace) && of->linear)
        q.lasting[ROWS] = of->storage;
    if (one_serves(trace) && q.lasting[ROWS] != MS_NONE)
        q.lasting[COLUMNS] = q.lasting[ROWS];
    return q;
}

/* The weight as its products read it, with columns where asked for. */
static quantized weight_sides(ms_trace *trace, uint32_t weight, bool columns)
{
    quantized q = nothing;

    if (trace->err)
        return q;
    const recipe *how = recipe_of(trace);
    const ms_tensor tensor = *ms_trace_at(trace, weight);
    uint64_t bytes = trace->graph.storage_bytes[tensor.storage];
    if (tensor.parameter != MS_NONE)
        q = lasting_of(trace, &trace->parameters[tensor.parameter]);
    if (has(&q, ROWS)) {
        if (columns && !has(&q, COLUMNS))
            turn(trace, &q, &tensor);
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
        trace->graph.storage_buffer[s] = what;
    return s;
}

static void keep_copies(ms_trace *trace, ms_parameter *it, const ms_tensor *w)
{
    const scaling *how = &recipe_of(trace)->weight;
    bool columns = trace->train && !one_serves(trace);

    if (!is_primary(trace))
        it->copy[ROWS] = lasting_storage(trace, "fp8_rows", it->elements,
                                         MS_COPY_OF_WEIGHTS);
    if (columns)
        it->copy[COLUMNS] = lasting_storage(trace, "fp8_columns", it->elements,
                                            MS_COPY_OF_WEIGHTS);
    lasting_storage(trace, "fp8_scale", scale_bytes(how, w, false),
                    MS_MODEL_BUFFER);
    if (columns && how->down > 0)
        lasting_storage(trace, "fp8_scale", scale_bytes(how, w, true),
                        MS_MODEL_BUFFER);
}

void ms_fp8_weight(ms_trace *trace, uint32_t weight)
{
    const ms_precision_row *row = ms_precisions_of(trace->training);

    if (trace->err || !row->fp8)
        return;
    ms_tensor *tensor = ms_trace_at(trace, weight);
    ms_parameter *it = &trace->parameters[tensor->parameter];
    if (it->linear)
        return;
    it->linear = true;
    trace->n_formatted++;
    trace->graph.storage_bytes[it->storage] =
        it->elements * ms_trace_dtype_bytes[row->linear.weight];
    if (row->linear.gradient != MS_NO_DTYPE) /* autograd's dtype is that */
        tensor->dtype = row->linear.gradient;
    if (weights_of(trace) == MS_FP8_KEPT)
        keep_copies(trace, it, ms_trace_at(trace, weight));
}

/* Scales, maxima of the steps before: of so many products. */
static void make_state(ms_trace *trace, uint64_t products)
{
    static const char *const names[] = {"fp8_forward_state",
                                        "fp8_backward_state"};
    const recipe *how = recipe_of(trace);

    for (uint32_t i = 0; i < 2; i++)
        if (how->state_bytes[i] > 0)
            lasting_storage(trace, names[i], products * how->state_bytes[i],
                            MS_MODEL_BUFFER);
}

void ms_fp8_refresh(ms_trace *trace)
{
    bool some = false;

    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        const ms_parameter *it = &trace->parameters[p];
        for (uint32_t side = ROWS; side <= COLUMNS; side++) {
            if (it->copy[side] == MS_NONE || it->grad_storage == MS_NONE)
                continue;
            if (!some)
                ms_trace_begin(trace, "fp8::quantize (all)");
            some = true;
            ms_trace_read_storage(trace, it->storage,
                                  trace->graph.storage_bytes[it->storage]);
            ms_trace_read_storage(trace, it->copy[side], 0);
            if (!trace->err)
                trace->graph.op_write_bytes[trace->graph.n_ops - 1] +=
                    trace->graph.storage_bytes[it->copy[side]];
        }
    }
    if (some)
        ms_trace_end(trace, 0, false);
}

/* ---- products ------------------------------------------------------------ */

/* Transformer Engine's own, for all its products
 * (cpp_extensions/gemm.py, get_cublas_workspace_size_bytes). */
static void make_workspace(ms_trace *trace)
{
    bool first = trace->training->step == 1;
    uint64_t mib = trace->device->compute_capability >= HOPPER ? 32 : 4;

    if (trace->has_fp8_workspace || trace->err)
        return;
    trace->has_fp8_workspace = true;
    uint32_t s = ms_trace_storage(trace, "fp8_cublas_workspace", mib << 20,
                                  MS_WORKSPACE, true);
    if (s == MS_NONE)
        return;
    trace->graph.storage_layer[s] = MS_NONE;
    trace->graph.storage_at_start[s] = !first;
    if (first)
        ms_trace_out(trace, s);
}

static void end_product(ms_trace *trace, double flops)
{
    make_workspace(trace);
    trace->in_fp8 = true;
    ms_trace_end(trace, flops, true);
    trace->in_fp8 = false;
}

/* What the node saved: of its input, then of its weight, in pairs of data and
 * scale.  i[0]: pairs of the input, i[1]: of the weight. */
static quantized saved_pair(const ms_node *node, int64_t pair, uint32_t side)
{
    quantized q = nothing;

    q.data[side] = node->saved[2 * pair];
    q.scale[side] = node->saved[2 * pair + 1];
    return q;
}

/* The weight's columns in backward.  *made: what they were made in, which the
 * caller drops. */
static quantized backward_weight(ms_trace *trace, const ms_node *node,
                                 quantized *made)
{
    uint32_t weight = node->input[1];
    const ms_tensor tensor = *ms_trace_at(trace, weight);
    quantized q = nothing;

    if (tensor.parameter != MS_NONE)
        q = lasting_of(trace, &trace->parameters[tensor.parameter]);
    if (has(&q, COLUMNS))
        return q;
    if (node->i[1] > 0 && !is_late(trace))
        return saved_pair(node, node->i[0] + node->i[1] - 1, COLUMNS);
    if (node->i[1] > 0)
        q = saved_pair(node, node->i[0], ROWS);
    if (has(&q, ROWS)) {
        turn(trace, &q, &tensor);
        made->data[COLUMNS] = q.data[COLUMNS];
        made->scale[COLUMNS] = q.scale[COLUMNS];
        return q;
    }
    *made = weight_sides(trace, weight, true);
    return *made;
}

static void drop_both(ms_trace *trace, quantized *q)
{
    drop_side(trace, q, ROWS);
    drop_side(trace, q, COLUMNS);
}

static void input_gradient(ms_trace *trace, const ms_node *node,
                           const quantized *grad, quantized *made,
                           uint32_t *out)
{
    if (trace->err || !node->needs[0])
        return;
    quantized weight = backward_weight(trace, node, made);
    ms_trace_begin(trace, node->rule->op);
    read_side(trace, grad, ROWS);
    read_side(trace, &weight, COLUMNS);
    uint32_t like = node->input[0];
    uint8_t dtype = trace->err ? 0 : ms_trace_at(trace, like)->dtype;
    if (is_late(trace))
        dtype = ms_precisions_of(trace->training)->autocast;
    if (!trace->err)
        out[0] = ms_trace_make(trace, "grad", dtype,
                               ms_trace_at(trace, like)->n_dims,
                               ms_trace_at(trace, like)->size);
    end_product(trace, node->flops);
}

/* MS-AMP casts the product of 16 bits to 8. */
static uint32_t cast_gradient(ms_trace *trace, uint32_t grad)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor tensor = *ms_trace_at(trace, grad);
    ms_trace_begin(trace, "fp8::quantize");
    ms_trace_read(trace, grad);
    uint32_t y =
        ms_trace_make(trace, "grad", MS_FLOAT8, tensor.n_dims, tensor.size);
    ms_trace_end(trace, (double)ms_trace_elements(&tensor), false);
    return ms_trace_rebind(trace, grad, y);
}

static void weight_gradient(ms_trace *trace, const ms_node *node,
                            const quantized *grad, quantized *turned,
                            uint32_t *out)
{
    uint8_t was = trace->pass;

    if (trace->err || !node->needs[1])
        return;
    trace->pass = MS_GRAD_WEIGHT;
    bool late = is_late(trace);
    const ms_tensor weight = *ms_trace_at(trace, node->input[1]);
    quantized x = saved_pair(node, 0, late ? ROWS : COLUMNS);
    if (late) {
        turn(trace, &x, ms_trace_at(trace, node->input[0]));
        turned->data[COLUMNS] = x.data[COLUMNS];
        turned->scale[COLUMNS] = x.scale[COLUMNS];
    }
    ms_trace_begin(trace, node->rule->op);
    read_side(trace, grad, COLUMNS);
    read_side(trace, &x, COLUMNS);
    uint8_t dtype = late ? ms_precisions_of(trace->training)->autocast
                         : weight.dtype;
    out[1] = ms_trace_make(trace, "grad", dtype, weight.n_dims, weight.size);
    end_product(trace, node->flops);
    if (late)
        out[1] = cast_gradient(trace, out[1]);
    trace->pass = was;
}

/* Inputs: rows, weight, bias. */
static void product_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    quantized made = nothing, turned = nothing;
    bool biased = node->n_inputs > 2 && node->needs[2];
    uint32_t rows = ms_view_contiguous(trace, grads[0]);
    quantized grad = quantize(trace, rows, node->needs[1],
                              biased ? node->input[2] : MS_NONE,
                              biased ? &out[2] : NULL);

    ms_trace_drop(trace, rows);
    input_gradient(trace, node, &grad, &made, out);
    if (!is_late(trace)) /* there a variable of the function */
        drop_both(trace, &made);
    weight_gradient(trace, node, &grad, &turned, out);
    drop_both(trace, &made);
    drop_both(trace, &turned);
    drop_both(trace, &grad);
}

static const ms_rule product_rule = {"Fp8LinearBackward", "fp8::gemm",
                                     product_backward};

/* Which of the operands autograd keeps. */
static void save_operands(ms_trace *trace, uint32_t node, quantized *x,
                          const quantized *weight)
{
    bool late = is_late(trace);

    if (node == MS_NONE || trace->err)
        return;
    if (trace->nodes[node].needs[1]) {
        save_side(trace, node, x, late ? ROWS : COLUMNS);
        trace->nodes[node].i[0] = 1;
    }
    if (weights_of(trace) == MS_FP8_LAYER)
        return;
    for (uint32_t side = ROWS; side <= COLUMNS; side++)
        if (weight->data[side] != MS_NONE) {
            save_side(trace, node, weight, side);
            trace->nodes[node].i[1]++;
        }
}

/* rows [n, in] times the transposed weight of so many products: [n, width]. */
static uint32_t multiply(ms_trace *trace, uint32_t rows, uint32_t weight,
                         uint32_t bias, int64_t width)
{
    uint32_t inputs[3] = {rows, weight, bias};

    if (trace->err)
        return MS_NONE;
    bool late = is_late(trace);
    ms_tensor x = *ms_trace_at(trace, rows);
    int64_t dims[2] = {x.size[0], width};
    double flops = 2 * (double)x.size[0] * (double)x.size[1] * (double)width;
    bool by_weight = ms_trace_needs(trace, weight) && !late;
    bool by_input = ms_trace_needs(trace, rows) && !late;
    quantized q = quantize(trace, rows, by_weight, MS_NONE, NULL);
    quantized w = weight_sides(
        trace, weight, by_input && weights_of(trace) != MS_FP8_LAYER);
    ms_trace_begin(trace, product_rule.op);
    ms_trace_read(trace, bias);
    read_side(trace, &q, ROWS);
    read_side(trace, &w, ROWS);
    uint32_t y = ms_trace_make(trace, "out", late ? trace->autocast : x.dtype,
                               2, dims);
    end_product(trace, flops);
    uint32_t node = ms_trace_node(trace, &product_rule, inputs,
                                  bias == MS_NONE ? 2 : 3, &y, 1);
    if (node != MS_NONE)
        trace->nodes[node].flops = flops;
    save_operands(trace, node, &q, &w);
    drop_both(trace, &q);
    drop_both(trace, &w);
    return y;
}

/* ---- layers -------------------------------------------------------------- */

static ms_err check_sizes(ms_trace *trace, const ms_layer *layer,
                          const ms_tensor *rows, const ms_tensor *weight)
{
    const recipe *how = recipe_of(trace);
    int64_t width = weight->size[weight->n_dims - 1];
    int64_t out = weight->size[weight->n_dims - 2];

    if (width % how->width_by != 0 || out % how->rows_by != 0)
        return ms_trace_fail(
            trace, layer, "take other widths, or --precision bf16-mixed",
            "\"%s\" multiplies by [%lld, %lld]; in fp8 the first must be a "
            "multiple of %u, the second of %u",
            layer->name, (long long)out, (long long)width, how->rows_by,
            how->width_by);
    if (rows && rows->size[0] % how->rows_by != 0)
        return ms_trace_fail(
            trace, layer,
            "take another --batch or --sequence, or --precision bf16-mixed",
            "\"%s\" multiplies %lld rows; in fp8 they must be a multiple of %u",
            layer->name, (long long)rows->size[0], how->rows_by);
    return MS_OK;
}

bool ms_fp8_takes(const ms_trace *trace, const ms_layer *layer)
{
    return ms_precisions_of(trace->training)->fp8 &&
           !ms_walk_is_head(trace->model, layer);
}

bool ms_fp8_takes_experts(const ms_trace *trace)
{
    return ms_precisions_of(trace->training)->fp8 && !is_late(trace);
}

/* A weight tied to another layer's keeps that one's format. */
static void claim(ms_trace *trace, uint32_t weight)
{
    const ms_tensor *tensor = ms_trace_at(trace, weight);

    if (tensor->parameter != MS_NONE &&
        trace->parameters[tensor->parameter].layer == trace->layer)
        ms_fp8_weight(trace, weight);
}

/* out + bias.type(output_dtype) */
static uint32_t add_bias(ms_trace *trace, uint32_t y, uint32_t bias)
{
    if (trace->err)
        return MS_NONE;
    uint32_t cast =
        ms_pointwise_cast(trace, bias, ms_trace_at(trace, y)->dtype);
    y = ms_trace_rebind(trace, y, ms_pointwise_add(trace, y, cast));
    ms_trace_drop(trace, cast);
    return y;
}

uint32_t ms_fp8_linear(ms_trace *trace, const ms_layer *layer, uint32_t x,
                       uint32_t weight, uint32_t bias)
{
    if (trace->err)
        return MS_NONE;
    bool late = is_late(trace);
    ms_tensor in = *ms_trace_at(trace, x);
    claim(trace, weight);
    uint32_t rows = ms_view_rows(trace, x);
    if (trace->err || check_sizes(trace, layer, ms_trace_at(trace, rows),
                                  ms_trace_at(trace, weight)))
        return MS_NONE;
    make_state(trace, 1);
    in.size[in.n_dims - 1] = ms_trace_at(trace, weight)->size[0];
    uint32_t y = multiply(trace, rows, weight, late ? MS_NONE : bias,
                          in.size[in.n_dims - 1]);
    ms_trace_drop(trace, rows);
    if (late && bias != MS_NONE)
        y = add_bias(trace, y, bias);
    uint32_t shown = ms_view_reshape(trace, y, in.n_dims, in.size);
    ms_trace_drop(trace, y);
    return shown;
}

uint32_t ms_fp8_experts(ms_trace *trace, const ms_layer *layer, uint32_t x,
                        uint32_t weight)
{
    if (trace->err)
        return MS_NONE;
    claim(trace, weight);
    const ms_tensor *w = ms_trace_at(trace, weight);
    if (check_sizes(trace, layer, NULL, w)) /* rows are padded */
        return MS_NONE;
    make_state(trace, (uint64_t)w->size[0]);
    return multiply(trace, x, weight, MS_NONE,
                    ms_trace_at(trace, weight)->size[1]);
}

/* ---- settings ------------------------------------------------------------ */

static ms_err refuse(const ms_trace *trace, const char *key, const char *hint,
                     const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, key, hint, "%s", what);
}

static ms_err refuse_device(const ms_trace *trace)
{
    char names[256] = "--precision bf16-mixed, or one of";
    size_t n = strlen(names);

    for (uint32_t i = 0; i < ms_devices_n; i++) {
        const ms_device *row = &ms_devices[i];
        if (row->fp8_flops > 0 && *row->alias && n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, " %s",
                                  row->alias);
    }
    return ms_fail(trace->fault, MS_EUSAGE, "training.precision", names,
                   "%s has no products in fp8",
                   trace->cpu ? "the CPU" : trace->device->name);
}

static ms_err check_recipe(const ms_trace *trace)
{
    int64_t set = trace->training->fp8_recipe;
    uint32_t capability = trace->device->compute_capability;
    static const char key[] = "fp8.recipe";

    if (is_late(trace) && (set != RECIPE_AUTO || trace->training->fp8_weights))
        return refuse(trace, set != RECIPE_AUTO ? key : "fp8.weights",
                      "leave it out",
                      "MS-AMP has one way to scale and to keep weights");
    if (set == RECIPE_MX && capability < BLACKWELL)
        return refuse(trace, key, "take delayed, current or block",
                      "scales of 32 elements come with Blackwell");
    if (set == RECIPE_BLOCK && capability >= BLACKWELL)
        return refuse(trace, key, "take mxfp8",
                      "scales of 128 elements are for Hopper");
    return MS_OK;
}

ms_err ms_fp8_check(ms_trace *trace)
{
    const ms_training *training = trace->training;

    if (!ms_precisions_of(training)->fp8)
        return MS_OK;
    if (trace->cpu || trace->device->fp8_flops <= 0)
        return refuse_device(trace);
    MS_TRY(check_recipe(trace));
    if (training->fp8_weights == MS_FP8_KEPT &&
        trace->shape->shared == MS_SHARED_PARAMETERS)
        return refuse(trace, "fp8.weights", "leave it out",
                      "copies that last are whole, but the ranks share the "
                      "weights");
    return MS_OK;
}
