/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/quantized/fp8.h"
#include "graphs/formats/precisions.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

#include <stdio.h>
#include <string.h>

/* ---- of ranks that split a layer ----------------------------------------- */

static const ms_rule columns_rule, rows_rule;

static ms_split split_of(const ms_node *node)
{
    return node->rule == &columns_rule ? MS_SPLIT_COLUMNS
           : node->rule == &rows_rule  ? MS_SPLIT_ROWS
                                       : MS_SPLIT_NOT;
}

/* In how many parts of the sequence the layers before and after have it. */
static int64_t parts_of(const ms_trace *trace)
{
    return trace->shards && trace->shards->by_sequence
               ? trace->shards->ranks.ranks
               : 1;
}

/* One side of q, whose rows are a part, of all rows. */
static void gather(ms_trace *trace, const ms_quantized *q, uint32_t side,
                   ms_quantized *all)
{
    if (trace->err || q->data[side] == MS_NONE)
        return;
    all->data[side] = ms_tensorops_whole_of(trace, q->data[side]);
    all->scale[side] = q->scale[side];
    if (all->scale[side] != MS_NONE)
        ms_trace_ref(trace, all->scale[side]);
}

/* q of a part of x's rows becomes that of all.  Transposed copies are not
 * gathered but made anew; where one tensor serves for both sides it does. */
static void gather_both(ms_trace *trace, ms_quantized *q, uint32_t x)
{
    ms_quantized all = ms_quantize_nothing;
    if (trace->err)
        return;
    ms_tensor whole = *ms_trace_at(trace, x);
    bool columns = q->data[MS_COLUMNS] != MS_NONE;
    whole.size[0] *= parts_of(trace);
    gather(trace, q, MS_ROWS, &all);
    if (columns && q->data[MS_COLUMNS] == q->data[MS_ROWS]) {
        all.data[MS_COLUMNS] = all.data[MS_ROWS];
        all.scale[MS_COLUMNS] = all.scale[MS_ROWS];
        ms_trace_ref(trace, all.data[MS_COLUMNS]);
        if (all.scale[MS_COLUMNS] != MS_NONE)
            ms_trace_ref(trace, all.scale[MS_COLUMNS]);
    } else if (columns && ms_precisions_of(trace->settings->training)->mx) {
        gather(trace, q, MS_COLUMNS, &all);
    } else if (columns) {
        ms_quantize_turn(trace, &all, &whole);
    }
    for (uint32_t side = MS_ROWS; side <= MS_COLUMNS; side++)
        ms_quantize_drop(trace, q, side);
    *q = all;
}

/* A partial sum [n, width]: summed in place, or this rank's rows of the sum. */
static uint32_t finish(ms_trace *trace, uint32_t y)
{
    if (trace->err)
        return MS_NONE;
    int64_t parts = parts_of(trace);
    ms_tensor whole = *ms_trace_at(trace, y);
    if (parts == 1) {
        ms_tensorops_sum(trace, y);
        return y;
    }
    y = ms_trace_rebind(trace, y, ms_tensorops_part_of_sum(trace, y));
    if (trace->err)
        return MS_NONE;
    ms_tensor *part = ms_trace_at(trace, y);
    part->size[0] = whole.size[0] / parts;
    part->size[1] = part->stride[0] = whole.size[1];
    return y;
}

/* ---- products ------------------------------------------------------------ */

/* A node saves pairs of data and scale, first of its input, then of its weight;
 * i[0] counts the pairs of the input, i[1] those of the weight. */
static ms_quantized saved_pair(const ms_node *node, int64_t pair, uint32_t side)
{
    ms_quantized q = ms_quantize_nothing;
    q.data[side] = node->saved[2 * pair];
    q.scale[side] = node->saved[2 * pair + 1];
    return q;
}

/* Returns the columns of the weight in backward. *made is the tensor in which
 * they were made, which the caller drops. */
static ms_quantized backward_weight(ms_trace *trace, const ms_node *node,
                                    ms_quantized *made)
{
    uint32_t weight = node->input[1];
    const ms_tensor tensor = *ms_trace_at(trace, weight);
    ms_quantized q = ms_quantize_nothing;
    if (ms_quantize_is_wide(trace->settings)) {
        *made = ms_quantize_side(trace, weight, MS_COLUMNS);
        return *made;
    }
    if (tensor.parameter != MS_NONE)
        q = ms_quantize_lasting(trace->settings,
                                &trace->parameters[tensor.parameter]);
    if (ms_quantize_has(&q, MS_COLUMNS))
        return q;
    if (node->i[1] > 0 && !ms_quantize_is_late(trace->settings))
        return saved_pair(node, node->i[0] + node->i[1] - 1, MS_COLUMNS);
    if (node->i[1] > 0)
        q = saved_pair(node, node->i[0], MS_ROWS);
    if (ms_quantize_has(&q, MS_ROWS)) {
        ms_quantize_turn(trace, &q, &tensor);
        made->data[MS_COLUMNS] = q.data[MS_COLUMNS];
        made->scale[MS_COLUMNS] = q.scale[MS_COLUMNS];
        return q;
    }
    *made = ms_quantize_weight(trace, weight, true);
    return *made;
}

