/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cuBLAS and Transformer Engine allocate for matrix products
 * (graphs/autograd.md 16): a pass, because the op that asks first is known only
 * once all ops are there. */
#include "graphs/formats/precisions.h"
#include "graphs/lowering/lower.h"
#include "graphs/machines/overheads.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <string.h>

typedef struct finder {
    ms_trace *trace;
    ms_libraryworkspaces *held;
} finder;

/* ---- what is added ------------------------------------------------------- */

static uint32_t add(ms_trace *trace, uint32_t op, const char *role,
                    uint64_t bytes, bool persistent, bool is_made)
{
    trace->layer = persistent ? MS_NONE : trace->graph->op_layer[op];
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_WORKSPACE, persistent);
    if (s == MS_NONE ||
        !ms_columns_grow(trace, trace->scratch, &trace->added,
                         &trace->added_capacity, trace->n_added + 1,
                         sizeof *trace->added))
        return MS_NONE;
    trace->added[trace->n_added++] = (ms_added){
        .storage = s, .after = trace->ends[op].storages, .op = op, is_made};
    if (is_made)
        trace->graph->storage_maker[s] = op;
    return s;
}

/* A workspace is there from the op on, and in later steps from the beginning.
 */
static void hold(ms_trace *trace, uint32_t op, const char *role, uint64_t bytes)
{
    bool first = trace->settings->training->step == 1;
    uint32_t s = add(trace, op, role, bytes, true, first);
    if (s != MS_NONE)
        trace->graph->storage_at_start[s] = !first;
}

/* ---- Transformer Engine -------------------------------------------------- */

#define MIB 1048576u
#define EARLY_BYTES (4 * MIB)
#define HOPPER_BYTES (32 * MIB + 1024)
#define TE_OVERLAP_STREAMS 3u /* products beside exchanges (initialize_ub) */

static uint64_t te_bytes(const finder *f)
{
    bool late = f->trace->settings->device->compute_capability >= MS_HOPPER;
    return late ? HOPPER_BYTES : EARLY_BYTES;
}

/* Its workspace, whatever it computes (cpp_extensions/gemm.py,
 * get_cublas_workspace_size_bytes). */
static void hold_te(finder *f, uint32_t op)
{
    if (f->held->te)
        return;
    f->held->te = true;
    hold(f->trace, op, "transformer_engine_workspace", te_bytes(f));
    if (f->trace->shards && f->trace->settings->shape->overlaps)
        hold(f->trace, op, "transformer_engine_userbuffer_workspaces",
             TE_OVERLAP_STREAMS * te_bytes(f));
}

/* Products in groups run on streams of their own, each with such a one
 * (get_multi_stream_cublas_workspace, _NUM_MAX_UB_STREAMS or
 * tex.get_num_cublas_streams). */
#define TE_STREAMS 4u
static void hold_te_streams(finder *f, uint32_t op)
{
    if (f->held->te_streams)
        return;
    f->held->te_streams = true;
    hold(f->trace, op, "transformer_engine_stream_workspaces",
         TE_STREAMS * te_bytes(f));
}

/* ---- cuBLAS -------------------------------------------------------------- */

static uint64_t cublas_bytes(const ms_trace *trace)
{
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    return hooks->cublas_bytes
               ? hooks->cublas_bytes(trace->settings)
               : ms_overheads_workspace(trace->settings->device,
                                        trace->settings->training);
}

static uint32_t thread_of(const finder *f, uint32_t op)
{
    return f->trace->graph->op_pass[op] > MS_LOSS;
}

/* One workspace per thread that multiplies matrices: the forward's and
 * autograd's.  Its first product makes it, after its output; from then on it
 * stays. */
static void hold_cublas(finder *f, uint32_t op)
{
    static const char *const names[2] = {"forward:cublas_workspace",
                                         "backward:cublas_workspace"};
    uint32_t thread = thread_of(f, op);
    if (f->held->cublas[thread])
        return;
    f->held->cublas[thread] = true;
    hold(f->trace, op, names[thread], cublas_bytes(f->trace));
}

