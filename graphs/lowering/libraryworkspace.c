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

/* An op at the end of whose outputs a storage stands. */
typedef struct claim {
    uint32_t storage, op;
} claim;

/* Of one workspace, in this pass: its storage, and the layer of the last op of
 * each pass that has claimed it. */
typedef struct claimed {
    uint32_t storage, layer[MS_RECOMPUTE + 1];
} claimed;

typedef struct finder {
    ms_trace *trace;
    ms_libraryworkspaces *held;
    claim *claims; /* by rising op */
    uint32_t n_claims, claims_capacity;
    claimed of[MS_N_LIBRARY_WORKSPACES];
} finder;

/* ---- what is added ------------------------------------------------------- */

static void put_claim(finder *f, uint32_t storage, uint32_t op)
{
    ms_trace *trace = f->trace;
    if (storage != MS_NONE &&
        ms_columns_grow(trace, trace->scratch, &f->claims, &f->claims_capacity,
                        f->n_claims + 1, sizeof *f->claims))
        f->claims[f->n_claims++] = (claim){storage, op};
}

static uint32_t add(finder *f, uint32_t op, const char *role, uint64_t bytes,
                    bool persistent)
{
    ms_trace *trace = f->trace;
    trace->layer = persistent ? MS_NONE : trace->graph->op_layer[op];
    uint32_t s = ms_trace_storage(trace, role, bytes, MS_WORKSPACE, persistent);
    if (s == MS_NONE ||
        !ms_columns_grow(trace, trace->scratch, &trace->added,
                         &trace->added_capacity, trace->n_added + 1,
                         sizeof *trace->added))
        return MS_NONE;
    trace->added[trace->n_added++] =
        (ms_added){.storage = s, .after = trace->ends[op].storages};
    return s;
}

static void make(finder *f, uint32_t op, uint32_t storage)
{
    if (storage != MS_NONE)
        f->trace->graph->storage_maker[storage] = op;
    put_claim(f, storage, op);
}

/* Whose layers are on several ranks: the first of its ops that a rank runs
 * makes the rank's own, so that one of each layer and pass says so. */
static void claim_again(finder *f, ms_library_workspace which, uint32_t op)
{
    const ms_graph *graph = f->trace->graph;
    claimed *of = &f->of[which];
    uint32_t *layer = &of->layer[graph->op_pass[op]];
    if (of->storage == MS_NONE || *layer == graph->op_layer[op])
        return;
    *layer = graph->op_layer[op];
    put_claim(f, of->storage, op);
}

/* A workspace is there from the op on, and in later steps from the beginning.
 */
static void hold(finder *f, ms_library_workspace which, uint32_t op,
                 uint64_t bytes)
{
    static const char *const roles[] = {
        [MS_CUBLAS_FORWARD] = "forward:cublas_workspace",
        [MS_CUBLAS_BACKWARD] = "backward:cublas_workspace",
        [MS_CUBLASLT_FORWARD] = "forward:cublaslt_workspace",
        [MS_CUBLASLT_BACKWARD] = "backward:cublaslt_workspace",
        [MS_TE_WORKSPACE] = "transformer_engine_workspace",
        [MS_TE_USERBUFFERS] = "transformer_engine_userbuffer_workspaces",
        [MS_TE_STREAMS] = "transformer_engine_stream_workspaces"};
    const ms_step_settings *settings = f->trace->settings;
    bool first = settings->training->step == 1;
    bool staged = settings->shape->pipeline_ranks > 1;
    claimed *of = &f->of[which];
    if (f->held->is[which]) {
        claim_again(f, which, op);
        return;
    }
    f->held->is[which] = true;
    uint32_t s = add(f, op, roles[which], bytes, true);
    if (s == MS_NONE)
        return;
    f->trace->graph->storage_at_start[s] = !first;
    if (staged) {
        of->storage = s;
        of->layer[f->trace->graph->op_pass[op]] = f->trace->graph->op_layer[op];
    }
    if (first || staged)
        make(f, op, s);
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
    hold(f, MS_TE_WORKSPACE, op, te_bytes(f));
    if (f->trace->shards && f->trace->settings->shape->overlaps)
        hold(f, MS_TE_USERBUFFERS, op, TE_OVERLAP_STREAMS * te_bytes(f));
}

/* Products in groups run on streams of their own, each with such a one
 * (get_multi_stream_cublas_workspace, _NUM_MAX_UB_STREAMS or
 * tex.get_num_cublas_streams). */
#define TE_STREAMS 4u
static void hold_te_streams(finder *f, uint32_t op)
{
    hold(f, MS_TE_STREAMS, op, TE_STREAMS * te_bytes(f));
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
    hold(f, MS_CUBLAS_FORWARD + thread_of(f, op), op, cublas_bytes(f->trace));
}

/* cublasLt, which adds a bias, had one for each call (aten CUDABlas.cpp) until
 * pull request 156495 of 2025: one per thread that stays, made behind that of
 * the handle of cuBLAS, which cublasLt shares, and no larger.  Recorded with
 * 2.11 on an H100 with five sizes of cuBLAS's. */
#define LT_WORKSPACE_BYTES (UINT64_C(1) << 20)

static void hold_lt(finder *f, uint32_t op)
{
    uint64_t most = cublas_bytes(f->trace);
    if (most > 0)
        hold(f, MS_CUBLASLT_FORWARD + thread_of(f, op), op,
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
        make(f, op, add(f, op, "workspace", LT_WORKSPACE_BYTES, false));
    else if (linear || kind == MS_KIND_BMM)
        hold_cublas(f, op);
    /* Megatron's own linear layers add the bias behind torch.matmul
     * (core/tensor_parallel/layers.py). */
    bool by_matmul = hooks->is_te_product != NULL;
    if (biased && !by_matmul && trace->settings->framework >= MS_TORCH_2)
        hold_lt(f, op);
}

/* ---- the pass ------------------------------------------------------------ */

/* Puts what ops claim at the end of their outputs: from the last to the first,
 * so that each stretch between two moves once. */
static void make_room(const finder *f)
{
    ms_trace *trace = f->trace;
    ms_graph *g = trace->graph;
    uint32_t n = f->n_claims, end = trace->n_out, next = g->n_ops;
    if (n == 0 ||
        !ms_columns_grow(trace, trace->arena, &g->out, &trace->out_capacity,
                         trace->n_out + n, sizeof *g->out))
        return;
    trace->n_out += n;
    while (n > 0) {
        const claim *it = &f->claims[n - 1];
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
    uint32_t layer = trace->layer;
    /* torchao multiplies by torch._scaled_mm. */
    bool by_te = !ms_precisions_of(trace->settings->training)->wide;
    memset(f.of, 0xff, sizeof f.of);
    for (uint32_t op = first; op < trace->graph->n_ops && !trace->err; op++) {
        if (trace->ends[op].work == MS_WORK_FP8 && by_te)
            hold_te(&f, op);
        if (trace->ends[op].work >= MS_WORK_MATRIX)
            product(&f, op);
    }
    if (!trace->err)
        make_room(&f);
    trace->layer = layer;
}
