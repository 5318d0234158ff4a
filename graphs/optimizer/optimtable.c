/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of optimizers.  torch: torch/optim/NAME.py, _single_tensor_NAME
 * and _multi_tensor_NAME, of 1.13 (measured) and 2.x.  mul_ and add_ on one
 * state are one op here (lerp_). */
#include "graphs/optimizer/optimtable.h"
#include "graphs/formats/precisions.h"

/* ---- torch: SGD ---------------------------------------------------------- */

/* Weight decay that is added to the gradient: to a copy of it, except that the
 * lists of PyTorch 1.13, other than SGD's, are added to in place. */
#define DECAY "decay add W G =G:decayed_grad; "
#define DECAY_1_13 "decay add_ W >G; "

static const char sgd_ops[] = DECAY "add_ G >W";
static const ms_update sgd = {.states = "",
                              .loop = sgd_ops,
                              .foreach = sgd_ops,
                              .fused = true,
                              .elementwise = true};
static const char momentum_ops[] = DECAY "add_# G >S0 -G; add_ S0 >W";
static const ms_update momentum = {.states = "momentum_buffer",
                                   .loop = momentum_ops,
                                   .foreach = momentum_ops,
                                   .fused = true,
                                   .elementwise = true};
/* The loop over tensors makes gradient + buffer; foreach adds the buffer to
 * .grad itself. */
static const ms_update nesterov = {
    .states = "momentum_buffer",
    .loop = DECAY "add_# G >S0; add G S0 =A:nesterov -G; add_ A >W -A",
    .foreach = DECAY "add_# G >S0; add_ S0 >G; add_ G >W",
    .fused = true,
    .elementwise = true};

/* ---- torch: Adagrad, RMSprop --------------------------------------------- */

#define ADAGRAD_LISTS(decay_)                                                  \
    decay_ "cpu div =E:minus_clr.scalar; addcmul_ G >S0; sqrt S0 =A:sqrt; "    \
           "add# A =B:std -A; mul# G =C:numerator; div B C =D:to_add -C; "     \
           "add_ D >W"
static const ms_update adagrad = {
    .states = "sum!",
    .loop =
        DECAY "addcmul_ G >S0; sqrt S0 =B:std; add_# >B A=B; addcdiv_ G A >W",
    .foreach = DECAY "addcmul_ G >S0; sqrt S0 =A:std; add_# >A; "
                     "decay mul_# >G; decay addcdiv_ A G >W; "
                     "undecayed mul# G =B:numerator; "
                     "undecayed addcdiv_ A B >W",
    .foreach_2_0 = ADAGRAD_LISTS(DECAY),
    .foreach_1_13 = ADAGRAD_LISTS(DECAY_1_13),
    .elementwise = true};

#define SQUARE "addcmul_ G >S0; sqrt S0 =A:avg; add_# >A; "
#define CENTERED                                                               \
    "addcmul_ G >S0; lerp_ G >S1; addcmul S0 S1 =A:avg; sqrt_ >A; add_# >A; "
#define RMSPROP(ops_)                                                          \
    .loop = DECAY ops_, .foreach = DECAY ops_, .foreach_1_13 = DECAY_1_13 ops_
static const ms_update rmsprop = {.states = "square_avg",
                                  RMSPROP(SQUARE "addcdiv_ G A >W"),
                                  .elementwise = true};
static const ms_update rmsprop_momentum = {
    .states = "square_avg momentum_buffer",
    RMSPROP(SQUARE "addcdiv_ G A >S1; add_ S1 >W"),
    .elementwise = true};
static const ms_update rmsprop_centered = {.states = "square_avg grad_avg",
                                           RMSPROP(CENTERED "addcdiv_ G A >W"),
                                           .elementwise = true};
static const ms_update rmsprop_both = {
    .states = "square_avg grad_avg momentum_buffer",
    RMSPROP(CENTERED "addcdiv_ G A >S2; add_ S2 >W"),
    .elementwise = true};

/* ---- torch: Adam, AdamW -------------------------------------------------- */

