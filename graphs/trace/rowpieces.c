/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/rowpieces.h"
#include "sim/graph.h"

void ms_rowpieces_narrow(ms_trace *trace, uint32_t op, double flops,
                         uint32_t now, uint32_t all, uint32_t rows)
{
    if (trace->err)
        return;
    ms_op_end *end = &trace->ends[op];
    trace->graph->op_flops[op] = flops * now / all;
    end->m = (end->m + rows - 1) / rows;
}

static uint32_t inputs_end(const ms_trace *trace, uint32_t op)
{
    const ms_graph *g = trace->graph;
    return op + 1 < g->n_ops ? g->in_at[op + 1] : trace->n_in;
}

/* What of these bytes is moved by so many of all pieces. */
static uint64_t share(uint64_t bytes, uint32_t now, uint32_t all)
{
    return (uint64_t)((double)bytes * now / all);
}

/* A product like that of op, into what op makes: an op that makes nothing
 * writes what it reads first. */
static uint32_t begin_like(ms_trace *trace, uint32_t op)
{
    ms_graph *g = trace->graph;
    uint8_t pass = trace->pass;
    uint32_t layer = trace->layer, out = g->out_at[op];
    trace->pass = g->op_pass[op];
    trace->layer = g->op_layer[op];
    ms_trace_begin(trace, g->op_name[op]);
    trace->pass = pass;
    trace->layer = layer;
    ms_trace_read_storage(trace, g->out[out], 0);
    for (uint32_t i = g->in_at[op]; i < inputs_end(trace, op); i++)
        ms_trace_read_storage(trace, g->in[i], 0);
    return g->n_ops - 1;
}

void ms_rowpieces_rest(ms_trace *trace, uint32_t op, uint32_t now, uint32_t all,
                       uint32_t rows)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    double flops = g->op_flops[op];
    const ms_op_end end = trace->ends[op];
    uint64_t read = g->op_read_bytes[op], written = g->op_write_bytes[op];
    uint32_t rest = begin_like(trace, op);
    ms_trace_end(trace, flops, true);
    if (trace->err)
        return;
    trace->ends[rest] = end;
    trace->ends[rest].storages = g->n_storages;
    g->op_read_bytes[rest] = read - share(read, now, all);
    g->op_write_bytes[rest] = written - share(written, now, all);
    g->op_read_bytes[op] = share(read, now, all);
    g->op_write_bytes[op] = share(written, now, all);
    ms_rowpieces_narrow(trace, rest, flops, all - now, all, rows);
    ms_rowpieces_narrow(trace, op, flops, now, all, rows);
}

/* ---- drops --------------------------------------------------------------- */

void ms_rowpieces_drop_later(ms_trace *trace, uint32_t op)
{
    ms_graph *g = trace->graph;
    if (trace->err)
        return;
    uint32_t last = g->n_ops - 1, from = g->drop_at[op];
    for (uint32_t o = op + 1; o <= last; o++)
        g->drop_at[o] = from;
    for (uint32_t i = from; i < trace->n_drop; i++) {
        uint32_t s = MS_DROP_STORAGE(g->drop[i]);
        if (g->drop[i] & MS_DROP_SAVED)
            g->storage_saved_end[s] = last;
        else
            g->storage_local_end[s] = last;
    }
}

/* ---- products that wait -------------------------------------------------- */

void ms_rowpieces_wait(ms_trace *trace, uint32_t whole, uint32_t part,
                       uint32_t columns, uint32_t ranks)
{
    ms_rowpieces_close(trace);
    if (trace->err)
        return;
    ms_trace_ref(trace, part);
    trace->pieces = (ms_rowpieces){.whole = ms_trace_at(trace, whole)->storage,
                                   .part = part,
                                   .ranks = ranks,
                                   .ahead = (uint64_t)columns * (ranks - 1),
                                   .left = (uint64_t)columns * ranks};
}

void ms_rowpieces_close(ms_trace *trace)
{
    uint32_t part = trace->pieces.part;
    if (trace->err || trace->pieces.ranks == 0)
        return;
    trace->pieces.ranks = 0;
    ms_trace_drop(trace, part);
}

bool ms_rowpieces_awaits(const ms_trace *trace, uint32_t rows)
{
    return !trace->err && trace->pieces.ranks > 0 &&
           ms_trace_at(trace, rows)->storage == trace->pieces.whole;
}

/* It reads the piece that is here, not the whole. */
static void read_part(ms_trace *trace, uint32_t op)
{
    const ms_rowpieces *p = &trace->pieces;
    ms_graph *g = trace->graph;
    for (uint32_t i = g->in_at[op]; i < inputs_end(trace, op); i++)
        if (g->in[i] == p->whole)
            g->in[i] = ms_trace_at(trace, p->part)->storage;
}

void ms_rowpieces_product(ms_trace *trace, uint32_t rows)
{
    ms_rowpieces *p = &trace->pieces;
    if (!ms_rowpieces_awaits(trace, rows))
        return;
    uint32_t op = trace->graph->n_ops - 1;
    uint64_t columns = trace->ends[op].n, all = columns * p->ranks;
    if (p->left == 0) {
        p->left = all;
        p->ahead = columns * (p->ranks - 1);
    }
    uint64_t now = p->ahead < all ? p->ahead : all;
    if (now > 0 && now < all)
        ms_rowpieces_rest(trace, op, (uint32_t)now, (uint32_t)all, p->ranks);
    else
        ms_rowpieces_narrow(trace, op, trace->graph->op_flops[op], 1, 1,
                            p->ranks);
    if (now > 0)
        read_part(trace, op);
    p->ahead -= now;
    p->left -= p->left < all ? p->left : all;
    if (p->left == 0)
        ms_rowpieces_close(trace);
}