static void drop_both(ms_trace *trace, ms_quantized *q)
{
    ms_quantize_drop(trace, q, MS_ROWS);
    ms_quantize_drop(trace, q, MS_COLUMNS);
}

static void input_gradient(ms_trace *trace, const ms_node *node,
                           const ms_quantized *grad, ms_quantized *made,
                           uint32_t *out)
{
    if (trace->err || !node->needs[0])
        return;
    ms_quantized weight = backward_weight(trace, node, made);
    ms_trace_begin(trace, node->rule->op);
    ms_quantize_read(trace, grad, MS_ROWS);
    ms_quantize_read(trace, &weight, MS_COLUMNS);
    uint32_t like = node->input[0];
    uint8_t dtype = trace->err ? 0 : ms_trace_at(trace, like)->dtype;
    if (ms_quantize_is_late(trace->settings))
        dtype = ms_precisions_of(trace->settings->training)->autocast;
    bool by_columns = split_of(node) == MS_SPLIT_COLUMNS;
    if (!trace->err) {
        ms_tensor x = *ms_trace_at(trace, like);
        x.size[0] *= by_columns ? parts_of(trace) : 1;
        out[0] = ms_trace_make(trace, "grad", dtype, x.n_dims, x.size);
    }
    ms_opend_fp8(trace, node->flops, out[0]);
    if (by_columns)
        out[0] = finish(trace, out[0]);
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
    ms_opend_cast(trace, (double)ms_trace_elements(&tensor), grad);
    return ms_trace_rebind(trace, grad, y);
}

/* Returns the columns of the input in backward. *turned is what was made of it
 * here, which the caller drops. */
static ms_quantized backward_input(ms_trace *trace, const ms_node *node,
                                   ms_quantized *turned)
{
    if (ms_quantize_is_wide(trace->settings)) {
        *turned = ms_quantize_side(trace, node->saved[0], MS_COLUMNS);
        return *turned;
    }
    if (!ms_quantize_is_late(trace->settings)) {
        ms_quantized kept = saved_pair(node, 0, MS_COLUMNS);
        if (split_of(node) != MS_SPLIT_COLUMNS || parts_of(trace) == 1)
            return kept;
        gather(trace, &kept, MS_COLUMNS, turned);
        return *turned;
    }
    ms_quantized x = saved_pair(node, 0, MS_ROWS);
    ms_quantize_turn(trace, &x, ms_trace_at(trace, node->input[0]));
    turned->data[MS_COLUMNS] = x.data[MS_COLUMNS];
    turned->scale[MS_COLUMNS] = x.scale[MS_COLUMNS];
    return x;
}

/* rows is the gradient by rows, which torchao quantizes once more, or MS_NONE.
 */
static void weight_gradient(ms_trace *trace, const ms_node *node, uint32_t rows,
                            ms_quantized *grad, ms_quantized *turned,
                            uint32_t *out)
{
    uint8_t was = trace->pass;
    if (trace->err || !node->needs[1])
        return;
    trace->pass = MS_GRAD_WEIGHT;
    bool late = ms_quantize_is_late(trace->settings);
    const ms_tensor weight = *ms_trace_at(trace, node->input[1]);
    if (rows != MS_NONE) {
        ms_quantized columns = ms_quantize_side(trace, rows, MS_COLUMNS);
        grad->data[MS_COLUMNS] = columns.data[MS_COLUMNS];
        grad->scale[MS_COLUMNS] = columns.scale[MS_COLUMNS];
    }
    ms_quantized x = backward_input(trace, node, turned);
    ms_trace_begin(trace, node->rule->op);
    ms_quantize_read(trace, grad, MS_COLUMNS);
    ms_quantize_read(trace, &x, MS_COLUMNS);
    uint8_t dtype = late ? ms_precisions_of(trace->settings->training)->autocast
                         : weight.dtype;
    out[1] = ms_trace_make(trace, "grad", dtype, weight.n_dims, weight.size);
    ms_opend_fp8(trace, node->flops, out[1]);
    if (late)
        out[1] = cast_gradient(trace, out[1]);
    trace->pass = was;
}

