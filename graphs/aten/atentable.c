/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Aten ops by name: the search for a row, the check of a node against it, and
 * its description for people. */
#include "graphs/aten/aten.h"
#include "graphs/ops/autocast.h"

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

ms_err ms_atentable_open(ms_index *index, ms_arena *arena, ms_fault *fault)
{
    MS_TRY(ms_index_make(index, n_rows(), arena, fault));
    for (uint32_t i = 0; i < n_rows(); i++)
        ms_index_add(index, row_at(i)->op, i);
    return MS_OK;
}

/* The rows of an op stand together, and those of one overload come first. */
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

const ms_aten_row *ms_atentable_find(const ms_index *index, const char *op,
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

ms_op_kind ms_atentable_kind(const ms_index *index, const char *op)
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

/* Does the node have what a column such as "i0I1o1" names?  Inputs and outputs
 * in capital letters may be absent. */
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

/* An op that works element by element makes one tensor, besides other outputs
 * that it saves ("o1"). */
static bool makes_too_many(const ms_aten_row *row, const ms_opnode *node)
{
    bool plain = row >= ms_atenpoint_rows &&
                 row < ms_atenpoint_rows + ms_atenpoint_n_rows;
    const char *saves = row->saves != NULL ? row->saves : "";
    return plain && node->n_out > 1 && strstr(saves, "o1") == NULL &&
           strstr(saves, "O1") == NULL;
}

/* The number of inputs is checked first, since the columns and the shape rule
 * read inputs by position. */
const char *ms_atentable_objection(const ms_aten_row *row,
                                   const ms_aten_call *call, ms_arena *arena)
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

/* ---- help ---------------------------------------------------------------- */

static void describe_saves(const ms_aten_row *row, ms_text *text)
{
    ms_text_add(text, *row->saves || row->also ? " saves" : " saves nothing");
    for (const char *c = row->saves; *c; c += 2)
        ms_text_add(text, " %s%c", *c == 'o' || *c == 'O' ? "out" : "in", c[1]);
    if (row->also)
        ms_text_add(text, "%s by its arguments", *row->saves ? "," : "");
}

/* Describes the backward in a line for each section. */
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

void ms_atentable_describe(ms_text *text)
{
    for (uint32_t i = 0; i < n_rows(); i++)
        describe_row(row_at(i), text);
}
