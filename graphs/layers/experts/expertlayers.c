/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mixture-of-experts layer: a router chooses experts for each token. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/experts/balance.h"
#include "graphs/layers/experts/deepdispatch.h"
#include "graphs/layers/experts/dispatch.h"
#include "graphs/layers/experts/experteach.h"
#include "graphs/layers/experts/experts.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/parallel/expertops.h"
#include "graphs/quantized/fp8.h"
#include "graphs/trace/trace.h"

#include <math.h>

enum {
    EXPERTS,
    CHOSEN,
    HIDDEN,
    GATED,
    CAPACITY,
    IMBALANCE,
    NORMALIZE,
    WEIGHTED,
    SCORE,
    ROUTER_BIAS,
    BIAS,
    CODE,
    RUN,
    ROUTER_FP32,
    CLAMPED,
    SCALED,
    AUX_LOSS,
    Z_LOSS
};
enum { WEIGHTED_LAST, WEIGHTED_GATE };
enum { SCORE_SOFTMAX, SCORE_SIGMOID, SCORE_CHOSEN };
enum { RUN_AUTO, RUN_GROUPED, RUN_LOOP, RUN_EACH };
enum { ROUTER_NONE, ROUTER_TRAINED, ROUTER_BALANCING };
const ms_field ms_expertlayers_fields[MS_EXPERTLAYERS_FIELDS] = {
    {.name = "experts",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 20,
     .help = "how many there are"},
    {.name = "top_k",
     .type = MS_INT,
     .fallback.i = 2,
     .low = 1,
     .high = INT64_C(1) << 20,
     .help = "experts of a token"},
    {.name = "hidden",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "hidden features of an expert"},
    {.name = "gated",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "SwiGLU; false: GELU"},
    {.name = "capacity",
     .type = MS_FLOAT,
     .low = 0,
     .high = 1 << 20,
     .help = "rows of an expert over the average, padded; 0: dropless"},
    {.name = "imbalance",
     .type = MS_FLOAT,
     .fallback.f = 1,
     .low = 1,
     .high = 1 << 20,
     .help = "dropless: rows here over those of an even routing"},
    {.name = "normalize",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "divide a token's probabilities by their sum"},
    {.name = "weighted",
     .type = MS_WORD,
     .words = "output|gate",
     .help = "where the probabilities are multiplied in; output: the experts' "
             "output is saved too"},
    {.name = "score",
     .type = MS_WORD,
     .words = "softmax|sigmoid|chosen",
     .help = "of the router's logits; chosen: softmax of the top_k alone"},
    {.name = "router_bias",
     .type = MS_WORD,
     .words = "none|trained|balancing",
     .help = "one per expert; balancing: it only chooses (DeepSeek-V3)"},
    {.name = "bias",
     .type = MS_BOOL,
     .help = "biases of the experts' products"},
    MS_LAYERS_CODE_FIELD,
    {.name = "run",
     .type = MS_WORD,
     .words = "auto|grouped|loop|each",
     .help = "all experts' rows in one grouped product, or expert after "
             "expert, as eager code loops over the tokens or (each) as "
             "Megatron-LM without moe_grouped_gemm does with their rows; auto: "
             "a loop where kernels are eager and \"code\" says whose, else "
             "grouped"},
    {.name = "router_fp32",
     .type = MS_BOOL,
     .help = "the router's product in fp32 too (DeepSeek)"},
    {.name = "clamped",
     .type = MS_BOOL,
     .help = "gate and way up clamped before the product (gpt-oss)"},
    {.name = "scaled",
     .type = MS_BOOL,
     .help = "the probabilities are multiplied by a number (DeepSeek)"},
    {.name = "aux_loss",
     .type = MS_FLOAT,
     .low = 0,
     .high = 1 << 20,
     .help = "factor of a loss that balances the experts' loads (Switch "
             "Transformers); 0: there is none"},
    {.name = "z_loss",
     .type = MS_FLOAT,
     .low = 0,
     .high = 1 << 20,
     .help = "factor of a loss that keeps the router's logits small (ST-MoE); "
             "0: there is none"},
};