/* Inputs: rows, weight, bias. */
static void product_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    ms_quantized made = ms_quantize_nothing, turned = ms_quantize_nothing;
    bool biased = node->n_inputs > 2 && node->needs[2];
    bool wide = ms_quantize_is_wide(trace->settings);
    uint32_t rows = ms_view_contiguous(trace, grads[0]);
    ms_quantized grad =
        wide ? ms_quantize_side(trace, rows, MS_ROWS)
             : ms_quantize_tensor(trace, rows, node->needs[1],
                                  biased ? node->input[2] : MS_NONE,
                                  biased ? &out[2] : NULL);
    if (split_of(node) == MS_SPLIT_ROWS && parts_of(trace) > 1)
        gather_both(trace, &grad, rows);
    input_gradient(trace, node, &grad, &made, out);
    /* In the other recipes what was made of the weight is a variable that lives
     * to the end. */
    if (!wide && !ms_quantize_is_late(trace->settings))
        drop_both(trace, &made);
    weight_gradient(trace, node, wide ? rows : MS_NONE, &grad, &turned, out);
    ms_trace_drop(trace, rows);
    drop_both(trace, &made);
    drop_both(trace, &turned);
    drop_both(trace, &grad);
}

static const ms_rule product_rule = {"Fp8LinearBackward", "fp8::gemm",
                                     product_backward};
static const ms_rule columns_rule = {"Fp8LinearBackward", "fp8::gemm",
                                     product_backward};
static const ms_rule rows_rule = {"Fp8LinearBackward", "fp8::gemm",
                                  product_backward};
/* The tensors of torchao are subclasses, so that code which watches the
 * dispatcher (a selective checkpoint) sees their product as aten::mm.  The
 * product of Transformer Engine is a function of an extension, which such code
 * does not see. */
static const ms_rule dispatched_rule = {"mx_mmBackward", "aten::mm",
                                        product_backward};

/* Saves the operands that autograd keeps for the backward. */
static void save_operands(ms_trace *trace, uint32_t node, uint32_t rows,
                          ms_quantized *x, const ms_quantized *weight)
{
    bool late = ms_quantize_is_late(trace->settings);
    if (node == MS_NONE || trace->err)
        return;
    if (ms_quantize_is_wide(trace->settings)) {
        ms_trace_save(trace, node, rows);
        return;
    }
    if (trace->nodes[node].needs[1]) {
        ms_quantize_save(trace, node, x, late ? MS_ROWS : MS_COLUMNS);
        trace->nodes[node].i[0] = 1;
    }
    if (ms_quantize_lasts(trace) == MS_FP8_LAYER)
        return;
    for (uint32_t side = MS_ROWS; side <= MS_COLUMNS; side++)
        if (weight->data[side] != MS_NONE) {
            ms_quantize_save(trace, node, weight, side);
            trace->nodes[node].i[1]++;
        }
}

static const ms_rule *rule_of(const ms_trace *trace, ms_split split)
{
    if (split != MS_SPLIT_NOT)
        return split == MS_SPLIT_ROWS ? &rows_rule : &columns_rule;
    return ms_quantize_is_wide(trace->settings) ? &dispatched_rule
                                                : &product_rule;
}

/* Multiplies rows [n, in] by the transposed weight of so many products: [n,
 * width]. */
static uint32_t multiply(ms_trace *trace, uint32_t rows, uint32_t weight,
                         uint32_t bias, int64_t width, ms_split split)
{
    uint32_t inputs[3] = {rows, weight, bias};
    if (trace->err)
        return MS_NONE;
    bool late = ms_quantize_is_late(trace->settings);
    ms_tensor x = *ms_trace_at(trace, rows);
    bool gathers = split == MS_SPLIT_COLUMNS && parts_of(trace) > 1;
    x.size[0] *= gathers ? parts_of(trace) : 1;
    int64_t dims[2] = {x.size[0], width};
    double flops = 2 * (double)x.size[0] * (double)x.size[1] * (double)width;
    bool apart = late || ms_quantize_is_wide(trace->settings);
    const ms_rule *rule = rule_of(trace, split);
    bool by_weight = ms_trace_needs(trace, weight) && !apart;
    bool by_input = ms_trace_needs(trace, rows) && !apart;
    ms_quantized q = ms_quantize_tensor(trace, rows, by_weight, MS_NONE, NULL);
    ms_quantized w = ms_quantize_weight(
        trace, weight, by_input && ms_quantize_lasts(trace) != MS_FP8_LAYER);
    ms_quantized all = ms_quantize_nothing;
    if (gathers)
        gather(trace, &q, MS_ROWS, &all);
    ms_trace_begin(trace, rule->op);
    ms_trace_read(trace, bias);
    ms_quantize_read(trace, gathers ? &all : &q, MS_ROWS);
    ms_quantize_read(trace, &w, MS_ROWS);
    uint32_t y =
        ms_trace_make(trace, "out", late ? trace->autocast : x.dtype, 2, dims);
    ms_opend_fp8(trace, flops, y);
    drop_both(trace, &all);
    if (split == MS_SPLIT_ROWS)
        y = finish(trace, y);
    uint32_t node =
        ms_trace_node(trace, rule, inputs, bias == MS_NONE ? 2 : 3, &y, 1);
    if (node != MS_NONE)
        trace->nodes[node].flops = flops;
    save_operands(trace, node, rows, &q, &w);
    drop_both(trace, &q);
    drop_both(trace, &w);
    return y;
}

