/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of two inputs: matmul, baddbmm, einsum. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

#include <ctype.h>
#include <string.h>

/* a [b, m, k] times b [b, k, n]; baddbmm has a first input to which the product
 * is added.  The FLOPs of a call count per element of its first input. */
static uint32_t multiply(ms_trace *trace, const char *op, const uint32_t *in,
                         uint32_t n_in)
{
    ms_opcall call = {.op = op};
    if (trace->err)
        return MS_NONE;
    const ms_tensor *a = ms_trace_at(trace, in[n_in - 2]);
    const ms_tensor *b = ms_trace_at(trace, in[n_in - 1]);
    ms_opcall_like(trace, &call.made[0], in[n_in - 2]);
    call.made[0].size[2] = b->size[2];
    call.flops = 2 * (double)(n_in == 2 ? b->size[2] : a->size[2]);
    return ms_opcall_run(trace, &call, in, n_in);
}

uint32_t ms_productlayers_bmm(ms_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t in[2] = {a, b};
    return multiply(trace, "aten::bmm", in, 2);
}

static ms_err fail_product(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, const char *hint)
{
    char first[MS_LAYERS_SHAPE], second[MS_LAYERS_SHAPE];
    return ms_trace_fail(
        trace, layer, hint,
        "\"%s\" multiplies \"%s\" and \"%s\", whose shapes do not agree: %s "
        "and %s",
        layer->name, ms_layers_source(trace->settings, layer, layer->n_in - 2),
        ms_layers_source(trace->settings, layer, layer->n_in - 1),
        ms_layers_shape(ms_trace_at(trace, in[layer->n_in - 2]), first),
        ms_layers_shape(ms_trace_at(trace, in[layer->n_in - 1]), second));
}

/* Do all dimensions but the last two agree, and the two that are multiplied? */
static bool can_multiply(const ms_tensor *a, const ms_tensor *b)
{
    uint32_t n = a->n_dims;
    return n >= 3 && b->n_dims == n &&
           memcmp(a->size, b->size, sizeof *a->size * (n - 2)) == 0 &&
           a->size[n - 1] == b->size[n - 2];
}

/* A view with the leading dimensions as one, since bmm knows three only. */
static uint32_t fold(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    uint32_t n = tensor->n_dims;
    int64_t dims[3] = {1, tensor->size[n - 2], tensor->size[n - 1]};
    for (uint32_t d = 0; d + 2 < n; d++)
        dims[0] *= tensor->size[d];
    return ms_view_reshape(trace, x, 3, dims);
}

ms_err ms_productlayers_matmul(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    uint32_t folded[2];
    for (uint32_t i = 0; i < 2; i++)
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
    ms_tensor a = *ms_trace_at(trace, in[0]);
    const ms_tensor *b = ms_trace_at(trace, in[1]);
    if (!can_multiply(&a, b))
        return fail_product(trace, layer, in,
                            "they need [..., m, k] and "
                            "[..., k, n]");
    a.size[a.n_dims - 1] = b->size[a.n_dims - 1];
    for (uint32_t i = 0; i < 2; i++)
        folded[i] = fold(trace, in[i]);
    uint32_t y = multiply(trace, "aten::bmm", folded, 2);
    ms_split_drop(trace, 2, folded);
    *out = trace->err ? MS_NONE : ms_view_reshape(trace, y, a.n_dims, a.size);
    ms_trace_drop(trace, y);
    return trace->err;
}

ms_err ms_productlayers_baddbmm(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    char shape[MS_LAYERS_SHAPE];
    for (uint32_t i = 0; i < 3; i++)
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
    const ms_tensor *c = ms_trace_at(trace, in[0]);
    const ms_tensor *a = ms_trace_at(trace, in[1]);
    const ms_tensor *b = ms_trace_at(trace, in[2]);
    if (a->n_dims != 3 || !can_multiply(a, b))
        return fail_product(trace, layer, in, "they need [m, k] and [k, n]");
    if (c->n_dims != 3 || c->size[0] != a->size[0] ||
        c->size[1] != a->size[1] || c->size[2] != b->size[2])
        return ms_trace_fail(trace, layer, "the first input needs [m, n]",
                             "\"%s\" adds its product of [%lld, %lld] to what "
                             "\"%s\" gives: %s",
                             layer->name, (long long)a->size[1],
                             (long long)b->size[2],
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(c, shape));
    *out = multiply(trace, "aten::baddbmm", in, 3);
    return trace->err;
}

