/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/selective/sac.h"
#include "policies/checkpoint/selective/oplists.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

/* Every second product (all: none) is computed again, attention never.  The
 * outputs of forward's collectives would be kept, too, but graphs have none.
 * products: how many of the region came before. */
static bool is_cached(const ms_graph *graph, const ms_sac_rule *rule,
                      uint32_t op, uint32_t *products)
{
    uint8_t kind = graph->op_kind[op];
    if (rule->cached != NULL)
        return rule->cached[op];
    if (kind == MS_KIND_MM)
        return (*products)++ % 2 == 0 || rule->all;
    return kind == MS_KIND_FLASH || kind == MS_KIND_EFFICIENT;
}

ms_err ms_sac_read(const ms_policy_context *context, const char *list,
                   const char *where, bool others, ms_sac_rule *rule,
                   ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    uint8_t *listed;
    MS_TRY(ms_oplists_find(graph, list, where, context->arena, &listed, fault));
    for (uint32_t op = 0; others && op < graph->forward_at[graph->n_units];
         op++)
        listed[op] = !listed[op];
    rule->cached = listed;
    return MS_OK;
}

void ms_sac_keep(const ms_graph *graph, const ms_sac_rule *rule, ms_keep *keep)
{
    uint32_t products = 0;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        if (keep->segment[u] == MS_NONE)
            continue;
        if (u == 0 || keep->segment[u - 1] != keep->segment[u])
            products = 0;
        for (uint32_t op = graph->forward_at[u]; op < graph->forward_at[u + 1];
             op++) {
            if (!is_cached(graph, rule, op, &products))
                continue;
            for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
                keep->place[graph->out[i]] = MS_HERE;
        }
    }
}

/* ---- the cache ----------------------------------------------------------- */

/* Columns per unit hold sets, or MS_NOTHING. */
typedef struct cache {
    const ms_graph *graph;
    const ms_sac_rule *rule;
    const ms_program *program; /* as it was */
    ms_program made;
    ms_arena *arena;
    ms_fault *fault;
    uint8_t *cached;   /* per storage */
    uint8_t *wanted;   /* per storage: a replayed op reads it */
    uint32_t *run_set; /* of the forward RUN, with what was there */
    uint32_t *again;   /* cached, and in the RUN's set already */
    /* Of a segment's last unit: what its replay pops; of its first: what it
     * does not. */
    uint32_t *popped, *left;
    uint8_t *known;  /* per unit: 1: its segment was looked at; 2: its forward
                        has sets, too */
    uint32_t *list;  /* room for n_storages */
    uint32_t *other; /* the same */
} cache;

static ms_err open_cache(cache *c)
{
    const ms_graph *graph = c->graph;
    uint32_t **columns[] = {&c->run_set, &c->again, &c->popped, &c->left};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        *columns[i] =
            ms_arena_take_raw(c->arena, graph->n_units, sizeof **columns[i]);
        if (*columns[i] == NULL)
            return ms_fail_nomem(c->fault);
        for (uint32_t u = 0; u < graph->n_units; u++)
            (*columns[i])[u] = MS_NOTHING;
    }
    c->cached = ms_arena_take(c->arena, graph->n_storages, 1);
    c->wanted = ms_arena_take(c->arena, graph->n_storages, 1);
    c->known = ms_arena_take(c->arena, graph->n_units, 1);
    c->list = ms_arena_take_raw(c->arena, graph->n_storages, sizeof *c->list);
    c->other = ms_arena_take_raw(c->arena, graph->n_storages, sizeof *c->other);
    if (c->cached == NULL || c->wanted == NULL || c->known == NULL ||
        c->list == NULL || c->other == NULL)
        return ms_fail_nomem(c->fault);
    return MS_OK;
}

static bool is_saved(const ms_graph *graph, uint32_t storage)
{
    return graph->storage_saved_end[storage] != MS_NONE;
}

/* Does a backward op from saved_from on, those of the segment, end it? */
static bool is_saved_from(const ms_graph *graph, uint32_t storage,
                          uint32_t saved_from)
{
    return is_saved(graph, storage) &&
           graph->storage_saved_end[storage] >= saved_from;
}

/* What the ops from first to end cache, and what their replay reads: that of
 * the ops that lead to something saved and not cached (torch's early stop, as
 * bind has it). */
static void find_cached(cache *c, uint32_t first, uint32_t end,
                        uint32_t saved_from)
{
    const ms_graph *graph = c->graph;
    uint32_t products = 0;
    for (uint32_t op = first; op < end; op++) {
        bool kept = is_cached(graph, c->rule, op, &products);
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
            c->cached[graph->out[i]] = kept;
            c->wanted[graph->out[i]] = 0; /* left to a later segment */
        }
    }
    for (uint32_t op = end; op-- > first;) {
        bool replayed = false;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
            uint32_t s = graph->out[i];
            /* a traced graph keeps nothing that nobody reads */
            if (c->rule->all && !c->wanted[s] && !is_saved(graph, s))
                c->cached[s] = 0;
            replayed |= !c->cached[s] &&
                        (c->wanted[s] || is_saved_from(graph, s, saved_from));
        }
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            c->wanted[graph->in[i]] |= replayed;
    }
}

