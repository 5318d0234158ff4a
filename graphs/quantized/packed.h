/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PACKED_H
#define MS_GRAPHS_PACKED_H

/* Private to graphs/: what is frozen, and frozen weights in 4 or 8 bits
 * (frozen.blocks, frozen.base; lora.base beside adapters).  Frozen parameters
 * have no gradient and no state; what only their gradients need is not saved,
 * and backward ends at the first block that is trained.  Inference freezes all.
 * Weights of linear layers other than the head may be held in few bits; each
 * product then makes the weight anew in the format of its input, in forward and
 * in backward (bitsandbytes, autograd/_functions.py, MatMul4Bit):
 *
 *     [4096, 4096], nf4: 8388608 + 262144 + 4096 + 68 bytes, 0.516 an element,
 *     and while a product runs 2 an element; for the maxima 4 in 64 */

#include "graphs/trace/tensors.h"
#include "graphs/training.h"

/* MS_EUSAGE where settings contradict each other or the model. */
ms_err ms_packed_check(const ms_training *training, const ms_model *model,
                       ms_fault *fault);
/* The same for what policies decide. */
ms_err ms_packed_refuse(const ms_trace *trace);
/* Is the layer's weight, just made, one held in few bits? */
bool ms_packed_takes(const ms_trace *trace, const ms_layer *layer);
/* linear of it; from now on it is. */
uint32_t ms_packed_linear(ms_trace *trace, uint32_t x, uint32_t weight,
                          uint32_t bias);

#endif
