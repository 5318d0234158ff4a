/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_CURVEFIT_H
#define MS_TOOLS_CURVEFIT_H

/* The part of a fit (ratefit.h) that has no search: rates of copies and
 * launches as medians, and curves by size.  A curve has a point for each
 * fourfold of size that was measured; where the time falls from one to the
 * next, the larger is left out. */

#include "tools/calibrate/measured.h"

/* Copies, launches, the gap between two kernels. */
ms_err ms_curvefit_rates(const ms_measurements *all, ms_device *device,
                         ms_fault *fault);
/* Sets changed[kind] where a kind has a new curve. */
ms_err ms_curvefit_memory(const ms_measurements *all, ms_device *device,
                          bool changed[MS_N_MEMORY_KINDS], ms_fault *fault);
/* A curve of all-reduces for each number of ranks, beside those that the device
 * has for others. */
ms_err ms_curvefit_links(const ms_measurements *all, ms_device *device,
                         bool *changed, ms_fault *fault);

#endif
