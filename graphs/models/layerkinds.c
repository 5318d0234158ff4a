/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of layer types: fields as data, forward as the Python code that
 * people write, variable by variable.  The forwards do not know it: a layer
 * points to its row. */
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "sim/kinds.h"

#include <string.h>

#define FIELDS(table) sizeof(table) / sizeof *(table), table
#define NO_FIELDS 0, NULL
#define IN_PLACE FIELDS(ms_pointlayers_in_place_fields)
#define CONV FIELDS(ms_convlayers_conv_fields)
#define POOL FIELDS(ms_convlayers_pool_fields)
#define ADAPTIVE FIELDS(ms_convlayers_adaptive_fields)
#define DIMS FIELDS(ms_reducelayers_dims_fields)
#define RECURRENT FIELDS(ms_recurrentlayers_fields)

/* A forward of its own. */
#define LAYER(role, type, summary, low, high, fields, forward)                 \
    {                                                                          \
        type, summary, MS_ROLE_##role, low, high, fields, forward, NULL, 0,    \
            false                                                              \
    }
/* A forward that the types of its kind share; op is the aten op. */
#define SHARED(role, type, op, flops, summary, inputs, fields, forward)        \
    {                                                                          \
        type, summary, MS_ROLE_##role, inputs, inputs, fields, forward,        \
            "aten::" op, flops, false                                          \
    }
#define UNARY(type, op, flops, summary)                                        \
    SHARED(ACTIVATION, type, op, flops, summary, 1, NO_FIELDS,                 \
           ms_pointlayers_unary)
#define OVERWRITES(type, op, flops, summary)                                   \
    SHARED(ACTIVATION, type, op, flops, summary, 1, IN_PLACE,                  \
           ms_pointlayers_unary)
#define JOIN(role, type, inputs, summary)                                      \
    SHARED(role, type, type, 1, summary, inputs, NO_FIELDS, ms_pointlayers_join)
#define REDUCE(type, op, summary)                                              \
    SHARED(REDUCTION, type, op, 1, summary, 1, DIMS, ms_reducelayers_reduce)
#define CONVOLUTION(type, sample)                                              \
    SHARED(CONVOLUTION, type, "convolution", 0,                                \
           "of " sample "; saves its input", 1, CONV, ms_convlayers_conv)
#define TRANSPOSED(type, sample)                                               \
    SHARED(CONVOLUTION, type, "convolution", 0,                                \
           "of " sample "; saves its input", 1, CONV,                          \
           ms_convlayers_transposed)
#define MAX_POOL(type, op)                                                     \
    SHARED(POOLING, type, op, 1, "saves its input and 8-byte indices", 1,      \
           POOL, ms_convlayers_pool)
#define AVG_POOL(type, op)                                                     \
    SHARED(POOLING, type, op, 1, "saves its input", 1, POOL, ms_convlayers_pool)
#define ADAPTIVE_POOL(type, op, summary)                                       \
    SHARED(POOLING, type, op, 1, "to a given size; saves its input" summary,   \
           1, ADAPTIVE, ms_convlayers_adaptive)
#define LOSS(type, op, summary)                                                \
    SHARED(LOSS, type, op, 3, summary, 1, NO_FIELDS, ms_losslayers_like)

