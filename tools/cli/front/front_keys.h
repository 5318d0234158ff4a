/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FRONT_KEYS_H
#define MS_FRONT_KEYS_H

/* What memsim compare --checkpoint-all prints for scripts. */

#include "tools/cli/front/front.h"
#include "tools/results/keys/keys.h"

extern const ms_keys ms_front_keys;     /* of ms_front */
extern const ms_keys ms_front_keys_row; /* of ms_front_row */

#endif