/* What ranks that divide experts say of the rows, or the layer. */
static double capacity_of(const ms_trace *trace, const ms_layer *layer)
{
    bool said = trace->experts && trace->experts->capacity > 0;
    return said ? trace->experts->capacity : layer->field[CAPACITY].f;
}

static double imbalance_of(const ms_trace *trace, const ms_layer *layer)
{
    bool said = trace->experts && trace->experts->imbalance > 0;
    return said ? trace->experts->imbalance : layer->field[IMBALANCE].f;
}

/* The rows of all experts.  With a capacity they are ceil(tokens top_k /
 * experts factor) for each expert, else those of an even routing times the
 * imbalance. */
static int64_t rows_of(const ms_trace *trace, const ms_layer *layer,
                       int64_t tokens, bool even)
{
    const ms_value *field = layer->field;
    double routed = (double)tokens * (double)field[CHOSEN].i;
    double experts = (double)field[EXPERTS].i;
    double capacity = capacity_of(trace, layer);
    if (capacity > 0)
        return (int64_t)(ceil(routed / experts * capacity) * experts);
    return (int64_t)ceil(routed * (even ? 1 : imbalance_of(trace, layer)));
}

/* probabilities / probabilities.sum(-1, keepdim=True) */
static uint32_t normalized(ms_trace *trace, uint32_t best)
{
    static const int64_t last[1] = {1};
    const ms_oparg args[] = {{.kind = MS_ARG_TENSOR},
                             {.kind = MS_ARG_INTS, .n = 1, .value.ints = last},
                             {.kind = MS_ARG_BOOL, .value.i = 1}};
    ms_opcall call = {
        .op = "aten::sum", .overload = "dim", .args = args, .n_args = 3};
    ms_opcall_like(trace, &call.made[0], best);
    call.made[0].size[1] = 1;
    uint32_t both[2] = {best, ms_opcall_run(trace, &call, &best, 1)};
    uint32_t y = ms_opcall_like_run(trace, "aten::div", both, 2);
    ms_trace_drop(trace, both[1]);
    return ms_trace_rebind(trace, best, y);
}

/* A parameter that a fused kernel reads; the backward of that kernel makes its
 * gradient together with others. */
static uint32_t operand(ms_trace *trace, const char *role, uint32_t n_dims,
                        const int64_t *dims)
{
    uint32_t parameter = ms_trace_parameter(trace, role, n_dims, dims);
    if (!trace->err && trace->settings->train)
        ms_raw_states(trace, parameter);
    return parameter;
}

/* A parameter that training does not learn by a gradient.  It is counted, but
 * has neither .grad nor optimizer state. */
static void frozen(ms_trace *trace, const char *role, uint32_t n_dims,
                   const int64_t *dims)
{
    bool was = trace->frozen;
    trace->frozen = true;
    ms_trace_parameter(trace, role, n_dims, dims);
    trace->frozen = was;
}

/* F.linear(x.float(), weight.float()) */
static uint32_t logits_fp32(ms_trace *trace, uint32_t x, uint32_t weight,
                            uint32_t bias)
{
    uint32_t wide = ms_cast_to(trace, x, MS_FLOAT32);
    uint32_t by = ms_cast_to(trace, weight, MS_FLOAT32);
    uint32_t y = ms_matmul_linear(trace, wide, by, bias);
    ms_trace_drop(trace, wide);
    ms_trace_drop(trace, by);
    return y;
}

/* The router's logits are in fp32, but for gpt-oss. */
static uint32_t logits_of(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    int64_t bias = layer->field[ROUTER_BIAS].i;
    int64_t dims[2] = {layer->field[EXPERTS].i, ms_layers_last_dim(trace, x)};
    uint32_t weight = ms_trace_parameter(trace, "router.weight", 2, dims);
    uint32_t added = MS_NONE;
    if (bias == ROUTER_TRAINED)
        added = ms_layers_vector(trace, "router.bias", dims[0]);
    else if (bias == ROUTER_BALANCING)
        frozen(trace, "router.bias", 1, dims);
    if (layer->field[ROUTER_FP32].b)
        return logits_fp32(trace, x, weight, added);
    uint32_t p = ms_matmul_linear(trace, x, weight, added);
    if (ms_modelcodes[layer->field[CODE].i].routes_narrow)
        return p;
    return ms_trace_rebind(trace, p, ms_cast_to(trace, p, MS_FLOAT32));
}

