/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the modelling files of transformers (src/transformers/models/X/
 * modeling_X.py) do differently: RMS norms, the way from scores to weights,
 * which kernels of attention they call. */
#include "graphs/layers/layers.h"

#define RMS_LLAMA                                                              \
    {                                                                          \
        .upcasts = true, .narrows = MS_NARROWS_BEFORE, .weight_first = true,   \
        .keeps_normed = true                                                   \
    }
#define RMS_OLMO2                                                              \
    {                                                                          \
        .upcasts = true, .narrows = MS_NARROWS_AFTER, .weight_first = true,    \
        .keeps_normed = true                                                   \
    }
#define SCORES_LLAMA                                                           \
    {                                                                          \
        MS_SCORE_DIVIDE, MS_SCORE_CAP, MS_SCORE_SLOPES, MS_SCORE_MASK_CAUSAL,  \
            MS_SCORE_SOFTMAX_SINKS                                             \
    }
/* PyTorch's kernels know neither caps nor sinks; those of the FlashAttention
 * package do. */
#define CAPS_BY_FLASH                                                          \
    {                                                                          \
        [MS_PATH_OPS] = MS_LACKS_CAPS, [MS_PATH_EFFICIENT] = MS_LACKS_CAPS,    \
        [MS_PATH_SDPA] = MS_LACKS_CAPS                                         \
    }
#define NO_KERNEL                                                              \
    {                                                                          \
        MS_LACKS_ALL, MS_LACKS_ALL, MS_LACKS_ALL, MS_LACKS_ALL                 \
    }

const ms_modelcode ms_modelcodes[] = {
    /* The scores of LLaMA's code, or nanoGPT's where nothing rotates. */
    {.name = "auto",
     .scores = SCORES_LLAMA,
     .plain_scores = {MS_SCORE_MULTIPLY, MS_SCORE_FILL_ONES, MS_SCORE_SOFTMAX},
     /* Models with slopes do not call sdpa. */
     .lacks = {[MS_PATH_SDPA] = MS_LACKS_CAPS | MS_LACKS_SLOPES}},
    {.name = "llama",
     .rms = RMS_LLAMA,
     .scores = SCORES_LLAMA,
     .lacks = CAPS_BY_FLASH},
    {.name = "gemma",
     .rms = {.upcasts = true, .narrows = MS_NARROWS_AFTER, .adds_one = true},
     .scores = SCORES_LLAMA,
     .lacks = CAPS_BY_FLASH},
    {.name = "olmo2",
     .rms = RMS_OLMO2,
     .scores = SCORES_LLAMA,
     .lacks = CAPS_BY_FLASH},
    {.name = "t5",
     .rms = {.upcasts = true,
             .scales_input = true,
             .narrows = MS_NARROWS_BEFORE,
             .to_weight = true,
             .weight_first = true},
     .scores = SCORES_LLAMA,
     .lacks = CAPS_BY_FLASH},
    {.name = "gpt2",
     .rms = RMS_LLAMA,
     .scores = {MS_SCORE_BY_TENSOR, MS_SCORE_WHERE, MS_SCORE_SOFTMAX},
     .lacks = CAPS_BY_FLASH},
    {.name = "bert",
     .rms = RMS_LLAMA,
     .scores = {MS_SCORE_DIVIDE, MS_SCORE_MASK_PADDING, MS_SCORE_SOFTMAX},
     .lacks = CAPS_BY_FLASH},
    {.name = "bloom",
     .rms = RMS_LLAMA,
     .scores = {MS_SCORE_MASK, MS_SCORE_SOFTMAX_FP32},
     .lacks = NO_KERNEL,
     .multiplies_onto_slopes = true},
    {.name = "falcon",
     .rms = RMS_LLAMA,
     .scores = {MS_SCORE_SLOPES, MS_SCORE_IN_PLACE, MS_SCORE_MASK,
                MS_SCORE_SOFTMAX},
     /* The path of this code to FlashAttention has no ALiBi. */
     .lacks = {[MS_PATH_FLASH] = MS_LACKS_SLOPES}},
    {.name = "mpt",
     .rms = RMS_LLAMA,
     .scores = {MS_SCORE_MULTIPLY, MS_SCORE_SLOPES, MS_SCORE_FILL_BYTES,
                MS_SCORE_SOFTMAX_FP32},
     .lacks = NO_KERNEL},
    {.name = "gpt_oss",
     .rms = RMS_OLMO2,
     .scores = SCORES_LLAMA,
     .lacks = CAPS_BY_FLASH,
     .rotates_halves = true,
     .routes_narrow = true},
};
