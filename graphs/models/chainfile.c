/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A chain of stages that somebody has measured (rotor's model,
 * policies/solve/chain.h):
 *
 *     {"memsim": 1, "name": "mine", "family": "chain", "input_bytes": 7,
 *      "stages": [
 *        {"name": "conv", "forward_ns": 10, "backward_ns": 8,
 *         "output_bytes": 8, "saved_bytes": 9,
 *         "forward_workspace_bytes": 4, "backward_workspace_bytes": 7},
 *        {"name": "loss", "forward_ns": 0, "backward_ns": 2,
 *         "output_bytes": 0, "saved_bytes": 0,
 *         "backward_workspace_bytes": 8}]}
 *
 * It becomes a list of layers, which is read as any other. */
#include "graphs/json/index.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/models/files/reader.h"
#include "graphs/models/layerlist.h"
#include "sim/base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const top_keys[] = {"memsim", "name", "family", "stages"};
const ms_field ms_chainfile_fields[MS_CHAINFILE_FIELDS] = {
    {.name = "input_bytes",
     .type = MS_INT,
     .required = true,
     .low = 0,
     .high = INT64_C(1) << 50,
     .help = "bytes of the chain's input"}};

bool ms_chainfile_is(const ms_reader *r, uint32_t family)
{
    const ms_json_node *node = &r->json.nodes[family];
    return node->kind == MS_JSON_STRING &&
           strcmp(node->value.s, MS_CHAINFILE_FAMILY) == 0;
}

/* Of the stages that were read. */
typedef struct sums {
    uint64_t handed_bytes; /* the output of the last */
    uint64_t ns, bytes;    /* of all that they do and save */
    ms_index names;
} sums;

static ms_err add_stage(const ms_reader *r, uint32_t row,
                        const ms_value *values, sums *sum)
{
    uint64_t ns = (uint64_t)values[MS_STAGE_FORWARD_NS].i;
    ns += (uint64_t)values[MS_STAGE_BACKWARD_NS].i;
    sum->handed_bytes = (uint64_t)values[MS_STAGE_OUTPUT].i;
    bool has_time = ms_reader_add(&sum->ns, ns);
    if (has_time &&
        ms_reader_add(&sum->bytes, (uint64_t)values[MS_STAGE_SAVED].i))
        return MS_OK;
    return ms_json_fail(&r->json, row, r->fault,
                        "times are in ns, sizes in bytes",
                        "the %s of the stages up to this one add up to more "
                        "than 2^53",
                        has_time ? "saved bytes" : "ns");
}

/* What contradicts itself. */
static ms_err check_stage(const ms_reader *r, uint32_t row,
                          const ms_value *values, uint64_t handed_bytes)
{
    int64_t output = values[MS_STAGE_OUTPUT].i;
    int64_t workspace = values[MS_STAGE_BACKWARD_WORKSPACE].i;
    if (values[MS_STAGE_SAVED].i < output)
        return ms_json_fail(&r->json, row, r->fault,
                            "saved_bytes is all that the stage's backward "
                            "needs, its output included",
                            "\"saved_bytes\" %" PRId64 " is less than "
                            "\"output_bytes\" %" PRId64,
                            values[MS_STAGE_SAVED].i, output);
    if ((uint64_t)workspace < handed_bytes)
        return ms_json_fail(&r->json, row, r->fault,
                            "backward_workspace_bytes includes the gradient "
                            "of the stage's input",
                            "\"backward_workspace_bytes\" %" PRId64
                            " is less than the output of the stage before, "
                            "%" PRIu64,
                            workspace, handed_bytes);
    return MS_OK;
}

/* A stage's name, or "stage" and its number. */
static ms_err stage_name(const ms_reader *r, uint32_t row, uint32_t number,
                         ms_index *index, ms_text *text)
{
    const ms_json *json = &r->json;
    uint32_t node = ms_json_find(json, row, "name");
    const char *name = NULL;
    if (node == MS_NONE)
        name = ms_arena_format(r->arena, "stage%" PRIu32, number);
    else if (json->nodes[node].kind == MS_JSON_STRING)
        name = json->nodes[node].value.s;
    else
        return ms_json_fail(json, node, r->fault, NULL,
                            "\"name\" must be a string, not %s",
                            ms_json_kind_name(json, node));
    if (name == NULL)
        return ms_fail_nomem(r->fault);
    uint32_t first = ms_index_add(index, name, number - 1);
    if (first != number - 1)
        return ms_json_fail(
            json, node == MS_NONE ? row : node, r->fault, "give each its own",
            "\"%.60s\" is the name of stage %" PRIu32 " already", name,
            first + 1);
    ms_text_add(text, "\"name\": ");
    ms_text_json(text, name);
    return MS_OK;
}

