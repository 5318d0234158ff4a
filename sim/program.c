/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/program.h"
#include "sim/graph.h"

#include <string.h>

/* ---- building ------------------------------------------------------------ */

ms_err ms_program_add_buffer(ms_program *program, ms_buffer value,
                             ms_arena *arena, uint32_t *buffer, ms_fault *fault)
{
    ms_buffer *buffers =
        ms_arena_grow(arena, program->buffers, &program->buffers_capacity,
                      program->n_buffers + 1, sizeof *buffers);
    if (buffers == NULL)
        return ms_fail_nomem(fault);
    program->buffers = buffers;
    *buffer = program->n_buffers++;
    buffers[*buffer] = value;
    return MS_OK;
}

ms_err ms_program_add_task(ms_program *program, ms_task task, ms_arena *arena,
                           uint32_t *row, ms_fault *fault)
{
    ms_task *tasks =
        ms_arena_grow(arena, program->tasks, &program->tasks_capacity,
                      program->n_tasks + 1, sizeof *tasks);
    if (tasks == NULL)
        return ms_fail_nomem(fault);
    program->tasks = tasks;
    *row = program->n_tasks++;
    tasks[*row] = task;
    return MS_OK;
}

ms_call ms_program_call(ms_verb verb)
{
    ms_call call = {.verb = (uint8_t)verb,
                    .unit = MS_NONE,
                    .last = MS_NONE,
                    .set = MS_NOTHING,
                    .buffer = MS_NONE};
    if (verb == MS_RUN)
        call.run.keep = MS_NOTHING;
    return call;
}

ms_call ms_program_call_like(ms_verb verb, const ms_call *like)
{
    ms_call call = ms_program_call(verb);
    call.rank = like->rank;
    call.frame = like->frame;
    call.micro_batch = like->micro_batch;
    return call;
}

ms_call ms_program_move(const ms_call *like, uint32_t set, ms_move_call how)
{
    ms_call call = ms_program_call_like(MS_MOVE, like);
    call.set = set;
    call.move = how;
    return call;
}

ms_call ms_program_gather(const ms_call *like, uint32_t set, ms_gather_call how)
{
    ms_call call = ms_program_call_like(MS_GATHER, like);
    call.set = set;
    call.gather = how;
    return call;
}

ms_call ms_program_reduce(const ms_call *like, uint32_t set, ms_reduce_call how)
{
    ms_call call = ms_program_call_like(MS_REDUCE, like);
    call.set = set;
    call.reduce = how;
    return call;
}

ms_call ms_program_wait(const ms_call *like, uint32_t set)
{
    ms_call call = ms_program_call_like(MS_WAIT, like);
    call.set = set;
    return call;
}

static ms_err copy_table(const void *from, uint32_t n, size_t size,
                         ms_arena *arena, uint32_t *capacity, void **copy,
                         ms_fault *fault)
{
    *capacity = 0;
    *copy = NULL;
    if (n == 0)
        return MS_OK;
    *copy = ms_arena_grow(arena, NULL, capacity, n, size);
    if (*copy == NULL)
        return ms_fail_nomem(fault);
    memcpy(*copy, from, n * size);
    return MS_OK;
}

ms_err ms_program_fork(const ms_program *from, ms_arena *arena,
                       ms_program *program, ms_fault *fault)
{
    ms_program anew = *from;
    void *at, *item, *buffers, *tasks, *stages;
    anew.calls = NULL;
    anew.n_calls = anew.calls_capacity = 0;
    MS_TRY(copy_table(from->set_at, from->n_sets > 0 ? from->n_sets + 1 : 0,
                      sizeof *from->set_at, arena, &anew.sets_capacity, &at,
                      fault));
    MS_TRY(copy_table(from->set_item, from->set_items, sizeof *from->set_item,
                      arena, &anew.items_capacity, &item, fault));
    MS_TRY(copy_table(from->buffers, from->n_buffers, sizeof *from->buffers,
                      arena, &anew.buffers_capacity, &buffers, fault));
    MS_TRY(copy_table(from->tasks, from->n_tasks, sizeof *from->tasks, arena,
                      &anew.tasks_capacity, &tasks, fault));
    MS_TRY(copy_table(from->stages, from->n_stages, sizeof *from->stages, arena,
                      &anew.stages_capacity, &stages, fault));
    anew.set_at = at;
    anew.set_item = item;
    anew.buffers = buffers;
    anew.tasks = tasks;
    anew.stages = stages;
    *program = anew;
    return MS_OK;
}

