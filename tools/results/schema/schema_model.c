/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The schema of a model file, from the tables that its reader walks: families,
 * layer types, op graphs. It states keys, types, bounds and words, as the
 * tables do; what a schema cannot state is in the descriptions. */

#include "graphs/field.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "tools/results/schema/schema.h"

#include <string.h>

static const char description[] =
    "A model that memsim reads.  Beyond this schema it checks that names are "
    "unique, that \"inputs\" and \"tied\" name layers that there are, that the "
    "layers form no cycle and that their shapes fit, that numbers that belong "
    "together do (heads and hidden), that no key stands twice, that an "
    "integer is written without a point, and of an op graph that ids count "
    "from 0 and stand in the order in which ops ran.";

/* ---- texts --------------------------------------------------------------- */

static void put_text_type(ms_indent *json, const char *name, bool empty,
                          bool named)
{
    ms_indent_open(json, name, '{');
    ms_indent_string(json, "type", "string");
    if (!empty)
        ms_indent_integer(json, "minLength", 1);
    ms_indent_integer(json, "maxLength", MS_MAX_NAME);
    ms_indent_string(json, "pattern", "^[^\\u0000-\\u001f\\u007f]*$");
    if (named) {
        ms_indent_open(json, "not", '{');
        ms_indent_string(json, "const", "input");
        ms_indent_close(json, '}');
    }
    ms_indent_close(json, '}');
}

/* ---- families ------------------------------------------------------------ */

static void put_config(ms_indent *json, const ms_family *family)
{
    ms_indent_open(json, "config", '{');
    ms_indent_string(json, "type", "object");
    ms_indent_open(json, "properties", '{');
    ms_properties_fields(json, family->fields, family->n_fields);
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    ms_properties_required(json, family->fields, family->n_fields);
    ms_indent_close(json, ']');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

static void put_family(ms_indent *json, const ms_family *family)
{
    ms_indent_open(json, family->name, '{');
    ms_indent_string(json, "description", family->summary);
    ms_indent_open(json, "properties", '{');
    ms_properties_head(json);
    ms_indent_word(json, "family", "true");
    if (family->flat)
        ms_properties_fields(json, family->fields, family->n_fields);
    else
        put_config(json, family);
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    if (family->flat)
        ms_properties_required(json, family->fields, family->n_fields);
    else
        ms_indent_string(json, NULL, "config");
    ms_indent_close(json, ']');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

/* An element of an array of cases: with this value of the key, the definition
 * holds. */
static void put_case(ms_indent *json, const char *key, const char *value,
                     const char *prefix)
{
    const char *name =
        ms_arena_format(json->text->arena, "%s%s", prefix, value);
    json->text->failed |= name == NULL;
    ms_indent_open(json, NULL, '{');
    ms_indent_open(json, "if", '{');
    ms_properties_const(json, key, value);
    ms_indent_close(json, '}');
    ms_indent_ref(json, "then", name != NULL ? name : "");
    ms_indent_close(json, '}');
}

static void put_families(ms_indent *json)
{
    uint32_t n;
    const ms_family *families = ms_familypage_all(json->text->arena, &n);
    json->text->failed |= families == NULL;
    ms_indent_open(json, "family", '{');
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, "family", '{');
    ms_indent_open(json, "enum", '[');
    for (uint32_t i = 0; i < n; i++)
        ms_indent_string(json, NULL, families[i].name);
    ms_indent_string(json, NULL, MS_CHAINFILE_FAMILY);
    ms_indent_string(json, NULL, MS_DAGFILE_FAMILY);
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "allOf", '[');
    for (uint32_t i = 0; i < n; i++)
        put_case(json, "family", families[i].name, "");
    put_case(json, "family", MS_CHAINFILE_FAMILY, "");
    put_case(json, "family", MS_DAGFILE_FAMILY, "");
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    for (uint32_t i = 0; i < n; i++)
        put_family(json, &families[i]);
    ms_schema_measured_put(json);
}

/* ---- layers -------------------------------------------------------------- */

static void put_when(ms_indent *json)
{
    ms_indent_open(json, "when", '{');
    ms_indent_string(json, "description", "left out where this is 0 or false");
    ms_indent_words(json, "type", "boolean|string");
    ms_indent_close(json, '}');
}

static void put_inputs(ms_indent *json, uint8_t low, uint8_t high)
{
    ms_indent_open(json, "inputs", '{');
    ms_indent_string(json, "description", "layers that it reads");
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type", "string");
    ms_indent_close(json, '}');
    ms_indent_integer(json, "minItems", low);
    if (high != MS_ANY_INPUTS)
        ms_indent_integer(json, "maxItems", high);
    ms_indent_close(json, '}');
}

