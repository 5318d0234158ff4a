/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/evictor.h"
#include "policies/solve/evictstate.h"

#include <string.h>

/* An op that is to run: its arguments up to `next` are there and locked. */
typedef struct job {
    uint32_t op, next;
    uint32_t asked;   /* the storage for whose sake it runs; MS_NONE: a view */
    uint32_t missing; /* where its flags begin: which arguments were gone */
    bool again;
} job;

typedef struct runner {
    ms_evictstate state;
    ms_evictor_run *run;
    uint32_t *view_of; /* per entry of graph->in: the entry of graph->view that
                          is read, or MS_NONE: the storage as it was made */
    uint8_t *has_view; /* per entry of graph->view: it is there */
    uint32_t *view_entry_at, *view_entry; /* per storage: its views; CSR */
    uint64_t *total_bytes;                /* per op: all that it makes */
    uint32_t *came;                       /* of one op */
    uint64_t level_bytes;
    uint32_t n_jobs, jobs_capacity, n_flags, flags_capacity;
    job *jobs;
    uint8_t *flags;
} runner;

/* ---- the pool, and what leaves it ---------------------------------------- */

static void enter_pool(ms_evictstate *state, uint32_t s)
{
    state->pool[state->n_pool++] = s;
}

static void leave_pool(ms_evictstate *state, uint32_t place)
{
    state->n_pool--;
    memmove(state->pool + place, state->pool + place + 1,
            (state->n_pool - place) * sizeof *state->pool);
}

static uint32_t place_of(const ms_evictstate *state, uint32_t s)
{
    uint32_t i = 0;
    while (state->pool[i] != s)
        i++;
    return i;
}

static void lock(ms_evictstate *state, uint32_t s)
{
    if (state->locks[s]++ == 0)
        leave_pool(state, place_of(state, s));
}

static void unlock(ms_evictstate *state, uint32_t s)
{
    if (--state->locks[s] == 0)
        enter_pool(state, s);
}

static void pin(ms_evictstate *state, uint32_t s)
{
    if (state->pinned[s])
        return;
    lock(state, s);
    state->pinned[s] = 1;
}

static ms_err add_act(runner *r, ms_nodeact act, uint32_t id)
{
    return ms_nodedag_add(&r->run->plan, act, id, r->state.arena,
                          r->state.fault);
}

static bool has_regions(const ms_evictstate *state)
{
    return state->setup->heuristic == MS_EVICTOR_DTR ||
           state->setup->heuristic == MS_EVICTOR_MSPS ||
           state->setup->heuristic == MS_EVICTOR_ESIZE;
}

static ms_err evict(runner *r, uint32_t place)
{
    ms_evictstate *state = &r->state;
    uint32_t s = state->pool[place];
    state->here[s] = 0;
    r->level_bytes -= state->graph->storage_bytes[s];
    leave_pool(state, place);
    for (uint32_t i = r->view_entry_at[s]; i < r->view_entry_at[s + 1]; i++)
        r->has_view[r->view_entry[i]] = 0;
    r->run->n_evictions++;
    if (has_regions(state))
        ms_evictregions_went(state, s);
    if (state->setup->heuristic == MS_EVICTOR_EQ)
        ms_evictclasses_went(state, s);
    return add_act(r, MS_NODEACT_DROP, s);
}

/* ---- an op runs ---------------------------------------------------------- */

static bool is_there(const runner *r, uint32_t argument)
{
    uint32_t view = r->view_of[argument];
    return view == MS_NONE ? r->state.here[r->state.graph->in[argument]]
                           : r->has_view[view];
}

/* Room for all that the op makes. */
static ms_err free_room(runner *r, uint32_t op)
{
    ms_evictstate *state = &r->state;
    while (r->level_bytes + r->total_bytes[op] > state->setup->budget_bytes) {
        if (state->n_pool == 0) {
            r->run->status = MS_EVICTOR_OOM;
            r->run->needed_bytes = r->level_bytes + r->total_bytes[op];
            return MS_OK;
        }
        MS_TRY(evict(r, ms_evictcosts_choose(state)));
    }
    return MS_OK;
}

