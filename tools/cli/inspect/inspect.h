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

#include "graphs/graphs.h"
#include "tools/job/result.h"

typedef struct ms_inspection {
    const ms_result *result;
    const ms_layer_facts *facts; /* in topological order */
    uint32_t n;
    ms_layer_facts total;
    uint64_t base;      /* parameters without the head */
    uint64_t embedding; /* those of embeddings */
    const char *tied;   /* the layer whose matrix the head has, or NULL */
} ms_inspection;

/* The numbers of a row in all three outputs; of them the table has some. */
typedef struct ms_inspect_column {
    const char *key, *heading;
    enum { MS_INSPECT_COUNT, MS_INSPECT_FLOPS, MS_INSPECT_BYTES } kind;
    uint8_t width;
    bool wide;     /* in the table with --wide only */
    size_t offset; /* of ms_layer_facts; uint64_t, FLOPS: double */
} ms_inspect_column;
extern const ms_inspect_column ms_inspectdata_columns[];
extern const uint32_t ms_inspectdata_n;
/* The row's number; FLOPs and MACs are whole. */
uint64_t ms_inspectdata_number(const ms_inspect_column *column,
                               const ms_layer_facts *facts);

void ms_inspectdata_json(const ms_inspection *view, ms_text *text);
/* A row per layer, in order. */
void ms_inspectdata_csv(const ms_inspection *view, ms_text *text);

#endif
