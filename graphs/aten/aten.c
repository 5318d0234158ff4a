/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Aten ops by name: find a row, check a node against it, record it. */
#include "graphs/aten/aten.h"

#include "graphs/formats/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/savelist.h"

#include <string.h>

/* ---- the rows ------------------------------------------------------------ */

static uint32_t n_rows(void)
{
    return ms_atenpoint_n_rows + ms_atenview_n_rows + ms_atenmath_n_rows;
}

static const ms_aten_row *row_at(uint32_t i)
{
    if (i < ms_atenpoint_n_rows)
        return &ms_atenpoint_rows[i];
    i -= ms_atenpoint_n_rows;
    if (i < ms_atenview_n_rows)
        return &ms_atenview_rows[i];
    return &ms_atenmath_rows[i - ms_atenview_n_rows];
}

ms_err ms_aten_open(ms_index *index, ms_arena *arena, ms_fault *fault)
{
    MS_TRY(ms_index_make(index, n_rows(), arena, fault));
    for (uint32_t i = 0; i < n_rows(); i++)
        ms_index_add(index, row_at(i)->op, i);
    return MS_OK;
}

/* The rows of an op stand together, those of one overload first. */
static const ms_aten_row *find_exact(const ms_index *index, const char *op,
                                     const char *overload)
{
    uint32_t i = ms_index_find(index, op);

    for (; i < n_rows() && strcmp(row_at(i)->op, op) == 0; i++) {
        const ms_aten_row *row = row_at(i);
        if (!row->overload || strcmp(row->overload, overload) == 0)
            return row;
    }
    return NULL;
}

const ms_aten_row *ms_aten_find(const ms_index *index, const char *op,
                                const char *overload)
{
    char plain[64];
    size_t n = strlen(op);
    const ms_aten_row *row = find_exact(index, op, overload);

    if (row || n < 2 || n >= sizeof plain || op[n - 1] != '_')
        return row;
    memcpy(plain, op, n - 1);
    plain[n - 1] = '\0';
    return find_exact(index, plain, overload);
}

ms_op_kind ms_aten_kind(const ms_index *index, const char *op)
{
    char plain[64];
    size_t n = strlen(op);
    uint32_t i = ms_index_find(index, op);

    if (i == MS_NONE && n > 1 && n < sizeof plain && op[n - 1] == '_') {
        memcpy(plain, op, n - 1);
        plain[n - 1] = '\0';
        i = ms_index_find(index, plain);
    }
    return i == MS_NONE ? MS_KIND_OTHER : (ms_op_kind)row_at(i)->kind;
}

/* ---- what an op must have ------------------------------------------------ */

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

/* A column such as "i0I1o1" names inputs and outputs that are there; I and O:
 * those that may be absent. */
static bool has_listed(const ms_aten_row *row, const ms_opnode *node)
{
    for (const char *c = row->saves; *c; c += 2) {
        uint32_t i = (uint32_t)(c[1] - '0');
        if ((c[0] == 'i' && i >= node->n_in) ||
            (c[0] == 'o' && i >= node->n_out))
            return false;
    }
    for (const char *c = row->inputs; *c; c++)
        if (*c >= '0' && *c <= '9' && node->n_in == 0)
            return false;
    return node->n_in > 0 && node->n_out > 0;
}

static void add_dims(ms_text *text, uint32_t n_dims, const int64_t *size)
{
    for (uint32_t d = 0; d < n_dims; d++)
        ms_text_add(text, "%s%lld", d > 0 ? ", " : "", (long long)size[d]);
}

static const char *describe(const ms_aten_call *call, const ms_aten_shape *want,
                            ms_arena *arena)
{
    const ms_opgraph *ops = call->ops;
    const ms_optensor *given = &ops->tensors[call->node->out[want->k]];
    ms_text text = {.arena = arena};

    if (want->objection)
        return want->objection;
    ms_text_add(&text, "its output is [");
    add_dims(&text, given->n_dims, given->size);
    ms_text_add(&text, "], but its inputs and arguments make [");
    add_dims(&text, want->n_dims, want->size);
    ms_text_add(&text, "]");
    return text.bytes ? text.bytes : "its output has the wrong shape";
}

