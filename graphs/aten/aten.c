/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the rows of aten ops call: arguments as numbers; and the recording of an
 * op by its row. */
#include "graphs/aten/aten.h"

#include "graphs/ops/ops.h"
#include "graphs/trace/savelist.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* ---- arguments ----------------------------------------------------------- */

int64_t ms_aten_int(const ms_opnode *node, uint32_t i, int64_t fallback)
{
    return i < node->n_args && node->args[i].kind == MS_ARG_INT
               ? node->args[i].value.i
               : fallback;
}

uint32_t ms_aten_ints(const ms_opnode *node, uint32_t i, const int64_t **ints)
{
    if (i >= node->n_args)
        return 0;
    const ms_oparg *arg = &node->args[i];
    if (arg->kind == MS_ARG_INTS) {
        *ints = arg->value.ints;
        return arg->n;
    }
    *ints = &arg->value.i;
    return arg->kind == MS_ARG_INT ? 1 : 0;
}

bool ms_aten_in_place(const ms_opnode *node)
{
    size_t n = strlen(node->op);
    return n > 0 && node->op[n - 1] == '_';
}

/* ---- recording ----------------------------------------------------------- */

void ms_aten_save_input(ms_trace *trace, const ms_aten_call *call, uint32_t n,
                        uint32_t i)
{
    if (trace->err || n == MS_NONE)
        return;
    if (i > 0 || !ms_aten_in_place(call->node)) {
        ms_trace_save(trace, n, call->in[i]);
        return;
    }
    if (call->clone != MS_NONE) {
        ms_trace_save(trace, n, call->clone);
        return;
    }
    uint32_t clone = ms_trace_make_like(trace, "clone", call->in[0]);
    ms_trace_save(trace, n, clone);
    ms_trace_drop(trace, clone);
}

/* Is the input saved only for a gradient that is not needed?  This is why a
 * linear layer with a frozen weight keeps no activation. */
static bool is_idle(const ms_trace *trace, const ms_aten_row *row, uint32_t n,
                    const char *save)
{
    const char *other = save == row->saves ? save + 2 : row->saves;
    return row->crossed && !trace->err &&
           !trace->nodes[n].needs[other[1] - '0'];
}

static void save_listed(ms_trace *trace, const ms_aten_row *row,
                        const ms_aten_call *call, uint32_t n)
{
    if (row->rule == &ms_lookup_embedding_rule &&
        trace->settings->framework == MS_TORCH_1_13)
        ms_savelist_add(trace, n, call->in[0]);
    for (const char *c = row->saves; *c; c += 2) {
        uint32_t i = (uint32_t)(c[1] - '0');
        bool input = c[0] == 'i' || c[0] == 'I';
        if (is_idle(trace, row, n, c))
            continue;
        if (input && i < call->node->n_in)
            ms_aten_save_input(trace, call, n, i);
        else if (!input && i < call->node->n_out)
            ms_trace_save(trace, n, call->out[i]);
    }
}

/* Lists the inputs of the op's node and returns how many there are. */
static uint32_t list_inputs(const ms_aten_row *row, const ms_aten_call *call)
{
    uint32_t n_in = call->node->n_in, n = 0;
    if (row->inputs[0] == '*') {
        memcpy(call->listed, call->in, n_in * sizeof *call->in);
        return n_in;
    }
    for (const char *c = row->inputs; *c && n < n_in; c++) {
        uint32_t i = *c == '$' ? n_in - 1 : (uint32_t)(*c - '0');
        if (i < n_in)
            call->listed[n++] = call->in[i];
    }
    return n;
}

/* An op in place on a view writes a part of a whole tensor: the node that
 * autograd makes then has the whole before and after as input and output
 * (CopySlices), and the part behind it. */
void ms_aten_record(ms_trace *trace, const ms_aten_row *row,
                    const ms_aten_call *call)
{
    bool part = call->whole != MS_NONE;
    uint32_t before = MS_NONE;
    if (!row->rule || trace->err)
        return;
    uint32_t n_inputs = list_inputs(row, call);
    if (part) {
        call->listed[0] = before = ms_assign_before(trace, call->whole);
        call->listed[n_inputs++] = call->in[0];
    }
    uint32_t n = ms_trace_node(trace, row->rule, call->listed, n_inputs,
                               part ? &call->whole : call->out,
                               row->every_output ? call->node->n_out : 1);
    ms_trace_drop(trace, before);
    if (n == MS_NONE)
        return;
    trace->nodes[n].flops = call->node->flops > 0 ? call->node->flops : 0;
    save_listed(trace, row, call, n);
    if (row->also)
        row->also(trace, call, n);
    if (part)
        ms_assign_part(trace, n, call->whole, call->out[0]);
}
