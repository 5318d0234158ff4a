/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_SOLVERS_H
#define MS_BENCH_SOLVERS_H

/* Optimal plans of chains. */

/* Prints, CPU time of one search for a plan in half of what saving all takes:
 *
 *     chain_59_ms       10   59 stages that all differ, 500 units
 *     chain_96_ms        5   96 that are the same
 *     chain_62_ms ... chain_248_ms and chain_exponent: the slope of the last
 *                       doubling; of stages that all differ it is 3
 *     chain_sums_per_us 2000 */
void bench_solvers_run(const char *memsim);

#endif
