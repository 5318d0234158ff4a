/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/handedon.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

#include <string.h>

enum { SAVED, NOT_SAVED, NOT_KNOWN };

typedef struct finder {
    ms_handedon *handed;
    const ms_graph *graph;
    const ms_schedule *schedule;
    ms_program *made;
    ms_fault *fault;
    uint32_t *stage_of; /* per unit, in the chain of its part */
    uint32_t *held_by;  /* per storage: the last part that holds it + 1 */
    uint8_t *is_kept;   /* per storage: its unit's forward saves */
    uint32_t *list;     /* room for n_storages */
} finder;

static uint32_t part_of_maker(const ms_handedon *h, uint32_t storage)
{
    const ms_graph *graph = h->context->graph;
    return h->parts->of_unit[graph->op_unit[graph->storage_maker[storage]]];
}

/* Does the forward of the part's stage save what its nodes need? */
static bool saves(const ms_handedon *h, uint32_t k, uint32_t l)
{
    const ms_chain_plan *plan = &h->plans[k];
    return plan->n == 0 || plan->acts[l - 1].verb == MS_CHAIN_SAVE;
}

/* ---- what runs again reads ----------------------------------------------- */

static ms_err add_set(const finder *f, uint32_t n, uint32_t *set)
{
    return ms_program_add_set(f->made, f->list, n, f->handed->arena, set,
                              f->fault);
}

/* What stage l of part k is the first to read of other parts, of all that run
 * again: behind what is listed already. */
static ms_err list_entered(finder *f, uint32_t k, uint32_t l, uint32_t *n)
{
    const ms_graph *graph = f->graph;
    const ms_stages *stages = &f->handed->parts->of[k];
    uint32_t first = *n;
    for (uint32_t i = graph->unit_in_at[stages->first[l]];
         i < graph->unit_in_at[stages->last[l] + 1]; i++) {
        uint32_t s = graph->unit_in[i];
        if (part_of_maker(f->handed, s) >= k || f->held_by[s] == k + 1)
            continue;
        f->held_by[s] = k + 1;
        f->list[(*n)++] = s;
    }
    return ms_program_add_set(f->made, f->list + first, *n - first,
                              f->handed->arena, &f->handed->entered[k][l],
                              f->fault);
}

static ms_err find_entered(finder *f, uint32_t k)
{
    ms_handedon *h = f->handed;
    uint32_t count = h->parts->of[k].chain.n, n = 0;
    h->entered[k] =
        ms_arena_take_raw(h->arena, count + 2u, sizeof *h->entered[k]);
    if (h->entered[k] == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t l = 1; l <= count; l++) {
        h->entered[k][l] = MS_NOTHING;
        if (k > 0 && !saves(h, k, l))
            MS_TRY(list_entered(f, k, l, &n));
    }
    return add_set(f, n, &h->entry[k]);
}

/* ---- what runs once saves ------------------------------------------------ */

static bool is_one_rank(const finder *f, uint32_t a, uint32_t b)
{
    return f->schedule->stages[a].rank == f->schedule->stages[b].rank;
}

static void find_saved(finder *f)
{
    const ms_graph *graph = f->graph;
    ms_handedon *h = f->handed;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t k = h->parts->of_unit[u];
        if (!saves(h, k, f->stage_of[u]))
            continue;
        for (uint32_t i = graph->out_at[graph->forward_at[u]];
             i < graph->out_at[graph->forward_at[u + 1]]; i++)
            f->is_kept[graph->out[i]] = 1;
        for (uint32_t i = graph->unit_in_at[u]; i < graph->unit_in_at[u + 1];
             i++) {
            uint32_t s = graph->unit_in[i], from = part_of_maker(h, s);
            if (from < k && is_one_rank(f, from, k))
                h->is_saved[s] = graph->storage_saved_end[s] != MS_NONE;
        }
    }
}

/* ---- what the first half of backward keeps to its end -------------------- */

/* Of what the part's nodes save, or of what of it is kept. */
static uint32_t list_retained(const ms_graph *graph, const ms_stage *stage,
                              const uint8_t *is_kept, uint32_t *list)
{
    uint32_t n = 0;
    for (uint32_t i = graph->out_at[graph->forward_at[stage->first]];
         i < graph->out_at[graph->forward_at[stage->last + 1]]; i++) {
        uint32_t s = graph->out[i];
        if (graph->storage_saved_end[s] != MS_NONE &&
            s >= graph->n_persistent && (is_kept == NULL || is_kept[s]))
            list[n++] = s;
    }
    return n;
}

ms_err ms_handedon_retain(const ms_policy_context *context,
                          const ms_program *program, const uint8_t *is_kept,
                          ms_arena *arena, ms_program *made, uint32_t **instead,
                          ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    const ms_schedule *schedule = context->schedule;
    bool retains = schedule->keeps.graphs && ms_schedule_splits(schedule);
    uint32_t n_sets = program->n_sets;
    uint32_t *list =
        ms_arena_take_raw(arena, graph->n_storages + 1u, sizeof *list);
    *instead = ms_arena_take_raw(arena, n_sets + 1u, sizeof **instead);
    if (list == NULL || *instead == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t set = 0; set < n_sets; set++)
        (*instead)[set] = set;
    for (uint32_t k = 0; k < schedule->n_stages && retains; k++)
        for (uint32_t set = 0; set < n_sets; set++) {
            uint32_t first = program->set_at[set];
            uint32_t n = program->set_at[set + 1] - first;
            if (n == 0 ||
                n != list_retained(graph, &schedule->stages[k], NULL, list) ||
                memcmp(program->set_item + first, list, n * sizeof *list) != 0)
                continue;
            n = list_retained(graph, &schedule->stages[k], is_kept, list);
            MS_TRY(ms_program_add_set(made, list, n, arena, &(*instead)[set],
                                      fault));
        }
    return MS_OK;
}

