/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_LAYERTYPES_H
#define MS_GRAPHS_LAYERTYPES_H

/* The tables of layer types and families, and the keys that stand beside
 * theirs: what the readers, help and the schema of model files walk. */

#include "graphs/model.h"

#include <string.h>

typedef struct ms_trace ms_trace; /* the forward under construction: trace.h */

#define MS_ANY_INPUTS UINT8_MAX
typedef struct ms_layer_kind {
    const char *type, *summary;
    uint8_t role; /* ms_layer_role of its layers: layerroles.h */
    uint8_t min_inputs, max_inputs; /* MS_ANY_INPUTS: no limit */
    uint8_t n_fields;
    const ms_field *fields;
    /* Records the layer's forward ops.  in: tensor ids; *out: the result. */
    ms_err (*forward)(ms_trace *trace, const ms_layer *layer,
                      const uint32_t *in, uint32_t *out);
    /* Where types share a forward: which aten op it is, "aten::mish", and its
     * FLOPs per element of the first input. */
    const char *op;
    uint8_t flops;
    bool silent; /* no output: states only */
} ms_layer_kind;
extern const ms_layer_kind ms_layer_kinds[];
extern const uint32_t ms_layer_n_kinds;
uint32_t ms_layer_find(const char *type); /* MS_NONE: no such type */
/* The layer's field of that name; NULL: its type has none. */
static inline const ms_value *ms_layertypes_field(const ms_layer *layer,
                                                  const char *name)
{
    for (uint32_t i = 0; i < layer->kind->n_fields; i++)
        if (strcmp(layer->kind->fields[i].name, name) == 0)
            return &layer->field[i];
    return NULL;
}

/* An architecture whose numbers a native model gives: a page
 * (models/pages/familypage.h). */
typedef struct ms_family {
    const char *name, *summary;
    uint32_t n_fields;
    const ms_field *fields; /* of "config" */
    bool flat;              /* the fields stand beside "family", no "config" */
} ms_family;
/* The names of the built-in ones, sorted; NULL behind the last. */
const char *ms_familypage_name(uint32_t i);
/* Those, and the user's of MEMSIM_PAGES; NULL, and n is 0: out of memory. */
const ms_family *ms_familypage_all(ms_arena *arena, uint32_t *n);

/* ---- read.c, layergroups.c, opfields.c: keys beside theirs --------------- */

/* What the readers walk, and the schema of model files (tools/) too. */
#define MS_MAX_NAME 256u /* bytes of one name */
/* chainfile.c: a measured chain, whose stages have the keys of a layer "stage".
 */
#define MS_CHAINFILE_FAMILY "chain"
#define MS_CHAINFILE_FIELDS 1
extern const ms_field ms_chainfile_fields[MS_CHAINFILE_FIELDS];
/* dagfile.c: a measured DAG; keys of a node beside "id" and "deps". */
#define MS_DAGFILE_FAMILY "dag"
#define MS_DAGFILE_FIELDS 3
extern const ms_field ms_dagfile_fields[MS_DAGFILE_FIELDS];
#define MS_LISTFILE_INPUT 4
extern const ms_field ms_listfile_input_fields[MS_LISTFILE_INPUT];
/* Beside "layers", "inputs", "each", "with", "when". */
#define MS_LAYERGROUPS_FIELDS 6
extern const ms_field ms_layergroups_fields[MS_LAYERGROUPS_FIELDS];
#define MS_LAYERGROUPS_EACH 1024u /* values of a list of "each" */
#define MS_LISTFILE_CONFIG 32u    /* numbers in the "config" of a layer list */
/* An op graph's keys; what its arrays of fixed places hold, in that order.
 * There are no others, but in "meta". */
#define MS_OPFIELDS_STORAGE 4
#define MS_OPFIELDS_TENSOR 6
#define MS_OPFIELDS_NODE 7
extern const ms_field ms_opfields_storage[MS_OPFIELDS_STORAGE];
extern const ms_field ms_opfields_tensor[MS_OPFIELDS_TENSOR];
extern const ms_field ms_opfields_node[MS_OPFIELDS_NODE];
extern const char *const ms_opfields_node_more[]; /* NULL ends them */
extern const char *const ms_opfields_top[];
extern const ms_field ms_opfields_batch; /* of "meta" */
/* The place of word in "a|b|c", or MS_NONE. */
uint32_t ms_opfields_place(const char *words, const char *word);

#endif
