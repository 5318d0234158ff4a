/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dynamic tensor rematerialization (Kirisame et al., ICLR 2021, section 4 and
 * appendix D.1; uwsampl/dtr-prototype, simrd/heuristic): whenever an op's
 * results do not fit in the budget, the saved tensor goes that costs least to
 * make again for the memory and the time for which it is away:
 *
 *     dtr     (c(s) + c of e*(s)) / (bytes x staleness)
 *     eq      (c(s) + c of the classes next to s) / (bytes x staleness)
 *     local    c(s)               / (bytes x staleness)
 *     esize   (c(s) + c of e*(s)) / bytes
 *     msps    (c(s) + c of what it is made from and is gone) / bytes
 *     lru      1 / staleness
 *     size     1 / bytes
 *
 * c is the time of the ops that make a tensor and finish it in place; e* are
 * the tensors that are gone and can be reached from it through such ones, up
 * and, apart from that, down the graph: evicting it makes making these again
 * dearer, and the other way round.  A class is tensors that went next to each
 * other (policies/common/goneclasses.h).  Of equals the last in the pool goes,
 * as in simrd.
 *
 * A cost is found anew where something around it changed, and compared with the
 * first of each kind alone (policies/common/alike.h). */
#include "policies/checkpoint/makers.h"
#include "policies/common/alike.h"
#include "policies/common/goneclasses.h"
#include "policies/common/policy.h"
#include "policies/common/profile.h"
#include "policies/solve/evictorcalls.h"
#include "sim/graph.h"
#include "sim/online.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <math.h>

enum { BUDGET, HEURISTIC, SEED, MOST, N_PARAMS };
/* As in policies/solve/evictor.h. */
enum { DTR, LOCAL, MSPS, LRU, SIZE, RANDOM, EQ, ESIZE };

static const ms_param params[N_PARAMS] = {
    [BUDGET] = {.name = "budget",
                .type = MS_PARAM_SIZE,
                .promise = true,
                .low = 1,
                .high = INT64_MAX,
                .help = "the peak to keep to; default the device's memory"},
    [HEURISTIC] = {.name = "h",
                   .type = MS_PARAM_WORD,
                   .words = "dtr|local|msps|lru|size|random|eq|esize",
                   .help = "which tensor goes: the one that is least in cost "
                           "by bytes and staleness, cost with what is gone "
                           "around it (dtr, the default; eq: by classes of "
                           "neighbours) or its own alone (local), that is "
                           "least in cost by bytes (esize; msps: with what is "
                           "gone above it alone), "
                           "least recently used, the largest, or any"},
    [SEED] = {.name = "seed",
              .type = MS_PARAM_INT,
              .fallback = 1,
              .low = 0,
              .high = INT32_MAX,
              .help = "of h=random"},
    [MOST] = {.name = "most",
              .type = MS_PARAM_INT,
              .fallback = 10,
              .low = 1,
              .high = 1000,
              .help = "a step thrashes when recomputing takes so many "
                      "times as long as forward, or all of the nodes that "
                      "were measured; default 10"},
};

/* ---- what is looked at --------------------------------------------------- */

typedef ms_makers_edges edges;

typedef struct setup {
    uint32_t n_storages;
    int64_t heuristic, seed;
    uint64_t *cost_ns; /* per storage */
    edges parents, children;
} setup;

/* ---- what is remembered of a step ---------------------------------------- */

/* Each list has room for all storages.  near: with what is gone around it, what
 * it takes to make it again. */
typedef struct memory {
    uint64_t random;
    uint32_t tick, n_dirty, n_aside;
    bool open;
    ms_alike alike;         /* who is here */
    ms_goneclasses classes; /* who is gone (eq) */
    uint32_t *stamp;        /* per storage: seen in this search */
    uint32_t *stack;        /* of a search */
    uint32_t *dirty;        /* whose cost is to be found anew */
    uint32_t *aside;        /* first of their kinds that may not go now */
    uint8_t *was_gone;      /* per storage, when a victim was last asked for */
    uint8_t *is_dirty;      /* per storage */
} memory;

static size_t memory_size(uint32_t n_storages)
{
    return sizeof(memory) + ms_goneclasses_size(n_storages) +
           ms_alike_size(n_storages) +
           (size_t)n_storages * (4 * sizeof(uint32_t) + 2);
}

