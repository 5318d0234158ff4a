/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/layerlist.h"

#include "graphs/json/fields.h"
#include "graphs/json/json.h"
#include "graphs/layertypes.h"
#include "graphs/models/build.h"
#include "graphs/models/layercount.h"
#include "graphs/models/layergroups.h"
#include "graphs/models/layernames.h"
#include "sim/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The counters of one list, from which default names are made: of groups, then
 * of layers by kind. */
enum { N_REPEATS, N_EACH, N_GROUPS, N_COUNTERS };

/* The layer that a group reads, and the group's last layer. */
typedef struct hold {
    uint32_t from, last;
} hold;

/* What is found out about an element of the file once, although a repeat reads
 * it for each of its blocks. */
typedef struct element {
    uint32_t inputs, when; /* nodes, or MS_NONE */
    bool is_group, has_name;
    uint32_t kind;  /* the kind of a layer; MS_NONE: not yet known */
    uint32_t made;  /* the first layer of it, or MS_NONE */
    uint64_t given; /* a bit per field of the kind that the file gives */
} element;

typedef struct list {
    ms_layernames names;
    ms_build build;
    const ms_layerlist *given;
    uint32_t *counters[MS_JSON_DEPTH]; /* per depth */
    uint32_t depth, n_visits;
    hold *holds; /* in the order in which groups end */
    uint32_t n_holds, holds_capacity;
    uint32_t *places; /* per JSON row: 1 + the row of elements, or 0 */
    element *elements;
    uint32_t n_elements, elements_capacity;
} list;

static const ms_json *json_of(const list *l)
{
    return l->names.json;
}

static ms_err read_list(list *l, uint32_t row, const ms_scope *in,
                        uint32_t block, uint32_t *previous);

/* ---- elements ------------------------------------------------------------ */

/* Every element costs a visit, whether it makes a layer or not: the limit holds
 * for groups that make none. */
static ms_err visit(list *l, uint32_t row)
{
    if (++l->n_visits > l->given->most)
        return ms_layercount_fail(l->given, row, l->names.fault);
    return MS_OK;
}

static void find_members(const ms_json *json, uint32_t row, element *e)
{
    static const char *const groups[] = {"repeat", "each", "template",
                                         "layers"};
    *e = (element){
        .inputs = MS_NONE, .when = MS_NONE, .kind = MS_NONE, .made = MS_NONE};
    for (uint32_t i = ms_json_first(json, row); i != MS_NONE;
         i = json->nodes[i].next) {
        const char *key = json->nodes[i].key;
        if (strcmp(key, "inputs") == 0)
            e->inputs = i;
        else if (strcmp(key, "when") == 0)
            e->when = i;
        else if (strcmp(key, "name") == 0)
            e->has_name = true;
        for (size_t k = 0; k < sizeof groups / sizeof *groups; k++)
            e->is_group |= strcmp(key, groups[k]) == 0;
    }
}

/* Returns NULL where memory runs out.  The row may move when another is asked
 * for. */
static element *element_of(list *l, uint32_t row)
{
    if (l->places[row] > 0)
        return &l->elements[l->places[row] - 1];
    l->elements =
        ms_arena_grow(l->names.scratch, l->elements, &l->elements_capacity,
                      l->n_elements + 1, sizeof *l->elements);
    if (l->elements == NULL)
        return NULL;
    element *e = &l->elements[l->n_elements++];
    find_members(json_of(l), row, e);
    l->places[row] = l->n_elements;
    return e;
}

/* ---- layers -------------------------------------------------------------- */

static const char *const layer_extra[] = {"type", "name", "inputs", "when"};

/* The fault of an unknown type, with the nearest one: did you mean "relu"? */
static ms_err fail_type(const list *l, uint32_t node, const char *type)
{
    const char **types =
        ms_arena_take(l->names.scratch, ms_layer_n_kinds, sizeof *types);
    char hint[96] = "see memsim help layers";
    if (types == NULL)
        return ms_fail_nomem(l->names.fault);
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++)
        types[i] = ms_layer_kinds[i].type;
    const char *near = ms_names_nearest(type, types, ms_layer_n_kinds);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_json_fail(json_of(l), node, l->names.fault, hint,
                        "unknown layer type \"%s\"", type);
}

