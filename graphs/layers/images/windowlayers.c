/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Swin's windows, as torchvision's Python code has them
 * (models/swin_transformer.py: shifted_window_attention,
 * _get_relative_position_bias, _patch_merging_pad), over [height, width,
 * channels]. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

enum { HEADS, WINDOW, SHIFT };
const ms_field ms_windowlayers_fields[MS_WINDOWLAYERS_FIELDS] = {
    {.name = "heads",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "attention heads; must divide the channels"},
    {.name = "window",
     .type = MS_INT,
     .fallback.i = 7,
     .low = 1,
     .high = 1 << 10,
     .help = "height and width of a window"},
    {.name = "shift",
     .type = MS_INT,
     .low = 0,
     .high = 1 << 10,
     .help = "by which the windows are moved round; less than window"},
};

/* The sizes of x [batch, height, width, channels]; rows and columns count
 * windows. */
typedef struct sizes {
    int64_t batch, height, width, channels;
    int64_t heads, window, rows, columns;
    bool moves; /* the windows are shifted: there is more than one */
} sizes;

static int64_t tokens_of(const sizes *n)
{
    return n->window * n->window;
}

/* ---- one op of the table ------------------------------------------------- */

static uint32_t run(ms_trace *trace, const char *op, uint32_t x,
                    uint32_t n_dims, const int64_t *dims, uint8_t dtype)
{
    ms_opcall call = {.op = op};
    if (trace->err)
        return MS_NONE;
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++) {
        call.made[k].dtype = dtype;
        call.made[k].n_dims = (uint8_t)n_dims;
        memcpy(call.made[k].size, dims, n_dims * sizeof *dims);
    }
    return ms_opcall_run(trace, &call, &x, 1);
}

/* F.pad below and to the right.  It copies x even where it adds nothing. */
static uint32_t pad(ms_trace *trace, uint32_t x, int64_t height, int64_t width)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor to = *ms_trace_at(trace, x);
    to.size[1] = height;
    to.size[2] = width;
    return run(trace, "aten::constant_pad_nd", x, 4, to.size, to.dtype);
}

/* From an image to windows, [batch * windows, tokens, channels], or back: the
 * two differ only in their sizes. */
static uint32_t turn(ms_trace *trace, uint32_t x, const int64_t *apart,
                     uint32_t n_dims, const int64_t *dims)
{
    static const uint32_t order[6] = {0, 1, 3, 2, 4, 5};
    uint32_t view = ms_view_reshape(trace, x, 6, apart);
    view = ms_trace_rebind(trace, view, ms_view_permute(trace, view, order));
    return ms_trace_rebind(trace, view,
                           ms_view_reshape(trace, view, n_dims, dims));
}

/* ---- position bias and mask ---------------------------------------------- */

/* table[index].view(t, t, heads).permute(2, 0, 1).contiguous()[None] */
static uint32_t position_bias(ms_trace *trace, const sizes *n)
{
    static const uint32_t order[3] = {2, 0, 1};
    int64_t side = 2 * n->window - 1, tokens = tokens_of(n);
    int64_t table_dims[2] = {side * side, n->heads};
    int64_t count = tokens * tokens;
    int64_t apart[3] = {tokens, tokens, n->heads};
    int64_t whole[4] = {1, n->heads, tokens, tokens};
    uint32_t in[2] = {
        ms_trace_parameter(trace, "position_bias", 2, table_dims),
        ms_trace_buffer(trace, "position_index", MS_INT64, 1, &count)};
    ms_opcall call = {.op = "aten::index"};
    if (trace->err)
        return MS_NONE;
    ms_opcall_like(trace, &call.made[0], in[0]);
    call.made[0].size[0] = count;
    uint32_t y = ms_opcall_run(trace, &call, in, 2);
    y = ms_trace_rebind(trace, y, ms_view_reshape(trace, y, 3, apart));
    y = ms_trace_rebind(trace, y, ms_view_permute(trace, y, order));
    y = ms_trace_rebind(trace, y, ms_view_contiguous(trace, y));
    return ms_trace_rebind(trace, y, ms_view_reshape(trace, y, 4, whole));
}

/* The mask [windows, 1, t, t] of windows that the shift joined from several
 * parts of the image: tokens of different parts do not attend to each other. */
