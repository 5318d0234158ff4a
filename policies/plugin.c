/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of plugin.h. */
#include "policies/plugin.h"
#include "policies/common/profile.h"
#include "policies/common/saved.h"
#include "policies/pluginstep.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/online.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <string.h>

/* ---- failures ------------------------------------------------------------ */

static void note(ms_plugin_step *step, ms_err err)
{
    if (step->err == MS_OK)
        step->err = err;
}

static bool fail(ms_plugin_step *step, const char *what)
{
    if (step->err == MS_OK)
        note(step, ms_fail(step->fault, MS_EINPUT, step->context->name, NULL,
                           "%s", what));
    return false;
}

/* Is the id a row of a table of n?  Otherwise the hook fails. */
static bool in_range(ms_plugin_step *step, uint32_t id, uint32_t n,
                     const char *what)
{
    if (id < n)
        return true;
    if (step->err == MS_OK)
        note(step, ms_fail(step->fault, MS_EINPUT, step->context->name, NULL,
                           "there is no %s %u; there are %u", what, id, n));
    return false;
}

static bool is_unit(ms_plugin_step *step, uint32_t unit)
{
    return in_range(step, unit, step->context->graph->n_units, "unit");
}

static bool is_storage(ms_plugin_step *step, uint32_t storage)
{
    return in_range(step, storage, step->context->graph->n_storages, "storage");
}

/* Returns the call of the old program, or NULL. */
static const ms_call *call_of(ms_plugin_step *step, uint32_t call)
{
    if (step->old == NULL) {
        fail(step, "a program is read and written in place");
        return NULL;
    }
    if (!in_range(step, call, step->old->n_calls, "call"))
        return NULL;
    return &step->old->calls[call];
}

int ms_plugin_fail(ms_plugin_step *step, const char *why)
{
    fail(step, why);
    return 1;
}

/* ---- arguments, graph, machine ------------------------------------------- */

int64_t ms_plugin_argument(const ms_plugin_step *step, uint32_t param)
{
    return param < MS_POLICY_PARAMS ? step->context->values[param].number : 0;
}

bool ms_plugin_is_given(const ms_plugin_step *step, uint32_t param)
{
    return param < MS_POLICY_PARAMS && step->context->values[param].given;
}

void *ms_plugin_take(ms_plugin_step *step, size_t n, size_t size)
{
    void *memory = ms_arena_take(step->context->arena, n, size);
    if (memory == NULL)
        note(step, ms_fail_nomem(step->fault));
    return memory;
}

uint32_t ms_plugin_units(const ms_plugin_step *step)
{
    return step->context->graph->n_units;
}

uint32_t ms_plugin_blocks(const ms_plugin_step *step)
{
    return step->context->graph->n_blocks;
}

const char *ms_plugin_unit_name(ms_plugin_step *step, uint32_t unit)
{
    return is_unit(step, unit) ? step->context->graph->unit_name[unit] : NULL;
}

uint32_t ms_plugin_unit_block(ms_plugin_step *step, uint32_t unit)
{
    return is_unit(step, unit) ? step->context->graph->unit_block[unit]
                               : MS_PLUGIN_NONE;
}

static uint64_t sum_ns(const ms_graph *graph, uint32_t first, uint32_t end)
{
    uint64_t ns = 0;
    for (uint32_t op = first; op < end; op++)
        ns += graph->op_ns[op];
    return ns;
}

uint64_t ms_plugin_forward_ns(ms_plugin_step *step, uint32_t unit)
{
    const ms_graph *graph = step->context->graph;
    return is_unit(step, unit) ? sum_ns(graph, graph->forward_at[unit],
                                        graph->forward_at[unit + 1])
                               : 0;
}

uint64_t ms_plugin_backward_ns(ms_plugin_step *step, uint32_t unit)
{
    const ms_graph *graph = step->context->graph;
    return is_unit(step, unit) ? sum_ns(graph, graph->backward_at[unit + 1],
                                        graph->backward_at[unit])
                               : 0;
}

uint32_t ms_plugin_storages(const ms_plugin_step *step)
{
    return step->context->graph->n_storages;
}

const char *ms_plugin_storage_name(ms_plugin_step *step, uint32_t storage)
{
    char *name = is_storage(step, storage)
                     ? ms_plugin_take(step, MS_STORAGE_NAME, 1)
                     : NULL;
    return name == NULL
               ? NULL
               : ms_graph_storage_name(step->context->graph, storage, name);
}

uint64_t ms_plugin_bytes(ms_plugin_step *step, uint32_t storage)
{
    return is_storage(step, storage)
               ? step->context->graph->storage_bytes[storage]
               : 0;
}

