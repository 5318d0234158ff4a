/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/ops.h"

/* Block b: its weight and bias are storages 4b + 1 and 4b + 2, its two results
 * 4b + 3 and 4b + 4; the tensors are those and the weight transposed. */
#define ROWS 5u

static void put_storages(unsigned blocks, ms_text *text)
{
    ms_text_add(text, "\"storages\":[[0,256,\"input\",\"x\"]");
    for (unsigned b = 0; b < blocks; b++)
        ms_text_add(text,
                    ",\n[%u,256,\"param\",\"h.%u.weight\"],"
                    "[%u,32,\"param\",\"h.%u.bias\"],"
                    "[%u,256,\"act\",\"\"],[%u,256,\"act\",\"\"]",
                    4 * b + 1, b, 4 * b + 2, b, 4 * b + 3, 4 * b + 4);
    ms_text_add(text, ",[%u,4,\"act\",\"\"]],\n", 4 * blocks + 1);
}

static void put_tensors(unsigned blocks, ms_text *text)
{
    ms_text_add(text, "\"tensors\":[[0,0,[8,8],\"float32\",[8,1],0]");
    for (unsigned b = 0; b < blocks; b++) {
        unsigned t = ROWS * b + 1, s = 4 * b + 1;
        ms_text_add(text,
                    ",\n[%u,%u,[8,8],\"float32\",[8,1],0],"
                    "[%u,%u,[8,8],\"float32\",[1,8],0],"
                    "[%u,%u,[8],\"float32\",[1],0],"
                    "[%u,%u,[8,8],\"float32\",[8,1],0],"
                    "[%u,%u,[8,8],\"float32\",[8,1],0]",
                    t, s, t + 1, s, t + 2, s + 1, t + 3, s + 2, t + 4, s + 3);
    }
    ms_text_add(text, ",[%u,%u,[],\"float32\",[],0]],\n", ROWS * blocks + 1,
                4 * blocks + 1);
}

static void put_node(ms_text *text, unsigned id, const char *op, unsigned b,
                     const char *wires)
{
    ms_text_add(text,
                "{\"id\":%u,\"op\":\"aten.%s\",\"overload\":\"default\","
                "\"mod\":\"h.%u\",%s,\"flops\":0}",
                id, op, b, wires);
}

static void put_block(unsigned b, ms_text *text, ms_arena *arena)
{
    unsigned t = ROWS * b + 1;
    put_node(text, 3 * b, "t", b,
             ms_arena_format(arena, "\"in\":[%u],\"out\":[%u],\"args\":[\"T\"]",
                             t, t + 1));
    ms_text_add(text, ",\n");
    put_node(text, 3 * b + 1, "addmm", b,
             ms_arena_format(arena,
                             "\"in\":[%u,%u,%u],\"out\":[%u],"
                             "\"args\":[\"T\",\"T\",\"T\"]",
                             t + 2, t - 1, t + 1, t + 3));
    ms_text_add(text, ",\n");
    put_node(text, 3 * b + 2, "relu", b,
             ms_arena_format(arena, "\"in\":[%u],\"out\":[%u],\"args\":[\"T\"]",
                             t + 3, t + 4));
    ms_text_add(text, ",\n");
}

void bench_ops_chain(unsigned blocks, ms_arena *arena, ms_text *text)
{
    ms_text_add(text,
                "{\"format\":\"op graph\",\"case\":\"chain\","
                "\"meta\":{\"batch\":8},\n\"loss_start\":%u,\n",
                3 * blocks);
    put_storages(blocks, text);
    put_tensors(blocks, text);
    ms_text_add(text, "\"nodes\":[\n");
    for (unsigned b = 0; b < blocks; b++)
        put_block(b, text, arena);
    put_node(text, 3 * blocks, "mean", blocks,
             ms_arena_format(arena, "\"in\":[%u],\"out\":[%u],\"args\":[\"T\"]",
                             ROWS * blocks, ROWS * blocks + 1));
    ms_text_add(text, "]}\n");
}
