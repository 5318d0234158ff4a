/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_OPLISTS_H
#define MS_POLICIES_OPLISTS_H

/* Private to policies/checkpoint: lists of ops as torch writes them: aten.mm,
 * aten.mm.default, torch.ops.aten.mm or aten::mm is the op aten::mm of a graph;
 * ops of extensions go by their name, as rotary. */

#include "policies/common/policy.h"

/* Per op of forward, listed: is it on the list?  MS_EUSAGE: forward runs no
 * such op; the nearest is named. */
ms_err ms_oplists_find(const ms_graph *graph, const char *list,
                       const char *where, ms_arena *arena, uint8_t **listed,
                       ms_fault *fault);

#endif
