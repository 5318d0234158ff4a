/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/aten/atenkinds.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

typedef struct kernel {
    const char *name;
    uint8_t kind;
} kernel;

/* Kernels of other libraries, and torch's own that no row has: what only a
 * backward calls, and what goes over lists of tensors. */
static const kernel others[] = {
    /* products */
    {"fp8::gemm", MS_KIND_GEMM},
    {"grouped_gemm", MS_KIND_GROUPED},
    {"aten::ger", MS_KIND_PRODUCT},
    {"aten::matmul", MS_KIND_PRODUCT},
    {"aten::tensordot", MS_KIND_PRODUCT},
    {"aten::outer", MS_KIND_PRODUCT},
    {"aten::_cudnn_rnn", MS_KIND_RECURRENT},
    /* norms, gates, rotation */
    {"liger_rms_norm", MS_KIND_NORM},
    {"liger_layer_norm", MS_KIND_NORM},
    {"swiglu", MS_KIND_POINTWISE},
    {"geglu", MS_KIND_POINTWISE},
    {"liger_swiglu", MS_KIND_POINTWISE},
    {"liger_geglu", MS_KIND_POINTWISE},
    {"gated", MS_KIND_POINTWISE},
    {"liger_gated", MS_KIND_POINTWISE},
    {"weighted_swiglu", MS_KIND_POINTWISE},
    {"bias_dropout_add", MS_KIND_DROPOUT},
    {"rotary", MS_KIND_ROTARY},
    {"fused_rope", MS_KIND_ROTARY},
    /* losses */
    {"aten::nll_loss", MS_KIND_LOSS},
    {"aten::nll_loss2d", MS_KIND_LOSS},
    {"vocab_parallel_cross_entropy", MS_KIND_LOSS},
    {"compiled_cross_entropy", MS_KIND_LOSS},
    {"liger_cross_entropy", MS_KIND_LOSS},
    {"element_mul", MS_KIND_POINTWISE},
    /* masks and buckets of positions, made on the way */
    {"mask", MS_KIND_FILL},
    {"relative_bucket", MS_KIND_POINTWISE},
    /* experts */
    {"moe_sort", MS_KIND_SORT},
    {"moe_permute", MS_KIND_INDEX},
    {"moe_unpermute", MS_KIND_INDEX},
    {"aten::one_hot", MS_KIND_INDEX},
    /* formats */
    {"fp8::quantize", MS_KIND_CAST},
    {"fp8::quantize (all)", MS_KIND_CAST},
    {"fp8::transpose", MS_KIND_COPY},
    {"fp8::amax", MS_KIND_REDUCTION},
    {"dequantize", MS_KIND_CAST},
    {"dequantize_blockwise", MS_KIND_CAST},
    {"aten::_to_copy (all)", MS_KIND_CAST},
    /* backward alone: a view's is a kernel that writes a part of zeros */
    {"aten::slice_backward", MS_KIND_COPY},
    {"aten::select_backward", MS_KIND_COPY},
    {"aten::diagonal_backward", MS_KIND_COPY},
    {"aten::as_strided_backward", MS_KIND_COPY},
    {"aten::unfold_backward", MS_KIND_COPY},
    {"aten::embedding_dense", MS_KIND_EMBEDDING},
    {"aten::threshold", MS_KIND_POINTWISE},
    {"aten::log_sigmoid", MS_KIND_POINTWISE},
    {"aten::sgn", MS_KIND_POINTWISE},
    {"aten::and", MS_KIND_POINTWISE},
    {"aten::value_selecting_reduction", MS_KIND_INDEX},
    {"aten::cummaxmin", MS_KIND_INDEX},
    {"AccumulateGrad", MS_KIND_COPY},
    /* lists of tensors */
    {"aten::_foreach_norm", MS_KIND_REDUCTION},
    {"aten::_foreach_copy_", MS_KIND_COPY},
    {"aten::_local_scalar_dense", MS_KIND_COPY},
    {"c10d::all_gather", MS_KIND_COLLECTIVE},
    {"nccl::all_gather", MS_KIND_COLLECTIVE},
    {"nccl::all_reduce", MS_KIND_COLLECTIVE},
    {"nccl::all_to_all", MS_KIND_COLLECTIVE},
    {"nccl::send_recv", MS_KIND_COLLECTIVE},
    {"nccl::wait", MS_KIND_COLLECTIVE},
    {"update_out_and_lse", MS_KIND_POINTWISE},
    {"merge_partial_results", MS_KIND_POINTWISE},
    {"nccl::reduce_scatter", MS_KIND_COLLECTIVE},
};

/* Where name ends with ending: how long it is without that, else 0. */
static size_t without(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0 ? n - m : 0;
}

static ms_op_kind kind_here(const ms_index *rows, const char *name)
{
    static const char prefix[] = "aten::";
    if (strncmp(name, prefix, strlen(prefix)) == 0) {
        ms_op_kind kind = ms_atentable_kind(rows, name + strlen(prefix));
        if (kind != MS_KIND_OTHER)
            return kind;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return (ms_op_kind)others[i].kind;
    return MS_KIND_OTHER;
}

ms_op_kind ms_atenkinds_of(const ms_index *rows, const char *name)
{
    static const char *const endings[] = {"_backward", "_backward_data"};
    ms_op_kind kind = kind_here(rows, name);
    for (size_t i = 0; i < 2 && kind == MS_KIND_OTHER; i++) {
        char forward[64];
        size_t n = without(name, endings[i]);
        if (n == 0 || n >= sizeof forward)
            continue;
        memcpy(forward, name, n);
        forward[n] = '\0';
        kind = kind_here(rows, forward);
    }
    return kind;
}

/* Names are few and most of them are literals, so that the address of one
 * stands for its text: what was found for it last is remembered.  Equal texts
 * at two addresses are only looked up twice. */
#define N_MET 256u
typedef struct met {
    const char *name[N_MET];
    uint8_t kind[N_MET];
} met;

static uint8_t kind_met(met *m, const ms_index *rows, const char *name)
{
    size_t at = ((uintptr_t)name >> 3) % N_MET;
    if (m->name[at] != name) {
        m->name[at] = name;
        m->kind[at] = (uint8_t)ms_atenkinds_of(rows, name);
    }
    return m->kind[at];
}

ms_err ms_atenkinds_fill(ms_trace *trace, uint32_t first)
{
    ms_graph *g = trace->graph;
    met m = {.name = {NULL}};
    if (trace->op_rows.capacity == 0)
        MS_TRY(
            ms_atentable_open(&trace->op_rows, trace->scratch, trace->fault));
    for (uint32_t op = first; op < g->n_ops; op++) {
        uint8_t kind = kind_met(&m, &trace->op_rows, g->op_name[op]);
        bool step = kind == MS_KIND_OTHER && g->op_pass[op] == MS_STEP;
        g->op_kind[op] = step ? MS_KIND_OPTIMIZER : kind;
    }
    return MS_OK;
}