/* In the loop, and in lists up to PyTorch 2.0, the quotient by the bias
 * correction is another tensor.  From 2.1 on lists are divided in place, and
 * the copies of gradients to which decay is added end before. */
#define APART "=A:sqrt; div# A =B:denom -A; addcdiv_ S0 B >W"
#define IN_PLACE "=A:sqrt; div_# >A; addcdiv_ S0 A >W"
#define ROOTS "lerp_ G >S0; addcmul_ G >S1; sqrt S1 "
#define ROOTS_2_1 "lerp_ G >S0; addcmul_ G >S1 -G; sqrt S1 "
#define MAXIMA "lerp_ G >S0; addcmul_ G >S1; maximum_ S1 >S2; sqrt S2 "
#define MAXIMA_2_1 "lerp_ G >S0; addcmul_ G >S1 -G; maximum_ S1 >S2; sqrt S2 "
static const ms_update adam = {.states = "exp_avg exp_avg_sq",
                               .loop = DECAY ROOTS APART,
                               .foreach = DECAY ROOTS_2_1 IN_PLACE,
                               .foreach_2_0 = DECAY ROOTS APART,
                               .foreach_1_13 = DECAY_1_13 ROOTS APART,
                               .fused = true,
                               .elementwise = true};
static const ms_update amsgrad = {.states = "exp_avg exp_avg_sq max_exp_avg_sq",
                                  .loop = DECAY MAXIMA APART,
                                  .foreach = DECAY MAXIMA_2_1 IN_PLACE,
                                  .foreach_2_0 = DECAY MAXIMA APART,
                                  .foreach_1_13 = DECAY_1_13 MAXIMA APART,
                                  .fused = true,
                                  .elementwise = true};
/* AdamW decays weights apart from the gradient, in place. */
#define SHRINK "decay mul_ >W; "
static const ms_update adamw = {.states = "exp_avg exp_avg_sq",
                                .loop = SHRINK ROOTS APART,
                                .foreach = SHRINK ROOTS IN_PLACE,
                                .foreach_2_0 = SHRINK ROOTS APART,
                                .fused = true,
                                .elementwise = true};
static const ms_update adamw_amsgrad = {.states =
                                            "exp_avg exp_avg_sq max_exp_avg_sq",
                                        .loop = SHRINK MAXIMA APART,
                                        .foreach = SHRINK MAXIMA IN_PLACE,
                                        .foreach_2_0 = SHRINK MAXIMA APART,
                                        .fused = true,
                                        .elementwise = true};

/* ---- LAMB, Lion ---------------------------------------------------------- */

/* cybertronai/pytorch-lamb, lamb.py; fused: NVIDIA/apex, multi_tensor_lamb.cu,
 * which leaves the update in the place of the gradient. */
static const ms_update lamb = {
    .states = "exp_avg exp_avg_sq",
    .loop = "lerp_ G >S0; addcmul_ G >S1; "
            "pow# W =A:square; sum A =E:weight_norm.scalar -A; "
            "sqrt S1 =A:sqrt; add# A =B:denom -A; div S0 B =C:adam_step -B; "
            "decay add_ W >C; pow# C =A:square; sum A =F:adam_norm.scalar -A; "
            "add_ C >W",
    .fused = true,
    .elementwise = true};

/* google/automl, lion/lion_pytorch.py; fused: DeepSpeed's FusedLion. */
static const ms_update lion = {
    .states = "exp_avg",
    .loop = "decay mul_ >W; mul# S0 =A:update; mul# G =B:update; "
            "add A B =C:update -A -B; sign C =D:sign; add_ D >W -D; "
            "lerp_ G >S0",
    .fused = true,
    .elementwise = true};

/* ---- Adafactor ----------------------------------------------------------- */

/* torch/optim/_adafactor.py (from 2.5), whose default is the loop. */
static const ms_update adafactor_matrix = {
    .states = "row_var.rows col_var.columns",
    .loop =
        SHRINK "norm G =A:row_mean.rows; lerp_ A >S0; "
               "norm G =B:col_mean.columns; lerp_ B >S1; "
               "matmul S0 S1 =C:var_estimate; div_ >C; rsqrt_ >C; mul_ G >C; "
               "norm C; add_ C >W"};
