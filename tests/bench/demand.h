/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_DEMAND_H
#define MS_BENCH_DEMAND_H

#include "sim/base/base.h"

/* Ends a benchmark with the words of the fault, if there is one. */
void demand(ms_err err, const ms_fault *fault);

#endif
