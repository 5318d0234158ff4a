/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_CELLS_H
#define MS_SIM_CELLS_H

/* Private to sim/fold: what of the books is state.  The state of an owner is a
 * list of words: per storage one for each column in which the books may have a
 * row of it (on the device, this rank's part, on the host, on the disk).  A
 * word is the kind of that row, 0 where there is none: what expand reads of a
 * row besides whose it is.  The first word of a storage has its references,
 * too, and whether it is packed in a buffer; behind the storages come, while a
 * replay in parts is under way, the ops of the unit that it will run.
 *
 * Two rows of one kind differ in the op that wrote them last, for which a
 * reader on another stream waits.  So the books get an op of its own for each
 * row that is put into them, and `before` says for whom that op stands.
 *
 * A worked example: the part of a weight, on the device since the start, is of
 * the kind (its part's bytes, written at the start); the whole that a gather
 * of the unit has made is of the kind (its own bytes, a block of the compute
 * stream's, written on the ranks' queue).  Whoever reads the whole waits for
 * the op that stands for this gather, whichever it was. */

#include "sim/expand/books.h"
#include "sim/fold/classes/classes.h"

typedef enum ms_cells_column {
    MS_CELLS_WHOLE,
    MS_CELLS_PART,
    MS_CELLS_HOST,
    MS_CELLS_DISK,
    MS_N_CELLS_COLUMNS
} ms_cells_column;

/* Of the first word of a storage: references (as in the books), then the kind
 * of its row, then three flags. */
#define MS_CELLS_KIND(word) ((word) >> 8 & 0x1fffffu)
#define MS_CELLS_WANTED (1u << 29) /* by an op that will run again */
#define MS_CELLS_REMADE (1u << 30) /* by the replay that is under way */
#define MS_CELLS_PACKED (1u << 31)

/* For whom an op or a row of the books stands. */
typedef enum ms_earlier_kind {
    MS_EARLIER_START,   /* what was there before the step: no one waits */
    MS_EARLIER_CALL,    /* of the call itself: number `index` */
    MS_EARLIER_CELL,    /* the last writer of a cell's row; the row */
    MS_EARLIER_BUFFER,  /* the same of a buffer, the index-th of the call's */
    MS_EARLIER_READER,  /* the op that read this buffer last */
    MS_EARLIER_COMPUTE, /* the last op of the compute stream */
    MS_EARLIER_SIDE,    /* the last copy of the side queue */
    MS_EARLIER_LIMIT,   /* the last but one that let go (ms_gather_call) */
    MS_EARLIER_ALL      /* all ops so far */
} ms_earlier_kind;

typedef struct ms_earlier {
    uint8_t kind, column; /* ms_cells_column */
    int32_t owner;        /* of a cell: counted from the question's base */
    uint32_t index;       /* of a cell: among the owner's */
} ms_earlier;

typedef struct ms_cells {
    const ms_graph *graph; /* prepared */
    const ms_classes *classes;
    ms_books books;
    ms_plan plan;
    ms_fault fault;
    ms_arena arena;     /* of the books */
    ms_intern *kinds;   /* of rows */
    bool graph_streams; /* the graph's ops are on several */
    bool wants; /* units of a replay are asked what they want: words tell of
                   what that is */
    uint32_t n_columns;
    uint8_t column[MS_N_CELLS_COLUMNS]; /* those that there are */
    /* Of ops and rows that were put into the books: for whom they stand. */
    ms_earlier *op, *row;
    uint32_t ops_capacity, rows_capacity;
    /* With one stream: per row that was put in, its category then. */
    uint8_t *category;
    uint32_t categories_capacity;
    uint32_t first_op, first_row; /* of the call that is expanded */
    uint32_t *word, word_capacity;
    /* Kinds hold for the graph's own numbers alone; and else: pairs of storages
     * of which one had a row that was made for the other, as large; and (with
     * several streams) storages and ops whose bytes durations follow from. */
    bool fixed;
    uint32_t *twin, n_twins, twins_capacity;
} ms_cells;

/* The books are as expand opens them for the program, and empty.  kinds must
 * outlive them.  Faults: MS_ENOMEM. */
ms_err ms_cells_open(ms_cells *cells, const ms_graph *graph,
                     const ms_classes *classes, const ms_expand_opts *opts,
                     const ms_program *program, ms_fault *fault);
void ms_cells_close(ms_cells *cells);
/* Do the books have the columns that the program asks for, and no others? */
bool ms_cells_suit(const ms_cells *cells, const ms_program *program);

static inline uint32_t *ms_cells_rows(const ms_cells *cells,
                                      ms_cells_column column)
{
    const ms_books *books = &cells->books;
    uint32_t *const rows[MS_N_CELLS_COLUMNS] = {
        books->row, books->shard_row, books->host_row, books->nvme_row};
    return rows[column];
}

/* The books are emptied, of whatever there is in them. */
void ms_cells_empty(ms_cells *cells);
/* The plan begins anew: what is put in comes before the first op of a call. */
ms_err ms_cells_begin(ms_cells *cells, ms_fault *fault);
/* An op that stands for another one, on its stream; *op is its number. */
ms_err ms_cells_put_op(ms_cells *cells, ms_earlier who, uint8_t stream,
                       uint32_t *op, ms_fault *fault);
/* Puts what an owner has, whose state is n words, seen from unit base. */
ms_err ms_cells_put(ms_cells *cells, uint32_t owner, uint32_t base,
                    const uint32_t *words, uint32_t n, ms_fault *fault);
/* The row of a buffer. */
ms_err ms_cells_put_buffer(ms_cells *cells, uint32_t buffer, uint32_t kind,
                           ms_earlier who, ms_fault *fault);
/* Behind all that is put in: the call comes next. */
ms_err ms_cells_end(ms_cells *cells, ms_fault *fault);

/* The words of an owner, in cells->word. */
ms_err ms_cells_read(ms_cells *cells, uint32_t owner, uint32_t *n,
                     ms_fault *fault);
/* The replay has ended what the unit made. */
void ms_cells_end_unit(ms_cells *cells, uint32_t unit);
/* Takes an owner's rows out of the books. */
void ms_cells_clear(ms_cells *cells, uint32_t owner);
/* For whom an op stands; MS_NONE: for all. */
ms_earlier ms_cells_who(const ms_cells *cells, uint32_t op);

#endif
