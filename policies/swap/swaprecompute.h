/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAPRECOMPUTE_H
#define MS_POLICIES_SWAPRECOMPUTE_H

/* Private to the swap files: what it takes to make a tensor again.  It is
 * collective (Capuchin, Peng et al., ASPLOS 2020): what is made on
 * the way to a tensor and used later, too, is kept, and is not made twice.
 *
 *     a -> b -> c, all of them made again; backward uses c, b, a
 *     c is needed: a, b and c are made, all three are there from then on
 *     a source of theirs in host memory comes back for c, too */

#include "policies/swap/swapplan.h"

/* When the tensor is needed next, from what is there then or is brought for it;
 * UINT64_MAX: it cannot be made.  sources (optional): per tensor, one more for
 * each that it is made from. */
uint64_t ms_swaprecompute_ns(ms_swapplan *plan, uint32_t tensor,
                             uint32_t *sources);
/* It is made again: what it is made from, and what is made with it, is needed
 * then at the latest. */
void ms_swaprecompute_need(ms_swapplan *plan, uint32_t tensor);

#endif
