/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/selective/cutplan.h"
#include "policies/checkpoint/checkpointrows.h"
#include "policies/common/profile.h"
#include "policies/solve/cut/knapsack.h"
#include "policies/solve/cut/mincut.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How much may not be made again. */
typedef enum strictness { ALL_RULES, NO_FUSION, DEAR_OPS } strictness;

#define STEPS 20u /* shares that a budget tries */

typedef struct planner {
    const ms_policy_context *context;
    const ms_graph *graph;
    const ms_program *program; /* as it was given */
    ms_arena *arena;
    ms_fault *fault;
    uint32_t first, n; /* storages of forward: [first, first + n) */
    /* Per storage, less first. */
    uint64_t *weight, *time_ns;
    uint8_t *is_dear, *is_listed, *is_read, *is_small, *needed;
    uint8_t *banned, *is_saved;
    uint8_t *is_fixed; /* never made again */
    uint32_t *until;   /* the unit behind whose backward it is needed no more */
    ms_mincut_net net;
    uint64_t all_bytes; /* that mincut saves */
} planner;

/* ---- what ops are -------------------------------------------------------- */

static bool is_dear(uint8_t kind)
{
    return ms_kinds_is_product(kind) || ms_kinds_is_attention(kind) ||
           kind == MS_KIND_PRODUCT || kind == MS_KIND_CONVOLUTION ||
           kind == MS_KIND_RECURRENT || kind == MS_KIND_DROPOUT;
}

/* On torch's list of what may be made again, and can be fused. */
static bool is_listed(uint8_t kind)
{
    switch (kind) {
    case MS_KIND_VIEW:
    case MS_KIND_NORM:
    case MS_KIND_BATCH_NORM:
    case MS_KIND_SOFTMAX:
    case MS_KIND_POINTWISE:
    case MS_KIND_ADD:
    case MS_KIND_ROTARY:
    case MS_KIND_REDUCTION:
    case MS_KIND_COPY:
    case MS_KIND_CAT:
    case MS_KIND_CAST:
    case MS_KIND_FILL:
        return true;
    default:
        return false;
    }
}

static bool can_fuse(uint8_t kind)
{
    return is_listed(kind) || kind == MS_KIND_DROPOUT;
}

/* Is it a storage of forward? */
static bool is_own(const planner *p, uint32_t storage)
{
    return storage >= p->first && storage - p->first < p->n;
}

/* ---- the network --------------------------------------------------------- */

static uint32_t end_of_forward(const ms_graph *graph)
{
    return graph->forward_at[graph->n_units];
}

static uint64_t read_bytes(const ms_graph *graph, uint32_t op)
{
    uint64_t bytes = 0;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        bytes += graph->storage_bytes[graph->in[i]];
    return bytes;
}

/* A fused loss makes gradients in forward, which backward hands on: they are
 * not made again, nor what comes with them. */
static bool makes_gradients(const ms_graph *graph, uint32_t op)
{
    bool some = false;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        some |= graph->storage_category[graph->out[i]] == MS_BECOMES_GRAD;
    return some;
}

static void describe_output(planner *p, uint32_t op, uint32_t storage)
{
    const ms_graph *graph = p->graph;
    uint8_t kind = graph->op_kind[op];
    uint32_t v = storage - p->first;
    p->is_fixed[v] |= makes_gradients(graph, op);
    p->is_dear[v] |= is_dear(kind);
    p->is_listed[v] &= is_listed(kind);
    p->time_ns[v] += graph->op_ns[op];
    p->is_small[v] = kind == MS_KIND_REDUCTION &&
                     4 * graph->storage_bytes[storage] < read_bytes(graph, op);
    p->needed[v] = graph->storage_saved_end[storage] != MS_NONE;
}

/* One reading of what op makes, and of what: counted at v + 2, or put at
 * v + 1. */
static void add_deps(const planner *p, uint32_t op, uint32_t *at, uint32_t *dep)
{
    const ms_graph *graph = p->graph;
    for (uint32_t o = graph->out_at[op]; o < graph->out_at[op + 1]; o++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t to = graph->out[o], from = graph->in[i];
            if (!is_own(p, to) || !is_own(p, from) || from >= to)
                continue;
            if (dep == NULL)
                at[to - p->first + 2]++;
            else
                dep[at[to - p->first + 1]++] = from - p->first;
        }
}

