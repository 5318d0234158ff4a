/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/attention/attentioncore.h"
#include "graphs/aten/opcall.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

/* ---- what kernels are given ---------------------------------------------- */

/* k[:, :, None].expand(b, kv_heads, n, t, dim).reshape(b, heads, t, dim) */
static uint32_t repeat_heads(ms_trace *trace, uint32_t x, int64_t heads)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor k = *at(trace, x);
    int64_t n = heads / k.size[1];
    int64_t apart[5] = {k.size[0], k.size[1], 1, k.size[2], k.size[3]};
    int64_t joined[4] = {k.size[0], heads, k.size[2], k.size[3]};
    ms_trace_ref(trace, x);
    for (uint32_t d = 0; d < 2; d++) /* the two ":" of the index */
        x = ms_trace_rebind(trace, x, ms_view_slice(trace, x, d, k.size[d]));
    x = ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 5, apart));
    x = ms_trace_rebind(trace, x, ms_view_expand(trace, x, 2, n));
    return ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 4, joined));
}

/* FlashAttention reads the slopes of ALiBi, one for each head. */
static void add_slopes(ms_trace *trace, const ms_scores *how, int64_t heads)
{
    const int64_t dims[2] = {heads, 1};
    if (how->alibi)
        ms_sharedtables_buffer(trace, "alibi_slopes", MS_FLOAT32, dims);
}

/* PyTorch's kernels are given a window that is narrower than the sequence as a
 * mask of bytes, one for all layers (transformers, sdpa). */
static void add_window(ms_trace *trace, const ms_scores *how, uint32_t q)
{
    int64_t sequence = at(trace, q)->size[2];
    const int64_t dims[2] = {sequence, sequence};
    if (how->code != MS_CODE_AUTO && how->window > 0 && how->window < sequence)
        ms_sharedtables_buffer(trace, "sliding_bytes", MS_BYTE, dims);
}

/* F.pad(v, [0, channels - v.shape[-1]]) */
static uint32_t padded(ms_trace *trace, uint32_t v, int64_t channels)
{
    ms_opcall call = {.op = "aten::constant_pad_nd"};
    if (trace->err)
        return MS_NONE;
    ms_opcall_like(trace, &call.made[0], v);
    call.made[0].size[3] = channels;
    return ms_opcall_run(trace, &call, &v, 1);
}

/* FlashAttention as transformers' code calls it: the values are padded to the
 * width of the keys, and what was added is cut off from the output. */
static uint32_t flash_padded(ms_trace *trace, uint32_t q, uint32_t k,
                             uint32_t v, ms_attended attended)
{
    if (trace->err)
        return MS_NONE;
    int64_t narrow = ms_trace_at(trace, v)->size[3];
    uint32_t wide = padded(trace, v, ms_trace_at(trace, q)->size[3]);
    uint32_t y = ms_attention_flash(trace, q, k, wide, attended);
    ms_trace_drop(trace, wide);
    return ms_trace_rebind(trace, y, ms_view_slice(trace, y, 3, narrow));
}

/* ---- the core ------------------------------------------------------------ */

static const ms_attention_kernel *kernel_of(const ms_trace *trace,
                                            const ms_scores *how)
{
    bool fuses = how->always_fuses || ms_scores_has_kernel(trace, how);
    return fuses && how->bias == MS_NONE ? trace->kernels.attention
                                         : &ms_sdpa_eager;
}

static bool is_narrow(ms_trace *trace, const uint32_t *qkv)
{
    return at(trace, qkv[2])->size[3] < at(trace, qkv[0])->size[3];
}

static void repeat(ms_trace *trace, const ms_scores *how,
                   const ms_attention_kernel *kernel, ms_attended attended,
                   uint32_t *qkv)
{
    int64_t heads = at(trace, qkv[0])->size[1];
    bool same = at(trace, qkv[1])->size[1] == heads;
    bool shares = ms_sdpa_choice(trace, kernel, qkv, attended)->shares_heads &&
                  trace->settings->framework >= kernel->shares_since;
    for (uint32_t i = 1; i < 3 && (!shares || how->repeats) && !same; i++)
        qkv[i] =
            ms_trace_rebind(trace, qkv[i], repeat_heads(trace, qkv[i], heads));
}

uint32_t ms_attentioncore_run(ms_trace *trace, const ms_scores *how,
                              uint32_t qkv[3])
{
    ms_attended attended = {how->causal, how->window, how->dropout};
    const ms_attention_kernel *kernel = kernel_of(trace, how);
    if (trace->err)
        return MS_NONE;
    repeat(trace, how, kernel, attended, qkv);
    if (trace->err)
        return MS_NONE;
    if (kernel->apart)
        return ms_scores_attend(trace, how, qkv);
    if (kernel->takes_slopes)
        add_slopes(trace, how, at(trace, qkv[0])->size[1]);
    if (kernel->masks_windows)
        add_window(trace, how, qkv[0]);
    if (kernel->pads_values && how->code != MS_CODE_AUTO &&
        is_narrow(trace, qkv))
        return flash_padded(trace, qkv[0], qkv[1], qkv[2], attended);
    return ms_sdpa_run(trace, kernel, qkv, attended);
}
