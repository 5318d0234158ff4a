/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_NUMBERING_H
#define MS_GRAPHS_NUMBERING_H

/* Private to graphs/lowering: the order of a graph's storages.
 *
 * A recorder numbers storages as they are made; in a graph those that outlive
 * the micro-batch come first.  Within both kinds the order stays, so that what
 * is recorded behind a trace whose storages are in order already leaves them
 * where they are, unless it outlives the micro-batch. */

#include "graphs/trace/tensors.h"

/* Numbers the storages of the trace anew, wherever they are named but in
 * tensors; n_units: of those with a random state.  The first time the saves are
 * closed (savelist.h). */
ms_err ms_numbering_run(ms_trace *trace, uint32_t n_units);

#endif