uint32_t ms_plugin_maker(ms_plugin_step *step, uint32_t storage)
{
    const ms_graph *graph = step->context->graph;
    if (!is_storage(step, storage) || storage < graph->n_persistent)
        return MS_PLUGIN_NONE;
    uint32_t op = graph->storage_maker[storage];
    return op < graph->forward_at[graph->n_units] ? graph->op_unit[op]
                                                  : MS_PLUGIN_NONE;
}

bool ms_plugin_is_saved(ms_plugin_step *step, uint32_t storage)
{
    return ms_plugin_maker(step, storage) != MS_PLUGIN_NONE &&
           step->context->graph->storage_saved_end[storage] != MS_NONE;
}

uint32_t ms_plugin_micro_batches(const ms_plugin_step *step)
{
    return step->n_micro_batches;
}

uint32_t ms_plugin_ranks(const ms_plugin_step *step)
{
    const ms_shape *shape = step->context->shape;
    return shape != NULL && shape->data_ranks > 0 ? shape->data_ranks : 1;
}

uint64_t ms_plugin_capacity_bytes(const ms_plugin_step *step)
{
    return step->context->machine != NULL
               ? ms_profile_budget(step->context, NULL)
               : 0;
}

uint64_t ms_plugin_copy_ns(const ms_plugin_step *step, uint64_t bytes,
                           bool to_device)
{
    return step->context->opts != NULL
               ? ms_profile_copy_ns(step->context->opts, bytes, to_device)
               : 0;
}

/* ---- schedule ------------------------------------------------------------ */

static bool in_schedule(ms_plugin_step *step)
{
    return step->turns != NULL ||
           fail(step, "stages and turns are said in schedule");
}

/* Room for a row more; NULL, which is noted, where there is none. */
static void *grow(ms_plugin_step *step, void *rows, uint32_t *capacity,
                  uint32_t n, size_t size)
{
    void *grown =
        ms_arena_grow(step->context->arena, rows, capacity, n + 1, size);
    if (grown == NULL)
        note(step, ms_fail_nomem(step->fault));
    return grown;
}

void ms_plugin_stage(ms_plugin_step *step, uint32_t rank, uint32_t first,
                     uint32_t last)
{
    if (!in_schedule(step) || !is_unit(step, first) || !is_unit(step, last) ||
        !in_range(step, rank, UINT16_MAX, "rank"))
        return;
    struct ms_pluginstep_turns *to = step->turns;
    ms_stage *stages = grow(step, to->stages, &to->stages_capacity,
                            to->n_stages, sizeof *stages);
    if (stages == NULL)
        return;
    to->stages = stages;
    stages[to->n_stages++] = (ms_stage){(uint16_t)rank, first, last};
}

void ms_plugin_turn(ms_plugin_step *step, ms_plugin_turn_kind kind,
                    uint32_t stage, uint32_t micro_batch)
{
    static const uint8_t kinds[] = {MS_TURN_FORWARD, MS_TURN_BACKWARD,
                                    MS_TURN_GRAD_INPUT, MS_TURN_GRAD_WEIGHT};
    if (!in_schedule(step) ||
        !in_range(step, (uint32_t)kind, sizeof kinds, "kind of turn"))
        return;
    struct ms_pluginstep_turns *to = step->turns;
    uint32_t n_stages = to->n_stages > 0 ? to->n_stages : 1;
    if (!in_range(step, stage, n_stages, "stage") ||
        !in_range(step, micro_batch, step->n_micro_batches, "micro-batch"))
        return;
    ms_turn *turns =
        grow(step, to->turns, &to->turns_capacity, to->n_turns, sizeof *turns);
    if (turns == NULL)
        return;
    to->turns = turns;
    turns[to->n_turns++] = (ms_turn){
        .stage = stage, .micro_batch = micro_batch, .kind = kinds[kind]};
}

void ms_plugin_receives_ahead(ms_plugin_step *step)
{
    if (in_schedule(step))
        step->turns->ahead = true;
}

/* ---- keep ---------------------------------------------------------------- */

static bool in_keep(ms_plugin_step *step)
{
    return step->keep != NULL ||
           fail(step, "what is kept is said in keep, before the program");
}

void ms_plugin_drop(ms_plugin_step *step, uint32_t storage)
{
    if (in_keep(step) && is_storage(step, storage))
        step->keep->place[storage] = MS_GONE;
}

void ms_plugin_segment(ms_plugin_step *step, uint32_t unit, uint32_t segment)
{
    if (in_keep(step) && is_unit(step, unit))
        step->keep->segment[unit] = segment;
}

/* ---- the program as it came ---------------------------------------------- */

uint32_t ms_plugin_calls(const ms_plugin_step *step)
{
    return step->old != NULL ? step->old->n_calls : 0;
}