/* ---- einsum -------------------------------------------------------------- */

const ms_field ms_productlayers_einsum_fields[MS_PRODUCTLAYERS_EINSUM] = {
    {.name = "equation",
     .type = MS_TEXT,
     .required = true,
     .help = "a letter per dimension, the batch included: bhid,bhjd->bhij"},
};

/* The letters of an equation and where they stand. */
typedef struct equation {
    const char *left, *right, *out;
    uint32_t n_left, n_right, n_out;
} equation;

static uint32_t letters(const char *text)
{
    uint32_t n = 0;
    while (islower((unsigned char)text[n]) && n <= MS_MAX_DIMS)
        n++;
    return n;
}

/* "bhid,bhjd->bhij"; sort_letters checks which letters there are. */
static bool read_equation(const char *text, equation *e)
{
    e->left = text;
    e->n_left = letters(e->left);
    if (e->left[e->n_left] != ',')
        return false;
    e->right = e->left + e->n_left + 1;
    e->n_right = letters(e->right);
    if (strncmp(e->right + e->n_right, "->", 2) != 0)
        return false;
    e->out = e->right + e->n_right + 2;
    e->n_out = letters(e->out);
    return e->out[e->n_out] == '\0' && e->n_left <= MS_MAX_DIMS &&
           e->n_right <= MS_MAX_DIMS && e->n_out <= MS_MAX_DIMS;
}

static bool has(const char *part, uint32_t n, char letter)
{
    return memchr(part, letter, n) != NULL;
}

/* Which dimensions of the left and right input form a group, in order. */
typedef struct group {
    uint32_t n, left[MS_MAX_DIMS], right[MS_MAX_DIMS];
    char letter[MS_MAX_DIMS];
    int64_t size; /* product */
} group;
enum { BATCH, ROWS, INNER, COLUMNS, N_GROUPS };

static uint32_t place(const char *part, uint32_t n, char letter)
{
    const char *at = memchr(part, letter, n);
    return at ? (uint32_t)(at - part) : MS_NONE;
}

static void add_to(group *g, char letter, uint32_t left, uint32_t right,
                   int64_t size)
{
    g->letter[g->n] = letter;
    g->left[g->n] = left;
    g->right[g->n++] = right;
    g->size *= size;
}

/* Sorts the letters into groups as sumproduct_pair does (ATen/native/
 * Linear.cpp); false where one is summed that only one input has, repeated,
 * unknown, or of two sizes. */
static bool sort_letters(const equation *e, const ms_tensor *a,
                         const ms_tensor *b, group *groups)
{
    for (uint32_t i = 0; i < N_GROUPS; i++)
        groups[i] = (group){.size = 1};
    for (uint32_t i = 0; i < e->n_left; i++) {
        char letter = e->left[i];
        uint32_t right = place(e->right, e->n_right, letter);
        bool kept = has(e->out, e->n_out, letter);
        if (has(e->left, i, letter) || (right == MS_NONE && !kept) ||
            (right != MS_NONE && a->size[i] != b->size[right]))
            return false;
        add_to(&groups[right == MS_NONE ? ROWS
                       : kept           ? BATCH
                                        : INNER],
               letter, i, right, a->size[i]);
    }
    for (uint32_t i = 0; i < e->n_right; i++) {
        bool shared = has(e->left, e->n_left, e->right[i]);
        if (has(e->right, i, e->right[i]) ||
            (!shared && !has(e->out, e->n_out, e->right[i])))
            return false;
        if (!shared)
            add_to(&groups[COLUMNS], e->right[i], MS_NONE, i, b->size[i]);
    }
    return groups[BATCH].n + groups[ROWS].n + groups[COLUMNS].n == e->n_out;
}

