/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/policy.h"

const ms_policy ms_policy_none = {
    .name = "none",
    .summary = "change nothing: every saved tensor stays until its backward",
    .example = "none",
};