/* Does the code loop over the experts, or compute all of them at once? */
static bool loops(const ms_trace *trace, const ms_layer *layer)
{
    int64_t run = layer->field[RUN].i;
    return run == RUN_LOOP ||
           (run == RUN_AUTO && layer->field[CODE].i != MS_CODE_AUTO &&
            trace->kernels.is_plain);
}

/* Do tokens go through DeepEP's buffers, which know them by their experts? */
static bool goes_deep(const ms_trace *trace)
{
    return ms_expertops_divides(trace) && trace->experts->deep;
}

/* Scores of all experts become those of a token's chosen ones; p is used up. */
static uint32_t choose(ms_trace *trace, const ms_layer *layer, uint32_t p,
                       uint32_t *map)
{
    const ms_value *field = layer->field;
    int64_t score = field[SCORE].i;
    if (score == SCORE_SOFTMAX)
        p = ms_trace_rebind(trace, p, ms_norm_softmax(trace, p));
    else if (score == SCORE_SIGMOID)
        p = ms_trace_rebind(
            trace, p, ms_pointwise_unary(trace, &ms_pointwise_sigmoid, p));
    p = ms_trace_rebind(
        trace, p,
        ms_experts_route(trace, p, field[CHOSEN].i,
                         !loops(trace, layer) && !goes_deep(trace), map));
    if (score == SCORE_CHOSEN)
        p = ms_trace_rebind(trace, p, ms_norm_softmax(trace, p));
    else if (field[NORMALIZE].b && !trace->err)
        p = normalized(trace, p);
    if (field[SCALED].b)
        p = ms_trace_rebind(trace, p, ms_pointwise_mul_scalar(trace, p));
    return p;
}

/* Returns the probabilities of the experts that each token chooses. */
static uint32_t route(ms_trace *trace, const ms_layer *layer, uint32_t x,
                      uint32_t *map)
{
    const ms_value *field = layer->field;
    bool balances = field[AUX_LOSS].f > 0 && trace->settings->train;
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    uint32_t logits = logits_of(trace, layer, x);
    if (field[Z_LOSS].f > 0 && trace->settings->train)
        logits = ms_balance_z_loss(trace, logits);
    if (balances && !trace->err)
        ms_trace_ref(trace, logits);
    uint32_t p = choose(trace, layer, logits, map);
    if (balances) {
        p = ms_balance_aux_loss(trace, logits, p, field[CHOSEN].i);
        ms_trace_drop(trace, logits);
    }
    if (field[ROUTER_FP32].b &&
        (loops(trace, layer) || ms_expertops_divides(trace)))
        return p; /* the outputs of the experts are summed in fp32 */
    return ms_trace_rebind(trace, p, ms_cast_to(trace, p, dtype));
}

static uint32_t product(ms_trace *trace, const ms_layer *layer, uint32_t x,
                        uint32_t weight)
{
    return ms_fp8_takes_experts(trace->settings)
               ? ms_fp8_experts(trace, layer, x, weight)
               : ms_experts_product(trace, x, weight);
}

/* Experts of this rank, and its part of their hidden features. */
static int64_t own_experts(const ms_trace *trace, const ms_layer *layer)
{
    int64_t ranks = trace->experts ? trace->experts->across.ranks : 1;
    return layer->field[EXPERTS].i / ranks;
}

static int64_t own_hidden(const ms_trace *trace, const ms_layer *layer)
{
    int64_t ranks = trace->experts ? trace->experts->within.ranks : 1;
    return layer->field[HIDDEN].i / ranks;
}

