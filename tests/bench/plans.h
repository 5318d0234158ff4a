/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_PLANS_H
#define MS_BENCH_PLANS_H

/* The exact search over minimalloc's files. */

#include "sim/base/base.h"

#define BENCH_PLANS "ABCDEFGHIJK"

/* CPU time of a search for a plan of the file of that letter within its
 * capacity; false: there are no such files (MEMSIM_TRUTH), or it found none. */
bool bench_plans_search(char letter, double *ns);

#endif
