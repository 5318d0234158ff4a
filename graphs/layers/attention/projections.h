/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PROJECTIONS_H
#define MS_GRAPHS_PROJECTIONS_H

/* Private to graphs/: what lies between the products of an attention layer and
 * its heads. */

#include "graphs/trace/trace.h"

/* x [batch, sequence, heads * dim] as [batch, heads, sequence, dim]. */
uint32_t ms_projections_heads(ms_trace *trace, uint32_t x, int64_t heads);
/* y.transpose(1, 2).contiguous().view(batch, sequence, width); y is used up. */
uint32_t ms_projections_join(ms_trace *trace, uint32_t y, int64_t width);

#endif