/* x permuted to three groups of its dimensions, each folded into one. */
static uint32_t as_matrix(ms_trace *trace, uint32_t x, const group *groups,
                          const uint32_t wanted[3], bool left)
{
    uint32_t order[MS_MAX_DIMS], n = 0;
    int64_t dims[3];
    for (uint32_t k = 0; k < 3; k++) {
        const group *g = &groups[wanted[k]];
        for (uint32_t i = 0; i < g->n; i++)
            order[n++] = left ? g->left[i] : g->right[i];
        dims[k] = g->size;
    }
    uint32_t turned = ms_view_permute(trace, x, order);
    uint32_t y = ms_view_reshape(trace, turned, 3, dims);
    ms_trace_drop(trace, turned);
    return y;
}

/* Views the three dimensions of the product as those that were folded, in the
 * order of the result. */
static uint32_t unfold(ms_trace *trace, uint32_t y, const group *groups,
                       const equation *e, const ms_tensor *a,
                       const ms_tensor *b)
{
    static const uint32_t made[3] = {BATCH, ROWS, COLUMNS};
    int64_t dims[MS_MAX_DIMS];
    char letter[MS_MAX_DIMS];
    uint32_t order[MS_MAX_DIMS], n = 0;
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < groups[made[k]].n; i++) {
            const group *g = &groups[made[k]];
            letter[n] = g->letter[i];
            dims[n++] = g->left[i] == MS_NONE ? b->size[g->right[i]]
                                              : a->size[g->left[i]];
        }
    uint32_t apart = ms_view_reshape(trace, y, n, dims);
    for (uint32_t i = 0; i < n; i++)
        order[i] = place(letter, n, e->out[i]);
    uint32_t out = trace->err ? MS_NONE : ms_view_permute(trace, apart, order);
    ms_trace_drop(trace, apart);
    return out;
}

static ms_err fail_equation(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in)
{
    char left[MS_LAYERS_SHAPE], right[MS_LAYERS_SHAPE];
    return ms_trace_fail(
        trace, layer,
        "it has a letter per dimension, the batch included, such as "
        "bhid,bhjd->bhij, and sums what both inputs have",
        "\"%s\": the equation \"%s\" does not fit \"%s\", %s, and \"%s\", %s",
        layer->name, layer->field[0].s,
        ms_layers_source(trace->settings, layer, 0),
        ms_layers_shape(ms_trace_at(trace, in[0]), left),
        ms_layers_source(trace->settings, layer, 1),
        ms_layers_shape(ms_trace_at(trace, in[1]), right));
}

ms_err ms_productlayers_einsum(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    static const uint32_t sides[2][3] = {{BATCH, ROWS, INNER},
                                         {BATCH, INNER, COLUMNS}};
    group groups[N_GROUPS];
    uint32_t matrix[2];
    equation e;
    for (uint32_t i = 0; i < 2; i++)
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
    ms_tensor a = *ms_trace_at(trace, in[0]);
    ms_tensor b = *ms_trace_at(trace, in[1]);
    bool reads = read_equation(layer->field[0].s, &e);
    if (!reads || e.n_left != a.n_dims || e.n_right != b.n_dims ||
        !sort_letters(&e, &a, &b, groups))
        return fail_equation(trace, layer, in);
    for (uint32_t i = 0; i < 2; i++)
        matrix[i] = as_matrix(trace, in[i], groups, sides[i], i == 0);
    uint32_t y = multiply(trace, "aten::bmm", matrix, 2);
    ms_split_drop(trace, 2, matrix);
    *out = trace->err ? MS_NONE : unfold(trace, y, groups, &e, &a, &b);
    ms_trace_drop(trace, y);
    return trace->err;
}