static void open_memory(memory *m, uint32_t n)
{
    char *behind = (char *)(m + 1);
    if (m->open)
        return;
    m->open = true;
    ms_goneclasses_open(&m->classes, behind, n);
    behind += ms_goneclasses_size(n);
    ms_alike_open(&m->alike, behind, n);
    m->stamp = (uint32_t *)(behind + ms_alike_size(n));
    m->stack = m->stamp + n;
    m->dirty = m->stack + n;
    m->aside = m->dirty + n;
    m->was_gone = (uint8_t *)(m->aside + n);
    m->is_dirty = m->was_gone + n;
}

typedef struct search {
    const setup *s;
    memory *m;
    const ms_online_view *view;
} search;

/* ---- what changed -------------------------------------------------------- */

static bool looks_around(const setup *s)
{
    return s->heuristic == DTR || s->heuristic == MSPS || s->heuristic == ESIZE;
}

static bool looks_down(const setup *s)
{
    return s->heuristic == DTR || s->heuristic == ESIZE;
}

static void soil(memory *m, uint32_t storage)
{
    if (m->is_dirty[storage])
        return;
    m->is_dirty[storage] = 1;
    m->dirty[m->n_dirty++] = storage;
}

/* What went or came back: the first n of the stack. */
static uint32_t find_turned(const search *f)
{
    memory *m = f->m;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->view->n_changed; i++) {
        uint32_t s = f->view->changed[i];
        uint8_t gone = ms_online_gone(f->view, s);
        if (gone != m->was_gone[s])
            m->stack[n++] = s;
    }
    return n;
}

/* Of all that can be reached from what turned, through what is gone, the cost
 * may have changed. */
static void soil_around(const search *f, const edges *e)
{
    memory *m = f->m;
    uint32_t n = find_turned(f), tick = ++m->tick;
    for (uint32_t i = 0; i < n; i++)
        m->stamp[m->stack[i]] = tick;
    while (n > 0) {
        uint32_t from = m->stack[--n];
        for (uint32_t i = e->at[from]; i < e->at[from + 1]; i++) {
            uint32_t to = e->to[i];
            if (m->stamp[to] == tick)
                continue;
            m->stamp[to] = tick;
            if (ms_online_gone(f->view, to))
                m->stack[n++] = to;
            else
                soil(m, to);
        }
    }
}

/* Those here to which the storage is next. */
static void soil_next(const search *f, uint32_t storage)
{
    for (int up = 0; up < 2; up++) {
        const edges *e = up ? &f->s->parents : &f->s->children;
        for (uint32_t i = e->at[storage]; i < e->at[storage + 1]; i++)
            if (!ms_online_gone(f->view, e->to[i]))
                soil(f->m, e->to[i]);
    }
}

static void merge_next(const search *f, uint32_t storage, const edges *e)
{
    ms_goneclasses *classes = &f->m->classes;
    for (uint32_t i = e->at[storage]; i < e->at[storage + 1]; i++)
        if (ms_goneclasses_has(classes, e->to[i]))
            ms_goneclasses_merge(classes, storage, e->to[i]);
}

static void soil_class(const search *f, uint32_t storage)
{
    const ms_goneclasses *c = &f->m->classes;
    for (uint32_t i = c->first[c->class_of[storage + 1]]; i != 0;
         i = c->next[i])
        soil_next(f, i - 1);
}

/* A storage went, or came back: its class is another. */
static void turn_class(const search *f, uint32_t storage)
{
    ms_goneclasses *classes = &f->m->classes;
    uint64_t own_ns = f->s->cost_ns[storage];
    if (ms_online_gone(f->view, storage) ==
        ms_goneclasses_has(classes, storage))
        return; /* it was told twice */
    if (ms_online_gone(f->view, storage)) {
        ms_goneclasses_join(classes, storage, own_ns);
        merge_next(f, storage, &f->s->parents);
        merge_next(f, storage, &f->s->children);
        soil_class(f, storage);
    } else {
        soil_class(f, storage);
        ms_goneclasses_leave(classes, storage, own_ns);
    }
}

static void turn_classes(const search *f)
{
    uint32_t n = find_turned(f);
    for (uint32_t i = 0; i < n; i++)
        turn_class(f, f->m->stack[i]);
}

static void soil_changed(const search *f)
{
    const ms_online_view *view = f->view;
    if (f->s->heuristic == EQ)
        turn_classes(f);
    if (looks_around(f->s))
        soil_around(f, &f->s->children);
    if (looks_down(f->s))
        soil_around(f, &f->s->parents);
    for (uint32_t i = 0; i < view->n_changed; i++) {
        uint32_t s = view->changed[i];
        f->m->was_gone[s] = ms_online_gone(view, s);
        soil(f->m, s);
    }
}

