/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LAYERS_H
#define MS_GRAPHS_LAYERS_H

/* Private to graphs/: the fields and forwards of the layer types, by duty,
 * and what all of them ask for.  The table is in models/layerkinds.c. */

#include "graphs/kernels/kernels.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/stepsettings.h"

/* ---- layers.c ------------------------------------------------------------ */

/* Faults when x holds token ids. */
ms_err ms_layers_need_float(ms_trace *trace, const ms_layer *layer, uint32_t x);
/* The same, and dimension dim, from 0 without the batch, must exist. */
ms_err ms_layers_need_dim(ms_trace *trace, const ms_layer *layer, uint32_t x,
                          int64_t dim);
/* Dimension dim must exist, also of token ids. */
ms_err ms_layers_have_dim(ms_trace *trace, const ms_layer *layer, uint32_t x,
                          int64_t dim);
/* Fails where an op would overwrite x although it is saved for backward:
 * PyTorch fails there, too, in backward. */
ms_err ms_layers_need_unsaved(ms_trace *trace, const ms_layer *layer,
                              uint32_t x);
/* The layer's input i by name; "input": the model's. */
const char *ms_layers_source(const ms_step_settings *settings,
                             const ms_layer *layer, uint32_t i);
/* The sizes of one sample, "[3, 224, 224]". */
#define MS_LAYERS_SHAPE 128u
const char *ms_layers_shape(const ms_tensor *tensor,
                            char text[MS_LAYERS_SHAPE]);
int64_t ms_layers_last_dim(ms_trace *trace, uint32_t x);

/* ---- modelcodes.c -------------------------------------------------------- */

/* Whose modelling code a layer has (transformers'): its ops stay apart whatever
 * attention training.kernels chooses, as that code calls them one by one.  What
 * the codes do differently are the rows of one table. */

/* The RMS norm of a code.  x.float() * rstd, times the weight, as:
 *   llama  weight * (x.float() * rstd).to(dtype), and those without one
 *   gemma  (x.float() * rstd * (1.0 + weight.float())).to(dtype)
 *   olmo2  (weight * (x.float() * rstd)).to(dtype), also gpt_oss
 *   t5     weight * (x * rstd).to(dtype), rstd of x.float() */
typedef struct ms_rms_code {
    bool upcasts;      /* x.float() first */
    bool scales_input; /* rstd multiplies x as it came, not x.float() */
    uint8_t narrows;   /* ms_rms_narrows: back to x's dtype, */
    bool to_weight;    /* or to the weight's */
    bool adds_one;     /* 1.0 + weight.float() */
    bool weight_first; /* weight * x, not x * weight */
    bool keeps_normed; /* its name lasts to the end of the function */
} ms_rms_code;
typedef enum ms_rms_narrows {
    MS_NARROWS_NEVER,
    MS_NARROWS_BEFORE, /* the weight */
    MS_NARROWS_AFTER
} ms_rms_narrows;

/* What a code does to q k^T on the way to the weights of attention. */
typedef enum ms_score_step {
    MS_SCORE_END,
    MS_SCORE_DIVIDE,    /* by the scale, a number */
    MS_SCORE_MULTIPLY,  /* by it */
    MS_SCORE_BY_TENSOR, /* divide by a tensor of 0 dimensions */
    MS_SCORE_IN_PLACE,  /* divide, or multiply where there are slopes */
    MS_SCORE_CAP,       /* softcap * tanh(a / softcap), where it is asked for */
    MS_SCORE_SLOPES,    /* plus ALiBi's bias, where it is asked for */
    MS_SCORE_BIAS,      /* plus a bias of the layer, in place */
    MS_SCORE_MASK,      /* plus a mask of 0 and -inf */
    MS_SCORE_MASK_CAUSAL,  /* the same, where it is asked for */
    MS_SCORE_MASK_PADDING, /* the same, else plus one of the keys there are */
    MS_SCORE_FILL_ONES,    /* masked_fill by a buffer of ones, where causal */
    MS_SCORE_FILL_BYTES,   /* masked_fill by bytes that all layers share */
    MS_SCORE_WHERE,        /* where(bytes of the layer), where causal */
    MS_SCORE_SOFTMAX,
    MS_SCORE_SOFTMAX_FP32, /* of a.float(), and back */
    MS_SCORE_SOFTMAX_SINKS /* the same; with sinks: cat, minus its maximum,
                              softmax, all but the last */
} ms_score_step;
#define MS_SCORE_STEPS 6