static const ms_update adafactor_vector = {
    .states = "variance",
    .loop =
        SHRINK "mul G =D:grad_squared; lerp_ D >S0; clone S0 =C:var_estimate; "
               "rsqrt_ >C; mul_ G >C; norm C; add_ C >W"};

/* huggingface/transformers, src/transformers/optimization.py, Adafactor: it
 * computes in fp32 whatever the weights are, and has a first moment where beta1
 * is given. */
#define HF_BEGIN                                                               \
    "narrow _to_copy G =G:fp32_grad.whole.fp32; "                              \
    "narrow _to_copy W =W:fp32_weight.whole.fp32; "                            \
    "pow# G =A:square.whole.fp32; add# A =B:update.whole.fp32 -A; "
#define HF_FACTORED                                                            \
    HF_BEGIN                                                                   \
    "mean B =A:mean.rows.fp32; lerp_ A >S0 -A; "                               \
    "mean B =A:mean.columns.fp32; lerp_ A >S1 -A; "                            \
    "rsqrt S0 =D:factor.rows.fp32; rsqrt S1 =E:factor.columns.fp32; "          \
    "mul D E =C:update.whole.fp32 -B -D -E; mul_ G >C; norm C; div_ >C; "      \
    "mul_# >C; "
#define HF_WHOLE                                                               \
    HF_BEGIN                                                                   \
    "lerp_ B >S0; rsqrt S0 =C:update.whole.fp32 -B; mul_ G >C; norm C; "       \
    "div_ >C; mul_# >C; "
#define HF_DECAY "decay add_ >W; "
#define HF_END "=A:negative.whole.fp32; add_ A >W -A; narrow copy_ W >P"
static const ms_update hf_matrix = {
    .states = "exp_avg_sq_row.rows.fp32 exp_avg_sq_col.columns.fp32",
    .loop = HF_FACTORED HF_DECAY "neg C " HF_END};
static const ms_update hf_vector = {.states = "exp_avg_sq.whole.fp32",
                                    .loop = HF_WHOLE HF_DECAY "neg C " HF_END};
static const ms_update hf_momentum_matrix = {
    .states = "exp_avg_sq_row.rows.fp32 exp_avg_sq_col.columns.fp32 "
              "exp_avg.whole.fp32",
    .loop = HF_FACTORED "lerp_ C >S2 -C; " HF_DECAY "neg S2 " HF_END};
static const ms_update hf_momentum_vector = {
    .states = "exp_avg_sq.whole.fp32 exp_avg.whole.fp32",
    .loop = HF_WHOLE "lerp_ C >S1 -C; " HF_DECAY "neg S1 " HF_END};

/* ---- 8 bits -------------------------------------------------------------- */

/* bitsandbytes/optim/optimizer.py: a state has a byte per element and an fp32
 * maximum per block; small tensors keep fp32 states. */
static const ms_update adam_8bit = {
    .states = "state1.whole.byte absmax1.blocks.fp32 state2.whole.byte "
              "absmax2.blocks.fp32",
    .fused = true,
    .elementwise = true};
static const ms_update adam_32bit = {.states =
                                         "state1.whole.fp32 state2.whole.fp32",
                                     .fused = true,
                                     .elementwise = true};
static const ms_update lion_8bit = {.states =
                                        "state1.whole.byte absmax1.blocks.fp32",
                                    .fused = true,
                                    .elementwise = true};
static const ms_update lion_32bit = {
    .states = "state1.whole.fp32", .fused = true, .elementwise = true};

/* ---- second order -------------------------------------------------------- */

/* Liuhong99/Sophia, sophia.py, _single_tensor_sophiag.  The steps that estimate
 * the Hessian run another forward and backward, with sampled labels, after this
 * one.  They take as much memory as the step itself, and so are no refresh
 * here. */
