/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/selective/cutplan.h"
#include "policies/checkpoint/chains/handedon.h"
#include "policies/checkpoint/checkpointrows.h"
#include "policies/checkpoint/selective/cutnet.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>

#define STEPS 20u /* shares that a budget tries */

typedef struct planner {
    const ms_policy_context *context;
    const ms_graph *graph;
    const ms_program *program; /* as it was given */
    ms_arena *arena;
    ms_fault *fault;
    uint32_t n;        /* parts */
    ms_cutnet *nets;   /* per part */
    uint32_t *part_of; /* per unit */
    uint64_t *percent; /* per rank: the share of its parts */
    bool splits;       /* backward has halves */
} planner;

/* ---- calls --------------------------------------------------------------- */

/* Does the program hold it, because its nodes do not as long as it is needed?
 * Where backward has halves they let go of it in the first, and others may be
 * made of it in the second. */
static bool is_held(const planner *p, const ms_cutnet *net, uint32_t v)
{
    return net->is_saved[v] && net->until[v] != MS_NONE &&
           (net->saved_until[v] == MS_NONE ||
            net->saved_until[v] > net->until[v] ||
            (p->splits && net->makes[v]));
}

typedef struct writer {
    const planner *p;
    ms_arena *arena;
    ms_program made;
    uint32_t *keep, *hold, *drop; /* per unit: sets */
    uint32_t *entry;   /* per part: a set of what others hand to it */
    uint8_t *is_kept;  /* per storage: nodes of a rank save it */
    uint32_t *instead; /* per set of the program as it was given */
    uint32_t *list;
} writer;

static uint32_t maker_of(const ms_cutnet *net, uint32_t v)
{
    return net->graph->op_unit[net->graph->storage_maker[net->storage[v]]];
}

static ms_err add_set(writer *w, uint32_t n, uint32_t *set)
{
    *set = MS_NOTHING;
    return n == 0 ? MS_OK
                  : ms_program_add_set(&w->made, w->list, n, w->arena, set,
                                       w->p->fault);
}

static ms_err add_sets(writer *w, const ms_cutnet *net, uint32_t unit)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < net->n; v++)
        if (maker_of(net, v) == unit && w->is_kept[net->storage[v]])
            w->list[n++] = net->storage[v];
    MS_TRY(add_set(w, n, &w->keep[unit]));
    n = 0;
    for (uint32_t v = 0; v < net->n; v++)
        if (maker_of(net, v) == unit && is_held(w->p, net, v))
            w->list[n++] = net->storage[v];
    MS_TRY(add_set(w, n, &w->hold[unit]));
    n = 0;
    for (uint32_t v = 0; v < net->n; v++)
        if (net->until[v] == unit && is_held(w->p, net, v))
            w->list[n++] = net->storage[v];
    return add_set(w, n, &w->drop[unit]);
}

/* What nodes save stays where its maker's are of the same rank; what comes from
 * another one is saved as it comes. */
static void mark_kept(writer *w, uint32_t k)
{
    const ms_stage *stages = w->p->context->schedule->stages;
    const ms_cutnet *net = &w->p->nets[k];
    for (uint32_t v = 0; v < net->n; v++) {
        uint32_t from = w->p->part_of[maker_of(net, v)];
        if (net->needed[v] && net->is_saved[v] &&
            stages[from].rank == stages[k].rank)
            w->is_kept[net->storage[v]] = 1;
    }
}

static ms_err add_entry(writer *w, uint32_t k)
{
    const ms_cutnet *net = &w->p->nets[k];
    uint32_t n = 0;
    for (uint32_t v = 0; v < net->n; v++)
        if (net->is_given[v] && is_held(w->p, net, v))
            w->list[n++] = net->storage[v];
    return add_set(w, n, &w->entry[k]);
}

static ms_err add(writer *w, ms_call call)
{
    return ms_program_add(&w->made, call, w->arena, w->p->fault);
}

