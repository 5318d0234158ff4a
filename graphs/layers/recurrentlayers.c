/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.nn.LSTM and torch.nn.GRU over [sequence, features]. */
#include "graphs/layers/layers.h"
#include "graphs/ops/autocast.h"
#include "graphs/trace/trace.h"

#include <string.h>

enum { HIDDEN, LAYERS, BIDIRECTIONAL, BIAS, DROPOUT };
const ms_field ms_recurrentlayers_fields[MS_RECURRENTLAYERS_FIELDS] = {
    {.name = "hidden",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "features of the hidden state"},
    {.name = "num_layers",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = 1 << 10,
     .help = "layers, each over the outputs of the one before"},
    {.name = "bidirectional",
     .type = MS_BOOL,
     .help = "a second pass from the end; the outputs are joined"},
    {.name = "bias", .type = MS_BOOL, .fallback.b = true, .help = "add biases"},
    {.name = "dropout",
     .type = MS_FLOAT,
     .low = 0,
     .high = 1,
     .help = "between the layers"},
};

/* What the layers and directions of one recurrent layer share. */
typedef struct stack {
    ms_trace *trace;
    const ms_layer *layer;
    uint32_t gates, directions;
    uint32_t h, c; /* all initial states; c is MS_NONE for a GRU */
} stack;

/* "weight_ih_l0", "weight_ih_l0_reverse" */
static uint32_t parameter(const stack *s, const char *role, uint32_t l,
                          uint32_t direction, uint32_t n_dims,
                          const int64_t *dims)
{
    const char *name = ms_arena_format(s->trace->arena, "%s_l%u%s", role, l,
                                       direction ? "_reverse" : "");
    if (!name && !s->trace->err)
        s->trace->err = ms_fail_nomem(s->trace->fault);
    return s->trace->err ? MS_NONE
                         : ms_trace_parameter(s->trace, name, n_dims, dims);
}

static ms_recurrent_cell make_cell(const stack *s, int64_t features, uint32_t l,
                                   uint32_t direction)
{
    int64_t hidden = s->layer->field[HIDDEN].i;
    int64_t ih[2] = {hidden * s->gates, features}, hh[2] = {ih[0], hidden};
    ms_recurrent_cell cell = {.bias_ih = MS_NONE, .bias_hh = MS_NONE};
    cell.weight_ih = parameter(s, "weight_ih", l, direction, 2, ih);
    cell.weight_hh = parameter(s, "weight_hh", l, direction, 2, hh);
    if (!s->layer->field[BIAS].b)
        return cell;
    cell.bias_ih = parameter(s, "bias_ih", l, direction, 1, ih);
    cell.bias_hh = parameter(s, "bias_hh", l, direction, 1, ih);
    return cell;
}

/* torch.zeros(layers * directions, batch, hidden) */
static uint32_t zeros(const stack *s, int64_t batch)
{
    ms_trace *trace = s->trace;
    const ms_value *field = s->layer->field;
    int64_t dims[3] = {field[LAYERS].i * s->directions, batch, field[HIDDEN].i};
    ms_trace_begin(trace, "aten::zeros");
    uint32_t y = ms_trace_make(trace, "state", trace->weight_dtype, 3, dims);
    ms_trace_end(trace, 0, false);
    return y;
}

/* ---- step by step -------------------------------------------------------- */

static uint32_t run_direction(const stack *s, uint32_t x, uint32_t l,
                              uint32_t direction)
{
    ms_trace *trace = s->trace;
    if (trace->err)
        return MS_NONE;
    ms_recurrent_cell cell =
        make_cell(s, ms_layers_last_dim(trace, x), l, direction);
    bool lstm = s->c != MS_NONE;
    uint32_t h = ms_view_select(trace, s->h, 0);
    uint32_t c = lstm ? ms_view_select(trace, s->c, 0) : MS_NONE;
    uint32_t y = ms_recurrent_steps(trace, x, &cell, direction > 0, &h,
                                    lstm ? &c : NULL);
    ms_trace_drop(trace, h);
    ms_trace_drop(trace, c);
    return y;
}

