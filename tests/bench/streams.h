/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_STREAMS_H
#define MS_BENCH_STREAMS_H

/* A plan that keeps every stream of a rank busy: op after op on one stream
 * after the other, each with a row that the next ops read. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* Makes n_ops ops with one row each; false: there is no memory. */
bool bench_streams_plan(uint32_t n_ops, const ms_graph *graph, ms_arena *arena,
                        ms_plan *plan);
/* The machine; with `interfering`, every stream asks for more than its
 * share. */
ms_machine bench_streams_machine(bool interfering);

#endif
