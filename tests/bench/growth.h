/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_GROWTH_H
#define MS_BENCH_GROWTH_H

/* How the time of a run grows with the depth of its model. */

/* Prints growth_NAME_125_ms ... growth_NAME_2000_ms, a run of GPT-2 of so many
 * layers by a policy or an allocator, from its arguments to its report, and
 * growth_NAME_exponent: the slope of the last doubling on paper with two
 * logarithmic axes (1: linear; 2: each doubling takes four times as long). */
void bench_growth_run(const char *memsim);

#endif
