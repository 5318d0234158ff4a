/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What PyTorch itself has: ops one by one, or a kernel each; the attention is
 * written out, FlashAttention's, xFormers' or what PyTorch chooses. */
#include "graphs/kernels/kernels.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"
#include "graphs/ops/ops.h"

static uint32_t gate_up(ms_trace *trace, const char *op, uint32_t gate,
                        uint32_t up)
{
    return ms_gated_product(trace, op, false, gate, up);
}

const ms_kernel_maker ms_torchkernels_apart = {.apart = true,
                                               .layer_norm = ms_norm_layer};
const ms_kernel_maker ms_torchkernels = {
    .layer_norm = ms_norm_layer, .rms_norm = ms_norm_rms, .gate = gate_up};

const ms_kernel_set ms_torchkernels_eager = {
    .attention = &ms_sdpa_eager,
    .loss = &ms_losskernels_eager,
    .norm = {.maker = &ms_torchkernels_apart},
    .activation = {.maker = &ms_torchkernels_apart},
    .rotary = {.maker = &ms_torchkernels_apart},
    .is_plain = true,
};
const ms_kernel_set ms_torchkernels_flash = {
    .attention = &ms_sdpa_flash,
    .loss = &ms_losskernels_eager,
};
const ms_kernel_set ms_torchkernels_efficient = {
    .attention = &ms_sdpa_efficient,
    .loss = &ms_losskernels_eager,
};
const ms_kernel_set ms_torchkernels_sdpa = {
    .attention = &ms_sdpa_first,
    .loss = &ms_losskernels_eager,
    .norm = {.maker = &ms_torchkernels_apart},
    .activation = {.maker = &ms_torchkernels_apart},
    .rotary = {.maker = &ms_torchkernels_apart},
};