ms_plugin_verb ms_plugin_call_verb(ms_plugin_step *step, uint32_t call)
{
    const ms_call *it = call_of(step, call);
    if (it != NULL && it->verb == MS_RUN)
        return it->run.pass == MS_FORWARD ? MS_PLUGIN_FORWARD
                                          : MS_PLUGIN_BACKWARD;
    if (it != NULL && it->verb == MS_RERUN)
        return MS_PLUGIN_REPLAY;
    return it != NULL && it->verb == MS_STEP_SET ? MS_PLUGIN_UPDATE
                                                 : MS_PLUGIN_OTHER;
}

uint32_t ms_plugin_call_unit(ms_plugin_step *step, uint32_t call)
{
    const ms_call *it = call_of(step, call);
    bool has = it != NULL && (it->verb == MS_RUN || it->verb == MS_RERUN);
    return has ? it->unit : MS_PLUGIN_NONE;
}

uint32_t ms_plugin_call_last(ms_plugin_step *step, uint32_t call)
{
    const ms_call *it = call_of(step, call);
    bool has = it != NULL && it->verb == MS_RERUN;
    return has ? it->last : ms_plugin_call_unit(step, call);
}

uint32_t ms_plugin_call_micro_batch(ms_plugin_step *step, uint32_t call)
{
    const ms_call *it = call_of(step, call);
    return it != NULL ? it->micro_batch : MS_PLUGIN_NONE;
}

/* ---- sets, buffers, tasks ------------------------------------------------ */

static bool in_place(ms_plugin_step *step)
{
    return step->old != NULL ||
           fail(step, "a program is read and written in place");
}

/* An empty set is NONE for a plugin and NOTHING in a call. */
static uint32_t plugin_set(uint32_t set)
{
    return set == MS_NOTHING ? MS_PLUGIN_NONE : set;
}

uint32_t ms_plugin_set(ms_plugin_step *step, const uint32_t *storages,
                       uint32_t n)
{
    uint32_t set;
    if (!in_place(step))
        return MS_PLUGIN_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (!is_storage(step, storages[i]))
            return MS_PLUGIN_NONE;
    note(step, ms_program_add_set(&step->made, storages, n,
                                  step->context->arena, &set, step->fault));
    return step->err == MS_OK ? plugin_set(set) : MS_PLUGIN_NONE;
}

uint64_t ms_plugin_set_bytes(ms_plugin_step *step, uint32_t set)
{
    const ms_program *made = &step->made;
    uint64_t bytes = 0;
    if (set == MS_PLUGIN_NONE || !in_place(step) ||
        !in_range(step, set, made->n_sets, "set"))
        return 0;
    for (uint32_t i = made->set_at[set]; i < made->set_at[set + 1]; i++)
        bytes += step->context->graph->storage_bytes[made->set_item[i]];
    return bytes;
}

uint32_t ms_plugin_saved_set(ms_plugin_step *step, uint32_t unit,
                             uint64_t min_bytes)
{
    const ms_policy_context *context = step->context;
    if (!in_place(step) || !is_unit(step, unit))
        return MS_PLUGIN_NONE;
    if (!step->has_saved && step->err == MS_OK)
        note(step,
             ms_saved_find(context->graph, step->old, min_bytes, context->arena,
                           &step->made, &step->saved, step->fault));
    step->has_saved = true;
    return step->err == MS_OK ? plugin_set(step->saved.unit_set[unit])
                              : MS_PLUGIN_NONE;
}

uint32_t ms_plugin_buffer(ms_plugin_step *step, const char *name,
                          uint64_t bytes)
{
    uint32_t buffer = MS_PLUGIN_NONE;
    const ms_buffer value = {.name = name,
                             .bytes = bytes,
                             .category = MS_ACTIVATIONS,
                             .pool = MS_DEVICE_POOL,
                             .stream = MS_STREAM_COMPUTE};
    if (in_place(step))
        note(step,
             ms_program_add_buffer(&step->made, value, step->context->arena,
                                   &buffer, step->fault));
    return buffer;
}

uint32_t ms_plugin_task(ms_plugin_step *step, const char *name,
                        const char *stream, ms_plugin_unit unit,
                        uint64_t amount)
{
    uint32_t task = MS_PLUGIN_NONE;
    uint8_t s = 0;
    while (s < MS_N_STREAMS && strcmp(ms_names_stream[s], stream) != 0)
        s++;
    if (s == MS_N_STREAMS) {
        fail(step, "a task is on a stream that there is not");
        return MS_PLUGIN_NONE;
    }
    const ms_task value = {
        .name = name, .amount = amount, .unit = (uint8_t)unit, .stream = s};
    if (in_place(step))
        note(step, ms_program_add_task(&step->made, value, step->context->arena,
                                       &task, step->fault));
    return task;
}

/* ---- writing ------------------------------------------------------------- */

