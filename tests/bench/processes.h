/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_PROCESSES_H
#define MS_BENCH_PROCESSES_H

/* Whole processes of the program at the path memsim, by the wall. */

/* Its start, the main job, every built-in model, a figure of a million events.
 */
void bench_processes_start(const char *memsim);
void bench_processes_fit(const char *memsim);
/* 10,000 points, on one thread and on two. */
void bench_processes_sweep(const char *memsim);
/* A profiler's trace of 200 MB, to a device's file: calibrate_200mb_ms has a
 * budget of 2000. */
void bench_processes_calibrate(const char *memsim);
/* Chains of a million layers: their times, and the most memory they hold. */
void bench_processes_million(const char *memsim);

#endif
