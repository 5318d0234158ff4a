/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unified memory: everything is allocated with cudaMallocManaged, pages come
 * when an op touches them (sim/replay/paging.h).  What a policy that knows the
 * step buys shows against this.
 *
 * uvm:optimizer is bitsandbytes' paged optimizers (bitsandbytes/optim/
 * optimizer.py, get_state_buffer, prefetch_state): the state alone is managed,
 * each parameter's is prefetched before its update, in the order of the stream,
 * so that nothing faults and nothing hides the copies; they reach about half of
 * the link (docs/source/explanations/optimizers.mdx).  All states are paged
 * here, there those of at least 100,000 elements.
 *
 * page: the driver's VA block, 2 MiB (NVIDIA/open-gpu-kernel-modules
 * kernel-open/nvidia-uvm/uvm_va_block.c).  fault_us: the device's; 45 us per
 * far fault is what Ganguly et al. (ISCA'19) and simulators after them take
 * (Zheng et al., HPCA'16: 20 to 50); here of each block, whose pages the
 * driver's tree prefetcher brings together, 0 where the link is coherent.
 * fault_share: of the link while the pages move; 100, so that the faults alone
 * make on-demand migration slower. */
#include "policies/share/sharedstates.h"
#include "policies/swap/swap.h"

#include <string.h>

enum { WHAT, PAGE, FAULT_US, FAULT_SHARE, HINTS, N_PARAMS };

static const ms_param params[N_PARAMS] = {
    [WHAT] = {.name = "what",
              .type = MS_PARAM_WORDS,
              .bare = true,
              .words = "optimizer|params|gradients|activations",
              .help = "what is unified memory, joined with /; default all; "
                      "optimizer: bitsandbytes' paged optimizers; beside zero "
                      "and fsdp the rank's own part"},
    [PAGE] = {.name = "page",
              .type = MS_PARAM_SIZE,
              .fallback = 2 << 20,
              .low = 4096,
              .high = 1 << 30,
              .help = "what one fault brings; default 2MiB"},
    [FAULT_US] = {.name = "fault_us",
                  .type = MS_PARAM_INT,
                  .low = 0,
                  .high = 1000000,
                  .help = "microseconds per fault; default as the device has "
                          "it, 0 for the optimizer alone, which is "
                          "prefetched"},
    [FAULT_SHARE] = {.name = "fault_share",
                     .type = MS_PARAM_INT,
                     .low = 1,
                     .high = 100,
                     .help = "percent of the link that pages brought by faults "
                             "move at; default 100, 50 for the optimizer "
                             "alone"},
    [HINTS] = {.name = "hints",
               .type = MS_PARAM_INT,
               .fallback = 0,
               .low = 0,
               .high = 1,
               .help = "cudaMemPrefetchAsync: the next op's pages come beside "
                       "the op before, both ways at once, without faults"},
};

/* By the bits of the parameter `what`. */
static const uint8_t categories[] = {MS_OPTIMIZER_STATE, MS_PARAMETERS,
                                     MS_GRADIENTS, MS_ACTIVATIONS};
enum { OPTIMIZER = 1, PARAMS = 2, GRADIENTS = 4, ACTIVATIONS = 8 };
#define EVERYTHING 15u

static uint32_t managed(const ms_policy_value *what)
{
    uint32_t bits = 0;
    if (!what->given)
        return 0;
    for (uint32_t i = 0; i < sizeof categories; i++)
        if (what->number >> i & 1)
            bits |= 1u << categories[i];
    return bits;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    const ms_policy_value *us = &values[FAULT_US];
    const ms_policy_value *share = &values[FAULT_SHARE];
    bool prefetched = values[WHAT].number == OPTIMIZER && !values[HINTS].number;
    uint64_t fault_ns = prefetched ? 0 : shape->fault_ns;
    int64_t percent = prefetched ? 50 : 100;
    MS_TRY(ms_sharedstates_two_memories("uvm", shape, fault));
    shape->paging = (ms_paging){
        .page_bytes = (uint64_t)values[PAGE].number,
        .fault_ns = us->given ? (uint64_t)us->number * 1000 : fault_ns,
        .fault_percent = (uint32_t)(share->given ? share->number : percent),
        .hints = values[HINTS].number != 0,
        .managed = managed(&values[WHAT])};
    return MS_OK;
}

/* ---- beside others ------------------------------------------------------- */

/* Bits of what, as far as another policy says where it is. */
static uint32_t placed(const ms_policy_context *context)
{
    const ms_offload *offload = &context->shape->offload;
    const ms_spec *spec = context->spec;
    uint32_t bits = 0;
    bits |= offload->optimizer != MS_DEVICE_POOL ? OPTIMIZER : 0;
    bits |= offload->parameters != MS_DEVICE_POOL ? PARAMS : 0;
    bits |= offload->gradients != MS_DEVICE_POOL ? GRADIENTS : 0;
    for (uint32_t i = 0; i < spec->n; i++) {
        bool swaps = strcmp(spec->items[i].policy->name, "swap") == 0;
        if (swaps && !spec->items[i].values[MS_SWAP_LAYERS].given)
            bits |= ACTIVATIONS;
    }
    return bits;
}

/* What moves by page faults must not be moved by another policy. */
static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    static const char *const names[] = {"optimizer states", "weights",
                                        "gradients", "saved activations"};
    const ms_policy_value *what = &context->values[WHAT];
    uint32_t both =
        placed(context) & (what->given ? (uint32_t)what->number : EVERYTHING);
    uint32_t first = 0;
    (void)program;
    if (both == 0)
        return MS_OK;
    while (!(both >> first & 1))
        first++;
    return ms_fail(fault, MS_EUSAGE, "--policy",
                   what->given || both & OPTIMIZER
                       ? "leave one of the two out"
                       : "type uvm:optimizer, or leave one of the two out",
                   "uvm moves %s when an op touches them; the other policy "
                   "says where they are",
                   names[first]);
}

const ms_policy ms_policy_uvm = {
    .name = "uvm",
    .summary = "unified memory: pages come when an op touches them, the least "
               "recently used go",
    .example = "uvm:optimizer",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
};
