/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_VIEWDROPS_H
#define MS_SIM_VIEWDROPS_H

/* Private to sim/expand: the drop lists of a graph whose references end
 * elsewhere than in another. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* view: a copy of g with ends (storage_local_end, storage_saved_end) of its
 * own; its drop lists are set. */
ms_err ms_viewdrops_list(const ms_graph *g, ms_graph *view, ms_arena *arena,
                         ms_fault *fault);

#endif
