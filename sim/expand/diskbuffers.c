/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The two host buffers through which a swap writes to the disk: a copy out
 * reuses the buffer of the last but one copy, once that has been written to the
 * disk (DeepSpeed's runtime/swap_tensor has such a ring for states).  A
 * tensor's copy on the host lives here from the moment when its write to the
 * disk is issued. */
#include "sim/expand/books.h"

#include <string.h>

#define BUFFERS 2u

struct ms_diskbuffers {
    uint32_t n;                                             /* in use */
    uint32_t row[BUFFERS], cell[BUFFERS], written[BUFFERS]; /* oldest first */
};

uint32_t ms_diskbuffers_free(ms_books *books, const ms_books_at *at)
{
    struct ms_diskbuffers *it =
        books->disk_buffers ? &books->disk_buffers[at->rank] : NULL;
    if (!it || it->n < BUFFERS)
        return MS_NONE;
    uint32_t written = it->written[0];
    ms_books_give(books, it->row[0]);
    it->n--;
    for (uint32_t i = 0; i < it->n; i++) {
        it->row[i] = it->row[i + 1];
        it->cell[i] = it->cell[i + 1];
        it->written[i] = it->written[i + 1];
    }
    return written;
}

ms_err ms_diskbuffers_hold(ms_books *books, const ms_books_at *at, uint32_t row,
                           uint32_t cell)
{
    if (!books->disk_buffers)
        books->disk_buffers = ms_arena_take(books->arena, books->plan->n_ranks,
                                            sizeof *books->disk_buffers);
    if (!books->disk_buffers)
        return ms_fail_nomem(books->fault);
    struct ms_diskbuffers *it = &books->disk_buffers[at->rank];
    it->row[it->n] = row;
    it->cell[it->n] = cell;
    it->written[it->n++] = books->plan->n_ops - 1;
    return MS_OK;
}

uint32_t ms_diskbuffers_row(const ms_books *books, const ms_books_at *at,
                            uint32_t cell)
{
    const struct ms_diskbuffers *it =
        books->disk_buffers ? &books->disk_buffers[at->rank] : NULL;
    for (uint32_t i = it ? it->n : 0; i-- > 0;)
        if (it->cell[i] == cell)
            return it->row[i];
    return MS_NONE;
}

void ms_diskbuffers_end(ms_books *books, uint16_t rank)
{
    struct ms_diskbuffers *it =
        books->disk_buffers ? &books->disk_buffers[rank] : NULL;
    for (uint32_t i = 0; it && i < it->n; i++)
        ms_books_give(books, it->row[i]);
    if (it)
        it->n = 0;
}