static bool is_in(const ms_program *program, uint32_t set, uint32_t storage)
{
    if (set == MS_NOTHING || set == MS_ALL)
        return set == MS_ALL;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        if (program->set_item[i] == storage)
            return true;
    return false;
}

/* What unit makes and only the cache keeps: with the set of the forward RUN,
 * or to be held once more. */
static ms_err hold_unit(cache *c, uint32_t unit, uint32_t set)
{
    const ms_graph *graph = c->graph;
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    uint32_t n = 0, twice = 0;
    if (set != MS_NOTHING && set != MS_ALL)
        for (uint32_t i = c->made.set_at[set]; i < c->made.set_at[set + 1]; i++)
            c->list[n++] = c->made.set_item[i];
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end; i++) {
        uint32_t s = graph->out[i];
        if (!c->cached[s] || is_saved(graph, s))
            continue;
        if (is_in(&c->made, set, s))
            c->other[twice++] = s;
        else
            c->list[n++] = s;
    }
    MS_TRY(ms_program_add_set(&c->made, c->list, n, c->arena, &c->run_set[unit],
                              c->fault));
    return ms_program_add_set(&c->made, c->other, twice, c->arena,
                              &c->again[unit], c->fault);
}

static ms_err end_segment(cache *c, const ms_call *rerun)
{
    const ms_graph *graph = c->graph;
    uint32_t first = graph->forward_at[rerun->unit];
    uint32_t end = graph->forward_at[rerun->last + 1];
    uint32_t popped = 0, left = 0;
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++) {
        uint32_t s = graph->out[i];
        if (!c->cached[s] || is_saved(graph, s))
            continue;
        if (c->wanted[s])
            c->list[popped++] = s;
        else
            c->other[left++] = s;
    }
    MS_TRY(ms_program_add_set(&c->made, c->list, popped, c->arena,
                              &c->popped[rerun->last], c->fault));
    return ms_program_add_set(&c->made, c->other, left, c->arena,
                              &c->left[rerun->unit], c->fault);
}

static ms_err find_segments(cache *c)
{
    const ms_graph *graph = c->graph;
    for (uint32_t i = 0; i < c->program->n_calls; i++) {
        const ms_call *call = &c->program->calls[i];
        if (call->verb != MS_RERUN || c->known[call->unit])
            continue;
        uint32_t first = graph->forward_at[call->unit];
        uint32_t end = graph->forward_at[call->last + 1];
        find_cached(c, first, end, graph->backward_at[call->last + 1]);
        for (uint32_t u = call->unit; u <= call->last; u++)
            c->known[u] = 1;
        MS_TRY(end_segment(c, call));
    }
    return MS_OK;
}

static ms_err emit(cache *c, ms_verb verb, const ms_call *like, uint32_t set)
{
    ms_call call = ms_program_call_like(verb, like);
    if (set == MS_NOTHING)
        return MS_OK;
    call.set = set;
    return ms_program_add(&c->made, call, c->arena, c->fault);
}

/* A unit's forward takes the references, its replay or its backward ends
 * them. */
static ms_err rewrite(cache *c, ms_call call)
{
    bool runs = call.verb == MS_RUN;
    if (runs && call.run.pass == MS_FORWARD && c->known[call.unit]) {
        if (c->known[call.unit] == 1)
            MS_TRY(hold_unit(c, call.unit, call.set));
        c->known[call.unit] = 2;
        call.set = c->run_set[call.unit];
    }
    MS_TRY(ms_program_add(&c->made, call, c->arena, c->fault));
    if (runs && call.run.pass == MS_FORWARD)
        return emit(c, MS_HOLD, &call, c->again[call.unit]);
    if (ms_program_ends_backward(&call))
        return emit(c, MS_DROP_SET, &call, c->left[call.unit]);
    if (call.verb == MS_RERUN)
        return emit(c, MS_DROP_SET, &call, c->popped[call.last]);
    return MS_OK;
}

ms_err ms_sac_place(const ms_policy_context *context, const ms_sac_rule *rule,
                    ms_program *program, ms_fault *fault)
{
    cache c = {.graph = context->graph,
               .rule = rule,
               .program = program,
               .arena = context->arena,
               .fault = fault};
    MS_TRY(ms_program_fork(program, c.arena, &c.made, fault));
    MS_TRY(open_cache(&c));
    MS_TRY(find_segments(&c));
    for (uint32_t i = 0; i < program->n_calls; i++)
        MS_TRY(rewrite(&c, program->calls[i]));
    *program = c.made;
    return MS_OK;
}
