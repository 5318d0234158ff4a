/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_LAYERNAMES_H
#define MS_LAYERNAMES_H

/* The names of a layer list, and the layers that they stand for: layerlist.c
 * reads the list, this file resolves its names.
 *
 * A layer's name stands for its output, a group's ("repeat", "each",
 * "template", "layers") for that of its last layer, and the name of what is
 * left out ("when") for what it would have read.  Of a group NAME,
 *
 *     NAME.input  is what it reads,
 *     NAME.*      the outputs of its repetitions up to here, in order.
 *
 * Words are looked for in the scope where they stand, then in those around it.
 * Plain words may name what comes later; they are resolved at the end. */

#include "graphs/json/index.h"
#include "graphs/json/json.h"
#include "graphs/json/numbers.h"
#include "graphs/model.h"

#define MS_LAYERNAMES_FULL 1024u /* bytes of a dotted name */

/* The layers of one group, or the whole list (prefix ""). */
typedef struct ms_scope {
    const char *prefix; /* "layers.3" */
    uint32_t length;
    uint32_t input; /* layer that "input" names, or MS_NONE: the model's */
    const ms_variable *variables;
    const struct ms_scope *outer;
} ms_scope;

typedef struct ms_label {
    const char *name; /* with those of the scopes */
    uint32_t line;
    uint32_t input, output;         /* layers; MS_NONE: the model's input */
    bool silent;                    /* no output: states only */
    bool left_out;                  /* "when" left all of that name out */
    uint32_t first_part, last_part; /* labels of a group's repetitions */
    uint32_t next_part;
} ms_label;

typedef struct ms_layernames {
    const ms_json *json;
    ms_model *model;
    ms_arena *arena, *scratch; /* of the model; dies with the reading */
    ms_index index;            /* of labels */
    ms_label *labels;
    struct ms_layernames_reference *references;
    uint32_t n_labels, labels_capacity;
    uint32_t expected; /* labels, as far as the list tells before it is read */
    uint32_t n_references, references_capacity;
    ms_fault *fault;
} ms_layernames;

/* The name of the element row in the scope: its "name" with {} filled in by
 * the variables, or fallback.  suffix (optional) follows a name without {}. */
ms_err ms_layernames_make(const ms_layernames *names, uint32_t row,
                          const ms_scope *scope, const char *fallback,
                          const char *suffix, const char **name);
/* Is the "name" of the element filled in? */
bool ms_layernames_is_filled(const ms_layernames *names, uint32_t row);
/* Adds a label; names must be unique, but for what is left out.  The row is
 * where errors point. */
ms_err ms_layernames_add(ms_layernames *names, uint32_t row, const char *name,
                         uint32_t input, uint32_t *label);
/* What "when" leaves out: its name stands for input unless one that is there
 * has it. */
ms_err ms_layernames_leave_out(ms_layernames *names, uint32_t row,
                               const char *name, uint32_t input);
/* The same for a group of blocks: one of that name goes on where it is. */
ms_err ms_layernames_add_blocks(ms_layernames *names, uint32_t row,
                                const char *name, uint32_t input,
                                uint32_t *label);
/* The label part has its output: a repetition of group. */
void ms_layernames_add_part(ms_layernames *names, uint32_t group,
                            uint32_t part);

/* The layer that a word of a node stands for; it must be there already. */
ms_err ms_layernames_find(const ms_layernames *names, uint32_t node,
                          const ms_scope *scope, uint32_t *layer);
/* Is the word of a node of the form NAME.*?  Then its label. */
ms_err ms_layernames_find_parts(const ms_layernames *names, uint32_t node,
                                const ms_scope *scope, bool *is_parts,
                                uint32_t *label);
/* The word is resolved at the end: edge is a row of model->edges, or MS_NONE
 * for field of the newest layer. */
ms_err ms_layernames_defer(ms_layernames *names, uint32_t node,
                           const ms_scope *scope, uint32_t edge,
                           uint32_t field);
ms_err ms_layernames_resolve(ms_layernames *names);

#endif