static void come_back(runner *r, uint32_t n)
{
    ms_evictstate *state = &r->state;
    for (uint32_t i = 0; i < n; i++)
        enter_pool(state, r->came[i]);
    if (has_regions(state))
        ms_evictregions_came(state, r->came, n);
    for (uint32_t i = 0; i < n && state->setup->heuristic == MS_EVICTOR_EQ; i++)
        ms_evictclasses_came(state, r->came[i]);
}

/* What comes of its results enters the pool in their order, what was asked for
 * behind the others. */
static ms_err run_op(runner *r, uint32_t op, uint32_t asked, bool again)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    uint32_t n = 0;
    uint64_t twice = 0;
    bool comes = asked != MS_NONE && !state->here[asked];
    state->now_ns += graph->op_ns[op];
    r->level_bytes += r->total_bytes[op];
    r->run->n_runs++;
    r->run->again_ns += again ? graph->op_ns[op] : 0;
    if (r->level_bytes > r->run->peak_bytes)
        r->run->peak_bytes = r->level_bytes;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        if (state->here[s])
            twice += graph->storage_bytes[s];
        else if (s != asked)
            r->came[n++] = s;
        state->here[s] = 1;
    }
    if (comes)
        r->came[n++] = asked;
    r->level_bytes -= twice;
    for (uint32_t i = graph->view_at ? graph->view_at[op] : 0;
         graph->view_at && i < graph->view_at[op + 1]; i++)
        r->has_view[i] = 1;
    come_back(r, n);
    return add_act(r, MS_NODEACT_MAKE, op);
}

/* ---- what it reads is made first ----------------------------------------- */

static ms_err begin(runner *r, uint32_t op, uint32_t asked, bool again)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    uint32_t first = graph->in_at[op], n = graph->in_at[op + 1] - first;
    r->jobs = ms_arena_grow(state->arena, r->jobs, &r->jobs_capacity,
                            r->n_jobs + 1, sizeof *r->jobs);
    r->flags = ms_arena_grow(state->arena, r->flags, &r->flags_capacity,
                             r->n_flags + n + 1, 1);
    if (r->jobs == NULL || r->flags == NULL)
        return ms_fail_nomem(state->fault);
    for (uint32_t i = 0; i < n; i++) {
        state->used_ns[graph->in[first + i]] = state->now_ns;
        r->flags[r->n_flags + i] = !is_there(r, first + i);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!r->flags[r->n_flags + i])
            lock(state, graph->in[first + i]);
    r->jobs[r->n_jobs++] =
        (job){.op = op, .asked = asked, .missing = r->n_flags, .again = again};
    r->n_flags += n;
    return MS_OK;
}

/* The op that makes an argument, or the view of it. */
static uint32_t maker_of(const runner *r, uint32_t argument)
{
    const ms_graph *graph = r->state.graph;
    return graph->in_via ? graph->in_via[argument]
                         : graph->storage_maker[graph->in[argument]];
}

/* The argument is made again. */
static ms_err begin_again(runner *r, uint32_t argument)
{
    bool is_view = r->view_of[argument] != MS_NONE;
    return begin(r, maker_of(r, argument),
                 is_view ? MS_NONE : r->state.graph->in[argument], true);
}

/* The job on top goes on: another begins, or it ends. */
static ms_err go_on(runner *r)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    job *top = &r->jobs[r->n_jobs - 1];
    uint32_t op = top->op, first = graph->in_at[op];
    for (uint32_t n = graph->in_at[op + 1] - first; top->next < n;
         top->next++) {
        uint32_t argument = first + top->next;
        if (!r->flags[top->missing + top->next])
            continue;
        if (!is_there(r, argument))
            return begin_again(r, argument);
        lock(state, graph->in[argument]);
    }
    MS_TRY(free_room(r, op));
    r->run->op = op;
    if (r->run->status != MS_EVICTOR_OK)
        return MS_OK;
    MS_TRY(run_op(r, op, top->asked, top->again));
    for (uint32_t i = first; i < graph->in_at[op + 1]; i++)
        unlock(state, graph->in[i]);
    r->n_flags = top->missing;
    r->n_jobs--;
    if (r->run->again_ns > state->setup->most_again_ns)
        r->run->status = MS_EVICTOR_THRASHES;
    return MS_OK;
}

/* What has begun, and what it takes. */
static ms_err finish(runner *r)
{
    while (r->n_jobs > 0 && r->run->status == MS_EVICTOR_OK)
        MS_TRY(go_on(r));
    return MS_OK;
}

