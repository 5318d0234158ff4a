/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/kernels/kernels.h"
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
