/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layerlist.h"

#include "graphs/build.h"
#include "graphs/fields.h"
#include "graphs/index.h"
#include "graphs/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_CANDIDATES 10000u /* names that did-you-mean looks at */

/* One block, or the whole list (prefix ""). */
typedef struct scope {
    const char *prefix; /* "layers.3" */
    uint32_t length;
    uint32_t input; /* layer that "input" names, or MS_NONE: the model's */
    const struct scope *outer;
} scope;

/* A name of another layer, resolved when all layers are there. */
typedef struct reference {
    uint32_t node;  /* the JSON string */
    uint32_t layer; /* who refers */
    uint32_t edge;  /* row of model->edges, or MS_NONE: a field */
    uint32_t field;
    const scope *scope;
} reference;

typedef struct list {
    const ms_json *json;
    ms_build build;
    ms_arena *scratch; /* dies with the reading */
    ms_index names;
    reference *references;
    uint32_t n_references, references_capacity;
    uint32_t *counters[MS_SCAN_DEPTH]; /* per depth, per kind */
    uint32_t depth;
    ms_fault *fault;
} list;

/* ---- counting ------------------------------------------------------------ */

static ms_err check_array(const ms_json *json, uint32_t row, ms_fault *fault)
{
    const ms_json_node *node = &json->nodes[row];
    if (node->kind != MS_JSON_ARRAY || node->value.n == 0)
        return ms_json_fail(json, row, fault, NULL,
                            "\"layers\" must be an array of at least one "
                            "layer");
    for (uint32_t i = row + 1; i != MS_NONE; i = json->nodes[i].next)
        if (json->nodes[i].kind != MS_JSON_OBJECT)
            return ms_json_fail(json, i, fault, NULL,
                                "a layer must be an object, not %s",
                                ms_json_kind_name(json, i));
    return MS_OK;
}

const ms_field ms_layerlist_repeat_fields[MS_LAYERLIST_REPEAT] = {
    {.name = "repeat",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = MS_LAYERLIST_MAX,
     .help = "how many times"},
    {.name = "name", .type = MS_NAME, .help = "what the blocks are called"},
    {.name = "first",
     .type = MS_INT,
     .low = 0,
     .high = MS_LAYERLIST_MAX,
     .help = "the number of the first block"}};
static const char *const repeat_extra[] = {"layers"};
static const ms_fields repeat_keys = {.rows = ms_layerlist_repeat_fields,
                                      .n = MS_LAYERLIST_REPEAT,
                                      .extra = repeat_extra,
                                      .n_extra = 1,
                                      .owner = "a repeat"};

static ms_err read_repeat_fields(const ms_json *json, uint32_t row,
                                 int64_t *times, int64_t *first,
                                 uint32_t *layers, ms_fault *fault)
{
    ms_value values[MS_LAYERLIST_REPEAT] = {0};
    ms_fields_values out = {.values = values};
    MS_TRY(ms_fields_read_object(json, row, &repeat_keys, NULL, &out, fault));
    *times = values[0].i;
    *first = values[2].i;
    *layers = ms_json_find(json, row, "layers");
    if (*layers == MS_NONE)
        return ms_json_fail(json, row, fault, NULL,
                            "a repeat lacks the key \"layers\" (an array of "
                            "the layers to repeat)");
    return MS_OK;
}

/* Counts the layers before any is made, so that a hostile repeat costs
 * nothing.  Nesting is bounded by the JSON reader. */
