/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cuBLAS allocates (graphs/autograd.md 16). */
#include "graphs/kernels/mcore.h"
#include "graphs/trace/trace.h"

#include <string.h>

void ms_library_hold(ms_trace *trace, const char *role, uint64_t bytes)
{
    bool first = trace->training->step == 1;
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_WORKSPACE, true);

    if (s == MS_NONE)
        return;
    trace->graph.storage_layer[s] = MS_NONE;
    trace->graph.storage_at_start[s] = !first;
    if (first)
        ms_trace_out(trace, s);
}

/* One workspace per thread that multiplies matrices: the forward's and
 * autograd's.  Its first product makes it, after its output; from then on it
 * stays. */
static void workspace(ms_trace *trace)
{
    static const char *const names[2] = {"forward:cublas_workspace",
                                         "backward:cublas_workspace"};
    uint32_t thread = trace->pass > MS_LOSS;

    if (trace->multiplies[thread])
        return;
    trace->multiplies[thread] = true;
    ms_library_hold(trace, names[thread], ms_mcore_cublas_bytes(trace));
}

/* cublasLt, which adds a bias, had one for each call until torch 2.3. */
#define LT_WORKSPACE_BYTES (UINT64_C(1) << 20)

void ms_library_product(ms_trace *trace)
{
    const char *name = trace->graph.op_name[trace->graph.n_ops - 1];

    if (trace->cpu)
        return;
    bool biased = strcmp(name, "aten::addmm") == 0;
    bool linear = biased || strcmp(name, "aten::mm") == 0;
    if (linear && ms_mcore_workspace(trace))
        return;
    if (biased && trace->framework < MS_TORCH_2)
        ms_trace_workspace(trace, LT_WORKSPACE_BYTES);
    else if (linear || strcmp(name, "aten::bmm") == 0 ||
             strcmp(name, "aten::baddbmm") == 0)
        workspace(trace);
}

/* Can a product read it as it lies, by rows or by columns
 * (prepare_batch_matrix_for_cublas)? */
static bool is_matrix(const ms_tensor *x)
{
    uint32_t row = x->n_dims - 2u, column = x->n_dims - 1u;
    int64_t rows = x->size[row], columns = x->size[column];
    bool by_rows =
        x->stride[column] == 1 && x->stride[row] >= (columns > 1 ? columns : 1);
    bool by_columns =
        x->stride[row] == 1 && x->stride[column] >= (rows > 1 ? rows : 1);

    return by_rows || by_columns || rows == 1 || columns == 1;
}

void ms_library_operand(ms_trace *trace, uint32_t x)
{
    if (trace->err || trace->cpu)
        return;
    const ms_tensor *operand = ms_trace_at(trace, x);
    if (operand->n_dims >= 2 && !is_matrix(operand))
        ms_trace_workspace(trace, ms_trace_bytes(operand));
}
