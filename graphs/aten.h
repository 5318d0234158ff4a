/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ATEN_H
#define MS_GRAPHS_ATEN_H

/* Private to graphs/: aten ops by name, for op graphs.  A row of the table
 * says which inputs are differentiable, what autograd saves and by which rule
 * the gradient flows back; shapes and storages come with the graph. */

#include "graphs/opgraph.h"

/* One node under way: its inputs and outputs as tensors of the trace. */
typedef struct ms_aten_call {
    const ms_opgraph *ops;
    const ms_opnode *node;
    const uint32_t *in;   /* node->n_in tensors */
    uint32_t *out;        /* node->n_out tensors, made */
    const uint32_t *made; /* per tensor of the file: ours, or MS_NONE */
    uint32_t whole;       /* written in place by its view in[0], or MS_NONE */
} ms_aten_call;

typedef struct ms_aten_row {
    const char *op, *overload; /* overload NULL: any */
    const ms_rule *rule;       /* NULL: no gradient flows through it */
    const char *inputs;        /* differentiable inputs, by position: "012";
                               "*": all */
    const char *saves;         /* in order: "i0" input 0, "I1" input 1 where
                               there is one, "o1" output 1 */
    bool matrix;               /* a matrix product: rated by FLOPs */
    /* (optional) what the columns cannot say; n: the node or MS_NONE. */
    void (*also)(ms_trace *trace, const ms_aten_call *call, uint32_t n);
} ms_aten_row;

extern const ms_aten_row ms_aten_rows[];
extern const uint32_t ms_aten_n_rows;

/* What is wrong with the op, or NULL: record relies on it. */
const char *ms_aten_objection(const ms_aten_row *row, const ms_aten_call *call);
/* NULL: no such op. */
const ms_aten_row *ms_aten_find(const char *op, const char *overload);
/* Records the op whose outputs exist: its node and what it saves. */
void ms_aten_record(ms_trace *trace, const ms_aten_row *row,
                    const ms_aten_call *call);

#endif
