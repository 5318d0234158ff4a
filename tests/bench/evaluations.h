/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_EVALUATIONS_H
#define MS_BENCH_EVALUATIONS_H

/* What a caller of libmemsim waits for after it has changed one setting. */

/* Steps of gpt3: after another policy, and after another batch, each with one
 * replay and with the three steps of torch's pool. */
void bench_evaluations_run(const char *memsim);

#endif