const ms_layer_kind ms_layer_kinds[] = {
    LAYER(EMBEDDING, "embedding", "look rows of a table up", 1, 1,
          FIELDS(ms_denselayers_embedding_fields), ms_denselayers_embedding),
    LAYER(EMBEDDING, "learned_tokens",
          "learned tokens before the sequence; adds a learned position to each",
          1, 1, FIELDS(ms_learnedlayers_tokens_fields),
          ms_learnedlayers_tokens),
    LAYER(PROJECTION, "linear", "x W^T + b", 1, 1,
          FIELDS(ms_denselayers_linear_fields), ms_denselayers_linear),
    /* element by element */
    OVERWRITES("relu", "relu", 1, "max(x, 0); saves its output"),
    UNARY("gelu", "gelu", 8, "exact GELU; saves its input"),
    UNARY("gelu_tanh", "gelu", 8, "GELU by tanh, one op; saves its input"),
    LAYER(ACTIVATION, "gelu_new", "GPT-2's tanh GELU; eager: seven ops", 1, 1,
          FIELDS(ms_pointlayers_code_fields), ms_pointlayers_gelu_new),
    OVERWRITES("silu", "silu", 5, "x sigmoid(x); saves its input"),
    OVERWRITES("sigmoid", "sigmoid", 4, "saves its output"),
    OVERWRITES("tanh", "tanh", 5, "saves its output"),
    OVERWRITES("leaky_relu", "leaky_relu", 1, "saves its input"),
    OVERWRITES("elu", "elu", 4, "saves its input"),
    UNARY("selu", "elu", 4, "saves its input"),
    UNARY("celu", "celu", 4, "saves its input"),
    UNARY("mish", "mish", 8, "x tanh(softplus(x)); saves its input"),
    UNARY("softplus", "softplus", 5, "saves its input"),
    UNARY("logsigmoid", "log_sigmoid_forward", 5,
          "saves its input and, on the CPU, a buffer"),
    LAYER(ACTIVATION, "softsign",
          "x / (1 + |x|), three ops; saves its input and 1 + |x|", 1, 1,
          NO_FIELDS, ms_pointlayers_softsign),
    UNARY("hardswish", "hardswish", 4, "saves its input"),
    UNARY("hardsigmoid", "hardsigmoid", 3, "saves its input"),
    OVERWRITES("hardtanh", "hardtanh", 2, "clamped; saves its input"),
    OVERWRITES("relu6", "hardtanh", 2, "min(max(x, 0), 6); saves its input"),
    LAYER(ACTIVATION, "prelu", "a learned slope below 0; saves its input", 1, 1,
          FIELDS(ms_pointlayers_prelu_fields), ms_pointlayers_prelu),
    SHARED(GATED, "glu", "glu", 5,
           "first half times sigmoid of the second; saves its input", 1,
           FIELDS(ms_copylayers_dim_fields), ms_copylayers_glu),
    UNARY("abs", "abs", 1, "saves its input"),
    UNARY("neg", "neg", 1, "saves nothing"),
    UNARY("exp", "exp", 4, "saves its output"),
    UNARY("log", "log", 4, "saves its input"),
    UNARY("sqrt", "sqrt", 2, "saves its output"),
    UNARY("rsqrt", "rsqrt", 2, "saves its output"),
    UNARY("reciprocal", "reciprocal", 2, "saves its output"),
    LAYER(ACTIVATION, "pow", "x^exponent; saves its input", 1, 1,
          FIELDS(ms_pointlayers_pow_fields), ms_pointlayers_pow),
    UNARY("sin", "sin", 4, "saves its input"),
    UNARY("cos", "cos", 4, "saves its input"),
    UNARY("clamp", "clamp", 2, "saves its input"),
    UNARY("add_scalar", "add", 1, "x plus a number; saves nothing"),
    UNARY("mul_scalar", "mul", 1,
          "x times a number, which the CPU saves as a tensor"),
    UNARY("div_scalar", "div", 1,
          "x by a number, which the CPU saves as a tensor"),
    UNARY("tril", "tril", 1, "zeros above the diagonal; saves nothing"),
    LAYER(ACTIVATION, "softmax", "over the last dimension; saves its output", 1,
          1, NO_FIELDS, ms_pointlayers_softmax),
    UNARY("log_softmax", "_log_softmax", 5,
          "over the last dimension; saves its output"),
    LAYER(DROPOUT, "dropout",
          "saves a mask: 1 byte per element (CPU: of x's dtype)", 1, 1,
          FIELDS(ms_pointlayers_dropout_fields), ms_pointlayers_dropout),
    LAYER(DROPOUT, "dropout2d", "of whole channels; saves a mask of them and x",
          1, 1, FIELDS(ms_pointlayers_parts_fields), ms_pointlayers_dropout2d),
    LAYER(DROPOUT, "stochastic_depth", "of whole samples; saves a mask of them",
          1, 1, FIELDS(ms_pointlayers_parts_fields), ms_pointlayers_depth),
    LAYER(ARRANGEMENT, "cast", "to another dtype; saves nothing", 1, 1,
          FIELDS(ms_pointlayers_cast_fields), ms_pointlayers_cast),
    /* norms */
    LAYER(NORM, "layer_norm", "saves its input, mean and rstd", 1, 1,
          FIELDS(ms_normlayers_affine_fields), ms_normlayers_layer),
    LAYER(NORM, "rms_norm", "saves its input and rstd; eager: six ops", 1, 1,
          FIELDS(ms_normlayers_rms_fields), ms_normlayers_rms),
    LAYER(NORM, "batch_norm",
          "per channel; saves its input, mean and inverse deviation", 1, 1,
          FIELDS(ms_normlayers_batch_fields), ms_normlayers_batch),
    LAYER(NORM, "group_norm",
          "per group of channels; saves its input, mean and rstd", 1, 1,
          FIELDS(ms_normlayers_group_fields), ms_normlayers_group),
    LAYER(NORM, "instance_norm",
          "per channel of a sample; saves its input, mean and deviation", 1, 1,
          FIELDS(ms_normlayers_instance_fields), ms_normlayers_instance),
    /* attention, gates, products */
    LAYER(ATTENTION, "attention",
          "self-attention with its projections, or of x to a second input", 1,
          2, FIELDS(ms_selfattention_fields), ms_selfattention_forward),
    LAYER(ATTENTION, "multihead_attention",
          "of [sequence, width] to itself, as torch.nn.MultiheadAttention", 1,
          1, FIELDS(ms_multiheadattention_fields),
          ms_multiheadattention_forward),
    LAYER(ATTENTION, "window_attention",
          "Swin's, in windows of [height, width, channels], with position bias",
          1, 1, FIELDS(ms_windowlayers_fields), ms_windowlayers_attention),
    LAYER(ATTENTION, "latent_attention",
          "self-attention whose keys and values pass through a narrow product "
          "(MLA)",
          1, 1, FIELDS(ms_latentattention_fields), ms_latentattention_forward),
    LAYER(ATTENTION, "relative_attention",
          "T5's: x and a bias of the scores; of x to a third input, if any", 2,
          3, FIELDS(ms_relativeattention_fields), ms_relativeattention_forward),
    LAYER(EMBEDDING, "relative_bias",
          "T5's bias of scores, by buckets of distances; reads token ids", 1, 1,
          FIELDS(ms_relativeattention_bias_fields), ms_relativeattention_bias),
    LAYER(ATTENTION, "scaled_dot_product_attention",
          "of q, k, v [heads, sequence, dim], as training.kernels says", 3, 3,
          FIELDS(ms_givenattention_fields), ms_givenattention_forward),
    LAYER(ACTIVATION, "rotary",
          "rotate [heads, sequence, dim] by position; fused: in place", 1, 1,
          NO_FIELDS, ms_rotation_forward),
    LAYER(GATED, "swiglu",
          "silu(gate) * up, or of one input's halves; saves both", 1, 2,
          FIELDS(ms_pointlayers_code_fields), ms_pointlayers_swiglu),
    LAYER(GATED, "geglu",
          "gelu(gate) * up, or of one input's halves; saves both", 1, 2,
          FIELDS(ms_pointlayers_code_fields), ms_pointlayers_geglu),
    LAYER(EXPERTS, "moe",
          "mixture of experts: top-k routing, permute, grouped products, "
          "unpermute",
          1, 1, FIELDS(ms_expertlayers_fields), ms_expertlayers_moe),
    LAYER(PRODUCT, "matmul", "a b of [..., m, k] and [..., k, n]; saves both",
          2, 2, NO_FIELDS, ms_productlayers_matmul),
    LAYER(PRODUCT, "baddbmm", "c + a b of [m, k] and [k, n]; saves a and b", 3,
          3, NO_FIELDS, ms_productlayers_baddbmm),
    LAYER(PRODUCT, "einsum", "a product by its equation; saves both", 2, 2,
          FIELDS(ms_productlayers_einsum_fields), ms_productlayers_einsum),
    LAYER(RECURRENT, "lstm", "long short-term memory, as torch.nn.LSTM", 1, 1,
          RECURRENT, ms_recurrentlayers_lstm),
    LAYER(RECURRENT, "gru", "gated recurrent units, as torch.nn.GRU", 1, 1,
          RECURRENT, ms_recurrentlayers_gru),
    /* convolutions, pools, resampling */
    CONVOLUTION("conv1d", "[channels, length]"),
    CONVOLUTION("conv2d", "[channels, height, width]"),
    CONVOLUTION("conv3d", "[channels, depth, height, width]"),
    TRANSPOSED("conv_transpose1d", "[channels, length]"),
    TRANSPOSED("conv_transpose2d", "[channels, height, width]"),
    TRANSPOSED("conv_transpose3d", "[channels, depth, height, width]"),
    MAX_POOL("max_pool1d", "max_pool2d_with_indices"),
    MAX_POOL("max_pool2d", "max_pool2d_with_indices"),
    MAX_POOL("max_pool3d", "max_pool3d_with_indices"),
    AVG_POOL("avg_pool1d", "avg_pool2d"),
    AVG_POOL("avg_pool2d", "avg_pool2d"),
    AVG_POOL("avg_pool3d", "avg_pool3d"),
    ADAPTIVE_POOL("adaptive_avg_pool1d", "_adaptive_avg_pool2d", ""),
    ADAPTIVE_POOL("adaptive_avg_pool2d", "_adaptive_avg_pool2d", ""),
    ADAPTIVE_POOL("adaptive_avg_pool3d", "_adaptive_avg_pool3d", ""),
    ADAPTIVE_POOL("adaptive_max_pool1d", "adaptive_max_pool2d",
                  " and 8-byte indices"),
    ADAPTIVE_POOL("adaptive_max_pool2d", "adaptive_max_pool2d",
                  " and 8-byte indices"),
    ADAPTIVE_POOL("adaptive_max_pool3d", "adaptive_max_pool3d",
                  " and 8-byte indices"),
    LAYER(POOLING, "upsample",
          "of [channels, ...], 1 to 3 dimensions; saves nothing", 1, 1,
          FIELDS(ms_convlayers_upsample_fields), ms_convlayers_upsample),
    SHARED(POOLING, "pixel_shuffle", "pixel_shuffle", 0,
           "[c f^2, h, w] to [c, h f, w f]: a copy", 1,
           FIELDS(ms_convlayers_shuffle_fields), ms_convlayers_shuffle),
    SHARED(POOLING, "pixel_unshuffle", "pixel_unshuffle", 0,
           "[c, h f, w f] to [c f^2, h, w]: a copy", 1,
           FIELDS(ms_convlayers_shuffle_fields), ms_convlayers_shuffle),
    /* joins */
    SHARED(SUM, "add", "add", 1, "a + b, broadcasting", 2, IN_PLACE,
           ms_pointlayers_join),
    JOIN(ACTIVATION, "sub", 2, "a - b, broadcasting"),
    JOIN(GATED, "mul", 2, "a * b, broadcasting; saves both"),
    JOIN(ACTIVATION, "div", 2, "a / b, broadcasting; saves both"),
    JOIN(ACTIVATION, "maximum", 2, "the larger of a and b; saves both"),
    JOIN(ACTIVATION, "minimum", 2, "the smaller of a and b; saves both"),
    JOIN(ACTIVATION, "lerp", 2, "between a and b by a number; saves nothing"),
    JOIN(ACTIVATION, "addcmul", 3, "a + number b c; saves b and c"),
    LAYER(ACTIVATION, "where",
          "a where an input mask says so, else b; saves the mask", 2, 2,
          NO_FIELDS, ms_pointlayers_where),
    LAYER(ACTIVATION, "masked_fill",
          "a number where an input mask says so; saves the mask", 1, 1,
          NO_FIELDS, ms_pointlayers_masked_fill),
    /* reductions */
    REDUCE("sum", "sum", "over dims, or of all as a loss; saves nothing"),
    REDUCE("mean", "mean",
           "over dims (torch 1.13 saves its input), or of all as a loss"),
    REDUCE("max", "max", "over one dimension; saves 8-byte indices"),
    REDUCE("min", "min", "over one dimension; saves 8-byte indices"),
    REDUCE("amax", "amax", "over dims; saves its input and output"),
    REDUCE("amin", "amin", "over dims; saves its input and output"),
    REDUCE("var", "var", "over dims; saves its input"),
    REDUCE("norm", "linalg_vector_norm",
           "2-norm over dims; saves its input and output"),
    REDUCE("logsumexp", "logsumexp", "over dims; saves its input and output"),
    SHARED(REDUCTION, "cumsum", "cumsum", 1, "running sum; saves nothing", 1,
           FIELDS(ms_copylayers_dim_fields), ms_copylayers_along),
    SHARED(ARRANGEMENT, "sort", "sort", 1, "saves 8-byte indices", 1,
           FIELDS(ms_copylayers_dim_fields), ms_copylayers_along),
    SHARED(ARRANGEMENT, "topk", "topk", 1,
           "the k largest of the last dimension; saves 8-byte indices", 1,
           FIELDS(ms_copylayers_topk_fields), ms_copylayers_topk),
    /* arrangement */
    LAYER(ARRANGEMENT, "cat", "inputs end to end: a copy", 1, MS_ANY_INPUTS,
          FIELDS(ms_shapelayers_cat_fields), ms_shapelayers_cat),
    LAYER(ARRANGEMENT, "stack", "inputs along a new dimension: a copy", 2,
          MS_ANY_INPUTS, FIELDS(ms_copylayers_dim_fields),
          ms_shapelayers_stack),
    LAYER(ARRANGEMENT, "split",
          "one piece of a dimension: a view; backward joins all", 1, 1,
          FIELDS(ms_shapelayers_split_fields), ms_shapelayers_split),
    LAYER(ARRANGEMENT, "select", "one position of a dimension: a view", 1, 1,
          FIELDS(ms_shapelayers_select_fields), ms_shapelayers_select),
    LAYER(ARRANGEMENT, "slice", "the first elements of a dimension: a view", 1,
          1, FIELDS(ms_shapelayers_slice_fields), ms_shapelayers_slice),
    LAYER(ARRANGEMENT, "assign",
          "the first elements of a dimension of a become b, in place", 2, 2,
          FIELDS(ms_shapelayers_slice_fields), ms_shapelayers_assign),
    SHARED(ARRANGEMENT, "index", "index", 0, "rows by an input of indices", 1,
           FIELDS(ms_copylayers_index_fields), ms_copylayers_index),
    SHARED(ARRANGEMENT, "index_select", "index_select", 0,
           "rows by an input of indices", 1, FIELDS(ms_copylayers_index_fields),
           ms_copylayers_index),
    SHARED(ARRANGEMENT, "gather", "gather", 0,
           "elements by an input of indices; saves its input", 1,
           FIELDS(ms_copylayers_index_fields), ms_copylayers_index),
    SHARED(ARRANGEMENT, "repeat", "repeat", 0,
           "a dimension so many times over: a copy", 1,
           FIELDS(ms_copylayers_repeat_fields), ms_copylayers_repeat),
    SHARED(ARRANGEMENT, "repeat_interleave", "index_select", 0,
           "each element so many times: a copy; saves 8-byte indices", 1,
           FIELDS(ms_copylayers_repeat_fields), ms_copylayers_repeat),
    SHARED(ARRANGEMENT, "pad", "constant_pad_nd", 0, "with a constant: a copy",
           1, FIELDS(ms_copylayers_pad_fields), ms_copylayers_pad),
    SHARED(ARRANGEMENT, "flip", "flip", 0, "a dimension backwards: a copy", 1,
           FIELDS(ms_copylayers_dim_fields), ms_copylayers_along),
    SHARED(ARRANGEMENT, "roll", "roll", 0, "a dimension moved round: a copy", 1,
           FIELDS(ms_copylayers_dim_fields), ms_copylayers_along),
    LAYER(ARRANGEMENT, "flatten", "all dimensions of a sample into one", 1, 1,
          NO_FIELDS, ms_shapelayers_flatten),
    LAYER(ARRANGEMENT, "reshape", "other sizes; a view where strides allow it",
          1, 1, FIELDS(ms_shapelayers_reshape_fields), ms_shapelayers_reshape),
    LAYER(ARRANGEMENT, "permute", "dimensions in another order: a view", 1, 1,
          FIELDS(ms_shapelayers_permute_fields), ms_shapelayers_permute),
    LAYER(ARRANGEMENT, "expand", "a parameter, seen once per sample: a view", 1,
          1, NO_FIELDS, ms_shapelayers_expand),
    LAYER(ARRANGEMENT, "patch_merge",
          "2 x 2 neighbours of [height, width, channels] into the channels", 1,
          1, NO_FIELDS, ms_windowlayers_merge),
    LAYER(ARRANGEMENT, "contiguous", "a copy where it is laid out otherwise", 1,
          1, NO_FIELDS, ms_shapelayers_contiguous),
    SHARED(ARRANGEMENT, "clone", "clone", 0, "a copy", 1, NO_FIELDS,
           ms_pointlayers_unary),
    /* losses */
    LAYER(LOSS, "cross_entropy", "loss of class logits", 1, 1,
          FIELDS(ms_losslayers_cross_entropy_fields),
          ms_losslayers_cross_entropy),
    LAYER(LOSS, "nll_loss", "loss of class log-probabilities", 1, 1, NO_FIELDS,
          ms_losslayers_nll),
    LOSS("mse_loss", "mse_loss",
         "mean squared error against a target of x's shape"),
    LOSS("smooth_l1_loss", "smooth_l1_loss", "against a target of x's shape"),
    LOSS("huber_loss", "huber_loss", "against a target of x's shape"),
    LAYER(LOSS, "span_loss",
          "of logits [sequence, 2]: where an answer starts and ends, the mean "
          "of two cross entropies",
          1, 1, NO_FIELDS, ms_losslayers_span),
    LAYER(LOSS, "total_loss",
          "the first of several losses plus parts of the others", 2,
          MS_ANY_INPUTS, NO_FIELDS, ms_losslayers_total),
    LOSS("bce_loss", "binary_cross_entropy",
         "of probabilities against a target of x's shape"),
    LOSS("bce_with_logits_loss", "binary_cross_entropy_with_logits",
         "of logits against a target of x's shape"),
    LAYER(LOSS, "l1_loss", "mean of |x - target|, three ops", 1, 1, NO_FIELDS,
          ms_losslayers_l1),
    LAYER(LOSS, "kl_div_loss", "divergence of log-probabilities from a target",
          1, 1, NO_FIELDS, ms_losslayers_kl_div),
    /* by hand */
    LAYER(STATE, "parameter", "a learned tensor, one for all samples", 0, 0,
          FIELDS(ms_rawlayers_shape_fields), ms_rawlayers_parameter),
    LAYER(STATE, "input", "a further input of the model, without gradient", 0,
          0, FIELDS(ms_rawlayers_shape_fields), ms_rawlayers_input),
    {"parameters", "states only: weights that no op reads", MS_ROLE_STATE, 0, 0,
     FIELDS(ms_rawlayers_parameters_fields), ms_rawlayers_parameters, NULL, 0,
     true},
    LAYER(OTHER, "op", "an op of your own: one output", 1, 1,
          FIELDS(ms_rawlayers_op_fields), ms_rawlayers_op),
    LAYER(OTHER, "stage", "of a measured chain", 1, 1,
          FIELDS(ms_rawlayers_stage_fields), ms_rawlayers_stage),
    LAYER(LOSS, "loss_stage", "the last stage of a measured chain", 1, 1,
          FIELDS(ms_rawlayers_stage_fields), ms_rawlayers_stage),
};
const uint32_t ms_layer_n_kinds =
    sizeof ms_layer_kinds / sizeof *ms_layer_kinds;

uint32_t ms_layer_find(const char *type)
{
    for (uint32_t k = 0; k < ms_layer_n_kinds; k++)
        if (strcmp(ms_layer_kinds[k].type, type) == 0)
            return k;
    return MS_NONE;
}
