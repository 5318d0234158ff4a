/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is a program, perhaps written by hand, one that expand can walk? */
#include "sim/check.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Beyond this many (unit, frame, rank) a program is a mistake or an attack. */
#define MOST_CELLS ((uint64_t)1 << 26)

static ms_err check_set(const ms_program *program, uint32_t set,
                        ms_fault *fault)
{
    if (set == MS_ALL || set == MS_NOTHING || set < program->n_sets)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL, NULL,
                   "there is no set %u; the program has %u", set,
                   program->n_sets);
}

/* A verb that needs a buffer has one, and its id is in range. */
static ms_err check_buffer(const ms_program *program, const ms_call *call,
                           ms_fault *fault)
{
    bool needs = call->verb == MS_TAKE || call->verb == MS_GIVE ||
                 (call->verb == MS_MOVE && call->move.to == MS_PACKED);
    if (call->buffer == MS_NONE && needs)
        return ms_fail(fault, MS_EINPUT, NULL, "say buffer 0, for example",
                       "which buffer of the program is not said");
    if (call->buffer == MS_NONE || call->buffer < program->n_buffers)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL, NULL,
                   "there is no buffer %u; the program has %u", call->buffer,
                   program->n_buffers);
}

static ms_err check_task(const ms_program *program, const ms_call *call,
                         ms_fault *fault)
{
    if (call->verb != MS_WORK)
        return MS_OK;
    uint32_t row = call->work.task;
    if (row >= program->n_tasks)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "there is no task %u; the program has %u", row,
                       program->n_tasks);
    const ms_task *task = &program->tasks[row];
    if (task->stream >= MS_N_STREAMS || task->unit >= MS_N_TASK_UNITS)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "task %u has no stream or no unit that there is", row);
    return MS_OK;
}

static ms_err check_group(const ms_program *program, const ms_call *call,
                          ms_fault *fault)
{
    uint32_t n = program->n_groups > 0 ? program->n_groups : MS_N_GROUP_ROLES;
    uint32_t group = ms_program_group(call);
    if (group < n)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL, NULL,
                   "there is no group %u; the program has %u", group, n);
}

static ms_err check_indices(const ms_program *program, const ms_call *call,
                            ms_fault *fault)
{
    if (call->verb >= MS_N_VERBS)
        return ms_fail(fault, MS_EINPUT, NULL, NULL, "there is no verb %u",
                       (unsigned)call->verb);
    if (call->rank >= program->n_ranks)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "rank %u is out of range: 0 to %u", (unsigned)call->rank,
                       program->n_ranks - 1u);
    if (call->frame >= program->n_frames)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "frame %u is out of range: 0 to %u",
                       (unsigned)call->frame, program->n_frames - 1u);
    if (call->micro_batch >= program->n_micro_batches)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "micro-batch %u is out of range: 0 to %u",
                       call->micro_batch, program->n_micro_batches - 1u);
    if (call->verb == MS_RUN)
        MS_TRY(check_set(program, call->run.keep, fault));
    MS_TRY(check_set(program, call->set, fault));
    MS_TRY(check_task(program, call, fault));
    MS_TRY(check_group(program, call, fault));
    return check_buffer(program, call, fault);
}

/* A message goes to another rank and is of what a micro-batch makes. */
static ms_err check_message(const ms_graph *graph, const ms_program *program,
                            const ms_call *call, ms_fault *fault)
{
    uint16_t peer = call->message.peer;
    char name[MS_STORAGE_NAME];
    if (call->verb == MS_REDUCE && call->reduce.tag > 0 && program->n_ranks < 2)
        return ms_fail(fault, MS_EINPUT, NULL, "leave tag out",
                       "there is one rank, which meets no other (tag %u)",
                       call->reduce.tag);
    if (call->verb != MS_SEND_SET && call->verb != MS_RECV_SET)
        return MS_OK;
    if (peer >= program->n_ranks || peer == call->rank)
        return ms_fail(fault, MS_EINPUT, NULL, "name another rank, as peer 1",
                       "rank %u has no peer %u", (unsigned)call->rank,
                       (unsigned)peer);
    if (call->set == MS_NOTHING && call->buffer != MS_NONE)
        return MS_OK;
    if (call->set >= program->n_sets)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "define a set and name it, or nothing and a buffer",
                       "a message without a set");
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++) {
        uint32_t s = program->set_item[i];
        if (s < graph->n_persistent)
            return ms_fail(fault, MS_EINPUT, NULL,
                           "send what a micro-batch makes",
                           "set %u has %s, which outlives a micro-batch",
                           call->set, ms_graph_storage_name(graph, s, name));
    }
    return MS_OK;
}

static ms_err check_units(const ms_graph *graph, const ms_call *call,
                          ms_fault *fault)
{
    uint32_t last = call->last;
    if (call->verb == MS_RUN || call->verb == MS_STATE)
        last = call->unit;
    else if (call->verb != MS_RERUN &&
             ((call->verb != MS_DROP_SET && call->verb != MS_HOLD) ||
              call->unit == MS_NONE))
        return MS_OK;
    if (call->unit > last || last >= graph->n_units)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "there are no units %u-%u; the graph has %u", call->unit,
                       last, graph->n_units);
    return MS_OK;
}

