/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"

static const ms_kernel_hooks hooks = {
    .check = ms_mcoresettings_check,
    .check_idle = ms_mcoresettings_check_idle,
    .settle = ms_mcoresettings_settle,
    .choose = ms_mcoresettings_choose,
    .one_batch_at_a_time = true,
    .inputs = ms_mcorelayers_batch,
    .attention = ms_mcoreattention_forward,
    .loss_temporaries = ms_mcoreloss_temporaries,
    .joined_with = ms_mcorelayers_joined_with,
    .defers_dropout = ms_mcorelayers_defers_dropout,
    .is_deferred = ms_mcorelayers_is_deferred,
    .dropout_add = ms_mcorelayers_dropout_add,
    .stand_in = ms_mcoregrads_stand_in,
    .add_gradient = ms_mcoregrads_add,
    .is_te_product = ms_mcorelayers_is_te_product,
    .cublas_bytes = ms_mcorelayers_cublas_bytes,
    .holds_gradients = ms_mcoregrads_hold,
    .has_fp32_gradients = ms_mcoregrads_are_fp32,
    .casts_gradients = ms_mcoregrads_are_cast,
};

/* PyTorch's norms and gates stand for Transformer Engine's, whatever code the
 * layer says it follows. */
const ms_kernel_set ms_mcore = {
    .attention = &ms_sdpa_flash,
    .loss = &ms_losskernels_megatron,
    .norm = {.firm = true},
    .activation = {.firm = true},
    .rotary = {.firm = true},
    .fuses_softmax = true, /* FusedScaleMaskSoftmax */
    .keeps_rows = true,
    .keeps_parts = true,
    .names_inputs = true,
    .joins_gates = true,
    .fuses_updates = true, /* Transformer Engine's or Apex' FusedAdam */
    .keeps_fp8 = true,
    .hooks = &hooks,
};