static const ms_update sophia = {
    .states = "exp_avg hessian",
    .loop = "decay mul_ >W; lerp_ G >S0; abs S0 =A:abs; mul# S1 =B:scaled; "
            "add# B =C:scaled -B; div A C =D:ratio -A -C; "
            "clamp D =E:ratio -D; sign S0 =A:sign; addcmul_ A E >W -A",
    .elementwise = true};

/* KellerJordan/Muon, muon.py, SingleDeviceMuonWithAuxAdam: five Newton-Schulz
 * iterations in bf16.  Where ranks have parts of a matrix, momentum and update
 * are of the part; the update is gathered in bf16, every rank finds all of it
 * and adds what is its own (Liu et al., arXiv 2502.16982, algorithm 1; the
 * same with DTensor's full_tensor() under FSDP2). */
#define NEWTON_SCHULZ                                                          \
    "mm@large A A =B:gram.square.bf16; mul# B =C:scaled.square.bf16; "         \
    "mul# B =D:scaled.square.bf16; mm@small D B =D:square.square.bf16; "       \
    "add C D =F:sum.square.bf16 -C -D; mul# A =C:scaled.full.bf16; "           \
    "mm@small F A =D:product.full.bf16; add C D =A:update.full.bf16 -C -D; "
static const ms_update muon = {
    .states = "momentum_buffer",
    .loop = "lerp_ G >S0; lerp_ S0 >G; _to_copy G =A:update.whole.bf16; "
            "shared all_gather A =A:gathered.full.bf16; "
            "norm A; div A =A:update.full.bf16; " NEWTON_SCHULZ NEWTON_SCHULZ
                NEWTON_SCHULZ NEWTON_SCHULZ NEWTON_SCHULZ
            "mul_# >A -B -F E=A; decay mul_ >W; add_ E >W",
    .gathers = true};

/* facebookresearch/optimizers, distributed_shampoo, without momentum and with
 * Adam's grafting.  A refresh finds the inverse roots, a block's after another
 * (matrix_functions.py, matrix_inverse_root by eigendecomposition: the factor
 * by its bias correction, with a ridge, decomposed; eigenvectors, scaled, and
 * their product); cuSOLVER's workspace is left out.  The states are made at
 * construction. */
#define ROOT(factor_, inverse_, block_)                                        \
    "refresh div# " factor_ " =A:corrected." block_ "; "                       \
    "refresh add# A =B:ridge." block_ "; "                                     \
    "refresh linalg_eigh B =C:eigenvectors." block_ " -B; "                    \
    "refresh mul# C =D:scaled." block_ "; "                                    \
    "refresh mm D C =E:root." block_ " -D -C; "                                \
    "refresh copy_ E >" inverse_ " -E -A; "
static const ms_update shampoo_matrix = {
    .states = "left.left! right.right! inverse_left.left! "
              "inverse_right.right! filtered_grad! grafting!",
    .loop = "tensordot@columns G G =A:outer.left; lerp_ A >S0 -A; "
            "tensordot@rows G G =A:outer.right; lerp_ A >S1 -A; " ROOT(
                "S0", "S2", "left_block")
                ROOT("S1", "S3",
                     "right_block") "addcmul_ G >S5; lerp_ G >S4; "
                                    "tensordot@rows S4 S2 =B:preconditioned; "
                                    "tensordot@columns B S3 =B:preconditioned; "
                                    "sqrt S5 =C:denom; "
                                    "add_# >C; div S4 C =D:graft -C; norm D; "
                                    "norm B; mul_# >B -D; "
                                    "decay mul_ >W; add_ B >W"};
static const ms_update shampoo_vector = {
    .states = "left.left! inverse_left.left! filtered_grad! grafting!",
    .loop = "outer G G =A:outer.left; lerp_ A >S0 -A; " ROOT(
        "S0", "S1",
        "left_block") "addcmul_ G >S3; "
                      "lerp_ G >S2; tensordot@rows S2 S1 =B:preconditioned; "
                      "sqrt S3 =C:denom; add_# >C; div S2 C =D:graft -C; norm "
                      "D; "
                      "norm B; mul_# >B -D; decay mul_ >W; add_ B >W"};

