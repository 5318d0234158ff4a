/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/measuredfiles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 32u

typedef enum column {
    OP,
    DTYPE,
    PASS,
    BATCH,
    M,
    N,
    K,
    HEADS,
    QUERIES,
    KEYS,
    CHANNELS,
    CAUSAL,
    BYTES,
    RANKS,
    US,
    MS,
    NS,
    TFLOPS,
    GBPS,
    N_COLUMNS
} column;
static const char *const headings[N_COLUMNS] = {
    "op",    "dtype",   "pass", "batch",    "m",      "n",     "k",
    "heads", "queries", "keys", "channels", "causal", "bytes", "ranks",
    "us",    "ms",      "ns",   "tflops",   "gbps"};

typedef struct csv {
    const char *name;
    uint32_t line, n_columns;
    column columns[MOST_COLUMNS];
    const char *cells[N_COLUMNS]; /* of a row; "": empty or not there */
    ms_measurements *all;
    ms_fault *fault;
} csv;

static ms_err fail_row(const csv *c, const char *hint, const char *what,
                       const char *of)
{
    char where[256];
    snprintf(where, sizeof where, "%.200s:%u", c->name, c->line);
    return ms_fail(c->fault, MS_EINPUT, where, hint, what, of);
}

/* ---- cells --------------------------------------------------------------- */

/* The next cell of the line, without blanks and quotes around it; *at becomes
 * NULL behind the last. */
static char *next_cell(char **at)
{
    char *first = *at, *end = first + strcspn(first, ",");
    *at = *end == ',' ? end + 1 : NULL;
    while (first < end && (*first == ' ' || *first == '"'))
        first++;
    while (end > first && strchr(" \"\r\t", end[-1]) != NULL)
        end--;
    *end = '\0';
    return first;
}

static ms_err read_headings(csv *c, char *line)
{
    bool has_time = false, has_op = false;
    for (char *at = line; at != NULL;) {
        const char *cell = next_cell(&at);
        uint32_t i = 0;
        while (i < N_COLUMNS && strcmp(headings[i], cell) != 0)
            i++;
        if (i == N_COLUMNS || c->n_columns == MOST_COLUMNS)
            return fail_row(c,
                            "op, dtype, pass, batch, m, n, k, heads, queries, "
                            "keys, channels, causal, bytes, ranks, and us, ms, "
                            "ns, tflops or gbps",
                            "unknown column \"%.60s\"", cell);
        has_time |= i >= US;
        has_op |= i == OP;
        c->columns[c->n_columns++] = (column)i;
    }
    if (!has_op)
        return fail_row(c, "which kernel a row is of", "there is no column %s",
                        "op");
    return has_time ? MS_OK
                    : fail_row(c, "or ms, ns, tflops, gbps",
                               "there is no column %s", "us");
}

static void read_cells(csv *c, char *line)
{
    for (uint32_t i = 0; i < N_COLUMNS; i++)
        c->cells[i] = "";
    for (uint32_t i = 0; line != NULL && i < c->n_columns; i++)
        c->cells[c->columns[i]] = next_cell(&line);
}

/* A number above 0; fallback: where the cell is empty, 0: it is needed. */
static ms_err number(const csv *c, column of, double fallback, double *value)
{
    char *end;
    *value = fallback;
    if (c->cells[of][0] == '\0' && fallback > 0)
        return MS_OK;
    if (c->cells[of][0] == '\0')
        return fail_row(c, NULL, "the row needs a number under \"%s\"",
                        headings[of]);
    *value = strtod(c->cells[of], &end);
    if (*end == '\0' && *value > 0 && isfinite(*value) && *value < 1e18)
        return MS_OK;
    return fail_row(c, "a number above 0", "\"%.60s\" is no size or time",
                    c->cells[of]);
}

static bool is_word(const char *cell, const char *words)
{
    const char *found = strstr(words, cell);
    size_t n = strlen(cell);
    return found != NULL && n > 0 && (found == words || found[-1] == ' ') &&
           (found[n] == ' ' || found[n] == '\0');
}

/* ---- rows ---------------------------------------------------------------- */

static ms_err read_product(const csv *c, ms_measured *row)
{
    ms_product_shape shape;
    const char *type = c->cells[DTYPE];
    bool half = is_word(type, "bf16 fp16 bfloat16 float16 half");
    bool tf32 = is_word(type, "tf32");
    if (!half && !tf32 && !is_word(type, "fp32 float32 float"))
        return fail_row(c, "bf16, fp16, tf32 or fp32",
                        "a device's file has no rate of products in \"%.60s\"",
                        type);
    MS_TRY(number(c, BATCH, 1, &shape.batch));
    MS_TRY(number(c, M, 0, &shape.m));
    MS_TRY(number(c, N, 0, &shape.n));
    MS_TRY(number(c, K, 0, &shape.k));
    *row = ms_measured_product("gemm", shape, half ? 2 : 4);
    if (tf32)
        row->kind = MS_RATE_PRODUCT;
    row->tf32 = tf32;
    row->tensor = half || tf32;
    return MS_OK;
}

