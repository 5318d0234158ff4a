/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPMERGE_H
#define MS_GRAPHS_OPMERGE_H

/* Private to graphs/: ops that the tracing mode showed out of place (linear
 * adds its bias in place, except where a mode looks on). */

#include "graphs/opgraph/opgraph.h"

/* An op whose real_op runs in place makes no storage of its own: its output,
 * and every view of that, looks at the storage of its first input. */
ms_err ms_opmerge_in_place(ms_opgraph *ops, ms_arena *arena, ms_fault *fault);

#endif
