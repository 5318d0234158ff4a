/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that knows igraph.  Its default error handler aborts the
 * program, so both handlers are set while it works; igraph_small is avoided
 * (it aborts when out of memory).  Not thread-safe: Debian's igraph is not. */

#include "graphs/layertypes.h"
#include "graphs/lowering/blockrun.h"
#include "graphs/model.h"

#include <igraph/igraph.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_NAMES 12u /* of a long cycle, and of dangling outputs */

static ms_err translate(igraph_error_t code, ms_fault *fault)
{
    if (code == IGRAPH_SUCCESS)
        return MS_OK;
    if (code == IGRAPH_ENOMEM)
        return ms_fail_nomem(fault);
    return ms_fail(fault, MS_ESYSTEM, "igraph", NULL, "%s",
                   igraph_strerror(code));
}

/* Layers that hold states only take no part in the graph. */
static bool has_output(const ms_model *model, uint32_t layer)
{
    return !model->layers[layer].kind->silent;
}

/* ---- cycles -------------------------------------------------------------- */

/* Layers as vertices, an edge from each layer to those that read it. */
static igraph_error_t make_graph(const ms_model *model, igraph_t *graph)
{
    igraph_vector_int_t ends;
    igraph_integer_t n = 0;
    igraph_error_t code =
        igraph_vector_int_init(&ends, 2 * (igraph_integer_t)model->n_edges);
    if (code != IGRAPH_SUCCESS)
        return code;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        for (uint32_t i = 0; i < layer->n_in; i++) {
            uint32_t from = model->edges[layer->in_at + i];
            if (from == MS_NONE)
                continue;
            VECTOR(ends)[n++] = from;
            VECTOR(ends)[n++] = l;
        }
    }
    code = igraph_vector_int_resize(&ends, n);
    if (code == IGRAPH_SUCCESS)
        code = igraph_create(graph, &ends, model->n_layers, IGRAPH_DIRECTED);
    igraph_vector_int_destroy(&ends);
    return code;
}

/* A layer on a cycle and an input of it on the same cycle: the first in file
 * order.  parts: the strongly connected component of each layer. */
static void find_on_cycle(const ms_model *model,
                          const igraph_vector_int_t *parts, uint32_t *layer,
                          uint32_t *input)
{
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *row = &model->layers[l];
        for (uint32_t i = 0; i < row->n_in; i++) {
            uint32_t from = model->edges[row->in_at + i];
            if (from != MS_NONE && VECTOR(*parts)[from] == VECTOR(*parts)[l]) {
                *layer = l;
                *input = from;
                return;
            }
        }
    }
}

/* "a -> b -> a" */
static void print_cycle(const ms_model *model, const igraph_vector_int_t *path,
                        char *buffer, size_t size)
{
    igraph_integer_t n = igraph_vector_int_size(path);
    size_t used = 0;
    for (igraph_integer_t i = 0; i < n && used < size; i++) {
        if (i == SHOWN_NAMES) {
            used += (size_t)snprintf(buffer + used, size - used, "... -> ");
            break;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%.60s -> ",
                                 model->layers[VECTOR(*path)[i]].name);
    }
    if (used < size)
        snprintf(buffer + used, size - used, "%.60s",
                 model->layers[VECTOR(*path)[0]].name);
}

/* The shortest way from a layer of a cycle to its own input closes it. */
static igraph_error_t find_cycle(const ms_model *model, const igraph_t *graph,
                                 igraph_vector_int_t *path, uint32_t *layer)
{
    igraph_vector_int_t parts;
    uint32_t input = 0;
    igraph_error_t code = igraph_vector_int_init(&parts, 0);
    if (code != IGRAPH_SUCCESS)
        return code;
    code =
        igraph_connected_components(graph, &parts, NULL, NULL, IGRAPH_STRONG);
    if (code == IGRAPH_SUCCESS) {
        find_on_cycle(model, &parts, layer, &input);
        code = igraph_get_shortest_path(graph, path, NULL, *layer, input,
                                        IGRAPH_OUT);
    }
    igraph_vector_int_destroy(&parts);
    return code;
}

