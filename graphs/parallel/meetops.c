/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/meetops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

void ms_meetops_end(ms_trace *trace, ms_collective collective,
                    ms_group_role role, const ms_group *ranks)
{
    ms_graph *g = trace->graph;
    ms_trace_end(trace, 0, false);
    if (trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    uint64_t bytes = g->op_read_bytes[op];
    if (g->op_write_bytes[op] > bytes)
        bytes = g->op_write_bytes[op];
    g->op_meets[op] = MS_MEETS(collective, role);
    g->op_stream[op] = ranks->queue;
    g->op_ns[op] = ms_collective_ns(ranks, collective, bytes);
    trace->ends[op].work = MS_WORK_NONE;
}

void ms_meetops_narrow(ms_trace *trace, ms_collective collective,
                       const ms_group *ranks, uint32_t now, uint32_t all)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    g->op_read_bytes[op] = g->op_read_bytes[op] * now / all;
    g->op_write_bytes[op] = g->op_write_bytes[op] * now / all;
    uint64_t bytes = g->op_read_bytes[op];
    if (g->op_write_bytes[op] > bytes)
        bytes = g->op_write_bytes[op];
    g->op_ns[op] = ms_collective_ns(ranks, collective, bytes);
}

void ms_meetops_wait(ms_trace *trace, ms_group_role role, const ms_group *ranks)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    g->op_read_bytes[op] = g->op_write_bytes[op] = 0;
    g->op_meets[op] = MS_MEETS(MS_SEND, role);
    g->op_stream[op] = ranks->queue;
    if (g->op_meets[op - 1] == g->op_meets[op])
        g->op_ns[op] = g->op_ns[op - 1];
    trace->ends[op].work = MS_WORK_AWAITED;
}
