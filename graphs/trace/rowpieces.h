/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ROWPIECES_H
#define MS_GRAPHS_ROWPIECES_H

/* Private to graphs/: products in pieces of their rows, beside which other
 * pieces come or go.
 *
 * A tensor is gathered of T ranks, and products read it: all rows but the last
 * of T pieces are multiplied while the others come, beginning with the piece
 * that is here.  In a queue that takes g ns for a piece of all these products
 * and s for what comes that is max((T - 1) g, s) + g.  So the first products,
 * up to (T - 1) / T of what all of them do, wait for nothing, the one in which
 * this share ends is told in two, and what follows waits for what comes.
 *
 *     q, k, v of 6, 1 and 1 columns, T = 4      q 6 | k 0 of 1 | waits
 *     gate, up of 4 and 4                       gate 4 | up 2 of 4 | waits 2 */

#include "graphs/trace/trace.h"

/* The op has `now` of `all` of what it did, so many FLOPs, in kernels of one of
 * `rows` pieces of its rows each. */
void ms_rowpieces_narrow(ms_trace *trace, uint32_t op, double flops,
                         uint32_t now, uint32_t all, uint32_t rows);
/* The product that has just ended, of which only `now` of `all` was done so
 * far, in one of `rows` pieces each: the rest of it is a product of its own,
 * which writes where the first one does. */
void ms_rowpieces_rest(ms_trace *trace, uint32_t op, uint32_t now, uint32_t all,
                       uint32_t rows);

/* What has ended since op began lasts until the last op has run, which reads it
 * again. */
void ms_rowpieces_drop_later(ms_trace *trace, uint32_t op);

/* Products that read `whole`, so many columns in all (0: one product), begin
 * with `part`, which is here: a reference until they are there. */
void ms_rowpieces_wait(ms_trace *trace, uint32_t whole, uint32_t part,
                       uint32_t columns, uint32_t ranks);
/* Do products that read the tensor wait so? */
bool ms_rowpieces_awaits(const ms_trace *trace, uint32_t rows);
/* The product that has just ended read these rows. */
void ms_rowpieces_product(ms_trace *trace, uint32_t rows);
/* No more products come. */
void ms_rowpieces_close(ms_trace *trace);

#endif