static uint32_t run_layer(const stack *s, uint32_t x, uint32_t l)
{
    ms_trace *trace = s->trace;
    uint32_t one[2] = {run_direction(s, x, l, 0), MS_NONE};
    if (s->directions == 1)
        return one[0];
    one[1] = run_direction(s, x, l, 1);
    uint32_t y = trace->err ? MS_NONE : ms_view_cat(trace, one, 2, 2);
    ms_split_drop(trace, 2, one);
    return y;
}

static uint32_t run_steps(stack *s, uint32_t x)
{
    ms_trace *trace = s->trace;
    const ms_value *field = s->layer->field;
    bool lstm = s->gates == 4;
    int64_t batch = ms_trace_at(trace, x)->size[1];
    s->h = zeros(s, batch);
    s->c = lstm ? zeros(s, batch) : MS_NONE;
    ms_trace_ref(trace, x);
    for (uint32_t l = 0; l < field[LAYERS].i && !trace->err; l++) {
        uint32_t y = run_layer(s, x, l);
        ms_trace_drop(trace, x);
        x = y;
        if (l + 1 == field[LAYERS].i)
            break;
        y = ms_pointwise_dropout(trace, x, field[DROPOUT].f);
        ms_trace_drop(trace, x);
        x = y;
    }
    ms_trace_drop(trace, s->h);
    ms_trace_drop(trace, s->c);
    return x;
}

/* ---- one op -------------------------------------------------------------- */

static uint32_t run_cudnn(const stack *s, uint32_t x)
{
    ms_trace *trace = s->trace;
    const ms_value *field = s->layer->field;
    int64_t width = field[HIDDEN].i * s->directions;
    int64_t features = ms_layers_last_dim(trace, x);
    uint32_t cells = (uint32_t)field[LAYERS].i * s->directions, n = 0;
    uint32_t *inputs =
        ms_arena_take_raw(trace->scratch, 1 + 4 * cells, sizeof *inputs);
    uint32_t *read =
        ms_arena_take_raw(trace->scratch, 1 + 4 * cells, sizeof *read);
    if (!inputs || !read) {
        trace->err = ms_fail_nomem(trace->fault);
        return MS_NONE;
    }
    inputs[n++] = x;
    for (uint32_t i = 0; i < cells; i++) {
        uint32_t l = i / s->directions;
        ms_recurrent_cell cell =
            make_cell(s, l ? width : features, l, i % s->directions);
        const uint32_t own[4] = {cell.weight_ih, cell.weight_hh, cell.bias_ih,
                                 cell.bias_hh};
        for (uint32_t k = 0; k < (field[BIAS].b ? 4u : 2u); k++)
            inputs[n++] = own[k];
    }
    ms_autocast_enter(trace, "_cudnn_rnn", n, inputs, read);
    uint32_t y = ms_recurrent_cudnn(trace, read, n, width,
                                    field[LAYERS].i * width, s->gates == 4);
    ms_autocast_exit(trace, n, read);
    return y;
}

/* ---- the layers ---------------------------------------------------------- */

/* The layer is batch_first, while the ops work on [sequence, batch, features].
 */
static ms_err recurrent(ms_trace *trace, const ms_layer *layer, uint32_t gates,
                        uint32_t x, uint32_t *out)
{
    stack s = {.trace = trace,
               .layer = layer,
               .gates = gates,
               .directions = layer->field[BIDIRECTIONAL].b ? 2 : 1};
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, x));
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (tensor->n_dims != 3)
        return ms_trace_fail(trace, layer, "reshape it, or mend the input",
                             "\"%s\" needs [sequence, features], but \"%s\" "
                             "gives %s",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(tensor, shape));
    uint32_t turned = ms_view_transpose(trace, x, 0, 1);
    uint32_t y =
        trace->settings->cpu ? run_steps(&s, turned) : run_cudnn(&s, turned);
    ms_trace_drop(trace, turned);
    *out = trace->err ? MS_NONE : ms_view_transpose(trace, y, 0, 1);
    ms_trace_drop(trace, y);
    return trace->err;
}

ms_err ms_recurrentlayers_lstm(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    return recurrent(trace, layer, 4, in[0], out);
}

ms_err ms_recurrentlayers_gru(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    return recurrent(trace, layer, 3, in[0], out);
}
