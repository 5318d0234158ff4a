/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotary embedding, by a kernel or as the code of models computes it. */
#include "graphs/layers/attention/rotation.h"
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* ---- cosines and sines --------------------------------------------------- */

/* Rotates only the first channels of each head. */
static uint32_t rotate_part(ms_trace *trace, uint32_t x, int64_t turning,
                            uint32_t cos, uint32_t sin)
{
    if (trace->err)
        return MS_NONE;
    int64_t dim = ms_trace_at(trace, x)->size[3];
    if (turning == dim)
        return ms_rotary_eager(trace, x, cos, sin);
    uint32_t first = ms_view_slice(trace, x, 3, turning);
    uint32_t parts[2] = {ms_rotary_eager(trace, first, cos, sin),
                         ms_view_slice(trace, x, 3, dim - turning)};
    ms_trace_drop(trace, first);
    uint32_t y = ms_view_cat(trace, parts, 2, 3);
    ms_trace_drop(trace, parts[0]);
    ms_trace_drop(trace, parts[1]);
    return y;
}

void ms_rotation_run(ms_trace *trace, int64_t code, int64_t dim, uint32_t *x,
                     uint32_t n)
{
    bool apart = ms_layers_is_apart(trace->kernels.rotary, code);
    bool halves = apart && ms_modelcodes[code].rotates_halves;
    if (trace->err)
        return;
    if (halves)
        dim /= 2; /* the tables have a column for each pair of channels */
    int64_t sequence = ms_trace_at(trace, x[0])->size[2];
    uint32_t cos = ms_sharedtables_rows(trace, "rotary_cos", sequence, dim);
    uint32_t sin = ms_sharedtables_rows(trace, "rotary_sin", sequence, dim);
    for (uint32_t i = 0; i < n; i++)
        x[i] =
            ms_trace_rebind(trace, x[i],
                            halves  ? ms_rotary_halves(trace, x[i], cos, sin)
                            : apart ? rotate_part(trace, x[i], dim, cos, sin)
                                    : ms_rotary_fused(trace, x[i], cos, sin));
    ms_trace_drop(trace, cos);
    ms_trace_drop(trace, sin);
}

ms_err ms_rotation_forward(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    bool eager = ms_kernels_apart(trace->kernels.rotary, false);
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (x->n_dims != 4 || x->size[3] % 2 != 0)
        return ms_trace_fail(
            trace, layer, "the last dimension must be even",
            "\"%s\" rotates [heads, sequence, dim], but \"%s\" "
            "gives %s",
            layer->name, ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(x, shape));
    int64_t sequence = x->size[2], dim = x->size[3];
    /* The fused kernel overwrites its input, which must not be saved. */
    if (!eager)
        MS_TRY(ms_layers_need_unsaved(trace, layer, in[0]));
    uint32_t cos = ms_sharedtables_rows(trace, "rotary_cos", sequence, dim);
    uint32_t sin = ms_sharedtables_rows(trace, "rotary_sin", sequence, dim);
    *out = eager ? ms_rotary_eager(trace, in[0], cos, sin)
                 : ms_rotary_fused(trace, in[0], cos, sin);
    ms_trace_drop(trace, cos);
    ms_trace_drop(trace, sin);
    return trace->err;
}

/* ---- complex numbers: what all layers share ------------------------------ */

static uint32_t find_shared(const ms_trace *trace, const char *role,
                            int64_t columns)
{
    for (const ms_shared_buffer *b = trace->shared; b; b = b->next)
        if (strcmp(b->role, role) == 0 &&
            ms_trace_at(trace, b->tensor)->size[1] == columns)
            return b->tensor;
    return MS_NONE;
}

