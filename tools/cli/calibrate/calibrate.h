/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CALIBRATE_H
#define MS_CALIBRATE_H

/* memsim calibrate: from what was measured to a device's file.
 *
 *     calibrate.c         options, the file, the outputs
 *     calibrate_errors.c  errors by kind, before and after
 *     calibrate_model.c   is the trace of the model that is named?
 *     calibrate_ops.c     predicted against recorded, by op and phase
 *     calibrate_text.c    the report for people
 *     calibrate_keys.c    the same for scripts
 *     calibrate_figure.c  recorded over predicted, on one line of time */

#include "tools/calibrate/ratefit.h"
#include "tools/calibrate/traced.h"
#include "tools/cli/commands.h"
#include "tools/job/outputs.h"
#include "tools/terminal/screen.h"

/* A kind of kernel: how far off the device is. */
typedef struct ms_calibrated_kind {
    const char *name, *word;
    uint64_t shapes, samples;
    double time_ns; /* measured, of all samples */
    /* Of the rows that are fitted, and of those that are kept back, by the
     * device as it was and as it became. */
    ms_measured_error fitted_before, fitted_after, kept_before, kept_after;
} ms_calibrated_kind;

/* Calls of an op with one shape. */
typedef struct ms_calibrated_op {
    const char *op, *shape; /* shape: in words; NULL: none is known */
    const char *kind;       /* NULL: a device's file has no rate of it */
    const char *phase;      /* NULL: not of a step */
    uint64_t calls;
    double recorded_ns, predicted_ns; /* of all calls; predicted < 0: unknown */
} ms_calibrated_op;

typedef struct ms_calibrated_phase {
    const char *name;
    uint64_t calls;
    double recorded_ns;  /* of calls that can be predicted */
    double predicted_ns; /* of the same */
    double unknown_ns;   /* recorded, of the others */
} ms_calibrated_phase;

/* A model that the trace is said to be of. */
typedef struct ms_calibrated_model {
    const char *name, *setup; /* setup: "8 x 1024 tokens", or samples */
    double matched; /* part of the recorded time of products that it has, too */
    /* Products of a step: of the model, and recorded; recorded 0: the trace
     * marks no steps. */
    uint64_t products;
    double recorded;
} ms_calibrated_model;

typedef struct ms_calibration {
    const char *memsim, *file, *device;
    bool is_trace, checks; /* checks: nothing is fitted */
    ms_measurements all;
    ms_traced traced;          /* of a trace */
    ms_calibrated_model model; /* name NULL: none was given */
    const ms_device *like;
    ms_ratefit fit;
    ms_calibrated_kind kinds[MS_N_RATE_KINDS];
    uint32_t n_kinds;
    ms_calibrated_op *ops; /* the longest first */
    uint32_t n_ops;
    ms_calibrated_phase phases[MS_TRACED_N_PHASES];
    uint32_t n_phases;
} ms_calibration;

/* arguments: with a model and its settings, or without both.  MS_EINPUT: most
 * of the products' time is of shapes that the model's step does not have. */
ms_err ms_calibrate_model(const ms_arguments *arguments, ms_arena *arena,
                          ms_calibration *c, ms_fault *fault);
ms_err ms_calibrate_errors(ms_calibration *c, ms_fault *fault);
ms_err ms_calibrate_ops(ms_calibration *c, ms_arena *arena, ms_fault *fault);
/* Of a trace alone. */
ms_err ms_calibrate_figure(const ms_calibration *c, const ms_picture *figure,
                           ms_arena *arena, ms_fault *fault);
void ms_calibrate_text(const ms_calibration *c, const ms_style *style,
                       ms_text *text);

#endif
