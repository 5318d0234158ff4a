/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIT_KEYS_H
#define MS_TOOLS_FIT_KEYS_H

/* What the object of memsim fit --json is printed from. */

#include "tools/results/keys/keys.h"
#include "tools/search/fit.h"
#include "tools/search/fitlaunch.h"

/* A setup, and the settings that it makes: "training.kernels" is "fused". */
typedef struct ms_fit_shown {
    const ms_fit_point *point;
    /* number: counted from 1 over all setups that were searched */
    uint64_t number, batch;
    const char *policy, *words;
    bool proven;
    struct ms_fit_shown_setting {
        const char *key, *value;
    } settings[MS_FIT_N_AXES];
    uint32_t n_settings;
} ms_fit_shown;

typedef struct ms_fit_shown_without {
    const char *lacks;          /* the name of the dimension that is left out */
    const ms_fit_shown *set_up; /* NULL: a policy refuses it */
} ms_fit_shown_without;

/* The samples per second of a GPU, by batch ("8"). */
typedef struct ms_fit_shown_rate {
    const char *batch;
    double samples_per_second;
} ms_fit_shown_rate;

/* A system's arguments, and whose they are. */
typedef struct ms_fit_shown_launch {
    const char *system, *cannot, *policy, *arguments; /* but system or NULL */
} ms_fit_shown_launch;

typedef struct ms_fit_sheet {
    const char *memsim, *status, *model, *device, *settings_json, *allocator;
    const char *from_json; /* NULL: no --from */
    uint64_t parameters;
    const char *given, *command; /* NULL: there is none */
    const ms_fit *fit;
    const ms_fit_max *max; /* NULL: --max was not given */
    ms_fit_shown_rate rates[MS_FIT_RUNGS];
    /* Setups; NULL: there is no such setup. */
    const ms_fit_shown *best, *smallest, *smallest_far, *plain, *on_device,
        *fastest;
    ms_fit_shown *rows; /* the rows of fit, n_rows of them */
    ms_fit_shown_without without[MS_FIT_N_AXES];
    uint32_t n_without, n_equal;
    uint64_t equal_percent; /* 0: none */
    bool fits;
    uint64_t choices[MS_FIT_N_AXES]; /* MS_NO_LEVEL: the setting is fixed */
    ms_fit_shown_launch launch[MS_FITLAUNCH_SYSTEMS];
    uint32_t n_launch; /* 0: on one GPU */
    const char **not_searched;
    uint32_t n_not_searched;
} ms_fit_sheet;

extern const ms_keys ms_fit_keys; /* of ms_fit_sheet */
/* the values of --goal */
extern const char *const ms_fit_keys_goals[MS_FIT_N_GOALS];

#endif
