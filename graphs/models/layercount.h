/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_LAYERCOUNT_H
#define MS_LAYERCOUNT_H

/* How many layers a list has at least, before any is made, so that a hostile
 * repeat costs nothing. */

#include "graphs/models/layerlist.h"

/* Counts the elements that there will be at least.  A template that uses
 * itself is refused later. */
ms_err ms_layercount_least(const ms_layerlist *list, uint64_t *n,
                           ms_fault *fault);
/* MS_EINPUT unless row is a list of objects, at least one. */
ms_err ms_layercount_array(const ms_json *json, uint32_t row, ms_fault *fault);
/* Fails at row: there are too many. */
ms_err ms_layercount_fail(const ms_layerlist *list, uint32_t row,
                          ms_fault *fault);

#endif
