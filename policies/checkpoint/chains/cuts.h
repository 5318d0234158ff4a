/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CUTS_H
#define MS_POLICIES_CUTS_H

/* Private to policies: ways to cut n blocks in a row into segments.  Each
 * fills segment[0 .. n), ids from 0 upward, MS_NONE where a block is open. */

#include "policies/common/policy.h"

/* Consecutive groups of size blocks, the last one shorter where size does not
 * divide n; none is open. */
void ms_cuts_every(uint32_t n, uint32_t size, uint32_t *segment);
/* Blocks size, 2 size ... (from 1 up) by themselves, the others open
 * (pytorch/torchtitan, parallelize_llama.py, selective_ac_option=N). */
void ms_cuts_each(uint32_t n, uint32_t size, uint32_t *segment);
/* count segments whose lengths differ by at most one, longer ones first. */
void ms_cuts_even(uint32_t n, uint32_t count, uint32_t *segment);
/* torch.utils.checkpoint.checkpoint_sequential: count - 1 segments of
 * n / count blocks, then the rest. */
void ms_cuts_sequential(uint32_t n, uint32_t count, uint32_t *segment);
/* count segments, the heaviest as light as it can be; blocks of equal weight
 * are cut as ms_cuts_even cuts them. */
ms_err ms_cuts_weighted(uint32_t n, uint32_t count, const uint64_t *weight,
                        ms_arena *arena, uint32_t *segment, ms_fault *fault);
/* The last segment becomes open: its backward comes first, so that nothing is
 * gained by replaying it. */
void ms_cuts_open_last(uint32_t n, uint32_t *segment);
/* The whole number nearest to the square root of n. */
uint32_t ms_cuts_root(uint32_t n);

/* The fault of a model without blocks. */
ms_err ms_cuts_fail_none(ms_fault *fault);

#endif
