/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plots/plots.h"
#include "tools/cli/calibrate/calibrate.h"
#include "tools/terminal/quantity.h"

#define MOST_STREAMS 64u

enum {
    PRODUCTS,
    ATTENTION,
    POINTWISE,
    NORMS,
    OPTIMIZER,
    COPIES,
    LINKS,
    UNKNOWN
};
static const char *const names[MS_RECORDED_KINDS] = {
    [PRODUCTS] = "products",   [ATTENTION] = "attention",
    [POINTWISE] = "pointwise", [NORMS] = "norms, softmax",
    [OPTIMIZER] = "optimizer", [COPIES] = "copies",
    [LINKS] = "collectives",   [UNKNOWN] = "not predicted"};

static uint8_t look_of(const ms_calibration *c, const ms_traced_call *call)
{
    if (call->shape == MS_NONE || c->traced.shapes[call->shape].why != NULL)
        return UNKNOWN;
    switch (c->traced.shapes[call->shape].row.kind) {
    case MS_RATE_PRODUCT:
    case MS_RATE_FP32_PRODUCT:
        return PRODUCTS;
    case MS_RATE_FLASH_1:
    case MS_RATE_FLASH_2:
    case MS_RATE_FLASH_3:
    case MS_RATE_EFFICIENT:
        return ATTENTION;
    case MS_RATE_NORM:
    case MS_RATE_SOFTMAX:
    case MS_RATE_REDUCTION:
        return NORMS;
    case MS_RATE_OPTIMIZER:
        return OPTIMIZER;
    case MS_RATE_ALL_REDUCE:
        return LINKS;
    case MS_RATE_POINTWISE:
        return POINTWISE;
    default:
        return COPIES;
    }
}

/* What is not predicted takes as long as it was recorded to. */
static double predict(const ms_calibration *c, const ms_traced_call *call)
{
    if (look_of(c, call) == UNKNOWN)
        return call->ns;
    return ms_measured_predict(&c->fit.device,
                               &c->traced.shapes[call->shape].row, true);
}

/* When the streams are done, recorded and predicted. */
typedef struct ends {
    double recorded[MOST_STREAMS], predicted[MOST_STREAMS];
} ends;

/* A call begins as long behind the last one that had ended by then, on
 * whichever stream, as it was recorded to. */
static double predict_start(const ends *e, uint32_t stream, double at)
{
    uint32_t last = stream;
    for (uint32_t i = 0; i < MOST_STREAMS; i++)
        if (e->recorded[i] <= at && e->recorded[i] > e->recorded[last])
            last = i;
    double gap = at - e->recorded[last];
    double start = e->predicted[last] + (gap > 0 ? gap : 0);
    return start > e->predicted[stream] ? start : e->predicted[stream];
}

/* Slices of the last step that the trace marks, or of all of it. */
static void put_slices(const ms_calibration *c, ms_recorded_slice *slices,
                       ms_recorded_lanes *lanes,
                       double sums[MS_RECORDED_KINDS][MS_RECORDED_LANES])
{
    const ms_traced *t = &c->traced;
    ends e = {{0}, {0}};
    int64_t from_ns = 0;
    for (uint32_t i = 0; i < t->n_calls; i++) {
        const ms_traced_call *call = &t->calls[i];
        if (t->n_steps > 0 && call->host_ns < t->step_ns)
            continue;
        if (lanes->n == 0)
            from_ns = call->t_ns;
        uint32_t stream = call->stream % MOST_STREAMS;
        uint8_t look = look_of(c, call);
        double at = (double)(call->t_ns - from_ns), ns = predict(c, call);
        double start = predict_start(&e, stream, at);
        slices[lanes->n++] = (ms_recorded_slice){at, at + call->ns, 0, look};
        slices[lanes->n++] = (ms_recorded_slice){start, start + ns, 1, look};
        e.recorded[stream] = at + call->ns;
        e.predicted[stream] = start + ns;
        sums[look][0] += call->ns;
        sums[look][1] += ns;
        lanes->kinds[look].is_shown = true;
    }
}

ms_err ms_calibrate_figure(const ms_calibration *c, const ms_picture *figure,
                           ms_arena *arena, ms_fault *fault)
{
    double sums[MS_RECORDED_KINDS][MS_RECORDED_LANES] = {{0}};
    ms_recorded_lanes lanes = {.lanes = {"recorded", "predicted"}};
    ms_recorded_slice *slices =
        ms_arena_take(arena, 2 * (size_t)c->traced.n_calls + 1, sizeof *slices);
    if (slices == NULL)
        return ms_fail_nomem(fault);
    put_slices(c, slices, &lanes, sums);
    lanes.slices = slices;
    for (uint32_t i = 0; i < MS_RECORDED_KINDS; i++) {
        lanes.kinds[i].name =
            ms_arena_format(arena, "%s %s, %s", names[i],
                            ms_quantity_time((uint64_t)sums[i][0]).s,
                            ms_quantity_time((uint64_t)sums[i][1]).s);
        if (lanes.kinds[i].name == NULL)
            return ms_fail_nomem(fault);
    }
    const ms_drawing drawing = {
        .title = figure->title != NULL ? figure->title
                                       : "A step, recorded and predicted",
        .subtitle = ms_arena_format(
            arena,
            "%s on %s; times of each kind recorded, predicted; the "
            "device idles as recorded",
            c->file, c->device),
        .path = figure->path,
        .script_path = figure->script,
        .arena = arena};
    return drawing.subtitle != NULL
               ? ms_figure_recorded(&lanes, &drawing, fault)
               : ms_fail_nomem(fault);
}
