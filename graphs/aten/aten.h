/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ATEN_H
#define MS_GRAPHS_ATEN_H

/* Private to graphs/: aten ops by name, for op graphs.  A row of a table says
 * which inputs are differentiable, what autograd saves, by which rule the
 * gradient flows back and which shape the op must have; shapes and storages
 * come with the graph.  A new op is a row.
 *
 * An op in place (its name ends in _) that has no row of its own is the row
 * without the _; where that saves input 0, a clone of it is saved, since it is
 * overwritten (graphs/autograd.md 11). */

#include "graphs/json/index.h"
#include "graphs/opgraph/opgraph.h"
#include "sim/kinds.h"

/* One node under way: its inputs and outputs as tensors of the trace. */
typedef struct ms_aten_call {
    const ms_opgraph *ops;
    const ms_opnode *node;
    const uint32_t *in;   /* node->n_in tensors */
    uint32_t *out;        /* node->n_out tensors, made */
    const uint32_t *made; /* per tensor of the file: ours, or MS_NONE */
    uint32_t *listed;     /* room for node->n_in + 1 */
    uint32_t clone;       /* of in[0], made for autograd, or MS_NONE */
    uint32_t whole;       /* what in[0], written in place, is a view of;
                             MS_NONE: in[0] is no view */
} ms_aten_call;

/* What a shape rule finds: the sizes that output k must have, or why the
 * inputs and arguments cannot give any. */
typedef struct ms_aten_shape {
    uint32_t k, n_dims;
    int64_t size[MS_MAX_DIMS];
    const char *objection; /* NULL: none */
} ms_aten_shape;

typedef struct ms_shape_rule {
    const char *summary; /* "broadcast of the inputs" */
    /* false: any shape will do. */
    bool (*derive)(const ms_aten_call *call, ms_aten_shape *want);
    uint32_t n_in; /* it looks at this many inputs */
} ms_shape_rule;

typedef struct ms_aten_row {
    const char *op, *overload;  /* overload NULL: any */
    uint8_t kind;               /* ms_op_kind, of its backward, too */
    const ms_rule *rule;        /* NULL: no gradient flows through it */
    const char *inputs;         /* differentiable inputs, by position: "012",
                                $ the last one; "*": all */
    const char *saves;          /* in order: "i0" input 0, "I1" input 1 where
                                there is one, "o1", "O1" outputs */
    const char *makes;          /* what backward allocates, for people; in the
                                notation of ms_formula_backward */
    const ms_shape_rule *shape; /* (optional) */
    bool matrix;                /* a matrix product: rated by FLOPs */
    bool crossed;               /* the two saved inputs: each only where the
                                   other needs a gradient */
    bool every_output;          /* all outputs have gradients, not only 0 */
    /* (optional) what the columns cannot say; n: the node. */
    void (*also)(ms_trace *trace, const ms_aten_call *call, uint32_t n);
} ms_aten_row;

/* The tables: atenpoint.c element by element and constants, atenview.c views,
 * copies and choices, atenmath.c the rest. */
extern const ms_aten_row ms_atenpoint_rows[], ms_atenview_rows[],
    ms_atenmath_rows[];
extern const uint32_t ms_atenpoint_n_rows, ms_atenview_n_rows,
    ms_atenmath_n_rows;

/* atenexceptions.c: exceptions to the columns. */
void ms_atenexceptions_mul(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n);
void ms_atenexceptions_div(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n);
void ms_atenexceptions_clamp(ms_trace *trace, const ms_aten_call *call,
                             uint32_t n);
void ms_atenexceptions_transpose(ms_trace *trace, const ms_aten_call *call,
                                 uint32_t n);
void ms_atenexceptions_permute(ms_trace *trace, const ms_aten_call *call,
                               uint32_t n);
void ms_atenexceptions_stack(ms_trace *trace, const ms_aten_call *call,
                             uint32_t n);
void ms_atenexceptions_sum(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n);
void ms_atenexceptions_mean(ms_trace *trace, const ms_aten_call *call,
                            uint32_t n);
void ms_atenexceptions_norm(ms_trace *trace, const ms_aten_call *call,
                            uint32_t n);
void ms_atenexceptions_convolution(ms_trace *trace, const ms_aten_call *call,
                                   uint32_t n);
void ms_atenexceptions_index_put(ms_trace *trace, const ms_aten_call *call,
                                 uint32_t n);
void ms_atenexceptions_logits(ms_trace *trace, const ms_aten_call *call,
                              uint32_t n);

/* The shape rules: atenshape.c, and atenwindow.c for sliding windows. */
extern const ms_shape_rule ms_atenshape_same, ms_atenshape_broadcast,
    ms_atenshape_like_1, ms_atenshape_product, ms_atenshape_reduce,
    ms_atenshape_reduce_2, ms_atenshape_chosen, ms_atenshape_loss,
    ms_atenshape_cat, ms_atenshape_stack, ms_atenshape_elements,
    ms_atenshape_transpose, ms_atenshape_permute, ms_atenshape_expand,
    ms_atenshape_slice, ms_atenshape_select, ms_atenshape_split,
    ms_atenshape_unbind, ms_atenshape_embedding, ms_atenshape_index_select,
    ms_atenshape_topk, ms_atenshape_pad, ms_atenshape_repeat,
    ms_atenshape_sized, ms_atenshape_sized_1, ms_atenshape_scalar,
    ms_atenshape_halved, ms_atenshape_wider, ms_atenshape_any,
    ms_atenshape_attention;
extern const ms_shape_rule ms_atenwindow_convolution, ms_atenwindow_max_pool,
    ms_atenwindow_avg_pool, ms_atenwindow_adaptive, ms_atenwindow_planes;

/* The integer that argument i is, or fallback. */
int64_t ms_aten_int(const ms_opnode *node, uint32_t i, int64_t fallback);
/* Argument i as integers, a list or one: how many; 0 leaves *ints alone. */
uint32_t ms_aten_ints(const ms_opnode *node, uint32_t i, const int64_t **ints);
bool ms_aten_in_place(const ms_opnode *node);
/* Saves input i for node n; in place, a clone of what is overwritten. */
void ms_aten_save_input(ms_trace *trace, const ms_aten_call *call, uint32_t n,
                        uint32_t i);

/* Records the op whose outputs exist: its node and what it saves. */
void ms_aten_record(ms_trace *trace, const ms_aten_row *row,
                    const ms_aten_call *call);

/* ---- atentable.c --------------------------------------------------------- */

/* An index of all rows by op, for ms_atentable_find. */
ms_err ms_atentable_open(ms_index *index, ms_arena *arena, ms_fault *fault);
/* NULL: no such op. */
const ms_aten_row *ms_atentable_find(const ms_index *index, const char *op,
                                     const char *overload);
/* That of the row, which for a trailing _ is the row without it. */
ms_op_kind ms_atentable_kind(const ms_index *index, const char *op);
/* What is wrong with the op (in arena), or NULL: record relies on it. */
const char *ms_atentable_objection(const ms_aten_row *row,
                                   const ms_aten_call *call, ms_arena *arena);
#endif
