/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the settings megatron.* mean and refuse. */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"
#include "graphs/quantized/quantize.h"

#include <stddef.h>
#include <stdio.h>

#define ROW(member) (uint32_t)(offsetof(ms_training, member) / sizeof(int64_t))

static bool was_set(const ms_training *training, uint32_t row)
{
    return training->was_set >> row & 1;
}

static ms_err refuse(const char *key, const char *what, const char *hint,
                     ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, key, hint, "%s", what);
}

ms_err ms_mcoresettings_check_idle(const ms_training *training, ms_fault *fault)
{
    char key[64];
    for (uint32_t row = ROW(mcore_spec); row <= ROW(mcore_deterministic);
         row++) {
        if (!was_set(training, row))
            continue;
        snprintf(key, sizeof key, "megatron.%s", ms_training_fields[row].name);
        return refuse(key,
                      "it changes nothing without training.kernels=megatron",
                      "add --kernels megatron", fault);
    }
    return MS_OK;
}

/* core/transformer/transformer_config.py, training/arguments.py. */
static ms_err check_pairs(const ms_training *training, ms_fault *fault)
{
    bool local = training->mcore_spec == MS_MCORE_LOCAL;
    if (local && was_set(training, ROW(mcore_attention)))
        return refuse("megatron.attention",
                      "it chooses a backend of Transformer Engine, which "
                      "megatron.spec=local does without",
                      "leave one out", fault);
    if (training->mcore_deterministic == 1 &&
        training->mcore_loss != MS_MCORE_LOSS_UNFUSED)
        return refuse("megatron.deterministic",
                      "Megatron refuses deterministic_mode with a fused loss",
                      "leave megatron.loss out", fault);
    return MS_OK;
}

ms_err ms_mcoresettings_check(const ms_training *training, ms_fault *fault)
{
    bool autocast = training->precision == MS_AUTOCAST_FP16 ||
                    training->precision == MS_AUTOCAST_BF16;
    if (training->device == 1)
        return refuse("training.kernels", "Megatron's kernels run on CUDA only",
                      "--set training.device=cuda", fault);
    if (autocast)
        return refuse("training.precision",
                      "autocast is not how Megatron casts: its weights are of "
                      "16 bits",
                      "--precision bf16-mixed or fp16-mixed", fault);
    if (training->attention_kernel > 0 || training->rotary_kernel > 0)
        return refuse(training->attention_kernel > 0
                          ? "training.attention_kernel"
                          : "training.rotary_kernel",
                      "Megatron's attention, rotation in it, is what "
                      "megatron.attention says",
                      "leave it out", fault);
    if (training->optimizer_in_backward == 1)
        return refuse("training.optimizer_in_backward",
                      "Megatron's gradients stay in main_grad to the step",
                      "leave it out", fault);
    return check_pairs(training, fault);
}

void ms_mcoresettings_settle(ms_training *training)
{
    if (!was_set(training, ROW(hold_output)))
        training->hold_output = MS_HOLD_NONE;
}

/* ---- attention's backend ------------------------------------------------- */

/* TE, dot_product_attention/utils.py, get_attention_backend. */
int64_t ms_mcoresettings_backend(const ms_step_settings *settings)
{
    const ms_training *training = settings->training;
    uint32_t capability = settings->device->compute_capability;
    bool late = capability >= MS_BLACKWELL;
    if (training->mcore_spec == MS_MCORE_LOCAL)
        return MS_MCORE_UNFUSED;
    if (training->mcore_attention != MS_MCORE_AUTO)
        return training->mcore_attention;
    if (capability < MS_HOPPER || (late && training->mcore_deterministic == 1))
        return MS_MCORE_FLASH;
    return MS_MCORE_FUSED;
}

void ms_mcoresettings_choose(const ms_step_settings *settings,
                             ms_kernel_set *set)
{
    const ms_training *training = settings->training;
    int64_t backend = ms_mcoresettings_backend(settings);
    if (backend == MS_MCORE_UNFUSED)
        set->attention = &ms_sdpa_eager;
    set->gathers_in_buffer = training->mcore_spec == MS_MCORE_LOCAL;
    set->is_hoppers = backend == MS_MCORE_FUSED;
    set->sums_in_order =
        backend == MS_MCORE_FLASH && training->mcore_deterministic == 1;
    if (training->loss_kernel == 0 && training->mcore_loss == MS_MCORE_LOSS_TE)
        set->loss = &ms_losskernels_liger;
}
