/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/handover.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

typedef struct finder {
    const ms_graph *graph;
    const ms_schedule *schedule;
    const uint32_t *stage_of;
    ms_arena *arena;
    ms_program *program;
    ms_fault *fault;
    ms_handovers *found;
    uint32_t *last; /* per storage: the stage that touched it last, or NONE */
    uint32_t *list; /* n: what the stage at hand is handed, */
    uint32_t *from; /* by which stages */
    uint32_t *set;  /* room for as many */
    uint32_t n;
} finder;

bool ms_handover_is_of(const ms_handover *handover, uint8_t kind)
{
    return handover->backward
               ? kind == MS_TURN_BACKWARD || kind == MS_TURN_GRAD_INPUT
               : kind == MS_TURN_FORWARD;
}

static bool is_gradient(const ms_graph *graph, uint32_t s)
{
    return graph->storage_maker[s] >= graph->forward_at[graph->n_units];
}

static uint32_t stage_of_maker(const finder *f, uint32_t s)
{
    return f->stage_of[f->graph->op_unit[f->graph->storage_maker[s]]];
}

static void see(finder *f, uint32_t k, bool backward, uint32_t s)
{
    if (s < f->graph->n_persistent || is_gradient(f->graph, s) != backward)
        return;
    if (f->last[s] != MS_NONE && f->last[s] != k) {
        f->list[f->n] = s;
        f->from[f->n++] = f->last[s];
    }
    f->last[s] = k;
}

static void see_ops(finder *f, uint32_t k, bool backward, uint32_t first,
                    uint32_t end)
{
    const ms_graph *graph = f->graph;
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        see(f, k, backward, graph->in[i]);
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++)
        see(f, k, backward, graph->out[i]);
}

static ms_err add_set(finder *f, uint32_t n, uint32_t *set)
{
    return ms_program_add_set(f->program, f->set, n, f->arena, set, f->fault);
}

static ms_err add(finder *f, ms_handover it, uint32_t n)
{
    ms_handovers *found = f->found;
    ms_handover *all = ms_arena_grow(f->arena, found->all, &found->capacity,
                                     found->n + 1, sizeof *all);
    if (all == NULL)
        return ms_fail_nomem(f->fault);
    found->all = all;
    MS_TRY(add_set(f, n, &it.set));
    uint32_t n_relayed = 0;
    for (uint32_t i = 0; i < n && !it.local; i++)
        if (stage_of_maker(f, f->set[i]) != it.from)
            f->set[n_relayed++] = f->set[i];
    MS_TRY(add_set(f, n_relayed, &it.relayed));
    all[found->n++] = it;
    return MS_OK;
}

/* One handover per stage that hands something of the list. */
static ms_err divide(finder *f, uint32_t k, bool backward)
{
    const ms_stage *stages = f->schedule->stages;
    while (f->n > 0) {
        uint32_t from = f->from[0], n = 0, rest = 0;
        for (uint32_t i = 0; i < f->n; i++) {
            if (f->from[i] == from) {
                f->set[n++] = f->list[i];
                continue;
            }
            f->from[rest] = f->from[i];
            f->list[rest++] = f->list[i];
        }
        f->n = rest;
        ms_handover it = {.from = from,
                          .to = k,
                          .backward = backward,
                          .local = stages[from].rank == stages[k].rank};
        MS_TRY(add(f, it, n));
    }
    return MS_OK;
}

/* What backward reads of forward comes with the forward. */
static ms_err find_of(finder *f, uint32_t k, bool backward)
{
    const ms_graph *graph = f->graph;
    const ms_stage *stage = &f->schedule->stages[k];
    if (!backward)
        see_ops(f, k, backward, graph->forward_at[stage->first],
                graph->forward_at[stage->last + 1]);
    see_ops(f, k, backward, graph->backward_at[stage->last + 1],
            graph->backward_at[stage->first]);
    return divide(f, k, backward);
}

static ms_err list_by_stage(finder *f, bool out, uint32_t **at, uint32_t **rows)
{
    ms_handovers *found = f->found;
    uint32_t n = f->schedule->n_stages;
    *at = ms_arena_take(f->arena, (size_t)n + 2, sizeof **at);
    *rows = ms_arena_take_raw(f->arena, found->n + 1, sizeof **rows);
    if (*at == NULL || *rows == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t i = 0; i < found->n; i++)
        (*at)[(out ? found->all[i].from : found->all[i].to) + 2]++;
    for (uint32_t k = 2; k <= n; k++)
        (*at)[k] += (*at)[k - 1];
    for (uint32_t i = 0; i < found->n; i++) {
        uint32_t k = out ? found->all[i].from : found->all[i].to;
        (*rows)[(*at)[k + 1]++] = i;
    }
    return MS_OK;
}

