/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch's DistributedDataParallel: ranks with the same model and other samples
 * sum their gradients, bucket by bucket as backward makes them.  Buckets are
 * flat copies of .grad unless .grad are views of them
 * (torch/csrc/distributed/c10d/reducer.hpp). */
#include "policies/share/sharedstates.h"

enum { RANKS, BUCKET, FIRST, VIEW, N_PARAMS };

#define MIB ((uint64_t)1 << 20)

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "dp",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = 65536,
               .help = "data-parallel ranks; default --gpus"},
    [BUCKET] = {.name = "bucket",
                .type = MS_PARAM_INT,
                .fallback = 25,
                .low = 1,
                .high = 1048576,
                .help = "MiB of gradients that are reduced together"},
    [FIRST] = {.name = "first",
               .type = MS_PARAM_INT,
               .fallback = 1,
               .low = 1,
               .high = 1048576,
               .help = "the same of the first bucket"},
    [VIEW] = {.name = "view",
              .type = MS_PARAM_INT,
              .fallback = 0,
              .low = 0,
              .high = 1,
              .help = "gradient_as_bucket_view: .grad lies in the buckets, "
                      "there is no copy"},
};

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool view = values[VIEW].number;
    MS_TRY(ms_sharedstates_ranks(&values[RANKS], "ddp", shape, fault));
    shape->holds_gradients = view;
    shape->copies_gradients = !view;
    return MS_OK;
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_sharedstates shares = {
        .shared = MS_SHARED_NOTHING,
        .first_bucket_bytes = (uint64_t)values[FIRST].number * MIB,
        .bucket_bytes = (uint64_t)values[BUCKET].number * MIB};
    return ms_sharedstates_write(context, &shares, program, fault);
}

static bool serves_ranks(const ms_policy_value *values)
{
    (void)values;
    return true;
}

const ms_policy ms_policy_ddp = {
    .name = "ddp",
    .summary = "data-parallel ranks sum their gradients in buckets",
    .example = "ddp:dp=8",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
    .serves_ranks = serves_ranks,
};