/* ---- the run ------------------------------------------------------------- */

static bool is_constant(const ms_graph *graph, uint32_t op)
{
    return graph->op_flags[op] & MS_OP_HOST &&
           graph->out_at[op] < graph->out_at[op + 1];
}

/* A run asks for an op's first result; a log whose op views first and makes
 * several storages behind is not told from one that makes first. */
static uint32_t first_of(const ms_graph *graph, uint32_t op)
{
    uint32_t first = graph->out_at[op];
    return first < graph->out_at[op + 1] ? graph->out[first] : MS_NONE;
}

static bool is_end(const ms_graph *graph, uint32_t op)
{
    return graph->op_flags[op] & MS_OP_HOST && !is_constant(graph, op);
}

/* What an op makes counts for what it makes, and for what it views. */
static void come_to(runner *r, uint32_t op)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    state->n_ops = op + 1;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        state->own_ns[graph->out[i]] += graph->op_ns[op];
    for (uint32_t i = graph->view_at ? graph->view_at[op] : 0;
         graph->view_at && i < graph->view_at[op + 1]; i++) {
        bool counted = false;
        for (uint32_t k = graph->view_at[op]; k < i; k++)
            counted |= graph->view[k] == graph->view[i];
        if (!counted)
            state->own_ns[graph->view[i]] += graph->op_ns[op];
    }
}

static void use_results(ms_evictstate *state, uint32_t op)
{
    const ms_graph *graph = state->graph;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        state->used_ns[graph->out[i]] = state->now_ns;
        if (is_constant(graph, op))
            pin(state, graph->out[i]);
    }
    for (uint32_t i = graph->view_at ? graph->view_at[op] : 0;
         graph->view_at && i < graph->view_at[op + 1]; i++)
        state->used_ns[graph->view[i]] = state->now_ns;
}

/* The references that end behind the op. */
static ms_err release(runner *r, uint32_t op)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++) {
        uint32_t s = MS_DROP_STORAGE(graph->drop[i]);
        if (state->here[s] && !state->pinned[s])
            MS_TRY(evict(r, place_of(state, s)));
    }
    return MS_OK;
}

/* What is there at the end is made, where it is gone, and stays. */
static ms_err end(runner *r, uint32_t op)
{
    const ms_graph *graph = r->state.graph;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        if (!is_there(r, i)) {
            MS_TRY(begin_again(r, i));
            MS_TRY(finish(r));
        }
        if (r->run->status != MS_EVICTOR_OK)
            return MS_OK;
        pin(&r->state, graph->in[i]);
    }
    r->state.n_ops = op + 1;
    return add_act(r, MS_NODEACT_MAKE, op);
}

static ms_err run_all(runner *r)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        if (is_end(graph, op)) {
            MS_TRY(end(r, op));
        } else {
            come_to(r, op);
            MS_TRY(begin(r, op, first_of(graph, op), false));
            MS_TRY(finish(r));
        }
        if (r->run->status != MS_EVICTOR_OK)
            break;
        use_results(state, op);
        if (!is_end(graph, op))
            MS_TRY(release(r, op));
    }
    for (uint32_t s = 0; s < graph->n_storages; s++)
        if (state->here[s])
            MS_TRY(add_act(r, MS_NODEACT_DROP, s));
    r->run->time_ns = state->now_ns - 1;
    return MS_OK;
}

/* ---- columns ------------------------------------------------------------- */

/* Lists per storage: values are visited twice, to count and to fill. */
typedef struct lists {
    uint32_t *at, *item;
    bool fills;
} lists;

static void visit(void *to, uint32_t storage, uint32_t value)
{
    lists *l = to;
    if (l->fills)
        l->item[l->at[storage]++] = value;
    else
        l->at[storage + 1]++;
}

typedef void (*walker)(const ms_graph *graph, lists *to);

static void walk_readers(const ms_graph *graph, lists *to)
{
    for (uint32_t op = 0; op < graph->n_ops; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            visit(to, graph->in[i], op);
}

static void walk_makers(const ms_graph *graph, lists *to)
{
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            visit(to, graph->out[i], op);
        for (uint32_t i = graph->view_at ? graph->view_at[op] : 0;
             graph->view_at && i < graph->view_at[op + 1]; i++)
            visit(to, graph->view[i], op);
    }
}