static ms_err count_layers(const ms_json *json, uint32_t row, uint64_t *n,
                           ms_fault *fault)
{
    MS_TRY(check_array(json, row, fault));
    *n = 0;
    for (uint32_t i = row + 1; i != MS_NONE; i = json->nodes[i].next) {
        uint64_t inner = 1;
        if (ms_json_find(json, i, "repeat") != MS_NONE) {
            int64_t times, first;
            uint32_t layers;
            MS_TRY(read_repeat_fields(json, i, &times, &first, &layers, fault));
            MS_TRY(count_layers(json, layers, &inner, fault));
            inner *= (uint64_t)times; /* both at most 2^22 */
        }
        *n += inner;
        if (*n > MS_LAYERLIST_MAX)
            return ms_json_fail(json, i, fault, NULL, "more than %u layers",
                                MS_LAYERLIST_MAX);
    }
    return MS_OK;
}

/* ---- names --------------------------------------------------------------- */

static ms_err check_name(const list *l, uint32_t node)
{
    const char *name = l->json->nodes[node].value.s;
    if (l->json->nodes[node].kind != MS_JSON_STRING || *name == '\0')
        return ms_json_fail(l->json, node, l->fault, NULL,
                            "\"name\" must be a string with at least one "
                            "character");
    if (strlen(name) > MS_MAX_NAME)
        return ms_json_fail(l->json, node, l->fault, NULL,
                            "a name of more than %u bytes", MS_MAX_NAME);
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            return ms_json_fail(l->json, node, l->fault, NULL,
                                "a control character in a name");
    if (strcmp(name, "input") == 0)
        return ms_json_fail(l->json, node, l->fault, "choose another name",
                            "\"input\" is the name of the model's input");
    return MS_OK;
}

/* Writes prefix.name, or name in the outermost scope; the length of that, at
 * least MS_LAYERLIST_FULL where it does not fit. */
static size_t join(const scope *in, const char *name,
                   char buffer[MS_LAYERLIST_FULL])
{
    size_t start = in->length == 0 ? 0 : in->length + 1;
    size_t length = strlen(name);
    if (start + length >= MS_LAYERLIST_FULL)
        return MS_LAYERLIST_FULL;
    memcpy(buffer, in->prefix, in->length);
    if (start > 0)
        buffer[in->length] = '.';
    memcpy(buffer + start, name, length + 1);
    return start + length;
}

/* The full name of the element row, in the arena: its "name", or type and
 * counter. */
static ms_err full_name(list *l, uint32_t row, const scope *in,
                        const char *type, uint32_t *counter, ms_arena *arena,
                        const char **name)
{
    char own[64], full[MS_LAYERLIST_FULL];
    uint32_t node = ms_json_find(l->json, row, "name");
    *counter += 1;
    if (node != MS_NONE)
        MS_TRY(check_name(l, node));
    else
        snprintf(own, sizeof own, "%s%" PRIu32, type, *counter);
    size_t length =
        join(in, node == MS_NONE ? own : l->json->nodes[node].value.s, full);
    if (length >= sizeof full)
        return ms_json_fail(l->json, row, l->fault, NULL,
                            "a layer name of more than %u bytes with the "
                            "names of its blocks",
                            MS_LAYERLIST_FULL);
    *name = ms_arena_text(arena, full, length);
    return *name == NULL ? ms_fail_nomem(l->fault) : MS_OK;
}

/* ---- layers -------------------------------------------------------------- */

static const char *const layer_extra[] = {"type", "name", "inputs"};

/* "did you mean "relu"?" */
static ms_err fail_type(const list *l, uint32_t node, const char *type)
{
    const char **types =
        ms_arena_take(l->scratch, ms_layer_n_kinds, sizeof *types);
    char hint[96] = "see memsim help layers";
    if (types == NULL)
        return ms_fail_nomem(l->fault);
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++)
        types[i] = ms_layer_kinds[i].type;
    const char *near = ms_names_nearest(type, types, ms_layer_n_kinds);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_json_fail(l->json, node, l->fault, hint,
                        "unknown layer type \"%s\"", type);
}

