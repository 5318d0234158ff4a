/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What differs between the values of training.framework, one row each.  Who
 * asks for the framework in graphs/ or policies/ adds a row here;
 * tests/unit/test_frameworks.c holds each row against what the code does. */

#include "graphs/training.h"

const ms_framework_row ms_frameworks_rows[] = {
    {"second gradient of a tensor",
     {"added out of place: the old one, the new one and their sum live",
      "added in place, unless the first is a view, shared or not dense", NULL},
     "1.13 measured; can_accumulate_inplace of 2.x; recorded GPU steps"},
    {"mean over dimensions",
     {"saves its input", NULL, "saves nothing"},
     "recorded GPU steps: 2.0 and 2.1 save, 2.6 and 2.11 do not"},
    {"addmm on CUDA (a linear layer with bias)",
     {"1 MiB of cublasLt workspace in each call", NULL,
      "1 MiB of cublasLt workspace per thread, which stays"},
     "recorded GPU steps: 2.0 to 2.3, 2.11; 1.13 taken to be as 2.0"},
    {"autocast in inference",
     {"the cast of a weight is kept to the end of forward", NULL,
      "each op casts its weights anew"},
     "a recorded GPU step of 2.11"},
    {"optimizer_impl=auto on CUDA",
     {"loop", "foreach", "foreach; AdamW fused, as trainers ask for it"},
     "documentation of torch.optim; transformers training_args.py; torchtitan"},
    {"foreach Adam and AdamW",
     {"two lists of all parameters: roots and quotients", NULL,
      "one list: the quotients are taken in place (Adagrad: three and two)"},
     "1.13 measured; pytorch pull request 104780 (2.1); a recorded GPU step"},
    {"weight_decay with lists (Adam, RMSprop, Adagrad; SGD always copies)",
     {"added to the gradients in place", "a list of copies of all gradients",
      "Adam's ends before the roots of the second moments"},
     "1.13 measured; torch/optim of 2.0 and 2.x"},
    {"clip_norm on CUDA",
     {"the norm of one gradient after the other",
      "lists, all norms in one tensor", "lists, a tensor for each norm"},
     "torch/nn/utils/clip_grad.py; ATen/native/cuda/ForeachReduceOp.cu"},
    {"optimizer step on the CPU",
     {"a record for the profiler, 288 and 4 bytes", "no record", NULL},
     "1.13 measured"},
    {"checkpoint without a variant",
     {"reentrant, the default of 1.13",
      "nonreentrant, which PyTorch recommends", NULL},
     "documentation of torch.utils.checkpoint"},
    {"checkpoint without early_stop",
     {"a replay runs the whole segment",
      "a replay ends with the last tensor needed", NULL},
     "pytorch pull request 96866 (2.1)"},
};
const uint32_t ms_frameworks_n =
    sizeof ms_frameworks_rows / sizeof *ms_frameworks_rows;
