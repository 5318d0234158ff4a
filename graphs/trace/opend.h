/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPEND_H
#define MS_GRAPHS_OPEND_H

/* Private to graphs/: how an op ends whose time is told by a shape
 * (graphs/machines/times/producttime.h, memorytime.h), instead of ms_trace_end.
 */

#include "graphs/trace/trace.h"

/* Matrix products that make the tensor y, by its last two dimensions. */
void ms_opend_product(ms_trace *trace, double flops, uint32_t y);
/* The same of groups of y's rows, each by an operand of its own. */
void ms_opend_grouped(ms_trace *trace, double flops, uint32_t y, double groups);
/* Products in fp8. */
void ms_opend_fp8(ms_trace *trace, double flops, uint32_t y);
/* One kernel of attention, MS_WORK_FLASH or MS_WORK_EFFICIENT, by the FLOPs of
 * its forward: backward has 2.5 times as many (Dao et al. 2022). */
void ms_opend_attention(ms_trace *trace, ms_op_work work, uint32_t queries,
                        double forward_flops, bool backward);
/* A convolution of so many groups, each products that give m x n; of its
 * filter's taps and the sides of its images, input over output (stride). */
typedef struct ms_convolved {
    double groups, m, n, taps, stride, side;
} ms_convolved;
void ms_opend_convolution(ms_trace *trace, double flops, ms_op_work work,
                          const ms_convolved *convolved);
/* A norm or softmax (MS_WORK_ROWS or one behind it), which goes over each row
 * of x, its last dimension, as a whole; more than once where kernels do not
 * keep_rows. */
void ms_opend_rows(ms_trace *trace, double flops, uint32_t x, ms_op_work work);
/* What goes over its bytes once: MS_WORK_SCATTERED, MS_WORK_LISTS. */
void ms_opend_plain(ms_trace *trace, double flops, ms_op_work work);
/* A cast to fp8 of x, which the ops before have just written. */
void ms_opend_cast(ms_trace *trace, double flops, uint32_t x);

#endif
