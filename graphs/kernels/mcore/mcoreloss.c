/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/trace/trace.h"

/* What Megatron's functions make besides and let go of (cross_entropy.py and
 * language_module.py, compute_language_model_loss): the labels with the
 * sequence first, and per row the largest logit, a counter, the label's logit
 * and the sum; compiled also the fp32 logits, apart from the exponentials. */
uint32_t ms_mcoreloss_temporaries(ms_trace *trace, const int64_t *dims,
                                  uint32_t *made)
{
    uint32_t n = 0;
    if (trace->settings->training->mcore_loss == MS_MCORE_LOSS_NATIVE)
        made[n++] = ms_trace_make(trace, "logits", MS_FLOAT32, 2, dims);
    if (trace->settings->batch > 1)
        made[n++] = ms_trace_make(trace, "labels", MS_INT64, 1, dims);
    made[n++] = ms_trace_make(trace, "maximum", MS_FLOAT32, 1, dims);
    made[n++] = ms_trace_make(trace, "rows", MS_INT64, 1, dims);
    made[n++] = ms_trace_make(trace, "predicted", MS_FLOAT32, 1, dims);
    made[n++] = ms_trace_make(trace, "sum", MS_FLOAT32, 1, dims);
    return n;
}
