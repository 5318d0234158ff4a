/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_RUNUNIT_H
#define MS_SIM_RUNUNIT_H

/* Private to sim/expand: a RUN in pieces, between which those of another one
 * may be issued.
 *
 *     ms_unitrun run;
 *     MS_TRY(ms_rununit_begin(books, &at, program, call, &run));
 *     MS_TRY(ms_rununit_go(books, &at, &run, run.next + 5));
 *     MS_TRY(ms_rununit_go(books, &at, &run, run.end));
 *     ms_rununit_end(books, &at, program, call); */

#include "sim/expand/books.h"
#include "sim/expand/calls/turnpairs.h"

typedef struct ms_unitrun {
    uint32_t next, end; /* ops of the graph that are left */
    uint32_t keep;
} ms_unitrun;

/* Of a RUN of no half of backward: what stands before its ops, */
ms_err ms_rununit_begin(ms_books *books, const ms_books_at *at,
                        const ms_program *program, const ms_call *call,
                        ms_unitrun *run);
/* its ops before op `end`, */
ms_err ms_rununit_go(ms_books *books, const ms_books_at *at, ms_unitrun *run,
                     uint32_t end);
/* and what stands behind them all. */
void ms_rununit_end(ms_books *books, const ms_books_at *at,
                    const ms_program *program, const ms_call *call);

/* sides.c: the calls of a pair, side by side.  There are no hooks, nothing is
 * evicted, and what both turns read has come.  next: as ms_turnpairs_at; other:
 * books calls that run no unit. */
ms_err ms_sides_run(ms_books *books, const ms_program *program,
                    const uint32_t *next, const ms_turnpair *pair,
                    ms_messages_call *other);

#endif
