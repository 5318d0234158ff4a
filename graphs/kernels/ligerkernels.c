/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Liger's kernels (linkedin/Liger-Kernel, src/liger_kernel/ops), which replace
 * the modules of a model whatever their code was. */
#include "graphs/kernels/kernels.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/headloss.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

/* Without a bias it is PyTorch's kernel, because Liger's always reads one. */
static uint32_t layer_norm(ms_trace *trace, uint32_t x, uint32_t weight,
                           uint32_t bias)
{
    return bias == MS_NONE ? ms_norm_layer(trace, x, weight, bias)
                           : ms_fusednorm_layer(trace, x, weight, bias);
}

/* The kernel needs contiguous rows: views of a wider tensor are copied first.
 */
static uint32_t gate_up(ms_trace *trace, const char *op, uint32_t gate,
                        uint32_t up)
{
    uint32_t own[2] = {ms_view_contiguous(trace, gate),
                       ms_view_contiguous(trace, up)};
    uint32_t y = ms_gated_product(trace, op, true, own[0], own[1]);
    ms_trace_drop(trace, own[0]);
    ms_trace_drop(trace, own[1]);
    return y;
}

const ms_kernel_maker ms_ligerkernels = {
    .layer_norm = layer_norm, .rms_norm = ms_fusednorm_rms, .gate = gate_up};

#define LIGER                                                                  \
    {                                                                          \
        .maker = &ms_ligerkernels, .firm = true                                \
    }
const ms_kernel_set ms_ligerkernels_fused = {
    .attention = &ms_sdpa_flash,
    .loss = &ms_headloss_liger_linear,
    .norm = LIGER,
    .activation = LIGER,
    .rotary = LIGER,
};
