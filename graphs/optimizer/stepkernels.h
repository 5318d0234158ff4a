/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_STEPKERNELS_H
#define MS_GRAPHS_STEPKERNELS_H

/* Private to optimstep.c: the optimizer step under way, and what one of its ops
 * does to one parameter. */

#include "graphs/optimizer/optimtable.h"

enum {
    MS_STEP_OF_GRAD = MS_N_TEMPORARIES,
    MS_STEP_OF_WEIGHT,
    MS_STEP_N_VARIABLES
};

typedef struct ms_step {
    ms_trace *trace;
    const ms_optimizer_row *row;
    bool mixed, foreach, fused;
    uint32_t first, end; /* parameters that it is about */
    /* Per parameter: the gradient that the update reads (MS_NONE: backward
     * made none and the step passes it over, as torch does) and the weight that
     * it writes. */
    uint32_t *grads, *weights;
    /* Variables: of lists one for each parameter, in a loop the first.  The
     * last two are what stands for the gradient and the weight. */
    uint32_t *names[MS_STEP_N_VARIABLES];
    uint32_t *made; /* by the op under way, not yet named */
} ms_step;
/* What one op does to one parameter, within an open op. */
typedef void (*ms_step_kernel)(ms_step *s, const ms_step_op *op, uint32_t p);

/* The variable that an operand is, or that stands for it. */
uint32_t ms_stepkernels_variable(uint32_t which);
uint32_t ms_stepkernels_temporary(ms_step *s, const char *role, uint64_t bytes,
                                  uint32_t p);
/* Does the update read main gradients, which last? */
bool ms_stepkernels_has_main_grads(const ms_trace *trace);
void ms_stepkernels_run(ms_step *s, const ms_step_op *op, uint32_t p);
/* Gradients to fp32, a fused update, 16-bit weights from master copies. */
void ms_stepkernels_cast(ms_step *s, const ms_step_op *op, uint32_t p);
void ms_stepkernels_fuse(ms_step *s, const ms_step_op *op, uint32_t p);
void ms_stepkernels_copy(ms_step *s, const ms_step_op *op, uint32_t p);
/* FLOPs of an op on one parameter; a product says its sizes. */
double ms_stepkernels_flops(const ms_step *s, const ms_step_op *op, uint32_t p);

#endif