bool ms_handedon_instead(const uint32_t *instead, const ms_program *program,
                         ms_call *call)
{
    if ((call->verb != MS_HOLD && call->verb != MS_DROP_SET) ||
        call->set >= program->n_sets)
        return true;
    call->set = instead[call->set];
    return call->set != MS_NOTHING || call->unit != MS_NONE;
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err take_columns(finder *f, const ms_program *program)
{
    ms_handedon *h = f->handed;
    size_t storages = f->graph->n_storages, n = h->parts->n;
    h->entry = ms_arena_take_raw(h->arena, n, sizeof *h->entry);
    h->entered = ms_arena_take_raw(h->arena, n, sizeof *h->entered);
    h->is_saved = ms_arena_take(h->arena, storages, 1);
    h->saves = ms_arena_take_raw(h->arena, program->n_sets + 1u, 1);
    f->held_by = ms_arena_take(h->arena, storages, sizeof *f->held_by);
    f->is_kept = ms_arena_take(h->arena, storages, 1);
    f->list = ms_arena_take_raw(h->arena, storages, sizeof *f->list);
    f->stage_of =
        ms_arena_take(h->arena, f->graph->n_units, sizeof *f->stage_of);
    if (h->entry == NULL || h->entered == NULL || h->is_saved == NULL ||
        h->saves == NULL || f->held_by == NULL || f->is_kept == NULL ||
        f->list == NULL || f->stage_of == NULL)
        return ms_fail_nomem(f->fault);
    memset(h->saves, NOT_KNOWN, program->n_sets);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t l = 1; l <= h->parts->of[k].chain.n; l++)
            for (uint32_t u = h->parts->of[k].first[l];
                 u <= h->parts->of[k].last[l]; u++)
                f->stage_of[u] = l;
    return MS_OK;
}

ms_err ms_handedon_find(const ms_policy_context *context,
                        const ms_chainparts *parts, const ms_chain_plan *plans,
                        const ms_program *program, ms_arena *arena,
                        ms_program *made, ms_handedon *handed, ms_fault *fault)
{
    finder f = {.handed = handed,
                .graph = context->graph,
                .schedule = context->schedule,
                .made = made,
                .fault = fault};
    *handed = (ms_handedon){
        .context = context, .parts = parts, .plans = plans, .arena = arena};
    MS_TRY(take_columns(&f, program));
    find_saved(&f);
    for (uint32_t k = 0; k < parts->n; k++)
        MS_TRY(find_entered(&f, k));
    return ms_handedon_retain(context, program, f.is_kept, arena, made,
                              &handed->instead, fault);
}

/* ---- calls --------------------------------------------------------------- */

/* Which part does call i receive for?  The first on its rank that reads it. */
static uint32_t part_that_reads(const ms_handedon *h, const ms_program *program,
                                uint32_t i)
{
    const ms_graph *graph = h->context->graph;
    const ms_call *call = &program->calls[i];
    for (i++; i < program->n_calls && program->calls[i].rank == call->rank;
         i++) {
        const ms_call *run = &program->calls[i];
        if (run->verb != MS_RUN || run->run.pass != MS_FORWARD ||
            run->micro_batch != call->micro_batch)
            continue;
        for (uint32_t at = graph->unit_in_at[run->unit];
             at < graph->unit_in_at[run->unit + 1]; at++)
            for (uint32_t k = program->set_at[call->set];
                 k < program->set_at[call->set + 1]; k++)
                if (program->set_item[k] == graph->unit_in[at])
                    return h->parts->of_unit[run->unit];
    }
    return MS_NONE;
}

/* Does a stage of the part that its forward saves read something of the set? */
static bool is_read(const ms_handedon *h, const ms_program *program, uint32_t k,
                    uint32_t set)
{
    const ms_graph *graph = h->context->graph;
    const ms_stages *stages = &h->parts->of[k];
    for (uint32_t l = 1; l <= stages->chain.n; l++)
        for (uint32_t i = graph->unit_in_at[stages->first[l]];
             i < graph->unit_in_at[stages->last[l] + 1] && saves(h, k, l); i++)
            for (uint32_t at = program->set_at[set];
                 at < program->set_at[set + 1]; at++)
                if (program->set_item[at] == graph->unit_in[i])
                    return true;
    return false;
}

static bool saves_message(ms_handedon *h, const ms_program *program, uint32_t i)
{
    uint32_t set = program->calls[i].set;
    if (h->saves[set] == NOT_KNOWN) {
        uint32_t k = part_that_reads(h, program, i);
        h->saves[set] =
            k == MS_NONE || is_read(h, program, k, set) ? SAVED : NOT_SAVED;
    }
    return h->saves[set] == SAVED;
}

bool ms_handedon_is_saved(const ms_handedon *handed, uint32_t storage)
{
    return handed->is_saved[storage];
}

bool ms_handedon_change(ms_handedon *handed, const ms_program *program,
                        uint32_t i, ms_call *call)
{
    if (call->verb == MS_RECV_SET && call->set < program->n_sets &&
        call->message.saves)
        call->message.saves = saves_message(handed, program, i);
    return ms_handedon_instead(handed->instead, program, call);
}
