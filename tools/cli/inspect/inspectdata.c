/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim inspect for scripts. */

#include "graphs/graphs.h"
#include "plots/plots.h"
#include "tools/cli/inspect/inspect.h"
#include "tools/job/result.h"

#include <string.h>

#define AT(field) offsetof(ms_layer_facts, field)

const ms_inspect_column ms_inspectdata_columns[] = {
    {"parameters", "parameters", MS_INSPECT_COUNT, 14, false, AT(parameters)},
    {"parameters_active", "active", MS_INSPECT_COUNT, 14, true, AT(active)},
    {"forward_flops", "fwd FLOP", MS_INSPECT_FLOPS, 8, false,
     AT(forward_flops)},
    {"backward_flops", "bwd FLOP", MS_INSPECT_FLOPS, 8, true,
     AT(backward_flops)},
    {"forward_macs", "fwd MAC", MS_INSPECT_FLOPS, 8, true, AT(forward_macs)},
    {"backward_macs", "bwd MAC", MS_INSPECT_FLOPS, 8, true, AT(backward_macs)},
    {"saved_bytes", "saved", MS_INSPECT_BYTES, 11, false, AT(saved_bytes)},
    {"output_bytes", "output", MS_INSPECT_BYTES, 11, true, AT(output_bytes)},
};
const uint32_t ms_inspectdata_n =
    sizeof ms_inspectdata_columns / sizeof *ms_inspectdata_columns;

uint64_t ms_inspectdata_number(const ms_inspect_column *column,
                               const ms_layer_facts *facts)
{
    const char *at = (const char *)facts + column->offset;
    uint64_t whole;
    double flops;
    memcpy(&whole, at, sizeof whole);
    memcpy(&flops, at, sizeof flops);
    return column->kind == MS_INSPECT_FLOPS ? (uint64_t)flops : whole;
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_numbers(const ms_layer_facts *facts, ms_text *text)
{
    for (uint32_t i = 0; i < ms_inspectdata_n; i++) {
        ms_text_add(text, ", \"%s\": ", ms_inspectdata_columns[i].key);
        ms_text_u64(text,
                    ms_inspectdata_number(&ms_inspectdata_columns[i], facts));
    }
}

static void put_number(ms_text *text, const char *key, uint64_t value)
{
    ms_text_add(text, ", \"%s\": ", key);
    ms_text_u64(text, value);
}

/* A name, or null. */
static void put_name(ms_text *text, const char *name)
{
    if (name == NULL)
        ms_text_add(text, "null");
    else
        ms_text_json(text, name);
}

static void put_layer(const ms_inspection *view, uint32_t i, ms_text *text)
{
    const ms_layer_facts *facts = &view->facts[i];
    ms_text_add(text, "    {\"name\": ");
    ms_text_json(text, facts->name);
    ms_text_add(text, ", \"type\": ");
    ms_text_json(text, facts->type);
    put_numbers(facts, text);
    ms_text_add(text, "}%s\n", i + 1 < view->n ? "," : "");
}

void ms_inspectdata_json(const ms_inspection *view, ms_text *text)
{
    ms_text_add(text, "{\n  \"schema_version\": 1,\n  \"memsim\": \"%s\",\n",
                MS_VERSION);
    ms_text_add(text, "  \"model\": ");
    ms_text_json(text, view->result->model.name);
    put_numbers(&view->total, text);
    put_number(text, "parameters_base", view->base);
    put_number(text, "parameters_embedding", view->embedding);
    ms_text_add(text, ", \"head_tied_to\": ");
    put_name(text, view->tied);
    ms_text_add(text, ",\n  \"layers\": [\n");
    for (uint32_t i = 0; i < view->n; i++)
        put_layer(view, i, text);
    ms_text_add(text, "  ]\n}\n");
}

/* ---- CSV ----------------------------------------------------------------- */

void ms_inspectdata_csv(const ms_inspection *view, ms_text *text)
{
    ms_text_add(text, "layer,type");
    for (uint32_t i = 0; i < ms_inspectdata_n; i++)
        ms_text_add(text, ",%s", ms_inspectdata_columns[i].key);
    ms_text_add(text, "\n");
    for (uint32_t row = 0; row < view->n; row++) {
        ms_table_field(text, view->facts[row].name);
        ms_text_add(text, ",");
        ms_table_field(text, view->facts[row].type);
        for (uint32_t i = 0; i < ms_inspectdata_n; i++) {
            ms_text_add(text, ",");
            ms_text_u64(text, ms_inspectdata_number(&ms_inspectdata_columns[i],
                                                    &view->facts[row]));
        }
        ms_text_add(text, "\n");
    }
}
