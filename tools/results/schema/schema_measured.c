/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models that were measured. */
#include "graphs/layertypes.h"
#include "tools/results/schema/schema.h"

/* A measured chain, which has no page. */
static void put_chain(ms_indent *json)
{
    const ms_layer_kind *stage = &ms_layer_kinds[ms_layer_find("stage")];
    ms_indent_open(json, MS_CHAINFILE_FAMILY, '{');
    ms_indent_string(json, "description", "stages that were measured");
    ms_indent_open(json, "properties", '{');
    ms_properties_head(json);
    ms_indent_word(json, "family", "true");
    ms_properties_fields(json, ms_chainfile_fields, MS_CHAINFILE_FIELDS);
    ms_indent_open(json, "stages", '{');
    ms_indent_string(json, "description", "in their order, the loss the last");
    ms_indent_string(json, "type", "array");
    ms_indent_integer(json, "minItems", 2);
    ms_indent_open(json, "items", '{');
    ms_indent_open(json, "properties", '{');
    ms_indent_ref(json, "name", "name");
    ms_properties_fields(json, stage->fields, stage->n_fields);
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    ms_properties_required(json, stage->fields, stage->n_fields);
    ms_indent_close(json, ']');
    ms_properties_close(json);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    ms_properties_required(json, ms_chainfile_fields, MS_CHAINFILE_FIELDS);
    ms_indent_string(json, NULL, "stages");
    ms_indent_close(json, ']');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

static void put_id(ms_indent *json)
{
    ms_indent_open(json, "type", '[');
    ms_indent_string(json, NULL, "string");
    ms_indent_string(json, NULL, "integer");
    ms_indent_close(json, ']');
    ms_indent_integer(json, "minLength", 1);
    ms_indent_integer(json, "maxLength", MS_MAX_NAME);
}

static void put_node(ms_indent *json)
{
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, "id", '{');
    put_id(json);
    ms_indent_close(json, '}');
    ms_properties_fields(json, ms_dagfile_fields, MS_DAGFILE_FIELDS);
    ms_indent_open(json, "deps", '{');
    ms_indent_string(json, "description", "ids of the nodes that it reads");
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "items", '{');
    put_id(json);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    ms_indent_string(json, NULL, "id");
    ms_properties_required(json, ms_dagfile_fields, MS_DAGFILE_FIELDS);
    ms_indent_close(json, ']');
    ms_properties_close(json);
}

/* A measured DAG, which has no page. */
static void put_dag(ms_indent *json)
{
    ms_indent_open(json, MS_DAGFILE_FAMILY, '{');
    ms_indent_string(json, "description", "nodes that were measured");
    ms_indent_open(json, "properties", '{');
    ms_properties_head(json);
    ms_indent_word(json, "family", "true");
    ms_indent_open(json, "nodes", '{');
    ms_indent_string(json, "description", "gradients among them");
    ms_indent_string(json, "type", "array");
    ms_indent_integer(json, "minItems", 1);
    ms_indent_open(json, "items", '{');
    put_node(json);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    ms_indent_string(json, NULL, "nodes");
    ms_indent_close(json, ']');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

void ms_schema_measured_put(ms_indent *json)
{
    put_chain(json);
    put_dag(json);
}