/* A handover that names a storage, and the next such. */
typedef struct naming {
    uint32_t of, next;
} naming;

/* Lists per storage the handovers that name it, from f->last on. */
static ms_err list_namings(const finder *f, naming **list)
{
    const ms_program *program = f->program;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->found->n; i++) {
        uint32_t set = f->found->all[i].set;
        n += program->set_at[set + 1] - program->set_at[set];
    }
    *list = ms_arena_take_raw(f->arena, n, sizeof **list);
    if (*list == NULL)
        return ms_fail_nomem(f->fault);
    memset(f->last, 0xff, f->graph->n_storages * sizeof *f->last);
    for (uint32_t i = f->found->n; i-- > 0;) {
        uint32_t set = f->found->all[i].set;
        for (uint32_t k = program->set_at[set]; k < program->set_at[set + 1];
             k++) {
            uint32_t *first = &f->last[program->set_item[k]];
            (*list)[--n] = (naming){i, *first};
            *first = n;
        }
    }
    return MS_OK;
}

/* Does a later handover bring it back to where it was? */
static bool comes_again(const finder *f, const naming *list,
                        const ms_handover *it, uint32_t s)
{
    const ms_stage *stages = f->schedule->stages;
    for (uint32_t i = f->last[s]; i != MS_NONE; i = list[i].next) {
        const ms_handover *other = &f->found->all[list[i].of];
        bool later = it->backward ? other->to < it->to : other->to > it->to;
        if (later && other->backward == it->backward &&
            stages[other->to].rank == stages[it->from].rank)
            return true;
    }
    return false;
}

static void find_again(const finder *f, const naming *list, ms_handover *it)
{
    uint32_t first = f->program->set_at[it->set];
    it->again = comes_again(f, list, it, f->program->set_item[first]);
    for (uint32_t i = first; i < f->program->set_at[it->set + 1]; i++)
        it->returns |= comes_again(f, list, it, f->program->set_item[i]);
}

ms_err ms_handover_find(const ms_graph *graph, const ms_schedule *schedule,
                        const uint32_t *stage_of, ms_arena *arena,
                        ms_program *program, ms_handovers *handovers,
                        ms_fault *fault)
{
    finder f = {.graph = graph,
                .schedule = schedule,
                .stage_of = stage_of,
                .arena = arena,
                .program = program,
                .fault = fault,
                .found = handovers};
    *handovers = (ms_handovers){0};
    uint32_t n = schedule->n_stages;
    if (n > 1) {
        size_t room = graph->n_storages;
        f.last = ms_arena_take_raw(arena, room, sizeof *f.last);
        f.list = ms_arena_take_raw(arena, room, sizeof *f.list);
        f.from = ms_arena_take_raw(arena, room, sizeof *f.from);
        f.set = ms_arena_take_raw(arena, room, sizeof *f.set);
        if (!f.last || !f.list || !f.from || !f.set)
            return ms_fail_nomem(fault);
        memset(f.last, 0xff, room * sizeof *f.last);
        for (uint32_t k = 0; k < n; k++)
            MS_TRY(find_of(&f, k, false));
        for (uint32_t k = n; k-- > 0;)
            MS_TRY(find_of(&f, k, true));
    }
    MS_TRY(list_by_stage(&f, true, &handovers->out_at, &handovers->out));
    MS_TRY(list_by_stage(&f, false, &handovers->in_at, &handovers->in));
    if (handovers->n == 0)
        return MS_OK;
    naming *list;
    MS_TRY(list_namings(&f, &list));
    for (uint32_t i = 0; i < handovers->n; i++)
        find_again(&f, list, &handovers->all[i]);
    return MS_OK;
}

uint64_t ms_handover_bytes(const ms_graph *graph, const ms_program *program,
                           const ms_handover *handover)
{
    const uint32_t *at = &program->set_at[handover->set];
    uint64_t bytes = 0;
    for (uint32_t i = at[0]; i < at[1]; i++)
        bytes += graph->storage_bytes[program->set_item[i]];
    return bytes;
}
