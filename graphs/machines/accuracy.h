/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ACCURACY_H
#define MS_GRAPHS_ACCURACY_H

/* How far memsim was from measured steps, by kind of run: what stands beside
 * every step time and every peak that is told.  accuracyrows.c has the rows;
 * tests/truth/accuracy.sh writes it from runs that no rate was fitted on, and
 * tests/truth/test_accuracy.c holds it to them, so that the rows say what is.
 *
 * A kind of step time is a device, a kernel set and a range of tokens in a
 * sequence (a model of images has none: 0), or ranks that split a model of
 * tokens; tests/truth/times.tsv has the runs.
 * Memory does not depend on the device's rates: a kind of peak is whose code
 * divides the states among the ranks, or whose training code the kernels are of
 * (nanotron's, Megatron-LM's: of ranks that split layers, or have stages of
 * them, too), and whether backward runs forward again; tests/truth/peaks.tsv
 * has the runs, all of them of models of tokens.
 *
 * Where fewer than MS_ACCURACY_LEAST runs are of a kind, those in any range (or
 * with recomputation or without) do; where these are too few as well, nothing
 * does.
 *
 *     const ms_accuracy *of =
 *         ms_accuracy_time("a100-80gb-sxm", MS_FLASH, 8192);
 *     of->runs 6, of->median_percent 4.2, of->most_percent 6.6
 *     of = ms_accuracy_peak(MS_ACCURACY_FSDP, true); */

#include <stdbool.h>
#include <stdint.h>

#define MS_ACCURACY_LEAST 5u
#define MS_ACCURACY_ANY UINT64_MAX
/* For tokens: ranks split the model (tensor, context, expert, pipeline);
 * sequences of any length. */
#define MS_ACCURACY_SPLIT (UINT64_MAX - 2)
/* Step times within so many percent are called equal where no run of their kind
 * was measured: what is known of others was off by about that much. */
#define MS_ACCURACY_UNKNOWN 30u

typedef struct ms_accuracy {
    uint32_t runs;
    double median_percent, most_percent; /* most: of 95 of 100 of the runs */
} ms_accuracy;

typedef struct ms_accuracy_times {
    const char *device;
    int64_t kernels; /* ms_kernels */
    /* The most tokens of a sequence of the range: one of ms_accuracy_ranges, 0,
     * MS_ACCURACY_ANY for rows of all lengths, or MS_ACCURACY_SPLIT. */
    uint64_t tokens;
    ms_accuracy of;
} ms_accuracy_times;

/* Whose runs are those of a kind: who divides the states among the ranks. */
typedef enum ms_accuracy_library {
    MS_ACCURACY_ALONE, /* nobody: each rank has all */
    MS_ACCURACY_FSDP,
    MS_ACCURACY_MEGATRON, /* its distributed optimizer, or its kernels where
                             each rank has the whole model */
    MS_ACCURACY_DEEPSPEED,
    MS_ACCURACY_OTHER,
    MS_ACCURACY_NANOTRON, /* its kernels, on ranks that may split the model,
                             with a part of the optimizer's state at most */
    MS_ACCURACY_MEGATRON_SPLIT /* its kernels, on ranks that split the model,
                                  with a part of the optimizer's state at
                                  most */
} ms_accuracy_library;

typedef struct ms_accuracy_peaks {
    ms_accuracy_library library;
    uint64_t again; /* does backward run forward again?  Or MS_ACCURACY_ANY. */
    ms_accuracy of;
} ms_accuracy_peaks;

/* The ends of the ranges, ascending; longer sequences are of the last. */
#define MS_ACCURACY_RANGES 4u
extern const uint64_t ms_accuracy_ranges[MS_ACCURACY_RANGES];
/* The end of the range that a sequence is in. */
uint64_t ms_accuracy_range(uint64_t tokens);

extern const ms_accuracy_times ms_accuracyrows_times[];
extern const ms_accuracy_peaks ms_accuracyrows_peaks[];
extern const uint32_t ms_accuracyrows_n_times, ms_accuracyrows_n_peaks;

/* NULL: no such run was held against a measured one. */
const ms_accuracy *ms_accuracy_time(const char *device, int64_t kernels,
                                    uint64_t tokens);
/* Whose runs these kernels are of, on ranks that split the model or have all of
 * it; else divided, which divides the states. */
ms_accuracy_library ms_accuracy_whose(int64_t kernels,
                                      ms_accuracy_library divided, bool split);
const ms_accuracy *ms_accuracy_peak(ms_accuracy_library library, bool again);

#endif