/* Only what the step makes can be held: what exists before the step stays, or
 * is moved. */
static ms_err check_holds(const ms_graph *graph, const ms_program *program,
                          const ms_call *call, ms_fault *fault)
{
    char name[MS_STORAGE_NAME];
    bool holds = call->verb == MS_HOLD || call->verb == MS_DROP_SET;
    if (!holds || call->set >= program->n_sets)
        return MS_OK;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++) {
        uint32_t s = program->set_item[i];
        if (s < graph->n_persistent)
            return ms_fail(fault, MS_EINPUT, NULL,
                           "hold and drop what the step makes",
                           "set %u has %s, which exists before the step",
                           call->set, ms_graph_storage_name(graph, s, name));
    }
    return MS_OK;
}

/* Only states are summed over the ranks and updated.  What one micro-batch
 * makes is not, but each rank may hold a part of it (SHARD) or a smaller copy
 * (PACKED). */
static ms_err check_shared(const ms_graph *graph, const ms_program *program,
                           const ms_call *call, ms_fault *fault)
{
    char name[MS_STORAGE_NAME];
    bool shares = call->verb == MS_REDUCE || call->verb == MS_STEP_SET;
    if (!shares || call->set >= program->n_sets)
        return MS_OK;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++) {
        uint32_t s = program->set_item[i];
        if (s >= graph->n_persistent)
            return ms_fail(fault, MS_EINPUT, NULL,
                           "reduce and update what outlives a micro-batch",
                           "set %u has %s, which each rank has for itself",
                           call->set, ms_graph_storage_name(graph, s, name));
    }
    return MS_OK;
}

static ms_err check_run(const ms_graph *graph, const ms_call *call, uint8_t ran,
                        ms_fault *fault)
{
    bool forward = call->run.pass == MS_FORWARD, half = call->run.half;
    bool second = half && call->run.pass == MS_GRAD_WEIGHT;
    if ((!forward && !second && call->run.pass != MS_GRAD_INPUT) ||
        (forward && half))
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "a unit runs forward or backward, not pass %u",
                       (unsigned)call->run.pass);
    if (!forward && !ran)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "run each unit forward before its backward",
                       "backward of unit %u (%s) without its forward",
                       call->unit, graph->unit_name[call->unit]);
    if (!forward && second != (ran == 2))
        return ms_fail(fault, MS_EINPUT, NULL,
                       "run grad_input once, then grad_weight once",
                       "unit %u (%s) runs its gradients of weights %s",
                       call->unit, graph->unit_name[call->unit],
                       second ? "before those of its inputs"
                              : "not behind those of its inputs");
    return MS_OK;
}

/* The places to which each verb may move or put its operands. */
static ms_err check_place(const ms_call *call, ms_fault *fault)
{
    uint8_t move = call->move.to, part = call->step.part;
    uint8_t state = call->state.to, sum = call->reduce.to;
    if (call->verb == MS_MOVE &&
        (move == MS_PENDING || move == MS_GONE || move >= MS_N_PLACES))
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "a set moves to here, host, nvme, shard or packed, not "
                       "to place %u",
                       (unsigned)move);
    if (call->verb == MS_STEP_SET && part != MS_HERE && part != MS_HOST &&
        part != MS_PENDING)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "a step is whole (here), the host's or what is pending, "
                       "not of place %u",
                       (unsigned)part);
    if (call->verb == MS_STATE && state != MS_HERE && state != MS_GONE)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "a state goes to here or gone, not to place %u",
                       (unsigned)state);
    if (call->verb == MS_REDUCE && sum != MS_HERE && sum != MS_SHARD)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "a set is reduced to here or shard, not to place %u",
                       (unsigned)sum);
    if (call->verb == MS_MARK && call->mark.mark >= MS_N_MARKS)
        return ms_fail(fault, MS_EINPUT, NULL, NULL, "there is no mark %u",
                       (unsigned)call->mark.mark);
    return MS_OK;
}

/* What has run of a unit: 1, forward; 2, and the first half of backward; 0,
 * nothing that waits for backward. */
static uint8_t run_state(const ms_call *call)
{
    if (call->run.pass == MS_FORWARD)
        return 1;
    return call->run.half && call->run.pass == MS_GRAD_INPUT ? 2 : 0;
}

/* What a verb needs beyond the ranges. */
static ms_err check_verb(const ms_graph *graph, const ms_call *call,
                         uint8_t *ran, ms_fault *fault)
{
    if (call->verb == MS_RUN) {
        MS_TRY(check_run(graph, call, *ran, fault));
        *ran = run_state(call);
    }
    if (call->verb == MS_RERUN && !*ran)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "run each unit forward before it is run again",
                       "unit %u (%s) is run again before its forward",
                       call->unit, graph->unit_name[call->unit]);
    return check_place(call, fault);
}

