/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/headloss.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

/* ---- torchtune's pieces -------------------------------------------------- */

/* Rows of each piece: chunk(8) makes all pieces equal but the last. */
static uint32_t sizes_of(int64_t sequence, int64_t *rows)
{
    int64_t each = (sequence + MS_HEAD_CHUNKS - 1) / MS_HEAD_CHUNKS;
    uint32_t n = 0;
    for (; sequence > 0; sequence -= each)
        rows[n++] = sequence < each ? sequence : each;
    return n;
}

/* modules/transformer.py, chunked_output: hidden.chunk(8, dim=1), one product
 * each; the list of logits is the model's output. */
static uint32_t make_chunks(ms_trace *trace, uint32_t x, uint32_t weight)
{
    ms_fused_head *head = &trace->head;
    int64_t rows[MS_HEAD_CHUNKS] = {0};
    uint32_t part[MS_HEAD_CHUNKS];
    if (ms_trace_at(trace, x)->n_dims != 3) {
        ms_trace_fail(trace, &trace->settings->model->layers[head->layer],
                      "choose another kernel of cross entropy",
                      "\"%s\" has no sequence that ce_with_chunked_output "
                      "could cut",
                      trace->settings->model->layers[head->layer].name);
        return MS_NONE;
    }
    uint32_t n = sizes_of(ms_trace_at(trace, x)->size[1], rows);
    ms_split_sizes(trace, x, 1, n, rows, part);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        head->chunk[head->n_chunks++] =
            ms_matmul_linear(trace, part[i], weight, MS_NONE);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, part[i]);
    return trace->err ? MS_NONE : head->chunk[0];
}

/* [chunk.reshape(-1) for chunk in labels.chunk(8, dim=1)] */
static void split_target(ms_trace *trace, uint32_t target, uint32_t *parts)
{
    for (uint32_t i = 0; i < trace->head.n_chunks && !trace->err; i++) {
        const ms_tensor *logits = ms_trace_at(trace, trace->head.chunk[i]);
        int64_t rows = logits->size[0] * logits->size[1];
        uint32_t part = ms_view_slice(trace, target, 1, logits->size[1]);
        parts[i] = ms_view_reshape(trace, part, 1, &rows);
        ms_trace_drop(trace, part);
    }
}

/* F.cross_entropy(logits.float(), labels) of a chunk, which is what
 * training/_compile.py, compile_loss, compiles. */
static uint32_t chunk_loss(ms_trace *trace, uint32_t logits, uint32_t labels)
{
    uint32_t wide = ms_cast_to(trace, logits, MS_FLOAT32);
    uint32_t loss = ms_loss_cross_entropy(trace, wide, labels);
    ms_trace_drop(trace, wide);
    return loss;
}

/* modules/loss/ce_chunked_output_loss.py: each chunk is cast to fp32 only when
 * its loss is computed, and its log-probabilities stay for backward; the logits
 * are deleted after the loss. */
static uint32_t chunked_output(ms_trace *trace, uint32_t target)
{
    uint32_t labels[MS_HEAD_CHUNKS], n = trace->head.n_chunks, sum = MS_NONE;
    split_target(trace, target, labels);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        uint32_t loss =
            trace->head.kernel->chunk(trace, trace->head.chunk[i], labels[i]);
        uint32_t next = i == 0 ? ms_pointwise_add_scalar(trace, loss)
                               : ms_pointwise_add(trace, sum, loss);
        ms_trace_drop(trace, loss);
        ms_trace_drop(trace, sum);
        sum = next;
    }
    uint32_t loss = ms_pointwise_div_scalar(trace, sum);
    ms_trace_drop(trace, sum);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, labels[i]);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, trace->head.chunk[i]);
    return loss;
}

/* ---- the kernels --------------------------------------------------------- */

/* One target for each row of the logits; x is the first chunk of them. */
static uint32_t targets(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor rows = *ms_trace_at(trace, x);
    for (uint32_t i = 1; i < trace->head.n_chunks; i++)
        rows.size[1] += ms_trace_at(trace, trace->head.chunk[i])->size[1];
    return ms_trace_input(trace, "target", MS_INT64, rows.n_dims - 1u,
                          rows.size);
}

static uint32_t linear_loss(ms_trace *trace, const ms_cross_entropy *how,
                            uint32_t x)
{
    uint32_t target = targets(trace, x);
    (void)how;
    uint32_t loss = ms_chunkedloss_linear(trace, x, trace->head.weight, target);
    ms_trace_drop(trace, x);
    return loss;
}

static uint32_t chunks_loss(ms_trace *trace, const ms_cross_entropy *how,
                            uint32_t x)
{
    uint32_t target = targets(trace, x);
    (void)how;
    uint32_t loss = chunked_output(trace, target);
    ms_trace_drop(trace, x);
    return loss;
}

const ms_loss_kernel ms_headloss_liger_linear = {
    .name = "liger_linear",
    .loss = linear_loss,
    .head = ms_losskernels_hand_on,
    .headless = &ms_losskernels_liger,
};
const ms_loss_kernel ms_headloss_chunked = {
    .name = "ce_with_chunked_output",
    .loss = chunks_loss,
    .head = make_chunks,
    .headless = &ms_losskernels_eager,
    .chunk = chunk_loss,
};
const ms_loss_kernel ms_headloss_compiled = {
    .name = "ce_with_chunked_output_compiled",
    .loss = chunks_loss,
    .head = make_chunks,
    .headless = &ms_losskernels_eager,
    .chunk = ms_compiledloss_cross_entropy,
};

/* ---- which kernel -------------------------------------------------------- */

const ms_loss_kernel *ms_headloss_named(int64_t word)
{
    static const ms_loss_kernel *const kernels[] = {NULL,
                                                    &ms_losskernels_eager,
                                                    &ms_losskernels_liger,
                                                    &ms_losskernels_megatron,
                                                    &ms_headloss_liger_linear,
                                                    &ms_headloss_chunked,
                                                    &ms_headloss_compiled,
                                                    &ms_tiledloss};
    return kernels[word];
}

const ms_loss_kernel *ms_headloss_kernel(const ms_trace *trace,
                                         const ms_layer *layer, int64_t own)
{
    /* The set has what training.loss_kernel says. */
    const ms_loss_kernel *kernel =
        own > 0 ? ms_headloss_named(own) : trace->kernels.loss;
    return kernel->head && layer != trace->head.loss ? kernel->headless
                                                     : kernel;
}

/* ---- the head ------------------------------------------------------------ */

bool ms_headloss_is_head(const ms_trace *trace)
{
    return trace->layer == trace->head.layer;
}

uint32_t ms_headloss_head(ms_trace *trace, uint32_t x, uint32_t weight)
{
    if (trace->err)
        return MS_NONE;
    trace->head.weight = weight;
    x = trace->head.kernel->head(trace, x, weight);
    ms_trace_ref(trace, x);
    return x;
}
