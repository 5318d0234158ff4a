/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_LAYERLIST_H
#define MS_LAYERLIST_H

/* The "layers" of a native model: an array of layers and groups.
 *
 *     {"type": "linear", "out": "4 * width", "when": "i > 0"}
 *
 * is a layer; numbers may be expressions (numbers.h).  A group has "layers"
 * of its own, or the name of a "template" of the file:
 *
 *     {"repeat": 3, "index": "i", "with": {"width": "64 * (i + 1)"}, ...}
 *     {"each": {"width": [64, 128], "n": [3, 4]}, "name": "layer{i + 1}", ...}
 *     {"template": "bottleneck", "inputs": ["stem"], "when": "deep", ...}
 *
 * "repeat" makes so many blocks of what checkpoint policies count, of nested
 * ones the outermost; "each" repeats for the values of its lists and makes
 * none; "block": true or false says otherwise.  NAME's repetitions are NAME.0,
 * NAME.1, ... unless its name has a {}. A group reads "inputs" (one, of what
 * comes before), else the layer before it; what "when" leaves out passes that
 * on.  Blocks, and groups that do not repeat, are functions: what they read
 * lives until they return. */

#include "graphs/json/json.h"
#include "graphs/json/numbers.h"
#include "graphs/model.h"

#define MS_LAYERLIST_MAX (UINT32_C(1) << 22) /* layers, all repetitions */
/* A file may have as many elements as it has room for; repeats and templates
 * make so many more of them at most, left out or not. */
#define MS_LAYERLIST_REPEATED (UINT32_C(1) << 18)

typedef struct ms_layerlist {
    const ms_json *json;
    uint32_t row;       /* an array */
    uint32_t templates; /* an object, or MS_NONE */
    const ms_variable *variables;
    uint64_t most; /* elements, those of repeats and templates included */
} ms_layerlist;

/* What a file may have. */
uint64_t ms_layerlist_most(const ms_json *json);
/* Appends the unrolled layers to the model. */
ms_err ms_layerlist_read(const ms_layerlist *list, ms_arena *arena,
                         ms_model *model, ms_fault *fault);

#endif
