/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/nodedag.h"
#include "sim/base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_TRIED                                                             \
    (UINT32_C(1) << 27) /* it gives up behind so many choices                  \
                         */

/* A set of nodes, a bit each: those that are there and, of the ends, those that
 * have been made. */
typedef ms_pebble_set set;

typedef struct state {
    set here;
    uint64_t time_ns; /* so far */
    uint32_t from;    /* the state before: what of it is not here was dropped */
    uint8_t made;     /* the node made since */
    bool is_done;     /* looked at */
} state;

typedef struct entry { /* of the heap: the least bound first, then the latest */
    uint64_t bound_ns;
    uint32_t state;
} entry;

typedef struct solver {
    const ms_nodedag *dag;
    const ms_pebble_task *task;
    uint64_t budget_bytes;
    ms_arena *arena; /* of one search */
    ms_fault *fault;
    set reads[MS_PEBBLE_NODES]; /* what node v reads */
    set ends;                   /* made once, and no longer there then */
    set goal;                   /* what is there or made in the end */
    uint32_t n_states, states_capacity, n_looked;
    uint32_t n_tried; /* choices of what goes, in all searches */
    state *states;
    uint32_t *slots, n_slots; /* from sets to states: row + 1, or 0 */
    uint32_t n_heap, heap_capacity;
    entry *heap;
    /* Of the node that is made next: what else may go, and bytes of those from
     * the i-th on. */
    uint32_t n_rest;
    uint8_t rest[MS_PEBBLE_NODES];
    uint64_t rest_bytes[MS_PEBBLE_NODES + 1];
} solver;

static set bit(uint32_t v)
{
    return UINT64_C(1) << v;
}

static uint32_t lowest(set of)
{
    return (uint32_t)__builtin_ctzll(of);
}

static uint64_t bytes_of(const solver *p, set of)
{
    uint64_t bytes = 0;
    for (of &= ~p->ends; of != 0; of &= of - 1)
        bytes += p->dag->bytes[lowest(of)];
    return bytes;
}

/* The time of what must be made at least once. */
static uint64_t bound(const solver *p, set here)
{
    set open = p->goal & ~here;
    uint64_t ns = 0;
    for (uint32_t v; open != 0; open &= ~bit(v)) {
        v = 63u - (uint32_t)__builtin_clzll(open);
        ns += p->dag->cost_ns[v];
        open |= p->reads[v] & ~here;
    }
    return ns;
}

/* ---- the heap ------------------------------------------------------------ */

static bool is_before(entry a, entry b)
{
    return a.bound_ns < b.bound_ns ||
           (a.bound_ns == b.bound_ns && a.state > b.state);
}

