/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_HEADLOSS_H
#define MS_GRAPHS_HEADLOSS_H

/* Private to graphs/: kernels of cross entropy, and those of them that take
 * the head with them, so that all logits never exist at once (liger_linear) or
 * exist in pieces (ce_with_chunked_output).
 *
 *     {"type": "linear", "name": "head", "out": 1000, "bias": false},
 *     {"type": "cross_entropy", "kernel": "liger_linear"}
 *
 * A layer's own "kernel" counts before training.loss_kernel, and that before
 * the kernel set.  What chooses a kernel of head and loss asks for a head that
 * it can have: a linear layer without bias that nothing else reads.  The walk
 * finds it once (open); the linear layer then makes its weight and either hands
 * its input on or makes the pieces, the loss does the rest. */

#include "graphs/trace/stepsettings.h"

/* Of ms_losslayers_cross_entropy_fields, training.loss_kernel and the families'
 * "loss". */
#define MS_HEADLOSS_WORDS                                                      \
    "auto|eager|liger|megatron|liger_linear|ce_with_chunked_output|"           \
    "ce_with_chunked_output_compiled"
typedef enum ms_loss_kernel {
    MS_LOSS_AUTO,
    MS_LOSS_EAGER,
    MS_LOSS_LIGER,    /* the logits become their gradient in forward */
    MS_LOSS_MEGATRON, /* vocabulary-parallel */
    MS_LOSS_LIGER_LINEAR,
    MS_LOSS_CHUNKED_OUTPUT,  /* torchtune's CEWithChunkedOutputLoss */
    MS_LOSS_CHUNKED_COMPILED /* the same, as its compile_loss leaves it */
} ms_loss_kernel;

/* headchoice.c: finds the head that the model's loss takes with it; MS_EINPUT
 * where the chosen kernel cannot have it, MS_EUSAGE where a setting changes
 * nothing. */
ms_err ms_headchoice_open(ms_trace *trace);
/* Is layer (trace->layer) that head? */
bool ms_headloss_is_head(const ms_trace *trace);
/* The head's forward: its weight is there. */
uint32_t ms_headloss_head(ms_trace *trace, uint32_t x, uint32_t weight);
/* The loss of that head: x is what head returned, and is used up. */
uint32_t ms_headloss_loss(ms_trace *trace, uint32_t x);
/* What a layer chooses by its own "kernel", or else the user; AUTO: neither
 * does. */
ms_loss_kernel ms_headloss_chosen(const ms_step_settings *settings,
                                  int64_t own);
/* The kernel of a cross_entropy layer. */
ms_loss_kernel ms_headloss_kernel(const ms_trace *trace, const ms_layer *layer,
                                  int64_t own);
/* Does it take the head with it? */
bool ms_headloss_takes_head(ms_loss_kernel kernel);

#endif