static void put_layer(ms_indent *json, const ms_layer_kind *kind)
{
    const char *name =
        ms_arena_format(json->text->arena, "layer.%s", kind->type);
    json->text->failed |= name == NULL;
    ms_indent_open(json, name != NULL ? name : "", '{');
    ms_indent_string(json, "description", kind->summary);
    ms_indent_open(json, "properties", '{');
    ms_indent_word(json, "type", "true");
    ms_indent_ref(json, "name", "name");
    put_inputs(json, kind->min_inputs, kind->max_inputs);
    put_when(json);
    ms_properties_list_fields(json, kind->fields, kind->n_fields);
    ms_indent_close(json, '}');
    ms_indent_open(json, "required", '[');
    if (kind->min_inputs > 1) /* the layer before is one of the inputs */
        ms_indent_string(json, NULL, "inputs");
    ms_properties_required(json, kind->fields, kind->n_fields);
    ms_indent_close(json, ']');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

static void put_layer_types(ms_indent *json)
{
    ms_indent_open(json, "else", '{');
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, "type", '{');
    ms_indent_open(json, "enum", '[');
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++)
        ms_indent_string(json, NULL, ms_layer_kinds[i].type);
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_words(json, "required", "type");
    ms_indent_open(json, "allOf", '[');
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++)
        put_case(json, "type", ms_layer_kinds[i].type, "layer.");
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
}

/* {"required": ["KEY"]} */
static void put_requires(ms_indent *json, const char *key)
{
    ms_indent_open(json, NULL, '{');
    ms_indent_words(json, "required", key);
    ms_indent_close(json, '}');
}

/* An object of variables with their values, or with lists of values. */
static void put_variables(ms_indent *json, const char *key, const char *help,
                          bool lists)
{
    ms_indent_open(json, key, '{');
    ms_indent_string(json, "description", help);
    ms_indent_string(json, "type", "object");
    if (lists)
        ms_indent_integer(json, "minProperties", 1);
    ms_indent_open(json, "propertyNames", '{');
    ms_indent_string(json, "pattern", "^[A-Za-z_][A-Za-z0-9_]*$");
    ms_indent_close(json, '}');
    ms_indent_open(json, "additionalProperties", '{');
    if (lists) {
        ms_indent_string(json, "type", "array");
        ms_indent_integer(json, "minItems", 1);
        ms_indent_integer(json, "maxItems", MS_LAYERGROUPS_EACH);
        ms_indent_open(json, "items", '{');
    }
    ms_indent_words(json, "type", "number|string");
    if (lists)
        ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
}

static void put_group_keys(ms_indent *json)
{
    for (uint32_t i = 0; i < MS_LAYERGROUPS_FIELDS; i++) {
        const ms_field *field = &ms_layergroups_fields[i];
        if (strcmp(field->name, "name") == 0)
            ms_indent_ref(json, field->name, "name");
        else
            ms_properties_field_or(json, field->name, field, 0, true);
    }
    put_inputs(json, 1, 1);
    put_when(json);
    put_variables(json, "each", "lists: a repetition for each of their values",
                  true);
    put_variables(json, "with", "variables of the group's expressions", false);
    ms_indent_ref(json, "layers", "layers");
}

static void put_group(ms_indent *json)
{
    ms_indent_open(json, "group", '{');
    ms_indent_string(json, "description", "layers together, or repeated");
    ms_indent_open(json, "properties", '{');
    put_group_keys(json);
    ms_indent_close(json, '}');
    ms_indent_open(json, "oneOf", '[');
    put_requires(json, "layers");
    put_requires(json, "template");
    ms_indent_close(json, ']');
    ms_indent_open(json, "not", '{');
    ms_indent_words(json, "required", "repeat|each");
    ms_indent_close(json, '}');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

/* A layer or a group of layers, as the reader accepts them. */
static void put_layers(ms_indent *json)
{
    ms_indent_open(json, "layers", '{');
    ms_indent_string(json, "type", "array");
    ms_indent_integer(json, "minItems", 1);
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type", "object");
    ms_indent_open(json, "if", '{');
    ms_indent_open(json, "anyOf", '[');
    put_requires(json, "repeat");
    put_requires(json, "each");
    put_requires(json, "template");
    put_requires(json, "layers");
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    ms_indent_ref(json, "then", "group");
    put_layer_types(json);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    put_group(json);
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++)
        put_layer(json, &ms_layer_kinds[i]);
}