static void remember(ms_trace *trace, const char *role, uint32_t tensor)
{
    ms_shared_buffer *item = ms_arena_take(trace->scratch, 1, sizeof *item);
    if (!item && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    if (trace->err)
        return;
    *item = (ms_shared_buffer){role, tensor, trace->shared};
    trace->shared = item;
}

/* The table freqs_cis, cosines and sines of all positions as complex64
 * [longest, dim / 2]. */
static uint32_t table_of(ms_trace *trace, int64_t sequence, int64_t dim)
{
    uint32_t table = find_shared(trace, "freqs_cis", dim);
    int64_t dims[2] = {ms_sharedtables_longest(trace->settings, sequence), dim};
    if (table == MS_NONE) {
        table = ms_trace_buffer(trace, "freqs_cis", MS_FLOAT32, 2, dims);
        remember(trace, "freqs_cis", table);
    }
    return table;
}

/* The positions of the tokens within their samples, which the loader of packed
 * samples makes for the batch. */
static uint32_t positions_of(ms_trace *trace, int64_t batch, int64_t sequence)
{
    uint32_t positions = find_shared(trace, "input_pos", sequence);
    int64_t dims[2] = {batch, sequence};
    if (positions == MS_NONE) {
        positions = ms_trace_input(trace, "input_pos", MS_INT64, 2, dims);
        remember(trace, "input_pos", positions);
    }
    return positions;
}

/* ---- a sample a sequence ------------------------------------------------- */

/* view_as_real(view_as_complex(x.float()) * freqs_cis).type_as(x) of q and k:
 * meta-llama/llama and pytorch/torchtitan model.py, apply_rotary_emb, whose
 * variables all live to its end. */
static void rotate_both(ms_trace *trace, uint32_t whole, uint32_t qk[2])
{
    uint32_t wide[2], turned[2];
    if (trace->err)
        return;
    ms_tensor q = *ms_trace_at(trace, qk[0]);
    uint32_t table = ms_view_slice(trace, whole, 0, q.size[2]);
    for (int i = 0; i < 2; i++)
        wide[i] = ms_cast_to(trace, qk[i], MS_FLOAT32);
    for (int i = 0; i < 2; i++)
        turned[i] = ms_pointwise_mul(trace, wide[i], table);
    for (int i = 0; i < 2; i++)
        qk[i] = ms_trace_rebind(trace, qk[i],
                                ms_cast_to(trace, turned[i], q.dtype));
    for (int i = 0; i < 2; i++) {
        ms_trace_drop(trace, wide[i]);
        ms_trace_drop(trace, turned[i]);
    }
    ms_trace_drop(trace, table);
}

/* ---- samples packed into one sequence ------------------------------------ */

/* In packed samples the position of a token in its sample is not its position
 * in the sequence.  The rows of the table that the tokens need are copied, for
 * q and again for k, and saved: 8 bytes per token and pair of channels
 * (pytorch/torchtune, modules/position_embeddings.py,
 * RotaryPositionalEmbeddings.forward with input_pos, which multiplies in parts
 * what is one product here). */
static uint32_t rotate_packed(ms_trace *trace, uint32_t x, uint32_t table,
                              uint32_t positions)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor in = *ms_trace_at(trace, x);
    int64_t dims[4] = {in.size[0], 1, in.size[2], in.size[3]};
    ms_trace_begin(trace, "aten::index");
    ms_trace_read(trace, positions);
    ms_trace_read_storage(trace, ms_trace_at(trace, table)->storage,
                          4 * (uint64_t)(dims[0] * dims[2] * dims[3]));
    uint32_t rows = ms_trace_make(trace, "rope_cache", MS_FLOAT32, 4, dims);
    ms_trace_end(trace, 0, false);
    uint32_t wide = ms_cast_to(trace, x, MS_FLOAT32);
    uint32_t turned = ms_pointwise_mul(trace, wide, rows);
    ms_trace_drop(trace, wide);
    ms_trace_drop(trace, rows);
    uint32_t y = ms_cast_to(trace, turned, in.dtype);
    ms_trace_drop(trace, turned);
    return y;
}

void ms_rotation_complex(ms_trace *trace, int64_t dim, bool packed,
                         uint32_t qk[2])
{
    if (trace->err)
        return;
    ms_tensor q = *ms_trace_at(trace, qk[0]);
    uint32_t table = table_of(trace, q.size[2], dim);
    if (!packed) {
        rotate_both(trace, table, qk);
        return;
    }
    uint32_t positions = positions_of(trace, q.size[0], q.size[2]);
    for (int i = 0; i < 2; i++)
        qk[i] = ms_trace_rebind(trace, qk[i],
                                rotate_packed(trace, qk[i], table, positions));
}
