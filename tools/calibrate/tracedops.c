/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/tracedops.h"

#include <string.h>

#define MOST_TENSORS 64u
#define MOST_DIMS 8u

/* ---- shapes -------------------------------------------------------------- */

typedef struct tensor {
    uint32_t n_dims;
    double dim[MOST_DIMS];
    uint32_t input; /* of the op; those of a list have one */
} tensor;

typedef struct shapes {
    uint32_t n;
    tensor tensors[MOST_TENSORS];
    double list_elements[2]; /* of the first two lists */
    double elements;         /* of all */
    uint32_t n_lists;
} shapes;

static double elements_of(const tensor *t)
{
    double product = 1;
    for (uint32_t i = 0; i < t->n_dims; i++)
        product *= t->dim[i];
    return t->n_dims > 0 ? product : 0;
}

static double number_at(const char **at, const char *end)
{
    double value = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
        value = value * 10 + (**at - '0');
    return value;
}

static void close_tensor(shapes *s, const tensor *open, uint32_t list)
{
    double elements = elements_of(open);
    s->elements += elements;
    if (list > 0 && list <= 2)
        s->list_elements[list - 1] += elements;
    if (s->n < MOST_TENSORS)
        s->tensors[s->n++] = *open;
}

/* "[[8, 4], [], [[3], [3, 2]]]": an input a member, a list of tensors a member
 * whose members are lists themselves. */
static void read_shapes(ms_kineto_slice text, shapes *s)
{
    const char *at = text.bytes, *end = at + text.length;
    uint32_t depth = 0, input = 0, open_list = 0;
    tensor open = {0};
    memset(s, 0, sizeof *s);
    while (at < end) {
        char c = *at;
        if (c >= '0' && c <= '9') {
            double value = number_at(&at, end);
            if (open.n_dims < MOST_DIMS)
                open.dim[open.n_dims++] = value;
            continue;
        }
        at++;
        if (c == '[' && ++depth == 3 && open_list == 0)
            open_list = ++s->n_lists;
        if (c == '[')
            open = (tensor){.input = input};
        if (c == ']' && (depth == 3 || (depth == 2 && open_list == 0)))
            close_tensor(s, &open, depth == 3 ? open_list : 0);
        if (c == ']')
            depth--;
        if (c == ',' && depth == 1) {
            input++;
            open_list = 0;
        }
    }
}

/* The tensor that is an input. */
static const tensor *input_at(const shapes *s, uint32_t input)
{
    static const tensor none = {0};
    for (uint32_t i = 0; i < s->n; i++)
        if (s->tensors[i].input == input)
            return &s->tensors[i];
    return &none;
}

/* ---- types and values ---------------------------------------------------- */

/* Element i of an array of strings and numbers, without quotes. */
static ms_kineto_slice item_at(ms_kineto_slice array, uint32_t i)
{
    const char *at = array.bytes + (array.length > 0),
               *end = array.bytes + array.length;
    for (;; i--) {
        while (at < end && *at == ' ')
            at++;
        bool quoted = at < end && *at == '"';
        const char *first = at += quoted;
        while (at < end && (quoted ? *at != '"' : *at != ',' && *at != ']'))
            at++;
        if (i == 0 || at >= end)
            return (ms_kineto_slice){first,
                                     i == 0 ? (uint32_t)(at - first) : 0};
        while (at < end && *at != ',')
            at++;
        at += at < end;
    }
}

static bool has(ms_kineto_slice s, const char *word)
{
    size_t n = strlen(word);
    for (uint32_t i = 0; i + n <= s.length; i++)
        if (s.bytes[i] == word[0] && memcmp(s.bytes + i, word, n) == 0)
            return true;
    return false;
}

static bool is(ms_kineto_slice s, const char *word)
{
    return s.length == strlen(word) && memcmp(s.bytes, word, s.length) == 0;
}

static double width_of(ms_kineto_slice type)
{
    static const struct {
        const char *word;
        double width;
    } rows[] = {{"BFloat16", 2}, {"Half", 2},       {"float", 4},
                {"double", 8},   {"long int", 8},   {"long", 8},
                {"int", 4},      {"bool", 1},       {"unsigned char", 1},
                {"Float8", 1},   {"signed char", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has(type, rows[i].word))
            return rows[i].width;
    return 0;
}

/* Of the first input that is a tensor with dimensions; 0: not told. */
static double first_width(const ms_kineto_event *op, const shapes *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->tensors[i].n_dims > 0)
            return width_of(item_at(op->types, s->tensors[i].input));
    return 0;
}