/* ---- layers -------------------------------------------------------------- */

static ms_err check_sizes(ms_trace *trace, const ms_layer *layer,
                          const ms_tensor *rows, const ms_tensor *weight)
{
    uint32_t rows_by, width_by;
    ms_quantize_multiples(trace->settings, &rows_by, &width_by);
    int64_t width = weight->size[weight->n_dims - 1];
    int64_t out = weight->size[weight->n_dims - 2];
    if (width % width_by != 0 || out % rows_by != 0)
        return ms_trace_fail(
            trace, layer, "take other widths, or --precision bf16-mixed",
            "\"%s\" multiplies by [%lld, %lld]; in fp8 the first must be a "
            "multiple of %u, the second of %u",
            layer->name, (long long)out, (long long)width, rows_by, width_by);
    if (rows && rows->size[0] % rows_by != 0)
        return ms_trace_fail(
            trace, layer,
            "take another --batch or --sequence, or --precision bf16-mixed",
            "\"%s\" multiplies %lld rows; in fp8 they must be a multiple of %u",
            layer->name, (long long)rows->size[0], rows_by);
    return MS_OK;
}

bool ms_fp8_takes(const ms_trace *trace, const ms_layer *layer)
{
    return ms_precisions_of(trace->settings->training)->fp8 &&
           !ms_trace_is_head(trace, layer);
}

bool ms_fp8_takes_experts(const ms_step_settings *settings)
{
    return ms_precisions_of(settings->training)->fp8 &&
           !ms_quantize_is_late(settings) && !ms_quantize_is_wide(settings);
}

/* A weight that is tied to another layer's keeps the format of that one. */
static void claim(ms_trace *trace, uint32_t weight)
{
    const ms_tensor *tensor = ms_trace_at(trace, weight);
    if (tensor->parameter != MS_NONE &&
        trace->parameters[tensor->parameter].layer == trace->layer)
        ms_quantize_parameter(trace, weight);
}

/* out + bias.type(output_dtype) */
static uint32_t add_bias(ms_trace *trace, uint32_t y, uint32_t bias)
{
    if (trace->err)
        return MS_NONE;
    uint32_t cast = ms_cast_to(trace, bias, ms_trace_at(trace, y)->dtype);
    y = ms_trace_rebind(trace, y, ms_pointwise_add(trace, y, cast));
    ms_trace_drop(trace, cast);
    return y;
}

uint32_t ms_fp8_linear(ms_trace *trace, const ms_layer *layer, uint32_t x,
                       uint32_t weight, uint32_t bias, ms_split split)
{
    if (trace->err)
        return MS_NONE;
    bool apart = ms_quantize_is_late(trace->settings) ||
                 ms_quantize_is_wide(trace->settings);
    ms_tensor in = *ms_trace_at(trace, x);
    claim(trace, weight);
    uint32_t rows = ms_view_rows(trace, x);
    if (trace->err || check_sizes(trace, layer, ms_trace_at(trace, rows),
                                  ms_trace_at(trace, weight)))
        return MS_NONE;
    ms_quantize_state(trace, 1);
    in.size[in.n_dims - 1] = ms_trace_at(trace, weight)->size[0];
    in.size[1] *= split == MS_SPLIT_COLUMNS ? parts_of(trace) : 1;
    in.size[1] /= split == MS_SPLIT_ROWS ? parts_of(trace) : 1;
    uint32_t y = multiply(trace, rows, weight, apart ? MS_NONE : bias,
                          in.size[in.n_dims - 1], split);
    ms_trace_drop(trace, rows);
    if (apart && bias != MS_NONE)
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
    if (check_sizes(
            trace, layer, NULL,
            w)) /* rows are padded, so that only the weight is checked */
        return MS_NONE;
    ms_quantize_state(trace, (uint64_t)w->size[0]);
    return multiply(trace, x, weight, MS_NONE,
                    ms_trace_at(trace, weight)->size[1], MS_SPLIT_NOT);
}

