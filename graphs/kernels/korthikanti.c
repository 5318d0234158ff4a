/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What Korthikanti et al. 2022 (arXiv:2205.05198, section 4.1) count of a
 * layer: Megatron-LM's fused kernels, attention by ops but for the fused
 * scale-mask-softmax, and neither statistics of norms nor masks of the loss. */
#include "graphs/kernels/kernels.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"

const ms_kernel_set ms_korthikanti = {
    .attention = &ms_sdpa_eager,
    .loss = &ms_losskernels_megatron,
    .norm = {.firm = true},
    .activation = {.firm = true},
    .rotary = {.firm = true},
    .fuses_softmax = true,
    .fuses_by_four = true,
    .keeps_no_statistics = true,
    .saves_softmax_alone = true,
    .keeps_rows = true,
    .keeps_parts = true, /* section 4.2.2 */
};