/* ---- what it costs ------------------------------------------------------- */

/* The time of what is gone and can be reached one way. */
static uint64_t gone_ns(const search *f, uint32_t storage, const edges *e)
{
    memory *m = f->m;
    uint32_t n = 0, tick = ++m->tick;
    uint64_t ns = 0;
    m->stamp[storage] = tick;
    for (m->stack[n++] = storage; n > 0;) {
        uint32_t from = m->stack[--n];
        ns += from != storage ? f->s->cost_ns[from] : 0;
        for (uint32_t i = e->at[from]; i < e->at[from + 1]; i++) {
            uint32_t to = e->to[i];
            if (m->stamp[to] == tick || !ms_online_gone(f->view, to))
                continue;
            m->stamp[to] = tick;
            m->stack[n++] = to;
        }
    }
    return ns;
}

/* Adds the classes of those that are gone and next to the storage, each once.
 */
static int64_t class_ns(const search *f, uint32_t storage, const edges *e,
                        uint32_t tick)
{
    const ms_goneclasses *c = &f->m->classes;
    int64_t ns = 0;
    for (uint32_t i = e->at[storage]; i < e->at[storage + 1]; i++) {
        uint32_t class = c->class_of[e->to[i] + 1];
        if (class == 0 || f->m->stamp[c->first[class] - 1] == tick)
            continue;
        f->m->stamp[c->first[class] - 1] = tick;
        ns += c->sum_ns[class];
    }
    return ns;
}

static uint64_t around_ns(const search *f, uint32_t storage)
{
    uint32_t tick = ++f->m->tick;
    int64_t ns = class_ns(f, storage, &f->s->parents, tick);
    ns += class_ns(f, storage, &f->s->children, tick);
    return ns > 0 ? (uint64_t)ns : 0;
}

static uint64_t again_ns(const search *f, uint32_t storage)
{
    const setup *s = f->s;
    uint64_t ns = s->cost_ns[storage];
    if (s->heuristic == EQ)
        ns += around_ns(f, storage);
    if (looks_down(s))
        ns += gone_ns(f, storage, &s->children);
    if (looks_around(s))
        ns += gone_ns(f, storage, &s->parents);
    return ns;
}

/* Of one kind are those that cost the same but for the time since their last
 * use: the one for which it is longest is the cheapest, unless all are free or
 * none frees anything. */
static void sort_in(const search *f, uint32_t storage)
{
    const ms_online_view *view = f->view;
    uint64_t bytes = view->graph->storage_bytes[storage], ns = 0;
    uint64_t used_ns = view->used_ns[storage];
    if (f->s->heuristic == LRU)
        bytes = 0;
    else if (f->s->heuristic != SIZE)
        ns = again_ns(f, storage);
    if (f->s->heuristic == SIZE || f->s->heuristic == MSPS ||
        f->s->heuristic == ESIZE ||
        (f->s->heuristic != LRU && (ns == 0 || bytes == 0)))
        used_ns = 0;
    ms_alike_set(&f->m->alike, storage, ns, bytes, used_ns,
                 view->came[storage]);
}

static void sort_dirty(const search *f)
{
    memory *m = f->m;
    for (uint32_t i = 0; i < m->n_dirty; i++) {
        uint32_t s = m->dirty[i];
        m->is_dirty[s] = 0;
        if (f->view->came[s] == 0)
            ms_alike_remove(&m->alike, s);
        else
            sort_in(f, s);
    }
    m->n_dirty = 0;
}

/* ns: to make it again. */
static double cost(const search *f, uint32_t storage, uint64_t ns)
{
    double bytes = (double)f->view->graph->storage_bytes[storage];
    double stale = (double)(f->view->now_ns - f->view->used_ns[storage]);
    switch (f->s->heuristic) {
    case DTR:
    case LOCAL:
    case EQ:
        return ns > 0 ? (double)ns / (bytes * stale) : 0;
    case MSPS:
    case ESIZE:
        return ns > 0 ? (double)ns / bytes : 0;
    case LRU:
        return (double)f->view->used_ns[storage];
    default:
        return 1 / bytes;
    }
}

/* ---- a victim ------------------------------------------------------------ */