static void write_call(ms_plugin_step *step, ms_call call)
{
    step->writes = true;
    if (step->err == MS_OK)
        note(step, ms_program_add(&step->made, call, step->context->arena,
                                  step->fault));
}

void ms_plugin_copy(ms_plugin_step *step, uint32_t like)
{
    const ms_call *it = call_of(step, like);
    if (it != NULL)
        write_call(step, *it);
}

/* Begins a call of this verb on a set; false where there is nothing to write.
 */
static bool start_call(ms_plugin_step *step, uint32_t like, ms_verb verb,
                       uint32_t set, ms_call *call)
{
    const ms_call *it = call_of(step, like);
    if (it == NULL || set == MS_PLUGIN_NONE ||
        !in_range(step, set, step->made.n_sets, "set"))
        return false;
    *call = ms_program_call_like(verb, it);
    call->set = set;
    return true;
}

void ms_plugin_move(ms_plugin_step *step, uint32_t like, uint32_t set,
                    ms_plugin_place place)
{
    static const uint8_t places[] = {MS_HERE, MS_HOST, MS_NVME, MS_SHARD};
    ms_call call;
    if (!in_range(step, (uint32_t)place, sizeof places, "place") ||
        !start_call(step, like, MS_MOVE, set, &call))
        return;
    call.move.to = places[place];
    write_call(step, call);
}

void ms_plugin_pack(ms_plugin_step *step, uint32_t like, uint32_t set,
                    uint32_t buffer)
{
    ms_call call;
    if (!start_call(step, like, MS_MOVE, set, &call))
        return;
    call.move.to = MS_PACKED;
    call.buffer = buffer;
    write_call(step, call);
}

static void write_set(ms_plugin_step *step, uint32_t like, ms_verb verb,
                      uint32_t set)
{
    ms_call call;
    if (start_call(step, like, verb, set, &call))
        write_call(step, call);
}

void ms_plugin_gather(ms_plugin_step *step, uint32_t like, uint32_t set)
{
    write_set(step, like, MS_GATHER, set);
}

void ms_plugin_wait(ms_plugin_step *step, uint32_t like, uint32_t set)
{
    write_set(step, like, MS_WAIT, set);
}

static void write_buffer(ms_plugin_step *step, uint32_t like, ms_verb verb,
                         uint32_t buffer)
{
    const ms_call *it = call_of(step, like);
    if (it == NULL || !in_range(step, buffer, step->made.n_buffers, "buffer"))
        return;
    ms_call call = ms_program_call_like(verb, it);
    call.buffer = buffer;
    write_call(step, call);
}

void ms_plugin_take_buffer(ms_plugin_step *step, uint32_t like, uint32_t buffer)
{
    write_buffer(step, like, MS_TAKE, buffer);
}

void ms_plugin_give_buffer(ms_plugin_step *step, uint32_t like, uint32_t buffer)
{
    write_buffer(step, like, MS_GIVE, buffer);
}

void ms_plugin_work(ms_plugin_step *step, uint32_t like, uint32_t task,
                    uint32_t set)
{
    const ms_call *it = call_of(step, like);
    if (it == NULL || !in_range(step, task, step->made.n_tasks, "task"))
        return;
    ms_call call = ms_program_call_like(MS_WORK, it);
    call.work.task = task;
    call.set = set == MS_PLUGIN_NONE ? MS_NOTHING : set;
    write_call(step, call);
}

/* ---- measuring ----------------------------------------------------------- */

bool ms_plugin_measure(ms_plugin_step *step, uint64_t *peak_bytes,
                       uint64_t *step_ns)
{
    *peak_bytes = *step_ns = 0;
    if (!in_place(step) || step->err != MS_OK)
        return false;
    const ms_program *program = step->writes ? &step->made : step->old;
    ms_err err = ms_check_program(step->context->graph, program, step->fault);
    if (err == MS_OK)
        err = ms_profile_measure(step->context, program, peak_bytes, step_ns,
                                 step->fault);
    note(step, err);
    return err == MS_OK;
}

void ms_plugin_restart(ms_plugin_step *step)
{
    step->made.n_calls = 0;
    step->writes = false;
}

/* ---- online -------------------------------------------------------------- */

static bool in_online(ms_plugin_step *step)
{
    return step->online != NULL || fail(step, "a budget is set in online");
}

void ms_plugin_budget(ms_plugin_step *step, uint64_t bytes, uint64_t again_ns)
{
    bool sets = in_online(step);
    if (sets && bytes > 0)
        step->online->budget_bytes = bytes;
    if (sets && again_ns > 0)
        step->online->most_again_ns = again_ns;
}

void ms_plugin_prepare(ms_plugin_step *step, const void *setup,
                       size_t memory_bytes)
{
    if (!in_online(step))
        return;
    step->setup = setup;
    step->online->state_bytes = memory_bytes;
}