static ms_err push(solver *p, entry item)
{
    uint32_t i = p->n_heap;
    p->heap = ms_arena_grow(p->arena, p->heap, &p->heap_capacity, i + 1,
                            sizeof *p->heap);
    if (p->heap == NULL)
        return ms_fail_nomem(p->fault);
    for (p->n_heap++; i > 0 && is_before(item, p->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = item;
    return MS_OK;
}

static entry pop(solver *p)
{
    entry top = p->heap[0], last = p->heap[--p->n_heap];
    uint32_t i = 0;
    for (uint32_t k = 1; k < p->n_heap; k = 2 * i + 1) {
        if (k + 1 < p->n_heap && is_before(p->heap[k + 1], p->heap[k]))
            k++;
        if (!is_before(p->heap[k], last))
            break;
        p->heap[i] = p->heap[k];
        i = k;
    }
    p->heap[i] = last;
    return top;
}

/* ---- sets that were met -------------------------------------------------- */

/* splitmix64's finish (Steele, Lea, Flood, OOPSLA 2014). */
static uint32_t hash_of(set here)
{
    here = (here ^ here >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    here = (here ^ here >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(here ^ here >> 31);
}

static uint32_t *slot_of(const solver *p, set here)
{
    uint32_t i = hash_of(here) & (p->n_slots - 1);
    while (p->slots[i] != 0 && p->states[p->slots[i] - 1].here != here)
        i = (i + 1) & (p->n_slots - 1);
    return &p->slots[i];
}

static ms_err grow_slots(solver *p)
{
    if (2 * p->n_states < p->n_slots)
        return MS_OK;
    uint32_t *old = p->slots;
    p->n_slots = p->n_slots == 0 ? 1024 : 2 * p->n_slots;
    p->slots = ms_arena_take(p->arena, p->n_slots, sizeof *p->slots);
    if (p->slots == NULL)
        return ms_fail_nomem(p->fault);
    ms_arena_drop(p->arena, old);
    for (uint32_t i = 0; i < p->n_states; i++)
        *slot_of(p, p->states[i].here) = i + 1;
    return MS_OK;
}

/* A set was reached: it is remembered if nothing reached it sooner. */
static ms_err reach(solver *p, set here, uint32_t from, uint32_t made,
                    uint64_t time_ns)
{
    MS_TRY(grow_slots(p));
    uint32_t *slot = slot_of(p, here), row = *slot - 1;
    if (*slot == 0) {
        row = p->n_states;
        p->states = ms_arena_grow(p->arena, p->states, &p->states_capacity,
                                  row + 1, sizeof *p->states);
        if (p->states == NULL)
            return ms_fail_nomem(p->fault);
        p->n_states++;
        *slot = row + 1;
    } else if (p->states[row].is_done || p->states[row].time_ns <= time_ns) {
        return MS_OK;
    }
    p->states[row] = (state){here, time_ns, from, (uint8_t)made, false};
    return push(p, (entry){time_ns + bound(p, here), row});
}

/* ---- from one set to the next -------------------------------------------- */

typedef struct step {
    uint32_t from, made;
    set here;  /* before anything is dropped */
    set makes; /* itself, and what comes with it */
    uint64_t time_ns;
} step;

static bool is_over(const solver *p)
{
    return p->n_states > p->task->most_states || p->n_tried > MOST_TRIED;
}

/* Drops of the rest from the i-th on, `missing` bytes at least and none that
 * is not needed; least: of those dropped so far. */
static ms_err drop_rest(solver *p, const step *s, uint32_t i, set dropped,
                        uint64_t missing, uint64_t least)
{
    for (; i < p->n_rest && p->rest_bytes[i] >= missing && !is_over(p); i++) {
        p->n_tried++;
        uint64_t bytes = p->dag->bytes[p->rest[i]];
        set more = dropped | bit(p->rest[i]);
        uint64_t smallest = bytes < least ? bytes : least;
        if (bytes < missing)
            MS_TRY(drop_rest(p, s, i + 1, more, missing - bytes, smallest));
        else if (bytes - missing < least || dropped == 0)
            MS_TRY(reach(p, (s->here & ~more) | s->makes, s->from, s->made,
                         s->time_ns));
    }
    return MS_OK;
}

/* The bytes that must go before what is made fits. */
static uint64_t count_missing(const solver *p, const step *s, uint64_t level)
{
    uint64_t with = level + p->dag->bytes[s->made], missing = 0;
    if (s->made == p->task->hand) {
        with += bytes_of(p, p->task->handed);
        if (level > p->task->hand_bytes)
            missing = level - p->task->hand_bytes;
    }
    if (with > p->budget_bytes && with - p->budget_bytes > missing)
        missing = with - p->budget_bytes;
    return missing;
}

static ms_err make(solver *p, uint32_t from, uint32_t v, uint64_t level)
{
    step s = {from, v, p->states[from].here, bit(v),
              p->states[from].time_ns + p->dag->cost_ns[v]};
    if (v == p->task->hand)
        s.makes |= p->task->handed;
    uint64_t missing = count_missing(p, &s, level);
    if (missing == 0)
        return reach(p, s.here | s.makes, from, v, s.time_ns);
    p->n_rest = 0;
    for (set rest = s.here & ~p->reads[v] & ~p->ends; rest != 0;
         rest &= rest - 1)
        p->rest[p->n_rest++] = (uint8_t)lowest(rest);
    p->rest_bytes[p->n_rest] = 0;
    for (uint32_t i = p->n_rest; i-- > 0;)
        p->rest_bytes[i] = p->rest_bytes[i + 1] + p->dag->bytes[p->rest[i]];
    return drop_rest(p, &s, 0, 0, missing, UINT64_MAX);
}

static ms_err look(solver *p, uint32_t row)
{
    set here = p->states[row].here;
    uint64_t level = bytes_of(p, here);
    for (uint32_t v = 0; v < p->dag->n; v++)
        if (!((here | p->task->handed) & bit(v)) && (p->reads[v] & ~here) == 0)
            MS_TRY(make(p, row, v, level));
    return MS_OK;
}

/* *found: the row of a set with all that nobody reads; MS_NONE: there is none.
 */
static ms_err search(solver *p, uint64_t budget_bytes, uint32_t *found,
                     bool *ended)
{
    p->budget_bytes = budget_bytes;
    p->n_states = p->n_heap = p->n_looked = 0;
    *found = MS_NONE;
    *ended = true;
    if (p->n_slots > 0)
        memset(p->slots, 0, p->n_slots * sizeof *p->slots);
    if (bytes_of(p, p->task->given) > budget_bytes)
        return MS_OK;
    MS_TRY(reach(p, p->task->given, MS_NONE, 0, 0));
    while (p->n_heap > 0) {
        uint32_t row = pop(p).state;
        if (p->states[row].is_done)
            continue;
        p->states[row].is_done = true;
        if ((p->goal & ~p->states[row].here) == 0) {
            *found = row;
            return MS_OK;
        }
        p->n_looked++;
        MS_TRY(look(p, row));
        if (is_over(p)) {
            *ended = false;
            return MS_OK;
        }
    }
    return MS_OK;
}

/* ---- the plan ------------------------------------------------------------ */

static ms_err add(const solver *p, ms_nodeplan *plan, ms_nodeact act,
                  uint32_t id, ms_arena *arena)
{
    return ms_nodedag_add(plan, act, id, arena, p->fault);
}

static ms_err write_plan(solver *p, uint32_t row, ms_arena *arena,
                         ms_nodeplan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = row; p->states[i].from != MS_NONE; i = p->states[i].from)
        n++;
    uint32_t *path = ms_arena_take_raw(p->arena, n + 1u, sizeof *path);
    if (path == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t i = row, k = n; k > 0; i = p->states[i].from)
        path[--k] = i;
    for (uint32_t k = 0; k < n; k++) {
        const state *to = &p->states[path[k]];
        set dropped = p->states[to->from].here & ~to->here;
        for (; dropped != 0; dropped &= dropped - 1)
            MS_TRY(add(p, plan, MS_NODEACT_DROP, lowest(dropped), arena));
        MS_TRY(add(p, plan, MS_NODEACT_MAKE, to->made, arena));
        if (p->ends & bit(to->made))
            MS_TRY(add(p, plan, MS_NODEACT_DROP, to->made, arena));
    }
    for (set rest = p->states[row].here & ~p->ends; rest != 0; rest &= rest - 1)
        MS_TRY(add(p, plan, MS_NODEACT_DROP, lowest(rest), arena));
    return MS_OK;
}

/* The least budget in which there is a plan, between two that were tried. */
static ms_err find_least(solver *p, uint64_t low, uint64_t high,
                         uint64_t *least, bool *ended)
{
    uint32_t found;
    while (*ended && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        MS_TRY(search(p, middle, &found, ended));
        if (found != MS_NONE)
            high = middle;
        else
            low = middle;
    }
    *least = high;
    return MS_OK;
}

static ms_err refuse(solver *p)
{
    char budget[MS_SIZE_COUNT], hint[64] = "";
    uint64_t least, asked = p->budget_bytes;
    uint64_t all = ms_dagcost_all(p->dag, p->arena);
    bool ended = all > asked;
    MS_TRY(find_least(p, asked, all, &least, &ended));
    if (ended)
        snprintf(hint, sizeof hint, "the least budget is %" PRIu64, least);
    ms_size_count(asked, budget);
    return ms_fail(p->fault, MS_EINFEASIBLE, "budget", ended ? hint : NULL,
                   "no order runs the DAG in %s bytes", budget);
}

static void open(solver *p)
{
    const ms_nodedag *dag = p->dag;
    for (uint32_t v = 0; v < dag->n; v++)
        for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++)
            p->reads[v] |= bit(dag->dep[i]);
    p->ends = p->task->ends;
    p->goal = p->task->ends | p->task->goal;
}

/* Nodes that nobody reads. */
static set ends_of(const ms_nodedag *dag)
{
    set read = 0, all = 0;
    for (uint32_t v = 0; v < dag->n; v++) {
        all |= bit(v);
        for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++)
            read |= bit(dag->dep[i]);
    }
    return all & ~read;
}

static ms_err solve(solver *p, uint64_t budget_bytes, ms_arena *arena,
                    ms_pebble *pebble)
{
    uint32_t found;
    open(p);
    MS_TRY(search(p, budget_bytes, &found, &pebble->ended));
    pebble->n_states = p->n_looked;
    if (!pebble->ended)
        return MS_OK;
    if (found == MS_NONE)
        return refuse(p);
    pebble->time_ns = p->states[found].time_ns;
    return write_plan(p, found, arena, &pebble->plan);
}

/* Each node once, in their order: nothing takes less time. */
static ms_err make_all(const ms_nodedag *dag, ms_arena *scratch,
                       ms_arena *arena, ms_pebble *pebble, ms_fault *fault)
{
    uint32_t *made = ms_arena_take_raw(scratch, dag->n + 1u, sizeof *made);
    if (made == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t v = 0; v < dag->n; v++) {
        made[v] = v;
        pebble->time_ns += dag->cost_ns[v];
    }
    pebble->ended = true;
    return ms_dagcost_plan(dag, made, dag->n, arena, &pebble->plan, fault);
}

ms_err ms_pebble_find(const ms_nodedag *dag, uint64_t budget_bytes,
                      ms_arena *arena, ms_pebble *pebble, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_err err = MS_OK;
    *pebble = (ms_pebble){0};
    if (ms_dagcost_all(dag, &scratch) <= budget_bytes) {
        err = make_all(dag, &scratch, arena, pebble, fault);
    } else if (dag->n <= MS_PEBBLE_NODES) {
        const ms_pebble_task task = {.ends = ends_of(dag),
                                     .hand = MS_NONE,
                                     .most_states = MS_PEBBLE_STATES};
        solver p = {
            .dag = dag, .task = &task, .arena = &scratch, .fault = fault};
        err = solve(&p, budget_bytes, arena, pebble);
    }
    ms_arena_free(&scratch);
    return err;
}

/* ---- a part of a DAG ----------------------------------------------------- */

static ms_err list_made(const solver *p, uint32_t row, ms_arena *arena,
                        ms_pebble_part *part)
{
    uint32_t n = 0;
    for (uint32_t i = row; p->states[i].from != MS_NONE; i = p->states[i].from)
        n++;
    part->made = ms_arena_take_raw(arena, n + 1u, 1);
    if (part->made == NULL)
        return ms_fail_nomem(p->fault);
    part->n = n;
    for (uint32_t i = row; n > 0; i = p->states[i].from)
        part->made[--n] = p->states[i].made;
    return MS_OK;
}

ms_err ms_pebble_part_find(const ms_nodedag *dag, const ms_pebble_task *task,
                           uint64_t budget_bytes, ms_arena *arena,
                           ms_pebble_part *part, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    uint32_t found;
    solver p = {.dag = dag, .task = task, .arena = &scratch, .fault = fault};
    *part = (ms_pebble_part){0};
    open(&p);
    ms_err err = search(&p, budget_bytes, &found, &part->ended);
    part->n_states = p.n_looked;
    part->found = err == MS_OK && part->ended && found != MS_NONE;
    if (part->found) {
        part->time_ns = p.states[found].time_ns;
        err = list_made(&p, found, arena, part);
    }
    ms_arena_free(&scratch);
    return err;
}
