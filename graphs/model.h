/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MODEL_H
#define MS_GRAPHS_MODEL_H

/* The model noun, and how it is read: whole files, built-in ones, the order
 * of its layers.
 *
 * A native model file, whole (a family; comments are not JSON, so none):
 *
 *     {"memsim": 1, "name": "tiny", "family": "decoder",
 *      "config": {"layers": 2, "hidden": 64, "heads": 4, "vocab": 1000,
 *                 "positions": 128}}
 *
 * or a layer list, where "inputs" default to the layer before and a
 * {"repeat": n, "name": "layers", "layers": [...]} element makes n blocks:
 *
 *     {"memsim": 1, "name": "mlp", "input": {"shape": [784]},
 *      "layers": [
 *        {"repeat": 8, "name": "hidden", "layers": [
 *          {"type": "linear", "out": 1024}, {"type": "relu"}]},
 *        {"type": "linear", "name": "head", "out": 10},
 *        {"type": "cross_entropy"}]}
 *
 * A built-in model with other numbers is {"like": "gpt3", "config": {...}}
 * (models/files/reader.h).  Another form is the op graph of a model that ran in
 * PyTorch, recognised by its "format" key (opgraph/opgraph.h). */

#include "graphs/field.h"

typedef struct ms_opgraph ms_opgraph;   /* an exported op graph: opgraph.h */
typedef struct ms_nodelist ms_nodelist; /* nodes that were measured: nodelist.h
                                         */

#define MS_LAYER_FIELDS 20u
#define MS_MAX_DIMS 6u

/* Where a node of the input file stands, for errors. */
typedef struct ms_spot {
    uint32_t line, column; /* from 1; 0: no file (made by a page) */
} ms_spot;

/* One layer of the flat list; blocks and repeats are already unrolled.
 * edges[in_at .. in_at + n_in) are the layers whose outputs it reads
 * (MS_NONE: the model's input). */
typedef struct ms_layer {
    const char *name;                 /* unique, dotted: "layers.3.attention" */
    const struct ms_layer_kind *kind; /* a row of ms_layer_kinds */
    uint32_t in_at, n_in;
    uint32_t block; /* MS_NONE: in no block; of nested repeats the outermost */
    ms_spot spot;
    ms_value *field;      /* in the order of the kind's fields; layers that
                             are equal share them */
    const uint64_t *ints; /* the MS_INTS field, if any */
    uint32_t n_ints;
} ms_layer;

typedef struct ms_model {
    const char *name, *path;  /* path: what errors are prefixed with */
    const char *family;       /* NULL for a layer list */
    const ms_opgraph *ops;    /* NULL unless the model is an op graph, which
                                 has no layers */
    const ms_nodelist *nodes; /* NULL unless the model is a measured DAG or the
                                 log of a run, which has no layers either */
    uint64_t fixed_batch;     /* samples of a micro-batch where the model fixes
                                 them (an op graph), else 0 */
    bool measured; /* a chain, a DAG or a log that was measured: its input, its
                      outputs are bytes, its times are given */
    uint32_t n_layers, n_edges, n_blocks;
    ms_layer *layers;
    uint32_t *edges;
    const char **block_names;
    uint32_t *held;  /* per layer: the last layer of the groups that it is the
                        input of, or MS_NONE; NULL: there are none */
    uint32_t *order; /* ms_dag_order: layers in topological order */
    uint8_t *cut;    /* ms_dag_order: 1 when layer i's output is a cut point,
                        i.e. all later layers see earlier ones through it */
    bool tokens;     /* input: int64 token ids [batch, sequence] */
    bool sequence_input; /* input has a sequence dimension after the batch */
    uint32_t n_dims;     /* else a float tensor [batch, dims...] */
    uint64_t dims[MS_MAX_DIMS];
    uint64_t max_sequence; /* positions that it has; 0: no limit */
    bool rotary;           /* they are angles, which go on beyond those that it
                              was made for; else a longer sequence is refused */
    bool fresh_tables;     /* masks and tables of positions are made for the
                              sequence at hand, not for the longest */
    const char *assumed;   /* of a configuration: class defaults that it needs
                              and does not give, ", a=1, b=2", or NULL */
    const char *refusal;   /* NULL, or why no step can be simulated: layers and
                              parameters are there */
    const char *source;    /* the file's bytes, for carets */
    size_t source_length;
} ms_model;

/* ---- reading ------------------------------------------------------------- */

/* Reads a model: path with a slash: that file only; a name without one: the
 * file if it exists here, else a built-in ("gpt3" and "gpt3.json" alike); "-":
 * standard input.  A folder means its config.json (huggingface/), beside which
 * headers of weights are read.  Overrides are "model.KEY=VALUE" settings of
 * --set applied to the family's config, or to the keys of a configuration of
 * Hugging Face, before it is built.  Faults: MS_EINPUT with file:line:column,
 * MS_ESYSTEM. */
typedef struct ms_override {
    const char *key; /* without "model." */
    const char *value;
} ms_override;
ms_err ms_read_model(const char *path, const ms_override *overrides,
                     uint32_t n_overrides, ms_arena *arena, ms_model *model,
                     ms_fault *fault);
/* The same from bytes (fuzz targets, tests). */
ms_err ms_read_model_bytes(const char *name, const char *bytes, size_t length,
                           const ms_override *overrides, uint32_t n_overrides,
                           ms_arena *arena, ms_model *model, ms_fault *fault);
/* Fails with MS_EINPUT at a layer: path:line:column, source line and caret;
 * a layer that a family made has only the path. */
ms_err ms_read_fail(const ms_model *model, const ms_layer *layer,
                    ms_fault *fault, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* No fault points into the model's text any more: it goes, if it is large.
 * arena: that which the model was read into. */
void ms_read_forget_source(ms_model *model, ms_arena *arena);
/* Built-in models: sorted by family, then size.  group: the heading that it
 * stands under. */
typedef struct ms_builtin {
    const char *name, *text, *summary, *group;
} ms_builtin;
extern const ms_builtin ms_builtin_models[];
extern const uint32_t ms_builtin_n_models;

/* ---- the layer DAG (igraph, one file) ------------------------------------ */

/* Fills order and cut.  A cycle is MS_EINPUT and names the layers on it; so is
 * a layer other than the last whose output no layer reads.  Deterministic: ties
 * by position in the file (a file in a legal order keeps it). */
ms_err ms_dag_order(ms_model *model, ms_arena *arena, ms_fault *fault);
void ms_dag_dot(const ms_model *model, ms_text *text);

/* ---- what else can be read ----------------------------------------------- */

/* aten.c: the ops that op graphs may hold: name, autograd node, what it saves,
 * the shape of its output, what its backward allocates. */
void ms_atentable_describe(ms_text *text);

/* huggingface/: the types of config.json: heads, keys and class defaults. */
void ms_huggingface_describe(ms_text *text);
/* The name of the i-th type, NULL beyond the last. */
const char *ms_huggingface_type(uint32_t i);
/* Keys of native models, of which a configuration has none; the last is
 * NULL. */
extern const char *const ms_huggingface_native[];

/* The version of igraph in use, "0.10.10". */
const char *ms_dag_library(void);

#endif
