/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIT_KEYS_H
#define MS_TOOLS_FIT_KEYS_H

/* What the object of memsim fit --json is printed from. */

#include "tools/results/keys/keys.h"
#include "tools/search/fit.h"

/* A set-up, and what it sets: "training.kernels" to "fused". */
typedef struct ms_fit_shown {
    const ms_fit_point *point;
    uint64_t number, batch; /* number: from 1, of all that were searched */
    const char *policy, *words;
    bool proven;
    struct ms_fit_shown_setting {
        const char *key, *value;
    } settings[MS_FIT_N_AXES];
    uint32_t n_settings;
} ms_fit_shown;

typedef struct ms_fit_shown_without {
    const char *lacks;          /* a dimension */
    const ms_fit_shown *set_up; /* NULL: a policy refuses it */
} ms_fit_shown_without;

/* By batch, "8", the samples per second of a GPU. */
typedef struct ms_fit_shown_rate {
    const char *batch;
    double samples_per_second;
} ms_fit_shown_rate;

typedef struct ms_fit_sheet {
    const char *memsim, *status, *model, *device, *settings_json, *allocator;
    uint64_t parameters;
    const char *given, *command; /* NULL: none */
    const ms_fit *fit;
    const ms_fit_max *max; /* NULL: not asked for */
    ms_fit_shown_rate rates[MS_FIT_RUNGS];
    /* Set-ups; NULL: there is none. */
    const ms_fit_shown *best, *smallest, *smallest_far, *plain, *on_device,
        *fastest;
    ms_fit_shown *rows; /* n_rows of fit */
    ms_fit_shown_without without[MS_FIT_N_AXES];
    uint32_t n_without, n_equal;
    bool fits;
    uint64_t choices[MS_FIT_N_AXES]; /* MS_NO_LEVEL: fixed */
    const char **not_searched;
    uint32_t n_not_searched;
} ms_fit_sheet;

extern const ms_keys ms_fit_keys; /* of ms_fit_sheet */
extern const char *const ms_fit_keys_goals[MS_FIT_N_GOALS]; /* of --goal */

#endif
