/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ROTATION_H
#define MS_GRAPHS_ROTATION_H

/* Private to graphs/: queries and keys rotated by their positions. */

#include "graphs/trace/trace.h"

/* Rotates the first dim channels of each of n tensors [batch, heads, sequence,
 * dim] by position, by ms_modelcodes. */
void ms_rotation_run(ms_trace *trace, int64_t code, int64_t dim, uint32_t *x,
                     uint32_t n);
/* Rotates q and k, [batch, heads, sequence, dim], as complex numbers in fp32;
 * packed: by the position of each token in its sample.  No node saves q or k.
 */
void ms_rotation_complex(ms_trace *trace, int64_t dim, bool packed,
                         uint32_t qk[2]);

#endif
