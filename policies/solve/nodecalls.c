/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/nodecalls.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

typedef struct writer {
    const ms_graph *graph;
    ms_arena *arena;
    ms_program *program; /* the new one */
    ms_fault *fault;
    uint8_t *is_here; /* per storage */
    uint8_t *is_made; /* per op: it has run */
    uint32_t *alone;  /* per storage: the set of it alone, or MS_NOTHING */
    uint32_t *list;   /* of storages, for a set */
    bool is_backward; /* a gradient was made */
} writer;

static ms_err add(const writer *w, ms_call call)
{
    return ms_program_add(w->program, call, w->arena, w->fault);
}

static ms_err set_alone(const writer *w, uint32_t storage, uint32_t *set)
{
    if (w->alone[storage] == MS_NOTHING)
        MS_TRY(ms_program_add_set(w->program, &storage, 1, w->arena,
                                  &w->alone[storage], w->fault));
    *set = w->alone[storage];
    return MS_OK;
}

/* What the op makes and is not here; it is from now on. */
static ms_err set_missing(const writer *w, uint32_t op, uint32_t *set)
{
    const ms_graph *graph = w->graph;
    uint32_t n = 0;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        if (!w->is_here[graph->out[i]]) {
            w->is_here[graph->out[i]] = 1;
            w->list[n++] = graph->out[i];
        }
    if (n == 1)
        return set_alone(w, w->list[0], set);
    *set = MS_NOTHING;
    return n == 0 ? MS_OK
                  : ms_program_add_set(w->program, w->list, n, w->arena, set,
                                       w->fault);
}

static ms_err write_marks(const writer *w, const ms_call *like)
{
    ms_call call = ms_program_call_like(MS_MARK, like);
    call.mark.mark = MS_MARK_BEFORE_LOSS;
    MS_TRY(add(w, call));
    call.mark.mark = MS_MARK_AFTER_FORWARD;
    return add(w, call);
}

static ms_err write_first(writer *w, const ms_call *like, uint32_t op)
{
    ms_call call = ms_program_call_like(MS_RUN, like);
    if (!w->is_backward && w->graph->op_unit[op] >= w->graph->loss_unit) {
        w->is_backward = true;
        MS_TRY(write_marks(w, like));
    }
    call.unit = call.last = w->graph->op_unit[op];
    call.run = (ms_run_call){.pass = MS_FORWARD, .keep = MS_NOTHING};
    MS_TRY(set_missing(w, op, &call.set));
    return add(w, call);
}

static ms_err write_again(const writer *w, const ms_call *like, uint32_t op)
{
    uint32_t set;
    MS_TRY(set_missing(w, op, &set));
    ms_call call =
        ms_program_call_like(set == MS_NOTHING ? MS_RERUN : MS_HOLD, like);
    if (set == MS_NOTHING) {
        call.unit = call.last = w->graph->op_unit[op];
        call.rerun.whole = true;
    } else {
        call.set = set;
        call.hold.again = true;
    }
    return add(w, call);
}

static ms_err write_drop(const writer *w, const ms_call *like, uint32_t storage)
{
    ms_call call = ms_program_call_like(MS_DROP_SET, like);
    w->is_here[storage] = 0;
    MS_TRY(set_alone(w, storage, &call.set));
    return add(w, call);
}

static ms_err write_plan(writer *w, const ms_nodeplan *plan,
                         const ms_call *like)
{
    memset(w->is_here, 0, w->graph->n_storages);
    memset(w->is_made, 0, w->graph->n_ops);
    w->is_backward = false;
    for (uint32_t i = 0; i < plan->n; i++) {
        uint32_t id = MS_NODEPLAN_ID(plan->items[i]);
        if (MS_NODEPLAN_ACT(plan->items[i]) == MS_NODEACT_DROP)
            MS_TRY(write_drop(w, like, id));
        else if (w->is_made[id])
            MS_TRY(write_again(w, like, id));
        else
            MS_TRY(write_first(w, like, id));
        if (MS_NODEPLAN_ACT(plan->items[i]) == MS_NODEACT_MAKE)
            w->is_made[id] = 1;
    }
    return w->is_backward ? MS_OK : write_marks(w, like);
}

static bool is_within(const ms_call *call)
{
    return call->verb == MS_RUN || (call->verb == MS_MARK &&
                                    (call->mark.mark == MS_MARK_BEFORE_LOSS ||
                                     call->mark.mark == MS_MARK_AFTER_FORWARD));
}

ms_err ms_nodecalls_write(const ms_graph *graph, const ms_nodeplan *plan,
                          ms_arena *arena, ms_program *program, ms_fault *fault)
{
    ms_program made;
    writer w = {
        .graph = graph, .arena = arena, .program = &made, .fault = fault};
    size_t n = graph->n_storages + 1u;
    w.is_here = ms_arena_take(arena, n, 1);
    w.is_made = ms_arena_take(arena, graph->n_ops + 1u, 1);
    w.alone = ms_arena_take_raw(arena, n, sizeof *w.alone);
    w.list = ms_arena_take_raw(arena, n, sizeof *w.list);
    if (w.is_here == NULL || w.is_made == NULL || w.alone == NULL ||
        w.list == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t s = 0; s < n; s++)
        w.alone[s] = MS_NOTHING;
    MS_TRY(ms_program_fork(program, arena, &made, fault));
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (!is_within(call))
            MS_TRY(add(&w, *call));
        else if (call->verb == MS_RUN && call->unit == 0)
            MS_TRY(write_plan(&w, plan, call));
    }
    *program = made;
    return MS_OK;
}
