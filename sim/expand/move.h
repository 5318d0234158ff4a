/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_MOVE_H
#define MS_SIM_MOVE_H

/* Private to sim/expand and sim/fold: copies between memories, ops of other
 * streams than the compute stream.  What is shared moves as this rank's part.
 *
 * A worked example: a weight of 8 MiB comes from the host, at 32 GiB/s and with
 * a latency of 10 us: one op on the stream H2D of 254 us, a transfer of so many
 * bytes, and a row on the device. */

#include "sim/expand/books.h"

ms_err ms_move_storage(ms_books *books, const ms_books_at *at, uint32_t storage,
                       ms_move_call how);
ms_err ms_move_wait(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n, uint32_t buffer);
/* Says that the op to be issued moves so many bytes. */
ms_err ms_move_note(ms_books *books, ms_transfer_kind kind, uint64_t bytes);
/* The same of an op of the graph, which copies if its stream does. */
ms_err ms_move_note_step(ms_books *books, uint32_t op);
/* The destination of a gather or of a copy from the host may lie in memory that
 * ops of the compute stream still use when the host hands it out: the current
 * op starts after them. */
void ms_move_after_compute(ms_books *books, const ms_books_at *at);
/* The host waits for the last copies of these, or as call's flags and buffer
 * say; n = 0 without: for everything. */
ms_err ms_move_sync(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n, const ms_call *call);
/* One copy of a storage between memories (how.to is not looked at); the op that
 * copies reads one row and makes one row. */
ms_err ms_move_copy(ms_books *books, const ms_books_at *at,
                    ms_transfer_kind kind, ms_move_call how, uint32_t storage,
                    uint64_t bytes);
/* How long it takes. */
uint64_t ms_move_copy_ns(const ms_expand_opts *opts, ms_transfer_kind kind,
                         bool pageable, bool straight, uint64_t bytes);
/* One op that moves so many bytes, with room for what it makes and reads. */
ms_err ms_move_issue(ms_books *books, const ms_books_at *at,
                     ms_transfer_kind kind, uint8_t stream, uint64_t bytes,
                     uint64_t ns, uint32_t n);
/* gather.c: the ranks that split layers make whole so many bytes, of which each
 * has a part; with room for n rows. */
ms_err ms_gather_parts(ms_books *books, const ms_books_at *at,
                       const ms_group *ranks, uint64_t bytes, uint32_t n);
/* The copies of what an op of the optimizer step on the host reads. */
ms_err ms_move_to_host(ms_books *books, const ms_books_at *at,
                       uint32_t storage);
/* The whole copy goes; what lasts (the part, or a copy elsewhere) stays. */
void ms_move_let_go(ms_books *books, uint32_t storage, uint32_t cell);

#endif
