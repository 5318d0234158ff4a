/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which head a model's cross entropy takes with it. */
#include "graphs/layers/headloss.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"

static uint32_t n_readers(const ms_model *model, uint32_t row)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->n_edges; i++)
        n += model->edges[i] == row;
    return n;
}

/* NULL, or why the loss cannot take what it reads with it. */
static const char *refusal(const ms_model *model, const ms_layer *loss)
{
    uint32_t row = model->edges[loss->in_at];
    if (row == MS_NONE ||
        model->layers[row].kind->forward != ms_denselayers_linear)
        return "no linear layer";
    if (ms_denselayers_has_bias(&model->layers[row]))
        return "a linear layer with bias";
    return n_readers(model, row) > 1 ? "a layer that others read too" : NULL;
}

static const ms_layer *find_loss(const ms_model *model)
{
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].kind->forward == ms_losslayers_cross_entropy)
            return &model->layers[i];
    return NULL;
}

/* Does the layer choose its kernel, or the user? */
static bool is_chosen(const ms_trace *trace, const ms_layer *loss)
{
    return ms_losslayers_kernel(loss) > 0 ||
           trace->settings->training->loss_kernel > 0;
}

ms_err ms_headchoice_open(ms_trace *trace)
{
    const ms_model *model = trace->settings->model;
    const ms_layer *loss = find_loss(model);
    trace->head = (ms_fused_head){.layer = MS_NONE, .loss = loss};
    if (loss == NULL && trace->settings->training->loss_kernel > 0)
        return ms_fail(trace->fault, MS_EUSAGE, "training.loss_kernel",
                       "leave it out for this model",
                       "training.loss_kernel changes nothing: %s ends in no "
                       "cross entropy",
                       model->name);
    if (loss == NULL)
        return MS_OK;
    const ms_loss_kernel *kernel =
        ms_headloss_kernel(trace, loss, ms_losslayers_kernel(loss));
    if (kernel->head == NULL)
        return MS_OK;
    const char *why = refusal(model, loss);
    trace->head.kernel = kernel;
    if (why == NULL)
        trace->head.layer = model->edges[loss->in_at];
    else if (!is_chosen(trace, loss))
        trace->head.loss = NULL;
    else
        return ms_trace_fail(
            trace, loss,
            "it takes a linear layer without bias with it: choose eager or "
            "liger",
            "\"%s\" cannot be %s: it reads %s", loss->name, kernel->name, why);
    return MS_OK;
}
