/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BUILD_H
#define MS_BUILD_H

/* Appends layers to a model: what the reader of layer lists does. */

#include "graphs/field.h"
#include "graphs/model.h"

/* The words of an embedding layer's "ids". */
enum { MS_IDS_TOKENS, MS_IDS_POSITIONS, MS_IDS_TYPES };

typedef struct ms_build {
    ms_model *model;
    ms_arena *arena;
    uint32_t layers_capacity, edges_capacity, blocks_capacity;
    ms_value *open; /* fields for the next layer, or NULL */
    uint32_t *last; /* per kind: the last layer that is closed, from 1; or 0 */
} ms_build;

/* Room for so many from the start; more is possible. */
ms_err ms_build_reserve(ms_build *build, uint32_t layers, uint32_t edges,
                        ms_fault *fault);
/* Appends a layer with its kind's default values, no inputs and no block.
 * The name must outlive the model.  NULL: out of memory. */
ms_layer *ms_build_layer(ms_build *build, const char *name, uint32_t kind);
/* The fields of the newest layer are complete.  Where they are those of the
 * last layer of its kind, they become one: a model of a million layers has few
 * that differ. */
ms_err ms_build_close(ms_build *build, ms_fault *fault);
/* Appends an input of the newest layer: a layer, or MS_NONE for the model's
 * input.  False: out of memory. */
bool ms_build_edge(ms_build *build, uint32_t from);
/* Appends a block; its row, or MS_NONE when out of memory. */
uint32_t ms_build_block(ms_build *build, const char *name);
/* A field of a layer by name, which its kind must have. */
ms_value *ms_build_field(ms_layer *layer, const char *name);

#endif
