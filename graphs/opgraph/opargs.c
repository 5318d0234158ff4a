/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The arguments of an op graph's node, and its FLOPs. */

#include "graphs/opgraph/opgraph.h"

#include <math.h>
#include <string.h>

typedef struct reader {
    const ms_json *json;
    ms_arena *scratch; /* until the next node is read */
    ms_opcopies *copies;
    ms_fault *fault;
    uint32_t tensors; /* "T" so far */
} reader;

static const ms_json_node *node_of(const reader *r, uint32_t row)
{
    return &r->json->nodes[row];
}

static bool is_marker(const reader *r, uint32_t row)
{
    return node_of(r, row)->kind == MS_JSON_STRING &&
           strcmp(node_of(r, row)->value.s, "T") == 0;
}

/* A list argument: of tensors ("T" each) or of integers; others are kept as
 * none, no rule asks for them. */
static ms_err read_list(reader *r, uint32_t row, ms_oparg *arg)
{
    uint32_t n = node_of(r, row)->value.n, item = ms_json_first(r->json, row);
    int64_t *ints = ms_arena_take(r->scratch, n, sizeof *ints);
    if (ints == NULL)
        return ms_fail_nomem(r->fault);
    arg->n = n;
    arg->kind = MS_ARG_INTS;
    for (uint32_t i = 0; i < n; i++, item = node_of(r, item)->next) {
        if (is_marker(r, item)) {
            arg->kind = MS_ARG_TENSORS;
            r->tensors++;
        } else if (node_of(r, item)->kind == MS_JSON_INT) {
            ints[i] = node_of(r, item)->value.i;
        }
    }
    if (arg->kind != MS_ARG_INTS)
        return MS_OK;
    arg->value.ints = ms_opcopies_of(r->copies, ints, n * sizeof *ints);
    return arg->value.ints == NULL ? ms_fail_nomem(r->fault) : MS_OK;
}

static ms_err read_arg(reader *r, uint32_t row, ms_oparg *arg)
{
    const ms_json_node *node = node_of(r, row);
    switch ((ms_json_kind)node->kind) {
    case MS_JSON_INT:
        arg->kind = MS_ARG_INT;
        arg->value.i = node->value.i;
        break;
    case MS_JSON_FLOAT:
        arg->kind = MS_ARG_FLOAT;
        arg->value.f = node->value.f;
        break;
    case MS_JSON_BOOL:
        arg->kind = MS_ARG_BOOL;
        arg->value.i = node->value.b;
        break;
    case MS_JSON_STRING:
        arg->kind = is_marker(r, row) ? MS_ARG_TENSOR : MS_ARG_FLOAT;
        r->tensors += is_marker(r, row);
        break;
    case MS_JSON_ARRAY:
        return read_list(r, row, arg);
    case MS_JSON_NULL:
    case MS_JSON_OBJECT:
        arg->kind = MS_ARG_NONE;
        break;
    }
    return MS_OK;
}

static ms_err read_args(reader *r, uint32_t list, ms_opnode *node)
{
    static const char hint[] = "the format is described in memsim help files";
    if (list == MS_NONE)
        return MS_OK;
    if (node_of(r, list)->kind != MS_JSON_ARRAY)
        return ms_json_fail(r->json, list, r->fault, hint,
                            "node %u: \"args\" must be a list", node->number);
    node->n_args = node_of(r, list)->value.n;
    ms_oparg *args = ms_arena_take(r->scratch, node->n_args, sizeof *args);
    if (args == NULL)
        return ms_fail_nomem(r->fault);
    uint32_t i = 0;
    for (uint32_t row = ms_json_first(r->json, list); row != MS_NONE;
         row = node_of(r, row)->next)
        MS_TRY(read_arg(r, row, &args[i++]));
    node->args = ms_opcopies_of(r->copies, args, node->n_args * sizeof *args);
    if (node->args == NULL)
        return ms_fail_nomem(r->fault);
    if (r->tensors <= node->n_in)
        return MS_OK;
    return ms_json_fail(r->json, list, r->fault, hint,
                        "node %u: \"args\" has %u tensors (\"T\"), \"in\" has "
                        "%u",
                        node->number, r->tensors, node->n_in);
}

/* A count, or null where the exporter has none. */
static ms_err read_flops(const reader *r, uint32_t row, ms_opnode *node)
{
    const ms_json_node *it = row == MS_NONE ? NULL : node_of(r, row);
    node->flops = -1;
    if (it == NULL || it->kind == MS_JSON_NULL)
        return MS_OK;
    if (it->kind == MS_JSON_INT)
        node->flops = (double)it->value.i;
    else if (it->kind == MS_JSON_FLOAT && isfinite(it->value.f))
        node->flops = it->value.f;
    if (node->flops >= 0)
        return MS_OK;
    return ms_json_fail(r->json, row, r->fault,
                        "leave the key out where nobody counted",
                        "node %u: \"flops\" must be a number that is not "
                        "negative",
                        node->number);
}

ms_err ms_opargs_read(const ms_json *json, uint32_t row, ms_arena *scratch,
                      ms_opcopies *copies, ms_opnode *node, ms_fault *fault)
{
    reader r = {
        .json = json, .scratch = scratch, .copies = copies, .fault = fault};
    MS_TRY(read_flops(&r, ms_json_find(json, row, "flops"), node));
    return read_args(&r, ms_json_find(json, row, "args"), node);
}
