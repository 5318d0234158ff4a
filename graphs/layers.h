/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LAYERS_H
#define MS_GRAPHS_LAYERS_H

/* Private to graphs/: the fields and forwards of the layer types, by duty,
 * and what all of them ask for.  The table is in layers.c. */

#include "graphs/ops/ops.h"

/* ---- layers.c ------------------------------------------------------------ */

/* Faults when x holds token ids. */
ms_err ms_layers_need_float(ms_trace *trace, const ms_layer *layer, uint32_t x);
/* The layer's input i by name; "input": the model's. */
const char *ms_layers_source(const ms_trace *trace, const ms_layer *layer,
                             uint32_t i);
/* The sizes of one sample, "[3, 224, 224]". */
#define MS_LAYERS_SHAPE 128u
const char *ms_layers_shape(const ms_tensor *tensor,
                            char text[MS_LAYERS_SHAPE]);
int64_t ms_layers_last_dim(ms_trace *trace, uint32_t x);
/* A parameter with one dimension. */
uint32_t ms_layers_vector(ms_trace *trace, const char *role, int64_t n);

/* ---- the forwards -------------------------------------------------------- */

typedef ms_err ms_layer_forward(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out);

#define MS_DENSELAYERS_EMBEDDING 3
#define MS_DENSELAYERS_LINEAR 3
extern const ms_field ms_denselayers_embedding_fields[MS_DENSELAYERS_EMBEDDING];
extern const ms_field ms_denselayers_linear_fields[MS_DENSELAYERS_LINEAR];
ms_layer_forward ms_denselayers_embedding, ms_denselayers_linear;

/* Each is the table of activations at the place of its type. */
#define MS_POINTLAYERS_IN_PLACE 1
#define MS_POINTLAYERS_DROPOUT 1
extern const ms_field ms_pointlayers_in_place_fields[MS_POINTLAYERS_IN_PLACE];
extern const ms_field ms_pointlayers_dropout_fields[MS_POINTLAYERS_DROPOUT];
ms_layer_forward ms_pointlayers_relu, ms_pointlayers_gelu, ms_pointlayers_silu,
    ms_pointlayers_sigmoid, ms_pointlayers_tanh, ms_pointlayers_leaky_relu,
    ms_pointlayers_elu, ms_pointlayers_hardswish, ms_pointlayers_relu6,
    ms_pointlayers_gelu_new, ms_pointlayers_dropout, ms_pointlayers_softmax,
    ms_pointlayers_add, ms_pointlayers_sub, ms_pointlayers_mul,
    ms_pointlayers_div, ms_pointlayers_swiglu, ms_pointlayers_geglu;

#define MS_NORMLAYERS_AFFINE 1
#define MS_NORMLAYERS_BATCH 2
#define MS_NORMLAYERS_GROUP 2
extern const ms_field ms_normlayers_affine_fields[MS_NORMLAYERS_AFFINE];
extern const ms_field ms_normlayers_batch_fields[MS_NORMLAYERS_BATCH];
extern const ms_field ms_normlayers_group_fields[MS_NORMLAYERS_GROUP];
ms_layer_forward ms_normlayers_layer, ms_normlayers_rms, ms_normlayers_batch,
    ms_normlayers_group;

#define MS_CONVLAYERS_CONV 7
#define MS_CONVLAYERS_POOL 3
#define MS_CONVLAYERS_ADAPTIVE 1
#define MS_CONVLAYERS_UPSAMPLE 2
extern const ms_field ms_convlayers_conv_fields[MS_CONVLAYERS_CONV];
extern const ms_field ms_convlayers_pool_fields[MS_CONVLAYERS_POOL];
extern const ms_field ms_convlayers_adaptive_fields[MS_CONVLAYERS_ADAPTIVE];
extern const ms_field ms_convlayers_upsample_fields[MS_CONVLAYERS_UPSAMPLE];
ms_layer_forward ms_convlayers_conv1d, ms_convlayers_conv2d,
    ms_convlayers_conv3d, ms_convlayers_conv_transpose2d,
    ms_convlayers_max_pool2d, ms_convlayers_avg_pool2d,
    ms_convlayers_adaptive_avg_pool2d, ms_convlayers_upsample;

#define MS_SHAPELAYERS_SELECT 1
#define MS_SHAPELAYERS_SLICE 2
#define MS_SHAPELAYERS_CAT 1
#define MS_SHAPELAYERS_RESHAPE 1
#define MS_SHAPELAYERS_PERMUTE 1
extern const ms_field ms_shapelayers_select_fields[MS_SHAPELAYERS_SELECT];
extern const ms_field ms_shapelayers_slice_fields[MS_SHAPELAYERS_SLICE];
extern const ms_field ms_shapelayers_cat_fields[MS_SHAPELAYERS_CAT];
extern const ms_field ms_shapelayers_reshape_fields[MS_SHAPELAYERS_RESHAPE];
extern const ms_field ms_shapelayers_permute_fields[MS_SHAPELAYERS_PERMUTE];
ms_layer_forward ms_shapelayers_select, ms_shapelayers_slice,
    ms_shapelayers_cat, ms_shapelayers_flatten, ms_shapelayers_reshape,
    ms_shapelayers_permute;

#define MS_LOSSLAYERS_CROSS_ENTROPY 1
extern const ms_field
    ms_losslayers_cross_entropy_fields[MS_LOSSLAYERS_CROSS_ENTROPY];
ms_layer_forward ms_losslayers_cross_entropy, ms_losslayers_mse,
    ms_losslayers_mean;

#define MS_RAWLAYERS_PARAMETERS 1
#define MS_RAWLAYERS_OP 4
extern const ms_field ms_rawlayers_parameters_fields[MS_RAWLAYERS_PARAMETERS];
extern const ms_field ms_rawlayers_op_fields[MS_RAWLAYERS_OP];
ms_layer_forward ms_rawlayers_parameters, ms_rawlayers_op;

#define MS_SELFATTENTION_FIELDS 8
extern const ms_field ms_selfattention_fields[MS_SELFATTENTION_FIELDS];
ms_layer_forward ms_selfattention_forward;

#endif
