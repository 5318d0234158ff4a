/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_BOOKS_H
#define MS_SIM_BOOKS_H

/* Private to expand.c, bind.c and books.c: the books of a plan under
 * construction.  A cell is a (storage, frame, rank); row[cell] is its live
 * device row or MS_NONE, state[cell] the host references on it. */

#include "sim/sim.h"

enum {
    MS_REF_LOCAL = 1u,
    MS_REF_SAVED = 2u,
    MS_REF_HOLD = 4u, /* a count in bits 2..6 */
    MS_REF_ANY = 0x7fu,
    MS_REF_MADE = 0x80u /* was made at least once */
};

typedef struct ms_books {
    const ms_graph *graph;
    const ms_expand_opts *opts;
    ms_arena *arena;
    ms_plan *plan;
    uint32_t ops_capacity, rows_capacity;
    uint32_t wait_capacity, use_capacity, n_release, n_wait, n_use;
    uint32_t n_cells, n_frames;
    uint32_t *row;      /* device row of a cell */
    uint32_t *host_row; /* NULL unless the program moves storages */
    uint8_t *state;
    uint8_t *first_state; /* per storage: references when made and kept */
    uint32_t *ready_op;   /* per row, with several streams: last writer */
    uint32_t ready_capacity;
    bool streams;    /* more than one stream is in use: record waits */
    uint32_t *stamp; /* per storage or op: last tick that touched it */
    uint32_t *op_stamp;
    uint32_t tick;
    uint32_t *kept; /* per storage: last RUN whose keep set names it */
    uint32_t run;
    uint32_t *work, work_capacity; /* stack of bind */
    ms_fault *fault;
} ms_books;

/* The call in whose name ops are issued. */
typedef struct ms_books_at {
    uint32_t persistent, frame; /* cell = storage + one of these */
    uint32_t micro_batch;
    uint8_t rank;
} ms_books_at;

static inline uint32_t ms_books_cell(const ms_books *books,
                                     const ms_books_at *at, uint32_t storage)
{
    return storage +
           (storage < books->graph->n_persistent ? at->persistent : at->frame);
}

ms_err ms_books_open(ms_books *books, const ms_program *program);
ms_err ms_books_close(ms_books *books);
ms_books_at ms_books_at_of(const ms_books *books, uint8_t rank, uint16_t frame,
                           uint32_t micro_batch);
/* Room for ops more ops, rows more rows (and their releases) and reads. */
ms_err ms_books_reserve(ms_books *books, uint32_t ops, uint32_t rows,
                        uint32_t reads);
/* Starts a plan op; needs reserve. */
uint32_t ms_books_issue(ms_books *books, const ms_books_at *at, uint32_t op,
                        uint8_t pass, uint8_t stream, uint64_t ns);
/* Books a row for storage in the current op; needs reserve. */
uint32_t ms_books_take(ms_books *books, uint32_t storage, uint8_t category,
                       uint8_t pool, bool saved);
/* The host drops a row after the current op. */
static inline void ms_books_give(ms_books *books, uint32_t row)
{
    books->plan->release[books->n_release++] = row;
}
/* Ends the references in bits; releases the row when none is left. */
void ms_books_end(ms_books *books, uint32_t cell, uint8_t bits);
/* The current op reads row: remember the use and wait for its writer. */
void ms_books_read(ms_books *books, uint32_t row);

/* bind.c */
ms_err ms_bind_storage(ms_books *books, const ms_books_at *at, uint32_t storage,
                       uint32_t reader);
ms_err ms_bind_units(ms_books *books, const ms_books_at *at,
                     const ms_call *call);
ms_err ms_bind_move(ms_books *books, const ms_books_at *at, uint32_t storage,
                    uint8_t place);
/* Issues one graph op with its inputs present: see expand.c. */
ms_err ms_expand_op(ms_books *books, const ms_books_at *at, uint32_t op);

#endif