/* cublasLt, which adds a bias, had one for each call (aten CUDABlas.cpp) until
 * pull request 156495 of 2025: one per thread that stays, made behind that of
 * the handle of cuBLAS, which cublasLt shares, and no larger.  Recorded with
 * 2.11 on an H100 with five sizes of cuBLAS's. */
#define LT_WORKSPACE_BYTES (UINT64_C(1) << 20)

static void hold_lt(finder *f, uint32_t op)
{
    static const char *const names[2] = {"forward:cublaslt_workspace",
                                         "backward:cublaslt_workspace"};
    uint64_t most = cublas_bytes(f->trace);
    uint32_t thread = thread_of(f, op);
    if (f->held->cublaslt[thread] || most == 0)
        return;
    f->held->cublaslt[thread] = true;
    hold(f->trace, op, names[thread],
         most < LT_WORKSPACE_BYTES ? most : LT_WORKSPACE_BYTES);
}

static void product(finder *f, uint32_t op)
{
    ms_trace *trace = f->trace;
    uint8_t kind = trace->graph->op_kind[op];
    bool biased = kind == MS_KIND_ADDMM;
    bool linear = biased || kind == MS_KIND_MM;
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    if (trace->settings->cpu)
        return;
    bool te = hooks->is_te_product && hooks->is_te_product(trace, op);
    if (te && kind == MS_KIND_GROUPED)
        hold_te_streams(f, op);
    else if (te && linear)
        hold_te(f, op);
    else if (biased && trace->settings->framework < MS_TORCH_2)
        add(trace, op, "workspace", LT_WORKSPACE_BYTES, false, true);
    else if (linear || kind == MS_KIND_BMM)
        hold_cublas(f, op);
    /* Megatron's own linear layers add the bias behind torch.matmul
     * (core/tensor_parallel/layers.py). */
    bool by_matmul = hooks->is_te_product != NULL;
    if (biased && !by_matmul && trace->settings->framework >= MS_TORCH_2)
        hold_lt(f, op);
}

/* ---- the pass ------------------------------------------------------------ */

/* Puts what ops make at the end of their outputs: from the last to the first,
 * so that each stretch between two moves once. */
static void make_room(ms_trace *trace, uint32_t n)
{
    ms_graph *g = trace->graph;
    uint32_t end = trace->n_out, next = g->n_ops;
    if (n == 0 ||
        !ms_columns_grow(trace, trace->arena, &g->out, &trace->out_capacity,
                         trace->n_out + n, sizeof *g->out))
        return;
    trace->n_out += n;
    for (uint32_t i = trace->n_added; i-- > 0;) {
        const ms_added *it = &trace->added[i];
        if (!it->is_made)
            continue;
        /* Of two that an op makes the second has been moved already. */
        uint32_t at = it->op + 1 < next ? g->out_at[it->op + 1] : end;
        memmove(g->out + at + n, g->out + at, (end - at) * sizeof *g->out);
        for (uint32_t op = it->op + 1; op < next; op++)
            g->out_at[op] += n;
        n--;
        g->out[at + n] = it->storage;
        end = at;
        next = it->op + 1;
    }
}

void ms_libraryworkspace_add(ms_trace *trace, uint32_t first,
                             ms_libraryworkspaces *held)
{
    finder f = {.trace = trace, .held = held};
    uint32_t n_made = 0, layer = trace->layer;
    /* torchao multiplies by torch._scaled_mm. */
    bool by_te = !ms_precisions_of(trace->settings->training)->wide;
    for (uint32_t op = first; op < trace->graph->n_ops && !trace->err; op++) {
        if (trace->ends[op].work == MS_WORK_FP8 && by_te)
            hold_te(&f, op);
        if (trace->ends[op].work >= MS_WORK_MATRIX)
            product(&f, op);
    }
    for (uint32_t i = 0; i < trace->n_added; i++)
        n_made += trace->added[i].is_made;
    if (!trace->err)
        make_room(trace, n_made);
    trace->layer = layer;
}
