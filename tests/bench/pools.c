/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/pools.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool add_op(bench_pools_trace *trace, uint32_t *capacity,
                   ms_arena *arena, const ms_alloctext_op *op)
{
    trace->ops = ms_arena_grow(arena, trace->ops, capacity, trace->n_ops + 1,
                               sizeof *trace->ops);
    if (trace->ops == NULL)
        return false;
    trace->ops[trace->n_ops++] = *op;
    if (op->id >= trace->n_ids)
        trace->n_ids = (uint32_t)op->id + 1;
    return true;
}

bool bench_pools_read(const char *path, ms_arena *arena,
                      bench_pools_trace *trace)
{
    char line[MS_ALLOCTEXT_MOST];
    uint32_t capacity = 0;
    ms_alloctext_head head = {.conf = "", .policy = -1, .version = -1};
    ms_alloctext_op op;
    ms_fault fault = {0};
    ms_alloctrace_spot spot = {path, 0, 0};
    FILE *file = fopen(path, "r");
    *trace = (bench_pools_trace){0};
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t length = strcspn(line, "\n");
        line[length] = '\0';
        if (ms_alloctext_line(&spot, line, length, &op, &fault) != MS_OK ||
            (op.kind == '#' &&
             ms_alloctext_header(&spot, &op, arena, &head, &fault) != MS_OK) ||
            (strchr("afrwce", op.kind) != NULL && op.kind != 0 &&
             !add_op(trace, &capacity, arena, &op)))
            return false;
    }
    fclose(file);
    ms_torch_setup *torch = &trace->setup.torch;
    ms_torch_setup_init(torch, head.total_bytes);
    torch->base_bytes = head.base_bytes;
    torch->policy = MS_TORCH_BUMP;
    torch->version = (ms_torch_version)head.version;
    return ms_torchconf_parse(head.conf, path, MS_EINPUT, torch->version,
                              &torch->options, &fault) == MS_OK;
}

static ms_err replay_op(ms_pool *pool, const ms_alloctext_op *op,
                        uint32_t *blocks, ms_fault *fault)
{
    switch (op->kind) {
    case 'a':
        return ms_pool_malloc(pool, op->bytes, op->stream, &blocks[op->id],
                              fault);
    case 'f':
        if (blocks[op->id] != MS_NONE)
            ms_pool_free(pool, blocks[op->id]);
        return MS_OK;
    case 'r':
        return blocks[op->id] == MS_NONE
                   ? MS_OK
                   : ms_torchstreams_record(pool, blocks[op->id], op->stream,
                                            fault);
    case 'w':
        return ms_torchstreams_queue(pool, op->stream, op->n, fault);
    case 'c':
        return ms_torchstreams_finish(pool, op->stream, op->n, fault);
    default:
        return ms_pool_empty_cache(pool, fault);
    }
}

ms_err bench_pools_replay(const bench_pools_trace *trace, ms_arena *arena,
                          ms_fault *fault)
{
    ms_pool *pool;
    uint32_t *blocks = ms_arena_take_raw(arena, trace->n_ids, sizeof *blocks);
    if (blocks == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_pool_new(&trace->setup, arena, &pool, fault));
    for (uint32_t i = 0; i < trace->n_ops; i++)
        MS_TRY(replay_op(pool, &trace->ops[i], blocks, fault));
    return MS_OK;
}
