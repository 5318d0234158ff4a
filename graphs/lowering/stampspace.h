/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_STAMPSPACE_H
#define MS_GRAPHS_STAMPSPACE_H

/* Private to graphs/lowering: how rows of a column are numbered once a block
 * is there several times.
 *
 * A space is one kind of rows: ops, storages, nodes, entries of a list.  Each
 * row belongs to one of the four blocks that are left of a run (0 to 3), or to
 * none (MS_STAMP_OUT).  Rows of block 2 come n times, each copy behind the one
 * before, or before it where rows come by falling block, as in backward:
 *
 *     rows    o 0 0 1 1 2 2 3 3 o 3 2 1 0        n = 3
 *     stamped o 0 0 1 1 A A B B C C 3 3 o 3 C B A 1 0
 *
 * A row that names a row of the block before or behind names, in a copy, that
 * of the copy before or behind; one that names a row of the first or the last
 * block, or of none, as block 1 does, names it in all copies (a gradient that
 * all blocks add to in place).  Block 1 is the proof: its rows must be equal
 * to those of block 2, and name what lies as far away.  Else the run is not
 * stamped. */

#include "sim/base/base.h"

#define MS_STAMP_OUT 4u

typedef struct ms_stampspan {
    uint32_t first, end;
    uint8_t block;
} ms_stampspan;

typedef struct ms_stampspace {
    uint32_t n, n_stamped, copies;
    uint8_t *block;   /* per row */
    uint32_t *place;  /* per row: where the first copy, or the row itself, is */
    int32_t *step;    /* per row: from a copy to the next; 0 for other blocks */
    uint32_t *rank;   /* per row: which of its block it is */
    uint32_t *row[2]; /* rows of blocks 1 and 2 by rank */
    uint32_t n_equal; /* of each */
    ms_stampspan *spans;
    uint32_t n_spans;
    uint32_t *name, *hop; /* of a span's items under way: of a copy, and from
                             it to the next */
} ms_stampspace;

/* block: per row, borrowed; copies: at least two.  False: block 2 is not as
 * large as block 1, or does not lie between 1 and 3; or there is no memory. */
bool ms_stampspace_open(ms_stampspace *space, uint32_t n, uint8_t *block,
                        uint32_t copies, ms_arena *arena);

/* A column: items of size bytes, `at` bytes into rows that are stride bytes
 * apart. */
typedef struct ms_stampcolumn {
    const void *from;
    void *to;
    size_t stride, at;
} ms_stampcolumn;

/* Copies rows as they are. */
void ms_stampspace_copy(const ms_stampspace *space, const ms_stampcolumn *it);
/* Are the first size bytes of block 1's items those of block 2's? */
bool ms_stampspace_equal(const ms_stampspace *space, const ms_stampcolumn *it,
                         size_t size);
/* Fills a column with the rows of `named` that another names, shifted to the
 * left by `shift` bits (which are kept); MS_NONE stays.  False: they are not as
 * far away in block 1 as in block 2, or a row elsewhere names one of a block
 * that is stamped. */
bool ms_stampspace_rename(const ms_stampspace *space,
                          const ms_stampspace *named, const ms_stampcolumn *it,
                          unsigned shift);
/* Adds amount to copy 1, twice of it to copy 2, ... and all of it to what lies
 * behind: rows of block 3 are past the copies. */
void ms_stampspace_add(const ms_stampspace *space, const ms_stampcolumn *it,
                       uint32_t amount);
/* The new row of one that no block names; false: a stamped one. */
bool ms_stampspace_outside(const ms_stampspace *named, uint32_t *row);

#endif
