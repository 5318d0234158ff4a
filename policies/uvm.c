/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unified memory: everything is allocated with cudaMallocManaged, pages come
 * when an op touches them (sim/paging.h).  What a policy that knows the step
 * buys shows against this.
 *
 * page: the driver's VA block, 2 MiB (NVIDIA/open-gpu-kernel-modules
 * kernel-open/nvidia-uvm/uvm_va_block.c).  fault_us: 45 us per far fault, what
 * Ganguly et al. (ISCA'19) and simulators after them take (Zheng et al.,
 * HPCA'16: 20 to 50); here of each block, whose pages the driver's tree
 * prefetcher brings together.  fault_share: of the link while the pages move;
 * 100, so that the faults alone make on-demand migration slower. */
#include "policies/policies.h"

#include <string.h>

enum { PAGE, FAULT_US, FAULT_SHARE, HINTS, N_PARAMS };

static const ms_param params[N_PARAMS] = {
    [PAGE] = {.name = "page",
              .type = MS_PARAM_SIZE,
              .fallback = 2 << 20,
              .low = 4096,
              .high = 1 << 30,
              .help = "what one fault brings; default 2MiB"},
    [FAULT_US] = {.name = "fault_us",
                  .type = MS_PARAM_INT,
                  .fallback = 45,
                  .low = 0,
                  .high = 1000000,
                  .help = "microseconds per fault; default 45"},
    [FAULT_SHARE] = {.name = "fault_share",
                     .type = MS_PARAM_INT,
                     .fallback = 100,
                     .low = 1,
                     .high = 100,
                     .help = "percent of the link that pages brought by faults "
                             "move at; default 100"},
    [HINTS] = {.name = "hints",
               .type = MS_PARAM_INT,
               .fallback = 0,
               .low = 0,
               .high = 1,
               .help = "cudaMemPrefetchAsync: the next op's pages come beside "
                       "the op before, both ways at once, without faults"},
};

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    (void)fault;
    shape->paging =
        (ms_paging){.page_bytes = (uint64_t)values[PAGE].number,
                    .fault_ns = (uint64_t)values[FAULT_US].number * 1000,
                    .fault_percent = (uint32_t)values[FAULT_SHARE].number,
                    .hints = values[HINTS].number != 0};
    return MS_OK;
}

/* Nothing is placed: others must not. */
static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    static const char *const others[] = {"ddp", "zero", "fsdp", "offload",
                                         "swap"};
    const ms_spec *spec = context->spec;
    (void)program;
    for (uint32_t i = 0; i < spec->n; i++)
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            if (strcmp(spec->items[i].policy->name, others[k]) == 0)
                return ms_fail(fault, MS_EUSAGE, "--policy", "leave one out",
                               "uvm moves what an op touches by itself; %s "
                               "says what is where",
                               others[k]);
    return MS_OK;
}

const ms_policy ms_policy_uvm = {
    .name = "uvm",
    .summary = "unified memory: pages come when an op touches them, the least "
               "recently used go",
    .example = "uvm:hints=1",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
};