ms_err ms_program_add_groups(ms_program *program, const ms_group *groups,
                             uint32_t n, ms_arena *arena, ms_fault *fault)
{
    uint32_t own = program->n_groups;
    ms_group *rows = ms_arena_take(arena, own > 0 ? own : n, sizeof *rows);
    if (rows == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < (own > 0 ? own : n); i++)
        rows[i] = own > 0 ? program->groups[i] : groups[i];
    for (uint32_t i = 0; i < own; i++)
        rows[i].links = groups->links;
    program->groups = rows;
    program->n_groups = own > 0 ? own : n;
    return MS_OK;
}

ms_err ms_program_reserve(ms_program *program, uint64_t more, ms_arena *arena,
                          ms_fault *fault)
{
    if (more > UINT32_MAX - program->n_calls)
        return ms_fail_nomem(fault);
    ms_call *calls =
        ms_arena_grow(arena, program->calls, &program->calls_capacity,
                      program->n_calls + (uint32_t)more, sizeof *calls);
    if (calls == NULL)
        return ms_fail_nomem(fault);
    program->calls = calls;
    return MS_OK;
}

ms_err ms_program_add(ms_program *program, ms_call call, ms_arena *arena,
                      ms_fault *fault)
{
    MS_TRY(ms_program_reserve(program, 1, arena, fault));
    program->calls[program->n_calls++] = call;
    return MS_OK;
}

/* Sets are stored in CSR form: set_at[set] is where its items begin in
 * set_item, and there is one entry more than sets, so that the last one ends,
 * too. */
ms_err ms_program_add_set(ms_program *program, const uint32_t *storages,
                          uint32_t n, ms_arena *arena, uint32_t *set,
                          ms_fault *fault)
{
    *set = MS_NOTHING;
    if (n == 0)
        return MS_OK;
    if (n > UINT32_MAX - program->set_items ||
        program->n_sets >= MS_NOTHING - 2)
        return ms_fail_nomem(fault);
    uint32_t *at =
        ms_arena_grow(arena, program->set_at, &program->sets_capacity,
                      program->n_sets + 2, sizeof *at);
    if (at == NULL)
        return ms_fail_nomem(fault);
    program->set_at = at;
    uint32_t *items =
        ms_arena_grow(arena, program->set_item, &program->items_capacity,
                      program->set_items + n, sizeof *items);
    if (items == NULL)
        return ms_fail_nomem(fault);
    program->set_item = items;
    memcpy(items + program->set_items, storages, n * sizeof *items);
    at[program->n_sets] = program->set_items;
    program->set_items += n;
    *set = program->n_sets++;
    at[program->n_sets] = program->set_items;
    return MS_OK;
}

ms_err ms_program_keep_all(const ms_graph *graph, ms_arena *arena,
                           ms_keep *keep, ms_fault *fault)
{
    *keep = (ms_keep){.early_stop = true};
    keep->place = ms_arena_take(arena, graph->n_storages, 1);
    keep->segment =
        ms_arena_take_raw(arena, graph->n_units, sizeof *keep->segment);
    if (keep->place == NULL || keep->segment == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t u = 0; u < graph->n_units; u++)
        keep->segment[u] = MS_NONE;
    return MS_OK;
}

/* ---- replays in parts ---------------------------------------------------- */

typedef struct parter {
    const ms_graph *graph;
    ms_program *made;
    ms_arena *arena;
    ms_fault *fault;
    uint32_t *list;  /* of a set */
    uint32_t *last;  /* per storage: the last unit in sight that reads it */
    uint32_t *stamp; /* per storage: the hold that last is of */
    uint32_t n_holds;
} parter;

static bool is_parted(const ms_call *call)
{
    bool again = call->verb == MS_HOLD && call->hold.again;
    return (again || (call->verb == MS_RERUN && !call->rerun.part)) &&
           call->unit < call->last && call->last != MS_NONE;
}

static ms_err part_rerun(parter *p, ms_call call)
{
    call.rerun.part = true;
    for (; call.unit < call.last; call.unit++)
        MS_TRY(ms_program_add(p->made, call, p->arena, p->fault));
    return ms_program_add(p->made, call, p->arena, p->fault);
}