/* Two products with the gate between them; each expert works on its rows. */
static uint32_t run_together(ms_trace *trace, const ms_layer *layer, uint32_t x,
                             uint32_t probabilities)
{
    const ms_value *field = layer->field;
    int64_t width = ms_layers_last_dim(trace, x);
    int64_t hidden = own_hidden(trace, layer);
    int64_t first[3] = {own_experts(trace, layer),
                        hidden * (field[GATED].b ? 2 : 1), width};
    int64_t second[3] = {first[0], width, hidden};
    ms_expertops_make_parts(trace, true);
    uint32_t w1 = ms_trace_parameter(trace, "experts.weight1", 3, first);
    uint32_t w2 = ms_trace_parameter(trace, "experts.weight2", 3, second);
    if (field[BIAS].b) { /* the products add the biases as they write */
        operand(trace, "experts.bias1", 2, first);
        operand(trace, "experts.bias2", 2, second);
    }
    ms_expertops_make_parts(trace, false);
    uint32_t y = product(trace, layer, x, w1);
    y = ms_experts_activate(trace, field[GATED].b, y, probabilities);
    return ms_trace_rebind(trace, y, product(trace, layer, y, w2));
}

static bool runs_each(const ms_layer *layer)
{
    return layer->field[RUN].i == RUN_EACH;
}

static uint32_t run_experts(ms_trace *trace, const ms_layer *layer, uint32_t x,
                            uint32_t probabilities)
{
    if (!runs_each(layer) || trace->err)
        return run_together(trace, layer, x, probabilities);
    const ms_experteach how = {.experts = own_experts(trace, layer),
                               .hidden = own_hidden(trace, layer),
                               .gated = layer->field[GATED].b,
                               .biased = layer->field[BIAS].b};
    return ms_experteach_run(trace, &how, x, probabilities);
}

/* The parameters that a token uses.  An expert has a row of the router and its
 * products, each as wide as x, and biases: all of the router is used, and of
 * the rest the share of the chosen experts. */
uint64_t ms_expertlayers_active(const ms_layer *layer, uint64_t parameters)
{
    const ms_value *field = layer->field;
    if (layer->kind->forward != ms_expertlayers_moe)
        return parameters;
    uint64_t experts = (uint64_t)field[EXPERTS].i, each = parameters / experts;
    uint64_t inner = (uint64_t)field[HIDDEN].i * (field[GATED].b ? 2 : 1);
    uint64_t products = inner + (uint64_t)field[HIDDEN].i;
    uint64_t router_bias = field[ROUTER_BIAS].i != ROUTER_NONE;
    uint64_t biases =
        field[BIAS].b ? inner : 0; /* the other bias is as wide as x */
    uint64_t width = (each - router_bias - biases) /
                     (1 + products + (field[BIAS].b ? 1 : 0));
    uint64_t router = experts * (width + router_bias);
    return router + (parameters - router) / experts * (uint64_t)field[CHOSEN].i;
}

static ms_err check(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    const ms_value *field = layer->field;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, x));
    if (ms_trace_at(trace, x)->n_dims < 2)
        return ms_trace_fail(
            trace, layer, "give the model an input of features",
            "\"%s\" routes tokens, but \"%s\" gives %s", layer->name,
            ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(ms_trace_at(trace, x), shape));
    if (field[CHOSEN].i > field[EXPERTS].i)
        return ms_trace_fail(trace, layer, "choose fewer, or have more experts",
                             "\"%s\" chooses %lld of %lld experts", layer->name,
                             (long long)field[CHOSEN].i,
                             (long long)field[EXPERTS].i);
    if (field[CLAMPED].b != field[BIAS].b)
        return ms_trace_fail(trace, layer, "set both, or neither",
                             "\"%s\" has only one of \"bias\" and "
                             "\"clamped\"",
                             layer->name);
    if (ms_expertops_divides(trace) && loops(trace, layer))
        return ms_trace_fail(
            trace, layer,
            "take --kernels flash, or --set model.experts_run=grouped",
            "\"%s\" runs one expert after another, as eager code does; how "
            "ranks divide such a loop is not known (expert)",
            layer->name);
    if (runs_each(layer) && ms_fp8_takes_experts(trace->settings))
        return ms_trace_fail(trace, layer,
                             "let \"run\" be \"grouped\" (of a config.json: "
                             "--set model.experts_run=grouped)",
                             "\"%s\" runs one expert after another; how fp8 "
                             "pads the rows of each is not known",
                             layer->name);
    return goes_deep(trace) ? ms_deepdispatch_check(trace, layer) : MS_OK;
}

