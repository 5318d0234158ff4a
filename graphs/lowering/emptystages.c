/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/emptystages.h"
#include "graphs/layertypes.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/kinds.h"

#include <string.h>

#define MARKED UINT32_MAX

/* A model that has room for one more stage. */
typedef struct adder {
    ms_model *model;
    ms_arena *arena;
    uint32_t *place; /* per layer: where in the order it stands */
    uint32_t *copy;  /* per layer: what copies its output; 0: none */
    uint32_t at;     /* the first place behind the stage */
} adder;

/* ---- what it computes ---------------------------------------------------- */

/* AccumulateGrad: the message, which the schedule holds, is copied to the .grad
 * of what was handed on. */
static void copy_gradient(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    (void)node;
    out[0] = ms_view_copy(trace, grads[0]);
}

/* The schedule holds what was handed on until backward (megatron/core/
 * pipeline_parallel/schedules.py, input_tensors). */
static ms_err hand_on(ms_trace *trace, const ms_layer *layer,
                      const uint32_t *in, uint32_t *out)
{
    static const ms_rule rule = {"CloneBackward0", "aten::clone",
                                 copy_gradient};
    (void)layer;
    ms_trace_begin(trace, "aten::clone");
    ms_trace_read(trace, in[0]);
    *out = ms_view_make(trace, "out", in[0], in[0]);
    ms_trace_end(trace, 0, false);
    uint32_t node = ms_trace_node(trace, &rule, &in[0], 1, out, 1);
    ms_trace_save(trace, node, in[0]);
    return trace->err;
}

static const ms_layer_kind kind = {.type = "empty_stage",
                                   .summary = "a stage without layers",
                                   .role = MS_ROLE_OTHER,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .forward = hand_on};

/* ---- room ---------------------------------------------------------------- */

/* A copy with room for as many again and one: a stage copies at most each
 * layer. */
static void *wider(const void *rows, uint32_t n, size_t bytes, ms_arena *arena)
{
    void *copy = ms_arena_take(arena, 2u * (size_t)n + 1, bytes);
    if (copy != NULL && n > 0)
        memcpy(copy, rows, n * bytes);
    return copy;
}

static ms_err open(adder *a, const ms_model *from, ms_fault *fault)
{
    ms_model *to = a->model;
    uint32_t n = from->n_layers;
    *to = *from;
    to->layers = wider(from->layers, n, sizeof *to->layers, a->arena);
    to->order = wider(from->order, n, sizeof *to->order, a->arena);
    to->cut = wider(from->cut, n, sizeof *to->cut, a->arena);
    to->edges = ms_arena_take(a->arena, (size_t)from->n_edges + n + 1,
                              sizeof *to->edges);
    a->place = ms_arena_take_raw(a->arena, n, sizeof *a->place);
    a->copy = ms_arena_take(a->arena, n, sizeof *a->copy);
    if (from->held != NULL)
        to->held = wider(from->held, n, sizeof *to->held, a->arena);
    if (!to->layers || !to->order || !to->cut || !to->edges || !a->place ||
        !a->copy || (from->held && !to->held))
        return ms_fail_nomem(fault);
    if (from->n_edges > 0)
        memcpy(to->edges, from->edges, from->n_edges * sizeof *to->edges);
    for (uint32_t i = 0; i < n; i++)
        a->place[to->order[i]] = i;
    return MS_OK;
}

/* ---- where it stands ----------------------------------------------------- */

/* Before the block of this number, or behind the last. */
static uint32_t find_place(const ms_model *model, uint32_t behind)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        uint32_t block = model->layers[model->order[i]].block;
        if (block == behind)
            return i;
        if (block != MS_NONE)
            last = i + 1;
    }
    return last;
}

/* Marks what is read behind the stage of what is made before it. */
static void mark(const adder *a, uint32_t n)
{
    const ms_model *model = a->model;
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; a->place[l] >= a->at && i < model->layers[l].n_in;
             i++) {
            uint32_t from = model->edges[model->layers[l].in_at + i];
            if (from != MS_NONE && a->place[from] < a->at)
                a->copy[from] = MARKED;
        }
}

/* Those readers read the copies instead. */
static void redirect(const adder *a, uint32_t n)
{
    const ms_model *model = a->model;
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; a->place[l] >= a->at && i < model->layers[l].n_in;
             i++) {
            uint32_t *from = &model->edges[model->layers[l].in_at + i];
            if (*from != MS_NONE && a->copy[*from] != 0)
                *from = a->copy[*from];
        }
}

/* ---- what it adds -------------------------------------------------------- */

static ms_err add_copy(const adder *a, uint32_t of, uint32_t stage,
                       uint32_t piece, ms_fault *fault)
{
    ms_model *model = a->model;
    uint32_t l = model->n_layers++, place = a->at + piece;
    const char *name =
        piece == 0
            ? ms_arena_format(a->arena, MS_EMPTY_STAGE "%u", stage)
            : ms_arena_format(a->arena, MS_EMPTY_STAGE "%u.%u", stage, piece);
    if (name == NULL)
        return ms_fail_nomem(fault);
    memmove(&model->order[place + 1], &model->order[place],
            (l - place) * sizeof *model->order);
    model->order[place] = l;
    model->layers[l] = (ms_layer){.name = name,
                                  .kind = &kind,
                                  .in_at = model->n_edges,
                                  .n_in = 1,
                                  .block = MS_NONE};
    model->edges[model->n_edges++] = of;
    if (model->held != NULL)
        model->held[l] = MS_NONE;
    return MS_OK;
}

static ms_err add_stage(const adder *a, uint32_t stage, ms_fault *fault)
{
    ms_model *model = a->model;
    uint32_t n = model->n_layers, copies = 0;
    mark(a, n);
    for (uint32_t i = 0; i < a->at; i++) {
        uint32_t l = model->order[i];
        if (a->copy[l] != MARKED)
            continue;
        a->copy[l] = model->n_layers;
        MS_TRY(add_copy(a, l, stage, copies++, fault));
    }
    redirect(a, n);
    if (a->at > 0)
        model->cut[model->order[a->at - 1]] = 1;
    if (copies > 0)
        model->cut[model->order[a->at + copies - 1]] = 1;
    return MS_OK;
}

ms_err ms_emptystages_add(const ms_model *model, const ms_empty_stages *empty,
                          ms_arena *arena, ms_model *with, ms_fault *fault)
{
    ms_model before = *model;
    uint32_t behind = 0; /* the first place behind the stage before */
    if (model->n_blocks == 0)
        return ms_fail(fault, MS_EUSAGE, "pipeline:layers",
                       "give each stage a layer",
                       "an empty stage stands between blocks, and \"%s\" has "
                       "none",
                       model->name);
    for (uint32_t k = 0; k < empty->n; k++) {
        adder a = {.model = with, .arena = arena};
        MS_TRY(open(&a, &before, fault));
        a.at = find_place(with, empty->behind[k]);
        if (a.at < behind)
            a.at = behind;
        MS_TRY(add_stage(&a, k, fault));
        behind = a.at + with->n_layers - before.n_layers;
        before = *with;
    }
    return MS_OK;
}
