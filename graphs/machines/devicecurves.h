/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DEVICECURVES_H
#define MS_GRAPHS_DEVICECURVES_H

/* Private to graphs/: the measured curves of a device's file,
 *
 *     "allreduce_curves": [{"ranks": 8, "kib": [1024, 65536],
 *                           "gbps": [60, 200]}]
 *
 * Sizes ascend, and the time they take.  Those of "like" are left where the
 * links are its, too. */

#include "graphs/machines/devicefile.h"

ms_err ms_devicecurves_read(const ms_devicefile *file);

#endif
