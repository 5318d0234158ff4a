/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/ranks.h"
#include "sim/plan.h"

/* What is made so far: virtual stage v is chunk v / ranks of rank v % ranks. */
typedef struct writer {
    bench_ranks_size size;
    ms_plan *plan;
    uint32_t n_stages, n_wait, n_release;
    uint32_t *message; /* per micro-batch, stage: the last op that sent it */
    uint32_t *row;     /* per micro-batch, stage: what its forward has made */
} writer;

static void add_op(writer *it, uint32_t stage, uint32_t micro_batch,
                   uint8_t stream, uint8_t pass)
{
    ms_plan *plan = it->plan;
    uint64_t ns = stream == MS_STREAM_COMM ? 2000 : 20000 + stage * 7919 % 3000;
    plan->op[plan->n_ops++] =
        (ms_plan_op){.ns = ns,
                     .of = MS_NONE,
                     .micro_batch = micro_batch,
                     .alloc_at = plan->n_rows,
                     .release_at = it->n_release,
                     .pass = pass,
                     .stream = stream,
                     .rank = (uint8_t)(stage % it->size.ranks)};
    plan->wait_at[plan->n_ops] = it->n_wait;
}

static void wait_for(writer *it, uint32_t op)
{
    it->plan->wait[it->n_wait++] = op;
    it->plan->wait_at[it->plan->n_ops] = it->n_wait;
}

/* One stage's forward or backward of one micro-batch, and its message on. */
static void add_pair(writer *it, uint32_t stage, uint32_t micro_batch,
                     uint8_t pass)
{
    ms_plan *plan = it->plan;
    size_t own = (size_t)micro_batch * it->n_stages + stage;
    bool forward = pass == MS_FORWARD;
    bool first = forward ? stage == 0 : stage + 1 == it->n_stages;
    add_op(it, stage, micro_batch, MS_STREAM_COMPUTE, pass);
    if (!first)
        wait_for(it, it->message[forward ? own - 1 : own + 1]);
    if (forward) {
        it->row[own] = plan->n_rows;
        plan->row[plan->n_rows++] = (ms_row){
            .bytes = 1024 + stage, .op = plan->n_ops - 1, .streams = 1};
    } else {
        plan->release[it->n_release++] = it->row[own];
    }
    add_op(it, stage, micro_batch, MS_STREAM_COMM, pass);
    wait_for(it, plan->n_ops - 2);
    it->message[own] = plan->n_ops - 1;
}

/* A wave: micro-batch m reaches stage v in turn m + v. */
static void add_pass(writer *it, uint8_t pass)
{
    uint32_t stages = it->n_stages, micro_batches = it->size.micro_batches;
    for (uint32_t turn = 0; turn < micro_batches + stages - 1; turn++)
        for (uint32_t v = 0; v < stages; v++) {
            uint32_t stage = pass == MS_FORWARD ? v : stages - 1 - v;
            if (turn >= v && turn - v < micro_batches)
                add_pair(it, stage, turn - v, pass);
        }
}

bool bench_ranks_plan(bench_ranks_size size, const ms_graph *graph,
                      ms_arena *arena, ms_plan *plan)
{
    uint32_t stages = size.ranks * size.chunks;
    uint32_t n = stages * size.micro_batches;
    writer it = {.size = size, .plan = plan, .n_stages = stages};
    *plan = (ms_plan){.graph = graph, .n_ranks = (uint16_t)size.ranks};
    plan->op = ms_arena_take(arena, 4 * (size_t)n + 1, sizeof *plan->op);
    plan->row = ms_arena_take(arena, n, sizeof *plan->row);
    plan->release = ms_arena_take(arena, n, sizeof *plan->release);
    plan->wait_at =
        ms_arena_take(arena, 4 * (size_t)n + 1, sizeof *plan->wait_at);
    plan->wait = ms_arena_take(arena, 4 * (size_t)n, sizeof *plan->wait);
    it.message = ms_arena_take(arena, n, sizeof *it.message);
    it.row = ms_arena_take(arena, n, sizeof *it.row);
    if (!plan->op || !plan->row || !plan->release || !plan->wait_at ||
        !plan->wait || !it.message || !it.row)
        return false;
    add_pass(&it, MS_FORWARD);
    add_pass(&it, MS_GRAD_INPUT);
    plan->op[plan->n_ops].alloc_at = plan->n_rows;
    plan->op[plan->n_ops].release_at = it.n_release;
    return true;
}
