/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_DEMAND_H
#define MS_BENCH_DEMAND_H

#include "sim/base/base.h"

/* What a benchmark cannot do without: a fault ends it, with its words. */
void demand(ms_err err, const ms_fault *fault);

#endif