/* nikhilvyas/SOAP, soap.py; vectors are Adam's (precondition_1d=False).  A
 * refresh (one step of ten) is get_orthogonal_matrix_QR: per side the
 * eigenvalues that the old basis gives, the basis and the second moment sorted
 * by them, a power iteration, its QR; what is new stays beside what is old
 * until both sides are there. */
static const ms_update soap = {
    .states = "exp_avg exp_avg_sq left.all_left right.all_right "
              "base_left.all_left base_right.all_right",
    .loop = "tensordot@rows G S4 =A:projected; "
            "tensordot@columns A S5 =A:projected; lerp_ A >S0; "
            "square A =B:square; lerp_ B >S1 -B; sqrt S1 =B:denom; add_# >B; "
            "div S0 B =C:ratio; tensordot@rows C S4 =D:norm_grad -C; "
            "tensordot@columns D S5 =D:norm_grad; add_ D >W; decay mul_ >W; "
            "tensordot@columns G G =E:outer.all_left; lerp_ E >S2 -E; "
            "tensordot@rows G G =E:outer.all_right; lerp_ E >S3 -E; "
            "refresh mm@rows S4 S2 =H:rotated.all_left; "
            "refresh mm@rows H S4 =I:estimated.all_left -H; "
            "refresh diagonal I -I; refresh index S4 =I:sorted.all_left; "
            "refresh index_select S1 =J:sorted; "
            "refresh mm@rows S2 I =K:power.all_left; "
            "refresh linalg_qr K =F:q.all_left; "
            "refresh linalg_qr K =E:r.all_left; "
            "refresh mm@columns S5 S3 =H:rotated.all_right; "
            "refresh mm@columns H S5 =C:estimated.all_right -H; "
            "refresh diagonal C -C; refresh index S5 =I:sorted.all_right; "
            "refresh index_select J =J:sorted; "
            "refresh mm@columns S3 I =K:power.all_right; "
            "refresh linalg_qr K =C:q.all_right; "
            "refresh linalg_qr K =E:r.all_right; "
            "refresh copy_ J >S1 -J; refresh copy_ F >S4 -F; "
            "refresh copy_ C >S5 -C -E -I -K"};

/* ---- little memory ------------------------------------------------------- */

/* jiaweizzhao/GaLore, galore_torch/adamw.py and galore_projector.py.  A refresh
 * (one step of 200, the first one) decomposes the gradient in fp32, of which
 * linalg_svd makes another copy: U and V^H together have n m + min(n, m)^2
 * elements; what is not kept is multiplied by the singular values.  cuSOLVER's
 * workspace and what has one dimension are left out. */
static const ms_update galore = {
    .states = "projector.projector exp_avg.low exp_avg_sq.low",
    .loop = "refresh narrow _to_copy G =A:matrix.whole.fp32; "
            "refresh clone G =B:svd_input.whole.fp32; "
            "refresh linalg_svd@small B =C:singular_vectors.whole.fp32; "
            "refresh linalg_svd B =D:singular_vectors.square.fp32 -B; "
            "refresh mm@rank C =E:scaled.low.fp32; "
            "refresh _to_copy D =F:projector.projector -C -D -E -A; "
            "refresh copy_ F >S0 -F; "
            "matmul@small G S0 =A:low_rank.low; lerp_ A >S1; addcmul_ A >S2; "
            "sqrt S2 =B:denom.low; add_# >B; div S1 B =C:norm_grad.low; "
            "matmul@rank C S0 =D:norm_grad -C; mul# D =D:norm_grad; "
            "add_ D >W; decay add_ >W"};

/* OpenLMLab/LOMO, lomo_optim/lomo.py, fuse_update: it computes in fp32 and
 * updates a weight as soon as its gradient is there. */
static const ms_update lomo = {
    .states = "",
    .loop = "narrow _to_copy G =G:fp32_grad.whole.fp32; "
            "narrow _to_copy W =W:fp32_weight.whole.fp32; add_ G >W; "
            "narrow copy_ W >P",
    .elementwise = true};

/* pytorch/torchdistx, anyprecision_optimizer.py, AnyPrecisionAdamW with
 * use_kahan_summation and all states in the dtype of the weights. */