/* The ways to attention that modelling code has (transformers: eager,
 * flash_attention_2, sdpa); xFormers' kernel is called where sdpa is. */
typedef enum ms_attention_path {
    MS_PATH_OPS,
    MS_PATH_FLASH,
    MS_PATH_EFFICIENT,
    MS_PATH_SDPA,
    MS_PATHS
} ms_attention_path;
/* What a code does not hand to the kernel of a path. */
enum { MS_LACKS_SLOPES = 1, MS_LACKS_CAPS = 2, MS_LACKS_ALL = 4 };

typedef struct ms_modelcode {
    const char *name;
    ms_rms_code rms;
    uint8_t scores[MS_SCORE_STEPS]; /* ms_score_step */
    /* The same where q and k do not rotate and scores have neither slopes nor
     * caps; none: as ever. */
    uint8_t plain_scores[MS_SCORE_STEPS];
    uint8_t lacks[MS_PATHS];     /* MS_LACKS_..., by ms_attention_path */
    bool multiplies_onto_slopes; /* baddbmm of ALiBi's bias */
    bool rotates_halves;         /* by tables half as wide */
    bool routes_narrow;          /* experts' logits stay in x's dtype */
} ms_modelcode;
/* By the words of MS_LAYERS_CODE_FIELD. */
extern const ms_modelcode ms_modelcodes[];
#define MS_CODE_AUTO 0 /* the layer names none */
#define MS_LAYERS_CODE_FIELD                                                   \
    {                                                                          \
        .name = "code", .type = MS_WORD,                                       \
        .words = "auto|llama|gemma|olmo2|t5|gpt2|bert|bloom|falcon|mpt|"       \
                 "gpt_oss",                                                    \
        .help = "ops one by one, as in Hugging Face's code of that model; "    \
                "auto: as training.kernels says"                               \
    }
/* Are the layer's ops kernels of their own?  kernel: of trace->kernels. */
static inline bool ms_layers_is_apart(ms_kernel kernel, int64_t code)
{
    return ms_kernels_apart(kernel, code != MS_CODE_AUTO);
}

/* The result of an op that reads nothing, or nothing that matters here. */
uint32_t ms_layers_made(ms_trace *trace, const char *op, uint8_t dtype,
                        uint32_t n_dims, const int64_t *dims);
/* A parameter with one dimension. */
uint32_t ms_layers_vector(ms_trace *trace, const char *role, int64_t n);

/* ---- fields that several types have -------------------------------------- */

/* Of types that work along a dimension. */
#define MS_LAYERS_DIM_FIELD                                                    \
    {                                                                          \
        .name = "dim", .type = MS_INT, .low = 0, .high = MS_MAX_DIMS - 2,      \
        .help = "dimension, from 0 without the batch"                          \
    }
#define MS_LAYERS_SHAPE_FIELD                                                  \
    {                                                                          \
        .name = "shape", .type = MS_INTS, .required = true, .low = 1,          \
        .high = INT64_C(1) << 50, .help = "sizes of one sample"                \
    }
#define MS_LAYERS_BIAS_FIELD                                                   \
    {                                                                          \
        .name = "bias", .type = MS_BOOL, .fallback.b = true,                   \
        .help = "add a bias"                                                   \
    }
/* Of attention. */
#define MS_LAYERS_HEADS_FIELD(text)                                            \
    {                                                                          \
        .name = "heads", .type = MS_INT, .required = true, .low = 1,           \
        .high = INT64_C(1) << 24, .help = (text)                               \
    }
#define MS_LAYERS_CAUSAL_FIELD                                                 \
    {                                                                          \
        .name = "causal", .type = MS_BOOL, .fallback.b = true,                 \
        .help = "mask what comes later"                                        \
    }
#define MS_LAYERS_WEIGHTS_DROPOUT_FIELD                                        \
    {                                                                          \
        .name = "dropout", .type = MS_FLOAT, .low = 0, .high = 1,              \
        .help = "dropout of the attention weights"                             \
    }