ms_traced_hint ms_tracedops_hint(ms_kineto_slice kernel)
{
    ms_traced_hint hint = {0};
    if (has(kernel, "cudnn") && (has(kernel, "sdpa") || has(kernel, "flash")))
        hint.code = MS_TRACED_CUDNN;
    else if (has(kernel, "FlashAttnFwdSm90") || has(kernel, "FlashAttnBwdSm90"))
        hint.code = MS_TRACED_FLASH_3;
    else if (has(kernel, "flash_fwd") || has(kernel, "flash_bwd"))
        hint.code = MS_TRACED_FLASH_2;
    else if (has(kernel, "fmha_cutlass"))
        hint.code = MS_TRACED_EFFICIENT;
    else if (has(kernel, "tf32") || has(kernel, "s1688gemm"))
        hint.code = MS_TRACED_TF32;
    if (has(kernel, "BFloat16") || has(kernel, "Half") ||
        has(kernel, "OpaqueType<2"))
        hint.width = 2;
    else if (has(kernel, "float") || has(kernel, "OpaqueType<4"))
        hint.width = 4;
    return hint;
}

/* ---- products ------------------------------------------------------------ */

static const struct {
    const char *op;
    uint32_t first; /* of the two inputs */
    bool batched;
} products[] = {
    {"aten::mm", 0, false},     {"aten::addmm", 1, false},
    {"aten::addmm_", 1, false}, {"aten::_addmm_activation", 1, false},
    {"aten::bmm", 0, true},     {"aten::baddbmm", 1, true},
};
#define N_PRODUCTS (sizeof products / sizeof *products)

static ms_measured product_row(uint32_t row, const char *name,
                               const ms_kineto_event *op, const shapes *s,
                               ms_traced_hint hint, const char **why)
{
    uint32_t first = products[row].first, n_dims = 2 + products[row].batched;
    const tensor *a = input_at(s, first), *b = input_at(s, first + 1);
    double width = width_of(item_at(op->types, first));
    if (a->n_dims != n_dims || b->n_dims != n_dims || elements_of(a) <= 0 ||
        elements_of(b) <= 0)
        *why = "without shapes: record with record_shapes=True";
    else if (width != 2 && width != 4)
        *why = "in a format that a device's file has no rate of";
    if (*why != NULL)
        return (ms_measured){0};
    const double *x = a->dim + products[row].batched,
                 *y = b->dim + products[row].batched;
    ms_product_shape shape = {products[row].batched ? a->dim[0] : 1, x[0], y[1],
                              x[1]};
    ms_measured made = ms_measured_product(name, shape, width);
    if (width > 2 && hint.code == MS_TRACED_TF32) {
        made.kind = MS_RATE_PRODUCT;
        made.tensor = made.tf32 = true;
    }
    return made;
}

/* ---- attention ----------------------------------------------------------- */

/* Where a call has its queries, whether its heads stand before the sequence,
 * and which input says that it is causal (aten/src/ATen/native/
 * native_functions.yaml; flash_attn/flash_attn_interface.py). */