static ms_err rewrite(writer *w, ms_call call)
{
    const planner *p = w->p;
    bool runs = call.verb == MS_RUN;
    ms_call more = ms_program_call_like(MS_HOLD, &call);
    if (!ms_handedon_instead(w->instead, p->program, &call))
        return MS_OK;
    if (runs && call.run.pass == MS_FORWARD) {
        uint32_t k = p->part_of[call.unit];
        more.set = w->entry[k];
        if (call.unit == p->nets[k].part.first && more.set != MS_NOTHING)
            MS_TRY(add(w, more));
        call.run.keep = w->keep[call.unit];
        call.set = w->hold[call.unit];
    }
    MS_TRY(add(w, call));
    if (!ms_program_ends_backward(&call) || w->drop[call.unit] == MS_NOTHING)
        return MS_OK;
    more = ms_program_call_like(MS_DROP_SET, &call);
    more.set = w->drop[call.unit];
    return add(w, more);
}

static ms_err open_writer(writer *w)
{
    const planner *p = w->p;
    uint32_t units = p->graph->n_units;
    MS_TRY(ms_program_fork(p->program, w->arena, &w->made, p->fault));
    w->keep = ms_arena_take(w->arena, units, sizeof *w->keep);
    w->hold = ms_arena_take(w->arena, units, sizeof *w->hold);
    w->drop = ms_arena_take(w->arena, units, sizeof *w->drop);
    w->entry = ms_arena_take(w->arena, p->n, sizeof *w->entry);
    w->is_kept = ms_arena_take(w->arena, p->graph->n_storages, 1);
    w->list = ms_arena_take(w->arena, p->graph->n_storages, sizeof *w->list);
    if (w->keep == NULL || w->hold == NULL || w->drop == NULL ||
        w->entry == NULL || w->is_kept == NULL || w->list == NULL)
        return ms_fail_nomem(p->fault);
    return MS_OK;
}

static ms_err write_calls(const planner *p, ms_arena *arena,
                          ms_program *program)
{
    writer w = {.p = p, .arena = arena};
    MS_TRY(open_writer(&w));
    for (uint32_t k = 0; k < p->n; k++)
        mark_kept(&w, k);
    for (uint32_t k = 0; k < p->n; k++) {
        const ms_cutnet *net = &p->nets[k];
        for (uint32_t u = net->part.first; u <= net->part.last; u++)
            MS_TRY(add_sets(&w, net, u));
        MS_TRY(add_entry(&w, k));
    }
    MS_TRY(ms_handedon_retain(p->context, p->program, w.is_kept, arena, &w.made,
                              &w.instead, p->fault));
    for (uint32_t i = 0; i < p->program->n_calls; i++)
        MS_TRY(rewrite(&w, p->program->calls[i]));
    *program = w.made;
    return MS_OK;
}

/* ---- the share ----------------------------------------------------------- */

static ms_err choose(planner *p)
{
    for (uint32_t k = 0; k < p->n; k++)
        MS_TRY(ms_cutnet_choose(
            &p->nets[k], p->percent[p->context->schedule->stages[k].rank],
            p->fault));
    return MS_OK;
}

/* Of a rank: the fastest share in the budget, and the least peak of all. */
typedef struct tried {
    uint64_t best_ns, percent, least_bytes;
} tried;

static ms_err refuse(const planner *p, uint64_t budget, uint64_t least)
{
    char given[MS_SIZE_COUNT], hint[96];
    ms_size_count(budget, given);
    snprintf(hint, sizeof hint, "the least of its shares is budget=%" PRIu64,
             least);
    return ms_fail(p->fault, MS_EINFEASIBLE, "checkpoint:knapsack", hint,
                   "no share keeps the step to %s bytes", given);
}

/* One share on all ranks, of which each has a peak of its own. */
static ms_err try_share(planner *p, uint64_t percent, ms_arena *calls,
                        ms_arena *scratch, ms_profile_rank *costs)
{
    ms_program program;
    ms_arena_reset(calls);
    for (uint32_t r = 0; r < p->context->schedule->n_ranks; r++)
        p->percent[r] = percent;
    MS_TRY(choose(p));
    MS_TRY(write_calls(p, calls, &program));
    return ms_profile_ranks_in(p->context, &program, scratch, costs, p->fault);
}

