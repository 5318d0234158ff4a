/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_INSPECT_H
#define MS_INSPECT_H

/* What memsim inspect counts, for its table, CSV and JSON.
 *
 * Every parameter is counted once, at the first layer that has it: where the
 * head is tied, its matrix is the embedding's.  gpt2 has 124,439,808; its head
 * is tied and adds none, so without the head there are as many; without
 * embeddings (tokens, positions, types) there are 85,056,000.  mixtral-8x7b
 * has 46,702,792,704, of which a token meets 12,879,925,248: of each layer's 8
 * experts 2.
 *
 * The head are the layers named so ("head", "head.*"), else the last layer with
 * parameters where it is linear: resnet50's "fc". */

#include "graphs/modelgraph.h"
#include "tools/job/result.h"
#include "tools/results/keys/keys.h"

typedef struct ms_inspection {
    /* the version of memsim and the name of the model */
    const char *memsim, *model, *from_json;
    const ms_result *result;
    const ms_layer_facts *facts; /* in topological order */
    uint32_t n;
    ms_layer_facts total;
    uint64_t base;      /* the parameters without the head */
    uint64_t embedding; /* the parameters of the embeddings */
    const char *tied;   /* the layer whose matrix the head shares, or NULL */
} ms_inspection;

/* ---- inspect_keys.c ------------------------------------------------------ */

extern const ms_keys ms_inspect_keys;       /* of ms_inspection */
extern const ms_keys ms_inspect_keys_layer; /* of ms_layer_facts */

void ms_inspect_keys_json(const ms_inspection *view, ms_text *text);
/* Writes a row per layer, in topological order. */
void ms_inspect_keys_csv(const ms_inspection *view, ms_text *text);

#endif
