/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_BENCH_OPS_H
#define MS_TESTS_BENCH_OPS_H

/* An op graph as the exporter writes it: a chain of blocks of three ops (the
 * transpose of a weight, addmm, relu) and a mean. */

#include "sim/base/base.h"

void bench_ops_chain(unsigned blocks, ms_arena *arena, ms_text *text);

#endif
