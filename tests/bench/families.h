/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_FAMILIES_H
#define MS_BENCH_FAMILIES_H

/* How long models of every family take: the lowering of DeepSeek-V3 (61 layers,
 * 256 experts as grouped ops; the class defaults of its config.json are it),
 * and a run of each built-in model. */

/* Prints deepseek_v3_lower_ms, from the model that was read to its graph,
 * and deepseek_v3_run_ms, the whole way from the configuration. */
void bench_families_lower(void);
/* Prints stamps_100_ns_per_op ... stamps_1600_ns_per_op: GPT-3 of so many
 * layers, which are equal blocks; the same ns per op, within noise. */
void bench_families_stamp(void);
/* Prints builtin_runs_ms: each model as a process of memsim, the best of a
 * few runs. */
void bench_families_run(const char *memsim,
                        double (*process_ns)(const char *const *argv));

#endif
