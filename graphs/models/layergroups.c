/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/layergroups.h"

#include "graphs/json/fields.h"
#include "graphs/layertypes.h"
#include "graphs/models/layerlist.h"
#include "sim/names.h"

#include <stdio.h>

/* The nearest name is searched among so many templates. */
#define MAX_TEMPLATES 64u

/* ---- fields -------------------------------------------------------------- */

enum { REPEAT, NAME, FIRST, INDEX, TEMPLATE, BLOCK };
const ms_field ms_layergroups_fields[MS_LAYERGROUPS_FIELDS] = {
    {.name = "repeat",
     .type = MS_INT,
     .low = 1,
     .high = MS_LAYERLIST_MAX,
     .help = "how many times, each a block"},
    {.name = "name", .type = MS_NAME, .help = "what the blocks are called"},
    {.name = "first",
     .type = MS_INT,
     .low = 0,
     .high = MS_LAYERLIST_MAX,
     .help = "the number of the first block"},
    {.name = "index",
     .type = MS_NAME,
     .help = "a variable that counts the repetitions, from first"},
    {.name = "template",
     .type = MS_NAME,
     .help = "layers that stand in the file's \"templates\""},
    {.name = "block",
     .type = MS_BOOL,
     .help = "each repetition is a block; default: those of a repeat are"}};
static const char *const group_extra[] = {"layers", "inputs", "each", "with",
                                          "when"};

static ms_err fail_group(const ms_layernames *names, uint32_t node,
                         const char *what, const char *hint)
{
    return ms_json_fail(names->json, node, names->fault, hint, "%s", what);
}

/* Checks that the lists of "each" are equally long, which is how often the
 * group repeats. */
static ms_err count_each(const ms_layernames *names, uint32_t each,
                         int64_t *times)
{
    const ms_json_node *nodes = names->json->nodes;
    if (nodes[each].kind != MS_JSON_OBJECT || nodes[each].value.n == 0)
        return fail_group(names, each, "\"each\" must be an object of lists",
                          "\"each\": {\"width\": [64, 128]}");
    for (uint32_t i = ms_json_first(names->json, each); i != MS_NONE;
         i = nodes[i].next) {
        bool first = i == ms_json_first(names->json, each);
        if (nodes[i].kind != MS_JSON_ARRAY || nodes[i].value.n == 0 ||
            nodes[i].value.n > MS_LAYERGROUPS_EACH)
            return fail_group(names, i,
                              "\"each\" needs lists of 1 to 1024 values",
                              "\"each\": {\"width\": [64, 128]}");
        if (!first && nodes[i].value.n != (uint64_t)*times)
            return fail_group(names, i,
                              "the lists of \"each\" differ in length",
                              "give each a value for every repetition");
        *times = nodes[i].value.n;
    }
    return MS_OK;
}

static ms_err find_template(const ms_layernames *names, uint32_t templates,
                            uint32_t row, const char *name, uint32_t *layers)
{
    const ms_json *json = names->json;
    const char *words[MAX_TEMPLATES] = {0};
    char hint[MS_MAX_NAME + 32] = "add it to the file's \"templates\"";
    uint32_t n = 0;
    *layers = MS_NONE;
    if (templates != MS_NONE)
        *layers = ms_json_find(json, templates, name);
    if (*layers != MS_NONE)
        return MS_OK;
    for (uint32_t i = templates == MS_NONE ? MS_NONE
                                           : ms_json_first(json, templates);
         i != MS_NONE && n < MAX_TEMPLATES; i = json->nodes[i].next)
        words[n++] = json->nodes[i].key;
    const char *near = ms_names_nearest(name, words, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%.250s\"?", near);
    return ms_json_fail(json, ms_json_find(json, row, "template"), names->fault,
                        hint, "there is no template \"%s\"", name);
}

static ms_err find_layers(const ms_layernames *names, uint32_t templates,
                          const ms_value *values, uint64_t given,
                          ms_repetition *g)
{
    bool template = (given >> TEMPLATE & 1) != 0;
    g->layers = ms_json_find(names->json, g->row, "layers");
    if (template && g->layers != MS_NONE)
        return fail_group(names, g->row, "\"template\" beside \"layers\"",
                          "keep one of the two");
    if (template)
        return find_template(names, templates, g->row, values[TEMPLATE].s,
                             &g->layers);
    if (g->layers != MS_NONE)
        return MS_OK;
    return fail_group(names, g->row,
                      g->repeats ? "a repeat lacks the key \"layers\" (an "
                                   "array of the layers to repeat)"
                                 : "a group lacks the key \"layers\" (an "
                                   "array of layers)",
                      NULL);
}

