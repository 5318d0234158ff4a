/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernels of cross entropy that read logits in memory. */
#include "graphs/layers/headloss.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/partloss.h"
#include "graphs/parallel/shards.h"
#include "graphs/trace/trace.h"

uint32_t ms_losskernels_targets(ms_trace *trace, uint32_t logits)
{
    const ms_tensor *x = ms_trace_at(trace, logits);
    int64_t dims[MS_MAX_DIMS] = {x->size[0]};
    uint32_t n = x->n_dims - 1u, first = ms_loss_is_image(x) ? 2 : 1;
    for (uint32_t d = 1; d < n; d++)
        dims[d] = x->size[d + first - 1];
    return ms_trace_input(trace, "target", MS_INT64, n, dims);
}

uint32_t ms_losskernels_hand_on(ms_trace *trace, uint32_t x, uint32_t weight)
{
    (void)trace, (void)weight;
    return x;
}

/* ---- PyTorch's ops ------------------------------------------------------- */

/* labels[..., 1:].contiguous().  Where the loss counts all logits, the labels
 * were padded before by one that it ignores.  The target is used up. */
static uint32_t shifted_labels(ms_trace *trace, uint32_t target, bool padded)
{
    uint32_t whole = target;
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, target);
    if (padded) {
        like.size[like.n_dims - 1]++;
        ms_trace_begin(trace, "aten::constant_pad_nd");
        ms_trace_read(trace, target);
        whole =
            ms_trace_make(trace, "padded", like.dtype, like.n_dims, like.size);
        ms_trace_end(trace, 0, false);
        whole = ms_trace_rebind(trace, target, whole);
    }
    like.size[like.n_dims - 1]--;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, whole);
    uint32_t y =
        ms_trace_make(trace, "labels", like.dtype, like.n_dims, like.size);
    ms_trace_end(trace, 0, false);
    return ms_trace_rebind(trace, whole, y);
}

/* logits[..., :-1, :].contiguous(); x is used up. */
static uint32_t all_but_last(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    int64_t length = ms_trace_at(trace, x)->size[1];
    uint32_t part = ms_view_slice(trace, x, 1, length - 1);
    ms_trace_drop(trace, x);
    return ms_trace_rebind(trace, part, ms_view_contiguous(trace, part));
}

static uint32_t by_ops(ms_trace *trace, const ms_cross_entropy *how,
                       uint32_t logits)
{
    uint32_t x = logits, target = ms_losskernels_targets(trace, logits);
    if (how->upcasts)
        x = ms_cast_to(trace, x, MS_FLOAT32);
    else
        ms_trace_ref(trace, x);
    if (how->shift == MS_SHIFT_LOGITS)
        x = all_but_last(trace, x);
    ms_trace_ref(trace, target);
    if (how->shift != MS_SHIFT_NONE)
        target = shifted_labels(trace, target, how->shift == MS_SHIFT_LABELS);
    uint32_t loss = how->smooths
                        ? ms_loss_smoothed_cross_entropy(trace, x, target)
                    : ms_shards_split(trace) == MS_SPLIT_VOCABULARY
                        ? ms_partloss_cross_entropy(trace, x, target)
                        : ms_loss_cross_entropy(trace, x, target);
    ms_trace_drop(trace, target);
    ms_trace_drop(trace, x);
    return loss;
}

const ms_loss_kernel ms_losskernels_eager = {.name = "eager", .loss = by_ops};

/* ---- one kernel ---------------------------------------------------------- */

static uint32_t in_place(ms_trace *trace, const ms_cross_entropy *how,
                         uint32_t logits)
{
    (void)how;
    return ms_chunkedloss_in_place(trace, logits,
                                   ms_losskernels_targets(trace, logits));
}

const ms_loss_kernel ms_losskernels_liger = {.name = "liger", .loss = in_place};

static uint32_t by_vocabulary(ms_trace *trace, const ms_cross_entropy *how,
                              uint32_t logits)
{
    (void)how;
    if (ms_shards_split(trace) == MS_SPLIT_VOCABULARY)
        ms_partloss_exchange(trace, logits);
    return ms_loss_fused_cross_entropy(trace, logits,
                                       ms_losskernels_targets(trace, logits));
}

const ms_loss_kernel ms_losskernels_megatron = {.name = "megatron",
                                                .loss = by_vocabulary};