/* What ops of forward make, and of what; ops that write in place add theirs. */
static ms_err list_deps(planner *p)
{
    uint32_t end = end_of_forward(p->graph);
    uint32_t *at = ms_arena_take(p->arena, p->n + 2u, sizeof *at);
    if (at == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t op = 0; op < end; op++)
        add_deps(p, op, at, NULL);
    for (uint32_t v = 0; v < p->n; v++)
        at[v + 2] += at[v + 1];
    uint32_t *dep = ms_arena_take(p->arena, at[p->n + 1] + 1u, sizeof *dep);
    if (dep == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t op = 0; op < end; op++)
        add_deps(p, op, at, dep);
    p->net.dep_at = at;
    p->net.dep = dep;
    return MS_OK;
}

/* Who reads it: does some op of backward that cannot be fused; must it be
 * written out? */
static void find_readers(planner *p, uint8_t *is_written)
{
    const ms_graph *graph = p->graph;
    uint32_t end = end_of_forward(graph);
    for (uint32_t op = 0; op < graph->n_ops; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            if (!is_own(p, s) || can_fuse(graph->op_kind[op]))
                continue;
            is_written[s - p->first] = 1;
            p->is_read[s - p->first] |= op >= end;
        }
}

/* Bytes, by how far backward is and whether they are written out. */
static ms_err weigh(planner *p, const uint8_t *is_written)
{
    const ms_graph *graph = p->graph;
    uint32_t *far = ms_arena_take(p->arena, p->n + 1u, sizeof *far);
    if (far == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t v = 0; v < p->n; v++)
        far[v] = p->needed[v] ? 1 : MS_NONE / 2;
    for (uint32_t v = p->n; v-- > 0;)
        for (uint32_t i = p->net.dep_at[v]; i < p->net.dep_at[v + 1]; i++)
            if (far[v] + 1 < far[p->net.dep[i]])
                far[p->net.dep[i]] = far[v] + 1;
    for (uint32_t v = 0; v < p->n; v++) {
        double bytes = (double)graph->storage_bytes[p->first + v];
        bytes *= pow(1.1, far[v] < 100 ? far[v] : 100);
        bool written = is_written[v] || !p->is_listed[v];
        p->weight[v] = (uint64_t)llround(written ? bytes : 2 * bytes);
    }
    return MS_OK;
}

static ms_err take_columns(planner *p)
{
    uint8_t **flags[] = {&p->is_dear,  &p->is_listed, &p->is_read,
                         &p->is_small, &p->needed,    &p->banned,
                         &p->is_saved, &p->is_fixed};
    size_t n = p->n + 1u;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        *flags[i] = ms_arena_take(p->arena, n, 1);
        if (*flags[i] == NULL)
            return ms_fail_nomem(p->fault);
    }
    p->weight = ms_arena_take(p->arena, n, sizeof *p->weight);
    p->time_ns = ms_arena_take(p->arena, n, sizeof *p->time_ns);
    p->until = ms_arena_take(p->arena, n, sizeof *p->until);
    if (p->weight == NULL || p->time_ns == NULL || p->until == NULL)
        return ms_fail_nomem(p->fault);
    memset(p->is_listed, 1, n);
    return MS_OK;
}

static ms_err open(planner *p)
{
    const ms_graph *graph = p->graph;
    uint32_t end = graph->n_persistent;
    for (uint32_t i = 0; i < graph->out_at[end_of_forward(graph)]; i++)
        end = graph->out[i] >= end ? graph->out[i] + 1 : end;
    p->first = graph->n_persistent;
    p->n = end - p->first;
    MS_TRY(take_columns(p));
    uint8_t *is_written = ms_arena_take(p->arena, p->n + 1u, 1);
    if (is_written == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t op = 0; op < end_of_forward(graph); op++)
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            if (is_own(p, graph->out[i]))
                describe_output(p, op, graph->out[i]);
    MS_TRY(list_deps(p));
    find_readers(p, is_written);
    p->net.n = p->n;
    p->net.weight = p->weight;
    p->net.banned = p->banned;
    p->net.needed = p->needed;
    return weigh(p, is_written);
}

/* ---- cuts ---------------------------------------------------------------- */

static bool is_banned(const planner *p, strictness rules, uint32_t v)
{
    if (p->is_dear[v] || p->is_fixed[v])
        return true;
    if (rules == DEAR_OPS)
        return false;
    return !p->is_listed[v] || p->is_small[v] ||
           (rules == ALL_RULES && p->is_read[v]);
}

