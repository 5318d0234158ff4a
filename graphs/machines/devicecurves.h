/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DEVICECURVES_H
#define MS_GRAPHS_DEVICECURVES_H

/* Private to graphs/: the curves of a device's file, measured rates by size:
 *
 *     "allreduce_curves": [{"ranks": 8, "kib": [1024, 65536],
 *                           "gbps": [40, 350]}],
 *     "collective_curves": [{"collective": "all-gather", "ranks": 8,
 *                            "kib": [1024, 65536], "gbps": [40, 210]}],
 *     "memory_curves": [{"kind": "norm", "kib": [512, 65536],
 *                        "gbps": [900, 2400]}]
 *
 * Sizes ascend, and so do the times that they take.  Curves of collectives go
 * with the links: where "like" has other links than the file, its own are
 * dropped.  A kind of memory_curves (kernelkinds.h) that the file has takes the
 * place of that of "like". */

#include "graphs/machines/devicefile.h"

/* Of what is divided by, in the file's unit. */
#define MS_DEVICECURVES_LEAST 0.001

ms_err ms_devicecurves_read(const ms_devicefile *file);

#endif
