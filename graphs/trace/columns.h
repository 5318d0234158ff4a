/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_COLUMNS_H
#define MS_GRAPHS_COLUMNS_H

/* Private to graphs/: memory of a trace and how its columns grow.  NULL, false:
 * out of memory, which is the trace's fault then. */

#include "graphs/trace/tensors.h"

/* Not zeroed; dies with the trace. */
void *ms_columns_take(ms_trace *trace, size_t n, size_t size);
/* column points to the array's pointer, of whatever type. */
bool ms_columns_enlarge(ms_trace *trace, ms_arena *arena, void *column,
                        uint32_t *capacity, uint32_t need, size_t size);
static inline bool ms_columns_grow(ms_trace *trace, ms_arena *arena,
                                   void *column, uint32_t *capacity,
                                   uint32_t need, size_t size)
{
    return need <= *capacity ||
           ms_columns_enlarge(trace, arena, column, capacity, need, size);
}
/* Room for need storages; for need ops. */
bool ms_columns_storages(ms_trace *trace, uint32_t need);
bool ms_columns_ops(ms_trace *trace, uint32_t need);

#endif