static void put_tokens(ms_indent *json, const char *branch, const char *value)
{
    ms_indent_open(json, branch, '{');
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, "tokens", '{');
    ms_indent_word(json, "const", value);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    if (*value == 't')
        ms_indent_words(json, "required", "tokens");
    ms_indent_close(json, '}');
}

/* The input is a shape or tokens. */
static void put_input(ms_indent *json)
{
    ms_indent_open(json, "input", '{');
    ms_indent_string(json, "type", "object");
    ms_indent_open(json, "properties", '{');
    ms_properties_list_fields(json, ms_listfile_input_fields,
                              MS_LISTFILE_INPUT);
    ms_indent_close(json, '}');
    ms_properties_close(json);
    ms_indent_open(json, "if", '{');
    ms_indent_words(json, "required", "shape");
    ms_indent_close(json, '}');
    put_tokens(json, "then", "false");
    put_tokens(json, "else", "true");
    ms_indent_close(json, '}');
}

static void put_numbers(ms_indent *json)
{
    ms_indent_open(json, "config", '{');
    ms_indent_string(json, "description",
                     "numbers for expressions; --set model.NAME=N changes one");
    ms_indent_string(json, "type", "object");
    ms_indent_integer(json, "maxProperties", MS_LISTFILE_CONFIG);
    ms_indent_open(json, "propertyNames", '{');
    ms_indent_string(json, "pattern", "^(?!name$)[A-Za-z_][A-Za-z0-9_]*$");
    ms_indent_close(json, '}');
    ms_indent_open(json, "additionalProperties", '{');
    ms_indent_string(json, "type", "number");
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
}

static void put_templates(ms_indent *json)
{
    ms_indent_open(json, "templates", '{');
    ms_indent_string(json, "description", "layers that groups name");
    ms_indent_string(json, "type", "object");
    ms_indent_ref(json, "additionalProperties", "layers");
    ms_indent_close(json, '}');
}

static void put_layer_list(ms_indent *json)
{
    ms_indent_open(json, "layer_list", '{');
    ms_indent_open(json, "properties", '{');
    ms_properties_head(json);
    put_numbers(json);
    ms_indent_ref(json, "input", "input");
    ms_indent_ref(json, "layers", "layers");
    put_templates(json);
    ms_indent_close(json, '}');
    ms_indent_words(json, "required", "input|layers");
    ms_properties_close(json);
    ms_indent_close(json, '}');
    put_input(json);
    put_layers(json);
}

/* ---- built-in models with other numbers ---------------------------------- */

/* The keys of "config" are those of the named model, which a schema does not
 * know. */
static void put_like(ms_indent *json)
{
    ms_indent_open(json, "like", '{');
    ms_indent_open(json, "properties", '{');
    ms_properties_head(json);
    ms_indent_open(json, "like", '{');
    ms_indent_string(json, "description",
                     "a built-in model, which it is with other numbers");
    ms_indent_open(json, "enum", '[');
    for (uint32_t i = 0; i < ms_builtin_n_models; i++)
        ms_indent_string(json, NULL, ms_builtin_models[i].name);
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    ms_indent_open(json, "config", '{');
    ms_indent_string(json, "description", "values that differ");
    ms_indent_string(json, "type", "object");
    ms_indent_open(json, "additionalProperties", '{');
    ms_indent_words(json, "type", "boolean|number|string");
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_properties_close(json);
    ms_indent_close(json, '}');
}

/* ---- op graphs ----------------------------------------------------------- */

/* An array whose elements are the fields, in order. */
static void put_places(ms_indent *json, const char *key, const ms_field *fields,
                       uint32_t n)
{
    ms_indent_open(json, key, '{');
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type", "array");
    ms_indent_open(json, "prefixItems", '[');
    for (uint32_t i = 0; i < n; i++) {
        bool text = fields[i].type == MS_TEXT;
        if (text)
            ms_indent_ref(json, NULL, "text");
        else
            ms_properties_field(json, NULL, &fields[i], MS_MAX_DIMS);
    }
    ms_indent_close(json, ']');
    ms_indent_integer(json, "minItems", n);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
}

/* Keys of any value, except those that have a description already. */
static void put_notes(ms_indent *json, const char *const *keys,
                      const char *told)
{
    for (; *keys != NULL; keys++)
        if (ms_opfields_place(told, *keys) == MS_NONE)
            ms_indent_word(json, *keys, "true");
}