static ms_err read_attention(const csv *c, uint32_t kind, ms_measured *row)
{
    double batch, heads, queries, keys, channels;
    const char *pass = c->cells[PASS];
    if (!is_word(pass, "forward backward") && pass[0] != '\0')
        return fail_row(c, "forward or backward", "there is no pass \"%.60s\"",
                        pass);
    MS_TRY(number(c, BATCH, 1, &batch));
    MS_TRY(number(c, HEADS, 0, &heads));
    MS_TRY(number(c, QUERIES, 0, &queries));
    MS_TRY(number(c, KEYS, queries, &keys));
    MS_TRY(number(c, CHANNELS, 0, &channels));
    *row = ms_measured_attention(
        ms_measured_words[kind], (ms_attention_code)(kind - MS_RATE_FLASH_1),
        is_word(pass, "backward"), batch * heads, queries, keys, channels,
        is_word(c->cells[CAUSAL], "1 true True yes"));
    return MS_OK;
}

static ms_err read_bytes(const csv *c, uint32_t kind, ms_measured *row)
{
    *row = (ms_measured){.op = ms_measured_words[kind], .kind = (uint8_t)kind};
    if (kind == MS_RATE_LAUNCH)
        return MS_OK;
    MS_TRY(number(c, BYTES, 0, &row->bytes));
    row->to_host = kind == MS_RATE_TO_HOST;
    if (kind != MS_RATE_ALL_REDUCE)
        return MS_OK;
    double ranks;
    MS_TRY(number(c, RANKS, 0, &ranks));
    if (ranks < 2 || ranks > 65536)
        return fail_row(c, NULL, "an all-reduce has from 2 to 65536 ranks%s",
                        "");
    row->ranks = (uint32_t)ranks;
    return MS_OK;
}

/* MS_NONE: there is no such kind. */
static uint32_t kind_of(const char *op)
{
    if (is_word(op, "gemm product matmul mm bmm aten::mm aten::bmm "
                    "aten::addmm"))
        return MS_RATE_PRODUCT;
    uint32_t memory = ms_kernelkinds_of(op);
    if (memory != MS_NONE)
        return MS_RATE_POINTWISE + memory;
    for (uint32_t i = 0; i < MS_N_RATE_KINDS; i++)
        if (strcmp(ms_measured_words[i], op) == 0)
            return i;
    return MS_NONE;
}

/* The time, or what stands for it. */
static ms_err read_time(const csv *c, ms_measured *row)
{
    static const double units[] = {[US] = 1e3, [MS] = 1e6, [NS] = 1};
    double value;
    column of = US;
    while (of < N_COLUMNS && c->cells[of][0] == '\0')
        of++;
    if (of == N_COLUMNS)
        return fail_row(c, NULL, "the row has no time%s", "");
    MS_TRY(number(c, of, 0, &value));
    if (of <= NS)
        row->ns = value * units[of];
    else if (of == TFLOPS && row->flops > 0)
        row->ns = row->flops / value / 1e3;
    else if (of == GBPS && row->bytes > 0)
        row->ns = row->bytes / value;
    else
        return fail_row(c, "us, ms or ns", "the row has no %s",
                        of == TFLOPS ? "FLOPs" : "bytes");
    return MS_OK;
}

static ms_err read_row(csv *c, char *line)
{
    ms_measured row;
    read_cells(c, line);
    uint32_t kind = kind_of(c->cells[OP]);
    if (kind == MS_NONE)
        return fail_row(c,
                        "gemm, flash1, flash2, flash3, efficient, pointwise, "
                        "norm, softmax, reduction, lookup, optimizer, copy, "
                        "h2d, d2h, pageable, allreduce, launch, or aten::...",
                        "unknown op \"%.60s\"", c->cells[OP]);
    if (kind <= MS_RATE_FP32_PRODUCT)
        MS_TRY(read_product(c, &row));
    else if (kind <= MS_RATE_EFFICIENT)
        MS_TRY(read_attention(c, kind, &row));
    else
        MS_TRY(read_bytes(c, kind, &row));
    MS_TRY(read_time(c, &row));
    return ms_measured_add(c->all, &row, c->fault);
}

ms_err ms_csvrows_read(const char *name, char *bytes, size_t length,
                       ms_measurements *all, ms_fault *fault)
{
    csv c = {.name = name, .all = all, .fault = fault};
    char *end = bytes + length;
    for (char *line = bytes; line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        next = next != NULL ? next : end;
        *next = '\0';
        c.line++;
        char *cut = strchr(line, '#');
        if (cut != NULL)
            *cut = '\0';
        if (line[strspn(line, " \r\t")] != '\0')
            MS_TRY(c.n_columns == 0 ? read_headings(&c, line)
                                    : read_row(&c, line));
        line = next + 1;
    }
    if (c.n_columns == 0)
        return ms_fail(fault, MS_EINPUT, name, "op,m,n,k,dtype,us",
                       "there is no line of headings");
    return ms_measured_settle(all, fault);
}