static uint32_t window_mask(ms_trace *trace, const sizes *n, uint8_t dtype)
{
    static const uint32_t order[4] = {0, 2, 1, 3};
    int64_t tokens = tokens_of(n), windows = n->rows * n->columns;
    int64_t image[2] = {n->rows * n->window, n->columns * n->window};
    int64_t apart[4] = {n->rows, n->window, n->columns, n->window};
    int64_t flat[2] = {windows, tokens};
    int64_t pairs[3] = {windows, tokens, tokens};
    int64_t whole[5] = {1, windows, 1, tokens, tokens};
    ms_trace_begin(trace, "aten::new_zeros");
    uint32_t x = ms_trace_make(trace, "mask", dtype, 2, image);
    ms_trace_end(trace, 0, false);
    x = ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 4, apart));
    x = ms_trace_rebind(trace, x, ms_view_permute(trace, x, order));
    x = ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 2, flat));
    x = ms_trace_rebind(trace, x, run(trace, "aten::sub", x, 3, pairs, dtype));
    for (int i = 0; i < 2; i++) {
        ms_trace_begin(trace, i == 0 ? "aten::ne" : "aten::eq");
        ms_trace_read(trace, x);
        uint32_t where = ms_trace_make(trace, "where", MS_BYTE, 3, pairs);
        ms_trace_end(trace, 0, false);
        x = ms_trace_rebind(trace, x,
                            ms_pointwise_masked_fill(trace, x, where));
        ms_trace_drop(trace, where);
    }
    return ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 5, whole));
}

/* a [batch * windows, heads, t, t] plus the mask of each window. */
static uint32_t add_mask(ms_trace *trace, uint32_t a, const sizes *n,
                         uint32_t mask)
{
    int64_t windows = n->rows * n->columns, tokens = tokens_of(n);
    int64_t apart[5] = {n->batch, windows, n->heads, tokens, tokens};
    int64_t joined[4] = {n->batch * windows, n->heads, tokens, tokens};
    a = ms_trace_rebind(trace, a, ms_view_reshape(trace, a, 5, apart));
    a = ms_trace_rebind(trace, a, ms_pointwise_add(trace, a, mask));
    return ms_trace_rebind(trace, a, ms_view_reshape(trace, a, 4, joined));
}

/* ---- attention ----------------------------------------------------------- */

static uint32_t project(ms_trace *trace, uint32_t x, const char *weight_role,
                        const char *bias_role, int64_t out)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {out, ms_layers_last_dim(trace, x)};
    uint32_t weight = ms_trace_parameter(trace, weight_role, 2, dims);
    return ms_matmul_linear(trace, x, weight,
                            ms_layers_vector(trace, bias_role, out));
}

/* softmax(q k^T + bias + mask) v.  The mask is a variable of the caller, where
 * it lives to the end. */
static uint32_t attend(ms_trace *trace, const sizes *n, const uint32_t *qkv,
                       uint32_t bias, uint32_t *mask)
{
    uint32_t keys = ms_view_transpose(trace, qkv[1], 2, 3);
    trace->op_flags |= MS_OP_CORE;
    uint32_t a = ms_matmul_batched(trace, qkv[0], keys);
    ms_trace_drop(trace, keys);
    a = ms_trace_rebind(trace, a, ms_pointwise_add(trace, a, bias));
    if (n->moves && !trace->err) {
        *mask = window_mask(trace, n, ms_trace_at(trace, a)->dtype);
        a = add_mask(trace, a, n, *mask);
    }
    a = ms_trace_rebind(trace, a, ms_norm_softmax(trace, a));
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_matmul_batched(trace, a, qkv[2]);
    ms_trace_drop(trace, a);
    return ms_trace_rebind(trace, y, ms_view_transpose(trace, y, 1, 2));
}

/* x [batch * windows, tokens, channels], through its projections. */
static uint32_t attend_all(ms_trace *trace, const sizes *n, uint32_t x,
                           uint32_t bias)
{
    static const uint32_t order[5] = {2, 0, 3, 1, 4};
    int64_t windows = n->batch * n->rows * n->columns, tokens = tokens_of(n);
    int64_t apart[5] = {windows, tokens, 3, n->heads, n->channels / n->heads};
    int64_t flat[3] = {windows, tokens, n->channels};
    uint32_t qkv[3], mask = MS_NONE;
    uint32_t all = project(trace, x, "qkv.weight", "qkv.bias", 3 * n->channels);
    all = ms_trace_rebind(trace, all, ms_view_reshape(trace, all, 5, apart));
    all = ms_trace_rebind(trace, all, ms_view_permute(trace, all, order));
    for (int i = 0; i < 3; i++)
        qkv[i] = ms_view_select(trace, all, 0);
    qkv[0] =
        ms_trace_rebind(trace, qkv[0], ms_pointwise_mul_scalar(trace, qkv[0]));
    uint32_t y = attend(trace, n, qkv, bias, &mask);
    y = ms_trace_rebind(trace, y, ms_view_reshape(trace, y, 3, flat));
    y = ms_trace_rebind(
        trace, y, project(trace, y, "proj.weight", "proj.bias", n->channels));
    ms_split_drop(trace, 3, qkv);
    ms_trace_drop(trace, mask);
    ms_trace_drop(trace, all);
    return y;
}

/* x[:, :height, :width, :].contiguous().  torch makes no slice of ":height"
 * that takes all, but it makes one of each ":". */
