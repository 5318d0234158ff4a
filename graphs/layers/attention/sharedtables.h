/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SHAREDTABLES_H
#define MS_GRAPHS_SHAREDTABLES_H

/* Private to graphs/: buffers that all attention layers of a model share, masks
 * and tables of positions.  The first layer that asks for one makes it. */

#include "graphs/trace/stepsettings.h"

typedef struct ms_trace ms_trace; /* trace.h */

/* Positions that tables are made for. */
int64_t ms_sharedtables_longest(const ms_step_settings *settings,
                                int64_t sequence);
/* A buffer of the model with two dimensions, by its role and shape. */
uint32_t ms_sharedtables_buffer(ms_trace *trace, const char *role,
                                uint8_t dtype, const int64_t *dims);
/* The first rows of a table that the whole model shares, [sequence, columns];
 * columns 0: a square one. */
uint32_t ms_sharedtables_rows(ms_trace *trace, const char *role,
                              int64_t sequence, int64_t columns);

#endif
