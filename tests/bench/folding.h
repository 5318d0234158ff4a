/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_FOLDING_H
#define MS_BENCH_FOLDING_H

/* Peak and time by folds, against expand and replay of the same programs. */

/* Every choice of gpt3's checkpoints; 64 and 4,096 micro-batches; stacks of
 * four sizes.  A fold that differs from the replay ends the benchmark. */
void bench_folding_run(const char *memsim);

#endif