static bool same_rerun(const ms_rerun_call *a, const ms_rerun_call *b)
{
    return a->whole == b->whole && a->holds == b->holds &&
           a->state == b->state && a->part == b->part;
}

/* The parts of a replay come in order, from its first unit to its last; other
 * calls may stand between them. */
static ms_err check_part(const ms_graph *graph, const ms_call *call,
                         ms_call *open, ms_fault *fault)
{
    bool is_open = open->verb == MS_RERUN;
    if (call->verb != MS_RERUN)
        return MS_OK;
    if (is_open && (!call->rerun.part || call->unit != open->unit + 1 ||
                    call->last != open->last || call->frame != open->frame ||
                    !same_rerun(&call->rerun, &open->rerun)))
        return ms_fail(fault, MS_EINPUT, NULL,
                       "write the parts of a replay unit by unit to its last",
                       "units %u-%u are run again where the part of unit %u "
                       "(%s) comes next",
                       call->unit, call->last, open->unit + 1,
                       graph->unit_name[open->unit + 1]);
    *open = *call;
    if (!call->rerun.part || call->unit == call->last)
        open->verb = MS_N_VERBS;
    return MS_OK;
}

/* A replay that is not finished at the end of the program would hold what it
 * has made for ever. */
static ms_err check_closed(const ms_graph *graph, const ms_call *open,
                           uint32_t n, ms_fault *fault)
{
    for (uint32_t r = 0; r < n; r++)
        if (open[r].verb == MS_RERUN)
            return ms_fail(fault, MS_EINPUT, NULL,
                           "write the parts of a replay unit by unit to its "
                           "last",
                           "the program ends before the part of unit %u (%s)",
                           open[r].unit + 1,
                           graph->unit_name[open[r].unit + 1]);
    return MS_OK;
}

static ms_err check_whole(const ms_graph *graph, const ms_program *program,
                          ms_fault *fault)
{
    uint64_t cells =
        (uint64_t)graph->n_units * program->n_frames * program->n_ranks;
    if (cells > MOST_CELLS)
        return ms_fail(fault, MS_EINPUT, NULL, "use fewer frames or ranks",
                       "%u frames on %u ranks are too many for %u units",
                       (unsigned)program->n_frames, (unsigned)program->n_ranks,
                       graph->n_units);
    for (uint32_t i = 0; i < program->set_items; i++)
        if (program->set_item[i] >= graph->n_storages)
            return ms_fail(fault, MS_EINPUT, NULL, NULL,
                           "there is no storage %u; the graph has %u",
                           program->set_item[i], graph->n_storages);
    return ms_stage_check(graph, program, fault);
}

ms_err ms_check_calls(const ms_graph *graph, const ms_program *program,
                      uint32_t *wrong, ms_fault *fault)
{
    *wrong = MS_NONE;
    MS_TRY(check_whole(graph, program, fault));
    ms_arena scratch = {0};
    size_t cells = (size_t)graph->n_units * program->n_frames;
    uint8_t *ran = ms_arena_take(&scratch, cells * program->n_ranks, 1);
    ms_call *open = ms_arena_take(&scratch, program->n_ranks, sizeof *open);
    ms_err err = MS_OK;
    if (ran == NULL || open == NULL)
        err = ms_fail_nomem(fault);
    for (uint32_t i = 0; i < program->n_calls && err == MS_OK; i++) {
        const ms_call *call = &program->calls[i];
        err = check_indices(program, call, fault);
        if (err == MS_OK)
            err = check_units(graph, call, fault);
        if (err == MS_OK)
            err = ms_stage_check_call(graph, program, call, fault);
        if (err == MS_OK)
            err = check_holds(graph, program, call, fault);
        if (err == MS_OK)
            err = check_shared(graph, program, call, fault);
        if (err == MS_OK)
            err = check_message(graph, program, call, fault);
        if (err == MS_OK) {
            bool runs = call->verb == MS_RUN || call->verb == MS_RERUN;
            size_t slot =
                call->rank * cells + (size_t)call->frame * graph->n_units;
            err = check_verb(graph, call, runs ? &ran[slot + call->unit] : NULL,
                             fault);
        }
        if (err == MS_OK)
            err = check_part(graph, call, &open[call->rank], fault);
        if (err != MS_OK)
            *wrong = i;
    }
    if (err == MS_OK)
        err = check_closed(graph, open, program->n_ranks, fault);
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_check_program(const ms_graph *graph, const ms_program *program,
                        ms_fault *fault)
{
    uint32_t wrong;
    ms_fault found = {0};
    ms_err err = ms_check_calls(graph, program, &wrong, &found);
    if (err == MS_OK)
        return MS_OK;
    char where[32] = "program";
    if (wrong != MS_NONE)
        snprintf(where, sizeof where, "call %u", wrong);
    return ms_fail(fault, err, where, found.hint, "%s", found.what);
}
