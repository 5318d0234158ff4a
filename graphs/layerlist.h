/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_LAYERLIST_H
#define MS_LAYERLIST_H

/* The "layers" of a native model: types, fields, edges and repeats. */

#include "graphs/graphs.h"
#include "graphs/json.h"

#define MS_LAYERLIST_MAX (UINT32_C(1) << 22) /* layers, repeats unrolled */
#define MS_LAYERLIST_FULL 1024u              /* bytes of a dotted name */

/* Appends the unrolled layers of array row to the model.  {"repeat": n,
 * "name": "b", "layers": [...]} makes b.0 to b.(n-1), whose layers are named
 * b.i.NAME.  An "inputs" name is looked for in the layer's own block, then in
 * the blocks around it; "input" is what the block reads by default. */
ms_err ms_layerlist_read(const ms_json *json, uint32_t row, ms_arena *arena,
                         ms_model *model, ms_fault *fault);

#endif
