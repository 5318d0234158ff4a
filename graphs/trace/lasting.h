/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LASTING_H
#define MS_GRAPHS_LASTING_H

/* Private to graphs/: layers that run more than once in a micro-batch.  A
 * layer's forward makes its parameters; the second time it is told those that
 * are there, in the same order.
 *
 *     ms_lasting *lasting = ms_lasting_remember(trace);
 *     ... the layers
 *     ms_lasting_forget(trace);
 *     ms_lasting_repeat(trace, lasting);
 *     ... the same layers
 *     ms_lasting_forget(trace); */

#include "graphs/trace/tensors.h"

/* What layers that run more than once make the first time alone, in the order
 * made: parameters and buffers. */
typedef struct ms_lasting {
    uint32_t n, capacity, next, *tensor;
    uint32_t first_parameter, n_parameters; /* rows */
    bool is_there;                          /* they are told instead of made */
} ms_lasting;

/* Parameters and buffers are remembered from here on, or, once they are there,
 * told again from the first on; ms_lasting_forget ends it.  NULL: an error. */
ms_lasting *ms_lasting_remember(ms_trace *trace);
void ms_lasting_repeat(ms_trace *trace, ms_lasting *lasting);
void ms_lasting_forget(ms_trace *trace);
/* The next of those that are there; MS_NONE where one is to be made.  The
 * recorder asks, and says what it has made. */
uint32_t ms_lasting_next(ms_trace *trace);
void ms_lasting_note(ms_trace *trace, uint32_t tensor);

#endif