static ms_err fail_cycle(const ms_model *model, const igraph_t *graph,
                         ms_fault *fault)
{
    igraph_vector_int_t path;
    char names[400];
    uint32_t layer = 0;
    MS_TRY(translate(igraph_vector_int_init(&path, 0), fault));
    ms_err err = translate(find_cycle(model, graph, &path, &layer), fault);
    if (err == MS_OK) {
        print_cycle(model, &path, names, sizeof names);
        err = ms_read_fail(model, &model->layers[layer], fault,
                           "a layer cannot read what comes after it",
                           "the layers form a cycle: %s", names);
    }
    igraph_vector_int_destroy(&path);
    return err;
}

/* Does a layer read itself or one that comes later in the file? */
static bool reads_ahead(const ms_model *model)
{
    for (uint32_t l = 0; l < model->n_layers; l++)
        for (uint32_t i = 0; i < model->layers[l].n_in; i++) {
            uint32_t from = model->edges[model->layers[l].in_at + i];
            if (from != MS_NONE && from >= l)
                return true;
        }
    return false;
}

/* A file in which all layers read earlier ones has no cycle. */
static ms_err check_cycles(const ms_model *model, ms_fault *fault)
{
    igraph_t graph;
    igraph_bool_t acyclic = false;
    if (!reads_ahead(model))
        return MS_OK;
    MS_TRY(translate(make_graph(model, &graph), fault));
    ms_err err = translate(igraph_is_dag(&graph, &acyclic), fault);
    if (err == MS_OK && !acyclic)
        err = fail_cycle(model, &graph, fault);
    igraph_destroy(&graph);
    return err;
}

/* ---- ends ---------------------------------------------------------------- */

static ms_err fail_dangling(const ms_model *model, const uint8_t *read,
                            uint32_t last, ms_fault *fault)
{
    char names[320] = "";
    size_t used = 0;
    uint32_t n = 0, first = MS_NONE;
    for (uint32_t l = 0; l < last; l++) {
        if (read[l] || !has_output(model, l))
            continue;
        if (first == MS_NONE)
            first = l;
        if (n < SHOWN_NAMES && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used,
                                     "%s\"%.60s\"", n == 0 ? "" : ", ",
                                     model->layers[l].name);
        n++;
    }
    if (n > SHOWN_NAMES && used < sizeof names)
        snprintf(names + used, sizeof names - used, " and %u more",
                 n - SHOWN_NAMES);
    return ms_read_fail(model, &model->layers[first], fault,
                        "a model has one end, its loss: name these outputs "
                        "in \"inputs\", or remove the layers",
                        "nothing reads the output of %s", names);
}

/* All outputs but one must be read: the loss is the unread layer that comes
 * last in the file. */
static ms_err check_ends(const ms_model *model, ms_arena *scratch,
                         ms_fault *fault)
{
    uint32_t n_ends = 0, last = MS_NONE;
    uint8_t *read = ms_arena_take(scratch, model->n_layers, 1);
    if (read == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < model->n_edges; i++)
        if (model->edges[i] != MS_NONE)
            read[model->edges[i]] = 1;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        if (read[l] || !has_output(model, l))
            continue;
        n_ends++;
        last = l;
    }
    return n_ends > 1 ? fail_dangling(model, read, last, fault) : MS_OK;
}

/* ---- order --------------------------------------------------------------- */

/* Layers in file order, each after the inputs that it still lacks: a file in
 * a legal order keeps it, and branches are not interleaved (as igraph's
 * breadth-first sort would). */
static ms_err sort(ms_model *model, ms_arena *arena, ms_arena *scratch,
                   ms_fault *fault)
{
    uint32_t n = model->n_layers, n_done = 0;
    uint32_t *next = ms_arena_take(scratch, n, sizeof *next); /* input to see */
    uint32_t *stack = ms_arena_take_raw(scratch, n, sizeof *stack);
    uint8_t *seen = ms_arena_take(scratch, n, 1);
    model->order = ms_arena_take_raw(arena, n, sizeof *model->order);
    if (next == NULL || stack == NULL || seen == NULL || model->order == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t first = 0; first < n; first++) {
        uint32_t depth = 0;
        if (!seen[first])
            stack[depth++] = first;
        seen[first] = 1;
        while (depth > 0) {
            uint32_t l = stack[depth - 1];
            const ms_layer *layer = &model->layers[l];
            if (next[l] == layer->n_in) {
                model->order[n_done++] = l;
                depth--;
                continue;
            }
            uint32_t from = model->edges[layer->in_at + next[l]++];
            if (from != MS_NONE && !seen[from]) {
                seen[from] = 1;
                stack[depth++] = from;
            }
        }
    }
    return MS_OK;
}

