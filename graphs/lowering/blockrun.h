/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_BLOCKRUN_H
#define MS_GRAPHS_BLOCKRUN_H

/* Private to graphs/lowering: equal blocks that follow each other in a layer
 * list, or layers in no block that are written out as often, and the model in
 * which four of them are left.
 *
 *     embed  b0 b1 b2 b3 ... b94 b95  head      first = b0's first layer
 *     embed  b0 b1 b2 b95  head                 the short model
 *
 * Equal means: the same types, fields, inputs (so many layers earlier, or the
 * same layer before the run) and cut points, where these are known; names do
 * not count. */

#include "graphs/model.h"

#define MS_BLOCKRUN_LEFT 4u

typedef struct ms_blockrun {
    uint32_t first, period; /* in layers; period: one or several blocks */
    uint32_t blocks;        /* of a period; 0: of layers in no block */
    uint32_t left_out;      /* periods; 0: there is no such run */
} ms_blockrun;

/* The run about the middle of the model. */
ms_blockrun ms_blockrun_find(const ms_model *model);
/* The model without the periods that are left out; layers keep their blocks.
 * False: a layer behind the run reads from within it, or there is no memory. */
bool ms_blockrun_cut(const ms_model *model, const ms_blockrun *run,
                     ms_arena *arena, ms_model *cut);

#endif
