/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TRAFFIC_H
#define MS_SIM_TRAFFIC_H

/* Private to measure.c: bytes that a rank's copies and collectives move. */

#include "sim/sim.h"

void ms_traffic_add(const ms_timeline *line, ms_report *report);

#endif
