/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LORA_H
#define MS_GRAPHS_LORA_H

/* Private to graphs/: low-rank adapters beside frozen weights (settings
 * lora.*).  With a rank all parameters of the model are frozen: they have no
 * gradient and no state, and what only their gradients need is not saved.  A
 * linear layer that is a target becomes (huggingface/peft,
 * tuners/lora/layer.py, Linear.forward; torchtune's LoRALinear is the same)
 *
 *     y = linear(x, weight, bias)
 *     y = y + linear(linear(dropout(x), A), B) * scaling
 *
 * with A [rank, in] and B [out, rank], of which lora.trains may freeze one:
 * where A is frozen (LoRA-FA) x is not saved.  Frozen weights of linear layers
 * other than the head may be held in 4 or 8 bits (lora.base); each product then
 * makes the weight anew in the format of its input, in forward and in backward
 * (bitsandbytes, autograd/_functions.py, MatMul4Bit).
 *
 * Ranks that split the layer (huggingface/peft, tuners/lora/tp_layer.py,
 * LoraParallelLinear): by columns A is whole and B has the rows of the weight's
 * part, by rows A has its columns, what it gives is summed over the ranks or
 * scattered, and B is whole.
 *
 * Ranks share what adapters have (zero 1, 2); zero:3 and fsdp share frozen
 * weights too, packed ones as they are packed: parts.c. */

#include "graphs/parallel/shards.h"
#include "graphs/trace/tensors.h"

/* Sets what the trace has to know: frozen weights, the adapters' format.
 * MS_EUSAGE where a setting is not known beside them. */
ms_err ms_lora_open(ms_trace *trace);
/* The forward is there: was there a target?  MS_EUSAGE. */
ms_err ms_lora_close(const ms_trace *trace);
/* A linear layer: x [..., in], weight [out, in], bias [out] or MS_NONE.  role:
 * the weight's, "q.weight" or plain "weight". */
uint32_t ms_lora_linear(ms_trace *trace, const ms_layer *layer,
                        const char *role, uint32_t x, uint32_t weight,
                        uint32_t bias);
/* Its two parts: the product with the frozen weight; y and what the adapter
 * beside it gives, where there is one: y is used up. */
uint32_t ms_lora_base(ms_trace *trace, const ms_layer *layer, uint32_t x,
                      uint32_t weight, uint32_t bias);
uint32_t ms_lora_add(ms_trace *trace, const ms_layer *layer, const char *role,
                     uint32_t x, uint32_t weight, uint32_t y, ms_split split);
/* The same, whose weight and, where biased, bias it makes: x [..., in] gives
 * [..., width]; roles of both, the second unread without a bias. */
uint32_t ms_lora_product(ms_trace *trace, const ms_layer *layer,
                         const char *const roles[2], bool biased, uint32_t x,
                         int64_t width);

#endif