/* ---- cut points ---------------------------------------------------------- */

/* The graph whose articulation points are the cut points: layers with
 * outputs, numbered in topological order, and for each layer without an input
 * layer (it reads the model's input, which is there anyway) an edge from the
 * layer before it.  Then every layer lies on a path from the first to the
 * last, so that removing one separates earlier from later layers exactly when
 * no edge leaps over it: the dominators of the last layer. */
static igraph_error_t make_flow(const ms_model *model, const uint32_t *place,
                                uint32_t n, igraph_t *graph)
{
    igraph_vector_int_t ends;
    igraph_integer_t used = 0;
    igraph_integer_t most =
        2 * ((igraph_integer_t)model->n_edges + model->n_layers);
    igraph_error_t code = igraph_vector_int_init(&ends, most);
    if (code != IGRAPH_SUCCESS)
        return code;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        igraph_integer_t before = used;
        for (uint32_t i = 0; i < layer->n_in; i++) {
            uint32_t from = model->edges[layer->in_at + i];
            if (from == MS_NONE)
                continue;
            VECTOR(ends)[used++] = place[from];
            VECTOR(ends)[used++] = place[l];
        }
        if (used == before && place[l] != MS_NONE && place[l] > 0) {
            VECTOR(ends)[used++] = place[l] - 1;
            VECTOR(ends)[used++] = place[l];
        }
    }
    code = igraph_vector_int_resize(&ends, used);
    if (code == IGRAPH_SUCCESS)
        code = igraph_create(graph, &ends, n, IGRAPH_DIRECTED);
    igraph_vector_int_destroy(&ends);
    return code;
}

static igraph_error_t mark_cuts(ms_model *model, const uint32_t *at,
                                const igraph_t *graph)
{
    igraph_vector_int_t points;
    igraph_error_t code = igraph_vector_int_init(&points, 0);
    if (code != IGRAPH_SUCCESS)
        return code;
    code = igraph_articulation_points(graph, &points);
    for (igraph_integer_t i = 0; i < igraph_vector_int_size(&points); i++)
        model->cut[at[VECTOR(points)[i]]] = 1;
    igraph_vector_int_destroy(&points);
    return code;
}

static ms_err find_cuts_of(ms_model *model, ms_arena *arena, ms_arena *scratch,
                           ms_fault *fault)
{
    uint32_t n = 0;
    uint32_t *place =
        ms_arena_take_raw(scratch, model->n_layers, sizeof *place);
    uint32_t *at = ms_arena_take_raw(scratch, model->n_layers, sizeof *at);
    model->cut = ms_arena_take(arena, model->n_layers, 1);
    if (place == NULL || at == NULL || model->cut == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < model->n_layers; i++) {
        uint32_t l = model->order[i];
        place[l] = has_output(model, l) ? n : MS_NONE;
        if (place[l] != MS_NONE)
            at[n++] = l;
    }
    if (n == 0)
        return MS_OK;
    igraph_t graph;
    MS_TRY(translate(make_flow(model, place, n, &graph), fault));
    ms_err err = translate(mark_cuts(model, at, &graph), fault);
    igraph_destroy(&graph);
    model->cut[at[0]] = 1;     /* no layer is before it, */
    model->cut[at[n - 1]] = 1; /* none behind this one */
    return err;
}

/* What the short model says of the layers that are left out: blocks 1 and 2 of
 * it are cut alike, and what they read reaches no farther than one block. */
static bool spread_cuts(const ms_model *brief, const ms_blockrun *run,
                        uint8_t *cut)
{
    uint32_t p = run->period, gone = run->left_out * p;
    uint32_t kept = run->first + (MS_BLOCKRUN_LEFT - 1) * p;
    const uint8_t *block = brief->cut + run->first + 2 * p;
    if (memcmp(block - p, block, p) != 0)
        return false;
    memcpy(cut, brief->cut, kept);
    for (uint32_t i = 0; i < run->left_out; i++)
        memcpy(cut + kept + i * p, block, p);
    memcpy(cut + kept + gone, brief->cut + kept, brief->n_layers - kept);
    return true;
}

