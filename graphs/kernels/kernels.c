/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of kernel sets. */
#include "graphs/kernels/kernels.h"
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layers/headloss.h"

#define APART                                                                  \
    {                                                                          \
        &ms_torchkernels_apart, false                                          \
    }
#define ONE                                                                    \
    {                                                                          \
        &ms_torchkernels, false                                                \
    }
/* The kernel, whatever code the layer says it follows. */
#define FIRM                                                                   \
    {                                                                          \
        &ms_torchkernels, true                                                 \
    }
#define LIGER                                                                  \
    {                                                                          \
        &ms_ligerkernels, true                                                 \
    }

static const ms_kernel_hooks as_torch = {.check = NULL};

/* attention, loss, norm, activation, rotary */
const ms_kernel_set ms_kernels_sets[] = {
    {"eager", MS_ATTENTION_EAGER, MS_LOSS_EAGER, APART, APART, APART, false,
     &as_torch},
    {"flash", MS_ATTENTION_FLASH, MS_LOSS_EAGER, ONE, ONE, ONE, false,
     &as_torch},
    {"korthikanti", MS_ATTENTION_EAGER, MS_LOSS_MEGATRON, FIRM, FIRM, FIRM,
     true, &as_torch},
    {"efficient", MS_ATTENTION_EFFICIENT, MS_LOSS_EAGER, ONE, ONE, ONE, false,
     &as_torch},
    {"sdpa", MS_ATTENTION_SDPA, MS_LOSS_EAGER, APART, APART, APART, false,
     &as_torch},
    {"fused", MS_ATTENTION_FLASH, MS_LOSS_LIGER_LINEAR, LIGER, LIGER, LIGER,
     false, &as_torch},
    {"megatron", MS_ATTENTION_FLASH, MS_LOSS_MEGATRON, FIRM, FIRM, FIRM, false,
     &ms_mcore},
};
#define N_SETS (sizeof ms_kernels_sets / sizeof *ms_kernels_sets)

/* A word of a setting: 0 is auto, eager, then fused or the makers' names. */
static void choose(ms_kernel *kernel, int64_t word,
                   const ms_kernel_maker *fused)
{
    const ms_kernel_maker *makers[] = {&ms_torchkernels_apart, fused,
                                       &ms_ligerkernels};

    if (word > 0)
        *kernel = (ms_kernel){.maker = makers[word - 1], .firm = true};
}

ms_kernel_set ms_kernels_of(const ms_training *training)
{
    ms_kernel_set set = ms_kernels_sets[training->kernels];

    if (training->attention_kernel > 0)
        set.attention = (uint8_t)(training->attention_kernel - 1);
    choose(&set.norm, training->norm_kernel, &ms_torchkernels);
    choose(&set.activation, training->activation_kernel, &ms_ligerkernels);
    choose(&set.rotary, training->rotary_kernel, &ms_ligerkernels);
    if (training->loss_kernel != MS_LOSS_AUTO)
        set.loss = (uint8_t)training->loss_kernel;
    return set;
}

ms_kernel_set ms_kernels_on(const ms_step_settings *settings)
{
    ms_kernel_set set = ms_kernels_of(settings->training);

    if (set.hooks->choose)
        set.hooks->choose(settings, &set);
    return set;
}

ms_err ms_kernels_check(ms_training *training, ms_fault *fault)
{
    const ms_kernel_hooks *hooks = ms_kernels_sets[training->kernels].hooks;

    for (uint32_t i = 0; i < N_SETS; i++)
        if (ms_kernels_sets[i].hooks->check)
            MS_TRY(ms_kernels_sets[i].hooks->check(training, fault));
    if (hooks->settle)
        hooks->settle(training);
    return MS_OK;
}
