/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_REDUCTIONS_H
#define MS_GRAPHS_REDUCTIONS_H

/* Private to graphs/: which aten ops reduce, and the scratch that it takes on
 * CUDA (graphs/ops/scratch.c). */

#include "graphs/aten/aten.h"

/* The node's op is open and its outputs are made. */
void ms_reductions_scratch(ms_trace *trace, const ms_aten_call *call);

#endif