#define MS_LAYERS_BIASES_FIELD                                                 \
    {                                                                          \
        .name = "bias", .type = MS_BOOL, .fallback.b = true,                   \
        .help = "biases of the projections"                                    \
    }

/* ---- the forwards -------------------------------------------------------- */

typedef ms_err ms_layer_forward(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out);

#define MS_DENSELAYERS_EMBEDDING 4
#define MS_DENSELAYERS_LINEAR 3
extern const ms_field ms_denselayers_embedding_fields[MS_DENSELAYERS_EMBEDDING];
extern const ms_field ms_denselayers_linear_fields[MS_DENSELAYERS_LINEAR];
ms_layer_forward ms_denselayers_embedding, ms_denselayers_linear;
bool ms_denselayers_has_bias(const ms_layer *linear);

/* unary and join: the op of the layer's type over one input, or over several
 * that broadcast. */
#define MS_POINTLAYERS_IN_PLACE 1
#define MS_POINTLAYERS_DROPOUT 2
#define MS_POINTLAYERS_PARTS 1
#define MS_POINTLAYERS_POW 1
#define MS_POINTLAYERS_PRELU 1
#define MS_POINTLAYERS_CAST 1
#define MS_POINTLAYERS_CODE 1
extern const ms_field ms_pointlayers_in_place_fields[MS_POINTLAYERS_IN_PLACE];
extern const ms_field ms_pointlayers_dropout_fields[MS_POINTLAYERS_DROPOUT];
extern const ms_field ms_pointlayers_parts_fields[MS_POINTLAYERS_PARTS];
extern const ms_field ms_pointlayers_pow_fields[MS_POINTLAYERS_POW];
extern const ms_field ms_pointlayers_prelu_fields[MS_POINTLAYERS_PRELU];
extern const ms_field ms_pointlayers_cast_fields[MS_POINTLAYERS_CAST];
extern const ms_field ms_pointlayers_code_fields[MS_POINTLAYERS_CODE];
ms_layer_forward ms_pointlayers_unary, ms_pointlayers_join,
    ms_pointlayers_gelu_new, ms_pointlayers_softsign, ms_pointlayers_pow,
    ms_pointlayers_prelu, ms_pointlayers_softmax, ms_pointlayers_dropout,
    ms_pointlayers_dropout2d, ms_pointlayers_depth, ms_pointlayers_cast,
    ms_pointlayers_where, ms_pointlayers_masked_fill, ms_pointlayers_swiglu,
    ms_pointlayers_geglu;

#define MS_REDUCELAYERS_DIMS 2
extern const ms_field ms_reducelayers_dims_fields[MS_REDUCELAYERS_DIMS];
ms_layer_forward ms_reducelayers_reduce;
/* Does it end a model: a mean or sum of everything? */
bool ms_reducelayers_is_loss(const ms_layer *layer);

#define MS_NORMLAYERS_AFFINE 2
#define MS_NORMLAYERS_RMS 2
#define MS_NORMLAYERS_BATCH 2
#define MS_NORMLAYERS_GROUP 2
#define MS_NORMLAYERS_INSTANCE 1
extern const ms_field ms_normlayers_affine_fields[MS_NORMLAYERS_AFFINE];
extern const ms_field ms_normlayers_rms_fields[MS_NORMLAYERS_RMS];
extern const ms_field ms_normlayers_batch_fields[MS_NORMLAYERS_BATCH];
extern const ms_field ms_normlayers_group_fields[MS_NORMLAYERS_GROUP];
extern const ms_field ms_normlayers_instance_fields[MS_NORMLAYERS_INSTANCE];
ms_layer_forward ms_normlayers_layer, ms_normlayers_rms, ms_normlayers_batch,
    ms_normlayers_group, ms_normlayers_instance;

/* RMS norm over the last dimension, by ms_modelcodes. */
uint32_t ms_normlayers_rms_of(ms_trace *trace, uint32_t x, uint32_t weight,
                              int64_t code);

