/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RATEFIT_H
#define MS_TOOLS_RATEFIT_H

/* Rates of a device from what was measured of it.
 *
 *     ms_ratefit fit;
 *     MS_TRY(ms_ratefit_run(&measurements, like, &fit, fault));
 *     MS_TRY(ms_ratefile_write(&fit, "a100", "trace.json", &text, fault));
 *
 * A worked example.  On `like` products take 1.25 times as long as they are
 * predicted, at the median, and nothing else was measured: fit.device is `like`
 * but for the shares of its tiles, which are 0.8 of what they were, and the
 * file says {"like": ..., "product_128x128": ...}.
 *
 * What is fitted: of few shapes of products one factor, of 16 or more the parts
 * of producttime.h (by the mean of |log(predicted / measured)|, which a few odd
 * rows do not move far); of attention a share by kernel and direction; of what
 * moves bytes a curve by kind, with the median rate of each fourfold of size;
 * of copies and launches the median.  A step's products run at step_share of
 * the rates that they reach alone: of a step one factor is fitted there, of
 * kernels alone it stays.  Only rows that are not kept back are looked at, and
 * what no row is of stays as it was. */

#include "tools/calibrate/measured.h"

typedef struct ms_ratefit_change {
    const char *key; /* of a device's file */
    double before, after;
} ms_ratefit_change;

#define MS_RATEFIT_MOST 32u
typedef struct ms_ratefit {
    const ms_device *like;
    ms_device device;
    ms_ratefit_change changes[MS_RATEFIT_MOST]; /* of single numbers */
    uint32_t n_changes;
    bool new_curves[MS_N_MEMORY_KINDS], new_links; /* of curves */
} ms_ratefit;

ms_err ms_ratefit_run(const ms_measurements *all, const ms_device *like,
                      ms_ratefit *fit, ms_fault *fault);

#endif