static void judge(const ms_profile_rank *cost, uint64_t budget,
                  uint64_t percent, tried *own)
{
    if (cost->peak_bytes < own->least_bytes)
        own->least_bytes = cost->peak_bytes;
    if (cost->peak_bytes > budget || cost->work_ns >= own->best_ns)
        return;
    own->best_ns = cost->work_ns;
    own->percent = percent;
}

/* Each rank takes the share of its fastest step in the budget. */
static ms_err choose_shares(planner *p, uint64_t budget, const tried *of)
{
    uint32_t n = p->context->schedule->n_ranks;
    uint64_t least = 0;
    for (uint32_t r = 0; r < n; r++) {
        p->percent[r] = of[r].percent;
        if (of[r].best_ns == UINT64_MAX && of[r].least_bytes > least)
            least = of[r].least_bytes;
    }
    return least > 0 ? refuse(p, budget, least) : MS_OK;
}

static ms_err find_shares(planner *p, uint64_t budget)
{
    uint32_t n = p->context->schedule->n_ranks;
    ms_arena calls = {.limit_bytes = p->arena->limit_bytes}, scratch = calls;
    tried *of = ms_arena_take(p->arena, n, sizeof *of);
    ms_profile_rank *costs = ms_arena_take(p->arena, n, sizeof *costs);
    ms_err err = of == NULL || costs == NULL ? ms_fail_nomem(p->fault) : MS_OK;
    for (uint32_t r = 0; r < n && err == MS_OK; r++)
        of[r] = (tried){.best_ns = UINT64_MAX, .least_bytes = UINT64_MAX};
    for (uint64_t i = STEPS + 1; i-- > 0 && err == MS_OK;) {
        err = try_share(p, i * 100 / STEPS, &calls, &scratch, costs);
        for (uint32_t r = 0; r < n && err == MS_OK; r++)
            judge(&costs[r], budget, i * 100 / STEPS, &of[r]);
    }
    ms_arena_free(&calls);
    ms_arena_free(&scratch);
    return err == MS_OK ? choose_shares(p, budget, of) : err;
}

static ms_err open_nets(planner *p)
{
    const ms_schedule *schedule = p->context->schedule;
    p->n = schedule->n_stages;
    p->splits = ms_schedule_splits(schedule);
    p->nets = ms_arena_take(p->arena, p->n, sizeof *p->nets);
    p->percent = ms_arena_take(p->arena, schedule->n_ranks, sizeof *p->percent);
    if (p->nets == NULL || p->percent == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t k = 0; k < p->n; k++) {
        p->nets[k] = (ms_cutnet){
            .graph = p->graph, .part = schedule->stages[k], .arena = p->arena};
        MS_TRY(ms_cutnet_open(&p->nets[k], p->fault));
    }
    return ms_schedule_stage_of(p->graph, schedule, p->arena, &p->part_of,
                                p->fault);
}

ms_err ms_cutplan_place(const ms_policy_context *context, ms_program *program,
                        ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    const ms_policy_value *share = &values[MS_CHECKPOINT_SHARE];
    const ms_policy_value *budget = &values[MS_CHECKPOINT_BUDGET];
    ms_program given = *program;
    planner p = {.context = context,
                 .graph = context->graph,
                 .program = &given,
                 .arena = context->arena,
                 .fault = fault};
    bool fills = values[MS_CHECKPOINT_KNAPSACK].given;
    if (fills && share->given == budget->given)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:knapsack",
                       "write checkpoint:knapsack,budget=40GiB, or "
                       "checkpoint:knapsack,share=50",
                       "it needs one of budget= and share=");
    MS_TRY(open_nets(&p));
    for (uint32_t r = 0; r < context->schedule->n_ranks; r++)
        p.percent[r] = share->given ? (uint64_t)share->number : 100;
    if (fills && budget->given)
        MS_TRY(find_shares(&p, (uint64_t)budget->number));
    MS_TRY(choose(&p));
    return write_calls(&p, p.arena, program);
}