static void put_nodes(ms_indent *json)
{
    const ms_field *fields = ms_opfields_node;
    ms_indent_open(json, "nodes", '{');
    ms_indent_string(json, "type", "array");
    ms_indent_integer(json, "minItems", 1);
    ms_indent_open(json, "items", '{');
    ms_indent_string(json, "type", "object");
    ms_indent_open(json, "properties", '{');
    for (uint32_t i = 0; i < MS_OPFIELDS_NODE; i++) {
        bool text = fields[i].type == MS_TEXT;
        if (text)
            ms_indent_ref(json, fields[i].name,
                          fields[i].required ? "word" : "text");
        else
            ms_properties_field(json, fields[i].name, &fields[i], 0);
    }
    ms_indent_open(json, "args", '{');
    ms_indent_string(json, "description", "\"T\" is the next of \"in\"");
    ms_indent_string(json, "type", "array");
    ms_indent_close(json, '}');
    ms_indent_open(json, "flops", '{');
    ms_indent_words(json, "type", "number|null");
    ms_indent_integer(json, "minimum", 0);
    ms_indent_close(json, '}');
    put_notes(json, ms_opfields_node_more, "args|flops");
    ms_indent_close(json, '}');
    ms_properties_close(json);
    ms_indent_open(json, "required", '[');
    ms_properties_required(json, fields, MS_OPFIELDS_NODE);
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
}

static void put_op_graph(ms_indent *json)
{
    ms_indent_open(json, "op_graph", '{');
    ms_indent_open(json, "properties", '{');
    ms_indent_ref(json, "name", "text");
    ms_indent_ref(json, "summary", "text");
    ms_indent_open(json, "meta", '{');
    ms_indent_open(json, "properties", '{');
    ms_properties_field(json, ms_opfields_batch.name, &ms_opfields_batch, 0);
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "loss_start", '{');
    ms_indent_string(json, "description", "the first node of the loss");
    ms_indent_string(json, "type", "integer");
    ms_indent_integer(json, "minimum", 0);
    ms_indent_close(json, '}');
    put_places(json, "storages", ms_opfields_storage, MS_OPFIELDS_STORAGE);
    put_places(json, "tensors", ms_opfields_tensor, MS_OPFIELDS_TENSOR);
    put_nodes(json);
    put_notes(json, ms_opfields_top,
              "name|summary|meta|loss_start|storages|tensors|nodes");
    ms_indent_close(json, '}');
    ms_properties_close(json);
    ms_indent_words(json, "required", "storages|tensors|nodes|loss_start");
    ms_indent_close(json, '}');
}

/* ---- configurations of Hugging Face -------------------------------------- */

/* The keys depend on model_type; unknown keys are ignored. */
static void put_hugging_face(ms_indent *json)
{
    const char *type;
    ms_indent_open(json, "hugging_face", '{');
    ms_indent_open(json, "properties", '{');
    ms_indent_open(json, "model_type", '{');
    ms_indent_open(json, "enum", '[');
    for (uint32_t i = 0; (type = ms_huggingface_type(i)) != NULL; i++)
        ms_indent_string(json, NULL, type);
    ms_indent_close(json, ']');
    ms_indent_close(json, '}');
    for (uint32_t i = 0; ms_huggingface_native[i] != NULL; i++)
        ms_indent_word(json, ms_huggingface_native[i], "false");
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
}

/* ---- the whole ----------------------------------------------------------- */

/* "if" the object has the key, "then" it has that form. */
static void put_form(ms_indent *json, const char *key, const char *form)
{
    ms_indent_open(json, "if", '{');
    ms_indent_words(json, "required", key);
    ms_indent_close(json, '}');
    ms_indent_ref(json, "then", form);
}

void ms_schema_model_write(ms_indent *json)
{
    ms_indent_string(json, "description", description);
    ms_indent_string(json, "type", "object");
    put_form(json, "format", "op_graph");
    ms_indent_open(json, "else", '{');
    put_form(json, "like", "like");
    ms_indent_open(json, "else", '{');
    put_form(json, "family", "family");
    ms_indent_open(json, "else", '{');
    put_form(json, "model_type", "hugging_face");
    ms_indent_ref(json, "else", "layer_list");
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_close(json, '}');
    ms_indent_open(json, "$defs", '{');
    put_families(json);
    put_like(json);
    put_layer_list(json);
    put_op_graph(json);
    put_hugging_face(json);
    put_text_type(json, "text", true, false);
    put_text_type(json, "name", false, true);
    put_text_type(json, "word", false, false);
    ms_indent_close(json, '}');
}