static ms_err cut(planner *p)
{
    uint64_t weight;
    ms_arena scratch = {.limit_bytes = p->arena->limit_bytes};
    ms_err err =
        ms_mincut_find(&p->net, &scratch, p->is_saved, &weight, p->fault);
    ms_arena_free(&scratch);
    return err;
}

static ms_err cut_by(planner *p, strictness rules, uint64_t *bytes)
{
    for (uint32_t v = 0; v < p->n; v++)
        p->banned[v] = is_banned(p, rules, v);
    MS_TRY(cut(p));
    *bytes = 0;
    for (uint32_t v = 0; v < p->n; v++)
        if (p->is_saved[v])
            *bytes += p->graph->storage_bytes[p->first + v];
    return MS_OK;
}

/* Of the dear ones that backward needs, by themselves or through others, the
 * best choice in so many bytes stays banned. */
static ms_err cut_best(planner *p, uint64_t room)
{
    uint64_t *weight = ms_arena_take(p->arena, p->n + 1u, sizeof *weight);
    uint64_t *value = ms_arena_take(p->arena, p->n + 1u, sizeof *value);
    uint32_t *of = ms_arena_take(p->arena, p->n + 1u, sizeof *of), n = 0;
    uint8_t *kept = ms_arena_take(p->arena, p->n + 1u, 1);
    if (weight == NULL || value == NULL || of == NULL || kept == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->is_dear[v] || !p->is_saved[v] || p->is_fixed[v])
            continue;
        weight[n] = p->graph->storage_bytes[p->first + v];
        value[n] = p->time_ns[v] > 0 ? p->time_ns[v] : 1;
        of[n++] = v;
    }
    const ms_knapsack sack = {n, weight, value, room};
    MS_TRY(ms_knapsack_best(&sack, p->arena, kept, p->fault));
    for (uint32_t i = 0; i < n; i++)
        p->banned[of[i]] = kept[i];
    return cut(p);
}

static ms_err choose(planner *p, uint64_t percent)
{
    uint64_t bytes, room;
    MS_TRY(cut_by(p, ALL_RULES, &p->all_bytes));
    room = p->all_bytes / 100 * percent + p->all_bytes % 100 * percent / 100;
    if (percent == 100)
        return MS_OK;
    MS_TRY(cut_by(p, NO_FUSION, &bytes));
    if (bytes < room)
        return MS_OK;
    MS_TRY(cut_by(p, DEAR_OPS, &bytes));
    return bytes < room ? MS_OK : cut_best(p, room);
}

/* ---- calls --------------------------------------------------------------- */

/* Until which unit's backward what is saved is needed: by nodes that save it,
 * or to make again what others need. */
static void find_ends(planner *p)
{
    const ms_graph *graph = p->graph;
    for (uint32_t v = 0; v < p->n; v++) {
        uint32_t end = graph->storage_saved_end[p->first + v];
        p->until[v] = end == MS_NONE ? MS_NONE : graph->op_unit[end];
    }
    for (uint32_t v = p->n; v-- > 0;)
        for (uint32_t i = p->net.dep_at[v];
             i < p->net.dep_at[v + 1] && !p->is_saved[v]; i++)
            if (p->until[v] < p->until[p->net.dep[i]])
                p->until[p->net.dep[i]] = p->until[v];
}

/* Does the program hold it, because its nodes do not as long as it is
 * needed? */
static bool is_held(const planner *p, uint32_t v)
{
    uint32_t end = p->graph->storage_saved_end[p->first + v];
    return p->is_saved[v] && p->until[v] != MS_NONE &&
           (end == MS_NONE || p->graph->op_unit[end] > p->until[v]);
}

typedef struct writer {
    const planner *p;
    ms_arena *arena;
    ms_program made;
    uint32_t *keep, *hold, *drop; /* per unit: sets */
    uint32_t *list;
} writer;

static uint32_t unit_of(const planner *p, uint32_t v)
{
    return p->graph->op_unit[p->graph->storage_maker[p->first + v]];
}

static ms_err add_set(writer *w, uint32_t n, uint32_t *set)
{
    *set = MS_NOTHING;
    return n == 0 ? MS_OK
                  : ms_program_add_set(&w->made, w->list, n, w->arena, set,
                                       w->p->fault);
}

