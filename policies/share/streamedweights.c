/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weights streamed: they lie in host memory, each unit's are copied in before
 * it runs and let go after it (L2L, Pudipeddi et al. 2020; ZeRO-3 Offload on
 * one GPU). */
#include "policies/share/sharedstates.h"
#include "policies/swap/swap.h"

ms_err ms_streamedweights_shape(const ms_policy_context *context,
                                ms_shape *shape, ms_fault *fault)
{
    const ms_policy_value *prefetch = &context->values[MS_SWAP_PREFETCH];
    if (shape->offload.parameters != MS_DEVICE_POOL)
        return ms_fail(fault, MS_EUSAGE, "swap:layers", "leave one of them out",
                       "another policy already streams the weights");
    if (shape->data_ranks > 1 && shape->shared != MS_SHARED_PARAMETERS)
        return ms_fail(fault, MS_EUSAGE, "swap:layers",
                       "type zero:3 beside it, or leave swap:layers out",
                       "weights leave the device where the ranks share them");
    if (shape->data_ranks > 1 && prefetch->given)
        return ms_fail(fault, MS_EUSAGE, "swap:layers", "type zero:3,prefetch=",
                       "zero:3 says how far ahead weights are gathered");
    shape->offload.parameters = MS_HOST_POOL;
    return MS_OK;
}

ms_err ms_streamedweights_write(ms_swap *w)
{
    const ms_policy_value *prefetch = &w->values[MS_SWAP_PREFETCH];
    ms_sharedstates alone = {
        .shared = MS_SHARED_PARAMETERS,
        .units_ahead = prefetch->given ? (uint32_t)prefetch->number : 1};
    *w->program = *w->from;
    if (w->context->shape->data_ranks > 1)
        return MS_OK; /* what gathers them copies them in */
    return ms_sharedstates_write(w->context, &alone, w->program, w->fault);
}
