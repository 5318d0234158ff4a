/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Op table: reductions, norms, products, convolution, pooling, attention and
 * losses (graphs/autograd.md 22; tests/truth/rules.tsv). */
#include "graphs/aten/atenrow.h"

/* The values of a maximum, quantile or order by the positions that it gave. */
#define CHOICE(type, name, variant, node, form)                                \
    KERNEL(type, name, variant, node, "value_selecting_reduction_backward",    \
           "o1", form)
/* The gradient is shared equally by all elements that are the largest, smallest
 * or middle one. */
#define EXTREME(type, name, node)                                              \
    FORMULA(type, name, NULL, node, "0", "i0o0", shape_reduce,                 \
            "0: eq.i0b zeros.i0! _to_copy.i0l~")
#define EXTREMES(type, name, node)                                             \
    FORMULA(type, name, NULL, node, "0", "i0o0", shape_reduce,                 \
            "0: eq.i0b sum.gl _to_copy.i0l~ _to_copy.g~ div.g _to_copy.i0~ "   \
            "mul.i0!")
#define FLASH "_scaled_dot_product_flash_attention"
/* q, k, v, where there is one a mask; out, log-sum-exp, random state.  By
 * graphs/autograd.md 19 and PyTorch's documentation. */
#define ATTENTION(type, name, node, scratch)                                   \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type,                                  \
        .rule =                                                                \
            &(const ms_formula){{node "Backward0", NULL, ms_formula_backward}, \
                                THREE_GRADIENTS(name, scratch)}                \
                 .rule,                                                        \
        .inputs = "012", .saves = "i0i1i2o0o1I3O2O3",                          \
        .makes = THREE_GRADIENTS(name, scratch),                               \
        .shape = &ms_atenshape_attention, .matrix = true                       \
    }
#define THREE_GRADIENTS(name, scratch)                                         \
    "0: " name "_backward.i0!; 1: " name "_backward.i1!; "                     \
    "2: " name "_backward.i2!" scratch
#define VAR_MEAN "0: mean.g sub.i0 mul.g mul.i0 div.i0 add.i0!"
#define MAX_POOL(type, name, node, form)                                       \
    KERNEL(type, name, NULL, node, name "_backward", "i0o1", form)
#define AVG_POOL(type, name, node, form)                                       \
    KERNEL(type, name, NULL, node, name "_backward", "i0", form)
#define REGRESSION(type, name, node)                                           \
    FORMULA(type, name, NULL, node, "01", "i0i1", shape_loss,                  \
            "0: " name "_backward.i0!; 1: " name "_backward.i1!")

