/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ROWKIND_H
#define MS_SIM_ROWKIND_H

/* Private to sim/fold: kinds of rows, what expand reads of a row besides whose
 * it is, and of which numbers of the graph that holds.
 *
 * A worked example: a weight of 8 MiB, of which this rank's part is 1 MiB.  Its
 * row of 1 MiB is of the kind PART: of a graph in which the weight has 16 MiB
 * and the part 2 it has 2.  Were the part as large as the weight, nobody could
 * say which of them the row is (sim/fold/classes/likeness.h). */

#include "sim/fold/cells/cells.h"

/* Whose bytes a row has. */
typedef enum ms_rowkind_whose {
    MS_ROWKIND_OWN,  /* the whole storage's */
    MS_ROWKIND_PART, /* this rank's part's */
    MS_ROWKIND_FAR,  /* what it takes in another memory */
    MS_ROWKIND_OTHER /* nobody's: a number */
} ms_rowkind_whose;

#define MS_ROWKIND_AT_START MS_N_STREAMS

typedef struct ms_rowkind {
    uint8_t size, home, pool; /* size: ms_rowkind_whose */
    ms_streams streams;
    bool waited;
    uint8_t category;      /* with one stream; else of no row */
    uint8_t maker, writer; /* streams; writer: or AT_START */
    uint64_t bytes;        /* of OTHER */
} ms_rowkind;

/* To be called when kinds, the table, was opened. */
ms_err ms_rowkind_begin(ms_cells *cells, ms_fault *fault);
/* Whose of a storage so many bytes are (storage MS_NONE: a buffer's); and how
 * many, where they are somebody's. */
ms_rowkind_whose ms_rowkind_size(const ms_cells *cells, uint32_t storage,
                                 uint64_t bytes);
uint64_t ms_rowkind_bytes(const ms_cells *cells, ms_rowkind_whose size,
                          uint32_t storage);
/* The kind of a row (0: MS_NONE) whose bytes are a storage's, or of a buffer
 * (storage MS_NONE). */
ms_err ms_rowkind_find(ms_cells *cells, uint32_t row, uint32_t storage,
                       uint32_t *kind, ms_fault *fault);
ms_rowkind ms_rowkind_of(const ms_cells *cells, uint32_t kind);
/* Was a row of this kind written before the step? */
bool ms_rowkind_is_at_start(const ms_cells *cells, uint32_t kind);
/* Do the kinds of rows, and the times of copies and collectives, say the same
 * of another graph, which differs from this one in numbers alone? */
bool ms_rowkind_fit(const ms_cells *cells, const ms_graph *graph);

#endif