/* A stage as a layer, in a line of its own; the last one is the loss. */
static ms_err write_stage(const ms_reader *r, uint32_t row, uint32_t number,
                          sums *sum, ms_text *text)
{
    static const char *const also[] = {"name"};
    const ms_fields keys = {.rows = ms_rawlayers_stage_fields,
                            .n = MS_RAWLAYERS_STAGE,
                            .extra = also,
                            .n_extra = 1,
                            .owner = "a stage"};
    ms_value values[MS_RAWLAYERS_STAGE] = {0};
    ms_fields_values out = {.values = values};
    bool last = r->json.nodes[row].next == MS_NONE;
    if (r->json.nodes[row].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, row, r->fault, NULL,
                            "a stage must be an object, not %s",
                            ms_json_kind_name(&r->json, row));
    MS_TRY(
        ms_fields_read_object(&r->json, row, &keys, r->arena, &out, r->fault));
    MS_TRY(ms_fields_require(&r->json, row, &keys, out.given, r->fault));
    MS_TRY(check_stage(r, row, values, sum->handed_bytes));
    MS_TRY(add_stage(r, row, values, sum));
    ms_text_add(text, "%s{\"type\": \"%s\", ", number > 1 ? ",\n" : "\n",
                last ? "loss_stage" : "stage");
    MS_TRY(stage_name(r, row, number, &sum->names, text));
    for (uint32_t i = 0; i < MS_RAWLAYERS_STAGE; i++)
        ms_text_add(text, ", \"%s\": %" PRId64,
                    ms_rawlayers_stage_fields[i].name, values[i].i);
    ms_text_add(text, "}");
    return MS_OK;
}

static ms_err write_stages(const ms_reader *r, uint32_t list, ms_text *text)
{
    sums sum = {0};
    uint32_t number = 0;
    MS_TRY(ms_index_make(&sum.names, r->json.nodes[list].value.n, r->arena,
                         r->fault));
    ms_text_add(text, "{\"layers\": [");
    for (uint32_t row = ms_json_first(&r->json, list); row != MS_NONE;
         row = r->json.nodes[row].next)
        MS_TRY(write_stage(r, row, ++number, &sum, text));
    ms_text_add(text, "]}");
    if (sum.ns == 0)
        return ms_json_fail(&r->json, list, r->fault,
                            "times are \"forward_ns\" and \"backward_ns\", "
                            "in ns",
                            "no stage takes any time");
    return MS_OK;
}

/* What the layers say, where the stage is: its line, from the second on. */
static ms_err fail_layers(const ms_reader *r, uint32_t list,
                          const ms_fault *inner)
{
    const char *at = inner->where, *line = NULL, *column = NULL;
    for (; *at != '\0'; at++)
        if (*at == ':') {
            line = column;
            column = at;
        }
    unsigned long number = line != NULL ? strtoul(line + 1, NULL, 10) : 0;
    uint32_t row = ms_json_first(&r->json, list);
    for (; number > 2 && row != MS_NONE; number--)
        row = r->json.nodes[row].next;
    if (number != 2 || row == MS_NONE)
        return ms_fail(r->fault, inner->err, r->model->path, inner->hint,
                       "as layers: %s", inner->what);
    return ms_json_fail(&r->json, row, r->fault, inner->hint, "%s",
                        inner->what);
}

static ms_err read_top(const ms_reader *r, uint32_t *stages)
{
    const ms_fields keys = {.rows = ms_chainfile_fields,
                            .n = MS_CHAINFILE_FIELDS,
                            .extra = top_keys,
                            .n_extra = sizeof top_keys / sizeof *top_keys,
                            .owner = "a chain"};
    ms_value value = {0};
    ms_fields_values out = {.values = &value};
    MS_TRY(ms_fields_read_object(&r->json, 0, &keys, r->arena, &out, r->fault));
    MS_TRY(ms_fields_require(&r->json, 0, &keys, out.given, r->fault));
    *stages = ms_json_find(&r->json, 0, "stages");
    if (*stages == MS_NONE || r->json.nodes[*stages].kind != MS_JSON_ARRAY ||
        r->json.nodes[*stages].value.n < 2)
        return ms_json_fail(&r->json, *stages == MS_NONE ? 0 : *stages,
                            r->fault, "memsim help files has an example",
                            "a chain needs \"stages\", a list of two at least, "
                            "the loss the last of them");
    r->model->dims[0] = (uint64_t)value.i;
    return MS_OK;
}

ms_err ms_chainfile_read(const ms_reader *r)
{
    ms_text text = {.arena = r->arena};
    ms_fault inner = {0};
    ms_model *model = r->model;
    ms_reader native = {.arena = r->arena, .model = model, .fault = &inner};
    uint32_t stages;
    if (r->n_overrides > 0)
        return ms_fail(r->fault, MS_EUSAGE, r->overrides[0].key,
                       "change the file",
                       "a measured chain has no settings \"model.*\"");
    MS_TRY(read_top(r, &stages));
    MS_TRY(write_stages(r, stages, &text));
    if (text.bytes == NULL)
        return ms_fail_nomem(r->fault);
    model->n_dims = 1;
    model->measured = true;
    model->fixed_batch = 1;
    model->family = MS_CHAINFILE_FAMILY;
    ms_err err = ms_json_read(model->path, text.bytes, text.length, r->arena,
                              &native.json, &inner);
    if (err == MS_OK)
        err = ms_listfile_written(&native);
    for (uint32_t i = 0; i < model->n_layers; i++)
        model->layers[i].spot = (ms_spot){0};
    return err == MS_OK ? MS_OK : fail_layers(r, stages, &inner);
}