static bool same_dims(const ms_optensor *given, const ms_aten_shape *want)
{
    return given->n_dims == want->n_dims &&
           memcmp(given->size, want->size,
                  want->n_dims * sizeof want->size[0]) == 0;
}

/* What works element by element makes one tensor, but for what it saves of its
 * other outputs ("o1"). */
static bool makes_too_many(const ms_aten_row *row, const ms_opnode *node)
{
    bool plain = row >= ms_atenpoint_rows &&
                 row < ms_atenpoint_rows + ms_atenpoint_n_rows;
    const char *saves = row->saves != NULL ? row->saves : "";
    return plain && node->n_out > 1 && strstr(saves, "o1") == NULL &&
           strstr(saves, "O1") == NULL;
}

const char *ms_aten_objection(const ms_aten_row *row, const ms_aten_call *call,
                              ms_arena *arena)
{
    const ms_opnode *node = call->node;
    bool by_plain_row =
        ms_aten_in_place(node) && strcmp(row->op, node->op) != 0;
    const ms_shape_rule *shape = by_plain_row ? &ms_atenshape_same : row->shape;
    uint32_t n = row->every_output ? node->n_out : 1;

    if (row->rule && !has_listed(row, node))
        return "it has too few inputs or outputs";
    if (makes_too_many(row, node))
        return "it has too many outputs: it makes one";
    if (!shape || node->n_out == 0)
        return NULL;
    if (node->n_in < shape->n_in)
        return "it has too few inputs or outputs";
    for (uint32_t k = 0; k < n; k++) {
        ms_aten_shape want = {.k = k};
        if (!shape->derive(call, &want))
            continue;
        if (want.objection ||
            !same_dims(&call->ops->tensors[node->out[k]], &want))
            return describe(call, &want, arena);
    }
    return NULL;
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

/* Is the input saved for a gradient that nobody needs?  A frozen weight is why
 * its linear layer keeps no activation. */
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
        trace->framework == MS_TORCH_1_13)
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

/* The inputs of the op's node; how many. */
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

/* ---- help ---------------------------------------------------------------- */

static void describe_saves(const ms_aten_row *row, ms_text *text)
{
    ms_text_add(text, *row->saves || row->also ? " saves" : " saves nothing");
    for (const char *c = row->saves; *c; c += 2)
        ms_text_add(text, " %s%c", *c == 'o' || *c == 'O' ? "out" : "in", c[1]);
    if (row->also)
        ms_text_add(text, "%s by its arguments", *row->saves ? "," : "");
}

/* A line for each section. */
static void describe_backward(const ms_aten_row *row, ms_text *text)
{
    const char *at = row->makes;

    if (*at == '\0')
        ms_text_add(text, "      views of the gradient\n");
    while (*at != '\0') {
        size_t n = strcspn(at, ";");
        ms_text_add(text, "      %.*s\n", (int)n, at);
        at += n;
        at += strspn(at, "; ");
    }
}

static void describe_row(const ms_aten_row *row, ms_text *text)
{
    ms_text_add(text, "  %s%s%s: ", row->op, row->overload ? "." : "",
                row->overload ? row->overload : "");
    ms_text_add(text, "%s", row->rule ? row->rule->name : "no gradient");
    if (row->rule)
        describe_saves(row, text);
    if (row->shape)
        ms_text_add(text, "; shape %s", row->shape->summary);
    if (*ms_autocast_word(row->op))
        ms_text_add(text, "; autocast %s", ms_autocast_word(row->op));
    ms_text_add(text, "\n");
    if (row->rule)
        describe_backward(row, text);
}

void ms_aten_describe(ms_text *text)
{
    for (uint32_t i = 0; i < n_rows(); i++)
        describe_row(row_at(i), text);
}
