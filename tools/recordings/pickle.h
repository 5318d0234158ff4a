/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PICKLE_H
#define MS_PICKLE_H

/* Reads Python pickles of plain data (protocols 2 to 5): None, booleans,
 * numbers, texts, lists, tuples, dicts. An opcode that would call or import
 * something is refused, so no code in a file ever runs. A value may be in
 * several containers, and in itself: walk to a fixed depth only.
 *
 *     for (uint32_t c = ms_pickle_first(&p, row); c != MS_NONE;
 *          c = p.cells[c].next)
 *         use(p.cells[c].value); */

#include "sim/base/base.h"
#include "tools/cli/commands.h"

typedef enum ms_pickle_kind {
    MS_PICKLE_NONE,
    MS_PICKLE_BOOL, /* value.i */
    MS_PICKLE_INT,
    MS_PICKLE_FLOAT,
    MS_PICKLE_TEXT, /* value.i is its offset in the file */
    MS_PICKLE_LIST, /* a list or a tuple */
    MS_PICKLE_DICT
} ms_pickle_kind;

typedef struct ms_pickle_node {
    union {
        int64_t i;
        double f;
        uint32_t cell[2]; /* LIST, DICT: first and last, or MS_NONE */
    } value;
    uint32_t length; /* TEXT: bytes; LIST, DICT: members */
    uint32_t at;     /* byte of the file, for faults */
    uint8_t kind;
} ms_pickle_node;

typedef struct ms_pickle_cell {
    uint32_t key, value; /* rows of nodes; key: MS_NONE in lists */
    uint32_t next;
} ms_pickle_cell;

typedef struct ms_pickle {
    const char *name;
    const unsigned char *bytes;
    size_t length;
    ms_pickle_node *nodes;
    ms_pickle_cell *cells;
    uint32_t n_nodes, n_cells, root;
} ms_pickle;

/* name and bytes must outlive the pickle. Faults: MS_EINPUT at "name:byte N".
 */
ms_err ms_pickle_read(const char *name, const char *bytes, size_t length,
                      ms_arena *arena, ms_pickle *pickle, ms_fault *fault);
/* The first cell of a list or a dict; MS_NONE for any other value. */
uint32_t ms_pickle_first(const ms_pickle *pickle, uint32_t row);
/* The value of a dict's key, or MS_NONE; of equal keys the last one counts, as
 * in Python. */
uint32_t ms_pickle_find(const ms_pickle *pickle, uint32_t row, const char *key);
bool ms_pickle_is(const ms_pickle *pickle, uint32_t row, const char *text);
/* Fails at the place of a value; with MS_NONE of the file as a whole. */
ms_err ms_pickle_fail(const ms_pickle *pickle, uint32_t row, ms_fault *fault,
                      const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