static void walk_views(const ms_graph *graph, lists *to)
{
    for (uint32_t i = 0; graph->view_at && i < graph->view_at[graph->n_ops];
         i++)
        visit(to, graph->view[i], i);
}

static ms_err list(const ms_evictstate *state, walker walk, uint32_t **at,
                   uint32_t **item)
{
    uint32_t n = state->graph->n_storages;
    lists to = {.at = ms_arena_take(state->arena, n + 2u, sizeof *to.at)};
    if (to.at == NULL)
        return ms_fail_nomem(state->fault);
    walk(state->graph, &to);
    for (uint32_t s = 0; s < n; s++)
        to.at[s + 1] += to.at[s];
    to.item = ms_arena_take_raw(state->arena, to.at[n] + 1u, sizeof *to.item);
    if (to.item == NULL)
        return ms_fail_nomem(state->fault);
    to.fills = true;
    walk(state->graph, &to);
    memmove(to.at + 1, to.at, n * sizeof *to.at);
    to.at[0] = 0;
    *at = to.at;
    *item = to.item;
    return MS_OK;
}

static ms_err find_views(runner *r)
{
    const ms_graph *graph = r->state.graph;
    uint32_t n = graph->in_at[graph->n_ops];
    r->view_of = ms_arena_take_raw(r->state.arena, n + 1u, sizeof *r->view_of);
    r->has_view = ms_arena_take(
        r->state.arena,
        (graph->view_at ? graph->view_at[graph->n_ops] : 0) + 1u, 1);
    if (r->view_of == NULL || r->has_view == NULL)
        return ms_fail_nomem(r->state.fault);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = maker_of(r, i), entry = MS_NONE;
        bool made = op == graph->storage_maker[graph->in[i]];
        for (uint32_t k = made ? 0 : graph->view_at[op];
             !made && k < graph->view_at[op + 1]; k++)
            if (graph->view[k] == graph->in[i])
                entry = k;
        r->view_of[i] = entry;
    }
    return list(&r->state, walk_views, &r->view_entry_at, &r->view_entry);
}

static ms_err take_columns(runner *r)
{
    ms_evictstate *state = &r->state;
    const ms_graph *graph = state->graph;
    size_t n = graph->n_storages + 1u;
    state->here = ms_arena_take(state->arena, n, 1);
    state->pinned = ms_arena_take(state->arena, n, 1);
    state->locks = ms_arena_take(state->arena, n, sizeof *state->locks);
    state->own_ns = ms_arena_take(state->arena, n, sizeof *state->own_ns);
    state->used_ns = ms_arena_take(state->arena, n, sizeof *state->used_ns);
    state->pool = ms_arena_take_raw(state->arena, n, sizeof *state->pool);
    r->came = ms_arena_take_raw(state->arena, n, sizeof *r->came);
    r->total_bytes =
        ms_arena_take(state->arena, graph->n_ops + 1u, sizeof *r->total_bytes);
    if (state->here == NULL || state->pinned == NULL || state->locks == NULL ||
        state->own_ns == NULL || state->used_ns == NULL ||
        state->pool == NULL || r->came == NULL || r->total_bytes == NULL)
        return ms_fail_nomem(state->fault);
    for (uint32_t op = 0; op < graph->n_ops; op++)
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            r->total_bytes[op] += graph->storage_bytes[graph->out[i]];
    return MS_OK;
}

ms_err ms_evictor_find(const ms_graph *graph, const ms_evictor_setup *setup,
                       ms_arena *arena, ms_evictor_run *run, ms_fault *fault)
{
    runner r = {.run = run};
    *run = (ms_evictor_run){0};
    r.state = (ms_evictstate){.graph = graph,
                              .setup = setup,
                              .arena = arena,
                              .fault = fault,
                              .now_ns = 1}; /* as simrd's clock */
    MS_TRY(take_columns(&r));
    MS_TRY(list(&r.state, walk_readers, &r.state.reader_at, &r.state.reader));
    MS_TRY(list(&r.state, walk_makers, &r.state.maker_at, &r.state.maker));
    MS_TRY(find_views(&r));
    if (has_regions(&r.state))
        MS_TRY(ms_evictregions_open(&r.state));
    if (setup->heuristic == MS_EVICTOR_EQ)
        MS_TRY(ms_evictclasses_open(&r.state));
    return run_all(&r);
}
