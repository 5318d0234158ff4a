/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/json.h"
#include "tools/calibrate/measuredfiles.h"

#include <stdlib.h>
#include <string.h>

typedef struct table {
    ms_json json;
    ms_measurements *all;
    double peak_flops;
    uint32_t node; /* of the shape that is read */
    ms_fault *fault;
} table;

/* "m=" in "b=1, m=4096, k=5120". */
static double number_of(const char *key, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = key; at != NULL;) {
        while (*at == ' ' || *at == ',')
            at++;
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return strtod(at + n + 1, NULL);
        at = strchr(at, ',');
    }
    return 0;
}

static ms_err fail_shape(const table *t, const char *what)
{
    return ms_json_fail_key(&t->json, t->node, t->fault,
                            "is it the file as SimuMax has it?", "%s", what);
}

typedef ms_err take_shape(table *t, const char *key, double share);

/* The result of a product that adds up in fp32 is as wide as an operand's four
 * bytes; what it moves beside it is told by 16 bits all the same. */
static ms_err take_product(table *t, ms_product_shape shape, double share)
{
    if (shape.batch < 1 || shape.m < 1 || shape.n < 1 || shape.k < 1)
        return fail_shape(t, "the shape lacks b, m, n or k");
    ms_measured row = ms_measured_product("matmul", shape, 2);
    row.ns = 1e9 * row.flops / (t->peak_flops * share);
    return ms_measured_add(t->all, &row, t->fault);
}

static ms_err take_matmul(table *t, const char *key, double share)
{
    return take_product(
        t,
        (ms_product_shape){number_of(key, "b"), number_of(key, "m"),
                           number_of(key, "n"), number_of(key, "k")},
        share);
}

static ms_err take_group(table *t, const char *key, double share)
{
    return take_product(
        t,
        (ms_product_shape){number_of(key, "ng"), number_of(key, "M"),
                           number_of(key, "N"), number_of(key, "K")},
        share);
}

/* Its FLOPs are of all keys, 2 forward and 5 backward. */
static ms_err take_attention(table *t, const char *key, double share,
                             bool backward)
{
    double batch = number_of(key, "batch"), heads = number_of(key, "head_num"),
           sequence = number_of(key, "seq_len"),
           qk = number_of(key, "qk_head_dim"), v = number_of(key, "v_head_dim");
    if (batch < 1 || heads < 1 || sequence < 1 || qk < 1 || v < 1)
        return fail_shape(t, "the shape lacks a size");
    ms_measured row =
        ms_measured_attention("sdp", MS_FLASH_2, backward, batch * heads,
                              sequence, sequence, (qk + v) / 2, true);
    row.ns = 1e9 * (backward ? 5 : 2) * batch * heads * sequence * sequence *
             (qk + v) / (t->peak_flops * share);
    return ms_measured_add(t->all, &row, t->fault);
}

static ms_err take_forward(table *t, const char *key, double share)
{
    return take_attention(t, key, share, false);
}

static ms_err take_backward(table *t, const char *key, double share)
{
    return take_attention(t, key, share, true);
}

static const struct {
    const char *op;
    take_shape *take; /* NULL: a device's file has no rate of it */
} ops[] = {
    {"matmul", take_matmul},   {"group_matmul", take_group},
    {"sdp_fwd", take_forward}, {"sdp_bwd", take_backward},
    {"fp8_matmul", NULL},      {"fp8_group_matmul", NULL},
    {"default", NULL},
};
#define N_OPS (sizeof ops / sizeof *ops)

/* 0: no number */
static double number_at(const ms_json *json, uint32_t node)
{
    if (node == MS_NONE)
        return 0;
    if (json->nodes[node].kind == MS_JSON_INT)
        return (double)json->nodes[node].value.i;
    return json->nodes[node].kind == MS_JSON_FLOAT ? json->nodes[node].value.f
                                                   : 0;
}

static bool is_object(const ms_json *json, uint32_t node)
{
    return node != MS_NONE && json->nodes[node].kind == MS_JSON_OBJECT;
}

/* The member of an object, or MS_NONE. */
static uint32_t member(const ms_json *json, uint32_t node, const char *key)
{
    return is_object(json, node) ? ms_json_find(json, node, key) : MS_NONE;
}

static ms_err take_op(table *t, uint32_t op)
{
    const ms_json *json = &t->json;
    uint32_t row = 0, shapes = member(json, op, "accurate_efficient_factor");
    if (shapes == MS_NONE)
        shapes = member(json, op, "measured_efficiency");
    while (row < N_OPS && strcmp(ops[row].op, json->nodes[op].key) != 0)
        row++;
    if (!is_object(json, shapes) || json->nodes[shapes].value.n == 0)
        return MS_OK;
    if (row == N_OPS || ops[row].take == NULL)
        return ms_measured_miss(t->all, json->nodes[op].key,
                                "of no kind that a device's file has a rate of",
                                0, t->fault);
    t->peak_flops = 1e12 * number_at(json, member(json, op, "tflops"));
    if (t->peak_flops <= 0)
        return ms_json_fail(json, op, t->fault, NULL,
                            "\"tflops\" must be the peak that shares are of");
    for (uint32_t i = ms_json_first(json, shapes); i != MS_NONE;
         i = json->nodes[i].next) {
        double share = number_at(json, i);
        t->node = i;
        if (share < 1e-6 || share > 10)
            return fail_shape(t, "a share of the peak must be from 1e-6 to 10");
        MS_TRY(ops[row].take(t, json->nodes[i].key, share));
    }
    return MS_OK;
}

ms_err ms_simumax_read(const char *name, const char *bytes, size_t length,
                       ms_measurements *all, ms_fault *fault)
{
    table t = {.all = all, .fault = fault};
    MS_TRY(ms_json_read(name, bytes, length, all->arena, &t.json, fault));
    uint32_t list = member(&t.json, 0, "ops"),
             chip = member(&t.json, 0, "accelerator");
    if (list == MS_NONE)
        list = member(&t.json, chip, "op");
    if (!is_object(&t.json, list))
        return ms_json_fail(&t.json, 0, fault,
                            "a trace of torch.profiler, a system file of "
                            "SimuMax, or a CSV of shapes and times",
                            "this is neither a trace nor a table of shapes");
    for (uint32_t i = ms_json_first(&t.json, list); i != MS_NONE;
         i = t.json.nodes[i].next)
        MS_TRY(take_op(&t, i));
    return ms_measured_settle(all, fault);
}
