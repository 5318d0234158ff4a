/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/aten/reductions.h"

#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

typedef struct reducer {
    const char *op;
    uint32_t dims;        /* which argument names the dimensions */
    uint32_t accumulator; /* bytes; 0: of the elements */
} reducer;

enum { VALUE_AND_INDEX = 16, MOMENTS = 16 }; /* WelfordData: mean, m2, n, nf */

/* Half precision is summed in fp32. */
static const reducer reducers[] = {
    {"sum", 1, sizeof(float)},
    {"mean", 1, sizeof(float)},
    {"prod", 1, sizeof(float)},
    {"linalg_vector_norm", 2, sizeof(float)},
    {"norm", 2, sizeof(float)},
    {"max", 1, VALUE_AND_INDEX},
    {"min", 1, VALUE_AND_INDEX},
    {"argmax", 1, VALUE_AND_INDEX},
    {"argmin", 1, VALUE_AND_INDEX},
    {"amax", 1, 0},
    {"amin", 1, 0},
    {"any", 1, 1},
    {"all", 1, 1},
    {"var", 1, MOMENTS},
    {"std", 1, MOMENTS},
    {"var_mean", 1, MOMENTS},
};

static uint32_t bit(const ms_tensor *x, int64_t dim)
{
    dim += dim < 0 ? x->n_dims : 0;
    return dim >= 0 && dim < x->n_dims ? 1u << dim : 0;
}

/* No such argument, or an empty one: all dimensions. */
static uint32_t dims_of(const ms_tensor *x, const ms_opnode *node, uint32_t arg)
{
    uint32_t dims = 0;
    if (arg >= node->n_args)
        return MS_ALL_DIMS;
    const ms_oparg *given = &node->args[arg];
    if (given->kind == MS_ARG_INT)
        return bit(x, given->value.i);
    for (uint32_t i = 0; given->kind == MS_ARG_INTS && i < given->n; i++)
        dims |= bit(x, given->value.ints[i]);
    return dims ? dims : MS_ALL_DIMS;
}

void ms_reductions_scratch(ms_trace *trace, const ms_aten_call *call)
{
    const ms_opnode *node = call->node;
    for (size_t i = 0; i < sizeof reducers / sizeof *reducers; i++) {
        const reducer *row = &reducers[i];
        if (strcmp(row->op, node->op) != 0 || node->n_in == 0)
            continue;
        const ms_tensor *x = ms_trace_at(trace, call->in[0]);
        uint32_t dims = dims_of(x, node, row->dims);
        /* Without indices max and min accumulate plain values. */
        bool pair = row->accumulator == VALUE_AND_INDEX && node->n_out < 2 &&
                    strncmp(node->op, "arg", 3) != 0;
        uint32_t accumulator = row->accumulator && !pair
                                   ? row->accumulator
                                   : ms_dtypes_bytes[x->dtype];
        ms_scratch_reduce(trace, call->in[0], dims, accumulator);
        return;
    }
}