static ms_err find_kind(const list *l, uint32_t row, uint32_t *kind)
{
    uint32_t node = ms_json_find(l->json, row, "type");
    if (node == MS_NONE)
        return ms_json_fail(l->json, row, l->fault, "see memsim help layers",
                            "a layer lacks the key \"type\" (linear, relu, "
                            "add, ...)");
    if (l->json->nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(l->json, node, l->fault, "see memsim help layers",
                            "\"type\" must be a string, not %s",
                            ms_json_kind_name(l->json, node));
    const char *type = l->json->nodes[node].value.s;
    *kind = ms_layer_find(type);
    return *kind != MS_NONE ? MS_OK : fail_type(l, node, type);
}

static ms_err add_reference(list *l, uint32_t node, uint32_t edge,
                            uint32_t field, const scope *in)
{
    l->references =
        ms_arena_grow(l->scratch, l->references, &l->references_capacity,
                      l->n_references + 1, sizeof *l->references);
    if (l->references == NULL)
        return ms_fail_nomem(l->fault);
    l->references[l->n_references++] =
        (reference){.node = node,
                    .layer = l->build.model->n_layers - 1,
                    .edge = edge,
                    .field = field,
                    .scope = in};
    return MS_OK;
}

/* Fields of the newest layer; names among them are resolved later. */
static ms_err read_fields(list *l, uint32_t row, ms_layer *layer,
                          const scope *in)
{
    const ms_layer_kind *kind = &ms_layer_kinds[layer->kind];
    const ms_fields keys = {.rows = kind->fields,
                            .n = kind->n_fields,
                            .extra = layer_extra,
                            .n_extra = 3,
                            .owner = "layer",
                            .owner_name = layer->name};
    ms_fields_values out = {.values = layer->field};
    MS_TRY(ms_fields_read_object(l->json, row, &keys, l->build.arena, &out,
                                 l->fault));
    MS_TRY(ms_fields_require(l->json, row, &keys, out.given, l->fault));
    layer->ints = out.ints;
    layer->n_ints = out.n_ints;
    for (uint32_t i = 0; i < keys.n; i++)
        if (keys.rows[i].type == MS_NAME && (out.given >> i & 1) != 0 &&
            *layer->field[i].s != '\0')
            MS_TRY(add_reference(l,
                                 ms_json_find(l->json, row, keys.rows[i].name),
                                 MS_NONE, i, in));
    return MS_OK;
}

static ms_err read_named_inputs(list *l, uint32_t inputs, const scope *in)
{
    const ms_json_node *nodes = l->json->nodes;
    if (nodes[inputs].kind != MS_JSON_ARRAY)
        return ms_json_fail(l->json, inputs, l->fault, NULL,
                            "\"inputs\" must be an array of layer names, "
                            "not %s",
                            ms_json_kind_name(l->json, inputs));
    for (uint32_t i = ms_json_first(l->json, inputs); i != MS_NONE;
         i = nodes[i].next) {
        if (nodes[i].kind != MS_JSON_STRING)
            return ms_json_fail(l->json, i, l->fault, NULL,
                                "an input must be the name of a layer, not "
                                "%s",
                                ms_json_kind_name(l->json, i));
        MS_TRY(add_reference(l, i, l->build.model->n_edges, 0, in));
        if (!ms_build_edge(&l->build, MS_NONE))
            return ms_fail_nomem(l->fault);
    }
    return MS_OK;
}

static ms_err read_inputs(list *l, uint32_t row, const ms_layer *layer,
                          const scope *in, uint32_t previous)
{
    const ms_layer_kind *kind = &ms_layer_kinds[layer->kind];
    uint32_t inputs = ms_json_find(l->json, row, "inputs");
    if (inputs != MS_NONE)
        MS_TRY(read_named_inputs(l, inputs, in));
    else if (kind->max_inputs > 0 && !ms_build_edge(&l->build, previous))
        return ms_fail_nomem(l->fault);
    bool any = kind->max_inputs == MS_ANY_INPUTS;
    if (layer->n_in >= kind->min_inputs &&
        (any || layer->n_in <= kind->max_inputs))
        return MS_OK;
    char needs[32];
    snprintf(needs, sizeof needs,
             any                                    ? "%u or more"
             : kind->min_inputs == kind->max_inputs ? "%u"
                                                    : "%u to %u",
             kind->min_inputs, kind->max_inputs);
    return ms_json_fail(
        l->json, inputs == MS_NONE ? row : inputs, l->fault,
        kind->max_inputs == 0 ? "remove \"inputs\""
                              : "name them: \"inputs\": [\"first\", ...]",
        "layer \"%s\" (%s) has %" PRIu32 " inputs, its type needs %s",
        layer->name, kind->type, layer->n_in, needs);
}

/* *previous is the layer before, and becomes this one if it has an output. */
static ms_err read_layer(list *l, uint32_t row, const scope *in, uint32_t block,
                         uint32_t *previous)
{
    uint32_t kind;
    const char *name;
    MS_TRY(find_kind(l, row, &kind));
    uint32_t *counter = &l->counters[l->depth][kind];
    MS_TRY(full_name(l, row, in, ms_layer_kinds[kind].type, counter,
                     l->build.arena, &name));
    ms_layer *layer = ms_build_layer(&l->build, name, kind);
    if (layer == NULL)
        return ms_fail_nomem(l->fault);
    uint32_t self = l->build.model->n_layers - 1;
    layer->block = block;
    layer->spot =
        (ms_spot){l->json->nodes[row].line, l->json->nodes[row].column};
    MS_TRY(read_fields(l, row, layer, in));
    MS_TRY(read_inputs(l, row, layer, in, *previous));
    uint32_t first = ms_index_add(&l->names, name, self);
    if (first != self)
        return ms_json_fail(l->json, row, l->fault,
                            "give one of them another \"name\"",
                            "two layers are called \"%s\" (the first in "
                            "line %" PRIu32 ")",
                            name, l->build.model->layers[first].spot.line);
    if (ms_layer_kinds[kind].max_inputs > 0)
        *previous = self;
    return MS_OK;
}

/* ---- lists and repeats --------------------------------------------------- */

static ms_err read_list(list *l, uint32_t row, const scope *in, uint32_t block,
                        uint32_t *previous);

static ms_err read_block(list *l, uint32_t layers, const scope *outer,
                         const char *name, uint32_t block, uint32_t *previous)
{
    scope *in = ms_arena_take(l->scratch, 1, sizeof *in);
    if (in == NULL)
        return ms_fail_nomem(l->fault);
    *in = (scope){name, (uint32_t)strlen(name), *previous, outer};
    if (block == MS_NONE) { /* of nested repeats the outermost counts */
        block = ms_build_block(&l->build, name);
        if (block == MS_NONE)
            return ms_fail_nomem(l->fault);
    }
    return read_list(l, layers, in, block, previous);
}

static ms_err read_repeat(list *l, uint32_t row, const scope *in,
                          uint32_t block, uint32_t *previous)
{
    int64_t times, first;
    uint32_t layers;
    const char *name;
    MS_TRY(read_repeat_fields(l->json, row, &times, &first, &layers, l->fault));
    MS_TRY(full_name(l, row, in, "repeat",
                     &l->counters[l->depth][ms_layer_n_kinds], l->scratch,
                     &name));
    for (int64_t i = 0; i < times; i++) {
        const char *full =
            ms_arena_format(l->build.arena, "%s.%" PRId64, name, first + i);
        if (full == NULL)
            return ms_fail_nomem(l->fault);
        MS_TRY(read_block(l, layers, in, full, block, previous));
    }
    return MS_OK;
}

static ms_err read_list(list *l, uint32_t row, const scope *in, uint32_t block,
                        uint32_t *previous)
{
    size_t n = ms_layer_n_kinds + 1;
    l->depth++;
    uint32_t *counters = l->counters[l->depth];
    if (counters == NULL)
        counters = ms_arena_take(l->scratch, n, sizeof *counters);
    if (counters == NULL)
        return ms_fail_nomem(l->fault);
    memset(counters, 0, n * sizeof *counters);
    l->counters[l->depth] = counters;
    for (uint32_t i = row + 1; i != MS_NONE; i = l->json->nodes[i].next) {
        if (ms_json_find(l->json, i, "repeat") != MS_NONE)
            MS_TRY(read_repeat(l, i, in, block, previous));
        else
            MS_TRY(read_layer(l, i, in, block, previous));
    }
    l->depth--;
    return MS_OK;
}

/* ---- references ---------------------------------------------------------- */

/* The nearest name as it could be written in this scope. */
static const char *nearest(const list *l, const reference *from,
                           const char *word)
{
    const ms_model *model = l->build.model;
    const scope *in = from->scope;
    const char **names =
        ms_arena_take(l->scratch, MAX_CANDIDATES, sizeof *names);
    uint32_t n = 0;
    if (names == NULL)
        return NULL;
    names[n++] = "input";
    for (uint32_t i = 0; i < model->n_layers && n < MAX_CANDIDATES; i++) {
        const char *name = model->layers[i].name;
        if (in->length > 0 && strncmp(name, in->prefix, in->length) == 0 &&
            name[in->length] == '.')
            name += in->length + 1;
        names[n++] = name;
    }
    return ms_names_nearest(word, names, n);
}

static ms_err fail_reference(const list *l, const reference *from,
                             const char *word)
{
    char hint[MS_LAYERLIST_FULL] = "see memsim inspect for all names";
    const char *near = nearest(l, from, word);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_json_fail(l->json, from->node, l->fault, hint,
                        "there is no layer \"%s\"", word);
}

static ms_err resolve(const list *l, const reference *from)
{
    ms_model *model = l->build.model;
    const char *word = l->json->nodes[from->node].value.s;
    bool edge = from->edge != MS_NONE;
    char full[MS_LAYERLIST_FULL];
    if (edge && strcmp(word, "input") == 0) {
        model->edges[from->edge] = from->scope->input;
        return MS_OK;
    }
    uint32_t found = MS_NONE;
    for (const scope *in = from->scope; in != NULL && found == MS_NONE;
         in = in->outer)
        if (join(in, word, full) < sizeof full)
            found = ms_index_find(&l->names, full);
    if (found == MS_NONE)
        return fail_reference(l, from, word);
    if (!edge) {
        model->layers[from->layer].field[from->field].s =
            model->layers[found].name;
        return MS_OK;
    }
    if (ms_layer_kinds[model->layers[found].kind].max_inputs == 0)
        return ms_json_fail(l->json, from->node, l->fault, NULL,
                            "layer \"%s\" has no output", word);
    model->edges[from->edge] = found;
    return MS_OK;
}

static ms_err read_all(list *l, uint32_t row)
{
    static const scope outermost = {"", 0, MS_NONE, NULL};
    uint64_t n;
    uint32_t previous = MS_NONE;
    MS_TRY(count_layers(l->json, row, &n, l->fault));
    MS_TRY(ms_index_make(&l->names, (uint32_t)n, l->scratch, l->fault));
    MS_TRY(ms_build_reserve(&l->build, (uint32_t)n, (uint32_t)n, l->fault));
    MS_TRY(read_list(l, row, &outermost, MS_NONE, &previous));
    for (uint32_t i = 0; i < l->n_references; i++)
        MS_TRY(resolve(l, &l->references[i]));
    return MS_OK;
}

ms_err ms_layerlist_read(const ms_json *json, uint32_t row, ms_arena *arena,
                         ms_model *model, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    list l = {.json = json,
              .build = {.model = model, .arena = arena},
              .scratch = &scratch,
              .fault = fault};
    ms_err err = read_all(&l, row);
    ms_arena_free(&scratch);
    return err;
}