/* Where GELU's output is weighted, or an expert has its rows apart, each row
 * needs its probability. */
static bool sends_probabilities(const ms_trace *trace, const ms_layer *layer)
{
    return layer->field[WEIGHTED].i == WEIGHTED_GATE &&
           (ms_expertops_divides(trace) || !layer->field[GATED].b ||
            runs_each(layer));
}

static ms_dispatch dispatch_of(const ms_trace *trace, const ms_layer *layer,
                               int64_t tokens)
{
    bool divided = ms_expertops_divides(trace);
    return (ms_dispatch){.sent = {rows_of(trace, layer, tokens, divided),
                                  layer->field[EXPERTS].i,
                                  layer->field[CHOSEN].i},
                         .received = rows_of(trace, layer, tokens, false),
                         .own_experts = own_experts(trace, layer),
                         .weights_gate = sends_probabilities(trace, layer)};
}

/* Through DeepEP's buffers. */
static uint32_t run_deep(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         uint32_t which, uint32_t p)
{
    ms_deepdispatch way = {MS_NONE, MS_NONE, MS_NONE, 0, 0};
    uint32_t own = MS_NONE;
    if (trace->err)
        return MS_NONE;
    const ms_dispatch how =
        dispatch_of(trace, layer, ms_trace_at(trace, x)->size[0]);
    uint32_t rows = ms_deepdispatch_there(trace, &how, x, which, p, &way, &own);
    uint32_t y = run_experts(trace, layer, rows, own);
    ms_trace_drop(trace, rows);
    ms_trace_drop(trace, own);
    return ms_deepdispatch_back(trace, &how, &way, y);
}

/* The tokens are permuted, multiplied by grouped products and permuted back. */
static uint32_t run_grouped(ms_trace *trace, const ms_layer *layer, uint32_t x,
                            uint32_t map, uint32_t p)
{
    bool last = layer->field[WEIGHTED].i == WEIGHTED_LAST;
    uint32_t own = MS_NONE;
    if (trace->err)
        return MS_NONE;
    int64_t tokens = ms_trace_at(trace, x)->size[0];
    const ms_dispatch how = dispatch_of(trace, layer, tokens);
    uint32_t rows = ms_dispatch_there(trace, &how, x, map, p, &own);
    if (trace->err)
        return MS_NONE;
    uint32_t gate = how.weights_gate ? own : last ? MS_NONE : p;
    uint32_t y = run_experts(trace, layer, rows, gate);
    ms_trace_drop(trace, rows);
    ms_trace_drop(trace, own);
    y = ms_dispatch_back(trace, &how, y, layer->field[ROUTER_FP32].b);
    uint32_t flat =
        ms_experts_unpermute(trace, y, map, last ? p : MS_NONE, tokens);
    ms_trace_drop(trace, y);
    return flat;
}

static uint32_t run_loop(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         uint32_t map, uint32_t p)
{
    const ms_value *field = layer->field;
    if (trace->err)
        return MS_NONE;
    const ms_expertloop how = {
        .experts = field[EXPERTS].i,
        .chosen = field[CHOSEN].i,
        .hidden = field[HIDDEN].i,
        .rows = rows_of(trace, layer, ms_trace_at(trace, x)->size[0], false),
        .gated = field[GATED].b,
        .clamped = field[CLAMPED].b};
    return ms_expertloop_run(trace, &how, x, map, p);
}

ms_err ms_expertlayers_moe(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    uint32_t map = MS_NONE;
    MS_TRY(check(trace, layer, in[0]));
    ms_tensor whole = *ms_trace_at(trace, in[0]);
    uint32_t x = ms_view_rows(trace, in[0]);
    uint32_t p = route(trace, layer, x, &map);
    uint32_t flat = loops(trace, layer) ? run_loop(trace, layer, x, map, p)
                    : goes_deep(trace)  ? run_deep(trace, layer, x, map, p)
                                        : run_grouped(trace, layer, x, map, p);
    ms_trace_drop(trace, p);
    ms_trace_drop(trace, map);
    ms_trace_drop(trace, x);
    *out = ms_view_reshape(trace, flat, whole.n_dims, whole.size);
    ms_trace_drop(trace, flat);
    return trace->err;
}
