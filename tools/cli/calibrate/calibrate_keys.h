/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CALIBRATE_KEYS_H
#define MS_CALIBRATE_KEYS_H

/* What memsim calibrate prints for scripts. */

#include "tools/cli/calibrate/calibrate.h"
#include "tools/results/keys/keys.h"

extern const ms_keys ms_calibrate_keys; /* of ms_calibration */

#endif
