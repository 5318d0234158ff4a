/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/settings/kernels.h"
#include "graphs/layers/headloss.h"

#define APART                                                                  \
    {                                                                          \
        MS_KERNEL_EAGER, false                                                 \
    }
#define ONE                                                                    \
    {                                                                          \
        MS_KERNEL_TORCH, false                                                 \
    }
/* Whatever a layer's code was. */
#define FIRM                                                                   \
    {                                                                          \
        MS_KERNEL_TORCH, true                                                  \
    }
#define LIGER                                                                  \
    {                                                                          \
        MS_KERNEL_LIGER, true                                                  \
    }

/* attention, loss, norm, activation, rotary */
const ms_kernel_set ms_kernels_sets[] = {
    {"eager", MS_ATTENTION_EAGER, MS_LOSS_EAGER, APART, APART, APART},
    {"flash", MS_ATTENTION_FLASH, MS_LOSS_EAGER, ONE, ONE, ONE},
    {"korthikanti", MS_ATTENTION_EAGER, MS_LOSS_MEGATRON, FIRM, FIRM, FIRM},
    {"efficient", MS_ATTENTION_EFFICIENT, MS_LOSS_EAGER, ONE, ONE, ONE},
    {"sdpa", MS_ATTENTION_SDPA, MS_LOSS_EAGER, APART, APART, APART},
    {"fused", MS_ATTENTION_FLASH, MS_LOSS_LIGER_LINEAR, LIGER, LIGER, LIGER},
    {"megatron", MS_ATTENTION_FLASH, MS_LOSS_MEGATRON, FIRM, FIRM, FIRM},
};

/* A word of a setting: 0 is auto, then the kinds in their order. */
static void choose(ms_kernel *kernel, int64_t word, ms_kernel_kind fused)
{
    static const uint8_t kinds[] = {MS_KERNEL_EAGER, MS_KERNEL_TORCH,
                                    MS_KERNEL_LIGER};

    if (word == 0)
        return;
    *kernel = (ms_kernel){.kind = kinds[word - 1], .firm = true};
    if (kernel->kind == MS_KERNEL_TORCH)
        kernel->kind = (uint8_t)fused;
}

ms_kernel_set ms_kernels_of(const ms_training *training)
{
    ms_kernel_set set = ms_kernels_sets[training->kernels];

    if (training->attention_kernel > 0)
        set.attention = (uint8_t)(training->attention_kernel - 1);
    choose(&set.norm, training->norm_kernel, MS_KERNEL_TORCH);
    choose(&set.activation, training->activation_kernel, MS_KERNEL_LIGER);
    choose(&set.rotary, training->rotary_kernel, MS_KERNEL_LIGER);
    if (training->loss_kernel != MS_LOSS_AUTO)
        set.loss = (uint8_t)training->loss_kernel;
    return set;
}
