/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SHARDS_H
#define MS_GRAPHS_SHARDS_H

/* Private to graphs/: how the ranks of tensor:T split each layer of a model
 * (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2).
 *
 * Nouns.  What a layer makes has a layout: whole on each rank, a part of the
 * sequence, or a part of the columns (the last dimension).  A layer is split by
 * columns (its outputs are divided among the ranks, its input is whole), by
 * rows (its inputs are divided, its output is a sum), by heads (an attention:
 * the first, then the second), by vocabulary (an embedding: rows of the table;
 * a loss: classes), by experts (expertops.h: each rank routes its part of the
 * sequence), or not at all: then each rank has and computes all of it.
 *
 * Who is what.  A product into a block is split by columns where all that read
 * it work element by element and end in products into the residual sum, which
 * are split by rows; nothing is exchanged between the two.  Embeddings of
 * tokens and the head are split by vocabulary.  With `sp` what lies between
 * works on a part of the sequence: norms, dropouts, residual sums.  With
 * `plan=hf` embeddings are whole on each rank, and so is a head that is tied to
 * one; another is split by columns, and gathers what it makes.
 *
 * Invariants: each layer's inputs are given in the layout that it needs; T
 * divides heads, the columns of what is split and, with sp, the sequence.
 *
 * A worked example, one layer of h = 4096 on T = 4 with sp, n = s b tokens:
 *
 *     norm1          sequence   [n / 4, 4096]
 *     attention      by heads   gathers [n, 4096], q, k, v [n, 3 x 1024],
 *                               out [n, 4096], scattered to [n / 4, 4096]
 *     mlp.up         columns    gathers [n, 4096], makes [n, 4096] of 16384
 *     mlp.gelu       columns
 *     mlp.down       rows       [n, 4096], scattered to [n / 4, 4096] */

#include "graphs/trace/tensors.h"
#include "sim/group.h"

typedef enum ms_layout {
    MS_LAYOUT_WHOLE,
    MS_LAYOUT_SEQUENCE,
    MS_LAYOUT_COLUMNS
} ms_layout;

typedef enum ms_split {
    MS_SPLIT_NOT,
    MS_SPLIT_COLUMNS,
    MS_SPLIT_ROWS,
    MS_SPLIT_HEADS,
    MS_SPLIT_VOCABULARY,
    MS_SPLIT_EXPERTS,
    MS_N_SPLITS
} ms_split;
extern const char *const ms_shards_names[MS_N_SPLITS]; /* "columns" */

typedef struct ms_shards {
    ms_group ranks;
    bool by_sequence, whole_ends; /* ms_shape */
    bool keeps_whole;             /* MS_REGATHER_NOT */
    /* Per layer. */
    uint8_t *split;      /* ms_split */
    uint8_t *needs;      /* ms_layout of its inputs */
    uint8_t *layout;     /* ms_layout of its output */
    uint32_t *n_columns; /* products by columns that read it */
    int64_t *columns;    /* what those without a bias make of it, a rank's */
    /* What layer `entered_from` made, entered for those that are split by
     * columns and have not run yet, so many of them; or MS_NONE. */
    uint32_t entered_from, entered, n_waiting;
} ms_shards;

/* MS_EUSAGE where settings are not known beside ranks that split layers. */
ms_err ms_shards_check(const ms_trace *trace);
/* Decides how each layer is split: trace->shards; NULL where no ranks split
 * layers.  The layers' roles are there.  MS_EINPUT where sizes do not divide,
 * with the nearest that would. */
ms_err ms_shards_open(ms_trace *trace);

/* Of the layer that runs now. */
ms_split ms_shards_split(const ms_trace *trace);
/* What of `whole` columns, rows of a table or heads one rank has. */
int64_t ms_shards_part(const ms_trace *trace, int64_t whole);
/* Of so many columns, those that the layer that runs now works on. */
int64_t ms_shards_columns(const ms_trace *trace, int64_t whole);
/* The length of the sequence of which the layer that runs now is given so many
 * positions. */
int64_t ms_shards_sequence(const ms_trace *trace, int64_t length);
/* Does each rank have all columns of what the layer that runs now made, a
 * product by columns? */
bool ms_shards_gathers(const ms_trace *trace);
/* Are the parameters made from now on parts, of which each rank has one? */
void ms_shards_make_parts(ms_trace *trace, bool parts);
/* A tensor as products by columns need it: the whole, whose gradient is summed
 * over the ranks; what products by rows have made: summed over them.  columns:
 * tensorops.h, gather_for. */
uint32_t ms_shards_enter(ms_trace *trace, uint32_t x, int64_t columns);
uint32_t ms_shards_leave(ms_trace *trace, uint32_t y);
/* The tensor, which layer `from` has made (MS_NONE: the model's input), as the
 * layer that runs now needs it: a reference of its own. */
uint32_t ms_shards_take(ms_trace *trace, uint32_t from, uint32_t tensor);

#endif