static const ms_update kahan = {
    .states = "exp_avg exp_avg_sq compensation",
    .loop = "decay mul_ >W; lerp_ G >S0; addcmul_ G >S1; sqrt S1 =A:sqrt; "
            "div# A =B:denom -A; add_# >B; addcdiv_ S0 B >S2; "
            "clone W =C:before; add_ S2 >W; sub_ W >C; add_ C >S2",
    .elementwise = true};

/* ---- the table ----------------------------------------------------------- */

const ms_optimizer_row ms_optimtable[] = {
    {.name = "sgd", .update = &sgd},
    {.name = "momentum", .update = &momentum},
    {.name = "nesterov", .update = &nesterov},
    {.name = "adagrad", .update = &adagrad, .counts = true},
    {.name = "rmsprop", .update = &rmsprop},
    {.name = "rmsprop-momentum", .update = &rmsprop_momentum},
    {.name = "rmsprop-centered", .update = &rmsprop_centered},
    {.name = "rmsprop-centered-momentum", .update = &rmsprop_both},
    {.name = "adam", .update = &adam, .counts = true},
    {.name = "adamw", .update = &adamw, .counts = true, .decays = true},
    {.name = "adam-amsgrad", .update = &amsgrad, .counts = true},
    {.name = "adamw-amsgrad",
     .update = &adamw_amsgrad,
     .counts = true,
     .decays = true},
    {.name = "lamb", .update = &lamb, .impl = MS_IMPL_FUSED, .decays = true},
    {.name = "lion", .update = &lion, .impl = MS_IMPL_LOOP, .decays = true},
    {.name = "adafactor",
     .update = &adafactor_matrix,
     .others = &adafactor_vector,
     .chosen = MS_CHOSEN_MATRICES,
     .impl = MS_IMPL_LOOP},
    {.name = "adafactor-hf",
     .update = &hf_matrix,
     .others = &hf_vector,
     .chosen = MS_CHOSEN_MATRICES,
     .impl = MS_IMPL_LOOP},
    {.name = "adafactor-hf-momentum",
     .update = &hf_momentum_matrix,
     .others = &hf_momentum_vector,
     .chosen = MS_CHOSEN_MATRICES,
     .impl = MS_IMPL_LOOP},
    {.name = "adam-8bit",
     .update = &adam_8bit,
     .others = &adam_32bit,
     .chosen = MS_CHOSEN_LARGE,
     .impl = MS_IMPL_FUSED,
     .maps = 2},
    {.name = "adamw-8bit",
     .update = &adam_8bit,
     .others = &adam_32bit,
     .chosen = MS_CHOSEN_LARGE,
     .impl = MS_IMPL_FUSED,
     .maps = 2},
    {.name = "lion-8bit",
     .update = &lion_8bit,
     .others = &lion_32bit,
     .chosen = MS_CHOSEN_LARGE,
     .impl = MS_IMPL_FUSED,
     .maps = 1},
    {.name = "sophia", .update = &sophia, .impl = MS_IMPL_LOOP, .decays = true},
    {.name = "muon",
     .update = &muon,
     .others = &adamw,
     .chosen = MS_CHOSEN_HIDDEN,
     .impl = MS_IMPL_LOOP,
     .decays = true},
    {.name = "shampoo",
     .update = &shampoo_matrix,
     .others = &shampoo_vector,
     .chosen = MS_CHOSEN_MATRICES,
     .impl = MS_IMPL_LOOP,
     .decays = true,
     .block = 1024,
     .refreshes = true},
    {.name = "soap",
     .update = &soap,
     .others = &adamw,
     .chosen = MS_CHOSEN_MATRICES,
     .impl = MS_IMPL_LOOP,
     .decays = true,
     .block = 10000,
     .refreshes = true},
    {.name = "galore",
     .update = &galore,
     .others = &adamw,
     .chosen = MS_CHOSEN_HIDDEN,
     .impl = MS_IMPL_LOOP,
     .has_rank = true,
     .refreshes = true,
     .starts_anew = true},
    {.name = "lomo",
     .update = &lomo,
     .no_decay = true,
     .impl = MS_IMPL_LOOP,
     .in_backward = true,
     .no_master = true},
    {.name = "adamw-kahan",
     .update = &kahan,
     .impl = MS_IMPL_LOOP,
     .decays = true,
     .no_master = true},
};
const uint32_t ms_optimtable_n = sizeof ms_optimtable / sizeof *ms_optimtable;

