/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_PIPELINES_H
#define MS_BENCH_PIPELINES_H

/* Steps of pipelines with many micro-batches. */

/* GPT-3 on 8 stages x 512 micro-batches (on 16 x 64 replayed): peak and time
 * told from few of them, against all of them run; the two differ nowhere, or
 * the benchmark ends.  A toy on 64 ranks x 8 chunks x 512 micro-batches,
 * replayed.  Growth of the time in stages, chunks, micro-batches and layers, of
 * the memory in stages. */
void bench_pipelines_run(const char *memsim);

#endif
