/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPDROPOUT_H
#define MS_GRAPHS_OPDROPOUT_H

/* Private to graphs/: dropout in op graphs that were exported on a CPU and run
 * on CUDA.
 *
 * The CPU makes dropout of four ops: noise = empty_like(x), noise.bernoulli_(),
 * noise.div_(keep), x * noise; the noise is as large as x.  CUDA has one kernel
 * with a mask of 1 byte per element, allocated before the output. */

#include "graphs/opgraph/opgraph.h"

/* The graph as CUDA runs it: made in arena, or *ops itself where it has no
 * such dropout. */
ms_err ms_opdropout_fuse(const ms_opgraph *ops, ms_arena *arena,
                         const ms_opgraph **fused, ms_fault *fault);

#endif
