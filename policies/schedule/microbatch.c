/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradient accumulation: the batch of a step runs as several micro-batches,
 * one after the other, and the optimizer steps once. */
#include "policies/common/policy.h"
#include "sim/shape.h"

#include <inttypes.h>
#include <stdio.h>

enum { COUNT, SIZE, N_PARAMS };

#define MOST 1048576

static const ms_param params[N_PARAMS] = {
    [COUNT] = {.name = "count",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = MOST,
               .help = "micro-batches per step"},
    [SIZE] = {.name = "size",
              .type = MS_PARAM_INT,
              .choice = true,
              .low = 1,
              .high = MOST,
              .help = "samples per micro-batch"},
};

/* The divisors of batch around value; 0 where there is none within reach. */
static void nearest_divisors(uint64_t batch, uint64_t value, uint64_t *below,
                             uint64_t *above)
{
    uint64_t reach = value + MOST < batch ? value + MOST : batch;
    *below = value < batch ? value : batch;
    while (batch % *below != 0)
        (*below)--;
    for (*above = value; *above <= reach; (*above)++)
        if (batch % *above == 0)
            return;
    *above = 0;
}

static ms_err fail_division(uint64_t batch, uint64_t value, bool by_size,
                            ms_fault *fault)
{
    uint64_t below, above;
    const char *name = params[by_size ? SIZE : COUNT].name;
    char where[64], hint[96];
    nearest_divisors(batch, value, &below, &above);
    snprintf(where, sizeof where, "microbatch:%s%" PRIu64,
             by_size ? "size=" : "", value);
    if (above == 0)
        snprintf(hint, sizeof hint, "the nearest %s is %" PRIu64, name, below);
    else
        snprintf(hint, sizeof hint,
                 "the nearest %ss are %" PRIu64 " and %" PRIu64, name, below,
                 above);
    return ms_fail(fault, MS_EUSAGE, where, hint,
                   by_size ? "a batch of %" PRIu64 " does not divide into "
                             "micro-batches of %" PRIu64 " samples"
                           : "a batch of %" PRIu64 " does not divide into "
                             "%" PRIu64 " micro-batches",
                   batch, value);
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    bool by_size = context->values[SIZE].given;
    uint64_t value = (uint64_t)context->values[by_size ? SIZE : COUNT].number;
    /* An op graph was exported with the batch of one micro-batch. */
    if (shape->fixed != 0 && !by_size)
        shape->batch = shape->fixed * value;
    if (shape->batch % value != 0)
        return fail_division(shape->batch, value, by_size, fault);
    uint64_t count = by_size ? shape->batch / value : value;
    if (count > MOST)
        return ms_fail(fault, MS_EUSAGE, "microbatch",
                       "take larger ones, microbatch:size=N",
                       "%" PRIu64 " micro-batches are too many: at most %d",
                       count, MOST);
    shape->micro_batches = (uint32_t)count;
    return MS_OK;
}

const ms_policy ms_policy_microbatch = {
    .name = "microbatch",
    .summary = "run the batch as N micro-batches, accumulating gradients",
    .example = "microbatch:4",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
};