static ms_err find_kind(const list *l, uint32_t row, uint32_t *kind)
{
    const ms_json *json = json_of(l);
    if (*kind != MS_NONE)
        return MS_OK;
    uint32_t node = ms_json_find(json, row, "type");
    if (node == MS_NONE)
        return ms_json_fail(json, row, l->names.fault, "see memsim help layers",
                            "a layer lacks the key \"type\" (linear, relu, "
                            "add, ...)");
    if (json->nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(
            json, node, l->names.fault, "see memsim help layers",
            "\"type\" must be a string, not %s", ms_json_kind_name(json, node));
    const char *type = json->nodes[node].value.s;
    *kind = ms_layer_find(type);
    return *kind != MS_NONE ? MS_OK : fail_type(l, node, type);
}

/* Fields that name layers are resolved when all layers are there. */
static ms_err defer_fields(list *l, uint32_t row, const element *e,
                           const ms_layer *layer, const ms_scope *in)
{
    const ms_layer_kind *kind = layer->kind;
    for (uint32_t i = 0; i < kind->n_fields; i++)
        if (kind->fields[i].type == MS_NAME && (e->given >> i & 1) != 0 &&
            *layer->field[i].s != '\0')
            MS_TRY(ms_layernames_defer(
                &l->names, ms_json_find(json_of(l), row, kind->fields[i].name),
                in, MS_NONE, i));
    return MS_OK;
}

/* Reads the fields of the newest layer.  Where no variable has a value, they
 * are the same as those of another block before their names are resolved, and
 * are copied from it. */
static ms_err read_fields(list *l, uint32_t row, element *e, ms_layer *layer,
                          const ms_scope *in)
{
    const ms_json *json = json_of(l);
    const ms_layer_kind *kind = layer->kind;
    const ms_fields keys = {.rows = kind->fields,
                            .n = kind->n_fields,
                            .extra = layer_extra,
                            .n_extra = 4,
                            .owner = "layer",
                            .owner_name = layer->name,
                            .expressions = true,
                            .variables = in->variables};
    ms_fields_values out = {.values = layer->field};
    if (in->variables == NULL && e->made != MS_NONE) {
        const ms_layer *first = &l->build.model->layers[e->made];
        memcpy(layer->field, first->field,
               kind->n_fields * sizeof *layer->field);
        layer->ints = first->ints;
        layer->n_ints = first->n_ints;
        MS_TRY(ms_build_close(&l->build, l->names.fault));
        return defer_fields(l, row, e, layer, in);
    }
    MS_TRY(ms_fields_read_object(json, row, &keys, l->build.arena, &out,
                                 l->names.fault));
    MS_TRY(ms_fields_require(json, row, &keys, out.given, l->names.fault));
    layer->ints = out.ints;
    layer->n_ints = out.n_ints;
    MS_TRY(ms_build_close(&l->build, l->names.fault));
    if (in->variables == NULL)
        e->made = l->build.model->n_layers - 1;
    e->given = out.given;
    return defer_fields(l, row, e, layer, in);
}

/* Reads the outputs of a group's repetitions so far. */
static ms_err read_parts(list *l, uint32_t group)
{
    for (uint32_t part = l->names.labels[group].first_part; part != MS_NONE;
         part = l->names.labels[part].next_part)
        if (!ms_build_edge(&l->build, l->names.labels[part].output))
            return ms_fail_nomem(l->names.fault);
    return MS_OK;
}

static ms_err read_named_input(list *l, uint32_t node, const ms_scope *in)
{
    bool is_parts;
    uint32_t group = MS_NONE;
    if (json_of(l)->nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(json_of(l), node, l->names.fault, NULL,
                            "an input must be the name of a layer, not "
                            "%s",
                            ms_json_kind_name(json_of(l), node));
    MS_TRY(ms_layernames_find_parts(&l->names, node, in, &is_parts, &group));
    if (is_parts)
        return read_parts(l, group);
    MS_TRY(
        ms_layernames_defer(&l->names, node, in, l->build.model->n_edges, 0));
    if (!ms_build_edge(&l->build, MS_NONE))
        return ms_fail_nomem(l->names.fault);
    return MS_OK;
}

static ms_err check_inputs(const list *l, uint32_t row)
{
    const ms_json_node *nodes = json_of(l)->nodes;
    if (nodes[row].kind == MS_JSON_ARRAY)
        return MS_OK;
    return ms_json_fail(json_of(l), row, l->names.fault, NULL,
                        "\"inputs\" must be an array of layer names, not %s",
                        ms_json_kind_name(json_of(l), row));
}

static ms_err read_named_inputs(list *l, uint32_t inputs, const ms_scope *in)
{
    const ms_json_node *nodes = json_of(l)->nodes;
    MS_TRY(check_inputs(l, inputs));
    for (uint32_t i = ms_json_first(json_of(l), inputs); i != MS_NONE;
         i = nodes[i].next)
        MS_TRY(read_named_input(l, i, in));
    return MS_OK;
}

/* An element without "inputs" reads the layer before it, and the first one
 * reads the input of the model (MS_NONE). */
static ms_err read_inputs(list *l, uint32_t row, uint32_t inputs,
                          const ms_layer *layer, const ms_scope *in,
                          uint32_t previous)
{
    const ms_layer_kind *kind = layer->kind;
    if (inputs != MS_NONE)
        MS_TRY(read_named_inputs(l, inputs, in));
    else if (kind->max_inputs > 0 && !ms_build_edge(&l->build, previous))
        return ms_fail_nomem(l->names.fault);
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
        json_of(l), inputs == MS_NONE ? row : inputs, l->names.fault,
        kind->max_inputs == 0 ? "remove \"inputs\""
                              : "name them: \"inputs\": [\"first\", ...]",
        "layer \"%s\" (%s) has %" PRIu32 " inputs, its type needs %s",
        layer->name, kind->type, layer->n_in, needs);
}

/* "linear12".  A chain may have a million of them, for which printf is slow. */
static void name_by_number(const char *word, uint32_t number, char own[64])
{
    char digits[10];
    size_t at = sizeof digits, length = strlen(word);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    memcpy(own, word, length);
    memcpy(own + length, digits + at, sizeof digits - at);
    own[length + sizeof digits - at] = '\0';
}

/* *previous is the layer before, and becomes this one if this one takes part in
 * the chain: a layer without inputs stands beside it. */
static ms_err read_layer(list *l, uint32_t row, element *e, const ms_scope *in,
                         uint32_t block, uint32_t *previous)
{
    const ms_json_node *node = &json_of(l)->nodes[row];
    uint32_t label;
    const char *name;
    char own[64];
    MS_TRY(find_kind(l, row, &e->kind));
    uint32_t kind = e->kind;
    uint32_t number = ++l->counters[l->depth][N_COUNTERS + kind];
    if (!e->has_name)
        name_by_number(ms_layer_kinds[kind].type, number, own);
    MS_TRY(ms_layernames_make(&l->names, row, in, own, NULL, &name));
    ms_layer *layer = ms_build_layer(&l->build, name, kind);
    if (layer == NULL)
        return ms_fail_nomem(l->names.fault);
    uint32_t self = l->build.model->n_layers - 1;
    layer->block = block;
    layer->spot = (ms_spot){node->line, node->column};
    MS_TRY(read_fields(l, row, e, layer, in));
    MS_TRY(read_inputs(l, row, e->inputs, layer, in, *previous));
    MS_TRY(ms_layernames_add(&l->names, row, name, *previous, &label));
    l->names.labels[label].output = self;
    l->names.labels[label].silent = ms_layer_kinds[kind].silent;
    if (ms_layer_kinds[kind].max_inputs > 0)
        *previous = self;
    return MS_OK;
}

/* ---- what is left out ---------------------------------------------------- */

/* Finds the first input of the element, if that layer exists already. */
static ms_err find_source(const list *l, uint32_t row, const ms_scope *in,
                          uint32_t previous, uint32_t *source)
{
    const ms_json *json = json_of(l);
    uint32_t inputs = ms_json_find(json, row, "inputs");
    *source = previous;
    if (inputs == MS_NONE)
        return MS_OK;
    MS_TRY(check_inputs(l, inputs));
    uint32_t first = ms_json_first(json, inputs);
    if (first == MS_NONE || json->nodes[first].kind != MS_JSON_STRING)
        return ms_json_fail(json, inputs, l->names.fault, NULL,
                            "\"inputs\" must name a layer");
    return ms_layernames_find(&l->names, first, in, source);
}

static ms_err read_when(const list *l, uint32_t node, const ms_scope *in,
                        bool *when)
{
    static const ms_field field = {
        .name = "when", .type = MS_BOOL, .help = "an expression that is not 0"};
    const ms_fields keys = {.rows = &field,
                            .n = 1,
                            .owner = "the layer",
                            .expressions = true,
                            .variables = in->variables};
    ms_value value = {.b = true};
    if (node != MS_NONE)
        MS_TRY(ms_fields_evaluate(json_of(l), node, &keys, 0, &value,
                                  l->names.fault));
    *when = value.b;
    return MS_OK;
}

/* The name of an element that is left out stands for what the element would
 * have read. */
static ms_err leave_out(list *l, uint32_t row, const ms_scope *in,
                        uint32_t *previous)
{
    const char *name;
    MS_TRY(find_source(l, row, in, *previous, previous));
    if (ms_json_find(json_of(l), row, "name") == MS_NONE)
        return MS_OK;
    MS_TRY(ms_layernames_make(&l->names, row, in, "", NULL, &name));
    return ms_layernames_leave_out(&l->names, row, name, *previous);
}

/* ---- repetitions --------------------------------------------------------- */

/* Layers and their references keep the scope, so it is not on the stack. */
static ms_err open_scope(list *l, const ms_repetition *g, int64_t k,
                         const ms_scope *outer, const char *own, uint32_t input,
                         ms_scope **scope)
{
    char suffix[32];
    ms_scope *s = ms_arena_take(l->names.scratch, 1, sizeof *s);
    if (s == NULL)
        return ms_fail_nomem(l->names.fault);
    *s = *outer;
    MS_TRY(ms_layergroups_bind(&l->names, g, k, s));
    snprintf(suffix, sizeof suffix, ".%" PRId64, g->first + k);
    MS_TRY(ms_layernames_make(&l->names, g->row, s, own,
                              g->is_many ? suffix : NULL, &s->prefix));
    s->length = (uint32_t)strlen(s->prefix);
    s->input = input;
    s->outer = outer;
    *scope = s;
    return MS_OK;
}

/* Notes that the group holds its input, as a Python function holds its argument
 * until it returns. */
static ms_err hold_input(list *l, uint32_t input)
{
    uint32_t n = l->build.model->n_layers;
    if (input == MS_NONE || n == 0)
        return MS_OK;
    l->holds = ms_arena_grow(l->names.scratch, l->holds, &l->holds_capacity,
                             l->n_holds + 1, sizeof *l->holds);
    if (l->holds == NULL)
        return ms_fail_nomem(l->names.fault);
    l->holds[l->n_holds++] = (hold){input, n - 1};
    return MS_OK;
}

static ms_err note_holds(const list *l)
{
    ms_model *model = l->build.model;
    if (l->n_holds == 0)
        return MS_OK;
    model->held =
        ms_arena_take_raw(l->build.arena, model->n_layers, sizeof *model->held);
    if (model->held == NULL)
        return ms_fail_nomem(l->names.fault);
    memset(model->held, 0xff, model->n_layers * sizeof *model->held);
    for (uint32_t i = 0; i < l->n_holds; i++)
        model->held[l->holds[i].from] = l->holds[i].last;
    return MS_OK;
}

static ms_err read_repetition(list *l, const ms_repetition *g, ms_scope *in,
                              uint32_t block, uint32_t *previous)
{
    uint32_t label = g->label;
    if (g->is_many || label == MS_NONE)
        MS_TRY(ms_layernames_add(&l->names, g->row, in->prefix, in->input,
                                 &label));
    if (g->is_block && block == MS_NONE) { /* the outermost block counts */
        block = ms_build_block(&l->build, in->prefix);
        if (block == MS_NONE)
            return ms_fail_nomem(l->names.fault);
    }
    MS_TRY(read_list(l, g->layers, in, block, previous));
    l->names.labels[label].output = *previous;
    if (g->is_call)
        MS_TRY(hold_input(l, in->input));
    if (g->label != MS_NONE && label != g->label)
        ms_layernames_add_part(&l->names, g->label, label);
    return MS_OK;
}

/* Makes the name of a group without one from its kind and number. */
static void name_group(list *l, const ms_repetition *g, char own[64])
{
    static const char *const words[] = {"repeat", "each", "group"};
    uint32_t kind = g->repeats           ? N_REPEATS
                    : g->each != MS_NONE ? N_EACH
                                         : N_GROUPS;
    name_by_number(words[kind], ++l->counters[l->depth][kind], own);
}

static ms_err check_one_input(const list *l, uint32_t row)
{
    uint32_t inputs = ms_json_find(json_of(l), row, "inputs");
    if (inputs == MS_NONE || json_of(l)->nodes[inputs].kind != MS_JSON_ARRAY ||
        json_of(l)->nodes[inputs].value.n == 1)
        return MS_OK;
    return ms_json_fail(json_of(l), inputs, l->names.fault,
                        "its layers may name others",
                        "a group of layers reads one layer");
}

static ms_err read_group(list *l, uint32_t row, const ms_scope *in,
                         uint32_t block, uint32_t *previous)
{
    char own[64];
    const char *name;
    uint32_t input;
    ms_repetition g;
    MS_TRY(ms_layergroups_read(&l->names, l->given->templates, row, in, &g));
    MS_TRY(check_one_input(l, row));
    MS_TRY(find_source(l, row, in, *previous, &input));
    name_group(l, &g, own);
    if (!ms_layernames_is_filled(&l->names, row)) {
        MS_TRY(ms_layernames_make(&l->names, row, in, own, NULL, &name));
        MS_TRY((g.repeats ? ms_layernames_add_blocks : ms_layernames_add)(
            &l->names, row, name, input, &g.label));
    }
    *previous = input;
    for (int64_t k = 0; k < g.times; k++) {
        ms_scope *scope = NULL;
        MS_TRY(open_scope(l, &g, k, in, own, *previous, &scope));
        MS_TRY(read_repetition(l, &g, scope, block, previous));
        if (g.label != MS_NONE)
            l->names.labels[g.label].output = *previous;
    }
    return MS_OK;
}

/* ---- lists --------------------------------------------------------------- */

static ms_err read_element(list *l, uint32_t row, const ms_scope *in,
                           uint32_t block, uint32_t *previous)
{
    bool when;
    MS_TRY(visit(l, row));
    element *e = element_of(l, row);
    if (e == NULL)
        return ms_fail_nomem(l->names.fault);
    MS_TRY(read_when(l, e->when, in, &when));
    if (!when)
        return leave_out(l, row, in, previous);
    return e->is_group ? read_group(l, row, in, block, previous)
                       : read_layer(l, row, e, in, block, previous);
}

static ms_err read_list(list *l, uint32_t row, const ms_scope *in,
                        uint32_t block, uint32_t *previous)
{
    size_t n = ms_layer_n_kinds + N_COUNTERS;
    if (l->depth + 1 == MS_JSON_DEPTH)
        return ms_json_fail(json_of(l), row, l->names.fault,
                            "does a template use itself?",
                            "groups of layers nest too deep");
    MS_TRY(ms_layercount_array(json_of(l), row, l->names.fault));
    l->depth++;
    uint32_t *counters = l->counters[l->depth];
    if (counters == NULL)
        counters = ms_arena_take(l->names.scratch, n, sizeof *counters);
    if (counters == NULL)
        return ms_fail_nomem(l->names.fault);
    memset(counters, 0, n * sizeof *counters);
    l->counters[l->depth] = counters;
    for (uint32_t i = row + 1; i != MS_NONE; i = json_of(l)->nodes[i].next)
        MS_TRY(read_element(l, i, in, block, previous));
    l->depth--;
    return MS_OK;
}

/* Counting first bounds the memory that a file of nested repeats can ask for,
 * and reserves it at once. */
static ms_err read_all(list *l)
{
    const ms_layerlist *given = l->given;
    const ms_json *json = given->json;
    const ms_scope outermost = {
        .prefix = "", .input = MS_NONE, .variables = given->variables};
    uint64_t n;
    uint32_t previous = MS_NONE;
    MS_TRY(ms_layercount_least(given, &n, l->names.fault));
    uint32_t i = given->templates == MS_NONE
                     ? MS_NONE
                     : ms_json_first(json, given->templates);
    for (; i != MS_NONE; i = json->nodes[i].next)
        MS_TRY(ms_layercount_array(json, i, l->names.fault));
    MS_TRY(ms_build_reserve(&l->build, (uint32_t)n + 1, (uint32_t)n + 1,
                            l->names.fault));
    l->names.expected = (uint32_t)n;
    l->places = ms_arena_take(l->names.scratch, json->n, sizeof *l->places);
    if (l->places == NULL)
        return ms_fail_nomem(l->names.fault);
    MS_TRY(read_list(l, given->row, &outermost, MS_NONE, &previous));
    MS_TRY(ms_layernames_resolve(&l->names));
    return note_holds(l);
}

uint64_t ms_layerlist_most(const ms_json *json)
{
    uint64_t most = (uint64_t)json->n + MS_LAYERLIST_REPEATED;
    return most < MS_LAYERLIST_MAX ? most : MS_LAYERLIST_MAX;
}

ms_err ms_layerlist_read(const ms_layerlist *given, ms_arena *arena,
                         ms_model *model, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    list l = {.names = {.json = given->json,
                        .model = model,
                        .arena = arena,
                        .scratch = &scratch,
                        .fault = fault},
              .build = {.model = model, .arena = arena},
              .given = given};
    ms_err err = read_all(&l);
    ms_arena_free(&scratch);
    return err;
}