const ms_aten_row ms_atenmath_rows[] = {
    /* reductions */
    RULE_ALSO(REDUCTION, "sum", NULL, ms_view_sum_rule, "0", "", shape_reduce,
              "", sum),
    FORMULA(REDUCTION, "nansum", NULL, "Nansum", "0", "i0", shape_reduce,
            "0: isnan.i0b logical_not.i0b _to_copy.i0~ mul.i0!"),
    RULE_ALSO(REDUCTION, "mean", "dim", ms_loss_mean_rule, "0", "",
              shape_reduce, "0: div.i0!", mean),
    RULE(REDUCTION, "mean", NULL, ms_loss_mean_rule, "0", "", shape_reduce,
         "0: div.i0!"),
    FORMULA(REDUCTION, "var", NULL, "Var", "0", "i0", shape_reduce,
            "0: mean.g sub.i0 mul.g mul.i0!"),
    FORMULA(REDUCTION, "std", NULL, "Std", "0", "i0o0", shape_reduce,
            "0: mul.g div.g eq.gb mean.g sub.i0 mul.g mul.i0!"),
    {.op = "var_mean",
     .kind = MS_KIND_REDUCTION,
     .rule =
         &(const ms_formula){{"VarMeanBackward0", NULL, ms_formula_backward},
                             VAR_MEAN}
              .rule,
     .inputs = "0",
     .saves = "i0",
     .makes = VAR_MEAN,
     .shape = &ms_atenshape_reduce,
     .every_output = true},
    FORMULA(REDUCTION, "prod", "dim_int", "Prod", "0", "i0o0", shape_reduce,
            "0: eq.i0b sum.gl _to_copy.i0l~ div.i0 mul.i0!"),
    FORMULA(REDUCTION, "prod", NULL, "Prod", "0", "i0o0", shape_reduce,
            "0: eq.i0b div.i0 mul.i0!"),
    FORMULA_ALSO(REDUCTION, "norm", NULL, "Norm", "0", "i0o0", shape_reduce_2,
                 "0: div.i0 eq.gb mul.i0!", norm),
    FORMULA_ALSO(REDUCTION, "linalg_vector_norm", NULL, "LinalgVectorNorm", "0",
                 "i0o0", shape_reduce_2, "0: div.i0 eq.gb mul.i0!", norm),
    EXTREMES(REDUCTION, "amax", "Amax"),
    EXTREMES(REDUCTION, "amin", "Amin"),
    CHOICE(REDUCTION, "max", "dim", "Max", shape_reduce),
    EXTREME(REDUCTION, "max", "Max"),
    CHOICE(REDUCTION, "min", "dim", "Min", shape_reduce),
    EXTREME(REDUCTION, "min", "Min"),
    CHOICE(SORT, "median", "dim", "Median", shape_reduce),
    EXTREME(SORT, "median", "Median"),
    CHOICE(SORT, "topk", NULL, "Topk", shape_topk),
    CHOICE(SORT, "sort", NULL, "Sort", shape_same),
    CHOICE(SORT, "mode", NULL, "Mode", shape_any),
    CHOICE(SORT, "kthvalue", NULL, "Kthvalue", shape_chosen),
    KERNEL(SORT, "cummax", NULL, "Cummax", "cummaxmin_backward", "i0o1",
           shape_same),
    KERNEL(SORT, "cummin", NULL, "Cummin", "cummaxmin_backward", "i0o1",
           shape_same),
    FORMULA(REDUCTION, "logsumexp", NULL, "Logsumexp", "0", "i0o0",
            shape_reduce, "0: sub.i0 exp.i0 mul.i0!"),
    FORMULA(REDUCTION, "cumsum", NULL, "Cumsum", "0", "", shape_same,
            "0: flip.g cumsum.g flip.g!"),
    FORMULA(REDUCTION, "cumprod", NULL, "Cumprod", "0", "i0o0", shape_same,
            "0: mul.g~ eq.gb~ flip.g~ cumsum.g~ flip.g~ div.g!"),
    /* norms */
    RULE(SOFTMAX, "_softmax", NULL, ms_norm_softmax_rule, "0", "o0", shape_same,
         "0: _softmax_backward_data.i0!"),
    RULE(SOFTMAX, "_log_softmax", NULL, ms_loss_log_softmax_rule, "0", "o0",
         shape_same, "0: _log_softmax_backward_data.i0!"),
    RULE(NORM, "native_layer_norm", NULL, ms_norm_layer_norm_rule, "012",
         "i0I1I2o1o2", shape_same,
         "0: native_layer_norm_backward.i0!; "
         "1: native_layer_norm_backward.i1!; "
         "2: native_layer_norm_backward.i2!"),
    RULE(BATCH_NORM, "native_batch_norm", NULL, ms_norm_batch_norm_rule, "012",
         "i0I1I3I4o1o2", shape_same,
         "1: native_batch_norm_backward.i0~ native_batch_norm_backward.i1!; "
         "2: native_batch_norm_backward.i2!; "
         "0: native_batch_norm_backward.i0!"),
    /* on CUDA, where cuDNN returns a reserve (o3) for its backward */
    FORMULA(BATCH_NORM, "cudnn_batch_norm", NULL, "CudnnBatchNorm", "012",
            "i0I1I3I4o1o2o3", shape_same,
            "0: cudnn_batch_norm_backward.i0!; "
            "1: cudnn_batch_norm_backward.i1!; "
            "2: cudnn_batch_norm_backward.i2!"),
    RULE(NORM, "native_group_norm", NULL, ms_norm_group_norm_rule, "012",
         "i0I1o1o2", shape_same,
         "0: native_group_norm_backward.i0!; "
         "1: native_group_norm_backward.i1!; "
         "2: native_group_norm_backward.i2!"),
    FORMULA(NORM, "_fused_rms_norm", NULL, "FusedRmsNorm", "01", "i0I1o1",
            shape_same,
            "0: _fused_rms_norm_backward.i0!; 1: _fused_rms_norm_backward.i1!"),
    /* products */
    PRODUCT(MM, "mm", ms_matmul_mm_rule, "01", "i0i1", "1: mm.i1!; 0: mm.i0!"),
    PRODUCT(ADDMM, "addmm", ms_matmul_addmm_rule, "012", "i2i1",
            "1: mm.i1!; 2: mm.i2!; 0: pass!"),
    PRODUCT(BMM, "bmm", ms_matmul_bmm_rule, "01", "i0i1",
            "1: bmm.i1!; 0: bmm.i0!"),
    PRODUCT(BMM, "baddbmm", ms_matmul_baddbmm_rule, "012", "i2i1",
            "1: bmm.i1!; 2: bmm.i2!; 0: pass!"),
    FORMULA(BMM, "addbmm", NULL, "Addbmm", "012", "i2i1", shape_same,
            "1: bmm.i1!; 2: bmm.i2!; 0: pass!"),
    FORMULA(PRODUCT, "mv", NULL, "Mv", "01", "i0i1", shape_product,
            "0: ger.i0!; 1: mv.i1!"),
    FORMULA(PRODUCT, "addmv", NULL, "Addmv", "012", "i2i1", shape_product,
            "1: ger.i1!; 0: pass!; 2: mv.i2!"),
    FORMULA(PRODUCT, "addr", NULL, "Addr", "012", "i2i1", shape_any,
            "0: pass!; 1: mv.i1!; 2: mv.i2!"),
    FORMULA(PRODUCT, "dot", NULL, "Dot", "01", "i0i1", shape_scalar,
            "0: mul.i0!; 1: mul.i1!"),
    FORMULA(REDUCTION, "trace", NULL, "Trace", "0", "", shape_scalar,
            "0: zeros.i0!"),
    FORMULA(POINTWISE, "linalg_cross", NULL, "LinalgCross", "01", "i0i1",
            shape_broadcast, "1: linalg_cross.g!; 0: linalg_cross.g!"),
    {.op = "convolution",
     .kind = MS_KIND_CONVOLUTION,
     .rule = &ms_conv_rule,
     .inputs = "012",
     .saves = "i0i1",
     .makes = "0: convolution_backward.i0!; 2: convolution_backward.i2!; "
              "1: convolution_backward.i1!",
     .shape = &ms_atenwindow_convolution,
     .matrix = true,
     .also = ms_atenexceptions_convolution},
    /* pooling */
    RULE(POOLING, "max_pool2d_with_indices", NULL, ms_conv_max_pool_rule, "0",
         "i0o1", window_max_pool, "0: max_pool2d_with_indices_backward.i0!"),
    MAX_POOL(POOLING, "max_pool3d_with_indices", "MaxPool3DWithIndices",
             window_max_pool),
    MAX_POOL(POOLING, "adaptive_max_pool2d", "AdaptiveMaxPool2D",
             window_adaptive),
    MAX_POOL(POOLING, "adaptive_max_pool3d", "AdaptiveMaxPool3D",
             window_adaptive),
    RULE(POOLING, "_adaptive_avg_pool2d", NULL, ms_conv_avg_pool_rule, "0",
         "i0", window_adaptive, "0: _adaptive_avg_pool2d_backward.i0!"),
    AVG_POOL(POOLING, "_adaptive_avg_pool3d", "AdaptiveAvgPool3D",
             window_adaptive),
    AVG_POOL(POOLING, "avg_pool2d", "AvgPool2D", window_avg_pool),
    AVG_POOL(POOLING, "avg_pool3d", "AvgPool3D", window_avg_pool),
    KERNEL(POOLING, "max_unpool2d", NULL, "MaxUnpool2D",
           "max_unpool2d_backward", "i1", window_planes),
    /* attention of torch 2 */
    {.op = FLASH,
     .kind = MS_KIND_FLASH,
     .rule = &ms_attention_flash_rule,
     .inputs = "012",
     .saves = "i0i1i2o0o1O2O3O4O5",
     .makes = "0: " FLASH "_backward.i0!; 1: " FLASH "_backward.i1!; "
              "2: " FLASH "_backward.i2! " FLASH "_backward.s4~ " FLASH
              "_backward.s3~",
     .shape = &ms_atenshape_attention,
     .matrix = true},
    ATTENTION(EFFICIENT, "_scaled_dot_product_efficient_attention",
              "ScaledDotProductEfficientAttention",
              " mul.s3~ sum.s4~ copy_.s4~"),
    ATTENTION(ATTENTION, "_scaled_dot_product_cudnn_attention",
              "ScaledDotProductCudnnAttention", ""),
    ATTENTION(ATTENTION, "_scaled_dot_product_flash_attention_for_cpu",
              "ScaledDotProductFlashAttentionForCpu", ""),
    /* losses */
    RULE(LOSS, "nll_loss_forward", NULL, ms_loss_nll_loss_rule, "0", "i0i1o1",
         shape_loss, "0: nll_loss_backward.i0!"),
    RULE(LOSS, "nll_loss2d_forward", NULL, ms_loss_nll_loss_rule, "0", "i0i1o1",
         shape_loss, "0: nll_loss2d_backward.i0!"),
    REGRESSION(LOSS, "mse_loss", "MseLoss"),
    REGRESSION(LOSS, "smooth_l1_loss", "SmoothL1Loss"),
    REGRESSION(LOSS, "huber_loss", "HuberLoss"),
    FORMULA(LOSS, "binary_cross_entropy", NULL, "BinaryCrossEntropy", "0",
            "i0i1I2", shape_loss, "0: binary_cross_entropy_backward.i0!"),
    FORMULA_ALSO(LOSS, "binary_cross_entropy_with_logits", NULL,
                 "BinaryCrossEntropyWithLogits", "0", "i0i1I2I3", shape_loss,
                 "0: sigmoid.i0!", logits),
    FORMULA(LOSS, "soft_margin_loss", NULL, "SoftMarginLoss", "0", "i0i1",
            shape_loss,
            "0: mul.i0~ exp.i0~ add.i0~ soft_margin_loss_backward.i0!"),
    KERNEL(LOSS, "multi_margin_loss", NULL, "MultiMarginLoss",
           "multi_margin_loss_backward", "i0i1", shape_loss),
    KERNEL(LOSS, "multilabel_margin_loss_forward", NULL, "MultilabelMarginLoss",
           "multilabel_margin_loss_backward", "i0i1o1", shape_loss),
    FORMULA(LOSS, "_ctc_loss", NULL, "CtcLoss", "0", "i0i1o0o1", shape_any,
            "0: _ctc_loss_backward.i0! _ctc_loss_backward.s3~"),
};
const uint32_t ms_atenmath_n_rows =
    sizeof ms_atenmath_rows / sizeof *ms_atenmath_rows;