/* Types end in their number of dimensions, "conv1d". */
#define MS_CONVLAYERS_CONV 9
#define MS_CONVLAYERS_POOL 4
#define MS_CONVLAYERS_ADAPTIVE 1
#define MS_CONVLAYERS_UPSAMPLE 2
#define MS_CONVLAYERS_SHUFFLE 1
extern const ms_field ms_convlayers_conv_fields[MS_CONVLAYERS_CONV];
extern const ms_field ms_convlayers_pool_fields[MS_CONVLAYERS_POOL];
extern const ms_field ms_convlayers_adaptive_fields[MS_CONVLAYERS_ADAPTIVE];
extern const ms_field ms_convlayers_upsample_fields[MS_CONVLAYERS_UPSAMPLE];
extern const ms_field ms_convlayers_shuffle_fields[MS_CONVLAYERS_SHUFFLE];
ms_layer_forward ms_convlayers_conv, ms_convlayers_transposed,
    ms_convlayers_pool, ms_convlayers_adaptive, ms_convlayers_upsample,
    ms_convlayers_shuffle;

#define MS_SHAPELAYERS_SELECT 2
#define MS_SHAPELAYERS_SLICE 2
#define MS_SHAPELAYERS_SPLIT 3
#define MS_SHAPELAYERS_CAT 1
#define MS_SHAPELAYERS_RESHAPE 1
#define MS_SHAPELAYERS_PERMUTE 1
extern const ms_field ms_shapelayers_select_fields[MS_SHAPELAYERS_SELECT];
extern const ms_field ms_shapelayers_slice_fields[MS_SHAPELAYERS_SLICE];
extern const ms_field ms_shapelayers_split_fields[MS_SHAPELAYERS_SPLIT];
extern const ms_field ms_shapelayers_cat_fields[MS_SHAPELAYERS_CAT];
extern const ms_field ms_shapelayers_reshape_fields[MS_SHAPELAYERS_RESHAPE];
extern const ms_field ms_shapelayers_permute_fields[MS_SHAPELAYERS_PERMUTE];
ms_layer_forward ms_shapelayers_select, ms_shapelayers_slice,
    ms_shapelayers_assign, ms_shapelayers_split, ms_shapelayers_cat,
    ms_shapelayers_stack, ms_shapelayers_flatten, ms_shapelayers_reshape,
    ms_shapelayers_permute, ms_shapelayers_contiguous, ms_shapelayers_expand;

#define MS_COPYLAYERS_DIM 1
#define MS_COPYLAYERS_TOPK 1
#define MS_COPYLAYERS_REPEAT 2
#define MS_COPYLAYERS_PAD 1
#define MS_COPYLAYERS_INDEX 2
extern const ms_field ms_copylayers_dim_fields[MS_COPYLAYERS_DIM];
extern const ms_field ms_copylayers_topk_fields[MS_COPYLAYERS_TOPK];
extern const ms_field ms_copylayers_repeat_fields[MS_COPYLAYERS_REPEAT];
extern const ms_field ms_copylayers_pad_fields[MS_COPYLAYERS_PAD];
extern const ms_field ms_copylayers_index_fields[MS_COPYLAYERS_INDEX];
ms_layer_forward ms_copylayers_along, ms_copylayers_glu, ms_copylayers_topk,
    ms_copylayers_repeat, ms_copylayers_pad, ms_copylayers_index;

#define MS_PRODUCTLAYERS_EINSUM 1
extern const ms_field ms_productlayers_einsum_fields[MS_PRODUCTLAYERS_EINSUM];
ms_layer_forward ms_productlayers_matmul, ms_productlayers_baddbmm,
    ms_productlayers_einsum;
/* a [b, m, k] times b [b, k, n]. */
uint32_t ms_productlayers_bmm(ms_trace *trace, uint32_t a, uint32_t b);

#define MS_RECURRENTLAYERS_FIELDS 5
extern const ms_field ms_recurrentlayers_fields[MS_RECURRENTLAYERS_FIELDS];
ms_layer_forward ms_recurrentlayers_lstm, ms_recurrentlayers_gru;

#define MS_EXPERTLAYERS_FIELDS 18
extern const ms_field ms_expertlayers_fields[MS_EXPERTLAYERS_FIELDS];
ms_layer_forward ms_expertlayers_moe;
/* The parameters of the layer that a token meets. */
uint64_t ms_expertlayers_active(const ms_layer *layer, uint64_t parameters);