/* ---- settings ------------------------------------------------------------ */

static ms_err refuse(const ms_trace *trace, const char *key, const char *hint,
                     const char *what)
{
    return ms_fail(trace->fault, MS_EUSAGE, key, hint, "%s", what);
}

static bool has_products(const ms_step_settings *settings,
                         const ms_device *device)
{
    return device->fp8_flops > 0 &&
           (!ms_precisions_of(settings->training)->mx ||
            device->compute_capability >= MS_BLACKWELL);
}

static ms_err refuse_device(const ms_trace *trace)
{
    char names[256] = "--precision bf16-mixed, or a device that has:";
    size_t n = strlen(names);
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        const ms_device *row = ms_devicerows_at(i);
        if (row == NULL)
            return ms_fail_nomem(trace->fault);
        if (has_products(trace->settings, row) && *row->alias &&
            n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, " %s",
                                  row->alias);
    }
    bool mx = ms_precisions_of(trace->settings->training)->mx;
    return ms_fail(trace->fault, MS_EUSAGE, "training.precision", names,
                   "%s has no products in %s%s",
                   trace->settings->cpu ? "the CPU"
                                        : trace->settings->device->name,
                   mx ? "mxfp8" : "fp8",
                   mx ? ": scales of 32 elements come with Blackwell" : "");
}

static ms_err check_recipe(const ms_trace *trace)
{
    int64_t set = trace->settings->training->fp8_recipe;
    uint32_t capability = trace->settings->device->compute_capability;
    static const char key[] = "fp8.recipe";
    if (ms_quantize_is_late(trace->settings) &&
        (set != MS_RECIPE_AUTO || trace->settings->training->fp8_weights))
        return refuse(trace, set != MS_RECIPE_AUTO ? key : "fp8.weights",
                      "leave it out",
                      "MS-AMP has one way to scale and to keep weights");
    if (ms_quantize_is_wide(trace->settings) &&
        trace->settings->training->fp8_weights)
        return refuse(trace, "fp8.weights", "leave it out, or take mxfp8",
                      "torchao's MXLinear quantizes a weight for each product");
    if (ms_precisions_of(trace->settings->training)->mx &&
        set != MS_RECIPE_AUTO && set != MS_RECIPE_MX)
        return refuse(trace, key, "leave it out, or take --precision fp8",
                      "mxfp8 is a recipe itself");
    if (set == MS_RECIPE_MX && capability < MS_BLACKWELL)
        return refuse(trace, key, "take delayed, current or block",
                      "scales of 32 elements come with Blackwell");
    if (set == MS_RECIPE_BLOCK && capability >= MS_BLACKWELL)
        return refuse(trace, key, "take mxfp8",
                      "scales of 128 elements are for Hopper");
    return MS_OK;
}

/* Ranks split the products of Transformer Engine alone. */
static ms_err check_split(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    if (settings->shape->tensor_ranks < 2 ||
        (trace->kernels.keeps_parts && !ms_quantize_is_late(settings) &&
         !ms_quantize_is_wide(settings)))
        return MS_OK;
    return refuse(trace, "tensor",
                  "add --kernels megatron for Transformer Engine's, or "
                  "--precision bf16-mixed",
                  "how ranks split such products in fp8 (training.precision) "
                  "is not known yet");
}

ms_err ms_fp8_check(ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    if (!ms_precisions_of(training)->fp8)
        return MS_OK;
    if (trace->settings->cpu ||
        !has_products(trace->settings, trace->settings->device))
        return refuse_device(trace);
    MS_TRY(check_recipe(trace));
    MS_TRY(check_split(trace));
    if (training->fp8_weights == MS_FP8_KEPT &&
        trace->settings->shape->shared == MS_SHARED_PARAMETERS)
        return refuse(trace, "fp8.weights", "leave it out",
                      "copies that last are whole, but the ranks share the "
                      "weights");
    return MS_OK;
}

ms_err ms_fp8_close(const ms_trace *trace)
{
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    if (!row->fp8 || trace->n_formatted > 0)
        return MS_OK;
    return ms_fail(trace->fault, MS_EUSAGE, "training.precision",
                   "--precision bf16-mixed",
                   "no layer of %s multiplies in fp8: linear layers do, but "
                   "the head",
                   trace->settings->model->name);
}