/* The first of a kind that may go; those that may not step aside. */
static uint32_t first_of(const search *f, const ms_alike_kind *kind)
{
    memory *m = f->m;
    for (;;) {
        uint32_t first = kind->first;
        bool last = m->alike.items[first].child == MS_NONE;
        if (ms_eviction_may_go(f->view, first))
            return first;
        m->aside[m->n_aside++] = first;
        ms_alike_remove(&m->alike, first);
        if (last)
            return MS_NONE; /* and the kind has gone with it */
    }
}

static uint32_t cheapest(const search *f)
{
    memory *m = f->m;
    uint32_t best = MS_NONE;
    double least = INFINITY;
    for (uint32_t k = m->alike.n_kinds; k-- > 0;) {
        const ms_alike_kind *kind = &m->alike.kinds[m->alike.in_use[k]];
        uint64_t ns = kind->a;
        uint32_t item = first_of(f, kind);
        double of = item != MS_NONE ? cost(f, item, ns) : 0;
        if (item == MS_NONE ||
            (best != MS_NONE &&
             (of > least ||
              (of >= least && f->view->came[item] < f->view->came[best]))))
            continue;
        best = item;
        least = of;
    }
    return best;
}

/* xorshift64* (Vigna, An experimental exploration of Marsaglia's xorshift
 * generators, 2016). */
static uint32_t any(memory *m, int64_t seed, uint32_t n)
{
    if (m->random == 0)
        m->random = (uint64_t)seed * 2 + 1;
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (uint32_t)((m->random * UINT64_C(2685821657736338717) >> 32) % n);
}

static uint32_t victim(const ms_online *online, void *state,
                       const ms_online_view *view)
{
    const setup *s = online->setup;
    search f = {s, state, view};
    if (s->heuristic == RANDOM) {
        const uint32_t *here;
        uint32_t n = ms_eviction_list(view, &here);
        return n > 0 ? here[any(f.m, s->seed, n)] : MS_NONE;
    }
    open_memory(f.m, s->n_storages);
    soil_changed(&f);
    sort_dirty(&f);
    uint32_t best = cheapest(&f);
    while (f.m->n_aside > 0)
        sort_in(&f, f.m->aside[--f.m->n_aside]);
    return best;
}

/* ---- the hook ------------------------------------------------------------ */

static uint64_t forward_ns(const ms_policy_context *context)
{
    const ms_graph *graph = context->graph;
    uint64_t ns = 0;
    for (uint32_t op = 0; op < ms_makers_end(graph); op++)
        ns += graph->op_ns[op];
    return ns * context->schedule->n_micro_batches;
}

static ms_err online(const ms_policy_context *context, ms_online *online,
                     ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    const ms_graph *graph = context->graph;
    setup *s = ms_arena_take(context->arena, 1, sizeof *s);
    if (s == NULL)
        return ms_fail_nomem(fault);
    if (graph->nodes)
        return MS_OK;
    *s = (setup){.n_storages = graph->n_storages,
                 .heuristic = values[HEURISTIC].number,
                 .seed = values[SEED].number};
    MS_TRY(ms_makers_costs(graph, context->arena, &s->cost_ns, fault));
    MS_TRY(ms_makers_find(graph, context->arena, &s->parents, &s->children,
                          fault));
    online->setup = s;
    online->victim = victim;
    online->state_bytes = memory_size(graph->n_storages);
    online->most_again_ns = (uint64_t)values[MOST].number * forward_ns(context);
    online->budget_bytes = ms_profile_budget(context, &values[BUDGET]);
    return MS_OK;
}

/* Nodes that were measured are run as the public simulator runs them. */
static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    const ms_graph *graph = context->graph;
    if (!graph->nodes)
        return MS_OK;
    ms_evictor_setup how = {
        .heuristic = (ms_evictor_heuristic)values[HEURISTIC].number,
        .seed = (uint64_t)values[SEED].number,
        .budget_bytes = ms_profile_budget(context, &values[BUDGET]),
        .most_again_ns = (uint64_t)values[MOST].number * forward_ns(context)};
    return ms_evictorcalls_write(context, &how, program, fault);
}

static bool places(const ms_policy_value *values)
{
    (void)values; /* of what was measured alone */
    return false;
}

const ms_policy ms_policy_dtr = {
    .name = "dtr",
    .summary = "evict the saved tensor that is cheapest to make again whenever "
               "memory runs short",
    .example = "dtr:budget=40GiB",
    .params = params,
    .n_params = N_PARAMS,
    .place = place,
    .places = places,
    .online = online,
    .saves = true,
};