/* Experts one after another: each has its share of the rows. */
typedef struct ms_expertloop {
    int64_t experts, chosen, hidden, rows;
    bool gated;
    bool clamped; /* gpt-oss: biases, clamps, one tensor of all experts */
} ms_expertloop;
/* x [tokens, width], which experts a token has and their p, both [tokens,
 * chosen]: the sum of each token's experts, weighted by p and in its dtype
 * until all are there. */
uint32_t ms_expertloop_run(ms_trace *trace, const ms_expertloop *how,
                           uint32_t x, uint32_t which, uint32_t p);

#define MS_LOSSLAYERS_CROSS_ENTROPY 4
extern const ms_field
    ms_losslayers_cross_entropy_fields[MS_LOSSLAYERS_CROSS_ENTROPY];
ms_layer_forward ms_losslayers_cross_entropy, ms_losslayers_nll,
    ms_losslayers_like, ms_losslayers_l1, ms_losslayers_kl_div,
    ms_losslayers_total, ms_losslayers_span;
/* The "kernel" of a cross_entropy layer: headloss.h. */
int64_t ms_losslayers_kernel(const ms_layer *layer);

/* The fields of a stage that was measured. */
enum {
    MS_STAGE_FORWARD_NS,
    MS_STAGE_BACKWARD_NS,
    MS_STAGE_OUTPUT,
    MS_STAGE_SAVED,
    MS_STAGE_FORWARD_WORKSPACE,
    MS_STAGE_BACKWARD_WORKSPACE
};
#define MS_RAWLAYERS_PARAMETERS 1
#define MS_RAWLAYERS_SHAPE 1
#define MS_RAWLAYERS_OP 4
#define MS_RAWLAYERS_STAGE 6
extern const ms_field ms_rawlayers_parameters_fields[MS_RAWLAYERS_PARAMETERS];
extern const ms_field ms_rawlayers_op_fields[MS_RAWLAYERS_OP];
extern const ms_field ms_rawlayers_shape_fields[MS_RAWLAYERS_SHAPE];
extern const ms_field ms_rawlayers_stage_fields[MS_RAWLAYERS_STAGE];
ms_layer_forward ms_rawlayers_parameters, ms_rawlayers_op, ms_rawlayers_stage,
    ms_rawlayers_parameter, ms_rawlayers_input;

#define MS_SELFATTENTION_FIELDS 19
extern const ms_field ms_selfattention_fields[MS_SELFATTENTION_FIELDS];
ms_layer_forward ms_selfattention_forward;

#define MS_MULTIHEADATTENTION_FIELDS 3
extern const ms_field
    ms_multiheadattention_fields[MS_MULTIHEADATTENTION_FIELDS];
ms_layer_forward ms_multiheadattention_forward;

#define MS_WINDOWLAYERS_FIELDS 3
extern const ms_field ms_windowlayers_fields[MS_WINDOWLAYERS_FIELDS];
ms_layer_forward ms_windowlayers_attention, ms_windowlayers_merge;

#define MS_LATENTATTENTION_FIELDS 9
extern const ms_field ms_latentattention_fields[MS_LATENTATTENTION_FIELDS];
ms_layer_forward ms_latentattention_forward;

#define MS_RELATIVEATTENTION_FIELDS 3
#define MS_RELATIVEATTENTION_BIAS 2
extern const ms_field ms_relativeattention_fields[MS_RELATIVEATTENTION_FIELDS];
extern const ms_field
    ms_relativeattention_bias_fields[MS_RELATIVEATTENTION_BIAS];
ms_layer_forward ms_relativeattention_forward, ms_relativeattention_bias;

#define MS_LEARNEDLAYERS_TOKENS 1
extern const ms_field ms_learnedlayers_tokens_fields[MS_LEARNEDLAYERS_TOKENS];
ms_layer_forward ms_learnedlayers_tokens;

#define MS_GIVENATTENTION_FIELDS 2
extern const ms_field ms_givenattention_fields[MS_GIVENATTENTION_FIELDS];
ms_layer_forward ms_givenattention_forward;
/* rotation.c: the layer "rotary" */
ms_layer_forward ms_rotation_forward;

#endif
