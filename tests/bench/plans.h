/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_PLANS_H
#define MS_BENCH_PLANS_H

/* Times the exact search on the files of minimalloc. */

#include "sim/base/base.h"

#define BENCH_PLANS "ABCDEFGHIJK"

/* The CPU time of a search for a plan of the file with that letter, within
 * the file's capacity. It is false where there are no such files
 * (MEMSIM_TRUTH) or no plan was found. */
bool bench_plans_search(char letter, double *ns);

#endif
