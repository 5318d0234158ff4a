/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/blockrun.h"
#include "graphs/layertypes.h"

#include <string.h>

#define MOST_BLOCKS 6u  /* of a period */
#define MOST_LAYERS 16u /* of a period of layers in no block */

/* ---- equal layers -------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_value(ms_value_type type, const ms_value *a, const ms_value *b)
{
    if (type == MS_INTS) /* lie outside */
        return true;
    if (type == MS_NAME || type == MS_TEXT)
        return same_text(a->s, b->s);
    if (type == MS_BOOL)
        return a->b == b->b;
    return type == MS_FLOAT ? a->f == b->f : a->i == b->i;
}

static bool same_fields(const ms_layer *a, const ms_layer *b)
{
    if (a->kind != b->kind || a->n_in != b->n_in || a->n_ints != b->n_ints)
        return false;
    for (uint32_t i = 0; a->field != b->field && i < a->kind->n_fields; i++)
        if (!same_value(a->kind->fields[i].type, &a->field[i], &b->field[i]))
            return false;
    return a->n_ints == 0 || a->ints == b->ints ||
           memcmp(a->ints, b->ints, a->n_ints * sizeof *a->ints) == 0;
}

/* Layer numbers p layers apart, or one for both that lies before the run. */
static bool same_row(uint32_t a, uint32_t b, uint32_t p)
{
    return a == b || (a != MS_NONE && b != MS_NONE && b == a + p);
}

/* Is layer b's block so many later than a's?  0: both are in none. */
static bool same_block(const ms_layer *a, const ms_layer *b, uint32_t blocks)
{
    if (blocks == 0)
        return a->block == MS_NONE && b->block == MS_NONE;
    return a->block != MS_NONE && b->block != MS_NONE &&
           b->block == a->block + blocks;
}

/* Is layer l + p what layer l is, in a block `blocks` later? */
static bool same_layer(const ms_model *model, uint32_t l, uint32_t p,
                       uint32_t blocks)
{
    const ms_layer *a = &model->layers[l], *b = &model->layers[l + p];
    if (!same_fields(a, b) || !same_block(a, b, blocks))
        return false;
    if (model->cut && model->cut[l] != model->cut[l + p])
        return false;
    for (uint32_t k = 0; k < a->n_in; k++)
        if (!same_row(model->edges[a->in_at + k], model->edges[b->in_at + k],
                      p))
            return false;
    return !model->held || same_row(model->held[l], model->held[l + p], p);
}

/* ---- the run ------------------------------------------------------------- */

static bool opens_block(const ms_model *model, uint32_t l)
{
    return l == 0 || model->layers[l].block != model->layers[l - 1].block;
}

/* The layers of so many blocks from l on. */
static uint32_t layers_of(const ms_model *model, uint32_t l, uint32_t blocks)
{
    uint32_t first = l;
    for (; l < model->n_layers; l++)
        if (l > first && opens_block(model, l) && --blocks == 0)
            break;
    return l - first;
}

/* The run of so many layers a period about one that opens a block, or of layers
 * in none, any of which may open a period. */
static ms_blockrun run_about(const ms_model *model, uint32_t middle, uint32_t p,
                             uint32_t blocks)
{
    ms_blockrun run = {.first = middle, .period = p, .blocks = blocks};
    uint32_t end = middle, count;
    if (p > model->n_layers - middle) /* no layer has another behind it */
        return run;
    while (end + p < model->n_layers && same_layer(model, end, p, blocks))
        end++;
    while (run.first > 0 && same_layer(model, run.first - 1, p, blocks))
        run.first--;
    while (blocks > 0 && run.first < middle && !opens_block(model, run.first))
        run.first++;
    count = (end + p - run.first) / p;
    if (end > middle && count > MS_BLOCKRUN_LEFT + 1u)
        run.left_out = count - MS_BLOCKRUN_LEFT;
    return run;
}

static bool is_in_order(const ms_model *model)
{
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (model->order[i] != i)
            return false;
    return true;
}

ms_blockrun ms_blockrun_find(const ms_model *model)
{
    ms_blockrun run = {0};
    uint32_t middle = model->n_layers / 2;
    if (middle == 0 || !is_in_order(model))
        return run;
    if (model->layers[middle].block == MS_NONE) {
        for (uint32_t p = 1; p <= MOST_LAYERS && run.left_out == 0; p++)
            run = run_about(model, middle, p, 0);
        return run;
    }
    while (middle > 0 && !opens_block(model, middle))
        middle--;
    for (uint32_t b = 1; middle > 0 && b <= MOST_BLOCKS && run.left_out == 0;
         b++)
        run = run_about(model, middle, layers_of(model, middle, b), b);
    return run;
}

/* ---- the short model ----------------------------------------------------- */

typedef struct cutter {
    const ms_model *model;
    const ms_blockrun *run;
    uint32_t from, gone; /* layers [from, from + gone) are left out */
} cutter;

/* The row in the short model of a layer that layer l names. */
static bool cut_row(const cutter *c, uint32_t l, uint32_t *row)
{
    const ms_blockrun *run = c->run;
    uint32_t end = run->first + MS_BLOCKRUN_LEFT * run->period + c->gone;
    if (*row == MS_NONE || *row < run->first)
        return true;
    if (l < c->from)
        return *row < c->from;
    if (l >= end && *row < end - run->period)
        return false;
    if (*row < c->from + c->gone - run->period)
        return false;
    *row -= c->gone;
    return true;
}

static bool cut_layer(const cutter *c, uint32_t l, ms_model *cut)
{
    const ms_model *model = c->model;
    uint32_t to = cut->n_layers++;
    ms_layer *layer = &cut->layers[to];
    *layer = model->layers[l];
    layer->in_at = cut->n_edges;
    for (uint32_t k = 0; k < layer->n_in; k++) {
        uint32_t row = model->edges[model->layers[l].in_at + k];
        if (!cut_row(c, l, &row))
            return false;
        cut->edges[cut->n_edges++] = row;
    }
    cut->order[to] = to;
    cut->cut[to] = model->cut ? model->cut[l] : 0;
    if (!model->held)
        return true;
    cut->held[to] = model->held[l];
    return cut_row(c, l, &cut->held[to]);
}

bool ms_blockrun_cut(const ms_model *model, const ms_blockrun *run,
                     ms_arena *arena, ms_model *cut)
{
    cutter c = {.model = model,
                .run = run,
                .from = run->first + (MS_BLOCKRUN_LEFT - 1) * run->period,
                .gone = run->left_out * run->period};
    uint32_t n = model->n_layers - c.gone;
    *cut = *model;
    cut->n_layers = cut->n_edges = 0;
    cut->layers = ms_arena_take_raw(arena, n, sizeof *cut->layers);
    cut->edges = ms_arena_take_raw(arena, model->n_edges, sizeof *cut->edges);
    cut->order = ms_arena_take_raw(arena, n, sizeof *cut->order);
    cut->cut = ms_arena_take_raw(arena, n, sizeof *cut->cut);
    if (!cut->layers || !cut->edges || !cut->order || !cut->cut)
        return false;
    if (model->held) {
        cut->held = ms_arena_take_raw(arena, n, sizeof *cut->held);
        if (!cut->held)
            return false;
    }
    for (uint32_t l = 0; l < model->n_layers; l++)
        if ((l < c.from || l >= c.from + c.gone) && !cut_layer(&c, l, cut))
            return false;
    return true;
}
