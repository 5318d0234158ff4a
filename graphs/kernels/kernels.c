/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of kernel sets. */
#include "graphs/kernels/kernels.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"

#define OBJECT(id, word, object, help) &(object),
static const ms_kernel_set *const sets[] = {MS_KERNELS_SETS(OBJECT)};
static const ms_kernel_hooks none = {.check = NULL};

static const ms_kernel_hooks *hooks_of(int64_t kernels)
{
    return sets[kernels]->hooks ? sets[kernels]->hooks : &none;
}

/* ---- single kernels ------------------------------------------------------ */

/* The kernels of attention in the order of MS_KERNELS_ATTENTION, without auto.
 */
static const ms_attention_kernel *const attentions[] = {
    &ms_sdpa_eager, &ms_sdpa_flash, &ms_sdpa_efficient, &ms_sdpa_first,
    &ms_sdpa_flash3};
#define FLASH_3 5 /* the last word of MS_KERNELS_ATTENTION */

/* Chooses a kernel by the word of its setting: 0 is auto and 1 eager, then
 * follow fused or the names of the makers. */
static void choose(ms_kernel *kernel, int64_t word,
                   const ms_kernel_maker *fused)
{
    const ms_kernel_maker *makers[] = {&ms_torchkernels_apart, fused,
                                       &ms_ligerkernels};
    if (word > 0)
        *kernel = (ms_kernel){.maker = makers[word - 1], .firm = true};
    else if (kernel->maker == NULL)
        kernel->maker = &ms_torchkernels;
}

/* ---- the set ------------------------------------------------------------- */

ms_kernel_set ms_kernels_of(const ms_training *training)
{
    ms_kernel_set set = *sets[training->kernels];
    set.hooks = hooks_of(training->kernels);
    if (training->attention_kernel > 0)
        set.attention = attentions[training->attention_kernel - 1];
    set.is_hoppers = training->attention_kernel == FLASH_3;
    choose(&set.norm, training->norm_kernel, &ms_torchkernels);
    choose(&set.activation, training->activation_kernel, &ms_ligerkernels);
    choose(&set.rotary, training->rotary_kernel, &ms_ligerkernels);
    if (training->loss_kernel > 0)
        set.loss = ms_headloss_named(training->loss_kernel);
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
    for (int64_t i = 0; i < MS_KERNELS_N; i++) {
        const ms_kernel_hooks *hooks = hooks_of(i);
        ms_err (*check)(const ms_training *, ms_fault *) =
            i == training->kernels ? hooks->check : hooks->check_idle;
        if (check)
            MS_TRY(check(training, fault));
    }
    if (hooks_of(training->kernels)->settle)
        hooks_of(training->kernels)->settle(training);
    return MS_OK;
}
