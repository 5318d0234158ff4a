/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/share/zenflow.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/replay/collective.h"
#include "sim/shape.h"

#include <string.h>

/* What the update of a bucket has at once: the buffer that is broadcast, the
 * gradients and the weights of the columns, and roots of the second moments. */
#define AT_ONCE 4u
/* How often a byte of the columns is read or written: the owner's copies from
 * the gradient to the buffer; a clone of it, a copy of the weights, torch's
 * _multi_tensor_adamw (decay 2, lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2,
 * addcdiv 4), and the weights back. */
#define OWNER_PASSES 4u
#define UPDATE_PASSES 26u
#define SCALE_PASSES 2u

static ms_err emit(ms_zenflow *it, ms_call call)
{
    return ms_program_add(it->program, call, it->context->arena, it->fault);
}

static ms_err emit_buffer(ms_zenflow *it, const ms_call *like, ms_verb verb,
                          uint32_t buffer)
{
    ms_call call = ms_program_call_like(verb, like);
    call.buffer = buffer;
    return emit(it, call);
}

/* The program's buffer of this name and size, made where there is none. */
static ms_err buffer_of(ms_zenflow *it, const char *name, uint64_t bytes,
                        uint8_t category, uint32_t *id)
{
    const ms_program *program = it->program;
    for (*id = 0; *id < program->n_buffers; ++*id)
        if (strcmp(program->buffers[*id].name, name) == 0 &&
            program->buffers[*id].bytes == bytes)
            return MS_OK;
    return ms_program_add_buffer(
        it->program,
        (ms_buffer){.name = name, .bytes = bytes, .category = category},
        it->context->arena, id, it->fault);
}

static ms_err task_of(ms_zenflow *it, ms_task task, uint32_t *row)
{
    const ms_program *program = it->program;
    for (*row = 0; *row < program->n_tasks; ++*row)
        if (strcmp(program->tasks[*row].name, task.name) == 0 &&
            program->tasks[*row].amount == task.amount)
            return MS_OK;
    return ms_program_add_task(it->program, task, it->context->arena, row,
                               it->fault);
}

/* A WORK that reads and writes the set. */
static ms_err work(ms_zenflow *it, const ms_call *like, uint32_t set,
                   ms_task task)
{
    ms_call call = ms_program_call_like(MS_WORK, like);
    call.set = set;
    MS_TRY(task_of(it, task, &call.work.task));
    return emit(it, call);
}

/* ---- what is selected ---------------------------------------------------- */

static ms_err find_columns(ms_zenflow *it)
{
    const ms_graph *graph = it->context->graph;
    double share = it->context->shape->offload.selected;
    it->bytes = ms_arena_take(it->context->arena, graph->n_persistent,
                              sizeof *it->bytes);
    if (it->bytes == NULL)
        return ms_fail_nomem(it->fault);
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        uint32_t grad = graph->storage_grad[s];
        if (!ms_graph_is_weight(graph, s) || grad == MS_NONE)
            continue;
        it->bytes[grad] =
            (uint64_t)(share * (double)graph->storage_bytes[grad]);
        it->all += it->bytes[grad];
    }
    return MS_OK;
}

static uint64_t set_bytes(const ms_zenflow *it, uint32_t set)
{
    const ms_program *program = it->program;
    uint64_t bytes = 0;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        if (program->set_item[i] < it->context->graph->n_persistent)
            bytes += it->bytes[program->set_item[i]];
    return bytes;
}

/* ---- calls --------------------------------------------------------------- */

ms_err ms_zenflow_open(ms_zenflow *it)
{
    if (it->context->shape->offload.parameters != MS_DEVICE_POOL)
        return ms_fail(it->fault, MS_EUSAGE, "offload:topk_ratio",
                       "leave swap:layers or topk_ratio out",
                       "ZenFlow updates weights on the device, which are "
                       "streamed from host memory");
    MS_TRY(find_columns(it));
    return buffer_of(it, "kept_columns", 2 * it->all, MS_TEMPORARIES,
                     &it->kept);
}

/* The owners' columns come to all ranks. */
static ms_err broadcast(ms_zenflow *it, const ms_call *reduce, uint64_t bytes)
{
    const ms_expand_opts *opts = it->context->opts;
    if (it->context->shape->data_ranks < 2 || opts == NULL)
        return MS_OK;
    return work(
        it, reduce, reduce->set,
        (ms_task){.name = "broadcast_selected",
                  .amount = ms_collective_ns(&opts->groups[MS_GROUP_DATA],
                                             MS_ALL_GATHER, bytes),
                  .unit = MS_TASK_NS,
                  .stream = MS_STREAM_COMM});
}

/* Some of the columns' bytes, so often. */
static ms_err pass_over(ms_zenflow *it, const ms_call *like, uint32_t set,
                        const char *name, double bytes)
{
    return work(it, like, set,
                (ms_task){.name = name,
                          .amount = (uint64_t)bytes,
                          .unit = MS_TASK_BYTES,
                          .stream = MS_STREAM_COMPUTE});
}

static bool is_last(const ms_zenflow *it, const ms_call *call)
{
    return call->micro_batch + 1 == it->program->n_micro_batches;
}

static ms_err keep(ms_zenflow *it, const ms_call *reduce, uint64_t bytes)
{
    if (!it->keeps)
        MS_TRY(emit_buffer(it, reduce, MS_TAKE, it->kept));
    it->keeps = true;
    return pass_over(it, reduce, reduce->set, "keep_selected",
                     4.0 * (double)bytes);
}

ms_err ms_zenflow_reduced(ms_zenflow *it, const ms_call *reduce)
{
    uint64_t bytes = set_bytes(it, reduce->set);
    uint32_t selected, ranks = it->context->shape->data_ranks;
    double passes = (double)OWNER_PASSES / (ranks > 0 ? ranks : 1);
    bool last = is_last(it, reduce);
    if (bytes == 0)
        return MS_OK;
    MS_TRY(
        buffer_of(it, "selected", AT_ONCE * bytes, MS_TEMPORARIES, &selected));
    MS_TRY(emit_buffer(it, reduce, MS_TAKE, selected));
    MS_TRY(
        pass_over(it, reduce, reduce->set, "select", passes * (double)bytes));
    MS_TRY(broadcast(it, reduce, bytes));
    MS_TRY(last ? keep(it, reduce, bytes)
                : pass_over(it, reduce, reduce->set, "selective_adamw",
                            UPDATE_PASSES * (double)bytes));
    return emit_buffer(it, reduce, MS_GIVE, selected);
}

/* Waits for the weights: the process that trains does one after the other. */
static ms_err scale(ms_zenflow *it, const ms_call *gather)
{
    const ms_graph *graph = it->context->graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (it->bytes[s] > 0 && graph->storage_far_bytes != NULL)
            bytes += graph->storage_far_bytes[s];
    return work(it, gather, gather->set,
                (ms_task){.name = "unscale",
                          .amount = SCALE_PASSES * bytes,
                          .unit = MS_TASK_BYTES,
                          .stream = MS_STREAM_HOST});
}

ms_err ms_zenflow_gathered(ms_zenflow *it, const ms_call *gather, bool is_apart)
{
    if (!it->keeps)
        return MS_OK;
    if (is_apart)
        MS_TRY(scale(it, gather));
    MS_TRY(pass_over(it, gather, gather->set, "selective_adamw",
                     UPDATE_PASSES * (double)it->all));
    it->keeps = false;
    return emit_buffer(it, gather, MS_GIVE, it->kept);
}