/* Which of the units reads last what they make; what the hold is of stays. */
static void find_last(parter *p, const ms_call *hold)
{
    const ms_graph *graph = p->graph;
    const ms_program *made = p->made;
    p->n_holds++;
    for (uint32_t u = hold->unit; u <= hold->last; u++)
        for (uint32_t i = graph->unit_in_at[u]; i < graph->unit_in_at[u + 1];
             i++) {
            p->stamp[graph->unit_in[i]] = p->n_holds;
            p->last[graph->unit_in[i]] = u;
        }
    for (uint32_t i = made->set_at[hold->set]; i < made->set_at[hold->set + 1];
         i++) {
        p->stamp[made->set_item[i]] = p->n_holds;
        p->last[made->set_item[i]] = MS_NONE;
    }
}

/* What the unit makes, and others of the hold read. */
static uint32_t list_made(const parter *p, uint32_t unit)
{
    const ms_graph *graph = p->graph;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]], n = 0;
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end; i++)
        if (p->stamp[graph->out[i]] == p->n_holds)
            p->list[n++] = graph->out[i];
    return n;
}

/* What units from first on have made and no unit behind this one reads. */
static uint32_t list_read(const parter *p, uint32_t first, uint32_t unit)
{
    const ms_graph *graph = p->graph;
    uint32_t n = 0;
    for (uint32_t i = graph->unit_in_at[unit]; i < graph->unit_in_at[unit + 1];
         i++) {
        uint32_t s = graph->unit_in[i];
        if (p->last[s] == unit &&
            graph->storage_maker[s] >= graph->forward_at[first])
            p->list[n++] = s;
    }
    return n;
}

static ms_err add_set(parter *p, ms_call call, uint32_t n)
{
    if (n == 0)
        return MS_OK;
    MS_TRY(
        ms_program_add_set(p->made, p->list, n, p->arena, &call.set, p->fault));
    return ms_program_add(p->made, call, p->arena, p->fault);
}

static ms_err part_hold(parter *p, ms_call call)
{
    ms_call drop = ms_program_call_like(MS_DROP_SET, &call);
    uint32_t first = call.unit, last = call.last;
    find_last(p, &call);
    for (uint32_t u = first; u <= last; u++) {
        call.unit = call.last = u;
        MS_TRY(add_set(p, call, list_made(p, u)));
        MS_TRY(add_set(p, drop, list_read(p, first, u)));
    }
    return MS_OK;
}

static ms_err open_parter(parter *p, const ms_program *program)
{
    uint32_t n = p->graph->n_storages;
    p->list = ms_arena_take_raw(p->arena, n, sizeof *p->list);
    p->last = ms_arena_take_raw(p->arena, n, sizeof *p->last);
    p->stamp = ms_arena_take(p->arena, n, sizeof *p->stamp);
    if (p->list == NULL || p->last == NULL || p->stamp == NULL)
        return ms_fail_nomem(p->fault);
    MS_TRY(ms_program_fork(program, p->arena, p->made, p->fault));
    return ms_program_reserve(p->made, program->n_calls, p->arena, p->fault);
}

ms_err ms_program_part_replays(const ms_graph *graph, ms_program *program,
                               ms_arena *arena, ms_fault *fault)
{
    ms_program made;
    parter p = {.graph = graph, .made = &made, .arena = arena, .fault = fault};
    bool parts = false;
    for (uint32_t i = 0; i < program->n_calls; i++)
        parts |= is_parted(&program->calls[i]);
    if (!parts)
        return MS_OK;
    MS_TRY(open_parter(&p, program));
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (!is_parted(call))
            MS_TRY(ms_program_add(&made, *call, arena, fault));
        else
            MS_TRY(call->verb == MS_RERUN ? part_rerun(&p, *call)
                                          : part_hold(&p, *call));
    }
    *program = made;
    return MS_OK;
}

bool ms_program_runs(const ms_call *call)
{
    return call->verb == MS_RUN || call->verb == MS_RERUN ||
           (call->verb == MS_HOLD && call->hold.again && call->unit != MS_NONE);
}

bool ms_program_ends_backward(const ms_call *call)
{
    return call->verb == MS_RUN && call->run.pass != MS_FORWARD &&
           (!call->run.half || call->run.pass == MS_GRAD_WEIGHT);
}

uint8_t ms_program_group(const ms_call *call)
{
    switch ((ms_verb)call->verb) {
    case MS_GATHER:
        return call->gather.group;
    case MS_REDUCE:
        return call->reduce.group;
    case MS_SEND_SET:
    case MS_RECV_SET:
        return call->message.group;
    default:
        return 0;
    }
}
