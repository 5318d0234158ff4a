/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_HEADLOSS_H
#define MS_GRAPHS_HEADLOSS_H

/* Private to graphs/: kernels of cross entropy, and those of them that take
 * the head with them, so that all logits never exist at once (liger_linear) or
 * exist in pieces (tiled: one after the other; ce_with_chunked_output).
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

typedef struct ms_trace ms_trace; /* trace.h */

/* Of ms_losslayers_cross_entropy_fields, training.loss_kernel and the families'
 * "loss". */
#define MS_HEADLOSS_WORDS                                                      \
    "auto|eager|liger|megatron|liger_linear|ce_with_chunked_output|"           \
    "ce_with_chunked_output_compiled|tiled"

/* What a cross_entropy layer says of its loss. */
typedef enum ms_label_shift {
    MS_SHIFT_NONE,
    MS_SHIFT_LABELS,
    MS_SHIFT_LOGITS
} ms_label_shift;
typedef struct ms_cross_entropy {
    bool upcasts, smooths;
    uint8_t shift; /* ms_label_shift */
} ms_cross_entropy;

typedef struct ms_loss_kernel {
    const char *name;
    /* x [..., classes], or what head has returned, then it is used up. */
    uint32_t (*loss)(ms_trace *trace, const ms_cross_entropy *how, uint32_t x);
    /* Of those that take the head with them, else NULL: the head's forward,
     * whose weight is there, and the kernel of a loss that has none. */
    uint32_t (*head)(ms_trace *trace, uint32_t x, uint32_t weight);
    const struct ms_loss_kernel *headless;
    /* In pieces: the loss of one. */
    uint32_t (*chunk)(ms_trace *trace, uint32_t logits, uint32_t labels);
} ms_loss_kernel;
/* losskernels.c: PyTorch's ops; Liger's, where the logits become their gradient
 * in forward; Megatron's, vocabulary-parallel. */
extern const ms_loss_kernel ms_losskernels_eager, ms_losskernels_liger,
    ms_losskernels_megatron;
/* A class per row, or per pixel of [batch, classes, height, width]. */
uint32_t ms_losskernels_targets(ms_trace *trace, uint32_t logits);
/* headloss.c: Liger's; torchtune's CEWithChunkedOutputLoss, and the same as its
 * compile_loss leaves it. */
extern const ms_loss_kernel ms_headloss_liger_linear, ms_headloss_chunked,
    ms_headloss_compiled;
/* tiledloss.c: DeepSpeed's, by PyTorch's ops. */
extern const ms_loss_kernel ms_tiledloss;
/* A head that hands its input on: the loss multiplies by the weight itself. */
uint32_t ms_losskernels_hand_on(ms_trace *trace, uint32_t x, uint32_t weight);
/* By MS_HEADLOSS_WORDS; NULL: auto. */
const ms_loss_kernel *ms_headloss_named(int64_t word);

/* headchoice.c: finds the head that the model's loss takes with it; MS_EINPUT
 * where the chosen kernel cannot have it, MS_EUSAGE where a setting changes
 * nothing. */
ms_err ms_headchoice_open(ms_trace *trace);
/* Is layer (trace->layer) that head? */
bool ms_headloss_is_head(const ms_trace *trace);
/* The head's forward: its weight is there. */
uint32_t ms_headloss_head(ms_trace *trace, uint32_t x, uint32_t weight);
/* The kernel of a cross_entropy layer.  own: its "kernel". */
const ms_loss_kernel *ms_headloss_kernel(const ms_trace *trace,
                                         const ms_layer *layer, int64_t own);

#endif
