/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim inspect --json, and the columns of its CSV. */

#include "plots/plots.h"
#include "tools/cli/inspect/inspect.h"

/* spaces before the members in lines; their elements have twice as many */
#define INDENT 2

/* ---- a layer ------------------------------------------------------------- */

#define LAYER(kind, member) MS_KEYS_AT(kind, ms_layer_facts, member)

static const ms_key layer_rows[] = {
    MS_KEYS_TEXT("name", LAYER(TEXT, name)),
    MS_KEYS_TEXT("type", LAYER(TEXT, type)),
    MS_KEYS_COUNT("parameters", LAYER(U64, parameters)),
    MS_KEYS_COUNT("parameters_active", LAYER(U64, active)),
    {.name = "forward_flops",
     .type = MS_KEY_NUMBER,
     LAYER(FLOPS, forward_flops)},
    {.name = "backward_flops",
     .type = MS_KEY_NUMBER,
     LAYER(FLOPS, backward_flops)},
    {.name = "forward_macs", .type = MS_KEY_NUMBER, LAYER(FLOPS, forward_macs)},
    {.name = "backward_macs",
     .type = MS_KEY_NUMBER,
     LAYER(FLOPS, backward_macs)},
    MS_KEYS_COUNT("saved_bytes", LAYER(U64, saved_bytes)),
    MS_KEYS_COUNT("output_bytes", LAYER(U64, output_bytes)),
    MS_KEYS_COUNT("weights_bytes", LAYER(U64, held_bytes)),
    {.name = "split", .type = MS_KEY_TEXT, LAYER(TEXT, split), .null = true}};
const ms_keys ms_inspect_keys_layer = MS_KEYS_OBJECT("layer", layer_rows);

static ms_key_list layers(const void *of)
{
    const ms_inspection *view = of;
    return (ms_key_list){(void *)view->facts, view->n, sizeof *view->facts};
}

/* ---- the whole ----------------------------------------------------------- */

#define MODEL(kind, member) MS_KEYS_AT(kind, ms_inspection, member)
#define TOTAL(kind, member) MODEL(kind, total.member)

static bool has_from(const void *of)
{
    return ((const ms_inspection *)of)->from_json != NULL;
}

static const ms_key model_rows[] = {
    {.name = "schema_version", .type = MS_KEY_VERSION, .line = INDENT},
    MS_KEYS_TEXT("memsim", MODEL(TEXT, memsim), .line = INDENT),
    MS_KEYS_TEXT("model", MODEL(TEXT, model), .line = INDENT),
    MS_KEYS_FROM(ms_inspection, has_from),
    {.name = "parameters",
     .type = MS_KEY_COUNT,
     TOTAL(U64, parameters),
     .help = "of the model; tied ones once"},
    {.name = "parameters_active",
     .type = MS_KEY_COUNT,
     TOTAL(U64, active),
     .help = "what a token meets: of experts those that it is sent to"},
    {.name = "forward_flops",
     .type = MS_KEY_NUMBER,
     TOTAL(FLOPS, forward_flops),
     .help = "of all layers, per micro-batch"},
    {.name = "backward_flops",
     .type = MS_KEY_NUMBER,
     TOTAL(FLOPS, backward_flops)},
    {.name = "forward_macs",
     .type = MS_KEY_NUMBER,
     TOTAL(FLOPS, forward_macs),
     .help = "multiply-adds of matrix products and convolutions"},
    {.name = "backward_macs",
     .type = MS_KEY_NUMBER,
     TOTAL(FLOPS, backward_macs)},
    {.name = "saved_bytes",
     .type = MS_KEY_COUNT,
     TOTAL(U64, saved_bytes),
     .help = "what the layers save for backward"},
    {.name = "output_bytes",
     .type = MS_KEY_COUNT,
     TOTAL(U64, output_bytes),
     .help = "of their outputs, in all"},
    {.name = "parameters_base",
     .type = MS_KEY_COUNT,
     MODEL(U64, base),
     .before = "parameters_active",
     .help =
         "without the head: layers of that name, else the last that has any, "
         "if linear; what it shares with an embedding is the embedding's"},
    {.name = "parameters_embedding",
     .type = MS_KEY_COUNT,
     MODEL(U64, embedding),
     .before = "parameters_active",
     .help = "of embeddings: tokens, positions, types"},
    {.name = "head_tied_to",
     .type = MS_KEY_TEXT,
     MODEL(TEXT, tied),
     .null = true,
     .before = "parameters_active",
     .help = "the layer whose matrix the head has"},
    {.name = "layers",
     .type = MS_KEY_OBJECTS,
     .list = layers,
     .line = INDENT,
     .element_line = 2 * INDENT,
     .end_line = INDENT,
     .of = &ms_inspect_keys_layer,
     .help = "in order: name, type, parameters, parameters_active, "
             "forward_flops, backward_flops, forward_macs, backward_macs, "
             "saved_bytes, output_bytes, weights_bytes (on one rank), split "
             "(columns, rows, heads, vocabulary; sequence: it works on a part "
             "of that; "
             "\"\": each rank has all of it; null: no ranks split layers)"},
};
const ms_keys ms_inspect_keys = {.name = "inspect",
                                 .rows = model_rows,
                                 .n = MS_KEYS_N(model_rows),
                                 .last_line = true};

/* ---- both documents ------------------------------------------------------ */

void ms_inspect_keys_json(const ms_inspection *view, ms_text *text)
{
    ms_keys_write(&ms_inspect_keys, view, text);
    ms_text_add(text, "\n");
}

/* Here the name of a layer is the column "layer". */
void ms_inspect_keys_csv(const ms_inspection *view, ms_text *text)
{
    const ms_keys *keys = &ms_inspect_keys_layer;
    const char *last = keys->rows[keys->n - 1].name;
    ms_text_add(text, "layer");
    ms_keys_write_names(keys, "type", last, text);
    ms_text_add(text, "\n");
    for (uint32_t i = 0; i < view->n; i++) {
        ms_table_field(text, view->facts[i].name);
        ms_keys_write_cells(keys, "type", last, &view->facts[i], text);
        ms_text_add(text, "\n");
    }
}
