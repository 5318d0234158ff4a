/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/policies.h"

extern const ms_policy ms_policy_none;
extern const ms_policy ms_policy_microbatch;
extern const ms_policy ms_policy_checkpoint;
extern const ms_policy ms_policy_ddp;
extern const ms_policy ms_policy_zero;
extern const ms_policy ms_policy_fsdp;
extern const ms_policy ms_policy_swap;

const ms_policy *const ms_registry[] = {
    &ms_policy_none, &ms_policy_microbatch, &ms_policy_checkpoint,
    &ms_policy_ddp,  &ms_policy_zero,       &ms_policy_fsdp,
    &ms_policy_swap,
};

const uint32_t ms_registry_n = sizeof ms_registry / sizeof ms_registry[0];
