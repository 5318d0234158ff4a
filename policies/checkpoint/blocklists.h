/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_BLOCKLISTS_H
#define MS_POLICIES_BLOCKLISTS_H

/* Private to policies/checkpoint: lists that a user writes. */

#include "policies/common/policy.h"

/* Numbers and ranges below n, "0-3/7": flag[i] of each becomes true.  where and
 * of name the parameter and whose they are: "checkpoint:layers", "blocks". */
ms_err ms_blocklists_numbers(const char *list, const char *where,
                             const char *of, uint32_t n, bool *flag,
                             ms_fault *fault);
/* Names of blocks, "h.3/h.7": flag of each becomes true. */
ms_err ms_blocklists_names(const char *list, const char *where,
                           const char *const *names, uint32_t n,
                           ms_arena *arena, bool *flag, ms_fault *fault);
/* A number for all stages or one for each, "4" or "9/4/0": that of a stage. */
int64_t ms_blocklists_number(const char *list, uint32_t stage);
/* Has it as many numbers as there are stages, or one? */
ms_err ms_blocklists_check(const char *list, const char *where, uint32_t stages,
                           ms_fault *fault);

#endif