static ms_err check_variable(const ms_layernames *names, uint32_t node,
                             const char *name)
{
    if (ms_numbers_is_name(name))
        return MS_OK;
    return ms_json_fail(names->json, node, names->fault,
                        "letters, digits and _, not a digit first",
                        "\"%s\" cannot be the name of a variable", name);
}

/* The layers are found last, so that a fault in the group's own keys is told
 * before one in its layers. */
ms_err ms_layergroups_read(const ms_layernames *names, uint32_t templates,
                           uint32_t row, const ms_scope *in, ms_repetition *g)
{
    const ms_json *json = names->json;
    const ms_fields keys = {.rows = ms_layergroups_fields,
                            .n = MS_LAYERGROUPS_FIELDS,
                            .extra = group_extra,
                            .n_extra = 5,
                            .owner = "a group of layers",
                            .expressions = true,
                            .variables = in->variables};
    ms_value values[MS_LAYERGROUPS_FIELDS] = {[REPEAT].i = 1};
    ms_fields_values out = {.values = values};
    MS_TRY(ms_fields_read_object(json, row, &keys, NULL, &out, names->fault));
    *g = (ms_repetition){.row = row,
                         .each = ms_json_find(json, row, "each"),
                         .with = ms_json_find(json, row, "with"),
                         .times = values[REPEAT].i,
                         .first = values[FIRST].i,
                         .repeats = (out.given >> REPEAT & 1) != 0,
                         .label = MS_NONE};
    bool said = (out.given >> BLOCK & 1) != 0;
    g->is_block = said ? values[BLOCK].b : g->repeats;
    g->is_many = g->repeats || g->each != MS_NONE;
    g->is_call = !g->is_many || (g->repeats && said);
    if (g->repeats && g->each != MS_NONE)
        return fail_group(names, g->each, "\"each\" beside \"repeat\"",
                          "keep one of the two, or nest them");
    if (g->each != MS_NONE)
        MS_TRY(count_each(names, g->each, &g->times));
    if (g->with != MS_NONE && json->nodes[g->with].kind != MS_JSON_OBJECT)
        return fail_group(names, g->with, "\"with\" must be an object",
                          "\"with\": {\"width\": 64}");
    if ((out.given >> INDEX & 1) != 0)
        g->index = values[INDEX].s;
    if (g->index != NULL)
        MS_TRY(
            check_variable(names, ms_json_find(json, row, "index"), g->index));
    return find_layers(names, templates, values, out.given, g);
}

/* ---- variables ----------------------------------------------------------- */

static ms_err bind(const ms_layernames *names, const char *name, double value,
                   ms_scope *scope)
{
    ms_variable *variable = ms_arena_take(names->scratch, 1, sizeof *variable);
    if (variable == NULL)
        return ms_fail_nomem(names->fault);
    *variable = (ms_variable){name, value, scope->variables};
    scope->variables = variable;
    return MS_OK;
}

/* Binds a variable to a member of "with" or to one value of a list of "each".
 */
static ms_err bind_node(const ms_layernames *names, const char *name,
                        uint32_t node, ms_scope *scope)
{
    static const ms_field field = {
        .name = "value", .type = MS_FLOAT, .help = "a number or expression"};
    const ms_fields keys = {.rows = &field,
                            .n = 1,
                            .owner = "a group of layers",
                            .expressions = true,
                            .variables = scope->variables};
    ms_value value;
    MS_TRY(check_variable(names, node, name));
    MS_TRY(
        ms_fields_evaluate(names->json, node, &keys, 0, &value, names->fault));
    return bind(names, name, value.f, scope);
}

/* Binds the variables of repetition k. */
ms_err ms_layergroups_bind(const ms_layernames *names, const ms_repetition *g,
                           int64_t k, ms_scope *scope)
{
    const ms_json_node *nodes = names->json->nodes;
    if (g->index != NULL)
        MS_TRY(bind(names, g->index, (double)(g->first + k), scope));
    uint32_t i =
        g->each == MS_NONE ? MS_NONE : ms_json_first(names->json, g->each);
    for (; i != MS_NONE; i = nodes[i].next) {
        uint32_t value = ms_json_first(names->json, i);
        for (int64_t skip = k; skip > 0; skip--)
            value = nodes[value].next;
        MS_TRY(bind_node(names, nodes[i].key, value, scope));
    }
    i = g->with == MS_NONE ? MS_NONE : ms_json_first(names->json, g->with);
    for (; i != MS_NONE; i = nodes[i].next)
        MS_TRY(bind_node(names, nodes[i].key, i, scope));
    return MS_OK;
}