/* igraph sees four of a run of equal blocks. */
static ms_err find_cuts(ms_model *model, ms_arena *arena, ms_arena *scratch,
                        ms_fault *fault)
{
    ms_model brief;
    ms_blockrun run = ms_blockrun_find(model);
    if (run.left_out == 0 || !ms_blockrun_cut(model, &run, scratch, &brief))
        return find_cuts_of(model, arena, scratch, fault);
    MS_TRY(find_cuts_of(&brief, scratch, scratch, fault));
    uint8_t *cut = ms_arena_take(arena, model->n_layers, 1);
    if (cut == NULL)
        return ms_fail_nomem(fault);
    if (!spread_cuts(&brief, &run, cut))
        return find_cuts_of(model, arena, scratch, fault);
    model->cut = cut;
    return MS_OK;
}

static ms_err order(ms_model *model, ms_arena *arena, ms_arena *scratch,
                    ms_fault *fault)
{
    MS_TRY(check_cycles(model, fault));
    MS_TRY(check_ends(model, scratch, fault));
    MS_TRY(sort(model, arena, scratch, fault));
    return find_cuts(model, arena, scratch, fault);
}

ms_err ms_dag_order(ms_model *model, ms_arena *arena, ms_fault *fault)
{
    if (model->ops != NULL || model->nodes != NULL) /* in the order it ran */
        return MS_OK;
    igraph_error_handler_t *errors =
        igraph_set_error_handler(igraph_error_handler_ignore);
    igraph_warning_handler_t *warnings =
        igraph_set_warning_handler(igraph_warning_handler_ignore);
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_err err = order(model, arena, &scratch, fault);
    ms_arena_free(&scratch);
    igraph_set_error_handler(errors);
    igraph_set_warning_handler(warnings);
    return err;
}

/* ---- DOT ----------------------------------------------------------------- */

static void put_escaped(ms_text *text, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\')
            ms_text_put(text, "\\", 1);
        ms_text_put(text, (unsigned char)*name < 0x20 ? " " : name, 1);
    }
}

static void put_layer(const ms_model *model, uint32_t l, ms_text *text)
{
    const ms_layer *layer = &model->layers[l];
    ms_text_add(text, "    l%u [label=\"", l);
    put_escaped(text, layer->name);
    ms_text_add(text, "\\n");
    put_escaped(text, layer->kind->type);
    ms_text_add(text, model->cut != NULL && model->cut[l]
                          ? "\" style=filled fillcolor=\"#FCF7EF\"];\n"
                          : "\"];\n");
}

static void put_edges(const ms_model *model, uint32_t l, ms_text *text)
{
    const ms_layer *layer = &model->layers[l];
    for (uint32_t i = 0; i < layer->n_in; i++) {
        uint32_t from = model->edges[layer->in_at + i];
        if (from == MS_NONE)
            ms_text_add(text, "    input -> l%u;\n", l);
        else
            ms_text_add(text, "    l%u -> l%u;\n", from, l);
    }
}

/* Cut points are filled, blocks are boxes. */
void ms_dag_dot(const ms_model *model, ms_text *text)
{
    uint32_t open = MS_NONE;
    ms_text_add(text, "digraph \"");
    put_escaped(text, model->name);
    ms_text_add(text, "\" {\n    // filled: cut points; boxes: blocks\n"
                      "    graph [labeljust=l fontname=Helvetica];\n"
                      "    node [shape=box fontname=Helvetica];\n"
                      "    input [shape=plain];\n");
    for (uint32_t l = 0; l < model->n_layers; l++) {
        uint32_t block = model->layers[l].block;
        if (block != open && open != MS_NONE)
            ms_text_add(text, "    }\n");
        if (block != open && block != MS_NONE) {
            ms_text_add(text, "    subgraph cluster_%u {\n    label=\"", block);
            put_escaped(text, model->block_names[block]);
            ms_text_add(text, "\";\n");
        }
        open = block;
        put_layer(model, l, text);
    }
    if (open != MS_NONE)
        ms_text_add(text, "    }\n");
    for (uint32_t l = 0; l < model->n_layers; l++)
        put_edges(model, l, text);
    ms_text_add(text, "}\n");
}

const char *ms_dag_library(void)
{
    const char *version = "";
    igraph_version(&version, NULL, NULL, NULL);
    return version;
}
