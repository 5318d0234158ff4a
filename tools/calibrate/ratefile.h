/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RATEFILE_H
#define MS_TOOLS_RATEFILE_H

/* A fit as the text of a device's file: "like" and what changed, each group of
 * keys with its source.  Where the device that it began with is a file itself,
 * that one's members are copied and the changed ones take their place.
 *
 *     {
 *         "memsim_device": 1,
 *         "like": "a100-80gb-sxm",
 *         "source": "memsim calibrate, trace.json",
 *         "product_128x128": 0.47,
 *         ...
 *     } */

#include "tools/calibrate/ratefit.h"

/* device: the name or file that --device gave. */
ms_err ms_ratefile_write(const ms_ratefit *fit, const char *device,
                         const char *source, ms_text *text, ms_fault *fault);

#endif
