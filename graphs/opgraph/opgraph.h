/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPGRAPH_H
#define MS_GRAPHS_OPGRAPH_H

/* Private to graphs/: an op graph as exported from PyTorch (the format that
 * `memsim help files` describes): storages, tensors over them, and the
 * forward's aten ops in the order they ran.  What PyTorch saved and the order
 * of its backward are not read: both are derived.
 *
 *     ms_opgraph ops;
 *     MS_TRY(ms_opgraph_read(&json, arena, &ops, fault));
 *     ops.nodes[0].op == "convolution", ops.nodes[0].args[2].kind == ... */

#include "graphs/json/json.h"
#include "graphs/opgraph/opcopies.h"
#include "graphs/trace/tensors.h"

typedef enum ms_oparg_kind {
    MS_ARG_NONE,
    MS_ARG_TENSOR,
    MS_ARG_INT,
    MS_ARG_FLOAT,
    MS_ARG_BOOL,
    MS_ARG_INTS,   /* ints[0 .. n) */
    MS_ARG_TENSORS /* n tensors, the next inputs in order */
} ms_oparg_kind;

typedef struct ms_oparg {
    uint8_t kind;
    uint32_t n;
    union {
        int64_t i;
        double f;
        const int64_t *ints;
    } value;
} ms_oparg;

/* kind of a storage before the step: act means made by an op. */
typedef enum ms_opstorage_kind {
    MS_OPSTORAGE_ACT,
    MS_OPSTORAGE_PARAM,
    MS_OPSTORAGE_BUFFER,
    MS_OPSTORAGE_INPUT
} ms_opstorage_kind;

typedef struct ms_opstorage {
    uint64_t bytes;
    uint8_t kind;
    const char *name; /* "" for act */
} ms_opstorage;

/* Beyond the dimensions of the tensor all is 0. */
typedef struct ms_oplayout {
    int64_t size[MS_MAX_DIMS], stride[MS_MAX_DIMS];
} ms_oplayout;

typedef struct ms_optensor {
    const int64_t *size, *stride; /* of a layout that equal tensors share */
    uint32_t storage;
    uint8_t dtype, n_dims;
} ms_optensor;

typedef struct ms_opnode {
    const char *name;     /* as in the file: "aten.addmm" */
    const char *op;       /* "addmm": without "aten." */
    const char *overload; /* "default", "Tensor", ... */
    bool renamed;         /* op is the file's real_op */
    uint32_t module;      /* row of modules */
    uint32_t number;      /* in the file, from 0 */
    uint32_t n_in, n_out, n_args;
    const uint32_t *in, *out; /* rows of tensors */
    uint32_t n_ends;
    const uint32_t *ends; /* tensors that lost their last name after it */
    const ms_oparg *args;
    double flops; /* the exporter's count; negative: none */
    ms_spot spot;
} ms_opnode;

struct ms_opgraph {
    uint32_t n_storages, n_tensors, n_nodes, n_modules;
    ms_opstorage *storages;
    ms_optensor *tensors;
    ms_opnode *nodes;
    const char **modules; /* dotted names, "" for the top */
    uint32_t loss_start;  /* first node of the loss */
    uint64_t batch;       /* samples of one run; 0: not said */
};

/* Rows of the three lists may be folded (ms_json_outline); nothing of json is
 * kept.  Faults: MS_EINPUT with the position of the node, tensor or storage
 * that is wrong (ids out of range or order, shapes that do not fit their
 * storage, negative strides, unknown dtypes). */
ms_err ms_opgraph_read(const ms_json *json, ms_arena *arena, ms_opgraph *ops,
                       ms_fault *fault);

/* opargs.c: "args" and "flops" of the node, whose inputs are known.  The
 * arguments are kept in copies. */
ms_err ms_opargs_read(const ms_json *json, uint32_t row, ms_arena *scratch,
                      ms_opcopies *copies, ms_opnode *node, ms_fault *fault);

/* opfields.c.  Is every key of the object known, a node's or the graph's? */
ms_err ms_opfields_check(const ms_json *json, uint32_t object, bool node,
                         ms_fault *fault);

#endif
