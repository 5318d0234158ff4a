/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ATENKINDS_H
#define MS_GRAPHS_ATENKINDS_H

/* Private to graphs/: the kind of each op of a finished graph (sim/kinds.h).
 * The row of an op table says it, for the op in place and its backward kernel
 * as well; kernels that are no rows of the tables have rows here. */

#include "graphs/aten/aten.h"

/* Of a kernel's whole name, "aten::gelu_backward"; rows: ms_atentable_open. */
ms_op_kind ms_atenkinds_of(const ms_index *rows, const char *name);
/* Fills op_kind from op `first` on.  Faults: out of memory. */
ms_err ms_atenkinds_fill(ms_trace *trace, uint32_t first);

#endif