static ms_err add_sets(writer *w, uint32_t unit)
{
    const planner *p = w->p;
    uint32_t n = 0;
    for (uint32_t v = 0; v < p->n; v++)
        if (unit_of(p, v) == unit && p->needed[v] && p->is_saved[v])
            w->list[n++] = p->first + v;
    MS_TRY(add_set(w, n, &w->keep[unit]));
    n = 0;
    for (uint32_t v = 0; v < p->n; v++)
        if (unit_of(p, v) == unit && is_held(p, v))
            w->list[n++] = p->first + v;
    MS_TRY(add_set(w, n, &w->hold[unit]));
    n = 0;
    for (uint32_t v = 0; v < p->n; v++)
        if (p->until[v] == unit && is_held(p, v))
            w->list[n++] = p->first + v;
    return add_set(w, n, &w->drop[unit]);
}

static ms_err rewrite(writer *w, ms_call call)
{
    const planner *p = w->p;
    bool runs = call.verb == MS_RUN;
    if (runs && call.run.pass == MS_FORWARD) {
        call.run.keep = w->keep[call.unit];
        call.set = w->hold[call.unit];
    }
    MS_TRY(ms_program_add(&w->made, call, w->arena, p->fault));
    if (!runs || call.run.pass == MS_FORWARD ||
        w->drop[call.unit] == MS_NOTHING)
        return MS_OK;
    ms_call drop = ms_program_call_like(MS_DROP_SET, &call);
    drop.set = w->drop[call.unit];
    return ms_program_add(&w->made, drop, w->arena, p->fault);
}

static ms_err write_calls(planner *p, ms_arena *arena, ms_program *program)
{
    uint32_t units = p->graph->n_units;
    writer w = {.p = p, .arena = arena};
    find_ends(p);
    MS_TRY(ms_program_fork(p->program, arena, &w.made, p->fault));
    w.keep = ms_arena_take(arena, units, sizeof *w.keep);
    w.hold = ms_arena_take(arena, units, sizeof *w.hold);
    w.drop = ms_arena_take(arena, units, sizeof *w.drop);
    w.list = ms_arena_take(arena, p->n + 1u, sizeof *w.list);
    if (w.keep == NULL || w.hold == NULL || w.drop == NULL || w.list == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t u = 0; u < units; u++)
        MS_TRY(add_sets(&w, u));
    for (uint32_t i = 0; i < p->program->n_calls; i++)
        MS_TRY(rewrite(&w, p->program->calls[i]));
    *program = w.made;
    return MS_OK;
}

/* ---- the share ----------------------------------------------------------- */

static ms_err refuse(const planner *p, uint64_t budget, uint64_t least)
{
    char given[MS_SIZE_COUNT], hint[96];
    ms_size_count(budget, given);
    snprintf(hint, sizeof hint, "the least of its shares is budget=%" PRIu64,
             least);
    return ms_fail(p->fault, MS_EINFEASIBLE, "checkpoint:knapsack", hint,
                   "no share keeps the step to %s bytes", given);
}

/* The share of the fastest step in the budget. */
static ms_err find_share(planner *p, uint64_t budget, uint64_t *percent)
{
    uint64_t best_ns = UINT64_MAX, least = UINT64_MAX, peak, ns;
    ms_arena calls = {.limit_bytes = p->arena->limit_bytes}, scratch = calls;
    ms_err err = MS_OK;
    for (uint64_t i = STEPS + 1; i-- > 0 && err == MS_OK;) {
        ms_program program;
        ms_arena_reset(&calls);
        ms_arena_reset(&scratch);
        err = choose(p, i * 100 / STEPS);
        if (err == MS_OK)
            err = write_calls(p, &calls, &program);
        if (err == MS_OK)
            err = ms_profile_measure_in(p->context, &program, &scratch, &peak,
                                        &ns, p->fault);
        if (err != MS_OK)
            break;
        least = peak < least ? peak : least;
        if (peak > budget || ns >= best_ns)
            continue;
        best_ns = ns;
        *percent = i * 100 / STEPS;
    }
    ms_arena_free(&calls);
    ms_arena_free(&scratch);
    return err == MS_OK && best_ns == UINT64_MAX ? refuse(p, budget, least)
                                                 : err;
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
    uint64_t percent = share->given ? (uint64_t)share->number : 100;
    if (fills && share->given == budget->given)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:knapsack",
                       "write checkpoint:knapsack,budget=40GiB, or "
                       "checkpoint:knapsack,share=50",
                       "it needs one of budget= and share=");
    MS_TRY(open(&p));
    if (fills && budget->given)
        MS_TRY(find_share(&p, (uint64_t)budget->number, &percent));
    MS_TRY(choose(&p, percent));
    return write_calls(&p, p.arena, program);
}