static const struct {
    const char *op;
    uint32_t queries, causal;
    bool backward, heads_first;
} attentions[] = {
    {"aten::_flash_attention_forward", 0, 8, false, false},
    {"aten::_flash_attention_backward", 1, 11, true, false},
    {"aten::_efficient_attention_forward", 0, 9, false, false},
    {"aten::_efficient_attention_backward", 1, 13, true, false},
    {"aten::_scaled_dot_product_flash_attention", 0, 4, false, true},
    {"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true, true},
    {"aten::_scaled_dot_product_efficient_attention", 0, 6, false, true},
    {"aten::_scaled_dot_product_efficient_attention_backward", 1, 10, true,
     true},
    {"flash_attn::_flash_attn_forward", 0, 5, false, false},
    {"flash_attn::_flash_attn_backward", 1, 11, true, false},
    {"FlashAttnFunc", 0, 5, false, false},
    {"FlashAttnFuncBackward", 0, 0, true, false},
};
#define N_ATTENTIONS (sizeof attentions / sizeof *attentions)

static bool is_causal(uint32_t row, const ms_kineto_event *op, bool *assumed)
{
    ms_kineto_slice value = item_at(op->concrete, attentions[row].causal);
    *assumed = value.length == 0;
    return *assumed || is(value, "True") || is(value, "1") || is(value, "2");
}

static ms_measured attention_row(uint32_t row, const char *name,
                                 const ms_kineto_event *op, const shapes *s,
                                 ms_traced_hint hint, const char **why,
                                 bool *assumed)
{
    const tensor *q = input_at(s, attentions[row].queries),
                 *k = input_at(s, attentions[row].queries + 1);
    uint32_t sequence = attentions[row].heads_first ? 2 : 1;
    if (hint.code < MS_TRACED_FLASH_2 || hint.code > MS_TRACED_EFFICIENT)
        *why = hint.code == MS_TRACED_CUDNN
                   ? "by cuDNN, of which a device's file has no rate"
                   : "by a kernel that is not known";
    else if (q->n_dims != 4 || k->n_dims != 4 || elements_of(q) <= 0 ||
             elements_of(k) <= 0)
        *why = "without shapes of four dimensions";
    else if (width_of(item_at(op->types, attentions[row].queries)) != 2)
        *why = "in a format that a device's file has no rate of";
    if (*why != NULL)
        return (ms_measured){0};
    ms_attention_code code = hint.code == MS_TRACED_FLASH_2 ? MS_FLASH_2
                             : hint.code == MS_TRACED_FLASH_3
                                 ? MS_FLASH_3
                                 : MS_ATTENTION_EFFICIENT;
    return ms_measured_attention(name, code, attentions[row].backward,
                                 q->dim[0] * q->dim[3 - sequence],
                                 q->dim[sequence], k->dim[sequence], q->dim[3],
                                 is_causal(row, op, assumed));
}

/* ---- what moves bytes ---------------------------------------------------- */

/* Bytes of all inputs, and of the largest of them. */
static void sum_inputs(const ms_kineto_event *op, const shapes *s, double *all,
                       double *largest)
{
    *all = *largest = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        double bytes = elements_of(&s->tensors[i]) *
                       width_of(item_at(op->types, s->tensors[i].input));
        *all += bytes;
        *largest = bytes > *largest ? bytes : *largest;
    }
}

/* Lists of tensors: what an op in place writes is its first list, a fused Adam
 * writes all but the gradients, the second. */
static double list_bytes(const char *name, const shapes *s, double width)
{
    bool fused = strncmp(name, "aten::_fused_adam", 17) == 0;
    double written =
        fused ? s->elements - s->list_elements[1] : s->list_elements[0];
    if (strncmp(name, "aten::_foreach_norm", 19) == 0)
        written = 0;
    return width * (s->elements + written);
}

static double bytes_of(const char *name, uint32_t kind,
                       const ms_kineto_event *op, const shapes *s,
                       ms_traced_hint hint)
{
    double all, largest;
    if (s->n_lists > 0)
        return list_bytes(name, s, hint.width);
    sum_inputs(op, s, &all, &largest);
    if (kind == MS_MEMORY_LOOKUP)
        return 2 * first_width(op, s) * elements_of(input_at(s, 1)) *
               input_at(s, 0)->dim[1];
    if (kind == MS_MEMORY_COPY || kind == MS_MEMORY_REDUCTION)
        return all;
    return all + largest;
}

static ms_measured memory_row(const char *name, uint32_t kind,
                              const ms_kineto_event *op, const shapes *s,
                              ms_traced_hint hint, const char **why)
{
    double bytes = bytes_of(name, kind, op, s, hint);
    if (bytes <= 0)
        *why = s->n_lists > 0
                   ? "on a list of tensors, of whose format nothing tells"
                   : "without shapes: record with record_shapes=True";
    return (ms_measured){.op = name,
                         .kind = (uint8_t)(MS_RATE_POINTWISE + kind),
                         .bytes = bytes};
}

ms_measured ms_tracedops_row(const char *name, const ms_kineto_event *op,
                             ms_traced_hint hint, const char **why,
                             bool *assumed)
{
    shapes s;
    read_shapes(op->dims, &s);
    *why = NULL;
    *assumed = false;
    for (uint32_t i = 0; i < N_PRODUCTS; i++)
        if (strcmp(products[i].op, name) == 0)
            return product_row(i, name, op, &s, hint, why);
    for (uint32_t i = 0; i < N_ATTENTIONS; i++)
        if (strcmp(attentions[i].op, name) == 0)
            return attention_row(i, name, op, &s, hint, why, assumed);
    uint32_t kind = ms_kernelkinds_of(name);
    if (kind != MS_NONE)
        return memory_row(name, kind, op, &s, hint, why);
    *why = "of no kind that a device's file has a rate of";
    return (ms_measured){0};
}
