/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PARTLOOKUP_H
#define MS_GRAPHS_PARTLOOKUP_H

/* Private to graphs/: an embedding whose rows ranks divide.  Each looks the ids
 * up that it has, the first row for the others, overwrites these with zeros,
 * and the results are summed, or scattered along the sequence
 * (Megatron-LM@d98e8a64, core/tensor_parallel/layers.py,
 * VocabParallelEmbedding; torch/distributed/tensor/_ops/_embedding_ops.py,
 * MaskPartial, does the same). */

#include "graphs/trace/tensors.h"

/* ids [batch, sequence], weight [rows, width], this rank's part. */
uint32_t ms_partlookup_embedding(ms_trace *trace, uint32_t weight,
                                 uint32_t ids);

#endif