static uint32_t cut(ms_trace *trace, uint32_t x, const sizes *n)
{
    int64_t want[4] = {n->batch, n->height, n->width, n->channels};
    for (uint32_t d = 0; d < 4 && !trace->err; d++)
        if (d == 0 || d == 3 || ms_trace_at(trace, x)->size[d] != want[d])
            x = ms_trace_rebind(trace, x, ms_view_slice(trace, x, d, want[d]));
    return ms_trace_rebind(trace, x, ms_view_contiguous(trace, x));
}

static ms_err find_sizes(ms_trace *trace, const ms_layer *layer, uint32_t input,
                         sizes *n)
{
    const ms_value *field = layer->field;
    int64_t w = field[WINDOW].i;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, input));
    const ms_tensor *x = ms_trace_at(trace, input);
    if (x->n_dims != 4 || x->size[3] % field[HEADS].i != 0)
        return ms_trace_fail(
            trace, layer, "permute it, or choose other heads",
            "\"%s\" needs [height, width, channels] and %lld heads that "
            "divide the channels, but \"%s\" gives %s",
            layer->name, (long long)field[HEADS].i,
            ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(x, shape));
    if (field[SHIFT].i >= w)
        return ms_trace_fail(trace, layer, "half of it is usual",
                             "\"%s\" shifts by %lld, its window is %lld",
                             layer->name, (long long)field[SHIFT].i,
                             (long long)w);
    *n = (sizes){x->size[0],
                 x->size[1],
                 x->size[2],
                 x->size[3],
                 field[HEADS].i,
                 w,
                 (x->size[1] + w - 1) / w,
                 (x->size[2] + w - 1) / w,
                 false};
    n->moves = field[SHIFT].i > 0 && (n->rows > 1 || n->columns > 1);
    return MS_OK;
}

static uint32_t roll(ms_trace *trace, uint32_t x, const sizes *n)
{
    if (!n->moves || trace->err)
        return x;
    ms_tensor like = *ms_trace_at(trace, x);
    return ms_trace_rebind(
        trace, x, run(trace, "aten::roll", x, 4, like.size, like.dtype));
}

ms_err ms_windowlayers_attention(ms_trace *trace, const ms_layer *layer,
                                 const uint32_t *in, uint32_t *out)
{
    sizes n = {0};
    MS_TRY(find_sizes(trace, layer, in[0], &n));
    int64_t w = n.window, height = n.rows * w, width = n.columns * w;
    int64_t apart[6] = {n.batch, n.rows, w, n.columns, w, n.channels};
    int64_t windows[3] = {n.batch * n.rows * n.columns, tokens_of(&n),
                          n.channels};
    int64_t tiled[6] = {n.batch, n.rows, n.columns, w, w, n.channels};
    int64_t image[4] = {n.batch, height, width, n.channels};
    uint32_t bias = position_bias(trace, &n);
    uint32_t x = pad(trace, in[0], height, width);
    x = roll(trace, x, &n);
    x = ms_trace_rebind(trace, x, turn(trace, x, apart, 3, windows));
    x = ms_trace_rebind(trace, x, attend_all(trace, &n, x, bias));
    x = ms_trace_rebind(trace, x, turn(trace, x, tiled, 4, image));
    x = roll(trace, x, &n);
    *out = cut(trace, x, &n);
    ms_trace_drop(trace, bias);
    return trace->err;
}

/* ---- merging ------------------------------------------------------------- */

/* x[..., r::2, c::2, :] */
static uint32_t every_second(ms_trace *trace, uint32_t x)
{
    ms_trace_ref(trace, x);
    for (uint32_t d = 1; d < 4 && !trace->err; d++) {
        int64_t size = ms_trace_at(trace, x)->size[d];
        x = ms_trace_rebind(
            trace, x, ms_view_slice(trace, x, d, d < 3 ? size / 2 : size));
        if (d < 3 && !trace->err)
            ms_trace_at(trace, x)->stride[d] *= 2;
    }
    return x;
}

ms_err ms_windowlayers_merge(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    char shape[MS_LAYERS_SHAPE];
    uint32_t parts[4];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *from = ms_trace_at(trace, in[0]);
    if (from->n_dims != 4)
        return ms_trace_fail(trace, layer, "permute it",
                             "\"%s\" needs [height, width, channels], but "
                             "\"%s\" gives %s",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(from, shape));
    uint32_t x = pad(trace, in[0], from->size[1] + from->size[1] % 2,
                     from->size[2] + from->size[2] % 2);
    for (int i = 0; i < 4; i++)
        parts[i] = every_second(trace, x);
    *out = trace->err ? MS_NONE : ms_view_cat(trace, parts, 4, 3);
    ms_split_drop(trace, 4, parts);
    ms_trace_drop(trace, x);
    return trace->err;
}
