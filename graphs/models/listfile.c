/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of a layer list: "input", the numbers of "config", "templates". */

#include "graphs/json/fields.h"
#include "graphs/layertypes.h"
#include "graphs/models/files/reader.h"
#include "graphs/models/layerlist.h"

#include <string.h>

enum { SHAPE, TOKENS, SEQUENCE, LONGEST };
const ms_field ms_listfile_input_fields[MS_LISTFILE_INPUT] = {
    {.name = "shape",
     .type = MS_INTS,
     .low = 1,
     .high = INT64_C(1) << 40,
     .help = "sizes of one sample, without the batch"},
    {.name = "tokens",
     .type = MS_BOOL,
     .help = "int64 token ids [batch, sequence]"},
    {.name = "sequence",
     .type = MS_BOOL,
     .help = "true: [batch, sequence, shape...]"},
    {.name = "longest",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 31,
     .help = "the longest sequence; masks and tables of positions are made "
             "for the one at hand; 0: no limit"}};

static ms_err read_input(const ms_reader *r, uint32_t row,
                         const ms_variable *variables)
{
    const ms_fields keys = {.rows = ms_listfile_input_fields,
                            .n = MS_LISTFILE_INPUT,
                            .owner = "\"input\"",
                            .expressions = true,
                            .variables = variables};
    ms_model *model = r->model;
    ms_value values[MS_LISTFILE_INPUT] = {0};
    ms_fields_values out = {.values = values};
    uint64_t elements = 1;
    if (r->json.nodes[row].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, row, r->fault,
                            "{\"shape\": [...]} or {\"tokens\": true}",
                            "\"input\" must be an object, not %s",
                            ms_json_kind_name(&r->json, row));
    MS_TRY(
        ms_fields_read_object(&r->json, row, &keys, r->arena, &out, r->fault));
    model->tokens = values[TOKENS].b;
    model->max_sequence = (uint64_t)values[LONGEST].i;
    model->fresh_tables = model->max_sequence > 0;
    bool shape = (out.given & 1u << SHAPE) != 0;
    if (shape == model->tokens)
        return ms_json_fail(&r->json, row, r->fault, NULL,
                            "\"input\" needs either \"shape\" or \"tokens\": "
                            "true");
    model->sequence_input = model->tokens || values[SEQUENCE].b;
    model->n_dims = out.n_ints;
    for (uint32_t i = 0; i < out.n_ints; i++) {
        model->dims[i] = out.ints[i];
        if (__builtin_mul_overflow(elements, out.ints[i], &elements) ||
            elements > (uint64_t)INT64_MAX / 8)
            return ms_json_fail(&r->json, row, r->fault, NULL,
                                "the input's size is beyond 2^63 bytes");
    }
    return MS_OK;
}

/* The names in the "config" of a layer list are its own: they become rows,
 * which --set knows then. */
static ms_err name_numbers(const ms_reader *r, uint32_t config, ms_field *rows,
                           uint32_t *n)
{
    const ms_json_node *nodes = r->json.nodes;
    *n = 0;
    if (config == MS_NONE)
        return MS_OK;
    if (nodes[config].kind != MS_JSON_OBJECT ||
        nodes[config].value.n > MS_LISTFILE_CONFIG)
        return ms_json_fail(
            &r->json, config, r->fault, "\"config\": {\"classes\": 1000}",
            "\"config\" must be an object of at most %u numbers",
            MS_LISTFILE_CONFIG);
    for (uint32_t i = ms_json_first(&r->json, config); i != MS_NONE;
         i = nodes[i].next) {
        if (!ms_numbers_is_name(nodes[i].key) ||
            strcmp(nodes[i].key, "name") == 0)
            return ms_json_fail_key(&r->json, i, r->fault,
                                    "letters, digits and _, not a digit first",
                                    "\"%s\" cannot be the name of a number",
                                    nodes[i].key);
        rows[(*n)++] = (ms_field){.name = nodes[i].key,
                                  .type = MS_FLOAT,
                                  .help = "a number of this model"};
    }
    return MS_OK;
}

static ms_err read_numbers(const ms_reader *r, const ms_variable **variables)
{
    static const char *const also[] = {"name"};
    ms_field rows[MS_LISTFILE_CONFIG];
    ms_value values[MS_LISTFILE_CONFIG];
    ms_fields keys = {
        .rows = rows, .extra = also, .n_extra = 1, .owner = "\"config\""};
    ms_fields_values out = {.values = values};
    uint32_t config = ms_json_find(&r->json, 0, "config");
    MS_TRY(name_numbers(r, config, rows, &keys.n));
    if (config != MS_NONE)
        MS_TRY(ms_fields_read_object(&r->json, config, &keys, r->arena, &out,
                                     r->fault));
    /* The order is that of precedence: the numbers of the list, then the
     * "config" of a model that is like it, then --set. */
    MS_TRY(ms_builtins_config(
        r, &(ms_fields){.rows = rows, .n = keys.n, .owner = "\"config\""},
        &out));
    MS_TRY(ms_overrides_apply(r, &keys, &out));
    ms_variable *made = ms_arena_take(r->arena, keys.n + 1, sizeof *made);
    if (made == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = 0; i < keys.n; i++)
        made[i] = (ms_variable){rows[i].name, values[i].f,
                                i == 0 ? NULL : &made[i - 1]};
    *variables = keys.n == 0 ? NULL : &made[keys.n - 1];
    return MS_OK;
}

ms_err ms_listfile_read(const ms_reader *r, uint32_t layers)
{
    const ms_variable *variables = NULL;
    uint32_t input = ms_json_find(&r->json, 0, "input");
    uint32_t templates = ms_json_find(&r->json, 0, "templates");
    if (input == MS_NONE)
        return ms_json_fail(&r->json, 0, r->fault,
                            "{\"shape\": [...]} or {\"tokens\": true}",
                            "a layer list needs the key \"input\"");
    if (templates != MS_NONE && r->json.nodes[templates].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, templates, r->fault,
                            "\"templates\": {\"block\": [...]}",
                            "\"templates\" must be an object, not %s",
                            ms_json_kind_name(&r->json, templates));
    MS_TRY(read_numbers(r, &variables));
    MS_TRY(read_input(r, input, variables));
    const ms_layerlist list = {.json = &r->json,
                               .row = layers,
                               .templates = templates,
                               .variables = variables,
                               .most = ms_layerlist_most(&r->json)};
    return ms_layerlist_read(&list, r->arena, r->model, r->fault);
}

ms_err ms_listfile_written(const ms_reader *r)
{
    uint32_t input = ms_json_find(&r->json, 0, "input");
    const ms_layerlist list = {.json = &r->json,
                               .row = ms_json_find(&r->json, 0, "layers"),
                               .templates = MS_NONE,
                               .most = MS_LAYERLIST_MAX};
    if (input != MS_NONE)
        MS_TRY(read_input(r, input, NULL));
    return ms_layerlist_read(&list, r->arena, r->model, r->fault);
}
