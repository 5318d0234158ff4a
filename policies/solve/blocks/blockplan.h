/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_BLOCKPLAN_H
#define MS_POLICIES_BLOCKPLAN_H

/* The best plan of a DAG whose blocks lie in a row (dagblocks.h), where what is
 * kept at a cut point, or in a block, stays until the backward of the block:
 * the dynamic program of rotor (chain.h) with a menu per block (blockmenu.h),
 * as Rockmate has it.  Of blocks s to t in m units, beside the input of s, with
 * what is handed to t inside,
 *
 *     W(s, s, m) = TURN of s
 *     W(s, t, m) = the least of
 *         PASS of s..k-1 + W(k, t, m - output of k-1) + W(s, k-1, m)
 *         BOTH of s + W(s+1, t, m - what it holds)
 *
 * It is optimal among such plans as far as the menus go: each option is one
 * that no other of its block beats in time and memory. */

#include "policies/solve/blocks/blockmenu.h"

typedef struct ms_blockplan {
    ms_nodeplan plan;
    uint64_t time_ns;
    uint64_t unit_bytes; /* sizes are rounded up to units */
    bool exact;          /* they are multiples of it */
} ms_blockplan;

/* O(d n units) time for d pairs of a first and a last block that differ, n
 * blocks.  MS_EINFEASIBLE: names the least budget of such plans; MS_EUSAGE: the
 * table would take more than MS_BLOCKPLAN_TABLE bytes. */
#define MS_BLOCKPLAN_EXACT 4096u
#define MS_BLOCKPLAN_STEPS UINT64_C(400000000)
#define MS_BLOCKPLAN_TABLE (UINT64_C(2) << 30)
ms_err ms_blockplan_find(const ms_nodedag *dag, const ms_dagblocks *blocks,
                         const ms_blockmenus *menus, uint64_t budget_bytes,
                         ms_arena *arena, ms_blockplan *plan, ms_fault *fault);

#endif
