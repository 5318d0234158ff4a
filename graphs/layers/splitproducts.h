/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_SPLITPRODUCTS_H
#define MS_GRAPHS_SPLITPRODUCTS_H

/* Private to graphs/: the products of layers, whether ranks split them or not
 * (graphs/parallel/shards.h).  Where nothing is split they are lora.h's. */

#include "graphs/parallel/shards.h"
#include "graphs/trace/tensors.h"

/* A linear layer whose weight is there: this rank's part. */
uint32_t ms_splitproducts_linear(ms_trace *trace, const ms_layer *layer,
                                 const char *role, uint32_t x, uint32_t weight,
                                 uint32_t bias, ms_split split);
/* The same, whose weight and, where biased, bias it makes: x [..., in] gives
 * [..., width], the part of this rank. */
uint32_t ms_splitproducts_product(ms_trace *trace, const ms_layer *layer,
                                  const char *const roles[2], bool biased,
                                  uint32_t x, int64_t width, ms_split split);

#endif