/* ---- of precisions ------------------------------------------------------- */

/* NVIDIA/TransformerEngine, pytorch/optimizers/fused_adam.py, FusedAdam with
 * store_param_remainders. */
static const ms_update te_adam = {
    .states = "exp_avg exp_avg_sq", .fused = true, .elementwise = true};
static const ms_optimizer_row te[2] = {
    {.name = "adam", .update = &te_adam, .impl = MS_IMPL_FUSED},
    {.name = "adamw",
     .update = &te_adam,
     .impl = MS_IMPL_FUSED,
     .decays = true}};

/* Azure/MS-AMP, msamp/optim/adamw.py, LBAdamW.adamw_fn.  Its variables param
 * and grad are C and D here, bound together; where they are fp32 already they
 * are no copies. */
#define FLOATS                                                                 \
    "_to_copy W =A:param.whole.fp32; _to_copy G =B:grad.whole.fp32 C=A; "      \
    "decay mul_ >C; "
#define BACK "_to_copy C =A:cast.whole.fp16; copy_ A >W -A"
#define SQUARED                                                                \
    " =A:square.whole.fp32; lerp_ A >S1 -A; sqrt S1 =A:sqrt.whole.fp32; "      \
    "div# A =E:denom.whole.fp32 -A; add_# >E; div S0 E =A:ratio.whole.fp32; "
static const ms_update o1_linear = {
    .states = "exp_avg.whole.fp32 exp_avg_sq.whole.fp32",
    .loop = FLOATS "lerp_ B >S0 D=B; square D" SQUARED "add_ A >C -A; " BACK,
    .elementwise = true};
static const ms_update o1_other = {
    .states = "exp_avg.whole.fp32 exp_avg_sq.whole.fp32",
    .loop = "decay mul_ >W; lerp_ G >S0; square G" SQUARED "add_ A >W -A",
    .elementwise = true};
static const ms_update o2_linear = {
    .states = "exp_avg.whole.byte exp_avg_sq.whole.fp16",
    .loop = FLOATS "adamw_fp8_stage1 B S0 S1 >C D=B; " BACK
                   "; _to_copy G =B:grad.whole.fp32; adamw_fp8_stage2 B >S0 "
                   "D=B; adamw_fp8_stage2 D >S1",
    .elementwise = true};
static const ms_update o2_other = {
    .states = "exp_avg.whole.byte exp_avg_sq.whole.fp16",
    .loop = "decay mul_ >W; adamw_fp8_stage1 G S0 S1 >W; "
            "adamw_fp8_stage2 G >S0; adamw_fp8_stage2 G >S1",
    .elementwise = true};
#define MSAMP(word, linear, other, decay)                                      \
    {                                                                          \
        .name = (word), .update = &(linear), .others = &(other),               \
        .chosen = MS_CHOSEN_LINEAR, .impl = MS_IMPL_LOOP, .decays = (decay)    \
    }
static const ms_optimizer_row msamp_o1[2] = {
    MSAMP("adam", o1_linear, o1_other, false),
    MSAMP("adamw", o1_linear, o1_other, true)};
static const ms_optimizer_row msamp_o2[2] = {
    MSAMP("adam", o2_linear, o2_other, false),
    MSAMP("adamw", o2_linear, o2_other, true)};
const ms_optimizer_row *const ms_optimtable_own[MS_N_PRECISION_OPTIMIZERS] = {
    [MS_OPTIMIZERS_TE] = te,
    [MS_OPTIMIZERS_MSAMP_O1] = msamp_o1,
    [MS_OPTIMIZERS_MSAMP_O2] = msamp_o2};
